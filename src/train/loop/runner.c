/* SPDX-License-Identifier: Apache-2.0 */
/* Takes batches from the feed and runs the trainer's steps on them.  Room: train. */
#include "train/loop/runner.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/os/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "dist/launcher.h"
#include "feed/sample.h"
#include "feed/peek.h"
#include "feed/stats/trace.h"
#include "train/history/cores.h"

enum { max_feeds = 4 };

int leati_threads_or_default(int threads) {
    return threads > 0 ? threads : leati_core_count();
}

/* Ranks that the launcher has bound to cores of their own use all of these; others divide the cores that they share.
 * All ranks of a host divide the quota of its control group. */
int leati_rank_threads(const leat_dist *dist, int threads) {
    if (threads > 0 || !dist) return threads;
    const int sharers = leat_dist_sharers(dist, dist->rank), granted = leati_launcher_cores();
    const leati_cores cores = leati_cores_get();
    int near = 1; /* this rank and the others of its host */
    for (int i = 0; i < dist->size; ++i)
        near += i != dist->rank && strcmp(dist->peers[i].host, dist->peers[dist->rank].host) == 0;
    int count = cores.affinity / sharers;
    if (cores.count < cores.affinity && cores.count / near < count) count = cores.count / near;
    if (granted > 0 && granted < count) count = granted;
    return count > 1 ? count : 1;
}

/* Checks Keras's rules for a stateful model, in which each sample of a batch has its own state. */
static leat_status check_stateful(const leat_model *model, const leat_arrays *arrays, int64_t batch_size,
                                  leat_error *err) {
    int64_t states = leati_model_stateful_batch(model);
    if (states < 0) return LEAT_OK;
    if (batch_size != states)
        return leati_fail(
            err, LEAT_EINVAL,
            "batch_size: expected %lld, the batch size of the stateful model's input, received %lld",
            (long long)states, (long long)batch_size);
    int64_t samples = arrays->input_count > 0 ? arrays->inputs[0].tensor.shape[0] : 0;
    if (samples % states == 0) return LEAT_OK;
    return leati_fail(
        err, LEAT_EINVAL,
        "a stateful model needs full batches: expected a multiple of %lld samples, received %lld",
        (long long)states, (long long)samples);
}

leat_status leati_arrays_sequence(leat_sequence *out, const leat_model *model, const leat_arrays *arrays,
                                  int64_t batch_size, leat_error *err) {
    leat_source_options options = leat_source_options_default();
    int64_t declared = model->input_count > 0 ? leati_model_input_shape(model, 0).dims[0] : -1;
    if (declared > 0) options.batch_size = declared;
    if (batch_size != 0) options.batch_size = batch_size;
    LEATI_TRY(check_stateful(model, arrays, options.batch_size, err));
    return leat_arrays_open(out, sizeof *out, arrays, &options, err);
}

void leati_arrays_close(leat_sequence *sequence, leat_model *model, int stuck) {
    leati_trainer *trainer = NULL;
    if (stuck == 0)
        leat_sequence_destroy(sequence);
    else if (leati_trainer_of(model, &trainer, NULL) == LEAT_OK)
        leati_trainer_keep(trainer, NULL, sequence);
}

leat_status leati_require_steps(const leat_sequence *sequence, int64_t steps, const char *option,
                                const char *data, leat_error *err) {
    if (steps > 0) return LEAT_OK;
    if (sequence->next)
        return leati_fail(err, LEAT_EINVAL, "%s is needed: %s is a generator, which has no length", option,
                          data);
    if (sequence->length && sequence->length(sequence->user) == LEAT_LENGTH_INFINITE)
        return leati_fail(err, LEAT_EINVAL, "%s is needed: %s is infinite", option, data);
    return LEAT_OK;
}

/* Chooses the sequence that the feed reads.  The feed, not this function, refuses a sequence without length or
 * get. */
