/* SPDX-License-Identifier: Apache-2.0 */
/* Batch normalization and group normalization.  Sums of a thread are computed in f32, relative to the first element
 * that the thread reads, and added up in double. */
#include "backends/cuda/kernels/norm.h"

#include "backends/cuda/kernels/columns.cuh"
#include "backends/cuda/kernels/functions.cuh"
#include "backends/cuda/kernels/team.cuh"

/* ---- Batch normalization ---- */

/* The sums of x and x^2 of V channels. */
template <int V> struct leati_moments {
    static const int count = 2;
    float shift[V], sum[V], squares[V];
    int64_t n;

    static __device__ __forceinline__ double nothing() {
        return 0;
    }
    static __device__ __forceinline__ double combine(double a, double b) {
        return a + b;
    }
    __device__ __forceinline__ void add(const float *x) {
        for (int v = 0; v < V; v++) {
            float d = x[v] - shift[v];
            sum[v] += d;
            squares[v] += d * d;
        }
    }
    __device__ __forceinline__ double total(int s, int v) const {
        double c = (double)shift[v], d = (double)sum[v];
        return s == 0 ? d + (double)n * c : (double)squares[v] + 2 * c * d + (double)n * c * c;
    }
};

/* The loop over the rows of one thread: U rows at a time, so that their loads are under way together. */
template <int U> struct leati_rows {
    int64_t next, stride; /* the element of the next row, and the distance to the one after it */
    int32_t left;

    /* The blocks of a group of channels move over the rows together.  Backward, the rows come in the opposite order:
     * the first ones are those that the launch before read last, and may still be in the L2 cache. */
    __device__ __forceinline__ leati_rows(const leati_column_place &p, int64_t channels, bool backward) {
        left = p.active && p.first < p.last ? (int32_t)((p.last - p.first + p.step - 1) / p.step) : 0;
        stride = p.step * channels;
        next = p.first * channels + p.channel;
        if (!backward || left == 0) return;
        next += (left - 1) * stride;
        stride = -stride;
    }
    __device__ __forceinline__ bool has(int u) const {
        return u < left;
    }
    __device__ __forceinline__ int64_t at(int u) const {
        return next + u * stride;
    }
    __device__ __forceinline__ void advance() {
        next += U * stride;
        left -= U;
    }
    template <int TYPES, int V>
    __device__ __forceinline__ void load(const leati_cuda_tensor &t, leati_raw<V> *to) const {
        LEATI_UNROLL(8)
        for (int u = 0; u < U; u++)
            if (has(u)) leati_load_raw<TYPES, V>(t, at(u), to[u]);
    }
};

/* The place of a thread if the rows are dealt out to the blocks in turn. */
template <int V> static __device__ __forceinline__ leati_column_place place_of(const leati_cuda_columns &k) {
    leati_column_place p = leati_column_place_of<V>(k);
    p.first = (int64_t)blockIdx.y * p.step + p.row;
    p.step *= k.parts;
    p.last = k.rows;
    return p;
}

template <int TYPES, int V>
static __device__ __forceinline__ void moments_of_rows(const leati_cuda_tensor &src, int64_t channels,
                                                       const leati_column_place &p, leati_moments<V> &m) {
    const int batch = 8;
    leati_rows<batch> rows(p, channels, false);
    leati_raw<V> raw[batch];
    for (int v = 0; v < V; v++) m.shift[v] = m.sum[v] = m.squares[v] = 0;
    m.n = rows.left;
    if (m.n > 0) leati_load_vector<TYPES, V>(src, rows.next, m.shift);
    for (; rows.left > 0; rows.advance()) {
        rows.template load<TYPES, V>(src, raw);
        LEATI_UNROLL(8)
        for (int u = 0; u < batch; u++) {
            float x[V];
            if (!rows.has(u)) continue;
            leati_unpack<TYPES, V>(raw[u], x);
            m.add(x);
        }
    }
}

/* What a channel's elements are computed with. */
template <int V, int COUNT> struct leati_coefficients {
    float of[COUNT][V];

    /* Loads them from `from`, which has all channels of one coefficient, then those of the next one. */
    __device__ __forceinline__ void load(const float *from, int64_t pitch) {
        for (int k = 0; k < COUNT; k++) leati_load_f32<V>(from + k * pitch, of[k]);
    }
};

