/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the ops as functions that add nodes.  Room: engine. */
#include "engine/graph/build.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "tensor/number.h"

static leati_value unary(leati_graph *g, leati_op op, const leati_attrs *attrs, leati_value x) {
    return leati_graph_node(g, op, attrs, 1, &x, NULL);
}

static int rank_of(const leati_graph *g, leati_value x) {
    return leati_graph_desc(g, x)->rank;
}

/* Returns the node that computes x if its op is `op`, otherwise NULL. */
static const leati_node *producer_of(const leati_graph *g, leati_value x, leati_op op) {
    int32_t producer = leati_graph_value(g, x)->producer;
    const leati_node *node = producer >= 0 ? leati_graph_node_at(g, producer) : NULL;
    return node && node->op == op ? node : NULL;
}

leati_value leati_matmul(leati_graph *g, leati_value a, bool transpose_a, leati_value b, bool transpose_b,
                         leati_value bias) {
    leati_attrs attrs = {.matmul = {transpose_a, transpose_b}};
    return leati_graph_node(g, LEATI_OP_MATMUL, &attrs, 3, (leati_value[]){a, b, bias}, NULL);
}

leati_value leati_eltwise_of(leati_graph *g, leati_value x, leati_eltwise f) {
    leati_attrs attrs = {.eltwise = f};
    return unary(g, LEATI_OP_ELTWISE, &attrs, x);
}

leati_value leati_eltwise_bwd(leati_graph *g, leati_value src_or_dst, leati_value diff_dst, leati_eltwise f) {
    leati_attrs attrs = {.eltwise = f};
    return leati_graph_node(g, LEATI_OP_ELTWISE_BWD, &attrs, 2, (leati_value[]){src_or_dst, diff_dst}, NULL);
}

leati_value leati_function_of(leati_graph *g, leati_value x, leati_function f) {
    leati_eltwise eltwise = {.function = f};
    switch (f) {
    case LEATI_FN_RELU: eltwise.b = INFINITY; break;
    case LEATI_FN_ELU: eltwise.a = 1; break;
    case LEATI_FN_HARD_SIGMOID:
        eltwise.a = 0.2f;
        eltwise.b = 0.5f;
        break;
    case LEATI_FN_LINEAR:
    case LEATI_FN_POW: eltwise.a = 1; break;
    case LEATI_FN_CLIP: eltwise.b = 1; break;
    default: break;
    }
    return leati_eltwise_of(g, x, eltwise);
}

leati_value leati_linear(leati_graph *g, leati_value x, float a, float b) {
    return leati_eltwise_of(g, x, (leati_eltwise){.function = LEATI_FN_LINEAR, .a = a, .b = b});
}

leati_value leati_clip(leati_graph *g, leati_value x, float low, float high) {
    return leati_eltwise_of(g, x, (leati_eltwise){.function = LEATI_FN_CLIP, .a = low, .b = high});
}

leati_value leati_binary_of(leati_graph *g, leati_binary kind, leati_value a, leati_value b) {
    leati_attrs attrs = {.binary = {kind}};
    return leati_graph_node(g, LEATI_OP_BINARY, &attrs, 2, (leati_value[]){a, b}, NULL);
}

leati_value leati_add(leati_graph *g, leati_value a, leati_value b) {
    return leati_binary_of(g, LEATI_ADD, a, b);
}

leati_value leati_sub(leati_graph *g, leati_value a, leati_value b) {
    return leati_binary_of(g, LEATI_SUB, a, b);
}

leati_value leati_mul(leati_graph *g, leati_value a, leati_value b) {
    return leati_binary_of(g, LEATI_MUL, a, b);
}

leati_value leati_div(leati_graph *g, leati_value a, leati_value b) {
    return leati_binary_of(g, LEATI_DIV, a, b);
}

/* Returns b where the condition is 0, and a where it is 1; both are finite. */
static leati_value either(leati_graph *g, leati_value condition, leati_value a, leati_value b) {
    return leati_add(g, leati_mul(g, condition, a), leati_mul(g, leati_linear(g, condition, -1, 1), b));
}

/* Divides the smaller coordinate by the larger one, so that the arc tangent has an argument from -1 to 1: atan(y / x),
 * or pi / 2 - atan(x / y), plus what the quadrant needs. */
