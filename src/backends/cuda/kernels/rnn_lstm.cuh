/* SPDX-License-Identifier: Apache-2.0 */
/* All steps of one sample of an LSTM with at most 64 units and 32 features, tanh and sigmoid, without masks and steps
 * that do not count.  The time of such a step is the latency of its chain of instructions, so the steps have no branch
 * and one barrier, and what does not depend on the step before is computed or loaded for the next step meanwhile: the
 * product with x, or the slopes of the gates.  The threads have the places that rnn_persistent.cuh describes. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_RNN_LSTM_CUH
#define LEATI_BACKENDS_CUDA_KERNELS_RNN_LSTM_CUH

#include "backends/cuda/kernels/rnn_persistent_bwd.cuh"

/* Rings of rows in shared memory: copies start `lstm_ahead` steps before their step. */
enum { lstm_units = 64, lstm_features = 32, lstm_threads = 256, lstm_ring = 16, lstm_ahead = 8 };

/* Returns the thread's number.  The compiler cannot read it from its register again in every step, which takes long. */
static __device__ __forceinline__ int lstm_thread() {
    int thread = threadIdx.x;
#ifndef LEATI_CUDA_SIMULATED
    asm("" : "+r"(thread));
#endif
    return thread;
}

/* Does what `exchange` of rnn_persistent.cuh does, with the two lowest bits of the thread's number. */
static __device__ __forceinline__ float lstm_exchange(const float (&sums)[4], bool odd, bool upper) {
    float low = (odd ? sums[1] : sums[0]) + __shfl_xor_sync(LEATI_ALL_LANES, odd ? sums[0] : sums[1], 1);
    float high = (odd ? sums[3] : sums[2]) + __shfl_xor_sync(LEATI_ALL_LANES, odd ? sums[2] : sums[3], 1);
    return (upper ? high : low) + __shfl_xor_sync(LEATI_ALL_LANES, upper ? low : high, 2);
}

/* Ends a group of copies. */
static __device__ __forceinline__ void end_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits for this thread's groups of copies except the last lstm_ahead - 2. */
static __device__ __forceinline__ void wait_for_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group 6;" ::: "memory");
#endif
}

/* Returns 1 / (1 + 2^x). */
static __device__ __forceinline__ float lstm_squash(float x) {
#ifdef LEATI_CUDA_SIMULATED
    return 1.0f / (1.0f + exp2f(x));
#else
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
    return rnn_reciprocal(1.0f + power);
#endif
}

/* Returns the series of tanh for |x| < 0.25. */
static __device__ __forceinline__ float lstm_small_tanh(float x) {
    float square = x * x, small = -0.053968254f + square * 0.021869489f;
    return x + x * square * (-0.333333333f + square * (0.133333333f + square * small));
}

/* Returns sigmoid(x) or tanh(x).  The rounding of x log2(e) changes the result by less than half a unit of its last
 * place at 0.5. */
static __device__ __forceinline__ float lstm_gate(bool hyperbolic, float x) {
    float s = lstm_squash(x * (hyperbolic ? -2.885390082f : -1.442695041f)), small = lstm_small_tanh(x);
    float t = fabsf(x) < 0.25f ? small : 2.0f * s - 1.0f;
    return hyperbolic ? t : s;
}

/* ---- Forward ---- */

/* w: of the recurrent kernel, k: of the kernel of x, both for a quarter of the terms of the unit's gates. */
struct lstm_weights {
    float w[4][16], k[4][8];
};

static __device__ __forceinline__ void lstm_load(const leati_cuda_rnn_args &a, lstm_weights &weights) {
    int unit = threadIdx.x / 4, q = threadIdx.x % 4, width = 4 * a.units;
    RNN_UNROLL
    for (int i = 0; i < 16; i++) {
        int term = 4 * (q + 4 * (i / 4)) + i % 4;
        bool inside = term < a.units && unit < a.units, of_x = i < 8 && term < a.features && unit < a.units;
        int at = inside ? term * width + unit : 0, at_x = of_x ? term * width + unit : 0;
        RNN_UNROLL
        for (int g = 0; g < 4; g++) {
            weights.w[g][i] = inside ? a.recurrent[at + g * a.units] : 0.0f;
            if (i < 8) weights.k[g][i] = of_x ? a.kernel[at_x + g * a.units] : 0.0f;
        }
    }
}

