/* SPDX-License-Identifier: Apache-2.0 */
/* `leat report`.  Room: cli. */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/commands/commands.h"
#include "cli/options/table.h"
#include "cli/report/follow.h"
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

/* Writes the page once. */
static int write_once(const char *folder, cli_report_page *page) {
    char *numbers = cli_report_read(page);
    if (!numbers) return CLI_FAILURE;
    page->died = folder && cli_report_is_dead(folder, page->history, numbers);
    int code = cli_report_write_page(page, numbers);
    free(numbers);
    if (code == CLI_SUCCESS) cli_say("wrote %s\n", page->output);
    return code;
}

static int report_folder(const char *folder, const char *output, bool follow) {
    char history[PATH_MAX], report[PATH_MAX];
    struct stat info;
    if (!join(history, folder, "history.json") || !join(report, folder, "report.html")) {
        cli_say("leat report: '%.100s...' is too long for a path\n", folder);
        return CLI_FAILURE;
    }
    if (stat(history, &info) != 0)
        return cannot_read(history,
                           ": expected RUN to be a folder that leat fit --out wrote, or a history.json");
    cli_report_page page = {.command = "report", .history = history, .output = output ? output : report};
    return follow ? cli_report_follow(folder, &page) : write_once(folder, &page);
}

static int refuse_file(const char *run, const char *needs) {
    cli_say("leat report: '%s' is a file, not a folder that leat fit --out wrote: %s\n"
            "try: leat report --help\n",
            run, needs);
    return CLI_USAGE;
}

int cli_report(const cli_arguments *arguments) {
    const char *run = arguments->operands[0], *output = arguments->text[CLI_REPORT_OUTPUT];
    bool follow = arguments->text[CLI_FOLLOW];
    struct stat info;
    if (stat(run, &info) != 0) return cannot_read(run, "");
    if (S_ISDIR(info.st_mode)) return report_folder(run, output, follow);
    if (follow) return refuse_file(run, "--follow needs the folder");
    if (!output) return refuse_file(run, "give --output FILE");
    cli_report_page page = {.command = "report", .history = run, .output = output};
    return write_once(NULL, &page);
}
