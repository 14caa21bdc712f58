/* SPDX-License-Identifier: Apache-2.0 */
/* The plain kernel of affine sampling, and the rules at the border.  Room: image. */
#include "image/augment/sample.h"

#include <math.h>
#include <string.h>

#include "base/os/cpu.h"

leati_affine leati_affine_compose(const leati_affine *first, const leati_affine *second) {
    leati_affine out;
    for (int k = 0; k < 3; ++k) {
        out.x[k] = first->x[0] * second->x[k] + first->x[1] * second->y[k] + (k == 2 ? first->x[2] : 0);
        out.y[k] = first->y[0] * second->x[k] + first->y[1] * second->y[k] + (k == 2 ? first->y[2] : 0);
    }
    return out;
}

/* ---- Positions ---- */

/* Moves a position beyond the border inside, as scipy.ndimage 1.4 does; returns false for the constant value. */
static bool move_inside(double *position, int64_t length, leati_fill fill) {
    const double last = (double)(length - 1), twice = 2 * (double)length;
    double p = *position;
    if (p >= 0 && p <= last) return true;
    switch (fill) {
    case LEATI_FILL_NEAREST: p = p < 0 ? 0 : last; break;
    case LEATI_FILL_CONSTANT: return false;
    case LEATI_FILL_WRAP:
        if (length < 2)
            p = 0;
        else if (p < 0)
            p += last * (trunc(-p / last) + 1);
        else
            p -= last * trunc(p / last);
        break;
    case LEATI_FILL_REFLECT:
        if (length < 2) {
            p = 0;
        } else if (p < 0) {
            if (p < -twice) p = twice * trunc(-p / twice) + p;
            p = p < -(double)length ? p + twice : -p - 1;
        } else {
            p -= twice * trunc(p / twice);
            if (p >= (double)length) p = twice - p - 1;
        }
        break;
    }
    *position = p;
    return p > -1;
}

/* Returns the pixel that stands for the one with this index; -1 for the constant value. */
static int64_t fix_index(int64_t index, int64_t length, const leati_sampling *sampling) {
    if (index >= 0 && index < length) return index;
    if (sampling->scipy) { /* positions are inside: the index is -1 or `length`, and scipy mirrors it */
        if (length < 2) return 0;
        return index < 0 ? 1 : length - 2;
    }
    switch (sampling->fill) {
    case LEATI_FILL_CONSTANT: return -1;
    case LEATI_FILL_NEAREST: return index < 0 ? 0 : length - 1;
    case LEATI_FILL_WRAP: return (index % length + length) % length;
    case LEATI_FILL_REFLECT: {
        const int64_t period = (index % (2 * length) + 2 * length) % (2 * length);
        return period < length ? period : 2 * length - 1 - period;
    }
    }
    return -1;
}

/* Keeps positions in a range in which they are integers of 64 bits. */
static double bounded(double position) {
    return !(position >= -1e9) ? -1e9 : position > 1e9 ? 1e9 : position;
}

/* ---- Pixels ---- */

/* One of the pixels that a position lies between: its index in the picture, or -1 for the constant value. */
static inline float read(const leati_sample_job *job, int64_t pixel, int64_t channel) {
    if (pixel < 0) return job->sampling.value;
    const int64_t at = pixel * job->channels + channel;
    return job->bytes ? (float)job->bytes[at] : job->floats[at];
}

static int64_t pixel_index(const leati_sample_job *job, int64_t x, int64_t y) {
    return x < 0 || y < 0 ? -1 : y * job->width + x;
}

static void sample_nearest(const leati_sample_job *job, double x, double y, float *dst) {
    const int64_t column = fix_index((int64_t)floor(x + 0.5), job->width, &job->sampling);
    const int64_t row = fix_index((int64_t)floor(y + 0.5), job->height, &job->sampling);
    const int64_t pixel = pixel_index(job, column, row);
    for (int64_t c = 0; c < job->channels; ++c) dst[c] = read(job, pixel, c);
}

static void sample_linear(const leati_sample_job *job, double x, double y, float *dst) {
    const double left = floor(x), top = floor(y);
    const float fx = (float)(x - left), fy = (float)(y - top), gx = 1 - fx, gy = 1 - fy;
    const int64_t x0 = fix_index((int64_t)left, job->width, &job->sampling);
    const int64_t x1 = fix_index((int64_t)left + 1, job->width, &job->sampling);
    const int64_t y0 = fix_index((int64_t)top, job->height, &job->sampling);
    const int64_t y1 = fix_index((int64_t)top + 1, job->height, &job->sampling);
    const int64_t p00 = pixel_index(job, x0, y0), p01 = pixel_index(job, x1, y0);
    const int64_t p10 = pixel_index(job, x0, y1), p11 = pixel_index(job, x1, y1);
    for (int64_t c = 0; c < job->channels; ++c) {
        const float upper = read(job, p00, c) * gx + read(job, p01, c) * fx;
        const float lower = read(job, p10, c) * gx + read(job, p11, c) * fx;
        dst[c] = upper * gy + lower * fy;
    }
}

void leati_sample_span(const leati_sample_job *job, int64_t y, int64_t x, int64_t count) {
    const leati_affine *a = &job->affine;
    const leati_sampling *s = &job->sampling;
    const double base_x = a->x[2] + a->x[1] * (double)y, base_y = a->y[2] + a->y[1] * (double)y;
    float *dst = job->dst + (y * job->dst_width + x) * job->channels;
    for (int64_t i = x; i < x + count; ++i, dst += job->channels) {
        double px = bounded(base_x + a->x[0] * (double)i), py = bounded(base_y + a->y[0] * (double)i);
        if (s->scipy && (!move_inside(&px, job->width, s->fill) || !move_inside(&py, job->height, s->fill)))
            for (int64_t c = 0; c < job->channels; ++c) dst[c] = s->value;
        else if (s->order == 0)
            sample_nearest(job, px, py, dst);
        else
            sample_linear(job, px, py, dst);
    }
}

void leati_sample_at(const leati_sample_job *job, double x, double y, float *dst) {
    if (job->sampling.order == 0)
        sample_nearest(job, bounded(x), bounded(y), dst);
    else
        sample_linear(job, bounded(x), bounded(y), dst);
}

void leati_sample_plain(const leati_sample_job *job) {
    for (int64_t y = 0; y < job->dst_height; ++y) leati_sample_span(job, y, 0, job->dst_width);
}

leati_sample_kernel *leati_sample_choose(void) {
#if defined(__x86_64__)
    const leati_cpu_isa isa = leati_cpu_best_isa();
    if (isa == LEATI_CPU_AVX512) return leati_sample_avx512;
    if (isa == LEATI_CPU_AVX2) return leati_sample_avx2;
#endif
    return leati_sample_plain;
}

void leati_sample_round(unsigned char *dst, const float *values, int64_t count) {
    int64_t i = 0;
#if defined(__x86_64__)
    if (leati_cpu_best_isa() >= LEATI_CPU_AVX2) i = leati_sample_round_avx2(dst, values, count);
#endif
    for (; i < count; ++i) {
        const float value = values[i] + 0.5f;
        dst[i] = (unsigned char)(int)(value < 0 ? 0 : value > 255 ? 255 : value);
    }
}
