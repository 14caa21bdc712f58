/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of convolutions: those with few products per output element, above all depthwise ones, as a whole; and
 * what stands before and after cuDNN's kernels: packed weights, frames of padding, bias, normalisation, function. */
#include "backends/cuda/kernels/conv.h"

#include "backends/cuda/kernels/conv_gemm.cuh"
#include "backends/cuda/kernels/conv_parts.cuh"

/* ---- Forward ---- */

/* Each thread computes V neighbouring filters of P neighbouring pixels.  With `same`, filter f has channel f alone;
 * otherwise the V filters have the same channels. */
template <typename T, int V, int P, bool same>
static __device__ __forceinline__ void forward(const leati_cuda_conv_direct &a) {
    const leati_cuda_window_shape &s = a.shape;
    int32_t chunks = s.filters / V, channels = same ? 1 : s.group_channels;
    int64_t blocks = (s.out_pixels + P - 1) / P;
    LEATI_FOR_EACH(i, blocks * chunks) {
        int32_t chunk, n[P], at[P][3];
        int64_t first = leati_divided(i, chunks, &chunk) * P;
        int32_t f = chunk * V, c0 = same ? f : f / s.group_filters * s.group_channels;
        float sum[P][V];
        LEATI_UNROLL for (int p = 0; p < P; ++p) {
            leati_window_of(s, first + p < s.out_pixels ? first + p : first, &n[p], at[p]);
            LEATI_UNROLL for (int v = 0; v < V; ++v) sum[p][v] = 0;
        }
        int64_t row = f;
        for (int32_t k0 = 0; k0 < s.kernel[0]; ++k0)
            for (int32_t k1 = 0; k1 < s.kernel[1]; ++k1)
                for (int32_t k2 = 0; k2 < s.kernel[2]; ++k2) {
                    int64_t from[P];
                    LEATI_UNROLL for (int p = 0; p < P; ++p) from[p] =
                        leati_source_of(s, n[p], at[p], k0, k1, k2);
                    for (int32_t c = 0; c < channels; ++c, row += s.filters) {
                        float w[V];
                        leati_access<T, V>::load(a.weights, row, w);
                        LEATI_UNROLL for (int p = 0; p < P; ++p) {
                            if (from[p] < 0) continue;
                            float x[V];
                            leati_access<T, same ? V : 1>::load(a.src, from[p] * s.channels + c0 + c, x);
                            LEATI_UNROLL for (int v = 0; v < V; ++v) sum[p][v] += x[same ? v : 0] * w[v];
                        }
                    }
                }
        LEATI_UNROLL for (int p = 0; p < P; ++p) {
            if (first + p >= s.out_pixels) continue;
            int64_t to = (first + p) * s.filters + f;
            LEATI_UNROLL for (int v = 0; v < V; ++v) sum[p][v] =
                leati_conv_finished(a.post, sum[p][v], f + v, to + v);
            leati_access<T, V>::store(a.dst, to, sum[p]);
        }
    }
}

LEATI_KERNEL(leati_cuda_conv_forward_f32, leati_cuda_conv_direct) {
    forward<float, 4, 4, false>(a);
}
LEATI_KERNEL(leati_cuda_conv_forward_bf16, leati_cuda_conv_direct) {
    forward<leati_bf16, 8, 2, false>(a);
}
LEATI_KERNEL(leati_cuda_conv_forward_depthwise_f32, leati_cuda_conv_direct) {
    forward<float, 4, 4, true>(a);
}
LEATI_KERNEL(leati_cuda_conv_forward_depthwise_bf16, leati_cuda_conv_direct) {
    forward<leati_bf16, 8, 2, true>(a);
}
LEATI_KERNEL(leati_cuda_conv_forward_any, leati_cuda_conv_direct) {
    forward<leati_mixed, 1, 1, false>(a);
}

/* ---- Gradient with respect to src ---- */

