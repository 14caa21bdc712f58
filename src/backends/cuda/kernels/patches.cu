/* SPDX-License-Identifier: Apache-2.0 */
/* Patches of images, and their gradient.  A thread serves V neighbouring channels. */
#include "backends/cuda/kernels/patches.h"

#include "backends/cuda/kernels/window.cuh"

template <typename T, int V> static __device__ __forceinline__ void cut(const leati_cuda_patches_args &a) {
    const leati_cuda_window_shape &s = a.shape;
    int32_t chunks = s.channels / V;
    LEATI_FOR_EACH(i, s.out_pixels * s.taps * chunks) {
        int32_t chunk, tap, n, o[3], k[3], at[3];
        int64_t rest = leati_divided(leati_divided(i, chunks, &chunk), s.taps, &tap);
        rest = leati_divided(rest, s.batch, &n);
        k[2] = tap % s.kernel[2];
        k[1] = tap / s.kernel[2] % s.kernel[1];
        k[0] = tap / s.kernel[2] / s.kernel[1];
        rest = leati_divided(rest, s.out[2], &o[2]);
        o[0] = (int32_t)leati_divided(rest, s.out[1], &o[1]);
        LEATI_UNROLL for (int d = 0; d < 3; ++d) at[d] = o[d] * s.stride[d] - s.pad[d];
        int64_t from = leati_source_of(s, n, at, k[0], k[1], k[2]);
        float x[V];
        LEATI_UNROLL for (int v = 0; v < V; ++v) x[v] = 0;
        if (from >= 0) leati_access<T, V>::load(a.image, from * s.channels + chunk * V, x);
        leati_access<T, V>::store(a.patches, i * V, x);
    }
}

LEATI_KERNEL(leati_cuda_patches_f32, leati_cuda_patches_args) {
    cut<float, 4>(a);
}
LEATI_KERNEL(leati_cuda_patches_bf16, leati_cuda_patches_args) {
    cut<leati_bf16, 8>(a);
}
LEATI_KERNEL(leati_cuda_patches_any, leati_cuda_patches_args) {
    cut<leati_mixed, 1>(a);
}

/* Each pixel adds up its places in all patches. */
template <typename T, int V> static __device__ __forceinline__ void gather(const leati_cuda_patches_args &a) {
    const leati_cuda_window_shape &s = a.shape;
    int32_t chunks = s.channels / V;
    LEATI_FOR_EACH(i, s.in_pixels * chunks) {
        int32_t chunk, i0, i1, i2, tap = 0;
        int64_t pixel = leati_divided(i, chunks, &chunk), rest = leati_divided(pixel, s.in[2], &i2);
        rest = leati_divided(rest, s.in[1], &i1);
        int32_t n = (int32_t)leati_divided(rest, s.in[0], &i0);
        float sum[V];
        LEATI_UNROLL for (int v = 0; v < V; ++v) sum[v] = 0;
        for (int32_t k0 = 0; k0 < s.kernel[0]; ++k0)
            for (int32_t k1 = 0; k1 < s.kernel[1]; ++k1)
                for (int32_t k2 = 0; k2 < s.kernel[2]; ++k2, ++tap) {
                    int32_t o0 = leati_output_of(s, 0, i0, k0), o1 = leati_output_of(s, 1, i1, k1);
                    int32_t o2 = leati_output_of(s, 2, i2, k2);
                    if (o0 < 0 || o1 < 0 || o2 < 0) continue;
                    int64_t window = ((int64_t)o0 * s.out[1] + o1) * s.out[2] + o2;
                    float y[V];
                    leati_access<T, V>::load(a.patches,
                                             ((window * s.batch + n) * s.taps + tap) * s.channels + chunk * V,
                                             y);
                    LEATI_UNROLL for (int v = 0; v < V; ++v) sum[v] += y[v];
                }
        leati_access<T, V>::store(a.image, pixel * s.channels + chunk * V, sum);
    }
}

LEATI_KERNEL(leati_cuda_patches_bwd_f32, leati_cuda_patches_args) {
    gather<float, 4>(a);
}
LEATI_KERNEL(leati_cuda_patches_bwd_bf16, leati_cuda_patches_args) {
    gather<leati_bf16, 8>(a);
}
LEATI_KERNEL(leati_cuda_patches_bwd_any, leati_cuda_patches_args) {
    gather<leati_mixed, 1>(a);
}
