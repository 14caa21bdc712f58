/* SPDX-License-Identifier: Apache-2.0 */
/* Sums, means, maxima and minima over axes.  A thread adds in f32; what the threads hold is added in double, in a fixed
 * order.  A NaN makes a maximum or minimum NaN. */
#include "backends/cuda/kernels/reduce.h"

#include "backends/cuda/kernels/columns.cuh"
#include "backends/cuda/kernels/team.cuh"

struct leati_reduce_sum {
    template <class T> static __device__ __forceinline__ T combine(T a, T b) {
        return a + b;
    }
    static __device__ __forceinline__ float nothing() {
        return 0;
    }
};
struct leati_reduce_max {
    template <class T> static __device__ __forceinline__ T combine(T a, T b) {
        return b != b || b > a ? b : a;
    }
    static __device__ __forceinline__ float nothing() {
        return -INFINITY;
    }
};
struct leati_reduce_min {
    template <class T> static __device__ __forceinline__ T combine(T a, T b) {
        return b != b || b < a ? b : a;
    }
    static __device__ __forceinline__ float nothing() {
        return INFINITY;
    }
};

/* ---- Columns ---- */

template <class Op, int V> struct leati_column_results {
    static const int count = 1;
    float result[V];

    static __device__ __forceinline__ double nothing() {
        return (double)Op::nothing();
    }
    static __device__ __forceinline__ double combine(double a, double b) {
        return Op::combine(a, b);
    }
    __device__ __forceinline__ double total(int, int v) const {
        return (double)result[v];
    }
};

template <class Op, int TYPES, int V>
static __device__ __forceinline__ void reduce_columns(const leati_cuda_reduce_columns &a, double *shared) {
    leati_column_place p = leati_column_place_of<V>(a.columns);
    leati_column_results<Op, V> r;
    double total[1] = {0};
    int64_t base = p.matrix * a.columns.rows * a.columns.channels + p.channel;
    for (int v = 0; v < V; v++) r.result[v] = Op::nothing();
    if (p.active) {
        LEATI_UNROLL(4)
        for (int64_t row = p.first; row < p.last; row += p.step) {
            float x[V];
            leati_load_vector<TYPES, V>(a.src, base + row * a.columns.channels, x);
            for (int v = 0; v < V; v++) r.result[v] = Op::combine(r.result[v], x[v]);
        }
    }
    if (!leati_total_columns<V>(a.columns, p, r, shared, total)) return;
    int t = (int)threadIdx.x;
    int64_t c = (int64_t)p.block * a.columns.wide * V + t;
    if (t < a.columns.wide * V && c < a.columns.channels)
        leati_set_element(a.dst, p.matrix * a.columns.channels + c, (float)(total[0] / a.divisor));
}

/* ---- Rows ---- */

/* Returns the result of elements [first, last) of src for a thread of a team. */
template <class Op, bool VECTORS>
static __device__ __forceinline__ float reduce_range(const leati_cuda_tensor &src, int64_t first,
                                                     int64_t last, int thread, int step) {
    float result[4];
    for (int v = 0; v < 4; v++) result[v] = Op::nothing();
    int64_t i = first + thread;
    if (VECTORS) {
        LEATI_UNROLL(4)
        for (i = first + 4 * thread; i + 4 <= last; i += 4 * step) {
            float x[4];
            leati_load_vector<LEATI_ANY_TYPES, 4>(src, i, x);
            for (int v = 0; v < 4; v++) result[v] = Op::combine(result[v], x[v]);
        }
        i = first + (last - first) / 4 * 4 + thread;
    }
    LEATI_UNROLL(4)
    for (; i < last; i += step) result[0] = Op::combine(result[0], leati_element(src, i));
    return Op::combine(Op::combine(result[0], result[1]), Op::combine(result[2], result[3]));
}

