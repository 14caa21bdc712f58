/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions as products of matrices in f32 arithmetic.  The left matrix has a row for each pixel and a column for
 * each tap and channel, and is read from the image as it is needed.
 *
 * A block computes BM x BN elements; a thread computes 8 x TN of them: blocks of 4 x 4, BM / 2 rows and BN / 2 columns
 * apart.  The inner axis is read in chunks: the next one moves to registers while the one before is in shared memory,
 * which has room for two. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_CONV_GEMM_CUH
#define LEATI_BACKENDS_CUDA_KERNELS_CONV_GEMM_CUH

#include "backends/cuda/kernels/conv_gemm.h"
#include "backends/cuda/kernels/conv_parts.cuh"

enum { CHUNK = LEATI_CUDA_CONV_GEMM_CHUNK, TM = 8, ABSENT = -(1 << 30) };

template <int BM, int BN, int TN> struct gemm_sizes {
    static constexpr int THREADS = BM / TM * (BN / TN);
    static constexpr int A_LINE = BM + 4, B_LINE = BN + 4; /* of shared memory, for one k */
    static constexpr int BUFFER = CHUNK * (A_LINE + B_LINE);
    static constexpr int A_EACH = BM * CHUNK / THREADS, B_EACH = BN * CHUNK / THREADS;
};

/* Where a row of the product reads: the offset of the pixel of tap 0, and its position, which may be outside. */
struct alignas(16) gemm_row {
    int32_t pixel, at[3];
};

static __device__ __forceinline__ bool is_inside(const gemm_row &row, const int32_t *offset,
                                                 const int32_t *size) {
    bool inside = true; /* without branches */
    LEATI_UNROLL for (int d = 0; d < 3; ++d) inside =
        inside & ((uint32_t)(row.at[d] + offset[d]) < (uint32_t)size[d]);
    return inside;
}

/* The thread's place in the tile: of its first 4 x 4 elements. */
template <int BN, int TN> static __device__ __forceinline__ void place(int *y, int *x) {
    constexpr int across = BN / TN / 8; /* warps; a warp has 4 x 8 threads */
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    *x = (warp % across * 8 + lane % 8) * 4;
    *y = (warp / across * 4 + lane / 8) * 4;
}

/* Adds the products of a chunk to the thread's sums. */
template <int BM, int BN, int TN>
static __device__ __forceinline__ void add_products(const float *buffer, int y, int x, float (&sum)[TM][TN]) {
    typedef gemm_sizes<BM, BN, TN> sizes;
    const float *as = buffer + y, *bs = buffer + CHUNK * sizes::A_LINE + x;
    LEATI_UNROLL for (int k = 0; k < CHUNK; ++k) {
        float a[TM], b[TN];
        LEATI_UNROLL for (int i = 0; i < TM; i += 4) {
            float4 v = *reinterpret_cast<const float4 *>(as + k * sizes::A_LINE + i / 4 * (BM / 2));
            a[i] = v.x, a[i + 1] = v.y, a[i + 2] = v.z, a[i + 3] = v.w;
        }
        LEATI_UNROLL for (int j = 0; j < TN; j += 4) {
            float4 v = *reinterpret_cast<const float4 *>(bs + k * sizes::B_LINE + j / 4 * (BN / 2));
            b[j] = v.x, b[j + 1] = v.y, b[j + 2] = v.z, b[j + 3] = v.w;
        }
        LEATI_UNROLL for (int i = 0; i < TM; ++i) LEATI_UNROLL for (int j = 0; j < TN; ++j) sum[i][j] +=
            a[i] * b[j];
    }
}

/* Puts half of the tile, (BM / 2, BN), into shared memory, so that it can be stored along the rows. */
template <int BM, int BN, int TN>
static __device__ __forceinline__ void give_half(float *shared, int half, int y, int x,
                                                 const float (&sum)[TM][TN]) {
    __syncthreads();
    LEATI_UNROLL for (int h = 0; h < 2; ++h) LEATI_UNROLL for (int i = 0; i < 4; ++i)
        LEATI_UNROLL for (int j = 0; j < TN; j += 4) if (h == half) {
        const float *s = sum[h * 4 + i] + j;
        *reinterpret_cast<float4 *>(shared + (y + i) * BN + x + j / 4 * (BN / 2)) =
            make_float4(s[0], s[1], s[2], s[3]);
    }
    __syncthreads();
}

