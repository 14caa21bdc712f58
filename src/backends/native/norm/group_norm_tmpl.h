/* SPDX-License-Identifier: Apache-2.0 */
/* GROUP_NORM and GROUP_NORM_BWD for the code that is compiled once per instruction set.  A row is (places, channels).  Sums
 * over places are by channel, float for FOLD_ROWS of them and double beyond; groups are sums of channels. */
#ifndef LEATI_BACKENDS_NATIVE_NORM_GROUP_NORM_TMPL_H
#define LEATI_BACKENDS_NATIVE_NORM_GROUP_NORM_TMPL_H

#include <math.h>

#include "backends/native/elementwise/reduce_tmpl.h"

/* sums (channels) += x; products += d (x - mean).  d NULL: x - mean itself, of which `sums` has no use. */
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

/* One row's moments, by group, and its means by channel. */
static void norm_moments(const leati_norm_job *job, const float *x, float *mean, float *inverse) {
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
        for (int64_t c = g * width; c < (g + 1) * width; c++) job->mean_of[c] = mean[g];
    }
    norm_fold(x, NULL, job->mean_of, job->shape.places, channels, sums, products);
    for (int64_t g = 0; g < job->shape.groups; g++) {
        double squares = 0;
        for (int64_t c = g * width; c < (g + 1) * width; c++) squares += products[c];
        inverse[g] = (float)(1 / sqrt(squares / count + (double)job->epsilon));
    }
}

/* The same of a row that is one group and one place: along it. */
static void norm_row_moments(const leati_norm_job *job, const float *x, float *mean, float *inverse) {
    int64_t count = job->shape.channels;
    double squares = 0, m = row_sum(x, count) / (double)count;
    for (int64_t i = 0; i < count; i += 512) {
        int64_t end = count - i < 512 ? count : i + 512, j = i;
        vf acc = {0};
        for (; j + LEATI_LANES <= end; j += LEATI_LANES) {
            vf centred = v_load(x + j) - (float)m;
            acc += centred * centred;
        }
        squares += (double)v_sum(acc);
        for (; j < end; j++) squares += ((double)x[j] - m) * ((double)x[j] - m);
    }
    *mean = (float)m;
    *inverse = (float)(1 / sqrt(squares / (double)count + (double)job->epsilon));
}

static void norm_write(const leati_norm_job *job, const float *x, float *dst) {
    int64_t channels = job->shape.channels;
    for (int64_t p = 0; p < job->shape.places; p++, x += channels, dst += channels)
        for (int64_t c = 0; c < channels; c += LEATI_LANES) {
            int64_t left = channels - c;
            vf y = (v_load_part(x + c, left) - v_load_part(job->mean_of + c, left)) *
                   v_load_part(job->scale_of + c, left);
            v_store_part(dst + c, job->beta ? y + v_load_part(job->beta + c, left) : y, left);
        }
}

static void norm_write_row(const leati_norm_job *job, const float *x, float *dst, float mean, float inverse) {
    int64_t count = job->shape.channels;
    for (int64_t c = 0; c < count; c += LEATI_LANES) {
        vf y = (v_load_part(x + c, count - c) - mean) * inverse;
        if (job->gamma) y *= v_load_part(job->gamma + c, count - c);
        if (job->beta) y += v_load_part(job->beta + c, count - c);
        v_store_part(dst + c, y, count - c);
    }
}

static void norm_spread(const leati_norm_job *job, const float *mean, const float *inverse) {
    int64_t channels = job->shape.channels, width = channels / job->shape.groups;
    for (int64_t g = 0, c = 0; g < job->shape.groups; g++)
        for (; c < (g + 1) * width; c++) {
            job->mean_of[c] = mean[g];
            job->scale_of[c] = inverse[g] * (job->gamma ? job->gamma[c] : 1);
        }
}

static void norm_forward(const leati_norm_job *job, int64_t first, int64_t last) {
    int64_t floats = job->shape.places * job->shape.channels, groups = job->shape.groups;
    for (int64_t row = first; row < last; row++) {
        const float *x = job->src + row * floats;
        float *mean = job->mean + row * groups, *inverse = job->inverse + row * groups;
        if (job->shape.places == 1 && groups == 1) {
            norm_row_moments(job, x, mean, inverse);
            norm_write_row(job, x, job->dst + row * floats, *mean, *inverse);
            continue;
        }
        norm_moments(job, x, mean, inverse);
        norm_spread(job, mean, inverse);
        norm_write(job, x, job->dst + row * floats);
    }
}

