/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over the rows of a matrix, for each channel (columns.h).  The order of the additions is fixed.  If the rows are
 * cut into parts, the block that finishes last adds the sums of the parts, in an order that does not depend on which
 * block that is. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_COLUMNS_CUH
#define LEATI_BACKENDS_CUDA_KERNELS_COLUMNS_CUH

#include "backends/cuda/kernels/columns.h"
#include "backends/cuda/kernels/tensor.cuh"

/* The place of a thread: its first channel, and its rows. */
struct leati_column_place {
    int64_t matrix, channel, first, last, step;
    int32_t block, column, row; /* group of channels, and place in the block */
    bool active;                /* false: the channel does not exist */
};

template <int V>
static __device__ __forceinline__ leati_column_place leati_column_place_of(const leati_cuda_columns &k) {
    leati_column_place p;
    p.matrix = blockIdx.x / (unsigned)k.blocks;
    p.block = (int)(blockIdx.x % (unsigned)k.blocks);
    p.column = (int)threadIdx.x % k.wide;
    p.row = (int)threadIdx.x / k.wide;
    p.channel = ((int64_t)p.block * k.wide + p.column) * V;
    p.step = (int)blockDim.x / k.wide;
    p.first = blockIdx.y * k.part_rows + p.row;
    p.last = (blockIdx.y + 1) * k.part_rows < k.rows ? (blockIdx.y + 1) * k.part_rows : k.rows;
    p.active = p.channel < k.channels;
    return p;
}

/* Returns true in the block that is the last of `count` to call it.  All blocks see what the others wrote before. */
static __device__ bool leati_is_last(unsigned *finished, unsigned count) {
    LEATI_SHARED(unsigned, before, 1);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        before[0] = atomicAdd(finished, 1u);
        if (before[0] == count - 1) *finished = 0;
    }
    __syncthreads();
    __threadfence();
    return before[0] == count - 1;
}

/* Adds what the threads of a block hold for the same channels.  Thread t below wide * V gets the totals of channel t of
 * the block's group.  `shared` has room for V numbers of each thread, and Sums::count of each channel. */
template <int V, class Sums>
static __device__ void leati_block_columns(const leati_cuda_columns &k, const Sums &sums, double *shared,
                                           double *total) {
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, threads = (int)blockDim.x;
    int channels = k.wide * V, t = (int)threadIdx.x;
    double *results = shared + V * threads;
    for (int s = 0; s < Sums::count; s++) {
        for (int v = 0; v < V; v++) shared[v * threads + t] = sums.total(s, v);
        __syncthreads();
        for (int v = warp; v < V; v += threads / 32) {
            double x = shared[v * threads + lane];
            LEATI_UNROLL(8)
            for (int i = lane + 32; i < threads; i += 32) x = Sums::combine(x, shared[v * threads + i]);
            for (int apart = k.wide; apart < 32; apart *= 2)
                x = Sums::combine(x, __shfl_xor_sync(LEATI_ALL_LANES, x, apart));
            if (lane < k.wide) results[s * channels + lane * V + v] = x;
        }
        __syncthreads();
    }
    for (int s = 0; s < Sums::count && t < channels; s++) total[s] = results[s * channels + t];
    __syncthreads();
}

/* Adds the sums of all parts: several threads for each channel, and then one.  A thread reads several parts at once. */
template <int V, class Sums>
static __device__ void leati_part_columns(const leati_cuda_columns &k, const leati_column_place &p,
                                          double *shared, double *total) {
    const int batch = 16 / Sums::count;
    int channels = k.wide * V, t = (int)threadIdx.x, helpers = (int)blockDim.x / channels;
    int64_t channel = (int64_t)p.block * channels + t % channels;
    bool helps = channel < k.channels && t < helpers * channels;
    double x[Sums::count];
    for (int s = 0; s < Sums::count; s++) x[s] = Sums::nothing();
    for (int part = t / channels; helps && part < k.parts; part += batch * helpers) {
        double read[Sums::count][batch];
        for (int s = 0; s < Sums::count; s++)
            for (int b = 0; b < batch; b++) {
                int64_t from = part + b * helpers < k.parts ? part + b * helpers : k.parts - 1;
                const volatile double *sums = k.partial + (p.matrix * Sums::count + s) * k.parts * k.channels;
                read[s][b] = sums[from * k.channels + channel];
            }
        for (int s = 0; s < Sums::count; s++)
            for (int b = 0; b < batch; b++)
                if (part + b * helpers < k.parts) x[s] = Sums::combine(x[s], read[s][b]);
    }
    for (int s = 0; s < Sums::count && t < helpers * channels; s++) shared[s * helpers * channels + t] = x[s];
    __syncthreads();
    for (int s = 0; s < Sums::count && t < channels; s++) {
        double x = shared[s * helpers * channels + t];
        for (int h = 1; h < helpers; h++) x = Sums::combine(x, shared[(s * helpers + h) * channels + t]);
        total[s] = x;
    }
    __syncthreads();
}

/* Returns true in the block of a group of channels that has the totals: thread t below wide * V has those of the
 * group's channel t. */
template <int V, class Sums>
static __device__ bool leati_total_columns(const leati_cuda_columns &k, const leati_column_place &p,
                                           const Sums &sums, double *shared, double *total) {
    leati_block_columns<V>(k, sums, shared, total);
    if (k.parts == 1) return true;
    int64_t channel = (int64_t)p.block * k.wide * V + threadIdx.x;
    if ((int)threadIdx.x < k.wide * V && channel < k.channels)
        for (int s = 0; s < Sums::count; s++)
            k.partial[((p.matrix * Sums::count + s) * k.parts + blockIdx.y) * k.channels + channel] =
                total[s];
    if (!leati_is_last(k.finished + blockIdx.x, (unsigned)k.parts)) return false;
    leati_part_columns<V, Sums>(k, p, shared, total);
    return true;
}

#endif
