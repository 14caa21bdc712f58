/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax, its gradient, and the crossentropy of logits.  If the axis is the last one, a warp or a block computes a
 * line; otherwise a thread does, and neighbouring threads have neighbouring lines. */
#include "backends/cuda/kernels/softmax.h"

#include "backends/cuda/kernels/team.cuh"
#include "backends/cuda/kernels/tensor.cuh"

struct leati_larger {
    static __device__ __forceinline__ float combine(float a, float b) {
        return fmaxf(a, b);
    }
};

/* Who computes a line. */
enum { BY_THREAD, BY_WARP, BY_BLOCK };

/* The elements at + i * stride of a line, for i = thread, thread + step and so on below length. */
struct leati_line {
    int64_t number, at, stride;
    int32_t thread, step;
};

template <int BY> static __device__ __forceinline__ leati_line line_of(const leati_cuda_softmax_args &a) {
    leati_line l;
    if (BY == BY_THREAD) {
        l.number = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
        l.at = l.number / a.inner * a.length * a.inner + l.number % a.inner;
        l.stride = a.inner;
        l.thread = 0;
        l.step = 1;
    } else {
        l.number = leati_team<BY == BY_BLOCK>();
        l.at = l.number * a.length;
        l.stride = 1;
        l.thread = leati_team_thread<BY == BY_BLOCK>();
        l.step = leati_team_size<BY == BY_BLOCK>();
    }
    return l;
}

template <int BY, class Op, class T> static __device__ __forceinline__ T combine_line(T x, T *shared) {
    if (BY == BY_THREAD) return x;
    return leati_team_combine<BY == BY_BLOCK, Op>(x, shared);
}

struct leati_softmax_sums {
    float maximum;
    double sum; /* of exp(x - maximum) */
};

template <int BY>
static __device__ __forceinline__ leati_softmax_sums sums_of_line(const leati_cuda_tensor &src,
                                                                  const leati_line &l, int64_t length,
                                                                  double *shared) {
    leati_softmax_sums s;
    float maximum = -INFINITY, sum = 0;
    for (int64_t i = l.thread; i < length; i += l.step)
        maximum = fmaxf(maximum, leati_element(src, l.at + i * l.stride));
    s.maximum = combine_line<BY, leati_larger>(maximum, (float *)shared);
    for (int64_t i = l.thread; i < length; i += l.step)
        sum += expf(leati_element(src, l.at + i * l.stride) - s.maximum);
    s.sum = combine_line<BY, leati_add>((double)sum, shared);
    return s;
}

template <int BY>
static __device__ __forceinline__ void softmax(const leati_cuda_softmax_args &a, double *shared) {
    leati_line l = line_of<BY>(a);
    if (l.number >= a.outer * a.inner) return;
    leati_softmax_sums s = sums_of_line<BY>(a.src, l, a.length, shared);
    float factor = (float)(1 / s.sum), log_of_sum = logf((float)s.sum);
    for (int64_t i = l.thread; i < a.length; i += l.step) {
        float x = leati_element(a.src, l.at + i * l.stride) - s.maximum;
        leati_set_element(a.dst, l.at + i * l.stride, a.logarithm ? x - log_of_sum : expf(x) * factor);
    }
}

/* diff_src = y (diff_dst - sum diff_dst y), or diff_dst - e^y sum diff_dst for the logarithm. */
template <int BY>
static __device__ __forceinline__ void softmax_bwd(const leati_cuda_softmax_args &a, double *shared) {
    leati_line l = line_of<BY>(a);
    if (l.number >= a.outer * a.inner) return;
    float part = 0;
    for (int64_t i = l.thread; i < a.length; i += l.step) {
        int64_t at = l.at + i * l.stride;
        part += leati_element(a.other, at) * (a.logarithm ? 1.0f : leati_element(a.src, at));
    }
    float sum = (float)combine_line<BY, leati_add>((double)part, shared);
    for (int64_t i = l.thread; i < a.length; i += l.step) {
        int64_t at = l.at + i * l.stride;
        float y = leati_element(a.src, at), d = leati_element(a.other, at);
        leati_set_element(a.dst, at, a.logarithm ? d - expf(y) * sum : y * (d - sum));
    }
}

static __device__ __forceinline__ float scale_of(const leati_cuda_softmax_args &a, const leati_line &l) {
    return a.scale.at ? leati_element(a.scale, l.number * a.scale_step) : 1.0f;
}