/* Stores one bit for each element, which says whether it is above 0: one byte for V of them. */
template <int V>
static __device__ __forceinline__ void store_signs(uint8_t *positive, int64_t i, const float *x) {
    unsigned bits = 0;
    for (int v = 0; v < V; v++) bits |= x[v] > 0 ? 1u << v : 0u;
    positive[i / V] = (uint8_t)bits;
}

/* dst = function((src - mean) scale + beta + addend) for one thread's channels and rows. */
template <int TYPES, int V>
static __device__ __forceinline__ void apply_to_rows(const leati_cuda_batch_norm_args &a,
                                                     const leati_column_place &p,
                                                     const leati_coefficients<V, 3> &c) {
    const int batch = 2;
    leati_rows<batch> rows(p, a.columns.channels, true);
    leati_raw<V> raw[batch], other[batch];
    for (; rows.left > 0; rows.advance()) {
        rows.template load<TYPES, V>(a.src, raw);
        if (a.addend.at) rows.template load<TYPES, V>(a.addend, other);
        LEATI_UNROLL(2)
        for (int u = 0; u < batch; u++) {
            float x[V], add[V];
            if (!rows.has(u)) continue;
            leati_unpack<TYPES, V>(raw[u], x);
            for (int v = 0; v < V; v++) x[v] = (x[v] - c.of[0][v]) * c.of[1][v] + c.of[2][v];
            if (a.addend.at) {
                leati_unpack<TYPES, V>(other[u], add);
                for (int v = 0; v < V; v++) x[v] += add[v];
            }
            if (a.relu)
                for (int v = 0; v < V; v++) x[v] = x[v] < 0 ? 0 : x[v];
            else if (a.has_post)
                for (int v = 0; v < V; v++) x[v] = leati_function_called(a.post, x[v]);
            leati_store_vector<TYPES, V>(a.dst, rows.at(u), x);
            if (V > 1 && a.positive) store_signs<V>(a.positive, rows.at(u), x);
        }
    }
}

/* Computes the statistics.  If one block has all rows of its channels, it normalizes them, too. */
template <int TYPES, int V>
static __device__ __forceinline__ void batch_norm(const leati_cuda_batch_norm_args &a, double *shared) {
    leati_column_place p = place_of<V>(a.columns);
    leati_moments<V> m;
    double total[2] = {0, 0};
    moments_of_rows<TYPES, V>(a.src, a.columns.channels, p, m);
    if (!leati_total_columns<V>(a.columns, p, m, shared, total)) return;
    bool alone = a.columns.parts == 1;
    int t = (int)threadIdx.x, channels = a.columns.wide * V;
    int64_t c = (int64_t)p.block * channels + t, pitch = alone ? channels : a.columns.channels;
    float *coefficients = alone ? (float *)shared : a.coefficients;
    if (t < channels && c < a.columns.channels) {
        double n = (double)a.columns.rows, mean = total[0] / n, variance = total[1] / n - mean * mean;
        float kept = (float)(variance > 0 || variance != variance ? variance : 0);
        float *to = coefficients + (alone ? t : c);
        leati_set_element(a.mean, c, (float)mean);
        leati_set_element(a.variance, c, kept);
        to[0] = (float)mean;
        to[pitch] = leati_element_or(a.gamma, c, 1) / sqrtf(kept + a.epsilon);
        to[2 * pitch] = leati_element_or(a.beta, c, 0);
    }
    if (!alone) return;
    __syncthreads();
    leati_coefficients<V, 3> k;
    k.load(coefficients + p.column * V, pitch);
    apply_to_rows<TYPES, V>(a, p, k);
}

/* Loads one number for each of V channels. */
template <int V>
static __device__ __forceinline__ void load_channels(const leati_cuda_tensor &t, int64_t channel,
                                                     float absent, float *x) {
    for (int v = 0; v < V; v++) x[v] = absent;
    if (t.at) leati_load_vector<LEATI_ANY_TYPES, V>(t, channel, x);
}

template <int TYPES, int V>
static __device__ __forceinline__ void batch_norm_apply(const leati_cuda_batch_norm_args &a) {
    leati_column_place p = place_of<V>(a.columns);
    leati_coefficients<V, 3> k;
    if (!p.active) return;
    if (a.coefficients) {
        k.load(a.coefficients + p.channel, a.columns.channels);
    } else {
        float variance[V];
        load_channels<V>(a.mean, p.channel, 0, k.of[0]);
        load_channels<V>(a.variance, p.channel, 0, variance);
        load_channels<V>(a.gamma, p.channel, 1, k.of[1]);
        load_channels<V>(a.beta, p.channel, 0, k.of[2]);
        for (int v = 0; v < V; v++) k.of[1][v] /= sqrtf(variance[v] + a.epsilon);
    }
    apply_to_rows<TYPES, V>(a, p, k);
}

