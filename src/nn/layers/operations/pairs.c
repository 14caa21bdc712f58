/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of keras.ops of two numbers that other ops cannot compose exactly: powers and remainders, which are calls
 * of C's functions, and logarithms of sums.  Room: nn. */
#include <math.h>

#include "base/error.h"
#include "engine/graph/callee.h"
#include "nn/layers/operations/operations.h"

/* The largest finite number of bfloat16, to which a policy may round. */
#define LARGEST 0x1.fep127f

/* ---- Calls of C's functions ---- */

/* A function of two numbers and its derivatives, from y = value(a, b). */
typedef struct pair_callee {
    leati_callee callee;
    float (*value)(float a, float b);
    float (*slope_a)(float a, float b, float y);
    float (*slope_b)(float a, float b, float y);
} pair_callee;

static leat_status forward(const leati_callee *callee, const leati_callee_run *run, leat_error *err) {
    const pair_callee *pair = (const pair_callee *)callee;
    const float *a = run->args[0], *b = run->args[1];
    float *y = run->results[0];
    const int64_t count = leati_desc_count(&run->inputs[0]);
    (void)err;
    for (int64_t i = 0; i < count; ++i) y[i] = pair->value(a[i], b[i]);
    return LEAT_OK;
}

static leat_status backward(const leati_callee *callee, const leati_callee_run *run, leat_error *err) {
    const pair_callee *pair = (const pair_callee *)callee;
    const float *a = run->args[0], *b = run->args[1], *y = run->results[0], *dy = run->diff_results[0];
    float *da = run->diff_args[0], *db = run->diff_args[1];
    const int64_t count = leati_desc_count(&run->inputs[0]);
    (void)err;
    for (int64_t i = 0; i < count; ++i) {
        if (da) da[i] = dy[i] * pair->slope_a(a[i], b[i], y[i]);
        if (db) db[i] = dy[i] * pair->slope_b(a[i], b[i], y[i]);
    }
    return LEAT_OK;
}

/* Calls a function of two tensors, which are broadcast to one shape. */
static leati_value call_pair(leati_graph *g, const pair_callee *pair, leati_value a, leati_value b) {
    const leati_desc like = *leati_graph_desc(g, leati_add(g, a, b)); /* dead: only its shape is used */
    leati_value operands[] = {a, b}, y = LEATI_INVALID;
    for (int i = 0; i < 2; ++i)
        if (!leati_desc_same_shape(leati_graph_desc(g, operands[i]), &like))
            operands[i] = leati_broadcast(g, operands[i], like.rank, like.shape);
    leati_graph_call(g, &pair->callee, false, 0, 2, operands, &y);
    return y;
}

#define CALLEE(name)                                                                                         \
    {                                                                                                        \
        .output_count = 1, .infer = leati_callee_infer_like, .forward = forward, .backward = backward,       \
        .onnx_op = (name)                                                                                    \
    }

/* ---- Powers ---- */

static float power_slope_a(float a, float b, float y) {
    (void)y;
    return b == 0 ? 0 : b * powf(a, b - 1);
}

/* As in TensorFlow, 0 where the base has no logarithm. */
static float power_slope_b(float a, float b, float y) {
    (void)b;
    return a > 0 ? y * logf(a) : 0;
}

static const pair_callee power = {CALLEE("Pow"), powf, power_slope_a, power_slope_b};

static void lower_power(leati_operands *o) {
    double number;
    leati_graph *g = o->g;
    if (leati_operand_number(o, "x2", &number)) {
        leati_eltwise f = {.function = number == 2 ? LEATI_FN_SQUARE : LEATI_FN_POW, .a = (float)number};
        o->outputs[0] = leati_eltwise_of(g, leati_operand(o, "x1"), f);
    } else if (leati_operand_number(o, "x1", &number) && number > 0) {
        leati_value exponent = leati_linear(g, leati_operand(o, "x2"), (float)log(number), 0);
        o->outputs[0] = leati_function_of(g, exponent, LEATI_FN_EXP);
    } else {
        o->outputs[0] = call_pair(g, &power, leati_operand(o, "x1"), leati_operand(o, "x2"));
    }
}