static leat_status choose_sequence(leati_runner *runner, const leat_sequence *sequence,
                                   const leati_runner_options *options, leat_error *err) {
    runner->sequence = *sequence;
    runner->pace = sequence->next ? LEATI_PACE_GENERATOR : options->pace;
    if (runner->pace != LEATI_PACE_PASS || options->steps == 0 || !sequence->length || !sequence->get)
        return LEAT_OK;
    runner->fixed_length = leati_calloc(1, sizeof *runner->fixed_length);
    if (!runner->fixed_length)
        return leati_fail_memory(err, sizeof *runner->fixed_length, "a sequence of that many steps");
    *runner->fixed_length = (leati_fixed_length){*sequence, options->steps};
    const bool in_order = options->feed.shuffle == LEAT_SHUFFLE_NONE;
    runner->sequence = leati_fixed_length_sequence(runner->fixed_length, in_order);
    return LEAT_OK;
}

/* Lets the feed make only the parts of this rank, where the samples of a batch do not depend on each other, and where
 * the ranks cannot have different batches because a rank has skipped a bad one. */
static void divide_work(leati_runner *runner) {
    const leati_parallel *parallel = runner->parallel;
    const leat_sequence *sequence = &runner->sequence;
    if (!parallel || parallel->dist->size == 1 || !sequence->independent_samples || !sequence->get_samples ||
        runner->options.faults.bad_batch != LEAT_BAD_BATCH_FAIL)
        return;
    runner->options.parts = parallel->parts;
    runner->options.first_part = parallel->first;
    runner->options.end_part = parallel->end;
}

static void open_lanes(leati_runner *runner, const leati_runner_options *options) {
    leat_trace *trace = options->feed.trace;
    const leati_device *device = leati_trainer_device(runner->trainer);
    runner->lane = leati_trace_lane(trace, options->lanes, options->lane);
    if (!device) return;
    runner->compute_lane = leati_trace_lane(trace, device->name, "compute");
    runner->copy_lane = leati_trace_lane(trace, device->name, "copies");
}

leat_status leati_runner_prepare(leati_runner *runner, leat_model *model, const leat_sequence *sequence,
                                 const leati_runner_options *options, leat_error *err) {
    *runner = (leati_runner){.seed = options->feed.seed, .parallel = options->parallel};
    runner->threads = leati_threads_or_default(options->threads);
    LEATI_TRY(leati_trainer_of(model, &runner->trainer, err));
    LEATI_TRY(leati_binding_init(&runner->binding, model, &sequence->spec, options->mode, err));
    LEATI_TRY(
        leati_binding_set_class_weights(&runner->binding, &sequence->spec, &options->class_weights, err));
    if (options->mode != LEATI_PREDICT) leat_model_reset_metrics(model);
    LEATI_TRY(choose_sequence(runner, sequence, options, err));
    runner->options = options->feed;
    divide_work(runner);
    runner->tries_places = options->mode == LEATI_TRAIN && !options->parallel;
    runner->config = (leat_feed_config){&runner->sequence, &runner->options, options->at};
    if (options->feed.trace) open_lanes(runner, options);
    return LEAT_OK;
}

/* Lets the device read the feed's slots directly.  If it cannot, copies from there are slower. */
static void pin_memory(leati_runner *runner) {
    leati_device *device = leati_trainer_device(runner->trainer);
    void *memory = NULL;
    size_t bytes = 0;
    if (!device) return;
    leati_feed_memory(runner->feed, &memory, &bytes);
    if (device->class->pin(device, memory, bytes, NULL) == LEAT_OK) runner->pinned = memory;
}

/* Afterwards the device does not read the feed's memory any more, from which a staged batch may still be copied. */
static void unpin_memory(leati_runner *runner) {
    leati_device *device = runner->feed ? leati_trainer_device(runner->trainer) : NULL;
    if (!device) return;
    if (runner->pinned)
        device->class->unpin(device, runner->pinned);
    else if (device->class->join(device, NULL) == LEAT_OK)
        (void)device->class->wait(device, NULL);
    runner->pinned = NULL;
}

