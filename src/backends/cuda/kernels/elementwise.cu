/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise kernels: a machine for short programs of element-wise steps (elementwise.h), conversions and comparisons
 * of any type, RANDOM_NORMAL and MOVING_AVERAGE. */
#include "backends/cuda/kernels/elementwise.h"

#include "backends/cuda/kernels/elements.cuh"
#include "backends/cuda/kernels/functions.cuh"
#include "backends/cuda/kernels/random.cuh"

enum { quads = LEATI_CUDA_PROGRAM_QUADS, elements = 4 * quads, threads = LEATI_CUDA_PROGRAM_THREADS };

/* ---- Which element of an operand belongs to an element of the program ---- */

template <typename Index>
static __device__ __forceinline__ int64_t mapped(const leati_cuda_axes &axes, Index i) {
    int64_t at = 0;
    for (int k = axes.count - 1; k > 0; --k) {
        Index size = (Index)axes.size[k], outer = i / size;
        at += (int64_t)(i - outer * size) * axes.stride[k];
        i = outer;
    }
    return at + (int64_t)i * axes.stride[0];
}

/* Returns the operand's element for element i. */
template <typename Index>
static __device__ __forceinline__ int64_t index_of(const leati_cuda_program_args &a,
                                                   const leati_cuda_index &index, Index i) {
    switch (index.kind) {
    case LEATI_CUDA_SAME: return (int64_t)i;
    case LEATI_CUDA_SCALAR: return 0;
    case LEATI_CUDA_ROW: return (int64_t)(i % (Index)index.inner);
    case LEATI_CUDA_COLUMN: return (int64_t)(i / (Index)index.inner);
    default: return mapped<Index>(a.maps[index.map], i);
    }
}

static __device__ __forceinline__ int64_t index_at(const leati_cuda_program_args &a,
                                                   const leati_cuda_index &index, int64_t i) {
    return a.wide ? index_of<uint64_t>(a, index, (uint64_t)i) : index_of<uint32_t>(a, index, (uint32_t)i);
}

/* ---- Reading and writing ---- */

/* The rare ways to read a quad are functions of their own, so that the usual ones need few registers. */

/* Reads four elements of an input, of any type and with any index; elements beyond the program's last are 0. */
static __device__ __noinline__ float4 read_apart(const leati_cuda_program_args &a,
                                                 const leati_cuda_source &source, int64_t i) {
    float x[4];
    int64_t left = a.count - i;
    x[0] = left > 0 ? leati_element(source.dtype, source.data, index_at(a, source.at, i)) : 0.0f;
    x[1] = x[2] = x[3] = x[0];
#pragma unroll
    for (int k = 1; k < 4; ++k)
        if (source.quads != LEATI_CUDA_EQUAL_QUADS && k < left)
            x[k] = leati_element(source.dtype, source.data, index_at(a, source.at, i + k));
    return make_float4(x[0], x[1], x[2], x[3]);
}

static __device__ __noinline__ int64_t index_apart(const leati_cuda_program_args &a,
                                                   const leati_cuda_source &source, int64_t i) {
    return index_at(a, source.at, i);
}

/* Returns true if each quad of the thread has four elements or none. */
static __device__ __forceinline__ bool has_whole_quads(const leati_cuda_program_args &a, const int64_t *at) {
    bool whole = true;
#pragma unroll
    for (int u = 0; u < quads; ++u) whole = whole && (at[u] + 4 <= a.count || at[u] >= a.count);
    return whole;
}

/* Reads the quads that begin at `from`; those that do not exist (-1) stay as they are.  All memory is asked for before
 * the first number is converted. */
