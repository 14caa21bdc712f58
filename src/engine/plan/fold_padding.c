/* SPDX-License-Identifier: Apache-2.0 */
/* Fold padding: a PAD before a convolution, and a SLICE after a transposed convolution, become padding of the
 * convolution's window, so that the image is not copied.  This file also folds the gradient of max(x, 0) into the
 * gradient of the batch normalisation before it, and on a device a sum of two gradients.  Room: engine. */
#include <math.h>

#include "engine/plan/plan_private.h"

/* Zeros to be added before and after the spatial axes of an image. */
typedef struct margins {
    int64_t before[3], after[3];
} margins;

/* Returns false if the axes of samples or channels change, or if a margin is negative. */
static bool margins_of(int rank, const int64_t *before, const int64_t *after, margins *out) {
    if (rank < 3 || rank > 5 || before[0] || after[0] || before[rank - 1] || after[rank - 1]) return false;
    for (int i = 0; i + 2 < rank; ++i) {
        out->before[i] = before[i + 1];
        out->after[i] = after[i + 1];
        if (before[i + 1] < 0 || after[i + 1] < 0) return false;
    }
    return true;
}

/* Returns true if the padding stays smaller than the window: backends have fast kernels only for such padding. */
static bool can_widen(const leati_window *w, const margins *margin) {
    for (int i = 0; i < w->spatial; ++i) {
        int64_t reach = (w->kernel[i] - 1) * w->dilation[i];
        if (w->pad_before[i] + margin->before[i] > reach || w->pad_after[i] + margin->after[i] > reach)
            return false;
    }
    return true;
}

static void widen(leati_window *w, const margins *margin) {
    for (int i = 0; i < w->spatial; ++i) {
        w->pad_before[i] += margin->before[i];
        w->pad_after[i] += margin->after[i];
    }
}

/* Returns true if node n does not read `value`, or reads it as the source of a convolution that can pad it itself. */
static bool reader_allows(const leati_plan *plan, int32_t n, leati_value value, const margins *margin) {
    const leati_node *node = leati_plan_node(plan, n);
    bool reads = false;
    for (int i = 0; i < node->input_count; ++i) {
        if (node->inputs[i] != value) continue;
        if (i != 0 || (node->op != LEATI_OP_CONV && node->op != LEATI_OP_CONV_BWD_WEIGHTS)) return false;
        reads = true;
    }
    return !reads || can_widen(&node->attrs.conv.window, margin);
}

static void fold_pad(leati_plan *plan, int32_t n) {
    const leati_node *pad = leati_plan_node(plan, n);
    const leati_desc *src = &leati_plan_value(plan, pad->inputs[0])->desc;
    leati_value padded = pad->outputs[0];
    margins margin = {0};
    if (pad->attrs.pad.value != 0 || src->dtype != leati_plan_value(plan, padded)->desc.dtype ||
        leati_plan_value(plan, padded)->output ||
        leati_plan_value(plan, pad->inputs[0])->storage == LEATI_IN_SLAB ||
        !margins_of(src->rank, pad->attrs.pad.before, pad->attrs.pad.after, &margin))
        return;
    for (int32_t reader = n + 1; reader <= plan->place[padded].last_read; ++reader)
        if (plan->work[reader].needed && !reader_allows(plan, reader, padded, &margin)) return;
    for (int32_t reader = n + 1; reader <= plan->place[padded].last_read; ++reader) {
        leati_node *node = leati_graph_node_mutable(plan->graph, reader);
        if (!plan->work[reader].needed || node->inputs[0] != padded || node->input_count == 0) continue;
        node->inputs[0] = pad->inputs[0];
        widen(&node->attrs.conv.window, &margin);
    }
    plan->work[n].needed = false;
}

static void fold_slice(leati_plan *plan, int32_t n) {
    const leati_node *slice = leati_plan_node(plan, n);
    leati_value whole = slice->inputs[0];
    const leati_value_info *info = leati_plan_value(plan, whole);
    int64_t after[LEAT_MAX_RANK];
    margins margin = {0};
    if (info->producer < 0 || info->output || plan->place[whole].readers != 1) return;
    leati_node *node = leati_graph_node_mutable(plan->graph, info->producer);
    if (node->op != LEATI_OP_CONV_BWD_DATA || node->attrs.post.kinds) return;
    for (int i = 0; i < info->desc.rank; ++i)
        after[i] = info->desc.shape[i] - slice->attrs.slice.start[i] - slice->attrs.slice.size[i];
    if (!margins_of(info->desc.rank, slice->attrs.slice.start, after, &margin) ||
        !can_widen(&node->attrs.conv.window, &margin))
        return;
    widen(&node->attrs.conv.window, &margin);
    for (int i = 0; i < node->attrs.conv.window.spatial; ++i)
        node->attrs.conv.size[i] = slice->attrs.slice.size[i + 1];
    node->outputs[0] = slice->outputs[0];
    leati_graph_value_mutable(plan->graph, slice->outputs[0])->producer = info->producer;
    plan->work[n].needed = false;
}

static bool is_reader(const leati_node *node, leati_value value) {
    for (int i = 0; i < node->input_count; ++i)
        if (node->inputs[i] == value) return true;
    return false;
}

/* Returns the node that computes diff_dst of the BATCH_NORM_BWD node n, if it is the gradient of max(x, 0) and n can
 * compute it instead, because no node before n reads it; otherwise -1. */
