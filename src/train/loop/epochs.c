/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the epochs and steps of a fit, and calls the hooks around them.  Room: train. */
#include <inttypes.h>
#include <stdio.h>

#include "base/os/clock.h"
#include "base/error.h"
#include "feed/stats/trace.h"
#include "nn/model/model.h"
#include "train/loop/fit_loop.h"
#include "train/loop/fit_state.h"

/* How the steps of an epoch ended. */
typedef struct epoch_end {
    bool more;     /* false if the data ended before all steps of the epoch */
    bool complete; /* true if no failure and no request to stop ended the epoch early */
} epoch_end;

/* Returns true if a request to stop ended the wait for a batch, which is no failure. */
static bool was_interrupted(const leati_fit_loop *loop, leat_status *status, leat_error *err) {
    if (*status != LEAT_ESTOPPED || !loop->failed_between_steps ||
        !leati_training_is_requested(&loop->training))
        return false;
    *status = LEAT_OK;
    if (err) *err = (leat_error){0};
    return true;
}

static leat_status train_step(leati_fit_loop *loop, bool *more, leat_error *err) {
    leati_runner *runner = &loop->train;
    leat_logs *logs = &loop->step_logs;
    const int64_t step = loop->position.step;
    const leati_compiled_step *compiled = NULL;
    logs->count = 0;
    leat_status status = leati_runner_take(runner, more, err);
    loop->failed_between_steps =
        runner->failed != LEAT_OK; /* otherwise this batch is taken, even if another rank fails */
    if (status != LEAT_OK || !*more) return status;
    if (runner->failed == LEAT_OK) leati_record_batch(&loop->history->record, runner->feed);
    leat_logs_set(logs, "batch", (double)step);
    leat_logs_set(logs, "size", (double)runner->size);
    LEATI_TRY(leati_training_begin_batch(&loop->training, LEATI_HOOK_on_train_batch_begin, runner->failed,
                                         step, logs, err));
    LEATI_TRY(leati_prefix(leati_runner_run(runner, &compiled, err), err, "batch %" PRId64, step));
    leati_record_step(&loop->history->record, runner->asked_ns, runner->waited_ns,
                      runner->copied_ns + runner->computed_ns);
    LEATI_TRY(leati_prefix(leati_runner_measure(runner, &loop->meter, loop->model, compiled, err), err,
                           "batch %" PRId64, step));
    leati_meter_logs(&loop->meter, loop->model, "", logs);
    LEATI_TRY(leati_training_call(&loop->training, LEATI_HOOK_on_train_batch_end, step, logs, err));
    ++loop->position.step;
    ++loop->position.steps;
    return LEAT_OK;
}

/* Validates inside the epoch and begins a checkpoint, each if it is due after this step. */
static leat_status after_step(leati_fit_loop *loop, leat_error *err) {
    leati_fit_position *position = &loop->position;
    const int64_t every = loop->options->validation_every;
    if (every > 0 && position->steps % every == 0 && position->step < position->epoch_steps)
        position->validation_due = true;
    LEATI_TRY(leati_fit_validate_inside(loop, err));
    return loop->training.stop ? LEAT_OK : leati_fit_checkpoint_step(loop, err);
}

/* At least one step is run, unless the epoch has none left, its first batch does not come, or a request to stop has
 * ended a validation that belongs before the step. */
static leat_status train_steps(leati_fit_loop *loop, epoch_end *end, leat_error *err) {
    leati_fit_position *position = &loop->position;
    int64_t start = leati_now_ns(), first = position->step;
    bool stopped = false;
    *end = (epoch_end){.more = true};
    loop->steps_began_ns = start;
    leat_status status = leati_fit_validate_inside(loop, err);
    while (status == LEAT_OK && position->step < position->epoch_steps) {
        bool may_stop = position->step > first || position->validation_due;
        stopped = may_stop && leati_training_should_stop(&loop->training);
        if (stopped) break;
        status = train_step(loop, &end->more, err);
        stopped = was_interrupted(loop, &status, err);
        if (status != LEAT_OK || stopped || !end->more) break;
        status = after_step(loop, err);
    }
    end->complete = status == LEAT_OK && !stopped;
    loop->steps_missed = stopped;
    loop->steps_began_ns = 0;
    loop->wall_ns += leati_now_ns() - start;
    return status;
}

