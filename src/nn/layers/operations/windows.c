/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of keras.ops whose windows slide over images: convolutions, pooling, patches, filters.  Room: nn. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "engine/op_semantics/geometry.h"
#include "nn/layers/convolutional/conv_common.h"
#include "nn/layers/operations/operations.h"

/* The options of a window that slides over an image. */
typedef struct window_options {
    leati_ints kernel, strides, dilation;
    int32_t data_format, padding;
} window_options;

/* Makes the list as long as the image has axes: one number stands for all axes.  Returns false if that fails. */
static bool spread_over(leati_ints *list, int spatial) {
    for (int i = 0; i < spatial; ++i) {
        if (list->count == 1) list->values[i] = list->values[0];
        if ((list->count != 1 && i >= list->count) || list->values[i] < 1) return false;
    }
    list->count = spatial;
    return true;
}

/* Reads the options for an image with that number of axes, except the size of the window.  After a failure it returns
 * false. */
static bool read_options(leati_operands *o, const char *size_key, int spatial, window_options *w) {
    w->padding = leati_operand_choice(o, "padding", leati_paddings);
    w->data_format = leati_operand_choice(o, "data_format", leati_data_formats);
    w->strides.count = leati_operand_ints(o, "strides", w->strides.values);
    w->dilation = (leati_ints){.count = 1, .values = {1}};
    if (leati_operation_has(o->operation, "dilation_rate") && leati_operand_json(o, "dilation_rate"))
        w->dilation.count = leati_operand_ints(o, "dilation_rate", w->dilation.values);
    if (w->strides.count == -1) w->strides = w->kernel;
    if (spatial >= 1 && spatial <= 3 && spread_over(&w->kernel, spatial) &&
        spread_over(&w->strides, spatial) && spread_over(&w->dilation, spatial))
        return true;
    o->outputs[0] = leati_operand_fail(o, LEAT_EINVAL, "expected an image, %s and strides", size_key);
    return false;
}

/* Reads the size of the window and the other options. */
static bool read_window(leati_operands *o, const char *size_key, int spatial, window_options *w) {
    *w = (window_options){0};
    w->kernel.count = leati_operand_ints(o, size_key, w->kernel.values);
    return read_options(o, size_key, spatial, w);
}

static leati_slide slide_of(const window_options *w) {
    return (leati_slide){&w->kernel, &w->strides, &w->dilation, w->padding};
}

static void lower_pooling(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value x = leati_operand(o, "inputs");
    window_options w;
    if (!read_window(o, "pool_size", leati_graph_desc(g, x)->rank - 2, &w)) return;
    x = leati_image_value(g, x, w.data_format);
    leati_slide slide = {&w.kernel, &w.strides, NULL, w.padding};
    leati_attrs attrs = {.pooling = {.window = leati_slide_window(&slide, leati_graph_desc(g, x)),
                                     .kind = (leati_pooling)o->operation->detail}};
    leati_value y = leati_graph_node(g, LEATI_OP_POOLING, &attrs, 1, &x, NULL);
    o->outputs[0] = leati_image_value_back(g, y, w.data_format);
}

/* The pixels of each window become the channels of one pixel, in the order rows, columns, channels. */
static void lower_extract_patches(leati_operands *o) {
    static const int32_t batch_first[] = {1, 0, 2};
    leati_graph *g = o->g;
    leati_value x = leati_operand(o, "images");
    int spatial = leati_graph_desc(g, x)->rank - 2;
    window_options w;
    if (!read_window(o, "size", spatial, &w)) return;
    x = leati_image_value(g, x, w.data_format);
    leati_slide slide = slide_of(&w);
    const leati_desc *desc = leati_graph_desc(g, x);
    leati_attrs attrs = {.conv = {.window = leati_slide_window(&slide, desc), .groups = 1}};
    leati_geometry geometry;
    leat_error err = {0};
    leat_status status = leati_geometry_make(&geometry, &attrs.conv.window, desc, &err);
    if (status != LEAT_OK) {
        o->outputs[0] = leati_operand_fail(o, status, "%s", err.message);
        return;
    }
    int64_t dims[LEAT_MAX_RANK] = {geometry.batch};
    for (int i = 0; i < spatial; ++i) dims[1 + i] = geometry.out[i + 3 - spatial];
    dims[1 + spatial] = leati_mul_saturated(geometry.taps, geometry.channels);
    leati_value patches = leati_graph_node(g, LEATI_OP_PATCHES, &attrs, 1, &x, NULL);
    leati_value y = leati_reshape(g, leati_transpose(g, patches, batch_first), spatial + 2, dims);
    o->outputs[0] = leati_image_value_back(g, y, w.data_format);
}

