/* SPDX-License-Identifier: Apache-2.0 */
/* Attention in a graph; test_attention.c has more shapes and compares the second output, which has no gradient. */
#include "ops/harness.h"

#define ATTENTION(name_, rate_, ...)                                                                         \
    {                                                                                                        \
        .name = name_, .op = LEATI_OP_ATTENTION,                                                             \
        .attrs = {.attention = {.scale = 0.4f, .rate = rate_, .stream = 5, .training = true}},               \
        .input_count = 4, .inputs = {__VA_ARGS__}, .opaque = 1u << 1, .constant = 1u << 3,                   \
        .gradient_tolerance = 2e-3                                                                           \
    }
#define MASK(...) OP_FILLED(OP_WHOLE, 0, 1, __VA_ARGS__)

const op_case cases_attention[] = {
    ATTENTION("attention", 0, OP_F32(2, 5, 3, 4), OP_F32(2, 7, 3, 4), OP_F32(2, 7, 3, 6), OP_ABSENT),
    ATTENTION("attention with a mask", 0, OP_F32(2, 5, 2, 4), OP_F32(2, 6, 2, 4), OP_F32(2, 6, 2, 4),
              MASK(2, 5, 6)),
    ATTENTION("attention with a mask of key steps", 0, OP_F32(3, 4, 1, 8), OP_F32(3, 5, 1, 8),
              OP_F32(3, 5, 1, 8), MASK(3, 1, 5)),
    ATTENTION("attention with a mask of all samples", 0, OP_F32(2, 4, 2, 3), OP_F32(2, 4, 2, 3),
              OP_F32(2, 4, 2, 5), MASK(1, 4, 4)),
    ATTENTION("attention in which no pair counts", 0, OP_F32(2, 3, 2, 4), OP_F32(2, 5, 2, 4),
              OP_F32(2, 5, 2, 4), OP_FILLED(OP_CONSTANT, 0, 0, 1, 1, 5)),
    ATTENTION("attention of groups", 0, OP_F32(2, 3, 6, 4), OP_F32(2, 5, 2, 4), OP_F32(2, 5, 2, 3),
              MASK(2, 3, 5)),
    ATTENTION("attention with dropout", 0.3f, OP_F32(2, 5, 3, 4), OP_F32(2, 7, 3, 4), OP_F32(2, 7, 3, 4),
              OP_ABSENT),
    ATTENTION("attention of groups with dropout", 0.4f, OP_F32(2, 3, 4, 4), OP_F32(2, 5, 2, 4),
              OP_F32(2, 5, 2, 4), MASK(2, 3, 5)),
    ATTENTION("attention to one step", 0, OP_F32(3, 4, 2, 5), OP_F32(3, 1, 2, 5), OP_F32(3, 1, 2, 5),
              OP_ABSENT),
    {.name = "attention for a prediction",
     .op = LEATI_OP_ATTENTION,
     .attrs = {.attention = {.scale = 0.25f}},
     .input_count = 4,
     .inputs = {OP_F32(1, 20, 2, 16), OP_F32(1, 20, 2, 16), OP_F32(1, 20, 2, 16), OP_ABSENT},
     .opaque = 1u << 1,
     .constant = 15},
    {0},
};
