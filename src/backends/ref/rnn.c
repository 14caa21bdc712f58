/* SPDX-License-Identifier: Apache-2.0 */
/* The recurrent cells in plain C, sample by sample, products summed in double.  This file has their formulas.
 * Room: backends/ref.
 *
 * With f the recurrent activation, g the activation, x' and h' masked per gate, (.) element-wise, per step:
 *   LSTM    i, f, o = f(x' K + h' R + b)   c~ = g(x' K + h' R + b)   c = f (.) c_before + i (.) c~   h = o (.) g(c)
 *   GRU     z, r = f(x' K + h' R + b)      h~ = g(x' K + (r (.) h') R + b)
 *   GRU_RESET_AFTER  z, r = f(x' K + b0 + h' R + b1)   h~ = g(x' K + b0 + r (.) (h' R + b1))
 *           both: h = z (.) h_before + (1 - z) (.) h~
 *   SIMPLE  h = g(x' K + h' R + b)
 * The workspace of a step holds the gates after activation, then c (LSTM) or h' R + b1 of the last gate. */
#include <stdio.h>
#include <string.h>

#include "backends/ref/ref.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/op_semantics/geometry.h"

enum { UNMASKED = -1 };

typedef struct rnn_state {
    leati_rnn_shape shape;
    int inputs;
} rnn_state;

/* The arguments and the scratch of one sample. */
typedef struct sample {
    const leati_rnn_shape *shape;
    int inputs;
    const float *in[LEATI_RNN_BWD_INPUTS]; /* NULL where absent */
    int64_t n, first;                      /* first: the first step of processing that counts */
    double *z;     /* (gates units): sums before activation, or the gradients with respect to them */
    double *inner; /* (units): the last gate's h' R + b1, or the gradient with respect to it */
    double *diff_h, *diff_c; /* (units): gradients that flow to the step before */
    float *h, *c, *v;        /* (units); v: r (.) h', the operand of a GRU's last product */
    float *kept;             /* (kept) */
} sample;

static size_t scratch_bytes(const leati_rnn_shape *s) {
    return (size_t)(s->units * (s->gates + 3)) * sizeof(double) +
           (size_t)(s->units * 3 + s->kept) * sizeof(float);
}

static sample sample_of(const leati_kernel *kernel, void *const *args, const leati_run *run) {
    const rnn_state *s = kernel->state;
    int64_t units = s->shape.units;
    sample p = {.shape = &s->shape, .inputs = s->inputs, .z = run->scratch};
    p.inner = p.z + s->shape.gates * units;
    p.diff_h = p.inner + units;
    p.diff_c = p.diff_h + units;
    p.h = (float *)(p.diff_c + units);
    p.c = p.h + units;
    p.v = p.c + units;
    p.kept = p.v + units;
    for (int i = 0; i < s->inputs; i++) p.in[i] = args[i];
    return p;
}

static bool step_counts(const sample *p, int64_t step) {
    const float *steps = p->in[LEATI_RNN_STEPS];
    return !steps || steps[p->n * p->shape->steps + leati_rnn_input_step(p->shape, step)] != 0;
}

static void start_state(const sample *p, float *to, int which) {
    int64_t units = p->shape->units;
    for (int64_t u = 0; u < units; u++) to[u] = p->in[which] ? p->in[which][p->n * units + u] : 0.0f;
}

static void start(sample *p) {
    const float *steps = p->in[LEATI_RNN_STEPS];
    p->first = steps ? leati_rnn_first_step(p->shape, steps + p->n * p->shape->steps) : 0;
    start_state(p, p->h, LEATI_RNN_H0);
    start_state(p, p->c, LEATI_RNN_C0);
}

static const float *x_of(const sample *p, int64_t step) {
    const leati_rnn_shape *s = p->shape;
    return p->in[LEATI_RNN_X] + (p->n * s->steps + leati_rnn_input_step(s, step)) * s->features;
}

