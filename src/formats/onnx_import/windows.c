/* SPDX-License-Identifier: Apache-2.0 */
/* Reads convolutions, pooling and resizing: layers with the channels last.  Room: formats. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "formats/onnx_import/import.h"

enum { MOST_SPATIAL = 3 };

/* The window of a node. */
typedef struct window {
    int spatial;
    int first; /* the stored axis of the first spatial axis: 1, or 2 behind an axis that is joined with the batch */
    int64_t kernel[MOST_SPATIAL], strides[MOST_SPATIAL], dilations[MOST_SPATIAL];
    int64_t begin[MOST_SPATIAL], end[MOST_SPATIAL]; /* padding */
    bool same;                                      /* Keras's padding "same" */
} window;

static void read_list(leati_import *x, const char *name, int spatial, int64_t preset, int64_t *out) {
    int64_t list[2 * MOST_SPATIAL];
    const int count = leati_import_ints(x, name, -1, spatial, list);
    if (count >= 0 && count != spatial) leati_import_refuse(x, "%s: expected %d numbers", name, spatial);
    for (int i = 0; i < spatial; ++i) out[i] = count == spatial ? list[i] : preset;
}

/* Reads kernel_shape (the weights of a convolution say it, too), strides, dilations and padding. */
static bool read_window(leati_import *x, window *w, const leati_view *view) {
    int64_t pads[2 * MOST_SPATIAL];
    const char *automatic = leati_import_string(x, "auto_pad", "NOTSET");
    if (leati_import_attr_of(x->node, "kernel_shape")) read_list(x, "kernel_shape", w->spatial, 0, w->kernel);
    read_list(x, "strides", w->spatial, 1, w->strides);
    read_list(x, "dilations", w->spatial, 1, w->dilations);
    const int count = leati_import_ints(x, "pads", -1, 2 * w->spatial, pads);
    if (count >= 0 && count != 2 * w->spatial)
        leati_import_refuse(x, "pads: expected %d numbers", 2 * w->spatial);
    const bool upper = strcmp(automatic, "SAME_UPPER") == 0, lower = strcmp(automatic, "SAME_LOWER") == 0;
    w->same = upper;
    for (int i = 0; i < w->spatial && leati_import_ok(x); ++i) {
        const int64_t length = view->shape.dims[w->first + i],
                      reach = (w->kernel[i] - 1) * w->dilations[i] + 1;
        if (w->kernel[i] < 1 || w->strides[i] < 1 || w->dilations[i] < 1 || reach > INT32_MAX)
            leati_import_refuse(x, "expected a window, strides and dilations above 0");
        if (!leati_import_ok(x)) return false;
        if (count >= 0 && !upper && !lower) w->begin[i] = pads[i], w->end[i] = pads[w->spatial + i];
        if (w->begin[i] < 0 || w->end[i] < 0) leati_import_refuse(x, "negative padding is not supported");
        if (!lower) continue;
        const int64_t out = length > 0 ? (length + w->strides[i] - 1) / w->strides[i] : 1;
        const int64_t need = (out - 1) * w->strides[i] + reach - length, all = need > 0 ? need : 0;
        if (length < 0 && w->strides[i] != 1)
            leati_import_refuse(x, "SAME_LOWER with strides needs images of fixed size");
        w->begin[i] = length < 0 ? reach / 2 : all - all / 2;
        w->end[i] = length < 0 ? (reach - 1) / 2 : all / 2;
    }
    return leati_import_ok(x);
}

/* Recognises explicit padding that is Keras's "same", so that no layer of padding is needed. */
static void find_same(window *w, const leati_view *view) {
    bool same = true, padded = false;
    for (int i = 0; i < w->spatial; ++i) {
        const int64_t length = view->shape.dims[w->first + i],
                      reach = (w->kernel[i] - 1) * w->dilations[i] + 1;
        const int64_t out = length > 0 ? (length + w->strides[i] - 1) / w->strides[i] : 0;
        int64_t need = w->strides[i] == 1 ? reach - 1 : (out - 1) * w->strides[i] + reach - length;
        if (length < 0 && w->strides[i] != 1) same = false;
        if (need < 0) need = 0;
        same = same && w->begin[i] == need / 2 && w->end[i] == need - need / 2;
        padded = padded || w->begin[i] > 0 || w->end[i] > 0;
    }
    w->same = w->same || (same && padded);
}

