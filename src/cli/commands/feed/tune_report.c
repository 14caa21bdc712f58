/* SPDX-License-Identifier: Apache-2.0 */
/* The output of `leat feed tune`: the table, the best setting, and an explanation.  Room: cli. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands/feed/tune.h"
#include "cli/run/figures.h"
#include "cli/run/json.h"

/* If training waits for data for at least this share of the time, the explanation says so. */
static const double notable_wait = 0.05;

/* ---- The best setting ---- */

static bool is_smaller(const cli_setting *a, const cli_setting *b) {
    if (a->workers != b->workers) return a->workers < b->workers;
    if (a->processes != b->processes) return b->processes;
    if (a->threads != b->threads) return a->threads < b->threads;
    return a->queue < b->queue;
}

int cli_tune_best(const cli_tuning *tuning) {
    double fastest = 0;
    int best = -1;
    for (int i = 0; i < tuning->count; ++i)
        if (tuning->rows[i].rate > fastest) fastest = tuning->rows[i].rate;
    for (int i = 0; i < tuning->count; ++i) {
        const cli_trial *row = &tuning->rows[i];
        if (row->rate < fastest * (1 - CLI_TUNE_TIE)) continue;
        if (best < 0 || is_smaller(&row->setting, &tuning->rows[best].setting)) best = i;
    }
    return best;
}

/* ---- The explanation ---- */

typedef struct text_buffer {
    char *text;
    size_t bytes, used;
} text_buffer;

static void add_text(text_buffer *to, const char *format, ...) LEAT_PRINTF(2, 3);
static void add_text(text_buffer *to, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(to->text + to->used, to->bytes - to->used, format, arguments);
    va_end(arguments);
    if (length > 0) to->used += (size_t)length;
    if (to->used >= to->bytes) to->used = to->bytes - 1;
}

/* Returns the row with the next larger number of workers and otherwise the same setting, except for the queue; NULL:
 * none. */
static const cli_trial *with_more_workers(const cli_tuning *tuning, const cli_trial *row) {
    const cli_setting *s = &row->setting;
    const cli_trial *more = NULL;
    for (int i = 0; i < tuning->count; ++i) {
        const cli_setting *other = &tuning->rows[i].setting;
        bool comparable =
            other->threads == s->threads && (s->workers == 0 || other->processes == s->processes);
        if (!comparable || other->workers <= s->workers) continue;
        if (!more || other->workers < more->setting.workers) more = &tuning->rows[i];
    }
    return more;
}

/* Returns the row with the other kind of workers and otherwise the same setting; NULL: none. */
static const cli_trial *with_other_kind(const cli_tuning *tuning, const cli_trial *row) {
    const cli_setting *s = &row->setting;
    for (int i = 0; i < tuning->count && s->workers > 0; ++i) {
        const cli_setting *other = &tuning->rows[i].setting;
        if (other->workers == s->workers && other->threads == s->threads && other->queue == s->queue &&
            other->processes != s->processes)
            return &tuning->rows[i];
    }
    return NULL;
}

/* Returns the row with the most compute threads and otherwise the same setting, except for the queue; may be `row`
 * itself. */
static const cli_trial *with_all_threads(const cli_tuning *tuning, const cli_trial *row) {
    const cli_setting *s = &row->setting;
    const cli_trial *max_threads = row;
    for (int i = 0; i < tuning->count; ++i) {
        const cli_setting *other = &tuning->rows[i].setting;
        if (other->workers == s->workers && other->processes == s->processes &&
            other->threads > max_threads->setting.threads)
            max_threads = &tuning->rows[i];
    }
    return max_threads;
}

static void explain_compute(const cli_trial *best, text_buffer *to) {
    if (best->setting.workers == 0)
        add_text(
            to,
            "Computing is the limit: making a batch takes so little time (%.0f %% of the total) that workers "
            "do not help.",
            100 * best->wait);
    else
        add_text(
            to,
            "Computing is the limit: training waits for data only %.0f %% of the time, so more workers do "
            "not help.",
            100 * best->wait);
}

static void explain_waiting(const cli_tuning *tuning, const cli_trial *best, text_buffer *to) {
    char get_text[CLI_TIME_BYTES], more_get_text[CLI_TIME_BYTES], step[CLI_TIME_BYTES];
    const cli_trial *more = with_more_workers(tuning, best);
    const cli_setting *s = &best->setting;
    cli_time_text(get_text, best->get_ns);
    cli_time_text(step, best->step_ns);
    add_text(to, "Training waits for data %.0f %% of the time: a batch takes %s to make, a step %s.",
             100 * best->wait, get_text, step);
    if (!more) {
        add_text(to, " No more than %d worker%s tried.", s->workers, s->workers == 1 ? " was" : "s were");
        return;
    }
    cli_time_text(more_get_text, more->get_ns);
    if (more->setting.workers + s->threads > tuning->cores)
        add_text(
            to,
            " More workers do not help because all cores are busy: with %d workers and %d compute thread%s "
            "on %d core%s a batch takes %s to make, and a step %s longer.  Cheaper batches or more cores "
            "would help.",
            more->setting.workers, s->threads, s->threads == 1 ? "" : "s", tuning->cores,
            tuning->cores == 1 ? "" : "s", more_get_text,
            more->step_ns > best->step_ns * (1 + CLI_TUNE_TIE) ? "takes" : "does not take");
    else if (more->get_ns > 1.3 * best->get_ns)
        add_text(
            to,
            " More workers do not help although cores are free: with %d workers a batch takes %s to make "
            "instead of %s, so the workers slow each other down: through memory bandwidth, the disk, or a "
            "lock in get.",
            more->setting.workers, more_get_text, get_text);
    else
        add_text(to, " More workers do not help although cores are free and a batch takes no longer to make: "
                     "something that the workers share is the limit.");
}