/* diff_src = scale diff_dst - a - (x - mean) b, with a and b by channel. */
static void norm_write_diff(const leati_norm_job *job, const float *x, const float *d, float *to,
                            const float *a, const float *b) {
    int64_t channels = job->shape.channels;
    for (int64_t p = 0; p < job->shape.places; p++, x += channels, d += channels, to += channels)
        for (int64_t c = 0; c < channels; c += LEATI_LANES) {
            int64_t left = channels - c;
            vf centred = v_load_part(x + c, left) - v_load_part(job->mean_of + c, left);
            vf diff = v_load_part(d + c, left) * v_load_part(job->scale_of + c, left);
            v_store_part(to + c, diff - v_load_part(a + c, left) - centred * v_load_part(b + c, left), left);
        }
}

/* A row that is one group and one place: along it.  What it gives to gamma and beta is added to floats. */
static void norm_backward_row(const leati_norm_job *job, int64_t row, float *by_gamma, float *by_beta) {
    int64_t count = job->shape.channels;
    const float *x = job->src + row * count, *d = job->diff_dst + row * count;
    float *to = job->dst + row * count, mean = job->mean[row], inverse = job->inverse[row];
    vf sum = {0}, sum_y = {0};
    for (int64_t i = 0; i < count; i += LEATI_LANES) {
        int64_t left = count - i;
        vf diff = v_load_part(d + i, left), y = (v_load_part(x + i, left) - mean) * inverse;
        vf scaled = job->gamma ? diff * v_load_part(job->gamma + i, left) : diff;
        sum += scaled;
        sum_y += scaled * y;
        v_store_part(by_beta + i, v_load_part(by_beta + i, left) + diff, left);
        v_store_part(by_gamma + i, v_load_part(by_gamma + i, left) + diff * y, left);
    }
    float a = v_sum(sum) / (float)count, b = v_sum(sum_y) / (float)count;
    for (int64_t i = 0; i < count; i += LEATI_LANES) {
        int64_t left = count - i;
        vf diff = v_load_part(d + i, left), y = (v_load_part(x + i, left) - mean) * inverse;
        vf scaled = job->gamma ? diff * v_load_part(job->gamma + i, left) : diff;
        v_store_part(to + i, inverse * (scaled - a - y * b), left);
    }
}

static void norm_backward_rows(const leati_norm_job *job, int64_t first, int64_t last) {
    int64_t count = job->shape.channels;
    float *some_gamma = job->mean_of, *some_beta = some_gamma + count;
    double *by_gamma = job->sums + 2 * count, *by_beta = by_gamma + count;
    for (int64_t row = first; row < last; row += FOLD_ROWS) {
        int64_t end = last - row < FOLD_ROWS ? last : row + FOLD_ROWS;
        memset(some_gamma, 0, 2 * (size_t)count * sizeof *some_gamma);
        for (int64_t r = row; r < end; r++) norm_backward_row(job, r, some_gamma, some_beta);
        for (int64_t c = 0; c < count; c++) {
            by_gamma[c] += (double)some_gamma[c];
            by_beta[c] += (double)some_beta[c];
        }
    }
}

/* Rows first to last - 1; what they give to gamma and beta is added to the two last quarters of job->sums. */
static void norm_backward(const leati_norm_job *job, int64_t first, int64_t last) {
    int64_t channels = job->shape.channels, groups = job->shape.groups, width = channels / groups;
    int64_t floats = job->shape.places * channels;
    double *sums = job->sums, *products = sums + channels, *by_gamma = products + channels;
    double *by_beta = by_gamma + channels, count = (double)(job->shape.places * width);
    float *a = job->scale_of + channels, *b = a + channels;
    norm_clear(by_gamma, 2 * channels);
    if (job->shape.places == 1 && groups == 1) {
        norm_backward_rows(job, first, last);
        return;
    }
    for (int64_t row = first; row < last; row++) {
        const float *x = job->src + row * floats, *d = job->diff_dst + row * floats;
        const float *mean = job->mean + row * groups, *inverse = job->inverse + row * groups;
        norm_spread(job, mean, inverse);
        norm_clear(sums, 2 * channels);
        norm_fold(x, d, job->mean_of, job->shape.places, channels, sums, products);
        for (int64_t g = 0; g < groups; g++) {
            double sum = 0, sum_y = 0, s = (double)inverse[g];
            for (int64_t c = g * width; c < (g + 1) * width; c++) {
                by_beta[c] += sums[c];
                by_gamma[c] += products[c] * s;
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
