/* SPDX-License-Identifier: Apache-2.0 */
/* Emits the ops of images and sequences: convolutions, pooling, resampling and patches.  ONNX's have the channels
 * first.  Room: formats. */
#include <stddef.h>

#include "base/memory.h"
#include "engine/op_semantics/geometry.h"
#include "formats/onnx/exporter.h"

static const leati_desc *desc_of(const leati_onnx *x, leati_value value) {
    return leati_graph_desc(x->graph, value);
}

/* ---- Padding ---- */

static const char open_padding[] =
    "its padding depends on an open size of an input in a way that ONNX cannot represent; give the inputs of "
    "the model fixed sizes, apart from the batch";

/* True if an axis of the window has the padding of Keras's padding="same" for a source of `size` elements. */
static bool is_same_padding(const leati_window *w, int axis, int64_t size) {
    const int64_t reach = (w->kernel[axis] - 1) * w->dilation[axis] + 1;
    const int64_t out = (size + w->stride[axis] - 1) / w->stride[axis];
    const int64_t all = (out - 1) * w->stride[axis] + reach - size, total = all > 0 ? all : 0;
    return w->pad_before[axis] == total / 2 && w->pad_after[axis] == total - total / 2;
}

/* The padding of a window that strides along an open axis may be different for each size; such a window must have the
 * padding of padding="same" in both graphs. */
static bool needs_same_padding(leati_onnx *x, leati_value src, const leati_window *w, const leati_window *v) {
    bool strided = false, same = true, padded = false, equal = true;
    for (int i = 0; i < w->spatial; ++i) {
        const leati_onnx_size size = leati_onnx_size_of(x, src, 1 + i);
        strided |= leati_onnx_is_open(size) && w->stride[i] > 1;
        same &= is_same_padding(w, i, size.at[0]) && is_same_padding(v, i, size.at[1]);
        padded |= w->pad_before[i] + w->pad_after[i] + v->pad_before[i] + v->pad_after[i] > 0;
        equal &= w->pad_before[i] == v->pad_before[i] && w->pad_after[i] == v->pad_after[i];
    }
    if (strided && padded && same) return true;
    if (!equal) leati_onnx_refuse(x, "%s", open_padding);
    return false;
}

/* The attributes of a window, and the numbers that they point to. */
typedef struct window_attrs {
    int64_t pads[6];
    leati_onnx_attr attrs[8];
    int count;
} window_attrs;

static void add_attr(window_attrs *to, leati_onnx_attr attr) {
    to->attrs[to->count++] = attr;
}

static void fill_window(window_attrs *out, const leati_window *w, bool same, bool dilations) {
    const int spatial = w->spatial;
    *out = (window_attrs){.count = 0};
    for (int i = 0; i < spatial; ++i)
        out->pads[i] = w->pad_before[i], out->pads[spatial + i] = w->pad_after[i];
    add_attr(out, LEATI_ATTR_INTS("kernel_shape", spatial, w->kernel));
    add_attr(out, LEATI_ATTR_INTS("strides", spatial, w->stride));
    if (dilations) add_attr(out, LEATI_ATTR_INTS("dilations", spatial, w->dilation));
    if (!same) add_attr(out, LEATI_ATTR_INTS("pads", 2 * spatial, out->pads));
}

/* ---- Convolutions ---- */

/* Returns the weights (spatial..., channels, filters) as (filters, channels, spatial...), made once for all calls of a
 * layer. */
static const char *kernel_of(leati_onnx *x, leati_value weights) {
    int64_t perm[LEAT_MAX_RANK];
    const int rank = desc_of(x, weights)->rank;
    perm[0] = rank - 1, perm[1] = rank - 2;
    for (int i = 2; i < rank; ++i) perm[i] = i - 2;
    if (!x->forms[weights].kernel) x->forms[weights].kernel = leati_onnx_permuted(x, weights, perm);
    return x->forms[weights].kernel;
}

