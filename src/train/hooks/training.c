/* SPDX-License-Identifier: Apache-2.0 */
/* Calls callbacks, and implements the functions that callbacks may call.  Room: train. */
#include "train/hooks/training.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "dist/dist.h"
#include "train/hooks/callback.h"
#include "train/hooks/sync.h"
#include "train/step/check.h"
#include "train/step/meter.h"

const leat_training_params *leat_training_params_get(const leat_training *training) {
    if (!training) return NULL;
    return &training->params;
}

leat_model *leat_training_model(const leat_training *training) {
    if (!training) return NULL;
    return training->model;
}

void leat_training_stop(leat_training *training, const char *reason) {
    if (!training) return;
    if (training->stop) return;
    training->stop = true;
    snprintf(training->stop_reason, sizeof training->stop_reason, "%s", reason ? reason : "stopped");
}

const char *leat_training_stop_reason(const leat_training *training) {
    return training && training->stop ? training->stop_reason : NULL;
}

void leat_model_stop_training(leat_model *model) {
    if (!model) return;
    atomic_store_explicit(&model->stop_requested, true, memory_order_relaxed);
}

void leati_training_enter(leat_training *training) {
    if (training->model->runs++ == 0) atomic_store(&training->model->stop_requested, false);
}

void leati_training_leave(leat_training *training) {
    --training->model->runs;
}

bool leati_training_is_requested(const leat_training *training) {
    if (training->dist) return training->requested;
    return atomic_load_explicit(&training->model->stop_requested, memory_order_relaxed);
}

bool leati_training_should_stop(leat_training *training) {
    if (leati_training_is_requested(training) && !training->stop) {
        training->stopped_on_request = true;
        leat_training_stop(training, "stopped on request");
    }
    return training->stop;
}

leat_status leat_training_validate(leat_training *training, leat_logs *logs, leat_error *err) {
    LEATI_GIVEN(training, err);
    LEATI_GIVEN(logs, err);
    if (!training->validate) return leati_fail(err, LEAT_EINVAL, "training has no validation data");
    return training->validate(training, logs, err);
}

void leat_training_write(leat_training *training, const char *format, ...) {
    if (!training || !format || training->params.verbose == 0) return;
    va_list arguments;
    va_start(arguments, format);
    leati_log_arguments(LEAT_LOG_INFO, format, arguments);
    va_end(arguments);
}

void leati_training_log(const leat_training *training, leat_log_level level, const char *format, ...) {
    if (training->params.verbose == 0) return;
    va_list arguments;
    va_start(arguments, format);
    leati_log_arguments(level, format, arguments);
    va_end(arguments);
}

void leat_training_write_text(leat_training *training, const char *text) {
    if (training && text) leat_training_write(training, "%s", text);
}

leat_status leati_training_name(leat_training *training, bool do_validation, leat_error *err) {
    int count = leati_meter_names(training->model, training->names, LEATI_MAX_NAMES);
    int all = do_validation ? 2 * count : count;
    if (all > LEATI_MAX_NAMES)
        return leati_fail(err, LEAT_ENOTSUP,
                          "loss and metrics%s have %d values, but at most %d can be logged: compile the "
                          "model with fewer metrics",
                          do_validation ? ", with those of validation," : "", all, LEATI_MAX_NAMES);
    for (int i = count; i < all; ++i)
        snprintf(training->names[i], LEAT_LOG_NAME_BYTES, "val_%.*s", LEAT_LOG_NAME_BYTES - 5,
                 training->names[i - count]);
    for (int i = 0; i < all; ++i) training->name_list[i] = training->names[i];
    training->params.metric_count = all;
    training->params.metrics = training->name_list;
    training->params.do_validation = do_validation;
    return LEAT_OK;
}

static leat_hook hook_of(const leat_callback *callback, leati_hook hook, const char **name) {
    switch (hook) {
#define HOOK_CASE(hook_name)                                                                                 \
    case LEATI_HOOK_##hook_name: *name = #hook_name; return callback->hook_name;
        LEAT_HOOK_LIST(HOOK_CASE)
#undef HOOK_CASE
    }
    return NULL;
}

static leat_status call_one(leat_training *training, const leat_callback *callback, leati_hook hook,
                            int64_t index, leat_logs *logs, leat_error *err) {
    const char *name = NULL;
    leat_hook function = hook_of(callback, hook, &name);
    if (!function) return LEAT_OK;
    leat_status status = function(callback->user, training, index, logs, err);
    return leati_prefix(status, err, "%s %lld", name, (long long)index);
}

static leat_status call_callbacks(leat_training *training, leati_hook hook, int64_t index, leat_logs *logs,
                                  leat_error *err) {
    LEATI_TRY(call_one(training, &training->progress, hook, index, logs, err));
    for (int i = 0; i < training->callback_count; ++i)
        LEATI_TRY(call_one(training, &training->callbacks[i], hook, index, logs, err));
    return LEAT_OK;
}

static uint32_t bit_of(leati_hook hook) {
    return UINT32_C(1) << (unsigned)hook;
}