leat_status leati_runner_open(leati_runner *const *runners, int count, leat_error *err) {
    leat_feed_config configs[max_feeds] = {0};
    leat_feed *feeds[max_feeds] = {0};
    for (int i = 0; i < count; ++i) configs[i] = runners[i]->config;
    LEATI_TRY(leat_feed_open_together(feeds, configs, count, err));
    for (int i = 0; i < count; ++i) {
        runners[i]->feed = feeds[i];
        pin_memory(runners[i]);
    }
    return LEAT_OK;
}

/* Frees the sequences after all feeds are closed: the feeds share their workers, and a worker may be in any
 * sequence. */
int leati_runner_close(leati_runner *const *runners, int count) {
    int stuck = 0;
    for (int i = 0; i < count; ++i) unpin_memory(runners[i]);
    for (int i = 0; i < count; ++i) stuck += leat_feed_close(&runners[i]->feed);
    for (int i = 0; i < count; ++i) {
        leati_runner *runner = runners[i];
        leati_binding_fini(&runner->binding);
        runner->batch = NULL;
        if (stuck == 0)
            leati_free(runner->fixed_length);
        else if (runner->fixed_length)
            leati_trainer_keep(runner->trainer, runner->fixed_length, NULL);
        runner->fixed_length = NULL;
    }
    return stuck;
}

leat_status leati_prefix_stuck(leat_status status, int stuck, leat_error *err) {
    if (stuck == 0) return status;
    return leati_prefix(status, err,
                        "%d worker thread%s still in get: do not free the sequence's data or the model",
                        stuck, stuck == 1 ? " is" : "s are");
}

leat_status leati_runner_await(leati_runner *runner, bool *more, leat_error *err) {
    int64_t start = leati_now_ns();
    leat_status status = leat_feed_await(runner->feed, more, err);
    runner->wait_ns += leati_now_ns() - start;
    return status;
}

static leat_status get(leati_runner *runner, bool *more, leat_error *err) {
    *more = true;
    if (runner->pace != LEATI_PACE_STREAM) LEATI_TRY(leat_feed_await(runner->feed, more, err));
    if (!*more) return LEAT_OK;
    LEATI_TRY(leat_feed_get(runner->feed, &runner->batch, err));
    runner->size = leat_feed_whole(runner->feed, &runner->from);
    ++runner->taken;
    return LEAT_OK;
}

/* Adds the step to the trace.  The feed has already added the wait before the step. */
static void trace_step(const leati_runner *runner, int64_t start, int64_t end) {
    if (!runner->options.trace) return;
    leat_feed_position at = leat_feed_position_get(runner->feed);
    leati_trace_span(runner->options.trace, runner->lane, "step", start, end, at.pass, at.index);
}

/* Lets the step note when the device does what.  The marks cost the host some microseconds, so at most one step in
 * each millisecond is watched, and never two in a row, since the copies beside one step end in the next one. */
static void watch(leati_runner *runner, const leati_compiled_step *step, int64_t start) {
    enum { pause_ns = 1000000 };
    if (!runner->options.trace || !leati_trainer_device(runner->trainer)) return;
    const bool rests = runner->is_watched || start - runner->watched_ns < pause_ns;
    runner->is_watched = !rests;
    if (rests) return;
    runner->watched_ns = start;
    leati_plan_watch_next(step->plan);
}

static void trace_copies(const leati_runner *runner, const char *name, int64_t start, int64_t end) {
    if (start > 0 && end > start)
        leati_trace_span(runner->options.trace, runner->copy_lane, name, start, end, -1, -1);
}

