/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the nodes that may be fused into an op: a chain in which each node is the only reader of the output of the node
 * before it.  The chain has at most one of each, in this order: a normalisation with given statistics, an addition, a
 * function.  Reshapes between a product and its chain are left out.  Room: engine. */
#include <assert.h>
#include <stdio.h>
#include "engine/plan/plan_private.h"

/* Returns the kinds that may be fused into an op at all; a backend may refuse some of them. */
static uint32_t fusable(leati_op op) {
    switch (op) {
    case LEATI_OP_CONV:
    case LEATI_OP_MATMUL: return LEATI_POST_NORM | LEATI_POST_ADD | LEATI_POST_FUNCTION;
    case LEATI_OP_BATCH_NORM:
    case LEATI_OP_BATCH_NORM_APPLY: return LEATI_POST_ADD | LEATI_POST_FUNCTION;
    case LEATI_OP_BINARY: return LEATI_POST_FUNCTION;
    default: return 0;
    }
}

static uint32_t kind_of(const leati_node *node) {
    switch (node->op) {
    case LEATI_OP_BATCH_NORM_APPLY: return LEATI_POST_NORM;
    case LEATI_OP_BINARY: return node->attrs.binary.kind == LEATI_ADD ? LEATI_POST_ADD : 0;
    case LEATI_OP_ELTWISE: return LEATI_POST_FUNCTION;
    default: return 0;
    }
}

/* Returns true if node n can read `value` in place of a later node, `reader`: the value exists before n runs, and no
 * node between the two changes it. */
static bool is_available(const leati_plan *plan, leati_value value, int32_t n, int32_t reader) {
    if (value < 0) return true;
    const leati_value_info *info = leati_plan_value(plan, value);
    if (info->storage == LEATI_IN_ARENA) return info->producer < n;
    return info->storage != LEATI_IN_SLAB || !leati_plan_is_written(plan, value, n, reader);
}

/* Returns the operand of an addition that is not `value`, or LEATI_INVALID if the addition cannot be fused. */
static leati_value addend_of(const leati_plan *plan, const leati_node *add, leati_value value) {
    leati_value other = add->inputs[0] == value ? add->inputs[1] : add->inputs[0];
    if (add->inputs[0] == add->inputs[1]) return LEATI_INVALID;
    const leati_desc *a = &leati_plan_value(plan, value)->desc, *b = &leati_plan_value(plan, other)->desc;
    return a->dtype == b->dtype && leati_desc_same_shape(a, b) ? other : LEATI_INVALID;
}

static int32_t only_reader(const leati_plan *plan, leati_value value) {
    const leati_location *place = &plan->place[value];
    return place->readers == 1 && place->last_read < plan->node_count ? place->last_read : -1;
}

static bool is_reshape(const leati_plan *plan, int32_t n) {
    const leati_node *node = n < 0 ? NULL : leati_plan_node(plan, n);
    return node && node->op == LEATI_OP_RESHAPE &&
           leati_plan_value(plan, node->inputs[0])->desc.dtype ==
               leati_plan_value(plan, node->outputs[0])->desc.dtype;
}

/* Returns `value`, which node n computes, or the view of it that the chain reads: a layer that multiplies the last axis
 * of a larger tensor reshapes the product's rows to the other axes.  On a device fuse_elementwise.c joins what follows
 * the reshape. */
static leati_value view_of(const leati_plan *plan, int32_t n, leati_value value) {
    if (leati_plan_node(plan, n)->op != LEATI_OP_MATMUL || leati_plan_device(plan)) return value;
    for (int32_t reader = only_reader(plan, value); is_reshape(plan, reader);
         reader = only_reader(plan, value))
        value = leati_plan_node(plan, reader)->outputs[0];
    return value;
}

/* True if the normalization can be folded into the weights of node n: those of a convolution always, those of a product
 * if no run changes them, and if a reshape behind the product kept its columns. */
static bool can_fold(const leati_plan *plan, int32_t n, const leati_node *norm) {
    const leati_node *node = leati_plan_node(plan, n);
    if (plan->options.unfolded) return false;
    if (node->op != LEATI_OP_MATMUL) return true;
    const leati_desc *weights = &leati_plan_value(plan, node->inputs[1])->desc;
    const leati_desc *mean = &leati_plan_value(plan, norm->inputs[1 + LEATI_POST_MEAN])->desc;
    return leati_plan_stays(plan, node->inputs[1]) && !node->attrs.matmul.transpose_b &&
           !leati_plan_device(plan) && weights->rank == 2 && weights->shape[1] == mean->shape[0];
}

/* Returns the only node that reads `value`, if it can be fused into node n and its kind comes after those in `kinds`;
 * otherwise -1. */
