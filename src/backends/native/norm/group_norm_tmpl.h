/* SPDX-License-Identifier: Apache-2.0 */
/* GROUP_NORM and GROUP_NORM_BWD, for the code that is compiled once per instruction set.  A row is (places,
 * channels).  Sums over the places are kept per channel: float for FOLD_ROWS places, double beyond.  The sum of a
 * group is the sum over its channels. */
#ifndef LEATI_BACKENDS_NATIVE_NORM_GROUP_NORM_TMPL_H
#define LEATI_BACKENDS_NATIVE_NORM_GROUP_NORM_TMPL_H

#include <math.h>

#include "backends/native/elementwise/reduce_tmpl.h"
#include "backends/native/norm/jobs.h"
#include "backends/native/simd/transpose_tmpl.h"

/* sums (channels) += d; products (channels) += d (x - mean).  Where d is NULL it is x - mean itself; sums is then
 * not used. */
static void norm_fold(const float *x, const float *d, const float *mean, int64_t places, int64_t channels,
                      double *sums, double *products) {
    for (int64_t first = 0; first < places; first += FOLD_ROWS) {
        int64_t last = places - first < FOLD_ROWS ? places : first + FOLD_ROWS;
        for (int64_t c = 0; c < channels; c += LEATI_LANES) {
            int64_t left = channels - c < LEATI_LANES ? channels - c : LEATI_LANES;
            vf m = v_load_part(mean + c, left), sum = {0}, product = {0};
            float lanes[2][LEATI_LANES];
            for (int64_t p = first; p < last; p++) {
                vf centred = v_load_part(x + p * channels + c, left) - m;
                vf diff = d ? v_load_part(d + p * channels + c, left) : centred;
                sum += diff;
                product += diff * centred;
            }
            v_store(lanes[0], sum);
            v_store(lanes[1], product);
            for (int64_t k = 0; k < left; k++) {
                sums[c + k] += (double)lanes[0][k];
                products[c + k] += (double)lanes[1][k];
            }
        }
    }
}

static void norm_clear(double *sums, int64_t count) {
    for (int64_t i = 0; i < count; i++) sums[i] = 0;
}

/* Computes one row's mean and 1 / standard deviation per group, and stores the means per channel. */
static void norm_moments(const leati_group_norm_job *job, const float *x, float *mean, float *inverse) {
    int64_t channels = job->shape.channels, width = channels / job->shape.groups;
    double count = (double)(job->shape.places * width), *sums = job->sums, *products = sums + channels;
    norm_clear(sums, 2 * channels);
    if (channels > 1)
        fold_columns(x, job->shape.places, channels, sums, FOLD_SUM);
    else
        *sums = row_sum(x, job->shape.places);
    for (int64_t g = 0; g < job->shape.groups; g++) {
        double sum = 0;
        for (int64_t c = g * width; c < (g + 1) * width; c++) sum += sums[c];
        mean[g] = (float)(sum / count);
        for (int64_t c = g * width; c < (g + 1) * width; c++) job->channel_mean[c] = mean[g];
    }
    norm_fold(x, NULL, job->channel_mean, job->shape.places, channels, sums, products);
    for (int64_t g = 0; g < job->shape.groups; g++) {
        double squares = 0;
        for (int64_t c = g * width; c < (g + 1) * width; c++) squares += products[c];
        inverse[g] = (float)(1 / sqrt(squares / count + (double)job->epsilon));
    }
}

/* Returns a vector whose lanes add up to the sum of (x - mean)^2 over whole vectors, at most ROW_STRETCH elements. */
LEATI_INLINE vf stretch_squares(const float *x, int64_t count, float mean) {
    vf acc = {0};
    for (int64_t j = 0; j + LEATI_LANES <= count; j += LEATI_LANES) {
        vf centred = v_load(x + j) - mean;
        acc += centred * centred;
    }
    return acc;
}

