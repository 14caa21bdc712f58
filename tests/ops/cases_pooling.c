/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling in a graph; test_compute.c has more shapes, and ties. */
#include "ops/harness.h"

#define W2(k, s, before, after)                                                                              \
    .window = {.spatial = 2,                                                                                 \
               .kernel = {k, k},                                                                             \
               .stride = {s, s},                                                                             \
               .dilation = {1, 1},                                                                           \
               .pad_before = {before, before},                                                               \
               .pad_after = {after, after}}

const op_case cases_pooling[] = {
    {.name = "max pooling 2x2",
     .op = LEATI_OP_POOLING,
     .attrs = {.pooling = {W2(2, 2, 0, 0), .kind = LEATI_POOL_MAX}},
     .input_count = 1,
     .inputs = {OP_FILLED(OP_DISTINCT, -20, 20, 2, 4, 5, 3)},
     .opaque = 2},
    {.name = "max pooling 3x3 same, overlapping",
     .op = LEATI_OP_POOLING,
     .attrs = {.pooling = {W2(3, 2, 0, 1), .kind = LEATI_POOL_MAX}},
     .input_count = 1,
     .inputs = {OP_FILLED(OP_DISTINCT, -20, 20, 1, 6, 6, 4)},
     .opaque = 2},
    {.name = "max pooling 3x3, padded, 8 channels",
     .op = LEATI_OP_POOLING,
     .attrs = {.pooling = {W2(3, 2, 1, 1), .kind = LEATI_POOL_MAX}},
     .input_count = 1,
     .inputs = {OP_FILLED(OP_DISTINCT, -20, 20, 2, 5, 6, 8)},
     .opaque = 2},
    {.name = "average pooling 2x2",
     .op = LEATI_OP_POOLING,
     .attrs = {.pooling = {W2(2, 2, 0, 0), .kind = LEATI_POOL_AVERAGE}},
     .input_count = 1,
     .inputs = {OP_F32(2, 4, 4, 3)},
     .opaque = 2},
    {.name = "average pooling 3x3 same",
     .op = LEATI_OP_POOLING,
     .attrs = {.pooling = {W2(3, 1, 1, 1), .kind = LEATI_POOL_AVERAGE}},
     .input_count = 1,
     .inputs = {OP_F32(1, 4, 5, 8)},
     .opaque = 2},
    {0},
};
