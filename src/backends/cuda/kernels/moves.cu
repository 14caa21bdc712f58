/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that copy elements from one place to another: moves.h has their formulas. */
#include "backends/cuda/kernels/moves.h"

#include <string.h>

#include "backends/cuda/kernels/common.cuh"

static __device__ __forceinline__ uint32_t quotient(uint32_t n, const leati_cuda_divisor &by) {
    return (__umulhi(n, by.multiplier) + n) >> by.shift;
}

template <typename To, typename From> struct converted {
    static __device__ __forceinline__ To of(From x) {
        return x;
    }
};
template <> struct converted<float, leati_bf16> {
    static __device__ __forceinline__ float of(leati_bf16 x) {
        return leati_widen(x);
    }
};
template <> struct converted<leati_bf16, float> {
    static __device__ __forceinline__ leati_bf16 of(float x) {
        return leati_narrow(x);
    }
};

/* Adds the offset in src of position `index` of axis d.  Returns false if it lies in the padding. */
template <bool padded>
static __device__ __forceinline__ bool advance(const leati_cuda_move &a, int d, int64_t index,
                                               int64_t *offset) {
    if (padded) {
        index -= a.before[d];
        if (index < 0 || index >= a.size[d]) return false;
    }
    *offset += index * a.stride[d];
    return true;
}

/* Adds the offset in src of unit i of dst, and returns false if it lies in the padding.  The type of i has 32 bits
 * where they are enough. */
template <bool padded>
static __device__ __forceinline__ bool find(const leati_cuda_move &a, uint32_t i, int64_t *offset) {
    bool inside = true;
    for (int d = a.rank - 1; d > 0; --d) {
        uint32_t outer = quotient(i, a.divisor[d]);
        inside = advance<padded>(a, d, (int64_t)(i - outer * a.divisor[d].divisor), offset) && inside;
        i = outer;
    }
    if (a.rank > 0) inside = advance<padded>(a, 0, (int64_t)i, offset) && inside;
    return inside;
}
template <bool padded>
static __device__ __forceinline__ bool find(const leati_cuda_move &a, int64_t i, int64_t *offset) {
    bool inside = true;
    for (int d = a.rank - 1; d > 0; --d) {
        int64_t outer = i / a.shape[d];
        inside = advance<padded>(a, d, i - outer * a.shape[d], offset) && inside;
        i = outer;
    }
    if (a.rank > 0) inside = advance<padded>(a, 0, i, offset) && inside;
    return inside;
}

template <typename To, typename From, bool padded, typename Index>
static __device__ __forceinline__ void move_over(const leati_cuda_move &a) {
    const From *src = (const From *)a.src;
    To *dst = (To *)a.dst;
    To value;
    memcpy(&value, a.value, sizeof value);
    LEATI_FOR_EACH(i, a.count) {
        int64_t offset = a.first;
        bool inside = find<padded>(a, (Index)i, &offset);
        dst[i] = inside ? converted<To, From>::of(src[offset]) : value;
    }
}

template <typename To, typename From> static __device__ __forceinline__ void move(const leati_cuda_move &a) {
    const bool small = a.count <= INT32_MAX;
    if (a.padded && small)
        move_over<To, From, true, uint32_t>(a);
    else if (a.padded)
        move_over<To, From, true, int64_t>(a);
    else if (small)
        move_over<To, From, false, uint32_t>(a);
    else
        move_over<To, From, false, int64_t>(a);
}

LEATI_KERNEL(leati_cuda_move_1, leati_cuda_move) {
    move<uint8_t, uint8_t>(a);
}
LEATI_KERNEL(leati_cuda_move_2, leati_cuda_move) {
    move<uint16_t, uint16_t>(a);
}
LEATI_KERNEL(leati_cuda_move_4, leati_cuda_move) {
    move<uint32_t, uint32_t>(a);
}
LEATI_KERNEL(leati_cuda_move_8, leati_cuda_move) {
    move<uint2, uint2>(a);
}
LEATI_KERNEL(leati_cuda_move_16, leati_cuda_move) {
    move<uint4, uint4>(a);
}
LEATI_KERNEL(leati_cuda_move_to_f32, leati_cuda_move) {
    move<float, leati_bf16>(a);
}
LEATI_KERNEL(leati_cuda_move_to_bf16, leati_cuda_move) {
    move<leati_bf16, float>(a);
}

/* ---- Transposition ---- */

