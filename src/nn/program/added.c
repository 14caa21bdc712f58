/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out whether what AddLoss and AddMetric layers add is a mean or a sum over the samples of a batch, so that the
 * numbers of its parts add up (decision 0706).  Room: nn. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "engine/graph/build.h"
#include "nn/program/step.h"

typedef leati_step_context context;

/* A batch size that no other axis has: an axis of a multiple of it is, or contains, that of the batch. */
enum { PROBE = 7919 };

/* The kinds of all values of a graph; CONSTANT: the value does not depend on the batch. */
enum { CONSTANT = LEATI_ADDED_MIXED + 1 };

static bool has_batch(const leati_graph *graph, leati_value value) {
    const leati_desc *desc = leati_graph_desc(graph, value);
    for (int i = 0; i < desc->rank; ++i)
        if (desc->shape[i] > 0 && desc->shape[i] % PROBE == 0) return true;
    return false;
}

static int kind_of(const int8_t *kinds, leati_value value) {
    return value < 0 ? CONSTANT : kinds[value];
}

/* Returns the kind that all inputs have beside constants; MIXED if they differ. */
static int common_kind(const leati_node *node, const int8_t *kinds) {
    int found = CONSTANT;
    for (int i = 0; i < node->input_count; ++i) {
        const int kind = kind_of(kinds, node->inputs[i]);
        if (kind == CONSTANT) continue;
        if (found != CONSTANT && found != kind) return LEATI_ADDED_MIXED;
        found = kind;
    }
    return found;
}

/* Sums and multiples of means are means; a constant may be added to a mean, but not to a sum. */
static int kind_of_binary(const leati_node *node, const int8_t *kinds) {
    const int a = kind_of(kinds, node->inputs[0]), b = kind_of(kinds, node->inputs[1]);
    switch (node->attrs.binary.kind) {
    case LEATI_ADD:
    case LEATI_SUB:
        if (a == b) return a;
        return (a == LEATI_ADDED_MEAN && b == CONSTANT) || (b == LEATI_ADDED_MEAN && a == CONSTANT)
                   ? LEATI_ADDED_MEAN
                   : LEATI_ADDED_MIXED;
    case LEATI_MUL:
        if (a == CONSTANT || b == CONSTANT) return a == CONSTANT ? b : a;
        return LEATI_ADDED_MIXED;
    case LEATI_DIV: return b == CONSTANT ? a : LEATI_ADDED_MIXED;
    default: return LEATI_ADDED_MIXED;
    }
}

/* Returns the kind of a result that has lost the batch, or whose operands have. */
static int kind_of_numbers(const leati_node *node, const int8_t *kinds) {
    const int kind = common_kind(node, kinds);
    switch (node->op) {
    case LEATI_OP_REDUCE:
        if (node->attrs.reduce.kind == LEATI_REDUCE_SUM)
            return kind == LEATI_ADDED_APART ? LEATI_ADDED_SUM : kind;
        if (node->attrs.reduce.kind != LEATI_REDUCE_MEAN) return LEATI_ADDED_MIXED;
        return kind == LEATI_ADDED_APART ? LEATI_ADDED_MEAN : kind;
    case LEATI_OP_ELTWISE: {
        const leati_eltwise *f = &node->attrs.eltwise;
        if (f->function != LEATI_FN_LINEAR || kind == LEATI_ADDED_APART) return LEATI_ADDED_MIXED;
        return kind == LEATI_ADDED_SUM && (f->b < 0 || f->b > 0) ? LEATI_ADDED_MIXED : kind;
    }
    case LEATI_OP_BINARY: return kind == LEATI_ADDED_APART ? LEATI_ADDED_MIXED : kind_of_binary(node, kinds);
    case LEATI_OP_RESHAPE:
    case LEATI_OP_BROADCAST:
    case LEATI_OP_TRANSPOSE:
    case LEATI_OP_CAST:
    case LEATI_OP_COPY:
    case LEATI_OP_CONCAT:
    case LEATI_OP_SLICE: return kind == LEATI_ADDED_APART ? LEATI_ADDED_MIXED : kind;
    default: return LEATI_ADDED_MIXED;
    }
}

/* Numbers of the batch that come back to its samples, such as a mean that is subtracted, make samples depend on each
 * other. */
static int kind_of_output(const leati_graph *graph, const leati_node *node, leati_value output,
                          const int8_t *kinds) {
    const int kind = common_kind(node, kinds);
    if (kind == CONSTANT) return has_batch(graph, output) ? LEATI_ADDED_APART : CONSTANT;
    if (kind == LEATI_ADDED_MIXED) return kind;
    if (!has_batch(graph, output)) return kind_of_numbers(node, kinds);
    return kind == LEATI_ADDED_APART ? LEATI_ADDED_APART : LEATI_ADDED_MIXED;
}

