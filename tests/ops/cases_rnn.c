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

/* Sizes that fill no tile, with masked steps from last to first. */
#define SIZED(name_, cell_, gates, bias_, n, t, f, u)                                                        \
    {                                                                                                        \
        .name = name_, .op = LEATI_OP_RNN, .attrs = {.rnn = {USUAL, .cell = cell_, .go_backwards = true}},   \
        .input_count = 9,                                                                                    \
        .inputs = {OP_F32(n, t, f),                                                                          \
                   OP_FILLED(OP_UNIFORM, -0.2, 0.2, f, u * gates),                                           \
                   OP_FILLED(OP_UNIFORM, -0.2, 0.2, u, u * gates),                                           \
                   bias_,                                                                                    \
                   OP_F32(n, u),                                                                             \
                   OP_ABSENT,                                                                                \
                   OP_ABSENT,                                                                                \
                   OP_ABSENT,                                                                                \
                   OP_FILLED(OP_WHOLE, 0, 1, n, t)},                                                         \
        .opaque = 8, .constant = 7u << 6, .gradient_tolerance = 5e-3                                         \
    }

/* One step of one sample by an LSTM of u units, from a state, for a prediction. */
#define STEP(name_, f, u, activation_, gate_)                                                                \
    {                                                                                                        \
        .name = name_, .op = LEATI_OP_RNN,                                                                   \
        .attrs = {.rnn = {.activation = {LEATI_FN_##activation_, 1, 0, 0},                                   \
                          .recurrent_activation = {LEATI_FN_##gate_, 0.2f, 0.5f, 0}}},                       \
        .input_count = 6,                                                                                    \
        .inputs = {OP_F32(1, 1, f),                                                                          \
                   OP_FILLED(OP_UNIFORM, -0.2, 0.2, f, 4 * u),                                               \
                   OP_FILLED(OP_UNIFORM, -0.2, 0.2, u, 4 * u),                                               \
                   OP_F32(4 * u),                                                                            \
                   OP_F32(1, u),                                                                             \
                   OP_F32(1, u)},                                                                            \
        .opaque = 8, .constant = 63                                                                          \
    }

/* One step of an LSTM; z has the sums of four gates. */
#define CELL(name_, activation_, gate_, count_, ...)                                                         \
    {                                                                                                        \
        .name = name_, .op = LEATI_OP_LSTM_CELL,                                                             \
        .attrs = {.rnn = {.activation = {LEATI_FN_##activation_, 1, 0, 0},                                   \
                          .recurrent_activation = {LEATI_FN_##gate_, 0.2f, 0.5f, 0},                         \
                          .training = true}},                                                                \
        .input_count = count_, .inputs = {__VA_ARGS__}, .opaque = 1, .gradient_tolerance = 5e-3              \
    }

const op_case cases_rnn[] = {
    {.name = "lstm",
     .op = LEATI_OP_RNN,
     .attrs = {.rnn = {USUAL}},
     .input_count = 4,
     .inputs = {OP_F32(2, 3, 3), OP_F32(3, 16), OP_F32(4, 16), OP_F32(16)},
     .opaque = 8,
     .gradient_tolerance = 5e-3},
    {.name = "lstm of 20 steps",
     .op = LEATI_OP_RNN,
     .attrs = {.rnn = {USUAL}},
     .input_count = 4,
     .inputs = {OP_F32(2, 20, 5), OP_F32(5, 32), OP_F32(8, 32), OP_F32(32)},
     .opaque = 8,
     .gradient_tolerance = 5e-3},
    {.name = "lstm of 18 steps backwards, from a state",
     .op = LEATI_OP_RNN,
     .attrs = {.rnn = {USUAL, .go_backwards = true}},
     .input_count = 6,
     .inputs = {OP_F32(2, 18, 3), OP_F32(3, 20), OP_F32(5, 20), OP_F32(20), OP_F32(2, 5), OP_F32(2, 5)},
     .opaque = 8,
     .gradient_tolerance = 5e-3},
    FULL("lstm with everything", LEATI_CELL_LSTM, 4, OP_F32(12), OP_F32(2, 3)),
    FULL("gru with everything", LEATI_CELL_GRU, 3, OP_F32(9), OP_ABSENT),
    FULL("gru, reset after, with everything", LEATI_CELL_GRU_RESET_AFTER, 3, OP_F32(2, 9), OP_ABSENT),
    FULL("simple with everything", LEATI_CELL_SIMPLE, 1, OP_F32(3), OP_ABSENT),
    STEP("lstm of one step, for a prediction", 3, 5, TANH, SIGMOID),
    STEP("lstm of one step and 64 units", 8, 64, TANH, SIGMOID),
    STEP("lstm of one step and 37 units", 5, 37, TANH, HARD_SIGMOID),
    STEP("lstm of one step with other functions", 20, 50, SOFTSIGN, LINEAR),
    SIZED("lstm of 7 units, in several tiles", LEATI_CELL_LSTM, 4, OP_F32(28), 20, 13, 5, 7),
    SIZED("gru of 9 units, in several tiles", LEATI_CELL_GRU, 3, OP_F32(27), 17, 4, 5, 9),
    SIZED("gru, reset after, of 9 units", LEATI_CELL_GRU_RESET_AFTER, 3, OP_F32(2, 27), 17, 4, 5, 9),
    SIZED("simple of 35 units", LEATI_CELL_SIMPLE, 1, OP_F32(35), 3, 4, 66, 35),
    SIZED("lstm of 100 units", LEATI_CELL_LSTM, 4, OP_F32(400), 2, 3, 2, 100),
    SIZED("gru of 100 units", LEATI_CELL_GRU, 3, OP_F32(300), 2, 3, 2, 100),
    SIZED("lstm of 130 units", LEATI_CELL_LSTM, 4, OP_F32(520), 2, 3, 2, 130),
    SIZED("gru of 130 units", LEATI_CELL_GRU, 3, OP_F32(390), 2, 3, 2, 130),
    SIZED("gru, reset after, of 130 units", LEATI_CELL_GRU_RESET_AFTER, 3, OP_F32(2, 390), 2, 3, 2, 130),
    SIZED("simple of 130 units", LEATI_CELL_SIMPLE, 1, OP_F32(130), 2, 3, 2, 130),
    SIZED("lstm of 300 features", LEATI_CELL_LSTM, 4, OP_F32(12), 2, 40, 300, 3),
    CELL("lstm cell", TANH, SIGMOID, 2, OP_F32(2, 3, 12), OP_F32(2, 3, 3)),
    CELL("lstm cell of 16 units", TANH, HARD_SIGMOID, 2, OP_F32(2, 5, 3, 64), OP_F32(2, 5, 3, 16)),
    CELL("lstm cell of 21 units", TANH, HARD_SIGMOID, 2, OP_F32(5, 84), OP_F32(5, 21)),
    CELL("lstm cell of 40 units, from 0", TANH, SIGMOID, 2, OP_F32(3, 160), OP_ABSENT),
    CELL("lstm cell with other functions", SOFTSIGN, LINEAR, 2, OP_F32(3, 20), OP_F32(3, 5)),
    {.name = "lstm cell for a prediction",
     .op = LEATI_OP_LSTM_CELL,
     .attrs = {.rnn = {.activation = {LEATI_FN_TANH, 0, 0, 0},
                       .recurrent_activation = {LEATI_FN_SIGMOID, 0, 0, 0}}},
     .input_count = 2,
     .inputs = {OP_F32(4, 36), OP_F32(4, 9)},
     .opaque = 1,
     .constant = 3},
    {0},
};