static int32_t rectifier_before(const leati_plan *plan, int32_t n) {
    leati_value diff = leati_plan_node(plan, n)->inputs[4];
    int32_t at = leati_plan_value(plan, diff)->producer;
    if (at < 0) return -1;
    const leati_node *node = leati_plan_node(plan, at);
    const leati_eltwise *f = &node->attrs.eltwise;
    if (node->op != LEATI_OP_ELTWISE_BWD || f->function != LEATI_FN_RELU || f->a != 0 || f->c != 0 ||
        !isinf(f->b))
        return -1;
    for (int i = 0; i < 2; ++i)
        if (leati_plan_value(plan, node->inputs[i])->storage == LEATI_IN_SLAB) return -1;
    for (int32_t between = at + 1; between < n; ++between)
        if (plan->work[between].needed && is_reader(leati_plan_node(plan, between), diff)) return -1;
    return at;
}

static void fuse_rectifier(leati_plan *plan, int32_t n) {
    leati_node *norm = leati_graph_node_mutable(plan->graph, n);
    int32_t at = norm->inputs[5] < 0 ? rectifier_before(plan, n) : -1;
    if (at < 0) return;
    const leati_node *rectifier = leati_plan_node(plan, at);
    norm->inputs[4] = rectifier->inputs[1];
    norm->inputs[5] = rectifier->inputs[0];
    norm->outputs[3] = rectifier->outputs[0];
    leati_graph_value_mutable(plan->graph, norm->outputs[3])->producer = n;
    plan->work[at].needed = false;
}

/* Returns true if `value` is a function of dst of the BATCH_NORM node, or of the sum of dst and another value.  The
 * kernel of the node computes `value` then, or it computes no function. */
static bool is_function_of(const leati_plan *plan, leati_value value, const leati_node *norm) {
    int32_t at = leati_plan_value(plan, value)->producer;
    if (at < 0 || leati_plan_node(plan, at)->op != LEATI_OP_ELTWISE) return false;
    leati_value src = leati_plan_node(plan, at)->inputs[0];
    if (src == norm->outputs[0]) return true;
    int32_t sum = leati_plan_value(plan, src)->producer;
    return sum >= 0 && leati_plan_node(plan, sum)->op == LEATI_OP_BINARY &&
           leati_plan_node(plan, sum)->attrs.binary.kind == LEATI_ADD &&
           is_reader(leati_plan_node(plan, sum), norm->outputs[0]);
}

/* Lets the BATCH_NORM_BWD node n read the workspace of its forward node. */
static void share_workspace(leati_plan *plan, int32_t n) {
    leati_node *node = leati_graph_node_mutable(plan->graph, n);
    if (node->forward < 0 || node->inputs[5] < 0) return;
    const leati_node *forward = leati_plan_node(plan, node->forward);
    if (forward->op == LEATI_OP_BATCH_NORM && is_function_of(plan, node->inputs[5], forward))
        node->inputs[6] = forward->outputs[3];
}

/* Returns true if the plan may join an addition of `value` and the node that computes it (fuse_elementwise.c). */
static bool is_elementwise(const leati_plan *plan, leati_value value) {
    int32_t at = leati_plan_value(plan, value)->producer;
    if (at < 0) return false;
    switch (leati_plan_node(plan, at)->op) {
    case LEATI_OP_ELTWISE:
    case LEATI_OP_ELTWISE_BWD:
    case LEATI_OP_BINARY:
    case LEATI_OP_CAST:
    case LEATI_OP_DROPOUT: return true;
    default: return false;
    }
}

/* Lets the BATCH_NORM_BWD node n add up its diff_dst, if nothing else reads the sum. */
static void fold_sum(leati_plan *plan, int32_t n) {
    leati_node *node = leati_graph_node_mutable(plan->graph, n);
    leati_value sum = node->inputs[4];
    const leati_value_info *info = leati_plan_value(plan, sum);
    if (info->producer < 0 || info->output || plan->place[sum].readers != 1 || node->inputs[7] >= 0) return;
    const leati_node *add = leati_plan_node(plan, info->producer);
    if (add->op != LEATI_OP_BINARY || add->attrs.binary.kind != LEATI_ADD || add->attrs.post.kinds) return;
    for (int i = 0; i < 2; ++i) {
        const leati_value_info *part = leati_plan_value(plan, add->inputs[i]);
        if (part->storage == LEATI_IN_SLAB || part->desc.dtype != info->desc.dtype ||
            !leati_desc_same_shape(&part->desc, &info->desc) || is_elementwise(plan, add->inputs[i]))
            return;
    }
    node->inputs[4] = add->inputs[0];
    node->inputs[7] = add->inputs[1];
    plan->work[info->producer].needed = false;
}

static void fold_norm_gradient(leati_plan *plan, int32_t n) {
    fuse_rectifier(plan, n);
    if (!leati_plan_device(plan) || leati_plan_node(plan, n)->input_count < 8) return;
    share_workspace(plan, n);
    fold_sum(plan, n);
}

void leati_plan_fold_padding(leati_plan *plan) {
    if (plan->options.unfused) return;
    for (int32_t n = 0; n < plan->node_count; ++n) {
        if (!plan->work[n].needed) continue;
        leati_op op = leati_plan_node(plan, n)->op;
        if (op == LEATI_OP_PAD) fold_pad(plan, n);
        if (op == LEATI_OP_SLICE) fold_slice(plan, n);
        if (op == LEATI_OP_BATCH_NORM_BWD) fold_norm_gradient(plan, n);
    }
    leati_plan_count_readers(plan);
}
