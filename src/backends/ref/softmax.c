/* SPDX-License-Identifier: Apache-2.0 */
/* SOFTMAX, SOFTMAX_BWD, SOFTMAX_XENT in plain C.  Room: backends/ref. */
#include <math.h>

#include "backends/ref/ref.h"
#include "engine/op_semantics/infer.h"

/* The elements of one line along the axis: line[i * step] for i < length. */
typedef struct line {
    int64_t length, step;
} line;

static float largest(const float *x, line l) {
    float maximum = x[0];
    for (int64_t i = 1; i < l.length; ++i)
        if (x[i * l.step] > maximum) maximum = x[i * l.step];
    return maximum;
}

/* Returns log sum exp(x - maximum). */
static double log_sum(const float *x, line l, float maximum) {
    double sum = 0;
    for (int64_t i = 0; i < l.length; ++i) sum += (double)expf(x[i * l.step] - maximum);
    return log(sum);
}

static void softmax_line(const float *src, float *dst, line l, bool logarithm) {
    float maximum = largest(src, l);
    double log_of_sum = log_sum(src, l, maximum);
    for (int64_t i = 0; i < l.length; ++i) {
        double log_of_dst = (double)(src[i * l.step] - maximum) - log_of_sum;
        dst[i * l.step] = (float)(logarithm ? log_of_dst : exp(log_of_dst));
    }
}

static void backward_line(const float *dst, const float *diff_dst, float *diff_src, line l, bool logarithm) {
    double sum = 0;
    for (int64_t i = 0; i < l.length; ++i)
        sum += (double)diff_dst[i * l.step] * (logarithm ? 1 : (double)dst[i * l.step]);
    for (int64_t i = 0; i < l.length; ++i) {
        double y = (double)dst[i * l.step], d = (double)diff_dst[i * l.step];
        diff_src[i * l.step] = (float)(logarithm ? d - exp(y) * sum : y * (d - sum));
    }
}

static leat_status run_softmax(const leati_kernel *kernel, void *const *args, const leati_run *run,
                               leat_error *err) {
    (void)run;
    (void)err;
    const leati_ref *ref = leati_ref_of(kernel);
    leati_axis_split split = leati_split_at(leati_ref_in(ref, 0), ref->attrs.softmax.axis);
    line l = {split.length, split.inner};
    const float *src = args[0];
    float *dst = args[1];
    for (int64_t o = 0; split.length > 0 && o < split.outer; ++o)
        for (int64_t i = 0; i < split.inner; ++i) {
            int64_t at = o * split.length * split.inner + i;
            softmax_line(src + at, dst + at, l, ref->attrs.softmax.log);
        }
    return LEAT_OK;
}

LEATI_REF_ACCEPTS(softmax, run_softmax)

static leat_status run_softmax_bwd(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                   leat_error *err) {
    (void)run;
    (void)err;
    const leati_ref *ref = leati_ref_of(kernel);
    leati_axis_split split = leati_split_at(leati_ref_in(ref, 0), ref->attrs.softmax.axis);
    line l = {split.length, split.inner};
    const float *dst = args[0], *diff_dst = args[1];
    float *diff_src = args[2];
    for (int64_t o = 0; o < split.outer; ++o)
        for (int64_t i = 0; i < split.inner; ++i) {
            int64_t at = o * split.length * split.inner + i;
            backward_line(dst + at, diff_dst + at, diff_src + at, l, ref->attrs.softmax.log);
        }
    return LEAT_OK;
}

LEATI_REF_ACCEPTS(softmax_bwd, run_softmax_bwd)

/* As in leati_xent: c = clip(p) and, where it is normalized, s = c / sum c.  m is 1 where p is not clipped, or 0.  The
 * gradient with respect to a logit is m (s - t) + p sum m (t - s) of the row, without s where nothing is normalized:
 * the gradient of the loss with respect to p is m (s - t) / c, and p is c where m is 1. */
static float clipped_row(const float *logits, const float *labels, line l, leati_xent kind, float maximum,
                         double log_of_sum, float *difference) {
    double sum = 0, passed = 0, loss = 0, low = (double)LEATI_EPSILON, high = (double)(1.0f - LEATI_EPSILON);
    for (int64_t i = 0; i < l.length; ++i) {
        double p = exp((double)(logits[i] - maximum) - log_of_sum);
        sum += p < low ? low : p > high ? high : p;
    }
    for (int pass = 0; pass < 2; ++pass)
        for (int64_t i = 0; i < l.length; ++i) {
            double p = exp((double)(logits[i] - maximum) - log_of_sum), t = (double)labels[i];
            double c = p < low ? low : p > high ? high : p, s = kind == LEATI_XENT_NORMALIZED ? c / sum : 0;
            double slope = p >= low && p <= high ? s - t : 0;
            if (pass == 0) {
                loss -= t * log(kind == LEATI_XENT_NORMALIZED ? s : c);
                passed -= slope;
            } else if (difference) {
                difference[i] = (float)(slope + p * passed);
            }
        }
    return (float)loss;
}

/* loss = sum of labels (log sum exp(logits) - logits), where the logits are first reduced by their maximum, as in
 * TensorFlow. */
static leat_status run_xent(const leati_kernel *kernel, void *const *args, const leati_run *run,
                            leat_error *err) {
    (void)run;
    (void)err;
    const leati_desc *desc = leati_ref_in(leati_ref_of(kernel), 0);
    leati_axis_split split = leati_split_at(desc, desc->rank - 1);
    line l = {split.length, 1};
    const leati_xent kind = leati_ref_of(kernel)->attrs.xent.kind;
    const float *logits = args[0], *labels = args[1];
    float *loss = args[2], *difference = args[3];
    for (int64_t row = 0; row < split.outer; ++row, logits += split.length, labels += split.length) {
        float maximum = split.length ? largest(logits, l) : 0;
        double log_of_sum = log_sum(logits, l, maximum), sum = 0;
        if (kind != LEATI_XENT_EXACT) {
            float *to = difference ? difference + row * split.length : NULL,
                  clipped = clipped_row(logits, labels, l, kind, maximum, log_of_sum, to);
            if (loss) loss[row] = clipped;
            continue;
        }
        for (int64_t i = 0; i < split.length; ++i) {
            double log_of_dst = (double)(logits[i] - maximum) - log_of_sum;
            sum -= (double)labels[i] * log_of_dst;
            if (difference) difference[row * split.length + i] = (float)(exp(log_of_dst) - (double)labels[i]);
        }
        if (loss) loss[row] = (float)sum;
    }
    return LEAT_OK;
}

LEATI_REF_ACCEPTS(softmax_xent, run_xent)