/* Stores the signs of dst for batch_norm_any_1, whose threads know only one element each. */
LEATI_KERNEL(leati_cuda_norm_signs, leati_cuda_norm_signs_args) {
    LEATI_FOR_EACH(i, a.count) {
        unsigned bits = 0;
        for (int v = 0; v < 1 << a.signs; v++)
            bits |= leati_element(a.dst, (i << a.signs) + v) > 0 ? 1u << v : 0u;
        a.positive[i] = (uint8_t)bits;
    }
}

/* The sums of diff and of diff * y. */
template <int V> struct leati_slopes {
    static const int count = 2;
    float sum[V], sum_y[V];

    static __device__ __forceinline__ double nothing() {
        return 0;
    }
    static __device__ __forceinline__ double combine(double a, double b) {
        return a + b;
    }
    __device__ __forceinline__ double total(int s, int v) const {
        return (double)(s == 0 ? sum[v] : sum_y[v]);
    }
};

/* The gradients of some rows, as they lie in memory. */
template <int V, int U> struct leati_gradients {
    leati_raw<V> diff[U], more[U], rectified[U];
    uint8_t positive[U];
};

template <int TYPES, int V, int U>
static __device__ __forceinline__ void load_gradients(const leati_cuda_norm_gradient &a,
                                                      const leati_rows<U> &rows, leati_gradients<V, U> &g) {
    rows.template load<TYPES, V>(a.diff_dst, g.diff);
    if (a.more.at) rows.template load<TYPES, V>(a.more, g.more);
    if (a.positive) {
        LEATI_UNROLL(8)
        for (int u = 0; u < U; u++)
            if (rows.has(u)) g.positive[u] = a.positive[rows.at(u) >> a.signs];
    } else if (a.rectified.at) {
        rows.template load<TYPES, V>(a.rectified, g.rectified);
    }
}

/* Computes the gradient with respect to dst; it is 0 where a fused max(x, 0) gave 0. */
template <int TYPES, int V, int U>
static __device__ __forceinline__ void gradient_at(const leati_cuda_norm_gradient &a,
                                                   const leati_gradients<V, U> &g, int u, int64_t i,
                                                   float *diff) {
    float x[V];
    leati_unpack<TYPES, V>(g.diff[u], diff);
    if (a.more.at) {
        leati_unpack<TYPES, V>(g.more[u], x);
        for (int v = 0; v < V; v++) diff[v] += x[v];
    }
    if (a.positive) {
        unsigned bits = (unsigned)g.positive[u] >> (i & ((1 << a.signs) - 1));
        for (int v = 0; v < V; v++) diff[v] *= bits & 1u << v ? 1.0f : 0.0f;
    } else if (a.rectified.at) {
        leati_unpack<TYPES, V>(g.rectified[u], x);
        for (int v = 0; v < V; v++) diff[v] *= x[v] > 0 ? 1.0f : 0.0f;
    }
}

/* Computes the sums of diff and of diff (src - mean) for one thread's channels and rows. */
template <int TYPES, int V>
static __device__ __forceinline__ void slopes_of_rows(const leati_cuda_batch_norm_bwd_args &a,
                                                      const leati_column_place &p, leati_slopes<V> &s) {
    const int batch = 4;
    const leati_cuda_norm_gradient &from = a.gradient;
    leati_rows<batch> rows(p, a.columns.channels, false);
    leati_raw<V> raw[batch];
    leati_gradients<V, batch> g;
    float mean[V];
    for (int v = 0; v < V; v++) s.sum[v] = s.sum_y[v] = mean[v] = 0;
    if (p.active) load_channels<V>(a.mean, p.channel, 0, mean);
    for (; rows.left > 0; rows.advance()) {
        rows.template load<TYPES, V>(a.src, raw);
        load_gradients<TYPES, V, batch>(from, rows, g);
        LEATI_UNROLL(4)
        for (int u = 0; u < batch; u++) {
            float x[V], diff[V];
            if (!rows.has(u)) continue;
            gradient_at<TYPES, V, batch>(from, g, u, rows.at(u), diff);
            if (a.diff.at) leati_store_vector<TYPES, V>(a.diff, rows.at(u), diff);
            leati_unpack<TYPES, V>(raw[u], x);
            for (int v = 0; v < V; v++) {
                s.sum[v] += diff[v];
                s.sum_y[v] += diff[v] * (x[v] - mean[v]);
            }
        }
    }
}

