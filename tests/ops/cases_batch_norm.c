/* SPDX-License-Identifier: Apache-2.0 */
/* Batch normalisation through the graph, the gradients by its statistics too. */
#include "ops/harness.h"

const op_case cases_batch_norm[] = {
    {.name = "batch norm",
     .op = LEATI_OP_BATCH_NORM,
     .attrs = {.batch_norm = {0.1f}},
     .input_count = 3,
     .inputs = {OP_F32(3, 2, 2, 8), OP_F32(8), OP_F32(8)},
     .gradient_tolerance = 5e-3}, /* curved: differences over 2 steps are off by as much */
    {.name = "batch norm of rows, no gamma",
     .op = LEATI_OP_BATCH_NORM,
     .attrs = {.batch_norm = {0.1f}},
     .input_count = 3,
     .inputs = {OP_F32(12, 3), OP_ABSENT, OP_F32(3)},
     .gradient_tolerance = 5e-3},
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
    {0},
};
