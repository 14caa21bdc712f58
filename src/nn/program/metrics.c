/* SPDX-License-Identifier: Apache-2.0 */
/* Adds the metrics to the graph of a step.  Room: nn. */
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "engine/graph/build.h"
#include "nn/losses/types.h"
#include "nn/program/step.h"

typedef leati_step_context context;

#define SHAPE_TEXT_BYTES 128

/* Keeps a value until after the run.  A value that is, or may be, a bound input is copied, since its memory may be
 * gone by then. */
static leati_value keep_for_reading(context *c, leati_value value, bool bound) {
    if (bound) value = leati_graph_node(c->graph, LEATI_OP_COPY, NULL, 1, &value, NULL);
    leati_graph_keep(c->graph, value);
    return value;
}

static leati_value comparable_targets(context *c, const leati_metric *metric) {
    leati_value target = c->targets[metric->output];
    const leati_desc *prediction = leati_graph_desc(c->graph, c->compared[metric->output]);
    if (!leati_desc_same_shape(leati_graph_desc(c->graph, target), prediction)) {
        return leati_graph_fail(c->graph, LEAT_ESHAPE,
                                "metric '%s': expected targets of the shape of the output, as 0 and 1 for "
                                "each class; received class numbers",
                                metric->name);
    }
    return leati_step_as_float(c, target);
}

/* Fails if a metric of class numbers would get other targets, like the same loss in bind_target. */
static bool check_class_numbers(context *c, const leati_metric *metric) {
    const leati_desc *given = leati_graph_desc(c->graph, c->targets[metric->output]);
    leati_desc expected = *leati_graph_desc(c->graph, c->compared[metric->output]);
    char want[SHAPE_TEXT_BYTES], got[SHAPE_TEXT_BYTES];
    if (!metric->class_numbers || expected.rank < 1) return true;
    expected.shape[expected.rank - 1] = 1;
    if (leati_desc_same_shape(given, &expected)) return true;
    leati_graph_fail(c->graph, LEAT_ESHAPE,
                     "target of output '%s': expected shape %s, class numbers, for metric '%s', received %s",
                     leati_model_output_name(c->model, metric->output),
                     leati_shape_text(want, sizeof want, expected.rank, expected.shape), metric->name,
                     leati_shape_text(got, sizeof got, given->rank, given->shape));
    return false;
}

static bool has_option(const leati_metric *metric, const char *key) {
    for (const leati_field *field = metric->fields; field && field->key; ++field)
        if (strcmp(field->key, key) == 0) return true;
    return false;
}

/* True if the metric of a batch is a sum or mean over samples, so that those of the parts of the batch add up. */
static bool adds_up(const context *c, const leati_metric *metric) {
    const int rank = leati_graph_desc(c->graph, c->compared[metric->output])->rank;
    const bool is_overlap =
        metric->lower == leati_loss_dice.measure.lower || metric->lower == leati_loss_tversky.measure.lower;
    const int64_t axis = metric->options.axis;
    const bool along_batch = has_option(metric, "axis") && (axis == 0 || axis == -rank);
    const bool has_states = metric->options.object && !metric->lower;
    return !is_overlap && !along_batch && !has_states;
}

/* Keeps predictions, targets and weights of a part, from which the metric of the whole batch is computed. */
static void keep_for_whole(context *c, int index) {
    const leati_metric *metric = &c->model->compiled.metrics[index];
    const leati_value weights =
        leati_step_weights(c, metric->output, metric->weighted ? c->weights[metric->output] : LEATI_NONE);
    c->program->metric_is_whole[index] = true;
    c->program->metrics[index] = keep_for_reading(c, c->compared[metric->output], true);
    c->program->metric_targets[index] = keep_for_reading(c, c->targets[metric->output], true);
    c->program->metric_weights[index] =
        weights == LEATI_NONE ? LEATI_NONE : keep_for_reading(c, weights, true);
}

/* Returns the targets of a metric.  Those of a sparse crossentropy are integers, which other metrics of the output,
 * such as "mae", compare as numbers. */
static leati_value targets_of(context *c, const leati_metric *metric) {
    const leati_value targets = c->targets[metric->output];
    return metric->class_numbers ? targets : leati_step_as_float(c, targets);
}

