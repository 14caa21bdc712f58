/* SPDX-License-Identifier: Apache-2.0 */
/* The command line's parser.  Layer: cli. */
#include "cli/parse.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Levenshtein's distance of words shorter than 32 letters. */
static int distance(const char *a, const char *b) {
    enum { most = 32 };
    int row[most], length = (int)strlen(b);
    if (length >= most || strlen(a) >= most) return most;
    for (int j = 0; j <= length; ++j) row[j] = j;
    for (int i = 0; a[i]; ++i) {
        int diagonal = row[0];
        row[0] = i + 1;
        for (int j = 0; j < length; ++j) {
            int cost = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            if (row[j] + 1 < cost) cost = row[j] + 1;
            if (diagonal + 1 < cost) cost = diagonal + 1;
            row[j + 1] = cost;
        }
    }
    return row[length];
}

const char *cli_nearest(const char *word, const char *const *names, int count) {
    int best = (int)strlen(word) / 2 + 1;
    const char *nearest = NULL;
    for (int i = 0; i < count; ++i) {
        int d = distance(word, names[i]);
        if (d >= best) continue;
        best = d;
        nearest = names[i];
    }
    return nearest;
}

const char *cli_nearest_command(const char *word) {
    const char *names[16];
    int count = 0;
    for (; count < cli_command_count && count < 16; ++count) names[count] = cli_commands[count].name;
    return cli_nearest(word, names, count);
}

static int wrong(const cli_command *command) {
    fprintf(stderr, "try: leat %s --help\n", command->name);
    return CLI_USAGE;
}

static int unknown_option(const cli_command *command, const char *word) {
    const char *names[CLI_OPTION_COUNT];
    for (int i = 0; i < command->use_count; ++i) names[i] = cli_options[command->uses[i].id].name;
    const char *near = cli_nearest(word, names, command->use_count);
    fprintf(stderr, "leat %s: unknown option '%s'", command->name, word);
    if (near) fprintf(stderr, ": did you mean '%s'?", near);
    fputc('\n', stderr);
    return wrong(command);
}

static int read_number(const cli_command *command, cli_option_id id, cli_arguments *out) {
    const cli_option *option = &cli_options[id];
    const char *text = out->text[id];
    char *end = NULL;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno == 0 && *text && !*end && value >= option->minimum && value <= option->maximum) {
        out->number[id] = value;
        return CLI_SUCCESS;
    }
    fprintf(stderr, "leat %s: %s '%s': expected a whole number ", command->name, option->name, text);
    if (option->maximum < INT32_MAX)
        fprintf(stderr, "from %" PRId64 " to %" PRId64 "\n", option->minimum, option->maximum);
    else
        fprintf(stderr, "of at least %" PRId64 "\n", option->minimum);
    return wrong(command);
}

/* The command's option whose name is the first `length` letters of word; -1 where it has none. */
static int find_option(const cli_command *command, const char *word, size_t length) {
    for (int i = 0; i < command->use_count; ++i) {
        const char *name = cli_options[command->uses[i].id].name;
        if (strlen(name) == length && memcmp(name, word, length) == 0) return (int)command->uses[i].id;
    }
    return -1;
}

/* Reads the option at argv[*at] and its value, and moves *at to the last word read. */
static int read_option(const cli_command *command, int argc, char **argv, int *at, cli_arguments *out) {
    char *word = argv[*at], *equals = strchr(word, '=');
    int id = strcmp(word, "-h") == 0
                 ? CLI_HELP
                 : find_option(command, word, equals ? (size_t)(equals - word) : strlen(word));
    if (id < 0) {
        if (equals) *equals = '\0';
        return unknown_option(command, word);
    }
    const cli_option *option = &cli_options[id];
    if (out->text[id] && option->value != CLI_FLAG) {
        fprintf(stderr, "leat %s: %s is given twice\n", command->name, option->name);
        return wrong(command);
    }
    if (option->value == CLI_FLAG && equals) {
        fprintf(stderr, "leat %s: %s takes no value\n", command->name, option->name);
        return wrong(command);
    }
    if (option->value == CLI_FLAG)
        out->text[id] = "";
    else if (equals)
        out->text[id] = equals + 1;
    else if (*at + 1 < argc)
        out->text[id] = argv[++*at];
    else {
        fprintf(stderr, "leat %s: %s needs a value: %s %s\n", command->name, option->name, option->name,
                option->metavar);
        return wrong(command);
    }
    return option->value == CLI_NUMBER ? read_number(command, (cli_option_id)id, out) : CLI_SUCCESS;
}

static int read_operand(const cli_command *command, const char *word, cli_arguments *out) {
    if (!command->operand || out->operand_count == 1) {
        fprintf(stderr, "leat %s: unexpected argument '%s'\n", command->name, word);
        return wrong(command);
    }
    out->operands[out->operand_count++] = word;
    return CLI_SUCCESS;
}

static int check_required(const cli_command *command, const cli_arguments *arguments) {
    if (command->operand && command->operand[0] != '[' && arguments->operand_count == 0) {
        fprintf(stderr, "leat %s: %s is missing\n", command->name, command->operand);
        return wrong(command);
    }
    for (int i = 0; i < command->use_count; ++i) {
        const cli_option *option = &cli_options[command->uses[i].id];
        if (!command->uses[i].required || arguments->text[command->uses[i].id]) continue;
        fprintf(stderr, "leat %s: %s %s is missing\n", command->name, option->name, option->metavar);
        return wrong(command);
    }
    return CLI_SUCCESS;
}

int cli_parse(const cli_command *command, int argc, char **argv, cli_arguments *out) {
    bool options = true;
    *out = (cli_arguments){0};
    for (int at = 0; at < argc; ++at) {
        int code = CLI_SUCCESS;
        if (options && strcmp(argv[at], "--") == 0)
            options = false;
        else if (options && argv[at][0] == '-' && argv[at][1])
            code = read_option(command, argc, argv, &at, out);
        else
            code = read_operand(command, argv[at], out);
        if (code != CLI_SUCCESS) return code;
    }
    return out->text[CLI_HELP] ? CLI_SUCCESS : check_required(command, out);
}
