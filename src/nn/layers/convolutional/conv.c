/* SPDX-License-Identifier: Apache-2.0 */
/* Conv1D, Conv2D and Conv3D.  The key `groups` is current Keras's.
 * Source: keras.layers.Conv1D, keras.layers.Conv2D, keras.layers.Conv3D. */
#include "base/error.h"
#include "nn/layers/convolutional/conv_common.h"
#include "nn/layers/types.h"

#define FIELDS(spatial, paddings)                                                                            \
    {                                                                                                        \
        LEATI_INT_FIELD(leati_convolution, filters, 1, NULL), LEATI_WINDOW_FIELDS(spatial, paddings),        \
            LEATI_DILATION_FIELD(spatial),                                                                   \
            {.key = "groups",                                                                                \
             .kind = LEATI_FIELD_INT,                                                                        \
             .offset = offsetof(leati_convolution, groups),                                                  \
             .preset = "1",                                                                                  \
             .minimum = 1,                                                                                   \
             .limited = true,                                                                                \
             .later = true},                                                                                 \
            LEATI_WEIGHT_FIELDS(leati_convolution, kernel, "kernel", "\"glorot_uniform\""),                  \
            LEATI_AFFINE_FIELDS(leati_convolution), {                                                        \
            .key = NULL                                                                                      \
        }                                                                                                    \
    }
static const leati_field fields1d[] = FIELDS(1, leati_causal_paddings);
static const leati_field fields2d[] = FIELDS(2, leati_paddings);
static const leati_field fields3d[] = FIELDS(3, leati_paddings);

static leat_status check(leati_layer *layer, leat_error *err) {
    const leati_convolution *c = layer->config;
    if (c->filters % c->groups != 0)
        return leati_fail(err, LEAT_EINVAL, "groups: expected a divisor of %lld filters, received %lld",
                          (long long)c->filters, (long long)c->groups);
    return leati_convolution_check(layer, err);
}

static leat_status build(leati_layer *layer, int input_count, const leati_shape *inputs, leat_error *err) {
    const leati_convolution *c = layer->config;
    int64_t channels;
    (void)input_count;
    LEATI_TRY(leati_convolution_channels(c, &inputs[0], &channels, err));
    if (channels % c->groups != 0)
        return leati_fail(err, LEAT_ESHAPE, "groups: expected a divisor of %lld channels, received %lld",
                          (long long)channels, (long long)c->groups);
    LEATI_TRY(
        leati_convolution_add_kernel(layer, "kernel", &c->kernel, channels / c->groups, c->filters, err));
    return leati_affine_add_bias(layer, &c->affine, c->filters, err);
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const leati_convolution *c = layer->config;
    leati_value x = leati_convolution_value(c, lowering, inputs[0]);
    leati_value kernel = leati_layer_weight(layer, lowering, 0);
    leati_value bias = leati_affine_bias(layer, &c->affine, lowering);
    (void)input_count;
    leati_convolution_finish(c, lowering, leati_convolution_of(c, lowering, x, kernel, bias, c->groups),
                             outputs);
}

/* Members of leati_layer_type that all types of this file have in common. */
#define COMMON_MEMBERS                                                                                       \
    LEATI_ONE_INPUT, .check = check, .infer = leati_convolution_infer_filters, .build = build, .lower = lower

LEATI_LAYER_TYPE(conv1d, "Conv1D", "conv1d", leati_convolution, fields1d, COMMON_MEMBERS);
LEATI_LAYER_TYPE(conv2d, "Conv2D", "conv2d", leati_convolution, fields2d, COMMON_MEMBERS);
LEATI_LAYER_TYPE(conv3d, "Conv3D", "conv3d", leati_convolution, fields3d, COMMON_MEMBERS);
