/* SPDX-License-Identifier: Apache-2.0 */
/* Resizes pictures with the numbers of Pillow's Image.resize: first the lines, then the columns, with 8 bits in
 * between.  Room: image. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "image/filter.h"
#include "image/picture.h"

const char *const leati_filter_names[LEATI_FILTER_COUNT] = {"nearest", "bilinear", "bicubic",
                                                            "lanczos", "box",      "hamming"};

/* ---- Filters ---- */

static const double pi = 3.14159265358979323846;

static double bilinear(double x) {
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

static double bicubic(double x) {
    const double a = -0.5;
    x = fabs(x);
    if (x < 1) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static double sinc(double x) {
    return x == 0 ? 1 : sin(x * pi) / (x * pi);
}

static double lanczos(double x) {
    return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
}

static double box_weight(double x) {
    return x > -0.5 && x <= 0.5 ? 1 : 0;
}

/* The constants are those of Pillow, which has them in single precision. */
static double hamming(double x) {
    x = fabs(x);
    if (x == 0) return 1;
    if (x >= 1) return 0;
    x *= pi;
    return sin(x) / x * ((double)0.54f + (double)0.46f * cos(x));
}

static const struct {
    double (*weight)(double x);
    double support;
} filters[LEATI_FILTER_COUNT] = {
    [LEATI_FILTER_BILINEAR] = {bilinear, 1}, [LEATI_FILTER_BICUBIC] = {bicubic, 2},
    [LEATI_FILTER_LANCZOS] = {lanczos, 3},   [LEATI_FILTER_BOX] = {box_weight, 0.5},
    [LEATI_FILTER_HAMMING] = {hamming, 1},
};

/* ---- Weights ---- */

/* The interval [from, to) of `size` pixels becomes `outputs` pixels. */
typedef struct axis {
    int64_t size, from, to, outputs;
} axis;

static void weights_fini(leati_weights *w) {
    leati_free(w->first);
    leati_free(w->count);
    leati_free(w->whole);
    leati_free(w->low);
    leati_free(w->high);
    *w = (leati_weights){0};
}

static leat_status weights_create(leati_weights *w, int64_t outputs, int64_t taps, leat_error *err) {
    size_t count = 0;
    *w = (leati_weights){.outputs = outputs,
                         .taps = (taps + 1) / 2 * 2,
                         .stride = outputs + LEATI_WEIGHT_SLACK};
    if (leati_mul_size((size_t)w->stride, (size_t)w->taps, &count)) {
        w->first = leati_calloc((size_t)w->stride, sizeof *w->first);
        w->count = leati_calloc((size_t)w->stride, sizeof *w->count);
        w->whole = leati_calloc(count, sizeof *w->whole);
        w->low = leati_calloc(count, sizeof *w->low);
        w->high = leati_calloc(count, sizeof *w->high);
    }
    if (w->first && w->count && w->whole && w->low && w->high) return LEAT_OK;
    weights_fini(w);
    return leati_fail_memory(err, count, "the weights of a resize");
}

/* Rounds the weights of output i to integers.  `exact` has their count. */
static void round_weights(leati_weights *w, int64_t i, const double *exact) {
    for (int32_t k = 0; k < w->count[i]; ++k) {
        const double scaled = exact[k] * (1 << LEATI_WEIGHT_BITS);
        const int32_t whole = (int32_t)(exact[k] < 0 ? scaled - 0.5 : scaled + 0.5);
        const int32_t low = whole & ((1 << LEATI_WEIGHT_LOW_BITS) - 1);
        w->whole[i * w->taps + k] = whole;
        w->low[leati_weight_index(w, i, k)] = (int16_t)low;
        w->high[leati_weight_index(w, i, k)] = (int16_t)((whole - low) / (1 << LEATI_WEIGHT_LOW_BITS));
    }
}

static void compute_output(leati_weights *w, const axis *a, leati_filter filter, int64_t i, double *exact) {
    const double scale = (double)(a->to - a->from) / (double)a->outputs, widened = scale < 1 ? 1 : scale;
    const double support = filters[filter].support * widened, inverse = 1.0 / widened;
    const double center = (double)a->from + ((double)i + 0.5) * scale;
    double sum = 0;
    int64_t first = (int64_t)(center - support + 0.5), last = (int64_t)(center + support + 0.5);
    if (first < 0) first = 0;
    if (last > a->size) last = a->size;
    const int64_t count = last > first ? last - first : 0;
    for (int64_t k = 0; k < count; ++k) {
        exact[k] = filters[filter].weight(((double)(k + first) - center + 0.5) * inverse);
        sum += exact[k];
    }
    if (sum != 0)
        for (int64_t k = 0; k < count; ++k) exact[k] /= sum;
    w->first[i] = (int32_t)first;
    w->count[i] = (int32_t)count;
    round_weights(w, i, exact);
}

static leat_status compute_weights(leati_weights *w, const axis *a, leati_filter filter, leat_error *err) {
    const double scale = (double)(a->to - a->from) / (double)a->outputs;
    const int64_t taps = 2 * (int64_t)ceil(filters[filter].support * (scale < 1 ? 1 : scale)) + 1;
    double *exact = leati_calloc((size_t)taps, sizeof *exact);
    if (!exact) return leati_fail_memory(err, (size_t)taps * sizeof *exact, "the weights of a resize");
    leat_status status = weights_create(w, a->outputs, taps, err);
    if (status == LEAT_OK)
        for (int64_t i = 0; i < a->outputs; ++i) compute_output(w, a, filter, i, exact);
    leati_free(exact);
    return status;
}

/* ---- Passes ---- */

/* Computes `out` from lines [first, first + out->height) of `in`. */
static void resize_lines(leati_picture *out, const leati_picture *in, int64_t first, const leati_weights *w) {
    const int64_t line = in->width * in->channels;
    leati_pass_horizontal()(&(leati_pass_job){.src = in->pixels + first * line,
                                              .dst = out->pixels,
                                              .src_line = line,
                                              .dst_line = out->width * out->channels,
                                              .lines = out->height,
                                              .channels = in->channels,
                                              .weights = w});
}

static void resize_columns(leati_picture *out, const leati_picture *in, const leati_weights *w) {
    const int64_t line = in->width * in->channels;
    leati_pass_vertical()(&(leati_pass_job){.src = in->pixels,
                                            .dst = out->pixels,
                                            .src_line = line,
                                            .dst_line = line,
                                            .lines = out->height,
                                            .line_bytes = line,
                                            .weights = w});
}

/* Resizes the lines that the second pass reads, then the columns. */
static leat_status resize_both(leati_picture *out, const leati_picture *in, const leati_weights *x,
                               leati_weights *y, leat_error *err) {
    const int64_t first = y->first[0], last = y->first[y->outputs - 1] + y->count[y->outputs - 1];
    leati_picture between;
    LEATI_TRY(leati_picture_allocate(&between, out->width, last - first, in->channels, err));
    for (int64_t i = 0; i < y->outputs; ++i) y->first[i] -= (int32_t)first;
    resize_lines(&between, in, first, x);
    resize_columns(out, &between, y);
    leati_picture_fini(&between);
    return LEAT_OK;
}

static leat_status resize_filtered(leati_picture *out, const leati_picture *in, leati_filter filter,
                                   const leati_box *part, leat_error *err) {
    const axis across = {in->width, part->x0, part->x1, out->width};
    const axis down = {in->height, part->y0, part->y1, out->height};
    const bool wide = part->x0 != 0 || part->x1 != out->width || in->width != out->width;
    const bool high = part->y0 != 0 || part->y1 != out->height || in->height != out->height;
    leati_weights x = {0}, y = {0};
    leat_status status = wide ? compute_weights(&x, &across, filter, err) : LEAT_OK;
    if (status == LEAT_OK && high) status = compute_weights(&y, &down, filter, err);
    if (status == LEAT_OK && wide && high)
        status = resize_both(out, in, &x, &y, err);
    else if (status == LEAT_OK && wide)
        resize_lines(out, in, 0, &x);
    else if (status == LEAT_OK && high)
        resize_columns(out, in, &y);
    else if (status == LEAT_OK)
        memcpy(out->pixels, in->pixels, (size_t)(in->width * in->height * in->channels));
    weights_fini(&x);
    weights_fini(&y);
    return status;
}

/* ---- Alpha: colours are resized multiplied by alpha ---- */

static unsigned multiply_255(unsigned a, unsigned b) {
    const unsigned product = a * b + 128;
    return ((product >> 8) + product) >> 8;
}

static void multiply_by_alpha(unsigned char *to, const unsigned char *from, int64_t count) {
    for (int64_t i = 0; i < count; ++i, to += 4, from += 4) {
        for (int c = 0; c < 3; ++c) to[c] = (unsigned char)multiply_255(from[c], from[3]);
        to[3] = from[3];
    }
}

static void divide_by_alpha(unsigned char *pixels, int64_t count) {
    for (int64_t i = 0; i < count; ++i, pixels += 4) {
        const unsigned alpha = pixels[3];
        if (alpha == 0 || alpha == 255) continue;
        for (int c = 0; c < 3; ++c) {
            const unsigned value = 255u * pixels[c] / alpha;
            pixels[c] = (unsigned char)(value > 255 ? 255 : value);
        }
    }
}

static leat_status resize_with_alpha(leati_picture *out, const leati_picture *in, leati_filter filter,
                                     const leati_box *part, leat_error *err) {
    leati_picture multiplied;
    LEATI_TRY(leati_picture_allocate(&multiplied, in->width, in->height, 4, err));
    multiply_by_alpha(multiplied.pixels, in->pixels, in->width * in->height);
    leat_status status = resize_filtered(out, &multiplied, filter, part, err);
    leati_picture_fini(&multiplied);
    divide_by_alpha(out->pixels, out->width * out->height);
    return status;
}

/* ---- The nearest pixel ---- */

/* Computes the pixel of the input for each output.  The position is a running sum with Pillow's rounding. */
static void find_nearest(int64_t *at, const axis *a) {
    const double step = (double)(a->to - a->from) / (double)a->outputs;
    double position = (double)a->from + step * 0.5;
    for (int64_t i = 0; i < a->outputs; ++i) {
        at[i] = (int64_t)position;
        if (at[i] >= a->size) at[i] = a->size - 1;
        position += step;
    }
}

static leat_status resize_nearest(leati_picture *out, const leati_picture *in, const leati_box *part,
                                  leat_error *err) {
    const axis across = {in->width, part->x0, part->x1, out->width};
    const axis down = {in->height, part->y0, part->y1, out->height};
    const size_t channels = (size_t)in->channels, count = (size_t)(out->width + out->height);
    int64_t *at = leati_calloc(count, sizeof *at);
    if (!at) return leati_fail_memory(err, count * sizeof *at, "a resize");
    find_nearest(at, &across);
    find_nearest(at + out->width, &down);
    unsigned char *to = out->pixels;
    for (int64_t y = 0; y < out->height; ++y) {
        const unsigned char *line = in->pixels + (size_t)(at[out->width + y] * in->width) * channels;
        for (int64_t x = 0; x < out->width; ++x, to += channels)
            memcpy(to, line + (size_t)at[x] * channels, channels);
    }
    leati_free(at);
    return LEAT_OK;
}

leat_status leati_picture_resize(leati_picture *out, const leati_picture *in, leati_filter filter,
                                 const leati_box *box, leat_error *err) {
    const leati_box whole = {0, 0, in->width, in->height}, *part = box ? box : &whole;
    if (part->x0 < 0 || part->y0 < 0 || part->x1 > in->width || part->y1 > in->height ||
        part->x0 >= part->x1 || part->y0 >= part->y1)
        return leati_fail(
            err, LEAT_ESHAPE,
            "expected a box inside a picture of %lld x %lld pixels, received (%lld, %lld, %lld, %lld)",
            (long long)in->width, (long long)in->height, (long long)part->x0, (long long)part->y0,
            (long long)part->x1, (long long)part->y1);
    if (filter == LEATI_FILTER_NEAREST) return resize_nearest(out, in, part, err);
    const bool same = part->x0 == 0 && part->y0 == 0 && in->width == out->width &&
                      in->height == out->height && part->x1 == in->width && part->y1 == in->height;
    if (in->channels == 4 && !same) return resize_with_alpha(out, in, filter, part, err);
    return resize_filtered(out, in, filter, part, err);
}
