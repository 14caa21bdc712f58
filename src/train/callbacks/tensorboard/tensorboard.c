/* SPDX-License-Identifier: Apache-2.0 */
/* TensorBoard: writes scalars, histograms and the graph of the model to event files.  Source:
 * keras/callbacks/tensorboard.py of Keras 2.15 (tf.keras).  Room: train. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/growing.h"
#include "base/memory.h"
#include "base/os/clock.h"
#include "engine/op_semantics/op.h"
#include "nn/network/network.h"
#include "train/callbacks/tensorboard/graph.h"
#include "train/callbacks/tensorboard/summary.h"
#include "train/hooks/callback.h"

typedef struct tensorboard {
    leat_tensorboard_options options; /* log_dir and run_id are not used */
    leati_event_file train, validation;
    bool training;    /* true between on_train_begin and on_train_end */
    int64_t epoch_ns; /* start of the epoch, or of the fit if it continues in the middle of an epoch */
    int64_t epoch_iterations; /* the model's iterations at that time */
    int64_t batch_ns;         /* start of the batch */
} tensorboard;

static const leat_tensorboard_options defaults = {.write_graph = true};
static const leati_growing options_type = LEATI_GROWING(leat_tensorboard_options, log_dir, &defaults);

void leat_tensorboard_options_init(leat_tensorboard_options *options, size_t size) {
    leati_growing_init(&options_type, options, size);
}

/* ---- Scalars ---- */

enum { TAG_BYTES = LEAT_LOG_NAME_BYTES + 32 };

static leat_status write_scalar(leati_event_file *file, const char *before, const char *name,
                                const char *after, double value, int64_t step, leat_error *err) {
    char tag[TAG_BYTES];
    snprintf(tag, sizeof tag, "%s%s%s", before, name, after);
    return leati_event_scalar(file, tag, value, step, err);
}

/* Writes steps per second since a time. */
static leat_status write_speed(tensorboard *self, const char *tag, int64_t steps, int64_t since_ns,
                               int64_t step, leat_error *err) {
    int64_t elapsed_ns = leati_now_ns() - since_ns;
    if (elapsed_ns < 1) elapsed_ns = 1;
    return leati_event_scalar(&self->train, tag, (double)steps * 1e9 / (double)elapsed_ns, step, err);
}

static leat_status batch_begin(void *user, leat_training *training, int64_t index, leat_logs *logs,
                               leat_error *err) {
    (void)training, (void)index, (void)logs, (void)err;
    tensorboard *self = user;
    self->batch_ns = leati_now_ns();
    return LEAT_OK;
}

static leat_status write_batch(tensorboard *self, int64_t step, const leat_logs *logs, leat_error *err) {
    for (int i = 0; i < logs->count; ++i) {
        const leat_log *log = &logs->items[i];
        if (strcmp(log->name, "batch") == 0 || strcmp(log->name, "size") == 0) continue;
        LEATI_TRY(write_scalar(&self->train, "batch_", log->name, "", log->value, step, err));
    }
    if (!self->options.write_steps_per_second) return LEAT_OK;
    return write_speed(self, "batch_steps_per_second", 1, self->batch_ns, step, err);
}

static leat_status batch_end(void *user, leat_training *training, int64_t index, leat_logs *logs,
                             leat_error *err) {
    (void)index;
    tensorboard *self = user;
    int64_t step = leat_training_model(training)->iterations;
    if (step % self->options.update_freq != 0) return LEAT_OK;
    return leati_prefix(write_batch(self, step, logs, err), err, "TensorBoard");
}

/* ---- Epochs ---- */

static leat_status write_histograms(tensorboard *self, const leat_model *model, int64_t epoch,
                                    leat_error *err) {
    const leati_weights *weights = &model->weights;
    const char *slab = leati_weights_slab(weights, LEATI_SLAB_WEIGHTS);
    for (int32_t i = 0; i < weights->count; ++i) {
        const leati_weight *weight = weights->entries[weights->order[i]];
        char tag[2 * LEAT_LOG_NAME_BYTES + 32];
        snprintf(tag, sizeof tag, "%s", weights->names[weights->order[i]]);
        for (char *colon = tag; (colon = strchr(colon, ':'));)
            *colon = '_'; /* as Keras: "dense_1/kernel_0" */
        const float *values = (const float *)(const void *)(slab + weight->offset_bytes);
        LEATI_TRY(
            leati_event_histogram(&self->train, tag, values, leati_desc_count(&weight->desc), epoch, err));
    }
    return LEAT_OK;
}

