/* SPDX-License-Identifier: Apache-2.0 */
/* All steps of a few samples in one block, which keeps the recurrent weights in its registers (the last gates of wide
 * cells in shared memory).  KW is a template parameter: a block has 16 KW threads and room for 4 KW units.
 *
 * Forward: four threads have a unit.  Each sums a quarter of h' R, KW terms for each gate, and after an exchange
 * thread q has the sum of gate q.  Backward: 16 threads have four units.  Each sums KW / 4 terms of each gate for these
 * units, and after an exchange its own unit is the thread's number modulo 4; q is its number in the 16 divided by 4. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_RNN_PERSISTENT_CUH
#define LEATI_BACKENDS_CUDA_KERNELS_RNN_PERSISTENT_CUH

#include "backends/cuda/kernels/rnn_cell.cuh"

template <int cell> struct cell_of {
    static constexpr int gates = cell == LEATI_CUDA_LSTM ? 4 : cell == LEATI_CUDA_SIMPLE ? 1 : 3;
};

/* The number of gates whose weights are in registers. */
template <int cell, int KW> struct held {
    static constexpr int gates = KW > 24 && cell_of<cell>::gates > 2 ? 2 : cell_of<cell>::gates;
};

/* Returns 1 / x, for x >= 1. */
static __device__ __forceinline__ float rnn_reciprocal(float x) {
#ifdef LEATI_CUDA_SIMULATED
    return 1.0f / x;
#else
    float result;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
#endif
}

/* Returns sigmoid(x) or tanh(x), both through the same exponential, so that the threads of a warp do not diverge. */
static __device__ __forceinline__ float rnn_squash(bool hyperbolic, float x) {
    float s = rnn_reciprocal(1.0f + expf(hyperbolic ? -2.0f * x : -x)), square = x * x;
    float small = -0.053968254f + square * 0.021869489f; /* the series of tanh */
    small = x + x * square * (-0.333333333f + square * (0.133333333f + square * small));
    return !hyperbolic ? s : fabsf(x) < 0.25f ? small : 2.0f * s - 1.0f;
}

static __device__ __forceinline__ bool rnn_usual(const leati_cuda_rnn_args &a) {
    return a.activation.kind == LEATI_CUDA_RNN_TANH && a.recurrent_activation.kind == LEATI_CUDA_RNN_SIGMOID;
}

/* Returns the activation of a gate; `candidate`: of the gate with the cell's activation. */
static __device__ __forceinline__ float rnn_gate(const leati_cuda_rnn_args &a, bool usual, bool candidate,
                                                 float x) {
    if (usual) return rnn_squash(candidate, x);
    return candidate ? rnn_activate(a.activation, x) : rnn_activate(a.recurrent_activation, x);
}

/* A block's place: its samples, and the parts of its shared memory. */
struct block_place {
    int first, samples; /* samples: of this block, at most a.samples */
    float *weights, *state, *slots, *rows, *x;
};

static __device__ __forceinline__ block_place place_of_block(const leati_cuda_rnn_args &a, float *shared) {
    int first = (int)blockIdx.x * a.samples, left = a.batch - first;
    return {first,
            left < a.samples ? left : a.samples,
            shared,
            shared + a.at_state,
            shared + a.at_slots,
            shared + a.at_rows,
            shared + a.at_x};
}

/* ---- Copies to shared memory that go on while the threads compute, from Ampere on ---- */

static __device__ __forceinline__ void start_copy(float *to, const float *from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
                 "l"(__cvta_generic_to_global(from))
                 : "memory");
#else
    *to = *from;
#endif
}

static __device__ __forceinline__ void start_copy_of_four(float *to, const float *from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
                 "l"(__cvta_generic_to_global(from))
                 : "memory");
#else
    *(float4 *)to = *(const float4 *)from;
#endif
}

/* Waits for the copies that this thread started. */
static __device__ __forceinline__ void finish_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

/* A warp copies `count` floats. */
static __device__ __forceinline__ void start_row(const leati_cuda_rnn_args &a, float *to, const float *from,
                                                 int count) {
    int lane = threadIdx.x % 32;
    if (a.vectors)
        for (int i = 4 * lane; i < count; i += 128) start_copy_of_four(to + i, from + i);
    else
        for (int i = lane; i < count; i += 32) start_copy(to + i, from + i);
}

/* ---- The projection of x ---- */

enum { project_rows = 8 };

