/* SPDX-License-Identifier: Apache-2.0 */
/* The LSTM in plain C, sample by sample, products summed in double.  Layer: backends/ref.
 *
 * With f the recurrent activation, g the activation, x' and h' masked per gate, per step of processing:
 *   i, f, o = f(x' K + h' R + b)   c~ = g(x' K + h' R + b)   c = f c_before + i c~   h = o g(c)
 * Gates lie in the order i f c~ o; the workspace of a step holds them after activation, then c. */
#include <stdio.h>
#include <string.h>

#include "backends/ref/ref.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/geometry.h"

enum { GATE_I, GATE_F, GATE_C, GATE_O, GATES };

typedef struct lstm_state {
    leati_lstm_shape shape;
    int inputs;
} lstm_state;

/* One sample's view of the arguments. */
typedef struct sample {
    const lstm_state *state;
    const float *in[LEATI_LSTM_BWD_INPUTS]; /* NULL where absent */
    int64_t n;
    double *z; /* (4 units): gates before activation, or their gradients */
    float *h, *c;
} sample;

static void gather_inputs(const lstm_state *s, void *const *args, sample *p) {
    p->state = s;
    for (int i = 0; i < LEATI_LSTM_BWD_INPUTS; i++) p->in[i] = i < s->inputs ? args[i] : NULL;
}

/* The step of the input that the s-th step of processing reads. */
static int64_t input_step(const leati_lstm_shape *shape, int64_t step) {
    return shape->go_backwards ? shape->steps - 1 - step : step;
}

static const float *x_of(const sample *p, int64_t step) {
    const leati_lstm_shape *shape = &p->state->shape;
    return p->in[LEATI_LSTM_X] + (p->n * shape->steps + input_step(shape, step)) * shape->features;
}

/* The factor of dropout on value j of `width`, for a gate; 1 without a mask. */
static float mask_at(const sample *p, int which, int gate, int64_t width, int64_t j) {
    const float *mask = p->in[which];
    return mask ? mask[(gate * p->state->shape.batch + p->n) * width + j] : 1.0f;
}

/* z += v weights, v of `width` masked per gate; weights (width, 4 units). */
static void add_product(const sample *p, const float *v, int64_t width, const float *weights, int mask) {
    int64_t units = p->state->shape.units;
    for (int64_t j = 0; j < width; j++)
        for (int gate = 0; gate < GATES; gate++) {
            double factor = (double)(v[j] * mask_at(p, mask, gate, width, j));
            for (int64_t u = gate * units; u < (gate + 1) * units; u++)
                p->z[u] += factor * (double)weights[j * GATES * units + u];
        }
}

/* One step forward: z to gates (after activation), c and h. */
static void forward_cell(const sample *p, float *gates) {
    const leati_lstm_shape *shape = &p->state->shape;
    int64_t units = shape->units;
    for (int64_t k = 0; k < GATES * units; k++) {
        const leati_eltwise *f = k / units == GATE_C ? &shape->activation : &shape->recurrent_activation;
        gates[k] = leati_eltwise_at(f, (float)p->z[k]);
    }
    for (int64_t u = 0; u < units; u++) {
        p->c[u] = gates[GATE_F * units + u] * p->c[u] + gates[GATE_I * units + u] * gates[GATE_C * units + u];
        p->h[u] = gates[GATE_O * units + u] * leati_eltwise_at(&shape->activation, p->c[u]);
    }
}

static void start_state(const sample *p, float *to, int which) {
    int64_t units = p->state->shape.units;
    for (int64_t u = 0; u < units; u++) to[u] = p->in[which] ? p->in[which][p->n * units + u] : 0.0f;
}

