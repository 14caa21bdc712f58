/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a feed: workers, shuffling, memory, bad batches.  Room: cli. */
#include "cli/options/feed_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/parse.h"
#include "cli/text/say.h"

static int invalid_value(const char *command, const char *option, const char *text, const char *expected) {
    cli_say("leat %s: %s '%s': expected %s\ntry: leat %s --help\n", command, option, text, expected, command);
    return CLI_USAGE;
}

/* Reads the integer >= 1 that *text begins with and moves *text behind it.  Returns 0 if there is none. */
static int64_t read_count(const char **text) {
    char *end = NULL;
    if (**text < '0' || **text > '9') return 0;
    errno = 0;
    long long value = strtoll(*text, &end, 10);
    *text = end;
    return errno == 0 ? value : 0;
}

static int read_shuffle(const char *command, const cli_arguments *arguments, leat_feed_options *out) {
    static const struct {
        const char *name;
        leat_shuffle shuffle;
    } names[] = {{"none", LEAT_SHUFFLE_NONE},
                 {"batches", LEAT_SHUFFLE_BATCHES},
                 {"samples", LEAT_SHUFFLE_SAMPLES},
                 {"blocks", LEAT_SHUFFLE_BLOCKS},
                 {"auto", LEAT_SHUFFLE_AUTO}};
    const char *text = arguments->text[CLI_SHUFFLE], *number = text ? strchr(text, ':') : NULL;
    if (text && arguments->text[CLI_NO_SHUFFLE]) return cli_exclusive(command, "--shuffle", "--no-shuffle");
    out->shuffle = arguments->text[CLI_NO_SHUFFLE] ? LEAT_SHUFFLE_NONE : LEAT_SHUFFLE_AUTO;
    if (!text) return CLI_SUCCESS;
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
        if (strcmp(text, names[i].name) == 0) {
            out->shuffle = names[i].shuffle;
            return CLI_SUCCESS;
        }
    const bool blocks = strncmp(text, "blocks:", strlen("blocks:")) == 0;
    if (blocks || strncmp(text, "window:", strlen("window:")) == 0) {
        ++number;
        out->shuffle = blocks ? LEAT_SHUFFLE_BLOCKS : LEAT_SHUFFLE_WINDOW;
        out->shuffle_window = read_count(&number);
        if (out->shuffle_window > 0 && !*number) return CLI_SUCCESS;
    }
    return invalid_value(command, "--shuffle", text,
                         "none, batches, samples, window:N with N of at least 1, blocks, blocks:N, or auto");
}

static int read_bad_batch(const char *command, const char *text, leat_faults *out) {
    const char *rest = text;
    if (strncmp(rest, "retry:", strlen("retry:")) == 0) {
        rest += strlen("retry:");
        int64_t retries = read_count(&rest);
        bool valid_end = !*rest || strcmp(rest, ",skip") == 0;
        if (retries >= 1 && retries <= INT32_MAX && valid_end) {
            out->retries = (int)retries;
            out->bad_batch = *rest ? LEAT_BAD_BATCH_SKIP : LEAT_BAD_BATCH_FAIL;
            return CLI_SUCCESS;
        }
    } else if (strcmp(text, "fail") == 0 || strcmp(text, "skip") == 0) {
        out->bad_batch = *text == 's' ? LEAT_BAD_BATCH_SKIP : LEAT_BAD_BATCH_FAIL;
        return CLI_SUCCESS;
    }
    return invalid_value(command, "--bad-batch", text,
                         "fail, skip, retry:N, or retry:N,skip, with N of at least 1");
}

static void read_faults(const cli_arguments *arguments, leat_faults *out) {
    out->deadline_ms = cli_number(arguments, CLI_BATCH_TIMEOUT, out->deadline_ms);
    out->max_deaths = (int)cli_number(arguments, CLI_MAX_DEATHS, out->max_deaths);
    out->check_finite = arguments->text[CLI_CHECK_FINITE] != NULL;
}

/* Reads --rank and --world. */
static int read_rank(const char *command, const cli_arguments *arguments, leat_feed_options *out) {
    out->rank = (int)cli_number(arguments, CLI_RANK, out->rank);
    out->world = (int)cli_number(arguments, CLI_WORLD, out->world);
    if (out->rank < out->world) return CLI_SUCCESS;
    cli_say("leat %s: --rank %d: expected a rank below --world, which is %d\ntry: leat %s --help\n", command,
            out->rank, out->world, command);
    return CLI_USAGE;
}

int cli_feed_options(const char *command, const cli_arguments *arguments, leat_feed_options *out) {
    *out = leat_feed_options_default();
    if (arguments->text[CLI_FEED_MEMORY] && arguments->text[CLI_MAX_QUEUE_SIZE])
        return cli_exclusive(command, "--feed-memory", "--max-queue-size");
    out->workers = (int)cli_number(arguments, CLI_WORKERS, out->workers);
    out->use_multiprocessing = arguments->text[CLI_MULTIPROCESSING] != NULL;
    out->max_queue_size = (int)cli_number(arguments, CLI_MAX_QUEUE_SIZE, out->max_queue_size);
    out->memory = (size_t)cli_number(arguments, CLI_FEED_MEMORY, 0);
    out->seed = (uint64_t)cli_number(arguments, CLI_SEED, 0);
    read_faults(arguments, &out->faults);
    int code = read_shuffle(command, arguments, out);
    if (code == CLI_SUCCESS && arguments->text[CLI_BAD_BATCH])
        code = read_bad_batch(command, arguments->text[CLI_BAD_BATCH], &out->faults);
    return code == CLI_SUCCESS ? read_rank(command, arguments, out) : code;
}
