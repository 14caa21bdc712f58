/* SPDX-License-Identifier: Apache-2.0 */
/* The text of --help.  Room: cli. */
#include <stdio.h>
#include <string.h>

#include "cli/help/manual.h"

enum { help_width = 79, name_width = 24 };

/* Prints text, wrapped at blanks, in the columns from `indent` on.  The cursor is at column `indent` already. */
static void wrap(FILE *out, const char *text, int indent) {
    int column = indent;
    while (*text) {
        int length = (int)strcspn(text, " \n");
        if (column > indent && column + 1 + length > help_width) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
        }
        if (column > indent) {
            fputc(' ', out);
            ++column;
        }
        fprintf(out, "%.*s", length, text);
        column += length;
        text += length;
        if (text[0] == '\n') {
            for (; *text == '\n'; ++text) fputc('\n', out);
            fprintf(out, "%*s", indent, "");
            column = indent;
        }
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

/* Prints the members of a group; if group is NULL, the commands of no group. */
static void print_members(FILE *out, const cli_command *group) {
    for (int i = 0; i < cli_command_count; ++i)
        if (cli_command_is_in(&cli_commands[i], group))
            fprintf(out, "  %-10s %s\n", cli_command_last_name(&cli_commands[i]), cli_commands[i].summary);
}

void cli_help_overview(FILE *out) {
    fputs("usage: leat COMMAND [ARGUMENT...]\n\nTrains, evaluates and runs Keras models.\n\ncommands:\n",
          out);
    print_members(out, NULL);
    fputs(
        "\nleat COMMAND --help explains a command; leat help specs explains how to name data.\n"
        "\nResults go to standard output; progress, notes, warnings and errors to standard error.\n"
        "\nexit codes: 0 success, 1 failure, 2 wrong usage, 129, 130 and 143 on SIGHUP, SIGINT and SIGTERM\n",
        out);
}

static void print_option(FILE *out, const cli_use *use) {
    const cli_option *option = &cli_options[use->id];
    char name[64], text[512];
    snprintf(name, sizeof name, "%s%s%s", option->name, option->metavar ? " " : "",
             option->metavar ? option->metavar : "");
    snprintf(text, sizeof text, "%s%s%s%s%s", option->help, use->required ? " (required)" : "",
             option->fallback ? " (default: " : "", option->fallback ? option->fallback : "",
             option->fallback ? ")" : "");
    int columns = fprintf(out, "  %-*s ", name_width, name);
    if (columns > name_width + 3) fprintf(out, "\n%*s", name_width + 3, "");
    wrap(out, text, name_width + 3);
}

void cli_help_command(FILE *out, const cli_command *command) {
    fprintf(out, "usage: leat %s", command->name);
    if (command->operand) fprintf(out, " %s", command->operand);
    for (int i = 0; i < command->use_count; ++i) {
        const cli_option *option = &cli_options[command->uses[i].id];
        if (command->uses[i].required) fprintf(out, " %s %s", option->name, option->metavar);
    }
    fputs(" [OPTION...]\n\n", out);
    wrap(out, command->description, 0);
    if (!command->run) {
        fputs("\ncommands:\n", out);
        print_members(out, command);
    }
    fputs("\noptions:\n", out);
    for (int i = 0; i < command->use_count; ++i) print_option(out, &command->uses[i]);
    fputs("\nexamples:\n", out);
    for (const char *line = command->examples; line;) {
        int length = (int)strcspn(line, "\n");
        fprintf(out, "  %.*s\n", length, line);
        line = line[length] ? line + length + 1 : NULL;
    }
}
