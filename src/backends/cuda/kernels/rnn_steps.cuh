/* SPDX-License-Identifier: Apache-2.0 */
/* One step of processing, for cells of any size: a block computes 32 units of 16 samples, two samples in each of its
 * 256 threads, with all gates of a unit in one thread.  A GRU that resets before its product needs two kernels per
 * step. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_RNN_STEPS_CUH
#define LEATI_BACKENDS_CUDA_KERNELS_RNN_STEPS_CUH

#include "backends/cuda/kernels/rnn_cell.cuh"

enum {
    STEP_UNITS = LEATI_CUDA_RNN_STEP_UNITS,
    STEP_SAMPLES = LEATI_CUDA_RNN_STEP_SAMPLES,
    STEP_ROWS = LEATI_CUDA_RNN_THREADS / STEP_UNITS, /* of samples that a block's threads form */
    STEP_EACH = STEP_SAMPLES / STEP_ROWS,            /* samples of a thread */
    STEP_CHUNK = 32
};

/* The place of a thread: its unit, and the first of its samples, which are STEP_ROWS apart. */
struct step_place {
    int unit, sample;
};

static __device__ __forceinline__ step_place step_place_of_thread() {
    return {(int)blockIdx.x * STEP_UNITS + (int)threadIdx.x % STEP_UNITS,
            (int)blockIdx.y * STEP_SAMPLES + (int)threadIdx.x / STEP_UNITS};
}

/* Returns h before a step, (N, U); NULL: 0. */
static __device__ __forceinline__ const float *h_before_step(const leati_cuda_rnn_args &a) {
    return a.step == 0 ? a.h0 : a.state_h[(a.step + 1) % 2];
}

/* sums[s][g] += the sum over k of values(n, k), masked for gate first + g, times R[k][gate][unit].  values NULL: 0. */
template <int gates>
static __device__ void add_recurrent(const leati_cuda_rnn_args &a, const float *values, bool masked,
                                     int first, float (&sums)[STEP_EACH][gates]) {
    LEATI_SHARED(float, weights, STEP_CHUNK *gates *STEP_UNITS);
    LEATI_SHARED(float, operand, gates *STEP_SAMPLES *STEP_CHUNK);
    int column = threadIdx.x % STEP_UNITS, row = threadIdx.x / STEP_UNITS, width = a.gates * a.units;
    int kinds = masked ? gates : 1;
    if (!values) return;
    for (int start = 0; start < a.units; start += STEP_CHUNK) {
        __syncthreads();
        for (int i = threadIdx.x; i < STEP_CHUNK * gates * STEP_UNITS; i += LEATI_CUDA_RNN_THREADS) {
            int k = start + i / (gates * STEP_UNITS), gate = first + i / STEP_UNITS % gates;
            int unit = (int)blockIdx.x * STEP_UNITS + i % STEP_UNITS;
            bool inside = k < a.units && unit < a.units;
            weights[i] = inside ? a.recurrent[(int64_t)k * width + gate * a.units + unit] : 0.0f;
        }
        for (int i = threadIdx.x; i < kinds * STEP_SAMPLES * STEP_CHUNK; i += LEATI_CUDA_RNN_THREADS) {
            int k = start + i % STEP_CHUNK,
                n = (int)blockIdx.y * STEP_SAMPLES + i / STEP_CHUNK % STEP_SAMPLES;
            int gate = first + i / (STEP_CHUNK * STEP_SAMPLES);
            bool inside = k < a.units && n < a.batch;
            operand[i] = inside
                             ? values[(int64_t)n * a.units + k] * (masked ? rnn_h_mask(a, gate, n, k) : 1.0f)
                             : 0.0f;
        }
        __syncthreads();
        RNN_UNROLL_BY(8)
        for (int k = 0; k < STEP_CHUNK; k++) RNN_UNROLL
        for (int g = 0; g < gates; g++) {
            float w = weights[(k * gates + g) * STEP_UNITS + column];
            int kind = masked ? g : 0;
            RNN_UNROLL
            for (int s = 0; s < STEP_EACH; s++)
                sums[s][g] += operand[(kind * STEP_SAMPLES + row + s * STEP_ROWS) * STEP_CHUNK + k] * w;
        }
    }
}

