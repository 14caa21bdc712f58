/* SPDX-License-Identifier: Apache-2.0 */
/* SOFTMAX, SOFTMAX_BWD, SOFTMAX_XENT, ARGMAX and IN_TOP_K, for the code that is compiled once per instruction set.
 * A tensor is (rows, classes, columns), and the op is along the classes: vectorized along a row where columns is 1,
 * else across the columns.  Sums of a row are float within SOFTMAX_STRETCH elements and double beyond. */
#ifndef LEATI_BACKENDS_NATIVE_ELEMENTWISE_SOFTMAX_TMPL_H
#define LEATI_BACKENDS_NATIVE_ELEMENTWISE_SOFTMAX_TMPL_H

#include <math.h>

#include "backends/native/elementwise/jobs.h"
#include "backends/native/simd/vector_tmpl.h"
#include "engine/op_semantics/index.h"

#define SOFTMAX_STRETCH 1024

/* e^x for x <= 0; 0 where the result would be subnormal, NaN where x is NaN. */
LEATI_INLINE vf v_exp_below(vf x) {
    return v_select((vi)(x < v_all(-87.3f)), v_all(0), v_exp(x));
}

/* Returns the maximum of a row of at least one element; NaN is ignored unless it comes first. */
static float row_maximum(const float *x, int64_t count) {
    float maximum = x[0];
    int64_t i = 0;
    if (count >= LEATI_LANES) {
        vf acc = v_all(maximum);
        for (; i + LEATI_LANES <= count; i += LEATI_LANES) acc = v_max(acc, v_load(x + i));
        maximum = v_largest(acc);
    }
    for (; i < count; i++)
        if (x[i] > maximum) maximum = x[i];
    return maximum;
}

/* Returns the sum of e^(x - maximum), and stores the addends in `to` unless that is NULL. */
static double row_exps(const float *x, int64_t count, float maximum, float *to) {
    double sum = 0;
    for (int64_t i = 0; i < count; i += SOFTMAX_STRETCH) {
        int64_t end = count - i < SOFTMAX_STRETCH ? count : i + SOFTMAX_STRETCH, j = i;
        vf acc = {0};
        for (; j + LEATI_LANES <= end; j += LEATI_LANES) {
            vf e = v_exp_below(v_load(x + j) - maximum);
            if (to) v_store(to + j, e);
            acc += e;
        }
        if (j < end) {
            float lanes[LEATI_LANES] = {0};
            v_store(lanes, v_exp_below(v_load_part(x + j, end - j) - maximum));
            for (int64_t k = 0; k < end - j; k++) sum += (double)lanes[k];
            if (to) memcpy(to + j, lanes, (size_t)(end - j) * sizeof *to);
        }
        sum += (double)v_sum(acc);
    }
    return sum;
}

static void softmax_row(const float *src, float *dst, int64_t count, bool logarithm) {
    float maximum = row_maximum(src, count);
    double sum = row_exps(src, count, maximum, logarithm ? NULL : dst);
    float factor = (float)(1 / sum), log_of_sum = logarithm ? (float)log(sum) : 0;
    for (int64_t i = 0; i < count; i += LEATI_LANES) {
        vf x = v_load_part(logarithm ? src + i : dst + i, count - i);
        v_store_part(dst + i, logarithm ? (x - maximum) - log_of_sum : x * factor, count - i);
    }
}

/* Softmax along the classes of one vector of columns, of which `left` exist. */
static void softmax_columns(const float *src, float *dst, int64_t count, int64_t step, int64_t left,
                            bool logarithm) {
    vf maximum = v_load_part(src, left), sum = {0};
    for (int64_t i = 1; i < count; i++) maximum = v_max(maximum, v_load_part(src + i * step, left));
    for (int64_t i = 0; i < count; i++) {
        vf e = v_exp_below(v_load_part(src + i * step, left) - maximum);
        sum += e;
        if (!logarithm) v_store_part(dst + i * step, e, left);
    }
    vf factor = 1.0f / sum, log_of_sum = v_log(sum);
    for (int64_t i = 0; i < count; i++) {
        vf x = v_load_part(logarithm ? src + i * step : dst + i * step, left);
        v_store_part(dst + i * step, logarithm ? (x - maximum) - log_of_sum : x * factor, left);
    }
}

