/* SPDX-License-Identifier: Apache-2.0 */
/* BINARY: every kind, and every way to broadcast.  The operands of MAX and MIN are never nearly equal. */
#include "ops/harness.h"

#define BINARY(title, what, ...)                                                                             \
    {                                                                                                        \
        .name = "binary " title, .op = LEATI_OP_BINARY, .attrs = {.binary = {LEATI_##what}},                 \
        .input_count = 2, .inputs = {                                                                        \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }

#define APART(...)    OP_FILLED(OP_DISTINCT, -9, 9, __VA_ARGS__)
#define NEAR_ONE(...) OP_FILLED(OP_SIGNED, 0.5, 2, __VA_ARGS__)

const op_case cases_binary[] = {
    BINARY("add", ADD, OP_F32(4, 5), OP_F32(4, 5)),
    BINARY("add, bias", ADD, OP_F32(4, 5), OP_F32(5)),
    BINARY("add, both broadcast", ADD, OP_F32(4, 1, 3), OP_F32(5, 1)),
    BINARY("add, scalar first", ADD, OP_SCALAR, OP_F32(2, 3)),
    BINARY("sub", SUB, OP_F32(4, 5), OP_F32(4, 1)),
    BINARY("sub, left broadcast", SUB, OP_F32(5), OP_F32(4, 5)),
    BINARY("mul", MUL, OP_F32(3, 4), OP_F32(3, 4)),
    BINARY("mul, channels", MUL, OP_F32(2, 3, 4, 5), OP_F32(2, 1, 1, 5)),
    BINARY("mul, axes apart", MUL, OP_F32(2, 3, 1, 2, 1, 3), OP_F32(1, 3, 4, 1, 2, 3)),
    BINARY("add, a short row to many", ADD, OP_F32(23, 3), OP_F32(3)),
    BINARY("sub, many from a short row", SUB, OP_F32(3), OP_F32(23, 3)),
    BINARY("add, a row of 8", ADD, OP_F32(5, 8), OP_F32(8)),
    BINARY("mul, columns of 8", MUL, OP_F32(5, 8), OP_F32(5, 1)),
    BINARY("mul, rows apart", MUL, OP_F32(2, 3, 8), OP_F32(2, 1, 8)),
    BINARY("add, columns apart", ADD, OP_F32(2, 3, 8), OP_F32(3, 1)),
    BINARY("sub, large", SUB, OP_F32(43, 101), OP_F32(43, 101)),
    BINARY("add, nothing", ADD, OP_F32(0, 3), OP_F32(3)),
    BINARY("mul, ones in the way", MUL, OP_F32(1, 3, 1), OP_F32(2, 1, 4)),
    BINARY("div", DIV, OP_F32(3, 4), NEAR_ONE(3, 4)),
    BINARY("div, scalar", DIV, OP_F32(3, 4), OP_FILLED(OP_CONSTANT, 1.5, 0, 1)),
    BINARY("max", MAX, APART(5, 4), OP_FILLED(OP_DISTINCT, -8.55, 9.45, 5, 4)),
    BINARY("max, broadcast", MAX, APART(5, 4), OP_FILLED(OP_CONSTANT, 0.11, 0, 1)),
    BINARY("min", MIN, APART(5, 4), OP_FILLED(OP_DISTINCT, -8.55, 9.45, 5, 4)),
    BINARY("equal, i32", EQUAL, OP_TYPED(LEAT_I32, 0, 2, 6, 5), OP_TYPED(LEAT_I32, 0, 2, 5)),
    BINARY("equal, bool", EQUAL, OP_TYPED(LEAT_BOOL, 0, 2, 6, 5), OP_TYPED(LEAT_BOOL, 0, 2, 5)),
    BINARY("equal, i8", EQUAL, OP_TYPED(LEAT_I8, -1, 2, 6, 5), OP_TYPED(LEAT_I8, -1, 2, 5)),
    BINARY("equal, u32", EQUAL, OP_TYPED(LEAT_U32, 0, 2, 6, 5), OP_TYPED(LEAT_U32, 0, 2, 5)),
    BINARY("equal, u64", EQUAL, OP_TYPED(LEAT_U64, 0, 2, 6, 5), OP_TYPED(LEAT_U64, 0, 2, 5)),
    BINARY("equal, f16", EQUAL, OP_TYPED(LEAT_F16, -2, 2, 6, 5), OP_TYPED(LEAT_F16, -2, 2, 5)),
    BINARY("equal, i64", EQUAL, OP_TYPED(LEAT_I64, 0, 2, 6, 5), OP_TYPED(LEAT_I64, 0, 2, 6, 5)),
    BINARY("greater, u8", GREATER, OP_TYPED(LEAT_U8, 0, 3, 6, 5), OP_TYPED(LEAT_U8, 0, 3, 6, 1)),
    BINARY("greater_equal, f64", GREATER_EQUAL, OP_TYPED(LEAT_F64, 0, 3, 7), OP_TYPED(LEAT_F64, 0, 3, 7)),
    {.name = "binary equal, f32",
     .op = LEATI_OP_BINARY,
     .attrs = {.binary = {LEATI_EQUAL}},
     .input_count = 2,
     .inputs = {OP_TYPED(LEAT_F32, 0, 2, 6, 5), OP_TYPED(LEAT_F32, 0, 2, 6, 5)},
     .constant = 3},
    {.name = "binary greater, f32",
     .op = LEATI_OP_BINARY,
     .attrs = {.binary = {LEATI_GREATER}},
     .input_count = 2,
     .inputs = {OP_TYPED(LEAT_F32, 0, 2, 6, 5), OP_TYPED(LEAT_F32, 0, 2, 5)},
     .constant = 3},
    {.name = "binary greater_equal, f32",
     .op = LEATI_OP_BINARY,
     .attrs = {.binary = {LEATI_GREATER_EQUAL}},
     .input_count = 2,
     .inputs = {OP_TYPED(LEAT_F32, 0, 2, 6, 5), OP_TYPED(LEAT_F32, 0, 2, 5)},
     .constant = 3},
    {0}};
