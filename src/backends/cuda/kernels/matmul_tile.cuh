/* SPDX-License-Identifier: Apache-2.0 */
/* A block computes a tile of a product.  It reads CHUNK elements of the inner axis at a time into shared memory, while
 * it computes with the chunk before.  A thread computes SIDE x SIDE elements, and the threads of a tile form a group.
 * The groups of a block share the inner axis: each takes 4 elements of it in turn, and at the end their sums are added.
 * All accesses of shared memory in the inner loop move 16 bytes and reach all banks. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_MATMUL_TILE_CUH
#define LEATI_BACKENDS_CUDA_KERNELS_MATMUL_TILE_CUH

#include "backends/cuda/kernels/matmul_end.cuh"

template <int TILE_, int CHUNK_, int SIDE_, int THREADS_, int BUFFERS_> struct tile_shape {
    static constexpr int TILE = TILE_, CHUNK = CHUNK_, SIDE = SIDE_, THREADS = THREADS_, BUFFERS = BUFFERS_;
    static constexpr int ACROSS = TILE / SIDE, GROUP = ACROSS * ACROSS, GROUPS = THREADS / GROUP;
    static constexpr int QUADS = TILE * CHUNK / 4 / THREADS; /* that a thread reads of an operand's chunk */
    static constexpr int LINE = CHUNK + 4;                   /* of an operand that is contiguous along k */
    static constexpr int OPERAND = TILE * LINE;              /* floats of an operand's chunk */
    static constexpr int IN_WARP = GROUP < 32 ? 32 / GROUP : 1; /* groups of a warp */
    static constexpr int PARTS = GROUPS / IN_WARP, PART_LINE = TILE + 8;
};
using tile_16 = tile_shape<16, 256, 4, LEATI_CUDA_MATMUL_THREADS_16, 1>;
using tile_32 = tile_shape<32, 64, 4, LEATI_CUDA_MATMUL_THREADS, 2>;
using tile_64 = tile_shape<64, 32, 8, LEATI_CUDA_MATMUL_THREADS, 2>;

/* The part of one operand that a block needs: rows from `row` on, of `rows`.  The operand is contiguous along k, or
 * along its rows. */
template <typename T> struct tile_source {
    const T *data; /* the matrix */
    int row, rows, k_contiguous, vectorized;
    int64_t ld;
    bool ones; /* a row of ones follows the last row; not if k_contiguous */
};

/* Loads 4 elements: at once, or one after the other and only the first `count`. */
template <bool VECTORIZED> static __device__ __forceinline__ float4 load_4(const float *p, int count) {
    if (VECTORIZED) return *reinterpret_cast<const float4 *>(p);
    return make_float4(p[0], count > 1 ? p[1] : 0.0f, count > 2 ? p[2] : 0.0f, count > 3 ? p[3] : 0.0f);
}
template <bool VECTORIZED> static __device__ __forceinline__ float4 load_4(const leati_bf16 *p, int count) {
    if (VECTORIZED) {
        const uint2 x = *reinterpret_cast<const uint2 *>(p);
        return make_float4(__uint_as_float(x.x << 16), __uint_as_float(x.x & 0xffff0000u),
                           __uint_as_float(x.y << 16), __uint_as_float(x.y & 0xffff0000u));
    }
    return make_float4(leati_load(p), count > 1 ? leati_load(p + 1) : 0.0f,
                       count > 2 ? leati_load(p + 2) : 0.0f, count > 3 ? leati_load(p + 3) : 0.0f);
}

