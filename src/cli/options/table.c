/* SPDX-License-Identifier: Apache-2.0 */
/* The array of options, and lookups in the array of commands.  Room: cli. */
#include "cli/options/table.h"

#include <string.h>

const cli_option cli_options[CLI_OPTION_COUNT] = {
#define CLI_OPTION_ROW(id, name, value, metavar, low, high, fallback, help)                                  \
    [CLI_##id] = {name, value, metavar, low, high, fallback, help},
    CLI_OPTION_LIST(CLI_OPTION_ROW)
#undef CLI_OPTION_ROW
};

const cli_command *cli_command_find(const char *name) {
    for (int i = 0; i < cli_command_count; ++i)
        if (strcmp(cli_commands[i].name, name) == 0) return &cli_commands[i];
    return NULL;
}

const char *cli_command_last_name(const cli_command *command) {
    const char *blank = strchr(command->name, ' ');
    return blank ? blank + 1 : command->name;
}

bool cli_command_is_in(const cli_command *command, const cli_command *group) {
    size_t length = group ? strlen(group->name) : 0;
    const char *last = cli_command_last_name(command);
    if (!group) return last == command->name;
    return last == command->name + length + 1 && memcmp(command->name, group->name, length) == 0;
}
