/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise loops, for the code that is compiled once per instruction set: functions, binary operators, dropout,
 * random numbers, casts, optimizer updates.  Each loop also works in place. */
#ifndef LEATI_BACKENDS_NATIVE_ELEMENTWISE_LOOPS_TMPL_H
#define LEATI_BACKENDS_NATIVE_ELEMENTWISE_LOOPS_TMPL_H

#include <math.h>

#include "backends/native/simd/function_tmpl.h"
#include "backends/native/elementwise/jobs.h"
#include "engine/random.h"
#include "tensor/bfloat16.h"
#include "tensor/number.h"

static void bf16_to_f32(const uint16_t *from, float *to, int64_t count) {
    int64_t i = 0;
    for (; i + LEATI_LANES <= count; i += LEATI_LANES) v_store(to + i, v_load_bf16(from + i));
    if (i < count) v_store_part(to + i, v_load_bf16_part(from + i, count - i), count - i);
}

static void f32_to_bf16(const float *from, uint16_t *to, int64_t count) {
    int64_t i = 0;
    for (; i + LEATI_LANES <= count; i += LEATI_LANES) v_store_bf16(to + i, v_load(from + i));
    if (i < count) v_store_bf16_part(to + i, v_load_part(from + i, count - i), count - i);
}

static void eltwise(const leati_range_job *job, int64_t first, int64_t last) {
    const leati_eltwise f = job->attrs->eltwise;
    const float *src = job->in[0];
    float *dst = job->out[0];
    if (f.function != LEATI_FN_RELU || f.a != 0 || f.c != 0) {
        map_function(&f, src + first, dst + first, last - first);
        return;
    }
    for (int64_t i = first; i < last; i += LEATI_LANES) {
        vf x = v_load_part_or_one(src + i, last - i);
        v_store_part(dst + i, v_min(v_max(x, v_all(0)), v_all(f.b)) + 0.0f, last - i);
    }
}

#define MAP(SLOPE)                                                                                           \
    for (int64_t i = first; i < last; i += LEATI_LANES) {                                                    \
        vf x = v_load_part_or_one(at + i, last - i);                                                         \
        v_store_part(to + i, v_load_part(diff + i, last - i) * (SLOPE), last - i);                           \
    }                                                                                                        \
    return

static void eltwise_bwd(const leati_range_job *job, int64_t first, int64_t last) {
    const leati_eltwise f = job->attrs->eltwise;
    const float *at = job->in[0], *diff = job->in[1];
    float *to = job->out[0];
    if (job->eltwise_bwd.from_dst && f.function == LEATI_FN_RELU && f.a == 0 && isinf(f.b)) {
        MAP(v_select((vi)(x > v_all(0)), v_all(1), v_all(0)));
    }
    if (job->eltwise_bwd.from_dst) {
        MAP(f_slope_from_dst(&f, x));
    }
    MAP(f_slope_at(&f, x));
}
#undef MAP

LEATI_INLINE vf operate(leati_binary kind, vf a, vf b) {
    const vf one = v_all(1), zero = v_all(0);
    switch (kind) {
    case LEATI_ADD: return a + b;
    case LEATI_SUB: return a - b;
    case LEATI_MUL: return a * b;
    case LEATI_DIV: return a / b;
    case LEATI_MAX: return v_select((vi)(a > b) | v_nan(a), a, b);
    case LEATI_MIN: return v_select((vi)(a < b) | v_nan(a), a, b);
    case LEATI_EQUAL: return v_select((vi)(a == b), one, zero);
    case LEATI_GREATER: return v_select((vi)(a > b), one, zero);
    case LEATI_GREATER_EQUAL: return v_select((vi)(a >= b), one, zero);
    }
    return zero;
}

/* Each operand is either one number (step 0) or an array of count elements (step 1). */
LEATI_INLINE void operate_row(leati_binary kind, const float *a, int a_step, const float *b, int b_step,
                              float *dst, int64_t count) {
    for (int64_t i = 0; i < count; i += LEATI_LANES) {
        vf x = a_step ? v_load_part(a + i, count - i) : v_all(*a);
        vf y = b_step ? v_load_part_or_one(b + i, count - i) : v_all(*b);
        v_store_part(dst + i, operate(kind, x, y), count - i);
    }
}

