/* SPDX-License-Identifier: Apache-2.0 */
/* EarlyStopping: ends training when the monitored value has stopped improving.  Room: train. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/growing.h"
#include "base/memory.h"
#include "nn/model/model.h"
#include "train/callbacks/monitor.h"
#include "train/hooks/callback.h"

typedef struct early_stopping {
    leat_early_stopping_options options;
    leati_monitor monitor;
    int64_t waited, stopped_epoch;
    void *best_weights; /* a copy of the slab of weights; NULL until an epoch has improved */
    size_t best_bytes;
} early_stopping;

static const leat_early_stopping_options defaults = {.monitor = "val_loss", .baseline = NAN};
static const leati_growing options_type = LEATI_GROWING(leat_early_stopping_options, monitor, &defaults);

void leat_early_stopping_options_init(leat_early_stopping_options *options, size_t size) {
    leati_growing_init(&options_type, options, size);
}

static leat_status train_begin(void *user, leat_training *training, int64_t index, leat_logs *logs,
                               leat_error *err) {
    (void)training, (void)index, (void)logs, (void)err;
    early_stopping *self = user;
    self->waited = self->stopped_epoch = 0;
    leati_monitor_reset(&self->monitor);
    if (!isnan(self->options.baseline)) self->monitor.best = self->options.baseline;
    leati_free(self->best_weights);
    self->best_weights = NULL;
    return LEAT_OK;
}

static leat_status keep_weights(early_stopping *self, const leat_model *model, leat_error *err) {
    if (!self->options.restore_best_weights) return LEAT_OK;
    if (!self->best_weights) {
        self->best_bytes = model->weights.bytes;
        self->best_weights = leati_calloc_aligned(self->best_bytes);
        if (!self->best_weights) return leati_fail_memory(err, self->best_bytes, "the best weights");
    }
    memcpy(self->best_weights, leati_weights_slab(&model->weights, LEATI_SLAB_WEIGHTS), self->best_bytes);
    return LEAT_OK;
}

/* If no epoch was better than the baseline, there is no copy to restore, and the weights stay unchanged. */
static void restore_weights(early_stopping *self, leat_training *training) {
    if (!self->options.restore_best_weights || !self->best_weights) return;
    if (self->options.verbose)
        leat_training_write(training, "Restoring model weights from the end of the best epoch");
    leat_model *model = leat_training_model(training);
    memcpy(leati_weights_slab(&model->weights, LEATI_SLAB_WEIGHTS), self->best_weights, self->best_bytes);
    leati_model_weights_changed(model);
}

static leat_status epoch_end(void *user, leat_training *training, int64_t epoch, leat_logs *logs,
                             leat_error *err) {
    early_stopping *self = user;
    double value = 0;
    if (!leati_monitor_get(&self->monitor, training, "EarlyStopping", logs, &value)) return LEAT_OK;
    if (leati_monitor_better(&self->monitor, value)) {
        self->monitor.best = value;
        self->waited = 0;
        return keep_weights(self, leat_training_model(training), err);
    }
    if (++self->waited < self->options.patience) return LEAT_OK;
    char reason[128];
    snprintf(reason, sizeof reason, "EarlyStopping: %s did not improve", self->monitor.name);
    self->stopped_epoch = epoch;
    leat_training_stop(training, reason);
    restore_weights(self, training);
    return LEAT_OK;
}

static leat_status train_end(void *user, leat_training *training, int64_t index, leat_logs *logs,
                             leat_error *err) {
    (void)index, (void)logs, (void)err;
    early_stopping *self = user;
    if (self->stopped_epoch > 0 && self->options.verbose)
        leat_training_write(training, "Epoch %05" PRId64 ": early stopping", self->stopped_epoch + 1);
    return LEAT_OK;
}

static leat_status save_state(void *user, leat_training *training, leat_state *state, leat_error *err) {
    (void)training;
    const early_stopping *self = user;
    LEATI_TRY(leati_monitor_save(&self->monitor, state, err));
    LEATI_TRY(leati_state_put_i64(state, "wait", self->waited, err));
    LEATI_TRY(leati_state_put_i64(state, "stopped_epoch", self->stopped_epoch, err));
    if (!self->best_weights) return LEAT_OK;
    return leat_state_put(state, "best_weights", self->best_weights, self->best_bytes, err);
}

static leat_status load_weights(early_stopping *self, const leat_model *model, const leat_state *state,
                                leat_error *err) {
    size_t bytes = 0;
    const void *weights = leat_state_find(state, "best_weights", &bytes);
    if (!weights || !self->options.restore_best_weights) return LEAT_OK;
    if (bytes != model->weights.bytes)
        return leati_fail(err, LEAT_EFORMAT,
                          "EarlyStopping: the best weights have %zu bytes, expected the %zu of the model",
                          bytes, model->weights.bytes);
    LEATI_TRY(keep_weights(self, model, err)); /* allocates the memory */
    memcpy(self->best_weights, weights, bytes);
    return LEAT_OK;
}

static leat_status load_state(void *user, leat_training *training, leat_state *state, leat_error *err) {
    early_stopping *self = user;
    LEATI_TRY(leati_monitor_load(&self->monitor, state, err));
    LEATI_TRY(leati_state_get_i64(state, "wait", &self->waited, err));
    LEATI_TRY(leati_state_get_i64(state, "stopped_epoch", &self->stopped_epoch, err));
    return load_weights(self, leat_training_model(training), state, err);
}

static void destroy(void *user) {
    early_stopping *self = user;
    leati_free(self->best_weights);
    leati_free(self);
}

leat_status leat_early_stopping_create(leat_callback *out, size_t size,
                                       const leat_early_stopping_options *options, leat_error *err) {
    LEATI_GIVEN(out, err);
    LEATI_TRY(leati_callback_begin(out, size, err));
    LEATI_GIVEN(options, err);
    leat_early_stopping_options all;
    LEATI_TRY(leati_growing_read(&options_type, options, &all, err));
    early_stopping *self = leati_calloc(1, sizeof *self);
    if (!self) return leati_fail_memory(err, sizeof *self, "EarlyStopping");
    self->options = all;
    leat_status status = leati_monitor_init(&self->monitor, all.monitor, all.mode, all.min_delta, err);
    if (status != LEAT_OK) {
        leati_free(self);
        return leati_prefix(status, err, "EarlyStopping");
    }
    const leat_callback made = {.user = self,
                                .destroy = destroy,
                                .save_state = save_state,
                                .load_state = load_state,
                                .on_train_begin = train_begin,
                                .on_epoch_end = epoch_end,
                                .on_train_end = train_end};
    leati_callback_write(&made, out, size);
    return LEAT_OK;
}