static void softmax(const leati_range_job *job, int64_t first, int64_t last) {
    int64_t count = job->softmax.classes, columns = job->softmax.columns;
    bool logarithm = job->attrs->softmax.log;
    for (int64_t row = first; row < last; row++) {
        const float *src = job->in[0] + row * count * columns;
        float *dst = job->out[0] + row * count * columns;
        if (columns == 1)
            softmax_row(src, dst, count, logarithm);
        else
            for (int64_t c = 0; c < columns; c += LEATI_LANES)
                softmax_columns(src + c, dst + c, count, columns, columns - c, logarithm);
    }
}

LEATI_INLINE vf softmax_slope(vf y, vf d, vf sum, bool logarithm) {
    return logarithm ? d - v_exp_below(y) * sum : y * (d - sum);
}

static void softmax_bwd_row(const float *y, const float *d, float *to, int64_t count, bool logarithm) {
    double sum = 0;
    for (int64_t i = 0; i < count; i += SOFTMAX_STRETCH) {
        int64_t end = count - i < SOFTMAX_STRETCH ? count : i + SOFTMAX_STRETCH;
        vf acc = {0};
        for (int64_t j = i; j < end; j += LEATI_LANES) {
            vf diff = v_load_part(d + j, end - j);
            acc += logarithm ? diff : diff * v_load_part(y + j, end - j);
        }
        sum += (double)v_sum(acc);
    }
    for (int64_t i = 0; i < count; i += LEATI_LANES) {
        vf diff = v_load_part(d + i, count - i), at = v_load_part(y + i, count - i);
        v_store_part(to + i, softmax_slope(at, diff, v_all((float)sum), logarithm), count - i);
    }
}

static void softmax_bwd_columns(const float *y, const float *d, float *to, int64_t count, int64_t step,
                                int64_t left, bool logarithm) {
    vf sum = {0};
    for (int64_t i = 0; i < count; i++) {
        vf diff = v_load_part(d + i * step, left);
        sum += logarithm ? diff : diff * v_load_part(y + i * step, left);
    }
    for (int64_t i = 0; i < count; i++) {
        vf diff = v_load_part(d + i * step, left), at = v_load_part(y + i * step, left);
        v_store_part(to + i * step, softmax_slope(at, diff, sum, logarithm), left);
    }
}

static void softmax_bwd(const leati_range_job *job, int64_t first, int64_t last) {
    int64_t count = job->softmax.classes, columns = job->softmax.columns;
    bool logarithm = job->attrs->softmax.log;
    for (int64_t row = first; row < last; row++) {
        int64_t at = row * count * columns;
        const float *y = job->in[0] + at, *d = job->in[1] + at;
        float *to = job->out[0] + at;
        if (columns == 1)
            softmax_bwd_row(y, d, to, count, logarithm);
        else
            for (int64_t c = 0; c < columns; c += LEATI_LANES)
                softmax_bwd_columns(y + c, d + c, to + c, count, columns, columns - c, logarithm);
    }
}

/* Returns the cross-entropy of a row: the sum of labels (log sum exp(logits) - logits). */
static double xent_row(const float *logits, const float *labels, int64_t count, float maximum,
                       float log_of_sum) {
    double loss = 0;
    for (int64_t i = 0; i < count; i += SOFTMAX_STRETCH) {
        int64_t end = count - i < SOFTMAX_STRETCH ? count : i + SOFTMAX_STRETCH, j = i;
        vf acc = {0};
        for (; j + LEATI_LANES <= end; j += LEATI_LANES)
            acc += v_load(labels + j) * (log_of_sum - (v_load(logits + j) - maximum));
        loss += (double)v_sum(acc);
        for (; j < end; j++) loss += (double)(labels[j] * (log_of_sum - (logits[j] - maximum)));
    }
    return loss;
}

/* A row of SOFTMAX_XENT. */
typedef struct xent_view {
    const float *logits, *labels;
    float *difference; /* NULL: only the loss is wanted */
    int64_t count;
    float maximum, factor; /* softmax(x) = e^(x - maximum) factor */
    double sum;
    float scale; /* of the gradient */
} xent_view;