leati_value leati_angle_of(leati_graph *g, leati_value y, leati_value x) {
    static const float half_turn = 3.14159265358979324f;
    const leati_value zero = leati_scalar(g, 0);
    const leati_value steep = leati_binary_of(g, LEATI_GREATER, leati_function_of(g, y, LEATI_FN_ABS),
                                              leati_function_of(g, x, LEATI_FN_ABS));
    const leati_value left = leati_binary_of(g, LEATI_GREATER, zero, x);
    const leati_value below = leati_binary_of(g, LEATI_GREATER, zero, y);
    leati_value divisor = either(g, steep, y, x);
    divisor = leati_add(g, divisor, leati_binary_of(g, LEATI_EQUAL, divisor, zero));
    const leati_value angle =
        leati_function_of(g, leati_div(g, either(g, steep, x, y), divisor), LEATI_FN_ATAN);
    const leati_value turn =
        either(g, steep, leati_scalar(g, half_turn / 2), leati_linear(g, left, half_turn, 0));
    return leati_add(g, leati_mul(g, leati_linear(g, steep, -2, 1), angle),
                     leati_mul(g, leati_linear(g, below, -2, 1), turn));
}

/* Returns true if the axes to reduce have one element each, so that nothing is computed.  The axis of the samples is
 * left out: its length is that of the batch. */
static bool reduces_nothing(const leati_desc *src, leati_reduce kind, uint32_t axes) {
    if (src->dtype != LEAT_F32 || (unsigned)kind > LEATI_REDUCE_MIN || axes & 1u || axes >> src->rank)
        return false;
    for (int i = 1; i < src->rank; ++i)
        if (axes >> i & 1u && src->shape[i] != 1) return false;
    return true;
}

leati_value leati_reduce_of(leati_graph *g, leati_reduce kind, leati_value x, uint32_t axes, bool keep_dims) {
    const leati_desc *src = leati_graph_desc(g, x);
    if (reduces_nothing(src, kind, axes)) {
        int64_t dims[LEAT_MAX_RANK];
        int rank = 0;
        for (int i = 0; i < src->rank; ++i)
            if (keep_dims || !(axes >> i & 1u)) dims[rank++] = src->shape[i];
        return leati_reshape(g, x, rank, dims);
    }
    leati_attrs attrs = {.reduce = {.kind = kind, .axes = axes, .keep_dims = keep_dims}};
    return unary(g, LEATI_OP_REDUCE, &attrs, x);
}

leati_value leati_reduce_last(leati_graph *g, leati_reduce kind, leati_value x, bool keep_dims) {
    int rank = rank_of(g, x);
    if (rank == 0) return leati_graph_fail(g, LEAT_ESHAPE, "a scalar has no last axis to reduce");
    return leati_reduce_of(g, kind, x, UINT32_C(1) << (rank - 1), keep_dims);
}

leati_value leati_reduce_all(leati_graph *g, leati_reduce kind, leati_value x) {
    int rank = rank_of(g, x);
    return rank == 0 && x >= 0 ? x : leati_reduce_of(g, kind, x, (UINT32_C(1) << rank) - 1, false);
}

static leati_value softmax(leati_graph *g, leati_value x, int axis, bool log) {
    leati_attrs attrs = {.softmax = {.axis = axis < 0 ? axis + rank_of(g, x) : axis, .log = log}};
    return unary(g, LEATI_OP_SOFTMAX, &attrs, x);
}

leati_value leati_softmax_of(leati_graph *g, leati_value x, int axis) {
    return softmax(g, x, axis, false);
}

/* Moves the axes to the end, joins them into one, computes the softmax over it, and moves them back. */
leati_value leati_softmax_over(leati_graph *g, leati_value x, uint32_t axes) {
    const leati_desc desc = *leati_graph_desc(g, x);
    int32_t perm[LEAT_MAX_RANK] = {0}, back[LEAT_MAX_RANK] = {0};
    int64_t dims[LEAT_MAX_RANK] = {0}, apart[LEAT_MAX_RANK] = {0};
    int kept = 0, next;
    for (int i = 0; i < desc.rank; ++i)
        if (!(axes >> i & 1u)) perm[kept++] = i;
    next = kept;
    for (int i = 0; i < desc.rank; ++i)
        if (axes >> i & 1u) perm[next++] = i;
    if (next - kept == 1) return leati_softmax_of(g, x, perm[kept]);
    if (next == kept) return leati_graph_fail(g, LEAT_EINVAL, "softmax: expected an axis, received none");
    dims[kept] = 1;
    for (int i = 0; i < desc.rank; ++i) {
        back[perm[i]] = i;
        apart[i] = desc.shape[perm[i]];
        if (i < kept)
            dims[i] = apart[i];
        else
            dims[kept] = leati_mul_saturated(dims[kept], apart[i]);
    }
    leati_value rows = leati_reshape(g, leati_transpose(g, x, perm), kept + 1, dims);
    return leati_transpose(g, leati_reshape(g, leati_softmax_of(g, rows, -1), desc.rank, apart), back);
}

leati_value leati_log_softmax(leati_graph *g, leati_value x, int axis) {
    return softmax(g, x, axis, true);
}

