/* SPDX-License-Identifier: Apache-2.0 */
/* MATMUL with all four combinations of transposed operands, with and without bias, and sizes that are no multiple
 * of a vector. */
#include <math.h>

#include "ops/harness.h"

#define MATMUL(title, ta, tb, count, ...)                                                                    \
    {                                                                                                        \
        .name = "matmul " title, .op = LEATI_OP_MATMUL,                                                      \
        .attrs = {.matmul = {.transpose_a = (ta), .transpose_b = (tb)}}, .input_count = (count), .inputs = { \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }

#define FUSED(title, corners, f, pa, pb)                                                                     \
    {                                                                                                        \
        .name = "matmul, then " title, .op = LEATI_OP_MATMUL, .input_count = 3,                              \
        .inputs = {OP_F32(5, 7), OP_F32(7, 19), OP_F32(19)},                                                 \
        .then = &(const leati_eltwise){.function = (f), .a = (pa), .b = (pb)}, .bends = (corners)            \
    }

const op_case cases_matmul[] = {
    MATMUL("nn", false, false, 2, OP_F32(3, 4), OP_F32(4, 5)),
    MATMUL("nt", false, true, 2, OP_F32(3, 4), OP_F32(5, 4)),
    MATMUL("tn", true, false, 2, OP_F32(4, 3), OP_F32(4, 5)),
    MATMUL("tt", true, true, 2, OP_F32(4, 3), OP_F32(5, 4)),
    MATMUL("nn, bias", false, false, 3, OP_F32(3, 4), OP_F32(4, 5), OP_F32(5)),
    MATMUL("nt, bias", false, true, 3, OP_F32(3, 4), OP_F32(5, 4), OP_F32(5)),
    MATMUL("tn, bias", true, false, 3, OP_F32(4, 3), OP_F32(4, 5), OP_F32(5)),
    MATMUL("absent bias", false, false, 3, OP_F32(3, 4), OP_F32(4, 5), OP_ABSENT),
    MATMUL("one row", false, false, 3, OP_F32(1, 37), OP_F32(37, 19), OP_F32(19)),
    MATMUL("one row, 1 column", false, false, 3, OP_F32(1, 37), OP_F32(37, 1), OP_F32(1)),
    MATMUL("one row, 2 columns", false, false, 3, OP_F32(1, 32), OP_F32(32, 2), OP_F32(2)),
    MATMUL("one row, 4 columns", false, false, 2, OP_F32(1, 51), OP_F32(51, 4)),
    MATMUL("one row, 8 columns", false, false, 3, OP_F32(1, 37), OP_F32(37, 8), OP_F32(8)),
    MATMUL("one column", false, false, 3, OP_F32(33, 17), OP_F32(17, 1), OP_F32(1)),
    MATMUL("odd sizes", false, false, 3, OP_F32(31, 67), OP_F32(67, 45), OP_F32(45)),
    MATMUL("odd sizes, tn", true, false, 2, OP_F32(67, 31), OP_F32(67, 45)),
    MATMUL("odd sizes, nt", false, true, 2, OP_F32(31, 67), OP_F32(45, 67)),
    MATMUL("of several", false, false, 3, OP_F32(3, 2, 4), OP_F32(3, 4, 5), OP_F32(5)),
    MATMUL("of several, nt", false, true, 2, OP_F32(2, 3, 4), OP_F32(2, 9, 4)),
    MATMUL("of several, tn", true, false, 2, OP_F32(2, 2, 4, 3), OP_F32(2, 2, 4, 8)),
    MATMUL("of several, tt", true, true, 2, OP_F32(1, 4, 3), OP_F32(1, 5, 4)),
    MATMUL("of several rows", false, false, 2, OP_F32(5, 1, 6), OP_F32(5, 6, 7)),
    MATMUL("few rows of several", false, false, 2, OP_F32(2, 3, 40), OP_F32(2, 40, 36)),
    MATMUL("few rows, nt", false, true, 3, OP_F32(3, 132), OP_F32(36, 132), OP_F32(36)),
    MATMUL("few columns of several", false, false, 3, OP_F32(2, 37, 40), OP_F32(2, 40, 5), OP_F32(5)),
    MATMUL("few columns, tn", true, false, 2, OP_F32(131, 12), OP_F32(131, 8)),
    MATMUL("a long sum, tn", true, false, 2, OP_F32(1100, 9), OP_F32(1100, 11)),
    /* Wide tiles, on a device with few multiprocessors, of every layout and with a cut inner axis. */
    MATMUL("wide tiles", false, false, 3, OP_F32(70, 276), OP_F32(276, 68), OP_F32(68)),
    MATMUL("wide tiles, nt", false, true, 2, OP_F32(70, 132), OP_F32(130, 132)),
    MATMUL("wide tiles, tn", true, false, 2, OP_F32(68, 130), OP_F32(68, 132)),
    MATMUL("wide tiles, tt", true, true, 2, OP_F32(65, 67), OP_F32(71, 65)),
    MATMUL("wide tiles, cut", false, false, 3, OP_F32(70, 260), OP_F32(260, 63), OP_F32(63)),
    MATMUL("narrow tiles, cut", true, false, 2, OP_F32(1030, 12), OP_F32(1030, 12)),
    /* Large enough for a library, on a device with few multiprocessors. */
    MATMUL("large", false, false, 3, OP_F32(96, 80), OP_F32(80, 80), OP_F32(80)),
    MATMUL("large, of several, tt", true, true, 2, OP_F32(2, 68, 71), OP_F32(2, 59, 68)),
    /* Followed by a function, which is fused where the backend can. */
    FUSED("relu", true, LEATI_FN_RELU, 0, INFINITY),
    FUSED("elu", true, LEATI_FN_ELU, 0.5f, 0),
    FUSED("selu", true, LEATI_FN_SELU, 0, 0),
    FUSED("tanh", false, LEATI_FN_TANH, 0, 0),
    FUSED("sigmoid", false, LEATI_FN_SIGMOID, 0, 0),
    FUSED("exp", false, LEATI_FN_EXP, 0, 0),
    /* Large enough for a library on every device. */
    {.name = "matmul, very large, then relu",
     .op = LEATI_OP_MATMUL,
     .input_count = 3,
     .inputs = {OP_F32(280, 260), OP_F32(260, 256), OP_F32(256)},
     .then = &(const leati_eltwise){.function = LEATI_FN_RELU, .b = INFINITY},
     .bends = true},
    {.name = "matmul of few rows, then tanh",
     .op = LEATI_OP_MATMUL,
     .input_count = 3,
     .inputs = {OP_F32(7, 5), OP_F32(5, 32), OP_F32(32)},
     .then = &(const leati_eltwise){.function = LEATI_FN_TANH}},
    {.name = "matmul of one row and 4 columns, then tanh",
     .op = LEATI_OP_MATMUL,
     .input_count = 3,
     .inputs = {OP_F32(1, 35), OP_F32(35, 4), OP_F32(4)},
     .then = &(const leati_eltwise){.function = LEATI_FN_TANH}},
    {0}};
