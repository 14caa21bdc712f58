/* SPDX-License-Identifier: Apache-2.0 */
/* Times the feed on batches that exist already: get points at an array of the payload's size, or copies it (--copy).
 *     bench_feed [--payload BYTES] [--workers N] [--processes | --threads] [--batches N] [--passes N] [--queue N]
 *                [--work-us N] [--hook] [--copy] [--first | --tax US | --kill] [--json]
 * Without --payload and --workers it prints the whole table: 1 KB to 38 MB, 1 and 2 workers, threads and processes.
 *   us_batch: from the first batch of a pass to its last, median of the passes
 *   turnover_us: from the release of a pass's last batch to the first batch of the next pass
 *   first_ms: from just before leat_feed_open to the first batch; with --first the median of --passes feeds
 *   --tax US: the caller computes US per batch, with and without the feed; the difference is the feed's cost
 *   --kill: from the SIGKILL of a worker inside get to the worker's batch, less the work
 * Work and steps are CPU time. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/os/clock.h"
#include "leat/feed.h"

enum { targets = 64, max_passes = 1000, kills = 15 };

static const int64_t warm_up_us = 300000, block_ns = 1000000000;

typedef struct shared {
    _Atomic int64_t victim_pid, victim_index, kill_ns;
} shared;

typedef struct setup {
    int64_t payload, batches, passes, work_us, tax_us, workers, queue;
    bool processes, hook, copy, first, kill, json;
    float *data, *y;
    shared *shared;
} setup;

typedef struct figures {
    double us_batch, first_ms, turnover_us, wait_us, alone_us, step_us, kill_ms, kill_max_ms;
} figures;

/* Computes for so much CPU time; time in which other programs use the core does not count. */
static void compute(int64_t us) {
    struct timespec start = {0}, now = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - start.tv_sec) * 1000000000 + now.tv_nsec - start.tv_nsec < us * 1000);
}

static int64_t length_of(void *user) {
    return ((setup *)user)->batches;
}

static leat_status get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    setup *s = user;
    (void)rng;
    (void)err;
    if (s->kill && index == atomic_load(&s->shared->victim_index))
        atomic_store(&s->shared->victim_pid, getpid());
    if (s->work_us) compute(s->work_us);
    if (s->copy)
        memcpy(batch->tensors[0].data, s->data, (size_t)s->payload);
    else
        batch->tensors[0].data = s->data;
    memcpy(batch->tensors[1].data, s->y, targets * sizeof(float));
    *(float *)batch->tensors[1].data = (float)(index % 1000);
    return LEAT_OK;
}

static leat_status hook(void *user, int64_t pass, leat_error *err) {
    (void)user;
    (void)pass;
    (void)err;
    return LEAT_OK;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int64_t count) {
    if (count == 0) return 0;
    qsort(values, (size_t)count, sizeof *values, by_size);
    return values[count / 2];
}

static void must(leat_status status, const leat_error *err) {
    if (status == LEAT_OK) return;
    fprintf(stderr, "bench_feed: %s\n", err->message);
    exit(1);
}

/* Takes one batch, computes, and releases the batch.  Returns the ns spent in leat_feed_get. */
static int64_t take(const setup *s, leat_feed *feed) {
    const leat_batch *batch = NULL;
    leat_error err = {0};
    int64_t start = leati_now_ns();
    must(leat_feed_get(feed, &batch, &err), &err);
    int64_t waited = leati_now_ns() - start;
    int64_t index = leat_feed_position_get(feed).index;
    if (*(const float *)batch->tensors[1].data != (float)(index % 1000)) {
        fprintf(stderr, "bench_feed: not the batch %lld\n", (long long)index);
        exit(1);
    }
    if (s->tax_us) compute(s->tax_us);
    leat_feed_release(feed);
    return waited;
}

static void time_passes(const setup *s, leat_feed *feed, figures *f) {
    static double pass_us[max_passes], turnover_us[max_passes];
    double *waits = calloc((size_t)(s->passes * s->batches), sizeof *waits);
    if (!waits) exit(1);
    int64_t count = 0;
    for (int64_t pass = 0; pass < s->passes; ++pass) {
        if (pass > 0) turnover_us[pass - 1] = (double)take(s, feed) / 1000;
        int64_t start = leati_now_ns();
        for (int64_t i = 1; i < s->batches; ++i) waits[count++] = (double)take(s, feed) / 1000;
        pass_us[pass] = (double)(leati_now_ns() - start) / 1000 / (double)(s->batches - 1);
    }
    f->us_batch = median(pass_us, s->passes);
    f->turnover_us = median(turnover_us, s->passes - 1);
    f->wait_us = median(waits, count);
    free(waits);
}

