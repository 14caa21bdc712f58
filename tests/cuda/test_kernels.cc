/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for the tests of the simulated GPU.  The comment of a kernel with a mistake says which one. */
#include "cuda/test_kernels.h"

#include "backends/cuda/kernels/common.cuh"

/* to[i] = scale * from[i] */
LEATI_KERNEL(test_scale, test_args) {
    LEATI_FOR_EACH(i, a.count) a.to[i] = a.scale * a.from[i];
}

/* to[i] = step */
LEATI_KERNEL(test_step, test_args) {
    LEATI_FOR_EACH(i, a.count) a.to[i] = (float)a.clock[1];
}

/* to[block] = sum of the block's part of `from` */
LEATI_KERNEL(test_block_sum, test_args) {
    LEATI_SHARED(float, shared, 32);
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    float sum = leati_block_sum(i < a.count ? a.from[i] : 0.0f, shared);
    if (threadIdx.x == 0) a.to[blockIdx.x] = sum;
}

/* Reverses `from` in dynamic shared memory, in one block. */
LEATI_KERNEL(test_reverse, test_args) {
    LEATI_DYNAMIC_SHARED(float, shared);
    shared[threadIdx.x] = a.from[threadIdx.x];
    __syncthreads();
    a.to[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}

/* At most 128 threads. */
LEATI_KERNEL_BOUNDED(test_bounded, test_args, 128, 2) {
    if (threadIdx.x == 0) a.to[0] = 1.0f;
}

/* Half of a warp exchanges values, while the other half has ended; then the whole block waits. */
LEATI_KERNEL(test_halves, test_args) {
    float x = (float)threadIdx.x;
    if (threadIdx.x % 32 < 16)
        x = __shfl_xor_sync(0x0000ffffu, x, 1);
    else
        x = __shfl_sync(0xffff0000u, x, 31);
    if (threadIdx.x >= 48) return;
    __syncthreads();
    a.to[threadIdx.x] = x;
}

/* Mistake: no __syncthreads between the writes and the reads of shared memory. */
LEATI_KERNEL(test_missing_barrier, test_args) {
    LEATI_SHARED(float, shared, 64);
    shared[threadIdx.x] = a.from[threadIdx.x];
    a.to[threadIdx.x] = shared[63 - threadIdx.x];
}

/* Mistake: no __syncthreads between the reads and the next writes. */
LEATI_KERNEL(test_missing_second_barrier, test_args) {
    LEATI_SHARED(float, shared, 64);
    float sum = 0;
    for (int round = 0; round < 3; ++round) {
        shared[threadIdx.x] = a.from[threadIdx.x] * (float)(round + 1);
        __syncthreads();
        sum += shared[63 - threadIdx.x];
    }
    a.to[threadIdx.x] = sum;
}

/* Mistake: only some threads of a warp reach the barrier. */
LEATI_KERNEL(test_divergent_barrier, test_args) {
    if (threadIdx.x % 32 < 16)
        __syncthreads();
    else
        __syncwarp();
    a.to[threadIdx.x] = 0;
}

/* Mistake: lanes of one warp call different warp functions. */
LEATI_KERNEL(test_divergent_warp, test_args) {
    float x = 1;
    if (threadIdx.x < 16)
        x = __shfl_xor_sync(LEATI_ALL_LANES, x, 1);
    else
        __syncwarp();
    a.to[threadIdx.x] = x;
}

/* Mistake: the mask lacks lanes that take part. */
LEATI_KERNEL(test_wrong_mask, test_args) {
    a.to[threadIdx.x] = __shfl_xor_sync(0xffffu, 1.0f, 1);
}

/* Mistake: lane 0 reads from a lane that has ended. */
LEATI_KERNEL(test_shuffle_with_ended_lane, test_args) {
    if (threadIdx.x == 16) return;
    float x = __shfl_down_sync(LEATI_ALL_LANES, 1.0f, 16);
    if (threadIdx.x == 0) a.to[0] = x;
}

/* Mistake: shared memory is read before it is written. */
LEATI_KERNEL(test_unset_shared, test_args) {
    LEATI_SHARED(float, shared, 64);
    if (threadIdx.x > 0) shared[threadIdx.x] = 1;
    __syncthreads();
    a.to[threadIdx.x] = shared[threadIdx.x];
}

/* Mistake: each block reads what another one writes. */
LEATI_KERNEL(test_race_of_blocks, test_args) {
    if (threadIdx.x == 0) a.to[blockIdx.x] = 1.0f + a.to[(blockIdx.x + 1) % gridDim.x];
}

/* Mistake: shared memory has less than blockDim.x numbers. */
LEATI_KERNEL(test_long_shared, test_args) {
    LEATI_DYNAMIC_SHARED(float, shared);
    shared[threadIdx.x] = 1;
    __syncthreads();
    a.to[threadIdx.x] = shared[threadIdx.x];
}

/* Mistake: the stack of a thread is too small. */
static float fill_stack(const test_args &a, int64_t depth) {
    volatile float place[256];
    for (int i = 0; i < 256; ++i) place[i] = a.scale;
    return depth == 0 ? place[0] : fill_stack(a, depth - 1) + place[depth % 256];
}
LEATI_KERNEL(test_deep_stack, test_args) {
    a.to[0] = fill_stack(a, a.count);
}
