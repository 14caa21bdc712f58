/* SPDX-License-Identifier: Apache-2.0 */
/* fit_generator and fit: check the options, open the feeds, run the epochs, and write the verdict.  Room: train. */
#include <inttypes.h>
#include <string.h>

#include "base/os/clock.h"
#include "base/error.h"
#include "base/growing.h"
#include "base/memory.h"
#include "feed/interrupt.h"
#include "feed/stats/trace.h"
#include "tensor/sequence.h"
#include "train/history/cores.h"
#include "train/loop/fit_loop.h"
#include "train/loop/fit_state.h"
#include "train/step/check.h"

static const leat_fit_options defaults = {.epochs = 1,
                                          .verbose = 1,
                                          .validation_freq = 1,
                                          .max_queue_size = 10,
                                          .workers = 1,
                                          .shuffle = LEAT_SHUFFLE_AUTO,
                                          .faults = {.max_deaths = 3}};
static const leati_growing options_type = LEATI_GROWING(leat_fit_options, epochs, &defaults);

void leat_fit_options_init(leat_fit_options *options, size_t size) {
    leati_growing_init(&options_type, options, size);
}

/* The data of a fit, and the number of worker threads that could not be ended. */
typedef struct fit_task {
    const leat_sequence *sequence;
    int64_t samples; /* 0 if unknown */
    int stuck;       /* worker threads that are still in `get` */
} fit_task;

static leat_status check_compiled(const leat_model *model, leat_error *err) {
    if (model->compiled.ready) return LEAT_OK;
    return leati_fail(
        err, LEAT_EINVAL,
        "the model must be compiled before training: leat_model_compile, or --optimizer and --loss");
}

static leat_status check_options(const leat_model *model, const leat_sequence *sequence,
                                 const leat_fit_options *options, leat_error *err) {
    LEATI_TRY(check_compiled(model, err));
    if (options->epochs < 0 || options->initial_epoch < 0 || options->steps_per_epoch < 0 ||
        options->validation_steps < 0 || options->threads < 0)
        return leati_fail(
            err, LEAT_EINVAL,
            "epochs, initial_epoch, steps_per_epoch, validation_steps and threads must be at least 0");
    LEATI_TRY(leati_check_list(options->validation_epochs, options->validation_epoch_count,
                               "validation_epoch", err));
    if (options->validation_workers < -1)
        return leati_fail(err, LEAT_EINVAL, "validation_workers: expected at least -1, received %d",
                          options->validation_workers);
    if (!options->validation_epochs && options->validation_freq < 1)
        return leati_fail(err, LEAT_EINVAL, "validation_freq: expected at least 1, received %" PRId64,
                          options->validation_freq);
    if (options->validation_every < 0 || (options->validation_every > 0 && !options->validation))
        return leati_fail(err, LEAT_EINVAL,
                          "validation_every: expected 0, or a positive number and validation data");
    LEATI_TRY(
        leati_require_steps(sequence, options->steps_per_epoch, "steps_per_epoch", "the training data", err));
    if (!options->validation) return LEAT_OK;
    return leati_require_steps(options->validation, options->validation_steps, "validation_steps",
                               "the validation data", err);
}

/* Copies the caller's structs into structs of this version, and lets task->sequence and options->validation point
 * to the copies. */
static leat_status read_caller(leati_fit_loop *loop, fit_task *task, const leat_fit_options *options,
                               leat_error *err) {
    loop->options = &loop->read_options;
    LEATI_TRY(leati_growing_read(&options_type, options, &loop->read_options, err));
    LEATI_TRY(leati_sequence_read(task->sequence, &loop->train_sequence, err));
    task->sequence = &loop->train_sequence;
    if (!loop->options->validation) return LEAT_OK;
    leat_status status = leati_sequence_read(loop->options->validation, &loop->validation_sequence, err);
    loop->read_options.validation = &loop->validation_sequence;
    return leati_prefix(status, err, "validation data");
}

leat_status leat_model_check_data(const leat_model *model, const leat_batch_spec *spec, leat_error *err) {
    leati_binding binding = {0};
    LEATI_GIVEN(model, err);
    LEATI_GIVEN(spec, err);
    LEATI_TRY(check_compiled(model, err));
    LEATI_TRY(leati_batch_spec_check(spec, err));
    leat_status status = leati_binding_init(&binding, model, spec, LEATI_TRAIN, err);
    leati_binding_fini(&binding);
    return status;
}

