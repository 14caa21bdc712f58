/* SPDX-License-Identifier: Apache-2.0 */
/* AdaptiveMaxPooling and AdaptiveAveragePooling over 1 to 3 spatial axes: the output has the given sizes.  Output i of
 * an axis pools the elements from floor(i in / out) up to ceil((i + 1) in / out), one axis after the other.
 * Source: keras.layers.AdaptiveMaxPooling1D to 3D, keras.layers.AdaptiveAveragePooling1D to 3D of current Keras. */
#include "base/error.h"
#include "nn/layers/spatial.h"
#include "nn/layers/types.h"

#define MOST_WINDOWS 1024 /* kinds of windows of an axis; each is a pooling op */
#define MOST_PARTS   32   /* inputs of CONCAT */

typedef struct config {
    leati_ints output_size;
    int32_t data_format;
} config;

#define FIELDS(spatial)                                                                                      \
    {                                                                                                        \
        LEATI_TUPLE_FIELD(config, output_size, spatial, NULL), LEATI_DATA_FORMAT_FIELD(config), {            \
            .key = NULL                                                                                      \
        }                                                                                                    \
    }
static const leati_field fields1d[] = FIELDS(1), fields2d[] = FIELDS(2), fields3d[] = FIELDS(3);

/* The windows of an axis: `kinds` of them alternate, and window i of a kind begins i strides after the first. */
typedef struct windows {
    int64_t in, out, kinds, stride;
} windows;

static int64_t begin_of(const windows *w, int64_t index) {
    return index * w->in / w->out;
}

static int64_t length_of(const windows *w, int64_t index) {
    return ((index + 1) * w->in + w->out - 1) / w->out - begin_of(w, index);
}

/* True if all windows have the same length and the same distance. */
static bool are_uniform(const windows *w) {
    const int64_t distance = w->out > 1 ? begin_of(w, 1) : 1;
    for (int64_t i = 0; i < w->kinds; ++i)
        if (begin_of(w, i) != i * distance || length_of(w, i) != length_of(w, 0)) return false;
    return distance > 0 && begin_of(w, w->out - 1) == (w->out - 1) * distance;
}

/* Both sizes are below 2^31, so that their products fit. */
static windows windows_of(int64_t in, int64_t out) {
    int64_t divisor = in, rest = out;
    while (rest > 0) {
        int64_t next = divisor % rest;
        divisor = rest;
        rest = next;
    }
    windows w = {in, out, out / divisor, in / divisor};
    if (w.kinds <= MOST_WINDOWS && are_uniform(&w)) {
        w.stride = w.out > 1 ? begin_of(&w, 1) : 1;
        w.kinds = 1;
    }
    return w;
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    leati_shape image;
    (void)input_count, (void)output_count;
    LEATI_TRY(leati_image_shape(&inputs[0], c->output_size.count, c->data_format, &image, err));
    for (int i = 0; i < c->output_size.count; ++i) {
        int64_t in = image.dims[i + 1], out = c->output_size.values[i];
        if (in == 0 || in > INT32_MAX || out > INT32_MAX)
            return leati_shape_unexpected(&inputs[0], "axes of 1 to 2147483647 elements", err);
        if (in > 0 && windows_of(in, out).kinds > MOST_WINDOWS)
            return leati_fail(err, LEAT_ENOTSUP,
                              "output_size: expected windows of at most %d kinds, received %lld outputs for "
                              "%lld elements; choose an output_size that has a large common divisor with the "
                              "input's size",
                              MOST_WINDOWS, (long long)out, (long long)in);
        image.dims[i + 1] = out;
    }
    outputs[0] = leati_image_shape_back(&image, c->data_format);
    return LEAT_OK;
}

/* Pools the elements of an axis of x (N, spatial..., C) by windows of one length. */
static leati_value pool_evenly(leati_graph *g, leati_value x, int axis, int64_t length, int64_t stride,
                               leati_pooling kind) {
    leati_window window = {.spatial = leati_graph_desc(g, x)->rank - 2};
    for (int i = 0; i < window.spatial; ++i) window.kernel[i] = window.stride[i] = window.dilation[i] = 1;
    window.kernel[axis - 1] = length;
    window.stride[axis - 1] = stride;
    leati_attrs attrs = {.pooling = {.window = window, .kind = kind}};
    return leati_graph_node(g, LEATI_OP_POOLING, &attrs, 1, &x, NULL);
}