#define OPERATE(KIND)                                                                                        \
    static void operate_##KIND(const float *a, int a_step, const float *b, int b_step, float *dst,           \
                               int64_t count) {                                                              \
        if (a_step && b_step)                                                                                \
            operate_row(KIND, a, 1, b, 1, dst, count);                                                       \
        else if (a_step)                                                                                     \
            operate_row(KIND, a, 1, b, 0, dst, count);                                                       \
        else                                                                                                 \
            operate_row(KIND, a, 0, b, b_step, dst, count);                                                  \
    }
OPERATE(LEATI_ADD)
OPERATE(LEATI_SUB)
OPERATE(LEATI_MUL)
OPERATE(LEATI_DIV)
OPERATE(LEATI_MAX)
OPERATE(LEATI_MIN)
OPERATE(LEATI_EQUAL)
OPERATE(LEATI_GREATER)
OPERATE(LEATI_GREATER_EQUAL)
#undef OPERATE

/* DROPOUT with drawn factors: y is the scale where the element is kept, else 0.  Dropped elements are 0 even if x
 * is infinite or NaN. */
static void operate_keep(const float *a, int a_step, const float *b, int b_step, float *dst, int64_t count) {
    (void)a_step;
    for (int64_t i = 0; i < count; i += LEATI_LANES) {
        vf y = b_step ? v_load_part(b + i, count - i) : v_all(*b);
        vf x = v_load_part(a + i, count - i);
        v_store_part(dst + i, v_select((vi)(y > v_all(0)), x * y, v_all(0)), count - i);
    }
}

/* True for max(x, 0). */
LEATI_INLINE bool is_plain_relu(const leati_eltwise *f) {
    return f->function == LEATI_FN_RELU && f->a == 0 && f->c == 0 && isinf(f->b);
}

/* The function that is fused into an op: dst = f(dst), applied while dst is still in the cache. */
static void apply_post(const leati_eltwise *f, float *dst, int64_t count) {
    if (is_plain_relu(f)) {
        for (int64_t i = 0; i < count; i += LEATI_LANES) {
            vf x = v_load_part(dst + i, count - i);
            v_store_part(dst + i, v_select((vi)(x > v_all(0)) | v_nan(x), x, v_all(0)), count - i);
        }
        return;
    }
    map_function(f, dst, dst, count);
}

typedef void (*operate_function)(const float *, int, const float *, int, float *, int64_t);

static operate_function operate_of(const leati_range_job *job) {
    static const operate_function kinds[] = {[LEATI_ADD] = operate_LEATI_ADD,
                                             [LEATI_SUB] = operate_LEATI_SUB,
                                             [LEATI_MUL] = operate_LEATI_MUL,
                                             [LEATI_DIV] = operate_LEATI_DIV,
                                             [LEATI_MAX] = operate_LEATI_MAX,
                                             [LEATI_MIN] = operate_LEATI_MIN,
                                             [LEATI_EQUAL] = operate_LEATI_EQUAL,
                                             [LEATI_GREATER] = operate_LEATI_GREATER,
                                             [LEATI_GREATER_EQUAL] = operate_LEATI_GREATER_EQUAL};
    return job->binary.dropout ? operate_keep : kinds[job->attrs->binary.kind];
}

#define SHORT_PERIOD (4 * LEATI_LANES) /* floats; a shorter row is repeated first */

/* BINARY of (rows, period) elements where operand `which` is a single row, broadcast over the rows, and so short
 * that most of the time would be spent at its ends: the row is repeated in a buffer first.  `first` may lie within
 * a row. */