static leat_feed_options feed_options(const leat_fit_options *options, const char *name) {
    leat_feed_options feed = leat_feed_options_default();
    feed.workers = options->workers;
    feed.use_multiprocessing = options->use_multiprocessing;
    feed.max_queue_size = options->max_queue_size;
    feed.memory = options->feed_memory;
    feed.seed = options->seed;
    feed.faults = options->faults;
    feed.trace = options->trace;
    feed.name = name;
    return feed;
}

/* Finds the position of initial_epoch in the stream: the start of a pass or, with steps_per_epoch, the batch after
 * initial_epoch * steps_per_epoch batches, computed with the current length of a pass.  The position of a
 * generator is not changed. */
static leat_status find_position(const leat_sequence *sequence, const leat_fit_options *options,
                                 leat_feed_position *at, leat_error *err) {
    int64_t steps = options->steps_per_epoch, first = 0;
    if (sequence->next || !sequence->length || options->initial_epoch == 0) return LEAT_OK;
    if (steps == 0) {
        at->pass = options->initial_epoch;
        return LEAT_OK;
    }
    if (!leati_mul_i64(options->initial_epoch, steps, &first))
        return leati_fail(err, LEAT_EINVAL,
                          "initial_epoch %" PRId64 " times steps_per_epoch %" PRId64 " is out of range",
                          options->initial_epoch, steps);
    int64_t length = sequence->length(sequence->user);
    if (length < 1) return LEAT_OK; /* the feed refuses this sequence */
    at->pass = first / length;
    at->ordinal = first % length;
    return LEAT_OK;
}

static leat_status prepare_training(leati_fit_loop *loop, const leat_sequence *sequence, leat_error *err) {
    const leat_fit_options *options = loop->options;
    int64_t steps = options->steps_per_epoch;
    leati_runner_options runner_options = {.mode = LEATI_TRAIN,
                                           .pace = steps > 0 ? LEATI_PACE_STREAM : LEATI_PACE_PASS,
                                           .lanes = "training",
                                           .lane = "steps",
                                           .class_weights = {options->class_weight,
                                                             options->class_weight_count,
                                                             options->output_class_weights,
                                                             options->output_class_weight_count},
                                           .parallel = options->dist ? &loop->parallel : NULL,
                                           .threads = options->threads,
                                           .feed = feed_options(options, "training")};
    runner_options.feed.shuffle = options->shuffle;
    runner_options.feed.shuffle_window = options->shuffle_window;
    if (steps == 0)
        runner_options.feed.passes = options->epochs;
    else if (!leati_mul_i64(steps, options->epochs - options->initial_epoch, &runner_options.feed.limit))
        runner_options.feed.limit = 0; /* no limit: no fit reaches so many steps */
    else if (!sequence->next)
        runner_options.feed.limit -= loop->position.steps;
    if (!loop->resumed) LEATI_TRY(find_position(sequence, options, &loop->train_start.at, err));
    if (!sequence->next) runner_options.at = loop->train_start.at;
    loop->training.params.batch_size = sequence->spec.batch_size;
    return leati_runner_prepare(&loop->train, loop->model, sequence, &runner_options, err);
}

static leat_status prepare_validation(leati_fit_loop *loop, leat_error *err) {
    const leat_fit_options *options = loop->options;
    leati_runner_options runner_options = {.mode = LEATI_TEST,
                                           .steps = options->validation_steps,
                                           .lanes = "training",
                                           .lane = "validation steps",
                                           .parallel = options->dist ? &loop->parallel : NULL,
                                           .threads = options->threads,
                                           .feed = feed_options(options, "validation")};
    if (options->validation_workers != 0)
        runner_options.feed.workers = options->validation_workers > 0 ? options->validation_workers : 0;
    if (!options->validation->next) runner_options.at = loop->validation_start.at;
    leat_status status =
        leati_runner_prepare(&loop->validation, loop->model, options->validation, &runner_options, err);
    return leati_prefix(status, err, "validation data");
}