/* Returns the dropout factor of value j of `width` for a gate; 1 without a mask. */
static float mask_at(const sample *p, int which, int64_t gate, int64_t width, int64_t j) {
    const float *mask = which == UNMASKED ? NULL : p->in[which];
    return mask ? mask[(gate * p->shape->batch + p->n) * width + j] : 1.0f;
}

/* Returns the factor of h in z (.) h: the dropout mask, where that applies to it. */
static float carry_at(const sample *p, int64_t u) {
    return p->shape->carry_masked ? mask_at(p, LEATI_RNN_H_MASK, 0, p->shape->units, u) : 1.0f;
}

/* A vector of `width` values and the weights (width, gates units) that it is multiplied with. */
typedef struct operand {
    const float *values;
    int64_t width;
    const float *weights;
    int mask; /* index of the input that is its dropout mask, or UNMASKED */
} operand;

static operand x_operand(const sample *p, int64_t step) {
    return (operand){x_of(p, step), p->shape->features, p->in[LEATI_RNN_KERNEL], LEATI_RNN_X_MASK};
}

static operand h_operand(const sample *p, const float *h, int mask) {
    return (operand){h, p->shape->units, p->in[LEATI_RNN_RECURRENT], mask};
}

/* sums (to - from, units) += the operand times its weights, for the gates `from` to `to` - 1. */
static void add_product(const sample *p, operand v, int64_t from, int64_t to, double *sums) {
    int64_t units = p->shape->units, width = p->shape->gates * units;
    for (int64_t j = 0; j < v.width; j++)
        for (int64_t gate = from; gate < to; gate++) {
            double factor = (double)(v.values[j] * mask_at(p, v.mask, gate, v.width, j));
            for (int64_t u = 0; u < units; u++)
                sums[(gate - from) * units + u] += factor * (double)v.weights[j * width + gate * units + u];
        }
}

/* ---- Forward: z has x' K + b; a cell's function computes h, c and what the workspace keeps of the step ---- */

static void activate(const sample *p, const leati_eltwise *f, int64_t from, int64_t to) {
    for (int64_t k = from * p->shape->units; k < to * p->shape->units; k++)
        p->kept[k] = leati_eltwise_at(f, (float)p->z[k]);
}

static void forward_lstm(const sample *p) {
    const leati_rnn_shape *s = p->shape;
    int64_t units = s->units;
    add_product(p, h_operand(p, p->h, LEATI_RNN_H_MASK), 0, 4, p->z);
    activate(p, &s->recurrent_activation, 0, 4);
    activate(p, &s->activation, 2, 3);
    for (int64_t u = 0; u < units; u++) {
        const float *gate = p->kept + u;
        p->c[u] = gate[units] * p->c[u] + gate[0] * gate[2 * units];
        p->h[u] = gate[3 * units] * leati_eltwise_at(&s->activation, p->c[u]);
    }
    memcpy(p->kept + 4 * units, p->c, (size_t)units * sizeof(float));
}

static void update_state(const sample *p) {
    int64_t units = p->shape->units;
    for (int64_t u = 0; u < units; u++) {
        float z = p->kept[u], candidate = p->kept[2 * units + u];
        p->h[u] = z * (p->h[u] * carry_at(p, u)) + (1.0f - z) * candidate;
    }
}

/* v = r (.) h' */
static void reset(const sample *p, const float *kept, const float *h) {
    int64_t units = p->shape->units;
    for (int64_t u = 0; u < units; u++)
        p->v[u] = kept[units + u] * (h[u] * mask_at(p, LEATI_RNN_H_MASK, 2, units, u));
}

static void forward_gru(const sample *p) {
    const leati_rnn_shape *s = p->shape;
    add_product(p, h_operand(p, p->h, LEATI_RNN_H_MASK), 0, 2, p->z);
    activate(p, &s->recurrent_activation, 0, 2);
    reset(p, p->kept, p->h);
    add_product(p, h_operand(p, p->v, UNMASKED), 2, 3, p->z + 2 * s->units);
    activate(p, &s->activation, 2, 3);
    update_state(p);
}

