/* SPDX-License-Identifier: Apache-2.0 */
/* fit_generator: epochs of steps, validation between them, callbacks around everything.  Layer: train. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "train/history.h"
#include "train/progress.h"
#include "train/runner.h"
#include "train/training.h"
#include "train/verdict.h"

leat_fit_options leat_fit_options_default(void) {
    return (leat_fit_options){.epochs = 1,
                              .verbose = 1,
                              .validation_freq = 1,
                              .max_queue_size = 10,
                              .workers = 1,
                              .shuffle = LEAT_SHUFFLE_AUTO,
                              .faults = {.max_deaths = 3}};
}

/* All that one fit holds.  On the heap: the logs' names make it large. */
typedef struct fit_loop {
    leat_training training;
    leat_model *model;
    const leat_fit_options *options;
    leati_runner train, validation;
    leati_meter meter;
    leat_history *history;
    leati_progress *progress;
    int64_t steps; /* of the epoch in hand */
    int64_t wall_ns;
    bool validating;
    bool validation_cut; /* a request to stop ended a validation early: its feed is in the middle of a pass */
} fit_loop;

static leat_status check_options(const leat_model *model, const leat_fit_options *options, leat_error *err) {
    if (!model->compiled.ready)
        return leati_fail(err, LEAT_EINVAL,
                          "the model must be compiled before training: leat_model_compile, or "
                          "--optimizer and --loss");
    if (options->initial_epoch < 0 || options->steps_per_epoch < 0 || options->validation_steps < 0)
        return leati_fail(err, LEAT_EINVAL,
                          "initial_epoch, steps_per_epoch and validation_steps are at least 0");
    if (!options->validation_epochs && options->validation_freq < 1)
        return leati_fail(err, LEAT_EINVAL, "validation_freq is at least 1, got %" PRId64,
                          options->validation_freq);
    return LEAT_OK;
}

static leat_feed_options feed_options(const leat_fit_options *options) {
    leat_feed_options feed = leat_feed_options_default();
    feed.workers = options->workers;
    feed.use_multiprocessing = options->use_multiprocessing;
    feed.max_queue_size = options->max_queue_size;
    feed.seed = options->seed;
    feed.memory = options->feed_memory;
    feed.faults = options->faults;
    feed.trace = options->trace;
    return feed;
}

static leat_status open_training(fit_loop *loop, const leat_sequence *sequence, leat_error *err) {
    const leat_fit_options *options = loop->options;
    leati_runner_options open = {.mode = LEATI_TRAIN,
                                 .class_weight = options->class_weight,
                                 .class_weight_count = options->class_weight_count,
                                 .threads = options->threads,
                                 .feed = feed_options(options)};
    int64_t epochs = options->epochs - options->initial_epoch;
    open.feed.shuffle = options->shuffle;
    open.feed.shuffle_window = options->shuffle_window;
    if (options->steps_per_epoch == 0)
        open.feed.passes = epochs;
    else if (!leati_mul_i64(options->steps_per_epoch, epochs, &open.feed.limit))
        open.feed.limit = 0; /* more than there will ever be */
    return leati_runner_open(&loop->train, loop->model, sequence, &open, err);
}

static leat_status open_validation(fit_loop *loop, leat_error *err) {
    const leat_fit_options *options = loop->options;
    if (!options->validation) return LEAT_OK;
    leati_runner_options open = {.mode = LEATI_TEST,
                                 .steps = options->validation_steps,
                                 .threads = options->threads,
                                 .feed = feed_options(options)};
    leat_status status = leati_runner_open(&loop->validation, loop->model, options->validation, &open, err);
    return leati_prefix(status, err, "validation data");
}

static leat_status validate_step(fit_loop *loop, leati_meter *meter, int64_t step, leat_error *err) {
    leati_runner *runner = &loop->validation;
    leat_logs logs = {0};
    const leati_compiled_step *ran = NULL;
    LEATI_TRY(leati_runner_take(runner, err));
    leat_logs_set(&logs, "batch", (double)step);
    leat_logs_set(&logs, "size", (double)runner->size);
    LEATI_TRY(leati_training_call(&loop->training, LEATI_HOOK_on_test_batch_begin, step, &logs, err));
    LEATI_TRY(leati_prefix(leati_runner_run(runner, &ran, err), err, "batch %" PRId64, step));
    leati_meter_add(meter, loop->model, ran, runner->size);
    leati_meter_logs(meter, loop->model, "", &logs);
    return leati_training_call(&loop->training, LEATI_HOOK_on_test_batch_end, step, &logs, err);
}

