/* SPDX-License-Identifier: Apache-2.0 */
/* The products over all rows: the projection of x, and the gradients with respect to x and to the weights.  A block of
 * 256 threads computes a tile of 64 x 64, 4 x 4 in each thread; 16 terms of the sum at a time are in shared memory. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_RNN_PRODUCTS_CUH
#define LEATI_BACKENDS_CUDA_KERNELS_RNN_PRODUCTS_CUH

#include "backends/cuda/kernels/rnn_cell.cuh"

enum {
    TILE = LEATI_CUDA_RNN_TILE,
    CHUNK = 16,
    PADDED = TILE + 4,
    LOADS = TILE * CHUNK / LEATI_CUDA_RNN_THREADS
};

/* The place of a thread's i-th load in a chunk (16, 64), for memory that is contiguous along the sum or along the
 * tile. */
template <bool along_sum> static __device__ __forceinline__ void chunk_place(int i, int *k, int *at) {
    int thread = threadIdx.x;
    *k = along_sum ? thread % CHUNK : thread / TILE + i * (CHUNK / LOADS);
    *at = along_sum ? thread / CHUNK + i * (TILE / LOADS) : thread % TILE;
}

/* Loads the thread's part of a chunk of both operands, which starts at term `start` and ends before `to`. */
template <class Operands>
static __device__ __forceinline__ void fetch_chunk(const Operands &operands, int64_t start, int64_t to,
                                                   float (&left)[LOADS], float (&right)[LOADS]) {
    int k, at;
    RNN_UNROLL
    for (int i = 0; i < LOADS; i++) {
        chunk_place<Operands::left_along_sum>(i, &k, &at);
        left[i] = start + k < to ? operands.left(at, start + k) : 0.0f;
        chunk_place<Operands::right_along_sum>(i, &k, &at);
        right[i] = start + k < to ? operands.right(start + k, at) : 0.0f;
    }
}

template <class Operands>
static __device__ __forceinline__ void put_chunk(const float (&next_left)[LOADS],
                                                 const float (&next_right)[LOADS], float *left, float *right,
                                                 float *column_sum) {
    int k, at;
    RNN_UNROLL
    for (int i = 0; i < LOADS; i++) {
        chunk_place<Operands::left_along_sum>(i, &k, &at);
        left[k * PADDED + at] = next_left[i];
        chunk_place<Operands::right_along_sum>(i, &k, &at);
        right[k * PADDED + at] = next_right[i];
        *column_sum += next_right[i];
    }
}

static __device__ __forceinline__ void multiply_chunk(const float *left, const float *right,
                                                      float (&sums)[4][4]) {
    int row = threadIdx.x / 16 * 4, column = threadIdx.x % 16 * 4;
    RNN_UNROLL
    for (int k = 0; k < CHUNK; k++) {
        float4 l = *(const float4 *)(left + k * PADDED + row);
        float4 r = *(const float4 *)(right + k * PADDED + column);
        float ls[4] = {l.x, l.y, l.z, l.w}, rs[4] = {r.x, r.y, r.z, r.w};
        RNN_UNROLL
        for (int i = 0; i < 4; i++) RNN_UNROLL
        for (int j = 0; j < 4; j++) sums[i][j] += ls[i] * rs[j];
    }
}

/* The shared memory of a product: two chunks of each operand. */
enum { CHUNK_FLOATS = CHUNK * PADDED };

/* Adds to `sums` the terms [from, to) of the tile.  Operands give left(row, k) and right(k, column), which are 0
 * outside, with row and column counted from the tile's.  column_sum: of this thread's loads of `right`. */
template <class Operands>
static __device__ __forceinline__ void add_tile(const Operands &operands, int64_t from, int64_t to,
                                                float (&sums)[4][4], float *column_sum, float *left,
                                                float *right) {
    float next_left[LOADS], next_right[LOADS];
    if (from >= to) return;
    fetch_chunk(operands, from, to, next_left, next_right);
    __syncthreads(); /* the memory may still be read for the tile before */
    put_chunk<Operands>(next_left, next_right, left, right, column_sum);
    __syncthreads();
    for (int at = 0;; at ^= CHUNK_FLOATS) {
        from += CHUNK;
        if (from < to) fetch_chunk(operands, from, to, next_left, next_right);
        multiply_chunk(left + at, right + at, sums);
        if (from >= to) return;
        put_chunk<Operands>(next_left, next_right, left + (at ^ CHUNK_FLOATS), right + (at ^ CHUNK_FLOATS),
                            column_sum);
        __syncthreads();
    }
}