static leat_status open_feeds(leati_fit_loop *loop, const leat_sequence *sequence, leat_error *err) {
    leati_runner *const runners[] = {&loop->train, &loop->validation};
    const leat_fit_options *options = loop->options;
    loop->parallel.trace = options->trace;
    if (loop->options->trace) loop->epoch_lane = leati_trace_lane(loop->options->trace, "training", "epochs");
    LEATI_TRY(prepare_training(loop, sequence, err));
    if (loop->options->validation) LEATI_TRY(prepare_validation(loop, err));
    int64_t opened_ns = leati_now_ns();
    LEATI_TRY(leati_runner_open(runners, loop->options->validation ? 2 : 1, err));
    if (!options->dist) leati_feed_interrupt_by(loop->train.feed, &loop->model->stop_requested);
    return leati_record_begin(&loop->history->record, leat_feed_stats_get(loop->train.feed).workers,
                              opened_ns, err);
}

static void log_settings(leati_fit_loop *loop) {
    const leat_fit_options *options = loop->options;
    leat_feed_stats stats = leat_feed_stats_get(loop->train.feed);
    char text[96];
    leati_training_log(&loop->training, LEAT_LOG_INFO,
                       "leat: %d worker %s%s, %d compute thread%s, %s; the feed's ring holds %.1f MB",
                       options->workers, options->use_multiprocessing ? "process" : "thread",
                       options->workers == 1          ? ""
                       : options->use_multiprocessing ? "es"
                                                      : "s",
                       loop->train.threads, loop->train.threads == 1 ? "" : "s",
                       leati_cores_text(text, sizeof text, &loop->cores), (double)stats.ring_bytes / 1e6);
    if (loop->parallel.values.note[0])
        leati_training_log(&loop->training, LEAT_LOG_INFO, "leat: %s", loop->parallel.values.note);
}

static leat_status fit(leati_fit_loop *loop, const leat_sequence *sequence, leat_error *err) {
    const leat_fit_options *options = loop->options;
    loop->cores = leati_cores_get();
    loop->position.epoch = options->initial_epoch;
    LEATI_TRY(leati_fit_meet(loop, err));
    if (options->dist)
        LEATI_TRY(leati_values_join(&loop->parallel.values, options->dist,
                                    !loop->model->deterministic && !options->bf16_gradients, err));
    LEATI_TRY(leati_training_meet(&loop->training, err));
    LEATI_TRY(leati_traces_begin(&loop->traces, options->dist, options->trace, err));
    LEATI_TRY(leati_fit_agree(loop, leati_fit_checkpoints_open(loop, err), err));
    LEATI_TRY(leati_fit_share_checkpoint(loop, err));
    LEATI_TRY(leati_fit_agree(loop, leati_fit_state_load(loop, err), err));
    LEATI_TRY(leati_fit_share_weights(loop, err));
    if (options->epochs <= loop->position.epoch || loop->training.stop) return leati_fit_run(loop, err);
    LEATI_TRY(leati_fit_agree(loop, open_feeds(loop, sequence, err), err));
    LEATI_TRY(leati_fit_agree(loop, leati_fit_state_skip(loop, err), err));
    log_settings(loop);
    loop->start_ns = leati_now_ns();
    if (!leati_cores_used_ns(&loop->start_cores_ns)) loop->start_cores_ns = 0;
    return leati_fit_run(loop, err);
}

static leat_status prepare(leati_fit_loop *loop, leat_model *model, fit_task *task,
                           const leat_fit_options *caller, leat_error *err) {
    LEATI_TRY(read_caller(loop, task, caller, err));
    const leat_fit_options *options = loop->options;
    LEATI_TRY(check_options(model, task->sequence, options, err));
    leat_training *training = &loop->training;
    const leati_parallel_options parallel = {.joins_norms = options->sync_batch_norm != 0,
                                             .bf16 = options->bf16_gradients != 0,
                                             .shards = options->shard_optimizer != 0};
    const bool leads =
        leat_dist_rank(options->dist) == 0; /* the other ranks call no hooks and print nothing */
    if (leads)
        LEATI_TRY(leati_training_set_callbacks(training, options->callbacks, options->callback_count, err));
    LEATI_TRY(leati_training_set_verbose(training, leads ? options->verbose : 0, err));
    LEATI_TRY(leati_history_create(&loop->history, err));
    LEATI_TRY(leati_history_configure(loop->history, model, task->sequence, options, err));
    loop->read_options.threads = leati_rank_threads(options->dist, options->threads);
    loop->model = model;
    training->model = model;
    training->loop = loop;
    training->params.epochs = options->epochs;
    training->params.size = sizeof training->params;
    training->params.samples = task->samples;
    training->history = leati_history_callback(loop->history);
    training->run_history = loop->history;
    training->validate = options->validation ? leati_fit_validate_in_hook : NULL;
    LEATI_TRY(leati_meter_init(&loop->meter, model, err));
    if (options->validation) LEATI_TRY(leati_meter_init(&loop->validation_meter, model, err));
    training->dist = options->dist;
    if (options->dist) {
        LEATI_TRY(leati_parallel_init(&loop->parallel, training->dist, model, LEATI_TRAIN, &parallel, err));
        loop->parallel.requested = &training->requested;
        loop->parallel.synced_version = &training->synced_version;
        if (loop->parallel.shards.dist) training->collect = leati_fit_collect;
    }
    return leati_training_name(training, options->validation != NULL, err);
}