/* One warp for each row, or one block for each part of a row. */
template <class Op, bool BLOCK, bool VECTORS>
static __device__ __forceinline__ void reduce_rows(const leati_cuda_reduce_rows &a, double *shared) {
    int64_t row = leati_team<BLOCK>();
    int thread = leati_team_thread<BLOCK>(), step = leati_team_size<BLOCK>();
    if (row >= a.rows) return;
    int64_t first = BLOCK ? blockIdx.y * a.part_length : 0;
    int64_t last = BLOCK && first + a.part_length < a.length ? first + a.part_length : a.length;
    double x =
        (double)reduce_range<Op, VECTORS>(a.src, row * a.length + first, row * a.length + last, thread, step);
    x = leati_team_combine<BLOCK, Op>(x, shared);
    if (BLOCK && a.parts > 1) {
        if (thread == 0) a.partial[row * a.parts + blockIdx.y] = x;
        if (!leati_is_last(a.finished + row, (unsigned)a.parts)) return;
        const volatile double *from = a.partial + row * a.parts;
        x = (double)Op::nothing();
        for (int64_t part = thread; part < a.parts; part += step) x = Op::combine(x, from[part]);
        x = leati_team_combine<BLOCK, Op>(x, shared);
    }
    if (thread == 0) leati_set_element(a.dst, row, (float)(x / a.divisor));
}

/* ---- Any axes ---- */

static __device__ __forceinline__ int64_t offset_in(int64_t i, const int64_t *size, const int64_t *stride) {
    int64_t offset = 0;
    for (int axis = LEATI_CUDA_REDUCE_AXES - 1; axis >= 0 && i > 0; axis--) {
        offset += i % size[axis] * stride[axis];
        i /= size[axis];
    }
    return offset;
}

/* LANES threads compute one element of dst: 1, a warp, or a block (0). */
template <class Op, int LANES>
static __device__ __forceinline__ void reduce_axes(const leati_cuda_reduce_axes &a, double *shared) {
    int64_t o = LANES == 1 ? (int64_t)blockIdx.x * blockDim.x + threadIdx.x : leati_team<LANES == 0>();
    int thread = LANES == 1 ? 0 : leati_team_thread<LANES == 0>();
    int step = LANES == 1 ? 1 : leati_team_size<LANES == 0>();
    if (o >= a.kept) return;
    int64_t base = offset_in(o, a.kept_size, a.kept_stride);
    float result = Op::nothing();
    for (int64_t i = thread; i < a.reduced; i += step)
        result =
            Op::combine(result, leati_element(a.src, base + offset_in(i, a.reduced_size, a.reduced_stride)));
    double x = (double)result;
    if (LANES != 1) x = leati_team_combine<LANES == 0, Op>(x, shared);
    if (thread == 0) leati_set_element(a.dst, o, (float)(x / a.divisor));
}

#define REDUCE_COLUMNS(op, suffix, types, v)                                                                 \
    LEATI_KERNEL_BOUNDED(leati_cuda_reduce_##op##_columns_##suffix, leati_cuda_reduce_columns, 1024, 1) {    \
        LEATI_DYNAMIC_SHARED(double, shared);                                                                \
        reduce_columns<leati_reduce_##op, types, v>(a, shared);                                              \
    }
#define REDUCE_ROWS(op, suffix, block, vectors)                                                              \
    LEATI_KERNEL_BOUNDED(leati_cuda_reduce_##op##_##suffix, leati_cuda_reduce_rows, 1024, 1) {               \
        LEATI_SHARED(double, shared, 32);                                                                    \
        reduce_rows<leati_reduce_##op, block, vectors>(a, shared);                                           \
    }
#define REDUCE_AXES(op, suffix, lanes)                                                                       \
    LEATI_KERNEL_BOUNDED(leati_cuda_reduce_##op##_##suffix, leati_cuda_reduce_axes, 256, 1) {                \
        LEATI_SHARED(double, shared, 32);                                                                    \
        reduce_axes<leati_reduce_##op, lanes>(a, shared);                                                    \
    }
#define REDUCE_KERNELS(op)                                                                                   \
    REDUCE_COLUMNS(op, f32_4, LEATI_ALL_F32, 4)                                                              \
    REDUCE_COLUMNS(op, any_4, LEATI_ANY_TYPES, 4)                                                            \
    REDUCE_COLUMNS(op, any_1, LEATI_ANY_TYPES, 1)                                                            \
    REDUCE_ROWS(op, row_warp_4, false, true)                                                                 \
    REDUCE_ROWS(op, row_block_4, true, true)                                                                 \
    REDUCE_ROWS(op, row_warp_1, false, false)                                                                \
    REDUCE_ROWS(op, row_block_1, true, false)                                                                \
    REDUCE_AXES(op, axes_thread, 1)                                                                          \
    REDUCE_AXES(op, axes_warp, 32)                                                                           \
    REDUCE_AXES(op, axes_block, 0)

REDUCE_KERNELS(sum)
REDUCE_KERNELS(max)
REDUCE_KERNELS(min)