/* Stores h of a step, and the outputs that come from it. */
static __device__ __forceinline__ void store_h(const leati_cuda_rnn_args &a, int n, int unit, float h) {
    int64_t at = (int64_t)n * a.units + unit;
    bool started = !a.counted || a.step >= a.first[n];
    a.state_h[a.step % 2][at] = h;
    if (a.sequence) a.sequence[((int64_t)n * a.steps + a.step) * a.units + unit] = started ? h : 0.0f;
    if (a.h_last && a.step == a.steps - 1) a.h_last[at] = h;
}

/* A step of a sample and unit whose mask is 0: the state stays. */
template <int cell>
static __device__ void keep_state(const leati_cuda_rnn_args &a, int n, int unit, float h, float c) {
    if (a.workspace) {
        float *kept = a.workspace + rnn_row(a, n, a.step) * a.kept + unit;
        int parts = a.kept / a.units;
        for (int p = 0; p < parts - 1; p++) kept[p * a.units] = 0.0f;
        kept[(parts - 1) * a.units] = h;
    }
    if (cell == LEATI_CUDA_LSTM) {
        a.state_c[(int64_t)n * a.units + unit] = c;
        if (a.c_last && a.step == a.steps - 1) a.c_last[(int64_t)n * a.units + unit] = c;
    }
    store_h(a, n, unit, h);
}

/* The cell's function: sums has the gates before activation without the projection; z, those of the projection. */
template <int cell>
static __device__ void forward_cell(const leati_cuda_rnn_args &a, int n, int unit, const float *sums,
                                    const float *z, float h_before, float c_before) {
    int units = a.units;
    int64_t at = (int64_t)n * units + unit;
    float *kept = a.workspace ? a.workspace + rnn_row(a, n, a.step) * a.kept + unit : NULL;
    float h;
    if (cell == LEATI_CUDA_LSTM) {
        float i = rnn_activate(a.recurrent_activation, z[0] + sums[0]);
        float f = rnn_activate(a.recurrent_activation, z[1] + sums[1]);
        float candidate = rnn_activate(a.activation, z[2] + sums[2]);
        float o = rnn_activate(a.recurrent_activation, z[3] + sums[3]);
        float c = f * c_before + i * candidate;
        h = o * rnn_activate(a.activation, c);
        a.state_c[at] = c;
        if (a.c_last && a.step == a.steps - 1) a.c_last[at] = c;
        if (kept) {
            kept[0] = i;
            kept[units] = f;
            kept[2 * units] = candidate;
            kept[3 * units] = o;
            kept[4 * units] = c_before;
            kept[5 * units] = h_before;
        }
    } else if (cell == LEATI_CUDA_GRU_RESET_AFTER) {
        float update = rnn_activate(a.recurrent_activation, z[0] + sums[0] + rnn_state_bias(a, 0, unit));
        float r = rnn_activate(a.recurrent_activation, z[1] + sums[1] + rnn_state_bias(a, 1, unit));
        float inner = sums[2] + rnn_state_bias(a, 2, unit);
        float candidate = rnn_activate(a.activation, z[2] + r * inner);
        h = update * (h_before * rnn_carry(a, n, unit)) + (1.0f - update) * candidate;
        if (kept) {
            kept[0] = update;
            kept[units] = r;
            kept[2 * units] = candidate;
            kept[3 * units] = inner;
            kept[4 * units] = h_before;
        }
    } else {
        h = rnn_activate(a.activation, z[0] + sums[0]);
        if (kept) {
            kept[0] = h;
            kept[units] = h_before;
        }
    }
    store_h(a, n, unit, h);
}