/* Sets the state of the history of a fit that has ended, and logs the verdict.  After a failure the verdict is not
 * logged, since the caller needs the error. */
static void end_history(leati_fit_loop *loop, leat_status status, const leat_error *err) {
    leat_history *history = loop->history;
    bool ended = status == LEAT_OK || status == LEAT_ESTOPPED;
    bool whole =
        loop->position.epoch >= loop->options->epochs && !loop->steps_missed && !loop->validation_missed;
    bool requested = status == LEAT_ESTOPPED || (loop->training.stopped_on_request && !whole);
    bool has_reason = requested || !loop->training.stopped_on_request;
    leati_fit_measure(loop);
    if (ended)
        leati_history_end(history, requested ? LEATI_HISTORY_INTERRUPTED : LEATI_HISTORY_ENDED,
                          has_reason ? leat_training_stop_reason(&loop->training) : NULL);
    else
        leati_history_end(history, LEATI_HISTORY_FAILED, err ? err->message : "");
    if (ended && history->verdict.steps > 0)
        leati_training_log(&loop->training, LEAT_LOG_INFO, "%s", history->verdict.text);
}

static leat_status run_fit(leat_model *model, fit_task *task, const leat_fit_options *options,
                           leat_history **history, leat_error *err) {
    if (history) *history = NULL;
    leati_fit_loop *loop = leati_calloc(1, sizeof *loop);
    if (!loop) return leati_fail_memory(err, sizeof *loop, "training");
    leat_status status = prepare(loop, model, task, options, err);
    if (status == LEAT_OK) {
        loop->history->measure = leati_fit_measure;
        loop->history->loop = loop;
        leati_training_enter(&loop->training);
        status = fit(loop, task->sequence, err);
        leati_training_leave(&loop->training);
        end_history(loop, status, err);
    } else if (loop->history)
        leati_history_end(loop->history, LEATI_HISTORY_FAILED, err ? err->message : "");
    task->stuck = leati_runner_close((leati_runner *const[]){&loop->train, &loop->validation}, 2);
    if (status == LEAT_OK)
        status = leati_traces_merge(&loop->traces, loop->options->dist, loop->options->trace, err);
    leati_traces_fini(&loop->traces);
    leati_fit_checkpoints_close(loop);
    leati_training_fini(&loop->training);
    leati_meter_fini(&loop->meter);
    leati_meter_fini(&loop->validation_meter);
    leati_parallel_fini(&loop->parallel);
    leati_free(loop->states_before);
    if (history)
        *history = loop->history;
    else
        leat_history_destroy(&loop->history);
    leati_free(loop);
    return status == LEAT_OK ? LEAT_OK : leati_prefix_stuck(status, task->stuck, err);
}

leat_status leat_model_fit_generator(leat_model *model, const leat_sequence *sequence,
                                     const leat_fit_options *options, leat_history **history,
                                     leat_error *err) {
    LEATI_GIVEN(model, err);
    LEATI_GIVEN(sequence, err);
    fit_task task = {.sequence = sequence};
    return run_fit(model, &task, options, history, err);
}

leat_status leat_model_fit(leat_model *model, const leat_arrays *arrays, int64_t batch_size,
                           const leat_fit_options *options, leat_history **history, leat_error *err) {
    LEATI_GIVEN(model, err);
    LEATI_GIVEN(arrays, err);
    leat_sequence sequence = {0};
    if (history) *history = NULL;
    LEATI_TRY(leati_arrays_sequence(&sequence, model, arrays, batch_size, err));
    fit_task task = {.sequence = &sequence, .samples = arrays->inputs[0].tensor.shape[0]};
    leat_status status = run_fit(model, &task, options, history, err);
    leati_arrays_close(&sequence, model, task.stuck);
    return status;
}