/* Sets *more to false if a generator ended together with the previous epoch: then there is no next epoch. */
static leat_status look_ahead(leati_fit_loop *loop, bool *more, leat_error *err) {
    *more = true;
    if (loop->train.pace != LEATI_PACE_GENERATOR || loop->position.begun) return LEAT_OK;
    int64_t start = leati_now_ns();
    leat_status status = leati_runner_await(&loop->train, more, err);
    loop->wall_ns += leati_now_ns() - start;
    loop->failed_between_steps = status != LEAT_OK;
    if (was_interrupted(loop, &status, err)) {
        *more = true;
        return LEAT_OK;
    }
    if (status == LEAT_OK && !*more && loop->position.steps == 0)
        return leati_fail(err, LEAT_EINVAL, "the generator gave no batch");
    return status;
}

static void stop_at_end(leati_fit_loop *loop, int64_t done) {
    char reason[128];
    snprintf(reason, sizeof reason, "the generator ended after %" PRId64 " of %" PRId64 " steps", done,
             loop->options->steps_per_epoch);
    leat_training_stop(&loop->training, reason);
}

/* Logs warnings about an epoch, below the epoch's progress bar. */
static void log_warnings(leati_fit_loop *loop, int64_t epoch, bool more) {
    const leati_fit_position *position = &loop->position;
    int64_t skips = leati_runner_skips(&loop->train);
    if (skips > 0)
        leati_training_log(&loop->training, LEAT_LOG_WARNING,
                           "leat: epoch %" PRId64 " passed over %" PRId64 " bad batch%s: %" PRId64
                           " of %" PRId64 " steps were made",
                           epoch + 1, skips, skips == 1 ? "" : "es", position->step, position->epoch_steps);
    if (!more && loop->train.pace == LEATI_PACE_GENERATOR)
        leati_training_log(&loop->training, LEAT_LOG_WARNING,
                           "leat: epoch %" PRId64 ": the generator ended after %" PRId64 " of %" PRId64
                           " steps",
                           epoch + 1, position->step, loop->options->steps_per_epoch);
    leati_fit_log_validation(loop);
}

static leat_status count_steps(leati_fit_loop *loop, leat_error *err) {
    int64_t steps_per_epoch = loop->options->steps_per_epoch;
    int64_t steps = steps_per_epoch > 0 ? steps_per_epoch : leat_feed_length(loop->train.feed);
    loop->training.params.steps = loop->position.epoch_steps = steps;
    if (steps != LEAT_LENGTH_INFINITE || steps_per_epoch > 0) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "steps_per_epoch is needed: the training data has become infinite");
}

/* Begins an epoch, or continues an epoch that was interrupted. */
static leat_status begin_epoch(leati_fit_loop *loop, int64_t epoch, leat_error *err) {
    leat_logs *logs = &loop->epoch_logs;
    logs->count = 0;
    if (loop->position.begun) {
        loop->training.params.steps = loop->position.epoch_steps;
        return leati_training_show_epoch(&loop->training, epoch, logs, err);
    }
    LEATI_TRY(count_steps(loop, err));
    leati_meter_reset(&loop->meter);
    loop->position.begun = true;
    return leati_training_call(&loop->training, LEATI_HOOK_on_epoch_begin, epoch, logs, err);
}

/* With checkpoints, a request to stop suspends the fit: the rest of the epoch is for the fit that continues.  An epoch
 * that is stopped before its first step is not ended either: it has no results. */
static bool is_suspended(leati_fit_loop *loop) {
    bool stopped = leati_training_should_stop(&loop->training) && loop->training.stopped_on_request;
    loop->position.suspended = stopped && (loop->checkpoints.options.folder || loop->position.step == 0);
    return loop->position.suspended;
}

