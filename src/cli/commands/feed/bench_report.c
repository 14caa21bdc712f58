/* SPDX-License-Identifier: Apache-2.0 */
/* The output of `leat feed bench`.  Room: cli. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/commands/feed/bench.h"
#include "cli/run/figures.h"
#include "cli/run/json.h"
#include "cli/text/say.h"

/* Returns the time between the arrival of the first batch and the release of the last one; the start is reported
 * separately. */
static double seconds(const cli_bench *bench) {
    return bench->batches > 0 ? (double)(bench->last_ns - bench->first_ns) / 1e9 : 0;
}

/* Returns the time per batch, without the first one, which had arrived when the clock started. */
static double batch_ns(const cli_bench *bench) {
    int64_t batches = bench->batches > 1 ? bench->batches - 1 : 1;
    return 1e9 * seconds(bench) / (double)batches;
}

static double mb_per_second(const cli_bench *bench) {
    double ns = batch_ns(bench);
    return ns > 0 ? (double)bench->stats.bytes / (double)bench->batches / ns * 1e3 : 0;
}

static double median_turnover_ns(const cli_bench *bench) {
    int64_t middle = bench->turnovers / 2;
    return (double)bench->turnover_ns[middle];
}

static double mean_ns(int64_t total_ns, int64_t batches) {
    return batches > 0 ? (double)total_ns / (double)batches : 0;
}

static const char *plural(int64_t count) {
    return count == 1 ? "" : "s";
}

static void print_time(const char *label, double ns) {
    char text[CLI_TIME_BYTES];
    printf("  %s %s\n", label, cli_time_text(text, ns));
}

static void print_spread(const char *label, double mean, const leat_percentiles *spread) {
    char text[5][CLI_TIME_BYTES];
    printf("  %s mean %s, p50 %s, p90 %s, p99 %s, max %s\n", label, cli_time_text(text[0], mean),
           cli_time_text(text[1], (double)spread->p50), cli_time_text(text[2], (double)spread->p90),
           cli_time_text(text[3], (double)spread->p99), cli_time_text(text[4], (double)spread->max));
}

static void print_source(const cli_bench *bench) {
    const leat_feed_options *options = &bench->options;
    const cli_arguments *a = bench->session.arguments;
    char workers[64] = "no workers";
    if (options->workers > 0)
        snprintf(workers, sizeof workers, "%d worker %s", options->workers,
                 options->use_multiprocessing ? options->workers == 1 ? "process" : "processes"
                 : options->workers == 1      ? "thread"
                                              : "threads");
    if (a->operand_count > 0)
        cli_say_to(stdout, "%s", a->operands[0]);
    else
        printf("%" PRId64 " bytes a batch", bench->synthetic.bytes);
    printf(", %s, a queue of %d\n", workers, bench->stats.max_queue_size);
}

static void print_trouble(const leat_feed_stats *stats) {
    if (stats->worker_deaths == 0 && stats->retries == 0 && stats->skips == 0) return;
    printf("  trouble        %" PRId64 " worker%s died (%" PRId64 " of them killed for being late), %" PRId64
           " further attempt%s, %" PRId64 " batch%s skipped\n",
           stats->worker_deaths, plural(stats->worker_deaths), stats->timeouts, stats->retries,
           plural(stats->retries), stats->skips, stats->skips == 1 ? "" : "es");
}

static void print_workers(const cli_bench *bench) {
    if (bench->options.workers == 0) return;
    fputs("  busy workers  ", stdout);
    for (int i = 0; i < bench->stats.workers; ++i)
        printf(" %.0f %%", 100 * leat_feed_worker_busy(bench->session.feed, i));
    putchar('\n');
}