/* Returns the kinds of all values, which the caller frees; NULL: no memory. */
static int8_t *find_kinds(const leati_graph *graph) {
    int32_t values = 0;
    for (int32_t n = 0; n < leati_graph_node_count(graph); ++n) {
        const leati_node *node = leati_graph_node_at(graph, n);
        for (int i = 0; i < node->input_count; ++i)
            if (node->inputs[i] >= values) values = node->inputs[i] + 1;
        for (int i = 0; i < node->output_count; ++i)
            if (node->outputs[i] >= values) values = node->outputs[i] + 1;
    }
    int8_t *kinds = leati_calloc((size_t)values + 1, sizeof *kinds);
    for (leati_value v = 0; kinds && v < values; ++v)
        kinds[v] = leati_graph_value(graph, v)->storage == LEATI_IN_INPUT ? LEATI_ADDED_APART : CONSTANT;
    for (int32_t n = 0; kinds && n < leati_graph_node_count(graph); ++n) {
        const leati_node *node = leati_graph_node_at(graph, n);
        for (int i = 0; i < node->output_count; ++i)
            if (node->outputs[i] >= 0)
                kinds[node->outputs[i]] = (int8_t)kind_of_output(graph, node, node->outputs[i], kinds);
    }
    return kinds;
}

/* Constants are the same in all parts, so that their mean is the constant. */
static leati_added_kind told(const int8_t *kinds, leati_value value) {
    return kinds[value] == CONSTANT ? LEATI_ADDED_MEAN : (leati_added_kind)kinds[value];
}

/* Lowers the model for the batch of the probe. */
static leat_status lower_probe(context *probe, leati_lowering *lowering, leat_error *err) {
    leati_value inputs[LEATI_PROGRAM_MAX_OUTPUTS];
    LEATI_TRY(leati_step_bind_inputs(probe, inputs, err));
    LEATI_TRY(
        leati_model_lower(probe->model, lowering, inputs, probe->program->predictions, probe->masks, err));
    return leati_graph_check(probe->graph, err);
}

static leat_status classify(context *probe, leati_lowering *lowering, leati_added_kinds *out,
                            leat_error *err) {
    LEATI_TRY(lower_probe(probe, lowering, err));
    int8_t *kinds = find_kinds(probe->graph);
    if (!kinds)
        return leati_fail_memory(err, (size_t)leati_graph_node_count(probe->graph), "the kinds of values");
    for (int32_t i = 0; i < lowering->added_loss_count; ++i)
        out->losses[i] = told(kinds, lowering->added_losses[i]);
    for (int32_t i = 0; i < lowering->added_count; ++i)
        out->metrics[i] = told(kinds, lowering->added_metrics[i]);
    leati_free(kinds);
    return LEAT_OK;
}

leat_status leati_step_added_kinds(const context *c, leati_added_kinds *out, leat_error *err) {
    leati_program program = {.graph = NULL};
    leati_program_spec spec = *c->spec;
    memset(out, 0, sizeof *out);
    for (int i = 0; i < spec.input_count; ++i) spec.inputs[i].shape[0] = PROBE;
    LEATI_TRY(leati_graph_create(&program.graph, err));
    context probe = {.model = c->model, .spec = &spec, .program = &program, .graph = program.graph};
    leati_lowering lowering = {.graph = program.graph,
                               .mode = spec.mode,
                               .as_keras3 = c->model->as_keras3,
                               .whole_batch = PROBE,
                               .part_batch = PROBE};
    const leat_status status = classify(&probe, &lowering, out, err);
    leati_graph_destroy(&program.graph);
    return status;
}

leat_status leati_step_add_losses(context *c, const leati_lowering *lowering, leati_value *sum,
                                  leat_error *err) {
    leati_added_kinds kinds;
    const float share = leati_share_of_part(&c->totals);
    LEATI_TRY(leati_step_added_kinds(c, &kinds, err));
    for (int32_t i = 0; i < lowering->added_loss_count; ++i) {
        leati_value loss = lowering->added_losses[i];
        if (kinds.losses[i] != LEATI_ADDED_MEAN && kinds.losses[i] != LEATI_ADDED_SUM)
            return leati_fail(
                err, LEAT_ENOTSUP,
                "the number that AddLoss layer number %d adds to the loss is neither a mean nor a "
                "sum over the samples of a batch: such a loss is not supported with several ranks",
                (int)i);
        if (kinds.losses[i] == LEATI_ADDED_MEAN) loss = leati_linear(c->graph, loss, share, 0.0f);
        *sum = *sum == LEATI_NONE ? loss : leati_add(c->graph, *sum, loss);
    }
    return leati_graph_check(c->graph, err);
}