/* Pools by all windows of one kind, and adds an axis of length 1 behind the pooled one. */
static leati_value pool_kind(leati_graph *g, leati_value x, int axis, const windows *w, int64_t index,
                             leati_pooling kind) {
    const int64_t count = w->out / w->kinds, begin = begin_of(w, index), length = length_of(w, index);
    x = leati_slice_axis(g, x, axis, begin, (count - 1) * w->stride + length);
    x = pool_evenly(g, x, axis, length, w->stride, kind);
    const leati_desc desc = *leati_graph_desc(g, x);
    int64_t dims[LEAT_MAX_RANK + 1] = {0};
    if (desc.rank <= axis || desc.rank >= LEAT_MAX_RANK) return LEATI_INVALID;
    for (int i = 0; i < desc.rank; ++i) dims[i <= axis ? i : i + 1] = desc.shape[i];
    dims[axis + 1] = 1;
    return leati_reshape(g, x, desc.rank + 1, dims);
}

/* Joins any number of values. */
static leati_value join(leati_graph *g, int count, leati_value *parts, int axis) {
    while (count > 1) {
        int joined = 0;
        for (int i = 0; i < count; i += MOST_PARTS) {
            int group = count - i < MOST_PARTS ? count - i : MOST_PARTS;
            parts[joined++] = group > 1 ? leati_concat(g, group, parts + i, axis) : parts[i];
        }
        count = joined;
    }
    return parts[0];
}

static leati_value pool_axis(leati_graph *g, leati_value x, int axis, int64_t out, leati_pooling kind) {
    leati_desc desc = *leati_graph_desc(g, x);
    leati_value parts[MOST_WINDOWS] = {LEATI_NONE};
    if (desc.rank <= axis || desc.shape[axis] < 1) return LEATI_INVALID;
    const windows w = windows_of(desc.shape[axis], out);
    if (w.kinds == 1) return pool_evenly(g, x, axis, length_of(&w, 0), w.stride, kind);
    if (w.kinds > MOST_WINDOWS)
        return leati_graph_fail(g, LEAT_ENOTSUP, "output_size: expected windows of at most %d kinds",
                                MOST_WINDOWS);
    for (int64_t i = 0; i < w.kinds; ++i) parts[i] = pool_kind(g, x, axis, &w, i, kind);
    desc.shape[axis] = out;
    return leati_reshape(g, join(g, (int)w.kinds, parts, axis + 1), desc.rank, desc.shape);
}

static void lower(const leati_layer *layer, leati_lowering *lowering, leati_pooling kind,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    leati_value x = leati_image_value(g, inputs[0], c->data_format);
    for (int i = 0; i < c->output_size.count; ++i) x = pool_axis(g, x, i + 1, c->output_size.values[i], kind);
    outputs[0] = leati_image_value_back(g, x, c->data_format);
}

static void lower_max(const leati_layer *layer, leati_lowering *lowering, int input_count,
                      const leati_value *inputs, leati_value *outputs) {
    (void)input_count;
    lower(layer, lowering, LEATI_POOL_MAX, inputs, outputs);
}

static void lower_average(const leati_layer *layer, leati_lowering *lowering, int input_count,
                          const leati_value *inputs, leati_value *outputs) {
    (void)input_count;
    lower(layer, lowering, LEATI_POOL_AVERAGE, inputs, outputs);
}

/* Members of leati_layer_type that all types of this file have in common. */
#define COMMON_MEMBERS LEATI_ONE_INPUT, .infer = infer

LEATI_LAYER_TYPE(adaptive_max_pooling1d, "AdaptiveMaxPooling1D", "adaptive_max_pooling1d", config, fields1d,
                 .lower = lower_max, COMMON_MEMBERS);
LEATI_LAYER_TYPE(adaptive_max_pooling2d, "AdaptiveMaxPooling2D", "adaptive_max_pooling2d", config, fields2d,
                 .lower = lower_max, COMMON_MEMBERS);
LEATI_LAYER_TYPE(adaptive_max_pooling3d, "AdaptiveMaxPooling3D", "adaptive_max_pooling3d", config, fields3d,
                 .lower = lower_max, COMMON_MEMBERS);
LEATI_LAYER_TYPE(adaptive_average_pooling1d, "AdaptiveAveragePooling1D", "adaptive_average_pooling1d", config,
                 fields1d, .lower = lower_average, COMMON_MEMBERS);
LEATI_LAYER_TYPE(adaptive_average_pooling2d, "AdaptiveAveragePooling2D", "adaptive_average_pooling2d", config,
                 fields2d, .lower = lower_average, COMMON_MEMBERS);
LEATI_LAYER_TYPE(adaptive_average_pooling3d, "AdaptiveAveragePooling3D", "adaptive_average_pooling3d", config,
                 fields3d, .lower = lower_average, COMMON_MEMBERS);