/* Each thread adds up what V neighbouring channels of a source pixel receive. */
template <typename T, int V, bool same>
static __device__ __forceinline__ void backward_data(const leati_cuda_conv_direct &a) {
    const leati_cuda_window_shape &s = a.shape;
    int32_t chunks = s.channels / V;
    LEATI_FOR_EACH(i, s.in_pixels * chunks) {
        int32_t chunk, i0, i1, i2;
        int64_t pixel = leati_divided(i, chunks, &chunk), rest = leati_divided(pixel, s.in[2], &i2);
        rest = leati_divided(rest, s.in[1], &i1);
        int32_t n = (int32_t)leati_divided(rest, s.in[0], &i0), c = chunk * V;
        int32_t inner = same ? 0 : c % s.group_channels,
                f = same ? c : c / s.group_channels * s.group_filters;
        float sum[V];
        LEATI_UNROLL for (int v = 0; v < V; ++v) sum[v] = 0;
        int32_t tap = 0;
        for (int32_t k0 = 0; k0 < s.kernel[0]; ++k0)
            for (int32_t k1 = 0; k1 < s.kernel[1]; ++k1)
                for (int32_t k2 = 0; k2 < s.kernel[2]; ++k2, ++tap) {
                    int32_t o0 = leati_output_of(s, 0, i0, k0), o1 = leati_output_of(s, 1, i1, k1),
                            o2 = leati_output_of(s, 2, i2, k2);
                    if (o0 < 0 || o1 < 0 || o2 < 0) continue;
                    int64_t from = (((int64_t)n * s.out[0] + o0) * s.out[1] + o1) * s.out[2] + o2;
                    from = from * s.filters + f;
                    int64_t row = ((int64_t)tap * s.group_channels + inner) * s.filters + f;
                    for (int32_t j = 0; j < (same ? 1 : s.group_filters); ++j) {
                        float x[V], w[V];
                        leati_access<T, V>::load(a.src, from + j, x);
                        leati_access<T, V>::load(a.weights, row + j, w);
                        LEATI_UNROLL for (int v = 0; v < V; ++v) sum[v] += x[v] * w[v];
                    }
                }
        leati_access<T, V>::store(a.dst, pixel * s.channels + c, sum);
    }
}

/* Each thread computes one channel of a source pixel, from V neighbouring filters at a time. */
template <typename T, int V>
static __device__ __forceinline__ void backward_data_by_filters(const leati_cuda_conv_direct &a) {
    const leati_cuda_window_shape &s = a.shape;
    LEATI_FOR_EACH(i, s.in_pixels * s.channels) {
        int32_t c, i0, i1, i2, tap = 0;
        int64_t pixel = leati_divided(i, s.channels, &c), rest = leati_divided(pixel, s.in[2], &i2);
        rest = leati_divided(rest, s.in[1], &i1);
        int32_t n = (int32_t)leati_divided(rest, s.in[0], &i0);
        int32_t inner = c % s.group_channels, f = c / s.group_channels * s.group_filters;
        float sum = 0;
        for (int32_t k0 = 0; k0 < s.kernel[0]; ++k0)
            for (int32_t k1 = 0; k1 < s.kernel[1]; ++k1)
                for (int32_t k2 = 0; k2 < s.kernel[2]; ++k2, ++tap) {
                    int32_t o0 = leati_output_of(s, 0, i0, k0), o1 = leati_output_of(s, 1, i1, k1);
                    int32_t o2 = leati_output_of(s, 2, i2, k2);
                    if (o0 < 0 || o1 < 0 || o2 < 0) continue;
                    int64_t from = (((int64_t)n * s.out[0] + o0) * s.out[1] + o1) * s.out[2] + o2;
                    from = from * s.filters + f;
                    int64_t row = ((int64_t)tap * s.group_channels + inner) * s.filters + f;
                    for (int32_t j = 0; j < s.group_filters; j += V) {
                        float x[V], w[V];
                        leati_access<T, V>::load(a.src, from + j, x);
                        leati_access<T, V>::load(a.weights, row + j, w);
                        LEATI_UNROLL for (int v = 0; v < V; ++v) sum += x[v] * w[v];
                    }
                }
        leati_access<T, 1>::store(a.dst, i, &sum);
    }
}

LEATI_KERNEL(leati_cuda_conv_bwd_data_f32, leati_cuda_conv_direct) {
    backward_data_by_filters<float, 4>(a);
}
LEATI_KERNEL(leati_cuda_conv_bwd_data_bf16, leati_cuda_conv_direct) {
    backward_data_by_filters<leati_bf16, 8>(a);
}
LEATI_KERNEL(leati_cuda_conv_bwd_data_depthwise_f32, leati_cuda_conv_direct) {
    backward_data<float, 4, true>(a);
}
LEATI_KERNEL(leati_cuda_conv_bwd_data_depthwise_bf16, leati_cuda_conv_direct) {
    backward_data<leati_bf16, 8, true>(a);
}
LEATI_KERNEL(leati_cuda_conv_bwd_data_any, leati_cuda_conv_direct) {
    backward_data<leati_mixed, 1, false>(a);
}