static float inverse_of(const leati_group_norm_job *job, double squares) {
    return (float)(1 / sqrt(squares / (double)job->shape.channels + (double)job->epsilon));
}

/* Like norm_moments() for a row that is one group and one place: vectorized along the row. */
static void norm_row_moments(const leati_group_norm_job *job, const float *x, float *mean, float *inverse) {
    int64_t count = job->shape.channels;
    double squares = 0, m = row_sum(x, count) / (double)count;
    for (int64_t i = 0; i < count; i += ROW_STRETCH) {
        int64_t end = count - i < ROW_STRETCH ? count : i + ROW_STRETCH, j = end - (end - i) % LEATI_LANES;
        squares += (double)v_sum(stretch_squares(x + i, end - i, (float)m));
        for (; j < end; j++) squares += ((double)x[j] - m) * ((double)x[j] - m);
    }
    *mean = (float)m;
    *inverse = inverse_of(job, squares);
}

/* Computes the same moments for LEATI_LANES rows of whole vectors.  Most of a short row's time is spent on adding up
 * lanes and on the root; here one vector has the sums of all rows. */
static void norm_rows_moments(const leati_group_norm_job *job, const float *x, float *mean, float *inverse) {
    int64_t count = job->shape.channels;
    double sums[LEATI_LANES] = {0}, squares[LEATI_LANES] = {0};
    float parts[LEATI_LANES][LEATI_LANES], totals[LEATI_LANES];
    for (int64_t i = 0; i < count; i += ROW_STRETCH) {
        int64_t size = count - i < ROW_STRETCH ? count - i : ROW_STRETCH;
        for (int r = 0; r < LEATI_LANES; r++) v_store(parts[r], stretch_sum(x + r * count + i, size));
        v_store(totals, v_sums(parts));
        for (int r = 0; r < LEATI_LANES; r++) sums[r] += (double)totals[r];
    }
    for (int r = 0; r < LEATI_LANES; r++) mean[r] = (float)(sums[r] / (double)count);
    for (int64_t i = 0; i < count; i += ROW_STRETCH) {
        int64_t size = count - i < ROW_STRETCH ? count - i : ROW_STRETCH;
        for (int r = 0; r < LEATI_LANES; r++)
            v_store(parts[r], stretch_squares(x + r * count + i, size, mean[r]));
        v_store(totals, v_sums(parts));
        for (int r = 0; r < LEATI_LANES; r++) squares[r] += (double)totals[r];
    }
    for (int r = 0; r < LEATI_LANES; r++) inverse[r] = inverse_of(job, squares[r]);
}

static void norm_write(const leati_group_norm_job *job, const float *x, float *dst) {
    int64_t channels = job->shape.channels;
    for (int64_t p = 0; p < job->shape.places; p++, x += channels, dst += channels)
        for (int64_t c = 0; c < channels; c += LEATI_LANES) {
            int64_t left = channels - c;
            vf y = (v_load_part(x + c, left) - v_load_part(job->channel_mean + c, left)) *
                   v_load_part(job->channel_scale + c, left);
            v_store_part(dst + c, job->beta ? y + v_load_part(job->beta + c, left) : y, left);
        }
}

static void norm_write_row(const leati_group_norm_job *job, const float *x, float *dst, float mean,
                           float inverse) {
    int64_t count = job->shape.channels;
    for (int64_t c = 0; c < count; c += LEATI_LANES) {
        vf y = (v_load_part(x + c, count - c) - mean) * inverse;
        if (job->gamma) y *= v_load_part(job->gamma + c, count - c);
        if (job->beta) y += v_load_part(job->beta + c, count - c);
        v_store_part(dst + c, y, count - c);
    }
}

static void norm_spread(const leati_group_norm_job *job, const float *mean, const float *inverse) {
    int64_t channels = job->shape.channels, width = channels / job->shape.groups;
    for (int64_t g = 0, c = 0; g < job->shape.groups; g++)
        for (; c < (g + 1) * width; c++) {
            job->channel_mean[c] = mean[g];
            job->channel_scale[c] = inverse[g] * (job->gamma ? job->gamma[c] : 1);
        }
}

