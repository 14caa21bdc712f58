/* SPDX-License-Identifier: Apache-2.0 */
/* The positions of steps, which several layers encode: they count from `start_index`, or are a second input (N, T). */
#ifndef LEATI_NN_LAYERS_HUB_POSITIONS_H
#define LEATI_NN_LAYERS_HUB_POSITIONS_H

#include "nn/layers/layer.h"

/* The two fields, for a configuration with the members start_index and positions, which says whether there is a second
 * input.  `from_zero`: start_index is not negative. */
#define LEATI_POSITIONS_FIELDS(config, from_zero)                                                            \
    {.key = "start_index",                                                                                   \
     .kind = LEATI_FIELD_INT,                                                                                \
     .offset = offsetof(config, start_index),                                                                \
     .preset = "0",                                                                                          \
     .minimum = 0,                                                                                           \
     .limited = from_zero,                                                                                   \
     .later = true},                                                                                         \
    {                                                                                                        \
        .key = "positions", .kind = LEATI_FIELD_BOOL, .offset = offsetof(config, positions),                 \
        .preset = "false", .later = true                                                                     \
    }

/* The names of the inputs, and of the option of a call. */
extern const char *const leati_positions_arguments[], *const leati_positions_options[];

/* Checks the number of inputs. */
leat_status leati_positions_check_count(bool positions, int input_count, leat_error *err);

/* Checks the number and the ranks of the inputs of a layer whose first input is a sequence (..., steps, features). */
leat_status leati_positions_check(bool positions, int input_count, const leati_shape *inputs,
                                  leat_error *err);

/* Returns a constant vector, which `fill` writes. */
leati_value leati_vector_of(leati_graph *g, int64_t count,
                            void (*fill)(float *out, int64_t count, const void *user), const void *user);

#endif
