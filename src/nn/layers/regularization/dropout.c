/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout: in training, a share of the elements becomes 0, and the others are scaled to keep the expected sum; along
 * an axis where noise_shape is 1, all elements share one draw.  SpatialDropout draws for whole feature maps,
 * StochasticDepth for whole samples.  AlphaDropout sets elements to SELU's lowest value and keeps mean and variance.
 * Source: keras.layers.Dropout, SpatialDropout1D to 3D, AlphaDropout, keras.applications.convnext; Klambauer et al.
 * 2017, appendix A1. */
#include <math.h>

#include "base/error.h"
#include "base/rng.h"
#include "base/text.h"
#include "nn/layers/spatial.h"
#include "nn/layers/types.h"

typedef struct config {
    double rate;
    leati_ints noise_shape;
    int64_t seed;
    int32_t data_format; /* SpatialDropout */
} config;

static const leati_field fields[] = {LEATI_FIELD(config, rate, LEATI_FIELD_FLOAT, NULL),
                                     LEATI_SIZES_FIELD(config, noise_shape),
                                     LEATI_FIELD(config, seed, LEATI_FIELD_OPTIONAL_INT, "null"),
                                     {.key = NULL}};

/* Keras 2.3.1 does not write the data_format of these layers, nor noise_shape and seed of AlphaDropout. */
static const leati_field image_fields[] = {LEATI_FIELD(config, rate, LEATI_FIELD_FLOAT, NULL),
                                           LEATI_SIZES_FIELD(config, noise_shape),
                                           LEATI_FIELD(config, seed, LEATI_FIELD_OPTIONAL_INT, "null"),
                                           LEATI_LATER_DATA_FORMAT_FIELD(config),
                                           {.key = NULL}};

static const leati_field alpha_fields[] = {LEATI_FIELD(config, rate, LEATI_FIELD_FLOAT, NULL),
                                           {.key = "noise_shape",
                                            .kind = LEATI_FIELD_LIST,
                                            .offset = offsetof(config, noise_shape),
                                            .preset = "null",
                                            .minimum = 1,
                                            .limited = true,
                                            .later = true},
                                           {.key = "seed",
                                            .kind = LEATI_FIELD_OPTIONAL_INT,
                                            .offset = offsetof(config, seed),
                                            .preset = "null",
                                            .later = true},
                                           {.key = NULL}};

static const leati_field depth_fields[] = {
    {.key = "drop_path_rate", .kind = LEATI_FIELD_FLOAT, .offset = offsetof(config, rate)}, {.key = NULL}};