static void group_norm_forward(const leati_group_norm_job *job, int64_t first, int64_t last) {
    int64_t floats = job->shape.places * job->shape.channels, groups = job->shape.groups, at_once;
    bool plain = job->shape.places == 1 && groups == 1; /* a row is one group and one place */
    for (int64_t row = first; row < last; row += at_once) {
        const float *x = job->src + row * floats;
        float *mean = job->mean + row * groups, *inverse = job->inverse + row * groups;
        at_once = plain && floats % LEATI_LANES == 0 && last - row >= LEATI_LANES ? LEATI_LANES : 1;
        if (!plain) {
            norm_moments(job, x, mean, inverse);
            norm_spread(job, mean, inverse);
            norm_write(job, x, job->dst + row * floats);
            continue;
        }
        (at_once > 1 ? norm_rows_moments : norm_row_moments)(job, x, mean, inverse);
        for (int64_t i = 0; i < at_once; i++)
            norm_write_row(job, x + i * floats, job->dst + (row + i) * floats, mean[i], inverse[i]);
    }
}

/* diff_src = scale diff_dst - a - (x - mean) b; a and b are (channels). */
static void norm_write_diff(const leati_group_norm_job *job, const float *x, const float *d, float *to,
                            const float *a, const float *b) {
    int64_t channels = job->shape.channels;
    for (int64_t p = 0; p < job->shape.places; p++, x += channels, d += channels, to += channels)
        for (int64_t c = 0; c < channels; c += LEATI_LANES) {
            int64_t left = channels - c;
            vf centred = v_load_part(x + c, left) - v_load_part(job->channel_mean + c, left);
            vf diff = v_load_part(d + c, left) * v_load_part(job->channel_scale + c, left);
            v_store_part(to + c, diff - v_load_part(a + c, left) - centred * v_load_part(b + c, left), left);
        }
}

/* The first loop of the gradient of a row that is one group and one place, vectorized along the row.  Adds the
 * gradients with respect to gamma and beta to float sums, and stores vectors whose lanes add up to the sums of the
 * scaled gradient, and of its product with the normalised row. */
LEATI_INLINE void norm_backward_sums(const leati_group_norm_job *job, int64_t row, float *diff_gamma_sums,
                                     float *diff_beta_sums, float *scaled_sum, float *product_sum) {
    int64_t count = job->shape.channels;
    const float *x = job->src + row * count, *d = job->diff_dst + row * count;
    float mean = job->mean[row], inverse = job->inverse[row];
    vf sum = {0}, sum_y = {0};
    for (int64_t i = 0; i < count; i += LEATI_LANES) {
        int64_t left = count - i;
        vf diff = v_load_part(d + i, left), y = (v_load_part(x + i, left) - mean) * inverse;
        vf scaled = job->gamma ? diff * v_load_part(job->gamma + i, left) : diff;
        sum += scaled;
        sum_y += scaled * y;
        v_store_part(diff_beta_sums + i, v_load_part(diff_beta_sums + i, left) + diff, left);
        v_store_part(diff_gamma_sums + i, v_load_part(diff_gamma_sums + i, left) + diff * y, left);
    }
    v_store(scaled_sum, sum);
    v_store(product_sum, sum_y);
}

LEATI_INLINE void norm_backward_write(const leati_group_norm_job *job, int64_t row, float a, float b) {
    int64_t count = job->shape.channels;
    const float *x = job->src + row * count, *d = job->diff_dst + row * count;
    float *to = job->dst + row * count, mean = job->mean[row], inverse = job->inverse[row];
    for (int64_t i = 0; i < count; i += LEATI_LANES) {
        int64_t left = count - i;
        vf diff = v_load_part(d + i, left), y = (v_load_part(x + i, left) - mean) * inverse;
        vf scaled = job->gamma ? diff * v_load_part(job->gamma + i, left) : diff;
        v_store_part(to + i, inverse * (scaled - a - y * b), left);
    }
}