/* ---- Convolutions ---- */

/* Reads the image and the kernel (spatial..., in, out). */
static bool read_kernel(leati_operands *o, const char *name, leati_value *x, leati_value *kernel,
                        window_options *w) {
    *x = leati_operand(o, "inputs");
    *kernel = leati_operand(o, name);
    const leati_desc image = *leati_graph_desc(o->g, *x), own = *leati_graph_desc(o->g, *kernel);
    *w = (window_options){.kernel.count = own.rank - 2};
    if (own.rank != image.rank || own.rank < 3 || own.rank > 5) {
        o->outputs[0] =
            leati_operand_fail(o, LEAT_ESHAPE,
                               "%s: expected the axes of an image, the channels and the filters", name);
        return false;
    }
    for (int i = 0; i < w->kernel.count; ++i) w->kernel.values[i] = own.shape[i];
    if (!leati_operand_json(o, "strides")) w->strides = (leati_ints){.count = 1, .values = {1}};
    if (!read_options(o, name, w->kernel.count, w)) return false;
    *x = leati_image_value(o->g, *x, w->data_format);
    return true;
}

enum { CONV, DEPTHWISE, SEPARABLE };

static void lower_conv(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value x, kernel, y;
    window_options w;
    const int detail = o->operation->detail;
    if (!read_kernel(o, detail == SEPARABLE ? "depthwise_kernel" : "kernel", &x, &kernel, &w)) return;
    const leati_slide slide = slide_of(&w);
    if (detail == CONV) {
        const leati_desc image = *leati_graph_desc(g, x), own = *leati_graph_desc(g, kernel);
        const int64_t depth = own.shape[own.rank - 2];
        y = leati_slide_convolve(&slide, g, x, kernel, LEATI_NONE,
                                 depth > 0 ? image.shape[image.rank - 1] / depth : 1);
    } else {
        y = leati_slide_depthwise(&slide, g, x, kernel, LEATI_NONE);
    }
    if (detail == SEPARABLE) {
        window_options point = {.kernel = {.count = w.kernel.count, .values = {1, 1, 1}}};
        point.strides = point.dilation = point.kernel;
        const leati_slide one = slide_of(&point);
        y = leati_slide_convolve(&one, g, y, leati_operand(o, "pointwise_kernel"), LEATI_NONE, 1);
    }
    o->outputs[0] = leati_image_value_back(g, y, w.data_format);
}

/* ---- Filters ---- */

/* Fills `out` with a bell curve whose sum is 1. */
static void make_bell(double *out, int64_t size, double sigma) {
    double sum = 0;
    for (int64_t i = 0; i < size; ++i) {
        const double at = ((double)i - (double)(size - 1) / 2) / sigma;
        sum += out[i] = exp(-0.5 * at * at);
    }
    for (int64_t i = 0; i < size; ++i) out[i] /= sum;
}

enum { MOST_TAPS = 63 };

static bool read_sigmas(const leati_operands *o, double out[2]) {
    const json_t *value = leati_operand_json(o, "sigma");
    out[0] = out[1] = 1;
    for (size_t i = 0; i < 2 && value; ++i) {
        const json_t *item = json_is_array(value) ? json_array_get(value, i) : value;
        if (!json_is_number(item)) return false;
        out[i] = json_number_value(item);
    }
    return out[0] > 0 && out[1] > 0;
}

