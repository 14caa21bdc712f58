/* SPDX-License-Identifier: Apache-2.0 */
/* Common subexpression elimination: of several nodes with the same op, attributes and inputs only the first one runs,
 * and its outputs are read in place of the others'.  Models have such nodes where several branches apply the same
 * function to one value, as in the cells of NASNet.  The results do not change.  Room: engine. */
#include "base/error.h"
#include "base/memory.h"
#include "engine/plan/plan_private.h"

static bool same_numbers(const int64_t *a, const int64_t *b, int count) {
    for (int i = 0; i < count; ++i)
        if (a[i] != b[i]) return false;
    return true;
}

static bool same_window(const leati_window *a, const leati_window *b) {
    int spatial = a->spatial;
    return b->spatial == spatial && same_numbers(a->kernel, b->kernel, spatial) &&
           same_numbers(a->stride, b->stride, spatial) && same_numbers(a->dilation, b->dilation, spatial) &&
           same_numbers(a->pad_before, b->pad_before, spatial) &&
           same_numbers(a->pad_after, b->pad_after, spatial);
}

/* Returns true if nodes of an op that may be merged have the same attributes.  rank: of input 0. */
static bool same_attributes(leati_op op, const leati_attrs *a, const leati_attrs *b, int rank) {
    switch (op) {
    case LEATI_OP_ELTWISE:
        return a->eltwise.function == b->eltwise.function && a->eltwise.a == b->eltwise.a &&
               a->eltwise.b == b->eltwise.b && a->eltwise.c == b->eltwise.c;
    case LEATI_OP_BINARY: return a->binary.kind == b->binary.kind;
    case LEATI_OP_POOLING:
        return a->pooling.kind == b->pooling.kind && same_window(&a->pooling.window, &b->pooling.window);
    case LEATI_OP_REDUCE: return a->reduce.kind == b->reduce.kind && a->reduce.axes == b->reduce.axes;
    case LEATI_OP_PAD:
        return a->pad.value == b->pad.value && same_numbers(a->pad.before, b->pad.before, rank) &&
               same_numbers(a->pad.after, b->pad.after, rank);
    case LEATI_OP_SLICE:
        return same_numbers(a->slice.start, b->slice.start, rank) &&
               same_numbers(a->slice.size, b->slice.size, rank);
    case LEATI_OP_CAST: return a->cast.scale == b->cast.scale;
    case LEATI_OP_RESHAPE: return true; /* the outputs have the same shape */
    default: return false;
    }
}

static bool same_outputs(const leati_plan *plan, const leati_node *a, const leati_node *b) {
    for (int i = 0; i < a->output_count; ++i) {
        const leati_value_info *x = leati_plan_value(plan, a->outputs[i]);
        const leati_value_info *y = leati_plan_value(plan, b->outputs[i]);
        if (x->desc.dtype != y->desc.dtype || !leati_desc_same_shape(&x->desc, &y->desc) ||
            x->may_be_bf16 != y->may_be_bf16 || x->exact != y->exact || y->output)
            return false;
    }
    return true;
}

/* Returns true if node `second` computes what node `first` has computed. */
static bool are_equal(const leati_plan *plan, int32_t first, int32_t second) {
    const leati_node *a = leati_plan_node(plan, first), *b = leati_plan_node(plan, second);
    if (a->op != b->op || a->input_count != b->input_count || a->output_count != b->output_count)
        return false;
    for (int i = 0; i < a->input_count; ++i)
        if (a->inputs[i] != b->inputs[i]) return false;
    int rank = leati_plan_value(plan, a->inputs[0])->desc.rank;
    if (!same_attributes(a->op, &a->attrs, &b->attrs, rank) || !same_outputs(plan, a, b)) return false;
    for (int i = 0; i < a->input_count; ++i)
        if (leati_plan_is_written(plan, a->inputs[i], first, second)) return false;
    return true;
}

/* Lets the readers of node n read the outputs of `first`, an equal node. */
static void merge(leati_plan *plan, int32_t first, int32_t n) {
    const leati_node *kept = leati_plan_node(plan, first), *dropped = leati_plan_node(plan, n);
    for (int32_t at = n + 1; at < plan->node_count; ++at) {
        leati_node *reader = leati_graph_node_mutable(plan->graph, at);
        if (reader->forward == n) reader->forward = first;
        for (int i = 0; i < reader->input_count; ++i)
            for (int k = 0; k < dropped->output_count; ++k)
                if (reader->inputs[i] == dropped->outputs[k]) reader->inputs[i] = kept->outputs[k];
    }
    plan->work[n].needed = false;
}

leat_status leati_plan_merge(leati_plan *plan, leat_error *err) {
    if (plan->graph->recomputed) return LEAT_OK; /* It has equal nodes on purpose, to save memory. */
    size_t values = (size_t)plan->value_count, nodes = (size_t)plan->node_count;
    /* Of each value, a list of the needed nodes whose input 0 it is: index + 1 of the last one, then of the one before
     * each node; 0: none. */
    int32_t *last = leati_calloc(values + nodes + 1, sizeof *last);
    if (!last) return leati_fail(err, LEAT_ENOMEM, "no memory to compare %d nodes", plan->node_count);
    int32_t *before = last + values;
    for (int32_t n = 0; n < plan->node_count; ++n) {
        const leati_node *node = leati_plan_node(plan, n);
        if (!plan->work[n].needed || node->input_count == 0 || node->inputs[0] < 0) continue;
        int32_t *list = &last[node->inputs[0]], other = *list;
        while (other > 0 && !are_equal(plan, other - 1, n)) other = before[other - 1];
        if (other > 0) {
            merge(plan, other - 1, n);
            continue;
        }
        before[n] = *list;
        *list = n + 1;
    }
    leati_free(last);
    leati_plan_count_readers(plan);
    return LEAT_OK;
}
