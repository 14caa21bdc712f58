/* SPDX-License-Identifier: Apache-2.0 */
/* Man pages in roff (man(7)), made from the table.  Room: cli. */
#include "cli/help/manual.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "leat/source.h"
#include "leat/version.h"

/* Writes text with roff's special characters escaped.  keep_lines: an empty line does not begin a paragraph. */
static void roff(FILE *out, const char *text, bool keep_lines) {
    bool start = true;
    for (const char *p = text; *p; ++p) {
        if (start && (*p == '.' || *p == '\'')) fputs("\\&", out);
        start = *p == '\n';
        if (*p == '\\')
            fputs("\\e", out);
        else if (*p == '-')
            fputs("\\-", out);
        else if (*p == '\'')
            fputs("\\(aq", out);
        else if (*p == '\n' && !keep_lines && p[1] == '\n') {
            fputs("\n.PP", out);
        } else
            fputc(*p, out);
    }
}

static void roff_head(FILE *out, const char *name, int section, const char *summary) {
    fputs(".TH ", out);
    for (const char *p = name; *p; ++p) fputc(toupper((unsigned char)*p), out);
    fprintf(out, " %d \"\" \"leat %s\" \"leat\"\n.SH NAME\n", section, leat_version());
    roff(out, name, false);
    fputs(" \\- ", out);
    roff(out, summary, false);
    fputc('\n', out);
}

static void roff_option(FILE *out, const cli_use *use) {
    const cli_option *option = &cli_options[use->id];
    fputs(".TP\n.B ", out);
    roff(out, option->name, false);
    if (option->metavar) {
        fputs(" \\fI", out);
        roff(out, option->metavar, false);
        fputs("\\fR", out);
    }
    fputc('\n', out);
    roff(out, option->help, false);
    if (use->required) fputs(" (required)", out);
    if (option->fallback) {
        fputs(" (default: ", out);
        roff(out, option->fallback, false);
        fputc(')', out);
    }
    fputc('\n', out);
}

static void roff_exit_codes(FILE *out) {
    fputs(".SH EXIT STATUS\n0 success, 1 failure, 2 wrong usage, 129, 130 and 143 on SIGHUP, SIGINT and "
          "SIGTERM.\n",
          out);
}

void cli_man_name(char out[CLI_MAN_NAME_BYTES], const cli_command *command) {
    snprintf(out, CLI_MAN_NAME_BYTES, "leat-%s", command->name);
    for (char *p = out; *p; ++p)
        if (*p == ' ') *p = '-';
}

/* Writes the members of a group; if group is NULL, the commands of no group. */
static void roff_members(FILE *out, const cli_command *group) {
    fputs(".SH COMMANDS\n", out);
    for (int i = 0; i < cli_command_count; ++i) {
        char name[CLI_MAN_NAME_BYTES];
        if (!cli_command_is_in(&cli_commands[i], group)) continue;
        cli_man_name(name, &cli_commands[i]);
        fputs(".TP\n.BR ", out);
        roff(out, name, false);
        fputs(" (1)\n", out);
        roff(out, cli_commands[i].summary, false);
        fputc('\n', out);
    }
}

void cli_man_overview(FILE *out) {
    roff_head(out, "leat", 1, "train, evaluate and run Keras models");
    fputs(".SH SYNOPSIS\n.B leat\n.I COMMAND\n[\\fIARGUMENT\\fR...]\n", out);
    roff_members(out, NULL);
    fputs(".SH OUTPUT\nResults go to standard output; progress, notes, warnings and errors to standard "
          "error.\n",
          out);
    roff_exit_codes(out);
    fputs(".SH SEE ALSO\n.BR leat\\-specs (7)\n", out);
}

void cli_man_command(FILE *out, const cli_command *command) {
    char name[CLI_MAN_NAME_BYTES];
    cli_man_name(name, command);
    roff_head(out, name, 1, command->summary);
    fprintf(out, ".SH SYNOPSIS\n.B leat %s\n", command->name);
    if (command->operand) fprintf(out, "\\fI%s\\fR\n", command->operand);
    for (int i = 0; i < command->use_count; ++i) {
        const cli_option *option = &cli_options[command->uses[i].id];
        if (!command->uses[i].required) continue;
        fputs("\\fB", out);
        roff(out, option->name, false);
        fprintf(out, "\\fR \\fI%s\\fR\n", option->metavar);
    }
    fputs("[\\fIOPTION\\fR...]\n.SH DESCRIPTION\n", out);
    roff(out, command->description, false);
    fputc('\n', out);
    if (!command->run) roff_members(out, command);
    fputs(".SH OPTIONS\n", out);
    for (int i = 0; i < command->use_count; ++i) roff_option(out, &command->uses[i]);
    fputs(".SH EXAMPLES\n.nf\n", out);
    roff(out, command->examples, true);
    fputs("\n.fi\n", out);
    roff_exit_codes(out);
    fputs(".SH SEE ALSO\n.BR leat (1),\n.BR leat\\-specs (7)\n", out);
}

void cli_man_specs(FILE *out) {
    roff_head(out, "leat-specs", 7, "how to name data for leat");
    fputs(".SH DESCRIPTION\n.nf\n", out);
    roff(out, leat_source_help(), true);
    fputs(".fi\n.SH SEE ALSO\n.BR leat (1)\n", out);
}