/* A thread's quarter of `count` values in shared memory. */
template <int count>
static __device__ __forceinline__ void lstm_read(const float *at, float (&values)[count]) {
    RNN_UNROLL
    for (int i = 0; i < count; i += 4) {
        float4 v = *(const float4 *)(at + 4 * i);
        values[i] = v.x, values[i + 1] = v.y, values[i + 2] = v.z, values[i + 3] = v.w;
    }
}

/* Adds to `sums` the thread's quarter of the products of `values` with the weights of the gates. */
template <int count>
static __device__ __forceinline__ void lstm_multiply(const float (&w)[4][count], const float (&values)[count],
                                                     float (&sums)[4]) {
    RNN_UNROLL
    for (int i = 0; i < count; i++) RNN_UNROLL
    for (int g = 0; g < 4; g++) sums[g] += values[i] * w[g][i];
}

/* The copies of x by the first threads: from where, and how far apart the steps are. */
struct lstm_x {
    const float *from;
    int64_t step;
    float *ring;
    int steps; /* 0: the thread copies nothing */
};

/* Starts to copy x of a step, as a group of copies. */
static __device__ __forceinline__ void lstm_start_x(lstm_x &x, int step) {
    if (step < x.steps) start_copy(x.ring + (unsigned)step % lstm_ring * lstm_features, x.from);
    x.from += x.step;
    end_copies();
}

/* Where a thread writes in each step: a gate, and one of c', h' and the output. */
struct lstm_outputs {
    float *gate, *second;
    int64_t gate_step, second_step;
    bool has_gate, has_second;
};

static __device__ __forceinline__ lstm_outputs lstm_outputs_of(const leati_cuda_rnn_args &a, int unit,
                                                               int q) {
    int64_t row = rnn_row(a, blockIdx.x, 0), step = a.go_backwards ? -(int64_t)a.kept : a.kept;
    float *kept = a.workspace + row * a.kept + unit;
    float *sequence = a.sequence + (int64_t)blockIdx.x * a.steps * a.units + unit;
    bool active = unit < a.units;
    return {kept + q * a.units,
            q == 2 ? sequence : kept + (4 + q) * a.units,
            step,
            q == 2 ? a.units : step,
            active && a.workspace,
            active && (q == 2 ? a.sequence != NULL : q < 2 && a.workspace)};
}

static __device__ __forceinline__ void lstm_store(lstm_outputs &out, float gate, float second) {
    if (out.has_gate) *out.gate = gate;
    if (out.has_second) *out.second = second;
    out.gate += out.gate_step;
    out.second += out.second_step;
}

static __device__ __forceinline__ void lstm_forward(const leati_cuda_rnn_args &a) {
    LEATI_SHARED(float4, state, 2 * lstm_units / 4);
    LEATI_SHARED(float4, ring, lstm_ring * lstm_features / 4);
    int thread = lstm_thread(), unit = thread / 4, q = thread % 4, steps = a.steps;
    bool active = unit < a.units, odd = q & 1, upper = q & 2;
    int64_t own = (int64_t)blockIdx.x * a.units + (active ? unit : 0);
    float *hs = (float *)state, *xs = (float *)ring;
    const float *x_at = xs + 4 * q, *h_at = hs + 4 * q;
    lstm_weights weights;
    for (int i = thread; i < lstm_ring * lstm_features; i += lstm_threads) xs[i] = 0.0f;
    __syncthreads();
    lstm_x x = {a.x + rnn_row(a, blockIdx.x, 0) * a.features + thread,
                a.go_backwards ? -a.features : a.features, xs + thread, thread < a.features ? steps : 0};
    for (int step = 0; step < lstm_ahead; step++) lstm_start_x(x, step);
    lstm_load(a, weights);
    float bias = a.bias && active ? a.bias[q * a.units + unit] : 0.0f;
    float h = a.h0 && active ? a.h0[own] : 0.0f, c = a.c0 && active ? a.c0[own] : 0.0f;
    lstm_outputs out = lstm_outputs_of(a, unit, q);
    if (q == 0) hs[unit] = h;
    wait_for_copies();
    __syncthreads();
    float sums[4] = {}, values[16], features[8];
    lstm_read<8>(x_at, features);
    lstm_multiply<8>(weights.k, features, sums);
    for (int step = 0; step < steps; step++) {
        lstm_read<16>(h_at + (step & 1) * lstm_units, values);
        lstm_read<8>(x_at + (unsigned)(step + 1) % lstm_ring * lstm_features, features);
        lstm_start_x(x, step + lstm_ahead);
        lstm_multiply<16>(weights.w, values, sums);
        float sum = lstm_exchange(sums, odd, upper) + bias;
        RNN_UNROLL
        for (int g = 0; g < 4; g++) sums[g] = 0.0f;
        lstm_multiply<8>(weights.k, features, sums);
        float gate = lstm_gate(q == 2, sum), second = q == 0 ? c : h;
        c = of_quarter(gate, 1) * c + of_quarter(gate, 0) * of_quarter(gate, 2);
        h = of_quarter(gate, 3) * lstm_gate(true, c);
        if (q == 0) hs[((step + 1) & 1) * lstm_units + unit] = h;
        lstm_store(out, gate, q == 2 ? h : second);
        wait_for_copies();
        __syncthreads();
    }
    if (active && q == 0 && a.h_last) a.h_last[own] = h;
    if (active && q == 1 && a.c_last) a.c_last[own] = c;
}

