/* SPDX-License-Identifier: Apache-2.0 */
/* The matrices of tf.image.resize, row by row, and their products with an image.  Room: nn. */
#include "nn/layers/operations/resample.h"

#include <float.h>
#include <math.h>

#include "base/memory.h"
#include "nn/layers/core/einsum.h"

const char *const leati_interpolations[] = {"bilinear", "nearest", "bicubic", "lanczos3",
                                            "lanczos5", "area",    NULL};

/* ---- One row: the weights of the elements of an axis for one new element ---- */

typedef struct axis {
    int64_t from, to; /* lengths */
    int32_t interpolation;
    bool antialias;
} axis;

/* Adds a weight of an element, which is clamped to the axis. */
static void put(float *row, const axis *a, int64_t index, double weight) {
    int64_t last = a->from - 1;
    row[index < 0 ? 0 : index > last ? last : index] += (float)weight;
}

static void row_of_bilinear(float *row, const axis *a, int64_t i) {
    float scale = (float)a->from / (float)a->to, at = ((float)i + 0.5f) * scale - 0.5f, low = floorf(at);
    put(row, a, (int64_t)low, 1.0 - (double)(at - low));
    put(row, a, (int64_t)low + 1, (double)(at - low));
}

static void row_of_nearest(float *row, const axis *a, int64_t i) {
    float scale = (float)a->from / (float)a->to;
    put(row, a, (int64_t)floorf(((float)i + 0.5f) * scale), 1);
}

static void row_of_area(float *row, const axis *a, int64_t i) {
    double scale = (double)a->from / (double)a->to, start = (double)i * scale, end = start + scale;
    for (int64_t k = (int64_t)start; k < a->from && (double)k < end; ++k) {
        double low = (double)k > start ? (double)k : start,
               high = (double)(k + 1) < end ? (double)(k + 1) : end;
        if (high > low) put(row, a, k, (high - low) / scale);
    }
}

/* The cubic kernel of Keys, with its parameter -1/2. */
static double cubic(double x) {
    x = fabs(x);
    if (x >= 2) return 0;
    return x >= 1 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : (1.5 * x - 2.5) * x * x + 1;
}

static double lanczos(double x, double radius) {
    const double pi = 3.14159265358979323846;
    x = fabs(x);
    if (x > radius) return 0;
    return x <= 1e-3 ? 1 : radius * sin(pi * x) * sin(pi * x / radius) / (pi * pi * x * x);
}

static double kernel_at(int32_t interpolation, double x) {
    switch (interpolation) {
    case LEATI_RESIZE_BICUBIC: return cubic(x);
    case LEATI_RESIZE_LANCZOS3: return lanczos(x, 3);
    case LEATI_RESIZE_LANCZOS5: return lanczos(x, 5);
    default: return fabs(x) < 1 ? 1 - fabs(x) : 0;
    }
}

static double radius_of(int32_t interpolation) {
    static const double radii[] = {1, 0, 2, 3, 5, 0};
    return radii[interpolation];
}

/* Divides the weights by their sum. */
static void normalize(float *row, const axis *a) {
    double sum = 0;
    for (int64_t k = 0; k < a->from; ++k) sum += (double)row[k];
    for (int64_t k = 0; k < a->from && fabs(sum) >= 1000 * (double)FLT_MIN; ++k)
        row[k] = (float)((double)row[k] / sum);
}

/* Samples a kernel, which is wider where an antialiased image becomes smaller. */
static void row_of_kernel(float *row, const axis *a, int64_t i) {
    double inverse = (double)a->from / (double)a->to, width = a->antialias && inverse > 1 ? inverse : 1;
    double at = ((double)i + 0.5) * inverse, reach = radius_of(a->interpolation) * width;
    int64_t first = (int64_t)ceil(at - reach - 0.5), last = (int64_t)floor(at + reach - 0.5);
    for (int64_t k = first < 0 ? 0 : first; k <= last && k < a->from; ++k)
        put(row, a, k, kernel_at(a->interpolation, ((double)k + 0.5 - at) / width));
    normalize(row, a);
}