/* Adds the products of a feature of eight rows with the weights k and l of two columns. */
static __device__ __forceinline__ void project_feature(const float *x, float k, float l,
                                                       float (&sums)[2][project_rows]) {
    RNN_UNROLL
    for (int i = 0; i < project_rows; i += 4) {
        float4 at = *(const float4 *)(x + i);
        sums[0][i] += at.x * k, sums[0][i + 1] += at.y * k, sums[0][i + 2] += at.z * k,
            sums[0][i + 3] += at.w * k;
        sums[1][i] += at.x * l, sums[1][i + 1] += at.y * l, sums[1][i + 2] += at.z * l,
            sums[1][i + 3] += at.w * l;
    }
}

/* Computes x K + b of eight rows, of which `rows` exist, for two columns. */
static __device__ __forceinline__ void project(const leati_cuda_rnn_args &a, const float *x, float *to,
                                               int column, int half, int rows) {
    int width = a.gates * a.units, other = column + half < width ? column + half : column;
    float sums[2][project_rows], bias = a.bias ? a.bias[column] : 0.0f,
                                 other_bias = a.bias ? a.bias[other] : 0.0f;
    RNN_UNROLL
    for (int i = 0; i < project_rows; i++) {
        sums[0][i] = bias;
        sums[1][i] = other_bias;
    }
    const float *kernel = a.kernel + column, *other_kernel = a.kernel + other;
    int f = 0;
    for (; f + 4 <= a.features; f += 4) { /* four loads at a time, since each takes long */
        float k[4], l[4];
        RNN_UNROLL
        for (int i = 0; i < 4; i++, kernel += width, other_kernel += width)
            k[i] = *kernel, l[i] = *other_kernel;
        RNN_UNROLL
        for (int i = 0; i < 4; i++) project_feature(x + (f + i) * a.x_stride, k[i], l[i], sums);
    }
    for (; f < a.features; f++, kernel += width, other_kernel += width)
        project_feature(x + f * a.x_stride, *kernel, *other_kernel, sums);
    RNN_UNROLL
    for (int i = 0; i < project_rows; i++)
        if (i < rows) {
            to[i * width + column] = sums[0][i];
            to[i * width + other] = sums[1][i];
        }
}

/* Projects the x of a chunk, (features, x_stride), into p.rows (step, sample, gates U). */
static __device__ __forceinline__ void project_chunk(const leati_cuda_rnn_args &a, const block_place &p,
                                                     const float *x, int steps) {
    int width = a.gates * a.units, rows = steps * a.samples, half = (width + 1) / 2;
    for (int i = threadIdx.x; i < half * ((rows + project_rows - 1) / project_rows); i += blockDim.x) {
        int column = i % half, row = i / half * project_rows;
        project(a, x + row, p.rows + row * width, column, half, rows - row);
    }
}

/* Starts to copy what a chunk of steps needs: x transposed, or its projection.  Each warp has its rows. */
static __device__ __forceinline__ void start_chunk(const leati_cuda_rnn_args &a, const block_place &p,
                                                   int from, int buffer) {
    int left = a.steps - from, rows = (left < a.chunk ? left : a.chunk) * a.samples,
        width = a.gates * a.units;
    for (int r = threadIdx.x / 32; r < rows; r += blockDim.x / 32) {
        int s = r % a.samples;
        if (s >= p.samples) continue;
        int64_t row = rnn_row(a, p.first + s, from + r / a.samples);
        if (a.fused) {
            float *to = p.x + buffer * a.buffer + r;
            for (int f = threadIdx.x % 32; f < a.features; f += 32)
                start_copy(to + f * a.x_stride, a.x + row * a.features + f);
        } else {
            start_row(a, p.rows + buffer * a.buffer + r * width, a.projected + row * width, width);
        }
    }
}

/* ---- Forward ---- */

/* Puts weight i of gate g where the products read it. */
template <int cell, int KW>
static __device__ __forceinline__ void hold(const block_place &p, float (&w)[held<cell, KW>::gates][KW],
                                            int g, int i, float value) {
    constexpr int in_registers = held<cell, KW>::gates;
    if (g < in_registers)
        w[g < in_registers ? g : 0][i] = value;
    else
        p.weights[(((g - in_registers) * (KW / 4) + i / 4) * (16 * KW) + (int)threadIdx.x) * 4 + i % 4] =
            value;
}