static leat_status check(leati_layer *layer, leat_error *err) {
    config *c = layer->config;
    if (!(c->rate == c->rate))
        return leati_fail(err, LEAT_EINVAL, "rate: expected a number from 0 to 1, received NaN");
    c->rate = c->rate < 0 ? 0 : c->rate > 1 ? 1 : c->rate; /* clipped, as in Keras */
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

/* Returns the stream of random numbers; layers with the same seed draw the same numbers. */
static uint64_t stream_of(const config *c, const leati_lowering *lowering) {
    return c->seed == INT64_MIN ? lowering->stream : leati_mix((uint64_t)c->seed, 0);
}

static bool drops(const config *c, const leati_lowering *lowering) {
    return leati_lowering_in_training(lowering) && c->rate > 0 && c->rate < 1;
}

/* Returns the axes along which noise_shape is 1, as bits; sets *failed if noise_shape does not fit. */
static uint32_t noise_axes(const config *c, leati_graph *g, leati_value x, leati_value *failed) {
    const leati_desc *desc = leati_graph_desc(g, x);
    if (fits(&c->noise_shape, desc->rank, desc->shape)) return shared_axes(&c->noise_shape, desc);
    char text[LEATI_SHAPE_TEXT_BYTES];
    *failed = leati_graph_fail(g, LEAT_ESHAPE, "noise_shape does not fit a batch of shape %s",
                               leati_shape_text(text, sizeof text, desc->rank, desc->shape));
    return 0;
}

/* Drops elements.  If elements share draws along axes, the factors are drawn once and broadcast. */
static leati_value dropped(const config *c, const leati_lowering *lowering, leati_value x, uint32_t shared) {
    leati_graph *g = lowering->graph;
    leati_desc drawn = *leati_graph_desc(g, x);
    if (!shared) return leati_dropout(g, x, (float)c->rate, 0, stream_of(c, lowering));
    for (int i = 0; i < drawn.rank; ++i)
        if (shared >> i & 1u) drawn.shape[i] = 1;
    leati_value ones = leati_full(g, drawn.rank, drawn.shape, 1);
    return leati_mul(g, x, leati_dropout(g, ones, (float)c->rate, 0, stream_of(c, lowering)));
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    leati_value x = inputs[0];
    (void)input_count;
    outputs[0] = x;
    if (!drops(c, lowering)) return;
    uint32_t shared = noise_axes(c, lowering->graph, x, &x);
    outputs[0] = dropped(c, lowering, x, shared);
}

/* ---- SpatialDropout ---- */

static int spatial_of(const leati_layer_type *type) {
    return type == &leati_layer_spatial_dropout1d ? 1 : type == &leati_layer_spatial_dropout2d ? 2 : 3;
}

static leat_status infer_spatial(const leati_layer *layer, int input_count, const leati_shape *inputs,
                                 leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    leati_shape image;
    LEATI_TRY(leati_image_shape(&inputs[0], spatial_of(layer->type), c->data_format, &image, err));
    return leati_infer_same(layer, input_count, inputs, outputs, output_count, err);
}

static void lower_spatial(const leati_layer *layer, leati_lowering *lowering, int input_count,
                          const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    uint32_t axes = leati_image_axes(spatial_of(layer->type), c->data_format);
    (void)input_count;
    outputs[0] = inputs[0];
    if (!drops(c, lowering)) return;
    outputs[0] = dropped(c, lowering, inputs[0], axes);
}

/* ---- StochasticDepth ---- */

static leat_status check_depth(leati_layer *layer, leat_error *err) {
    config *c = layer->config;
    c->seed = INT64_MIN;
    return check(layer, err);
}

static void lower_depth(const leati_layer *layer, leati_lowering *lowering, int input_count,
                        const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    int rank = leati_graph_desc(lowering->graph, inputs[0])->rank;
    (void)input_count;
    outputs[0] = inputs[0];
    if (!drops(c, lowering)) return;
    outputs[0] = dropped(c, lowering, inputs[0], (UINT32_C(1) << rank) - 2);
}

/* ---- AlphaDropout ---- */

/* Computes a (x k + p (1 - k)) + b, where k is 1 if x is kept, as a (x - p) k + (a p + b); the op DROPOUT computes (x
 * - p) k / (1 - rate). */
static void lower_alpha(const leati_layer *layer, leati_lowering *lowering, int input_count,
                        const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    const double p = -1.6732632423543772 * 1.0507009873554805;
    leati_graph *g = lowering->graph;
    leati_value x = inputs[0];
    (void)input_count;
    outputs[0] = x;
    if (!drops(c, lowering)) return;
    double a = 1 / sqrt((1 - c->rate) * (1 + c->rate * p * p)), b = -a * p * c->rate;
    uint32_t shared = noise_axes(c, g, x, &x);
    x = leati_linear(g, x, 1, (float)-p);
    x = dropped(c, lowering, x, shared);
    outputs[0] = leati_linear(g, x, (float)(a * (1 - c->rate)), (float)(a * p + b));
}

/* Members of leati_layer_type that all types of this file have in common. */
#define COMMON_MEMBERS LEATI_ONE_INPUT, .masking = LEATI_MASK_PASSED

LEATI_LAYER_TYPE(dropout, "Dropout", "dropout", config, fields, .check = check,
                 .steps = LEATI_STEPS_BY_NUMBER, .infer = infer, .lower = lower, COMMON_MEMBERS);
LEATI_LAYER_TYPE(spatial_dropout1d, "SpatialDropout1D", "spatial_dropout1d", config, fields, .check = check,
                 .steps = LEATI_STEPS_BY_NUMBER, .infer = infer_spatial, .lower = lower_spatial,
                 COMMON_MEMBERS);
LEATI_LAYER_TYPE(spatial_dropout2d, "SpatialDropout2D", "spatial_dropout2d", config, image_fields,
                 .check = check, .infer = infer_spatial, .lower = lower_spatial, COMMON_MEMBERS);
LEATI_LAYER_TYPE(spatial_dropout3d, "SpatialDropout3D", "spatial_dropout3d", config, image_fields,
                 .check = check, .infer = infer_spatial, .lower = lower_spatial, COMMON_MEMBERS);
LEATI_LAYER_TYPE(alpha_dropout, "AlphaDropout", "alpha_dropout", config, alpha_fields, .check = check,
                 .steps = LEATI_STEPS_BY_NUMBER, .infer = infer, .lower = lower_alpha, COMMON_MEMBERS);
LEATI_LAYER_TYPE(stochastic_depth, "StochasticDepth", "stochastic_depth", config, depth_fields,
                 .check = check_depth, .infer = leati_infer_same, .lower = lower_depth, COMMON_MEMBERS);