/* ---- Gradient with respect to the weights and the bias ---- */

/* blockIdx.y is the range of pixels; each thread adds up one weight, or one bias after all weights. */
template <typename T>
static __device__ __forceinline__ void backward_weights(const leati_cuda_conv_weights &a) {
    const leati_cuda_window_shape &s = a.shape;
    int32_t weights = s.taps * s.group_channels * s.filters, items = weights + s.filters;
    int64_t each = (s.out_pixels + a.splits - 1) / a.splits, first = (int64_t)blockIdx.y * each;
    int64_t end = first + each < s.out_pixels ? first + each : s.out_pixels;
    LEATI_FOR_EACH(item, items) {
        int32_t f = (int32_t)(item % s.filters);
        float sum = 0, x, y;
        if (item >= weights) {
            for (int64_t pixel = first; a.diff_bias.data && pixel < end; ++pixel) {
                leati_access<T, 1>::load(a.diff_dst, pixel * s.filters + f, &y);
                sum += y;
            }
        } else if (a.diff_weights.data && first < end) {
            int32_t row = (int32_t)item / s.filters, tap = row / s.group_channels;
            int32_t c = f / s.group_filters * s.group_channels + row % s.group_channels;
            int32_t k[3] = {tap / (s.kernel[1] * s.kernel[2]), tap / s.kernel[2] % s.kernel[1],
                            tap % s.kernel[2]};
            int32_t n, at[3], start[3], stop[3];
            leati_window_of(s, first, &n, at);
            for (int d = 0; d < 3; ++d) {
                start[d] = k[d] * s.dilation[d] - s.pad[d];
                at[d] += k[d] * s.dilation[d];
                stop[d] = start[d] + s.out[d] * s.stride[d];
            }
            for (int64_t pixel = first; pixel < end; ++pixel) {
                bool inside = (uint32_t)at[0] < (uint32_t)s.in[0] && (uint32_t)at[1] < (uint32_t)s.in[1] &&
                              (uint32_t)at[2] < (uint32_t)s.in[2];
                if (inside) {
                    int64_t from = (((int64_t)n * s.in[0] + at[0]) * s.in[1] + at[1]) * s.in[2] + at[2];
                    leati_access<T, 1>::load(a.src, from * s.channels + c, &x);
                    leati_access<T, 1>::load(a.diff_dst, pixel * s.filters + f, &y);
                    sum += x * y;
                }
                at[2] += s.stride[2];
                if (at[2] < stop[2]) continue;
                at[2] = start[2];
                at[1] += s.stride[1];
                if (at[1] < stop[1]) continue;
                at[1] = start[1];
                at[0] += s.stride[0];
                if (at[0] < stop[0]) continue;
                at[0] = start[0];
                ++n;
            }
        }
        a.partial[(int64_t)blockIdx.y * items + item] = sum;
    }
}

LEATI_KERNEL(leati_cuda_conv_bwd_weights_f32, leati_cuda_conv_weights) {
    backward_weights<float>(a);
}
LEATI_KERNEL(leati_cuda_conv_bwd_weights_bf16, leati_cuda_conv_weights) {
    backward_weights<leati_bf16>(a);
}
LEATI_KERNEL(leati_cuda_conv_bwd_weights_any, leati_cuda_conv_weights) {
    backward_weights<leati_mixed>(a);
}

enum { tile = 32, tile_rows = 8 }; /* a block of 256 threads */

/* Returns the sum of `splits` numbers that are `stride` apart; 32 neighbouring sums are computed by a block of 256
 * threads.  The result is valid in the first 32 threads. */