/* Loads the weights of the thread's unit and quarter; with a dropout mask of h, multiplied by it. */
template <int cell, int KW>
static __device__ __forceinline__ void load_weights(const leati_cuda_rnn_args &a, const block_place &p,
                                                    float (&w)[held<cell, KW>::gates][KW]) {
    constexpr int gates = cell_of<cell>::gates;
    int unit = threadIdx.x / 4, q = threadIdx.x % 4, width = gates * a.units;
    const float *from = a.recurrent + (unit < a.units ? unit : 0);
    const float *mask = a.h_mask ? a.h_mask + (int64_t)p.first * a.units : NULL;
    unsigned mask_stride = (unsigned)a.batch * (unsigned)a.units;
    RNN_UNROLL
    for (int i = 0; i < KW; i++) {
        int k = 4 * (q + 4 * (i / 4)) + i % 4;
        bool inside = k < a.units && unit < a.units;
        unsigned row = inside ? (unsigned)(k * width) : 0;
        RNN_UNROLL
        for (int g = 0; g < gates; g++) {
            float value = inside ? from[row + (unsigned)(g * a.units)] : 0.0f;
            if (mask && inside && !(cell == LEATI_CUDA_GRU && g == 2))
                value *= mask[g * mask_stride + (unsigned)k];
            hold<cell, KW>(p, w, g, i, value);
        }
    }
}

/* sums[g] = the thread's quarter of values R for gate from + g. */
template <int cell, int KW, int from, int count>
static __device__ __forceinline__ void quarter_product(const float (&w)[held<cell, KW>::gates][KW],
                                                       const float *weights, const float *values,
                                                       float (&sums)[4]) {
    constexpr int in_registers = held<cell, KW>::gates, chains = count >= 3 ? 1 : count == 2 ? 2 : 4;
    float parts[count][chains] = {};
    int q = threadIdx.x % 4;
    RNN_UNROLL
    for (int i = 0; i < KW / 4; i++) {
        float4 v = *(const float4 *)(values + 4 * (q + 4 * i));
        RNN_UNROLL
        for (int g = 0; g < count; g++) {
            float4 k;
            if (from + g < in_registers) {
                const float *mine = &w[from + g < in_registers ? from + g : 0][4 * i];
                k = make_float4(mine[0], mine[1], mine[2], mine[3]);
            } else {
                int at = ((from + g - in_registers) * (KW / 4) + i) * (16 * KW) + (int)threadIdx.x;
                k = ((const float4 *)weights)[at];
            }
            parts[g][0] += v.x * k.x;
            parts[g][1 % chains] += v.y * k.y;
            parts[g][2 % chains] += v.z * k.z;
            parts[g][3 % chains] += v.w * k.w;
        }
    }
    RNN_UNROLL
    for (int g = 0; g < 4; g++) {
        sums[g] = 0.0f;
        if (g < count) {
            const float *part = parts[g < count ? g : 0];
            sums[g] = chains == 1   ? part[0]
                      : chains == 2 ? part[0] + part[1 % chains]
                                    : (part[0] + part[1 % chains]) + (part[2 % chains] + part[3 % chains]);
        }
    }
}

/* Returns, in the thread whose number is q modulo 4, the sum of sums[q] over four threads. */
static __device__ __forceinline__ float exchange(const float (&sums)[4]) {
    bool odd = threadIdx.x & 1, upper = threadIdx.x & 2;
    float low = (odd ? sums[1] : sums[0]) + __shfl_xor_sync(LEATI_ALL_LANES, odd ? sums[0] : sums[1], 1);
    float high = (odd ? sums[3] : sums[2]) + __shfl_xor_sync(LEATI_ALL_LANES, odd ? sums[2] : sums[3], 1);
    return (upper ? high : low) + __shfl_xor_sync(LEATI_ALL_LANES, upper ? low : high, 2);
}

/* Returns the value that thread q of the same unit has. */
static __device__ __forceinline__ float of_quarter(float value, int q) {
    return __shfl_sync(LEATI_ALL_LANES, value, q, 4);
}

/* What a thread knows in all steps. */
struct unit_place {
    int unit, q, units;
    bool active;                   /* false: the thread's unit does not exist */
    bool usual, keeps, writes;     /* keeps: the workspace; writes: the output */
    float state_bias, carry, mask; /* of a GRU */
};