/* Four elements as they are in memory: bf16 is converted only when the memory has answered. */
struct raw_quad {
    uint4 bits;
};
static __device__ __forceinline__ void read_raw(raw_quad &to, const float *p) {
    to.bits = *reinterpret_cast<const uint4 *>(p);
}
static __device__ __forceinline__ void read_raw(raw_quad &to, const leati_bf16 *p) {
    const uint2 half = *reinterpret_cast<const uint2 *>(p);
    to.bits.x = half.x;
    to.bits.y = half.y;
}
static __device__ __forceinline__ float4 converted(const raw_quad &from, const float *) {
    return make_float4(__uint_as_float(from.bits.x), __uint_as_float(from.bits.y),
                       __uint_as_float(from.bits.z), __uint_as_float(from.bits.w));
}
static __device__ __forceinline__ float4 converted(const raw_quad &from, const leati_bf16 *) {
    return make_float4(__uint_as_float(from.bits.x << 16), __uint_as_float(from.bits.x & 0xffff0000u),
                       __uint_as_float(from.bits.y << 16), __uint_as_float(from.bits.y & 0xffff0000u));
}
static __device__ __forceinline__ void keep_raw(raw_quad &to, float4 x, const float *) {
    to.bits.x = __float_as_uint(x.x);
    to.bits.y = __float_as_uint(x.y);
    to.bits.z = __float_as_uint(x.z);
    to.bits.w = __float_as_uint(x.w);
}
static __device__ __forceinline__ void keep_raw(raw_quad &to, float4 x, const leati_bf16 *) {
    to.bits.x = __float_as_uint(x.x) >> 16 | (__float_as_uint(x.y) & 0xffff0000u);
    to.bits.y = __float_as_uint(x.z) >> 16 | (__float_as_uint(x.w) & 0xffff0000u);
}

/* Reads the thread's quads of the chunk that begins at k0; what is outside of the matrix, or behind k_end, is 0. */
template <typename S, typename T>
static __device__ __forceinline__ void read_chunk(const tile_source<T> &s, int k0, int k_end,
                                                  raw_quad (&to)[S::QUADS]) {
#pragma unroll
    for (int i = 0; i < S::QUADS; ++i) {
        const int e = (int)threadIdx.x + i * S::THREADS;
        const int slow = s.k_contiguous ? e / (S::CHUNK / 4) : e / (S::TILE / 4);
        const int fast = 4 * (s.k_contiguous ? e % (S::CHUNK / 4) : e % (S::TILE / 4));
        const int k = k0 + (s.k_contiguous ? fast : slow), row = s.row + (s.k_contiguous ? slow : fast);
        const int left = s.k_contiguous ? k_end - k : s.rows - row;
        const bool inside = left > 0 && (s.k_contiguous ? row < s.rows : k < k_end);
        const T *p = s.data + (s.k_contiguous ? row * s.ld + k : k * s.ld + row);
        to[i].bits.x = to[i].bits.y = to[i].bits.z = to[i].bits.w = 0;
        if (s.ones && k < k_end && left >= 0 && left < 4) {
            float4 q = left > 0 ? load_4<false>(p, left) : make_float4(1.0f, 0.0f, 0.0f, 0.0f);
            if (left == 1) q.y = 1.0f;
            if (left == 2) q.z = 1.0f;
            if (left == 3) q.w = 1.0f;
            keep_raw(to[i], q, p);
            continue;
        }
        if (!inside) continue;
        if (s.vectorized)
            read_raw(to[i], p);
        else
            keep_raw(to[i], load_4<false>(p, left), p);
    }
}

template <typename S, typename T>
static __device__ __forceinline__ void keep_chunk(const tile_source<T> &s, float *shared,
                                                  const raw_quad (&from)[S::QUADS]) {
#pragma unroll
    for (int i = 0; i < S::QUADS; ++i) {
        const int e = (int)threadIdx.x + i * S::THREADS;
        const int at = s.k_contiguous ? e / (S::CHUNK / 4) * S::LINE + 4 * (e % (S::CHUNK / 4)) : 4 * e;
        *reinterpret_cast<float4 *>(shared + at) = converted(from[i], s.data);
    }
}

/* Returns the row of the tile that is number i of the thread at `place` in its group. */
template <typename S> static __device__ __forceinline__ int tile_row(int k_contiguous, int place, int i) {
    return k_contiguous ? place + S::ACROSS * i : i / 4 * (4 * S::ACROSS) + 4 * place + i % 4;
}

/* Loads what the thread at `place` needs of an operand for the inner elements k to k + 3. */
template <typename S>
static __device__ __forceinline__ void load_side(const float *shared, int k_contiguous, int place, int k,
                                                 float (&to)[4][S::SIDE]) {
    if (k_contiguous) {
#pragma unroll
        for (int i = 0; i < S::SIDE; ++i) {
            const float4 q =
                *reinterpret_cast<const float4 *>(shared + (place + S::ACROSS * i) * S::LINE + k);
            to[0][i] = q.x, to[1][i] = q.y, to[2][i] = q.z, to[3][i] = q.w;
        }
        return;
    }
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int i = 0; i < S::SIDE; i += 4) {
            const float4 q =
                *reinterpret_cast<const float4 *>(shared + (k + j) * S::TILE + tile_row<S>(0, place, i));
            to[j][i] = q.x, to[j][i + 1] = q.y, to[j][i + 2] = q.z, to[j][i + 3] = q.w;
        }
}

