/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the state of a fit to a text file in the format of OpenMetrics 1.0, which is also correct in Prometheus's
 * older text format 0.0.4.  Room: train. */
#define _GNU_SOURCE /* CLOCK_REALTIME */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/growing.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/os/clock.h"
#include "base/screen/screen.h"
#include "base/text.h"
#include "checkpoint/state.h"
#include "json/json.h"
#include "leat/file.h"
#include "leat/model.h"
#include "train/hooks/callback.h"

enum { max_labels = 64 };

typedef struct open_metrics {
    char *path;
    char *labels; /* `run="a",host="b"`, escaped; "" without labels */
    int64_t every_ns;
    int64_t start_ns, written_ns;
    int64_t earlier_ns;     /* time of the fit before it was resumed */
    int64_t epoch;          /* number of the current epoch, from 1; 0: none has begun */
    int64_t step;           /* steps of this epoch that were done */
    int64_t steps, samples; /* of the whole fit */
    bool is_running;
    bool failing; /* the last write failed */
    leat_logs logs;
} open_metrics;

static const leat_open_metrics_options defaults = {.every_ms = 10000};
static const leati_growing options_type = LEATI_GROWING(leat_open_metrics_options, path, &defaults);

void leat_open_metrics_options_init(leat_open_metrics_options *options, size_t size) {
    leati_growing_init(&options_type, options, size);
}

/* ---- The text ---- */

/* Appends the value of a label: a backslash before '\\' and '"', line breaks as \n, and '?' for bytes that are not
 * UTF-8, which the format forbids. */
static void add_escaped(leati_text *text, const char *value) {
    int columns = 0;
    for (size_t bytes; (bytes = leati_screen_character(value, &columns)) > 0; value += bytes)
        if (*value == '\n')
            leati_text_add(text, "\\n");
        else if (*value == '\\' || *value == '"')
            leati_text_add(text, "\\%c", *value);
        else if (bytes == 1 && (unsigned char)*value >= 0x80)
            leati_text_add(text, "?");
        else
            leati_text_add(text, "%.*s", (int)bytes, value);
}

static void add_number(leati_text *text, double value) {
    char number[LEATI_JSON_REAL_BYTES];
    const char *token = isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
    leati_text_add(text, " %s\n", isfinite(value) ? leati_json_real_text(number, value) : token);
}

static void add_family(leati_text *text, const char *name, const char *type, const char *help) {
    leati_text_add(text, "# TYPE leat_%s %s\n# HELP leat_%s %s\n", name, type, name, help);
}

/* Appends the name of a value and its labels; suffix: "_total" for counters. */
static void add_series(const open_metrics *self, leati_text *text, const char *name, const char *suffix) {
    leati_text_add(text, "leat_%s%s", name, suffix);
    if (*self->labels) leati_text_add(text, "{%s}", self->labels);
}

static void add_gauge(const open_metrics *self, leati_text *text, const char *name, const char *help,
                      double value) {
    add_family(text, name, "gauge", help);
    add_series(self, text, name, "");
    add_number(text, value);
}

static void add_count(const open_metrics *self, leati_text *text, const char *name, const char *help,
                      bool is_counter, int64_t value) {
    add_family(text, name, is_counter ? "counter" : "gauge", help);
    add_series(self, text, name, is_counter ? "_total" : "");
    leati_text_add(text, " %" PRId64 "\n", value);
}

/* The logs of a batch contain its number and its size, which are no metrics; the learning rate has its own gauge. */
static bool is_metric(const char *name) {
    return strcmp(name, "batch") != 0 && strcmp(name, "size") != 0 && strcmp(name, "lr") != 0;
}

static void add_metrics(const open_metrics *self, leati_text *text) {
    double loss = 0;
    bool first = true;
    if (leat_logs_get(&self->logs, "loss", &loss))
        add_gauge(self, text, "loss", "The loss of the epoch so far.", loss);
    for (int i = 0; i < self->logs.count; ++i) {
        if (!is_metric(self->logs.items[i].name)) continue;
        if (first) add_family(text, "metric", "gauge", "The loss and the metrics, by name.");
        first = false;
        leati_text_add(text, "leat_metric{%s%sname=\"", self->labels, *self->labels ? "," : "");
        add_escaped(text, self->logs.items[i].name);
        leati_text_add(text, "\"}");
        add_number(text, self->logs.items[i].value);
    }
}

static double unix_time(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const int64_t ms = now.tv_nsec / 1000000;
    return (double)now.tv_sec + (double)ms / 1e3;
}