/* One sample at one step, in the threads of a unit. */
struct item {
    const float *z;         /* (gates, U), projected */
    float *before, *after;  /* (4 KW), h in shared memory */
    float *v;               /* likewise, r (.) h' of a GRU */
    float *slot;            /* the thread's own: c of an LSTM, z of a GRU */
    int64_t row, kept, out; /* places in `counted`, and of the unit in the workspace and in the output */
};

/* Stores h, in the first thread of a unit, and the output, in the third. */
static __device__ __forceinline__ void finish_item(const leati_cuda_rnn_args &a, const unit_place &u,
                                                   const item &t, float h) {
    if (u.q == 0 && u.active) t.after[u.unit] = h;
    if (u.writes) a.sequence[t.out] = h;
}

template <int KW>
static __device__ __forceinline__ void
lstm_item(const leati_cuda_rnn_args &a, const unit_place &u, const item &t,
          const float (&w)[held<LEATI_CUDA_LSTM, KW>::gates][KW], const float *weights) {
    float sums[4], c_before = *t.slot, h_before = t.before[u.unit],
                   z = u.active ? t.z[u.q * u.units + u.unit] : 0.0f;
    quarter_product<LEATI_CUDA_LSTM, KW, 0, 4>(w, weights, t.before, sums);
    float gate = rnn_gate(a, u.usual, u.q == 2, z + exchange(sums));
    float i = of_quarter(gate, 0), f = of_quarter(gate, 1), candidate = of_quarter(gate, 2),
          o = of_quarter(gate, 3);
    float c = f * c_before + i * candidate;
    *t.slot = c;
    finish_item(a, u, t, o * rnn_gate(a, u.usual, true, c));
    if (!u.keeps) return;
    float *kept = a.workspace + t.kept + u.q * u.units;
    kept[0] = gate;
    if (u.q < 2) kept[4 * u.units] = u.q == 0 ? c_before : h_before;
}

template <int KW>
static __device__ __forceinline__ void
gru_reset_after_item(const leati_cuda_rnn_args &a, const unit_place &u, const item &t,
                     const float (&w)[held<LEATI_CUDA_GRU_RESET_AFTER, KW>::gates][KW],
                     const float *weights) {
    float sums[4], h_before = t.before[u.unit], z = u.active && u.q < 2 ? t.z[u.q * u.units + u.unit] : 0.0f;
    float of_candidate = u.active ? t.z[2 * u.units + u.unit] : 0.0f;
    quarter_product<LEATI_CUDA_GRU_RESET_AFTER, KW, 0, 3>(w, weights, t.before, sums);
    float sum = exchange(sums) + u.state_bias, inner = of_quarter(sum, 2);
    float gate = rnn_gate(a, u.usual, false, z + sum), update = of_quarter(gate, 0), r = of_quarter(gate, 1);
    float candidate = rnn_gate(a, u.usual, true, of_candidate + r * inner);
    finish_item(a, u, t, update * (h_before * u.carry) + (1.0f - update) * candidate);
    if (!u.keeps) return;
    float *kept = a.workspace + t.kept + u.q * u.units;
    kept[0] = u.q < 2 ? gate : u.q == 2 ? candidate : inner;
    if (u.q == 0) kept[4 * u.units] = h_before;
}

/* The first half of a step of a GRU: v = r (.) h'. */
template <int KW>
static __device__ __forceinline__ void
gru_reset_item(const leati_cuda_rnn_args &a, const unit_place &u, const item &t,
               const float (&w)[held<LEATI_CUDA_GRU, KW>::gates][KW], const float *weights) {
    float sums[4], h_before = t.before[u.unit], z = u.active ? t.z[u.q % 2 * u.units + u.unit] : 0.0f;
    quarter_product<LEATI_CUDA_GRU, KW, 0, 2>(w, weights, t.before, sums);
    sums[2] = sums[0];
    sums[3] = sums[1]; /* threads 2 and 3 compute what 0 and 1 do */
    float gate = rnn_gate(a, u.usual, false, z + exchange(sums)),
          v = of_quarter(gate, 1) * (h_before * u.mask);
    *t.slot = of_quarter(gate, 0);
    if (u.q == 0 && u.active) t.v[u.unit] = v;
    if (u.keeps)
        a.workspace[t.kept + (u.q < 2 ? u.q : u.q + 1) * u.units] = u.q < 2 ? gate : u.q == 2 ? v : h_before;
}

