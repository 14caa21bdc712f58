/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling.  A thread computes V neighbouring channels of one pixel.  Where several elements are the maximum, the first
 * is meant. */
#include "backends/cuda/kernels/pooling.h"

#include "backends/cuda/kernels/window.cuh"

/* The part of a window that lies inside the source, along one axis. */
struct leati_range {
    int32_t first, end; /* taps */
};

static __device__ __forceinline__ leati_range inside_of(const leati_cuda_window_shape &s, int axis,
                                                        int32_t at) {
    leati_range r = {at < 0 ? -at : 0, s.kernel[axis]};
    if (at + r.end > s.in[axis]) r.end = s.in[axis] - at;
    return r;
}

static __device__ __forceinline__ int32_t length_of(leati_range r) {
    return r.end - r.first;
}

template <typename T, int V, bool average>
static __device__ __forceinline__ void pool(const leati_cuda_pooling_args &a) {
    const leati_cuda_window_shape &s = a.shape;
    int32_t chunks = s.channels / V;
    LEATI_FOR_EACH(i, s.out_pixels * chunks) {
        int32_t chunk, n, at[3];
        int64_t pixel = leati_divided(i, chunks, &chunk), to = pixel * s.channels + chunk * V;
        leati_window_of(s, pixel, &n, at);
        leati_range r0 = inside_of(s, 0, at[0]), r1 = inside_of(s, 1, at[1]), r2 = inside_of(s, 2, at[2]);
        float best[V];
        uint8_t tap[V];
        LEATI_UNROLL for (int v = 0; v < V; ++v) {
            best[v] = 0;
            tap[v] = 0;
        }
        const int batch = 3; /* loads that are under way together */
        bool first = true;
        for (int32_t k0 = r0.first; k0 < r0.end; ++k0)
            for (int32_t k1 = r1.first; k1 < r1.end; ++k1)
                for (int32_t k2 = r2.first; k2 < r2.end; k2 += batch) {
                    int64_t from =
                        (((int64_t)n * s.in[0] + at[0] + k0) * s.in[1] + at[1] + k1) * s.in[2] + at[2] + k2;
                    float x[batch][V];
                    LEATI_UNROLL for (int b = 0; b < batch; ++b) if (k2 + b < r2.end)
                        leati_access<T, V>::load(a.src, (from + b) * s.channels + chunk * V, x[b]);
                    LEATI_UNROLL for (int b = 0; b < batch; ++b) {
                        if (k2 + b >= r2.end) continue;
                        uint8_t here = (uint8_t)((k0 * s.kernel[1] + k1) * s.kernel[2] + k2 + b);
                        LEATI_UNROLL for (int v = 0; v < V; ++v) {
                            if (average) {
                                best[v] += x[b][v];
                            } else if (first || x[b][v] > best[v]) {
                                best[v] = x[b][v];
                                tap[v] = here;
                            }
                        }
                        first = false;
                    }
                }
        float count = (float)(length_of(r0) * length_of(r1) * length_of(r2));
        LEATI_UNROLL for (int v = 0; v < V; ++v) if (average) best[v] /= count;
        if (a.dst.data) leati_access<T, V>::store(a.dst, to, best);
        if (!average && a.tap) {
            leati_vector<uint8_t, V> packed;
            LEATI_UNROLL for (int v = 0; v < V; ++v) packed.at[v] = tap[v];
            *reinterpret_cast<leati_vector<uint8_t, V> *>(a.tap + to) = packed;
        }
    }
}

template <typename T, int V>
static __device__ __forceinline__ void pool_either(const leati_cuda_pooling_args &a) {
    if (a.average)
        pool<T, V, true>(a);
    else
        pool<T, V, false>(a);
}

LEATI_KERNEL(leati_cuda_pooling_f32, leati_cuda_pooling_args) {
    pool_either<float, 4>(a);
}
LEATI_KERNEL(leati_cuda_pooling_bf16, leati_cuda_pooling_args) {
    pool_either<leati_bf16, 8>(a);
}
LEATI_KERNEL(leati_cuda_pooling_any, leati_cuda_pooling_args) {
    pool_either<leati_mixed, 1>(a);
}