static void make_text(const open_metrics *self, leat_training *training, leati_text *text) {
    const leat_training_params *params = leat_training_params_get(training);
    const int64_t ms = (self->earlier_ns + leati_now_ns() - self->start_ns) / 1000000;
    double seconds = (double)ms / 1e3;
    add_count(self, text, "running", "1 while training runs, 0 after its end.", false, self->is_running);
    add_count(self, text, "epoch", "The number of the current epoch, from 1.", false, self->epoch);
    add_count(self, text, "epochs", "The number of the last epoch.", false, params->epochs);
    add_count(self, text, "step", "Steps of the current epoch that were done.", false, self->step);
    add_count(self, text, "epoch_steps", "Steps of an epoch.", false, params->steps);
    add_count(self, text, "steps", "Training steps that were done.", true, self->steps);
    add_count(self, text, "samples", "Samples that were trained.", true, self->samples);
    add_metrics(self, text);
    add_gauge(self, text, "learning_rate", "The learning rate.",
              leat_model_learning_rate(leat_training_model(training)));
    add_gauge(self, text, "elapsed_seconds", "The time since training began.", seconds);
    add_gauge(self, text, "last_update_timestamp_seconds", "The Unix time at which this file was written.",
              unix_time());
    leati_text_add(text, "# EOF\n");
}

static leat_status write_file(open_metrics *self, leat_training *training, leat_error *err) {
    leati_text text = {0};
    make_text(self, training, &text);
    leat_status status = text.failed ? leati_fail_memory(err, text.length, "the text of OpenMetrics")
                                     : leat_file_replace(self->path, text.data, text.length, err);
    leati_text_fini(&text);
    self->written_ns = leati_now_ns();
    return status;
}

/* Writes the file.  A failure is a warning, once until a write succeeds again. */
static void update_file(open_metrics *self, leat_training *training) {
    leat_error err = {0};
    leat_status status = write_file(self, training, &err);
    if (status != LEAT_OK && !self->failing && leat_training_params_get(training)->verbose != 0)
        leati_log(LEAT_LOG_WARNING, "leat: OpenMetrics: %s; training continues", err.message);
    self->failing = status != LEAT_OK;
}

/* ---- The hooks ---- */

static leat_status train_begin(void *user, leat_training *training, int64_t index, leat_logs *logs,
                               leat_error *err) {
    open_metrics *self = user;
    (void)index, (void)logs;
    self->start_ns = self->written_ns = leati_now_ns();
    self->earlier_ns = self->epoch = self->step = self->steps = self->samples = 0;
    self->logs.count = 0;
    self->is_running = true;
    self->failing = false;
    if (leat_training_params_get(training)->resumed) {
        /* Until load_state the counters are 0, which would look like a new fit: the first step writes the file. */
        self->written_ns -= self->every_ns;
        return LEAT_OK;
    }
    return leati_prefix(write_file(self, training, err), err, "OpenMetrics");
}

static leat_status epoch_begin(void *user, leat_training *training, int64_t epoch, leat_logs *logs,
                               leat_error *err) {
    open_metrics *self = user;
    (void)training, (void)logs, (void)err;
    self->epoch = epoch + 1;
    self->step = 0;
    return LEAT_OK;
}

static leat_status batch_end(void *user, leat_training *training, int64_t batch, leat_logs *logs,
                             leat_error *err) {
    open_metrics *self = user;
    double size = 0;
    (void)err;
    self->step = batch + 1;
    ++self->steps;
    if (leat_logs_get(logs, "size", &size)) self->samples += (int64_t)size;
    if (self->every_ns == 0 || leati_now_ns() - self->written_ns < self->every_ns) return LEAT_OK;
    self->logs = *logs;
    update_file(self, training);
    return LEAT_OK;
}

static leat_status epoch_end(void *user, leat_training *training, int64_t epoch, leat_logs *logs,
                             leat_error *err) {
    open_metrics *self = user;
    (void)epoch, (void)err;
    self->logs = *logs;
    update_file(self, training);
    return LEAT_OK;
}

static leat_status train_end(void *user, leat_training *training, int64_t index, leat_logs *logs,
                             leat_error *err) {
    open_metrics *self = user;
    (void)index, (void)logs, (void)err;
    self->is_running = false;
    update_file(self, training);
    return LEAT_OK;
}

static leat_status save_state(void *user, leat_training *training, leat_state *state, leat_error *err) {
    const open_metrics *self = user;
    (void)training;
    int64_t elapsed_ns = self->earlier_ns + leati_now_ns() - self->start_ns;
    LEATI_TRY(leati_state_put_i64(state, "steps", self->steps, err));
    LEATI_TRY(leati_state_put_i64(state, "samples", self->samples, err));
    return leati_state_put_i64(state, "elapsed_ns", elapsed_ns, err);
}