/* The gradient of at most LEATI_LANES rows, whose lanes are added up together. */
static void norm_backward_some(const leati_group_norm_job *job, int64_t row, int64_t rows,
                               float *diff_gamma_sums, float *diff_beta_sums) {
    float parts[2][LEATI_LANES][LEATI_LANES] = {{{0}}}, a[LEATI_LANES], b[LEATI_LANES];
    float count = (float)job->shape.channels;
    for (int64_t r = 0; r < rows; r++)
        norm_backward_sums(job, row + r, diff_gamma_sums, diff_beta_sums, parts[0][r], parts[1][r]);
    v_store(a, v_sums(parts[0]) / count);
    v_store(b, v_sums(parts[1]) / count);
    for (int64_t r = 0; r < rows; r++) norm_backward_write(job, row + r, a[r], b[r]);
}

static void norm_backward_rows(const leati_group_norm_job *job, int64_t first, int64_t last) {
    int64_t count = job->shape.channels;
    float *partial_gamma = job->channel_mean, *partial_beta = partial_gamma + count;
    double *diff_gamma_sums = job->sums + 2 * count, *diff_beta_sums = diff_gamma_sums + count;
    for (int64_t row = first; row < last; row += FOLD_ROWS) {
        int64_t end = last - row < FOLD_ROWS ? last : row + FOLD_ROWS;
        memset(partial_gamma, 0, 2 * (size_t)count * sizeof *partial_gamma);
        for (int64_t r = row; r < end; r += LEATI_LANES)
            norm_backward_some(job, r, end - r < LEATI_LANES ? end - r : LEATI_LANES, partial_gamma,
                               partial_beta);
        for (int64_t c = 0; c < count; c++) {
            diff_gamma_sums[c] += (double)partial_gamma[c];
            diff_beta_sums[c] += (double)partial_beta[c];
        }
    }
}

/* The gradient of rows first to last - 1.  The gradients with respect to gamma and beta are added to the last two
 * quarters of job->sums. */
static void group_norm_backward(const leati_group_norm_job *job, int64_t first, int64_t last) {
    int64_t channels = job->shape.channels, groups = job->shape.groups, width = channels / groups;
    int64_t floats = job->shape.places * channels;
    double *sums = job->sums, *products = sums + channels, *diff_gamma_sums = products + channels;
    double *diff_beta_sums = diff_gamma_sums + channels, count = (double)(job->shape.places * width);
    float *a = job->channel_scale + channels, *b = a + channels;
    norm_clear(diff_gamma_sums, 2 * channels);
    if (job->shape.places == 1 && groups == 1) {
        norm_backward_rows(job, first, last);
        return;
    }
    for (int64_t row = first; row < last; row++) {
        const float *x = job->src + row * floats, *d = job->diff_dst + row * floats;
        const float *mean = job->mean + row * groups, *inverse = job->inverse + row * groups;
        norm_spread(job, mean, inverse);
        norm_clear(sums, 2 * channels);
        norm_fold(x, d, job->channel_mean, job->shape.places, channels, sums, products);
        for (int64_t g = 0; g < groups; g++) {
            double sum = 0, sum_y = 0, s = (double)inverse[g];
            for (int64_t c = g * width; c < (g + 1) * width; c++) {
                diff_beta_sums[c] += sums[c];
                diff_gamma_sums[c] += products[c] * s;
                sum += sums[c] * (job->gamma ? (double)job->gamma[c] : 1);
                sum_y += products[c] * (job->gamma ? (double)job->gamma[c] : 1);
            }
            for (int64_t c = g * width; c < (g + 1) * width; c++) {
                a[c] = (float)(s * sum / count);
                b[c] = (float)(s * s * s * sum_y / count);
            }
        }
        norm_write_diff(job, x, d, job->dst + row * floats, a, b);
    }
}

#endif
