/* SPDX-License-Identifier: Apache-2.0 */
/* LocallyConnected1D and LocallyConnected2D: a window with different weights at each position.  tf.keras's
 * `implementation` says how the kernel is stored: 1 (Keras 2.3.1's): a matrix for each position; 2: a full matrix
 * from input to output, of which most elements are masked; 3: the elements of that matrix that are not masked, output
 * by output.
 * Source: keras.layers.LocallyConnected1D, keras.layers.LocallyConnected2D; tf.keras 2.1. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "engine/op_semantics/geometry.h"
#include "nn/layers/convolutional/conv_common.h"
#include "nn/layers/types.h"

typedef struct local {
    leati_convolution c; /* first member: code of conv_common.h casts the configuration to it */
    int64_t implementation;
} local;

enum { BY_POSITION = 1, MASKED = 2, SPARSE = 3 };

#define FIELDS(spatial, data_format_later)                                                                   \
    {                                                                                                        \
        LEATI_INT_FIELD(leati_convolution, filters, 1, NULL),                                                \
            LEATI_TUPLE_FIELD(leati_convolution, kernel_size, spatial, NULL),                                \
            LEATI_TUPLE_FIELD(leati_convolution, strides, spatial, "1"),                                     \
            LEATI_PADDING_FIELD(leati_convolution),                                                          \
            {.key = "data_format",                                                                           \
             .kind = LEATI_FIELD_CHOICE,                                                                     \
             .offset = offsetof(leati_convolution, data_format),                                             \
             .preset = "\"channels_last\"",                                                                  \
             .choices = leati_data_formats,                                                                  \
             .later = data_format_later},                                                                    \
            {.key = "implementation",                                                                        \
             .kind = LEATI_FIELD_INT,                                                                        \
             .offset = offsetof(local, implementation),                                                      \
             .preset = "1",                                                                                  \
             .minimum = BY_POSITION,                                                                         \
             .limited = true,                                                                                \
             .later = true},                                                                                 \
            LEATI_WEIGHT_FIELDS(leati_convolution, kernel, "kernel", "\"glorot_uniform\""),                  \
            LEATI_AFFINE_FIELDS(leati_convolution), {                                                        \
            .key = NULL                                                                                      \
        }                                                                                                    \
    }
/* In 1D, Keras 2.3.1 neither writes nor uses data_format. */
static const leati_field fields1d[] = FIELDS(1, true);
static const leati_field fields2d[] = FIELDS(2, false);

static leat_status check(leati_layer *layer, leat_error *err) {
    const local *l = layer->config;
    if (l->implementation > SPARSE)
        return leati_fail(err, LEAT_EINVAL, "implementation: expected 1, 2 or 3, received %lld",
                          (long long)l->implementation);
    if (l->c.padding != LEATI_PADDING_VALID && l->implementation != MASKED)
        return leati_fail(err, LEAT_ENOTSUP,
                          "padding: expected \"valid\" with implementation %lld, received \"same\"",
                          (long long)l->implementation);
    return LEAT_OK;
}

/* The sizes that all of the layer's weights depend on.  The shapes are (N, spatial..., C). */
typedef struct sizes {
    leati_shape in, out;
    int64_t pixels, positions, taps, channels, filters; /* pixels of a sample; positions of the window */
} sizes;

/* True if the number of weights fits into int64_t, in each of the three forms. */
static bool is_countable(const sizes *p) {
    int64_t outs, ins, kernel;
    return leati_mul_i64(p->positions, p->filters, &outs) && leati_mul_i64(p->taps, p->channels, &ins) &&
           leati_mul_i64(outs, ins, &kernel) && leati_mul_i64(p->pixels, p->channels, &ins) &&
           leati_mul_i64(outs, ins, &kernel);
}

static leat_status sizes_of(const leati_convolution *c, const leati_shape *input, sizes *p, leat_error *err) {
    LEATI_TRY(leati_convolution_image(c, input, &p->in, err));
    LEATI_TRY(leati_convolution_infer(c, input, &p->out, err));
    int channel_axis = p->in.rank - 1;
    p->pixels = p->positions = p->taps = 1;
    p->channels = p->in.dims[channel_axis];
    p->filters = p->out.dims[channel_axis] = c->filters;
    for (int i = 1; i < p->in.rank; ++i)
        if (p->in.dims[i] < 0) return leati_shape_unexpected(input, "an image whose sizes are known", err);
    for (int i = 1; i < channel_axis; ++i) {
        p->pixels *= p->in.dims[i];
        p->positions *= p->out.dims[i];
        p->taps *= c->kernel_size.values[i - 1];
    }
    if (!is_countable(p)) return leati_shape_unexpected(input, "an image of fewer than 2^63 weights", err);
    return LEAT_OK;
}

