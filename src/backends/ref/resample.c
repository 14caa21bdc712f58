/* SPDX-License-Identifier: Apache-2.0 */
/* RESAMPLE and RESAMPLE_BWD in plain C: every output element is interpolated from two source elements along each
 * axis. Room: backends/ref. */
#include "engine/op_semantics/resample.h"

#include "backends/ref/ref.h"

typedef struct volume {
    leati_resample_axis axes[3]; /* axes that the op does not have are one element long */
    int64_t batch, channels;
} volume;

static volume volume_of(const leati_attrs *attrs, const leati_desc *src) {
    int spatial = attrs->resample.spatial;
    volume v = {.batch = src->shape[0], .channels = src->shape[spatial + 1]};
    for (int i = 0; i < 3; ++i) v.axes[i] = (leati_resample_axis){.in = 1, .factor = 1};
    for (int i = 0; i < spatial; ++i)
        v.axes[3 - spatial + i] = (leati_resample_axis){attrs->resample.linear, attrs->resample.halved,
                                                        src->shape[1 + i], attrs->resample.factor[i]};
    return v;
}

/* Returns the source pixel of a corner (0 to 7, one bit per axis) of an output pixel; *share is its weight in the
 * interpolation. */
static int64_t corner_of(const volume *v, int64_t pixel, int corner, float *share) {
    int64_t at[3], rest = pixel;
    *share = 1;
    for (int i = 2; i >= 0; --i) {
        int64_t out = v->axes[i].in * v->axes[i].factor;
        leati_resample_point p = leati_resample_at(&v->axes[i], rest % out);
        bool high = corner >> i & 1;
        at[i] = high ? p.high : p.low;
        *share *= high ? p.share : 1 - p.share;
        rest /= out;
    }
    return ((rest * v->axes[0].in + at[0]) * v->axes[1].in + at[1]) * v->axes[2].in + at[2];
}

static int64_t out_pixels(const volume *v) {
    int64_t pixels = v->batch;
    for (int i = 0; i < 3; ++i) pixels *= v->axes[i].in * v->axes[i].factor;
    return pixels;
}

static leat_status run_resample(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                leat_error *err) {
    const leati_ref *ref = leati_ref_of(kernel);
    volume v = volume_of(&ref->attrs, leati_ref_in(ref, 0));
    const float *src = args[0];
    float *dst = args[1], share;
    (void)run, (void)err;
    for (int64_t pixel = 0; pixel < out_pixels(&v); ++pixel)
        for (int corner = 0; corner < 8; ++corner) {
            int64_t from = corner_of(&v, pixel, corner, &share);
            for (int64_t c = 0; c < v.channels; ++c) {
                float part = share == 0 ? 0 : share * src[from * v.channels + c];
                float *to = &dst[pixel * v.channels + c];
                *to = corner == 0 ? part : *to + part;
            }
        }
    return LEAT_OK;
}

LEATI_REF_ACCEPTS(resample, run_resample)

static leat_status run_resample_bwd(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                    leat_error *err) {
    const leati_ref *ref = leati_ref_of(kernel);
    volume v = volume_of(&ref->attrs, leati_ref_out(ref, 0));
    const float *diff_dst = args[0];
    float *diff_src = args[1], share;
    (void)run, (void)err;
    for (int64_t i = 0; i < leati_desc_count(leati_ref_out(ref, 0)); ++i) diff_src[i] = 0;
    for (int64_t pixel = 0; pixel < out_pixels(&v); ++pixel)
        for (int corner = 0; corner < 8; ++corner) {
            int64_t to = corner_of(&v, pixel, corner, &share);
            for (int64_t c = 0; share != 0 && c < v.channels; ++c)
                diff_src[to * v.channels + c] += share * diff_dst[pixel * v.channels + c];
        }
    return LEAT_OK;
}

LEATI_REF_ACCEPTS(resample_bwd, run_resample_bwd)