/* Returns the us of a step, the mean of s->batches steps or of those within block_ns. */
static double time_steps(const setup *s, leat_feed *feed, double *waited_us) {
    int64_t start = leati_now_ns(), now = start, steps = 0, waited = 0;
    for (; steps < s->batches && now - start < block_ns; ++steps, now = leati_now_ns()) {
        if (feed)
            waited += take(s, feed);
        else
            compute(s->tax_us);
    }
    *waited_us = (double)waited / 1000 / (double)steps;
    return (double)(now - start) / 1000 / (double)steps;
}

/* Times the same steps without a feed and with it, in turns, so that both suffer alike from other programs. */
static void time_tax(const setup *s, leat_feed *feed, figures *f) {
    static double alone[max_passes], stretch[max_passes], waits[max_passes];
    compute(warm_up_us);
    for (int64_t pass = 0; pass < s->passes; ++pass) {
        alone[pass] = time_steps(s, NULL, &waits[pass]);
        stretch[pass] = time_steps(s, feed, &waits[pass]) - alone[pass];
    }
    f->alone_us = median(alone, s->passes);
    f->step_us = f->alone_us + median(stretch, s->passes);
    f->wait_us = median(waits, s->passes);
}

/* Kills the worker while it makes a batch, and returns the ms until that batch is delivered. */
static double time_kill(const setup *s, leat_feed *feed, int64_t index) {
    atomic_store(&s->shared->victim_pid, 0);
    atomic_store(&s->shared->victim_index, index);
    while (leat_feed_position_get(feed).index != index - 1) take(s, feed);
    while (atomic_load(&s->shared->victim_pid) == 0) usleep(50);
    usleep((useconds_t)s->work_us / 2);
    int64_t start = leati_now_ns();
    kill((pid_t)atomic_load(&s->shared->victim_pid), SIGKILL);
    take(s, feed);
    atomic_store(&s->shared->victim_index, -1);
    return (double)(leati_now_ns() - start) / 1e6 - (double)s->work_us / 1e3;
}

static void time_kills(const setup *s, leat_feed *feed, figures *f) {
    double times[kills];
    for (int i = 0; i < kills; ++i) times[i] = time_kill(s, feed, 1 + (i * 7 + 3) % (s->batches - 1));
    f->kill_ms = median(times, kills);
    f->kill_max_ms = times[kills - 1];
}

static leat_sequence sequence_of(setup *s) {
    leat_sequence sequence = leat_sequence_default();
    leat_error err = {0};
    sequence.user = s;
    sequence.length = length_of;
    sequence.get = get;
    sequence.on_epoch_end = s->hook ? hook : NULL;
    sequence.state = s;
    sequence.state_bytes = 1;
    sequence.spec.batch_size = 1;
    must(leat_batch_spec_add(&sequence.spec, LEAT_PART_INPUT, "x", LEAT_F32, 1, &(int64_t){s->payload / 4},
                             &err),
         &err);
    must(leat_batch_spec_add(&sequence.spec, LEAT_PART_TARGET, "y", LEAT_F32, 1, &(int64_t){targets}, &err),
         &err);
    return sequence;
}

/* Opens a feed and takes its first batch.  Returns the ms that this took. */
static double open_feed(const setup *s, const leat_sequence *sequence, leat_feed **feed) {
    leat_feed_options options = leat_feed_options_default();
    options.workers = (int)s->workers;
    options.use_multiprocessing = s->processes;
    options.max_queue_size = s->kill ? 1 : (int)s->queue;
    leat_error err = {0};
    int64_t start = leati_now_ns();
    must(leat_feed_open(feed, sequence, &options, &err), &err);
    setup no_step = *s;
    no_step.tax_us = 0;
    take(&no_step, *feed);
    return (double)(leati_now_ns() - start) / 1e6;
}

static figures measure(setup *s) {
    leat_sequence sequence = sequence_of(s);
    static double first_ms[max_passes];
    figures f = {0};
    leat_feed *feed = NULL;
    for (int64_t i = 0; i < (s->first ? s->passes : 1); ++i) {
        leat_feed_close(&feed);
        first_ms[i] = open_feed(s, &sequence, &feed);
    }
    f.first_ms = median(first_ms, s->first ? s->passes : 1);
    if (s->kill)
        time_kills(s, feed, &f);
    else if (s->tax_us)
        time_tax(s, feed, &f);
    else if (!s->first)
        time_passes(s, feed, &f);
    leat_feed_close(&feed);
    return f;
}