/* Adds what the device has noted of the current batch's run, and of the copies for it. */
static void trace_device(const leati_runner *runner, const leati_compiled_step *step) {
    leat_trace *trace = runner->options.trace;
    leati_plan_times t;
    if (!trace || !leati_plan_take_times(step->plan, &t)) return;
    leat_feed_position at = leat_feed_position_get(runner->feed);
    trace_copies(runner, "next batch", t.staging_ns, t.staged_ns);
    if (t.ended_ns == 0) return;
    leati_trace_span(trace, runner->lane, "launch", t.given_ns, t.launched_ns, at.pass, at.index);
    if (runner->copied_ns > 0) trace_copies(runner, "wait for the batch", t.given_ns, t.copied_ns);
    leati_trace_span(trace, runner->compute_lane, "step", t.copied_ns, t.ended_ns, at.pass, at.index);
}

/* With several ranks, generators end when they like, so that their ranks agree at once whether there is a batch. */
leat_status leati_runner_take(leati_runner *runner, bool *more, leat_error *err) {
    leati_parallel *parallel = runner->parallel;
    runner->asked_ns = leati_now_ns();
    runner->failed = get(runner, more, err);
    runner->waited_ns = leati_now_ns() - runner->asked_ns;
    if (runner->failed == LEAT_OK) runner->wait_ns += runner->waited_ns;
    if (!parallel) return runner->failed;
    if (runner->pace == LEATI_PACE_GENERATOR)
        return leati_parallel_agree(parallel->dist, runner->failed, err);
    if (runner->failed != LEAT_OK) *more = true;
    return LEAT_OK;
}

/* Begins to copy the next batch to the device if it is ready and has the shapes of `step`.  Class weights are computed
 * for one batch at a time, so then nothing is staged. */
static leat_status stage(leati_runner *runner, const leati_compiled_step *step, leat_error *err) {
    leati_program_spec spec;
    const void *pointers[3 * LEATI_PROGRAM_MAX_OUTPUTS];
    const leat_batch *next = runner->binding.has_classes ? NULL : leati_feed_peek(runner->feed);
    if (!next || next->size != runner->size) return LEAT_OK;
    LEATI_TRY(leati_binding_apply(&runner->binding, next, &spec, pointers, err));
    if (memcmp(&spec, &step->spec, sizeof spec) != 0) return LEAT_OK;
    LEATI_TRY(leati_plan_stage(step->plan, pointers, err));
    runner->staged = next;
    return LEAT_OK;
}

/* Stages the next batch while the device computes, as soon as the batch is ready.  Sleeping would delay a short step,
 * so the first look_ns pass without sleep. */
static leat_status stage_meanwhile(leati_runner *runner, const leati_compiled_step *step, leat_error *err) {
    enum { look_ns = 500000, pause_ns = 50000 };
    const struct timespec pause = {.tv_nsec = pause_ns};
    const int64_t start = leati_now_ns();
    leati_device *device = leati_trainer_device(runner->trainer);
    if (!device || !leati_plan_can_stage(step->plan)) return LEAT_OK;
    LEATI_TRY(stage(runner, step, err));
    while (!runner->staged && !device->class->is_idle(device)) {
        if (leati_now_ns() - start > look_ns) (void)nanosleep(&pause, NULL);
        LEATI_TRY(stage(runner, step, err));
    }
    return LEAT_OK;
}

/* If one sample of the current batch caused the failure, prefixes the message with the sample's number in the data, if
 * known.  The failure comes from the samples of the batch from `first` on.  `user` is a runner. */
static leat_status name_sample(const void *user, leat_status status, int64_t first, leat_error *err) {
    const leati_runner *runner = user;
    const int64_t place = status == LEAT_OK ? -1 : leati_error_place(err);
    const int64_t number = place < 0 ? -1 : leati_feed_sample(runner->feed, first + place);
    return number < 0 ? status : leati_prefix(status, err, "sample %" PRId64 " of the data", number);
}

static leati_parallel_batch batch_for_ranks(leati_runner *runner) {
    return (leati_parallel_batch){.trainer = runner->trainer,
                                  .binding = &runner->binding,
                                  .batch = runner->batch,
                                  .whole = runner->size,
                                  .from = runner->from,
                                  .taken = runner->failed,
                                  .threads = runner->threads,
                                  .seed = runner->seed,
                                  .waited_ns = runner->waited_ns,
                                  .name_sample = name_sample,
                                  .user = runner};
}

