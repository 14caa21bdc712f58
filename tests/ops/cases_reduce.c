/* SPDX-License-Identifier: Apache-2.0 */
/* REDUCE over first, last, inner, all and no axes; BROADCAST. */
#include "ops/harness.h"

#define REDUCE(title, what, mask, keep, ...)                                                                 \
    {                                                                                                        \
        .name = "reduce " title, .op = LEATI_OP_REDUCE,                                                      \
        .attrs = {.reduce = {.kind = LEATI_REDUCE_##what, .axes = (mask), .keep_dims = (keep)}},             \
        .input_count = 1, .inputs = {                                                                        \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }

#define BROADCAST(title, r, dims_list, ...)                                                                  \
    {                                                                                                        \
        .name = "broadcast " title, .op = LEATI_OP_BROADCAST,                                                \
        .attrs = {.shape = {.rank = (r), .dims = dims_list}}, .input_count = 1, .inputs = {                  \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }
#define DIMS(...)                                                                                            \
    { __VA_ARGS__ }

#define APART(...) OP_FILLED(OP_DISTINCT, -9, 9, __VA_ARGS__)

const op_case cases_reduce[] = {
    REDUCE("sum, first axis", SUM, 1, false, OP_F32(6, 5)),
    REDUCE("sum, last axis", SUM, 2, false, OP_F32(6, 5)),
    REDUCE("sum, inner axes kept", SUM, 6, true, OP_F32(2, 3, 4, 5)),
    REDUCE("sum, all", SUM, 7, false, OP_F32(2, 3, 4)),
    REDUCE("sum, no axis", SUM, 0, false, OP_F32(2, 3)),
    REDUCE("mean, all but the last", MEAN, 7, false, OP_F32(2, 3, 2, 4)),
    REDUCE("mean, last kept", MEAN, 4, true, OP_F32(2, 3, 4)),
    REDUCE("max, last", MAX, 2, false, APART(4, 5)),
    REDUCE("max, all", MAX, 3, false, APART(4, 5)),
    REDUCE("min, first kept", MIN, 1, true, APART(4, 5)),
    REDUCE("sum, axes apart", SUM, 5, false, OP_F32(3, 4, 5, 2)),
    REDUCE("mean, axes apart, last kept", MEAN, 10, true, OP_F32(3, 4, 2, 3, 2)),
    REDUCE("mean, axes apart, last reduced", MEAN, 21, false, OP_F32(2, 3, 2, 2, 9)),
    REDUCE("sum, long rows", SUM, 2, false, OP_F32(3, 45)),
    REDUCE("sum, three columns of many rows", SUM, 1, false, OP_F32(53, 3)),
    REDUCE("sum, many columns", SUM, 2, false, OP_F32(2, 19, 37)),
    REDUCE("max, axes apart", MAX, 5, true, APART(3, 4, 5, 2)),
    REDUCE("max, long rows", MAX, 2, false, OP_FILLED(OP_DISTINCT, -40, 40, 3, 45)),
    REDUCE("max, three columns of many rows", MAX, 1, false, OP_FILLED(OP_DISTINCT, -40, 40, 53, 3)),
    REDUCE("min, many columns", MIN, 2, false, OP_FILLED(OP_DISTINCT, -99, 99, 2, 19, 37)),
    REDUCE("min, long rows", MIN, 2, true, OP_FILLED(OP_DISTINCT, -40, 40, 3, 45)),
    REDUCE("sum, rows of 48", SUM, 2, false, OP_F32(3, 48)),
    REDUCE("mean, rows of 300", MEAN, 2, false, OP_F32(2, 300)),
    REDUCE("sum, all of many", SUM, 7, false, OP_F32(16, 9, 10)),
    REDUCE("max, all of many", MAX, 3, false, OP_FILLED(OP_DISTINCT, -999, 999, 37, 41)),
    REDUCE("mean, four columns of very many rows", MEAN, 1, false, OP_F32(1100, 4)),
    REDUCE("min, three columns of very many rows", MIN, 1, false, OP_FILLED(OP_DISTINCT, -999, 999, 350, 3)),
    REDUCE("sum, many axes apart, last reduced", SUM, 5, false, OP_F32(3, 2, 350)),
    REDUCE("sum, many places of each sample", SUM, 2, false, OP_F32(2, 40, 36)),
    BROADCAST("a row", 2, DIMS(4, 5), OP_F32(5)),
    BROADCAST("a column", 3, DIMS(2, 4, 5), OP_F32(4, 1)),
    BROADCAST("a scalar", 2, DIMS(3, 2), OP_SCALAR),
    BROADCAST("to itself", 2, DIMS(3, 2), OP_F32(3, 2)),
    BROADCAST("whole numbers", 2, DIMS(3, 2), OP_TYPED(LEAT_I64, 0, 9, 1, 2)),
    {0}};
