/* SPDX-License-Identifier: Apache-2.0 */
/* The gradients of all steps of a few samples in one block; rnn_persistent.cuh has the layout of its threads. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_RNN_PERSISTENT_BWD_CUH
#define LEATI_BACKENDS_CUDA_KERNELS_RNN_PERSISTENT_BWD_CUH

#include "backends/cuda/kernels/rnn_persistent.cuh"

/* Loads the weights of the thread's four units, KW / 4 terms of each gate; with a dropout mask of h, multiplied by
 * it. */
template <int cell, int KW>
static __device__ __forceinline__ void load_transposed(const leati_cuda_rnn_args &a, const block_place &p,
                                                       float (&w)[held<cell, KW>::gates][KW]) {
    constexpr int gates = cell_of<cell>::gates, terms = KW / 4, vector = terms % 4 == 0 ? 4 : 2;
    int first = threadIdx.x / 16 * 4, l = threadIdx.x % 16, width = gates * a.units;
    const float *mask = a.h_mask ? a.h_mask + (int64_t)p.first * a.units : NULL;
    unsigned mask_stride = (unsigned)a.batch * (unsigned)a.units;
    RNN_UNROLL
    for (int i = 0; i < KW; i++) {
        int k = vector * (l + 16 * (i % terms / vector)) + i % vector, unit = first + i / terms;
        bool inside = k < a.units && unit < a.units;
        unsigned at = inside ? (unsigned)(unit * width + k) : 0;
        RNN_UNROLL
        for (int g = 0; g < gates; g++) {
            float value = inside ? a.recurrent[at + (unsigned)(g * a.units)] : 0.0f;
            if (mask && inside && !(cell == LEATI_CUDA_GRU && g == 2))
                value *= mask[g * mask_stride + (unsigned)unit];
            hold<cell, KW>(p, w, g, i, value);
        }
    }
}

/* Returns, in the thread whose number modulo 4 is j, the sum over the gates from + 0 to from + count - 1 of their
 * gradients (4, 4 KW) times the weights of unit j of the thread's four. */
template <int cell, int KW, int from, int count>
static __device__ __forceinline__ float transposed_product(const float (&w)[held<cell, KW>::gates][KW],
                                                           const float *weights, const float *diff) {
    constexpr int in_registers = held<cell, KW>::gates, terms = KW / 4, vector = terms % 4 == 0 ? 4 : 2;
    float sums[4] = {};
    int l = threadIdx.x % 16;
    RNN_UNROLL
    for (int g = from; g < from + count; g++) {
        float values[terms];
        RNN_UNROLL
        for (int i = 0; i < terms; i += vector) {
            const float *at = diff + g * (4 * KW) + vector * (l + 16 * (i / vector));
            if (vector == 4) {
                float4 v = *(const float4 *)at;
                values[i] = v.x, values[i + 1] = v.y, values[(i + 2) % terms] = v.z,
                values[(i + 3) % terms] = v.w;
            } else {
                float2 v = *(const float2 *)at;
                values[i] = v.x, values[i + 1] = v.y;
            }
        }
        RNN_UNROLL
        for (int i = 0; i < KW; i += 4) {
            float4 k;
            if (g < in_registers) {
                const float *mine = &w[g < in_registers ? g : 0][i];
                k = make_float4(mine[0], mine[1], mine[2], mine[3]);
            } else {
                int at = ((g - in_registers) * (KW / 4) + i / 4) * (16 * KW) + (int)threadIdx.x;
                k = ((const float4 *)weights)[at];
            }
            sums[i / terms] += values[i % terms] * k.x;
            sums[(i + 1) / terms] += values[(i + 1) % terms] * k.y;
            sums[(i + 2) / terms] += values[(i + 2) % terms] * k.z;
            sums[(i + 3) / terms] += values[(i + 3) % terms] * k.w;
        }
    }
    float sum = exchange(sums);
    sum += __shfl_xor_sync(LEATI_ALL_LANES, sum, 4);
    return sum + __shfl_xor_sync(LEATI_ALL_LANES, sum, 8);
}

