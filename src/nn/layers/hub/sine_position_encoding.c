/* SPDX-License-Identifier: Apache-2.0 */
/* SinePositionEncoding: for step p and feature i of a sequence (..., T, D), the sine (i even) or the cosine (i odd) of
 * p max_wavelength^(-2 floor(i / 2) / D).  p counts from `start_index`, or is that of the positions (N, T) that are a
 * second input.  Only the shape of the first input counts.
 * Source: keras_hub.layers.SinePositionEncoding; Vaswani et al. 2017. */
#include <math.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/types.h"

typedef struct config {
    double max_wavelength;
    int64_t start_index;
    bool positions; /* there is a second input */
} config;

static const leati_field fields[] = {LEATI_FIELD(config, max_wavelength, LEATI_FIELD_FLOAT, "10000"),
                                     {.key = "start_index",
                                      .kind = LEATI_FIELD_INT,
                                      .offset = offsetof(config, start_index),
                                      .preset = "0",
                                      .later = true},
                                     {.key = "positions",
                                      .kind = LEATI_FIELD_BOOL,
                                      .offset = offsetof(config, positions),
                                      .preset = "false",
                                      .later = true},
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
    const leati_shape *x = &inputs[0], *positions = &inputs[1];
    (void)output_count;
    if (c->positions != (input_count == 2))
        return leati_fail(err, LEAT_EINVAL, "positions: expected %s second input, received %d inputs",
                          c->positions ? "a" : "no", input_count);
    if (x->rank < 3) return leati_shape_unexpected(x, "a sequence (N, steps, features)", err);
    if (c->positions && (x->rank != 3 || positions->rank != 2))
        return leati_shape_unexpected(x->rank != 3 ? x : positions,
                                      "a sequence (N, steps, features) and positions (N, steps)", err);
    outputs[0] = *x;
    return LEAT_OK;
}

/* Returns a vector of `count` constants. */
static leati_value constants(leati_graph *g, int64_t count,
                             float (*value_at)(int64_t index, const void *user), const void *user) {
    const leati_desc desc = leati_desc_make(LEAT_F32, 1, &count);
    float *values = leati_calloc((size_t)count + 1, sizeof *values);
    if (!values) return leati_graph_fail(g, LEAT_ENOMEM, "no memory for an encoding of positions");
    for (int64_t i = 0; i < count; ++i) values[i] = value_at(i, user);
    leati_value out = leati_graph_constant(g, &desc, values);
    leati_free(values);
    return out;
}

typedef struct scale {
    float frequency, features;
} scale;

/* Rounds as Keras does: the exponent and the power are floats. */
static float timescale(int64_t index, const void *user) {
    const scale *s = user;
    const int64_t even = index - index % 2;
    return powf(s->frequency, (float)even / s->features);
}

static float position(int64_t index, const void *user) {
    return (float)(index + *(const int64_t *)user);
}

static float is_odd(int64_t index, const void *user) {
    (void)user;
    return (float)(index % 2);
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    const leati_desc desc = *leati_graph_desc(g, inputs[0]);
    outputs[0] = LEATI_INVALID;
    if (desc.rank < 3) return; /* a graph that has failed has no shapes */
    const int64_t steps = desc.shape[desc.rank - 2], features = desc.shape[desc.rank - 1];
    const scale s = {(float)(1 / c->max_wavelength), (float)features};
    leati_value p = input_count == 2 ? leati_cast(g, inputs[1], LEAT_F32, 1)
                                     : constants(g, steps, position, &c->start_index);
    leati_value odd = constants(g, features, is_odd, NULL);
    leati_value angles = leati_mul(g, leati_expand_last(g, p), constants(g, features, timescale, &s));
    leati_value sines = leati_mul(g, leati_function_of(g, angles, LEATI_FN_SIN), leati_linear(g, odd, -1, 1));
    leati_value cosines = leati_mul(g, leati_function_of(g, angles, LEATI_FN_COS), odd);
    outputs[0] = leati_broadcast(g, leati_add(g, sines, cosines), desc.rank, desc.shape);
}

static const char *const arguments[] = {"inputs", "positions", NULL}, *const call_options[] = {"start_index",
                                                                                               NULL};

LEATI_LAYER_TYPE(sine_position_encoding, "keras_hub>SinePositionEncoding", "sine_position_encoding", config,
                 fields, .module = "keras_hub.src.layers.modeling.sine_position_encoding", .min_inputs = 1,
                 .max_inputs = 2, .arguments = arguments, .call_options = call_options, .indices = true,
                 .check = check, .infer = infer, .lower = lower);