/* diff_src = scale diff - rest - (src - mean) slope. */
template <int TYPES, int V>
static __device__ __forceinline__ void
slopes_to_rows(const leati_cuda_batch_norm_bwd_args &a, const leati_cuda_norm_gradient &from,
               const leati_column_place &p, const leati_coefficients<V, 4> &c) {
    const int batch = 2;
    leati_rows<batch> rows(p, a.columns.channels, true);
    leati_raw<V> raw[batch];
    leati_gradients<V, batch> g;
    for (; rows.left > 0; rows.advance()) {
        rows.template load<TYPES, V>(a.src, raw);
        load_gradients<TYPES, V, batch>(from, rows, g);
        LEATI_UNROLL(2)
        for (int u = 0; u < batch; u++) {
            float x[V], diff[V];
            if (!rows.has(u)) continue;
            gradient_at<TYPES, V, batch>(from, g, u, rows.at(u), diff);
            leati_unpack<TYPES, V>(raw[u], x);
            for (int v = 0; v < V; v++)
                x[v] = c.of[1][v] * diff[v] - c.of[3][v] - (x[v] - c.of[0][v]) * c.of[2][v];
            leati_store_vector<TYPES, V>(a.diff_src, rows.at(u), x);
        }
    }
}

/* Computes the coefficients of slopes_to_rows for channel c.  With y = (src - mean) inverse, n rows, and the sums of
 * diff and of diff y over the rows: diff_src = gamma inverse (diff - sum / n - y sum_y / n). */
static __device__ __forceinline__ void set_slopes(const leati_cuda_batch_norm_bwd_args &a, int64_t c,
                                                  float sum, float sum_y, float *to, int64_t pitch) {
    float inverse = 1.0f / sqrtf(leati_element(a.variance, c) + a.epsilon), n = (float)a.columns.rows;
    float scale = leati_element_or(a.gamma, c, 1) * inverse;
    to[0] = leati_element(a.mean, c);
    to[pitch] = scale;
    to[2 * pitch] = scale * inverse * (sum_y / n);
    to[3 * pitch] = scale * (sum / n);
}

template <int TYPES, int V>
static __device__ __forceinline__ void batch_norm_bwd(const leati_cuda_batch_norm_bwd_args &a,
                                                      double *shared) {
    leati_column_place p = place_of<V>(a.columns);
    leati_slopes<V> s;
    double total[2] = {0, 0};
    slopes_of_rows<TYPES, V>(a, p, s);
    if (!leati_total_columns<V>(a.columns, p, s, shared, total)) return;
    bool alone = a.columns.parts == 1;
    int t = (int)threadIdx.x, channels = a.columns.wide * V;
    int64_t c = (int64_t)p.block * channels + t, pitch = alone ? channels : a.columns.channels;
    float *coefficients = alone ? (float *)shared : a.coefficients;
    if (t < channels && c < a.columns.channels) {
        float sum = (float)total[0];
        float sum_y = (float)(total[1] / sqrt((double)leati_element(a.variance, c) + (double)a.epsilon));
        if (a.diff_beta.at) leati_set_element(a.diff_beta, c, sum);
        if (a.diff_gamma.at) leati_set_element(a.diff_gamma, c, sum_y);
        set_slopes(a, c, sum, sum_y, coefficients + (alone ? t : c), pitch);
    }
    if (!alone || !a.diff_src.at) return;
    __syncthreads();
    leati_coefficients<V, 4> k;
    k.load(coefficients + p.column * V, pitch);
    if (a.diff.at) {
        leati_cuda_norm_gradient stored = {};
        stored.diff_dst = a.diff;
        slopes_to_rows<TYPES, V>(a, stored, p, k);
    } else {
        slopes_to_rows<TYPES, V>(a, a.gradient, p, k);
    }
}

/* The second launch, if there are several parts. */
template <int TYPES, int V>
static __device__ __forceinline__ void batch_norm_bwd_apply(const leati_cuda_batch_norm_bwd_args &a) {
    leati_column_place p = place_of<V>(a.columns);
    leati_coefficients<V, 4> k;
    if (!p.active) return;
    k.load(a.coefficients + p.channel, a.columns.channels);
    slopes_to_rows<TYPES, V>(a, a.gradient, p, k);
}

