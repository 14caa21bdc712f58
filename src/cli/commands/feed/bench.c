/* SPDX-License-Identifier: Apache-2.0 */
/* `leat feed bench` and `leat feed trace`, which take batches from a feed and discard them.  Room: cli. */
#include "cli/commands/feed/bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/commands/feed/synthetic.h"
#include "cli/options/feed_options.h"
#include "cli/options/parse.h"
#include "cli/run/progress.h"
#include "cli/run/session.h"
#include "cli/text/say.h"

enum { default_batches = 1000, default_passes = 2 };

static int usage(const cli_bench *bench, const char *message) {
    cli_say("leat %s: %s\ntry: leat %s --help\n", bench->session.command, message, bench->session.command);
    return CLI_USAGE;
}

static int check(const cli_bench *bench) {
    const cli_arguments *a = bench->session.arguments;
    if (a->operand_count == 0 && !a->text[CLI_PAYLOAD])
        return usage(bench, "a SPEC or --payload BYTES is missing");
    if (a->operand_count > 0 && a->text[CLI_PAYLOAD])
        return usage(bench, "a SPEC and --payload exclude each other: give one of them");
    if (a->operand_count > 0 && a->text[CLI_WORK_US])
        return cli_needs(bench->session.command, "--work-us", "--payload");
    if (a->text[CLI_PAYLOAD] && a->text[CLI_BATCH_SIZE])
        return usage(bench, "--batch-size needs a SPEC: --payload sets the size of a synthetic batch");
    return CLI_SUCCESS;
}

static int open_data(cli_bench *bench) {
    const cli_arguments *a = bench->session.arguments;
    leat_error err = {0};
    if (a->operand_count > 0) return cli_open_data(&bench->session, &bench->session.data, a->operands[0]);
    bench->synthetic = (cli_synthetic){.bytes = a->number[CLI_PAYLOAD],
                                       .batches = cli_number(a, CLI_BATCHES, default_batches),
                                       .work_us = cli_number(a, CLI_WORK_US, 0),
                                       .random = bench->digest};
    if (cli_synthetic_open(&bench->session.data, &bench->synthetic, &err) == LEAT_OK) return CLI_SUCCESS;
    return cli_fail(&bench->session, &err);
}

/* Sets the number of passes and batches to take. */
static void set_limits(cli_bench *bench) {
    const cli_arguments *a = bench->session.arguments;
    const leat_sequence *data = &bench->session.data;
    bool finite = !data->next && data->length(data->user) != LEAT_LENGTH_INFINITE;
    if (finite) bench->options.passes = cli_number(a, CLI_PASSES, default_passes);
    if (a->operand_count > 0) bench->options.limit = cli_number(a, CLI_BATCHES, finite ? 0 : default_batches);
}

static int open_feed(cli_bench *bench) {
    leat_error err = {0};
    const char *path = bench->session.arguments->text[CLI_TRACE_OUTPUT];
    if (path && leat_trace_open(&bench->trace, path, &err) != LEAT_OK) return cli_fail(&bench->session, &err);
    bench->options.trace = bench->trace;
    bench->opening_ns = cli_now_ns();
    leat_status status = leat_feed_open(&bench->session.feed, &bench->session.data, &bench->options, &err);
    return status == LEAT_OK ? CLI_SUCCESS : cli_fail(&bench->session, &err);
}

static void digest(cli_bench *bench, const leat_batch *batch) {
    for (int i = 0; i < batch->tensor_count; ++i)
        SHA256Update(&bench->sha, batch->tensors[i].data, leat_tensor_bytes(&batch->tensors[i]));
}

/* Records that the first batch of a pass has arrived.  released_ns: when the last batch of the previous pass was
 * released; 0: unknown. */
static void record_pass(cli_bench *bench, int64_t released_ns) {
    int64_t now = cli_now_ns();
    if (bench->passes++ == 0) {
        bench->first_ns = now;
        return;
    }
    if (released_ns > 0 && bench->turnovers < CLI_BENCH_TURNOVERS)
        bench->turnover_ns[bench->turnovers++] = now - released_ns;
}

