/* SPDX-License-Identifier: Apache-2.0 */
/* What all kernels share.  A kernel has one parameter, a struct from the .h file of its family, which the C side fills
 * (backends/cuda/cuda.h: leati_cuda_launch).
 *
 * The tests run these files as plain C++ on the CPU (tests/cuda/sim): each thread of a block is a fiber there.  Kernels
 * therefore keep to what the simulation knows: threadIdx, blockIdx, blockDim, gridDim, __syncthreads, __syncwarp,
 * __shfl_xor_sync, __shfl_down_sync, __shfl_sync, atomicAdd, atomicMin and atomicMax, <math.h>, and the macros below
 * for shared memory.  They use no floating-point atomics, whose order changes the result. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_COMMON_CUH
#define LEATI_BACKENDS_CUDA_KERNELS_COMMON_CUH

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#ifdef LEATI_CUDA_SIMULATED
#include "cuda/sim/kernel_language.h"
#else
/* A kernel may be launched while the kernel before it in the queue still runs (backends/cuda/launch.c): first it allows
 * the same to the kernel after it, then it waits until the kernel before it has ended and its memory can be read.  So
 * the time of a launch is hidden, and the order of the work stays. */
static __device__ __forceinline__ void leati_wait_for_previous_kernel() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;" ::: "memory");
#endif
}
#define LEATI_KERNEL_WITH(name, args, bounds)                                                                \
    static __device__ __forceinline__ void name##_body(const args &a);                                       \
    extern "C" __global__ void bounds name(const __grid_constant__ args a) {                                 \
        leati_wait_for_previous_kernel();                                                                    \
        name##_body(a);                                                                                      \
    }                                                                                                        \
    static __device__ __forceinline__ void name##_body(const args &a)
#define LEATI_KERNEL(name, args) LEATI_KERNEL_WITH(name, args, )
/* The same with the largest number of threads in a block, and the least number of blocks per multiprocessor. */
#define LEATI_KERNEL_BOUNDED(name, args, threads, blocks)                                                    \
    LEATI_KERNEL_WITH(name, args, __launch_bounds__(threads, blocks))
/* Shared memory of fixed size, and of the size that the launch gives (one such declaration in a kernel). */
#define LEATI_SHARED(type, name, count) __shared__ type name[count]
#define LEATI_DYNAMIC_SHARED(type, name)                                                                     \
    extern __shared__ __align__(16) unsigned char leati_dynamic_shared[];                                    \
    type *name = (type *)leati_dynamic_shared
#endif

#define LEATI_ALL_LANES 0xffffffffu

typedef unsigned long long leati_u64;

/* bfloat16: the upper half of an f32, rounded to nearest even; a NaN stays a NaN. */
struct leati_bf16 {
    unsigned short bits;
};

static __device__ __forceinline__ float leati_widen(leati_bf16 x) {
    return __uint_as_float((unsigned)x.bits << 16);
}

static __device__ __forceinline__ leati_bf16 leati_narrow(float x) {
    leati_bf16 out;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(out.bits) : "f"(x));
#else
    unsigned bits = __float_as_uint(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        out.bits = (unsigned short)((bits >> 16) | 0x40u);
    else
        out.bits = (unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
#endif
    return out;
}

/* Loads and stores of either type as f32. */
static __device__ __forceinline__ float leati_load(const float *p) {
    return *p;
}
static __device__ __forceinline__ float leati_load(const leati_bf16 *p) {
    return leati_widen(*p);
}
static __device__ __forceinline__ void leati_store(float *p, float x) {
    *p = x;
}
static __device__ __forceinline__ void leati_store(leati_bf16 *p, float x) {
    *p = leati_narrow(x);
}

/* Grid-stride loop over [0, count). */
#define LEATI_FOR_EACH(i, count)                                                                             \
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (count);                            \
         i += (int64_t)gridDim.x * blockDim.x)

/* Sum and maximum over the 32 threads of a warp; every thread gets the result. */
static __device__ __forceinline__ float leati_warp_sum(float x) {
    for (int lane = 16; lane > 0; lane /= 2) x += __shfl_xor_sync(LEATI_ALL_LANES, x, lane);
    return x;
}
static __device__ __forceinline__ float leati_warp_max(float x) {
    for (int lane = 16; lane > 0; lane /= 2) x = fmaxf(x, __shfl_xor_sync(LEATI_ALL_LANES, x, lane));
    return x;
}

/* Sum over the threads of a block of at most 1024 threads, a multiple of 32; every thread gets the result.  `shared`
 * has room for 32 numbers and may be used again after the call. */
static __device__ __forceinline__ float leati_block_sum(float x, float *shared) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
    x = leati_warp_sum(x);
    __syncthreads();
    if (lane == 0) shared[warp] = x;
    __syncthreads();
    x = leati_warp_sum(lane < warps ? shared[lane] : 0.0f);
    __syncthreads();
    return x;
}
static __device__ __forceinline__ float leati_block_max(float x, float *shared) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
    x = leati_warp_max(x);
    __syncthreads();
    if (lane == 0) shared[warp] = x;
    __syncthreads();
    x = leati_warp_max(lane < warps ? shared[lane] : -INFINITY);
    __syncthreads();
    return x;
}

#endif
