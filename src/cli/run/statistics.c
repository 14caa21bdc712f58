/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the file of the statistics of a fit.  Room: cli. */
#define _GNU_SOURCE /* mkdtemp */
#include "cli/run/statistics.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/run/files.h"
#include "cli/text/say.h"
#include "leat/file.h"

static const char name[] = "statistics.npz";

int cli_statistics_begin(cli_session *session, const cli_folder *folder) {
    const char *spec = session->arguments->text[CLI_TRAIN], *parent = getenv("TMPDIR");
    if (!spec || !strstr(spec, "augment=")) return CLI_SUCCESS;
    if (folder->path[0]) {
        cli_folder_path(session->statistics, folder, name);
        return CLI_SUCCESS;
    }
    snprintf(session->temporary, sizeof session->temporary, "%.2000s/leat-XXXXXX",
             parent && *parent ? parent : "/tmp");
    if (!mkdtemp(session->temporary)) {
        cli_say("leat fit: cannot create a folder in '%s' for statistics: %s\n", session->temporary,
                strerror(errno));
        session->temporary[0] = '\0';
        return CLI_FAILURE;
    }
    snprintf(session->statistics, sizeof session->statistics, "%.3000s/%s", session->temporary, name);
    return CLI_SUCCESS;
}

int cli_statistics_keep(const cli_session *session, const cli_folder *folder) {
    char path[CLI_PATH_BYTES];
    size_t bytes = 0;
    leat_error err = {0};
    if (!session->temporary[0] || !folder->path[0] || access(session->statistics, F_OK) != 0)
        return CLI_SUCCESS;
    char *data = cli_read_file(session->statistics, &bytes);
    if (!data) {
        cli_say("leat fit: cannot read '%s': %s\n", session->statistics, strerror(errno));
        return CLI_FAILURE;
    }
    cli_folder_path(path, folder, name);
    const leat_status status = leat_file_replace(path, data, bytes, &err);
    free(data);
    return status == LEAT_OK ? CLI_SUCCESS : cli_fail(session, &err);
}

void cli_statistics_end(cli_session *session) {
    if (!session->temporary[0]) return;
    (void)unlink(session->statistics);
    (void)rmdir(session->temporary);
    session->temporary[0] = '\0';
}