/* The gradient m (s - t) in the notation of backends/ref/softmax.c. */
static __device__ __forceinline__ float clipped_slope(const leati_cuda_softmax_args &a, float p, float label,
                                                      float per_sum) {
    return p >= a.low && p <= a.high ? p * per_sum - label : 0.0f;
}

/* loss = -sum of labels log c, where c are the clipped probabilities, perhaps divided by their sum.  It is NaN where a
 * logit is, though fminf and fmaxf ignore NaN. */
template <int BY>
static __device__ __forceinline__ void clipped_xent(const leati_cuda_softmax_args &a, double *shared) {
    leati_line l = line_of<BY>(a);
    if (l.number >= a.outer) return;
    const float scale = scale_of(a, l);
    leati_softmax_sums s = sums_of_line<BY>(a.src, l, a.length, shared);
    float factor = (float)(1 / s.sum), part = 0, slopes = 0, loss = 0 * factor, log_of_total = 0, per_sum = 0;
    if (a.normalized) {
        for (int64_t i = l.thread; i < a.length; i += l.step)
            part += fmaxf(fminf(expf(leati_element(a.src, l.at + i) - s.maximum) * factor, a.high), a.low);
        float total = (float)combine_line<BY, leati_add>((double)part, shared);
        log_of_total = logf(total);
        per_sum = 1 / total;
    }
    for (int64_t i = l.thread; i < a.length; i += l.step) {
        float p = expf(leati_element(a.src, l.at + i) - s.maximum) * factor;
        float label = leati_element(a.other, l.at + i);
        slopes -= clipped_slope(a, p, label, per_sum);
        if (label != 0) loss += label * (log_of_total - logf(fmaxf(fminf(p, a.high), a.low)));
    }
    float all = (float)combine_line<BY, leati_add>((double)slopes, shared);
    for (int64_t i = l.thread; a.dst.at && i < a.length; i += l.step) {
        float p = expf(leati_element(a.src, l.at + i) - s.maximum) * factor;
        float label = leati_element(a.other, l.at + i);
        leati_set_element(a.dst, l.at + i, (clipped_slope(a, p, label, per_sum) + p * all) * scale);
    }
    if (!a.loss.at) return;
    loss = (float)combine_line<BY, leati_add>((double)loss, shared);
    if (l.thread == 0) leati_set_element(a.loss, l.number, loss);
}

/* loss = sum of labels (log sum exp(logits) - logits), or that of clipped probabilities. */
template <int BY>
static __device__ __forceinline__ void softmax_xent(const leati_cuda_softmax_args &a, double *shared) {
    if (a.high > 0) return clipped_xent<BY>(a, shared);
    leati_line l = line_of<BY>(a);
    if (l.number >= a.outer) return;
    const float scale = scale_of(a, l);
    leati_softmax_sums s = sums_of_line<BY>(a.src, l, a.length, shared);
    float factor = (float)(1 / s.sum), log_of_sum = logf((float)s.sum), loss = 0;
    for (int64_t i = l.thread; i < a.length; i += l.step) {
        float x = leati_element(a.src, l.at + i) - s.maximum, label = leati_element(a.other, l.at + i);
        loss += label * (log_of_sum - x);
        if (a.dst.at) leati_set_element(a.dst, l.at + i, (expf(x) * factor - label) * scale);
    }
    if (!a.loss.at) return;
    loss = (float)combine_line<BY, leati_add>((double)loss, shared);
    if (l.thread == 0) leati_set_element(a.loss, l.number, loss);
}

/* ---- The same for lines of which each thread of a team keeps all its elements in registers ---- */

static const int kept_elements = 8;

static __device__ __forceinline__ void load_kept(const leati_cuda_tensor &t, const leati_line &l,
                                                 int64_t length, float absent, float *x) {
    LEATI_UNROLL(8)
    for (int k = 0; k < kept_elements; k++) {
        int i = l.thread + k * l.step;
        x[k] = i < length ? leati_element(t, l.at + i) : absent;
    }
}

/* Loads a line into x, subtracts its maximum, and returns the sum of e^x. */
template <int BY>
static __device__ __forceinline__ double kept_sum(const leati_cuda_softmax_args &a, const leati_line &l,
                                                  double *shared, float *x, float *power) {
    float maximum = -INFINITY, sum = 0;
    load_kept(a.src, l, a.length, -INFINITY, x);
    LEATI_UNROLL(8)
    for (int k = 0; k < kept_elements; k++) maximum = fmaxf(maximum, x[k]);
    maximum = combine_line<BY, leati_larger>(maximum, (float *)shared);
    LEATI_UNROLL(8)
    for (int k = 0; k < kept_elements; k++) {
        x[k] -= maximum;
        power[k] = expf(x[k]);
        sum += power[k];
    }
    return combine_line<BY, leati_add>((double)sum, shared);
}