/* One pass of the validation's feed, from index 0. */
static leat_status validate_pass(fit_loop *loop, leat_logs *logs, leat_error *err) {
    leat_training *training = &loop->training;
    bool requested = leati_training_is_requested(training);
    leati_meter meter;
    leati_meter_reset(&meter);
    LEATI_TRY(leati_training_call(training, LEATI_HOOK_on_test_begin, 0, logs, err));
    int64_t steps = leat_feed_length(loop->validation.feed);
    for (int64_t step = 0; step < steps; ++step) {
        loop->validation_cut = step > 0 && !requested && leati_training_is_requested(training);
        if (loop->validation_cut)
            return leati_fail(err, LEAT_ESTOPPED, "stopped on request after batch %" PRId64 " of %" PRId64,
                              step - 1, steps);
        LEATI_TRY(validate_step(loop, &meter, step, err));
    }
    leati_meter_logs(&meter, loop->model, "", logs);
    LEATI_TRY(leati_training_call(training, LEATI_HOOK_on_test_end, 0, logs, err));
    return leat_feed_end_pass(loop->validation.feed, err);
}

static leat_status validate(leat_training *training, leat_logs *logs, leat_error *err) {
    fit_loop *loop = training->loop;
    if (loop->validating) return leati_fail(err, LEAT_EINVAL, "a hook of validation cannot validate");
    if (loop->validation_cut) return leati_fail(err, LEAT_ESTOPPED, "validation was stopped on request");
    loop->validating = true;
    leat_status status = validate_pass(loop, logs, err);
    loop->validating = false;
    return status;
}

static bool validates_after(const leat_fit_options *options, int64_t epoch) {
    if (!options->validation) return false;
    if (!options->validation_epochs) return (epoch + 1) % options->validation_freq == 0;
    for (int i = 0; i < options->validation_epoch_count; ++i)
        if (options->validation_epochs[i] == epoch + 1) return true;
    return false;
}

/* A request to stop ends it, and the epoch then has no val_*: those of some batches would pass for those of all. */
static leat_status validate_epoch(fit_loop *loop, leat_logs *logs, leat_error *err) {
    leat_logs results = {0};
    if (leati_training_is_requested(&loop->training)) return LEAT_OK;
    leat_status status = validate(&loop->training, &results, err);
    if (loop->validation_cut) {
        if (err) *err = (leat_error){0};
        return LEAT_OK;
    }
    LEATI_TRY(leati_prefix(status, err, "validation"));
    for (int i = 0; i < results.count; ++i) {
        char name[LEAT_LOG_NAME_BYTES];
        snprintf(name, sizeof name, "val_%.*s", LEAT_LOG_NAME_BYTES - 5, results.items[i].name);
        leat_logs_set(logs, name, results.items[i].value);
    }
    return LEAT_OK;
}

static leat_status train_step(fit_loop *loop, int64_t step, leat_error *err) {
    leat_logs logs = {0};
    const leati_compiled_step *ran = NULL;
    LEATI_TRY(leati_runner_take(&loop->train, err));
    leat_logs_set(&logs, "batch", (double)step);
    leat_logs_set(&logs, "size", (double)loop->train.size);
    LEATI_TRY(leati_training_call(&loop->training, LEATI_HOOK_on_train_batch_begin, step, &logs, err));
    LEATI_TRY(leati_prefix(leati_runner_run(&loop->train, &ran, err), err, "batch %" PRId64, step));
    leati_meter_add(&loop->meter, loop->model, ran, loop->train.size);
    leati_meter_logs(&loop->meter, loop->model, "", &logs);
    return leati_training_call(&loop->training, LEATI_HOOK_on_train_batch_end, step, &logs, err);
}

static leat_status train_steps(fit_loop *loop, int64_t *done, leat_error *err) {
    int64_t start = leati_now_ns();
    leat_status status = LEAT_OK;
    for (*done = 0; status == LEAT_OK && *done < loop->steps; ++*done) {
        if (*done > 0 && leati_training_should_stop(&loop->training)) break;
        status = train_step(loop, *done, err);
    }
    loop->wall_ns += leati_now_ns() - start;
    return status;
}

static leat_status run_epoch(fit_loop *loop, int64_t epoch, leat_error *err) {
    leat_logs logs = {0};
    int64_t done = 0;
    loop->steps = loop->options->steps_per_epoch > 0 ? loop->options->steps_per_epoch
                                                     : leat_feed_length(loop->train.feed);
    loop->training.params.steps = loop->steps;
    leati_meter_reset(&loop->meter);
    LEATI_TRY(leati_training_call(&loop->training, LEATI_HOOK_on_epoch_begin, epoch, &logs, err));
    LEATI_TRY(train_steps(loop, &done, err));
    leati_meter_logs(&loop->meter, loop->model, "", &logs);
    if (done == loop->steps && validates_after(loop->options, epoch))
        LEATI_TRY(validate_epoch(loop, &logs, err));
    LEATI_TRY(leati_training_call(&loop->training, LEATI_HOOK_on_epoch_end, epoch, &logs, err));
    return leat_feed_end_pass(loop->train.feed, err);
}