/* ---- Pixels of the result ---- */

/* Which taps and channels the thread reads: the same k of each chunk. */
struct gemm_taps {
    int32_t c, t[3], offset[3], pixels; /* offset: t * a.offset; pixels: the same as an offset of pixels */
};

static __device__ __forceinline__ void
move_taps(const leati_cuda_conv_gemm &a, const leati_cuda_conv_gemm_class &q, gemm_taps &taps, int32_t by) {
    taps.c += by;
    if (taps.c < a.channels) return;
    while (taps.c >= a.channels) {
        taps.c -= a.channels;
        if (++taps.t[2] < q.taps[2]) continue;
        taps.t[2] = 0;
        if (++taps.t[1] < q.taps[1]) continue;
        taps.t[1] = 0;
        ++taps.t[0];
    }
    LEATI_UNROLL for (int d = 0; d < 3; ++d) taps.offset[d] = taps.t[d] * a.offset[d];
    taps.pixels = (taps.offset[0] * a.src_size[1] + taps.offset[1]) * a.src_size[2] + taps.offset[2];
}

/* Reads the thread's part of a chunk of pixels: V channels at a time. */
template <typename T, int V, int THREADS, int COUNT>
static __device__ __forceinline__ void read_pixels(const leati_cuda_conv_gemm &a,
                                                   const leati_cuda_conv_gemm_class &q, const gemm_row *rows,
                                                   const gemm_taps &taps, float (&to)[COUNT]) {
    constexpr int lanes = CHUNK / V;
    LEATI_UNROLL for (int i = 0; i < COUNT / V; ++i) {
        const gemm_row row = rows[threadIdx.x / lanes + i * (THREADS / lanes)];
        LEATI_UNROLL for (int v = 0; v < V; ++v) to[i * V + v] = 0;
        if ((taps.t[0] < q.taps[0]) & is_inside(row, taps.offset, a.src_size))
            leati_access<T, V>::load(a.src, (int64_t)(row.pixel + taps.pixels) * a.channels + taps.c,
                                     to + i * V);
    }
}

/* Reads the thread's part of a chunk of weights (k, columns). */
template <typename T, int V, int BN, int THREADS, int COUNT>
static __device__ __forceinline__ void read_weights(const leati_cuda_conv_gemm &a, int32_t k0, int32_t depth,
                                                    int32_t n0, float (&to)[COUNT]) {
    constexpr int lanes = BN / V;
    int32_t n = n0 + (int32_t)threadIdx.x % lanes * V;
    LEATI_UNROLL for (int i = 0; i < COUNT / V; ++i) {
        int32_t k = k0 + (int32_t)threadIdx.x / lanes + i * (THREADS / lanes);
        LEATI_UNROLL for (int v = 0; v < V; ++v) to[i * V + v] = 0;
        if ((k < depth) & (n < a.columns))
            leati_access<T, V>::load(a.weights, (int64_t)k * a.columns + n, to + i * V);
    }
}

/* The same for weights (tap, columns, channels): `taps` says which of them. */
template <typename T, int V, int THREADS, int COUNT>
static __device__ __forceinline__ void read_weights_across(const leati_cuda_conv_gemm &a,
                                                           const leati_cuda_conv_gemm_class &q, int32_t n0,
                                                           const gemm_taps &taps, float (&to)[COUNT]) {
    constexpr int lanes = CHUNK / V;
    int32_t tap[3];
    LEATI_UNROLL for (int d = 0; d < 3; ++d) tap[d] = q.tap[d] + taps.t[d] * a.tap_step[d];
    int64_t row = (int64_t)((tap[0] * a.kernel[1] + tap[1]) * a.kernel[2] + tap[2]) * a.columns;
    LEATI_UNROLL for (int i = 0; i < COUNT / V; ++i) {
        int32_t n = n0 + (int32_t)threadIdx.x / lanes + i * (THREADS / lanes);
        LEATI_UNROLL for (int v = 0; v < V; ++v) to[i * V + v] = 0;
        if ((taps.t[0] < q.taps[0]) & (n < a.columns))
            leati_access<T, V>::load(a.weights, (row + n) * a.channels + taps.c, to + i * V);
    }
}