static void operate_repeated(const leati_range_job *job, int which, int64_t first, int64_t last) {
    float row[SHORT_PERIOD * (SHORT_PERIOD + 1)];
    int64_t period = job->binary.dim[1], stretch = period * SHORT_PERIOD;
    operate_function function = operate_of(job);
    for (int64_t i = 0; i < stretch + period; i++) row[i] = job->in[which][i % period];
    const float *repeated = row + first % period, *whole = job->in[!which];
    for (int64_t i = first; i < last; i += stretch) {
        int64_t count = last - i < stretch ? last - i : stretch;
        if (which == 1)
            function(whole + i, 1, repeated, 1, job->out[0] + i, count);
        else
            function(repeated, 1, whole + i, 1, job->out[0] + i, count);
        if (job->attrs->post.kinds) apply_post(&job->attrs->post.function, job->out[0] + i, count);
    }
}

/* BINARY: elements first to last - 1 of dst, one row (or the part of it that is in the range) at a time. */
static void binary(const leati_range_job *job, int64_t first, int64_t last) {
    int64_t index[LEAT_MAX_RANK], from[2] = {0, 0}, rest = first;
    int inner = job->binary.axes - 1;
    /* small pieces, so that the function finds them in the cache */
    int64_t max_count = job->attrs->post.kinds ? 4096 : INT64_MAX;
    operate_function function = operate_of(job);
    if (first >= last) return;
    for (int k = 0; k < 2 && inner == 1 && job->binary.dim[1] < SHORT_PERIOD; k++)
        if (job->binary.stride[k][0] == 0 && job->binary.stride[k][1] == 1 &&
            job->binary.stride[!k][0] == job->binary.dim[1] && job->binary.stride[!k][1] == 1) {
            operate_repeated(job, k, first, last);
            return;
        }
    for (int axis = inner; axis >= 0; axis--) {
        index[axis] = rest % job->binary.dim[axis];
        rest /= job->binary.dim[axis];
        for (int k = 0; k < 2; k++) from[k] += index[axis] * job->binary.stride[k][axis];
    }
    for (int64_t i = first, count; i < last; i += count) {
        count = job->binary.dim[inner] - index[inner] < last - i ? job->binary.dim[inner] - index[inner]
                                                                 : last - i;
        if (count > max_count) count = max_count;
        function(job->in[0] + from[0], job->binary.stride[0][inner] != 0, job->in[1] + from[1],
                 job->binary.stride[1][inner] != 0, job->out[0] + i, count);
        if (job->attrs->post.kinds) apply_post(&job->attrs->post.function, job->out[0] + i, count);
        index[inner] += count;
        for (int k = 0; k < 2; k++) from[k] += count * job->binary.stride[k][inner];
        for (int axis = inner; axis > 0 && index[axis] == job->binary.dim[axis]; axis--) {
            for (int k = 0; k < 2; k++)
                from[k] +=
                    job->binary.stride[k][axis - 1] - job->binary.dim[axis] * job->binary.stride[k][axis];
            index[axis] = 0;
            index[axis - 1]++;
        }
    }
}

/* Computes LEATI_LANES blocks of leati_philox() at once: words[w][i] is word w of block `block` + i. */
LEATI_INLINE void philox(uint64_t key, uint64_t stream, uint64_t block, vu words[4]) {
    uint32_t key0 = (uint32_t)key, key1 = (uint32_t)(key >> 32);
    uint32_t low[LEATI_LANES], high[LEATI_LANES];
    for (int i = 0; i < LEATI_LANES; i++) {
        low[i] = (uint32_t)(block + (uint64_t)i);
        high[i] = (uint32_t)((block + (uint64_t)i) >> 32);
    }
    memcpy(&words[0], low, sizeof low);
    memcpy(&words[1], high, sizeof high);
    words[2] = (uint32_t)stream - (vu){0};
    words[3] = (uint32_t)(stream >> 32) - (vu){0};
    for (int round = 0; round < 10; round++, key0 += 0x9E3779B9u, key1 += 0xBB67AE85u) {
        vu low0, high0, low1, high1;
        v_multiply_wide(words[0], 0xD2511F53u, &low0, &high0);
        v_multiply_wide(words[2], 0xCD9E8D57u, &low1, &high1);
        words[0] = high1 ^ words[1] ^ key0;
        words[1] = low1;
        words[2] = high0 ^ words[3] ^ key1;
        words[3] = low0;
    }
}

