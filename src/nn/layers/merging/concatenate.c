/* SPDX-License-Identifier: Apache-2.0 */
/* Concatenate: joins tensors along an axis.  Source: keras.layers.Concatenate. */
#include <string.h>

#include "base/error.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/types.h"

typedef struct config {
    int64_t axis;   /* negative: from the end */
    bool as_keras3; /* the mask is that of current Keras */
} config;

static const leati_field fields[] = {LEATI_FIELD(config, axis, LEATI_FIELD_INT, "-1"),
                                     LEATI_AS_KERAS3_FIELD(config),
                                     {.key = NULL}};

static int64_t axis_of(const leati_layer *layer, int rank) {
    const config *c = layer->config;
    return c->axis < 0 ? c->axis + rank : c->axis;
}

static bool agree(const leati_shape *a, const leati_shape *b, int64_t axis) {
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; ++i)
        if (i != axis && a->dims[i] >= 0 && b->dims[i] >= 0 && a->dims[i] != b->dims[i]) return false;
    return true;
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    int64_t axis = axis_of(layer, inputs[0].rank);
    (void)output_count;
    if (axis < 1 || axis >= inputs[0].rank)
        return leati_shape_unexpected(&inputs[0], "inputs that have the axis (not the batch axis)", err);
    outputs[0] = inputs[0];
    for (int i = 1; i < input_count; ++i) {
        if (!agree(&inputs[0], &inputs[i], axis)) {
            char first[LEATI_SHAPE_TEXT_BYTES], second[LEATI_SHAPE_TEXT_BYTES];
            return leati_fail(err, LEAT_ESHAPE,
                              "expected shapes that differ along axis %lld only, received %s and %s",
                              (long long)axis, leati_shape_show(first, &inputs[0]),
                              leati_shape_show(second, &inputs[i]));
        }
        for (int j = 0; j < outputs[0].rank; ++j)
            if (j != axis && outputs[0].dims[j] < 0) outputs[0].dims[j] = inputs[i].dims[j];
        int64_t more = inputs[i].dims[axis], *dim = &outputs[0].dims[axis];
        *dim = *dim < 0 || more < 0 ? -1 : *dim + more;
        if (*dim > INT32_MAX) return leati_shape_unexpected(&outputs[0], "dimensions below 2147483648", err);
    }
    return LEAT_OK;
}

/* Like Keras, concatenates the masks as the tensors are concatenated, with ones for an input without a mask; a step
 * counts if all of its elements count, in current Keras if any of them counts. */
static leati_value joined_mask(const leati_layer *layer, const leati_lowering *lowering, int input_count,
                               const leati_value *inputs, int axis) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    leati_value masks[LEATI_MAX_INPUTS];
    bool any = false;
    for (int i = 0; i < input_count; ++i) any = any || lowering->input_masks[i] != LEATI_NONE;
    if (!any) return LEATI_NONE; /* the ones below would take as much memory as the inputs */
    for (int i = 0; i < input_count; ++i) {
        const leati_desc *desc = leati_graph_desc(g, inputs[i]);
        int64_t dims[LEAT_MAX_RANK];
        memcpy(dims, desc->shape, sizeof dims);
        if (desc->rank > 0 && axis != desc->rank - 1) dims[desc->rank - 1] = 1;
        masks[i] = lowering->input_masks[i];
        if (masks[i] == LEATI_NONE)
            masks[i] = leati_full(g, desc->rank, dims, 1.0f);
        else if (leati_graph_desc(g, masks[i])->rank < desc->rank)
            masks[i] = leati_expand_last(g, masks[i]);
    }
    return leati_reduce_last(g, c->as_keras3 ? LEATI_REDUCE_MAX : LEATI_REDUCE_MIN,
                             leati_concat(g, input_count, masks, axis), false);
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    int64_t axis = axis_of(layer, leati_graph_desc(lowering->graph, inputs[0])->rank);
    outputs[0] = leati_concat(lowering->graph, input_count, inputs, (int)axis);
    lowering->output_masks[0] = joined_mask(layer, lowering, input_count, inputs, (int)axis);
}

LEATI_LAYER_TYPE(concatenate, "Concatenate", "concatenate", config, fields, .min_inputs = 2,
                 .max_inputs = LEATI_MAX_CONCAT, .masking = LEATI_MASK_COMPUTED, .steps = LEATI_STEPS_BY_AXIS,
                 .infer = infer, .lower = lower);
