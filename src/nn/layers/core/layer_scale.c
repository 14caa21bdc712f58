/* SPDX-License-Identifier: Apache-2.0 */
/* LayerScale: x gamma, with a factor for each channel.  Source: keras.applications.convnext; Touvron et al. 2021. */
#include "base/error.h"
#include "json/json.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/types.h"

typedef struct config {
    double init_values;
    int64_t projection_dim;
    leati_initializer *constant; /* created by check */
} config;

static const leati_field fields[] = {LEATI_FIELD(config, init_values, LEATI_FIELD_FLOAT, NULL),
                                     LEATI_INT_FIELD(config, projection_dim, 1, NULL),
                                     {.key = NULL}};

static leat_status check(leati_layer *layer, leat_error *err) {
    config *c = layer->config;
    json_t *value = json_pack("{s:s, s:{s:o}}", "class_name", "Constant", "config", "value",
                              leati_json_real(c->init_values));
    leat_status status = value ? leati_initializer_read(&c->constant, value, err)
                               : leati_fail(err, LEAT_ENOMEM, "no memory for an initializer");
    json_decref(value);
    return leati_prefix(status, err, "init_values");
}

static void fini(void *layer_config) {
    config *c = layer_config;
    leati_initializer_destroy(&c->constant);
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    int64_t last = inputs[0].rank > 1 ? inputs[0].dims[inputs[0].rank - 1] : 0;
    if (last != -1 && last != c->projection_dim)
        return leati_shape_unexpected(&inputs[0], "a last axis of projection_dim", err);
    return leati_infer_same(layer, input_count, inputs, outputs, output_count, err);
}

static leat_status build(leati_layer *layer, int input_count, const leati_shape *inputs, leat_error *err) {
    const config *c = layer->config;
    (void)input_count, (void)inputs;
    leati_weight_spec spec = {.name = "gamma",
                              .rank = 1,
                              .dims = {c->projection_dim},
                              .initializer = c->constant};
    return leati_layer_add_weight(layer, &spec, err);
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    (void)input_count;
    outputs[0] = leati_mul(lowering->graph, inputs[0], leati_layer_weight(layer, lowering, 0));
}

LEATI_LAYER_TYPE(layer_scale, "LayerScale", "layer_scale", config, fields, LEATI_ONE_INPUT, .check = check,
                 .fini = fini, .steps = LEATI_STEPS_APART, .infer = infer, .build = build, .lower = lower);