static json_t *list_of(int count, const int64_t *values) {
    json_t *list = json_array();
    for (int i = 0; list && i < count; ++i) leati_import_append(&list, json_integer(values[i]));
    return list;
}

/* Pads an image (N, spatial..., C) with zeros, or with another number. */
static leati_source padded(leati_import *x, leati_source source, int spatial, const int64_t *begin,
                           const int64_t *end, double number) {
    static const char *const classes[] = {"ZeroPadding1D", "ZeroPadding2D", "ZeroPadding3D"};
    json_t *list = json_array();
    bool any = false;
    for (int i = -1; list && i <= spatial; ++i) {
        const bool inner = i >= 0 && i < spatial;
        if (!inner && number == 0) continue;
        any = any || (inner && (begin[i] > 0 || end[i] > 0));
        leati_import_append(&list, json_pack("[I, I]", (json_int_t)(inner ? begin[i] : 0),
                                             (json_int_t)(inner ? end[i] : 0)));
    }
    if (list && !any) {
        json_decref(list);
        return source;
    }
    if (number != 0) {
        json_t *options = json_pack("{s:o, s:s}", "pad_width", list, "mode", "constant");
        json_t *args = json_pack("[o, f]", leati_import_argument(0), number);
        return leati_import_operation(x, "Pad", args, options, 1, &source);
    }
    json_t *padding = spatial == 1 ? json_incref(json_array_get(list, 0)) : json_incref(list);
    json_decref(list);
    return leati_import_layer(x, classes[spatial - 1], json_pack("{s:o}", "padding", padding), 1, &source);
}

/* Returns the view of an image (N, C, spatial...) with the channels last. */
static leati_view image_of(const leati_import *x, leati_source source) {
    leati_view view = leati_view_of(x, source);
    for (int i = 1; i < view.rank; ++i) view.axes[i].stored[0] = i == 1 ? view.rank - 1 : i - 1;
    return view;
}

/* ---- Convolutions ---- */

static json_t *conv_config(const window *w, const char *count_key, int64_t count, bool bias) {
    return json_pack("{s:I, s:o, s:o, s:s, s:b}", count_key, (json_int_t)count, "kernel_size",
                     list_of(w->spatial, w->kernel), "strides", list_of(w->spatial, w->strides), "padding",
                     w->same ? "same" : "valid", "use_bias", (int)bias);
}

/* Returns the kernel (filters, channels, spatial...) with the axes (spatial..., a, b), where a and b are axes of
 * `dims`.  frames: the kernel gets a spatial axis of length 1 in front. */
static leati_import_weight kernel_of(const leati_import_tensor *kernel, bool frames, int a, int b) {
    leati_import_weight weight = leati_import_weight_of(kernel);
    weight.rank += frames;
    for (int i = 2; i < weight.rank; ++i) {
        weight.dims[i] = !frames ? kernel->dims[i] : i == 2 ? 1 : kernel->dims[i - 1];
        weight.perm[i - 2] = i;
    }
    weight.perm[weight.rank - 2] = a;
    weight.perm[weight.rank - 1] = b;
    return weight;
}

/* Adds an axis in front, along which the window has one place: the axis that is joined with the batch. */
static void add_frames(window *w) {
    int64_t *const lists[] = {w->kernel, w->strides, w->dilations, w->begin, w->end};
    for (int k = 0; k < 5; ++k) {
        for (int i = w->spatial; i > 0; --i) lists[k][i] = lists[k][i - 1];
        lists[k][0] = k < 3 ? 1 : 0;
    }
    ++w->spatial;
}

/* Joins axis 2 of an image with the batch. */
static leati_view without_frames(leati_view view) {
    view.axes[0] = (leati_view_axis){2, {0, 1}};
    for (int i = 2; i + 1 < view.rank; ++i) view.axes[i] = view.axes[i + 1];
    --view.rank;
    return view;
}

