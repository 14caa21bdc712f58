/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent cells in a graph; test_recurrent.c has more shapes and all activations. */
#include "ops/harness.h"

#define USUAL                                                                                                \
    .activation = {LEATI_FN_TANH, 0, 0, 0}, .recurrent_activation = {LEATI_FN_SIGMOID, 0, 0, 0},             \
    .training = true

/* N 2, T 3, F 2, U 3 with all inputs of the op; G: number of gates. */
#define FULL(name_, cell_, gates, bias_, c0_)                                                                \
    {                                                                                                        \
        .name = name_, .op = LEATI_OP_RNN, .attrs = {.rnn = {USUAL, .cell = cell_, .go_backwards = true}},   \
        .input_count = 9,                                                                                    \
        .inputs = {OP_F32(2, 3, 2),                                                                          \
                   OP_F32(2, 3 * gates),                                                                     \
                   OP_F32(3, 3 * gates),                                                                     \
                   bias_,                                                                                    \
                   OP_F32(2, 3),                                                                             \
                   c0_,                                                                                      \
                   OP_FILLED(OP_UNIFORM, 0, 2, gates, 2, 2),                                                 \
                   OP_FILLED(OP_UNIFORM, 0, 2, gates, 2, 3),                                                 \
                   OP_FILLED(OP_WHOLE, 0, 1, 2, 3)},                                                         \
        .opaque = 8, .constant = 7u << 6, .gradient_tolerance = 5e-3                                         \
    }

const op_case cases_rnn[] = {
    {.name = "lstm",
     .op = LEATI_OP_RNN,
     .attrs = {.rnn = {USUAL}},
     .input_count = 4,
     .inputs = {OP_F32(2, 3, 3), OP_F32(3, 16), OP_F32(4, 16), OP_F32(16)},
     .opaque = 8,
     .gradient_tolerance = 5e-3},
    FULL("lstm with everything", LEATI_CELL_LSTM, 4, OP_F32(12), OP_F32(2, 3)),
    FULL("gru with everything", LEATI_CELL_GRU, 3, OP_F32(9), OP_ABSENT),
    FULL("gru, reset after, with everything", LEATI_CELL_GRU_RESET_AFTER, 3, OP_F32(2, 9), OP_ABSENT),
    FULL("simple with everything", LEATI_CELL_SIMPLE, 1, OP_F32(3), OP_ABSENT),
    {0},
};
