/* SPDX-License-Identifier: Apache-2.0 */
/* The LSTM through the graph; test_compute.c has more shapes and all activations. */
#include "ops/harness.h"

#define KERAS                                                                                                \
    .activation = {LEATI_FN_TANH, 0, 0, 0}, .recurrent_activation = {LEATI_FN_SIGMOID, 0, 0, 0},             \
    .training = true

const op_case cases_lstm[] = {
    {.name = "lstm",
     .op = LEATI_OP_LSTM,
     .attrs = {.lstm = {KERAS}},
     .input_count = 4,
     .inputs = {OP_F32(2, 3, 3), OP_F32(3, 16), OP_F32(4, 16), OP_F32(16)},
     .opaque = 4,
     .gradient_tolerance = 5e-3},
    {.name = "lstm backwards, with states and masks",
     .op = LEATI_OP_LSTM,
     .attrs = {.lstm = {KERAS, .go_backwards = true}},
     .input_count = 8,
     .inputs = {OP_F32(2, 3, 2), OP_F32(2, 12), OP_F32(3, 12), OP_F32(12), OP_F32(2, 3), OP_F32(2, 3),
                OP_FILLED(OP_UNIFORM, 0, 2, 4, 2, 2), OP_FILLED(OP_UNIFORM, 0, 2, 4, 2, 3)},
     .opaque = 4,
     .constant = 1u << 6 | 1u << 7,
     .gradient_tolerance = 5e-3},
    {0},
};
