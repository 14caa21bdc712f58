/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products for which cuBLASLt is slow: small ones, where a launch costs more than the sum, and those with a few
 * rows or columns, which read one matrix once.  Bias, addend and function are part of the launch. */
#include "backends/cuda/kernels/matmul_end.cuh"
#include "backends/cuda/kernels/matmul_tile.cuh"

/* ---- Tiles (matmul_tile.cuh) ---- */

#define TILE_KERNEL(tile, threads, blocks, name_a, name_b, A, B)                                             \
    LEATI_KERNEL_BOUNDED(leati_cuda_matmul_tile_##tile##_##name_a##_##name_b, leati_cuda_matmul_tile,        \
                         threads, blocks) {                                                                  \
        tile_product<tile_##tile, A, B>(a);                                                                  \
    }
#define TILE_KERNELS(tile, threads, blocks)                                                                  \
    TILE_KERNEL(tile, threads, blocks, f32, f32, float, float)                                               \
    TILE_KERNEL(tile, threads, blocks, f32, bf16, float, leati_bf16)                                         \
    TILE_KERNEL(tile, threads, blocks, bf16, f32, leati_bf16, float)                                         \
    TILE_KERNEL(tile, threads, blocks, bf16, bf16, leati_bf16, leati_bf16)
TILE_KERNELS(16, LEATI_CUDA_MATMUL_THREADS_16, 1)
TILE_KERNELS(32, LEATI_CUDA_MATMUL_THREADS, 2)
TILE_KERNELS(64, LEATI_CUDA_MATMUL_THREADS, 1)

/* ---- A wide matrix and a few vectors ---- */

/* Loads 4 elements of one of the few vectors, from k on; 0 after the end. */
static __device__ __forceinline__ float4 load_few(const leati_cuda_matmul_few &a, int64_t at, int count) {
    if (a.few_vectorized)
        return a.few_bf16 ? load_4<true>(static_cast<const leati_bf16 *>(a.few) + at, 4)
                          : load_4<true>(static_cast<const float *>(a.few) + at, 4);
    const int64_t step = a.few_k;
    return make_float4(end_load(a.few, at, a.few_bf16),
                       count > 1 ? end_load(a.few, at + step, a.few_bf16) : 0.0f,
                       count > 2 ? end_load(a.few, at + 2 * step, a.few_bf16) : 0.0f,
                       count > 3 ? end_load(a.few, at + 3 * step, a.few_bf16) : 0.0f);
}

/* Stores the result of row r and vector f of product `matrix`. */
static __device__ __forceinline__ void end_few(const leati_cuda_matmul_few &a, int64_t matrix, int r, int f,
                                               float x) {
    if (a.rows_are_rows)
        end_element(a.end, matrix * a.rows + r, f, x);
    else
        end_element(a.end, matrix * a.few_count + f, r, x);
}

/* The number of loads of the wide matrix that a thread starts before it uses the first one. */
enum { DEEP = 4 };

/* Adds the products of one row of the wide matrix with the few vectors; the warp's lanes share the row. */
template <typename T, int FEW, bool VECTORIZED>
static __device__ __forceinline__ void add_row(const leati_cuda_matmul_few &a, const T *wide, int64_t few,
                                               float (&sum)[FEW]) {
    for (int k0 = 4 * ((int)threadIdx.x % 32); k0 < a.k; k0 += 128 * DEEP) {
        float4 w[DEEP];
#pragma unroll
        for (int d = 0; d < DEEP; ++d) {
            const int k = k0 + 128 * d;
            w[d] = k < a.k ? load_4<VECTORIZED>(wide + k, a.k - k) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        }
#pragma unroll
        for (int d = 0; d < DEEP; ++d) {
            const int k = k0 + 128 * d;
            if (k >= a.k) break;
#pragma unroll
            for (int f = 0; f < FEW; ++f) {
                if (f >= a.few_count) break;
                const float4 y = load_few(a, few + (int64_t)f * a.few_vector + (int64_t)k * a.few_k, a.k - k);
                sum[f] += w[d].x * y.x + w[d].y * y.y + (w[d].z * y.z + w[d].w * y.w);
            }
        }
    }
}