leati_value leati_ctc(leati_graph *g, leati_value logits, leati_value labels) {
    return leati_graph_node(g, LEATI_OP_CTC, NULL, 2, (leati_value[]){logits, labels}, NULL);
}

leati_value leati_rank_sum(leati_graph *g, leati_value x) {
    return leati_graph_node(g, LEATI_OP_RANK_SUM, NULL, 1, &x, NULL);
}

leati_value leati_softmax_xent(leati_graph *g, leati_value logits, leati_value labels, leati_xent kind) {
    leati_attrs attrs = {.xent = {kind}};
    return leati_graph_node(g, LEATI_OP_SOFTMAX_XENT, &attrs, 2, (leati_value[]){logits, labels}, NULL);
}

static leati_value to_shape(leati_graph *g, leati_op op, leati_value x, int rank, const int64_t *dims) {
    if (rank < 0 || rank > LEAT_MAX_RANK)
        return leati_graph_fail(g, LEAT_ESHAPE, "a shape has 0 to %d dimensions, not %d", LEAT_MAX_RANK,
                                rank);
    leati_attrs attrs = {.shape = {.rank = rank}};
    if (rank > 0) memcpy(attrs.shape.dims, dims, (size_t)rank * sizeof *dims);
    return unary(g, op, &attrs, x);
}

leati_value leati_reshape(leati_graph *g, leati_value x, int rank, const int64_t *dims) {
    return to_shape(g, LEATI_OP_RESHAPE, x, rank, dims);
}

leati_value leati_broadcast(leati_graph *g, leati_value x, int rank, const int64_t *dims) {
    return to_shape(g, LEATI_OP_BROADCAST, x, rank, dims);
}

leati_value leati_expand_last(leati_graph *g, leati_value x) {
    int64_t dims[LEAT_MAX_RANK + 1];
    const leati_desc *desc = leati_graph_desc(g, x);
    memcpy(dims, desc->shape, sizeof desc->shape);
    dims[desc->rank] = 1;
    return leati_reshape(g, x, desc->rank + 1, dims);
}

/* Combines two transpositions in a row into one, and drops them if the second undoes the first.  So consecutive
 * channels_first layers exchange channels_last data without a transposition between them. */
leati_value leati_transpose(leati_graph *g, leati_value x, const int32_t *perm) {
    leati_attrs attrs = {.transpose = {{0}}};
    int rank = rank_of(g, x);
    const leati_node *before = x >= 0 ? producer_of(g, x, LEATI_OP_TRANSPOSE) : NULL;
    bool same = x >= 0;
    for (int i = 0; i < rank; ++i) {
        bool valid = before && perm[i] >= 0 && perm[i] < rank;
        attrs.transpose.perm[i] = valid ? before->attrs.transpose.perm[perm[i]] : perm[i];
        same = same && attrs.transpose.perm[i] == i;
    }
    if (before) x = before->inputs[0];
    return same ? x : unary(g, LEATI_OP_TRANSPOSE, &attrs, x);
}

leati_value leati_concat(leati_graph *g, int count, const leati_value *x, int axis) {
    int rank = count > 0 ? rank_of(g, x[0]) : 0;
    leati_attrs attrs = {.concat = {.axis = axis < 0 ? axis + rank : axis}};
    return leati_graph_node(g, LEATI_OP_CONCAT, &attrs, count, x, NULL);
}

leati_value leati_slice_axis(leati_graph *g, leati_value x, int axis, int64_t start, int64_t size) {
    const leati_desc *desc = leati_graph_desc(g, x);
    if (axis < 0) axis += desc->rank;
    if (axis < 0 || axis >= desc->rank)
        return leati_graph_fail(g, LEAT_ESHAPE, "a slice along axis %d of %d dimensions", axis, desc->rank);
    leati_attrs attrs = {0};
    memcpy(attrs.slice.size, desc->shape, sizeof desc->shape);
    attrs.slice.start[axis] = start;
    attrs.slice.size[axis] = size;
    return unary(g, LEATI_OP_SLICE, &attrs, x);
}

leati_value leati_pad(leati_graph *g, leati_value x, const int64_t *before, const int64_t *after,
                      float value) {
    leati_attrs attrs = {.pad = {.value = value}};
    size_t bytes = (size_t)rank_of(g, x) * sizeof *before;
    memcpy(attrs.pad.before, before, bytes);
    memcpy(attrs.pad.after, after, bytes);
    return unary(g, LEATI_OP_PAD, &attrs, x);
}

leati_value leati_reverse(leati_graph *g, leati_value x, int axis) {
    leati_attrs attrs = {.reverse = {.axis = axis < 0 ? axis + rank_of(g, x) : axis}};
    return unary(g, LEATI_OP_REVERSE, &attrs, x);
}