/* Sets factor[e] for the 4 LEATI_LANES elements of these blocks, in order: scale where the element is kept, else 0. */
LEATI_INLINE void draw(uint64_t key, uint64_t stream, uint64_t block, uint32_t threshold, float scale,
                       float factor[4 * LEATI_LANES]) {
    vu words[4];
    float by_word[4][LEATI_LANES];
    philox(key, stream, block, words);
    for (int w = 0; w < 4; w++)
        v_store(by_word[w], v_select((vi)(words[w] >= threshold), v_all(scale), v_all(0)));
    for (int i = 0; i < LEATI_LANES; i++)
        for (int w = 0; w < 4; w++) factor[4 * i + w] = by_word[w][i];
}

/* `first` is a multiple of 4: a block has 4 random words. */
static void dropout(const leati_range_job *job, int64_t first, int64_t last) {
    uint32_t threshold = (uint32_t)leati_dropout_threshold(job->attrs->dropout.rate);
    float scale = leati_dropout_scale(job->attrs->dropout.rate), factor[4 * LEATI_LANES];
    const float *src = job->in[0]; /* NULL: dst gets the factors themselves */
    float *dst = job->out[0];
    for (int64_t i = first; i < last; i += 4 * LEATI_LANES) {
        draw(job->random.key, job->attrs->dropout.stream, (uint64_t)(i / 4), threshold, scale, factor);
        for (int64_t j = 0; j < 4 * LEATI_LANES && i + j < last; j += LEATI_LANES) {
            vf f = v_load(factor + j), x = src ? v_load_part(src + i + j, last - i - j) : v_all(1);
            v_store_part(dst + i + j, v_select((vi)(f > v_all(0)), x * f, v_all(0)), last - i - j);
        }
    }
}

/* Makes two normal numbers of two random words by the method of Box and Muller, see engine/random.h. */
LEATI_INLINE void normal_pair(vu first, vu second, vf *cosine, vf *sine) {
    vu cut = (first >> 8) + 1;
    vf radius = v_sqrt(-2.0f * v_log(__builtin_convertvector((vi)cut, vf) * 0x1p-24f));
    v_cos_sin(second, cosine, sine);
    *cosine *= radius;
    *sine *= radius;
}

/* `first` is a multiple of 4: a block has 4 random words. */
static void random_normal(const leati_range_job *job, int64_t first, int64_t last) {
    float mean = job->attrs->random_normal.mean, stddev = job->attrs->random_normal.stddev;
    float by_word[4][LEATI_LANES], *dst = job->out[0];
    for (int64_t i = first; i < last; i += 4 * LEATI_LANES) {
        vu words[4];
        vf z[4];
        philox(job->random.key, job->attrs->random_normal.stream, (uint64_t)(i / 4), words);
        normal_pair(words[0], words[1], &z[0], &z[1]);
        normal_pair(words[2], words[3], &z[2], &z[3]);
        for (int w = 0; w < 4; w++) v_store(by_word[w], mean + stddev * z[w]);
        for (int64_t j = 0; j < 4 * LEATI_LANES && i + j < last; j++) dst[i + j] = by_word[j % 4][j / 4];
    }
}

#define CAST(type, to, READ, WRITE)                                                                          \
    {                                                                                                        \
        const type *restrict from = (const type *)(const void *)job->in[0];                                  \
        for (int64_t i = first; i < last; i++) (to)[i] = WRITE(READ(from[i]) * scale);                       \
        return;                                                                                              \
    }