#define BATCH_NORM_KERNELS(suffix, types, v)                                                                 \
    LEATI_KERNEL_BOUNDED(leati_cuda_batch_norm_##suffix, leati_cuda_batch_norm_args, 512, 1) {               \
        LEATI_DYNAMIC_SHARED(double, shared);                                                                \
        batch_norm<types, v>(a, shared);                                                                     \
    }                                                                                                        \
    LEATI_KERNEL_BOUNDED(leati_cuda_batch_norm_apply_##suffix, leati_cuda_batch_norm_args, 256, 3) {         \
        batch_norm_apply<types, v>(a);                                                                       \
    }                                                                                                        \
    LEATI_KERNEL_BOUNDED(leati_cuda_batch_norm_bwd_##suffix, leati_cuda_batch_norm_bwd_args, 512, 1) {       \
        LEATI_DYNAMIC_SHARED(double, shared);                                                                \
        batch_norm_bwd<types, v>(a, shared);                                                                 \
    }                                                                                                        \
    LEATI_KERNEL_BOUNDED(leati_cuda_batch_norm_bwd_apply_##suffix, leati_cuda_batch_norm_bwd_args, 256, 3) { \
        batch_norm_bwd_apply<types, v>(a);                                                                   \
    }

BATCH_NORM_KERNELS(f32_4, LEATI_ALL_F32, 4)
BATCH_NORM_KERNELS(bf16_8, LEATI_ALL_BF16, 8)
BATCH_NORM_KERNELS(any_4, LEATI_ANY_TYPES, 4)
BATCH_NORM_KERNELS(any_1, LEATI_ANY_TYPES, 1)

/* ---- Group normalization: one team computes one group of one row ---- */

struct leati_group_place {
    int64_t at, first;    /* the group's first element, and its first channel */
    int64_t width, count; /* numbers of channels and of elements */
};

template <class Args>
static __device__ __forceinline__ leati_group_place group_place(const Args &a, int64_t team) {
    leati_group_place g;
    int64_t row = team / a.groups;
    g.width = a.channels / a.groups;
    g.first = team % a.groups * g.width;
    g.at = row * a.places * a.channels + g.first;
    g.count = a.places * g.width;
    return g;
}

/* A walk of one thread over the elements of a group, V neighbouring ones at a time; `channel` counts from the group's
 * first one. */
template <int V> struct leati_group_walk {
    int64_t left, at; /* vectors, this one included, and its first element */
    int32_t channel, width, places, remainder;
    int64_t stride;

    __device__ __forceinline__ leati_group_walk(const leati_group_place &g, int64_t channels, int thread,
                                                int step) {
        int32_t vectors = (int32_t)g.width / V;
        width = (int32_t)g.width;
        stride = channels;
        places = step / vectors;
        remainder = step % vectors * V;
        channel = thread % vectors * V;
        left = g.count / V > thread ? (g.count / V - thread + step - 1) / step : 0;
        at = g.at + thread / vectors * channels + channel;
    }
    __device__ __forceinline__ void next() {
        left--;
        channel += remainder;
        at += places * stride + remainder;
        if (channel >= width) {
            channel -= width;
            at += stride - width;
        }
    }
};

template <bool BLOCK, int V>
static __device__ __forceinline__ void group_norm(const leati_cuda_group_norm_args &a, double *shared) {
    int64_t team = leati_team<BLOCK>();
    int thread = leati_team_thread<BLOCK>(), step = leati_team_size<BLOCK>();
    if (team >= a.rows * a.groups) return;
    leati_group_place g = group_place(a, team);
    leati_group_walk<V> w(g, a.channels, thread, step), again = w;
    leati_moments<V> m;
    float x[V], gamma[V], beta[V];
    m.n = w.left;
    for (int v = 0; v < V; v++) m.sum[v] = m.squares[v] = m.shift[v] = 0;
    if (w.left > 0) leati_load_vector<LEATI_ANY_TYPES, V>(a.src, w.at, m.shift);
    LEATI_UNROLL(4)
    for (; w.left > 0; w.next()) {
        leati_load_vector<LEATI_ANY_TYPES, V>(a.src, w.at, x);
        m.add(x);
    }
    double total[2] = {0, 0};
    for (int v = 0; v < V; v++) total[0] += m.total(0, v), total[1] += m.total(1, v);
    double sum = leati_team_combine<BLOCK, leati_add>(total[0], shared);
    double squares = leati_team_combine<BLOCK, leati_add>(total[1], shared);
    double average = sum / (double)g.count, variance = squares / (double)g.count - average * average;
    if (variance < 0) variance = 0;
    float mean = (float)average, inverse = (float)(1 / sqrt(variance + (double)a.epsilon));
    if (thread == 0) {
        leati_set_element(a.mean, team, mean);
        leati_set_element(a.inverse, team, inverse);
    }
    for (; again.left > 0; again.next()) {
        leati_load_vector<LEATI_ANY_TYPES, V>(a.src, again.at, x);
        load_channels<V>(a.gamma, g.first + again.channel, 1, gamma);
        load_channels<V>(a.beta, g.first + again.channel, 0, beta);
        for (int v = 0; v < V; v++) x[v] = (x[v] - mean) * inverse * gamma[v] + beta[v];
        leati_store_vector<LEATI_ANY_TYPES, V>(a.dst, again.at, x);
    }
}

