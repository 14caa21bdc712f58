/* SPDX-License-Identifier: Apache-2.0 */
/* A team of threads that computes one result: a warp, or a block.  A kernel for warps has several teams in a block. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_TEAM_CUH
#define LEATI_BACKENDS_CUDA_KERNELS_TEAM_CUH

#include "backends/cuda/kernels/common.cuh"

/* Returns the number of the thread's team in the grid, of the thread in the team, and the size of a team. */
template <bool BLOCK> static __device__ __forceinline__ int64_t leati_team(void) {
    return BLOCK ? blockIdx.x : (int64_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
}
template <bool BLOCK> static __device__ __forceinline__ int leati_team_thread(void) {
    return (int)(BLOCK ? threadIdx.x : threadIdx.x % 32);
}
template <bool BLOCK> static __device__ __forceinline__ int leati_team_size(void) {
    return (int)(BLOCK ? blockDim.x : 32);
}

struct leati_add {
    template <class T> static __device__ __forceinline__ T combine(T a, T b) {
        return a + b;
    }
};

/* Combines x of all threads of a team; every thread gets the result.  shared: room for 32 numbers, only for blocks; it
 * may be used again after the call. */
template <bool BLOCK, class Op, class T>
static __device__ __forceinline__ T leati_team_combine(T x, T *shared) {
    for (int apart = 16; apart > 0; apart /= 2)
        x = Op::combine(x, __shfl_xor_sync(LEATI_ALL_LANES, x, apart));
    if (!BLOCK) return x;
    int warps = (int)blockDim.x / 32;
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
    __syncthreads();
    x = shared[0];
    for (int w = 1; w < warps; w++) x = Op::combine(x, shared[w]);
    __syncthreads();
    return x;
}

#endif