/* ---- Backward: each source pixel adds up what the windows over it give it ---- */

/* The outputs whose windows contain source position i, along one axis. */
static __device__ __forceinline__ leati_range outputs_over(const leati_cuda_window_shape &s, int axis,
                                                           int32_t i) {
    int32_t at = i + s.pad[axis], before = at - s.kernel[axis];
    leati_range r = {before < 0 ? 0 : before / s.stride[axis] + 1, at / s.stride[axis] + 1};
    if (r.end > s.out[axis]) r.end = s.out[axis];
    return r;
}

/* Sets taken[v] to true if tap `tap` is the first maximum of the window at `at` in sample n and channel c + v. */
template <typename T, int V>
static __device__ __forceinline__ void find_maximum(const leati_cuda_pooling_bwd_args &a, int32_t n,
                                                    const int32_t *at, int32_t c, int32_t tap, bool *taken) {
    const leati_cuda_window_shape &s = a.shape;
    leati_range r0 = inside_of(s, 0, at[0]), r1 = inside_of(s, 1, at[1]), r2 = inside_of(s, 2, at[2]);
    float best[V];
    bool first = true;
    for (int32_t k0 = r0.first; k0 < r0.end; ++k0)
        for (int32_t k1 = r1.first; k1 < r1.end; ++k1)
            for (int32_t k2 = r2.first; k2 < r2.end; ++k2) {
                int64_t from =
                    (((int64_t)n * s.in[0] + at[0] + k0) * s.in[1] + at[1] + k1) * s.in[2] + at[2] + k2;
                bool here = (k0 * s.kernel[1] + k1) * s.kernel[2] + k2 == tap;
                float x[V];
                leati_access<T, V>::load(a.src, from * s.channels + c, x);
                LEATI_UNROLL for (int v = 0; v < V; ++v) {
                    if (!first && !(x[v] > best[v])) continue;
                    best[v] = x[v];
                    taken[v] = here;
                }
                first = false;
            }
}

template <typename T, int V>
static __device__ __forceinline__ void pool_backward(const leati_cuda_pooling_bwd_args &a) {
    const leati_cuda_window_shape &s = a.shape;
    int32_t chunks = s.channels / V;
    LEATI_FOR_EACH(i, s.in_pixels * chunks) {
        int32_t chunk, i0, i1, i2;
        int64_t pixel = leati_divided(i, chunks, &chunk), rest = leati_divided(pixel, s.in[2], &i2);
        rest = leati_divided(rest, s.in[1], &i1);
        int32_t n = (int32_t)leati_divided(rest, s.in[0], &i0), c = chunk * V;
        leati_range r0 = outputs_over(s, 0, i0), r1 = outputs_over(s, 1, i1), r2 = outputs_over(s, 2, i2);
        float sum[V];
        LEATI_UNROLL for (int v = 0; v < V; ++v) sum[v] = 0;
        for (int32_t o0 = r0.first; o0 < r0.end; ++o0)
            for (int32_t o1 = r1.first; o1 < r1.end; ++o1)
                for (int32_t o2 = r2.first; o2 < r2.end; ++o2) {
                    int32_t at[3] = {o0 * s.stride[0] - s.pad[0], o1 * s.stride[1] - s.pad[1],
                                     o2 * s.stride[2] - s.pad[2]};
                    int64_t from = (((int64_t)n * s.out[0] + o0) * s.out[1] + o1) * s.out[2] + o2;
                    from = from * s.channels + c;
                    float y[V];
                    leati_access<T, V>::load(a.diff_dst, from, y);
                    if (a.average) {
                        float share = 1.0f / (float)(length_of(inside_of(s, 0, at[0])) *
                                                     length_of(inside_of(s, 1, at[1])) *
                                                     length_of(inside_of(s, 2, at[2])));
                        LEATI_UNROLL for (int v = 0; v < V; ++v) sum[v] += y[v] * share;
                        continue;
                    }
                    int32_t tap = ((i0 - at[0]) * s.kernel[1] + i1 - at[1]) * s.kernel[2] + i2 - at[2];
                    bool taken[V];
                    if (a.tap) {
                        leati_vector<uint8_t, V> packed =
                            *reinterpret_cast<const leati_vector<uint8_t, V> *>(a.tap + from);
                        LEATI_UNROLL for (int v = 0; v < V; ++v) taken[v] = packed.at[v] == tap;
                    } else {
                        find_maximum<T, V>(a, n, at, c, tap, taken);
                    }
                    LEATI_UNROLL for (int v = 0; v < V; ++v) sum[v] += taken[v] ? y[v] : 0.0f;
                }
        leati_access<T, V>::store(a.diff_src, pixel * s.channels + c, sum);
    }
}

