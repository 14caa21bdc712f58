/* SPDX-License-Identifier: Apache-2.0 */
/* Feed and trainer joined.  Layer: train. */
#include "train/runner.h"

#include "base/clock.h"
#include "base/error.h"

int leati_threads_or_default(int threads) {
    return threads > 0 ? threads : leati_core_count();
}

leat_status leati_arrays_sequence(leat_sequence *out, const leat_arrays *arrays, int64_t batch_size,
                                  leat_error *err) {
    leat_source_options options = leat_source_options_default();
    if (batch_size != 0) options.batch_size = batch_size;
    return leat_arrays_open(out, arrays, &options, err);
}

static int64_t window_length(void *user) {
    return ((const leati_window_sequence *)user)->steps;
}

static leat_status window_get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    const leat_sequence *inner = ((const leati_window_sequence *)user)->inner;
    int64_t length = inner->length(inner->user);
    if (length < 1) return leati_fail(err, LEAT_EINVAL, "the sequence has become empty");
    return inner->get(inner->user, index % length, rng, batch, err);
}

static leat_status window_end(void *user, int64_t pass, leat_error *err) {
    const leat_sequence *inner = ((const leati_window_sequence *)user)->inner;
    return inner->on_epoch_end(inner->user, pass, err);
}

static leat_status window_init(void *user, int worker, leat_error *err) {
    const leat_sequence *inner = ((const leati_window_sequence *)user)->inner;
    return inner->worker_init(inner->user, worker, err);
}

static void window_fini(void *user, int worker) {
    const leat_sequence *inner = ((const leati_window_sequence *)user)->inner;
    inner->worker_fini(inner->user, worker);
}

static leat_sequence windowed(leati_window_sequence *window) {
    leat_sequence sequence = *window->inner;
    sequence.user = window;
    sequence.length = window_length;
    sequence.get = window_get;
    sequence.samples = NULL;
    sequence.get_samples = NULL;
    if (sequence.on_epoch_end) sequence.on_epoch_end = window_end;
    if (sequence.worker_init) sequence.worker_init = window_init;
    if (sequence.worker_fini) sequence.worker_fini = window_fini;
    sequence.destroy = NULL;
    return sequence;
}

leat_status leati_runner_open(leati_runner *runner, leat_model *model, const leat_sequence *sequence,
                              const leati_runner_options *options, leat_error *err) {
    *runner = (leati_runner){.window = {sequence, options->steps}, .seed = options->feed.seed};
    runner->threads = leati_threads_or_default(options->threads);
    leat_status status = leati_trainer_of(model, &runner->trainer, err);
    if (status == LEAT_OK)
        status = leati_binding_init(&runner->binding, model, &sequence->spec, options->mode, err);
    if (status == LEAT_OK)
        status = leati_binding_set_class_weight(&runner->binding, options->class_weight,
                                                options->class_weight_count, err);
    if (status == LEAT_OK) {
        leat_sequence seen = options->steps > 0 ? windowed(&runner->window) : *sequence;
        status = leat_feed_open(&runner->feed, &seen, &options->feed, err);
    }
    if (status != LEAT_OK) leati_runner_close(runner);
    return status;
}

void leati_runner_close(leati_runner *runner) {
    leat_feed_close(&runner->feed);
    leati_binding_fini(&runner->binding);
    runner->batch = NULL;
}

leat_status leati_runner_take(leati_runner *runner, leat_error *err) {
    int64_t start = leati_now_ns();
    LEATI_TRY(leat_feed_get(runner->feed, &runner->batch, err));
    runner->wait_ns += leati_now_ns() - start;
    runner->size = runner->batch->size;
    return LEAT_OK;
}

static leat_status run(leati_runner *runner, const leati_compiled_step **step, leat_error *err) {
    leati_program_spec spec;
    const void *pointers[3 * LEATI_PROGRAM_MAX_OUTPUTS];
    LEATI_TRY(leati_binding_apply(&runner->binding, runner->batch, &spec, pointers, err));
    LEATI_TRY(leati_trainer_step(runner->trainer, &spec, runner->threads, step, err));
    return leati_trainer_run(runner->trainer, *step, pointers, runner->seed, err);
}

leat_status leati_runner_run(leati_runner *runner, const leati_compiled_step **step, leat_error *err) {
    int64_t start = leati_now_ns();
    leat_status status = run(runner, step, err);
    leat_feed_release(runner->feed);
    runner->batch = NULL;
    runner->compute_ns += leati_now_ns() - start;
    ++runner->steps;
    return status;
}
