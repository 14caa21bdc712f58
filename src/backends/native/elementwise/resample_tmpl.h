/* SPDX-License-Identifier: Apache-2.0 */
/* RESAMPLE and RESAMPLE_BWD, for the code that is compiled once per instruction set: rows of pixels, vectorized
 * over the channels. */
#ifndef LEATI_BACKENDS_NATIVE_ELEMENTWISE_RESAMPLE_TMPL_H
#define LEATI_BACKENDS_NATIVE_ELEMENTWISE_RESAMPLE_TMPL_H

#include "backends/native/elementwise/jobs.h"
#include "backends/native/simd/vector_tmpl.h"
#include "engine/op_semantics/resample.h"

static leati_resample_axis resample_axis(const leati_range_job *job, int axis) {
    const leati_geometry *g = job->window.geometry;
    return (leati_resample_axis){job->attrs->resample.linear, job->attrs->resample.halved, g->in[axis],
                                 g->out[axis] / g->in[axis]};
}

/* to = share * from where `first`, else to += share * from */
LEATI_INLINE void add_scaled(float *to, const float *from, float share, bool first, int64_t count) {
    for (int64_t i = 0; i < count; i += LEATI_LANES) {
        vf x = v_load_part(from + i, count - i) * share;
        v_store_part(to + i, first ? x : v_load_part(to + i, count - i) + x, count - i);
    }
}

/* One of the source pixels that an output pixel is interpolated from, and its weight. */
typedef struct resample_part {
    int64_t pixel;
    float share;
} resample_part;

/* Sets the one or two source elements along an axis that output o is interpolated from; returns their number. */
static int resample_parts(const leati_resample_axis *axis, int64_t o, resample_part parts[2]) {
    leati_resample_point p = leati_resample_at(axis, o);
    parts[0] = (resample_part){p.low, 1 - p.share};
    if (p.high == p.low) parts[0].share = 1;
    if (p.share == 0 || p.high == p.low) return 1;
    parts[1] = (resample_part){p.high, p.share};
    return 2;
}

static void resample_pixel(const float *const rows[4], const float shares[4], int count,
                           const leati_resample_axis *x, int64_t o, float *to, int64_t channels) {
    resample_part parts[2];
    int along = resample_parts(x, o, parts);
    if (count == 1 && along == 1) {
        memcpy(to, rows[0] + parts[0].pixel * channels, (size_t)channels * sizeof *to);
        return;
    }
    for (int r = 0; r < count; r++)
        for (int p = 0; p < along; p++)
            add_scaled(to, rows[r] + parts[p].pixel * channels, shares[r] * parts[p].share, r + p == 0,
                       channels);
}

/* Rows first to last - 1 of dst, which are numbered along (batch, out[0], out[1]) and have out[2] pixels each. */
static void resample(const leati_range_job *job, int64_t first, int64_t last) {
    const leati_geometry *g = job->window.geometry;
    leati_resample_axis z = resample_axis(job, 0), y = resample_axis(job, 1), x = resample_axis(job, 2);
    int64_t row_floats = g->in[2] * g->channels;
    for (int64_t row = first; row < last; row++) {
        int64_t image = row / g->out[1] / g->out[0];
        resample_part planes[2], lines[2];
        const float *rows[4];
        float shares[4], *to = job->out[0] + row * g->out[2] * g->channels;
        int plane_count = resample_parts(&z, row / g->out[1] % g->out[0], planes), count = 0;
        int line_count = resample_parts(&y, row % g->out[1], lines);
        for (int p = 0; p < plane_count; p++)
            for (int l = 0; l < line_count; l++) {
                int64_t from = (image * g->in[0] + planes[p].pixel) * g->in[1] + lines[l].pixel;
                rows[count] = job->in[0] + from * row_floats;
                shares[count++] = planes[p].share * lines[l].share;
            }
        for (int64_t o = 0; o < g->out[2]; o++, to += g->channels)
            resample_pixel(rows, shares, count, &x, o, to, g->channels);
    }
}

/* Adds `share` times what one row of diff_dst gives to one row of diff_src; overwrite_row: the row is not
 * yet written. */
static void resample_row_bwd(const leati_resample_axis *x, const float *from, float share, bool overwrite_row,
                             float *to, int64_t channels) {
    for (int64_t i = 0; i < x->in; i++, to += channels) {
        int64_t first, last;
        bool overwrite = overwrite_row;
        leati_resample_reach(x, i, &first, &last);
        for (int64_t o = first; o < last; o++) {
            float weight = leati_resample_share(x, i, o);
            if (weight == 0) continue;
            add_scaled(to, from + o * channels, share * weight, overwrite, channels);
            overwrite = false;
        }
    }
}

/* Rows first to last - 1 of diff_src, which are numbered along (batch, in[0], in[1]) and have in[2] pixels each. */
static void resample_bwd(const leati_range_job *job, int64_t first, int64_t last) {
    const leati_geometry *g = job->window.geometry;
    leati_resample_axis z = resample_axis(job, 0), y = resample_axis(job, 1), x = resample_axis(job, 2);
    for (int64_t row = first; row < last; row++) {
        int64_t image = row / g->in[1] / g->in[0], plane = row / g->in[1] % g->in[0], line = row % g->in[1];
        int64_t z_first, z_last, y_first, y_last;
        float *to = job->out[0] + row * g->in[2] * g->channels;
        bool overwrite_row = true;
        leati_resample_reach(&z, plane, &z_first, &z_last);
        leati_resample_reach(&y, line, &y_first, &y_last);
        for (int64_t p = z_first; p < z_last; p++)
            for (int64_t l = y_first; l < y_last; l++) {
                float share = leati_resample_share(&z, plane, p) * leati_resample_share(&y, line, l);
                int64_t from = (image * g->out[0] + p) * g->out[1] + l;
                if (share == 0) continue;
                resample_row_bwd(&x, job->in[0] + from * g->out[2] * g->channels, share, overwrite_row, to,
                                 g->channels);
                overwrite_row = false;
            }
    }
}

#endif