static __device__ __forceinline__ void read_at_once(const leati_cuda_source &source, const int64_t *from,
                                                    float *x) {
    if (source.dtype == LEATI_CUDA_F32) {
#pragma unroll
        for (int u = 0; u < quads; ++u)
            if (from[u] >= 0) leati_load_quad((const float *)source.data + from[u], x + 4 * u);
        return;
    }
    uint2 raw[quads];
    bool bf16 = source.dtype == LEATI_CUDA_BF16;
#pragma unroll
    for (int u = 0; u < quads; ++u) {
        raw[u].x = raw[u].y = 0;
        if (from[u] < 0) continue;
        if (bf16)
            raw[u] = *(const uint2 *)((const leati_bf16 *)source.data + from[u]);
        else
            raw[u].x = *(const unsigned *)((const uint8_t *)source.data + from[u]);
    }
#pragma unroll
    for (int u = 0; u < quads; ++u)
        if (bf16)
            leati_widen_quad(raw[u], x + 4 * u);
        else
            leati_bytes_quad(raw[u].x, x + 4 * u);
}

/* Reads the thread's elements of an input. */
static __device__ __forceinline__ void
read_source(const leati_cuda_program_args &a, const leati_cuda_source &source, const int64_t *at, float *x) {
    if (source.at.kind == LEATI_CUDA_SCALAR && source.dtype == LEATI_CUDA_F32) {
        x[0] = *(const float *)source.data;
#pragma unroll
        for (int k = 1; k < elements; ++k) x[k] = x[0];
        return;
    }
    if (source.quads != LEATI_CUDA_AT_ONCE || !has_whole_quads(a, at)) {
#pragma unroll
        for (int u = 0; u < quads; ++u) {
            float4 quad = read_apart(a, source, at[u]);
            x[4 * u] = quad.x, x[4 * u + 1] = quad.y, x[4 * u + 2] = quad.z, x[4 * u + 3] = quad.w;
        }
        return;
    }
    int64_t from[quads];
#pragma unroll
    for (int u = 0; u < quads; ++u) {
        from[u] = at[u];
        if (at[u] >= a.count)
            from[u] = -1;
        else if (source.at.kind == LEATI_CUDA_ROW && !a.wide)
            from[u] = (uint32_t)at[u] % (uint32_t)source.at.inner;
        else if (source.at.kind != LEATI_CUDA_SAME)
            from[u] = index_apart(a, source, at[u]);
    }
    read_at_once(source, from, x);
}

/* Asks the L2 cache for the inputs that have the program's shape, so that the steps do not wait for them one by one. */
static __device__ __forceinline__ void prefetch(const leati_cuda_program_args &a, const int64_t *at) {
#pragma unroll 1
    for (int k = 1; k < a.input_count; ++k) {
        const leati_cuda_source &source = a.inputs[k];
        if (source.at.kind != LEATI_CUDA_SAME || source.quads != LEATI_CUDA_AT_ONCE) continue;
        int bytes = source.dtype == LEATI_CUDA_F32 ? 4 : source.dtype == LEATI_CUDA_BF16 ? 2 : 1;
#pragma unroll
        for (int u = 0; u < quads; ++u)
            if (at[u] < a.count) leati_prefetch((const char *)source.data + at[u] * bytes);
    }
}

static __device__ __forceinline__ void
write_quad(const leati_cuda_program_args &a, const leati_cuda_target &target, int64_t i, const float *x) {
    if (target.quads == LEATI_CUDA_AT_ONCE && i + 4 <= a.count) {
        if (target.dtype == LEATI_CUDA_F32)
            leati_store_quad((float *)target.data + i, x);
        else
            leati_store_quad((leati_bf16 *)target.data + i, x);
        return;
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        if (i + k >= a.count) break;
        if (target.dtype == LEATI_CUDA_F32)
            leati_store((float *)target.data + i + k, x[k]);
        else
            leati_store((leati_bf16 *)target.data + i + k, x[k]);
    }
}

/* ---- Steps ---- */

static __device__ __forceinline__ float dropped(const leati_cuda_draw &draw, uint32_t word, float x) {
    return word >= draw.threshold ? x * draw.scale : 0.0f;
}