/* One sample at one step, in the threads of a unit. */
struct diff_item {
    float *after;            /* (4, 4 KW): the gradients of the gates of the next step, in shared memory */
    float *diff;             /* (4, 4 KW): of this step */
    float *pass;             /* the thread's own: what passes to the step before without a product */
    float *pass_c;           /* likewise, for c of an LSTM; h' slope(r) of a GRU */
    const float *kept;       /* the unit's place in the row of the workspace, in shared memory */
    int64_t row, diff_gates; /* places in `counted`, and of the unit in the gradients of all steps */
};

/* Stores the gradient of a gate for the products of all steps, and in `place` of the gradients of the next product. */
template <int KW>
static __device__ __forceinline__ void store_diff(const leati_cuda_rnn_args &a, const unit_place &u,
                                                  const diff_item &t, int gate, int place, float diff) {
    a.diff_gates[t.diff_gates + gate * u.units] = diff;
    if (place >= 0) t.diff[place * (4 * KW) + u.unit] = diff;
}

/* What an LSTM's step needs besides the gradient with respect to h: the gradient of gate q is `of_gate` times the
 * gradient with respect to c, or for the last gate to h. */
struct lstm_slopes {
    float of_c, of_gate, forget;
};

static __device__ __forceinline__ lstm_slopes lstm_slopes_of(const leati_cuda_rnn_args &a,
                                                             const unit_place &u, const diff_item &t) {
    float i = t.kept[0], f = t.kept[u.units], candidate = t.kept[2 * u.units], o = t.kept[3 * u.units];
    float c_before = t.kept[4 * u.units];
    float squashed = rnn_gate(a, u.usual, true, f * c_before + i * candidate);
    float gate = u.q == 0 ? i : u.q == 1 ? f : u.q == 2 ? candidate : o;
    float factor = u.q == 0 ? candidate : u.q == 1 ? c_before : u.q == 2 ? i : squashed;
    float of_tanh = 1.0f - squashed * squashed, slope = u.q == 2 ? 1.0f - gate * gate : gate * (1.0f - gate);
    if (!u.usual) {
        of_tanh = rnn_slope(a.activation, squashed);
        slope = u.q == 2 ? rnn_slope(a.activation, gate) : rnn_slope(a.recurrent_activation, gate);
    }
    return {o * of_tanh, factor * slope, f};
}

/* Both kinds of GRU; of one that resets before its product, only z and h~, and r follows in gru_diff_reset. */
template <int cell, int KW>
static __device__ __forceinline__ void gru_diff_item(const leati_cuda_rnn_args &a, const unit_place &u,
                                                     const diff_item &t, float diff_h) {
    float z = t.kept[0], r = t.kept[u.units], candidate = t.kept[2 * u.units], h = t.kept[4 * u.units];
    float diff_candidate = diff_h * ((1.0f - z) * rnn_slope(a.activation, candidate));
    *t.pass = diff_h * (z * u.carry);
    if (u.q == 0)
        store_diff<KW>(a, u, t, 0, 0,
                       diff_h * ((h * u.carry - candidate) * rnn_slope(a.recurrent_activation, z)));
    if (cell == LEATI_CUDA_GRU) {
        *t.pass_c = h * u.mask * rnn_slope(a.recurrent_activation, r);
        if (u.q == 2) store_diff<KW>(a, u, t, 2, 2, diff_candidate);
        return;
    }
    float inner = t.kept[3 * u.units];
    if (u.q == 1)
        store_diff<KW>(a, u, t, 1, 1, diff_candidate * (inner * rnn_slope(a.recurrent_activation, r)));
    if (u.q == 2) store_diff<KW>(a, u, t, 2, -1, diff_candidate);
    if (u.q == 3) store_diff<KW>(a, u, t, 3, 2, diff_candidate * r);
}

template <int KW>
static __device__ __forceinline__ void
gru_diff_reset(const leati_cuda_rnn_args &a, const unit_place &u, const diff_item &t,
               const float (&w)[held<LEATI_CUDA_GRU, KW>::gates][KW], const float *weights) {
    float diff_v = transposed_product<LEATI_CUDA_GRU, KW, 2, 1>(w, weights, t.diff);
    if (!u.active) return;
    *t.pass += diff_v * (t.kept[u.units] * u.mask);
    if (u.q == 1) store_diff<KW>(a, u, t, 1, 1, diff_v * *t.pass_c);
}

