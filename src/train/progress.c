/* SPDX-License-Identifier: Apache-2.0 */
/* The progress bar: keras.utils.Progbar's text.  Layer: train. */
#include "train/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/os/clock.h"
#include "base/error.h"
#include "base/memory.h"

enum { bar_width = 30, line_bytes = 4096, redraw_ns = 50000000 };

struct leati_progress {
    int verbose;
    bool terminal;
    int64_t start_ns, drawn_ns;
    int64_t target; /* steps */
    int64_t done;   /* of them */
    int width;      /* columns drawn last, to be blanked */
    size_t used;
    char line[line_bytes];
};

leat_status leati_progress_create(leati_progress **out, int verbose, leat_error *err) {
    *out = leati_calloc(1, sizeof **out);
    if (!*out) return leati_fail_memory(err, sizeof **out, "the progress bar");
    (*out)->verbose = verbose;
    (*out)->terminal = isatty(STDERR_FILENO) == 1;
    return LEAT_OK;
}

void leati_progress_destroy(leati_progress **progress) {
    if (*progress && (*progress)->width > 0) fputc('\n', stderr); /* a failure has left the bar in its line */
    leati_free(*progress);
    *progress = NULL;
}

static void add(leati_progress *p, const char *format, ...) LEAT_PRINTF(2, 3);
static void add(leati_progress *p, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(p->line + p->used, sizeof p->line - p->used, format, arguments);
    va_end(arguments);
    if (length > 0) p->used += (size_t)length;
    if (p->used >= sizeof p->line) p->used = sizeof p->line - 1;
}

static void add_bar(leati_progress *p, int64_t current) {
    int filled = (int)(bar_width * current / p->target);
    if (filled > bar_width) filled = bar_width;
    int digits = (int)floor(log10((double)p->target)) + 1;
    add(p, "%*" PRId64 "/%" PRId64 " [", digits, current, p->target);
    for (int i = 0; i < filled - 1; ++i) add(p, "=");
    if (filled > 0) add(p, "%c", current < p->target ? '>' : '=');
    for (int i = filled; i < bar_width; ++i) add(p, ".");
    add(p, "]");
}

static void add_eta(leati_progress *p, double seconds) {
    long eta = (long)seconds;
    if (eta > 3600)
        add(p, " - ETA: %ld:%02ld:%02ld", eta / 3600, eta % 3600 / 60, eta % 60);
    else if (eta > 60)
        add(p, " - ETA: %ld:%02ld", eta / 60, eta % 60);
    else
        add(p, " - ETA: %lds", eta);
}

static void add_rate(leati_progress *p, double seconds, int64_t current) {
    double each = current > 0 ? seconds / (double)current : 0;
    add(p, " - %.0fs", seconds);
    if (each >= 1)
        add(p, " %.0fs/step", each);
    else if (each >= 1e-3)
        add(p, " %.0fms/step", each * 1e3);
    else
        add(p, " %.0fus/step", each * 1e6);
}

static bool is_shown(const leat_training_params *params, const char *name) {
    for (int i = 0; i < params->metric_count; ++i)
        if (strcmp(params->metrics[i], name) == 0) return true;
    return false;
}

static void add_logs(leati_progress *p, const leat_training_params *params, const leat_logs *logs) {
    for (int i = 0; i < logs->count; ++i) {
        if (!is_shown(params, logs->items[i].name)) continue;
        double value = logs->items[i].value;
        add(p, fabs(value) > 1e-3 ? " - %s: %.4f" : " - %s: %.4e", logs->items[i].name, value);
    }
}

static void flush_line(leati_progress *p, bool last) {
    int width = (int)p->used;
    for (int i = width; i < p->width; ++i) add(p, " ");
    fprintf(stderr, "%s%s%s", p->terminal ? "\r" : "", p->line, last ? "\n" : "");
    fflush(stderr);
    p->width = last ? 0 : width;
    p->used = 0;
    p->line[0] = '\0';
}

static void begin(leati_progress *p, int64_t target) {
    p->target = target > 0 ? target : 1;
    p->done = 0;
    p->start_ns = leati_now_ns();
    p->drawn_ns = 0;
    p->width = 0;
}

/* Draws the state after `current` steps; between steps only on a terminal, and no more than 20 times a second. */
static void update(leati_progress *p, int64_t current, const leat_training_params *params,
                   const leat_logs *logs, bool last) {
    int64_t now = leati_now_ns();
    if (!last && (!p->terminal || p->verbose != 1 || now - p->drawn_ns < redraw_ns)) return;
    double seconds = (double)(now - p->start_ns) / 1e9;
    p->drawn_ns = now;
    if (p->verbose == 1) add_bar(p, current);
    if (!last && current < p->target && current > 0)
        add_eta(p, seconds / (double)current * (double)(p->target - current));
    else if (p->verbose == 1)
        add_rate(p, seconds, current);
    else
        add(p, " - %.0fs", seconds);
    add_logs(p, params, logs);
    flush_line(p, last);
}

static leat_status epoch_begin(void *user, leat_training *training, int64_t epoch, leat_logs *logs,
                               leat_error *err) {
    (void)logs, (void)err;
    leati_progress *p = user;
    const leat_training_params *params = leat_training_params_get(training);
    if (p->verbose == 0) return LEAT_OK;
    fprintf(stderr, "Epoch %" PRId64 "/%" PRId64 "\n", epoch + 1, params->epochs);
    begin(p, params->steps);
    return LEAT_OK;
}

/* The last step is drawn by the end of the epoch, with the validation's results. */
static leat_status batch_end(void *user, leat_training *training, int64_t batch, leat_logs *logs,
                             leat_error *err) {
    (void)err;
    leati_progress *p = user;
    p->done = batch + 1;
    if (p->verbose && p->done < p->target)
        update(p, p->done, leat_training_params_get(training), logs, false);
    return LEAT_OK;
}

static leat_status epoch_end(void *user, leat_training *training, int64_t epoch, leat_logs *logs,
                             leat_error *err) {
    (void)epoch, (void)err;
    leati_progress *p = user;
    if (p->verbose) update(p, p->done, leat_training_params_get(training), logs, true);
    return LEAT_OK;
}

static leat_status run_begin(void *user, leat_training *training, int64_t index, leat_logs *logs,
                             leat_error *err) {
    (void)index, (void)logs, (void)err;
    begin(user, leat_training_params_get(training)->steps);
    return LEAT_OK;
}

static leat_status run_end(void *user, leat_training *training, int64_t index, leat_logs *logs,
                           leat_error *err) {
    return epoch_end(user, training, index, logs, err);
}

leat_callback leati_progress_callback(leati_progress *progress) {
    return (leat_callback){.user = progress,
                           .on_epoch_begin = epoch_begin,
                           .on_train_batch_end = batch_end,
                           .on_epoch_end = epoch_end};
}

leat_callback leati_progress_test_callback(leati_progress *progress) {
    return (leat_callback){.user = progress,
                           .on_test_begin = run_begin,
                           .on_test_batch_end = batch_end,
                           .on_test_end = run_end};
}

leat_callback leati_progress_predict_callback(leati_progress *progress) {
    return (leat_callback){.user = progress,
                           .on_predict_begin = run_begin,
                           .on_predict_batch_end = batch_end,
                           .on_predict_end = run_end};
}