static __device__ __forceinline__ float sum_of_splits(const float *from, int64_t stride, int32_t splits,
                                                      bool inside) {
    LEATI_SHARED(float, part, tile *tile_rows);
    float sums[4] = {0, 0, 0, 0};
    int32_t split = threadIdx.x / tile;
    for (; inside && split + 3 * tile_rows < splits; split += 4 * tile_rows)
        LEATI_UNROLL for (int k = 0; k < 4; ++k) sums[k] += from[(split + k * tile_rows) * stride];
    for (; inside && split < splits; split += tile_rows) sums[0] += from[split * stride];
    part[threadIdx.x] = sums[0] + sums[1] + (sums[2] + sums[3]);
    __syncthreads();
    float sum = 0;
    for (int row = 0; threadIdx.x < tile && row < tile_rows; ++row) sum += part[row * tile + threadIdx.x];
    return sum;
}

/* Adds up the partial sums: each block 32 of them. */
LEATI_KERNEL(leati_cuda_conv_bwd_weights_sum, leati_cuda_conv_weights) {
    int32_t weights = a.shape.taps * a.shape.group_channels * a.shape.filters,
            items = weights + a.shape.filters;
    int32_t item = (int32_t)blockIdx.x * tile + (int32_t)threadIdx.x % tile;
    bool inside = item < items && (item < weights ? a.diff_weights.data : a.diff_bias.data);
    float sum = sum_of_splits(a.partial + item, items, a.splits, inside);
    if (!inside || threadIdx.x >= tile) return;
    leati_access<leati_mixed, 1>::store(item < weights ? a.diff_weights : a.diff_bias,
                                        item < weights ? item : item - weights, &sum);
}

/* ---- Gradient with respect to the weights of a depthwise convolution of two axes ---- */

/* A block serves V * 32 filters and one range of rows of the output (blockIdx.y); each warp takes rows in turn, and a
 * thread keeps the sums of all taps of its filters. */
template <typename T, int V, int K1, int K2>
static __device__ __forceinline__ void depthwise_weights(const leati_cuda_conv_weights &a) {
    LEATI_SHARED(float, part, tile *tile_rows);
    const leati_cuda_window_shape &s = a.shape;
    int32_t lane = threadIdx.x % tile, warp = threadIdx.x / tile, f = ((int32_t)blockIdx.x * tile + lane) * V;
    int32_t items = (K1 * K2 + 1) * s.filters, lines = s.batch * s.out[1];
    float sum[K1 * K2 + 1][V];
    LEATI_UNROLL for (int k = 0; k <= K1 * K2; ++k) LEATI_UNROLL for (int v = 0; v < V; ++v) sum[k][v] = 0;
    for (int32_t line = (int32_t)blockIdx.y + (int32_t)gridDim.y * warp; f < s.filters && line < lines;
         line += (int32_t)gridDim.y * tile_rows) {
        int32_t n = line / s.out[1], top = line % s.out[1] * s.stride[1] - s.pad[1];
        int64_t to = (int64_t)line * s.out[2] * s.filters + f;
        for (int32_t o = 0; o < s.out[2]; ++o, to += s.filters) {
            int32_t left = o * s.stride[2] - s.pad[2];
            float y[V];
            leati_access<T, V>::load(a.diff_dst, to, y);
            LEATI_UNROLL for (int v = 0; v < V; ++v) sum[K1 * K2][v] += y[v];
            LEATI_UNROLL for (int k1 = 0; k1 < K1; ++k1) {
                int32_t i1 = top + k1 * s.dilation[1];
                if ((uint32_t)i1 >= (uint32_t)s.in[1]) continue;
                int64_t row = ((int64_t)n * s.in[1] + i1) * s.in[2];
                LEATI_UNROLL for (int k2 = 0; k2 < K2; ++k2) {
                    int32_t i2 = left + k2 * s.dilation[2];
                    if ((uint32_t)i2 >= (uint32_t)s.in[2]) continue;
                    float x[V];
                    leati_access<T, V>::load(a.src, (row + i2) * s.channels + f, x);
                    LEATI_UNROLL for (int v = 0; v < V; ++v) sum[k1 * K2 + k2][v] += x[v] * y[v];
                }
            }
        }
    }
    LEATI_UNROLL for (int k = 0; k <= K1 * K2; ++k) LEATI_UNROLL for (int v = 0; v < V; ++v) {
        part[threadIdx.x] = sum[k][v];
        __syncthreads();
        float all = 0;
        for (int row = 0; warp == 0 && row < tile_rows; ++row) all += part[row * tile + lane];
        __syncthreads();
        if (warp == 0 && f < s.filters)
            a.partial[(int64_t)blockIdx.y * items + (int64_t)k * s.filters + f + v] = all;
    }
}