static leat_status epoch_begin(void *user, leat_training *training, int64_t index, leat_logs *logs,
                               leat_error *err) {
    (void)index, (void)logs, (void)err;
    tensorboard *self = user;
    self->epoch_ns = leati_now_ns();
    self->epoch_iterations = leat_training_model(training)->iterations;
    return LEAT_OK;
}

/* Returns true for the names under which callbacks log the learning rate. */
static bool is_rate(const char *name) {
    return strcmp(name, "lr") == 0 || strcmp(name, "learning_rate") == 0;
}

/* Returns the learning rate of an epoch: that of the logs, since ReduceLROnPlateau may have changed the model's. */
static double rate_of(const leat_model *model, const leat_logs *logs) {
    double rate = leat_model_learning_rate(model);
    if (!leat_logs_get(logs, "learning_rate", &rate)) (void)leat_logs_get(logs, "lr", &rate);
    return rate;
}

/* Writes the logs of an epoch as Keras does: val_loss becomes epoch_loss of the validation. */
static leat_status write_logs(tensorboard *self, int64_t epoch, const leat_logs *logs, leat_error *err) {
    for (int i = 0; i < logs->count; ++i) {
        const leat_log *log = &logs->items[i];
        bool is_validation = strncmp(log->name, "val_", 4) == 0;
        leati_event_file *file = is_validation ? &self->validation : &self->train;
        const char *name = is_validation ? log->name + 4 : log->name;
        if (!is_validation && is_rate(name)) continue;
        LEATI_TRY(write_scalar(file, "epoch_", name, "", log->value, epoch, err));
    }
    return LEAT_OK;
}

static leat_status write_epoch(tensorboard *self, const leat_model *model, int64_t epoch,
                               const leat_logs *logs, leat_error *err) {
    int64_t frequency = self->options.histogram_freq;
    LEATI_TRY(write_logs(self, epoch, logs, err));
    LEATI_TRY(leati_event_scalar(&self->train, "epoch_learning_rate", rate_of(model, logs), epoch, err));
    if (self->options.write_steps_per_second)
        LEATI_TRY(write_speed(self, "epoch_steps_per_second", model->iterations - self->epoch_iterations,
                              self->epoch_ns, epoch, err));
    if (frequency > 0 && epoch % frequency == 0) LEATI_TRY(write_histograms(self, model, epoch, err));
    LEATI_TRY(leati_event_file_flush(&self->train, err));
    return leati_event_file_flush(&self->validation, err);
}

static leat_status epoch_end(void *user, leat_training *training, int64_t epoch, leat_logs *logs,
                             leat_error *err) {
    leat_status status = write_epoch(user, leat_training_model(training), epoch, logs, err);
    return leati_prefix(status, err, "TensorBoard");
}

/* Writes the results of a validation by the number of training steps. */
static leat_status test_end(void *user, leat_training *training, int64_t index, leat_logs *logs,
                            leat_error *err) {
    (void)index;
    tensorboard *self = user;
    int64_t step = leat_training_model(training)->iterations;
    leat_status status = LEAT_OK;
    for (int i = 0; status == LEAT_OK && i < logs->count; ++i)
        status = write_scalar(&self->validation, "evaluation_", logs->items[i].name, "_vs_iterations",
                              logs->items[i].value, step, err);
    if (status == LEAT_OK && !self->training) status = leati_event_file_flush(&self->validation, err);
    return leati_prefix(status, err, "TensorBoard");
}

/* ---- The fit ---- */

static leat_status begin_files(tensorboard *self, const leat_model *model, leat_error *err) {
    LEATI_TRY(leati_event_file_name(&self->train, err));
    LEATI_TRY(leati_event_file_name(&self->validation, err));
    if (!self->options.write_graph) return LEAT_OK;
    LEATI_TRY(leati_event_graph(&self->train, model, err));
    return leati_event_file_flush(&self->train, err);
}

static leat_status train_begin(void *user, leat_training *training, int64_t index, leat_logs *logs,
                               leat_error *err) {
    (void)index, (void)logs;
    tensorboard *self = user;
    (void)leati_event_file_close(&self->train, NULL); /* a fit that failed calls no on_train_end */
    (void)leati_event_file_close(&self->validation, NULL);
    self->training = true;
    if (leat_training_params_get(training)->resumed) return LEAT_OK;
    return leati_prefix(begin_files(self, leat_training_model(training), err), err, "TensorBoard");
}

