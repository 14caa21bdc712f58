/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate_generator, predict_generator, evaluate and predict: one pass through the data.  Room: train. */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/growing.h"
#include "base/memory.h"
#include "leat/train.h"
#include "nn/model/model.h"
#include "tensor/sequence.h"
#include "train/hooks/training.h"
#include "train/loop/runner.h"
#include "train/parallel/traits.h"
#include "train/step/predictions.h"

static const leat_evaluate_options defaults = {.max_queue_size = 10,
                                               .workers = 1,
                                               .faults = {.max_deaths = 3}};
static const leati_growing options_type = LEATI_GROWING(leat_evaluate_options, steps, &defaults);

void leat_evaluate_options_init(leat_evaluate_options *options, size_t size) {
    leati_growing_init(&options_type, options, size);
}

/* The differences between an evaluation and a prediction. */
typedef struct pass_kind {
    leati_mode mode;
    const char *name; /* name of the feed, and of the lanes in a trace */
    leati_hook begin, end, batch_begin, batch_end;
} pass_kind;

static const pass_kind evaluating = {LEATI_TEST,
                                     "evaluation",
                                     LEATI_HOOK_on_test_begin,
                                     LEATI_HOOK_on_test_end,
                                     LEATI_HOOK_on_test_batch_begin,
                                     LEATI_HOOK_on_test_batch_end};
static const pass_kind predicting = {LEATI_PREDICT,
                                     "prediction",
                                     LEATI_HOOK_on_predict_begin,
                                     LEATI_HOOK_on_predict_end,
                                     LEATI_HOOK_on_predict_batch_begin,
                                     LEATI_HOOK_on_predict_batch_end};

typedef struct pass_loop {
    const pass_kind *kind;
    leat_training training;
    leat_evaluate_options options; /* the caller's options, copied into this version's struct */
    leat_sequence sequence;
    leati_runner runner;
    leati_parallel parallel; /* with options.dist */
    leati_meter meter;
    leat_logs *logs;               /* results of an evaluation */
    leat_predictions *predictions; /* results of a prediction */
} pass_loop;

static leat_status compute(pass_loop *loop, leat_logs *batch, leat_error *err) {
    leati_runner *runner = &loop->runner;
    leat_model *model = loop->training.model;
    const leati_compiled_step *compiled = NULL;
    const bool predicts = loop->kind->mode == LEATI_PREDICT;
    if (predicts && runner->parallel) return leati_runner_predict(runner, loop->predictions, err);
    LEATI_TRY(leati_runner_run(runner, &compiled, err));
    if (predicts) return leati_predictions_append(loop->predictions, compiled, runner->size, err);
    LEATI_TRY(leati_runner_measure(runner, &loop->meter, model, compiled, err));
    leati_meter_logs(&loop->meter, model, "", batch);
    return LEAT_OK;
}

/* Sets *more to false if there was no batch for this step. */
static leat_status one_step(pass_loop *loop, int64_t step, bool *more, leat_error *err) {
    leat_logs batch = {0};
    LEATI_TRY(leati_runner_take(&loop->runner, more, err));
    if (!*more) return LEAT_OK;
    leat_logs_set(&batch, "batch", (double)step);
    leat_logs_set(&batch, "size", (double)loop->runner.size);
    LEATI_TRY(leati_training_begin_batch(&loop->training, loop->kind->batch_begin, loop->runner.failed, step,
                                         &batch, err));
    leat_status status = compute(loop, &batch, err);
    if (status != LEAT_OK) return leati_prefix(status, err, "batch %" PRId64, step);
    return leati_training_call(&loop->training, loop->kind->batch_end, step, &batch, err);
}

static leat_status run_steps(pass_loop *loop, int64_t *done, leat_error *err) {
    int64_t steps = loop->training.params.steps;
    bool more = true;
    for (*done = 0; *done < steps; ++*done) {
        if (*done > 0 && leati_training_should_stop(&loop->training))
            return leati_fail(err, LEAT_ESTOPPED, "%s after batch %" PRId64 " of %" PRId64,
                              loop->training.stop_reason, *done - 1, steps);
        LEATI_TRY(one_step(loop, *done, &more, err));
        if (!more) break;
    }
    return *done > 0 ? LEAT_OK : leati_fail(err, LEAT_EINVAL, "the generator gave no batch");
}