void leati_onnx_conv(leati_onnx *x, const leati_node *node, const leati_node *other) {
    const leati_window *w = &node->attrs.conv.window;
    const leati_value src = node->inputs[0];
    const leati_value bias = node->input_count > 2 ? node->inputs[2] : LEATI_NONE;
    const bool same = needs_same_padding(x, src, w, &other->attrs.conv.window);
    window_attrs window;
    fill_window(&window, w, same, true);
    if (same) add_attr(&window, LEATI_ATTR_TEXT("auto_pad", "SAME_UPPER"));
    add_attr(&window, LEATI_ATTR_INT("group", node->attrs.conv.groups));
    const char *const inputs[] = {leati_onnx_first(x, src), kernel_of(x, node->inputs[1]),
                                  bias == LEATI_NONE ? "" : leati_onnx_plain(x, bias)};
    leati_onnx_set_first(x, node->outputs[0],
                         leati_onnx_node(x, "Conv", bias == LEATI_NONE ? 2 : 3, inputs, window.attrs));
}

/* The result has the size (n - 1) stride + reach - padding + output_padding for n elements of the source. */
void leati_onnx_conv_transpose(leati_onnx *x, const leati_node *node, const leati_node *other) {
    const leati_window *w = &node->attrs.conv.window, *v = &other->attrs.conv.window;
    const leati_value src = node->inputs[0];
    int64_t extra[3];
    window_attrs window;
    fill_window(&window, w, false, true);
    for (int i = 0; i < w->spatial; ++i) {
        const leati_onnx_size size = leati_onnx_size_of(x, src, 1 + i);
        const int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1, fixed = reach - w->stride[i];
        const int64_t padding = w->pad_before[i] + w->pad_after[i];
        extra[i] = node->attrs.conv.size[i] - (size.at[0] * w->stride[i] + fixed - padding);
        if (w->pad_before[i] != v->pad_before[i] || w->pad_after[i] != v->pad_after[i] ||
            other->attrs.conv.size[i] != size.at[1] * w->stride[i] + fixed - padding + extra[i])
            leati_onnx_refuse(x, "%s", open_padding);
        if (extra[i] < 0) window.pads[w->spatial + i] -= extra[i], extra[i] = 0;
    }
    add_attr(&window, LEATI_ATTR_INTS("output_padding", w->spatial, extra));
    add_attr(&window, LEATI_ATTR_INT("group", node->attrs.conv.groups));
    const char *const inputs[] = {leati_onnx_first(x, src), kernel_of(x, node->inputs[1])};
    leati_onnx_set_first(x, node->outputs[0], leati_onnx_node(x, "ConvTranspose", 2, inputs, window.attrs));
}

/* ---- Pooling and resampling ---- */

void leati_onnx_pooling(leati_onnx *x, const leati_node *node, const leati_node *other) {
    const leati_window *w = &node->attrs.pooling.window;
    const bool average = node->attrs.pooling.kind == LEATI_POOL_AVERAGE;
    const bool same = needs_same_padding(x, node->inputs[0], w, &other->attrs.pooling.window);
    window_attrs window;
    fill_window(&window, w, same, !average);
    for (int i = 0; i < w->spatial; ++i)
        if (w->kernel[i] != other->attrs.pooling.window.kernel[i] || (average && w->dilation[i] != 1))
            leati_onnx_refuse(x, "ONNX has no such window");
    if (same) add_attr(&window, LEATI_ATTR_TEXT("auto_pad", "SAME_UPPER"));
    if (average) add_attr(&window, LEATI_ATTR_INT("count_include_pad", 0));
    const char *src = leati_onnx_first(x, node->inputs[0]);
    const char *op = average ? "AveragePool" : "MaxPool";
    leati_onnx_set_first(x, node->outputs[0], leati_onnx_node(x, op, 1, &src, window.attrs));
}

