/* SPDX-License-Identifier: Apache-2.0 */
/* Resampling and its gradient, as engine/op_semantics/resample.h defines it.  A thread serves V neighbouring channels
 * of one pixel. */
#include "backends/cuda/kernels/resample.h"

#include "backends/cuda/kernels/window.cuh"

/* The output is in[low] * (1 - share) + in[high] * share. */
struct leati_point {
    int32_t low, high;
    float share;
};

static __device__ __forceinline__ leati_point point_of(const leati_cuda_resample_args &a, int axis,
                                                       int32_t o) {
    int32_t factor = a.factor[axis], low = o / factor;
    if (!a.linear[axis]) return {low, low, 0.0f};
    float share = (float)(o % factor) / (float)factor;
    if (a.halved) {
        int32_t at = 2 * o + 1 - factor, whole = 2 * factor;
        if (at < 0) return {0, 0, 0.0f};
        low = at / whole;
        share = (float)(at % whole) / (float)whole;
    }
    return {low, low + 1 < a.in[axis] ? low + 1 : low, share};
}

template <typename T, int V>
static __device__ __forceinline__ void resample(const leati_cuda_resample_args &a) {
    int32_t chunks = a.channels / V;
    LEATI_FOR_EACH(i, a.pixels * chunks) {
        int32_t chunk, o[3];
        int64_t n = leati_divided(i, chunks, &chunk);
        LEATI_UNROLL for (int d = 2; d >= 0; --d) n = leati_divided(n, a.in[d] * a.factor[d], &o[d]);
        leati_point p0 = point_of(a, 0, o[0]), p1 = point_of(a, 1, o[1]), p2 = point_of(a, 2, o[2]);
        float sum[V];
        LEATI_UNROLL for (int v = 0; v < V; ++v) sum[v] = 0;
        for (int corner = 0; corner < 8; ++corner) {
            bool h0 = corner & 1, h1 = corner & 2, h2 = corner & 4;
            float share = (h2 ? p2.share : 1 - p2.share) * (h1 ? p1.share : 1 - p1.share) *
                          (h0 ? p0.share : 1 - p0.share);
            if (share == 0) continue;
            int64_t from = (n * a.in[0] + (h0 ? p0.high : p0.low)) * a.in[1] + (h1 ? p1.high : p1.low);
            from = from * a.in[2] + (h2 ? p2.high : p2.low);
            float x[V];
            leati_access<T, V>::load(a.from, from * a.channels + chunk * V, x);
            LEATI_UNROLL for (int v = 0; v < V; ++v) sum[v] += share * x[v];
        }
        leati_access<T, V>::store(a.to, i * V, sum);
    }
}

LEATI_KERNEL(leati_cuda_resample_f32, leati_cuda_resample_args) {
    resample<float, 4>(a);
}
LEATI_KERNEL(leati_cuda_resample_bf16, leati_cuda_resample_args) {
    resample<leati_bf16, 8>(a);
}
LEATI_KERNEL(leati_cuda_resample_any, leati_cuda_resample_args) {
    resample<leati_mixed, 1>(a);
}

/* Returns the factor with which source element i enters output o. */
static __device__ __forceinline__ float share_of(const leati_cuda_resample_args &a, int axis, int32_t i,
                                                 int32_t o) {
    leati_point p = point_of(a, axis, o);
    return (p.low == i ? 1 - p.share : 0.0f) + (p.high == i ? p.share : 0.0f);
}

/* The outputs that may depend on source element i. */
struct leati_reach {
    int32_t first, end;
};

static __device__ __forceinline__ leati_reach reach_of(const leati_cuda_resample_args &a, int axis,
                                                       int32_t i) {
    bool linear = a.linear[axis];
    return {(linear && i > 0 ? i - 1 : i) * a.factor[axis],
            (linear && a.halved && i + 1 < a.in[axis] ? i + 2 : i + 1) * a.factor[axis]};
}

/* from: diff_dst; to: diff_src. */
template <typename T, int V>
static __device__ __forceinline__ void gather(const leati_cuda_resample_args &a) {
    int32_t chunks = a.channels / V;
    LEATI_FOR_EACH(i, a.pixels * chunks) {
        int32_t chunk, at[3];
        int64_t n = leati_divided(i, chunks, &chunk);
        LEATI_UNROLL for (int d = 2; d >= 0; --d) n = leati_divided(n, a.in[d], &at[d]);
        leati_reach r0 = reach_of(a, 0, at[0]), r1 = reach_of(a, 1, at[1]), r2 = reach_of(a, 2, at[2]);
        float sum[V];
        LEATI_UNROLL for (int v = 0; v < V; ++v) sum[v] = 0;
        for (int32_t o0 = r0.first; o0 < r0.end; ++o0) {
            float s0 = share_of(a, 0, at[0], o0);
            if (s0 == 0) continue;
            for (int32_t o1 = r1.first; o1 < r1.end; ++o1) {
                float s1 = s0 * share_of(a, 1, at[1], o1);
                if (s1 == 0) continue;
                for (int32_t o2 = r2.first; o2 < r2.end; ++o2) {
                    float share = s1 * share_of(a, 2, at[2], o2), y[V];
                    if (share == 0) continue;
                    int64_t from = (n * a.in[0] * a.factor[0] + o0) * (a.in[1] * a.factor[1]) + o1;
                    from = from * (a.in[2] * a.factor[2]) + o2;
                    leati_access<T, V>::load(a.from, from * a.channels + chunk * V, y);
                    LEATI_UNROLL for (int v = 0; v < V; ++v) sum[v] += share * y[v];
                }
            }
        }
        leati_access<T, V>::store(a.to, i * V, sum);
    }
}

LEATI_KERNEL(leati_cuda_resample_bwd_f32, leati_cuda_resample_args) {
    gather<float, 4>(a);
}
LEATI_KERNEL(leati_cuda_resample_bwd_bf16, leati_cuda_resample_args) {
    gather<leati_bf16, 8>(a);
}
LEATI_KERNEL(leati_cuda_resample_bwd_any, leati_cuda_resample_args) {
    gather<leati_mixed, 1>(a);
}
