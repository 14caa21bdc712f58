/* SPDX-License-Identifier: Apache-2.0 */
/* RESAMPLE: both kinds of interpolation over 1 to 3 axes, different factors per axis, single elements. */
#include "ops/harness.h"

#define RESAMPLE(title, is_linear, ...) RESAMPLE_AT(title, is_linear, false, __VA_ARGS__)
#define HALVED(title, ...)              RESAMPLE_AT("halved, " title, true, true, __VA_ARGS__)
#define RESAMPLE_AT(title, is_linear, is_halved, axes, f0, f1, f2, ...)                                      \
    {                                                                                                        \
        .name = "resample " title, .op = LEATI_OP_RESAMPLE,                                                  \
        .attrs = {.resample = {.linear = (is_linear),                                                        \
                               .halved = (is_halved),                                                        \
                               .spatial = (axes),                                                            \
                               .factor = {f0, f1, f2}}},                                                     \
        .input_count = 1, .inputs = {                                                                        \
            OP_F32(__VA_ARGS__)                                                                              \
        }                                                                                                    \
    }

const op_case cases_resample[] = {RESAMPLE("nearest, sequence", false, 1, 3, 0, 0, 2, 4, 3),
                                  RESAMPLE("nearest, image", false, 2, 2, 3, 0, 2, 3, 2, 5),
                                  RESAMPLE("nearest, volume", false, 3, 2, 1, 3, 1, 2, 3, 2, 17),
                                  RESAMPLE("nearest, nothing changes", false, 2, 1, 1, 0, 2, 3, 2, 4),
                                  RESAMPLE("linear, sequence", true, 1, 4, 0, 0, 2, 3, 3),
                                  RESAMPLE("linear, image", true, 2, 2, 3, 0, 2, 3, 4, 5),
                                  RESAMPLE("linear, one pixel", true, 2, 3, 2, 0, 2, 1, 1, 3),
                                  RESAMPLE("linear, volume", true, 3, 2, 3, 2, 1, 2, 2, 3, 18),
                                  RESAMPLE("linear, no samples", true, 2, 2, 2, 0, 0, 3, 2, 4),
                                  HALVED("sequence", 1, 4, 0, 0, 2, 3, 3),
                                  HALVED("image", 2, 2, 3, 0, 2, 3, 4, 5),
                                  HALVED("one pixel", 2, 3, 2, 0, 2, 1, 1, 3),
                                  HALVED("volume", 3, 2, 1, 3, 1, 2, 2, 3, 18),
                                  {0}};
