/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of the family rnn.  Room: backends/cuda. */
#include "backends/cuda/kernels/rnn.h"

#include "backends/cuda/kernels/rnn_lstm.cuh"
#include "backends/cuda/kernels/rnn_products.cuh"
#include "backends/cuda/kernels/rnn_steps.cuh"

LEATI_KERNEL_BOUNDED(leati_cuda_rnn_project, leati_cuda_rnn_args, 256, 2) {
    rnn_project(a);
}
LEATI_KERNEL_BOUNDED(leati_cuda_rnn_gradients, leati_cuda_rnn_args, 256, 2) {
    rnn_gradients(a);
}

/* ---- One step ---- */

LEATI_KERNEL(leati_cuda_rnn_first, leati_cuda_rnn_args) {
    rnn_first(a);
}
LEATI_KERNEL_BOUNDED(leati_cuda_lstm_step, leati_cuda_rnn_args, 256, 2) {
    rnn_forward_step<LEATI_CUDA_LSTM, 4>(a);
}
LEATI_KERNEL_BOUNDED(leati_cuda_gru_reset_after_step, leati_cuda_rnn_args, 256, 2) {
    rnn_forward_step<LEATI_CUDA_GRU_RESET_AFTER, 3>(a);
}
LEATI_KERNEL_BOUNDED(leati_cuda_simple_step, leati_cuda_rnn_args, 256, 2) {
    rnn_forward_step<LEATI_CUDA_SIMPLE, 1>(a);
}
LEATI_KERNEL_BOUNDED(leati_cuda_gru_step, leati_cuda_rnn_args, 256, 2) {
    rnn_forward_reset(a);
}
LEATI_KERNEL_BOUNDED(leati_cuda_gru_update, leati_cuda_rnn_args, 256, 2) {
    rnn_forward_update(a);
}
LEATI_KERNEL_BOUNDED(leati_cuda_lstm_step_bwd, leati_cuda_rnn_args, 256, 2) {
    if (a.step == a.steps - 1) rnn_reset_counters(a);
    rnn_backward_step<LEATI_CUDA_LSTM>(a);
}
LEATI_KERNEL_BOUNDED(leati_cuda_gru_step_bwd, leati_cuda_rnn_args, 256, 2) {
    if (a.step == a.steps - 1) rnn_reset_counters(a);
    rnn_backward_step<LEATI_CUDA_GRU>(a);
}
LEATI_KERNEL_BOUNDED(leati_cuda_gru_reset_bwd, leati_cuda_rnn_args, 256, 2) {
    rnn_backward_reset(a);
}
LEATI_KERNEL_BOUNDED(leati_cuda_gru_reset_after_step_bwd, leati_cuda_rnn_args, 256, 2) {
    if (a.step == a.steps - 1) rnn_reset_counters(a);
    rnn_backward_step<LEATI_CUDA_GRU_RESET_AFTER>(a);
}
LEATI_KERNEL_BOUNDED(leati_cuda_simple_step_bwd, leati_cuda_rnn_args, 256, 2) {
    if (a.step == a.steps - 1) rnn_reset_counters(a);
    rnn_backward_step<LEATI_CUDA_SIMPLE>(a);
}

/* ---- All steps ---- */

/* The kernels of a cell for blocks of 16 `terms` threads; the second number is the least number of blocks per
 * multiprocessor. */
#define PERSISTENT(name, cell, terms, blocks)                                                                \
    LEATI_KERNEL_BOUNDED(leati_cuda_##name##_##terms, leati_cuda_rnn_args, 16 * terms, blocks) {             \
        persistent_forward<cell, terms>(a);                                                                  \
    }                                                                                                        \
    LEATI_KERNEL_BOUNDED(leati_cuda_##name##_##terms##_bwd, leati_cuda_rnn_args, 16 * terms, blocks) {       \
        rnn_reset_counters(a);                                                                               \
        persistent_backward<cell, terms>(a);                                                                 \
    }
#define PERSISTENT_SIZES(name, cell)                                                                         \
    PERSISTENT(name, cell, 8, 4)                                                                             \
    PERSISTENT(name, cell, 16, 2)                                                                            \
    PERSISTENT(name, cell, 24, 1)                                                                            \
    PERSISTENT(name, cell, 32, 1)

PERSISTENT_SIZES(lstm, LEATI_CUDA_LSTM)
PERSISTENT_SIZES(gru, LEATI_CUDA_GRU)
PERSISTENT_SIZES(gru_reset_after, LEATI_CUDA_GRU_RESET_AFTER)
PERSISTENT_SIZES(simple, LEATI_CUDA_SIMPLE)

/* ---- All steps of a small LSTM ---- */

LEATI_KERNEL_BOUNDED(leati_cuda_small_lstm, leati_cuda_rnn_args, 256, 1) {
    lstm_forward(a);
}
LEATI_KERNEL_BOUNDED(leati_cuda_small_lstm_bwd, leati_cuda_rnn_args, 256, 1) {
    rnn_reset_counters(a);
    lstm_backward(a);
}