void cli_bench_print(const cli_bench *bench) {
    const leat_feed_stats *stats = &bench->stats;
    char text[CLI_TIME_BYTES], longest[CLI_TIME_BYTES];
    print_source(bench);
    printf("  batches        %" PRId64 " in %" PRId64 " pass%s, %.3f MB\n", bench->batches, bench->passes,
           bench->passes == 1 ? "" : "es", (double)stats->bytes / 1e6);
    if (bench->batches == 0) return;
    printf("  a batch        %s, %.1f MB/s\n", cli_time_text(text, batch_ns(bench)), mb_per_second(bench));
    print_time("first batch   ", (double)(bench->first_ns - bench->opening_ns));
    if (bench->turnovers > 0)
        printf("  between passes %s, at most %s\n", cli_time_text(text, median_turnover_ns(bench)),
               cli_time_text(longest, (double)bench->turnover_ns[bench->turnovers - 1]));
    print_spread("get           ", mean_ns(stats->get_ns, bench->batches), &stats->get);
    print_spread("wait          ", mean_ns(stats->wait_ns, bench->batches), &stats->wait);
    printf("  starved        %" PRId64 " time%s\n", stats->starved, plural(stats->starved));
    print_trouble(stats);
    printf("  ring           %.3f MB\n", (double)stats->ring_bytes / 1e6);
    print_workers(bench);
    if (bench->digest) printf("  sha256         %s\n", bench->sha_text);
    if (bench->consume_us == 0 && !bench->digest)
        printf("A training step that takes longer than %s would not wait for this feed.\n",
               cli_time_text(text, batch_ns(bench)));
}

/* ---- JSON ---- */

static void json_number(const char *name, double value) {
    printf(", \"%s\": ", name);
    cli_json_number(stdout, value);
}

static void json_count(const char *name, int64_t value) {
    printf(", \"%s\": %" PRId64, name, value);
}

static void json_spread(const char *name, double mean, const leat_percentiles *spread) {
    printf(", \"%s\": {\"mean\": ", name);
    cli_json_number(stdout, mean / 1e3);
    json_number("p50", (double)spread->p50 / 1e3);
    json_number("p90", (double)spread->p90 / 1e3);
    json_number("p99", (double)spread->p99 / 1e3);
    json_number("max", (double)spread->max / 1e3);
    putchar('}');
}

static void json_setting(const cli_bench *bench) {
    const cli_arguments *a = bench->session.arguments;
    fputs("{\"source\": ", stdout);
    if (a->operand_count > 0)
        cli_json_string(stdout, a->operands[0]);
    else
        fputs("null", stdout);
    if (a->operand_count == 0) json_count("payload", bench->synthetic.bytes);
    json_count("workers", bench->options.workers);
    printf(", \"use_multiprocessing\": %s", bench->options.use_multiprocessing ? "true" : "false");
    json_count("max_queue_size", bench->stats.max_queue_size);
    json_count("seed", (int64_t)bench->options.seed);
    json_count("rank", bench->options.rank);
    json_count("world", bench->options.world);
}

static void json_times(const cli_bench *bench) {
    json_number("seconds", seconds(bench));
    json_number("us_per_batch", batch_ns(bench) / 1e3);
    json_number("mb_per_second", mb_per_second(bench));
    json_number("first_batch_ms",
                bench->batches > 0 ? (double)(bench->first_ns - bench->opening_ns) / 1e6 : 0);
    if (bench->turnovers == 0) {
        fputs(", \"turnover_us\": null", stdout);
        return;
    }
    printf(", \"turnover_us\": {\"p50\": ");
    cli_json_number(stdout, median_turnover_ns(bench) / 1e3);
    json_number("max", (double)bench->turnover_ns[bench->turnovers - 1] / 1e3);
    putchar('}');
}

void cli_bench_print_json(const cli_bench *bench) {
    const leat_feed_stats *stats = &bench->stats;
    json_setting(bench);
    json_count("batches", bench->batches);
    json_count("passes", bench->passes);
    json_count("bytes", stats->bytes);
    json_times(bench);
    json_spread("get_us", mean_ns(stats->get_ns, bench->batches), &stats->get);
    json_spread("wait_us", mean_ns(stats->wait_ns, bench->batches), &stats->wait);
    json_count("starved", stats->starved);
    json_count("worker_deaths", stats->worker_deaths);
    json_count("timeouts", stats->timeouts);
    json_count("retries", stats->retries);
    json_count("skips", stats->skips);
    json_count("ring_bytes", stats->ring_bytes);
    fputs(", \"busy\": [", stdout);
    for (int i = 0; i < bench->stats.workers; ++i) {
        if (i) fputs(", ", stdout);
        cli_json_number(stdout, leat_feed_worker_busy(bench->session.feed, i));
    }
    putchar(']');
    if (bench->digest) printf(", \"sha256\": \"%s\"", bench->sha_text);
    puts("}");
}