/* Logs warnings about the pass, below the progress bar. */
static void log_warnings(pass_loop *loop, int64_t done) {
    int64_t steps = loop->training.params.steps, skips = leati_runner_skips(&loop->runner);
    if (skips > 0)
        leati_training_log(&loop->training, LEAT_LOG_WARNING,
                           "leat: %s passed over %" PRId64 " bad batch%s: %" PRId64 " of %" PRId64
                           " steps were made",
                           loop->kind->name, skips, skips == 1 ? "" : "es", done, steps);
    if (done < steps && loop->runner.pace == LEATI_PACE_GENERATOR)
        leati_training_log(&loop->training, LEAT_LOG_WARNING,
                           "leat: %s: the generator ended after %" PRId64 " of %" PRId64 " steps",
                           loop->kind->name, done, steps);
}

static leat_status run_pass(pass_loop *loop, const leat_evaluate_options *options, leat_error *err) {
    leat_logs logs = {0};
    int64_t done = 0;
    loop->training.params.steps =
        loop->runner.pace == LEATI_PACE_GENERATOR ? options->steps : leat_feed_length(loop->runner.feed);
    LEATI_TRY(leati_training_call(&loop->training, loop->kind->begin, 0, &logs, err));
    LEATI_TRY(run_steps(loop, &done, err));
    if (loop->kind->mode == LEATI_TEST) {
        leati_meter_logs(&loop->meter, loop->training.model, "", &logs);
        *loop->logs = logs;
    }
    LEATI_TRY(leati_training_call(&loop->training, loop->kind->end, 0, &logs, err));
    log_warnings(loop, done);
    return leat_feed_end_pass(loop->runner.feed, err);
}

static leat_status open_and_run(pass_loop *loop, leat_error *err) {
    const leat_evaluate_options *options = &loop->options;
    const leat_sequence *sequence = &loop->sequence;
    leati_runner_options runner_options = {.mode = loop->kind->mode,
                                           .steps = options->steps,
                                           .lanes = loop->kind->name,
                                           .lane = "steps",
                                           .threads = leati_rank_threads(options->dist, options->threads),
                                           .parallel = options->dist ? &loop->parallel : NULL,
                                           .feed = leat_feed_options_default()};
    leati_runner *runner = &loop->runner;
    runner_options.feed.workers = options->workers;
    runner_options.feed.use_multiprocessing = options->use_multiprocessing;
    runner_options.feed.max_queue_size = options->max_queue_size;
    runner_options.feed.memory = options->feed_memory;
    runner_options.feed.seed = options->seed;
    runner_options.feed.faults = options->faults;
    runner_options.feed.trace = options->trace;
    runner_options.feed.name = loop->kind->name;
    if (sequence->next)
        runner_options.feed.limit = options->steps;
    else
        runner_options.feed.passes = 1;
    LEATI_TRY(leati_runner_prepare(runner, loop->training.model, sequence, &runner_options, err));
    loop->training.params.batch_size = sequence->spec.batch_size;
    LEATI_TRY(leati_parallel_agree(loop->options.dist, leati_runner_open(&runner, 1, err), err));
    return run_pass(loop, options, err);
}

/* The data of a pass, and the place of its results. */
typedef struct pass_task {
    const leat_sequence *sequence;
    int64_t samples; /* 0 if unknown */
    leat_logs *logs;
    leat_predictions *predictions;
    int stuck; /* worker threads that are still in `get` */
} pass_task;

