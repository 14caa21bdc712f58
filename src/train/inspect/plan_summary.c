/* SPDX-License-Identifier: Apache-2.0 */
/* leat_model_plan_summary: compiles a plan for made-up data like for real data, and measures its steps if the
 * options ask for it.  Room: train. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/os/clock.h"
#include "base/error.h"
#include "base/growing.h"
#include "base/memory.h"
#include "leat/rng.h"
#include "nn/network/network.h"
#include "train/inspect/plan_view.h"
#include "train/loop/runner.h"
#include "train/step/snapshot.h"

enum { LEAST_RUNS = 5, MOST_RUNS = 101 };
#define RUN_NS INT64_C(1000000000) /* the time after which measuring ends, but not before LEAST_RUNS runs */

static const leat_plan_options defaults = {.batch_size = 32, .unknown = 32};
static const leati_growing options_type = LEATI_GROWING(leat_plan_options, batch_size, &defaults);

void leat_plan_options_init(leat_plan_options *options, size_t size) {
    leati_growing_init(&options_type, options, size);
}

/* ---- Made-up data ---- */

typedef struct sample_data {
    int count;
    void *data[3 * LEATI_PROGRAM_MAX_OUTPUTS];
} sample_data;

static void sample_data_fini(sample_data *m) {
    for (int i = 0; i < m->count; ++i) leati_free(m->data[i]);
}

/* Fills a tensor with random numbers in [0, 1), which serve as images and as probabilities, and as class 0 when
 * converted to integers. */
static leat_status add_sample_data(sample_data *m, const leati_desc *desc, leat_error *err) {
    int64_t count = leati_desc_count(desc);
    leat_rng rng = leat_rng_for(1, 0, (uint64_t)m->count);
    float *data = leati_calloc((size_t)count + 1, sizeof *data);
    if (!data) return leati_fail_memory(err, (size_t)count * sizeof *data, "made-up data");
    for (int64_t i = 0; i < count; ++i) data[i] = (float)leat_rng_uniform(&rng);
    m->data[m->count++] = data;
    return LEAT_OK;
}

static leati_desc desc_of(const leati_shape *shape) {
    return leati_desc_make(LEAT_F32, shape->rank, shape->dims);
}

static leat_status describe_inputs(const leat_model *model, const leat_plan_options *options,
                                   leati_program_spec *spec, leati_shape *shapes, sample_data *m,
                                   leat_error *err) {
    for (int i = 0; i < model->input_count; ++i) {
        shapes[i] = leati_model_input_shape(model, i);
        for (int k = 0; k < shapes[i].rank; ++k)
            if (shapes[i].dims[k] < 0) shapes[i].dims[k] = k == 0 ? options->batch_size : options->unknown;
        spec->inputs[i] = desc_of(&shapes[i]);
        LEATI_TRY(add_sample_data(m, &spec->inputs[i], err));
    }
    spec->input_count = model->input_count;
    return LEAT_OK;
}

static leat_status describe_targets(const leat_model *model, leati_program_spec *spec,
                                    const leati_shape *outputs, sample_data *m, leat_error *err) {
    for (int i = 0; i < model->output_count; ++i) {
        const leati_output_loss *loss = &model->compiled.losses[i];
        leati_shape shape = outputs[i];
        spec->weights[i].rank = spec->targets[i].rank = -1;
        if (!loss->type) continue;
        if (loss->type->sparse && shape.rank > 0) shape.dims[shape.rank - 1] = 1;
        if (loss->type->label_lists && shape.rank == 3) shape.rank = 2;
        spec->targets[i] = desc_of(&shape);
        LEATI_TRY(add_sample_data(m, &spec->targets[i], err));
    }
    spec->target_count = model->output_count;
    return LEAT_OK;
}

static leat_status describe(const leat_model *model, const leat_plan_options *options,
                            leati_program_spec *spec, sample_data *m, leat_error *err) {
    leati_shape inputs[LEATI_PROGRAM_MAX_OUTPUTS], outputs[LEATI_PROGRAM_MAX_OUTPUTS];
    LEATI_TRY(leati_network_check_counts(model, err));
    memset(spec, 0, sizeof *spec);
    spec->mode = options->train ? LEATI_TRAIN : LEATI_PREDICT;
    LEATI_TRY(describe_inputs(model, options, spec, inputs, m, err));
    if (!options->train) return LEAT_OK;
    if (!model->compiled.ready)
        return leati_fail(err, LEAT_EINVAL,
                          "the model must be compiled for a training step: leat_model_compile");
    LEATI_TRY(leati_network_infer(model, inputs, outputs, err));
    return describe_targets(model, spec, outputs, m, err);
}

