/* SPDX-License-Identifier: Apache-2.0 */
/* ReduceLROnPlateau and LearningRateScheduler: the callbacks that set the learning rate.  Room: train. */
#include <inttypes.h>
#include <math.h>

#include "base/error.h"
#include "base/growing.h"
#include "base/memory.h"
#include "nn/model/model.h"
#include "train/callbacks/monitor.h"
#include "train/hooks/callback.h"

typedef struct reduce_lr {
    leat_reduce_lr_options options;
    leati_monitor monitor;
    int64_t waited, cooling;
} reduce_lr;

static const leat_reduce_lr_options defaults = {.monitor = "val_loss",
                                                .factor = 0.1,
                                                .patience = 10,
                                                .min_delta = 1e-4};
static const leati_growing options_type = LEATI_GROWING(leat_reduce_lr_options, monitor, &defaults);

void leat_reduce_lr_options_init(leat_reduce_lr_options *options, size_t size) {
    leati_growing_init(&options_type, options, size);
}

static leat_status reduce_begin(void *user, leat_training *training, int64_t index, leat_logs *logs,
                                leat_error *err) {
    (void)training, (void)index, (void)logs, (void)err;
    reduce_lr *self = user;
    self->waited = self->cooling = 0;
    leati_monitor_reset(&self->monitor);
    return LEAT_OK;
}

static leat_status lower(reduce_lr *self, leat_training *training, int64_t epoch, leat_error *err) {
    leat_model *model = leat_training_model(training);
    double old = leat_model_learning_rate(model);
    if (old <= self->options.min_lr) return LEAT_OK;
    double rate = fmax(old * self->options.factor, self->options.min_lr);
    LEATI_TRY(leati_prefix(leati_model_set_rate(model, rate, err), err, "ReduceLROnPlateau"));
    if (self->options.verbose)
        leat_training_write(training, "Epoch %05" PRId64 ": ReduceLROnPlateau reducing learning rate to %g.",
                            epoch + 1, rate);
    self->cooling = self->options.cooldown;
    self->waited = 0;
    return LEAT_OK;
}

static leat_status reduce_end(void *user, leat_training *training, int64_t epoch, leat_logs *logs,
                              leat_error *err) {
    reduce_lr *self = user;
    double value = 0;
    leat_logs_set(logs, "lr", leat_model_learning_rate(leat_training_model(training)));
    if (!leati_monitor_get(&self->monitor, training, "ReduceLROnPlateau", logs, &value)) return LEAT_OK;
    if (self->cooling > 0) {
        --self->cooling;
        self->waited = 0;
    }
    if (leati_monitor_better(&self->monitor, value)) {
        self->monitor.best = value;
        self->waited = 0;
    } else if (self->cooling == 0 && ++self->waited >= self->options.patience)
        return lower(self, training, epoch, err);
    return LEAT_OK;
}

/* The learning rate is part of the fit's own state. */
static leat_status reduce_save(void *user, leat_training *training, leat_state *state, leat_error *err) {
    (void)training;
    const reduce_lr *self = user;
    LEATI_TRY(leati_monitor_save(&self->monitor, state, err));
    LEATI_TRY(leati_state_put_i64(state, "wait", self->waited, err));
    return leati_state_put_i64(state, "cooldown_counter", self->cooling, err);
}

static leat_status reduce_load(void *user, leat_training *training, leat_state *state, leat_error *err) {
    (void)training;
    reduce_lr *self = user;
    LEATI_TRY(leati_monitor_load(&self->monitor, state, err));
    LEATI_TRY(leati_state_get_i64(state, "wait", &self->waited, err));
    return leati_state_get_i64(state, "cooldown_counter", &self->cooling, err);
}

leat_status leat_reduce_lr_on_plateau_create(leat_callback *out, size_t size,
                                             const leat_reduce_lr_options *options, leat_error *err) {
    LEATI_GIVEN(out, err);
    LEATI_TRY(leati_callback_begin(out, size, err));
    LEATI_GIVEN(options, err);
    leat_reduce_lr_options all;
    LEATI_TRY(leati_growing_read(&options_type, options, &all, err));
    if (!(all.factor < 1 && all.factor > 0))
        return leati_fail(err, LEAT_EINVAL,
                          "ReduceLROnPlateau: factor: expected a number between 0 and 1, received %g",
                          all.factor);
    reduce_lr *self = leati_calloc(1, sizeof *self);
    if (!self) return leati_fail_memory(err, sizeof *self, "ReduceLROnPlateau");
    self->options = all;
    leat_status status = leati_monitor_init(&self->monitor, all.monitor, all.mode, all.min_delta, err);
    if (status != LEAT_OK) {
        leati_free(self);
        return leati_prefix(status, err, "ReduceLROnPlateau");
    }
    const leat_callback made = {.user = self,
                                .destroy = leati_free,
                                .save_state = reduce_save,
                                .load_state = reduce_load,
                                .on_train_begin = reduce_begin,
                                .on_epoch_end = reduce_end};
    leati_callback_write(&made, out, size);
    return LEAT_OK;
}

typedef struct scheduler {
    leat_schedule schedule;
    void *user;
    int verbose;
} scheduler;

static leat_status schedule_begin(void *user, leat_training *training, int64_t epoch, leat_logs *logs,
                                  leat_error *err) {
    (void)logs;
    const scheduler *self = user;
    leat_model *model = leat_training_model(training);
    double rate = self->schedule(self->user, epoch, leat_model_learning_rate(model));
    if (!isfinite(rate))
        return leati_fail(err, LEAT_EINVAL,
                          "LearningRateScheduler: expected a finite number from the schedule, received %g",
                          rate);
    LEATI_TRY(leati_prefix(leati_model_set_rate(model, rate, err), err, "LearningRateScheduler"));
    if (self->verbose)
        leat_training_write(training,
                            "Epoch %05" PRId64 ": LearningRateScheduler setting learning rate to %g.",
                            epoch + 1, rate);
    return LEAT_OK;
}

static leat_status schedule_end(void *user, leat_training *training, int64_t epoch, leat_logs *logs,
                                leat_error *err) {
    (void)user, (void)epoch, (void)err;
    leat_logs_set(logs, "lr", leat_model_learning_rate(leat_training_model(training)));
    return LEAT_OK;
}

leat_status leat_learning_rate_scheduler_create(leat_callback *out, size_t size, leat_schedule schedule,
                                                void *user, int verbose, leat_error *err) {
    LEATI_GIVEN(out, err);
    LEATI_TRY(leati_callback_begin(out, size, err));
    LEATI_GIVEN(schedule, err);
    scheduler *self = leati_calloc(1, sizeof *self);
    if (!self) return leati_fail_memory(err, sizeof *self, "LearningRateScheduler");
    *self = (scheduler){schedule, user, verbose};
    const leat_callback made = {.user = self,
                                .destroy = leati_free,
                                .on_epoch_begin = schedule_begin,
                                .on_epoch_end = schedule_end};
    leati_callback_write(&made, out, size);
    return LEAT_OK;
}