/* Returns the shape of the kernel. */
static leati_shape kernel_shape(const local *l, const sizes *p) {
    const leati_convolution *c = &l->c;
    if (l->implementation == BY_POSITION)
        return (leati_shape){.rank = 3, .dims = {p->positions, p->taps * p->channels, p->filters}};
    if (l->implementation == SPARSE)
        return (leati_shape){.rank = 1, .dims = {p->positions * p->filters * p->taps * p->channels}};
    leati_shape in = leati_image_shape_back(&p->in, c->data_format);
    leati_shape out = leati_image_shape_back(&p->out, c->data_format), both = {.rank = 2 * (in.rank - 1)};
    memcpy(both.dims, &in.dims[1], (size_t)(in.rank - 1) * sizeof *in.dims);
    memcpy(&both.dims[in.rank - 1], &out.dims[1], (size_t)(in.rank - 1) * sizeof *in.dims);
    return both;
}

static leat_status build(leati_layer *layer, int input_count, const leati_shape *inputs, leat_error *err) {
    const local *l = layer->config;
    const leati_convolution *c = &l->c;
    sizes p;
    (void)input_count;
    LEATI_TRY(sizes_of(c, &inputs[0], &p, err));
    leati_shape shape = kernel_shape(l, &p);
    LEATI_TRY(leati_weight_config_add(layer, "kernel", &c->kernel, shape.rank, shape.dims, err));
    if (!c->affine.use_bias) return LEAT_OK;
    return leati_weight_config_add(layer, "bias", &c->affine.bias, p.out.rank - 1, &p.out.dims[1], err);
}

/* ---- Implementations 1 and 3: a product at each position ---- */

/* Returns the kernel as (P, taps * C, F). */
static leati_value kernel_by_position(const local *l, leati_graph *g, const sizes *p, leati_value kernel) {
    bool first = l->c.data_format == LEATI_CHANNELS_FIRST;
    const int64_t rows = p->taps * p->channels;
    if (l->implementation == BY_POSITION && !first) return kernel;
    if (l->implementation == BY_POSITION) {
        kernel = leati_reshape(g, kernel, 4, (int64_t[]){p->positions, p->channels, p->taps, p->filters});
        kernel = leati_transpose(g, kernel, (int32_t[]){0, 2, 1, 3});
    } else if (!first) {
        kernel = leati_reshape(g, kernel, 3, (int64_t[]){p->positions, p->filters, rows});
        kernel = leati_transpose(g, kernel, (int32_t[]){0, 2, 1});
    } else {
        kernel = leati_reshape(g, kernel, 4, (int64_t[]){p->filters, p->positions, p->channels, p->taps});
        kernel = leati_transpose(g, kernel, (int32_t[]){1, 3, 2, 0});
    }
    return leati_reshape(g, kernel, 3, (int64_t[]){p->positions, rows, p->filters});
}

static leati_value by_position(const local *l, leati_graph *g, const sizes *p, leati_value input,
                               leati_value kernel) {
    leati_slide slide = leati_convolution_slide(&l->c);
    leati_value x = leati_image_value(g, input, l->c.data_format);
    leati_attrs attrs = {.conv = {.window = leati_slide_window(&slide, leati_graph_desc(g, x))}};
    leati_value patches = leati_graph_node(g, LEATI_OP_PATCHES, &attrs, 1, &x, NULL);
    kernel = kernel_by_position(l, g, p, kernel);
    leati_value y = leati_matmul(g, patches, false, kernel, false, LEATI_NONE); /* (P, N, F) */
    y = leati_transpose(g, y, (int32_t[]){1, 0, 2});
    y = leati_reshape(g, y, p->out.rank, p->out.dims);
    return leati_image_value_back(g, y, l->c.data_format);
}

/* ---- Implementation 2: one product, masked ---- */

/* Sets mask[pixel, position] (pixels, positions) to 1 if the window at the position covers the pixel.  With "same",
 * tf.keras centers the window on every strides-th pixel; a convolution does not. */
static leat_status fill_mask(const leati_convolution *c, const sizes *p, float *mask, leat_error *err) {
    leati_slide slide = leati_convolution_slide(c);
    leati_desc one = leati_desc_make(LEAT_F32, p->in.rank, p->in.dims);
    one.shape[0] = 1;
    leati_window window = leati_slide_window(&slide, &one);
    leati_geometry g;
    for (int i = 0; c->padding == LEATI_PADDING_SAME && i < window.spatial; ++i) {
        int64_t before = window.kernel[i] / 2;
        int64_t after =
            (p->out.dims[i + 1] - 1) * window.stride[i] + window.kernel[i] - before - p->in.dims[i + 1];
        window.pad_before[i] = before;
        window.pad_after[i] = after > 0 ? after : 0;
    }
    LEATI_TRY(leati_geometry_make(&g, &window, &one, err));
    for (int64_t position = 0; position < p->positions; ++position)
        for (int64_t tap = 0; tap < p->taps; ++tap) {
            int64_t pixel = leati_source_pixel(&g, position, tap);
            if (pixel >= 0) mask[pixel * p->positions + position] = 1;
        }
    return LEAT_OK;
}