static void forward_sample(const sample *p, float *sequence, float *c_last, float *workspace, float *gates) {
    const leati_lstm_shape *shape = &p->state->shape;
    int64_t units = shape->units;
    start_state(p, p->h, LEATI_LSTM_H0);
    start_state(p, p->c, LEATI_LSTM_C0);
    for (int64_t step = 0; step < shape->steps; step++) {
        for (int64_t u = 0; u < GATES * units; u++)
            p->z[u] = p->in[LEATI_LSTM_BIAS] ? (double)p->in[LEATI_LSTM_BIAS][u] : 0;
        add_product(p, x_of(p, step), shape->features, p->in[LEATI_LSTM_KERNEL], LEATI_LSTM_X_MASK);
        add_product(p, p->h, units, p->in[LEATI_LSTM_RECURRENT], LEATI_LSTM_H_MASK);
        forward_cell(p, gates);
        if (sequence)
            memcpy(sequence + (p->n * shape->steps + step) * units, p->h, (size_t)units * sizeof(float));
        if (workspace) {
            float *kept = workspace + (step * shape->batch + p->n) * 5 * units;
            memcpy(kept, gates, (size_t)(GATES * units) * sizeof(float));
            memcpy(kept + GATES * units, p->c, (size_t)units * sizeof(float));
        }
    }
    if (c_last) memcpy(c_last + p->n * units, p->c, (size_t)units * sizeof(float));
}

/* scratch: z (4 units) double, then gates (4 units), h and c (units). */
static leat_status run_lstm(const leati_kernel *kernel, void *const *args, const leati_run *run,
                            leat_error *err) {
    const lstm_state *s = kernel->state;
    int64_t units = s->shape.units;
    sample p = {.z = run->scratch};
    float *gates = (float *)(p.z + GATES * units);
    p.h = gates + GATES * units;
    p.c = p.h + units;
    gather_inputs(s, args, &p);
    (void)err;
    for (p.n = 0; p.n < s->shape.batch; p.n++)
        forward_sample(&p, args[s->inputs], args[s->inputs + 1],
                       s->shape.training ? args[s->inputs + 2] : NULL, gates);
    return LEAT_OK;
}

/* Where the gradients go; NULL where nobody reads one.  h and c: those that flow to the step before. */
typedef struct gradients {
    float *x, *kernel, *recurrent, *bias, *h0, *c0;
    double *h, *c; /* (units) */
} gradients;

/* From the gradients by h and c of a step: z of its gates, and that by c of the step before. */
static void backward_cell(const sample *p, int64_t step, const gradients *d) {
    const leati_lstm_shape *shape = &p->state->shape;
    int64_t units = shape->units, width = 5 * units;
    const float *kept = p->in[LEATI_LSTM_WORKSPACE] + (step * shape->batch + p->n) * width;
    const float *c_before = step > 0 ? kept - shape->batch * width + GATES * units : p->c;
    const leati_eltwise *f = &shape->recurrent_activation, *g = &shape->activation;
    for (int64_t u = 0; u < units; u++) {
        float i = kept[u], forget = kept[units + u], candidate = kept[2 * units + u], o = kept[3 * units + u];
        float squashed = leati_eltwise_at(g, kept[4 * units + u]);
        double by_c = d->c[u] + d->h[u] * (double)(o * leati_slope_from_dst(g, squashed));
        p->z[u] = by_c * (double)(candidate * leati_slope_from_dst(f, i));
        p->z[units + u] = by_c * (double)(c_before[u] * leati_slope_from_dst(f, forget));
        p->z[2 * units + u] = by_c * (double)(i * leati_slope_from_dst(g, candidate));
        p->z[3 * units + u] = d->h[u] * (double)(squashed * leati_slope_from_dst(f, o));
        d->c[u] = by_c * (double)forget;
    }
}

/* The gradient by v of z = v weights, element j. */
static double by_vector(const sample *p, int64_t j, int64_t width, const float *weights, int mask) {
    int64_t units = p->state->shape.units;
    double sum = 0;
    for (int gate = 0; gate < GATES; gate++) {
        double dot = 0;
        for (int64_t u = gate * units; u < (gate + 1) * units; u++)
            dot += p->z[u] * (double)weights[j * GATES * units + u];
        sum += dot * (double)mask_at(p, mask, gate, width, j);
    }
    return sum;
}

/* The gradient by the weights of z = v weights, added. */
static void add_outer(const sample *p, const float *v, int64_t width, int mask, float *diff_weights) {
    int64_t units = p->state->shape.units;
    for (int64_t j = 0; diff_weights && j < width; j++)
        for (int64_t u = 0; u < GATES * units; u++)
            diff_weights[j * GATES * units + u] +=
                (float)(p->z[u] * (double)(v[j] * mask_at(p, mask, (int)(u / units), width, j)));
}