/* Adds the products of a chunk of `count` inner elements to the thread's sums. */
template <typename S>
static __device__ __forceinline__ void add_chunk(const float *as, const float *bs, int a_contiguous,
                                                 int b_contiguous, int count,
                                                 float (&sum)[S::SIDE][S::SIDE]) {
    const int group = (int)threadIdx.x / S::GROUP, y = (int)threadIdx.x % S::GROUP / S::ACROSS,
              x = (int)threadIdx.x % S::ACROSS;
#pragma unroll 1
    for (int k = 4 * group; k < count; k += 4 * S::GROUPS) {
        float a[4][S::SIDE], b[4][S::SIDE];
        load_side<S>(as, a_contiguous, y, k, a);
        load_side<S>(bs, b_contiguous, x, k, b);
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int r = 0; r < S::SIDE; ++r)
#pragma unroll
                for (int c = 0; c < S::SIDE; ++c) sum[r][c] += a[j][r] * b[j][c];
    }
}

/* Leaves the sums of the groups in shared: (PARTS, TILE, PART_LINE). */
template <typename S>
static __device__ __forceinline__ void keep_sums(float *shared, int a_contiguous, int b_contiguous,
                                                 float (&sum)[S::SIDE][S::SIDE]) {
    const int y = (int)threadIdx.x % S::GROUP / S::ACROSS, x = (int)threadIdx.x % S::ACROSS;
    float *part = shared + (int)threadIdx.x / (S::GROUP * S::IN_WARP) * (S::TILE * S::PART_LINE);
#pragma unroll
    for (int r = 0; r < S::SIDE; ++r)
#pragma unroll
        for (int c = 0; c < S::SIDE; ++c)
            if (S::IN_WARP == 2) sum[r][c] += __shfl_xor_sync(LEATI_ALL_LANES, sum[r][c], S::GROUP);
    if (S::IN_WARP == 2 && (int)threadIdx.x % 32 >= S::GROUP) return;
#pragma unroll
    for (int r = 0; r < S::SIDE; ++r) {
        float *line = part + tile_row<S>(a_contiguous, y, r) * S::PART_LINE;
#pragma unroll
        for (int c = 0; c < S::SIDE; c += 4) {
            if (!b_contiguous) {
                *reinterpret_cast<float4 *>(line + tile_row<S>(0, x, c)) =
                    make_float4(sum[r][c], sum[r][c + 1], sum[r][c + 2], sum[r][c + 3]);
                continue;
            }
#pragma unroll
            for (int j = c; j < c + 4; ++j) line[x + S::ACROSS * j] = sum[r][j];
        }
    }
}

/* Computes the tile's sums over k0 to k_end and leaves those of the groups in shared. */
template <typename S, typename A, typename B>
static __device__ __forceinline__ void sum_tile(const tile_source<A> &a, const tile_source<B> &b, int k0,
                                                int k_end, float *shared) {
    raw_quad next_a[S::QUADS], next_b[S::QUADS];
    float sum[S::SIDE][S::SIDE];
    int buffer = 0;
#pragma unroll
    for (int r = 0; r < S::SIDE; ++r)
#pragma unroll
        for (int c = 0; c < S::SIDE; ++c) sum[r][c] = 0.0f;
    read_chunk<S>(a, k0, k_end, next_a);
    read_chunk<S>(b, k0, k_end, next_b);
#pragma unroll 1
    for (int k = k0; k < k_end; k += S::CHUNK) {
        float *as = shared + buffer * (2 * S::OPERAND), *bs = as + S::OPERAND;
        keep_chunk<S>(a, as, next_a);
        keep_chunk<S>(b, bs, next_b);
        __syncthreads();
        if (k_end - k > S::CHUNK) {
            read_chunk<S>(a, k + S::CHUNK, k_end, next_a);
            read_chunk<S>(b, k + S::CHUNK, k_end, next_b);
        }
        const int count = k_end - k < S::CHUNK ? k_end - k : S::CHUNK;
        add_chunk<S>(as, bs, a.k_contiguous, b.k_contiguous, count, sum);
        if (S::BUFFERS == 1) __syncthreads();
        buffer = S::BUFFERS - 1 - buffer;
    }
    if (S::BUFFERS > 1) __syncthreads();
    keep_sums<S>(shared, a.k_contiguous, b.k_contiguous, sum);
    __syncthreads();
}