/* ---- x K + b ---- */

struct project_operands {
    static constexpr bool left_along_sum = true, right_along_sum = false;
    const leati_cuda_rnn_args &a;
    int64_t row, rows;
    int column, columns, gate; /* gate: of the mask */

    __device__ __forceinline__ float left(int at, int64_t k) const {
        int64_t r = row + at;
        if (r >= rows) return 0.0f;
        float x = a.x[r * a.features + k];
        return a.x_mask ? x * rnn_x_mask(a, gate, (int)(r / a.steps), (int)k) : x;
    }
    __device__ __forceinline__ float right(int64_t k, int at) const {
        return column + at < columns ? a.kernel[k * ((int64_t)a.gates * a.units) + column + at] : 0.0f;
    }
};

/* The grid: tiles of rows, tiles of columns, and with a mask the gates. */
static __device__ void rnn_project(const leati_cuda_rnn_args &a) {
    LEATI_SHARED(float4, left, CHUNK_FLOATS / 2);
    LEATI_SHARED(float4, right, CHUNK_FLOATS / 2);
    float sums[4][4] = {}, unused = 0.0f;
    int width = a.gates * a.units, gate = blockIdx.z;
    int first = gridDim.z > 1 ? gate * a.units : 0;
    project_operands operands = {a,
                                 (int64_t)blockIdx.x * TILE,
                                 (int64_t)a.batch * a.steps,
                                 first + (int)blockIdx.y * TILE,
                                 gridDim.z > 1 ? first + a.units : width,
                                 gate};
    add_tile(operands, 0, a.features, sums, &unused, (float *)left, (float *)right);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            int64_t row = operands.row + threadIdx.x / 16 * 4 + i;
            int column = operands.column + threadIdx.x % 16 * 4 + j;
            if (row >= operands.rows || column >= operands.columns) continue;
            a.projected[row * width + column] = sums[i][j] + (a.bias ? a.bias[column] : 0.0f);
        }
}

/* ---- The gradient with respect to x ---- */

struct diff_x_operands {
    static constexpr bool left_along_sum = true, right_along_sum = true;
    const leati_cuda_rnn_args &a;
    int64_t row, rows;
    int column;

    __device__ __forceinline__ float left(int at, int64_t k) const {
        return row + at < rows ? a.diff_gates[(row + at) * a.diff_width + k] : 0.0f;
    }
    __device__ __forceinline__ float right(int64_t k, int at) const {
        return column + at < a.features ? a.kernel[(column + at) * ((int64_t)a.gates * a.units) + k] : 0.0f;
    }
};

static __device__ void rnn_diff_x(const leati_cuda_rnn_args &a, int64_t tile, float *left, float *right) {
    int column_tiles = (a.features + TILE - 1) / TILE, parts = a.x_mask ? a.gates : 1;
    int64_t terms = (int64_t)a.gates * a.units / parts;
    diff_x_operands operands = {a, tile / column_tiles * TILE, (int64_t)a.batch * a.steps,
                                (int)(tile % column_tiles) * TILE};
    int64_t row = operands.row + threadIdx.x / 16 * 4;
    int column = operands.column + threadIdx.x % 16 * 4;
    float totals[4][4] = {}, unused = 0.0f;
    for (int part = 0; part < parts; part++) {
        float sums[4][4] = {};
        add_tile(operands, part * terms, (part + 1) * terms, sums, &unused, left, right);
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 4; j++) {
                bool inside = row + i < operands.rows && column + j < a.features;
                float factor =
                    inside && a.x_mask ? rnn_x_mask(a, part, (int)((row + i) / a.steps), column + j) : 1.0f;
                totals[i][j] += sums[i][j] * factor;
            }
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            if (row + i < operands.rows && column + j < a.features)
                a.diff_x[(row + i) * a.features + column + j] = totals[i][j];
}

