/* SPDX-License-Identifier: Apache-2.0 */
/* Reshape: each sample gets target_shape, of which one dimension may be -1.  Source: keras.layers.Reshape. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/types.h"

typedef struct config {
    leati_ints target_shape;
} config;

static const leati_field fields[] = {{.key = "target_shape",
                                      .kind = LEATI_FIELD_LIST,
                                      .offset = offsetof(config, target_shape),
                                      .minimum = -1,
                                      .limited = true},
                                     {.key = NULL}};

static leat_status check(leati_layer *layer, leat_error *err) {
    const config *c = layer->config;
    int unknown = 0;
    for (int i = 0; i < c->target_shape.count; ++i) unknown += c->target_shape.values[i] == -1;
    if (unknown > 1)
        return leati_fail(err, LEAT_EINVAL, "target_shape: expected at most one -1, received %d", unknown);
    if (c->target_shape.count >= LEAT_MAX_RANK)
        return leati_fail(err, LEAT_EINVAL, "target_shape: expected at most %d numbers, received %d",
                          LEAT_MAX_RANK - 1, (int)c->target_shape.count);
    return LEAT_OK;
}

/* Replaces the -1 of the target, for `count` elements per sample. */
static leat_status find_unknown(const config *c, int64_t count, leati_shape *out, leat_error *err) {
    int64_t known = 1;
    int unknown = -1;
    bool right = true;
    for (int i = 0; i < c->target_shape.count; ++i) {
        int64_t dim = c->target_shape.values[i];
        out->dims[i + 1] = dim;
        if (dim < 0)
            unknown = i + 1;
        else
            right = right && leati_mul_i64(known, dim, &known);
    }
    if (right && unknown >= 0 && known > 0 && count % known == 0) {
        out->dims[unknown] = count / known;
        return LEAT_OK;
    }
    if (right && unknown < 0 && known == count) return LEAT_OK;
    char text[LEATI_SHAPE_TEXT_BYTES];
    return leati_fail(err, LEAT_ESHAPE,
                      "target_shape: expected a shape with the %lld elements of a sample, received %s",
                      (long long)count,
                      leati_shape_text(text, sizeof text, c->target_shape.count, c->target_shape.values));
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    int64_t count;
    (void)input_count, (void)output_count;
    if (inputs[0].rank < 1) return leati_shape_unexpected(&inputs[0], "an input with a batch dimension", err);
    LEATI_TRY(leati_shape_product(&inputs[0], 1, &count, err));
    outputs[0] = (leati_shape){.rank = c->target_shape.count + 1, .dims = {inputs[0].dims[0]}};
    if (count >= 0) return find_unknown(c, count, &outputs[0], err);
    memcpy(&outputs[0].dims[1], c->target_shape.values, (size_t)c->target_shape.count * sizeof(int64_t));
    return LEAT_OK;
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const leati_desc *desc = leati_graph_desc(lowering->graph, inputs[0]);
    leati_shape in = {.rank = desc->rank}, out = {0};
    leat_error err = {0};
    int one = 1;
    memcpy(in.dims, desc->shape, sizeof in.dims);
    leat_status status = infer(layer, input_count, &in, &out, &one, &err);
    outputs[0] = status == LEAT_OK ? leati_reshape(lowering->graph, inputs[0], out.rank, out.dims)
                                   : leati_graph_fail(lowering->graph, status, "%s", err.message);
}

LEATI_LAYER_TYPE(reshape, "Reshape", "reshape", config, fields, LEATI_ONE_INPUT, .check = check,
                 .infer = infer, .lower = lower);
