/* SPDX-License-Identifier: Apache-2.0 */
/* Vectorized functions of one number and their derivatives, for the code that is compiled once per instruction
 * set.  A function without vector code is computed lane by lane, as ref computes it. */
#ifndef LEATI_BACKENDS_NATIVE_SIMD_FUNCTION_TMPL_H
#define LEATI_BACKENDS_NATIVE_SIMD_FUNCTION_TMPL_H

#include "backends/native/simd/vector_tmpl.h"
#include "engine/op_semantics/function.h"

#define SELU_SCALE 1.0507009873554805f
#define SELU_ALPHA 1.6732632423543772f

static vf lanes_of(const leati_eltwise *f, vf x, float (*function)(const leati_eltwise *f, float x)) {
    float lanes[LEATI_LANES];
    v_store(lanes, x);
    for (int i = 0; i < LEATI_LANES; i++) lanes[i] = function(f, lanes[i]);
    return v_load(lanes);
}

LEATI_INLINE vf f_apply(const leati_eltwise *f, vf x) {
    switch (f->function) {
    case LEATI_FN_RELU: /* the sum makes +0 of -0 */
        return v_select((vi)(x >= f->c), v_min(x, v_all(f->b)), f->a * (x - f->c)) + 0.0f;
    case LEATI_FN_ELU: return v_select((vi)(x > v_all(0)), x, f->a * v_expm1_negative(v_min(x, v_all(0))));
    case LEATI_FN_SELU:
        return SELU_SCALE *
               v_select((vi)(x > v_all(0)), x, SELU_ALPHA * v_expm1_negative(v_min(x, v_all(0))));
    case LEATI_FN_SOFTPLUS: return v_softplus(x);
    case LEATI_FN_SOFTSIGN: return x / (1.0f + v_abs(x));
    case LEATI_FN_TANH: return v_tanh(x);
    case LEATI_FN_SIGMOID: return v_sigmoid(x);
    case LEATI_FN_HARD_SIGMOID: return v_max(v_min(f->a * x + f->b, v_all(1)), v_all(0));
    case LEATI_FN_EXP: return v_exp_any(x);
    case LEATI_FN_LOG: return v_log_any(x);
    case LEATI_FN_SQUARE: return x * x;
    case LEATI_FN_ABS: return v_abs(x);
    case LEATI_FN_LINEAR: return f->a * x + f->b;
    case LEATI_FN_CLIP: return v_max(v_min(x, v_all(f->b)), v_all(f->a));
    case LEATI_FN_SQRT: return v_sqrt(x);
    case LEATI_FN_POW: return f->a == -0.5f ? 1.0f / v_sqrt(x) : lanes_of(f, x, leati_eltwise_at);
    case LEATI_FN_GELU: return v_gelu(x);
    case LEATI_FN_GELU_TANH: return x * v_gelu_tanh_share(x);
    case LEATI_FN_SILU: return x / (1.0f + v_exp(-x));
    case LEATI_FN_MISH: return x * v_tanh(v_softplus(x));
    case LEATI_FN_HARD_SWISH: return x * v_max(v_min(x * (1.0f / 6) + 0.5f, v_all(1)), v_all(0));
    default: return lanes_of(f, x, leati_eltwise_at);
    }
}

/* dst[i] = f(src[i]).  Each function that is used often has a loop of its own, without a switch: the vector's own
 * constant says which function it is, because a store to dst might change what `function` points to. */