static leat_status run_epochs(fit_loop *loop, leat_error *err) {
    leat_logs logs = {0};
    LEATI_TRY(leati_training_call(&loop->training, LEATI_HOOK_on_train_begin, 0, &logs, err));
    for (int64_t epoch = loop->options->initial_epoch; epoch < loop->options->epochs; ++epoch) {
        LEATI_TRY(leati_prefix(run_epoch(loop, epoch, err), err, "epoch %" PRId64, epoch + 1));
        if (leati_training_should_stop(&loop->training)) break;
    }
    return leati_training_call(&loop->training, LEATI_HOOK_on_train_end, 0, &logs, err);
}

static void finish(fit_loop *loop) {
    leat_verdict verdict = {.steps = loop->train.steps,
                            .wall_ns = loop->wall_ns,
                            .data_wait_ns = loop->train.wait_ns,
                            .compute_ns = loop->train.compute_ns,
                            .workers = loop->options->workers,
                            .use_multiprocessing = loop->options->use_multiprocessing,
                            .threads = loop->train.threads,
                            .cores = leati_core_count()};
    if (loop->train.feed) {
        leat_feed_stats stats = leat_feed_stats_get(loop->train.feed);
        if (stats.batches > 0) verdict.get_mean_ns = stats.get_ns / stats.batches;
    }
    leati_verdict_explain(&verdict);
    leati_history_set_verdict(loop->history, &verdict);
    if (verdict.steps > 0) leat_training_write(&loop->training, "%s\n", verdict.text);
}

static leat_status prepare(fit_loop *loop, leat_model *model, const leat_fit_options *options,
                           int64_t samples, leat_error *err) {
    loop->model = model;
    loop->options = options;
    leat_training *training = &loop->training;
    training->model = model;
    training->loop = loop;
    training->params.epochs = options->epochs;
    training->params.samples = samples;
    training->params.verbose = options->verbose;
    training->callbacks = options->callbacks;
    training->callback_count = options->callback_count;
    training->history = leati_history_callback(loop->history);
    training->validate = options->validation ? validate : NULL;
    return leati_training_name(training, options->validation != NULL, err);
}

static void announce(fit_loop *loop) {
    const leat_fit_options *options = loop->options;
    leat_feed_stats stats = leat_feed_stats_get(loop->train.feed);
    leat_training_write(
        &loop->training,
        "leat: %d worker %s%s, %d compute thread%s, %d core%s; the feed's ring holds %.1f MB\n",
        options->workers, options->use_multiprocessing ? "process" : "thread",
        options->workers == 1          ? ""
        : options->use_multiprocessing ? "es"
                                       : "s",
        loop->train.threads, loop->train.threads == 1 ? "" : "s", leati_core_count(),
        leati_core_count() == 1 ? "" : "s", (double)stats.ring_bytes / 1e6);
}

static leat_status fit(fit_loop *loop, const leat_sequence *sequence, leat_error *err) {
    const leat_fit_options *options = loop->options;
    LEATI_TRY(leati_progress_create(&loop->progress, options->verbose, err));
    loop->training.progress = leati_progress_callback(loop->progress);
    if (options->epochs <= options->initial_epoch) return run_epochs(loop, err);
    LEATI_TRY(open_training(loop, sequence, err));
    loop->training.params.batch_size = sequence->spec.batch_size;
    LEATI_TRY(open_validation(loop, err));
    announce(loop);
    return run_epochs(loop, err);
}

static leat_status run_fit(leat_model *model, const leat_sequence *sequence, const leat_fit_options *options,
                           int64_t samples, leat_history **history, leat_error *err) {
    if (history) *history = NULL;
    LEATI_TRY(check_options(model, options, err));
    fit_loop *loop = leati_calloc(1, sizeof *loop);
    if (!loop) return leati_fail_memory(err, sizeof *loop, "training");
    leat_status status = leati_history_create(&loop->history, err);
    if (status == LEAT_OK) status = prepare(loop, model, options, samples, err);
    if (status == LEAT_OK) {
        leati_training_enter(&loop->training);
        status = fit(loop, sequence, err);
        leati_training_leave(&loop->training);
        finish(loop);
    }
    leati_runner_close(&loop->validation);
    leati_runner_close(&loop->train);
    leati_progress_destroy(&loop->progress);
    if (history)
        *history = loop->history;
    else
        leat_history_destroy(&loop->history);
    leati_free(loop);
    return status;
}

leat_status leat_model_fit_generator(leat_model *model, const leat_sequence *sequence,
                                     const leat_fit_options *options, leat_history **history,
                                     leat_error *err) {
    leat_fit_options preset = leat_fit_options_default();
    return run_fit(model, sequence, options ? options : &preset, 0, history, err);
}

leat_status leat_model_fit(leat_model *model, const leat_arrays *arrays, int64_t batch_size,
                           const leat_fit_options *options, leat_history **history, leat_error *err) {
    leat_sequence sequence = {0};
    leat_fit_options preset = leat_fit_options_default();
    if (history) *history = NULL;
    LEATI_TRY(leati_arrays_sequence(&sequence, arrays, batch_size, err));
    leat_status status = run_fit(model, &sequence, options ? options : &preset,
                                 arrays->inputs[0].tensor.shape[0], history, err);
    leat_sequence_destroy(&sequence);
    return status;
}