static void show_progress(const cli_bench *bench, cli_progress *progress) {
    char text[96];
    int64_t total = bench->options.limit;
    if (!progress->shown) return;
    if (total == 0 && bench->options.passes > 0)
        total = bench->options.passes * leat_feed_length(bench->session.feed);
    snprintf(text, sizeof text, "%" PRId64 " batches", bench->batches);
    cli_progress_draw(progress, total > 0 ? (double)bench->batches / (double)total : -1, text);
}

/* Takes all batches.  Reads the clock between passes only, since reading it costs almost as much as taking a small
 * batch. */
static leat_status take_all(cli_bench *bench, cli_progress *progress, leat_error *err) {
    leat_feed *feed = bench->session.feed;
    int64_t pass = -1, released_ns = 0;
    for (;;) {
        const leat_batch *batch = NULL;
        leat_status status = leat_feed_get(feed, &batch, err);
        if (status != LEAT_OK) return status;
        leat_feed_position at = leat_feed_position_get(feed);
        if (at.pass != pass) {
            record_pass(bench, released_ns);
            pass = at.pass;
            released_ns = 0;
        }
        if (bench->digest) digest(bench, batch);
        cli_burn(bench->consume_us);
        leat_feed_release(feed);
        ++bench->batches;
        if (at.ordinal + 1 >= leat_feed_length(feed)) released_ns = cli_now_ns();
        show_progress(bench, progress);
    }
}

static int by_time(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int measure(cli_bench *bench) {
    cli_progress progress;
    leat_error err = {0};
    if (bench->digest) SHA256Init(&bench->sha);
    cli_catch_signals(&bench->session);
    cli_progress_begin(&progress);
    leat_status status = take_all(bench, &progress, &err);
    bench->last_ns = cli_now_ns();
    cli_progress_end(&progress);
    if (status != LEAT_ENOTFOUND && !(status == LEAT_ESTOPPED && cli_signal_code()))
        return cli_fail(&bench->session, &err);
    if (bench->digest) SHA256End(&bench->sha, bench->sha_text);
    bench->stats = leat_feed_stats_get(bench->session.feed);
    qsort(bench->turnover_ns, (size_t)bench->turnovers, sizeof *bench->turnover_ns, by_time);
    return CLI_SUCCESS;
}

static int close_trace(cli_bench *bench, int code) {
    leat_error err = {0};
    const char *path = bench->session.arguments->text[CLI_TRACE_OUTPUT];
    if (!bench->trace) return code;
    bool written = leat_trace_close(&bench->trace, &err) == LEAT_OK;
    if (code != CLI_SUCCESS) return code;
    if (!written) return cli_fail(&bench->session, &err);
    cli_say("saved %s: open it in https://ui.perfetto.dev\n", path);
    return CLI_SUCCESS;
}

static int run(cli_bench *bench, const char *command, const cli_arguments *arguments) {
    bench->session = (cli_session){.command = command, .arguments = arguments};
    bench->digest = arguments->text[CLI_DIGEST] != NULL;
    bench->consume_us = cli_number(arguments, CLI_CONSUME_US, 0);
    int code = check(bench);
    if (code == CLI_SUCCESS) code = cli_feed_options(command, arguments, &bench->options);
    if (code == CLI_SUCCESS) code = open_data(bench);
    if (code == CLI_SUCCESS) {
        set_limits(bench);
        code = open_feed(bench);
    }
    if (code == CLI_SUCCESS) code = measure(bench);
    if (code == CLI_SUCCESS && arguments->text[CLI_JSON])
        cli_bench_print_json(bench);
    else if (code == CLI_SUCCESS)
        cli_bench_print(bench);
    cli_close(&bench->session);
    code = close_trace(bench, code);
    return code == CLI_SUCCESS && cli_signal_code() ? cli_signal_code() : code;
}

static int run_new(const char *command, const cli_arguments *arguments) {
    cli_bench *bench = calloc(1, sizeof *bench);
    if (!bench) {
        cli_say("leat %s: out of memory\n", command);
        return CLI_FAILURE;
    }
    int code = run(bench, command, arguments);
    free(bench);
    return code;
}

int cli_feed_bench(const cli_arguments *arguments) {
    return run_new("feed bench", arguments);
}

int cli_feed_trace(const cli_arguments *arguments) {
    return run_new("feed trace", arguments);
}
