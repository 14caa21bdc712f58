/* SPDX-License-Identifier: Apache-2.0 */
/* The command line's parser.  Room: cli. */
#include "cli/options/parse.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/suggest.h"
#include "cli/text/say.h"

static int usage_hint(const cli_command *command) {
    cli_say("try: leat %s --help\n", command->name);
    return CLI_USAGE;
}

/* Old or similar names of options, which users of Keras may write, and hints. */
static const char *const old_names[][2] = {
    {"--nb-worker", "use --workers"},
    {"--pickle-safe", "use --use-multiprocessing"},
    {"--max-q-size", "use --max-queue-size"},
    {"--nb-epoch", "use --epochs"},
    {"--samples-per-epoch", "use --steps-per-epoch, which counts batches"},
    {"--wait-time", "not needed, since leat does not poll"},
    {"--random-seed", "use --seed"},
    {"--learning-rate", "use --optimizer 'SGD(learning_rate=0.1)'"},
    {"--lr", "use --optimizer 'SGD(learning_rate=0.1)'"},
};

static const char *old_name_hint(const char *word) {
    char plain[32];
    size_t length = strlen(word);
    if (length >= sizeof plain) return NULL;
    for (size_t i = 0; i <= length; ++i) plain[i] = word[i] == '_' ? '-' : word[i];
    for (size_t i = 0; i < sizeof old_names / sizeof *old_names; ++i)
        if (strcmp(plain, old_names[i][0]) == 0) return old_names[i][1];
    return NULL;
}

static int unknown_option(const cli_command *command, const char *word) {
    const char *names[CLI_OPTION_COUNT], *hint = old_name_hint(word);
    const size_t dashes = strlen("--"); /* the common prefix of all options */
    for (int i = 0; i < command->use_count; ++i) names[i] = cli_options[command->uses[i].id].name + dashes;
    bool is_long = !hint && strncmp(word, "--", dashes) == 0;
    const char *suggestion = is_long ? cli_nearest(word + dashes, names, command->use_count) : NULL;
    cli_say("leat %s: unknown option '%s'", command->name, word);
    if (hint) cli_say(": %s", hint);
    if (suggestion) cli_say(": did you mean '--%s'?", suggestion);
    fputc('\n', stderr);
    return usage_hint(command);
}

/* read_number, read_size and read_seconds return true if the text has the right form.  *beyond: the value does not
 * fit in 64 bits, and *out is the nearest one that does. */
static bool read_number(const char *text, int64_t *out, bool *overflow) {
    char *end = NULL;
    errno = 0;
    *out = strtoll(text, &end, 10);
    *overflow = errno == ERANGE;
    return end != text && !*end;
}

/* Reads a size such as 65536 or 512M: digits, and optionally a letter for 1024, 1024^2 or 1024^3. */
static bool read_size(const char *text, int64_t *out, bool *overflow) {
    static const char units[] = "KMGkmg";
    size_t digits = strspn(text, "0123456789");
    const char *unit = text[digits] ? strchr(units, text[digits]) : NULL;
    int shift = unit ? (int)((unit - units) % 3 + 1) * 10 : 0;
    if (digits == 0 || (unit ? text[digits + 1] : text[digits])) return false;
    errno = 0;
    int64_t value = strtoll(text, NULL, 10);
    *overflow = errno == ERANGE || value > INT64_MAX >> shift;
    *out = *overflow ? INT64_MAX : value << shift;
    return true;
}

/* Reads seconds, such as 30 or 0.5; *out is in milliseconds, rounded up. */
static bool read_seconds(const char *text, int64_t *out, bool *overflow) {
    size_t length = strlen(text);
    char *end = NULL;
    double ms = 1000 * strtod(text, &end);
    if (length == 0 || strspn(text, "0123456789.") != length || *end) return false;
    *overflow = ms >= 9.2e18; /* INT64_MAX is about 9.22e18 */
    *out = *overflow ? INT64_MAX : (int64_t)ms;
    if (!*overflow && (double)*out < ms) ++*out;
    return true;
}

static void print_expected(const cli_option *option, bool too_large) {
    if (option->value == CLI_SIZE && too_large)
        cli_say("expected at most %" PRId64 "G bytes\n", option->maximum >> 30);
    else if (option->value == CLI_DURATION && too_large)
        cli_say("expected at most %g seconds\n", (double)option->maximum / 1e3);
    else if (option->value == CLI_SIZE)
        fputs("expected a number of bytes, such as 65536, 64K, 512M or 2G\n", stderr);
    else if (option->value == CLI_DURATION)
        cli_say("expected seconds, such as 30 or 0.5, of at least %g\n", (double)option->minimum / 1e3);
    else if (option->maximum < INT32_MAX - 1 || too_large)
        cli_say("expected an integer from %" PRId64 " to %" PRId64 "\n", option->minimum, option->maximum);
    else
        cli_say("expected an integer of at least %" PRId64 "\n", option->minimum);
}