/* Checks that all ranks compute the same. */
static leat_status meet(pass_loop *loop, leat_error *err) {
    const leat_evaluate_options *o = &loop->options;
    const leat_model *model = loop->training.model;
    const leat_sequence *data = &loop->sequence;
    if (!o->dist || o->dist->size == 1) return LEAT_OK;
    const leati_trait traits[] = {
        {"evaluation or prediction", loop->kind->mode, false},
        {"the model", leati_trait_model(model), true},
        {"the weights", leati_trait_weights(model), true},
        {"the compilation of the model", model->compiled.ready ? leati_trait_compilation(model) : 0, true},
        {"--deterministic", model->deterministic, false},
        {"the seed", (int64_t)o->seed, false},
        {"steps", o->steps, false},
        {"the batch size", data->spec.batch_size, false},
        {"the number of batches of the data", leati_trait_length(data), false},
        {"the samples of the data", data->samples ? data->samples(data->user) : -1, false},
    };
    LEATI_TRY(leati_traits_compare(o->dist, traits, sizeof traits / sizeof *traits, err));
    uint64_t version = model->weights_version; /* all ranks have the weights of rank 0 */
    LEATI_TRY(leati_dist_broadcast(o->dist, &version, sizeof version, 0, err));
    loop->training.synced_version = version;
    return LEAT_OK;
}

/* With several ranks, rank 0 alone calls callbacks and shows the progress. */
static leat_status prepare_callbacks(leat_training *training, const leat_evaluate_options *options,
                                     leat_error *err) {
    const bool leads = leat_dist_rank(options->dist) == 0;
    LEATI_TRY(leati_training_set_verbose(training, leads ? options->verbose : 0, err));
    if (!leads) return LEAT_OK;
    return leati_training_set_callbacks(training, options->callbacks, options->callback_count, err);
}

/* Copies the caller's structs into structs of this version, and checks them. */
static leat_status prepare(pass_loop *loop, leat_model *model, const pass_task *task,
                           const leat_evaluate_options *caller, leat_error *err) {
    leat_training *training = &loop->training;
    const leat_evaluate_options *options = &loop->options;
    LEATI_TRY(leati_growing_read(&options_type, caller, &loop->options, err));
    LEATI_TRY(leati_sequence_read(task->sequence, &loop->sequence, err));
    LEATI_TRY(leati_require_steps(&loop->sequence, options->steps, "steps", "the data", err));
    loop->logs = task->logs;
    loop->predictions = task->predictions;
    training->model = model;
    training->params.size = sizeof training->params;
    training->params.samples = task->samples;
    training->dist = options->dist;
    if (options->dist) {
        LEATI_TRY(leati_parallel_init(&loop->parallel, options->dist, model, loop->kind->mode, NULL, err));
        loop->parallel.requested = &training->requested;
    }
    LEATI_TRY(prepare_callbacks(training, options, err));
    if (loop->kind->mode != LEATI_TEST) return LEAT_OK;
    LEATI_TRY(leati_meter_init(&loop->meter, model, err));
    return leati_training_name(training, false, err);
}

static leat_status pass(const pass_kind *kind, leat_model *model, pass_task *task,
                        const leat_evaluate_options *options, leat_error *err) {
    pass_loop *loop = leati_calloc(1, sizeof *loop);
    if (!loop) return leati_fail_memory(err, sizeof *loop, "a pass");
    loop->kind = kind;
    leat_status status = prepare(loop, model, task, options, err);
    status = leati_parallel_agree(loop->options.dist, status, err);
    if (status == LEAT_OK) status = meet(loop, err);
    if (status == LEAT_OK) status = leati_training_meet(&loop->training, err);
    if (status == LEAT_OK) {
        leati_training_enter(&loop->training);
        status = open_and_run(loop, err);
        leati_training_leave(&loop->training);
    }
    task->stuck = leati_runner_close((leati_runner *const[]){&loop->runner}, 1);
    leati_training_fini(&loop->training);
    leati_meter_fini(&loop->meter);
    leati_parallel_fini(&loop->parallel);
    leati_free(loop);
    return status == LEAT_OK ? LEAT_OK : leati_prefix_stuck(status, task->stuck, err);
}

static leat_status evaluate(leat_model *model, pass_task *task, const leat_evaluate_options *options,
                            leat_error *err) {
    *task->logs = (leat_logs){0};
    if (!model->compiled.ready)
        return leati_fail(err, LEAT_EINVAL,
                          "the model must be compiled before evaluation: leat_model_compile");
    return pass(&evaluating, model, task, options, err);
}

static leat_status predict(leat_model *model, pass_task *task, const leat_evaluate_options *options,
                           leat_predictions **out, leat_error *err) {
    *out = NULL;
    LEATI_TRY(leati_predictions_create(&task->predictions, model->output_count, err));
    leat_status status = pass(&predicting, model, task, options, err);
    if (status == LEAT_OK)
        *out = task->predictions;
    else
        leat_predictions_destroy(&task->predictions);
    return status;
}