/* A step of a cell that is not a GRU which resets before its product. */
template <int cell, int gates> static __device__ void rnn_forward_step(const leati_cuda_rnn_args &a) {
    float sums[STEP_EACH][gates] = {};
    const float *before = h_before_step(a);
    step_place place = step_place_of_thread();
    add_recurrent<gates>(a, before, a.h_mask != NULL, 0, sums);
    for (int s = 0; s < STEP_EACH; s++) {
        int n = place.sample + s * STEP_ROWS, unit = place.unit;
        if (n >= a.batch || unit >= a.units) continue;
        int64_t row = rnn_row(a, n, a.step), at = (int64_t)n * a.units + unit;
        const float *from_c = a.step == 0 ? a.c0 : a.state_c;
        float h = before ? before[at] : 0.0f, c = cell == LEATI_CUDA_LSTM && from_c ? from_c[at] : 0.0f;
        if (!rnn_counts(a, row)) {
            keep_state<cell>(a, n, unit, h, c);
            continue;
        }
        float z[gates];
        for (int g = 0; g < gates; g++) z[g] = a.projected[row * gates * a.units + g * a.units + unit];
        forward_cell<cell>(a, n, unit, sums[s], z, h, c);
    }
}

/* The first half of a step of such a GRU: z, r and v = r (.) h'. */
static __device__ void rnn_forward_reset(const leati_cuda_rnn_args &a) {
    float sums[STEP_EACH][2] = {};
    const float *before = h_before_step(a);
    step_place place = step_place_of_thread();
    add_recurrent<2>(a, before, a.h_mask != NULL, 0, sums);
    for (int s = 0; s < STEP_EACH; s++) {
        int n = place.sample + s * STEP_ROWS, unit = place.unit, units = a.units;
        if (n >= a.batch || unit >= units) continue;
        int64_t row = rnn_row(a, n, a.step), at = (int64_t)n * units + unit;
        const float *projected = a.projected + row * 3 * units + unit;
        float h = before ? before[at] : 0.0f;
        float z = rnn_activate(a.recurrent_activation, projected[0] + sums[s][0]);
        float r = rnn_activate(a.recurrent_activation, projected[units] + sums[s][1]);
        float v = r * (h * rnn_h_mask(a, 2, n, unit));
        a.state_z[at] = z;
        a.state_v[at] = v;
        if (!a.workspace) continue;
        float *kept = a.workspace + row * a.kept + unit;
        kept[0] = z;
        kept[units] = r;
        kept[3 * units] = v;
        kept[4 * units] = h;
    }
}

/* The second half: the candidate and h. */
static __device__ void rnn_forward_update(const leati_cuda_rnn_args &a) {
    float sums[STEP_EACH][1] = {};
    const float *before = h_before_step(a);
    step_place place = step_place_of_thread();
    add_recurrent<1>(a, a.state_v, false, 2, sums);
    for (int s = 0; s < STEP_EACH; s++) {
        int n = place.sample + s * STEP_ROWS, unit = place.unit, units = a.units;
        if (n >= a.batch || unit >= units) continue;
        int64_t row = rnn_row(a, n, a.step), at = (int64_t)n * units + unit;
        float h = before ? before[at] : 0.0f, z = a.state_z[at];
        if (!rnn_counts(a, row)) {
            keep_state<LEATI_CUDA_GRU>(a, n, unit, h, 0.0f);
            continue;
        }
        float candidate =
            rnn_activate(a.activation, a.projected[row * 3 * units + 2 * units + unit] + sums[s][0]);
        if (a.workspace) a.workspace[row * a.kept + 2 * units + unit] = candidate;
        store_h(a, n, unit, z * (h * rnn_carry(a, n, unit)) + (1.0f - z) * candidate);
    }
}

/* ---- Backward ---- */

