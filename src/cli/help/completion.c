/* SPDX-License-Identifier: Apache-2.0 */
/* The bash completion: functions made from the table, then completion.bash.  Room: cli. */
#include <stdio.h>
#include <string.h>

#include "cli/help/manual.h"

/* Writes the names of a group's members; if group is NULL, of the commands of no group. */
static void bash_members(FILE *out, const cli_command *group) {
    for (int i = 0; i < cli_command_count; ++i)
        if (cli_command_is_in(&cli_commands[i], group))
            fprintf(out, "%s ", cli_command_last_name(&cli_commands[i]));
}

/* Writes a variable with the names of the command's options whose values are of the given kinds (a bit mask of
 * cli_value): specs='--train --validation '. */
static void bash_options(FILE *out, const char *variable, const cli_command *command, unsigned kinds) {
    fprintf(out, " %s='", variable);
    for (int i = 0; i < command->use_count; ++i) {
        const cli_option *option = &cli_options[command->uses[i].id];
        if (kinds >> option->value & 1) fprintf(out, "%s ", option->name);
    }
    fputc('\'', out);
}

/* Writes the variable `operand`, the kind of the command's operand (spec, words, file or none), and `words`, its
 * choices. */
static void bash_operand(FILE *out, const cli_command *command) {
    const char *operand = command->operand ? command->operand : "";
    if (strstr(operand, "SPEC")) {
        fputs(" operand=spec", out);
    } else if (strstr(operand, "KIND")) {
        fputs(" operand=words words='", out);
#define KIND_WORD(id, name) fputs(name " ", out);
        CLI_KIND_LIST(KIND_WORD)
#undef KIND_WORD
        fputc('\'', out);
    } else if (strstr(operand, "TOPIC")) {
        fputs(" operand=words words='", out);
        bash_members(out, NULL);
        fputs("specs '", out);
    } else {
        fprintf(out, " operand=%s", *operand ? "file" : "none");
    }
}

/* Writes the function _leat_of COMMAND, which sets the variables above for a command. */
static void bash_commands(FILE *out) {
    fputs("_leat_of() {\n    words=\n    case $1 in\n", out);
    for (int i = 0; i < cli_command_count; ++i) {
        const cli_command *command = &cli_commands[i];
        if (!command->run) continue;
        fprintf(out, "    '%s')", command->name);
        bash_operand(out, command);
        bash_options(out, "specs", command, 1U << CLI_SPEC);
        bash_options(out, "files", command, 1U << CLI_FILE);
        bash_options(out, "folders", command, 1U << CLI_FOLDER);
        bash_options(out, "others", command,
                     1U << CLI_TEXT | 1U << CLI_NUMBER | 1U << CLI_SIZE | 1U << CLI_DURATION);
        bash_options(out, "flags", command, 1U << CLI_FLAG);
        fputs(" ;;\n", out);
    }
    fputs("    *) return 1 ;;\n    esac\n}\n", out);
}

/* Writes the function _leat_members GROUP, which prints the names of a group's commands; for '' those of no group. */
static void bash_groups(FILE *out) {
    fputs("_leat_members() {\n    case $1 in\n    '') echo '", out);
    bash_members(out, NULL);
    fputs("' ;;\n", out);
    for (int i = 0; i < cli_command_count; ++i) {
        if (cli_commands[i].run) continue;
        fprintf(out, "    '%s') echo '", cli_commands[i].name);
        bash_members(out, &cli_commands[i]);
        fputs("' ;;\n", out);
    }
    fputs("    esac\n}\n", out);
}

void cli_bash_completion(FILE *out) {
    fputs("# bash completion of leat, made from its table of commands and options\n", out);
    bash_groups(out);
    bash_commands(out);
    fputs(cli_completion, out);
}