static void read_conv(leati_import *x) {
    static const char *const classes[] = {"Conv1D", "Conv2D", "Conv3D"}, *const depthwise[] = {
                                                                             "DepthwiseConv1D",
                                                                             "DepthwiseConv2D"};
    const leati_import_tensor *kernel = leati_import_constant_in(x, 1, "weights");
    const leati_import_tensor *bias = leati_import_constant_in(x, 2, "bias");
    const leati_view view = leati_import_frames(x, leati_import_need(x, 0));
    window w = {.spatial = view.rank - 2, .first = 1};
    const int64_t groups = leati_import_int(x, "group", 1);
    if (!leati_import_ok(x)) return;
    const bool frames = view.axes[0].count == 2;
    w.first += frames;
    if (!kernel || w.spatial + frames > MOST_SPATIAL || kernel->rank != view.rank || kernel->count < 1) {
        leati_import_refuse(x, "expected weights of a convolution over 1 to 3 axes");
        return;
    }
    for (int i = 0; i < w.spatial; ++i) w.kernel[i] = kernel->dims[2 + i];
    if (!read_window(x, &w, &view)) return;
    const int64_t channels = view.shape.dims[view.shape.rank - 1], filters = kernel->dims[0];
    if (!w.same) find_same(&w, &view);
    if (frames) add_frames(&w);
    const bool deep =
        groups == channels && groups > 1 && kernel->dims[1] == 1 && w.spatial < 3 && filters % groups == 0;
    leati_import_weight weights[] = {kernel_of(kernel, frames, 1, 0), leati_import_weight_of(bias)};
    if (deep) {
        weights[0].dims[0] = channels; /* (channels, multiplier, 1, spatial...) without the axis of 1 */
        weights[0].dims[1] = filters / channels;
        weights[0].perm[w.spatial] = 0, weights[0].perm[w.spatial + 1] = 1;
    }
    leati_source source = w.same ? view.source : padded(x, view.source, w.spatial, w.begin, w.end, 0);
    json_t *config =
        conv_config(&w, deep ? "depth_multiplier" : "filters", deep ? filters / channels : filters, bias);
    if (config) leati_import_put_key(&config, "dilation_rate", list_of(w.spatial, w.dilations));
    if (config && !deep) leati_import_put_key(&config, "groups", json_integer(groups));
    source = leati_import_weighted(x, deep ? depthwise[w.spatial - 1] : classes[w.spatial - 1], config, 1,
                                   &source, bias ? 2 : 1, weights);
    const leati_view image = image_of(x, source), out = frames ? without_frames(image) : image;
    leati_import_set(x, 0, &out);
}

/* Cuts the edges of an image. */
static leati_source cropped(leati_import *x, leati_source source, int spatial, const int64_t *begin,
                            const int64_t *end) {
    static const char *const classes[] = {"Cropping1D", "Cropping2D", "Cropping3D"};
    json_t *list = json_array();
    bool any = false;
    for (int i = 0; list && i < spatial; ++i) {
        any = any || begin[i] > 0 || end[i] > 0;
        leati_import_append(&list, json_pack("[I, I]", (json_int_t)begin[i], (json_int_t)end[i]));
    }
    json_t *cropping = any && spatial == 1 ? json_incref(json_array_get(list, 0))
                       : any               ? json_incref(list)
                                           : NULL;
    const bool whole = list && !any;
    json_decref(list);
    if (whole) return source;
    return leati_import_layer(x, classes[spatial - 1], json_pack("{s:o}", "cropping", cropping), 1, &source);
}