template <typename S> static __device__ __forceinline__ float sum_of_groups(const float *shared, int e) {
    float x = 0.0f;
#pragma unroll
    for (int g = 0; g < S::PARTS; ++g) x += shared[(g * S::TILE + e / S::TILE) * S::PART_LINE + e % S::TILE];
    return x;
}

/* Writes this block's part of a tile.  Returns true in the block that ends last, which then finds all parts. */
template <typename S>
static __device__ __forceinline__ bool give_part(float *parts, unsigned *finished, int splits, int split,
                                                 const float *shared, unsigned *ticket) {
    for (int e = threadIdx.x; e < S::TILE * S::TILE; e += S::THREADS)
        parts[split * (S::TILE * S::TILE) + e] = sum_of_groups<S>(shared, e);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) *ticket = atomicAdd(finished, 1u);
    __syncthreads();
    if (*ticket != (unsigned)splits - 1) return false;
    if (threadIdx.x == 0) *finished = 0;
    __threadfence();
    return true;
}

template <typename S, typename A, typename B>
static __device__ __forceinline__ void tile_product(const leati_cuda_matmul_tile &a) {
    LEATI_DYNAMIC_SHARED(float, shared);
    LEATI_SHARED(unsigned, ticket, 1);
    const int split = (int)(blockIdx.x % (unsigned)a.splits);
    const int64_t tile = blockIdx.x / (unsigned)a.splits;
    const int64_t matrix = tile / (a.tiles_m * a.tiles_n);
    const int inside = (int)(tile % (a.tiles_m * a.tiles_n));
    const int row = inside / a.tiles_n * S::TILE, column = inside % a.tiles_n * S::TILE;
    const tile_source<A> left = {static_cast<const A *>(a.a) + matrix * a.m * a.k,
                                 row,
                                 a.m,
                                 !a.a_transposed,
                                 a.a_vectorized,
                                 a.a_transposed ? a.m : a.k,
                                 a.row_sums != nullptr};
    const tile_source<B> right = {static_cast<const B *>(a.b) + matrix * a.n * a.k,
                                  column,
                                  a.n,
                                  a.b_transposed,
                                  a.b_vectorized,
                                  a.b_transposed ? a.k : a.n,
                                  false};
    const int k0 = split * a.split_k, k_end = a.k - k0 < a.split_k ? a.k : k0 + a.split_k;
    sum_tile<S>(left, right, k0, k_end, shared);
    float *parts = a.splits > 1 ? a.parts + tile * a.splits * (S::TILE * S::TILE) : nullptr;
    if (a.splits > 1 && !give_part<S>(parts, a.finished + tile, a.splits, split, shared, ticket)) return;
    for (int e = threadIdx.x; e < S::TILE * S::TILE; e += S::THREADS) {
        const bool is_sum = a.row_sums && row + e / S::TILE == a.m;
        if ((row + e / S::TILE >= a.m && !is_sum) || column + e % S::TILE >= a.n) continue;
        float x = 0.0f;
        if (a.splits > 1) {
#pragma unroll 8
            for (int s = 0; s < a.splits; ++s) x += __ldcg(parts + s * (S::TILE * S::TILE) + e);
        } else {
            x = sum_of_groups<S>(shared, e);
        }
        if (!is_sum)
            end_element(a.end, matrix * a.m + row + e / S::TILE, column + e % S::TILE, x);
        else if (a.row_sums_bf16)
            leati_store(static_cast<leati_bf16 *>(a.row_sums) + column + e % S::TILE, x);
        else
            leati_store(static_cast<float *>(a.row_sums) + column + e % S::TILE, x);
    }
}

#endif