LEATI_KERNEL(leati_cuda_conv_bwd_weights_3x3_f32, leati_cuda_conv_weights) {
    depthwise_weights<float, 1, 3, 3>(a);
}
LEATI_KERNEL(leati_cuda_conv_bwd_weights_3x3_bf16, leati_cuda_conv_weights) {
    depthwise_weights<leati_bf16, 2, 3, 3>(a);
}
LEATI_KERNEL(leati_cuda_conv_bwd_weights_5x5_f32, leati_cuda_conv_weights) {
    depthwise_weights<float, 1, 5, 5>(a);
}
LEATI_KERNEL(leati_cuda_conv_bwd_weights_5x5_bf16, leati_cuda_conv_weights) {
    depthwise_weights<leati_bf16, 2, 5, 5>(a);
}

/* ---- Around cuDNN's kernels ---- */

/* Each thread copies V neighbouring channels. */
template <typename T, int V> static __device__ __forceinline__ void frame(const leati_cuda_conv_frame &a) {
    int32_t chunks = a.to_channels / V;
    LEATI_FOR_EACH(i, a.pixels * chunks) {
        int32_t chunk, at[3];
        int64_t pixel = leati_divided(i, chunks, &chunk), rest = pixel;
        bool inside = chunk * V < a.from_channels;
        for (int d = 2; d >= 0; --d) {
            rest = leati_divided(rest, a.to_size[d], &at[d]);
            at[d] -= a.before[d];
            inside = inside && (uint32_t)at[d] < (uint32_t)a.from_size[d];
        }
        float x[V];
        LEATI_UNROLL for (int v = 0; v < V; ++v) x[v] = 0;
        if (inside) {
            int64_t from =
                ((rest * a.from_size[0] + at[0]) * a.from_size[1] + at[1]) * a.from_size[2] + at[2];
            leati_access<T, V>::load(a.from, from * a.from_channels + chunk * V, x);
        }
        leati_access<T, V>::store(a.to, pixel * a.to_channels + chunk * V, x);
    }
}

LEATI_KERNEL(leati_cuda_conv_frame_f32, leati_cuda_conv_frame) {
    frame<float, 4>(a);
}
LEATI_KERNEL(leati_cuda_conv_frame_bf16, leati_cuda_conv_frame) {
    frame<leati_bf16, 8>(a);
}
LEATI_KERNEL(leati_cuda_conv_frame_any, leati_cuda_conv_frame) {
    frame<leati_mixed, 1>(a);
}

/* Makes images of 2 x 2 pixels side by side in the channels, so that a window of stride 2 has stride 1 and fewer taps.
 * Each thread writes 8 channels. */
LEATI_KERNEL(leati_cuda_conv_fold, leati_cuda_conv_frame) {
    enum { V = 8 };
    int32_t chunks = a.to_channels / V;
    LEATI_FOR_EACH(i, a.pixels * chunks) {
        int32_t chunk, y, x;
        int64_t pixel = leati_divided(i, chunks, &chunk), rest = leati_divided(pixel, a.to_size[2], &x);
        rest = leati_divided(rest, a.to_size[1], &y);
        float values[V];
        LEATI_UNROLL for (int v = 0; v < V; ++v) {
            int32_t part = (chunk * V + v) / a.from_channels, c = (chunk * V + v) % a.from_channels;
            int32_t i1 = 2 * y + part / 2 - a.before[1], i2 = 2 * x + part % 2 - a.before[2];
            bool inside = part < 4 && (uint32_t)i1 < (uint32_t)a.from_size[1] &&
                          (uint32_t)i2 < (uint32_t)a.from_size[2];
            int64_t from = (rest * a.from_size[1] + i1) * a.from_size[2] + i2;
            values[v] = inside ? leati_at(a.from, from * a.from_channels + c) : 0.0f;
        }
        if (a.to.bf16)
            leati_access<leati_bf16, V>::store(a.to, pixel * a.to_channels + chunk * V, values);
        else
            leati_access<leati_mixed, V>::store(a.to, pixel * a.to_channels + chunk * V, values);
    }
}