/* Puts what was read along k into shared memory, where k is the outer axis. */
template <int V, int THREADS, int LINE, int COUNT>
static __device__ __forceinline__ void keep_across(float *to, const float (&from)[COUNT]) {
    constexpr int lanes = CHUNK / V;
    int k = threadIdx.x % lanes * V;
    LEATI_UNROLL for (int i = 0; i < COUNT / V; ++i) LEATI_UNROLL for (int v = 0; v < V; ++v)
        to[(k + v) * LINE + threadIdx.x / lanes + i * (THREADS / lanes)] = from[i * V + v];
}

/* Puts what was read along the rows or columns, of which there are LINE - 4, into shared memory. */
template <int V, int THREADS, int LINE, int COUNT>
static __device__ __forceinline__ void keep_along(float *to, const float (&from)[COUNT]) {
    constexpr int lanes = (LINE - 4) / V;
    float *first = to + threadIdx.x / lanes * LINE + threadIdx.x % lanes * V;
    LEATI_UNROLL for (int i = 0; i < COUNT / V; ++i) {
        float *line = first + i * (THREADS / lanes) * LINE;
        if (V == 4)
            *reinterpret_cast<float4 *>(line) =
                make_float4(from[i * V], from[i * V + 1 % V], from[i * V + 2 % V], from[i * V + 3 % V]);
        else
            *line = from[i];
    }
}

/* Finds the pixels of the tile's rows: where they read, and where they are stored (-1: nowhere). */
template <int BM, int THREADS>
static __device__ __forceinline__ void find_rows(const leati_cuda_conv_gemm &a,
                                                 const leati_cuda_conv_gemm_class &q, int32_t m0,
                                                 gemm_row *rows, int32_t *to) {
    for (int r = threadIdx.x; r < BM; r += THREADS) {
        int32_t rest = m0 + r, j[3], at[3];
        LEATI_UNROLL for (int d = 2; d >= 0; --d) {
            j[d] = rest % q.size[d];
            rest /= q.size[d];
            at[d] = q.base[d] + j[d] * a.move[d];
            j[d] = q.first[d] + j[d] * a.dst_step[d];
        }
        bool present = m0 + r < q.rows;
        rows[r].pixel = ((rest * a.src_size[0] + at[0]) * a.src_size[1] + at[1]) * a.src_size[2] + at[2];
        rows[r].at[0] = present ? at[0] : (int32_t)ABSENT;
        rows[r].at[1] = at[1];
        rows[r].at[2] = at[2];
        to[r] = present ? ((rest * a.dst_size[0] + j[0]) * a.dst_size[1] + j[1]) * a.dst_size[2] + j[2] : -1;
    }
}

/* Stores half of the tile, from shared memory. */
template <typename T, int V, int BM, int BN, int THREADS>
static __device__ __forceinline__ void store_half(const leati_cuda_conv_gemm &a, const float *shared,
                                                  const int32_t *to, int32_t n0) {
#ifndef LEATI_CUDA_SIMULATED
#pragma unroll 1
#endif
    for (int e = threadIdx.x; e < BM / 2 * BN / V; e += THREADS) {
        int32_t row = e / (BN / V), column = e % (BN / V) * V, n = n0 + column;
        if (to[row] < 0 || n >= a.columns) continue;
        int64_t at = (int64_t)to[row] * a.columns + n;
        float x[V];
        LEATI_UNROLL for (int v = 0; v < V; ++v) x[v] =
            leati_conv_finished(a.post, shared[row * BN + column + v], n + v, at + v);
        leati_access<T, V>::store(a.dst, at, x);
    }
}