static void forward_gru_reset_after(const sample *p) {
    const leati_rnn_shape *s = p->shape;
    int64_t units = s->units;
    const float *bias = p->in[LEATI_RNN_BIAS];
    for (int64_t k = 0; bias && k < 2 * units; k++) p->z[k] += (double)bias[3 * units + k];
    for (int64_t u = 0; u < units; u++) p->inner[u] = bias ? (double)bias[5 * units + u] : 0;
    add_product(p, h_operand(p, p->h, LEATI_RNN_H_MASK), 0, 2, p->z);
    add_product(p, h_operand(p, p->h, LEATI_RNN_H_MASK), 2, 3, p->inner);
    activate(p, &s->recurrent_activation, 0, 2);
    for (int64_t u = 0; u < units; u++) {
        p->kept[3 * units + u] = (float)p->inner[u];
        p->z[2 * units + u] += (double)p->kept[units + u] * p->inner[u];
    }
    activate(p, &s->activation, 2, 3);
    update_state(p);
}

static void forward_simple(const sample *p) {
    add_product(p, h_operand(p, p->h, LEATI_RNN_H_MASK), 0, 1, p->z);
    activate(p, &p->shape->activation, 0, 1);
    memcpy(p->h, p->kept, (size_t)p->shape->units * sizeof(float));
}

static void forward_step(const sample *p, int64_t step, void (*cell)(const sample *p)) {
    const leati_rnn_shape *s = p->shape;
    const float *bias = p->in[LEATI_RNN_BIAS];
    if (!step_counts(p, step)) { /* the gradient of the next step needs c */
        memset(p->kept, 0, (size_t)s->kept * sizeof(float));
        if (s->cell == LEATI_CELL_LSTM)
            memcpy(p->kept + 4 * s->units, p->c, (size_t)s->units * sizeof(float));
        return;
    }
    for (int64_t k = 0; k < s->gates * s->units; k++) p->z[k] = bias ? (double)bias[k] : 0;
    add_product(p, x_operand(p, step), 0, s->gates, p->z);
    cell(p);
}

static void forward_sample(const sample *p, void *const *out, void (*cell)(const sample *p)) {
    const leati_rnn_shape *s = p->shape;
    size_t bytes = (size_t)s->units * sizeof(float);
    float *sequence = out[LEATI_RNN_OUT_SEQUENCE], *h_last = out[LEATI_RNN_OUT_H_LAST];
    float *c_last = out[LEATI_RNN_OUT_C_LAST];
    float *workspace = s->training ? out[LEATI_RNN_OUT_WORKSPACE] : NULL;
    for (int64_t step = 0; step < s->steps; step++) {
        forward_step(p, step, cell);
        float *row = sequence ? sequence + (p->n * s->steps + step) * s->units : NULL;
        if (row && step < p->first)
            memset(row, 0, bytes);
        else if (row)
            memcpy(row, p->h, bytes);
        if (workspace)
            memcpy(workspace + (step * s->batch + p->n) * s->kept, p->kept, (size_t)s->kept * sizeof(float));
    }
    if (h_last) memcpy(h_last + p->n * s->units, p->h, bytes);
    if (c_last && s->cell == LEATI_CELL_LSTM) memcpy(c_last + p->n * s->units, p->c, bytes);
}

static leat_status run_rnn(const leati_kernel *kernel, void *const *args, const leati_run *run,
                           leat_error *err) {
    static void (*const cells[])(const sample *p) = {[LEATI_CELL_LSTM] = forward_lstm,
                                                     [LEATI_CELL_GRU] = forward_gru,
                                                     [LEATI_CELL_GRU_RESET_AFTER] = forward_gru_reset_after,
                                                     [LEATI_CELL_SIMPLE] = forward_simple};
    sample p = sample_of(kernel, args, run);
    (void)err;
    for (; p.n < p.shape->batch; p.n++) {
        start(&p);
        forward_sample(&p, args + p.inputs, cells[p.shape->cell]);
    }
    return LEAT_OK;
}

