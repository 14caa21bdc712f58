/* SPDX-License-Identifier: Apache-2.0 */
/* `leat report`.  Room: cli. */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/commands/commands.h"
#include "cli/options/table.h"
#include "cli/report/page.h"
#include "cli/text/say.h"

/* Writes folder/name to out; returns false if that is too long for a path. */
static bool join(char out[PATH_MAX], const char *folder, const char *name) {
    size_t length = strlen(folder);
    const char *slash = length > 0 && folder[length - 1] == '/' ? "" : "/";
    return snprintf(out, PATH_MAX, "%s%s%s", folder, slash, name) < PATH_MAX;
}

static int cannot_read(const char *path, const char *hint) {
    cli_say("leat report: cannot read '%s': %s%s\n", path, strerror(errno), hint);
    return CLI_FAILURE;
}

int cli_report(const cli_arguments *arguments) {
    const char *run = arguments->operands[0], *history = run, *output = arguments->text[CLI_REPORT_OUTPUT];
    char history_path[PATH_MAX], report_path[PATH_MAX];
    struct stat info;
    if (stat(run, &info) != 0) return cannot_read(run, "");
    if (S_ISDIR(info.st_mode)) {
        if (!join(history_path, run, "history.json") || !join(report_path, run, "report.html")) {
            cli_say("leat report: '%.100s...' is too long for a path\n", run);
            return CLI_FAILURE;
        }
        history = history_path;
        if (!output) output = report_path;
        if (stat(history, &info) != 0)
            return cannot_read(history,
                               ": expected RUN to be a folder that leat fit --out wrote, or a history.json");
    }
    if (!output) {
        cli_say("leat report: '%s' is a file, not a folder that leat fit --out wrote: give --output FILE\n"
                "try: leat report --help\n",
                run);
        return CLI_USAGE;
    }
    int code = cli_report_write("report", history, output);
    if (code == CLI_SUCCESS) cli_say("wrote %s\n", output);
    return code;
}
