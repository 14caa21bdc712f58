/* SPDX-License-Identifier: Apache-2.0 */
/* The build's program `leat_docgen FOLDER`, which writes the man pages and the bash completion into a folder.  Layer:
 * cli. */
#include <stdio.h>

#include "cli/help/manual.h"

static FILE *open_page(const char *folder, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (!file) perror(path);
    return file;
}

static int close_page(FILE *file) {
    int failed = ferror(file);
    return fclose(file) != 0 || failed;
}

static int write_page(const char *folder, const char *name, void (*write)(FILE *out)) {
    FILE *file = open_page(folder, name);
    if (!file) return 1;
    write(file);
    return close_page(file);
}

static int write_command(const char *folder, const cli_command *command) {
    char page[CLI_MAN_NAME_BYTES], name[CLI_MAN_NAME_BYTES + 2];
    cli_man_name(page, command);
    snprintf(name, sizeof name, "%s.1", page);
    FILE *file = open_page(folder, name);
    if (!file) return 1;
    cli_man_command(file, command);
    return close_page(file);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fputs("usage: leat_docgen FOLDER\n", stderr);
        return 2;
    }
    int failed = write_page(argv[1], "leat.1", cli_man_overview);
    failed += write_page(argv[1], "leat-specs.7", cli_man_specs);
    failed += write_page(argv[1], "leat.bash", cli_bash_completion);
    for (int i = 0; i < cli_command_count; ++i) failed += write_command(argv[1], &cli_commands[i]);
    return failed ? 1 : 0;
}