static void lower_gaussian_blur(leati_operands *o) {
    leati_graph *g = o->g;
    window_options w;
    double sigma[2], across[MOST_TAPS], down[MOST_TAPS];
    float values[MOST_TAPS * MOST_TAPS];
    leati_value x = leati_operand(o, "images");
    w = (window_options){.strides = {.count = 1, .values = {1}}, .kernel = {.count = 2}};
    if (!leati_operand_json(o, "kernel_size"))
        w.kernel = (leati_ints){.count = 2, .values = {3, 3}};
    else
        w.kernel.count = leati_operand_ints(o, "kernel_size", w.kernel.values);
    if (!read_options(o, "kernel_size", 2, &w)) return;
    const int64_t *n = w.kernel.values;
    if (leati_graph_desc(g, x)->rank != 4 || n[0] > MOST_TAPS || n[1] > MOST_TAPS || !read_sigmas(o, sigma)) {
        o->outputs[0] =
            leati_operand_fail(o, LEAT_ENOTSUP,
                               "expected images, a kernel_size of at most %d and positive sigmas", MOST_TAPS);
        return;
    }
    /* Keras fills a matrix of n[1] rows and n[0] columns, and then reads its elements as n[0] rows of n[1] columns. */
    make_bell(across, n[0], sigma[0]);
    make_bell(down, n[1], sigma[1]);
    for (int64_t i = 0; i < n[0] * n[1]; ++i) values[i] = (float)(down[i / n[0]] * across[i % n[0]]);
    x = leati_image_value(g, x, w.data_format);
    const int64_t channels = leati_graph_desc(g, x)->shape[3], dims[] = {n[0], n[1], channels, 1};
    const leati_desc desc = leati_desc_make(LEAT_F32, 4, (int64_t[]){n[0], n[1], 1, 1});
    leati_value kernel = leati_broadcast(g, leati_graph_constant(g, &desc, values), 4, dims);
    w.padding = LEATI_PADDING_SAME;
    w.strides = w.dilation = (leati_ints){.count = 2, .values = {1, 1}};
    const leati_slide slide = slide_of(&w);
    o->outputs[0] =
        leati_image_value_back(g, leati_slide_depthwise(&slide, g, x, kernel, LEATI_NONE), w.data_format);
}

/* Adds the neighbour of the first element before it, and that of the last one behind it. */
static leati_value reflected(leati_graph *g, leati_value x, int axis) {
    const int64_t length = leati_graph_desc(g, x)->shape[axis];
    leati_value parts[] = {leati_slice_axis(g, x, axis, 1, 1), x,
                           leati_slice_axis(g, x, axis, length - 2, 1)};
    return leati_concat(g, 3, parts, axis);
}

/* Combines each element of an axis with both neighbours: their difference, or their sum and twice the element. */
static leati_value with_neighbours(leati_graph *g, leati_value x, int axis, bool smooth) {
    const int64_t length = leati_graph_desc(g, x)->shape[axis] - 2;
    leati_value before = leati_slice_axis(g, x, axis, 0, length),
                after = leati_slice_axis(g, x, axis, 2, length);
    if (!smooth) return leati_sub(g, after, before);
    leati_value own = leati_linear(g, leati_slice_axis(g, x, axis, 1, length), 2, 0);
    return leati_add(g, leati_add(g, before, own), after);
}