/* Drops elements whose draws are not consecutive: DROPOUT with shared axes. */
static __device__ __noinline__ float4 drop_apart(const leati_cuda_program_args &a, int64_t i, float4 quad) {
    const leati_cuda_draw &draw = a.draw;
    float x[4] = {quad.x, quad.y, quad.z, quad.w};
    uint64_t block = (uint64_t)index_at(a, draw.at, i) / 4;
    leati_words words = leati_random_words(draw.clock, draw.stream, block);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        if (i + k >= a.count) continue;
        uint64_t at = (uint64_t)index_at(a, draw.at, i + k);
        if (at / 4 != block) words = leati_random_words(draw.clock, draw.stream, block = at / 4);
        uint32_t even = at & 2 ? words.word[2] : words.word[0], odd = at & 2 ? words.word[3] : words.word[1];
        x[k] = dropped(draw, at & 1 ? odd : even, x[k]);
    }
    return make_float4(x[0], x[1], x[2], x[3]);
}

static __device__ __forceinline__ void drop_quad(const leati_cuda_program_args &a, int64_t i, float *x) {
    const leati_cuda_draw &draw = a.draw;
    if (draw.at.kind != LEATI_CUDA_SAME) {
        float4 quad = drop_apart(a, i, make_float4(x[0], x[1], x[2], x[3]));
        x[0] = quad.x, x[1] = quad.y, x[2] = quad.z, x[3] = quad.w;
        return;
    }
    leati_words words = leati_random_words(draw.clock, draw.stream, (uint64_t)i / 4);
#pragma unroll
    for (int k = 0; k < 4; ++k) x[k] = dropped(draw, words.word[k], x[k]);
}

#define EACH(expression)                                                                                     \
    _Pragma("unroll") for (int k = 0; k < COUNT; ++k) {                                                      \
        float p = acc[k], q = x[k];                                                                          \
        acc[k] = (expression);                                                                               \
    }                                                                                                        \
    return

template <int COUNT> static __device__ __forceinline__ void combine(int what, float *acc, const float *x) {
    switch (what) {
    case LEATI_CUDA_LOAD: EACH (p == p ? q : q) ;
    case LEATI_CUDA_ADD: EACH (p + q) ;
    case LEATI_CUDA_SUB: EACH (p - q) ;
    case LEATI_CUDA_MUL: EACH (p *q) ;
    case LEATI_CUDA_DIV: EACH (p / q) ;
    case LEATI_CUDA_MAX: EACH (p > q || p != p ? p : q) ;
    case LEATI_CUDA_MIN: EACH (p < q || p != p ? p : q) ;
    case LEATI_CUDA_EQUAL: EACH (p == q ? 1.0f : 0.0f) ;
    case LEATI_CUDA_GREATER: EACH (p > q ? 1.0f : 0.0f) ;
    case LEATI_CUDA_GREATER_EQUAL: EACH (p >= q ? 1.0f : 0.0f) ;
    case LEATI_CUDA_SUB_FROM: EACH (q - p) ;
    case LEATI_CUDA_DIVIDE: EACH (q / p) ;
    case LEATI_CUDA_LESS: EACH (p < q ? 1.0f : 0.0f) ;
    case LEATI_CUDA_LESS_EQUAL: EACH (p <= q ? 1.0f : 0.0f) ;
    default: return;
    }
}

template <int COUNT> static __device__ __forceinline__ void multiply(float *acc, const float *x) {
#pragma unroll
    for (int k = 0; k < COUNT; ++k) acc[k] *= x[k];
}

/* Executes one step on the elements of a thread. */
static __device__ __forceinline__ void execute(const leati_cuda_program_args &a, const leati_cuda_step &step,
                                               const int64_t *at, float *acc, float *x) {
    switch (step.what) {
    case LEATI_CUDA_FUNCTION: leati_functions_at<elements>(step.f, acc); return;
    case LEATI_CUDA_SLOPE:
        leati_slopes_at<elements>(step.f, x);
        multiply<elements>(acc, x);
        return;
    case LEATI_CUDA_SLOPE_FROM_DST:
        leati_slopes_from_dst<elements>(step.f, x);
        multiply<elements>(acc, x);
        return;
    case LEATI_CUDA_DROPOUT:
#pragma unroll
        for (int u = 0; u < quads; ++u)
            if (at[u] < a.count) drop_quad(a, at[u], acc + 4 * u);
        return;
    default: combine<elements>(step.what, acc, x); return;
    }
}