static void xent_difference(const xent_view *x) {
    for (int64_t i = 0, left; i < x->count; i += LEATI_LANES) {
        left = x->count - i;
        vf e = v_load_part(x->difference + i, left);
        v_store_part(x->difference + i, (e * x->factor - v_load_part(x->labels + i, left)) * x->scale, left);
    }
}

/* Returns the probabilities of a vector of classes, 0 behind the last class. */
LEATI_INLINE vf xent_probability(const xent_view *x, int64_t i) {
    int64_t left = x->count - i;
    if (x->difference) return v_load_part(x->difference + i, left) * x->factor;
    vf p = v_exp_below(v_load_part(x->logits + i, left) - x->maximum) * x->factor;
    return v_select(v_lanes() < (int32_t)(left < LEATI_LANES ? left : LEATI_LANES), p, v_all(0));
}

LEATI_INLINE vf xent_clip(vf p) {
    return v_max(v_min(p, v_all(1.0f - LEATI_EPSILON)), v_all(LEATI_EPSILON));
}

/* Returns the sum of the clipped probabilities. */
static double xent_clipped_sum(const xent_view *x) {
    double sum = 0;
    for (int64_t i = 0; i < x->count; i += SOFTMAX_STRETCH) {
        int64_t end = x->count - i < SOFTMAX_STRETCH ? x->count : i + SOFTMAX_STRETCH;
        vf acc = {0};
        for (int64_t j = i; j < end; j += LEATI_LANES) acc += xent_clip(xent_probability(x, j));
        sum += (double)v_sum(acc);
    }
    int64_t beyond = (LEATI_LANES - x->count % LEATI_LANES) % LEATI_LANES;
    return sum - (double)beyond * (double)LEATI_EPSILON;
}

/* Returns m (s - t) in the notation of backends/ref/softmax.c. */
LEATI_INLINE vf xent_slope(vf p, vf t, float per_sum) {
    vi kept = (vi)(p >= v_all(LEATI_EPSILON)) & (vi)(p <= v_all(1.0f - LEATI_EPSILON));
    return v_select(kept, p * per_sum - t, v_all(0));
}

/* Computes a row whose probabilities are clipped, and returns its loss.  Labels are usually 0 for most classes, whose
 * logarithms nobody needs; the loss is nevertheless NaN where a logit is. */
static float xent_clipped(const xent_view *x, bool normalized) {
    double total = normalized ? xent_clipped_sum(x) : 1, loss = 0 * x->sum, passed = 0;
    float log_of_total = (float)log(total), per_sum = normalized ? (float)(1 / total) : 0;
    for (int64_t i = 0; i < x->count; i += SOFTMAX_STRETCH) {
        int64_t end = x->count - i < SOFTMAX_STRETCH ? x->count : i + SOFTMAX_STRETCH;
        vf acc = {0}, losses = {0};
        for (int64_t j = i; j < end; j += LEATI_LANES) {
            vf p = xent_probability(x, j), t = v_load_part(x->labels + j, x->count - j);
            acc -= xent_slope(p, t, per_sum);
            if (v_any((vi)(t != v_all(0)))) losses += t * (log_of_total - v_log(xent_clip(p)));
        }
        passed += (double)v_sum(acc);
        loss += (double)v_sum(losses);
    }
    float all = (float)passed;
    for (int64_t i = 0; x->difference && i < x->count; i += LEATI_LANES) {
        vf p = xent_probability(x, i), t = v_load_part(x->labels + i, x->count - i);
        v_store_part(x->difference + i, (xent_slope(p, t, per_sum) + p * all) * x->scale, x->count - i);
    }
    return (float)loss;
}