#define CASTS(to, WRITE)                                                                                     \
    if (job->cast.src_dtype == LEATI_BF16) CAST(uint16_t, to, leati_bfloat16_to_float, WRITE)                \
    switch (job->cast.src_dtype) {                                                                           \
    case LEAT_F32: CAST(float, to, (float), WRITE)                                                           \
    case LEAT_F64: CAST(double, to, (float), WRITE)                                                          \
    case LEAT_F16: CAST(uint16_t, to, leati_float16_to_float, WRITE)                                         \
    case LEAT_BOOL: CAST(uint8_t, to, (float)LEATI_TRUTH, WRITE)                                             \
    case LEAT_I8: CAST(int8_t, to, (float), WRITE)                                                           \
    case LEAT_I16: CAST(int16_t, to, (float), WRITE)                                                         \
    case LEAT_I32: CAST(int32_t, to, (float), WRITE)                                                         \
    case LEAT_I64: CAST(int64_t, to, (float), WRITE)                                                         \
    case LEAT_U8: CAST(uint8_t, to, (float), WRITE)                                                          \
    case LEAT_U16: CAST(uint16_t, to, (float), WRITE)                                                        \
    case LEAT_U32: CAST(uint32_t, to, (float), WRITE)                                                        \
    case LEAT_U64: CAST(uint64_t, to, (float), WRITE)                                                        \
    }

static void cast_to_float(const leati_range_job *job, int64_t first, int64_t last) {
    float *restrict to = job->out[0], scale = job->attrs->cast.scale;
    CASTS(to, (float))
}

static void cast_to_bfloat16(const leati_range_job *job, int64_t first, int64_t last) {
    uint16_t *restrict to = (uint16_t *)(void *)job->out[0];
    float scale = job->attrs->cast.scale;
    CASTS(to, leati_bfloat16_of_float)
}

static void cast(const leati_range_job *job, int64_t first, int64_t last) {
    bool to_bf16 = job->attrs->cast.dtype == LEATI_BF16, plain = job->attrs->cast.scale == 1;
    if (plain && to_bf16 && job->cast.src_dtype == LEAT_F32) {
        f32_to_bf16(job->in[0] + first, (uint16_t *)(void *)job->out[0] + first, last - first);
        return;
    }
    if (plain && !to_bf16 && job->cast.src_dtype == LEATI_BF16) {
        bf16_to_f32((const uint16_t *)(const void *)job->in[0] + first, job->out[0] + first, last - first);
        return;
    }
    (to_bf16 ? cast_to_bfloat16 : cast_to_float)(job, first, last);
}
#undef CASTS
#undef CAST

/* Optimizer updates; engine/ops/update.c has the formulas.  in: scalars, gradient; out: weights, optimizer slots. */
static void moving_average(const leati_range_job *job, int64_t first, int64_t last) {
    const float *restrict value = job->in[0];
    float *restrict state = job->out[0], momentum = job->attrs->moving_average.momentum;
    for (int64_t i = first; i < last; i++) state[i] = state[i] * momentum + value[i] * (1 - momentum);
}

/* Returns the share of the weights that decays first: the scalar behind the op's `scalars` own ones, or 0. */
LEATI_INLINE float decay_of(const leati_range_job *job, int scalars) {
    return job->attrs->update.decay ? job->in[0][scalars] : 0.0f;
}

/* Returns a weight after the decay. */
LEATI_INLINE float decayed(float p, bool decays, float decay) {
    return decays ? p - decay * p : p;
}

/* The operands that every update has. */
#define UPDATE_OPERANDS(scalars)                                                                             \
    const bool decays = job->attrs->update.decay;                                                            \
    const float decay = decay_of(job, scalars);                                                              \
    const float *restrict g = job->in[1], *restrict s = job->in[0];                                          \
    float *restrict p = job->out[0]

/* The loop of an update: once with the powers of each gradient, `plain`, and once with the powers that are an input
 * of their own.  Both are `power` in the body. */