template <int BY>
static __device__ __forceinline__ void softmax_kept(const leati_cuda_softmax_args &a, double *shared) {
    leati_line l = line_of<BY>(a);
    if (l.number >= a.outer) return;
    float x[kept_elements], power[kept_elements];
    double sum = kept_sum<BY>(a, l, shared, x, power);
    float factor = (float)(1 / sum), log_of_sum = logf((float)sum);
    LEATI_UNROLL(8)
    for (int k = 0; k < kept_elements; k++) {
        int i = l.thread + k * l.step;
        if (i < a.length)
            leati_set_element(a.dst, l.at + i, a.logarithm ? x[k] - log_of_sum : power[k] * factor);
    }
}

template <int BY>
static __device__ __forceinline__ void softmax_bwd_kept(const leati_cuda_softmax_args &a, double *shared) {
    leati_line l = line_of<BY>(a);
    if (l.number >= a.outer) return;
    float y[kept_elements], d[kept_elements], part = 0;
    load_kept(a.src, l, a.length, 0, y);
    load_kept(a.other, l, a.length, 0, d);
    LEATI_UNROLL(8)
    for (int k = 0; k < kept_elements; k++) part += d[k] * (a.logarithm ? 1.0f : y[k]);
    float sum = (float)combine_line<BY, leati_add>((double)part, shared);
    LEATI_UNROLL(8)
    for (int k = 0; k < kept_elements; k++) {
        int i = l.thread + k * l.step;
        float out = a.logarithm ? d[k] - expf(y[k]) * sum : y[k] * (d[k] - sum);
        if (i < a.length) leati_set_element(a.dst, l.at + i, out);
    }
}

template <int BY>
static __device__ __forceinline__ void softmax_xent_kept(const leati_cuda_softmax_args &a, double *shared) {
    if (a.high > 0) return clipped_xent<BY>(a, shared);
    leati_line l = line_of<BY>(a);
    if (l.number >= a.outer) return;
    float x[kept_elements], power[kept_elements], label[kept_elements], loss = 0;
    const float scale = scale_of(a, l);
    load_kept(a.other, l, a.length, 0, label);
    double sum = kept_sum<BY>(a, l, shared, x, power);
    float factor = (float)(1 / sum), log_of_sum = logf((float)sum);
    LEATI_UNROLL(8)
    for (int k = 0; k < kept_elements; k++) {
        int i = l.thread + k * l.step;
        if (i >= a.length) break;
        loss += label[k] * (log_of_sum - x[k]);
        if (a.dst.at) leati_set_element(a.dst, l.at + i, (power[k] * factor - label[k]) * scale);
    }
    if (!a.loss.at) return;
    loss = (float)combine_line<BY, leati_add>((double)loss, shared);
    if (l.thread == 0) leati_set_element(a.loss, l.number, loss);
}

#define THREAD_KERNEL(name)                                                                                  \
    LEATI_KERNEL(leati_cuda_##name##_thread, leati_cuda_softmax_args) {                                      \
        name<BY_THREAD>(a, (double *)0);                                                                     \
    }
#define TEAM_KERNELS(name)                                                                                   \
    LEATI_KERNEL(leati_cuda_##name##_warp, leati_cuda_softmax_args) {                                        \
        name##_kept<BY_WARP>(a, (double *)0);                                                                \
    }                                                                                                        \
    LEATI_KERNEL_BOUNDED(leati_cuda_##name##_block, leati_cuda_softmax_args, 1024, 1) {                      \
        LEATI_SHARED(double, shared, 32);                                                                    \
        name##_kept<BY_BLOCK>(a, shared);                                                                    \
    }                                                                                                        \
    LEATI_KERNEL_BOUNDED(leati_cuda_##name##_long, leati_cuda_softmax_args, 1024, 1) {                       \
        LEATI_SHARED(double, shared, 32);                                                                    \
        name<BY_BLOCK>(a, shared);                                                                           \
    }

THREAD_KERNEL(softmax)
THREAD_KERNEL(softmax_bwd)
TEAM_KERNELS(softmax)
TEAM_KERNELS(softmax_bwd)
TEAM_KERNELS(softmax_xent)