/* across: the weights are (tap, columns, channels), otherwise (tap, channels, columns).  VA, VB, VC: how many
 * neighbours are read or stored at once. */
template <typename T, bool across, int BM, int BN, int TN, int VA, int VB, int VC>
static __device__ __forceinline__ void conv_gemm(const leati_cuda_conv_gemm &a) {
    typedef gemm_sizes<BM, BN, TN> sizes;
    constexpr int THREADS = sizes::THREADS, A_LINE = sizes::A_LINE, B_LINE = sizes::B_LINE;
    LEATI_SHARED(float4, shared4, 2 * sizes::BUFFER / 4);
    LEATI_SHARED(gemm_row, rows, BM);
    LEATI_SHARED(int32_t, to, BM);
    float *shared = reinterpret_cast<float *>(shared4);
    int32_t tile = (int32_t)blockIdx.x / a.tiles_n, n0 = (int32_t)blockIdx.x % a.tiles_n * BN, which = 0;
    while (which + 1 < a.class_count && tile >= a.classes[which + 1].tile) ++which;
    const leati_cuda_conv_gemm_class &q = a.classes[which];
    find_rows<BM, THREADS>(a, q, (tile - q.tile) * BM, rows, to);
    gemm_taps taps = {};
    move_taps(a, q, taps, (int32_t)threadIdx.x % (CHUNK / VA) * VA);
    int32_t depth = q.taps[0] * q.taps[1] * q.taps[2] * a.channels;
    float next_a[sizes::A_EACH], next_b[sizes::B_EACH], sum[TM][TN];
    LEATI_UNROLL for (int i = 0; i < TM; ++i) LEATI_UNROLL for (int j = 0; j < TN; ++j) sum[i][j] = 0;
    int y, x;
    place<BN, TN>(&y, &x);
    __syncthreads();
    for (int32_t k = -CHUNK; k < depth; k += CHUNK) {
        float *buffer = shared + (k / CHUNK & 1) * sizes::BUFFER;
        if (k >= 0) {
            keep_across<VA, THREADS, A_LINE>(buffer, next_a);
            if (across)
                keep_across<VB, THREADS, B_LINE>(buffer + CHUNK * A_LINE, next_b);
            else
                keep_along<VB, THREADS, B_LINE>(buffer + CHUNK * A_LINE, next_b);
            __syncthreads();
        }
        if (k + CHUNK < depth) {
            read_pixels<T, VA, THREADS>(a, q, rows, taps, next_a);
            if (across)
                read_weights_across<T, VB, THREADS>(a, q, n0, taps, next_b);
            else
                read_weights<T, VB, BN, THREADS>(a, k + CHUNK, depth, n0, next_b);
            move_taps(a, q, taps, CHUNK);
        }
        if (k >= 0) add_products<BM, BN, TN>(buffer, y, x, sum);
    }
    for (int half = 0; half < 2; ++half) {
        give_half<BM, BN, TN>(shared, half, y, x, sum);
        store_half<T, VC, BM, BN, THREADS>(a, shared, to + half * (BM / 2), n0);
    }
}

/* ---- Gradient with respect to the weights ---- */

/* Which pixel one of the first threads of the block describes for the others. */
struct gemm_pixel {
    int32_t left, n, o[3]; /* left: how many pixels the range has from this one on */
};

static __device__ __forceinline__ gemm_row row_of(const leati_cuda_window_shape &s, const gemm_pixel &p) {
    gemm_row row;
    LEATI_UNROLL for (int d = 0; d < 3; ++d) row.at[d] = p.o[d] * s.stride[d] - s.pad[d];
    row.pixel = ((p.n * s.in[0] + row.at[0]) * s.in[1] + row.at[1]) * s.in[2] + row.at[2];
    if (p.left <= 0) row.at[0] = ABSENT;
    return row;
}