leati_value leati_cast(leati_graph *g, leati_value x, leat_dtype dtype, float scale) {
    leati_attrs attrs = {.cast = {.dtype = dtype, .scale = scale}};
    return unary(g, LEATI_OP_CAST, &attrs, x);
}

leati_value leati_dropout(leati_graph *g, leati_value x, float rate, uint32_t shared, uint64_t stream) {
    leati_attrs attrs = {.dropout = {.rate = rate, .shared = shared, .stream = stream}};
    return unary(g, LEATI_OP_DROPOUT, &attrs, x);
}

leati_value leati_random_normal(leati_graph *g, leati_value like, float mean, float stddev, uint64_t stream) {
    leati_attrs attrs = {.random_normal = {.mean = mean, .stddev = stddev, .stream = stream}};
    return unary(g, LEATI_OP_RANDOM_NORMAL, &attrs, like);
}

/* If `value` is a cast of integers to float32, which is exact only up to 2^24, returns the integers; otherwise
 * `value`. */
static leati_value before_cast(const leati_graph *g, leati_value value) {
    const leati_node *maker = value < 0 ? NULL : producer_of(g, value, LEATI_OP_CAST);
    if (!maker || maker->attrs.cast.scale != 1) return value;
    return leati_dtype_is_integer(leati_graph_desc(g, maker->inputs[0])->dtype) ? maker->inputs[0] : value;
}

leati_value leati_gather(leati_graph *g, leati_value table, leati_value indices) {
    indices = before_cast(g, indices);
    return leati_graph_node(g, LEATI_OP_GATHER, NULL, 2, (leati_value[]){table, indices}, NULL);
}

leati_value leati_one_hot(leati_graph *g, leati_value indices, int64_t depth) {
    leati_attrs attrs = {.one_hot = {depth}};
    return unary(g, LEATI_OP_ONE_HOT, &attrs, indices);
}

leati_value leati_argmax(leati_graph *g, leati_value x, int axis) {
    leati_attrs attrs = {.argmax = {.axis = axis < 0 ? axis + rank_of(g, x) : axis}};
    return unary(g, LEATI_OP_ARGMAX, &attrs, x);
}

leati_value leati_in_top_k(leati_graph *g, leati_value predictions, leati_value targets, int64_t k) {
    leati_attrs attrs = {.top_k = {k}};
    return leati_graph_node(g, LEATI_OP_IN_TOP_K, &attrs, 2, (leati_value[]){predictions, targets}, NULL);
}

leati_value leati_scalar(leati_graph *g, float value) {
    return leati_graph_constant(g, &(leati_desc){.dtype = LEAT_F32}, &value);
}

leati_value leati_full(leati_graph *g, int rank, const int64_t *dims, float value) {
    if (rank < 0 || rank > LEAT_MAX_RANK)
        return leati_graph_fail(g, LEAT_ESHAPE, "a shape has 0 to %d dimensions, not %d", LEAT_MAX_RANK,
                                rank);
    leati_desc desc = leati_desc_make(LEAT_F32, rank, dims);
    int64_t count = 1;
    for (int i = 0; i < rank; ++i)
        if (!leati_mul_i64(count, dims[i], &count))
            return leati_graph_fail(g, LEAT_ESHAPE, "the constant is too large for the address space");
    float *data = leati_calloc((size_t)count, sizeof *data);
    if (!data) return leati_graph_fail(g, LEAT_ENOMEM, "no memory for a constant");
    for (int64_t i = 0; i < count; ++i) data[i] = value;
    leati_value full = leati_graph_constant(g, &desc, data);
    leati_free(data);
    return full;
}

leati_value leati_sum_to(leati_graph *g, leati_value x, const leati_desc *like) {
    const leati_desc *desc = leati_graph_desc(g, x);
    if (x < 0 || leati_desc_same_shape(desc, like)) return x;
    uint32_t axes = 0;
    for (int i = 0; i < desc->rank; ++i) {
        int j = i - (desc->rank - like->rank);
        if (j < 0 || (like->shape[j] == 1 && desc->shape[i] != 1)) axes |= UINT32_C(1) << i;
    }
    leati_value sum = axes ? leati_reduce_of(g, LEATI_REDUCE_SUM, x, axes, false) : x;
    return leati_reshape(g, sum, like->rank, like->shape);
}

void leati_moving_average(leati_graph *g, leati_value state, leati_value value, float momentum) {
    leati_attrs attrs = {.moving_average = {momentum}};
    leati_graph_node(g, LEATI_OP_MOVING_AVERAGE, &attrs, 2, (leati_value[]){state, value}, NULL);
}
