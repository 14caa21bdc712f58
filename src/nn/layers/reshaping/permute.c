/* SPDX-License-Identifier: Apache-2.0 */
/* Permute: transposes the axes of a sample, which are counted from 1.  Source: keras.layers.Permute. */
#include "base/error.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/types.h"

typedef struct config {
    leati_ints dims;
} config;

static const leati_field fields[] = {{.key = "dims",
                                      .kind = LEATI_FIELD_LIST,
                                      .offset = offsetof(config, dims),
                                      .minimum = 1,
                                      .limited = true},
                                     {.key = NULL}};

static leat_status check(leati_layer *layer, leat_error *err) {
    const config *c = layer->config;
    uint32_t seen = 0;
    for (int i = 0; i < c->dims.count; ++i)
        if (c->dims.values[i] >= 1 && c->dims.values[i] <= c->dims.count)
            seen |= UINT32_C(1) << (c->dims.values[i] - 1);
    if (c->dims.count >= LEAT_MAX_RANK || seen != (UINT32_C(1) << c->dims.count) - 1)
        return leati_fail(err, LEAT_EINVAL, "dims: expected every number from 1 to %d once",
                          (int)c->dims.count);
    return LEAT_OK;
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    (void)input_count, (void)output_count;
    if (inputs[0].rank != c->dims.count + 1)
        return leati_shape_unexpected(&inputs[0], "as many axes as dims has, and the batch", err);
    outputs[0] = inputs[0];
    for (int i = 0; i < c->dims.count; ++i) outputs[0].dims[i + 1] = inputs[0].dims[c->dims.values[i]];
    return LEAT_OK;
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    int32_t perm[LEAT_MAX_RANK] = {0};
    (void)input_count;
    for (int i = 0; i < c->dims.count; ++i) perm[i + 1] = (int32_t)c->dims.values[i];
    outputs[0] = leati_transpose(lowering->graph, inputs[0], perm);
}

LEATI_LAYER_TYPE(permute, "Permute", "permute", config, fields, LEATI_ONE_INPUT, .check = check,
                 .infer = infer, .lower = lower);