template <int KW>
static __device__ __forceinline__ void
gru_update_item(const leati_cuda_rnn_args &a, const unit_place &u, const item &t,
                const float (&w)[held<LEATI_CUDA_GRU, KW>::gates][KW], const float *weights) {
    float sums[4], h_before = t.before[u.unit], update = *t.slot,
                   z = u.active ? t.z[2 * u.units + u.unit] : 0.0f;
    quarter_product<LEATI_CUDA_GRU, KW, 2, 1>(w, weights, t.v, sums);
    sums[1] = sums[2] = sums[3] = sums[0];
    float candidate = rnn_gate(a, u.usual, true, z + exchange(sums));
    finish_item(a, u, t, update * (h_before * u.carry) + (1.0f - update) * candidate);
    if (u.keeps && u.q == 3) a.workspace[t.kept + 2 * u.units] = candidate;
}

template <int KW>
static __device__ __forceinline__ void
simple_item(const leati_cuda_rnn_args &a, const unit_place &u, const item &t,
            const float (&w)[held<LEATI_CUDA_SIMPLE, KW>::gates][KW], const float *weights) {
    float sums[4], h_before = t.before[u.unit], z = u.active ? t.z[u.unit] : 0.0f;
    quarter_product<LEATI_CUDA_SIMPLE, KW, 0, 1>(w, weights, t.before, sums);
    sums[1] = sums[2] = sums[3] = sums[0];
    float h = rnn_activate(a.activation, z + exchange(sums));
    finish_item(a, u, t, h);
    if (u.keeps && u.q < 2) a.workspace[t.kept + u.q * u.units] = u.q == 0 ? h : h_before;
}

/* A step that does not count: the state stays, and the gradients do not read the workspace's row except for h. */
static __device__ __forceinline__ void keep_item(const leati_cuda_rnn_args &a, const unit_place &u,
                                                 const item &t, bool started) {
    float h = t.before[u.unit];
    if (u.q == 0 && u.active) t.after[u.unit] = h;
    if (u.writes) a.sequence[t.out] = started ? h : 0.0f;
    for (int at = u.q * u.units; u.keeps && at < a.kept; at += 4 * u.units)
        a.workspace[t.kept + at] = at == a.kept - u.units ? h : 0.0f;
}

template <int cell, int KW>
static __device__ __forceinline__ unit_place place_of_unit(const leati_cuda_rnn_args &a, const block_place &p,
                                                           int unit, int q) {
    bool active = unit < a.units, keeps = active && a.workspace, writes = active && q == 2 && a.sequence;
    unit_place u = {unit, q, a.units, active, rnn_usual(a), keeps, writes, 0.0f, 1.0f, 1.0f};
    if (!u.active || (cell != LEATI_CUDA_GRU && cell != LEATI_CUDA_GRU_RESET_AFTER)) return u;
    if (q < 3) u.state_bias = rnn_state_bias(a, q, unit);
    if (a.h_mask) { /* a block has one sample where there are masks */
        u.carry = rnn_carry(a, p.first, unit);
        u.mask = rnn_h_mask(a, 2, p.first, unit);
    }
    return u;
}

/* Sets h and c of the block's samples. */
template <int cell, int KW>
static __device__ __forceinline__ void start_state(const leati_cuda_rnn_args &a, const block_place &p,
                                                   const unit_place &u) {
    constexpr int padded = 4 * KW, threads = 16 * KW;
    int thread = threadIdx.x;
    for (int i = thread; i < 3 * a.samples * padded; i += threads) {
        int s = i / padded, unit = i % padded;
        bool has = a.h0 && s < p.samples && unit < a.units;
        p.state[i] = has ? a.h0[(int64_t)(p.first + s) * a.units + unit] : 0.0f;
    }
    for (int s = 0; s < a.samples; s++) {
        bool has = cell == LEATI_CUDA_LSTM && u.active && a.c0 && s < p.samples;
        p.slots[s * threads + thread] = has ? a.c0[(int64_t)(p.first + s) * a.units + u.unit] : 0.0f;
    }
}

/* Writes h_last and c_last. */
template <int cell, int KW>
static __device__ __forceinline__ void store_state(const leati_cuda_rnn_args &a, const block_place &p,
                                                   const unit_place &u) {
    constexpr int padded = 4 * KW, threads = 16 * KW;
    for (int s = 0; s < p.samples; s++) {
        int64_t at = (int64_t)(p.first + s) * a.units + u.unit;
        if (u.active && u.q == 0 && a.h_last)
            a.h_last[at] = p.state[(a.steps % 2 * a.samples + s) * padded + u.unit];
        if (u.active && u.q == 1 && cell == LEATI_CUDA_LSTM && a.c_last)
            a.c_last[at] = p.slots[s * threads + (int)threadIdx.x];
    }
}

