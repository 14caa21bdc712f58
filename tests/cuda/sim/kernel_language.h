/* SPDX-License-Identifier: Apache-2.0 */
/* The part of CUDA's kernel language that leat's kernels use, as plain C++.  Each thread of a block is a fiber
 * (fibers.cc): it runs until a barrier or a warp function, and then another fiber runs. */
#ifndef LEAT_TESTS_CUDA_SIM_KERNEL_LANGUAGE_H
#define LEAT_TESTS_CUDA_SIM_KERNEL_LANGUAGE_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "cuda/sim/fibers.h"

#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __restrict__ __restrict
#define __ldg(p)  (*(p))
#define __ldcg(p) (*(p))

/* A kernel: a function of its arguments, and an entry in the list by which cuModuleGetFunction finds it. */
#define LEATI_KERNEL_BOUNDED(name, args, threads, blocks)                                                    \
    static void name(const args &a);                                                                         \
    static void name##_entry(const void *parameter) {                                                        \
        name(*static_cast<const args *>(parameter));                                                         \
    }                                                                                                        \
    static sim_kernel name##_kernel(#name, name##_entry, sizeof(args), __BASE_FILE__, threads);              \
    static void name(const args &a)
#define LEATI_KERNEL(name, args) LEATI_KERNEL_BOUNDED(name, args, 1024, 1)
#define LEATI_SHARED(type, name, count)                                                                      \
    static type name[count];                                                                                 \
    sim_static_shared(name, sizeof name)
#define LEATI_DYNAMIC_SHARED(type, name) type *name = static_cast<type *>(sim_dynamic_shared())

struct sim_index {
    unsigned x, y, z;
};
extern sim_index threadIdx, blockIdx, blockDim, gridDim;

static inline void __syncthreads() {
    sim_block_barrier();
}
static inline void __syncwarp(unsigned mask = 0xffffffffu) {
    sim_warp_barrier(mask);
}
template <typename T> static inline T sim_shuffle(T x, unsigned from, unsigned mask = 0xffffffffu) {
    uint64_t bits = 0;
    memcpy(&bits, &x, sizeof x);
    bits = sim_exchange(bits, from, mask);
    memcpy(&x, &bits, sizeof x);
    return x;
}
/* A lane reads from another one of its group of `width` lanes, or from itself. */
template <typename T> static inline T __shfl_xor_sync(unsigned mask, T x, int lanes, int width = 32) {
    unsigned lane = threadIdx.x % 32, from = lane ^ (unsigned)lanes;
    return sim_shuffle(x, from / (unsigned)width <= lane / (unsigned)width ? from : lane, mask);
}
template <typename T> static inline T __shfl_down_sync(unsigned mask, T x, unsigned delta, int width = 32) {
    unsigned lane = threadIdx.x % 32;
    return sim_shuffle(x, lane % (unsigned)width + delta < (unsigned)width ? lane + delta : lane, mask);
}
template <typename T> static inline T __shfl_up_sync(unsigned mask, T x, unsigned delta, int width = 32) {
    unsigned lane = threadIdx.x % 32;
    return sim_shuffle(x, lane % (unsigned)width >= delta ? lane - delta : lane, mask);
}
template <typename T> static inline T __shfl_sync(unsigned mask, T x, int from, int width = 32) {
    unsigned lane = threadIdx.x % 32, group = lane / (unsigned)width * (unsigned)width;
    return sim_shuffle(x, group + (unsigned)from % (unsigned)width, mask);
}

template <typename T> static inline T atomicMin(T *p, T x) {
    T before = *p;
    if (x < before) *p = x;
    return before;
}
template <typename T> static inline T atomicMax(T *p, T x) {
    T before = *p;
    if (x > before) *p = x;
    return before;
}
template <typename T> static inline T atomicAdd(T *p, T x) {
    T before = *p;
    *p = before + x;
    return before;
}
static inline void __threadfence() {
}
static inline void __threadfence_system() {
}

static inline float __uint_as_float(unsigned bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static inline unsigned __float_as_uint(float x) {
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline unsigned __umulhi(unsigned a, unsigned b) {
    return (unsigned)((uint64_t)a * b >> 32);
}
static inline float rsqrtf(float x) {
    return 1.0f / sqrtf(x);
}
static inline void sincospif(float x, float *sine, float *cosine) {
    *sine = (float)sin(3.14159265358979323846 * (double)x);
    *cosine = (float)cos(3.14159265358979323846 * (double)x);
}
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
static inline float4 make_float4(float x, float y, float z, float w) {
    return {x, y, z, w};
}
static inline float2 make_float2(float x, float y) {
    return {x, y};
}

#endif
