/* SPDX-License-Identifier: Apache-2.0 */
/* Add, Subtract, Multiply, Average, Maximum and Minimum of tensors of one shape, or broadcast; a tensor of lower rank
 * gets axes of length 1 after the batch.  Current Keras joins masks in another way, and Maximum, Minimum and Multiply
 * then replace steps that do not count.  Source: keras.layers.Add, Subtract, Multiply, Average, Maximum, Minimum. */
#include "base/error.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/types.h"

typedef struct config {
    bool as_keras3; /* the masks are those of current Keras */
} config;

static const leati_field fields[] = {LEATI_AS_KERAS3_FIELD(config), {.key = NULL}};

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

bool leati_layer_merges(const leati_layer_type *type) {
    return type == &leati_layer_add || type == &leati_layer_subtract || type == &leati_layer_multiply ||
           type == &leati_layer_average || type == &leati_layer_maximum || type == &leati_layer_minimum ||
           type == &leati_layer_concatenate;
}

/* ---- Masks of current Keras ---- */

/* Returns a where the mask of steps is 1, else b. */
static leati_value where(leati_graph *g, leati_value mask, leati_value a, leati_value b) {
    leati_value counts = leati_expand_last(g, mask);
    return leati_add(g, leati_mul(g, counts, a), leati_mul(g, leati_linear(g, counts, -1, 1), b));
}

static leati_value either(leati_graph *g, leati_value a, leati_value b) {
    return a == LEATI_NONE || b == LEATI_NONE ? LEATI_NONE : leati_binary_of(g, LEATI_MAX, a, b);
}

/* Returns the mask of the outputs: a step counts if it counts in any input; no mask if an input has none. */
static leati_value any_mask(const leati_lowering *lowering, int input_count) {
    leati_value mask = lowering->input_masks[0];
    for (int i = 1; i < input_count; ++i) mask = either(lowering->graph, mask, lowering->input_masks[i]);
    return mask;
}

static bool has_mask(const leati_lowering *lowering, int input_count) {
    for (int i = 0; i < input_count; ++i)
        if (lowering->input_masks[i] != LEATI_NONE) return true;
    return false;
}

/* Computes Maximum or Minimum; a step that does not count in one input has the values of the others. */
static leati_value extremum_of_masked(leati_graph *g, leati_binary kind, const leati_value *masks, int count,
                                      const leati_value *inputs) {
    leati_value out = inputs[0], mask = masks[0];
    for (int i = 1; i < count; ++i) {
        leati_value next = masks[i] == LEATI_NONE ? inputs[i] : where(g, masks[i], inputs[i], out);
        if (mask != LEATI_NONE) out = where(g, mask, out, next);
        mask = either(g, mask, masks[i]);
        out = leati_binary_of(g, kind, out, next);
    }
    return out;
}

/* Computes Multiply; a step that does not count in one input is a factor of 1 there, and 0 if it counts in none. */
static leati_value product_of_masked(const leati_lowering *lowering, int count, const leati_value *inputs) {
    leati_graph *g = lowering->graph;
    leati_value out = LEATI_NONE, one = leati_scalar(g, 1), zero = leati_scalar(g, 0);
    for (int i = 0; i < count; ++i) {
        leati_value mask = lowering->input_masks[i];
        leati_value next = mask == LEATI_NONE ? inputs[i] : where(g, mask, inputs[i], one);
        out = out == LEATI_NONE ? next : leati_mul(g, out, next);
    }
    leati_value any = any_mask(lowering, count);
    return any == LEATI_NONE ? out : where(g, any, out, zero);
}

/* ---- The layers ---- */

static leati_value merged(const leati_layer *layer, const leati_lowering *lowering, int count,
                          const leati_value *inputs) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    const leati_binary kind = kind_of(layer->type);
    if (c->as_keras3 && has_mask(lowering, count)) {
        if (kind == LEATI_MUL) return product_of_masked(lowering, count, inputs);
        if (kind == LEATI_MAX || kind == LEATI_MIN)
            return extremum_of_masked(g, kind, lowering->input_masks, count, inputs);
    }
    leati_value out = inputs[0];
    for (int i = 1; i < count; ++i) out = leati_binary_of(g, kind, out, inputs[i]);
    return out;
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    leati_value widened_inputs[LEATI_MAX_INPUTS] = {0};
    int32_t rank = 0;
    for (int i = 0; i < input_count; ++i) {
        int32_t r = leati_graph_desc(g, inputs[i])->rank;
        if (r > rank) rank = r;
    }
    for (int i = 0; i < input_count; ++i) widened_inputs[i] = widen(g, inputs[i], rank);
    outputs[0] = merged(layer, lowering, input_count, widened_inputs);
    lowering->output_masks[0] =
        c->as_keras3 ? any_mask(lowering, input_count) : leati_lowering_joined_mask(lowering, input_count);
    if (layer->type == &leati_layer_average)
        outputs[0] = leati_linear(g, outputs[0], 1.0f / (float)input_count, 0);
}

/* Members of leati_layer_type that all types of this file have in common. */
#define COMMON_MEMBERS                                                                                       \
    .min_inputs = 2, .masking = LEATI_MASK_COMPUTED, .steps = LEATI_STEPS_BY_NUMBER, .infer = infer,         \
    .lower = lower

LEATI_LAYER_TYPE(add, "Add", "add", config, fields, .max_inputs = LEATI_MAX_CONCAT, COMMON_MEMBERS);
LEATI_LAYER_TYPE(subtract, "Subtract", "subtract", config, fields, .max_inputs = 2, COMMON_MEMBERS);
LEATI_LAYER_TYPE(multiply, "Multiply", "multiply", config, fields, .max_inputs = LEATI_MAX_CONCAT,
                 COMMON_MEMBERS);
LEATI_LAYER_TYPE(average, "Average", "average", config, fields, .max_inputs = LEATI_MAX_CONCAT,
                 COMMON_MEMBERS);
LEATI_LAYER_TYPE(maximum, "Maximum", "maximum", config, fields, .max_inputs = LEATI_MAX_CONCAT,
                 COMMON_MEMBERS);
LEATI_LAYER_TYPE(minimum, "Minimum", "minimum", config, fields, .max_inputs = LEATI_MAX_CONCAT,
                 COMMON_MEMBERS);