/* Takes the tile's position apart into a tile of the plane, whose number it returns, and the offsets of the plane. */
static __device__ __forceinline__ uint32_t find_plane(const leati_cuda_tiles &a, uint32_t tile, int64_t *src,
                                                      int64_t *dst) {
    const uint32_t each = (uint32_t)(a.row_tiles * a.column_tiles);
    uint32_t plane = tile / each, within = tile - plane * each;
    *src = *dst = 0;
    for (int d = a.rank - 1; d >= 0; --d) {
        uint32_t shape = (uint32_t)a.shape[d], outer = plane / shape;
        int64_t index = plane - outer * shape;
        *src += index * a.src_outer[d];
        *dst += index * a.dst_outer[d];
        plane = outer;
    }
    return within;
}

/* Both the loads and the stores of a warp are of neighbours; the turn is in shared memory, whose rows have one unit
 * more than a tile, so that a column lies in different banks. */
template <typename T> static __device__ __forceinline__ void transpose(const leati_cuda_tiles &a) {
    enum { side = LEATI_CUDA_TILE, step = LEATI_CUDA_TILE_THREADS / LEATI_CUDA_TILE };
    LEATI_SHARED(T, tile, side * (side + 1));
    const T *src = (const T *)a.src;
    T *dst = (T *)a.dst;
    const int lane = threadIdx.x % side, line = threadIdx.x / side;
    for (int64_t t = blockIdx.x; t < a.tiles; t += gridDim.x) {
        int64_t from, to;
        const uint32_t within = find_plane(a, (uint32_t)t, &from, &to),
                       across = within / (uint32_t)a.row_tiles;
        const int64_t first_row = (int64_t)(within - across * (uint32_t)a.row_tiles) * side;
        const int64_t first_column = (int64_t)across * side;
        int64_t row = first_row + lane;
        for (int k = 0; k < side; k += step) {
            int j = line + k;
            int64_t column = first_column + j;
            if (row < a.rows && column < a.columns)
                tile[j * (side + 1) + lane] = src[from + column * a.src_stride + row];
        }
        __syncthreads();
        int64_t column = first_column + lane;
        for (int k = 0; k < side; k += step) {
            int j = line + k;
            row = first_row + j;
            if (row < a.rows && column < a.columns)
                dst[to + row * a.dst_stride + column] = tile[lane * (side + 1) + j];
        }
        __syncthreads();
    }
}

LEATI_KERNEL(leati_cuda_transpose_1, leati_cuda_tiles) {
    transpose<uint8_t>(a);
}
LEATI_KERNEL(leati_cuda_transpose_2, leati_cuda_tiles) {
    transpose<uint16_t>(a);
}
LEATI_KERNEL(leati_cuda_transpose_4, leati_cuda_tiles) {
    transpose<uint32_t>(a);
}
LEATI_KERNEL(leati_cuda_transpose_8, leati_cuda_tiles) {
    transpose<uint2>(a);
}

/* ---- Concatenation: blockIdx.y is the input ---- */

template <typename T> static __device__ __forceinline__ void concat(const leati_cuda_joined &a) {
    const int k = (int)blockIdx.y;
    const T *src = (const T *)a.src[k];
    T *dst = (T *)a.dst + a.offset[k];
    const int64_t length = a.length[k], count = a.outer * length;
    const leati_cuda_divisor divisor = a.divisor[k];
    if (count <= INT32_MAX) {
        LEATI_FOR_EACH(i, count) {
            uint32_t o = quotient((uint32_t)i, divisor);
            dst[(int64_t)o * a.stride + (int64_t)((uint32_t)i - o * divisor.divisor)] = src[i];
        }
    } else {
        LEATI_FOR_EACH(i, count) {
            int64_t o = i / length;
            dst[o * a.stride + (i - o * length)] = src[i];
        }
    }
}

LEATI_KERNEL(leati_cuda_concat_1, leati_cuda_joined) {
    concat<uint8_t>(a);
}
LEATI_KERNEL(leati_cuda_concat_2, leati_cuda_joined) {
    concat<uint16_t>(a);
}
LEATI_KERNEL(leati_cuda_concat_4, leati_cuda_joined) {
    concat<uint32_t>(a);
}
LEATI_KERNEL(leati_cuda_concat_8, leati_cuda_joined) {
    concat<uint2>(a);
}
LEATI_KERNEL(leati_cuda_concat_16, leati_cuda_joined) {
    concat<uint4>(a);
}