static __device__ __forceinline__ void move_pixel(const leati_cuda_window_shape &s, gemm_pixel &p) {
    p.left -= CHUNK;
    p.o[2] += CHUNK;
    while (p.o[2] >= s.out[2]) {
        p.o[2] -= s.out[2];
        if (++p.o[1] < s.out[1]) continue;
        p.o[1] = 0;
        if (++p.o[0] < s.out[0]) continue;
        p.o[0] = 0;
        ++p.n;
    }
}

/* Reads the thread's part of a chunk of pixels: V neighbouring channels under one tap.  offset: the tap's; -1 as `c`:
 * the row of the result does not exist. */
template <typename T, int V, int BM, int THREADS, int COUNT>
static __device__ __forceinline__ void read_rows(const leati_cuda_conv_gemm_weights &a, const gemm_row *rows,
                                                 const int32_t *offset, int32_t pixels, int32_t c,
                                                 float (&to)[COUNT]) {
    constexpr int lanes = BM / V;
    LEATI_UNROLL for (int i = 0; i < COUNT / V; ++i) {
        LEATI_UNROLL for (int v = 0; v < V; ++v) to[i * V + v] = 0;
        const gemm_row row = rows[threadIdx.x / lanes + i * (THREADS / lanes)];
        if ((c >= 0) & is_inside(row, offset, a.shape.in))
            leati_access<T, V>::load(a.src, (int64_t)(row.pixel + pixels) * a.shape.channels + c, to + i * V);
    }
}

/* Reads the thread's part of a chunk of diff_dst: `left` pixels from `first` on. */
template <typename T, int V, int BN, int THREADS, int COUNT>
static __device__ __forceinline__ void read_diff(const leati_cuda_conv_gemm_weights &a, int32_t first,
                                                 int32_t left, int32_t n0, float (&to)[COUNT]) {
    constexpr int lanes = BN / V;
    int32_t n = n0 + (int32_t)threadIdx.x % lanes * V;
    LEATI_UNROLL for (int i = 0; i < COUNT / V; ++i) {
        int32_t k = (int32_t)threadIdx.x / lanes + i * (THREADS / lanes);
        LEATI_UNROLL for (int v = 0; v < V; ++v) to[i * V + v] = 0;
        if ((k < left) & (n < a.shape.filters))
            leati_access<T, V>::load(a.diff_dst, (int64_t)(first + k) * a.shape.filters + n, to + i * V);
    }
}

/* Stores half of the tile, and `items` numbers further on in the next range's part. */
template <int BM, int BN, int THREADS>
static __device__ __forceinline__ void store_weights(const leati_cuda_conv_gemm_weights &a,
                                                     const leati_cuda_array &to, const float *shared,
                                                     int32_t m0, int32_t n0) {
#ifndef LEATI_CUDA_SIMULATED
#pragma unroll 1
#endif
    for (int e = threadIdx.x; e < BM / 2 * BN; e += THREADS) {
        int32_t m = m0 + e / BN, n = n0 + e % BN;
        if (m < a.shape.taps * a.shape.channels && n < a.shape.filters)
            leati_access<leati_mixed, 1>::store(to, (int64_t)m * a.shape.filters + n, shared + e);
    }
}

