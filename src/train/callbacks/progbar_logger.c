/* SPDX-License-Identifier: Apache-2.0 */
/* ProgbarLogger: the progress bar, with the text of keras.utils.Progbar.  Room: train. */
#include "train/hooks/callback.h"

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

typedef struct progbar_logger {
    int verbose;
    bool terminal;
    int64_t start_ns, drawn_ns;
    int64_t target; /* steps */
    int64_t done;   /* steps */
    int width;      /* columns of the line drawn last, which the next line overwrites */
    size_t used;
    char line[line_bytes];
} progbar_logger;

static void add(progbar_logger *p, const char *format, ...) LEAT_PRINTF(2, 3);
static void add(progbar_logger *p, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(p->line + p->used, sizeof p->line - p->used, format, arguments);
    va_end(arguments);
    if (length > 0) p->used += (size_t)length;
    if (p->used >= sizeof p->line) p->used = sizeof p->line - 1;
}

static void add_bar(progbar_logger *p, int64_t current) {
    int filled = (int)(bar_width * current / p->target);
    if (filled > bar_width) filled = bar_width;
    int digits = (int)floor(log10((double)p->target)) + 1;
    add(p, "%*" PRId64 "/%" PRId64 " [", digits, current, p->target);
    for (int i = 0; i < filled - 1; ++i) add(p, "=");
    if (filled > 0) add(p, "%c", current < p->target ? '>' : '=');
    for (int i = filled; i < bar_width; ++i) add(p, ".");
    add(p, "]");
}

static void add_eta(progbar_logger *p, double seconds) {
    long eta = (long)seconds;
    if (eta > 3600)
        add(p, " - ETA: %ld:%02ld:%02ld", eta / 3600, eta % 3600 / 60, eta % 60);
    else if (eta > 60)
        add(p, " - ETA: %ld:%02ld", eta / 60, eta % 60);
    else
        add(p, " - ETA: %lds", eta);
}

static void add_rate(progbar_logger *p, double seconds, int64_t current) {
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

static void add_logs(progbar_logger *p, const leat_training_params *params, const leat_logs *logs) {
    for (int i = 0; i < logs->count; ++i) {
        if (!is_shown(params, logs->items[i].name)) continue;
        double value = logs->items[i].value;
        add(p, fabs(value) > 1e-3 ? " - %s: %.4f" : " - %s: %.4e", logs->items[i].name, value);
    }
}

static void flush_line(progbar_logger *p, bool last) {
    int width = (int)p->used;
    for (int i = width; i < p->width; ++i) add(p, " ");
    fprintf(stderr, "%s%s%s", p->terminal ? "\r" : "", p->line, last ? "\n" : "");
    fflush(stderr);
    p->width = last ? 0 : width;
    p->used = 0;
    p->line[0] = '\0';
}

static void begin(progbar_logger *p, int64_t target) {
    p->target = target > 0 ? target : 1;
    p->done = 0;
    p->start_ns = leati_now_ns();
    p->drawn_ns = 0;
    p->width = 0;
}

/* Draws the state after `current` steps.  Before the last step it draws only on a terminal, at most 20 times a
 * second. */
static void update(progbar_logger *p, int64_t current, const leat_training_params *params,
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
    progbar_logger *p = user;
    const leat_training_params *params = leat_training_params_get(training);
    fprintf(stderr, "Epoch %" PRId64 "/%" PRId64 "\n", epoch + 1, params->epochs);
    begin(p, params->steps);
    return LEAT_OK;
}

/* Does not draw the last step: epoch_end draws it, with the results of the validation. */
static leat_status batch_end(void *user, leat_training *training, int64_t batch, leat_logs *logs,
                             leat_error *err) {
    (void)err;
    progbar_logger *p = user;
    p->done = batch + 1;
    if (p->done < p->target) update(p, p->done, leat_training_params_get(training), logs, false);
    return LEAT_OK;
}

static leat_status epoch_end(void *user, leat_training *training, int64_t epoch, leat_logs *logs,
                             leat_error *err) {
    (void)epoch, (void)err;
    progbar_logger *p = user;
    update(p, p->done, leat_training_params_get(training), logs, true);
    return LEAT_OK;
}

/* Returns true if the run is a fit, also during its validation; evaluations and predictions have no epochs. */
static bool is_fit(const leat_training *training) {
    return leat_training_params_get(training)->epochs > 0;
}

static leat_status run_begin(void *user, leat_training *training, int64_t index, leat_logs *logs,
                             leat_error *err) {
    (void)index, (void)logs, (void)err;
    if (!is_fit(training)) begin(user, leat_training_params_get(training)->steps);
    return LEAT_OK;
}

static leat_status run_batch_end(void *user, leat_training *training, int64_t batch, leat_logs *logs,
                                 leat_error *err) {
    return is_fit(training) ? LEAT_OK : batch_end(user, training, batch, logs, err);
}

static leat_status run_end(void *user, leat_training *training, int64_t index, leat_logs *logs,
                           leat_error *err) {
    return is_fit(training) ? LEAT_OK : epoch_end(user, training, index, logs, err);
}

static void destroy(void *user) {
    progbar_logger *p = user;
    if (p->width > 0) fputc('\n', stderr); /* after a failure the cursor is still in the line of the bar */
    leati_free(p);
}

leat_status leat_progbar_logger_create(leat_callback *out, size_t size, int verbose, leat_error *err) {
    LEATI_GIVEN(out, err);
    LEATI_TRY(leati_callback_begin(out, size, err));
    if (verbose < 1 || verbose > 2)
        return leati_fail(err, LEAT_EINVAL,
                          "ProgbarLogger: verbose: expected 1 (a bar) or 2 (a line per epoch), received %d",
                          verbose);
    progbar_logger *p = leati_calloc(1, sizeof *p);
    if (!p) return leati_fail_memory(err, sizeof *p, "the progress bar");
    p->verbose = verbose;
    p->terminal = isatty(STDERR_FILENO) == 1;
    const leat_callback made = {.user = p,
                                .destroy = destroy,
                                .on_epoch_begin = epoch_begin,
                                .on_train_batch_end = batch_end,
                                .on_epoch_end = epoch_end,
                                .on_test_begin = run_begin,
                                .on_test_batch_end = run_batch_end,
                                .on_test_end = run_end,
                                .on_predict_begin = run_begin,
                                .on_predict_batch_end = run_batch_end,
                                .on_predict_end = run_end};
    leati_callback_write(&made, out, size);
    return LEAT_OK;
}