/* diff_src = inverse (d - mean d - y mean (d y)), where d = diff_dst gamma and y = (src - mean) inverse. */
template <bool BLOCK, int V>
static __device__ __forceinline__ void group_norm_bwd(const leati_cuda_group_norm_bwd_args &a,
                                                      double *shared) {
    int64_t team = leati_team<BLOCK>();
    int thread = leati_team_thread<BLOCK>(), step = leati_team_size<BLOCK>();
    if (team >= a.rows * a.groups) return;
    leati_group_place g = group_place(a, team);
    leati_group_walk<V> w(g, a.channels, thread, step), again = w;
    float mean = leati_element(a.mean, team), inverse = leati_element(a.inverse, team), sum = 0, sum_y = 0;
    float x[V], d[V], gamma[V];
    LEATI_UNROLL(2)
    for (; w.left > 0; w.next()) {
        leati_load_vector<LEATI_ANY_TYPES, V>(a.src, w.at, x);
        leati_load_vector<LEATI_ANY_TYPES, V>(a.diff_dst, w.at, d);
        load_channels<V>(a.gamma, g.first + w.channel, 1, gamma);
        for (int v = 0; v < V; v++) {
            d[v] *= gamma[v];
            sum += d[v];
            sum_y += d[v] * ((x[v] - mean) * inverse);
        }
    }
    float share = (float)(leati_team_combine<BLOCK, leati_add>((double)sum, shared) / (double)g.count);
    float share_y = (float)(leati_team_combine<BLOCK, leati_add>((double)sum_y, shared) / (double)g.count);
    for (; again.left > 0; again.next()) {
        leati_load_vector<LEATI_ANY_TYPES, V>(a.src, again.at, x);
        leati_load_vector<LEATI_ANY_TYPES, V>(a.diff_dst, again.at, d);
        load_channels<V>(a.gamma, g.first + again.channel, 1, gamma);
        for (int v = 0; v < V; v++)
            x[v] = inverse * (d[v] * gamma[v] - share - (x[v] - mean) * inverse * share_y);
        leati_store_vector<LEATI_ANY_TYPES, V>(a.diff_src, again.at, x);
    }
}

#define GROUP_NORM_KERNELS(name, v)                                                                          \
    LEATI_KERNEL(leati_cuda_##name##_warp_##v, leati_cuda_##name##_args) {                                   \
        name<false, v>(a, (double *)0);                                                                      \
    }                                                                                                        \
    LEATI_KERNEL_BOUNDED(leati_cuda_##name##_block_##v, leati_cuda_##name##_args, 1024, 1) {                 \
        LEATI_SHARED(double, shared, 32);                                                                    \
        name<true, v>(a, shared);                                                                            \
    }

GROUP_NORM_KERNELS(group_norm, 1)
GROUP_NORM_KERNELS(group_norm, 4)
GROUP_NORM_KERNELS(group_norm_bwd, 1)
GROUP_NORM_KERNELS(group_norm_bwd, 4)

/* ---- Layer normalization: all elements of a row are one group, and a team keeps them in registers ---- */

/* The vectors of 4 elements that a thread keeps. */
static const int kept_vectors = 8;

/* Loads vectors thread, thread + step and so on of `length` elements from `at`; 0 behind the end. */
template <int TYPES>
static __device__ __forceinline__ void load_kept(const leati_cuda_tensor &t, int64_t at, int length,
                                                 int thread, int step, float (*x)[4]) {
    LEATI_UNROLL(8)
    for (int k = 0; k < kept_vectors; k++) {
        int i = 4 * (thread + k * step);
        for (int v = 0; v < 4; v++) x[k][v] = 0;
        if (i < length) leati_load_vector<TYPES, 4>(t, at + i, x[k]);
    }
}

