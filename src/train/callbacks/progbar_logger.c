/* SPDX-License-Identifier: Apache-2.0 */
/* ProgbarLogger: the progress bar, with the text of keras.utils.Progbar.  Room: train. */
#include "train/hooks/callback.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/os/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/screen/screen.h"

/* item_bytes: " - name: value", where %.4f writes up to 315 characters.  line_bytes: all logs, bar and times. */
enum {
    bar_width = 30,
    least_bar_width = 8,
    redraw_ns = 50000000,
    item_bytes = LEAT_LOG_NAME_BYTES + 330,
    line_bytes = 512 + LEAT_MAX_LOGS * item_bytes
};

typedef struct progbar_logger {
    int verbose;
    bool terminal;
    int64_t start_ns, drawn_ns;
    int64_t target; /* steps */
    int64_t first;  /* steps that were done before the first one after begin(); -1: no step yet */
    int64_t done;   /* steps */
    int width;      /* columns of the line drawn last, which the next line overwrites */
    int room;       /* columns that a line may take; it decides about bar */
    int bar; /* columns inside the brackets; it only shrinks while room stays, so that the bar does not jump */
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

static int step_digits(const progbar_logger *p) {
    return (int)floor(log10((double)p->target)) + 1;
}

/* Adds the steps and, unless p->bar is 0, the bar. */
static void add_bar(progbar_logger *p, int64_t current) {
    int filled = (int)(p->bar * current / p->target);
    if (filled > p->bar) filled = p->bar;
    add(p, "%*" PRId64 "/%" PRId64, step_digits(p), current, p->target);
    if (p->bar == 0) return;
    add(p, " [");
    for (int i = 0; i < filled - 1; ++i) add(p, "=");
    if (filled > 0) add(p, "%c", current < p->target ? '>' : '=');
    for (int i = filled; i < p->bar; ++i) add(p, ".");
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

/* Writes " - name: value" to `out`, without control characters.  Returns its columns. */
static int format_log(char out[item_bytes], const leat_log *log) {
    snprintf(out, item_bytes, fabs(log->value) > 1e-3 ? " - %s: %.4f" : " - %s: %.4e", log->name, log->value);
    leati_screen_clean_name(out);
    return leati_screen_columns(out);
}

static void add_blanks(progbar_logger *p, int count) {
    if (count > 0) add(p, "%*s", count, "");
}

/* Adds the values to a line of which `used` columns are taken, and writes "..." instead of the values on the right if
 * they do not fit. */
static void add_logs_that_fit(progbar_logger *p, const leat_training_params *params, const leat_logs *logs,
                              int used) {
    static const char dots[] = " ...";
    char item[item_bytes];
    size_t end = p->used; /* the line's length after the last value that leaves room for the dots */
    bool full = false;
    for (int i = 0; i < logs->count && !full; ++i) {
        if (!is_shown(params, logs->items[i].name)) continue;
        used += format_log(item, &logs->items[i]);
        full = used > p->room;
        if (!full) add(p, "%s", item);
        if (used + (int)sizeof dots - 1 <= p->room) end = p->used;
    }
    if (!full) return;
    p->used = end;
    add(p, dots);
}

/* Adds all values to a line of which `used` columns are taken.  If they do not fit, the line is continued below the
 * bar, `indent` columns from the left. */
static void add_all_logs(progbar_logger *p, const leat_training_params *params, const leat_logs *logs,
                         int used, int indent) {
    char item[item_bytes];
    for (int i = 0; i < logs->count; ++i) {
        if (!is_shown(params, logs->items[i].name)) continue;
        int columns = format_log(item, &logs->items[i]);
        if (p->terminal && used > indent && used + columns > p->room) {
            add_blanks(p, (p->width < p->room ? p->width : p->room) - used);
            add(p, "\n");
            add_blanks(p, indent);
            used = indent;
            p->width = 0;
        }
        add(p, "%s", item);
        used += columns;
    }
}

static int columns_of_logs(const leat_training_params *params, const leat_logs *logs) {
    char item[item_bytes];
    int columns = 0;
    for (int i = 0; i < logs->count; ++i)
        if (is_shown(params, logs->items[i].name)) columns += format_log(item, &logs->items[i]);
    return columns;
}

/* Chooses p->bar so that a line with `others` further columns fits in p->room, if that is possible.  The last line is
 * continued if it does not fit, and then keeps its bar.  0: even the least bar does not fit beside the `times` columns
 * of steps and times. */
static void choose_bar(progbar_logger *p, int times, int others, bool last) {
    int brackets = 3, room = p->terminal ? leati_screen_width(STDERR_FILENO) - 1 : INT_MAX;
    if (room != p->room) p->bar = bar_width;
    p->room = room;
    if (last && room - brackets - others < least_bar_width) others = times;
    int left = room - brackets - others;
    if (left < p->bar) p->bar = left;
    if (p->bar < least_bar_width) p->bar = least_bar_width;
    if (times + brackets + least_bar_width > room) p->bar = 0;
}

static void flush_line(progbar_logger *p, bool last) {
    if (!last) p->line[p->used = leati_screen_cut(p->line, p->room)] = '\0';
    int width = leati_screen_columns(p->line);
    add_blanks(p, (p->width < p->room ? p->width : p->room) - width);
    fprintf(stderr, "%s%s%s", p->terminal ? "\r" : "", p->line, last ? "\n" : "");
    fflush(stderr);
    p->width = last ? 0 : width;
    p->used = 0;
    p->line[0] = '\0';
}

static void begin(progbar_logger *p, int64_t target) {
    p->target = target > 0 ? target : 1;
    p->done = 0;
    p->first = -1;
    p->bar = bar_width;
    p->room = 0;
    p->start_ns = leati_now_ns();
    p->drawn_ns = 0;
    p->width = 0;
}

/* Writes the remaining time or, at the end, the time and the time of a step to p->line.  If a fit continues inside an
 * epoch, only the steps since then have taken the `seconds`. */
static void add_times(progbar_logger *p, int64_t current, double seconds, bool last) {
    int64_t timed = p->first < 0 ? 0 : current - p->first;
    if (!last && current < p->target && timed > 0)
        add_eta(p, seconds / (double)timed * (double)(p->target - current));
    else if (p->verbose == 1)
        add_rate(p, seconds, timed);
    else
        add(p, " - %.0fs", seconds);
}

/* Draws the state after `current` steps.  Before the last step it draws only on a terminal, at most 20 times a
 * second, and never more than a line of the terminal. */
static void update(progbar_logger *p, int64_t current, const leat_training_params *params,
                   const leat_logs *logs, bool last) {
    int64_t now = leati_now_ns();
    if (!last && (!p->terminal || p->verbose != 1 || now - p->drawn_ns < redraw_ns)) return;
    double seconds = (double)(now - p->start_ns) / 1e9;
    char times[128];
    p->drawn_ns = now;
    add_times(p, current, seconds, last);
    snprintf(times, sizeof times, "%s", p->line);
    p->used = 0;
    int used = leati_screen_columns(times), indent = 0;
    if (p->verbose == 1) {
        indent = 2 * step_digits(p) + 1;
        used += indent;
        choose_bar(p, used, used + columns_of_logs(params, logs), last);
        add_bar(p, current);
        if (p->bar > 0) used += p->bar + 3;
    } else
        p->room = p->terminal ? leati_screen_width(STDERR_FILENO) - 1 : INT_MAX;
    add(p, "%s", times);
    if (last)
        add_all_logs(p, params, logs, used, indent);
    else
        add_logs_that_fit(p, params, logs, used);
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
    if (p->first < 0) p->first = batch;
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