leat_status leati_training_meet(leat_training *training, leat_error *err) {
    const char *name = NULL;
    if (!training->dist) return LEAT_OK;
#define NOTE_HOOK(hook)                                                                                      \
    for (int i = 0; i < training->callback_count; ++i)                                                       \
        if (hook_of(&training->callbacks[i], LEATI_HOOK_##hook, &name))                                      \
            training->called |= bit_of(LEATI_HOOK_##hook);
    LEAT_HOOK_LIST(NOTE_HOOK)
#undef NOTE_HOOK
    return leati_dist_broadcast(training->dist, &training->called, sizeof training->called, 0, err);
}

static bool is_called(const leat_training *training, leati_hook hook) {
    return training->called & bit_of(hook);
}

/* After a hook of a batch, only a callback of rank 0 can have something to tell: progress bar and history, which
 * have such hooks, too, never fail and change nothing. */
static bool is_of_batch(leati_hook hook) {
    return hook == LEATI_HOOK_on_train_batch_begin || hook == LEATI_HOOK_on_train_batch_end ||
           hook == LEATI_HOOK_on_test_batch_begin || hook == LEATI_HOOK_on_test_batch_end ||
           hook == LEATI_HOOK_on_predict_batch_begin || hook == LEATI_HOOK_on_predict_batch_end;
}

/* In hooks of batches, which are called too often, rank 0 cannot save the optimizer. */
static leat_status collect(leat_training *training, leati_hook hook, leat_error *err) {
    const bool collects = training->collect && is_called(training, hook) && !is_of_batch(hook);
    return collects ? training->collect(training, err) : LEAT_OK;
}

/* Gives the histories of all ranks the logs of rank 0, to which callbacks such as ReduceLROnPlateau have added. */
static leat_status share_logs(leat_training *training, leat_status status, leat_logs *logs, leat_error *err) {
    LEATI_TRY(leati_training_sync(training, status, err));
    return leati_dist_broadcast(training->dist, logs, sizeof *logs, 0, err);
}

leat_status leati_training_call(leat_training *training, leati_hook hook, int64_t index, leat_logs *logs,
                                leat_error *err) {
    LEATI_TRY(collect(training, hook, err));
    leat_status status = call_callbacks(training, hook, index, logs, err);
    if (training->dist && training->dist->size > 1 && hook == LEATI_HOOK_on_epoch_end)
        LEATI_TRY(share_logs(training, status, logs, err));
    if (status == LEAT_OK) status = call_one(training, &training->history, hook, index, logs, err);
    if (!training->dist) return status;
    if (!is_of_batch(hook)) return leati_training_sync(training, status, err);
    return is_called(training, hook) ? leati_training_follow(training, status, err) : status;
}

leat_status leati_training_begin_batch(leat_training *training, leati_hook hook, leat_status taken,
                                       int64_t index, leat_logs *logs, leat_error *err) {
    if (taken == LEAT_OK || training->dist->rank != 0)
        return leati_training_call(training, hook, index, logs, err);
    return is_called(training, hook) ? leati_training_follow(training, taken, err) : LEAT_OK;
}

leat_status leati_training_show_epoch(leat_training *training, int64_t epoch, leat_logs *logs,
                                      leat_error *err) {
    return call_one(training, &training->progress, LEATI_HOOK_on_epoch_begin, epoch, logs, err);
}

leat_status leati_training_save_callbacks(leat_training *training, leati_snapshot *snapshot,
                                          leat_error *err) {
    leat_state count = {.snapshot = snapshot, .prefix = "callbacks/"};
    LEATI_TRY(leati_state_put_i64(&count, "count", training->callback_count, err));
    for (int i = 0; i < training->callback_count; ++i) {
        const leat_callback *callback = &training->callbacks[i];
        leat_state state = {.snapshot = snapshot};
        if (!callback->save_state) continue;
        snprintf(state.prefix, sizeof state.prefix, "callback.%d/", i);
        leat_status status = callback->save_state(callback->user, training, &state, err);
        LEATI_TRY(leati_prefix(status, err, "save_state of callback %d", i));
    }
    return LEAT_OK;
}

leat_status leati_training_load_callbacks(leat_training *training, const leati_image *image,
                                          leat_error *err) {
    const leat_state all = {.image = image, .prefix = "callbacks/"};
    int64_t count = 0;
    LEATI_TRY(leati_state_get_i64(&all, "count", &count, err));
    if (count != training->callback_count)
        return leati_fail(err, LEAT_EINVAL, "the checkpoint was written with %lld callbacks, this fit has %d",
                          (long long)count, training->callback_count);
    for (int i = 0; i < training->callback_count; ++i) {
        const leat_callback *callback = &training->callbacks[i];
        leat_state state = {.image = image};
        if (!callback->load_state) continue;
        snprintf(state.prefix, sizeof state.prefix, "callback.%d/", i);
        leat_status status = callback->load_state(callback->user, training, &state, err);
        LEATI_TRY(leati_prefix(status, err, "load_state of callback %d", i));
    }
    return LEAT_OK;
}

leat_status leati_training_set_callbacks(leat_training *training, leat_callback *const *callbacks, int count,
                                         leat_error *err) {
    LEATI_TRY(leati_check_list(callbacks, count, "callback", err));
    if (count == 0) return LEAT_OK;
    training->callbacks = leati_calloc((size_t)count, sizeof *training->callbacks);
    if (!training->callbacks)
        return leati_fail_memory(err, (size_t)count * sizeof *training->callbacks, "callbacks");
    for (int i = 0; i < count; ++i) {
        if (!callbacks[i]) return leati_fail(err, LEAT_EINVAL, "callback %d is NULL", i);
        leat_status status = leati_callback_read(callbacks[i], &training->callbacks[i], err);
        if (status != LEAT_OK) return leati_prefix(status, err, "callback %d", i);
    }
    training->callback_count = count;
    return LEAT_OK;
}

leat_status leati_training_set_verbose(leat_training *training, int verbose, leat_error *err) {
    training->params.verbose = verbose;
    if (verbose == 0) return LEAT_OK;
    return leat_progbar_logger_create(&training->progress, sizeof training->progress, verbose == 1 ? 1 : 2,
                                      err);
}

void leati_training_fini(leat_training *training) {
    leat_callback_destroy(&training->progress);
    leati_free(training->callbacks);
    training->callbacks = NULL;
    training->callback_count = 0;
}