/* A step that does not count. */
template <int KW>
static __device__ __forceinline__ void skip_item(const leati_cuda_rnn_args &a, const unit_place &u,
                                                 const diff_item &t, float diff_h) {
    if (!u.active) return;
    *t.pass = diff_h;
    t.diff[u.q * (4 * KW) + u.unit] = 0.0f;
    for (int at = u.q * u.units; at < a.diff_width; at += 4 * u.units) a.diff_gates[t.diff_gates + at] = 0.0f;
}

/* A step that counts. */
template <int cell, int KW>
static __device__ __forceinline__ void diff_step(const leati_cuda_rnn_args &a, const unit_place &u,
                                                 const diff_item &t, const lstm_slopes &slopes,
                                                 float diff_h) {
    if (!u.active) return;
    if (cell == LEATI_CUDA_LSTM) {
        float diff_c = *t.pass_c + diff_h * slopes.of_c;
        store_diff<KW>(a, u, t, u.q, u.q, (u.q == 3 ? diff_h : diff_c) * slopes.of_gate);
        *t.pass_c = diff_c * slopes.forget;
        *t.pass = 0.0f;
    } else if (cell == LEATI_CUDA_SIMPLE) {
        if (u.q == 0) store_diff<KW>(a, u, t, 0, 0, diff_h * rnn_slope(a.activation, t.kept[0]));
        *t.pass = 0.0f;
    } else {
        gru_diff_item<cell, KW>(a, u, t, diff_h);
    }
}

/* Starts to copy to shared memory the rows (step - from, sample, kept U + U) of the workspace and of diff_sequence. */
static __device__ __forceinline__ void start_kept(const leati_cuda_rnn_args &a, const block_place &p,
                                                  int from, int to, int buffer) {
    int rows = (to - from) * a.samples, stride = a.kept + a.units;
    for (int r = threadIdx.x / 32; r < rows; r += blockDim.x / 32) {
        int s = r % a.samples, step = from + r / a.samples, n = p.first + s;
        if (s >= p.samples) continue;
        float *row = p.rows + buffer * a.buffer + r * stride;
        start_row(a, row, a.workspace + rnn_row(a, n, step) * a.kept, a.kept);
        if (a.diff_sequence)
            start_row(a, row + a.kept, a.diff_sequence + ((int64_t)n * a.steps + step) * a.units, a.units);
    }
}

/* Finds the first step that counts for each of the block's samples. */
static __device__ __forceinline__ void find_first(const leati_cuda_rnn_args &a, const block_place &p,
                                                  int *first) {
    int thread = threadIdx.x;
    if (thread < a.samples) first[thread] = a.counted ? a.steps : 0;
    __syncthreads();
    for (int i = thread; a.counted && i < p.samples * a.steps; i += blockDim.x) {
        int s = i / a.steps, step = i % a.steps;
        if (rnn_counts(a, rnn_row(a, p.first + s, step))) atomicMin(first + s, step);
    }
    __syncthreads();
}

/* Sets what the last step receives. */
template <int cell, int KW>
static __device__ __forceinline__ void start_gradient(const leati_cuda_rnn_args &a, const block_place &p,
                                                      const unit_place &u) {
    constexpr int padded = 4 * KW, threads = 16 * KW;
    float *slot = p.slots + threadIdx.x;
    for (int i = threadIdx.x; i < 8 * a.samples * padded; i += threads) p.state[i] = 0.0f;
    for (int s = 0; s < a.samples; s++, slot += threads) {
        int64_t at = (int64_t)(p.first + s) * a.units + u.unit;
        bool has = u.active && s < p.samples;
        slot[0] = has && a.diff_h_last ? a.diff_h_last[at] : 0.0f;
        slot[a.samples * threads] = has && a.diff_c_last ? a.diff_c_last[at] : 0.0f;
    }
}

