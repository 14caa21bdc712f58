/* SPDX-License-Identifier: Apache-2.0 */
/* Adds the nodes of the backward pass by reverse accumulation (Griewank and Walther, "Evaluating Derivatives", 2008,
 * ch. 3): the nodes are visited from the loss backwards, the gradient rule of each op adds nodes, and the contributions
 * to one value are summed.  Room: engine. */
#include <stddef.h>

#include "base/error.h"
#include "base/memory.h"
#include "engine/graph/build.h"
#include "engine/graph/graph_private.h"
#include "engine/op_semantics/infer.h"

/* The state of one differentiation; the counts and arrays cover the values and nodes that existed before it. */
typedef struct sweep {
    leati_graph *graph;
    int32_t value_count, node_count;
    bool *depends;     /* true if the value depends on some wrt through ops that have a gradient */
    leati_value *diff; /* d loss / d value: the sum of the contributions so far */
    /* Slices of a value whose gradients are not yet in `diff`: the last one by value, the one before it by node. */
    int32_t *last_slice, *slice_before;
} sweep;

static void mark_dependents(const sweep *s) {
    for (int32_t n = 0; n < s->node_count; ++n) {
        const leati_node *node = leati_graph_node_at(s->graph, n);
        if (!leati_op_descriptor_of(node->op)->gradient) continue;
        bool any = false;
        for (int i = 0; i < node->input_count; ++i)
            any |= node->inputs[i] >= 0 && s->depends[node->inputs[i]];
        for (int i = 0; any && i < node->output_count; ++i) s->depends[node->outputs[i]] = true;
    }
}

static void accumulate(const sweep *s, const leati_node *node, leati_value value, leati_value contribution) {
    leati_graph *graph = s->graph;
    if (contribution < 0) return; /* There is no contribution, or the graph has recorded a failure. */
    if (!leati_desc_same_shape(leati_graph_desc(graph, contribution), leati_graph_desc(graph, value))) {
        char a[LEATI_DESC_TEXT_BYTES], b[LEATI_DESC_TEXT_BYTES];
        leati_graph_fail(graph, LEAT_EINTERNAL, "op %s: its gradient has the shape %s, its input %s",
                         leati_op_descriptor_of(node->op)->name,
                         leati_desc_text(a, leati_graph_desc(graph, contribution)),
                         leati_desc_text(b, leati_graph_desc(graph, value)));
        return;
    }
    bool may_be_bf16 = leati_graph_value(graph, value)->may_be_bf16;
    if (may_be_bf16) leati_graph_mark_bf16(graph, contribution);
    s->diff[value] =
        s->diff[value] == LEATI_NONE ? contribution : leati_add(graph, s->diff[value], contribution);
    if (may_be_bf16 && s->diff[value] >= 0) leati_graph_mark_bf16(graph, s->diff[value]);
}

static void apply_rule(const sweep *s, int32_t n, const leati_value *diff_outputs) {
    leati_graph *graph = s->graph;
    const leati_node *node = leati_graph_node_at(graph, n);
    leati_value diff_inputs[LEATI_MAX_INPUTS];
    bool wanted[LEATI_MAX_INPUTS];
    for (int i = 0; i < node->input_count; ++i) {
        wanted[i] = node->inputs[i] >= 0 && s->depends[node->inputs[i]];
        diff_inputs[i] = LEATI_NONE;
    }
    graph->forward = n;
    graph->label = node->label;
    leati_op_descriptor_of(node->op)->gradient(graph, node, diff_outputs, wanted, diff_inputs);
    for (int i = 0; i < node->input_count; ++i)
        if (wanted[i]) accumulate(s, node, node->inputs[i], diff_inputs[i]);
    graph->forward = -1;
}

/* Adds the gradients of the value's slices: joined if they do not overlap, otherwise one by one. */
static void add_slices(const sweep *s, leati_value value) {
    leati_sliced slices[LEATI_MAX_CONCAT];
    const int32_t last = s->last_slice[value];
    int count = 0;
    if (last < 0) return;
    for (int32_t n = last; n >= 0; n = s->slice_before[n], ++count) {
        const leati_node *node = leati_graph_node_at(s->graph, n);
        if (count < LEATI_MAX_CONCAT) slices[count] = (leati_sliced){&node->attrs, s->diff[node->outputs[0]]};
    }
    const leati_node *node = leati_graph_node_at(s->graph, last);
    s->graph->forward = last;
    s->graph->label = node->label;
    leati_value joined =
        count <= LEATI_MAX_CONCAT ? leati_graph_join_slices(s->graph, value, count, slices) : LEATI_NONE;
    s->graph->forward = -1;
    if (joined != LEATI_NONE)
        accumulate(s, node, value, joined);
    else
        for (int32_t n = last; n >= 0; n = s->slice_before[n])
            apply_rule(s, n, &s->diff[leati_graph_node_at(s->graph, n)->outputs[0]]);
    s->last_slice[value] = -1;
}