/* Keras's "valid" computes everything; the padding of ONNX cuts the edges. */
static void read_conv_transpose(leati_import *x) {
    static const char *const classes[] = {"Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose"};
    const leati_import_tensor *kernel = leati_import_constant_in(x, 1, "weights");
    const leati_import_tensor *bias = leati_import_constant_in(x, 2, "bias");
    const leati_view view = leati_import_channels_last(x, leati_import_need(x, 0));
    window w = {.spatial = view.rank - 2, .first = 1};
    int64_t more[MOST_SPATIAL];
    if (!leati_import_ok(x)) return;
    if (!kernel || w.spatial > MOST_SPATIAL || kernel->rank != view.rank || kernel->count < 1) {
        leati_import_refuse(x, "expected weights of a convolution over 1 to 3 axes");
        return;
    }
    for (int i = 0; i < w.spatial; ++i) w.kernel[i] = kernel->dims[2 + i];
    if (leati_import_int(x, "group", 1) != 1)
        leati_import_refuse(x, "groups of transposed convolutions are not supported");
    if (leati_import_attr_of(x->node, "output_shape"))
        leati_import_refuse(x, "output_shape is not supported; give pads and output_padding");
    if (!read_window(x, &w, &view)) return;
    read_list(x, "output_padding", w.spatial, 0, more);
    leati_import_weight weights[] = {kernel_of(kernel, false, 1, 0), leati_import_weight_of(bias)};
    json_t *config = conv_config(&w, "filters", kernel->dims[1], bias);
    if (config) leati_import_put_key(&config, "dilation_rate", list_of(w.spatial, w.dilations));
    leati_source source =
        leati_import_weighted(x, classes[w.spatial - 1], config, 1, &view.source, bias ? 2 : 1, weights);
    /* ONNX's output ends output_padding later, minus the padding; Keras's ends where the last window does, or at the
     * stride where the window is smaller. */
    int64_t begin[MOST_SPATIAL], end[MOST_SPATIAL], add[MOST_SPATIAL], none[MOST_SPATIAL] = {0};
    for (int i = 0; i < w.spatial; ++i) {
        const int64_t reach = (w.kernel[i] - 1) * w.dilations[i] + 1;
        const int64_t excess = reach < w.strides[i] ? w.strides[i] - reach : 0;
        const int64_t cut = w.end[i] - more[i] + excess;
        begin[i] = w.begin[i];
        end[i] = cut > 0 ? cut : 0;
        add[i] = cut < 0 ? -cut : 0;
    }
    for (int i = 0; i < w.spatial; ++i)
        if (add[i] > 0 && bias)
            leati_import_refuse(x, "output_padding beyond the padding, with a bias, is not supported");
    source = w.same ? source : cropped(x, source, w.spatial, begin, end);
    source = w.same ? source : padded(x, source, w.spatial, none, add, 0);
    const leati_view out = image_of(x, source);
    leati_import_set(x, 0, &out);
}

/* ---- Pooling ---- */

/* ceil_mode adds padding at the end, up to a whole window that begins inside of the image or its padding. */
static void add_ceil(leati_import *x, window *w, const leati_view *view, int64_t *extra) {
    for (int i = 0; i < w->spatial && leati_import_ok(x); ++i) {
        const int64_t length = view->shape.dims[w->first + i],
                      reach = (w->kernel[i] - 1) * w->dilations[i] + 1;
        extra[i] = 0;
        if (leati_import_int(x, "ceil_mode", 0) == 0) continue;
        if (length < 0) {
            leati_import_refuse(x, "ceil_mode needs images of fixed size");
            return;
        }
        const int64_t whole = length + w->begin[i] + w->end[i] - reach;
        int64_t out = whole >= 0 ? (whole + w->strides[i] - 1) / w->strides[i] + 1 : 0;
        if ((out - 1) * w->strides[i] >= length + w->begin[i]) --out;
        const int64_t need = (out - 1) * w->strides[i] + reach - (length + w->begin[i] + w->end[i]);
        extra[i] = need > 0 ? need : 0;
    }
}

/* Divides the sums of windows by the number of pixels of the image in them: padded average times a constant. */
static leati_source counted(leati_import *x, leati_source source, const window *w, const leati_view *view,
                            bool with_padding) {
    const leati_shape shape = leati_import_ok(x) ? leati_network_shape(x->model, &source) : (leati_shape){0};
    int64_t dims[LEAT_MAX_RANK] = {1};
    for (int i = 0; i < w->spatial; ++i) {
        dims[i] = shape.dims[1 + i];
        if (dims[i] < 0) leati_import_refuse(x, "an average without the padding needs images of fixed size");
    }
    dims[w->spatial] = 1;
    if (!leati_import_ok(x)) return source;
    leati_import_tensor *factors = leati_import_new_constant(x, LEATI_IMPORT_FLOAT, w->spatial + 1, dims);
    if (!factors) return source;
    for (int64_t p = 0; p < factors->count; ++p) {
        double factor = 1;
        int64_t rest = p;
        for (int i = w->spatial - 1; i >= 0; --i) {
            const int64_t start = rest % dims[i] * w->strides[i] - w->begin[i],
                          length = view->shape.dims[w->first + i];
            int64_t low = start, high = start + w->kernel[i];
            const int64_t first = with_padding ? -w->begin[i] : 0,
                          last = length + (with_padding ? w->end[i] : 0);
            if (low < first) low = first;
            if (high > last) high = last;
            factor *= high > low ? (double)w->kernel[i] / (double)(high - low) : 1;
            rest /= dims[i];
        }
        leati_import_put(factors, p, factor);
    }
    const leati_view plain = leati_view_of(x, source);
    json_t *operand = leati_import_operand(x, factors, &plain);
    json_t *args = operand ? json_pack("[o, o]", leati_import_argument(0), operand) : NULL;
    return leati_import_operation(x, "Multiply", args, NULL, 1, &source);
}

