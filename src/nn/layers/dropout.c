/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout: while training, a share of the elements is 0 and the others grow to keep the sum; where noise_shape is 1, one
 * draw counts for the whole axis.  Source: keras.layers.Dropout. */
#include "base/error.h"
#include "base/rng.h"
#include "base/text.h"
#include "nn/layers/rows.h"
#include "nn/layers/types.h"

typedef struct config {
    double rate;
    leati_ints noise_shape;
    int64_t seed;
} config;

static const leati_field fields[] = {LEATI_ROW(config, rate, LEATI_FIELD_FLOAT, NULL),
                                     {.key = "noise_shape",
                                      .kind = LEATI_FIELD_LIST,
                                      .offset = offsetof(config, noise_shape),
                                      .preset = "null",
                                      .minimum = 1,
                                      .limited = true},
                                     LEATI_ROW(config, seed, LEATI_FIELD_OPTIONAL_INT, "null"),
                                     {.key = NULL}};

static leat_status check(leati_layer *layer, leat_error *err) {
    config *c = layer->config;
    if (!(c->rate == c->rate))
        return leati_fail(err, LEAT_EINVAL, "rate: expected a number from 0 to 1, received NaN");
    c->rate = c->rate < 0 ? 0 : c->rate > 1 ? 1 : c->rate; /* as Keras does */
    return LEAT_OK;
}

static bool fits(const leati_ints *noise, int rank, const int64_t *dims) {
    if (noise->count < 0) return true;
    if (noise->count != rank) return false;
    for (int i = 0; i < rank; ++i) {
        int64_t n = noise->values[i];
        if (n > 1 && dims[i] >= 0 && dims[i] != n) return false;
    }
    return true;
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    if (!fits(&c->noise_shape, inputs[0].rank, inputs[0].dims))
        return leati_shape_unexpected(&inputs[0], "an input with the axes of noise_shape", err);
    return leati_infer_same(layer, input_count, inputs, outputs, output_count, err);
}

static uint32_t shared_axes(const leati_ints *noise, const leati_desc *desc) {
    uint32_t shared = 0;
    for (int i = 0; i < noise->count; ++i)
        if (noise->values[i] == 1 && desc->shape[i] != 1) shared |= UINT32_C(1) << i;
    return shared;
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    const leati_desc *desc = leati_graph_desc(lowering->graph, inputs[0]);
    /* A seed makes two layers alike. */
    uint64_t stream = c->seed == INT64_MIN ? lowering->stream : leati_mix((uint64_t)c->seed, 0);
    (void)input_count;
    outputs[0] = inputs[0];
    if (lowering->mode != LEATI_TRAIN || !(c->rate > 0 && c->rate < 1)) return;
    if (!fits(&c->noise_shape, desc->rank, desc->shape)) {
        char text[LEATI_SHAPE_TEXT_BYTES];
        outputs[0] =
            leati_graph_fail(lowering->graph, LEAT_ESHAPE, "noise_shape does not fit a batch of shape %s",
                             leati_shape_text(text, sizeof text, desc->rank, desc->shape));
        return;
    }
    uint32_t shared = shared_axes(&c->noise_shape, desc);
    outputs[0] = leati_dropout(lowering->graph, inputs[0], (float)c->rate, shared, stream);
}

const leati_layer_type leati_layer_dropout = {.class_name = "Dropout",
                                              .name_prefix = "dropout",
                                              .config_bytes = sizeof(config),
                                              .fields = fields,
                                              .min_inputs = 1,
                                              .max_inputs = 1,
                                              .check = check,
                                              .masking = LEATI_MASK_PASSED,
                                              .infer = infer,
                                              .lower = lower};