/* ---- Backward ---- */

/* A row of the ring has the gates, c' and the gradient with respect to the output. */
enum { lstm_row = 6 * lstm_units };

/* The copies of a thread: from where, how far apart the steps are, and where in a row of the ring. */
struct lstm_copy {
    const float *from;
    int64_t step;
    float *to; /* NULL: the thread copies nothing */
};

/* Returns the copy of float i of a row, for the last step. */
static __device__ __forceinline__ lstm_copy lstm_copy_of(const leati_cuda_rnn_args &a, float *ring, int i) {
    int of_kept = 5 * a.units, count = of_kept + (a.diff_sequence ? a.units : 0), n = blockIdx.x,
        last = a.steps - 1;
    if (i >= count) return {a.workspace, 0, NULL};
    if (i < of_kept)
        return {a.workspace + rnn_row(a, n, last) * a.kept + i, a.go_backwards ? a.kept : -(int64_t)a.kept,
                ring + i};
    return {a.diff_sequence + ((int64_t)n * a.steps + last) * a.units + (i - of_kept), -(int64_t)a.units,
            ring + i};
}

/* Starts to copy what a step needs, as a group of copies. */
static __device__ __forceinline__ void lstm_start_kept(lstm_copy &first, lstm_copy &second, bool vectors,
                                                       int step) {
    int to = (unsigned)step % lstm_ring * lstm_row;
    if (step >= 0 && first.to) {
        if (vectors)
            start_copy_of_four(first.to + to, first.from);
        else
            start_copy(first.to + to, first.from);
    }
    if (step >= 0 && second.to) start_copy(second.to + to, second.from);
    first.from += first.step;
    second.from += second.step;
    end_copies();
}

/* What a step needs besides the gradient that the next step passes. */
struct lstm_step {
    float of_c, of_gate, forget, diff_h;
};

static __device__ __forceinline__ lstm_step lstm_step_of(const float *row, int units, int q) {
    float i = row[0], f = row[units], candidate = row[2 * units], o = row[3 * units],
          c_before = row[4 * units];
    float squashed = lstm_gate(true, f * c_before + i * candidate);
    float gate = q == 0 ? i : q == 1 ? f : q == 2 ? candidate : o;
    float factor = q == 0 ? candidate : q == 1 ? c_before : q == 2 ? i : squashed;
    float slope = (q == 2 ? 1.0f + gate : gate) * (1.0f - gate);
    return {o * (1.0f - squashed * squashed), factor * slope, f, row[5 * units]};
}

/* Returns the gradient with respect to h of the thread's unit that the next step passes through its gates, whose
 * gradients for the thread's terms are at `diff`. */
