/* SPDX-License-Identifier: Apache-2.0 */
/* GATHER, GATHER_BWD, ONE_HOT, ARGMAX and IN_TOP_K. */
#include "backends/cuda/kernels/labels.h"

#include <string.h>

#include "backends/cuda/kernels/common.cuh"

/* ---- Indices ---- */

static __device__ __forceinline__ float from_half(uint16_t x) {
    const uint32_t magnitude = (uint32_t)(x & 0x7fffu) << 13, sign = (uint32_t)(x & 0x8000u) << 16;
    if (magnitude >= 0x0f800000u) return __uint_as_float(sign | (magnitude + (224u << 23)));
    return __uint_as_float(sign | __float_as_uint(__uint_as_float(magnitude) * 0x1p112f));
}

static __device__ __forceinline__ double real_at(const leati_cuda_indices &a, int64_t i) {
    switch (a.number) {
    case LEATI_CUDA_REAL + 8: return ((const double *)a.data)[i];
    case LEATI_CUDA_REAL + 2: return (double)from_half(((const uint16_t *)a.data)[i]);
    case LEATI_CUDA_BFLOAT + 2: return (double)leati_widen(((const leati_bf16 *)a.data)[i]);
    default: return (double)((const float *)a.data)[i];
    }
}

static __device__ __forceinline__ int64_t integer_at(const leati_cuda_indices &a, int64_t i) {
    switch (a.number) {
    case LEATI_CUDA_SIGNED + 1: return ((const int8_t *)a.data)[i];
    case LEATI_CUDA_SIGNED + 2: return ((const int16_t *)a.data)[i];
    case LEATI_CUDA_SIGNED + 4: return ((const int32_t *)a.data)[i];
    case LEATI_CUDA_UNSIGNED + 1: return ((const uint8_t *)a.data)[i];
    case LEATI_CUDA_UNSIGNED + 2: return ((const uint16_t *)a.data)[i];
    case LEATI_CUDA_UNSIGNED + 4: return ((const uint32_t *)a.data)[i];
    case LEATI_CUDA_TRUTH + 1: return ((const uint8_t *)a.data)[i] != 0;
    case LEATI_CUDA_UNSIGNED + 8: {
        uint64_t value = ((const uint64_t *)a.data)[i];
        return value > INT64_MAX ? INT64_MAX : (int64_t)value;
    }
    default: return ((const int64_t *)a.data)[i];
    }
}

static __device__ __forceinline__ int64_t index_of(const leati_cuda_indices &a, double real) {
    return real > -1 && real < (double)a.limit ? (int64_t)real : -1;
}
static __device__ __forceinline__ int64_t index_of(const leati_cuda_indices &a, int64_t integer) {
    return integer >= 0 && integer < a.limit ? integer : -1;
}

/* Returns the index in element i, or -1 if it is not in [0, limit).  A real number is truncated towards zero. */
static __device__ __forceinline__ int64_t index_at(const leati_cuda_indices &a, int64_t i) {
    return a.number >= LEATI_CUDA_REAL ? index_of(a, real_at(a, i)) : index_of(a, integer_at(a, i));
}

/* The same for `count` indices, each `step` after the one before; INT64_MAX for those from `end` on.  The loads of the
 * two most frequent types do not wait for each other. */
template <int count>
static __device__ __forceinline__ void indices_at(const leati_cuda_indices &a, int64_t i, int64_t step,
                                                  int64_t end, int64_t *out) {
    const bool is_real = a.number == LEATI_CUDA_REAL + 4;
    if (!is_real && a.number != LEATI_CUDA_SIGNED + 4) {
        for (int j = 0; j < count; ++j) out[j] = i + j * step < end ? index_at(a, i + j * step) : INT64_MAX;
        return;
    }
    uint32_t bits[count];
    for (int j = 0; j < count; ++j)
        bits[j] = i + j * step < end ? ((const uint32_t *)a.data)[i + j * step] : 0;
    for (int j = 0; j < count; ++j) {
        out[j] =
            is_real ? index_of(a, (double)__uint_as_float(bits[j])) : index_of(a, (int64_t)(int32_t)bits[j]);
        if (i + j * step >= end) out[j] = INT64_MAX;
    }
}