/* ---- Measuring ---- */

/* Computes the median time of each step; times is (runs, steps). */
static void take_medians(leati_plan_view *view, const int64_t *times, int runs) {
    int64_t column[MOST_RUNS];
    for (int32_t s = 0; s < view->count; ++s) {
        for (int r = 0; r < runs; ++r) column[r] = times[(int64_t)r * view->count + s];
        view->step_ns[s] = (double)leati_step_median(column, runs);
        view->total_ns += view->step_ns[s];
    }
}

/* Restores the model after each run, so that training on made-up data does not diverge to values that are not
 * finite. */
static leat_status run_repeatedly(leati_plan_view *view, leat_model *model, leati_trainer *trainer,
                                  const void *const *data, const leati_step_snapshot *saved, int64_t *times,
                                  leat_error *err) {
    int runs = 0;
    int64_t start = leati_now_ns();
    for (int r = -1; r < MOST_RUNS; ++r) { /* run -1 is not counted */
        if (r == 0) start = leati_now_ns();
        double share = fmin((double)r / LEAST_RUNS, (double)(leati_now_ns() - start) / (double)RUN_NS);
        if (share >= 1) break;
        if (model->watch) model->watch(model->watcher, fmax(share, 0));
        LEATI_TRY(leati_trainer_run_timed(trainer, view->step, data,
                                          times + (int64_t)(r < 0 ? 0 : r) * view->count, err));
        leati_step_snapshot_restore(saved, model);
        runs = r + 1;
    }
    take_medians(view, times, runs);
    return LEAT_OK;
}

static leat_status measure(leati_plan_view *view, leat_model *model, leati_trainer *trainer,
                           const void *const *data, leat_error *err) {
    leati_step_snapshot saved = {0};
    size_t cells = (size_t)MOST_RUNS * ((size_t)view->count + 1);
    int64_t *times = leati_calloc(cells, sizeof *times);
    view->step_ns = leati_calloc((size_t)view->count + 1, sizeof *view->step_ns);
    leat_status status =
        times && view->step_ns ? LEAT_OK : leati_fail_memory(err, cells * sizeof *times, "times");
    if (status == LEAT_OK) status = leati_step_snapshot_take(&saved, model, view->options.train, err);
    if (status == LEAT_OK) status = run_repeatedly(view, model, trainer, data, &saved, times, err);
    if (model->watch) model->watch(model->watcher, 1);
    leati_step_snapshot_fini(&saved);
    leati_free(times);
    return status;
}

/* ---- The summary ---- */

static void add_up(leati_plan_view *view) {
    view->count = leati_plan_step_count(view->step->plan);
    for (int32_t s = 0; s < view->count; ++s) {
        leati_plan_step step;
        leati_plan_step_get(view->step->plan, s, &step);
        view->grouped += step.runs > 1;
        view->measured += step.measured;
        view->operations += step.operations;
        view->reorders += step.reorders;
        view->reorder_bytes += step.reorder_bytes;
        view->kept_bytes += step.kept_bytes;
    }
}

static leat_status summarise(leat_model *model, leati_plan_view *view, sample_data *m, char **out,
                             leat_error *err) {
    leati_program_spec spec;
    leati_trainer *trainer = NULL;
    const void *data[3 * LEATI_PROGRAM_MAX_OUTPUTS];
    LEATI_TRY(describe(model, &view->options, &spec, m, err));
    LEATI_TRY(leati_trainer_of(model, &trainer, err));
    LEATI_TRY(leati_trainer_step(trainer, &spec, view->options.threads, &view->step, err));
    for (int i = 0; i < m->count; ++i) data[i] = m->data[i];
    add_up(view);
    if (view->options.time) LEATI_TRY(measure(view, model, trainer, data, err));
    return view->options.json ? leati_plan_json(view, out, err) : leati_plan_table(view, out, err);
}

leat_status leat_model_plan_summary(leat_model *model, const leat_plan_options *options, char **out,
                                    leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_GIVEN(model, err);
    leati_plan_view view = {.model = model};
    LEATI_TRY(leati_growing_read(&options_type, options, &view.options, err));
    sample_data m = {0};
    if (view.options.batch_size < 1 || view.options.unknown < 1 || view.options.threads < 0)
        return leati_fail(err, LEAT_EINVAL,
                          "expected batch_size and unknown of at least 1 and threads of at least 0");
    view.options.threads = leati_threads_or_default(view.options.threads);
    leat_status status = summarise(model, &view, &m, out, err);
    sample_data_fini(&m);
    leati_free(view.step_ns);
    return status;
}