void leati_onnx_resample(leati_onnx *x, const leati_node *node, const leati_node *other) {
    (void)other;
    const bool linear = node->attrs.resample.linear;
    const int64_t count = node->attrs.resample.spatial + 2;
    const leati_desc desc = leati_desc_make(LEAT_F32, 1, &count);
    float *scales = leati_onnx_allocate(x, leati_desc_bytes(&desc));
    if (!scales) return;
    for (int i = 0; i < count; ++i) scales[i] = i < 2 ? 1.0f : (float)node->attrs.resample.factor[i - 2];
    const leati_onnx_attr attrs[] = {LEATI_ATTR_TEXT("mode", linear ? "linear" : "nearest"),
                                     LEATI_ATTR_TEXT("coordinate_transformation_mode",
                                                     node->attrs.resample.halved ? "half_pixel"
                                                                                 : "asymmetric"),
                                     LEATI_ATTR_TEXT("nearest_mode", "floor"), LEATI_ATTR_END};
    const char *const inputs[] = {leati_onnx_first(x, node->inputs[0]), "",
                                  leati_onnx_initialize(x, "scales", &desc, scales, scales)};
    leati_onnx_set_first(x, node->outputs[0], leati_onnx_node(x, "Resize", 3, inputs, attrs));
}

/* ---- Patches ---- */

/* Returns the numbers of the pixels under the window, (places, taps); the number behind the last pixel stands for the
 * padding. */
static const char *pixels_of_patches(leati_onnx *x, const leati_geometry *g, int64_t places) {
    const int64_t dims[] = {places, g->taps};
    const leati_desc desc = leati_desc_make(LEAT_I64, 2, dims);
    int64_t *pixels = leati_onnx_allocate(x, leati_desc_bytes(&desc));
    if (!pixels) return "";
    for (int64_t i = 0; i < places * g->taps; ++i) {
        const int64_t pixel = leati_source_pixel(g, i / g->taps, i % g->taps);
        pixels[i] = pixel >= 0 ? pixel : g->in[0] * g->in[1] * g->in[2];
    }
    return leati_onnx_initialize(x, "pixels", &desc, pixels, pixels);
}

/* (N, spatial..., C) -> (N, pixels + 1, C) -> (N, places, taps, C) -> (places, N, taps C) */
void leati_onnx_patches(leati_onnx *x, const leati_node *node, const leati_node *other) {
    (void)other;
    const leati_value src = node->inputs[0], dst = node->outputs[0];
    leati_geometry g;
    leat_error err = {0};
    const leat_status status = leati_geometry_make(&g, &node->attrs.conv.window, desc_of(x, src), &err);
    if (status != LEAT_OK) leati_onnx_failed(x, status, &err);
    if (x->failure.code != LEAT_OK) return;
    for (int i = 1; i < desc_of(x, src)->rank; ++i)
        if (leati_onnx_is_open(leati_onnx_size_of(x, src, i))) leati_onnx_refuse(x, "%s", open_padding);
    const int64_t places = desc_of(x, dst)->shape[0], flat[] = {0, -1, g.channels};
    const int64_t pads[] = {0, 0, 0, 0, 1, 0}, axis = 1, perm[] = {1, 0, 2, 3};
    const int64_t joined[] = {places, -1, g.taps * g.channels};
    const char *name = leati_onnx_binary(x, "Reshape", leati_onnx_plain(x, src), leati_onnx_ints(x, 3, flat));
    name = leati_onnx_binary(x, "Pad", name, leati_onnx_ints(x, 6, pads));
    const leati_onnx_attr attrs[] = {LEATI_ATTR_INT("axis", axis), LEATI_ATTR_END};
    const char *const inputs[] = {name, pixels_of_patches(x, &g, places)};
    name = leati_onnx_transposed(x, leati_onnx_node(x, "Gather", 2, inputs, attrs), 4, perm);
    leati_onnx_set_plain(x, dst, leati_onnx_binary(x, "Reshape", name, leati_onnx_ints(x, 3, joined)));
}