static __device__ void report(const leati_cuda_indices &a, int64_t i) {
    const int bits = 64 - a.place_bits;
    uint64_t value;
    if (a.number >= LEATI_CUDA_REAL) {
        const double real = real_at(a, i);
        memcpy(&value, &real, sizeof value);
        value >>= a.place_bits;
    } else {
        const int64_t most = ((int64_t)1 << (bits - 1)) - 1;
        int64_t integer = integer_at(a, i);
        integer = integer > most ? most : integer < -most ? -most : integer;
        value = (uint64_t)integer & (((uint64_t)1 << bits) - 1);
    }
    atomicMin((leati_u64 *)a.fault, (leati_u64)((uint64_t)i << bits | value));
}

/* ---- GATHER ---- */

/* `width` neighbours, which are loaded and stored at once. */
template <typename T, int width> struct alignas(sizeof(T) * width) several { T x[width]; };

template <typename To, typename From, int width>
static __device__ __forceinline__ void gather(const leati_cuda_gather_args &a) {
    const several<From, width> *table = (const several<From, width> *)a.table;
    several<To, width> *dst = (several<To, width> *)a.dst;
    const int64_t count = a.indices.count * a.columns;
    LEATI_FOR_EACH(i, count) {
        const int64_t place =
            count <= INT32_MAX ? (int64_t)((uint32_t)i / (uint32_t)a.columns) : i / a.columns;
        const int64_t column = i - place * a.columns, row = index_at(a.indices, place);
        several<From, width> from;
        several<To, width> to;
        if (row < 0) {
            if (column == 0) report(a.indices, place);
            for (int k = 0; k < width; ++k) leati_store(&to.x[k], 0.0f);
        } else {
            from = table[row * a.columns + column];
            for (int k = 0; k < width; ++k) leati_store(&to.x[k], leati_load(&from.x[k]));
        }
        dst[i] = to;
    }
}

LEATI_KERNEL(leati_cuda_gather_f32_f32_1, leati_cuda_gather_args) {
    gather<float, float, 1>(a);
}
LEATI_KERNEL(leati_cuda_gather_f32_f32_4, leati_cuda_gather_args) {
    gather<float, float, 4>(a);
}
LEATI_KERNEL(leati_cuda_gather_f32_bf16_1, leati_cuda_gather_args) {
    gather<leati_bf16, float, 1>(a);
}
LEATI_KERNEL(leati_cuda_gather_f32_bf16_4, leati_cuda_gather_args) {
    gather<leati_bf16, float, 4>(a);
}
LEATI_KERNEL(leati_cuda_gather_bf16_f32_1, leati_cuda_gather_args) {
    gather<float, leati_bf16, 1>(a);
}
LEATI_KERNEL(leati_cuda_gather_bf16_f32_4, leati_cuda_gather_args) {
    gather<float, leati_bf16, 4>(a);
}
LEATI_KERNEL(leati_cuda_gather_bf16_bf16_1, leati_cuda_gather_args) {
    gather<leati_bf16, leati_bf16, 1>(a);
}
LEATI_KERNEL(leati_cuda_gather_bf16_bf16_4, leati_cuda_gather_args) {
    gather<leati_bf16, leati_bf16, 4>(a);
}

/* ---- GATHER_BWD ---- */

/* A block owns some rows and columns of dst.  It lists the indices of its rows as keys (row, place), sorts them, and
 * gives each group of lanes an equal part of the list.  A group adds up the rows of diff as long as the row of dst
 * stays the same.  The order of the additions depends on the indices only. */

#define SCATTER_TILE LEATI_CUDA_GATHER_TILE

/* Lists the indices of tile `first` that are in [row, row + rows), in any order. */
static __device__ __forceinline__ void list_keys(const leati_cuda_indices &a, int64_t first, int64_t row,
                                                 int64_t rows, uint32_t *keys, int *length) {
    enum { batch = 4, threads = LEATI_CUDA_GATHER_THREADS };
    const int64_t left = a.count - first;
    const int most = left < SCATTER_TILE ? (int)left : SCATTER_TILE;
    const bool reports = blockIdx.x == 0 && blockIdx.y == 0;
    for (int k = threadIdx.x; k < most; k += batch * threads) {
        int64_t index[batch];
        indices_at<batch>(a, first + k, threads, first + most, index);
        for (int j = 0; j < batch; ++j) {
            const int place = k + j * threads;
            if (index[j] >= row && index[j] - row < rows)
                keys[atomicAdd(length, 1)] =
                    (uint32_t)(index[j] - row) << LEATI_CUDA_GATHER_PLACE | (uint32_t)place;
            else if (index[j] < 0 && reports)
                report(a, first + place);
        }
    }
}