static void lower_metric(context *c, int index) {
    const leati_metric *metric = &c->model->compiled.metrics[index];
    if (!check_class_numbers(c, metric)) return;
    if (c->spec->whole_batch > 0 && metric->lower && !adds_up(c, metric)) {
        keep_for_whole(c, index);
        return;
    }
    leati_value values = c->compared[metric->output], targets = LEATI_NONE;
    if (metric->lower)
        values = metric->lower(c->graph, &metric->options, targets_of(c, metric), values);
    else
        targets = keep_for_reading(c,
                                   metric->options.object ? leati_step_as_float(c, c->targets[metric->output])
                                                          : comparable_targets(c, metric),
                                   true);
    leati_value weights =
        leati_step_weights(c, metric->output, metric->weighted ? c->weights[metric->output] : LEATI_NONE);
    if (weights != LEATI_NONE)
        weights = keep_for_reading(c, leati_weights_like(c->graph, weights, values), true);
    c->program->metric_is_whole[index] = c->spec->whole_batch > 0 && !adds_up(c, metric);
    c->program->metrics[index] = keep_for_reading(c, values, !metric->lower);
    c->program->metric_targets[index] = targets;
    c->program->metric_weights[index] = weights;
}

/* Weights the values of a call of an AddMetric layer by the share of the part, if they are of the batch and not of its
 * samples; returns the weights. */
static leati_value weigh_added(context *c, leati_value *value, leati_added_kind kind, const char *name) {
    const float share = leati_share_of_part(&c->totals);
    if (kind == LEATI_ADDED_MIXED)
        return leati_graph_fail(c->graph, LEAT_ENOTSUP,
                                "metric '%s' is neither a mean nor a sum over the samples of a batch: such a "
                                "metric is not supported with several ranks",
                                name);
    if (kind == LEATI_ADDED_SUM) *value = leati_linear(c->graph, *value, 1.0f / share, 0.0f);
    const leati_desc desc = *leati_graph_desc(c->graph, *value);
    return leati_broadcast(c->graph, leati_scalar(c->graph, kind == LEATI_ADDED_APART ? 1.0f : share),
                           desc.rank, desc.shape);
}

static leati_value joined(context *c, int count, const leati_value *values) {
    return keep_for_reading(c, count == 1 ? values[0] : leati_concat(c->graph, count, values, 0), true);
}

/* Keeps the values of all calls of an AddMetric layer.  kinds: of a part of a batch; NULL: the batch is whole. */
static void lower_added_metric(context *c, const leati_lowering *lowering, int index,
                               const leati_added_kinds *kinds) {
    const leati_metric *metric = &c->model->compiled.metrics[index];
    leati_value values[LEATI_LOWERING_MAX_ADDED], weights[LEATI_LOWERING_MAX_ADDED];
    int count = 0;
    c->program->metric_targets[index] = c->program->metric_weights[index] = LEATI_NONE;
    for (int32_t i = 0; i < lowering->added_count; ++i) {
        if (lowering->added_layers[i] != metric->added) continue;
        values[count] = lowering->added_metrics[i];
        if (kinds) weights[count] = weigh_added(c, &values[count], kinds->metrics[i], metric->name);
        ++count;
    }
    if (count > LEATI_MAX_INPUTS || count == 0) {
        leati_graph_fail(c->graph, LEAT_ENOTSUP,
                         "metric '%s': expected 1 to %d calls of its layer, received %d", metric->name,
                         LEATI_MAX_INPUTS, count);
        return;
    }
    c->program->metrics[index] = joined(c, count, values);
    if (kinds) c->program->metric_weights[index] = joined(c, count, weights);
}

leat_status leati_step_lower_metrics(context *c, const leati_lowering *lowering, leat_error *err) {
    leati_added_kinds kinds;
    const bool adds = lowering->added_count > 0 && c->spec->whole_batch > 0;
    if (adds) LEATI_TRY(leati_step_added_kinds(c, &kinds, err));
    leati_graph_label(c->graph, "metrics");
    for (int i = 0; i < c->model->compiled.metric_count; ++i) {
        if (c->model->compiled.metrics[i].added)
            lower_added_metric(c, lowering, i, adds ? &kinds : NULL);
        else
            lower_metric(c, i);
    }
    return leati_graph_check(c->graph, err);
}