/* A half of a step of the block's samples; only a GRU that resets before its product has a second one.  started: bit s:
 * a step of sample s counted.  plain: the usual activations, and all steps count. */
template <int cell, int KW, bool plain>
static __device__ __forceinline__ void forward_half(const leati_cuda_rnn_args &a, const block_place &p,
                                                    unit_place u, const float (&w)[held<cell, KW>::gates][KW],
                                                    int half, item t, uint32_t *started) {
    if (plain) u.usual = true;
    for (int s = 0;;) {
        if (!plain && a.counted && !(a.counted[t.row] != 0.0f)) {
            if (half == 0) keep_item(a, u, t, *started >> s & 1);
        } else {
            if (!plain && a.counted) *started |= 1u << s;
            if constexpr (cell == LEATI_CUDA_LSTM)
                lstm_item<KW>(a, u, t, w, p.weights);
            else if constexpr (cell == LEATI_CUDA_GRU_RESET_AFTER)
                gru_reset_after_item<KW>(a, u, t, w, p.weights);
            else if constexpr (cell == LEATI_CUDA_SIMPLE)
                simple_item<KW>(a, u, t, w, p.weights);
            else if (half == 0)
                gru_reset_item<KW>(a, u, t, w, p.weights);
            else
                gru_update_item<KW>(a, u, t, w, p.weights);
        }
        if (++s >= p.samples) break;
        t.z += cell_of<cell>::gates * u.units;
        t.before += 4 * KW;
        t.after += 4 * KW;
        t.v += 4 * KW;
        t.slot += 16 * KW;
        t.row += a.steps;
        t.kept += (int64_t)a.steps * a.kept;
        t.out += (int64_t)a.steps * u.units;
    }
    __syncthreads();
}

template <int cell, int KW>
static __device__ __forceinline__ void persistent_forward(const leati_cuda_rnn_args &a) {
    LEATI_DYNAMIC_SHARED(float, shared);
    block_place p = place_of_block(a, shared);
    unit_place u = place_of_unit<cell, KW>(a, p, threadIdx.x / 4, threadIdx.x % 4);
    float w[held<cell, KW>::gates][KW];
    uint32_t started = 0;
    start_chunk(a, p, 0, 0);
    load_weights<cell, KW>(a, p, w);
    start_state<cell, KW>(a, p, u);
    int64_t row = rnn_row(a, p.first, 0);
    int of_state = a.samples * (4 * KW), forward = a.go_backwards ? -1 : 1;
    item t = {p.rows,
              p.state,
              p.state + of_state,
              p.state + 2 * of_state,
              p.slots + threadIdx.x,
              row,
              row * a.kept + u.unit,
              (int64_t)p.first * a.steps * u.units + u.unit};
    for (int from = 0, buffer = 0; from < a.steps; from += a.chunk, buffer ^= 1) {
        int steps = a.steps - from < a.chunk ? a.steps - from : a.chunk;
        finish_copies();
        __syncthreads();
        if (from + a.chunk < a.steps) start_chunk(a, p, from + a.chunk, buffer ^ 1);
        t.z = p.rows + (a.fused ? 0 : buffer * a.buffer);
        if (a.fused) {
            project_chunk(a, p, p.x + buffer * a.buffer, steps);
            __syncthreads();
        }
        for (int i = 0; i < steps; i++) {
            if (cell == LEATI_CUDA_LSTM && u.usual && !a.counted) {
                forward_half<cell, KW, true>(a, p, u, w, 0, t, &started);
            } else {
                forward_half<cell, KW, false>(a, p, u, w, 0, t, &started);
                if (cell == LEATI_CUDA_GRU) forward_half<cell, KW, false>(a, p, u, w, 1, t, &started);
            }
            float *after = t.before;
            t.before = t.after;
            t.after = after;
            t.z += a.samples * (cell_of<cell>::gates * u.units);
            t.row += forward;
            t.kept += forward * a.kept;
            t.out += u.units;
        }
    }
    store_state<cell, KW>(a, p, u);
}

#endif
