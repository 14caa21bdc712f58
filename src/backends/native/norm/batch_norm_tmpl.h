/* SPDX-License-Identifier: Apache-2.0 */
/* BATCH_NORM, BATCH_NORM_APPLY and BATCH_NORM_BWD of (rows, channels), for the code that is compiled once per
 * instruction set.  Each loop reads memory once.  Sums over NORM_ROWS rows, which are read side by side, are float;
 * sums of those sums are double. */
#ifndef LEATI_BACKENDS_NATIVE_NORM_BATCH_NORM_TMPL_H
#define LEATI_BACKENDS_NATIVE_NORM_BATCH_NORM_TMPL_H

#include "backends/native/elementwise/loops_tmpl.h"
#include "backends/native/norm/jobs.h"

#define NORM_ROWS 16

/* Computes the mean and the sum of squared distances from it over a few rows, per channel. */
LEATI_INLINE void moments_of_rows(const void *x, int64_t start, int64_t channels, int64_t rows,
                                  float *restrict mean, float *restrict squares, const bool bf16) {
    for (int64_t c = 0; c < channels; c = next_vector(c, channels)) {
        int64_t left = channels - c;
        vf sum = {0}, added = {0}, centre, centred;
        for (int64_t r = 0; r < rows; r++) sum += v_load_image(x, start + r * channels + c, left, bf16);
        centre = sum / (float)rows;
        sum = (vf){0};
        for (int64_t r = 0; r + 2 <= rows; r += 2) {
            centred = v_load_image(x, start + r * channels + c, left, bf16) - centre;
            sum += centred * centred;
            centred = v_load_image(x, start + (r + 1) * channels + c, left, bf16) - centre;
            added += centred * centred;
        }
        centred =
            rows & 1 ? v_load_image(x, start + (rows - 1) * channels + c, left, bf16) - centre : (vf){0};
        v_store_part(mean + c, centre, left);
        v_store_part(squares + c, sum + added + centred * centred, left);
    }
}

/* Adds the moments of `added` rows to those of `count` rows (Chan, Golub and LeVeque, "Updating formulae and a
 * pairwise algorithm for computing sample variances", 1979). */
LEATI_INLINE void join_moments(double *restrict mean, double *restrict squares,
                               const float *restrict added_mean, const float *restrict added_squares,
                               int64_t channels, double count, double added) {
    double share = added / (count + added), weight = count * share;
    for (int64_t c = 0; c < channels; c++) {
        double distance = (double)added_mean[c] - mean[c];
        mean[c] += distance * share;
        squares[c] += (double)added_squares[c] + distance * distance * weight;
    }
}

/* Sets job->sums to the means, then the sums of squared distances from them, of rows first to last - 1. */
LEATI_INLINE void moments_of(const leati_batch_norm_job *job, int64_t first, int64_t last, const bool bf16) {
    int64_t channels = job->channels;
    memset(job->sums, 0, 2 * (size_t)channels * sizeof *job->sums);
    for (int64_t row = first; row < last; row += NORM_ROWS) {
        int64_t rows = last - row, start = row * channels;
        if (rows >= NORM_ROWS)
            moments_of_rows(job->src, start, channels, rows = NORM_ROWS, job->partial,
                            job->partial + channels, bf16);
        else
            moments_of_rows(job->src, start, channels, rows, job->partial, job->partial + channels, bf16);
        join_moments(job->sums, job->sums + channels, job->partial, job->partial + channels, channels,
                     (double)(row - first), (double)rows);
    }
}

/* dst = f((src - mean) scale + shift + addend), for rows first to last - 1. */
LEATI_INLINE void write_of(const leati_batch_norm_job *job, int64_t first, int64_t last, const bool bf16) {
    const leati_batch_norm_job j = *job;
    bool relu = j.f && is_plain_relu(j.f);
    for (int64_t row = first; row < last; row++) {
        int64_t start = row * j.channels;
        for (int64_t c = 0; c < j.channels; c = next_vector(c, j.channels)) {
            int64_t left = j.channels - c, at = start + c;
            vf centred = v_load_image(j.src, at, left, bf16) - v_load_part(j.mean + c, left);
            vf y = centred * v_load_part(j.scale + c, left) + v_load_part(j.shift + c, left);
            if (j.addend) y += v_load_image(j.addend, at, left, bf16);
            if (relu) y = v_max(y, v_all(0)) + 0.0f;
            v_store_image(j.dst, at, y, left, bf16);
        }
        if (j.f && !relu) apply_post(j.f, j.dst + start, j.channels);
    }
}

#define FEW_CHANNELS 4