static void backward_step(const sample *p, int64_t step, const gradients *d) {
    const leati_lstm_shape *shape = &p->state->shape;
    int64_t units = shape->units, features = shape->features, row = p->n * shape->steps;
    const float *by_output = p->in[LEATI_LSTM_DIFF_SEQUENCE];
    for (int64_t u = 0; by_output && u < units; u++) d->h[u] += (double)by_output[(row + step) * units + u];
    backward_cell(p, step, d);
    const float *h = step > 0 ? p->in[LEATI_LSTM_SEQUENCE] + (row + step - 1) * units : p->h;
    add_outer(p, x_of(p, step), features, LEATI_LSTM_X_MASK, d->kernel);
    add_outer(p, h, units, LEATI_LSTM_H_MASK, d->recurrent);
    for (int64_t u = 0; d->bias && u < GATES * units; u++) d->bias[u] += (float)p->z[u];
    for (int64_t j = 0; d->x && j < features; j++)
        d->x[(row + input_step(shape, step)) * features + j] =
            (float)by_vector(p, j, features, p->in[LEATI_LSTM_KERNEL], LEATI_LSTM_X_MASK);
    for (int64_t j = 0; j < units; j++)
        d->h[j] = by_vector(p, j, units, p->in[LEATI_LSTM_RECURRENT], LEATI_LSTM_H_MASK);
}

static void backward_sample(const sample *p, const gradients *d) {
    int64_t units = p->state->shape.units;
    const float *by_c_last = p->in[LEATI_LSTM_DIFF_C_LAST];
    start_state(p, p->h, LEATI_LSTM_H0);
    start_state(p, p->c, LEATI_LSTM_C0);
    for (int64_t u = 0; u < units; u++) {
        d->h[u] = 0;
        d->c[u] = by_c_last ? (double)by_c_last[p->n * units + u] : 0;
    }
    for (int64_t step = p->state->shape.steps - 1; step >= 0; step--) backward_step(p, step, d);
    for (int64_t u = 0; u < units; u++) {
        if (d->h0) d->h0[p->n * units + u] = (float)d->h[u];
        if (d->c0) d->c0[p->n * units + u] = (float)d->c[u];
    }
}

static void zero(float *values, int64_t count) {
    if (values) memset(values, 0, (size_t)count * sizeof *values);
}

/* scratch: z (4 units), gradients by h and c (units) double, then the first h and c (units). */
static leat_status run_bwd(const leati_kernel *kernel, void *const *args, const leati_run *run,
                           leat_error *err) {
    const lstm_state *s = kernel->state;
    int64_t units = s->shape.units, width = GATES * units;
    void *const *out = args + s->inputs;
    sample p = {.z = run->scratch};
    gradients d = {
        .x = out[0], .kernel = out[1], .recurrent = out[2], .bias = out[3], .h0 = out[4], .c0 = out[5]};
    d.h = p.z + width;
    d.c = d.h + units;
    p.h = (float *)(d.c + units);
    p.c = p.h + units;
    (void)err;
    gather_inputs(s, args, &p);
    zero(d.kernel, s->shape.features * width);
    zero(d.recurrent, units * width);
    zero(d.bias, width);
    for (p.n = 0; p.n < s->shape.batch; p.n++) backward_sample(&p, &d);
    return LEAT_OK;
}

static leat_status prepare(const leati_task *task, leati_kernel *kernel, leat_error *err) {
    lstm_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "an LSTM");
    s->shape =
        leati_lstm_shape_of(task->attrs, &task->inputs[LEATI_LSTM_X], &task->inputs[LEATI_LSTM_RECURRENT]);
    s->inputs = task->input_count;
    kernel->state = s;
    kernel->destroy = leati_free;
    kernel->scratch_bytes = (size_t)s->shape.units * (6 * sizeof(double) + 6 * sizeof(float));
    snprintf(kernel->implementation, sizeof kernel->implementation, "ref");
    return LEAT_OK;
}

leat_status leati_ref_lstm(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    (void)why;
    kernel->run = run_lstm;
    return prepare(task, kernel, err);
}

leat_status leati_ref_lstm_bwd(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    (void)why;
    kernel->run = run_bwd;
    return prepare(task, kernel, err);
}