static leat_status run_parallel(leati_runner *runner, leat_error *err) {
    const leati_parallel_batch batch = batch_for_ranks(runner);
    return leati_parallel_run(runner->parallel, &batch, err);
}

static leat_status run(leati_runner *runner, const leati_compiled_step **step, leat_error *err) {
    leati_program_spec spec;
    const void *pointers[3 * LEATI_PROGRAM_MAX_OUTPUTS];
    bool staged = runner->staged == runner->batch;
    runner->staged = NULL;
    LEATI_TRY(leati_binding_apply(&runner->binding, runner->batch, &spec, pointers, err));
    if (runner->tries_places)
        leati_trainer_try_places(runner->trainer, runner->steps == 0, runner->options.max_queue_size);
    LEATI_TRY(leati_trainer_step(runner->trainer, &spec, runner->threads, step, err));
    watch(runner, *step, leati_now_ns());
    LEATI_TRY(leati_trainer_start(runner->trainer, *step, pointers, staged, runner->seed, err));
    leat_status status = stage_meanwhile(runner, *step, err);
    leat_status ended = leati_trainer_finish(runner->trainer, *step, status == LEAT_OK ? err : NULL);
    runner->copied_ns = leati_plan_copy_wait_ns((*step)->plan);
    trace_device(runner, *step);
    return status == LEAT_OK ? ended : status;
}

/* Releases the batch that was computed since `start`, and notes the time. */
static void finish(leati_runner *runner, int64_t start) {
    if (!runner->batch) return; /* this rank had none: it has only told the others why */
    leat_feed_release(runner->feed);
    runner->batch = NULL;
    int64_t end = leati_now_ns();
    if (runner->copied_ns > end - start) runner->copied_ns = end - start;
    runner->computed_ns = end - start - runner->copied_ns;
    runner->copy_ns += runner->copied_ns;
    runner->compute_ns += runner->computed_ns;
    ++runner->steps;
    trace_step(runner, start, end);
}

leat_status leati_runner_run(leati_runner *runner, const leati_compiled_step **step, leat_error *err) {
    int64_t start = leati_now_ns();
    leat_status status = LEAT_OK;
    *step = NULL;
    runner->copied_ns = 0;
    if (runner->parallel)
        status = run_parallel(runner, err);
    else
        status = name_sample(runner, run(runner, step, err), 0, err);
    finish(runner, start);
    if (*step && runner->tries_places)
        leati_trainer_count_iteration(runner->trainer, *step,
                                      runner->waited_ns + runner->copied_ns + runner->computed_ns);
    return status;
}

leat_status leati_runner_predict(leati_runner *runner, leat_predictions *predictions, leat_error *err) {
    int64_t start = leati_now_ns();
    const leati_parallel_batch batch = batch_for_ranks(runner);
    leat_status status = leati_parallel_predict(runner->parallel, &batch, predictions, err);
    finish(runner, start);
    return status;
}

leat_status leati_runner_measure(const leati_runner *runner, leati_meter *meter, const leat_model *model,
                                 const leati_compiled_step *step, leat_error *err) {
    if (!runner->parallel) return leati_meter_add(meter, model, step, runner->size, err);
    const leati_metric_batch *whole[LEATI_PROGRAM_MAX_METRICS] = {NULL};
    leati_whole_metrics *metrics = &runner->parallel->whole;
    for (int i = 0; i < model->compiled.metric_count; ++i)
        if (metrics->is_used[i]) whole[i] = &metrics->batches[i];
    return leati_meter_add_sums(meter, model, runner->parallel->sums, whole, runner->size, err);
}

int64_t leati_runner_skips(leati_runner *runner) {
    int64_t all = leat_feed_stats_get(runner->feed).skips, more = all - runner->skips;
    runner->skips = all;
    return more;
}