/* Sorts the keys, which all differ, with a bitonic network. */
static __device__ __forceinline__ void sort_keys(uint32_t *keys, int length) {
    int padded = 1;
    while (padded < length) padded *= 2;
    for (int k = length + threadIdx.x; k < padded; k += LEATI_CUDA_GATHER_THREADS) keys[k] = 0xffffffffu;
    __syncthreads();
    for (int size = 2; size <= padded; size *= 2)
        for (int stride = size / 2; stride > 0; stride /= 2) {
            for (int t = threadIdx.x; t < padded / 2; t += LEATI_CUDA_GATHER_THREADS) {
                const int i = 2 * t - (t & (stride - 1)), j = i + stride;
                const uint32_t x = keys[i], y = keys[j];
                if ((x > y) == ((i & size) == 0)) {
                    keys[i] = y;
                    keys[j] = x;
                }
            }
            __syncthreads();
        }
}

template <int width>
static __device__ __forceinline__ void add_to(several<float, width> *to, const several<float, width> &x) {
    several<float, width> sum = *to;
    for (int k = 0; k < width; ++k) sum.x[k] += x.x[k];
    *to = sum;
}

/* The part of a block that one thread has: `width` columns of all rows of the block. */
template <typename T, int width> struct scatter_part {
    const T *diff; /* at the first index of the tile, and the thread's first column */
    float *dst;    /* at the block's first row, and the thread's first column */
    int64_t columns;
    bool active;

    __device__ __forceinline__ several<float, width> *row_of(uint32_t row) const {
        return (several<float, width> *)(dst + (int64_t)row * columns);
    }
    __device__ __forceinline__ several<float, width> load(uint32_t key) const {
        several<float, width> out = {};
        if (!active) return out;
        const int64_t place = key & (SCATTER_TILE - 1);
        const several<T, width> x = *(const several<T, width> *)(diff + place * columns);
        for (int k = 0; k < width; ++k) out.x[k] = leati_load(&x.x[k]);
        return out;
    }

    /* Adds the rows of diff with the keys [begin, end).  The sum of the first row of dst, of which other groups may
     * have parts, too, goes to *head, and the number of this row to *head_row. */
    __device__ __forceinline__ void add_up(const uint32_t *keys, int begin, int end,
                                           several<float, width> *head, uint32_t *head_row) const {
        enum { batch = 4 };
        several<float, width> sum = {}, values[batch];
        uint32_t row = keys[begin] >> LEATI_CUDA_GATHER_PLACE;
        bool is_head = true;
        *head_row = row;
        for (int e = begin; e < end; e += batch) {
            for (int j = 0; j < batch; ++j)
                if (e + j < end) values[j] = load(keys[e + j]);
            for (int j = 0; j < batch; ++j) {
                if (e + j >= end) break;
                const uint32_t next = keys[e + j] >> LEATI_CUDA_GATHER_PLACE;
                if (next != row) {
                    if (is_head)
                        *head = sum;
                    else if (active)
                        add_to(row_of(row), sum);
                    sum = several<float, width>{};
                    is_head = false;
                    row = next;
                }
                add_to(&sum, values[j]);
            }
        }
        if (is_head)
            *head = sum;
        else if (active)
            add_to(row_of(row), sum);
    }

    /* Adds the heads of the groups from `group` on that have the same row, if `group` is the first of these. */
    __device__ __forceinline__ void add_heads(const several<float, width> *heads, const uint32_t *head_rows,
                                              int group, int groups, int lanes) const {
        const uint32_t row = head_rows[group];
        if (!active || (group > 0 && head_rows[group - 1] == row)) return;
        several<float, width> sum = {};
        for (int g = group; g < groups && head_rows[g] == row; ++g) add_to(&sum, heads[g * lanes]);
        add_to(row_of(row), sum);
    }
};

