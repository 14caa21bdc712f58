/* SPDX-License-Identifier: Apache-2.0 */
/* Add, Subtract, Multiply, Average, Maximum and Minimum of tensors of one shape, or broadcast; a tensor of lower rank
 * gets axes of length 1 after the batch.  Source: keras.layers.Add, Subtract, Multiply, Average, Maximum, Minimum. */
#include "base/error.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/types.h"

static const leati_field fields[] = {{.key = NULL}};

static leati_shape widened(const leati_shape *shape, int32_t rank) {
    leati_shape out = {.rank = rank, .dims = {shape->dims[0]}};
    int32_t more = rank - shape->rank;
    for (int32_t i = 1; i < rank; ++i) out.dims[i] = i <= more ? 1 : shape->dims[i - more];
    return out;
}

/* Returns the broadcast dimension of two dimensions; -2 if they do not fit. */
static int64_t join(int64_t a, int64_t b, bool batch) {
    if (a < 0 || b < 0) return batch ? (a < 0 ? b : a) : -1;
    if (a == b) return a;
    if (!batch && a == 1) return b;
    return !batch && b == 1 ? a : -2;
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    int32_t rank = 0;
    (void)layer, (void)output_count;
    for (int i = 0; i < input_count; ++i) {
        if (inputs[i].rank < 1)
            return leati_shape_unexpected(&inputs[i], "inputs with a batch dimension", err);
        if (inputs[i].rank > rank) rank = inputs[i].rank;
    }
    outputs[0] = widened(&inputs[0], rank);
    for (int i = 1; i < input_count; ++i) {
        leati_shape next = widened(&inputs[i], rank);
        for (int axis = 0; axis < rank; ++axis) {
            int64_t dim = join(outputs[0].dims[axis], next.dims[axis], axis == 0);
            if (dim == -2) {
                char first[LEATI_SHAPE_TEXT_BYTES], second[LEATI_SHAPE_TEXT_BYTES];
                return leati_fail(err, LEAT_ESHAPE,
                                  "expected shapes that can be broadcast, received %s and %s",
                                  leati_shape_show(first, &inputs[0]), leati_shape_show(second, &inputs[i]));
            }
            outputs[0].dims[axis] = dim;
        }
    }
    return LEAT_OK;
}

static leati_value widen(leati_graph *g, leati_value x, int32_t rank) {
    const leati_desc *desc = leati_graph_desc(g, x);
    leati_shape shape = {.rank = desc->rank};
    if (desc->rank == rank || desc->rank < 1) return x;
    for (int i = 0; i < desc->rank; ++i) shape.dims[i] = desc->shape[i];
    shape = widened(&shape, rank);
    return leati_reshape(g, x, rank, shape.dims);
}

/* Returns the op that joins two inputs; Average is computed as a sum, divided at the end. */
static leati_binary kind_of(const leati_layer_type *type) {
    return type == &leati_layer_subtract   ? LEATI_SUB
           : type == &leati_layer_multiply ? LEATI_MUL
           : type == &leati_layer_maximum  ? LEATI_MAX
           : type == &leati_layer_minimum  ? LEATI_MIN
                                           : LEATI_ADD;
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    leati_graph *g = lowering->graph;
    int32_t rank = 0;
    for (int i = 0; i < input_count; ++i) {
        int32_t r = leati_graph_desc(g, inputs[i])->rank;
        if (r > rank) rank = r;
    }
    outputs[0] = widen(g, inputs[0], rank);
    for (int i = 1; i < input_count; ++i)
        outputs[0] = leati_binary_of(g, kind_of(layer->type), outputs[0], widen(g, inputs[i], rank));
    if (layer->type == &leati_layer_average)
        outputs[0] = leati_linear(g, outputs[0], 1.0f / (float)input_count, 0);
}

/* Members of leati_layer_type that all types of this file have in common. */
#define COMMON_MEMBERS                                                                                       \
    .min_inputs = 2, .masking = LEATI_MASK_PASSED, .steps = LEATI_STEPS_BY_NUMBER, .infer = infer,           \
    .lower = lower

LEATI_LAYER_TYPE(add, "Add", "add", leati_no_config, fields, .max_inputs = 32, COMMON_MEMBERS);
LEATI_LAYER_TYPE(subtract, "Subtract", "subtract", leati_no_config, fields, .max_inputs = 2, COMMON_MEMBERS);
LEATI_LAYER_TYPE(multiply, "Multiply", "multiply", leati_no_config, fields, .max_inputs = 32, COMMON_MEMBERS);
LEATI_LAYER_TYPE(average, "Average", "average", leati_no_config, fields, .max_inputs = 32, COMMON_MEMBERS);
LEATI_LAYER_TYPE(maximum, "Maximum", "maximum", leati_no_config, fields, .max_inputs = 32, COMMON_MEMBERS);
LEATI_LAYER_TYPE(minimum, "Minimum", "minimum", leati_no_config, fields, .max_inputs = 32, COMMON_MEMBERS);
