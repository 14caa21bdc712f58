/* SPDX-License-Identifier: Apache-2.0 */
/* Computes metrics of batches whose samples are on several ranks.  Room: train. */
#include "train/parallel/whole_metrics.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/model/model.h"
#include "train/parallel/parts.h"

void leati_whole_metrics_begin(leati_whole_metrics *m, const leat_model *model) {
    m->model = model;
    memset(m->is_used, 0, sizeof m->is_used);
    for (int i = 0; m->of && i < model->compiled.metric_count; ++i) m->of[i].is_begun = false;
}

static leat_status take(leati_whole_metric *metric, const leati_parts *r, const leati_compiled_step *step,
                        int index, int64_t count, leat_error *err) {
    const leati_program *program = &step->program;
    const leati_value values[LEATI_WHOLE_TENSORS] = {program->metrics[index], program->metric_targets[index],
                                                     program->metric_weights[index]};
    for (int k = 0; k < LEATI_WHOLE_TENSORS; ++k) {
        metric->has[k] = values[k] != LEATI_NONE;
        if (!metric->has[k]) continue;
        const leat_tensor part = leati_plan_output(step->plan, values[k]);
        if (!metric->is_begun) LEATI_TRY(leati_rows_begin(&metric->rows[k], r, &part, err));
        leati_rows_append(&metric->rows[k], &part, count);
    }
    metric->is_begun = true;
    return LEAT_OK;
}

leat_status leati_whole_metrics_take(leati_whole_metrics *m, const leati_parts *r,
                                     const leati_compiled_step *step, int64_t count, leat_error *err) {
    const int metrics = m->model->compiled.metric_count;
    for (int i = 0; i < metrics; ++i) {
        m->is_used[i] = step->program.metric_is_whole[i];
        if (!m->is_used[i]) continue;
        if (!m->of) m->of = leati_calloc((size_t)metrics, sizeof *m->of);
        if (!m->of)
            return leati_fail_memory(err, (size_t)metrics * sizeof *m->of, "metrics of whole batches");
        LEATI_TRY(take(&m->of[i], r, step, i, count, err));
    }
    return LEAT_OK;
}

/* ---- The metric of a batch ---- */

static leati_value input_of(leati_graph *graph, const leati_whole_metric *metric, int k, int *bound) {
    const leat_tensor *whole = &metric->whole[k];
    if (!metric->has[k]) return LEATI_NONE;
    const leati_desc desc = leati_desc_make(whole->dtype, whole->rank, whole->shape);
    return leati_graph_input(graph, (*bound)++, &desc);
}

static void lower(leati_graph *graph, const leati_metric *metric, leati_whole_metric *whole) {
    int bound = 0;
    const leati_value predictions = input_of(graph, whole, 0, &bound);
    const leati_value targets = input_of(graph, whole, 1, &bound);
    const leati_value weights = input_of(graph, whole, 2, &bound);
    whole->values = metric->lower(graph, &metric->options, targets, predictions);
    whole->weights = LEATI_NONE;
    leati_graph_keep(graph, whole->values);
    if (weights == LEATI_NONE) return;
    const leati_value like = leati_weights_like(graph, weights, whole->values);
    whole->weights = leati_graph_node(graph, LEATI_OP_COPY, NULL, 1, &like, NULL);
    leati_graph_keep(graph, whole->weights);
}

static leat_status compile(leati_whole_metrics *m, int index, leat_error *err) {
    leati_whole_metric *whole = &m->of[index];
    leati_graph *graph = NULL;
    if (whole->plan && whole->samples == whole->whole[0].shape[0]) return LEAT_OK;
    leati_plan_destroy(&whole->plan);
    if (!m->arena) LEATI_TRY(leati_arena_create_on(&m->arena, NULL, err));
    LEATI_TRY(leati_graph_create(&graph, err));
    lower(graph, &m->model->compiled.metrics[index], whole);
    leati_plan_options options = leati_plan_options_of(m->model, 1, m->arena);
    options.measures = options.recalls = false;
    whole->samples = whole->whole[0].shape[0];
    return leati_plan_create(&whole->plan, &graph, &options, err);
}

/* Plans of several metrics share an arena, so that their results are copied. */
static leat_status keep_result(leati_whole_metrics *m, int index, int k, leati_value value, leat_error *err) {
    const leat_tensor result = leati_plan_output(m->of[index].plan, value);
    leat_tensor *kept = &m->results[index][k];
    leati_free(kept->data);
    *kept = result;
    kept->data = leati_memdup(result.data, leat_tensor_bytes(&result));
    return kept->data ? LEAT_OK : leati_fail_memory(err, leat_tensor_bytes(&result), "values of a metric");
}

static leat_status compute(leati_whole_metrics *m, int index, leat_error *err) {
    leati_whole_metric *whole = &m->of[index];
    const void *pointers[LEATI_WHOLE_TENSORS];
    int bound = 0;
    for (int k = 0; k < LEATI_WHOLE_TENSORS; ++k)
        if (whole->has[k]) pointers[bound++] = whole->whole[k].data;
    LEATI_TRY(compile(m, index, err));
    LEATI_TRY(leati_plan_run(whole->plan, pointers, 0, 0, err));
    LEATI_TRY(keep_result(m, index, 0, whole->values, err));
    m->batches[index] = (leati_metric_batch){.values = &m->results[index][0]};
    if (whole->weights == LEATI_NONE) return LEAT_OK;
    m->batches[index].weights = &m->results[index][1];
    return keep_result(m, index, 1, whole->weights, err);
}

leat_status leati_whole_metrics_gather(leati_whole_metrics *m, const leati_parts *r, leat_error *err) {
    for (int i = 0; i < m->model->compiled.metric_count; ++i) {
        if (!m->is_used[i]) continue;
        leati_whole_metric *whole = &m->of[i];
        for (int k = 0; k < LEATI_WHOLE_TENSORS; ++k)
            if (whole->has[k]) LEATI_TRY(leati_rows_gather(&whole->rows[k], r, &whole->whole[k], err));
        if (m->model->compiled.metrics[i].lower) {
            LEATI_TRY(compute(m, i, err));
            continue;
        }
        m->batches[i] = (leati_metric_batch){.values = &whole->whole[0],
                                             .targets = whole->has[1] ? &whole->whole[1] : NULL,
                                             .weights = whole->has[2] ? &whole->whole[2] : NULL};
    }
    return LEAT_OK;
}

void leati_whole_metrics_fini(leati_whole_metrics *m) {
    for (int i = 0; m->of && i < m->model->compiled.metric_count; ++i) {
        for (int k = 0; k < LEATI_WHOLE_TENSORS; ++k) leati_rows_fini(&m->of[i].rows[k]);
        leati_plan_destroy(&m->of[i].plan);
        for (int k = 0; k < 2; ++k) leati_free(m->results[i][k].data);
    }
    leati_free(m->of);
    leati_arena_destroy(&m->arena);
    *m = (leati_whole_metrics){0};
}