/* Mentions the other kind of workers if training waits longer with it. */
static void explain_kind(const cli_tuning *tuning, const cli_trial *best, text_buffer *to) {
    const cli_trial *other = with_other_kind(tuning, best);
    if (!other || other->rate > best->rate * (1 - CLI_TUNE_TIE) || other->wait < best->wait + notable_wait)
        return;
    const char *why =
        best->setting.processes ? "get seems to hold a lock" : "threads deliver batches without a copy";
    add_text(to, "  With %s training waits %.0f %%: %s.", best->setting.processes ? "threads" : "processes",
             100 * other->wait, why);
}

static void explain_threads(const cli_tuning *tuning, const cli_trial *best, text_buffer *to) {
    char step_text[CLI_TIME_BYTES], all_step_text[CLI_TIME_BYTES];
    const cli_trial *all = with_all_threads(tuning, best);
    int threads = best->setting.threads;
    if (all == best) return;
    cli_time_text(step_text, best->step_ns);
    cli_time_text(all_step_text, all->step_ns);
    add_text(to, "  With %d compute thread%s a step takes %s, with %d %s", threads, threads == 1 ? "" : "s",
             step_text, all->setting.threads, all_step_text);
    if (best->step_ns < all->step_ns * (1 - CLI_TUNE_TIE))
        add_text(to, ": the step is too small to be shared, or other programs use the cores.");
    else if (best->rate > all->rate * (1 + CLI_TUNE_TIE))
        add_text(to, ", but with fewer threads the workers have cores of their own.");
    else
        add_text(to, ": more threads do not help.");
}

void cli_tune_explain(const cli_tuning *tuning, int best, char *out, size_t bytes) {
    text_buffer to = {.text = out, .bytes = bytes};
    const cli_trial *row = &tuning->rows[best];
    if (row->wait < notable_wait)
        explain_compute(row, &to);
    else
        explain_waiting(tuning, row, &to);
    explain_kind(tuning, row, &to);
    explain_threads(tuning, row, &to);
}

/* ---- The output ---- */

void cli_tune_options_text(const cli_setting *s, char *out, size_t bytes) {
    snprintf(out, bytes, "--workers %d%s --threads %d --max-queue-size %d", s->workers,
             s->processes ? " --use-multiprocessing" : "", s->threads, s->queue);
}

static const char *kind_text(const cli_setting *s) {
    if (s->workers == 0) return "-";
    return s->processes ? "processes" : "threads";
}

static void print_row(const cli_trial *row, bool best) {
    const cli_setting *s = &row->setting;
    printf("%7d  %-9s  %7d  %5d  %10.1f  %5.1f %%  %10.3f  %10.3f%s\n", s->workers, kind_text(s), s->threads,
           s->queue, row->rate, 100 * row->wait, row->get_ns / 1e6, row->step_ns / 1e6,
           best ? "  <- best" : "");
}

void cli_tune_print(const cli_tuning *tuning) {
    char text[1024];
    int best = cli_tune_best(tuning);
    fputs("workers  kind       threads  queue     steps/s     wait      get ms     step ms\n", stdout);
    for (int i = 0; i < tuning->count; ++i) print_row(&tuning->rows[i], i == best);
    cli_tune_explain(tuning, best, text, sizeof text);
    printf("%s\n", text);
    cli_tune_options_text(&tuning->rows[best].setting, text, sizeof text);
    printf("for leat fit: %s\n", text);
}

static void json_number(const char *name, double value) {
    printf(", \"%s\": ", name);
    cli_json_number(stdout, value);
}

static void json_row(const cli_trial *row) {
    const cli_setting *s = &row->setting;
    printf("{\"workers\": %d, \"use_multiprocessing\": %s, \"threads\": %d, \"max_queue_size\": %d, "
           "\"steps\": %" PRId64,
           s->workers, s->processes ? "true" : "false", s->threads, s->queue, row->steps);
    json_number("steps_per_second", row->rate);
    json_number("wait", row->wait);
    json_number("get_ms", row->get_ns / 1e6);
    json_number("step_ms", row->step_ns / 1e6);
    putchar('}');
}

void cli_tune_print_json(const cli_tuning *tuning) {
    char text[1024];
    int best = cli_tune_best(tuning);
    printf("{\"cores\": %d, \"settings\": [", tuning->cores);
    for (int i = 0; i < tuning->count; ++i) {
        if (i) fputs(", ", stdout);
        json_row(&tuning->rows[i]);
    }
    printf("], \"best\": %d, \"why\": ", best);
    cli_tune_explain(tuning, best, text, sizeof text);
    cli_json_string(stdout, text);
    fputs(", \"options\": ", stdout);
    cli_tune_options_text(&tuning->rows[best].setting, text, sizeof text);
    cli_json_string(stdout, text);
    putchar('}');
}
