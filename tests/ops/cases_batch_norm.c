/* SPDX-License-Identifier: Apache-2.0 */
/* Batch normalisation in a graph, including the gradients with respect to its statistics; group normalisation,
 * whose moments have no gradient. */
#include <math.h>

#include "ops/harness.h"

#define NORM(title, samples_, channels_, groups_, ...)                                                       \
    {                                                                                                        \
        .name = title, .op = LEATI_OP_GROUP_NORM,                                                            \
        .attrs = {.group_norm = {samples_, 0.1f, channels_, groups_}}, .input_count = 3,                     \
        .inputs = {__VA_ARGS__}, .opaque = 6, .tolerance = 2e-5, .gradient_tolerance = 5e-3                  \
    }

static const leati_eltwise hyperbolic = {.function = LEATI_FN_TANH},
                           rectifier = {.function = LEATI_FN_RELU, .b = INFINITY};

const op_case cases_batch_norm[] = {
    {.name = "batch norm",
     .op = LEATI_OP_BATCH_NORM,
     .attrs = {.batch_norm = {0.1f}},
     .input_count = 3,
     .inputs = {OP_F32(3, 2, 2, 8), OP_F32(8), OP_F32(8)},
     .gradient_tolerance = 5e-3}, /* the function is curved: finite differences have errors of this size */
    {.name = "batch norm of rows, no gamma",
     .op = LEATI_OP_BATCH_NORM,
     .attrs = {.batch_norm = {0.1f}},
     .input_count = 3,
     .inputs = {OP_F32(12, 3), OP_ABSENT, OP_F32(3)},
     .gradient_tolerance = 5e-3},
    {.name = "batch norm of many rows",
     .op = LEATI_OP_BATCH_NORM,
     .attrs = {.batch_norm = {0.1f}},
     .input_count = 3,
     .inputs = {OP_F32(9, 9, 8, 8), OP_F32(8), OP_F32(8)},
     .gradient_tolerance = 5e-3},
    {.name = "batch norm of many rows, three channels, tanh",
     .op = LEATI_OP_BATCH_NORM,
     .attrs = {.batch_norm = {0.1f}},
     .input_count = 3,
     .inputs = {OP_F32(7, 51, 3), OP_F32(3), OP_ABSENT},
     .then = &hyperbolic,
     .gradient_tolerance = 5e-3},
    {.name = "batch norm, relu",
     .op = LEATI_OP_BATCH_NORM,
     .attrs = {.batch_norm = {0.1f}},
     .input_count = 3,
     .inputs = {OP_F32(3, 2, 2, 8), OP_F32(8), OP_F32(8)},
     .then = &rectifier,
     .bends = true},
    {.name = "batch norm of many rows, relu",
     .op = LEATI_OP_BATCH_NORM,
     .attrs = {.batch_norm = {0.1f}},
     .input_count = 3,
     .inputs = {OP_F32(9, 9, 8, 12), OP_F32(12), OP_F32(12)},
     .then = &rectifier,
     .bends = true},
    {.name = "batch norm, three channels, relu",
     .op = LEATI_OP_BATCH_NORM,
     .attrs = {.batch_norm = {0.1f}},
     .input_count = 3,
     .inputs = {OP_F32(9, 51, 3), OP_F32(3), OP_F32(3)},
     .then = &rectifier,
     .bends = true},
    {.name = "batch norm given statistics",
     .op = LEATI_OP_BATCH_NORM_APPLY,
     .attrs = {.batch_norm = {0.1f}},
     .input_count = 5,
     .inputs = {OP_F32(2, 3, 2, 8), OP_F32(8), OP_F32(8), OP_F32(8), OP_FILLED(OP_UNIFORM, 0.5, 2, 8)},
     .gradient_tolerance = 5e-3},
    {.name = "batch norm given statistics, no gamma and beta",
     .op = LEATI_OP_BATCH_NORM_APPLY,
     .attrs = {.batch_norm = {0.1f}},
     .input_count = 5,
     .inputs = {OP_F32(4, 3), OP_ABSENT, OP_ABSENT, OP_F32(3), OP_FILLED(OP_UNIFORM, 0.5, 2, 3)},
     .gradient_tolerance = 5e-3},
    NORM("layer norm", 1, 5, 1, OP_F32(6, 5), OP_F32(5), OP_F32(5)),
    NORM("layer norm of long rows, no beta", 2, 37, 1, OP_F32(2, 2, 37), OP_F32(37), OP_ABSENT),
    NORM("layer norm over two axes", 1, 12, 1, OP_F32(3, 3, 4), OP_F32(12), OP_F32(12)),
    NORM("layer norm of rows of 136", 1, 136, 1, OP_F32(5, 136), OP_F32(136), OP_F32(136)),
    NORM("layer norm of very long rows", 1, 1032, 1, OP_F32(2, 1032), OP_F32(1032), OP_F32(1032)),
    NORM("layer norm over two axes of 8 and 132", 1, 132, 1, OP_F32(2, 8, 132), OP_F32(132), OP_ABSENT),
    NORM("group norm of large groups", 1, 6, 2, OP_F32(2, 350, 6), OP_F32(6), OP_F32(6)),
    NORM("group norm", 1, 6, 3, OP_F32(2, 3, 2, 6), OP_F32(6), OP_F32(6)),
    NORM("group norm of groups of 4 channels", 1, 8, 2, OP_F32(2, 3, 2, 8), OP_F32(8), OP_F32(8)),
    NORM("group norm of large groups of 8 channels", 1, 16, 2, OP_F32(2, 190, 16), OP_F32(16), OP_ABSENT),
    NORM("group norm, many places and channels, no gamma", 1, 18, 2, OP_F32(2, 19, 18), OP_ABSENT,
         OP_F32(18)),
    NORM("instance norm", 1, 3, 3, OP_F32(2, 7, 3), OP_F32(3), OP_ABSENT),
    NORM("group norm of one channel", 1, 1, 1, OP_F32(3, 9, 1), OP_F32(1), OP_F32(1)),
    {0},
};
