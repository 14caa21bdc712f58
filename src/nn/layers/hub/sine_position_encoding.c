/* SPDX-License-Identifier: Apache-2.0 */
/* SinePositionEncoding: for step p and feature i of a sequence (..., T, D), the sine (i even) or the cosine (i odd) of
 * p max_wavelength^(-2 floor(i / 2) / D).  p counts from `start_index`, or is that of the positions (N, T) that are a
 * second input.  Only the shape of the first input counts.
 * Source: keras_hub.layers.SinePositionEncoding; Vaswani et al. 2017. */
#include <math.h>

#include "base/error.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/hub/positions.h"
#include "nn/layers/types.h"

typedef struct config {
    double max_wavelength;
    int64_t start_index;
    bool positions; /* there is a second input */
} config;

static const leati_field fields[] = {LEATI_FIELD(config, max_wavelength, LEATI_FIELD_FLOAT, "10000"),
                                     LEATI_POSITIONS_FIELDS(config, false),
                                     {.key = NULL}};

static leat_status check(leati_layer *layer, leat_error *err) {
    const config *c = layer->config;
    if (c->max_wavelength > 0) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "max_wavelength: expected a number above 0, received %g",
                      c->max_wavelength);
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    (void)output_count;
    LEATI_TRY(leati_positions_check(c->positions, input_count, inputs, err));
    outputs[0] = inputs[0];
    return LEAT_OK;
}

/* Rounds as Keras does: the exponent and the power are floats. */
static void fill_timescales(float *out, int64_t features, const void *user) {
    const float frequency = (float)(1 / ((const config *)user)->max_wavelength);
    for (int64_t i = 0; i < features; ++i) out[i] = powf(frequency, (float)(i - i % 2) / (float)features);
}

static void fill_positions(float *out, int64_t steps, const void *user) {
    for (int64_t i = 0; i < steps; ++i) out[i] = (float)(i + ((const config *)user)->start_index);
}

static void fill_odd(float *out, int64_t features, const void *user) {
    (void)user;
    for (int64_t i = 0; i < features; ++i) out[i] = (float)(i % 2);
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    const leati_desc desc = *leati_graph_desc(g, inputs[0]);
    outputs[0] = LEATI_INVALID;
    if (desc.rank < 3) return; /* a graph that has failed has no shapes */
    const int64_t steps = desc.shape[desc.rank - 2], features = desc.shape[desc.rank - 1];
    leati_value p = input_count == 2 ? leati_cast(g, inputs[1], LEAT_F32, 1)
                                     : leati_vector_of(g, steps, fill_positions, c);
    leati_value odd = leati_vector_of(g, features, fill_odd, NULL);
    leati_value angles =
        leati_mul(g, leati_expand_last(g, p), leati_vector_of(g, features, fill_timescales, c));
    leati_value sines = leati_mul(g, leati_function_of(g, angles, LEATI_FN_SIN), leati_linear(g, odd, -1, 1));
    leati_value cosines = leati_mul(g, leati_function_of(g, angles, LEATI_FN_COS), odd);
    outputs[0] = leati_broadcast(g, leati_add(g, sines, cosines), desc.rank, desc.shape);
}

LEATI_LAYER_TYPE(sine_position_encoding, "keras_hub>SinePositionEncoding", "sine_position_encoding", config,
                 fields, .module = "keras_hub.src.layers.modeling.sine_position_encoding", .min_inputs = 1,
                 .max_inputs = 2, .arguments = leati_positions_arguments,
                 .call_options = leati_positions_options, .indices = true, .check = check, .infer = infer,
                 .lower = lower);