/* A half of a step of the block's samples, as in forward_half. */
template <int cell, int KW, bool plain>
static __device__ __forceinline__ void backward_half(const leati_cuda_rnn_args &a, const block_place &p,
                                                     unit_place u,
                                                     const float (&w)[held<cell, KW>::gates][KW], int half,
                                                     int step, diff_item t, const int *first) {
    constexpr int product = cell == LEATI_CUDA_GRU ? 2 : cell_of<cell>::gates;
    if (plain) u.usual = true;
    for (int s = 0;;) {
        bool counts = plain || !a.counted || a.counted[t.row] != 0.0f;
        if (half == 1) {
            if constexpr (cell == LEATI_CUDA_GRU)
                if (counts) gru_diff_reset<KW>(a, u, t, w, p.weights);
        } else {
            lstm_slopes slopes = {};
            float diff_h = *t.pass;
            if (a.diff_sequence && (plain || !a.counted || step >= first[s])) diff_h += t.kept[a.kept];
            if (cell == LEATI_CUDA_LSTM && counts) slopes = lstm_slopes_of(a, u, t);
            diff_h += transposed_product<cell, KW, 0, product>(w, p.weights, t.after);
            if (counts)
                diff_step<cell, KW>(a, u, t, slopes, diff_h);
            else
                skip_item<KW>(a, u, t, diff_h);
        }
        if (++s >= p.samples) break;
        t.after += 16 * KW;
        t.diff += 16 * KW;
        t.pass += 16 * KW;
        t.pass_c += 16 * KW;
        t.kept += a.kept + u.units;
        t.row += a.steps;
        t.diff_gates += (int64_t)a.steps * a.diff_width;
    }
    __syncthreads();
}

template <int cell, int KW>
static __device__ __forceinline__ void persistent_backward(const leati_cuda_rnn_args &a) {
    constexpr int threads = 16 * KW, product = cell == LEATI_CUDA_GRU ? 2 : cell_of<cell>::gates;
    LEATI_DYNAMIC_SHARED(float, shared);
    LEATI_SHARED(int, first, 32);
    block_place p = place_of_block(a, shared);
    int thread = threadIdx.x, stride = a.samples * (a.kept + a.units), back = a.go_backwards ? 1 : -1;
    unit_place u = place_of_unit<cell, KW>(a, p, thread / 16 * 4 + thread % 4, thread % 16 / 4);
    float w[held<cell, KW>::gates][KW];
    start_kept(a, p, a.steps > a.chunk ? a.steps - a.chunk : 0, a.steps, 0);
    load_transposed<cell, KW>(a, p, w);
    find_first(a, p, first);
    start_gradient<cell, KW>(a, p, u);
    int64_t row = rnn_row(a, p.first, a.steps - 1);
    diff_item t = {p.state,
                   p.state + a.samples * (16 * KW),
                   p.slots + thread,
                   p.slots + a.samples * threads + thread,
                   p.rows,
                   row,
                   row * a.diff_width + u.unit};
    for (int to = a.steps, buffer = 0; to > 0; to -= a.chunk, buffer ^= 1) {
        int from = to > a.chunk ? to - a.chunk : 0;
        finish_copies();
        __syncthreads();
        if (from > 0) start_kept(a, p, from > a.chunk ? from - a.chunk : 0, from, buffer ^ 1);
        t.kept = p.rows + buffer * a.buffer + (to - from - 1) * stride + (u.active ? u.unit : 0);
        for (int step = to - 1; step >= from; step--) {
            if (cell == LEATI_CUDA_LSTM && u.usual && !a.counted) {
                backward_half<cell, KW, true>(a, p, u, w, 0, step, t, first);
            } else {
                backward_half<cell, KW, false>(a, p, u, w, 0, step, t, first);
                if (cell == LEATI_CUDA_GRU) backward_half<cell, KW, false>(a, p, u, w, 1, step, t, first);
            }
            float *diff = t.after;
            t.after = t.diff;
            t.diff = diff;
            t.kept -= stride;
            t.row += back;
            t.diff_gates += back * a.diff_width;
        }
    }
    for (int s = 0; s < p.samples; s++) { /* the gates of step 0 */
        const float *slot = p.slots + s * threads + thread;
        float diff_h =
            *slot + transposed_product<cell, KW, 0, product>(w, p.weights, t.after + s * (16 * KW));
        int64_t at = (int64_t)(p.first + s) * a.units + u.unit;
        if (u.active && u.q == 0 && a.diff_h0) a.diff_h0[at] = diff_h;
        if (u.active && u.q == 1 && cell == LEATI_CUDA_LSTM && a.diff_c0)
            a.diff_c0[at] = slot[a.samples * threads];
    }
}

#endif