static leati_source pooled(leati_import *x, const char *kind, const window *w, leati_source source) {
    char class_name[40];
    snprintf(class_name, sizeof class_name, "%sPooling%dD", kind, w->spatial);
    return leati_import_layer(x, class_name,
                              json_pack("{s:o, s:o, s:s}", "pool_size", list_of(w->spatial, w->kernel),
                                        "strides", list_of(w->spatial, w->strides), "padding",
                                        w->same ? "same" : "valid"),
                              1, &source);
}

static void read_pool(leati_import *x) {
    const bool average = strcmp(x->node->op, "AveragePool") == 0;
    leati_import_value *value = leati_import_need(x, 0);
    const leati_view view = leati_import_channels_last(x, value);
    window w = {.spatial = view.rank - 2, .first = 1};
    int64_t extra[MOST_SPATIAL] = {0}, end[MOST_SPATIAL];
    if (leati_import_ok(x) && w.spatial > MOST_SPATIAL)
        leati_import_refuse(x, "expected 1 to 3 spatial axes");
    if (!leati_import_ok(x) || !read_window(x, &w, &view)) return;
    for (int i = 0; i < w.spatial; ++i)
        if (w.dilations[i] != 1) leati_import_refuse(x, "dilations of pooling are not supported");
    if (leati_import_is_read(x, 1)) leati_import_refuse(x, "indices of the maximum are not supported");
    add_ceil(x, &w, &view, extra);
    const bool include = leati_import_int(x, "count_include_pad", 0) != 0;
    bool padding = false, ceiling = false;
    for (int i = 0; i < w.spatial; ++i) {
        padding = padding || w.begin[i] > 0 || w.end[i] > 0;
        ceiling = ceiling || extra[i] > 0;
        end[i] = w.end[i] + extra[i];
    }
    if (!ceiling && !(average && include)) find_same(&w, &view);
    leati_source source = view.source;
    if (!w.same)
        source =
            padded(x, source, w.spatial, w.begin, end, average || value->positive ? 0 : -(double)FLT_MAX);
    source = pooled(x, average ? "Average" : "Max", &w, source);
    if (average && !w.same && ((padding && !include) || ceiling))
        source = counted(x, source, &w, &view, include);
    const leati_view out = image_of(x, source);
    leati_import_value *set = leati_import_set(x, 0, &out);
    if (set) set->positive = value->positive;
}

static void read_global_pool(leati_import *x) {
    const bool average = strcmp(x->node->op, "GlobalAveragePool") == 0;
    const leati_view view = leati_import_channels_last(x, leati_import_need(x, 0));
    char class_name[40];
    if (leati_import_ok(x) && view.rank - 2 > MOST_SPATIAL)
        leati_import_refuse(x, "expected 1 to 3 spatial axes");
    snprintf(class_name, sizeof class_name, "Global%sPooling%dD", average ? "Average" : "Max", view.rank - 2);
    const leati_source source = leati_import_layer(x, class_name, json_object(), 1, &view.source);
    leati_view out = {.rank = view.rank, .axes = {{1, {0}}, {1, {1}}}};
    out = leati_view_with(x, &out, source);
    leati_import_set(x, 0, &out);
}

/* ---- Resizing ---- */

