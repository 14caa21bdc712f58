/* SPDX-License-Identifier: Apache-2.0 */
/* Filters of an image, and a box that is erased.
 * Sources: keras.layers.RandomSharpness, RandomGaussianBlur, RandomErasing.  Room: nn. */
#include <math.h>

#include "leat/rng.h"
#include "nn/layers/preprocessing/image_change_kinds.h"

/* ---- RandomSharpness, RandomGaussianBlur ---- */

typedef struct filter {
    int64_t rows, columns; /* odd */
    float weights[LEATI_MOST_TAPS * LEATI_MOST_TAPS];
} filter;

static void make_gaussian(float *weights, int64_t taps, float sigma) {
    double values[LEATI_MOST_TAPS], sum = 0;
    for (int64_t i = 0; i < taps; ++i) {
        const double distance = ((double)i - (double)(taps - 1) / 2) / (double)sigma;
        sum += values[i] = exp(-0.5 * distance * distance);
    }
    for (int64_t i = 0; i < taps; ++i) weights[i] = (float)(values[i] / sum);
}

/* The sharpened image x + (1 - 2 amount) (smooth - x) is one filter, too. */
static void make_sharpness(filter *f, float amount) {
    const float share = 1 - 2 * amount;
    f->rows = f->columns = 3;
    for (int i = 0; i < 9; ++i) f->weights[i] = i == 4 ? 1 + share * (5.0f / 13 - 1) : share * (1.0f / 13);
}

static void make_filter(const leati_change *c, filter *f) {
    float across[LEATI_MOST_TAPS] = {0}, down[LEATI_MOST_TAPS] = {0};
    *f = (filter){.rows = 1, .columns = 1, .weights = {1}};
    if (c->kind == LEATI_SHARPEN) {
        make_sharpness(f, c->amount[0]);
    } else if (c->amount[0] > 0) {
        f->columns = c->taps[0];
        f->rows = c->taps[1];
        make_gaussian(across, f->columns, c->amount[1]);
        make_gaussian(down, f->rows, c->amount[2]);
        for (int64_t i = 0; i < f->rows * f->columns; ++i)
            f->weights[i] = down[i / f->columns] * across[i % f->columns];
    }
}

/* The part of a filter that lies inside of the image at one pixel. */
typedef struct window {
    int64_t first_row, last_row, first_column, last_column; /* the last ones are excluded */
    int64_t offset;                                         /* of the weight for the first row and column */
} window;

static window window_at(const filter *f, const leati_image_size *size, int64_t row, int64_t column) {
    const int64_t top = row - f->rows / 2, left = column - f->columns / 2;
    window w = {.first_row = top < 0 ? 0 : top, .first_column = left < 0 ? 0 : left};
    w.last_row = top + f->rows > size->height ? size->height : top + f->rows;
    w.last_column = left + f->columns > size->width ? size->width : left + f->columns;
    w.offset = (w.first_row - top) * f->columns + w.first_column - left;
    return w;
}

static float filtered(const filter *f, const window *w, const leati_image_size *size, const float *src) {
    float sum = 0;
    for (int64_t row = w->first_row; row < w->last_row; ++row) {
        const float *weights = f->weights + w->offset + (row - w->first_row) * f->columns;
        for (int64_t column = w->first_column; column < w->last_column; ++column)
            sum += weights[column - w->first_column] * src[(row * size->width + column) * size->channels];
    }
    return sum;
}

void leati_filter_image(const leati_change *c, const leati_image_size *size, const float *src, float *dst) {
    filter f;
    make_filter(c, &f);
    for (int64_t pixel = 0; pixel < size->height * size->width; ++pixel) {
        const window w = window_at(&f, size, pixel / size->width, pixel % size->width);
        for (int64_t channel = 0; channel < size->channels; ++channel)
            *dst++ = leati_limit(c, filtered(&f, &w, size, src + channel));
    }
}

static void spread(const filter *f, const window *w, const leati_image_size *size, float diff,
                   float *diff_src) {
    for (int64_t row = w->first_row; row < w->last_row; ++row) {
        const float *weights = f->weights + w->offset + (row - w->first_row) * f->columns;
        for (int64_t column = w->first_column; column < w->last_column; ++column)
            diff_src[(row * size->width + column) * size->channels] +=
                weights[column - w->first_column] * diff;
    }
}

void leati_filter_image_back(const leati_change *c, const leati_image_size *size, const float *src,
                             const float *diff_dst, float *diff_src) {
    filter f;
    make_filter(c, &f);
    for (int64_t pixel = 0; pixel < size->height * size->width; ++pixel) {
        const window w = window_at(&f, size, pixel / size->width, pixel % size->width);
        for (int64_t channel = 0; channel < size->channels; ++channel, ++diff_dst)
            if (leati_within(c, filtered(&f, &w, size, src + channel)))
                spread(&f, &w, size, *diff_dst, diff_src + channel);
    }
}

/* ---- RandomErasing ---- */

static bool erases(const leati_change *c, const leati_image_size *size, int64_t pixel) {
    const int64_t row = pixel / size->width, column = pixel % size->width;
    const float x = (float)column, y = (float)row;
    return c->amount[0] > 0 && x >= c->amount[1] && x < c->amount[2] && y >= c->amount[3] && y < c->amount[4];
}

void leati_erase(const leati_change *c, const leati_image_size *size, const float *src, float *dst) {
    const int64_t channels = size->channels;
    leat_rng noise = leat_rng_for((uint64_t)c->amount[5], 0, 0);
    for (int64_t pixel = 0; pixel < size->height * size->width; ++pixel, src += channels, dst += channels) {
        const bool erased = erases(c, size, pixel);
        for (int64_t i = 0; i < channels; ++i) {
            if (!erased)
                dst[i] = src[i];
            else if (c->fill_count == 0)
                dst[i] = leati_limit(c, (float)leat_rng_normal(&noise) * c->highest);
            else
                dst[i] = leati_limit(c, c->fills[c->fill_count == 1 ? 0 : i]);
        }
    }
}

void leati_erase_back(const leati_change *c, const leati_image_size *size, const float *diff_dst,
                      float *diff_src) {
    const int64_t channels = size->channels;
    for (int64_t pixel = 0; pixel < size->height * size->width; ++pixel) {
        const bool erased = erases(c, size, pixel);
        for (int64_t i = 0; i < channels; ++i) *diff_src++ = erased ? 0 : *diff_dst++;
        if (erased) diff_dst += channels;
    }
}