/* The changes down and across as a new last axis. */
static void lower_sobel(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value x = leati_operand(o, "images");
    const bool first = leati_operand_choice(o, "data_format", leati_data_formats) == LEATI_CHANNELS_FIRST;
    const leati_desc desc = *leati_graph_desc(g, x);
    const int row = first ? 2 : 1;
    if (desc.rank != 4 || desc.shape[row] < 2 || desc.shape[row + 1] < 2) {
        o->outputs[0] = leati_operand_fail(o, LEAT_ESHAPE, "expected images of at least 2 x 2 pixels");
        return;
    }
    x = reflected(g, reflected(g, x, row), row + 1);
    leati_value edges[] = {
        leati_expand_last(g, with_neighbours(g, with_neighbours(g, x, row, false), row + 1, true)),
        leati_expand_last(g, with_neighbours(g, with_neighbours(g, x, row, true), row + 1, false))};
    o->outputs[0] = leati_concat(g, 2, edges, 4);
}

/* ---- Windows as vectors ---- */

/* Reads a pair of numbers of at least `least`, or one for both. */
static bool read_pair(const leati_operands *o, const char *name, int64_t preset, int64_t least,
                      int64_t out[2]) {
    int64_t list[LEAT_MAX_RANK] = {preset, preset};
    const int count = leati_operand_ints(o, name, list);
    out[0] = list[0];
    out[1] = count == 2 ? list[1] : list[0];
    return (count == -1 || count == 1 || count == 2) && out[0] >= least && out[1] >= least;
}

/* Reads the window of torch's unfold, whose images are (N, C, H, W). */
static bool read_fold(leati_operands *o, leati_window *w, int64_t padding[2]) {
    int64_t dilation[2], stride[2], kernel[2];
    if (!read_pair(o, "kernel_size", 0, 1, kernel) || !read_pair(o, "dilation", 1, 1, dilation) ||
        !read_pair(o, "padding", 0, 0, padding) || !read_pair(o, "stride", 1, 1, stride)) {
        o->outputs[0] = leati_operand_fail(o, LEAT_EINVAL, "expected one number or two for each option");
        return false;
    }
    *w = (leati_window){.spatial = 2};
    for (int i = 0; i < 2; ++i) {
        w->kernel[i] = kernel[i];
        w->stride[i] = stride[i];
        w->dilation[i] = dilation[i];
        w->pad_before[i] = w->pad_after[i] = padding[i];
    }
    return true;
}

/* Makes (N, C taps, places) of an image (N, C, H, W). */
static void lower_unfold(leati_operands *o) {
    leati_graph *g = o->g;
    leati_attrs attrs = {.conv = {.groups = 1}};
    int64_t padding[2];
    leati_value x = leati_operand(o, "x");
    const leati_desc desc = *leati_graph_desc(g, x);
    if (!read_fold(o, &attrs.conv.window, padding)) return;
    if (desc.rank != 4) {
        o->outputs[0] =
            leati_operand_fail(o, LEAT_ESHAPE, "expected images (batch, channels, rows, columns)");
        return;
    }
    const int64_t channels = desc.shape[1], taps = attrs.conv.window.kernel[0] * attrs.conv.window.kernel[1];
    x = leati_image_value(g, x, LEATI_CHANNELS_FIRST);
    leati_value y = leati_graph_node(g, LEATI_OP_PATCHES, &attrs, 1, &x, NULL);
    const int64_t places = leati_graph_desc(g, y)->shape[0];
    y = leati_reshape(g, y, 4, (int64_t[]){places, desc.shape[0], taps, channels});
    y = leati_transpose(g, y, (int32_t[]){1, 3, 2, 0});
    o->outputs[0] =
        leati_reshape(g, y, 3, (int64_t[]){desc.shape[0], leati_mul_saturated(channels, taps), places});
}