/* Reads the factors of Resize or Upsample, or the sizes; returns false if there are none. */
static bool read_factors(leati_import *x, const leati_view *view, double *factors, int64_t *sizes) {
    const bool resize = strcmp(x->node->op, "Resize") == 0;
    const leati_import_tensor *scales =
        leati_import_constant_in(x, resize && x->file->opset > 10 ? 2 : 1, "scales");
    const leati_import_tensor *wanted = leati_import_constant_in(x, 3, "sizes");
    if (scales && scales->count == 0) scales = NULL;
    if (!leati_import_ok(x) || (scales ? scales : wanted) == NULL) return false;
    const leati_import_tensor *list = scales ? scales : wanted;
    for (int i = 0; i < view->rank; ++i) {
        const int64_t length = i < 2 ? 1 : view->shape.dims[i - 1];
        if (list->count != view->rank || (list->sizes && list->sizes[i] && i > 1)) return false;
        const double number = leati_import_number(list, i);
        if (i < 2) {
            if (scales && number != 1) return false;
            continue;
        }
        if (!scales && length < 0) return false;
        factors[i - 2] = scales ? number : number / (double)length;
        sizes[i - 2] = scales ? (int64_t)floor((double)length * number) : (int64_t)number;
        if (!(factors[i - 2] > 0) || factors[i - 2] > 1024) return false;
    }
    return true;
}

static void read_resize(leati_import *x) {
    static const char *const classes[] = {"UpSampling1D", "UpSampling2D", "UpSampling3D"};
    const leati_view view = leati_import_channels_last(x, leati_import_need(x, 0));
    const int spatial = view.rank - 2;
    double factors[LEAT_MAX_RANK];
    int64_t sizes[LEAT_MAX_RANK], whole[LEAT_MAX_RANK];
    const bool upsample = strcmp(x->node->op, "Upsample") == 0;
    const char *mode = leati_import_string(x, "mode", "nearest");
    const char *place =
        leati_import_string(x, "coordinate_transformation_mode", upsample ? "asymmetric" : "half_pixel");
    const char *nearest = leati_import_string(x, "nearest_mode", upsample ? "floor" : "round_prefer_floor");
    if (!leati_import_ok(x)) return;
    if (spatial > MOST_SPATIAL || !read_factors(x, &view, factors, sizes)) {
        leati_import_refuse(x, "expected factors or sizes of the spatial axes as constants");
        return;
    }
    bool integers = true, same = true;
    for (int i = 0; i < spatial; ++i) {
        whole[i] = (int64_t)factors[i];
        integers = integers && (double)whole[i] == factors[i];
        same = same && factors[i] == 1;
    }
    const bool half = strcmp(place, "half_pixel") == 0 || strcmp(place, "pytorch_half_pixel") == 0;
    const bool repeat = strcmp(mode, "nearest") == 0 && integers &&
                        (half || (strcmp(place, "asymmetric") == 0 && strcmp(nearest, "floor") == 0));
    const bool old =
        strcmp(mode, "linear") == 0 && strcmp(place, "asymmetric") == 0 && spatial == 2 && integers;
    const bool linear = strcmp(mode, "linear") == 0 && half && spatial == 2;
    leati_source source = view.source;
    if (same)
        ;
    else if (repeat || old || (linear && integers)) {
        json_t *size = spatial == 1 ? json_integer(whole[0]) : list_of(spatial, whole);
        json_t *config = json_pack("{s:o}", "size", size);
        if (config && old) leati_import_put_key(&config, "as_keras3", json_false()); /* as Keras 2.3.1 does */
        if (config && (linear || old))
            leati_import_put_key(&config, "interpolation", json_string("bilinear"));
        source = leati_import_layer(x, classes[spatial - 1], config, 1, &source);
    } else if (linear && view.shape.dims[1] > 0 && view.shape.dims[2] > 0 &&
               !leati_import_int(x, "antialias", 0)) {
        source = leati_import_layer(x, "Resizing",
                                    json_pack("{s:I, s:I}", "height", (json_int_t)sizes[0], "width",
                                              (json_int_t)sizes[1]),
                                    1, &source);
    } else {
        leati_import_refuse(
            x,
            "mode '%.32s' with coordinates '%.32s' and rounding '%.32s' is not supported; leat repeats "
            "pixels a whole number of times, or interpolates linearly with half_pixel",
            mode, place, nearest);
    }
    const leati_view out = leati_view_with(x, &view, source);
    leati_import_set(x, 0, &out);
}

const leati_import_operator leati_import_window_operators[] = {
    {"Conv", read_conv, NULL},
    {"ConvTranspose", read_conv_transpose, NULL},
    {"MaxPool", read_pool, NULL},
    {"AveragePool", read_pool, NULL},
    {"GlobalAveragePool", read_global_pool, NULL},
    {"GlobalMaxPool", read_global_pool, NULL},
    {"Resize", read_resize, NULL},
    {"Upsample", read_resize, NULL},
    {.name = NULL},
};