/* The exponents of Keras are integers. */
static float scaled(float a, float b) {
    return ldexpf(a, (int)fminf(fmaxf(b, -1024), 1024));
}

static float scaled_slope_a(float a, float b, float y) {
    (void)a, (void)y;
    return scaled(1, b);
}

static float no_slope(float a, float b, float y) {
    (void)a, (void)b, (void)y;
    return 0;
}

static const pair_callee by_powers_of_two = {CALLEE(NULL), scaled, scaled_slope_a, no_slope};

static void lower_ldexp(leati_operands *o) {
    o->outputs[0] = call_pair(o->g, &by_powers_of_two, leati_operand(o, "x1"), leati_operand(o, "x2"));
}

/* ---- Remainders ---- */

static float remainder_slope_a(float a, float b, float y) {
    (void)a, (void)b, (void)y;
    return 1;
}

static float remainder_slope_b(float a, float b, float y) {
    (void)y;
    return -truncf(a / b);
}

static const pair_callee remainder_of = {CALLEE("Mod"), fmodf, remainder_slope_a, remainder_slope_b};

enum { OF_DIVIDEND, OF_DIVISOR };

/* Computes the remainder of a division, with the sign of the dividend, or of the divisor, as Python computes it. */
static void lower_remainder(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value a = leati_operand(o, "x1"), b = leati_operand(o, "x2");
    leati_value rest = call_pair(g, &remainder_of, a, b);
    if (o->operation->detail == OF_DIVISOR) {
        leati_value signs = leati_mul(g, leati_operation_sign(g, rest), leati_operation_sign(g, b));
        leati_value differ = leati_binary_of(g, LEATI_GREATER, leati_scalar(g, 0), signs);
        rest = leati_add(g, rest, leati_mul(g, differ, leati_clip(g, b, -LARGEST, LARGEST)));
    }
    o->outputs[0] = rest;
}

/* ---- Logarithms of sums ---- */

enum { NATURAL, BINARY };

/* log(e^a + e^b) = max(a, b) + log(1 + e^-|a - b|), or the same with base 2.  The difference is that of finite numbers,
 * because that of two infinite ones is NaN. */
static void lower_log_of_sum(leati_operands *o) {
    leati_graph *g = o->g;
    const float unit = o->operation->detail == BINARY ? 0.69314718055994531f : 1;
    leati_value a = leati_operand(o, "x1"), b = leati_operand(o, "x2");
    leati_value most = leati_binary_of(g, LEATI_MAX, a, b);
    leati_value distance =
        leati_sub(g, leati_clip(g, a, -LARGEST, LARGEST), leati_clip(g, b, -LARGEST, LARGEST));
    distance = leati_linear(g, leati_function_of(g, distance, LEATI_FN_ABS), -unit, 0);
    leati_value rest = leati_function_of(g, distance, LEATI_FN_SOFTPLUS);
    o->outputs[0] = leati_add(g, most, leati_linear(g, rest, 1 / unit, 0));
}

#define NUMPY "ops.numpy"

const leati_operation leati_pair_operations[] = {
    {"Power", NUMPY, "x1 x2", lower_power, 0},
    {"Ldexp", NUMPY, "x1 x2", lower_ldexp, 0},
    {"Mod", NUMPY, "x1 x2", lower_remainder, OF_DIVISOR},
    {"Fmod", NUMPY, "x1 x2", lower_remainder, OF_DIVIDEND},
    {"Logaddexp", NUMPY, "x1 x2", lower_log_of_sum, NATURAL},
    {"Logaddexp2", NUMPY, "x1 x2", lower_log_of_sum, BINARY},
    {.name = NULL},
};