/* Adds the windows up to an image: the gradient of unfold. */
static void lower_fold(leati_operands *o) {
    leati_graph *g = o->g;
    leati_attrs attrs = {.conv = {.groups = 1}};
    int64_t padding[2], size[2];
    leati_value x = leati_operand(o, "x");
    const leati_desc desc = *leati_graph_desc(g, x);
    if (!read_fold(o, &attrs.conv.window, padding)) return;
    const int64_t taps = attrs.conv.window.kernel[0] * attrs.conv.window.kernel[1];
    if (!read_pair(o, "output_size", 0, 1, size) || desc.rank != 3 || desc.shape[1] % taps != 0) {
        o->outputs[0] =
            leati_operand_fail(o, LEAT_ESHAPE, "expected windows (batch, channels * taps, places)");
        return;
    }
    const int64_t channels = desc.shape[1] / taps, places = desc.shape[2];
    memcpy(attrs.conv.size, size, sizeof size);
    x = leati_reshape(g, x, 4, (int64_t[]){desc.shape[0], channels, taps, places});
    x = leati_transpose(g, x, (int32_t[]){3, 0, 2, 1});
    x = leati_reshape(g, x, 3, (int64_t[]){places, desc.shape[0], taps * channels});
    leati_value y = leati_graph_node(g, LEATI_OP_PATCHES_BWD, &attrs, 1, &x, NULL);
    o->outputs[0] = leati_image_value_back(g, y, LEATI_CHANNELS_FIRST);
}

/* Makes frames of the last axis. */
static void lower_extract_sequences(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value x = leati_operand(o, "x");
    leati_desc desc = *leati_graph_desc(g, x);
    const int last = desc.rank - 1;
    const int64_t length = leati_operand_int(o, "sequence_length", 0),
                  stride = leati_operand_int(o, "sequence_stride", 0);
    if (last < 1 || last + 2 > LEAT_MAX_RANK || length < 1 || stride < 1 || desc.shape[last] < length) {
        o->outputs[0] = leati_operand_fail(o, LEAT_ESHAPE, "expected sequences of at least sequence_length");
        return;
    }
    leati_attrs attrs = {.conv = {.groups = 1, .window = {.spatial = 1}}};
    attrs.conv.window.kernel[0] = length;
    attrs.conv.window.stride[0] = stride;
    attrs.conv.window.dilation[0] = 1;
    const int64_t rows = leati_desc_count(&desc) / desc.shape[last];
    x = leati_reshape(g, x, 3, (int64_t[]){rows, desc.shape[last], 1});
    leati_value y = leati_graph_node(g, LEATI_OP_PATCHES, &attrs, 1, &x, NULL);
    y = leati_transpose(g, y, (int32_t[]){1, 0, 2});
    desc.shape[last] = leati_graph_desc(g, y)->shape[1];
    desc.shape[desc.rank++] = length;
    o->outputs[0] = leati_reshape(g, y, desc.rank, desc.shape);
}

#define NN     "ops.nn"
#define IMAGE  "ops.image"
#define WINDOW " strides padding data_format dilation_rate"

const leati_operation leati_window_operations[] = {
    {"MaxPool", NN, "inputs pool_size strides padding data_format", lower_pooling, LEATI_POOL_MAX},
    {"AveragePool", NN, "inputs pool_size strides padding data_format", lower_pooling, LEATI_POOL_AVERAGE},
    {"Conv", NN, "inputs kernel" WINDOW, lower_conv, CONV},
    {"DepthwiseConv", NN, "inputs kernel" WINDOW, lower_conv, DEPTHWISE},
    {"SeparableConv", NN, "inputs depthwise_kernel pointwise_kernel" WINDOW, lower_conv, SEPARABLE},
    {"Unfold", NN, "x kernel_size dilation padding stride", lower_unfold, 0},
    {"Fold", NN, "x output_size kernel_size dilation padding stride", lower_fold, 0},
    {"ExtractSequences", "ops.math", "x sequence_length sequence_stride", lower_extract_sequences, 0},
    {"ExtractPatches", IMAGE, "images size strides dilation_rate padding data_format", lower_extract_patches,
     0},
    {"GaussianBlur", IMAGE, "images kernel_size sigma data_format", lower_gaussian_blur, 0},
    {"SobelEdges", IMAGE, "images data_format", lower_sobel, 0},
    {.name = NULL},
};