/* Block `tile` of threads * elements elements; a thread has `quads` quads in it, threads * 4 elements apart, so that
 * the threads of a warp read consecutive memory. */
LEATI_KERNEL_BOUNDED(leati_cuda_program, leati_cuda_program_args, LEATI_CUDA_PROGRAM_THREADS, 4) {
    LEATI_DYNAMIC_SHARED(float, shared);
    int64_t tiles = (a.count + threads * elements - 1) / (threads * elements);
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        int64_t at[quads];
        float acc[elements], x[elements];
#pragma unroll
        for (int u = 0; u < quads; ++u) at[u] = ((tile * quads + u) * threads + threadIdx.x) * 4;
        if (at[0] >= a.count) return;
        if (a.input_count > 1) prefetch(a, at);
#pragma unroll 1
        for (int s = 0; s < a.step_count; ++s) {
            const leati_cuda_step &step = a.steps[s];
            if (step.input >= 0) {
                read_source(a, a.inputs[step.input], at, x);
            } else if (step.saved >= 0) {
#pragma unroll
                for (int u = 0; u < quads; ++u)
                    leati_load_quad(shared + ((step.saved * quads + u) * threads + threadIdx.x) * 4,
                                    x + 4 * u);
            }
            execute(a, step, at, acc, x);
            if (step.save >= 0) {
#pragma unroll
                for (int u = 0; u < quads; ++u)
                    leati_store_quad(shared + ((step.save * quads + u) * threads + threadIdx.x) * 4,
                                     acc + 4 * u);
            }
            if (step.store >= 0) {
#pragma unroll
                for (int u = 0; u < quads; ++u) write_quad(a, a.outputs[step.store], at[u], acc + 4 * u);
            }
        }
    }
}

/* ---- Small tensors ---- */

static __device__ __forceinline__ int small_index(const leati_cuda_small_source &source, int i) {
    switch (source.kind) {
    case LEATI_CUDA_SAME: return i;
    case LEATI_CUDA_ROW: return (int)((unsigned)i % (unsigned)source.inner);
    case LEATI_CUDA_COLUMN: return (int)((unsigned)i / (unsigned)source.inner);
    default: return 0;
    }
}

static __device__ __forceinline__ float small_drop(const leati_cuda_small_args &a, int i, float x) {
    const leati_words words = leati_random_words(a.clock, a.stream, (uint64_t)i / 4);
    const uint32_t even = i & 2 ? words.word[2] : words.word[0], odd = i & 2 ? words.word[3] : words.word[1];
    return (i & 1 ? odd : even) >= a.threshold ? x * a.scale : 0.0f;
}

static __device__ __forceinline__ float small_step(const leati_cuda_small_args &a,
                                                   const leati_cuda_step &step, int i, float acc, float x) {
    switch (step.what) {
    case LEATI_CUDA_FUNCTION: return leati_function_at(step.f, acc);
    case LEATI_CUDA_SLOPE: return acc * leati_slope_at(step.f, x);
    case LEATI_CUDA_SLOPE_FROM_DST: return acc * leati_slope_from_dst(step.f, x);
    case LEATI_CUDA_DROPOUT: return small_drop(a, i, acc);
    default: combine<1>(step.what, &acc, &x); return acc;
    }
}

LEATI_KERNEL_BOUNDED(leati_cuda_small_program, leati_cuda_small_args, LEATI_CUDA_SMALL_THREADS, 8) {
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= a.count) return;
    /* All memory is asked for before the first number is converted. */
    unsigned bits[LEATI_CUDA_SMALL_INPUTS] = {};
    float in[LEATI_CUDA_SMALL_INPUTS];
#pragma unroll
    for (int k = 0; k < LEATI_CUDA_SMALL_INPUTS; ++k) {
        if (k >= a.input_count) break;
        const int at = small_index(a.inputs[k], i);
        bits[k] = a.inputs[k].bf16 ? (unsigned)static_cast<const leati_bf16 *>(a.inputs[k].data)[at].bits
                                   : static_cast<const unsigned *>(a.inputs[k].data)[at];
    }