static void map_function(const leati_eltwise *function, const float *src, float *dst, int64_t count) {
    const leati_function kind = function->function;
    const float a = function->a, b = function->b, c = function->c;
#define LOOP(name)                                                                                           \
    for (int64_t i = 0; i < count; i += LEATI_LANES) {                                                       \
        const leati_eltwise f = {.function = (name), .a = a, .b = b, .c = c};                                \
        v_store_part(dst + i, f_apply(&f, v_load_part_or_one(src + i, count - i)), count - i);               \
    }
#define CASE(name)                                                                                           \
    case name: LOOP(name) return
    switch (kind) {
        CASE(LEATI_FN_TANH);
        CASE(LEATI_FN_SIGMOID);
        CASE(LEATI_FN_HARD_SIGMOID);
        CASE(LEATI_FN_LINEAR);
        CASE(LEATI_FN_CLIP);
        CASE(LEATI_FN_SQUARE);
        CASE(LEATI_FN_ELU);
        CASE(LEATI_FN_EXP);
        CASE(LEATI_FN_LOG);
        CASE(LEATI_FN_GELU);
        CASE(LEATI_FN_GELU_TANH);
        CASE(LEATI_FN_SILU);
        CASE(LEATI_FN_HARD_SWISH);
    default: LOOP(kind)
    }
#undef CASE
#undef LOOP
}

LEATI_INLINE vf f_slope_from_dst(const leati_eltwise *f, vf y) {
    const vf one = v_all(1), zero = v_all(0);
    switch (f->function) {
    case LEATI_FN_RELU:
        return v_select((vi)(y <= zero), v_all(f->a), v_select((vi)(y < v_all(f->b)), one, zero));
    case LEATI_FN_ELU: return v_select((vi)(y > zero), one, y + f->a);
    case LEATI_FN_SELU: return v_select((vi)(y > zero), v_all(SELU_SCALE), y + SELU_SCALE * SELU_ALPHA);
    case LEATI_FN_TANH: return 1.0f - y * y;
    case LEATI_FN_SIGMOID: return y * (1.0f - y);
    case LEATI_FN_HARD_SIGMOID: return v_select((vi)(y > zero) & (vi)(y < one), v_all(f->a), zero);
    case LEATI_FN_EXP: return y;
    case LEATI_FN_SQRT: return 0.5f / y;
    case LEATI_FN_LINEAR: return v_all(f->a);
    default: return lanes_of(f, y, leati_slope_from_dst);
    }
}

LEATI_INLINE vf f_slope_at(const leati_eltwise *f, vf x) {
    const vf one = v_all(1), zero = v_all(0);
    switch (f->function) {
    case LEATI_FN_RELU:
        return v_select((vi)(x > f->c), v_select((vi)(x < v_all(f->b)), one, zero), v_all(f->a));
    case LEATI_FN_SOFTPLUS: return v_sigmoid(x);
    case LEATI_FN_SOFTSIGN: return 1.0f / ((1.0f + v_abs(x)) * (1.0f + v_abs(x)));
    case LEATI_FN_HARD_SIGMOID: {
        vf y = f->a * x + f->b;
        return v_select((vi)(y >= zero) & (vi)(y <= one), v_all(f->a), zero);
    }
    case LEATI_FN_LOG: return 1.0f / x;
    case LEATI_FN_SQUARE: return x + x;
    case LEATI_FN_ABS: return v_select((vi)(x > zero), one, v_select((vi)(x < zero), v_all(-1), zero));
    case LEATI_FN_POW: return f->a == -0.5f ? -0.5f / (x * v_sqrt(x)) : lanes_of(f, x, leati_slope_at);
    case LEATI_FN_LINEAR: return v_all(f->a);
    case LEATI_FN_CLIP: return v_select((vi)(x >= f->a) & (vi)(x <= f->b), one, zero);
    case LEATI_FN_GELU: return v_gelu_slope(x);
    case LEATI_FN_GELU_TANH: {
        vf s = v_gelu_tanh_share(x);
        return s + x * s * (1.0f - s) * (x * x * (3 * 0.044715f * 1.5957691f) + 1.5957691f);
    }
    case LEATI_FN_SILU: {
        vf s = v_sigmoid(x);
        return s * (1.0f + x * (1.0f - s));
    }
    case LEATI_FN_MISH: {
        vf t = v_tanh(v_softplus(x));
        return t + x * v_sigmoid(x) * (1.0f - t * t);
    }
    case LEATI_FN_HARD_SWISH:
        return v_select((vi)(x <= v_all(-3)), zero, v_select((vi)(x < v_all(3)), x * (1.0f / 3) + 0.5f, one));
    default: return lanes_of(f, x, leati_slope_at);
    }
}

#endif