template <typename T, int BM, int BN, int TN, int VA, int VB>
static __device__ __forceinline__ void conv_gemm_weights(const leati_cuda_conv_gemm_weights &a) {
    typedef gemm_sizes<BM, BN, TN> sizes;
    constexpr int THREADS = sizes::THREADS, A_LINE = sizes::A_LINE, B_LINE = sizes::B_LINE;
    LEATI_SHARED(float4, shared4, 2 * sizes::BUFFER / 4);
    LEATI_SHARED(gemm_row, rows, 2 * CHUNK);
    float *shared = reinterpret_cast<float *>(shared4);
    const leati_cuda_window_shape &s = a.shape;
    int32_t m0 = (int32_t)blockIdx.x / a.tiles_n * BM, n0 = (int32_t)blockIdx.x % a.tiles_n * BN;
    int32_t first = (int32_t)blockIdx.y * a.split_pixels, left = (int32_t)s.out_pixels - first;
    if (left > a.split_pixels) left = a.split_pixels;
    int32_t m = m0 + (int32_t)threadIdx.x % (BM / VA) * VA, tap = m / s.channels;
    int32_t c = tap < s.taps ? m % s.channels : -1;
    int32_t offset[3] = {tap / (s.kernel[1] * s.kernel[2]) * s.dilation[0],
                         tap / s.kernel[2] % s.kernel[1] * s.dilation[1], tap % s.kernel[2] * s.dilation[2]};
    int32_t pixels = (offset[0] * s.in[1] + offset[1]) * s.in[2] + offset[2];
    gemm_pixel mine = {};
    if (threadIdx.x < CHUNK) {
        int32_t rest = first + (int32_t)threadIdx.x;
        LEATI_UNROLL for (int d = 2; d >= 0; --d) {
            mine.o[d] = rest % s.out[d];
            rest /= s.out[d];
        }
        mine.n = rest;
        mine.left = left - (int32_t)threadIdx.x;
        rows[threadIdx.x] = row_of(s, mine);
    }
    float next_a[sizes::A_EACH], next_b[sizes::B_EACH], sum[TM][TN], bias = 0;
    LEATI_UNROLL for (int i = 0; i < TM; ++i) LEATI_UNROLL for (int j = 0; j < TN; ++j) sum[i][j] = 0;
    bool has_bias = a.diff_bias.data && m0 == 0 && threadIdx.x < BN;
    int y, x;
    place<BN, TN>(&y, &x);
    __syncthreads();
    for (int32_t k = -CHUNK; k < left; k += CHUNK) {
        int parity = k / CHUNK & 1;
        float *buffer = shared + parity * sizes::BUFFER;
        if (k >= 0) {
            keep_along<VA, THREADS, A_LINE>(buffer, next_a);
            keep_along<VB, THREADS, B_LINE>(buffer + CHUNK * A_LINE, next_b);
            if (threadIdx.x < CHUNK) {
                move_pixel(s, mine);
                rows[(parity ^ 1) * CHUNK + threadIdx.x] = row_of(s, mine);
            }
            __syncthreads();
        }
        if (k + CHUNK < left) {
            read_rows<T, VA, BM, THREADS>(a, rows + (parity ^ 1) * CHUNK, offset, pixels, c, next_a);
            read_diff<T, VB, BN, THREADS>(a, first + k + CHUNK, left - k - CHUNK, n0, next_b);
        }
        if (k < 0) continue;
        add_products<BM, BN, TN>(buffer, y, x, sum);
        if (has_bias)
            LEATI_UNROLL for (int i = 0; i < CHUNK; ++i) bias +=
                buffer[CHUNK * A_LINE + i * B_LINE + threadIdx.x];
    }
    int32_t weights = s.taps * s.channels * s.filters;
    float *partial = a.partial + (int64_t)blockIdx.y * (weights + s.filters);
    leati_cuda_array to = a.diff_weights, to_bias = a.diff_bias;
    if (a.splits > 1) {
        to.data = partial, to.bf16 = 0;
        to_bias.data = partial + weights, to_bias.bf16 = 0;
    }
    if (has_bias && n0 + (int32_t)threadIdx.x < s.filters)
        leati_access<leati_mixed, 1>::store(to_bias, n0 + threadIdx.x, &bias);
    if (!a.diff_weights.data) return;
    for (int half = 0; half < 2; ++half) {
        give_half<BM, BN, TN>(shared, half, y, x, sum);
        store_weights<BM, BN, THREADS>(a, to, shared, m0 + half * (BM / 2), n0);
    }
}

/* ---- Instances ---- */

#define PIXELS(name, type, across, bm, bn, tn, blocks, va, vb, vc)                                           \
    LEATI_KERNEL_BOUNDED(leati_cuda_conv_gemm_##name, leati_cuda_conv_gemm,                                  \
                         (gemm_sizes<bm, bn, tn>::THREADS), blocks) {                                        \
        conv_gemm<type, across, bm, bn, tn, va, vb, vc>(a);                                                  \
    }
