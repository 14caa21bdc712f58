/* SPDX-License-Identifier: Apache-2.0 */
/* Emits reductions, lookups and matrix products.  Room: formats. */
#include <stddef.h>

#include "base/memory.h"
#include "formats/onnx/exporter.h"
#include "tensor/number.h"

static const leati_desc *desc_of(const leati_onnx *x, leati_value value) {
    return leati_graph_desc(x->graph, value);
}

/* ---- Reductions ---- */

/* True if a REDUCE of a value with the channels first leaves its axes in leat's order, or in ONNX's order of all axes
 * (keep_dims). */
static bool reduces_first(const leati_node *node, int rank) {
    const uint32_t spatial = ((1u << (rank - 1)) - 1) & ~1u, channels = 1u << (rank - 1);
    const uint32_t axes = node->attrs.reduce.axes;
    return node->attrs.reduce.keep_dims || (axes & channels) || (axes & spatial) == spatial;
}

static const char *reduced(leati_onnx *x, leati_reduce kind, const char *name, int count, const int64_t *axes,
                           bool keep) {
    static const char *const ops[] = {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"};
    if (kind == LEATI_REDUCE_SUM) {
        const leati_onnx_attr attrs[] = {LEATI_ATTR_INT("keepdims", keep), LEATI_ATTR_END};
        return leati_onnx_node(x, ops[kind], 2, (const char *[]){name, leati_onnx_ints(x, count, axes)},
                               attrs);
    }
    const leati_onnx_attr attrs[] = {LEATI_ATTR_INTS("axes", count, axes), LEATI_ATTR_INT("keepdims", keep),
                                     LEATI_ATTR_END};
    return leati_onnx_node(x, ops[kind], 1, &name, attrs);
}

void leati_onnx_reduce(leati_onnx *x, const leati_node *node, const leati_node *other) {
    (void)other;
    int64_t axes[LEAT_MAX_RANK];
    const leati_value src = node->inputs[0];
    const int rank = desc_of(x, src)->rank;
    const bool keep = node->attrs.reduce.keep_dims;
    const bool first = leati_onnx_is_first(x, src) && reduces_first(node, rank);
    int count = 0;
    for (int i = 0; i < rank; ++i)
        if (node->attrs.reduce.axes >> i & 1) axes[count++] = leati_onnx_axis(rank, i, first);
    const char *name = leati_onnx_form(x, src, first);
    if (count > 0) name = reduced(x, node->attrs.reduce.kind, name, count, axes, keep);
    leati_onnx_set_form(x, node->outputs[0], first && keep, name);
}

/* ---- Lookups ---- */

/* Returns indices as int64.  Reals are truncated towards zero.  A cast from an integer input to float32 is skipped. */
static const char *as_indices(leati_onnx *x, leati_value indices) {
    const leati_value_info *info = leati_graph_value(x->graph, indices);
    const leati_node *maker = info->producer >= 0 ? leati_graph_node_at(x->graph, info->producer) : NULL;
    if (maker && maker->op == LEATI_OP_CAST && maker->attrs.cast.scale == 1 &&
        leati_dtype_is_integer(desc_of(x, maker->inputs[0])->dtype))
        indices = maker->inputs[0];
    const char *name = leati_onnx_plain(x, indices);
    return desc_of(x, indices)->dtype == LEAT_I64 ? name : leati_onnx_cast(x, name, LEATI_ONNX_TYPE_INT64);
}

void leati_onnx_gather(leati_onnx *x, const leati_node *node, const leati_node *other) {
    (void)other;
    const char *table = leati_onnx_plain(x, node->inputs[0]);
    leati_onnx_set_plain(x, node->outputs[0],
                         leati_onnx_binary(x, "Gather", table, as_indices(x, node->inputs[1])));
}

/* Compares with 0, 1, ..., depth - 1: an index out of range gives zeros, as in Keras. */
void leati_onnx_one_hot(leati_onnx *x, const leati_node *node, const leati_node *other) {
    (void)other;
    const int64_t depth = node->attrs.one_hot.depth, last = -1;
    const leati_desc desc = leati_desc_make(LEAT_I64, 1, &depth);
    int64_t *classes = leati_onnx_allocate(x, leati_desc_bytes(&desc));
    for (int64_t i = 0; classes && i < depth; ++i) classes[i] = i;
    const char *numbers = classes ? leati_onnx_initialize(x, "classes", &desc, classes, classes) : "";
    const char *indices =
        leati_onnx_binary(x, "Unsqueeze", as_indices(x, node->inputs[0]), leati_onnx_ints(x, 1, &last));
    const char *equal = leati_onnx_binary(x, "Equal", indices, numbers);
    leati_onnx_set_plain(x, node->outputs[0], leati_onnx_cast(x, equal, LEATI_ONNX_TYPE_FLOAT));
}

void leati_onnx_argmax(leati_onnx *x, const leati_node *node, const leati_node *other) {
    (void)other;
    const leati_onnx_attr attrs[] = {LEATI_ATTR_INT("axis", node->attrs.argmax.axis),
                                     LEATI_ATTR_INT("keepdims", 0), LEATI_ATTR_END};
    const char *src = leati_onnx_plain(x, node->inputs[0]);
    const char *name = leati_onnx_node(x, "ArgMax", 1, &src, attrs);
    leati_onnx_set_plain(x, node->outputs[0], leati_onnx_cast(x, name, leati_onnx_type_of(LEAT_I32)));
}

/* ---- Matrix products ---- */

/* Returns an operand of MatMul, with its last two axes exchanged if asked for. */
static const char *operand(leati_onnx *x, leati_value value, bool transpose) {
    int64_t perm[LEAT_MAX_RANK];
    const int rank = desc_of(x, value)->rank;
    for (int i = 0; i < rank; ++i) perm[i] = i;
    if (!transpose) return leati_onnx_plain(x, value);
    perm[rank - 2] = rank - 1, perm[rank - 1] = rank - 2;
    return leati_onnx_permuted(x, value, perm);
}

void leati_onnx_matmul(leati_onnx *x, const leati_node *node, const leati_node *other) {
    (void)other;
    const leati_value a = node->inputs[0], b = node->inputs[1];
    const leati_value bias = node->input_count > 2 ? node->inputs[2] : LEATI_NONE;
    const bool transpose_a = node->attrs.matmul.transpose_a, transpose_b = node->attrs.matmul.transpose_b;
    const char *name;
    if (desc_of(x, a)->rank == 2 && bias != LEATI_NONE) {
        const leati_onnx_attr attrs[] = {LEATI_ATTR_INT("transA", transpose_a),
                                         LEATI_ATTR_INT("transB", transpose_b), LEATI_ATTR_END};
        const char *const inputs[] = {leati_onnx_plain(x, a), leati_onnx_plain(x, b),
                                      leati_onnx_plain(x, bias)};
        name = leati_onnx_node(x, "Gemm", 3, inputs, attrs);
    } else {
        name = leati_onnx_binary(x, "MatMul", operand(x, a, transpose_a), operand(x, b, transpose_b));
        if (bias != LEATI_NONE) name = leati_onnx_binary(x, "Add", name, leati_onnx_plain(x, bias));
    }
    leati_onnx_set_plain(x, node->outputs[0], name);
}
