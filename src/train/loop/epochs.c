/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the epochs and steps of a fit, and calls the hooks around them.  Room: train. */
#include <inttypes.h>
#include <stdio.h>

#include "base/os/clock.h"
#include "base/error.h"
#include "feed/stats/trace.h"
#include "nn/model/model.h"
#include "train/loop/fit_loop.h"

/* How the steps of an epoch ended. */
typedef struct epoch_end {
    int64_t done;  /* steps that were run */
    bool more;     /* false if the data ended before loop->steps steps */
    bool complete; /* true if no failure and no request to stop ended the epoch early */
} epoch_end;

static leat_status train_step(leati_fit_loop *loop, int64_t step, bool *more, leat_error *err) {
    leati_runner *runner = &loop->train;
    leat_logs *logs = &loop->step_logs;
    const leati_compiled_step *compiled = NULL;
    logs->count = 0;
    LEATI_TRY(leati_runner_take(runner, more, err));
    if (!*more) return LEAT_OK;
    leati_record_batch(&loop->history->record, runner->feed);
    leat_logs_set(logs, "batch", (double)step);
    leat_logs_set(logs, "size", (double)runner->size);
    LEATI_TRY(leati_training_call(&loop->training, LEATI_HOOK_on_train_batch_begin, step, logs, err));
    LEATI_TRY(leati_prefix(leati_runner_run(runner, &compiled, err), err, "batch %" PRId64, step));
    leati_record_step(&loop->history->record, runner->asked_ns, runner->waited_ns, runner->computed_ns);
    LEATI_TRY(leati_prefix(leati_meter_add(&loop->meter, loop->model, compiled, runner->size, err), err,
                           "batch %" PRId64, step));
    leati_meter_logs(&loop->meter, loop->model, "", logs);
    return leati_training_call(&loop->training, LEATI_HOOK_on_train_batch_end, step, logs, err);
}

static leat_status train_steps(leati_fit_loop *loop, epoch_end *end, leat_error *err) {
    int64_t start = leati_now_ns();
    leat_status status = LEAT_OK;
    bool stopped = false;
    *end = (epoch_end){.more = true};
    while (status == LEAT_OK && end->done < loop->steps) {
        stopped = end->done > 0 && leati_training_should_stop(&loop->training);
        if (stopped) break;
        status = train_step(loop, end->done, &end->more, err);
        if (!end->more) break;
        ++end->done;
    }
    end->complete = status == LEAT_OK && !stopped;
    loop->wall_ns += leati_now_ns() - start;
    return status;
}

/* Sets *more to false if a generator ended together with the previous epoch: then there is no next epoch. */
static leat_status look_ahead(leati_fit_loop *loop, bool *more, leat_error *err) {
    *more = true;
    if (loop->train.pace != LEATI_PACE_GENERATOR) return LEAT_OK;
    int64_t start = leati_now_ns();
    leat_status status = leati_runner_await(&loop->train, more, err);
    loop->wall_ns += leati_now_ns() - start;
    if (status == LEAT_OK && !*more && loop->train.steps == 0)
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
static void log_warnings(leati_fit_loop *loop, int64_t epoch, const epoch_end *end) {
    int64_t skips = leati_runner_skips(&loop->train);
    if (skips > 0)
        leati_training_log(&loop->training, LEAT_LOG_WARNING,
                           "leat: epoch %" PRId64 " passed over %" PRId64 " bad batch%s: %" PRId64
                           " of %" PRId64 " steps were made",
                           epoch + 1, skips, skips == 1 ? "" : "es", end->done, loop->steps);
    if (!end->more && loop->train.pace == LEATI_PACE_GENERATOR)
        leati_training_log(&loop->training, LEAT_LOG_WARNING,
                           "leat: epoch %" PRId64 ": the generator ended after %" PRId64 " of %" PRId64
                           " steps",
                           epoch + 1, end->done, loop->steps);
    leati_fit_log_validation(loop);
}

static leat_status count_steps(leati_fit_loop *loop, leat_error *err) {
    int64_t steps_per_epoch = loop->options->steps_per_epoch;
    loop->steps = steps_per_epoch > 0 ? steps_per_epoch : leat_feed_length(loop->train.feed);
    loop->training.params.steps = loop->steps;
    if (loop->steps != LEAT_LENGTH_INFINITE || steps_per_epoch > 0) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "steps_per_epoch is needed: the training data has become infinite");
}

static leat_status run_epoch(leati_fit_loop *loop, int64_t epoch, leat_error *err) {
    leat_logs *logs = &loop->epoch_logs;
    epoch_end end;
    int64_t start = leati_now_ns();
    logs->count = 0;
    LEATI_TRY(count_steps(loop, err));
    leati_meter_reset(&loop->meter);
    LEATI_TRY(leati_training_call(&loop->training, LEATI_HOOK_on_epoch_begin, epoch, logs, err));
    LEATI_TRY(train_steps(loop, &end, err));
    if (!end.more && loop->train.pace == LEATI_PACE_GENERATOR) stop_at_end(loop, end.done);
    leati_meter_logs(&loop->meter, loop->model, "", logs);
    if (end.complete) LEATI_TRY(leati_fit_validate_epoch(loop, epoch, logs, err));
    LEATI_TRY(leati_training_call(&loop->training, LEATI_HOOK_on_epoch_end, epoch, logs, err));
    leati_trace_span(loop->options->trace, loop->epoch_lane, "epoch", start, leati_now_ns(), -1, epoch);
    log_warnings(loop, epoch, &end);
    return leat_feed_end_pass(loop->train.feed, err);
}

static leat_status run_epochs(leati_fit_loop *loop, leat_error *err) {
    const leat_fit_options *options = loop->options;
    for (int64_t epoch = options->initial_epoch; epoch < options->epochs; ++epoch) {
        bool more = true;
        leat_status status = look_ahead(loop, &more, err);
        if (status == LEAT_OK && more) status = run_epoch(loop, epoch, err);
        LEATI_TRY(leati_prefix(status, err, "epoch %" PRId64, epoch + 1));
        if (!more) {
            stop_at_end(loop, 0);
            log_warnings(loop, epoch, &(epoch_end){0, false, true});
        }
        if (!more || leati_training_should_stop(&loop->training)) break;
    }
    return LEAT_OK;
}

leat_status leati_fit_run(leati_fit_loop *loop, leat_error *err) {
    leat_logs *logs = &loop->run_logs; /* empty */
    LEATI_TRY(leati_training_call(&loop->training, LEATI_HOOK_on_train_begin, 0, logs, err));
    LEATI_TRY(run_epochs(loop, err));
    leati_optimizer_finish(loop->model);
    return leati_training_call(&loop->training, LEATI_HOOK_on_train_end, 0, logs, err);
}