#define WEIGHTS(name, type, bm, bn, tn, blocks, va, vb)                                                      \
    LEATI_KERNEL_BOUNDED(leati_cuda_conv_gemm_weights_##name, leati_cuda_conv_gemm_weights,                  \
                         (gemm_sizes<bm, bn, tn>::THREADS), blocks) {                                        \
        conv_gemm_weights<type, bm, bn, tn, va, vb>(a);                                                      \
    }

PIXELS(forward_128x128_f32, float, false, 128, 128, 8, 2, 4, 4, 4)
PIXELS(forward_128x64_f32, float, false, 128, 64, 8, 4, 4, 4, 4)
PIXELS(forward_128x32_f32, float, false, 128, 32, 4, 5, 4, 4, 4)
PIXELS(forward_64x64_f32, float, false, 64, 64, 4, 5, 4, 4, 4)
PIXELS(forward_128x64_f32_few, float, false, 128, 64, 8, 3, 1, 4, 4)
PIXELS(forward_128x32_f32_few, float, false, 128, 32, 4, 4, 1, 4, 4)
PIXELS(forward_128x64_bf16_few, leati_bf16, false, 128, 64, 8, 3, 1, 4, 4)
PIXELS(forward_128x32_bf16_few, leati_bf16, false, 128, 32, 4, 4, 1, 4, 4)
PIXELS(forward_128x64_bf16, leati_bf16, false, 128, 64, 8, 4, 4, 4, 4)
PIXELS(forward_128x32_bf16, leati_bf16, false, 128, 32, 4, 5, 4, 4, 4)
PIXELS(forward_64x64_bf16, leati_bf16, false, 64, 64, 4, 5, 4, 4, 4)
PIXELS(forward_64x64_f32_any, float, false, 64, 64, 4, 5, 1, 1, 1)

PIXELS(data_128x128_f32, float, true, 128, 128, 8, 2, 4, 4, 4)
PIXELS(data_128x64_f32, float, true, 128, 64, 8, 4, 4, 4, 4)
PIXELS(data_128x32_f32, float, true, 128, 32, 4, 4, 4, 4, 4)
PIXELS(data_64x64_f32, float, true, 64, 64, 4, 5, 4, 4, 4)
PIXELS(data_128x64_bf16, leati_bf16, true, 128, 64, 8, 4, 4, 4, 4)
PIXELS(data_128x32_bf16, leati_bf16, true, 128, 32, 4, 4, 4, 4, 4)
PIXELS(data_64x64_bf16, leati_bf16, true, 64, 64, 4, 5, 4, 4, 4)
PIXELS(data_64x64_f32_any, float, true, 64, 64, 4, 5, 1, 1, 1)

WEIGHTS(128x128_f32, float, 128, 128, 8, 2, 4, 4)
WEIGHTS(128x64_f32, float, 128, 64, 8, 3, 4, 4)
WEIGHTS(128x32_f32, float, 128, 32, 4, 4, 4, 4)
WEIGHTS(64x64_f32, float, 64, 64, 4, 4, 4, 4)
WEIGHTS(128x64_bf16, leati_bf16, 128, 64, 8, 3, 4, 4)
WEIGHTS(128x32_bf16, leati_bf16, 128, 32, 4, 4, 4, 4)
WEIGHTS(64x64_bf16, leati_bf16, 64, 64, 4, 4, 4, 4)
WEIGHTS(64x64_f32_few, float, 64, 64, 4, 4, 1, 4)
WEIGHTS(64x32_f32_few, float, 64, 32, 4, 8, 1, 4)
WEIGHTS(64x64_bf16_few, leati_bf16, 64, 64, 4, 4, 1, 4)
WEIGHTS(64x32_bf16_few, leati_bf16, 64, 32, 4, 8, 1, 4)
WEIGHTS(64x64_f32_any, float, 64, 64, 4, 4, 1, 1)

#undef PIXELS
#undef WEIGHTS

#endif