#define UPDATE_LOOP(plain, ...)                                                                              \
    if (job->attrs->update.powers) {                                                                         \
        const float *restrict powers = job->in[2];                                                           \
        for (int64_t i = first; i < last; i++) {                                                             \
            const float power = powers[i];                                                                   \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    } else {                                                                                                 \
        for (int64_t i = first; i < last; i++) {                                                             \
            const float power = plain;                                                                       \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }

static void update_sgd(const leati_range_job *job, int64_t first, int64_t last) {
    UPDATE_OPERANDS(2);
    const float lr = s[0], momentum = s[1];
    float *restrict v = job->out[1];
    bool nesterov = job->attrs->update.nesterov;
    if (!job->attrs->update.momentum) {
        for (int64_t i = first; i < last; i++) p[i] = decayed(p[i], decays, decay) - lr * g[i];
        return;
    }
    for (int64_t i = first; i < last; i++) {
        v[i] = momentum * v[i] - lr * g[i];
        p[i] = decayed(p[i], decays, decay) + (nesterov ? momentum * v[i] - lr * g[i] : v[i]);
    }
}

static void rmsprop_centered(const leati_range_job *job, int64_t first, int64_t last) {
    UPDATE_OPERANDS(5);
    const float lr = s[0], rho = s[1], epsilon = s[2], gain = s[3], momentum = s[4];
    const bool accumulates = job->attrs->update.accumulates;
    float *restrict a = job->out[1], *restrict m = job->out[2], *restrict c = job->out[accumulates ? 3 : 2];
    UPDATE_LOOP(g[i] * g[i], a[i] = rho * a[i] + gain * power; c[i] = rho * c[i] + gain * g[i];
                float step = lr * g[i] / sqrtf(a[i] - c[i] * c[i] + epsilon);
                if (accumulates) step = m[i] = momentum * m[i] + step;
                p[i] = decayed(p[i], decays, decay) - step;)
}

static void rmsprop_as_keras3(const leati_range_job *job, int64_t first, int64_t last) {
    UPDATE_OPERANDS(5);
    const float lr = s[0], rho = s[1], epsilon = s[2], gain = s[3], momentum = s[4];
    float *restrict a = job->out[1], *restrict m = job->out[2];
    if (job->attrs->update.centered) {
        rmsprop_centered(job, first, last);
    } else if (job->attrs->update.accumulates) {
        UPDATE_LOOP(g[i] * g[i], a[i] = rho * a[i] + gain * power;
                    m[i] = momentum * m[i] + lr * g[i] / sqrtf(a[i] + epsilon);
                    p[i] = decayed(p[i], decays, decay) - m[i];)
    } else {
        UPDATE_LOOP(g[i] * g[i], a[i] = rho * a[i] + gain * power;
                    p[i] = decayed(p[i], decays, decay) - lr * g[i] / sqrtf(a[i] + epsilon);)
    }
}

static void update_rmsprop(const leati_range_job *job, int64_t first, int64_t last) {
    if (job->attrs->update.as_keras3) {
        rmsprop_as_keras3(job, first, last);
        return;
    }
    UPDATE_OPERANDS(3);
    const float lr = s[0], rho = s[1], epsilon = s[2];
    float *restrict a = job->out[1];
    UPDATE_LOOP(g[i] * g[i], a[i] = rho * a[i] + (1 - rho) * power;
                p[i] = decayed(p[i], decays, decay) - lr * g[i] / (sqrtf(a[i]) + epsilon);)
}

static void update_adagrad(const leati_range_job *job, int64_t first, int64_t last) {
    UPDATE_OPERANDS(2);
    const float lr = s[0], epsilon = s[1];
    float *restrict a = job->out[1];
    if (job->attrs->update.as_keras3) {
        UPDATE_LOOP(g[i] * g[i], a[i] += power;
                    p[i] = decayed(p[i], decays, decay) - lr * g[i] / sqrtf(a[i] + epsilon);)
        return;
    }
    UPDATE_LOOP(g[i] * g[i], a[i] += power;
                p[i] = decayed(p[i], decays, decay) - lr * g[i] / (sqrtf(a[i]) + epsilon);)
}

static void update_adadelta(const leati_range_job *job, int64_t first, int64_t last) {
    const bool as_keras3 = job->attrs->update.as_keras3;
    UPDATE_OPERANDS(as_keras3 ? 4 : 3);
    const float lr = s[0], rho = s[1], epsilon = s[2], gain = as_keras3 ? s[3] : 1 - rho;
    float *restrict a = job->out[1], *restrict d = job->out[2];
    if (job->attrs->update.powers) {
        const float *restrict powers = job->in[2];
        for (int64_t i = first; i < last; i++) {
            a[i] = rho * a[i] + gain * powers[i];
            p[i] = decayed(p[i], decays, decay) - lr * (g[i] * sqrtf(d[i] + epsilon) / sqrtf(a[i] + epsilon));
            d[i] = rho * d[i] + gain * (powers[i] * (d[i] + epsilon) / (a[i] + epsilon));
        }
        return;
    }
    for (int64_t i = first; i < last; i++) {
        a[i] = rho * a[i] + gain * (g[i] * g[i]);
        float step = g[i] * sqrtf(d[i] + epsilon) / sqrtf(a[i] + epsilon);
        p[i] = decayed(p[i], decays, decay) - lr * step;
        d[i] = rho * d[i] + gain * (step * step);
    }
}

static void adam_as_keras3(const leati_range_job *job, int64_t first, int64_t last) {
    UPDATE_OPERANDS(4);
    const float lr_t = s[0], gain_1 = s[1], gain_2 = s[2], epsilon = s[3];
    float *restrict m = job->out[1], *restrict v = job->out[2], *restrict vhat = job->out[3];
    if (!job->attrs->update.amsgrad) {
        UPDATE_LOOP(g[i] * g[i], m[i] += (g[i] - m[i]) * gain_1; v[i] += (power - v[i]) * gain_2;
                    p[i] = decayed(p[i], decays, decay) - lr_t * m[i] / (sqrtf(v[i]) + epsilon);)
        return;
    }
    UPDATE_LOOP(g[i] * g[i], m[i] += (g[i] - m[i]) * gain_1; v[i] += (power - v[i]) * gain_2;
                vhat[i] = vhat[i] > v[i] ? vhat[i] : v[i];
                p[i] = decayed(p[i], decays, decay) - lr_t * m[i] / (sqrtf(vhat[i]) + epsilon);)
}

static void adam(const leati_range_job *job, int64_t first, int64_t last) {
    if (job->attrs->update.as_keras3) {
        adam_as_keras3(job, first, last);
        return;
    }
    UPDATE_OPERANDS(4);
    const float lr_t = s[0], beta_1 = s[1], beta_2 = s[2], epsilon = s[3];
    float *restrict m = job->out[1], *restrict v = job->out[2], *restrict vhat = job->out[3];
    if (!job->attrs->update.amsgrad) {
        UPDATE_LOOP(g[i] * g[i], m[i] = beta_1 * m[i] + (1 - beta_1) * g[i];
                    v[i] = beta_2 * v[i] + (1 - beta_2) * power;
                    p[i] = decayed(p[i], decays, decay) - lr_t * m[i] / (sqrtf(v[i]) + epsilon);)
        return;
    }
    UPDATE_LOOP(g[i] * g[i], m[i] = beta_1 * m[i] + (1 - beta_1) * g[i];
                v[i] = beta_2 * v[i] + (1 - beta_2) * power; vhat[i] = vhat[i] > v[i] ? vhat[i] : v[i];
                p[i] = decayed(p[i], decays, decay) - lr_t * m[i] / (sqrtf(vhat[i]) + epsilon);)
}

/* Elements: a thread's range is a multiple of the former; as many as the latter are in L1 when they are updated. */
enum { ADAM_BLOCK = 64, ADAM_BLOCKS = 16 * ADAM_BLOCK };

/* Returns true if gradient, its powers and moments are 0 in the whole block, whose update then changes nothing. */
static bool adam_rests(const leati_range_job *job, int64_t first) {
    const bool powers = job->attrs->update.powers;
    const float *from[] = {job->out[2] + first, job->out[1] + first, job->in[1] + first,
                           powers ? job->in[2] + first : NULL};
    for (int k = 0; k < (powers ? 4 : 3); k++) {
        vi bits = (vi){0};
        int32_t any = 0;
        for (int64_t i = 0; i < ADAM_BLOCK; i += LEATI_LANES) bits |= (vi)v_load(from[k] + i);
        for (int i = 0; i < LEATI_LANES; i++) any |= bits[i];
        if (any) return false;
    }
    return true;
}

/* The rows of an embedding that no batch has had yet need neither be read nor written: most of a large table.  Their
 * update subtracts lr 0 / (0 + epsilon), which is 0 unless lr is infinite or epsilon is 0. */
static void update_adam(const leati_range_job *job, int64_t first, int64_t last) {
    const leati_attrs *attrs = job->attrs;
    const float lr = job->in[0][0], epsilon = job->in[0][3];
    const bool changes =
        attrs->update.amsgrad || attrs->update.decay || !(fabsf(lr) < INFINITY) || !(epsilon > 0);
    int64_t begin = first;
    for (int64_t at = first; !changes && at + ADAM_BLOCK <= last; at += ADAM_BLOCK) {
        const bool rests = adam_rests(job, at);
        if (!rests && at - begin < ADAM_BLOCKS) continue;
        if (begin < at) adam(job, begin, at);
        begin = rests ? at + ADAM_BLOCK : at;
    }
    if (begin < last) adam(job, begin, last);
}

static void update_adamax(const leati_range_job *job, int64_t first, int64_t last) {
    UPDATE_OPERANDS(4);
    const float lr_t = s[0], beta_1 = s[1], beta_2 = s[2], epsilon = s[3];
    float *restrict m = job->out[1], *restrict norm = job->out[2];
    if (job->attrs->update.as_keras3) {
        UPDATE_LOOP(fabsf(g[i]), float lowered = beta_2 * norm[i]; m[i] += (g[i] - m[i]) * beta_1;
                    norm[i] = lowered >= power ? lowered : power;
                    p[i] = decayed(p[i], decays, decay) - lr_t * m[i] / (norm[i] + epsilon);)
        return;
    }
    UPDATE_LOOP(fabsf(g[i]), float lowered = beta_2 * norm[i]; m[i] = beta_1 * m[i] + (1 - beta_1) * g[i];
                norm[i] = lowered >= power ? lowered : power;
                p[i] = decayed(p[i], decays, decay) - lr_t * m[i] / (norm[i] + epsilon);)
}

static void update_nadam(const leati_range_job *job, int64_t first, int64_t last) {
    UPDATE_OPERANDS(9);
    float *restrict m = job->out[1], *restrict v = job->out[2];
    float lr = s[0], beta_1 = s[1], beta_2 = s[2], epsilon = s[3], mu = s[4], mu_next = s[5];
    float schedule = 1 - s[6], schedule_next = 1 - s[7], bias_2 = 1 - s[8];
    UPDATE_LOOP(g[i] * g[i], m[i] = beta_1 * m[i] + (1 - beta_1) * g[i];
                v[i] = beta_2 * v[i] + (1 - beta_2) * power;
                float m_bar = (1 - mu) * (g[i] / schedule) + mu_next * (m[i] / schedule_next);
                p[i] = decayed(p[i], decays, decay) - lr * m_bar / (sqrtf(v[i] / bias_2) + epsilon);)
}

static void update_lion(const leati_range_job *job, int64_t first, int64_t last) {
    UPDATE_OPERANDS(3);
    const float lr = s[0], beta_1 = s[1], beta_2 = s[2];
    float *restrict m = job->out[1];
    for (int64_t i = first; i < last; i++) {
        float c = beta_1 * m[i] + (1 - beta_1) * g[i];
        float sign = c > 0 ? 1.0f : c < 0 ? -1.0f : c;
        p[i] = decayed(p[i], decays, decay) - lr * sign;
        m[i] = beta_2 * m[i] + (1 - beta_2) * g[i];
    }
}

#undef UPDATE_LOOP
#undef UPDATE_OPERANDS

#endif
