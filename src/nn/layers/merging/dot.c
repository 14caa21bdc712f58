/* SPDX-License-Identifier: Apache-2.0 */
/* Dot: sums of products along one axis of each of two inputs, sample by sample; if normalized, cosines.
 * Source: keras.layers.Dot, keras.backend.batch_dot. */
#include "base/error.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/types.h"

typedef struct config {
    leati_ints axes; /* one axis for both inputs, or one for each; negative: from the end */
    bool normalize;
} config;

static const leati_field fields[] = {LEATI_FIELD(config, axes, LEATI_FIELD_NUMBERS, NULL),
                                     LEATI_FIELD(config, normalize, LEATI_FIELD_BOOL, "false"),
                                     {.key = NULL}};

static leat_status check(leati_layer *layer, leat_error *err) {
    const config *c = layer->config;
    if (c->axes.count == 1 || c->axes.count == 2) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "axes: expected a number or two, received %d", (int)c->axes.count);
}

static int axis_of(const config *c, int input, int rank) {
    int64_t axis = c->axes.values[input < c->axes.count ? input : 0];
    return (int)(axis < 0 ? axis + rank : axis > LEAT_MAX_RANK ? LEAT_MAX_RANK : axis);
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const leati_shape *a = &inputs[0], *b = &inputs[1];
    char first[LEATI_SHAPE_TEXT_BYTES], second[LEATI_SHAPE_TEXT_BYTES];
    int axes[2] = {0};
    (void)input_count, (void)output_count;
    for (int i = 0; i < 2; ++i) {
        axes[i] = axis_of(layer->config, i, inputs[i].rank);
        if (axes[i] < 1 || axes[i] >= inputs[i].rank)
            return leati_shape_unexpected(&inputs[i], "an input that has the axis (not the batch axis)", err);
    }
    int64_t m = a->dims[axes[0]], n = b->dims[axes[1]];
    if ((m >= 0 && n >= 0 && m != n) || a->rank + b->rank - 3 > LEAT_MAX_RANK)
        return leati_fail(
            err, LEAT_ESHAPE,
            "expected inputs of the same length along axes %d and %d, with at most 11 dimensions in total, "
            "received %s and %s",
            axes[0], axes[1], leati_shape_show(first, a), leati_shape_show(second, b));
    outputs[0] = (leati_shape){.rank = 1, .dims = {a->dims[0] < 0 ? b->dims[0] : a->dims[0]}};
    for (int i = 1; i < a->rank; ++i)
        if (i != axes[0]) outputs[0].dims[outputs[0].rank++] = a->dims[i];
    for (int i = 1; i < b->rank; ++i)
        if (i != axes[1]) outputs[0].dims[outputs[0].rank++] = b->dims[i];
    if (outputs[0].rank == 1) outputs[0].dims[outputs[0].rank++] = 1;
    return LEAT_OK;
}

/* Reshapes an input to (N, M, K).  If the axis is the first of several, to (N, K, M), which needs no transpose. */
static leati_value as_matrix(leati_graph *g, leati_value x, int axis, bool *axis_first) {
    leati_desc desc = *leati_graph_desc(g, x);
    int32_t perm[LEAT_MAX_RANK] = {0}, rank = 0;
    int64_t k = desc.shape[axis], m = 1;
    *axis_first = axis == 1 && desc.rank > 2;
    for (int i = 1; i < desc.rank; ++i) m *= i == axis ? 1 : desc.shape[i];
    if (*axis_first) return leati_reshape(g, x, 3, (int64_t[]){desc.shape[0], k, m});
    for (int i = 0; i < desc.rank; ++i)
        if (i != axis) perm[rank++] = i;
    perm[rank] = axis;
    if (axis != desc.rank - 1) x = leati_transpose(g, x, perm);
    return leati_reshape(g, x, 3, (int64_t[]){desc.shape[0], m, k});
}

/* Like TensorFlow's l2_normalize: x / sqrt(max(sum x^2, 1e-12)). */
static leati_value normalised(leati_graph *g, leati_value x, int axis) {
    leati_eltwise power = {.function = LEATI_FN_POW, .a = -0.5f};
    leati_value square = leati_function_of(g, x, LEATI_FN_SQUARE);
    leati_value sum = leati_reduce_of(g, LEATI_REDUCE_SUM, square, UINT32_C(1) << axis, true);
    sum = leati_binary_of(g, LEATI_MAX, sum, leati_scalar(g, 1e-12f));
    return leati_mul(g, x, leati_eltwise_of(g, sum, power));
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    leati_shape shapes[2] = {{0}}, out = {0};
    leati_value x[2];
    bool first[2];
    int one = 1;
    leat_error err = {0};
    for (int i = 0; i < 2; ++i) {
        const leati_desc *desc = leati_graph_desc(g, inputs[i]);
        shapes[i].rank = desc->rank;
        for (int j = 0; j < desc->rank; ++j) shapes[i].dims[j] = desc->shape[j];
    }
    leat_status status = infer(layer, input_count, shapes, &out, &one, &err);
    if (status != LEAT_OK) {
        outputs[0] = leati_graph_fail(g, status, "%s", err.message);
        return;
    }
    for (int i = 0; i < 2; ++i) {
        int axis = axis_of(c, i, shapes[i].rank);
        x[i] = as_matrix(g, c->normalize ? normalised(g, inputs[i], axis) : inputs[i], axis, &first[i]);
    }
    leati_value product = leati_matmul(g, x[0], first[0], x[1], !first[1], LEATI_NONE);
    outputs[0] = leati_reshape(g, product, out.rank, out.dims);
}

LEATI_LAYER_TYPE(dot, "Dot", "dot", config, fields, .min_inputs = 2, .max_inputs = 2,
                 .masking = LEATI_MASK_COMPUTED, /* Keras drops the mask */ .check = check, .infer = infer,
                 .lower = lower);