/* Returns the tap and channel of the weights, as a row of them, that are packed as `row`; -1: a zero. */
static __device__ __forceinline__ int32_t weights_row(const leati_cuda_conv_packing &a, int32_t row) {
    int32_t tap = row / a.packed_channels, c = row % a.packed_channels;
    if (!a.folded) return c < a.channels ? tap * a.channels + c : -1;
    int32_t part = c / a.channels, k1 = tap / a.packed_across * 2 + part / 2,
            k2 = tap % a.packed_across * 2 + part % 2;
    bool present = part < 4 && k1 < a.kernel[0] && k2 < a.kernel[1];
    return present ? (k1 * a.kernel[1] + k2) * a.channels + c % a.channels : -1;
}

/* Returns where row `row` of the weights, a tap and a channel, is among those of a filter that is packed. */
static __device__ __forceinline__ int32_t packed_row(const leati_cuda_conv_packing &a, int32_t row) {
    return a.planes ? row % a.packed_channels * a.taps + row / a.packed_channels : row;
}

/* Each block transposes a tile of weights (taps * channels, filters). */
LEATI_KERNEL(leati_cuda_conv_pack, leati_cuda_conv_packing) {
    LEATI_SHARED(float, part, tile *(tile + 1));
    int32_t rows = a.taps * a.packed_channels, down = (rows + tile - 1) / tile;
    int32_t row0 = (int32_t)(blockIdx.x % down) * tile, f0 = (int32_t)(blockIdx.x / down) * tile;
    int32_t x = threadIdx.x % tile, y = threadIdx.x / tile;
    for (int32_t j = y; j < tile; j += tile_rows) {
        int32_t row = row0 + j < rows ? weights_row(a, row0 + j) : -1;
        bool inside = row >= 0 && f0 + x < a.filters;
        int64_t from = (int64_t)row * a.filters + f0 + x;
        part[j * (tile + 1) + x] = inside ? leati_at(a.from, from) : 0.0f;
    }
    __syncthreads();
    for (int32_t j = y; j < tile; j += tile_rows) {
        int64_t to = (int64_t)(f0 + j) * rows + packed_row(a, row0 + x);
        if (row0 + x < rows && f0 + j < a.packed_filters)
            leati_access<leati_mixed, 1>::store(a.to, to, &part[x * (tile + 1) + j]);
    }
}

/* The other direction.  The blocks after the last tile add up the gradient with respect to the bias. */
LEATI_KERNEL(leati_cuda_conv_unpack, leati_cuda_conv_packing) {
    LEATI_SHARED(float, part, tile *(tile + 1));
    if ((int32_t)blockIdx.x >= a.tiles) {
        int32_t f = (int32_t)(blockIdx.x - a.tiles) * tile + (int32_t)threadIdx.x % tile;
        float sum = sum_of_splits(a.partial + f, a.filters, a.splits, f < a.filters);
        if (f < a.filters && threadIdx.x < tile) leati_access<leati_mixed, 1>::store(a.diff_bias, f, &sum);
        return;
    }
    int32_t rows = a.taps * a.packed_channels, down = (rows + tile - 1) / tile;
    int32_t row0 = (int32_t)(blockIdx.x % down) * tile, f0 = (int32_t)(blockIdx.x / down) * tile;
    int32_t x = threadIdx.x % tile, y = threadIdx.x / tile;
    for (int32_t j = y; j < tile; j += tile_rows) {
        bool inside = row0 + x < rows && f0 + j < a.filters;
        int64_t from = (int64_t)(f0 + j) * rows + packed_row(a, row0 + x);
        part[j * (tile + 1) + x] = inside ? leati_at(a.from, from) : 0.0f;
    }
    __syncthreads();
    for (int32_t j = y; j < tile; j += tile_rows) {
        int32_t row = row0 + j < rows ? weights_row(a, row0 + j) : -1;
        if (row >= 0 && f0 + x < a.filters)
            leati_access<leati_mixed, 1>::store(a.to, (int64_t)row * a.filters + f0 + x,
                                                &part[x * (tile + 1) + j]);
    }
}

