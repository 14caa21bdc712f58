/* SPDX-License-Identifier: Apache-2.0 */
/* The parameter of the kernels of the family rnn.
 *
 * A row is a sample n at a time step of the input: row = n T + time.  Step s of processing reads time step s, or
 * T - 1 - s if the cell goes backwards.  The workspace has `kept` = (kept units) U floats for each row:
 *   LSTM  i f c~ o c_before h_before        GRU              z r h~ v h_before
 *   SIMPLE  h h_before                      GRU_RESET_AFTER  z r h~ inner h_before
 * where v = r (.) h' and inner = h' R + b1 of the last gate (backends/ref/rnn.c has the formulas). */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_RNN_H
#define LEATI_BACKENDS_CUDA_KERNELS_RNN_H

#include <stdint.h>

/* In the order of leati_cell. */
enum { LEATI_CUDA_LSTM, LEATI_CUDA_GRU, LEATI_CUDA_GRU_RESET_AFTER, LEATI_CUDA_SIMPLE };

enum {
    LEATI_CUDA_RNN_TANH,
    LEATI_CUDA_RNN_SIGMOID,
    LEATI_CUDA_RNN_HARD_SIGMOID,
    LEATI_CUDA_RNN_RELU,
    LEATI_CUDA_RNN_ELU,
    LEATI_CUDA_RNN_SELU,
    LEATI_CUDA_RNN_SOFTPLUS,
    LEATI_CUDA_RNN_SOFTSIGN,
    LEATI_CUDA_RNN_EXP,
    LEATI_CUDA_RNN_SQRT,
    LEATI_CUDA_RNN_LINEAR
};

/* An activation, with the parameters of leati_eltwise. */
typedef struct leati_cuda_rnn_function {
    int32_t kind;
    float a, b, c;
} leati_cuda_rnn_function;

enum {
    LEATI_CUDA_RNN_TILE = 64,       /* rows and columns of a tile of a product */
    LEATI_CUDA_RNN_STEP_UNITS = 32, /* units and samples of a block of a step */
    LEATI_CUDA_RNN_STEP_SAMPLES = 16,
    LEATI_CUDA_RNN_THREADS = 256 /* of the blocks of products and steps */
};

/* Absent tensors are NULL. */
typedef struct leati_cuda_rnn_args {
    const float *x, *kernel, *recurrent, *bias, *h0, *c0, *x_mask, *h_mask,
        *counted; /* counted: `steps` of the op */
    const float *diff_sequence, *diff_h_last, *diff_c_last;
    float *sequence, *h_last, *c_last;
    float *workspace; /* NULL: not training */
    float *diff_x, *diff_kernel, *diff_recurrent, *diff_bias, *diff_h0, *diff_c0;
    leati_cuda_rnn_function activation, recurrent_activation;
    int32_t cell, batch, steps, features, units, gates, kept, biases;
    int32_t go_backwards, carry_masked;
    /* Scratch.  projected: (rows, gates U), x K + b.  state_*: (N, U), h of two steps, c, z and v of a GRU.
     * first: (N), the first step of processing that counts. */
    float *projected, *state_h[2], *state_c, *state_z, *state_v;
    int32_t *first;
    /* Scratch of the gradient.  diff_gates: (rows, diff_width), with respect to the sums before the activations, and
     * for GRU_RESET_AFTER also with respect to `inner`.  pass, pass_c: (N, U), what a step passes to the step before
     * without a product.  partial: (splits, tiles, tile * tile + tile).  counters: (tiles). */
    float *diff_gates, *pass, *pass_c, *partial;
    uint32_t *counters;
    int32_t diff_width;
    int32_t step; /* of processing, for kernels of one step */
    /* The products for the weights: column_tiles tiles for each of column_groups groups of group_columns columns,
     * feature_tiles row tiles of x and unit_tiles of h, the rows of the sum in `splits` parts of split_rows. */
    int32_t column_tiles, column_groups, group_columns, feature_tiles, unit_tiles, splits, split_rows;
    int32_t weight_blocks; /* the number of blocks for the weights; those for diff_x follow */
    /* Persistent kernels: the samples of a block, the steps whose rows are in shared memory at a time, and where the
     * parts of the shared memory start, in floats.  The weights start at 0.  buffer: the floats of one of the two
     * buffers for the data of a chunk.  fused: the kernel projects x itself.  vectors: all rows that it copies have
     * aligned groups of four floats. */
    int32_t samples, chunk, at_state, at_slots, at_rows, at_x, x_stride, buffer, fused, vectors;
} leati_cuda_rnn_args;

#endif