static leat_status end_epoch(leati_fit_loop *loop, int64_t epoch, bool more, leat_error *err) {
    leat_logs *logs = &loop->epoch_logs;
    LEATI_TRY(leati_training_call(&loop->training, LEATI_HOOK_on_epoch_end, epoch, logs, err));
    log_warnings(loop, epoch, more);
    LEATI_TRY(leat_feed_end_pass(loop->train.feed, err));
    loop->position.epoch = epoch + 1;
    loop->position.step = loop->position.epoch_steps = 0;
    loop->position.begun = false;
    return loop->training.stop ? LEAT_OK : leati_fit_checkpoint_epoch(loop, err);
}

static leat_status run_epoch(leati_fit_loop *loop, int64_t epoch, leat_error *err) {
    leat_logs *logs = &loop->epoch_logs;
    epoch_end end;
    int64_t start = leati_now_ns();
    LEATI_TRY(begin_epoch(loop, epoch, err));
    LEATI_TRY(train_steps(loop, &end, err));
    if (is_suspended(loop)) return LEAT_OK;
    if (!end.more && loop->train.pace == LEATI_PACE_GENERATOR) stop_at_end(loop, loop->position.step);
    leati_meter_logs(&loop->meter, loop->model, "", logs);
    if (end.complete) LEATI_TRY(leati_fit_validate_epoch(loop, epoch, logs, err));
    if (loop->validation_missed && is_suspended(loop)) return LEAT_OK;
    LEATI_TRY(end_epoch(loop, epoch, end.more, err));
    leati_trace_span(loop->options->trace, loop->epoch_lane, "epoch", start, leati_now_ns(), -1, epoch);
    return LEAT_OK;
}

static leat_status run_epochs(leati_fit_loop *loop, leat_error *err) {
    const leat_fit_options *options = loop->options;
    for (int64_t epoch = loop->position.epoch; epoch < options->epochs; ++epoch) {
        bool more = true;
        leat_status status = look_ahead(loop, &more, err);
        if (status == LEAT_OK && more) status = run_epoch(loop, epoch, err);
        LEATI_TRY(leati_prefix(status, err, "epoch %" PRId64, epoch + 1));
        if (!more) {
            stop_at_end(loop, 0);
            log_warnings(loop, epoch, false);
        }
        if (!more || leati_training_should_stop(&loop->training)) break;
    }
    if (loop->position.epoch < options->epochs) (void)is_suspended(loop);
    loop->position.ended = !loop->position.suspended;
    return LEAT_OK;
}

/* Saves what was reached if there was no batch for a step: the data may be mended before the fit continues. */
static void save_after_failure(leati_fit_loop *loop, leat_status status) {
    const bool is_spread = loop->parallel.shards.dist != NULL; /* rank 0 does not have all slots */
    if (status != LEAT_OK && loop->failed_between_steps && !is_spread && loop->position.steps > 0)
        (void)leati_fit_checkpoint_last(loop, NULL);
}

leat_status leati_fit_run(leati_fit_loop *loop, leat_error *err) {
    leat_logs *logs = &loop->run_logs; /* empty */
    LEATI_TRY(leati_training_call(&loop->training, LEATI_HOOK_on_train_begin, 0, logs, err));
    LEATI_TRY(leati_fit_state_load_callbacks(loop, err));
    leat_status status = LEAT_OK;
    if (loop->training.stop)
        loop->position.ended = true; /* a callback, of this fit or of the fit that this one continues */
    else
        status = run_epochs(loop, err);
    save_after_failure(loop, status);
    if (status == LEAT_OK) status = leati_fit_checkpoint_last(loop, err);
    LEATI_TRY(status);
    LEATI_TRY(leati_shards_collect(&loop->parallel.shards, err));
    leati_optimizer_finish(loop->model);
    return leati_training_call(&loop->training, LEATI_HOOK_on_train_end, 0, logs, err);
}
