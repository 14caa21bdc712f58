/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the validation of a fit.  Room: train. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/os/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "feed/interrupt.h"
#include "feed/stats/trace.h"
#include "nn/model/model.h"
#include "train/loop/fit_loop.h"
#include "train/loop/fit_state.h"

/* Sets *more to false if there was no batch for this step. */
static leat_status validate_step(leati_fit_loop *loop, leati_meter *meter, bool *more, leat_error *err) {
    leati_runner *runner = &loop->validation;
    int64_t step = loop->validated;
    leat_logs logs = {0};
    const leati_compiled_step *compiled = NULL;
    LEATI_TRY(leati_runner_take(runner, more, err));
    if (!*more) return LEAT_OK;
    leat_logs_set(&logs, "batch", (double)step);
    leat_logs_set(&logs, "size", (double)runner->size);
    LEATI_TRY(leati_training_begin_batch(&loop->training, LEATI_HOOK_on_test_batch_begin, runner->failed,
                                         step, &logs, err));
    LEATI_TRY(leati_prefix(leati_runner_run(runner, &compiled, err), err, "batch %" PRId64, step));
    LEATI_TRY(leati_prefix(leati_runner_measure(runner, meter, loop->model, compiled, err), err,
                           "batch %" PRId64, step));
    leati_meter_logs(meter, loop->model, "", &logs);
    return leati_training_call(&loop->training, LEATI_HOOK_on_test_batch_end, step, &logs, err);
}

static int64_t steps_of(const leati_fit_loop *loop) {
    return loop->validation.pace == LEATI_PACE_GENERATOR ? loop->options->validation_steps
                                                         : leat_feed_length(loop->validation.feed);
}

static leat_status validate_steps(leati_fit_loop *loop, leati_meter *meter, bool stoppable, leat_error *err) {
    const leat_training *training = &loop->training;
    bool more = true;
    int64_t steps = steps_of(loop);
    for (loop->validated = 0; loop->validated < steps; ++loop->validated) {
        loop->validation_interrupted =
            loop->validated > 0 && stoppable && leati_training_is_requested(training);
        if (loop->validation_interrupted)
            return leati_fail(err, LEAT_ESTOPPED, "stopped on request after batch %" PRId64 " of %" PRId64,
                              loop->validated - 1, steps);
        leat_status status = validate_step(loop, meter, &more, err);
        loop->validation_interrupted = status == LEAT_ESTOPPED && leati_training_is_requested(training);
        LEATI_TRY(status);
        if (!more) break;
    }
    loop->validation_ended = !more && loop->validation.pace == LEATI_PACE_GENERATOR;
    return LEAT_OK;
}

/* Fails if a generator ended together with the previous validation, so that no hook is called. */
static leat_status look_ahead(leati_fit_loop *loop, leat_error *err) {
    bool more = true;
    if (loop->validation.pace != LEATI_PACE_GENERATOR) return LEAT_OK;
    leat_status status = leati_runner_await(&loop->validation, &more, err);
    loop->validation_interrupted = status == LEAT_ESTOPPED && leati_training_is_requested(&loop->training);
    LEATI_TRY(status);
    if (more) return LEAT_OK;
    loop->validation_ended = true;
    loop->validated = 0;
    return leati_fail(err, LEAT_EINVAL, "the generator of validation data has ended");
}

/* Runs one pass of the validation data from index 0, or the next validation_steps steps of a generator. */
static leat_status validate_pass(leati_fit_loop *loop, leat_logs *logs, leat_error *err) {
    leat_training *training = &loop->training;
    const bool stoppable = !loop->validating_whole && !leati_training_is_requested(training);
    const bool interrupts = stoppable && !loop->options->dist;
    leati_feed_interrupt_by(loop->validation.feed, interrupts ? &loop->model->stop_requested : NULL);
    LEATI_TRY(look_ahead(loop, err));
    leati_meter_reset(&loop->validation_meter);
    LEATI_TRY(leati_training_call(training, LEATI_HOOK_on_test_begin, 0, logs, err));
    LEATI_TRY(validate_steps(loop, &loop->validation_meter, stoppable, err));
    leati_meter_logs(&loop->validation_meter, loop->model, "", logs);
    LEATI_TRY(leati_training_call(training, LEATI_HOOK_on_test_end, 0, logs, err));
    return leat_feed_end_pass(loop->validation.feed, err);
}

/* A validation that a request to stop interrupts will begin anew in the fit that continues.  So the states of stateful
 * layers are kept, since batches of validation change them too. */
static leat_status keep_states(leati_fit_loop *loop, leat_error *err) {
    const leati_weights *weights = &loop->model->weights;
    const void *states = leati_weights_slab(weights, LEATI_SLAB_STATES);
    if (!loop->checkpoints.options.folder || !states || weights->state_bytes == 0) return LEAT_OK;
    if (!loop->states_before) loop->states_before = leati_calloc(weights->state_bytes, 1);
    if (!loop->states_before) return leati_fail_memory(err, weights->state_bytes, "states of layers");
    memcpy(loop->states_before, states, weights->state_bytes);
    return LEAT_OK;
}

static void restore_states(const leati_fit_loop *loop) {
    const leati_weights *weights = &loop->model->weights;
    if (!loop->states_before) return;
    memcpy(leati_weights_slab(weights, LEATI_SLAB_STATES), loop->states_before, weights->state_bytes);
    leati_weights_changed(weights, LEATI_SLAB_STATES);
}