/* ---- Backward: diff_h and diff_c are the gradients with respect to h and c of a step; a cell's function replaces
 * them by those of the step before ---- */

/* One step of one sample. */
typedef struct step {
    const float *kept, *h, *c; /* kept: of this step; h, c: of the step before */
    float *diff_recurrent, *diff_bias;
} step;

/* Returns the gradient with respect to value j of the operand, from the gradient z with respect to its product with
 * the gates `from` to `to` - 1. */
static double diff_value(const sample *p, operand v, int64_t from, int64_t to, const double *z, int64_t j) {
    int64_t units = p->shape->units, width = p->shape->gates * units;
    double sum = 0;
    for (int64_t gate = from; gate < to; gate++) {
        double dot = 0;
        for (int64_t u = 0; u < units; u++)
            dot += z[(gate - from) * units + u] * (double)v.weights[j * width + gate * units + u];
        sum += dot * (double)mask_at(p, v.mask, gate, v.width, j);
    }
    return sum;
}

/* Adds the gradient with respect to the weights. */
static void add_outer(const sample *p, operand v, int64_t from, int64_t to, const double *z, float *diff) {
    int64_t units = p->shape->units, width = p->shape->gates * units;
    for (int64_t j = 0; diff && j < v.width; j++)
        for (int64_t gate = from; gate < to; gate++)
            for (int64_t u = 0; u < units; u++)
                diff[j * width + gate * units + u] +=
                    (float)(z[(gate - from) * units + u] *
                            (double)(v.values[j] * mask_at(p, v.mask, gate, v.width, j)));
}

/* The gradient of h' R for the gates `from` to `to` - 1: adds to that with respect to the weights, and to diff_h. */
static void through_recurrent(const sample *p, const step *s, int64_t from, int64_t to, const double *z) {
    operand h = h_operand(p, s->h, LEATI_RNN_H_MASK);
    add_outer(p, h, from, to, z, s->diff_recurrent);
    for (int64_t j = 0; j < p->shape->units; j++) p->diff_h[j] += diff_value(p, h, from, to, z, j);
}

static void backward_lstm(const sample *p, const step *s) {
    int64_t units = p->shape->units;
    const leati_eltwise *f = &p->shape->recurrent_activation, *g = &p->shape->activation;
    for (int64_t u = 0; u < units; u++) {
        const float *gate = s->kept + u;
        float i = gate[0], forget = gate[units], candidate = gate[2 * units], o = gate[3 * units];
        float squashed = leati_eltwise_at(g, gate[4 * units]);
        double diff_c = p->diff_c[u] + p->diff_h[u] * (double)(o * leati_slope_from_dst(g, squashed));
        p->z[u] = diff_c * (double)(candidate * leati_slope_from_dst(f, i));
        p->z[units + u] = diff_c * (double)(s->c[u] * leati_slope_from_dst(f, forget));
        p->z[2 * units + u] = diff_c * (double)(i * leati_slope_from_dst(g, candidate));
        p->z[3 * units + u] = p->diff_h[u] * (double)(squashed * leati_slope_from_dst(f, o));
        p->diff_c[u] = diff_c * (double)forget;
        p->diff_h[u] = 0;
    }
    through_recurrent(p, s, 0, 4, p->z);
}

/* Sets the gradients with respect to the update gate and the candidate, and leaves in diff_h what the update gate
 * passes on. */
static void update_gate_gradients(const sample *p, const step *s) {
    int64_t units = p->shape->units;
    const leati_eltwise *f = &p->shape->recurrent_activation, *g = &p->shape->activation;
    for (int64_t u = 0; u < units; u++) {
        float z = s->kept[u], candidate = s->kept[2 * units + u], carry = carry_at(p, u);
        double diff_h = p->diff_h[u];
        p->z[u] = diff_h * (double)((s->h[u] * carry - candidate) * leati_slope_from_dst(f, z));
        p->z[2 * units + u] = diff_h * (double)((1.0f - z) * leati_slope_from_dst(g, candidate));
        p->diff_h[u] = diff_h * (double)(z * carry);
    }
}

