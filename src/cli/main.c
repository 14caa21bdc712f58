/* SPDX-License-Identifier: Apache-2.0 */
/* The `leat` command: finds the subcommand, parses its arguments and runs it.  Room: cli. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/help/manual.h"
#include "cli/options/parse.h"
#include "cli/options/suggest.h"
#include "cli/text/say.h"
#include "leat/log.h"

/* Opens /dev/null on those of the descriptors 0 to 2 that the caller has closed.  Otherwise a file that leat opens
 * would get one of these numbers, and messages would be written into the file.  Each is opened in the direction that
 * its stream does not use, so that reading or writing fails, as it would on a closed descriptor. */
static bool occupy_standard_descriptors(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
        if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) return false;
    }
    return true;
}

/* Flushes standard output and returns the exit code: a failure if not all output was written, as with a full disk. */
static int flush_output(int code) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return code;
    perror("leat: cannot write to standard output");
    return code == CLI_SUCCESS ? CLI_FAILURE : code;
}

static int unknown_command(const char *name) {
    const char *suggestion = name[0] == '-' ? NULL : cli_nearest_command(name), *blank = strchr(name, ' ');
    cli_say("leat: %s '%s'", name[0] == '-' ? "unknown option" : "unknown command", name);
    if (suggestion) cli_say(": did you mean '%s'?", suggestion);
    if (blank)
        cli_say("\ntry: leat %.*s --help\n", (int)(blank - name), name);
    else
        fputs("\ntry: leat --help\n", stderr);
    return CLI_USAGE;
}

/* Finds the command that argv names, by one word, or by two if the first is a group, and removes these words from
 * argv. */
static int find_named_command(int *argc, char ***argv, const cli_command **out) {
    char joined[64];
    const char *name = (*argv)[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) name = "help";
    if (strcmp(name, "--version") == 0) name = "version";
    *out = cli_command_find(name);
    *argc -= 2, *argv += 2;
    if (*out && !(*out)->run && *argc > 0 && (*argv)[0][0] && (*argv)[0][0] != '-') {
        snprintf(joined, sizeof joined, "%s %s", name, (*argv)[0]);
        name = joined;
        *out = cli_command_find(name);
        *argc -= 1, *argv += 1;
    }
    return *out ? CLI_SUCCESS : unknown_command(name);
}

static int run(int argc, char **argv) {
    if (argc < 2) {
        cli_help_overview(stderr);
        return CLI_USAGE;
    }
    const cli_command *command = NULL;
    cli_arguments arguments;
    const char *program = argv[0];
    int code = find_named_command(&argc, &argv, &command);
    if (code == CLI_SUCCESS) code = cli_parse(command, argc, argv, &arguments);
    if (code != CLI_SUCCESS) return code;
    arguments.program = program;
    if (arguments.text[CLI_HELP]) {
        cli_help_command(stdout, command);
        return CLI_SUCCESS;
    }
    return command->run(&arguments);
}

int main(int argc, char **argv) {
    if (!occupy_standard_descriptors()) return CLI_FAILURE;
    leat_set_log(leat_log_to_stderr, NULL);
    return flush_output(run(argc, argv));
}