/* Loads the vector of gamma or beta for element i. */
static __device__ __forceinline__ void load_of_channels(const leati_cuda_tensor &t, int i, int channels,
                                                        float absent, float *x) {
    for (int v = 0; v < 4; v++) x[v] = absent;
    if (t.at) leati_load_vector<LEATI_ANY_TYPES, 4>(t, i % channels, x);
}

template <int TYPES, bool BLOCK>
static __device__ __forceinline__ void layer_norm(const leati_cuda_group_norm_args &a, double *shared) {
    int64_t row = leati_team<BLOCK>();
    int thread = leati_team_thread<BLOCK>(), step = leati_team_size<BLOCK>();
    int channels = (int)a.channels, length = (int)a.places * channels;
    if (row >= a.rows) return;
    float x[kept_vectors][4], sum = 0, squares = 0;
    load_kept<TYPES>(a.src, row * length, length, thread, step, x);
    LEATI_UNROLL(8)
    for (int k = 0; k < kept_vectors; k++) sum += (x[k][0] + x[k][1]) + (x[k][2] + x[k][3]);
    float mean = (float)(leati_team_combine<BLOCK, leati_add>((double)sum, shared) / (double)length);
    LEATI_UNROLL(8)
    for (int k = 0; k < kept_vectors; k++)
        for (int v = 0; v < 4; v++) {
            x[k][v] -= mean;
            if (4 * (thread + k * step) < length) squares += x[k][v] * x[k][v];
        }
    double variance = leati_team_combine<BLOCK, leati_add>((double)squares, shared) / (double)length;
    float inverse = (float)(1 / sqrt(variance + (double)a.epsilon));
    if (thread == 0) {
        leati_set_element(a.mean, row, mean);
        leati_set_element(a.inverse, row, inverse);
    }
    LEATI_UNROLL(8)
    for (int k = 0; k < kept_vectors; k++) {
        int i = 4 * (thread + k * step);
        float gamma[4], beta[4];
        if (i >= length) break;
        load_of_channels(a.gamma, i, channels, 1, gamma);
        load_of_channels(a.beta, i, channels, 0, beta);
        for (int v = 0; v < 4; v++) x[k][v] = x[k][v] * inverse * gamma[v] + beta[v];
        leati_store_vector<TYPES, 4>(a.dst, row * length + i, x[k]);
    }
}

template <int TYPES, bool BLOCK>
static __device__ __forceinline__ void layer_norm_bwd(const leati_cuda_group_norm_bwd_args &a,
                                                      double *shared) {
    int64_t row = leati_team<BLOCK>();
    int thread = leati_team_thread<BLOCK>(), step = leati_team_size<BLOCK>();
    int channels = (int)a.channels, length = (int)a.places * channels;
    if (row >= a.rows) return;
    float mean = leati_element(a.mean, row), inverse = leati_element(a.inverse, row), sum = 0, sum_y = 0;
    float y[kept_vectors][4], d[kept_vectors][4];
    load_kept<TYPES>(a.src, row * length, length, thread, step, y);
    load_kept<TYPES>(a.diff_dst, row * length, length, thread, step, d);
    LEATI_UNROLL(8)
    for (int k = 0; k < kept_vectors; k++) {
        int i = 4 * (thread + k * step);
        float gamma[4];
        if (i >= length) break;
        load_of_channels(a.gamma, i, channels, 1, gamma);
        for (int v = 0; v < 4; v++) {
            y[k][v] = (y[k][v] - mean) * inverse;
            d[k][v] *= gamma[v];
            sum += d[k][v];
            sum_y += d[k][v] * y[k][v];
        }
    }
    float share = (float)(leati_team_combine<BLOCK, leati_add>((double)sum, shared) / (double)length);
    float share_y = (float)(leati_team_combine<BLOCK, leati_add>((double)sum_y, shared) / (double)length);
    LEATI_UNROLL(8)
    for (int k = 0; k < kept_vectors; k++) {
        int i = 4 * (thread + k * step);
        if (i >= length) break;
        for (int v = 0; v < 4; v++) d[k][v] = inverse * (d[k][v] - share - y[k][v] * share_y);
        leati_store_vector<TYPES, 4>(a.diff_src, row * length + i, d[k]);
    }
}