static void backward_gru(const sample *p, const step *s) {
    int64_t units = p->shape->units;
    const leati_eltwise *f = &p->shape->recurrent_activation;
    const double *diff_last = p->z + 2 * units;
    update_gate_gradients(p, s);
    reset(p, s->kept, s->h);
    operand v = h_operand(p, p->v, UNMASKED);
    add_outer(p, v, 2, 3, diff_last, s->diff_recurrent);
    for (int64_t j = 0; j < units; j++) {
        float r = s->kept[units + j], mask = mask_at(p, LEATI_RNN_H_MASK, 2, units, j);
        double diff_v = diff_value(p, v, 2, 3, diff_last, j);
        p->z[units + j] = diff_v * (double)(s->h[j] * mask * leati_slope_from_dst(f, r));
        p->diff_h[j] += diff_v * (double)(r * mask);
    }
    through_recurrent(p, s, 0, 2, p->z);
}

static void backward_gru_reset_after(const sample *p, const step *s) {
    int64_t units = p->shape->units;
    const leati_eltwise *f = &p->shape->recurrent_activation;
    update_gate_gradients(p, s);
    for (int64_t u = 0; u < units; u++) {
        float r = s->kept[units + u], inner = s->kept[3 * units + u];
        p->inner[u] = p->z[2 * units + u] * (double)r;
        p->z[units + u] = p->z[2 * units + u] * (double)(inner * leati_slope_from_dst(f, r));
    }
    through_recurrent(p, s, 0, 2, p->z);
    through_recurrent(p, s, 2, 3, p->inner);
    for (int64_t k = 0; s->diff_bias && k < 3 * units; k++)
        s->diff_bias[3 * units + k] += (float)(k < 2 * units ? p->z[k] : p->inner[k - 2 * units]);
}

static void backward_simple(const sample *p, const step *s) {
    for (int64_t u = 0; u < p->shape->units; u++) {
        p->z[u] = p->diff_h[u] * (double)leati_slope_from_dst(&p->shape->activation, s->kept[u]);
        p->diff_h[u] = 0;
    }
    through_recurrent(p, s, 0, 1, p->z);
}

/* Sets the gradient with respect to x of one step; diff_x may be NULL. */
static void backward_x(const sample *p, int64_t at, float *diff_x) {
    const leati_rnn_shape *s = p->shape;
    operand x = x_operand(p, at);
    float *row = diff_x ? diff_x + (x.values - p->in[LEATI_RNN_X]) : NULL;
    for (int64_t j = 0; row && j < s->features; j++)
        row[j] = step_counts(p, at) ? (float)diff_value(p, x, 0, s->gates, p->z, j) : 0.0f;
}

/* Returns the sample's part of the workspace at a step. */
static const float *kept_at(const sample *p, int64_t at) {
    return p->in[LEATI_RNN_WORKSPACE] + (at * p->shape->batch + p->n) * p->shape->kept;
}

/* Returns h of the step before.  Where no sequence is given, an LSTM's is computed from that step's workspace. */
static const float *h_before(const sample *p, int64_t at) {
    const leati_rnn_shape *s = p->shape;
    int64_t units = s->units;
    if (at <= p->first) return p->h;
    if (p->in[LEATI_RNN_SEQUENCE]) return p->in[LEATI_RNN_SEQUENCE] + (p->n * s->steps + at - 1) * units;
    const float *kept = kept_at(p, at - 1);
    for (int64_t u = 0; u < units; u++)
        p->v[u] = kept[3 * units + u] * leati_eltwise_at(&s->activation, kept[4 * units + u]);
    return p->v;
}

/* Returns an LSTM's c of the step before; NULL for other cells. */
static const float *c_before(const sample *p, int64_t at) {
    if (p->shape->cell != LEATI_CELL_LSTM) return NULL;
    return at > 0 ? kept_at(p, at - 1) + 4 * p->shape->units : p->c;
}