/* TensorFlow's bicubic kernel without antialiasing has a table of 1024 places between two elements. */
static void row_of_bicubic(float *row, const axis *a, int64_t i) {
    double scale = (double)a->from / (double)a->to, at = ((double)i + 0.5) * scale - 0.5, low = floor(at);
    double place = nearbyint((at - low) * 1024) / 1024;
    for (int64_t k = -1; k <= 2; ++k) {
        int64_t index = (int64_t)low + k;
        if (index >= 0 && index < a->from) put(row, a, index, cubic(place - (double)k));
    }
    normalize(row, a);
}

static void fill_row(float *row, const axis *a, int64_t i) {
    switch (a->interpolation) {
    case LEATI_RESIZE_NEAREST: row_of_nearest(row, a, i); return;
    case LEATI_RESIZE_AREA: row_of_area(row, a, i); return;
    default: break;
    }
    if (a->interpolation == LEATI_RESIZE_BILINEAR && !a->antialias)
        row_of_bilinear(row, a, i);
    else if (a->interpolation == LEATI_RESIZE_BICUBIC && !a->antialias)
        row_of_bicubic(row, a, i);
    else
        row_of_kernel(row, a, i);
}

/* ---- The image ---- */

#define MOST_ELEMENTS (INT64_C(1) << 26)

/* Makes the matrix (to, from) of an axis. */
static leati_value matrix_of(leati_graph *g, const axis *a) {
    int64_t count = leati_mul_saturated(a->from, a->to);
    float *values =
        a->from > 0 && count <= MOST_ELEMENTS ? leati_calloc((size_t)count, sizeof *values) : NULL;
    if (!values)
        return leati_graph_fail(g, LEAT_ENOMEM, "no memory to resize %lld pixels to %lld", (long long)a->from,
                                (long long)a->to);
    for (int64_t i = 0; i < a->to; ++i) fill_row(values + i * a->from, a, i);
    leati_desc desc = leati_desc_make(LEAT_F32, 2, (int64_t[]){a->to, a->from});
    leati_value out = leati_graph_constant(g, &desc, values);
    leati_free(values);
    return out;
}

static int64_t scaled(int64_t a, int64_t b, int64_t divisor) {
    return (int64_t)((float)(a * b) / (float)divisor);
}

/* Cuts the middle of the image that has the new aspect ratio. */
static leati_value cropped(leati_graph *g, leati_value x, const leati_resize *r) {
    const leati_desc desc = *leati_graph_desc(g, x);
    int64_t height = desc.shape[1], width = desc.shape[2];
    int64_t h = scaled(width, r->height, r->width), w = scaled(height, r->width, r->height);
    h = h < 1 ? 1 : h > height ? height : h;
    w = w < 1 ? 1 : w > width ? width : w;
    x = leati_slice_axis(g, x, 1, (height - h) / 2, h);
    return leati_slice_axis(g, x, 2, (width - w) / 2, w);
}

/* Adds borders to the image, so that it has the new aspect ratio. */
static leati_value padded(leati_graph *g, leati_value x, const leati_resize *r) {
    const leati_desc desc = *leati_graph_desc(g, x);
    int64_t height = desc.shape[1], width = desc.shape[2], border[LEAT_MAX_RANK] = {0};
    int64_t h = scaled(width, r->height, r->width), w = scaled(height, r->width, r->height);
    border[1] = h > height ? (h - height) / 2 : 0;
    border[2] = w > width ? (w - width) / 2 : 0;
    return leati_pad(g, x, border, border, (float)r->fill);
}

leati_value leati_resize_image(leati_graph *g, leati_value x, const leati_resize *r) {
    if (leati_graph_desc(g, x)->rank != 4)
        return leati_graph_fail(g, LEAT_ESHAPE, "expected images (N, height, width, channels)");
    if (r->crop) x = cropped(g, x, r);
    if (r->pad) x = padded(g, x, r);
    const leati_desc desc = *leati_graph_desc(g, x);
    if (desc.shape[1] != r->height) {
        axis a = {desc.shape[1], r->height, r->interpolation, r->antialias};
        x = leati_einsum(g, "ih,nhwc->niwc", matrix_of(g, &a), x);
    }
    if (desc.shape[2] != r->width) {
        axis a = {desc.shape[2], r->width, r->interpolation, r->antialias};
        x = leati_einsum(g, "jw,nhwc->nhjc", matrix_of(g, &a), x);
    }
    return x;
}