static int32_t next_link(const leati_plan *plan, int32_t n, leati_value value, uint32_t kinds) {
    int32_t at = only_reader(plan, value);
    if (at < 0) return -1;
    const leati_node *reader = leati_plan_node(plan, at);
    uint32_t kind = kind_of(reader);
    if (!(kind & fusable(leati_plan_node(plan, n)->op)) || kind <= kinds) return -1;
    if (kind == LEATI_POST_NORM && !can_fold(plan, n, reader)) return -1;
    if (kind == LEATI_POST_ADD) {
        leati_value other = addend_of(plan, reader, value);
        return other >= 0 && is_available(plan, other, n, at) ? at : -1;
    }
    if (reader->inputs[0] != value) return -1;
    for (int i = 1; i < reader->input_count; ++i)
        if (!is_available(plan, reader->inputs[i], n, at)) return -1;
    return at;
}

/* Returns true if the node will be computed in advance (fold_constants.c), by a kernel of the host, in a plan of a
 * device: the host may have no kernel for the fused op. */
static bool is_folded_on_host(const leati_plan *plan, const leati_node *node) {
    if (!leati_plan_device(plan)) return false;
    for (int i = 0; i < node->input_count; ++i)
        if (node->inputs[i] >= 0 && leati_plan_value(plan, node->inputs[i])->storage != LEATI_IN_CONSTANT)
            return false;
    return true;
}

void leati_plan_chain(const leati_plan *plan, int32_t n, leati_chain *chain) {
    const leati_node *node = leati_plan_node(plan, n);
    uint32_t kinds = node->attrs.post.kinds;
    leati_value value = node->output_count > 0 ? node->outputs[0] : LEATI_NONE;
    chain->length = 0;
    if (plan->options.unfused || !fusable(node->op) || is_folded_on_host(plan, node)) return;
    while (chain->length < LEATI_CHAIN_MAX) {
        value = view_of(plan, n, value);
        int32_t next = next_link(plan, n, value, kinds);
        if (next < 0) return;
        chain->reads[chain->length] = value;
        chain->nodes[chain->length++] = next;
        kinds |= kind_of(leati_plan_node(plan, next));
        value = leati_plan_node(plan, next)->outputs[0];
    }
}

void leati_plan_fused(const leati_plan *plan, int32_t n, const leati_chain *chain, int length,
                      leati_node *out) {
    *out = *leati_plan_node(plan, n);
    assert(length <= chain->length);
    if (length == 0) return;
    assert(out->input_count + LEATI_POST_INPUTS <= LEATI_MAX_INPUTS);
    leati_value *post = &out->inputs[out->input_count];
    bool reads = false;
    for (int i = 0; i < LEATI_POST_INPUTS; ++i) post[i] = LEATI_NONE;
    for (int k = 0; k < length; ++k) {
        const leati_node *link = leati_plan_node(plan, chain->nodes[k]);
        uint32_t kind = kind_of(link);
        out->attrs.post.kinds |= kind;
        reads = reads || kind != LEATI_POST_FUNCTION;
        if (kind == LEATI_POST_FUNCTION) out->attrs.post.function = link->attrs.eltwise;
        if (kind == LEATI_POST_ADD) post[LEATI_POST_ADDEND] = addend_of(plan, link, chain->reads[k]);
        if (kind == LEATI_POST_NORM) {
            out->attrs.post.epsilon = link->attrs.batch_norm.epsilon;
            for (int i = LEATI_POST_GAMMA; i <= LEATI_POST_VARIANCE; ++i) post[i] = link->inputs[1 + i];
        }
        out->outputs[0] = link->outputs[0];
    }
    if (reads) out->input_count += LEATI_POST_INPUTS;
}

/* Returns the node that computes the first input of node n, or -1. */
static int32_t producer_before(const leati_plan *plan, int32_t n) {
    return leati_plan_value(plan, leati_plan_node(plan, n)->inputs[0])->producer;
}

void leati_plan_fuse(leati_plan *plan, int32_t n, const leati_chain *chain, int length,
                     const leati_node *fused) {
    for (int k = 0; k < length; ++k) {
        plan->work[chain->nodes[k]].needed = false;
        int32_t reshape = leati_plan_value(plan, chain->reads[k])->producer;
        for (; is_reshape(plan, reshape); reshape = producer_before(plan, reshape))
            plan->work[reshape].needed = false;
    }
    *leati_graph_node_mutable(plan->graph, n) = *fused;
    leati_graph_value_mutable(plan->graph, fused->outputs[0])->producer = n;
    leati_plan_count_readers(plan);
}

const char *leati_post_text(char out[LEATI_POST_TEXT_BYTES], const leati_attrs *attrs) {
    uint32_t kinds = attrs->post.kinds;
    snprintf(out, LEATI_POST_TEXT_BYTES, "%s%s%s%s%s", kinds & LEATI_POST_NORM ? "norm" : "",
             kinds & LEATI_POST_NORM && kinds != LEATI_POST_NORM ? "+" : "",
             kinds & LEATI_POST_ADD ? "add" : "",
             kinds & LEATI_POST_ADD && kinds & LEATI_POST_FUNCTION ? "+" : "",
             kinds & LEATI_POST_FUNCTION ? leati_function_name(attrs->post.function.function) : "");
    return out;
}
