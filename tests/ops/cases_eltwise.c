/* SPDX-License-Identifier: Apache-2.0 */
/* ELTWISE: every function, with every parameter that a layer sets; inputs are away from points without a
 * derivative. */
#include <math.h>

#include "ops/harness.h"

#define CASE(title, f, pa, pb, pc, how, lo, hi)                                                              \
    {                                                                                                        \
        .name = "eltwise " title, .op = LEATI_OP_ELTWISE,                                                    \
        .attrs = {.eltwise = {.function = LEATI_FN_##f, .a = (pa), .b = (pb), .c = (pc)}}, .input_count = 1, \
        .inputs = {                                                                                          \
            OP_FILLED(how, lo, hi, 3, 4, 5)                                                                  \
        }                                                                                                    \
    }

/* Up to the limits of the functions: no finite differences. */
#define FAR(title, f, pa, lo, hi)                                                                            \
    {                                                                                                        \
        .name = "eltwise far " title, .op = LEATI_OP_ELTWISE,                                                \
        .attrs = {.eltwise = {.function = LEATI_FN_##f, .a = (pa)}}, .input_count = 1, .bends = true,        \
        .inputs = {                                                                                          \
            OP_FILLED(OP_DISTINCT, lo, hi, 213)                                                              \
        }                                                                                                    \
    }

const op_case cases_eltwise[] = {CASE("relu", RELU, 0, INFINITY, 0, OP_SIGNED, 0.1, 2),
                                 CASE("relu, slope", RELU, 0.3f, INFINITY, 0, OP_SIGNED, 0.1, 2),
                                 CASE("relu, maximum", RELU, 0, 6, 0, OP_DISTINCT, -5.4, 11.6),
                                 CASE("relu, slope, maximum, threshold", RELU, 0.1f, 4, 1, OP_DISTINCT, -11.1,
                                      12.9),
                                 CASE("elu", ELU, 1, 0, 0, OP_SIGNED, 0.1, 2),
                                 CASE("elu, negative scale", ELU, -0.5f, 0, 0, OP_SIGNED, 0.1, 2),
                                 CASE("selu", SELU, 0, 0, 0, OP_SIGNED, 0.1, 2),
                                 CASE("softplus", SOFTPLUS, 0, 0, 0, OP_UNIFORM, -4, 4),
                                 CASE("softsign", SOFTSIGN, 0, 0, 0, OP_SIGNED, 0.1, 2),
                                 CASE("tanh", TANH, 0, 0, 0, OP_UNIFORM, -2, 2),
                                 CASE("sigmoid", SIGMOID, 0, 0, 0, OP_UNIFORM, -4, 4),
                                 CASE("hard_sigmoid", HARD_SIGMOID, 0.2f, 0.5f, 0, OP_DISTINCT, -5.9, 6.1),
                                 CASE("exp", EXP, 0, 0, 0, OP_UNIFORM, -1, 1),
                                 CASE("log", LOG, 0, 0, 0, OP_UNIFORM, 0.5, 3),
                                 CASE("sqrt", SQRT, 0, 0, 0, OP_UNIFORM, 0.5, 3),
                                 CASE("square", SQUARE, 0, 0, 0, OP_UNIFORM, -2, 2),
                                 CASE("abs", ABS, 0, 0, 0, OP_SIGNED, 0.1, 2),
                                 CASE("linear", LINEAR, -1.5f, 0.25f, 0, OP_UNIFORM, -2, 2),
                                 CASE("clip", CLIP, -0.5f, 1, 0, OP_DISTINCT, -8.9, 9.1),
                                 CASE("pow", POW, -0.5f, 0, 0, OP_UNIFORM, 0.7, 3),
                                 CASE("gelu", GELU, 0, 0, 0, OP_UNIFORM, -4, 4),
                                 CASE("silu", SILU, 0, 0, 0, OP_UNIFORM, -4, 4),
                                 CASE("mish", MISH, 0, 0, 0, OP_UNIFORM, -4, 4),
                                 CASE("hard_swish", HARD_SWISH, 0, 0, 0, OP_DISTINCT, -5.8, 6.2),
                                 CASE("sin", SIN, 0, 0, 0, OP_UNIFORM, -4, 4),
                                 CASE("cos", COS, 0, 0, 0, OP_UNIFORM, -4, 4),
                                 CASE("tan", TAN, 0, 0, 0, OP_UNIFORM, -1.2, 1.2),
                                 CASE("asin", ASIN, 0, 0, 0, OP_UNIFORM, -0.7, 0.7),
                                 CASE("acos", ACOS, 0, 0, 0, OP_UNIFORM, -0.7, 0.7),
                                 CASE("atan", ATAN, 0, 0, 0, OP_UNIFORM, -3, 3),
                                 CASE("sinh", SINH, 0, 0, 0, OP_UNIFORM, -2, 2),
                                 CASE("cosh", COSH, 0, 0, 0, OP_UNIFORM, -2, 2),
                                 CASE("asinh", ASINH, 0, 0, 0, OP_UNIFORM, -3, 3),
                                 CASE("acosh", ACOSH, 0, 0, 0, OP_UNIFORM, 1.2, 4),
                                 CASE("atanh", ATANH, 0, 0, 0, OP_UNIFORM, -0.8, 0.8),
                                 CASE("erf", ERF, 0, 0, 0, OP_UNIFORM, -2, 2),
                                 CASE("log1p", LOG1P, 0, 0, 0, OP_UNIFORM, -0.5, 3),
                                 CASE("expm1", EXPM1, 0, 0, 0, OP_UNIFORM, -1, 1),
                                 FAR("exp", EXP, 0, -115, 95),
                                 FAR("log", LOG, 0, -0.5, 1),
                                 FAR("log, large", LOG, 0, -1, 3e38),
                                 FAR("log, least", LOG, 0, 1.2e-38, 3e-38),
                                 FAR("sigmoid", SIGMOID, 0, -120, 120),
                                 FAR("softplus", SOFTPLUS, 0, -120, 120),
                                 FAR("silu", SILU, 0, -120, 12),
                                 CASE("gelu_tanh", GELU_TANH, 0, 0, 0, OP_UNIFORM, -4, 4),
                                 FAR("gelu", GELU, 0, -20, 20),
                                 FAR("gelu_tanh", GELU_TANH, 0, -20, 20),
                                 {.name = "eltwise of nothing",
                                  .op = LEATI_OP_ELTWISE,
                                  .attrs = {.eltwise = {.function = LEATI_FN_TANH}},
                                  .input_count = 1,
                                  .inputs = {OP_F32(0, 3)}},
                                 {.name = "eltwise of a scalar",
                                  .op = LEATI_OP_ELTWISE,
                                  .attrs = {.eltwise = {.function = LEATI_FN_TANH}},
                                  .input_count = 1,
                                  .inputs = {OP_SCALAR}},
                                 {0}};