/* Returns the mask as (pixels, 1, positions, 1), or with channels_first as (1, pixels, 1, positions). */
static leati_value mask_value(const leati_convolution *c, leati_graph *g, const sizes *p) {
    bool first = c->data_format == LEATI_CHANNELS_FIRST;
    const int64_t dims[] = {1, p->pixels, 1, p->positions, 1};
    leati_desc desc = leati_desc_make(LEAT_F32, 4, first ? dims : dims + 1);
    leat_error err = {0};
    float *mask = leati_calloc((size_t)leati_desc_count(&desc), sizeof *mask);
    if (!mask) return leati_graph_fail(g, LEAT_ENOMEM, "no memory for the mask of a kernel");
    leat_status status = fill_mask(c, p, mask, &err);
    leati_value value = status == LEAT_OK ? leati_graph_constant(g, &desc, mask)
                                          : leati_graph_fail(g, status, "%s", err.message);
    leati_free(mask);
    return value;
}

static leati_value masked(const leati_convolution *c, leati_graph *g, const sizes *p, leati_value input,
                          leati_value kernel) {
    bool first = c->data_format == LEATI_CHANNELS_FIRST;
    const int64_t dims_last[] = {p->pixels, p->channels, p->positions, p->filters};
    const int64_t dims_first[] = {p->channels, p->pixels, p->filters, p->positions};
    int64_t ins = p->pixels * p->channels, outs = p->positions * p->filters;
    leati_shape out = leati_image_shape_back(&p->out, c->data_format);
    kernel = leati_mul(g, leati_reshape(g, kernel, 4, first ? dims_first : dims_last), mask_value(c, g, p));
    kernel = leati_reshape(g, kernel, 2, (int64_t[]){ins, outs});
    leati_value x = leati_reshape(g, input, 2, (int64_t[]){p->in.dims[0], ins});
    leati_value y = leati_matmul(g, x, false, kernel, false, LEATI_NONE);
    return leati_reshape(g, y, out.rank, out.dims);
}

/* ---- All implementations ---- */

/* Reshapes the bias (spatial..., F) for the layer's output.  With channels_first, Keras uses the same memory as (F,
 * spatial...). */
static leati_value bias_value(const leati_convolution *c, leati_graph *g, const sizes *p, leati_value bias) {
    leati_shape out = leati_image_shape_back(&p->out, c->data_format);
    out.dims[0] = 1;
    return leati_reshape(g, bias, out.rank, out.dims);
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const local *l = layer->config;
    const leati_convolution *c = &l->c;
    leati_graph *g = lowering->graph;
    const leati_desc *desc = leati_graph_desc(g, inputs[0]);
    leati_shape input = {.rank = desc->rank};
    leat_error err = {0};
    sizes p;
    (void)input_count;
    memcpy(input.dims, desc->shape, sizeof input.dims);
    leat_status status = sizes_of(c, &input, &p, &err);
    if (status != LEAT_OK) {
        outputs[0] = leati_graph_fail(g, status, "%s", err.message);
        return;
    }
    leati_value kernel = leati_layer_weight(layer, lowering, 0);
    leati_value y = l->implementation == MASKED ? masked(c, g, &p, inputs[0], kernel)
                                                : by_position(l, g, &p, inputs[0], kernel);
    leati_value bias = leati_affine_bias(layer, &c->affine, lowering);
    if (bias != LEATI_NONE) y = leati_add(g, y, bias_value(c, g, &p, bias));
    outputs[0] = leati_activation_lower(&c->affine.activation, g, y);
    leati_lowering_add_activity(lowering, &c->affine.activity_regularizer, 1, outputs);
}

/* Members of leati_layer_type that all types of this file have in common. */
#define COMMON_MEMBERS                                                                                       \
    LEATI_ONE_INPUT, .check = check, .infer = leati_convolution_infer_filters, .build = build, .lower = lower

LEATI_LAYER_TYPE(locally_connected1d, "LocallyConnected1D", "locally_connected1d", local, fields1d,
                 COMMON_MEMBERS);
LEATI_LAYER_TYPE(locally_connected2d, "LocallyConnected2D", "locally_connected2d", local, fields2d,
                 COMMON_MEMBERS);