/* ---- The gradients with respect to kernel, recurrent kernel and bias ---- */

struct weight_tile {
    bool of_x;
    int row, rows;
    int column, columns; /* columns: where the group ends */
    int gate;            /* of the group */
};

template <bool masked> struct weight_operands {
    static constexpr bool left_along_sum = false, right_along_sum = false;
    const float *values, *mask, *diff; /* values: x, h or v; mask: (N, rows), or NULL */
    int rows, columns;                 /* that remain of x or h and of the group, from the tile's first */
    int stride, mask_stride, diff_stride, shift, shift_from, steps;

    __device__ __forceinline__ float left(int at, int64_t k) const {
        float value = at < rows ? values[k * stride + at] : 0.0f;
        if (masked && mask && at < rows) value *= mask[(k / steps) * mask_stride + at];
        return value;
    }
    __device__ __forceinline__ float right(int64_t k, int at) const {
        return at < columns ? diff[k * diff_stride + at + (at >= shift_from ? shift : 0)] : 0.0f;
    }
};

/* A tile's number counts columns fastest: column tile, group, row tile (those of x first). */
static __device__ __forceinline__ weight_tile weight_tile_of(const leati_cuda_rnn_args &a, int tile) {
    int columns = tile % (a.column_tiles * a.column_groups), rows = tile / (a.column_tiles * a.column_groups);
    int group = columns / a.column_tiles, first = group * a.group_columns;
    bool of_x = rows < a.feature_tiles;
    return {of_x,
            (of_x ? rows : rows - a.feature_tiles) * TILE,
            of_x ? a.features : a.units,
            first + columns % a.column_tiles * TILE,
            first + a.group_columns,
            group};
}

template <bool masked>
static __device__ __forceinline__ weight_operands<masked> weight_operands_of(const leati_cuda_rnn_args &a,
                                                                             const weight_tile &t) {
    bool of_v = !t.of_x && a.cell == LEATI_CUDA_GRU && t.gate == 2; /* v has the mask of h */
    bool shifted = !t.of_x && a.cell == LEATI_CUDA_GRU_RESET_AFTER;
    const float *h = a.workspace + (of_v ? 3 * a.units : a.kept - a.units);
    const float *mask = t.of_x ? a.x_mask : of_v ? NULL : a.h_mask;
    return {(t.of_x ? a.x : h) + t.row,
            mask ? mask + (int64_t)t.gate * a.batch * t.rows + t.row : NULL,
            a.diff_gates + t.column,
            t.rows - t.row,
            t.columns - t.column,
            t.of_x ? a.features : a.kept,
            t.rows,
            a.diff_width,
            shifted ? a.units : 0,
            2 * a.units - t.column,
            a.steps};
}

static __device__ void store_weight_tile(const leati_cuda_rnn_args &a, const weight_tile &t,
                                         const float (&sums)[4][4]) {
    float *to = t.of_x ? a.diff_kernel : a.diff_recurrent;
    int row = t.row + threadIdx.x / 16 * 4, column = t.column + threadIdx.x % 16 * 4;
    for (int i = 0; to && i < 4; i++)
        for (int j = 0; j < 4; j++)
            if (row + i < t.rows && column + j < t.columns)
                to[(row + i) * ((int64_t)a.gates * a.units) + column + j] = sums[i][j];
}

/* Returns where the sum of a tile's column goes in diff_bias; NULL: nowhere.  The first row tiles of x have the bias of
 * the input, those of h the bias of the state. */
static __device__ __forceinline__ float *bias_of(const leati_cuda_rnn_args &a, const weight_tile &t, int at) {
    int column = t.column + at, side = t.of_x ? 0 : 1;
    if (!a.diff_bias || t.row != 0 || side >= a.biases || column >= t.columns) return NULL;
    return a.diff_bias + side * (a.gates * a.units) + column;
}

enum { PART_FLOATS = TILE * TILE + TILE };