/* sums[s] += the sum over gates [first, first + count) and their units of the gradient of a step, times R, masked. */
static __device__ void add_transposed(const leati_cuda_rnn_args &a, int step, int first, int count,
                                      bool masked, float (&sums)[STEP_EACH]) {
    LEATI_SHARED(float, weights, STEP_UNITS *(STEP_CHUNK + 1));
    LEATI_SHARED(float, operand, STEP_SAMPLES *STEP_CHUNK);
    int column = threadIdx.x % STEP_UNITS, row = threadIdx.x / STEP_UNITS, width = a.gates * a.units;
    int out = (int)blockIdx.x * STEP_UNITS + column;
    for (int gate = first; gate < first + count; gate++) {
        bool inner = a.cell == LEATI_CUDA_GRU_RESET_AFTER && gate == 2;
        int source = (gate + inner) * a.units;
        float of_gate[STEP_EACH] = {};
        for (int start = 0; start < a.units; start += STEP_CHUNK) {
            __syncthreads();
            for (int i = threadIdx.x; i < STEP_UNITS * STEP_CHUNK; i += LEATI_CUDA_RNN_THREADS) {
                int k = start + i % STEP_CHUNK, unit = (int)blockIdx.x * STEP_UNITS + i / STEP_CHUNK;
                bool inside = k < a.units && unit < a.units;
                weights[i / STEP_CHUNK * (STEP_CHUNK + 1) + i % STEP_CHUNK] =
                    inside ? a.recurrent[(int64_t)unit * width + gate * a.units + k] : 0.0f;
            }
            for (int i = threadIdx.x; i < STEP_SAMPLES * STEP_CHUNK; i += LEATI_CUDA_RNN_THREADS) {
                int k = start + i % STEP_CHUNK, n = (int)blockIdx.y * STEP_SAMPLES + i / STEP_CHUNK;
                bool inside = k < a.units && n < a.batch;
                operand[i] = inside ? a.diff_gates[rnn_row(a, n, step) * a.diff_width + source + k] : 0.0f;
            }
            __syncthreads();
            RNN_UNROLL_BY(8)
            for (int k = 0; k < STEP_CHUNK; k++) {
                float w = weights[column * (STEP_CHUNK + 1) + k];
                RNN_UNROLL
                for (int s = 0; s < STEP_EACH; s++)
                    of_gate[s] += operand[(row + s * STEP_ROWS) * STEP_CHUNK + k] * w;
            }
        }
        for (int s = 0; s < STEP_EACH; s++) {
            int n = (int)blockIdx.y * STEP_SAMPLES + row + s * STEP_ROWS;
            bool inside = n < a.batch && out < a.units;
            sums[s] += masked && inside ? of_gate[s] * rnn_h_mask(a, gate, n, out) : of_gate[s];
        }
    }
}

/* The gradients of a step of a sample and unit, from that with respect to h.  Writes those of the gates (not r of a GRU
 * that resets before its product) and what passes to the step before. */
template <int cell>
static __device__ void backward_cell(const leati_cuda_rnn_args &a, int n, int unit, float diff_h) {
    int units = a.units;
    int64_t row = rnn_row(a, n, a.step), at = (int64_t)n * units + unit;
    const float *kept = a.workspace + row * a.kept + unit;
    float *diff = a.diff_gates + row * a.diff_width + unit;
    if (!rnn_counts(a, row)) {
        for (int p = 0; p < a.diff_width / units; p++) diff[p * units] = 0.0f;
        a.pass[at] = diff_h;
        if (cell == LEATI_CUDA_LSTM && a.step == a.steps - 1)
            a.pass_c[at] = a.diff_c_last ? a.diff_c_last[at] : 0.0f;
        return;
    }
    if (cell == LEATI_CUDA_LSTM) {
        float i = kept[0], f = kept[units], candidate = kept[2 * units], o = kept[3 * units];
        float c_before = kept[4 * units];
        float squashed = rnn_activate(a.activation, f * c_before + i * candidate);
        float diff_c = a.step < a.steps - 1 ? a.pass_c[at] : a.diff_c_last ? a.diff_c_last[at] : 0.0f;
        diff_c += diff_h * (o * rnn_slope(a.activation, squashed));
        diff[0] = diff_c * (candidate * rnn_slope(a.recurrent_activation, i));
        diff[units] = diff_c * (c_before * rnn_slope(a.recurrent_activation, f));
        diff[2 * units] = diff_c * (i * rnn_slope(a.activation, candidate));
        diff[3 * units] = diff_h * (squashed * rnn_slope(a.recurrent_activation, o));
        a.pass_c[at] = diff_c * f;
        a.pass[at] = 0.0f;
    } else if (cell == LEATI_CUDA_SIMPLE) {
        diff[0] = diff_h * rnn_slope(a.activation, kept[0]);
        a.pass[at] = 0.0f;
    } else {
        float z = kept[0], candidate = kept[2 * units], carry = rnn_carry(a, n, unit), h = kept[4 * units];
        float diff_candidate = diff_h * ((1.0f - z) * rnn_slope(a.activation, candidate));
        diff[0] = diff_h * ((h * carry - candidate) * rnn_slope(a.recurrent_activation, z));
        diff[2 * units] = diff_candidate;
        a.pass[at] = diff_h * (z * carry);
        if (cell == LEATI_CUDA_GRU_RESET_AFTER) {
            float r = kept[units], inner = kept[3 * units];
            diff[units] = diff_candidate * (inner * rnn_slope(a.recurrent_activation, r));
            diff[3 * units] = diff_candidate * r;
        }
    }
}