/* Predicts into the caller's memory, and sets shape[0] of each output to the number of predicted samples. */
static leat_status predict_in(leat_model *model, pass_task *task, const leat_evaluate_options *options,
                              leat_tensor *outputs, leat_error *err) {
    LEATI_TRY(leati_predictions_create_in(&task->predictions, model, outputs, task->samples, err));
    leat_status status = pass(&predicting, model, task, options, err);
    for (int i = 0; status == LEAT_OK && i < model->output_count; ++i)
        if (outputs[i].data) outputs[i].shape[0] = leat_predictions_get(task->predictions, i).shape[0];
    leat_predictions_destroy(&task->predictions);
    return status;
}

leat_status leat_model_evaluate_generator(leat_model *model, const leat_sequence *sequence,
                                          const leat_evaluate_options *options, leat_logs *logs,
                                          leat_error *err) {
    LEATI_GIVEN(model, err);
    LEATI_GIVEN(logs, err);
    LEATI_GIVEN(sequence, err);
    pass_task task = {.sequence = sequence, .logs = logs};
    return evaluate(model, &task, options, err);
}

leat_status leat_model_predict_generator(leat_model *model, const leat_sequence *sequence,
                                         const leat_evaluate_options *options, leat_predictions **out,
                                         leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_GIVEN(model, err);
    LEATI_GIVEN(sequence, err);
    pass_task task = {.sequence = sequence};
    return predict(model, &task, options, out, err);
}

leat_status leat_model_evaluate(leat_model *model, const leat_arrays *arrays, int64_t batch_size,
                                const leat_evaluate_options *options, leat_logs *logs, leat_error *err) {
    LEATI_GIVEN(model, err);
    LEATI_GIVEN(logs, err);
    LEATI_GIVEN(arrays, err);
    leat_sequence sequence = {0};
    *logs = (leat_logs){0};
    LEATI_TRY(leati_arrays_sequence(&sequence, model, arrays, batch_size, err));
    pass_task task = {&sequence, arrays->inputs[0].tensor.shape[0], logs, NULL, 0};
    leat_status status = evaluate(model, &task, options, err);
    leati_arrays_close(&sequence, model, task.stuck);
    return status;
}

leat_status leat_model_predict(leat_model *model, const leat_arrays *arrays, int64_t batch_size,
                               const leat_evaluate_options *options, leat_predictions **out,
                               leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_GIVEN(model, err);
    LEATI_GIVEN(arrays, err);
    leat_sequence sequence = {0};
    LEATI_TRY(leati_arrays_sequence(&sequence, model, arrays, batch_size, err));
    pass_task task = {&sequence, arrays->inputs[0].tensor.shape[0], NULL, NULL, 0};
    leat_status status = predict(model, &task, options, out, err);
    leati_arrays_close(&sequence, model, task.stuck);
    return status;
}

leat_status leat_model_predict_generator_into(leat_model *model, const leat_sequence *sequence,
                                              const leat_evaluate_options *options, leat_tensor *outputs,
                                              leat_error *err) {
    LEATI_GIVEN(model, err);
    LEATI_GIVEN(sequence, err);
    LEATI_GIVEN(outputs, err);
    pass_task task = {.sequence = sequence};
    return predict_in(model, &task, options, outputs, err);
}

leat_status leat_model_predict_into(leat_model *model, const leat_arrays *arrays, int64_t batch_size,
                                    const leat_evaluate_options *options, leat_tensor *outputs,
                                    leat_error *err) {
    LEATI_GIVEN(model, err);
    LEATI_GIVEN(arrays, err);
    LEATI_GIVEN(outputs, err);
    leat_sequence sequence = {0};
    LEATI_TRY(leati_arrays_sequence(&sequence, model, arrays, batch_size, err));
    pass_task task = {&sequence, arrays->inputs[0].tensor.shape[0], NULL, NULL, 0};
    leat_status status = predict_in(model, &task, options, outputs, err);
    leati_arrays_close(&sequence, model, task.stuck);
    return status;
}