static __device__ __forceinline__ void store_part(const leati_cuda_rnn_args &a, int part,
                                                  const float (&sums)[4][4], float column_sum) {
    float *to = a.partial + (int64_t)part * PART_FLOATS;
    int thread = threadIdx.x;
    RNN_UNROLL
    for (int i = 0; i < 4; i++)
        ((float4 *)to)[i * LEATI_CUDA_RNN_THREADS + thread] =
            make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
    if (thread < TILE) to[TILE * TILE + thread] = column_sum;
}

/* Adds the parts of a tile in their order. */
static __device__ __forceinline__ void add_parts(const leati_cuda_rnn_args &a, int tile, int tiles,
                                                 float (&sums)[4][4], float *column_sum) {
    const float *part = a.partial + (int64_t)tile * PART_FLOATS;
    int thread = threadIdx.x;
    *column_sum = 0.0f;
    RNN_UNROLL
    for (int i = 0; i < 16; i++) sums[i / 4][i % 4] = 0.0f;
    RNN_UNROLL_BY(4)
    for (int s = 0; s < a.splits; s++) {
        const float *from = part + (int64_t)s * tiles * PART_FLOATS;
        RNN_UNROLL
        for (int i = 0; i < 4; i++) {
            float4 v = __ldcg((const float4 *)from + i * LEATI_CUDA_RNN_THREADS + thread);
            sums[i][0] += v.x, sums[i][1] += v.y, sums[i][2] += v.z, sums[i][3] += v.w;
        }
        if (thread < TILE) *column_sum += __ldcg(from + TILE * TILE + thread);
    }
}

/* Computes a part of the sum of a tile.  The block that finishes a tile last adds the parts in their order. */
template <bool masked>
static __device__ __forceinline__ void rnn_diff_weights(const leati_cuda_rnn_args &a, int block, float *left,
                                                        float *right) {
    LEATI_SHARED(uint32_t, finished, 1);
    int tiles = a.column_tiles * a.column_groups * (a.feature_tiles + a.unit_tiles), thread = threadIdx.x;
    int tile = block % tiles, split = block / tiles;
    int64_t rows = (int64_t)a.batch * a.steps, from = (int64_t)split * a.split_rows;
    int64_t to = from + a.split_rows < rows ? from + a.split_rows : rows;
    weight_tile t = weight_tile_of(a, tile);
    float sums[4][4] = {}, column_sum = 0.0f;
    add_tile(weight_operands_of<masked>(a, t), from, to, sums, &column_sum, left, right);
    __syncthreads();
    left[thread] = column_sum;
    __syncthreads();
    if (thread < TILE)
        column_sum =
            (left[thread] + left[thread + TILE]) + (left[thread + 2 * TILE] + left[thread + 3 * TILE]);
    if (a.splits > 1) {
        store_part(a, split * tiles + tile, sums, column_sum);
        __threadfence();
        __syncthreads();
        if (thread == 0) *finished = atomicAdd(a.counters + tile, 1u);
        __syncthreads();
        if (*finished != (uint32_t)a.splits - 1) return;
        __threadfence();
        add_parts(a, tile, tiles, sums, &column_sum);
    }
    store_weight_tile(a, t, sums);
    float *bias = thread < TILE ? bias_of(a, t, thread) : NULL;
    if (bias) *bias = column_sum;
}

/* The blocks of the gradients with respect to the weights, and then those with respect to x. */
static __device__ void rnn_gradients(const leati_cuda_rnn_args &a) {
    LEATI_SHARED(float4, left, CHUNK_FLOATS / 2);
    LEATI_SHARED(float4, right, CHUNK_FLOATS / 2);
    int64_t block = blockIdx.x;
    if (block < a.weight_blocks && (a.x_mask || a.h_mask))
        rnn_diff_weights<true>(a, (int)block, (float *)left, (float *)right);
    else if (block < a.weight_blocks)
        rnn_diff_weights<false>(a, (int)block, (float *)left, (float *)right);
    else
        rnn_diff_x(a, block - a.weight_blocks, (float *)left, (float *)right);
}

#endif