template <typename T, int width>
static __device__ __forceinline__ void scatter(const leati_cuda_scatter_args &a) {
    enum { threads = LEATI_CUDA_GATHER_THREADS };
    typedef several<float, width> numbers;
    LEATI_SHARED(uint32_t, keys, SCATTER_TILE);
    LEATI_SHARED(numbers, heads, threads);
    LEATI_SHARED(uint32_t, head_rows, threads);
    LEATI_SHARED(int, length, 1);
    const int lane = threadIdx.x % a.lanes, group = threadIdx.x / a.lanes, groups = threads / a.lanes;
    const int64_t first_row = blockIdx.x * a.block_rows, left = a.indices.limit - first_row;
    const int64_t rows = left < a.block_rows ? left : a.block_rows;
    const int64_t column = ((int64_t)blockIdx.y * a.lanes + lane) * width;
    scatter_part<T, width> part = {(const T *)a.diff + column, a.dst + first_row * a.columns + column,
                                   a.columns, column < a.columns};
    for (int64_t r = group; r < rows && part.active; r += groups) *part.row_of((uint32_t)r) = numbers{};
    for (int64_t first = 0; first < a.indices.count; first += SCATTER_TILE) {
        if (threadIdx.x == 0) length[0] = 0;
        __syncthreads();
        list_keys(a.indices, first, first_row, rows, keys, length);
        __syncthreads();
        const int found = length[0];
        sort_keys(keys, found);
        const int each = (found + groups - 1) / groups, begin = group * each;
        if (begin < found)
            part.add_up(keys, begin, begin + each < found ? begin + each : found, &heads[threadIdx.x],
                        &head_rows[group]);
        __syncthreads();
        if (begin < found) part.add_heads(&heads[lane], head_rows, group, (found + each - 1) / each, a.lanes);
        part.diff += (int64_t)SCATTER_TILE * a.columns;
    }
}

LEATI_KERNEL_BOUNDED(leati_cuda_scatter_f32_1, leati_cuda_scatter_args, 512, 2) {
    scatter<float, 1>(a);
}
LEATI_KERNEL_BOUNDED(leati_cuda_scatter_f32_4, leati_cuda_scatter_args, 512, 2) {
    scatter<float, 4>(a);
}
LEATI_KERNEL_BOUNDED(leati_cuda_scatter_bf16_1, leati_cuda_scatter_args, 512, 2) {
    scatter<leati_bf16, 1>(a);
}
LEATI_KERNEL_BOUNDED(leati_cuda_scatter_bf16_4, leati_cuda_scatter_args, 512, 2) {
    scatter<leati_bf16, 4>(a);
}

/* ---- ONE_HOT ---- */

/* An index outside [0, depth) gives a row of zeros. */
template <typename T> static __device__ __forceinline__ void one_hot(const leati_cuda_one_hot_args &a) {
    T *dst = (T *)a.dst;
    const int64_t count = a.indices.count * a.depth;
    LEATI_FOR_EACH(i, count) {
        const int64_t place = count <= INT32_MAX ? (int64_t)((uint32_t)i / (uint32_t)a.depth) : i / a.depth;
        leati_store(&dst[i], index_at(a.indices, place) == i - place * a.depth ? 1.0f : 0.0f);
    }
}

LEATI_KERNEL(leati_cuda_one_hot_f32, leati_cuda_one_hot_args) {
    one_hot<float>(a);
}
LEATI_KERNEL(leati_cuda_one_hot_bf16, leati_cuda_one_hot_args) {
    one_hot<leati_bf16>(a);
}

/* ---- ARGMAX ---- */

/* The largest number so far and its place; NaN is never the largest. */
struct largest {
    float maximum;
    int at;
};
static __device__ __forceinline__ largest larger(largest a, largest b) {
    return b.maximum > a.maximum || (b.maximum == a.maximum && b.at < a.at) ? b : a;
}
static __device__ __forceinline__ largest warp_largest(largest x) {
    for (int lane = 16; lane > 0; lane /= 2) {
        largest other;
        other.maximum = __shfl_xor_sync(LEATI_ALL_LANES, x.maximum, lane);
        other.at = __shfl_xor_sync(LEATI_ALL_LANES, x.at, lane);
        x = larger(x, other);
    }
    return x;
}