static void backward_step(const sample *p, int64_t at, void *const *out,
                          void (*cell)(const sample *p, const step *s)) {
    const leati_rnn_shape *s = p->shape;
    int64_t units = s->units, row = (p->n * s->steps + at) * units;
    const float *diff_sequence = p->in[LEATI_RNN_DIFF_SEQUENCE];
    for (int64_t u = 0; diff_sequence && at >= p->first && u < units; u++)
        p->diff_h[u] += (double)diff_sequence[row + u];
    if (step_counts(p, at)) {
        step now = {.kept = kept_at(p, at),
                    .h = h_before(p, at),
                    .c = c_before(p, at),
                    .diff_recurrent = out[LEATI_RNN_RECURRENT],
                    .diff_bias = out[LEATI_RNN_BIAS]};
        cell(p, &now);
        add_outer(p, x_operand(p, at), 0, s->gates, p->z, out[LEATI_RNN_KERNEL]);
        for (int64_t k = 0; now.diff_bias && k < s->gates * units; k++) now.diff_bias[k] += (float)p->z[k];
    }
    backward_x(p, at, out[LEATI_RNN_X]);
}

static void start_gradient(const sample *p, double *to, int which) {
    int64_t units = p->shape->units;
    for (int64_t u = 0; u < units; u++) to[u] = p->in[which] ? (double)p->in[which][p->n * units + u] : 0;
}

static void zero(float *values, int64_t count) {
    if (values) memset(values, 0, (size_t)count * sizeof *values);
}

static leat_status run_bwd(const leati_kernel *kernel, void *const *args, const leati_run *run,
                           leat_error *err) {
    static void (*const cells[])(const sample *p,
                                 const step *s) = {[LEATI_CELL_LSTM] = backward_lstm,
                                                   [LEATI_CELL_GRU] = backward_gru,
                                                   [LEATI_CELL_GRU_RESET_AFTER] = backward_gru_reset_after,
                                                   [LEATI_CELL_SIMPLE] = backward_simple};
    sample p = sample_of(kernel, args, run);
    const leati_rnn_shape *s = p.shape;
    void *const *out = args + p.inputs;
    float *diff_h0 = out[LEATI_RNN_H0], *diff_c0 = s->cell == LEATI_CELL_LSTM ? out[LEATI_RNN_C0] : NULL;
    (void)err;
    zero(out[LEATI_RNN_KERNEL], s->features * s->gates * s->units);
    zero(out[LEATI_RNN_RECURRENT], s->units * s->gates * s->units);
    zero(out[LEATI_RNN_BIAS], s->biases * s->gates * s->units);
    for (; p.n < s->batch; p.n++) {
        start(&p);
        start_gradient(&p, p.diff_h, LEATI_RNN_DIFF_H_LAST);
        start_gradient(&p, p.diff_c, LEATI_RNN_DIFF_C_LAST);
        for (int64_t at = s->steps - 1; at >= 0; at--) backward_step(&p, at, out, cells[s->cell]);
        for (int64_t u = 0; u < s->units; u++) {
            if (diff_h0) diff_h0[p.n * s->units + u] = (float)p.diff_h[u];
            if (diff_c0) diff_c0[p.n * s->units + u] = (float)p.diff_c[u];
        }
    }
    return LEAT_OK;
}

static leat_status prepare(const leati_task *task, leati_kernel *kernel, leat_error *err) {
    rnn_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a recurrent cell");
    s->shape =
        leati_rnn_shape_of(task->attrs, &task->inputs[LEATI_RNN_X], &task->inputs[LEATI_RNN_RECURRENT]);
    s->inputs = task->input_count;
    kernel->state = s;
    kernel->destroy = leati_free;
    kernel->scratch_bytes = scratch_bytes(&s->shape);
    snprintf(kernel->implementation, sizeof kernel->implementation, "ref");
    return LEAT_OK;
}

leat_status leati_ref_rnn(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    (void)why;
    kernel->run = run_rnn;
    return prepare(task, kernel, err);
}

leat_status leati_ref_rnn_bwd(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    (void)why;
    kernel->run = run_bwd;
    return prepare(task, kernel, err);
}
