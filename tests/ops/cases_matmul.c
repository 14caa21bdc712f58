/* SPDX-License-Identifier: Apache-2.0 */
/* MATMUL in all four layouts, with and without bias, and sizes that no vector width divides. */
#include "ops/harness.h"

#define MATMUL(title, ta, tb, count, ...)                                                                    \
    {                                                                                                        \
        .name = "matmul " title, .op = LEATI_OP_MATMUL,                                                      \
        .attrs = {.matmul = {.transpose_a = (ta), .transpose_b = (tb)}}, .input_count = (count), .inputs = { \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }

const op_case cases_matmul[] = {MATMUL("nn", false, false, 2, OP_F32(3, 4), OP_F32(4, 5)),
                                MATMUL("nt", false, true, 2, OP_F32(3, 4), OP_F32(5, 4)),
                                MATMUL("tn", true, false, 2, OP_F32(4, 3), OP_F32(4, 5)),
                                MATMUL("tt", true, true, 2, OP_F32(4, 3), OP_F32(5, 4)),
                                MATMUL("nn, bias", false, false, 3, OP_F32(3, 4), OP_F32(4, 5), OP_F32(5)),
                                MATMUL("nt, bias", false, true, 3, OP_F32(3, 4), OP_F32(5, 4), OP_F32(5)),
                                MATMUL("tn, bias", true, false, 3, OP_F32(4, 3), OP_F32(4, 5), OP_F32(5)),
                                MATMUL("absent bias", false, false, 3, OP_F32(3, 4), OP_F32(4, 5), OP_ABSENT),
                                MATMUL("one row", false, false, 3, OP_F32(1, 37), OP_F32(37, 19), OP_F32(19)),
                                MATMUL("one column", false, false, 3, OP_F32(33, 17), OP_F32(17, 1),
                                       OP_F32(1)),
                                MATMUL("odd sizes", false, false, 3, OP_F32(31, 67), OP_F32(67, 45),
                                       OP_F32(45)),
                                MATMUL("odd sizes, tn", true, false, 2, OP_F32(67, 31), OP_F32(67, 45)),
                                MATMUL("odd sizes, nt", false, true, 2, OP_F32(31, 67), OP_F32(45, 67)),
                                {0}};