/* A block for each row; inner is 1. */
template <typename T> static __device__ __forceinline__ void argmax_rows(const leati_cuda_argmax_args &a) {
    LEATI_SHARED(float, maxima, 32);
    LEATI_SHARED(int, places, 32);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
    for (int64_t o = blockIdx.x; o < a.outer; o += gridDim.x) {
        const T *line = (const T *)a.src + o * a.length;
        largest best = {-INFINITY, 0};
        for (int64_t k = threadIdx.x; k < a.length; k += blockDim.x) {
            const float x = leati_load(&line[k]);
            if (x > best.maximum) best = largest{x, (int)k};
        }
        best = warp_largest(best);
        if (lane == 0) {
            maxima[warp] = best.maximum;
            places[warp] = best.at;
        }
        __syncthreads();
        if (warp == 0) {
            best = lane < warps ? largest{maxima[lane], places[lane]} : largest{-INFINITY, 0};
            best = warp_largest(best);
            if (lane == 0) a.dst[o] = best.maximum > -INFINITY ? best.at : 0;
        }
        __syncthreads();
    }
}

/* A thread for each line. */
template <typename T> static __device__ __forceinline__ void argmax_lines(const leati_cuda_argmax_args &a) {
    LEATI_FOR_EACH(i, a.outer * a.inner) {
        const int64_t o = i / a.inner;
        const T *line = (const T *)a.src + o * a.length * a.inner + (i - o * a.inner);
        largest best = {-INFINITY, 0};
        for (int64_t k = 0; k < a.length; ++k) {
            const float x = leati_load(&line[k * a.inner]);
            if (x > best.maximum) best = largest{x, (int)k};
        }
        a.dst[i] = best.at;
    }
}

LEATI_KERNEL(leati_cuda_argmax_rows_f32, leati_cuda_argmax_args) {
    argmax_rows<float>(a);
}
LEATI_KERNEL(leati_cuda_argmax_rows_bf16, leati_cuda_argmax_args) {
    argmax_rows<leati_bf16>(a);
}
LEATI_KERNEL(leati_cuda_argmax_lines_f32, leati_cuda_argmax_args) {
    argmax_lines<float>(a);
}
LEATI_KERNEL(leati_cuda_argmax_lines_bf16, leati_cuda_argmax_args) {
    argmax_lines<leati_bf16>(a);
}

/* ---- IN_TOP_K ---- */

/* A warp for each row.  A row with a number that is not finite counts as one with all classes above the target. */
template <typename T, typename To>
static __device__ __forceinline__ void in_top_k(const leati_cuda_top_k_args &a) {
    const int lane = threadIdx.x % 32;
    const int64_t warps = (int64_t)gridDim.x * (blockDim.x / 32);
    for (int64_t i = (int64_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; i < a.indices.count;
         i += warps) {
        const T *row = (const T *)a.src + i * a.classes;
        const int64_t target = index_at(a.indices, i);
        const float x = target < 0 ? INFINITY : leati_load(&row[target]);
        bool finite = fabsf(x) < INFINITY;
        int above = 0; /* a row has fewer than 2^31 classes */
        for (int64_t k = lane; k < a.classes && finite; k += 32) {
            const float y = leati_load(&row[k]);
            finite = fabsf(y) < INFINITY;
            above += y > x;
        }
        int infinite = !finite;
        for (int step = 16; step > 0; step /= 2) {
            above += __shfl_xor_sync(LEATI_ALL_LANES, above, step);
            infinite += __shfl_xor_sync(LEATI_ALL_LANES, infinite, step);
        }
        if (lane == 0) leati_store((To *)a.dst + i, infinite == 0 && above < a.k ? 1.0f : 0.0f);
    }
}

LEATI_KERNEL(leati_cuda_in_top_k_f32_f32, leati_cuda_top_k_args) {
    in_top_k<float, float>(a);
}
LEATI_KERNEL(leati_cuda_in_top_k_f32_bf16, leati_cuda_top_k_args) {
    in_top_k<float, leati_bf16>(a);
}
LEATI_KERNEL(leati_cuda_in_top_k_bf16_f32, leati_cuda_top_k_args) {
    in_top_k<leati_bf16, float>(a);
}
LEATI_KERNEL(leati_cuda_in_top_k_bf16_bf16, leati_cuda_top_k_args) {
    in_top_k<leati_bf16, leati_bf16>(a);
}