/* Each block transposes a tile. */
LEATI_KERNEL(leati_cuda_conv_transpose, leati_cuda_conv_planes) {
    LEATI_SHARED(float, part, tile *(tile + 1));
    int32_t across = (a.columns + tile - 1) / tile, down = (a.rows + tile - 1) / tile, at, matrix_tile;
    int64_t matrix = leati_divided(blockIdx.x, across * down, &matrix_tile);
    int32_t row0 = (int32_t)leati_divided(matrix_tile, across, &at) * tile, column0 = at * tile;
    int32_t x = threadIdx.x % tile, y = threadIdx.x / tile;
    matrix *= (int64_t)a.rows * a.columns;
    LEATI_UNROLL for (int32_t j = 0; j < tile;
                      j += tile_rows) if (row0 + j + y < a.rows &&
                                          column0 + x < a.columns) part[(j + y) * (tile + 1) + x] =
        static_cast<const float *>(a.from.data)[matrix + (int64_t)(row0 + j + y) * a.columns + column0 + x];
    __syncthreads();
    for (int32_t j = y; j < tile; j += tile_rows) {
        if (row0 + x >= a.rows || column0 + j >= a.columns) continue;
        int64_t to = matrix + (int64_t)(column0 + j) * a.rows + row0 + x;
        static_cast<float *>(a.to.data)[to] =
            leati_conv_finished(a.post, part[x * (tile + 1) + j], row0 + x, to);
    }
}

/* Sums of columns: blockIdx.x is a group of 32 columns, blockIdx.y the range of pixels. */
template <typename T> static __device__ __forceinline__ void columns(const leati_cuda_conv_column_sums &a) {
    enum { batch = 8 }; /* independent reads */
    LEATI_SHARED(float, part, tile *tile_rows);
    int32_t x = threadIdx.x % tile, f = (int32_t)blockIdx.x * tile + x;
    int64_t each = (a.pixels + a.splits - 1) / a.splits, first = (int64_t)blockIdx.y * each;
    int64_t end = first + each < a.pixels ? first + each : a.pixels, pixel = first + threadIdx.x / tile;
    float sums[batch], value;
    LEATI_UNROLL for (int k = 0; k < batch; ++k) sums[k] = 0;
    if (f >= a.filters) pixel = end;
    for (; pixel + (batch - 1) * tile_rows < end; pixel += batch * tile_rows)
        LEATI_UNROLL for (int k = 0; k < batch; ++k) {
            leati_access<T, 1>::load(a.src, (pixel + k * tile_rows) * a.filters + f, &value);
            sums[k] += value;
        }
    for (; pixel < end; pixel += tile_rows) {
        leati_access<T, 1>::load(a.src, pixel * a.filters + f, &value);
        sums[0] += value;
    }
    float sum = 0;
    LEATI_UNROLL for (int k = 0; k < batch; ++k) sum += sums[k];
    part[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x >= tile || f >= a.filters) return;
    for (int row = 1; row < tile_rows; ++row) sum += part[row * tile + x];
    a.partial[(int64_t)blockIdx.y * a.filters + f] = sum;
}

LEATI_KERNEL(leati_cuda_conv_columns_f32, leati_cuda_conv_column_sums) {
    columns<float>(a);
}
LEATI_KERNEL(leati_cuda_conv_columns_bf16, leati_cuda_conv_column_sums) {
    columns<leati_bf16>(a);
}

template <typename T, int V> static __device__ __forceinline__ void finish(const leati_cuda_conv_finish &a) {
    int32_t chunks = a.filters / V;
    LEATI_FOR_EACH(i, a.pixels * chunks) {
        int32_t chunk;
        int64_t pixel = leati_divided(i, chunks, &chunk), to = pixel * a.filters + chunk * V;
        float x[V];
        leati_access<T, V>::load(a.src, pixel * a.src_filters + chunk * V, x);
        LEATI_UNROLL for (int v = 0; v < V; ++v) x[v] =
            leati_conv_finished(a.post, x[v], chunk * V + v, to + v);
        leati_access<T, V>::store(a.dst, to, x);
    }
}

LEATI_KERNEL(leati_cuda_conv_finish_f32, leati_cuda_conv_finish) {
    finish<float, 4>(a);
}
LEATI_KERNEL(leati_cuda_conv_finish_bf16, leati_cuda_conv_finish) {
    finish<leati_bf16, 8>(a);
}
LEATI_KERNEL(leati_cuda_conv_finish_any, leati_cuda_conv_finish) {
    finish<leati_mixed, 1>(a);
}
