/* SPDX-License-Identifier: Apache-2.0 */
/* SOFTMAX along every axis, its logarithm, and SOFTMAX_XENT, whose second output has no gradient: it is opaque
 * here, and tested by the gradient with respect to the logits. */
#include "ops/harness.h"

#define SOFTMAX(title, along, logarithm, ...)                                                                \
    {                                                                                                        \
        .name = "softmax " title, .op = LEATI_OP_SOFTMAX,                                                    \
        .attrs = {.softmax = {.axis = (along), .log = (logarithm)}}, .input_count = 1, .inputs = {           \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }

#define CLIPPED_XENT(title, which, tolerance, labels, ...)                                                   \
    {                                                                                                        \
        .name = "softmax_xent, " title, .op = LEATI_OP_SOFTMAX_XENT, .attrs = {.xent = {which}},             \
        .input_count = 2, .inputs = {__VA_ARGS__, labels}, .opaque = 2, .gradient_tolerance = tolerance      \
    }
/* Logits of which some have probabilities below the limit. */
#define FAR(...)  OP_FILLED(OP_DISTINCT, -30, 30, __VA_ARGS__)
#define ONE(...)  OP_FILLED(OP_ONE_HOT, 0, 0, __VA_ARGS__)
#define SOME(...) OP_FILLED(OP_UNIFORM, 0, 1, __VA_ARGS__)

#define WIDE(...) OP_FILLED(OP_UNIFORM, -3, 3, __VA_ARGS__)

const op_case cases_softmax[] = {
    SOFTMAX("last axis", 1, false, WIDE(4, 5)),
    SOFTMAX("first axis", 0, false, WIDE(4, 5)),
    SOFTMAX("inner axis", 1, false, WIDE(2, 4, 3)),
    SOFTMAX("one class", 1, false, WIDE(3, 1)),
    SOFTMAX("log, last axis", 1, true, WIDE(4, 5)),
    SOFTMAX("log, inner axis", 1, true, WIDE(2, 4, 3)),
    SOFTMAX("far apart", 1, false, OP_FILLED(OP_DISTINCT, -90, 90, 3, 3)),
    SOFTMAX("long rows", 1, false, WIDE(3, 37)),
    SOFTMAX("log, long rows", 1, true, WIDE(2, 37)),
    SOFTMAX("many columns", 1, false, WIDE(2, 3, 19)),
    SOFTMAX("log, many columns", 0, true, WIDE(3, 19)),
    SOFTMAX("very long rows", 1, false, WIDE(2, 1100)),
    SOFTMAX("rows of 8200", 1, false, WIDE(2, 8200)),
    SOFTMAX("log, very long rows", 1, true, WIDE(2, 1100)),
    {.name = "softmax_xent of very long rows",
     .op = LEATI_OP_SOFTMAX_XENT,
     .input_count = 2,
     .inputs = {WIDE(2, 1100), OP_FILLED(OP_ONE_HOT, 0, 0, 2, 1100)},
     .opaque = 2,
     .gradient_tolerance = 1e-2}, /* the differences are as small as their errors */
    {.name = "softmax_xent one-hot",
     .op = LEATI_OP_SOFTMAX_XENT,
     .input_count = 2,
     .inputs = {WIDE(4, 5), OP_FILLED(OP_ONE_HOT, 0, 0, 4, 5)},
     .opaque = 2},
    {.name = "softmax_xent, labels that do not sum to 1",
     .op = LEATI_OP_SOFTMAX_XENT,
     .input_count = 2,
     .inputs = {WIDE(3, 4), OP_FILLED(OP_UNIFORM, 0, 1, 3, 4)},
     .opaque = 2,
     .constant = 1},
    {.name = "softmax_xent of sequences",
     .op = LEATI_OP_SOFTMAX_XENT,
     .input_count = 2,
     .inputs = {WIDE(2, 3, 4), OP_FILLED(OP_ONE_HOT, 0, 0, 2, 3, 4)},
     .opaque = 2},
    {.name = "softmax_xent of long rows",
     .op = LEATI_OP_SOFTMAX_XENT,
     .input_count = 2,
     .inputs = {WIDE(2, 37), OP_FILLED(OP_ONE_HOT, 0, 0, 2, 37)},
     .opaque = 2},
    CLIPPED_XENT("clipped", LEATI_XENT_CLIPPED, 0, ONE(4, 5), WIDE(4, 5)),
    CLIPPED_XENT("clipped, any labels", LEATI_XENT_CLIPPED, 0, SOME(3, 37), WIDE(3, 37)),
    CLIPPED_XENT("clipped, far apart", LEATI_XENT_CLIPPED, 0, SOME(3, 19), FAR(3, 19)),
    CLIPPED_XENT("clipped sequences", LEATI_XENT_CLIPPED, 0, ONE(2, 3, 8), WIDE(2, 3, 8)),
    CLIPPED_XENT("clipped, very long rows", LEATI_XENT_CLIPPED, 1e-2, ONE(2, 1100), WIDE(2, 1100)),
    CLIPPED_XENT("normalized", LEATI_XENT_NORMALIZED, 0, ONE(4, 5), WIDE(4, 5)),
    CLIPPED_XENT("normalized, far apart", LEATI_XENT_NORMALIZED, 0, ONE(3, 19), FAR(3, 19)),
    CLIPPED_XENT("normalized, long rows", LEATI_XENT_NORMALIZED, 1e-2, ONE(2, 1100), WIDE(2, 1100)),
    {.name = "ctc",
     .op = LEATI_OP_CTC,
     .input_count = 2,
     .inputs = {WIDE(3, 9, 4), OP_FILLED(OP_WHOLE, 0, 3, 3, 3)},
     .opaque = 6,
     .constant = 2},
    {.name = "ctc, one step",
     .op = LEATI_OP_CTC,
     .input_count = 2,
     .inputs = {WIDE(2, 1, 3), OP_FILLED(OP_WHOLE, 1, 2, 2, 1)},
     .opaque = 6,
     .constant = 2},
    {.name = "ctc, no labels",
     .op = LEATI_OP_CTC,
     .input_count = 2,
     .inputs = {WIDE(2, 4, 3), OP_FILLED(OP_WHOLE, 0, 0, 2, 2)},
     .opaque = 6,
     .constant = 2},
    {0}};