static void visit(const sweep *s, int32_t n) {
    const leati_node *node = leati_graph_node_at(s->graph, n);
    if (!leati_op_descriptor_of(node->op)->gradient) return;
    leati_value diff_outputs[LEATI_MAX_OUTPUTS];
    bool arrives = false, any = false;
    for (int i = 0; i < node->output_count; ++i) add_slices(s, node->outputs[i]);
    for (int i = 0; i < node->output_count; ++i) {
        diff_outputs[i] = s->diff[node->outputs[i]];
        arrives |= diff_outputs[i] != LEATI_NONE;
    }
    for (int i = 0; i < node->input_count; ++i) any |= node->inputs[i] >= 0 && s->depends[node->inputs[i]];
    if (!arrives || !any) return;
    if (node->op == LEATI_OP_SLICE && leati_graph_desc(s->graph, node->inputs[0])->dtype == LEAT_F32) {
        s->slice_before[n] = s->last_slice[node->inputs[0]];
        s->last_slice[node->inputs[0]] = n;
        return;
    }
    apply_rule(s, n, diff_outputs);
}

static void differentiate(sweep *s, leati_value loss, int count, const leati_value *wrt,
                          leati_value *gradient) {
    leati_graph *graph = s->graph;
    for (leati_value value = 0; value < s->value_count; ++value) {
        s->diff[value] = LEATI_NONE;
        s->last_slice[value] = -1;
    }
    for (int i = 0; i < count; ++i) s->depends[wrt[i]] = true;
    mark_dependents(s);
    if (!s->depends[loss]) return;
    const char *label = graph->label;
    graph->label = NULL;
    s->diff[loss] = leati_scalar(graph, 1);
    for (int32_t n = s->node_count - 1; n >= 0 && graph->failure.code == LEAT_OK; --n) visit(s, n);
    for (int i = 0; i < count && graph->failure.code == LEAT_OK; ++i) add_slices(s, wrt[i]);
    graph->label = label;
    for (int i = 0; i < count; ++i) gradient[i] = s->diff[wrt[i]];
}

leat_status leati_graph_differentiate(leati_graph *graph, leati_value loss, int count, const leati_value *wrt,
                                      leati_value *gradient, leat_error *err) {
    for (int i = 0; i < count; ++i) gradient[i] = LEATI_NONE;
    LEATI_TRY(leati_graph_check(graph, err));
    sweep s = {.graph = graph,
               .value_count = leati_graph_value_count(graph),
               .node_count = leati_graph_node_count(graph)};
    bool valid = loss >= 0 && loss < s.value_count;
    for (int i = 0; i < count; ++i) valid &= wrt[i] >= 0 && wrt[i] < s.value_count;
    if (!valid) return leati_fail(err, LEAT_EINTERNAL, "the loss or a wrt is not a value of the graph");
    const leati_desc *desc = leati_graph_desc(graph, loss);
    if (desc->rank != 0) {
        char text[LEATI_DESC_TEXT_BYTES];
        return leati_fail(err, LEAT_ESHAPE, "expected a scalar as the loss to differentiate, received %s",
                          leati_desc_text(text, desc));
    }
    s.depends = leati_calloc((size_t)s.value_count, sizeof *s.depends);
    s.diff = leati_calloc((size_t)s.value_count, sizeof *s.diff);
    s.last_slice = leati_calloc((size_t)s.value_count, sizeof *s.last_slice);
    s.slice_before = leati_calloc((size_t)s.node_count + 1, sizeof *s.slice_before);
    if (s.depends && s.diff && s.last_slice && s.slice_before)
        differentiate(&s, loss, count, wrt, gradient);
    else
        leati_graph_fail(graph, LEAT_ENOMEM, "no memory for differentiation (%d values)", s.value_count);
    leati_free(s.depends);
    leati_free(s.diff);
    leati_free(s.last_slice);
    leati_free(s.slice_before);
    leat_status status = leati_graph_check(graph, err);
    for (int i = 0; status != LEAT_OK && i < count; ++i) gradient[i] = LEATI_NONE;
    return status;
}