static __device__ __forceinline__ float lstm_transposed(const float (&w)[4][16], const float *diff, bool odd,
                                                        bool upper) {
    float sums[4] = {};
    RNN_UNROLL
    for (int g = 0; g < 4; g++) {
        float4 v = *(const float4 *)(diff + g * lstm_units);
        float values[4] = {v.x, v.y, v.z, v.w};
        RNN_UNROLL
        for (int k = 0; k < 4; k++) RNN_UNROLL
        for (int i = 0; i < 4; i++) sums[i] += values[k] * w[g][4 * i + k];
    }
    float sum = lstm_exchange(sums, odd, upper);
    sum += __shfl_xor_sync(LEATI_ALL_LANES, sum, 4);
    return sum + __shfl_xor_sync(LEATI_ALL_LANES, sum, 8);
}

static __device__ __forceinline__ void lstm_load_transposed(const leati_cuda_rnn_args &a, float (&w)[4][16]) {
    int first = threadIdx.x / 16 * 4, k = threadIdx.x % 16 * 4;
    RNN_UNROLL
    for (int i = 0; i < 16; i++) {
        int unit = first + i / 4, term = k + i % 4;
        bool inside = term < a.units && unit < a.units;
        int at = inside ? unit * 4 * a.units + term : 0;
        RNN_UNROLL
        for (int g = 0; g < 4; g++) w[g][i] = inside ? a.recurrent[at + g * a.units] : 0.0f;
    }
}

static __device__ __forceinline__ void lstm_backward(const leati_cuda_rnn_args &a) {
    LEATI_SHARED(float4, state, 2 * lstm_units);
    LEATI_SHARED(float4, ring, lstm_ring * lstm_row / 4);
    enum { of_step = 4 * lstm_units };
    int thread = lstm_thread(), unit = thread / 16 * 4 + thread % 4, q = thread % 16 / 4, units = a.units;
    bool active = unit < units, odd = thread & 1, upper = thread & 2, vectors = a.vectors;
    int64_t own = (int64_t)blockIdx.x * units + (active ? unit : 0);
    int64_t back = a.go_backwards ? a.diff_width : -(int64_t)a.diff_width;
    float *diffs = (float *)state, *rows = (float *)ring, w[4][16];
    for (int i = thread; i < lstm_ring * lstm_row; i += lstm_threads) rows[i] = 0.0f;
    for (int i = thread; i < 2 * of_step; i += lstm_threads) diffs[i] = 0.0f;
    __syncthreads();
    lstm_copy first = lstm_copy_of(a, rows, vectors ? 4 * thread : thread);
    lstm_copy second = lstm_copy_of(a, rows, vectors ? lstm_row : thread + lstm_threads);
    for (int i = 1; i <= lstm_ahead; i++) lstm_start_kept(first, second, vectors, a.steps - i);
    lstm_load_transposed(a, w);
    float pass = a.diff_h_last && active ? a.diff_h_last[own] : 0.0f;
    float diff_c = a.diff_c_last && active ? a.diff_c_last[own] : 0.0f;
    float *to = a.diff_gates + rnn_row(a, blockIdx.x, a.steps - 1) * a.diff_width + q * units + unit;
    const float *mine = rows + (active ? unit : 0), *diff_at = diffs + 4 * (thread % 16);
    float *diff_to = diffs + q * lstm_units + unit;
    wait_for_copies();
    __syncthreads();
    lstm_step now = lstm_step_of(mine + (unsigned)(a.steps - 1) % lstm_ring * lstm_row, units, q);
    now.diff_h += pass;
    for (int step = a.steps - 1; step >= 0; step--) {
        lstm_start_kept(first, second, vectors, step - lstm_ahead);
        float diff_h = lstm_transposed(w, diff_at + ((step + 1) & 1) * of_step, odd, upper) + now.diff_h;
        lstm_step next = lstm_step_of(mine + (unsigned)(step - 1) % lstm_ring * lstm_row, units, q);
        diff_c += diff_h * now.of_c;
        float diff = (q == 3 ? diff_h : diff_c) * now.of_gate;
        if (active) diff_to[(step & 1) * of_step] = diff;
        if (active) *to = diff;
        to += back;
        diff_c *= now.forget;
        now = next;
        wait_for_copies();
        __syncthreads();
    }
    float diff_h = lstm_transposed(w, diff_at, odd, upper);
    if (active && q == 0 && a.diff_h0) a.diff_h0[own] = diff_h;
    if (active && q == 1 && a.diff_c0) a.diff_c0[own] = diff_c;
}

#endif