/* The wide matrix is contiguous along k: a warp computes one row. */
template <typename T, int FEW>
static __device__ __forceinline__ void few_rows(const leati_cuda_matmul_few &a) {
    const int lane = threadIdx.x % 32, matrix = (int)(blockIdx.x / (unsigned)a.blocks);
    const int r =
        (int)(blockIdx.x % (unsigned)a.blocks) * (LEATI_CUDA_MATMUL_THREADS / 32) + (int)threadIdx.x / 32;
    if (r >= a.rows) return;
    const T *wide = static_cast<const T *>(a.wide) + ((int64_t)matrix * a.rows + r) * a.k;
    const int64_t few = (int64_t)matrix * a.few_count * a.k;
    float sum[FEW] = {};
    if (a.vectorized)
        add_row<T, FEW, true>(a, wide, few, sum);
    else
        add_row<T, FEW, false>(a, wide, few, sum);
#pragma unroll
    for (int f = 0; f < FEW; ++f) {
        const float x = leati_warp_sum(sum[f]);
        if (lane == f && f < a.few_count) end_few(a, matrix, r, f, x);
    }
}

/* Adds the products of 4 columns of the memory of the wide matrix, of which `count` exist, with the few vectors, for
 * every `step`-th k from `first` on. */
template <typename T, int FEW, bool VECTORIZED>
static __device__ __forceinline__ void add_columns(const leati_cuda_matmul_few &a, const T *wide, int64_t few,
                                                   int count, int first, int step, float4 (&sum)[FEW]) {
    for (int k0 = first; k0 < a.k; k0 += step * DEEP) {
        float4 w[DEEP];
#pragma unroll
        for (int d = 0; d < DEEP; ++d) {
            const int k = k0 + step * d;
            w[d] = k < a.k ? load_4<VECTORIZED>(wide + (int64_t)k * a.rows, count)
                           : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        }
#pragma unroll
        for (int d = 0; d < DEEP; ++d) {
            const int k = k0 + step * d;
            if (k >= a.k) break;
#pragma unroll
            for (int f = 0; f < FEW; ++f) {
                if (f >= a.few_count) break;
                const float y =
                    end_load(a.few, few + (int64_t)f * a.few_vector + (int64_t)k * a.few_k, a.few_bf16);
                sum[f].x += w[d].x * y;
                sum[f].y += w[d].y * y;
                sum[f].z += w[d].z * y;
                sum[f].w += w[d].w * y;
            }
        }
    }
}

/* Adds the sums of the threads of a warp that have the same columns, and leaves them in shared memory:
 * (warps, FEW, 4 * lanes). */
template <int FEW>
static __device__ __forceinline__ void keep_columns(int lanes, float4 (&sum)[FEW], float *sums) {
#pragma unroll
    for (int f = 0; f < FEW; ++f)
        for (int other = lanes; other < 32; other *= 2) {
            sum[f].x += __shfl_xor_sync(LEATI_ALL_LANES, sum[f].x, other);
            sum[f].y += __shfl_xor_sync(LEATI_ALL_LANES, sum[f].y, other);
            sum[f].z += __shfl_xor_sync(LEATI_ALL_LANES, sum[f].z, other);
            sum[f].w += __shfl_xor_sync(LEATI_ALL_LANES, sum[f].w, other);
        }
    if ((int)threadIdx.x % 32 >= lanes) return;
#pragma unroll
    for (int f = 0; f < FEW; ++f) {
        float *to = sums + (((int)threadIdx.x / 32 * FEW + f) * lanes + (int)threadIdx.x % lanes) * 4;
        to[0] = sum[f].x;
        to[1] = sum[f].y;
        to[2] = sum[f].z;
        to[3] = sum[f].w;
    }
}