#pragma unroll
    for (int k = 0; k < LEATI_CUDA_SMALL_INPUTS; ++k)
        in[k] = __uint_as_float(a.inputs[k].bf16 ? bits[k] << 16 : bits[k]);
    float acc = 0.0f;
#pragma unroll 1
    for (int s = 0; s < a.step_count; ++s) {
        const leati_cuda_step &step = a.steps[s];
        const float low = step.input == 1 ? in[1] : in[0], high = step.input == 3 ? in[3] : in[2];
        acc = small_step(a, step, i, acc, step.input >= 2 ? high : low);
        if (step.store < 0) continue;
        if (a.output_bf16[step.store])
            leati_store(static_cast<leati_bf16 *>(a.outputs[step.store]) + i, acc);
        else
            leati_store(static_cast<float *>(a.outputs[step.store]) + i, acc);
    }
}

/* ---- Other types ---- */

LEATI_KERNEL(leati_cuda_convert, leati_cuda_convert_args) {
    LEATI_FOR_EACH(i, a.count) leati_store_number(a.to, a.dst, i, leati_number_at(a.from, a.src, i));
}

static __device__ __forceinline__ bool holds(int kind, const leati_number &x, const leati_number &y) {
    bool less, equal;
    if (x.kind == 0)
        less = x.real < y.real, equal = x.real == y.real;
    else if (x.kind == 1)
        less = x.whole < y.whole, equal = x.whole == y.whole;
    else
        less = x.large < y.large, equal = x.large == y.large;
    bool unordered = x.kind == 0 && (x.real != x.real || y.real != y.real);
    if (kind == LEATI_CUDA_EQUAL) return equal;
    bool greater = !less && !equal && !unordered;
    return kind == LEATI_CUDA_GREATER ? greater : greater || equal;
}

LEATI_KERNEL(leati_cuda_compare, leati_cuda_compare_args) {
    LEATI_FOR_EACH(i, a.count) {
        leati_number x = leati_number_at(a.dtype, a.a, mapped<uint64_t>(a.axes[0], (uint64_t)i));
        leati_number y = leati_number_at(a.dtype, a.b, mapped<uint64_t>(a.axes[1], (uint64_t)i));
        float result = holds(a.kind, x, y) ? 1.0f : 0.0f;
        if (a.to == LEATI_CUDA_F32)
            leati_store((float *)a.dst + i, result);
        else
            leati_store((leati_bf16 *)a.dst + i, result);
    }
}

/* ---- RANDOM_NORMAL and MOVING_AVERAGE ---- */

/* Each thread computes the four elements of a block of random words. */
LEATI_KERNEL(leati_cuda_random_normal, leati_cuda_normal_args) {
    LEATI_FOR_EACH(block, (a.count + 3) / 4) {
        leati_words words = leati_random_words(a.clock, a.stream, (uint64_t)block);
        float x[4];
#pragma unroll
        for (int k = 0; k < 4; k += 2) {
            float uniform = (float)((words.word[k] >> 8) + 1) * 0x1p-24f, sine, cosine;
            float radius = sqrtf(-2.0f * logf(uniform));
            /* the angle is in (-pi, pi], where f32 is more precise than in [0, 2 pi) */
            sincospif((float)(int32_t)words.word[k + 1] * 0x1p-31f, &sine, &cosine);
            x[k] = a.mean + a.stddev * (radius * cosine);
            x[k + 1] = a.mean + a.stddev * (radius * sine);
        }
        for (int k = 0; k < 4 && 4 * block + k < a.count; ++k)
            if (a.dtype == LEATI_CUDA_F32)
                leati_store((float *)a.dst + 4 * block + k, x[k]);
            else
                leati_store((leati_bf16 *)a.dst + 4 * block + k, x[k]);
    }
}

LEATI_KERNEL(leati_cuda_averages, leati_cuda_averages_args) {
    const leati_cuda_average &average = a.averages[blockIdx.y];
    float momentum = average.momentum;
    LEATI_FOR_EACH(i, average.count) {
        float value = average.a * leati_element(average.dtype, average.value, i) + average.b;
        average.state[i] = average.state[i] * momentum + value * (1.0f - momentum);
    }
}