static leat_status validate(leati_fit_loop *loop, leat_logs *logs, leat_error *err) {
    if (loop->validating)
        return leati_fail(err, LEAT_EINVAL, "validation cannot be started in a hook of validation");
    if (loop->validation_interrupted)
        return leati_fail(err, LEAT_ESTOPPED, "validation was stopped on request");
    int64_t start = leati_now_ns();
    LEATI_TRY(keep_states(loop, err));
    loop->validation_start = leati_fit_feed_of(&loop->validation);
    loop->validating = true;
    leat_status status = validate_pass(loop, logs, err);
    loop->validating = false;
    if (loop->validation_interrupted) restore_states(loop);
    leati_trace_span(loop->options->trace, loop->epoch_lane, "validation", start, leati_now_ns(), -1, -1);
    return status;
}

leat_status leati_fit_validate_in_hook(leat_training *training, leat_logs *logs, leat_error *err) {
    leati_fit_loop *loop = training->loop;
    if (loop->options->dist && loop->options->dist->size > 1)
        return leati_fail(
            err, LEAT_ENOTSUP,
            "validation in a hook is not supported with several ranks: hooks run on rank 0 only");
    const bool whole = loop->validating_whole;
    loop->validating_whole = loop->checkpoints.options.folder != NULL;
    leat_status status = validate(loop, logs, err);
    loop->validating_whole = whole;
    return status;
}

static bool is_due(const leat_fit_options *options, int64_t epoch) {
    if (!options->validation) return false;
    if (!options->validation_epochs) return (epoch + 1) % options->validation_freq == 0;
    for (int i = 0; i < options->validation_epoch_count; ++i)
        if (options->validation_epochs[i] == epoch + 1) return true;
    return false;
}

static void name_results(const leat_logs *results, leat_logs *logs) {
    for (int i = 0; i < results->count; ++i) {
        char name[LEAT_LOG_NAME_BYTES];
        snprintf(name, sizeof name, "val_%.*s", LEAT_LOG_NAME_BYTES - 5, results->items[i].name);
        leat_logs_set(logs, name, results->items[i].value);
    }
}

static void log_results(leati_fit_loop *loop, const leat_logs *logs) {
    leati_text text = {0};
    for (int i = 0; i < logs->count; ++i)
        leati_text_add(&text, " - %s: %.4f", logs->items[i].name, logs->items[i].value);
    leati_training_log(&loop->training, LEAT_LOG_INFO, "leat: validation after step %" PRId64 "%s",
                       loop->position.steps, text.data ? text.data : "");
    leati_text_fini(&text);
}

/* After a request to stop, a fit with checkpoints leaves the validation to the fit that continues. */
leat_status leati_fit_validate_inside(leati_fit_loop *loop, leat_error *err) {
    leat_logs results = {0}, *logs = &loop->run_logs;
    if (!loop->position.validation_due || loop->validation_ended) return LEAT_OK;
    if (loop->checkpoints.options.folder && leati_training_is_requested(&loop->training)) return LEAT_OK;
    int64_t start = leati_now_ns();
    leat_status status = validate(loop, &results, err);
    loop->wall_ns -= leati_now_ns() - start; /* the time of the steps is measured around this validation */
    if (loop->validation_interrupted) {
        if (err) *err = (leat_error){0};
        return LEAT_OK;
    }
    LEATI_TRY(leati_prefix(status, err, "validation after step %" PRId64, loop->position.steps));
    loop->position.validation_due = false;
    name_results(&results, logs);
    log_results(loop, logs);
    status =
        leati_history_add_validation(loop->history, loop->position.epoch, loop->position.steps, logs, err);
    logs->count = 0;
    return status;
}

/* The epoch gets no val_* if a request to stop ends the validation early, since results of some batches would look
 * like results of all; nor if the generator has no batch left for this epoch. */
leat_status leati_fit_validate_epoch(leati_fit_loop *loop, int64_t epoch, leat_logs *logs, leat_error *err) {
    leat_logs results = {0};
    if (!is_due(loop->options, epoch) || loop->validation_ended) return LEAT_OK;
    loop->validation_missed = leati_training_is_requested(&loop->training);
    if (loop->validation_missed) return LEAT_OK;
    leat_status status = validate(loop, &results, err);
    loop->validation_missed = loop->validation_interrupted;
    if (loop->validation_interrupted || (loop->validation_ended && loop->validated == 0)) {
        if (err) *err = (leat_error){0};
        return LEAT_OK;
    }
    LEATI_TRY(leati_prefix(status, err, "validation"));
    name_results(&results, logs);
    return LEAT_OK;
}

void leati_fit_log_validation(leati_fit_loop *loop) {
    if (!loop->validation.feed) return;
    int64_t skips = leati_runner_skips(&loop->validation);
    if (skips > 0)
        leati_training_log(&loop->training, LEAT_LOG_WARNING,
                           "leat: validation passed over %" PRId64 " bad batch%s", skips,
                           skips == 1 ? "" : "es");
    if (loop->validation_ended && !loop->validation_end_logged)
        leati_training_log(&loop->training, LEAT_LOG_WARNING,
                           "leat: validation: the generator ended after %" PRId64 " of %" PRId64 " steps",
                           loop->validated, loop->options->validation_steps);
    loop->validation_end_logged = loop->validation_ended;
}