/* out[0] (rows): the loss; out[1] (rows, classes): the gradient.  Either may be NULL. */
static void softmax_xent(const leati_range_job *job, int64_t first, int64_t last) {
    int64_t count = job->softmax.classes;
    const leati_xent kind = job->attrs->xent.kind;
    for (int64_t row = first; row < last; row++) {
        const float *scale = job->softmax.scaled ? job->in[2] + row * job->softmax.scale_step : NULL;
        xent_view x = {.logits = job->in[0] + row * count,
                       .labels = job->in[1] + row * count,
                       .difference = job->out[1] ? job->out[1] + row * count : NULL,
                       .count = count,
                       .scale = scale ? *scale : 1};
        x.maximum = row_maximum(x.logits, count);
        x.sum = row_exps(x.logits, count, x.maximum, x.difference);
        x.factor = (float)(1 / x.sum);
        float loss = 0;
        if (kind != LEATI_XENT_EXACT)
            loss = xent_clipped(&x, kind == LEATI_XENT_NORMALIZED);
        else if (job->out[0])
            loss = (float)xent_row(x.logits, x.labels, count, x.maximum, (float)log(x.sum));
        if (kind == LEATI_XENT_EXACT && x.difference) xent_difference(&x);
        if (job->out[0]) job->out[0][row] = loss;
    }
}

/* Returns the index of the first maximum of a row; 0 where no element is above -infinity.  NaN is never the
 * maximum. */
static int32_t row_argmax(const float *x, int64_t count) {
    int64_t start = 0, end = 0;
    float maximum = -INFINITY;
    for (int64_t i = 0; i < count; i += SOFTMAX_STRETCH) {
        int64_t stop = count - i < SOFTMAX_STRETCH ? count : i + SOFTMAX_STRETCH, j = i;
        vf acc = v_all(maximum);
        for (; j + LEATI_LANES <= stop; j += LEATI_LANES) acc = v_max(acc, v_load(x + j));
        float best = v_largest(acc);
        for (; j < stop; j++)
            if (x[j] > best) best = x[j];
        if (best > maximum) maximum = best, start = i, end = stop;
    }
    while (start < end && x[start] != maximum) start++;
    return (int32_t)start;
}

static void argmax_columns(const float *x, int32_t *to, int64_t count, int64_t step, int64_t left) {
    vf maximum = v_all(-INFINITY);
    vi at = {0};
    for (int64_t i = 0; i < count; i++) {
        vf now = v_load_part(x + i * step, left);
        vi above = (vi)(now > maximum);
        maximum = v_select(above, now, maximum);
        at = (above & ((int32_t)i - (vi){0})) | (~above & at);
    }
    memcpy(to, &at, (size_t)(left < LEATI_LANES ? left : LEATI_LANES) * sizeof *to);
}

static void argmax(const leati_range_job *job, int64_t first, int64_t last) {
    int64_t count = job->softmax.classes, columns = job->softmax.columns;
    int32_t *dst = (int32_t *)(void *)job->out[0];
    for (int64_t row = first; row < last; row++) {
        const float *src = job->in[0] + row * count * columns;
        if (columns == 1)
            dst[row] = row_argmax(src, count);
        else
            for (int64_t c = 0; c < columns; c += LEATI_LANES)
                argmax_columns(src + c, dst + row * columns + c, count, columns, columns - c);
    }
}

/* IN_TOP_K: 1 where fewer than k classes are larger than the target's, as in ref; 0 where the target is no class or
 * an element of the row is not finite. */
static void in_top_k(const leati_range_job *job, int64_t first, int64_t last) {
    int64_t count = job->softmax.classes;
    for (int64_t row = first; row < last; row++) {
        const float *x = job->in[0] + row * count;
        int64_t wanted = leati_index_at(job->softmax.target_dtype, job->in[1], row, count), above = 0;
        vi larger = {0}, not_finite = {0};
        for (int64_t i = 0; wanted >= 0 && i < count; i += LEATI_LANES) {
            vf now = v_load_part(x + i, count - i);
            not_finite |= (vi)(v_abs(now) > v_all(3.4028235e38f)) | v_nan(now);
            larger -= (vi)(now > v_all(x[wanted]));
        }
        for (int k = 0; k < LEATI_LANES; k++) {
            above += larger[k];
            if (not_finite[k]) wanted = -1;
        }
        /* The lanes that v_load_part() adds behind the end are zeros, which count as larger than a negative target. */
        int64_t beyond = (LEATI_LANES - count % LEATI_LANES) % LEATI_LANES;
        if (wanted >= 0 && 0 > x[wanted]) above -= beyond;
        job->out[0][row] = wanted >= 0 && above < job->attrs->top_k.k ? 1.0f : 0.0f;
    }
}

#endif
