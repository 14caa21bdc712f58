/* SPDX-License-Identifier: Apache-2.0 */
/* BATCH_NORM, BATCH_NORM_APPLY and BATCH_NORM_BWD of (rows, channels), for the code that is compiled once per instruction
 * set.  Each pass reads memory once, NORM_ROWS rows side by side; what they come to is float, what those sums come to is
 * double. */
#ifndef LEATI_BACKENDS_NATIVE_NORM_BATCH_NORM_TMPL_H
#define LEATI_BACKENDS_NATIVE_NORM_BATCH_NORM_TMPL_H

#include "backends/native/elementwise/loops_tmpl.h"

#define NORM_ROWS 16

/* Where the next vector of a row begins: the last one overlaps with that before, rather than being a part. */
LEATI_INLINE int64_t next_vector(int64_t c, int64_t channels) {
    int64_t next = c + LEATI_LANES;
    return next < channels && next > channels - LEATI_LANES ? channels - LEATI_LANES : next;
}

/* Means and sums of squared distances from them of a few rows, by channel. */
LEATI_INLINE void moments_of_some(const void *x, int64_t start, int64_t channels, int64_t rows,
                                  float *restrict mean, float *restrict squares, const bool narrow) {
    for (int64_t c = 0; c < channels; c = next_vector(c, channels)) {
        int64_t left = channels - c;
        vf sum = {0}, more = {0}, centre, centred;
        for (int64_t r = 0; r < rows; r++) sum += v_load_image(x, start + r * channels + c, left, narrow);
        centre = sum / (float)rows;
        sum = (vf){0};
        for (int64_t r = 0; r + 2 <= rows; r += 2) {
            centred = v_load_image(x, start + r * channels + c, left, narrow) - centre;
            sum += centred * centred;
            centred = v_load_image(x, start + (r + 1) * channels + c, left, narrow) - centre;
            more += centred * centred;
        }
        centred =
            rows & 1 ? v_load_image(x, start + (rows - 1) * channels + c, left, narrow) - centre : (vf){0};
        v_store_part(mean + c, centre, left);
        v_store_part(squares + c, sum + more + centred * centred, left);
    }
}

/* Joins moments of `more` rows to those of `count` (Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for
 * computing sample variances", 1979). */
LEATI_INLINE void join_moments(double *restrict mean, double *restrict squares,
                               const float *restrict more_mean, const float *restrict more_squares,
                               int64_t channels, double count, double more) {
    double share = more / (count + more), weight = count * share;
    for (int64_t c = 0; c < channels; c++) {
        double apart = (double)more_mean[c] - mean[c];
        mean[c] += apart * share;
        squares[c] += (double)more_squares[c] + apart * apart * weight;
    }
}

/* sums: means, then sums of squared distances, of rows first to last - 1. */
LEATI_INLINE void moments_of(const leati_batch_norm_job *job, int64_t first, int64_t last,
                             const bool narrow) {
    int64_t channels = job->channels;
    memset(job->sums, 0, 2 * (size_t)channels * sizeof *job->sums);
    for (int64_t row = first; row < last; row += NORM_ROWS) {
        int64_t rows = last - row, start = row * channels;
        if (rows >= NORM_ROWS)
            moments_of_some(job->src, start, channels, rows = NORM_ROWS, job->some, job->some + channels,
                            narrow);
        else
            moments_of_some(job->src, start, channels, rows, job->some, job->some + channels, narrow);
        join_moments(job->sums, job->sums + channels, job->some, job->some + channels, channels,
                     (double)(row - first), (double)rows);
    }
}

/* dst = f((src - mean) scale + shift + addend) of rows first to last - 1. */
LEATI_INLINE void write_of(const leati_batch_norm_job *job, int64_t first, int64_t last, const bool narrow) {
    const leati_batch_norm_job j = *job;
    bool relu = j.f && is_plain_relu(j.f);
    for (int64_t row = first; row < last; row++) {
        int64_t start = row * j.channels;
        for (int64_t c = 0; c < j.channels; c = next_vector(c, j.channels)) {
            int64_t left = j.channels - c, at = start + c;
            vf centred = v_load_image(j.src, at, left, narrow) - v_load_part(j.mean + c, left);
            vf y = centred * v_load_part(j.scale + c, left) + v_load_part(j.shift + c, left);
            if (j.addend) y += v_load_image(j.addend, at, left, narrow);
            if (relu) y = v_max(y, v_all(0));
            v_store_image(j.dst, at, y, left, narrow);
        }
        if (j.f && !relu) apply_post(j.f, j.dst + start, j.channels);
    }
}

/* A vector of what counts of the gradient by dst. */
LEATI_INLINE vf diff_at(const leati_batch_norm_job *job, int64_t at, int64_t left, const bool narrow) {
    vf diff = v_load_image(job->diff_dst, at, left, narrow);
    if (!job->rectified) return diff;
    vf rectified = v_load_image(job->rectified, at, left, narrow);
    return diff * v_select((vi)(rectified > v_all(0)), v_all(1), v_all(0));
}

/* sums: of diff, then of diff (src - mean), of rows first to last - 1. */
LEATI_INLINE void sums_of(const leati_batch_norm_job *job, int64_t first, int64_t last, const bool narrow) {
    const leati_batch_norm_job j = *job;
    float *some = j.some, *products = some + j.channels;
    memset(j.sums, 0, 2 * (size_t)j.channels * sizeof *j.sums);
    for (int64_t row = first; row < last; row += NORM_ROWS) {
        int64_t rows = last - row < NORM_ROWS ? last - row : NORM_ROWS;
        for (int64_t c = 0; c < j.channels; c = next_vector(c, j.channels)) {
            int64_t left = j.channels - c, at = row * j.channels + c;
            vf mean = v_load_part(j.mean + c, left), sum = {0}, product = {0};
            for (int64_t r = 0; r < rows; r++, at += j.channels) {
                vf diff = diff_at(&j, at, left, narrow);
                sum += diff;
                product += diff * (v_load_image(j.src, at, left, narrow) - mean);
                if (j.diff) v_store_image(j.diff, at, diff, left, narrow);
            }
            v_store_part(some + c, sum, left);
            v_store_part(products + c, product, left);
        }
        for (int64_t i = 0; i < 2 * j.channels; i++) j.sums[i] += (double)some[i];
    }
}

/* dst = (diff - shift) scale - (src - mean) by_src of rows first to last - 1. */
LEATI_INLINE void diff_of(const leati_batch_norm_job *job, int64_t first, int64_t last, const bool narrow) {
    const leati_batch_norm_job j = *job;
    for (int64_t row = first; row < last; row++)
        for (int64_t c = 0; c < j.channels; c = next_vector(c, j.channels)) {
            int64_t left = j.channels - c, at = row * j.channels + c;
            vf diff = diff_at(&j, at, left, narrow) - v_load_part(j.shift + c, left);
            vf centred = v_load_image(j.src, at, left, narrow) - v_load_part(j.mean + c, left);
            vf by_src = centred * v_load_part(j.by_src + c, left);
            v_store_image(j.dst, at, diff * v_load_part(j.scale + c, left) - by_src, left, narrow);
        }
}

#define PASS(name)                                                                                           \
    static void batch_norm_##name(const leati_batch_norm_job *job, int64_t first, int64_t last) {            \
        if (job->narrow)                                                                                     \
            name##_of(job, first, last, true);                                                               \
        else                                                                                                 \
            name##_of(job, first, last, false);                                                              \
    }
PASS(moments)
PASS(write)
PASS(sums)
PASS(diff)
#undef PASS

#endif