#define LAYER_NORM_KERNELS(name, suffix, types)                                                              \
    LEATI_KERNEL_BOUNDED(leati_cuda_##name##_warp_##suffix, leati_cuda_##name##_args, 128, 4) {              \
        name<types, false>(a, (double *)0);                                                                  \
    }                                                                                                        \
    LEATI_KERNEL_BOUNDED(leati_cuda_##name##_block_##suffix, leati_cuda_##name##_args, 256, 2) {             \
        LEATI_SHARED(double, shared, 32);                                                                    \
        name<types, true>(a, shared);                                                                        \
    }

typedef leati_cuda_group_norm_args leati_cuda_layer_norm_args;
typedef leati_cuda_group_norm_bwd_args leati_cuda_layer_norm_bwd_args;

LAYER_NORM_KERNELS(layer_norm, f32, LEATI_ALL_F32)
LAYER_NORM_KERNELS(layer_norm, bf16, LEATI_ALL_BF16)
LAYER_NORM_KERNELS(layer_norm, any, LEATI_ANY_TYPES)
LAYER_NORM_KERNELS(layer_norm_bwd, f32, LEATI_ALL_F32)
LAYER_NORM_KERNELS(layer_norm_bwd, bf16, LEATI_ALL_BF16)
LAYER_NORM_KERNELS(layer_norm_bwd, any, LEATI_ANY_TYPES)

/* Divides numbers that usually have 32 bits. */
static __device__ __forceinline__ int64_t quotient(int64_t a, int64_t b) {
    return ((uint64_t)a | (uint64_t)b) >> 32 ? a / b : (int64_t)((uint32_t)a / (uint32_t)b);
}

/* diff_gamma = sum diff_dst y and diff_beta = sum diff_dst, over all rows and places. */
template <int V>
static __device__ __forceinline__ void group_norm_channels(const leati_cuda_group_norm_bwd_args &a,
                                                           double *shared) {
    leati_column_place p = leati_column_place_of<V>(a.columns);
    const int batch = 2;
    leati_rows<batch> rows(p, a.channels, false);
    leati_raw<V> src[batch], gradient[batch];
    leati_slopes<V> s;
    double total[2] = {0, 0};
    int64_t group[V], width = a.channels / a.groups, row = p.first;
    bool one = width % V == 0; /* a thread's channels are in one group */
    for (int v = 0; v < V; v++) {
        s.sum[v] = s.sum_y[v] = 0;
        group[v] = (p.channel + v) / width;
    }
    for (; rows.left > 0; rows.advance()) {
        rows.template load<LEATI_ANY_TYPES, V>(a.src, src);
        rows.template load<LEATI_ANY_TYPES, V>(a.diff_dst, gradient);
        LEATI_UNROLL(2)
        for (int u = 0; u < batch; u++, row += p.step) {
            float x[V], diff[V], mean = 0, inverse = 0;
            if (!rows.has(u)) continue;
            int64_t from = quotient(row, a.places) * a.groups;
            leati_unpack<LEATI_ANY_TYPES, V>(src[u], x);
            leati_unpack<LEATI_ANY_TYPES, V>(gradient[u], diff);
            for (int v = 0; v < V; v++) {
                if (v == 0 || !one) {
                    mean = leati_element(a.mean, from + group[v]);
                    inverse = leati_element(a.inverse, from + group[v]);
                }
                s.sum[v] += diff[v];
                s.sum_y[v] += diff[v] * ((x[v] - mean) * inverse);
            }
        }
    }
    if (!leati_total_columns<V>(a.columns, p, s, shared, total)) return;
    int t = (int)threadIdx.x;
    int64_t c = (int64_t)p.block * a.columns.wide * V + t;
    if (t >= a.columns.wide * V || c >= a.channels) return;
    leati_set_element(a.diff_beta, c, (float)total[0]);
    leati_set_element(a.diff_gamma, c, (float)total[1]);
}

LEATI_KERNEL_BOUNDED(leati_cuda_group_norm_channels_4, leati_cuda_group_norm_bwd_args, 1024, 1) {
    LEATI_DYNAMIC_SHARED(double, shared);
    group_norm_channels<4>(a, shared);
}
LEATI_KERNEL_BOUNDED(leati_cuda_group_norm_channels_1, leati_cuda_group_norm_bwd_args, 1024, 1) {
    LEATI_DYNAMIC_SHARED(double, shared);
    group_norm_channels<1>(a, shared);
}
