/* SPDX-License-Identifier: Apache-2.0 */
/* CTC in plain C: the forward and the backward recursion, in logarithms, over the states, which are the labels with a
 * blank before, between and behind them.  Room: backends/ref. */
#include <math.h>

#include "backends/ref/ref.h"

#define BLANK      0
#define IMPOSSIBLE 708.3964185322641 /* the loss if no alignment exists: -log of the smallest double */

/* One sample. */
typedef struct sample {
    const float *logits, *labels; /* (steps, classes), (states / 2) */
    int64_t steps, classes, states;
    double *ahead, *behind, *norm; /* (steps, states), (steps, states), (steps): log sum exp of the logits */
} sample;

static double log_add(double a, double b) {
    double high = fmax(a, b);
    return high == -INFINITY ? high : high + log1p(exp(fmin(a, b) - high));
}

/* Returns the class of a state; of a label that is no class, the blank. */
static int64_t class_of(const sample *s, int64_t state) {
    float label = state % 2 == 1 ? s->labels[state / 2] : (float)BLANK;
    return label > 0.0f && label < (float)s->classes ? (int64_t)label : BLANK;
}

/* Returns the logarithm of the probability of the class of a state. */
static double log_of(const sample *s, int64_t step, int64_t state) {
    return (double)s->logits[step * s->classes + class_of(s, state)] - s->norm[step];
}

/* True if an alignment may go from state - 2 to state: over a blank, between different labels. */
static bool skips(const sample *s, int64_t state) {
    return state > 1 && state < s->states && class_of(s, state) != BLANK &&
           class_of(s, state) != class_of(s, state - 2);
}

static void normalize(const sample *s) {
    for (int64_t t = 0; t < s->steps; ++t) {
        const float *x = s->logits + t * s->classes;
        float largest = x[0]; /* a float: GCC 12 for 64-bit Arm fails to vectorize this loop with a double */
        for (int64_t c = 1; c < s->classes; ++c) largest = fmaxf(largest, x[c]);
        double high = (double)largest, sum = 0;
        for (int64_t c = 0; c < s->classes; ++c) sum += exp((double)x[c] - high);
        s->norm[t] = high + log(sum);
    }
}

/* ahead: the logarithm of the probability of all beginnings that are in the state after the step. */
static void go_ahead(const sample *s) {
    for (int64_t i = 0; i < s->states; ++i) s->ahead[i] = i < 2 ? log_of(s, 0, i) : -INFINITY;
    for (int64_t t = 1; t < s->steps; ++t) {
        const double *before = s->ahead + (t - 1) * s->states;
        for (int64_t i = 0; i < s->states; ++i) {
            double sum = before[i];
            if (i > 0) sum = log_add(sum, before[i - 1]);
            if (skips(s, i)) sum = log_add(sum, before[i - 2]);
            s->ahead[t * s->states + i] = sum + log_of(s, t, i);
        }
    }
}

/* behind: the logarithm of the probability of all ends after the step, from the state. */
static void go_back(const sample *s) {
    double *last = s->behind + (s->steps - 1) * s->states;
    for (int64_t i = 0; i < s->states; ++i) last[i] = i >= s->states - 2 ? 0.0 : -INFINITY;
    for (int64_t t = s->steps - 2; t >= 0; --t) {
        const double *after = s->behind + (t + 1) * s->states;
        for (int64_t i = 0; i < s->states; ++i) {
            double sum = after[i] + log_of(s, t + 1, i);
            if (i + 1 < s->states) sum = log_add(sum, after[i + 1] + log_of(s, t + 1, i + 1));
            if (skips(s, i + 2)) sum = log_add(sum, after[i + 2] + log_of(s, t + 1, i + 2));
            s->behind[t * s->states + i] = sum;
        }
    }
}

/* Sets the gradient: the probability of each class, less that of the states with the class in all alignments. */
static void differentiate(const sample *s, double log_of_all, float *difference) {
    for (int64_t t = 0; t < s->steps; ++t, difference += s->classes) {
        for (int64_t c = 0; c < s->classes; ++c)
            difference[c] = log_of_all == -INFINITY
                                ? 0.0f
                                : (float)exp((double)s->logits[t * s->classes + c] - s->norm[t]);
        for (int64_t i = 0; log_of_all != -INFINITY && i < s->states; ++i) {
            double share = exp(s->ahead[t * s->states + i] + s->behind[t * s->states + i] - log_of_all);
            difference[class_of(s, i)] -= (float)share;
        }
    }
}

static float compute(const sample *s, float *difference) {
    const double *last = s->ahead + (s->steps - 1) * s->states;
    normalize(s);
    go_ahead(s);
    go_back(s);
    double log_of_all = last[s->states - 1];
    if (s->states > 1) log_of_all = log_add(log_of_all, last[s->states - 2]);
    differentiate(s, log_of_all, difference);
    return (float)(log_of_all == -INFINITY ? IMPOSSIBLE : -log_of_all);
}

static int64_t label_count(const float *labels, int64_t length) {
    int64_t count = 0;
    for (int64_t i = 0; i < length; ++i) count += labels[i] != (float)BLANK ? 1 : 0;
    return count;
}

static leat_status run_ctc(const leati_kernel *kernel, void *const *args, const leati_run *run,
                           leat_error *err) {
    (void)run;
    (void)err;
    const leati_ref *ref = leati_ref_of(kernel);
    const int64_t *shape = leati_ref_in(ref, 0)->shape, length = leati_ref_in(ref, 1)->shape[1];
    const float *logits = args[0], *labels = args[1];
    float *loss = args[2], *difference = args[3];
    double *memory = args[4];
    for (int64_t n = 0; n < shape[0]; ++n) {
        sample s = {.logits = logits + n * shape[1] * shape[2],
                    .labels = labels + n * length,
                    .steps = shape[1],
                    .classes = shape[2],
                    .states = 2 * label_count(labels + n * length, length) + 1,
                    .ahead = memory};
        s.behind = s.ahead + s.steps * s.states;
        s.norm = s.behind + s.steps * s.states;
        loss[n] = compute(&s, difference + n * shape[1] * shape[2]);
    }
    return LEAT_OK;
}

LEATI_REF_ACCEPTS(ctc, run_ctc)