static void print_line(const setup *s, const figures *f) {
    const char *kind = s->processes ? "processes" : "threads";
    if (s->json) {
        printf(
            "{\"peer\": \"leat\", \"payload\": %lld, \"workers\": %d, \"kind\": \"%s\", \"us_batch\": %.5g, "
            "\"first_ms\": %.4g, \"turnover_us\": %.4g, \"wait_us\": %.4g, \"alone_us\": %.7g, \"step_us\": "
            "%.7g, \"kill_ms\": %.4g, \"kill_max_ms\": %.4g}\n",
            (long long)s->payload, (int)s->workers, kind, f->us_batch, f->first_ms, f->turnover_us,
            f->wait_us, f->alone_us, f->step_us, f->kill_ms, f->kill_max_ms);
        return;
    }
    printf("%10lld  %-9s  %7d  %10.3f  %9.1f  %9.3f  %11.2f  %8.2f", (long long)s->payload, kind,
           (int)s->workers, f->us_batch, f->us_batch > 0 ? (double)s->payload / f->us_batch : 0, f->first_ms,
           f->turnover_us, f->wait_us);
    if (s->kill) printf("  killed: %.2f ms, longest %.2f", f->kill_ms, f->kill_max_ms);
    if (s->tax_us) printf("  step: %.3f us, alone %.3f", f->step_us, f->alone_us);
    printf("\n");
    fflush(stdout);
}

static void run(setup s) {
    if (s.batches < 2)
        s.batches = s.payload < 100000 ? 20000 : s.payload < 1000000 ? 2000 : s.payload < 10000000 ? 400 : 50;
    if (s.passes == 0) s.passes = 7;
    s.data = malloc((size_t)s.payload);
    s.y = calloc(targets, sizeof *s.y);
    s.shared = mmap(NULL, sizeof *s.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!s.data || !s.y || s.shared == MAP_FAILED) exit(1);
    memset(s.data, 1, (size_t)s.payload);
    atomic_store(&s.shared->victim_index, -1);
    figures f = measure(&s);
    print_line(&s, &f);
    munmap(s.shared, sizeof *s.shared);
    free(s.data);
    free(s.y);
}

static void run_table(setup s) {
    static const int64_t payloads[] = {1024, 614400, 4800000, 38535168};
    for (size_t p = 0; p < sizeof payloads / sizeof *payloads; ++p)
        for (int workers = 1; workers <= 2; ++workers)
            for (int processes = 0; processes < 2; ++processes) {
                s.payload = payloads[p];
                s.workers = workers;
                s.processes = processes;
                run(s);
            }
}

/* Returns an integer >= 0, or -1. */
static int64_t number_of(const char *text) {
    char *end = NULL;
    long long number = strtoll(text, &end, 10);
    return end == text || *end || number < 0 ? -1 : number;
}

static bool read_option(setup *s, const char *name, const char *value) {
    struct {
        const char *name;
        int64_t *number;
    } numbers[] = {{"--payload", &s->payload}, {"--batches", &s->batches}, {"--passes", &s->passes},
                   {"--work-us", &s->work_us}, {"--tax", &s->tax_us},      {"--workers", &s->workers},
                   {"--queue", &s->queue}};
    for (size_t i = 0; value && i < sizeof numbers / sizeof *numbers; ++i)
        if (strcmp(name, numbers[i].name) == 0) {
            *numbers[i].number = number_of(value);
            return *numbers[i].number >= 0;
        }
    return false;
}

static bool read_flag(setup *s, const char *name) {
    if (strcmp(name, "--processes") == 0)
        s->processes = true;
    else if (strcmp(name, "--threads") == 0)
        s->processes = false;
    else if (strcmp(name, "--hook") == 0)
        s->hook = true;
    else if (strcmp(name, "--copy") == 0)
        s->copy = true;
    else if (strcmp(name, "--first") == 0)
        s->first = true;
    else if (strcmp(name, "--kill") == 0)
        s->kill = s->processes = true;
    else if (strcmp(name, "--json") == 0)
        s->json = true;
    else
        return false;
    return true;
}

int main(int count, char **words) {
    setup s = {.workers = -1, .queue = 10};
    for (int i = 1; i < count; ++i) {
        if (read_flag(&s, words[i])) continue;
        if (i + 1 < count && read_option(&s, words[i], words[i + 1]))
            ++i;
        else {
            fprintf(stderr,
                    "bench_feed: unknown option '%s', or not a number after it; the options are listed at "
                    "the top of bench/feed.c\n",
                    words[i]);
            return 2;
        }
    }
    if (s.passes > max_passes) s.passes = max_passes;
    if (!s.json)
        printf("%10s  %-9s  %7s  %10s  %9s  %9s  %11s  %8s\n", "payload", "kind", "workers", "us/batch",
               "MB/s", "first ms", "turnover us", "wait us");
    if (s.payload == 0 && s.workers < 0)
        run_table(s);
    else {
        if (s.payload < 4) s.payload = 1024;
        if (s.workers < 0) s.workers = 2;
        run(s);
    }
    return 0;
}