/* The same for images with two axes, the taps of whose maxima are known, and of whose pixels each lies in at most two
 * windows along an axis.  A block computes whole rows of pixels. */
template <typename T, int V>
static __device__ __forceinline__ void pool_backward_rows(const leati_cuda_pooling_bwd_args &a) {
    const leati_cuda_window_shape &s = a.shape;
    uint32_t chunks = (uint32_t)s.channels / V, length = (uint32_t)s.in[2] * chunks;
    for (int64_t row = blockIdx.x; row < (int64_t)s.batch * s.in[1]; row += gridDim.x) {
        int32_t i1, n = (int32_t)leati_divided(row, s.in[1], &i1);
        leati_range r1 = outputs_over(s, 1, i1);
        int64_t sample = (int64_t)n * s.out[1];
        for (uint32_t j = threadIdx.x; j < length; j += blockDim.x) {
            int32_t i2 = (int32_t)(j / chunks), c = (int32_t)(j - (uint32_t)i2 * chunks) * V;
            leati_range r2 = outputs_over(s, 2, i2);
            float y[4][V], sum[V];
            leati_vector<uint8_t, V> taps[4];
            bool is_over[4];
            LEATI_UNROLL for (int w = 0; w < 4; ++w) {
                int32_t o1 = r1.first + w / 2, o2 = r2.first + w % 2;
                is_over[w] = o1 < r1.end && o2 < r2.end;
                if (!is_over[w]) continue;
                int64_t from = ((sample + o1) * s.out[2] + o2) * s.channels + c;
                leati_access<T, V>::load(a.diff_dst, from, y[w]);
                taps[w] = *reinterpret_cast<const leati_vector<uint8_t, V> *>(a.tap + from);
            }
            LEATI_UNROLL for (int v = 0; v < V; ++v) sum[v] = 0;
            LEATI_UNROLL for (int w = 0; w < 4; ++w) {
                if (!is_over[w]) continue;
                int32_t k1 = i1 + s.pad[1] - (r1.first + w / 2) * s.stride[1];
                int32_t k2 = i2 + s.pad[2] - (r2.first + w % 2) * s.stride[2], tap = k1 * s.kernel[2] + k2;
                LEATI_UNROLL for (int v = 0; v < V; ++v) sum[v] += taps[w].at[v] == tap ? y[w][v] : 0.0f;
            }
            leati_access<T, V>::store(a.diff_src, (row * s.in[2] + i2) * s.channels + c, sum);
        }
    }
}

LEATI_KERNEL(leati_cuda_pooling_bwd_rows_f32, leati_cuda_pooling_bwd_args) {
    pool_backward_rows<float, 4>(a);
}
LEATI_KERNEL(leati_cuda_pooling_bwd_rows_bf16, leati_cuda_pooling_bwd_args) {
    pool_backward_rows<leati_bf16, 8>(a);
}
LEATI_KERNEL(leati_cuda_pooling_bwd_f32, leati_cuda_pooling_bwd_args) {
    pool_backward<float, 4>(a);
}
LEATI_KERNEL(leati_cuda_pooling_bwd_bf16, leati_cuda_pooling_bwd_args) {
    pool_backward<leati_bf16, 8>(a);
}
LEATI_KERNEL(leati_cuda_pooling_bwd_any, leati_cuda_pooling_bwd_args) {
    pool_backward<leati_mixed, 1>(a);
}