/* Reads the number of an option from its text, and checks the range. */
static int read_value(const cli_command *command, cli_option_id id, cli_arguments *out) {
    const cli_option *option = &cli_options[id];
    int64_t value = 0;
    bool overflow = false;
    bool well_formed = option->value == CLI_SIZE       ? read_size(out->text[id], &value, &overflow)
                       : option->value == CLI_DURATION ? read_seconds(out->text[id], &value, &overflow)
                                                       : read_number(out->text[id], &value, &overflow);
    if (well_formed && !overflow && value >= option->minimum && value <= option->maximum) {
        out->number[id] = value;
        return CLI_SUCCESS;
    }
    cli_say("leat %s: %s '%s': ", command->name, option->name, out->text[id]);
    print_expected(option, well_formed && (value > option->maximum || (overflow && value > 0)));
    return usage_hint(command);
}

/* Returns the id of the command's option whose name is the first `length` bytes of word; -1: none. */
static int find_option(const cli_command *command, const char *word, size_t length) {
    for (int i = 0; i < command->use_count; ++i) {
        const char *name = cli_options[command->uses[i].id].name;
        if (strlen(name) == length && memcmp(name, word, length) == 0) return (int)command->uses[i].id;
    }
    return -1;
}

static int missing_value(const cli_command *command, const cli_option *option) {
    cli_say("leat %s: %s needs a value: %s %s\n", command->name, option->name, option->name, option->metavar);
    return usage_hint(command);
}

/* Reads the option at argv[*at] and its value; *at becomes the index of the last word read. */
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
        cli_say("leat %s: %s is given twice\n", command->name, option->name);
        return usage_hint(command);
    }
    if (option->value == CLI_FLAG && equals) {
        cli_say("leat %s: %s takes no value\n", command->name, option->name);
        return usage_hint(command);
    }
    if (option->value == CLI_FLAG)
        out->text[id] = "";
    else if (equals)
        out->text[id] = equals + 1;
    else if (*at + 1 < argc)
        out->text[id] = argv[++*at];
    else
        return missing_value(command, option);
    if (option->value != CLI_FLAG && !*out->text[id]) return missing_value(command, option);
    bool numeric = option->value == CLI_NUMBER || option->value == CLI_SIZE || option->value == CLI_DURATION;
    return numeric ? read_value(command, (cli_option_id)id, out) : CLI_SUCCESS;
}

static int read_operand(const cli_command *command, const char *word, cli_arguments *out) {
    bool two = command->operand && (strstr(command->operand, "...") || strchr(command->operand, ' '));
    int max_operands = !command->operand ? 0 : two ? 2 : 1;
    if (out->operand_count == max_operands) {
        cli_option_id data = find_option(command, "--train", 7) >= 0 ? CLI_TRAIN : CLI_DATA;
        cli_say("leat %s: unexpected argument '%s'", command->name, word);
        if (strchr(word, ':') &&
            find_option(command, cli_options[data].name, strlen(cli_options[data].name)) >= 0)
            cli_say(": give data with %s %s", cli_options[data].name, cli_options[data].metavar);
        fputc('\n', stderr);
        return usage_hint(command);
    }
    if (!*word) {
        cli_say("leat %s: %s is empty\n", command->name, command->operand);
        return usage_hint(command);
    }
    out->operands[out->operand_count++] = word;
    return CLI_SUCCESS;
}

static int check_required(const cli_command *command, const cli_arguments *arguments) {
    int fewest = !command->operand || command->operand[0] == '[' ? 0 : strchr(command->operand, ' ') ? 2 : 1;
    if (arguments->operand_count < fewest) {
        cli_say("leat %s: %s is missing\n", command->name, command->operand);
        return usage_hint(command);
    }
    for (int i = 0; i < command->use_count; ++i) {
        const cli_option *option = &cli_options[command->uses[i].id];
        if (!command->uses[i].required || arguments->text[command->uses[i].id]) continue;
        cli_say("leat %s: %s %s is missing\n", command->name, option->name, option->metavar);
        return usage_hint(command);
    }
    return CLI_SUCCESS;
}

int cli_parse_recorded(const cli_command *command, int argc, char **argv, cli_arguments *out) {
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
    return CLI_SUCCESS;
}

int cli_parse(const cli_command *command, int argc, char **argv, cli_arguments *out) {
    int code = cli_parse_recorded(command, argc, argv, out);
    if (code != CLI_SUCCESS) return code;
    bool complete = out->text[CLI_HELP] || out->text[CLI_RESUME]; /* the run's record has the rest */
    return complete ? CLI_SUCCESS : check_required(command, out);
}

int cli_needs(const char *command, const char *one, const char *other) {
    cli_say("leat %s: %s needs %s\ntry: leat %s --help\n", command, one, other, command);
    return CLI_USAGE;
}

int cli_exclusive(const char *command, const char *one, const char *other) {
    cli_say("leat %s: %s and %s exclude each other: give one of them\ntry: leat %s --help\n", command, one,
            other, command);
    return CLI_USAGE;
}

int64_t cli_number(const cli_arguments *arguments, cli_option_id id, int64_t otherwise) {
    return arguments->text[id] ? arguments->number[id] : otherwise;
}