/* The gradient of a step; a.step -1: only that with respect to h0 and c0. */
template <int cell> static __device__ void rnn_backward_step(const leati_cuda_rnn_args &a) {
    float sums[STEP_EACH] = {};
    step_place place = step_place_of_thread();
    bool last = a.step == a.steps - 1;
    if (!last) add_transposed(a, a.step + 1, 0, cell == LEATI_CUDA_GRU ? 2 : a.gates, a.h_mask != NULL, sums);
    for (int s = 0; s < STEP_EACH; s++) {
        int n = place.sample + s * STEP_ROWS, unit = place.unit;
        if (n >= a.batch || unit >= a.units) continue;
        int64_t at = (int64_t)n * a.units + unit;
        float diff_h = sums[s] + (!last ? a.pass[at] : a.diff_h_last ? a.diff_h_last[at] : 0.0f);
        if (a.step < 0) {
            if (a.diff_h0) a.diff_h0[at] = diff_h;
            if (cell == LEATI_CUDA_LSTM && a.diff_c0) a.diff_c0[at] = a.pass_c[at];
            continue;
        }
        if (a.diff_sequence && (!a.counted || a.step >= a.first[n]))
            diff_h += a.diff_sequence[((int64_t)n * a.steps + a.step) * a.units + unit];
        backward_cell<cell>(a, n, unit, diff_h);
    }
}

/* The second half of a step of a GRU that resets before its product: the gradient with respect to r. */
static __device__ void rnn_backward_reset(const leati_cuda_rnn_args &a) {
    float sums[STEP_EACH] = {};
    step_place place = step_place_of_thread();
    add_transposed(a, a.step, 2, 1, false, sums);
    for (int s = 0; s < STEP_EACH; s++) {
        int n = place.sample + s * STEP_ROWS, unit = place.unit, units = a.units;
        if (n >= a.batch || unit >= units) continue;
        int64_t row = rnn_row(a, n, a.step), at = (int64_t)n * units + unit;
        if (!rnn_counts(a, row)) continue;
        const float *kept = a.workspace + row * a.kept + unit;
        float r = kept[units], mask = rnn_h_mask(a, 2, n, unit);
        a.diff_gates[row * a.diff_width + units + unit] =
            sums[s] * (kept[4 * units] * mask * rnn_slope(a.recurrent_activation, r));
        a.pass[at] += sums[s] * (r * mask);
    }
}

/* Finds for each sample the first step that counts; one thread per sample. */
static __device__ void rnn_first(const leati_cuda_rnn_args &a) {
    LEATI_FOR_EACH(n, a.batch) {
        int step = 0;
        while (step < a.steps && !rnn_counts(a, rnn_row(a, (int)n, step))) step++;
        a.first[n] = step;
    }
}

/* Sets the counters of the gradients' tiles to 0. */
static __device__ void rnn_reset_counters(const leati_cuda_rnn_args &a) {
    int tiles = a.column_tiles * a.column_groups * (a.feature_tiles + a.unit_tiles);
    bool first_block = blockIdx.x == 0 && blockIdx.y == 0;
    for (int i = threadIdx.x; first_block && i < tiles; i += blockDim.x) a.counters[i] = 0;
}

#endif