/* write_of() in f32 for few channels: LEATI_LANES rows, which are `channels` whole vectors, are written as one row of a
 * normalization that has each channel LEATI_LANES times.  Returns the first row that is left. */
LEATI_INLINE int64_t write_few_channels(const leati_batch_norm_job *job, int64_t first, int64_t last) {
    const int64_t wide = job->channels * LEATI_LANES, groups = (last - first) / LEATI_LANES;
    float mean[FEW_CHANNELS * LEATI_LANES], scale[FEW_CHANNELS * LEATI_LANES],
        shift[FEW_CHANNELS * LEATI_LANES];
    if (groups < 2) return first;
    for (int64_t i = 0; i < wide; i++) {
        mean[i] = job->mean[i % job->channels];
        scale[i] = job->scale[i % job->channels];
        shift[i] = job->shift[i % job->channels];
    }
    leati_batch_norm_job whole = *job;
    whole.channels = wide;
    whole.mean = mean;
    whole.scale = scale;
    whole.shift = shift;
    whole.src = job->src + first * job->channels;
    whole.dst = job->dst + first * job->channels;
    if (job->addend) whole.addend = job->addend + first * job->channels;
    write_of(&whole, 0, groups, false);
    return first + groups * LEATI_LANES;
}

/* Returns a vector of the gradient with respect to dst, set to 0 where a fused max(x, 0) gave 0 (job->rectified). */
LEATI_INLINE vf diff_at(const leati_batch_norm_job *job, int64_t at, int64_t left, const bool bf16) {
    vf diff = v_load_image(job->diff_dst, at, left, bf16);
    if (!job->rectified) return diff;
    vf rectified = v_load_image(job->rectified, at, left, bf16);
    return diff * v_select((vi)(rectified > v_all(0)), v_all(1), v_all(0));
}

/* Sets job->sums to the sums of diff, then of diff (src - mean), over rows first to last - 1. */
LEATI_INLINE void sums_of(const leati_batch_norm_job *job, int64_t first, int64_t last, const bool bf16) {
    const leati_batch_norm_job j = *job;
    float *partial = j.partial, *products = partial + j.channels;
    memset(j.sums, 0, 2 * (size_t)j.channels * sizeof *j.sums);
    for (int64_t row = first; row < last; row += NORM_ROWS) {
        int64_t rows = last - row < NORM_ROWS ? last - row : NORM_ROWS;
        for (int64_t c = 0; c < j.channels; c = next_vector(c, j.channels)) {
            int64_t left = j.channels - c, at = row * j.channels + c;
            vf mean = v_load_part(j.mean + c, left), sum = {0}, product = {0};
            for (int64_t r = 0; r < rows; r++, at += j.channels) {
                vf diff = diff_at(&j, at, left, bf16);
                sum += diff;
                product += diff * (v_load_image(j.src, at, left, bf16) - mean);
                if (j.diff) v_store_image(j.diff, at, diff, left, bf16);
            }
            v_store_part(partial + c, sum, left);
            v_store_part(products + c, product, left);
        }
        for (int64_t i = 0; i < 2 * j.channels; i++) j.sums[i] += (double)partial[i];
    }
}

/* dst = (diff - shift) scale - (src - mean) src_factor, for rows first to last - 1. */
LEATI_INLINE void diff_of(const leati_batch_norm_job *job, int64_t first, int64_t last, const bool bf16) {
    const leati_batch_norm_job j = *job;
    for (int64_t row = first; row < last; row++)
        for (int64_t c = 0; c < j.channels; c = next_vector(c, j.channels)) {
            int64_t left = j.channels - c, at = row * j.channels + c;
            vf diff = diff_at(&j, at, left, bf16) - v_load_part(j.shift + c, left);
            vf centred = v_load_image(j.src, at, left, bf16) - v_load_part(j.mean + c, left);
            vf src_factor = centred * v_load_part(j.src_factor + c, left);
            v_store_image(j.dst, at, diff * v_load_part(j.scale + c, left) - src_factor, left, bf16);
        }
}

#define PASS(name)                                                                                           \
    static void batch_norm_##name(const leati_batch_norm_job *job, int64_t first, int64_t last) {            \
        if (job->bf16)                                                                                       \
            name##_of(job, first, last, true);                                                               \
        else                                                                                                 \
            name##_of(job, first, last, false);                                                              \
    }
PASS(moments)
PASS(sums)
PASS(diff)
#undef PASS

static void batch_norm_write(const leati_batch_norm_job *job, int64_t first, int64_t last) {
    if (!job->bf16 && job->channels <= FEW_CHANNELS) first = write_few_channels(job, first, last);
    if (job->bf16)
        write_of(job, first, last, true);
    else
        write_of(job, first, last, false);
}

#endif