static leat_status train_end(void *user, leat_training *training, int64_t index, leat_logs *logs,
                             leat_error *err) {
    (void)training, (void)index, (void)logs;
    tensorboard *self = user;
    self->training = false;
    leat_status status = leati_event_file_close(&self->train, err);
    leat_status closed = leati_event_file_close(&self->validation, status == LEAT_OK ? err : NULL);
    return leati_prefix(status == LEAT_OK ? closed : status, err, "TensorBoard");
}

static leat_status save_state(void *user, leat_training *training, leat_state *state, leat_error *err) {
    (void)training;
    tensorboard *self = user;
    leat_status status = leati_event_file_save(&self->train, state, "train", err);
    if (status == LEAT_OK) status = leati_event_file_save(&self->validation, state, "validation", err);
    return leati_prefix(status, err, "TensorBoard");
}

/* Continues with the files of the checkpoint.  A checkpoint of a fit without this callback has none. */
static leat_status load_state(void *user, leat_training *training, leat_state *state, leat_error *err) {
    tensorboard *self = user;
    const leat_model *model = leat_training_model(training);
    size_t bytes = 0;
    (void)epoch_begin(self, training, 0, NULL, NULL);
    leat_status status = LEAT_OK;
    if (!leat_state_find(state, "train_file", &bytes))
        status = begin_files(self, model, err);
    else {
        status = leati_event_file_load(&self->train, state, "train", err);
        if (status == LEAT_OK) status = leati_event_file_load(&self->validation, state, "validation", err);
    }
    return leati_prefix(status, err, "TensorBoard");
}

static void destroy(void *user) {
    tensorboard *self = user;
    (void)leati_event_file_close(&self->train, NULL);
    (void)leati_event_file_close(&self->validation, NULL);
    leati_event_file_fini(&self->train);
    leati_event_file_fini(&self->validation);
    leati_free(self);
}

/* ---- Creating ---- */

static leat_status check_options(const leat_tensorboard_options *options, leat_error *err) {
    if (!options->log_dir || !options->log_dir[0])
        return leati_fail(err, LEAT_EINVAL, "log_dir: expected the path of a folder, received %s",
                          options->log_dir ? "an empty text" : "NULL");
    if (options->histogram_freq < 0)
        return leati_fail(
            err, LEAT_EINVAL,
            "histogram_freq: expected 0 (no histograms) or a number of epochs, received %" PRId64,
            options->histogram_freq);
    if (options->update_freq < 0)
        return leati_fail(err, LEAT_EINVAL,
                          "update_freq: expected 0 (each epoch) or a number of batches, received %" PRId64,
                          options->update_freq);
    if (options->run_id && (!options->run_id[0] || strchr(options->run_id, '/')))
        return leati_fail(err, LEAT_EINVAL, "run_id: expected a text without '/', received '%.100s'",
                          options->run_id);
    return LEAT_OK;
}

static leat_status make(tensorboard **out, const leat_tensorboard_options *options, leat_error *err) {
    LEATI_TRY(check_options(options, err));
    tensorboard *self = leati_calloc(1, sizeof *self);
    if (!self) return leati_fail_memory(err, sizeof *self, "the callback");
    self->options = *options;
    self->train.fd = self->validation.fd = -1;
    leat_status status = leati_event_file_init(&self->train, options->log_dir, "train", options->run_id, err);
    if (status == LEAT_OK)
        status =
            leati_event_file_init(&self->validation, options->log_dir, "validation", options->run_id, err);
    if (status == LEAT_OK)
        *out = self;
    else
        destroy(self);
    return status;
}

leat_status leat_tensorboard_create(leat_callback *out, size_t size, const leat_tensorboard_options *options,
                                    leat_error *err) {
    LEATI_GIVEN(out, err);
    LEATI_TRY(leati_callback_begin(out, size, err));
    LEATI_GIVEN(options, err);
    leat_tensorboard_options all;
    tensorboard *self = NULL;
    LEATI_TRY(leati_growing_read(&options_type, options, &all, err));
    LEATI_TRY(leati_prefix(make(&self, &all, err), err, "TensorBoard"));
    const leat_callback made = {.user = self,
                                .destroy = destroy,
                                .save_state = save_state,
                                .load_state = load_state,
                                .on_train_begin = train_begin,
                                .on_train_end = train_end,
                                .on_epoch_begin = epoch_begin,
                                .on_epoch_end = epoch_end,
                                .on_train_batch_begin = all.write_steps_per_second ? batch_begin : NULL,
                                .on_train_batch_end = all.update_freq > 0 ? batch_end : NULL,
                                .on_test_end = test_end};
    leati_callback_write(&made, out, size);
    return LEAT_OK;
}