static leat_status load_state(void *user, leat_training *training, leat_state *state, leat_error *err) {
    open_metrics *self = user;
    (void)training;
    LEATI_TRY(leati_state_get_i64(state, "steps", &self->steps, err));
    LEATI_TRY(leati_state_get_i64(state, "samples", &self->samples, err));
    return leati_state_get_i64(state, "elapsed_ns", &self->earlier_ns, err);
}

static void destroy(void *user) {
    open_metrics *self = user;
    leati_free(self->path);
    leati_free(self->labels);
    leati_free(self);
}

/* ---- Creation ---- */

/* Returns the length of the name of "name=value"; 0: it is no name of a label, or one that is reserved. */
static size_t name_length(const char *label) {
    size_t length = 0;
    while (label[length] == '_' || (label[length] > 0 && isalnum((unsigned char)label[length]))) ++length;
    bool reserved = strncmp(label, "__", 2) == 0 || (length == 4 && memcmp(label, "name", 4) == 0);
    return label[length] != '=' || isdigit((unsigned char)label[0]) || reserved ? 0 : length;
}

static leat_status add_label(leati_text *text, const char *const *labels, int index, leat_error *err) {
    size_t length = labels[index] ? name_length(labels[index]) : 0;
    if (length == 0)
        return leati_fail(
            err, LEAT_EINVAL,
            "label %d: expected 'name=value' with a name of letters, digits and '_' that is not 'name' and "
            "does not begin with a digit or '__', received '%s'",
            index, labels[index] ? labels[index] : "NULL");
    for (int i = 0; i < index; ++i)
        if (strncmp(labels[i], labels[index], length + 1) == 0)
            return leati_fail(err, LEAT_EINVAL, "label %d: '%.*s' is given twice", index, (int)length,
                              labels[index]);
    leati_text_add(text, "%s%.*s=\"", index ? "," : "", (int)length, labels[index]);
    add_escaped(text, labels[index] + length + 1);
    leati_text_add(text, "\"");
    return LEAT_OK;
}

static leat_status make_labels(const leat_open_metrics_options *options, char **out, leat_error *err) {
    leati_text text = {0};
    leat_status status = LEAT_OK;
    leati_text_add(&text, "%s", "");
    for (int i = 0; i < options->label_count && status == LEAT_OK; ++i)
        status = add_label(&text, options->labels, i, err);
    if (status == LEAT_OK && text.failed) status = leati_fail_memory(err, text.length, "labels");
    if (status == LEAT_OK)
        *out = text.data;
    else
        leati_text_fini(&text);
    return status;
}

static leat_status check(const leat_open_metrics_options *options, leat_error *err) {
    if (!options->path || !options->path[0]) return leati_fail(err, LEAT_EINVAL, "path is required");
    if (options->label_count < 0 || options->label_count > max_labels)
        return leati_fail(err, LEAT_EINVAL, "label_count: expected 0 to %d, received %d", max_labels,
                          options->label_count);
    if (options->label_count > 0) LEATI_GIVEN(options->labels, err);
    if (options->every_ms >= 0 && options->every_ms <= INT64_MAX / 1000000) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "every_ms: expected 0 to %" PRId64 ", received %" PRId64,
                      INT64_MAX / 1000000, options->every_ms);
}

static leat_status fill(open_metrics *self, const leat_open_metrics_options *options, leat_error *err) {
    self->every_ns = options->every_ms * 1000000;
    self->path = leati_strdup(options->path);
    if (!self->path) return leati_fail_memory(err, strlen(options->path), "a path");
    return make_labels(options, &self->labels, err);
}

leat_status leat_open_metrics_create(leat_callback *out, size_t size,
                                     const leat_open_metrics_options *options, leat_error *err) {
    LEATI_GIVEN(out, err);
    LEATI_TRY(leati_callback_begin(out, size, err));
    LEATI_GIVEN(options, err);
    leat_open_metrics_options all;
    LEATI_TRY(leati_growing_read(&options_type, options, &all, err));
    LEATI_TRY(leati_prefix(check(&all, err), err, "OpenMetrics"));
    open_metrics *self = leati_calloc(1, sizeof *self);
    if (!self) return leati_fail_memory(err, sizeof *self, "OpenMetrics");
    leat_status status = fill(self, &all, err);
    if (status != LEAT_OK) {
        destroy(self);
        return leati_prefix(status, err, "OpenMetrics");
    }
    const leat_callback made = {.user = self,
                                .destroy = destroy,
                                .save_state = save_state,
                                .load_state = load_state,
                                .on_train_begin = train_begin,
                                .on_train_end = train_end,
                                .on_epoch_begin = epoch_begin,
                                .on_epoch_end = epoch_end,
                                .on_train_batch_end = batch_end};
    leati_callback_write(&made, out, size);
    return LEAT_OK;
}