/* The wide matrix is contiguous along its rows r: `lanes` threads beside each other read 4 * lanes of them, and the
 * other threads of the block read other k. */
template <typename T, int FEW>
static __device__ __forceinline__ void few_columns(const leati_cuda_matmul_few &a) {
    enum { WARPS = LEATI_CUDA_MATMUL_THREADS / 32, MOST_LANES = 8 };
    LEATI_SHARED(float, sums, WARPS *FEW *MOST_LANES * 4);
    const int lanes = a.lanes, width = 4 * lanes, matrix = (int)(blockIdx.x / (unsigned)a.blocks);
    const int first = (int)(blockIdx.x % (unsigned)a.blocks) * width,
              r = first + 4 * ((int)threadIdx.x % lanes);
    const T *wide = static_cast<const T *>(a.wide) + (int64_t)matrix * a.rows * a.k + r;
    const int64_t few = (int64_t)matrix * a.few_count * a.k;
    const int k0 = (int)threadIdx.x / lanes, step = LEATI_CUDA_MATMUL_THREADS / lanes;
    float4 sum[FEW] = {};
    if (r < a.rows && a.vectorized)
        add_columns<T, FEW, true>(a, wide, few, 4, k0, step, sum);
    else if (r < a.rows)
        add_columns<T, FEW, false>(a, wide, few, a.rows - r, k0, step, sum);
    keep_columns<FEW>(lanes, sum, sums);
    __syncthreads();
    const int f = (int)threadIdx.x / width, column = (int)threadIdx.x % width;
    if (f >= a.few_count || first + column >= a.rows) return;
    float x = 0.0f;
    for (int w = 0; w < WARPS; ++w) x += sums[(w * FEW + f) * width + column];
    end_few(a, matrix, first + column, f, x);
}

#define FEW_KERNELS(few)                                                                                     \
    LEATI_KERNEL(leati_cuda_matmul_rows_##few##_f32, leati_cuda_matmul_few) {                                \
        few_rows<float, few>(a);                                                                             \
    }                                                                                                        \
    LEATI_KERNEL(leati_cuda_matmul_rows_##few##_bf16, leati_cuda_matmul_few) {                               \
        few_rows<leati_bf16, few>(a);                                                                        \
    }                                                                                                        \
    LEATI_KERNEL(leati_cuda_matmul_columns_##few##_f32, leati_cuda_matmul_few) {                             \
        few_columns<float, few>(a);                                                                          \
    }                                                                                                        \
    LEATI_KERNEL(leati_cuda_matmul_columns_##few##_bf16, leati_cuda_matmul_few) {                            \
        few_columns<leati_bf16, few>(a);                                                                     \
    }
FEW_KERNELS(1)
FEW_KERNELS(2)
FEW_KERNELS(4)
FEW_KERNELS(8)

/* ---- Operands for cuBLASLt ---- */

LEATI_KERNEL(leati_cuda_matmul_narrow_all, leati_cuda_matmul_narrow) {
    for (int t = 0; t < LEATI_CUDA_MATMUL_NARROWED; ++t) {
        const float *from = a.from[t];
        leati_bf16 *to = static_cast<leati_bf16 *>(a.to[t]);
        const bool vectorized = (uintptr_t)from % 16 == 0 && (uintptr_t)to % 8 == 0;
        const int64_t fours = vectorized ? a.count[t] / 4 : 0;
        LEATI_FOR_EACH(i, fours) {
            const float4 x = reinterpret_cast<const float4 *>(from)[i];
            uint2 packed;
            packed.x = (unsigned)leati_narrow(x.x).bits | (unsigned)leati_narrow(x.y).bits << 16;
            packed.y = (unsigned)leati_narrow(x.z).bits | (unsigned)leati_narrow(x.w).bits << 16;
            reinterpret_cast<uint2 *>(to)[i] = packed;
        }
        LEATI_FOR_EACH(i, a.count[t] - 4 * fours) leati_store(to + 4 * fours + i, from[4 * fours + i]);
    }
}
