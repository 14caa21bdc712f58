/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of the recurrent kernels that exist once per instruction set (rnn_tmpl.h); rnn.c fills them in. */
#ifndef LEATI_BACKENDS_NATIVE_RNN_JOBS_H
#define LEATI_BACKENDS_NATIVE_RNN_JOBS_H

#include <stdint.h>

#include "backends/native/narrow/narrow.h"
#include "base/threads/thread_pool.h"
#include "engine/op_semantics/geometry.h"

/* Rows of a column of lines: 64 lines of 64 bytes are the sets of an L1 cache, so that all lines of a row of the matrix
 * lie in the same set. */
#define LEATI_RNN_LINE_ROWS 64
#define LEATI_RNN_LINE      16 /* floats of a line */
#define LEATI_RNN_COLUMN    (LEATI_RNN_LINE_ROWS * LEATI_RNN_LINE)
#define LEATI_RNN_LINE_UNITS                                                                                 \
    33 /* units from which the recurrent kernels lie in lines: fewer stay in the L1 cache */

/* The weights of a recurrent cell, packed into panels.  The units of every gate are padded with zeros to whole
 * panels. */
typedef struct leati_rnn_packed {
    /* (padded units / panel, features + units, gates, panel): kernel, then recurrent kernel.  With leati_rnn_job.large
     * (padded units / panel, chunks, gates, depth of the chunk, panel), in the order in which a step reads them: the
     * chunks of the kernel, then those of the recurrent kernel. */
    const float *weights;
    /* For a single sample, with LEATI_RNN_LINE_ROWS units at most; NULL: not used.  The recurrent kernel by lines of
     * the caches, (padded units / panel, gates, panel / LEATI_RNN_LINE, LEATI_RNN_LINE_ROWS, LEATI_RNN_LINE): rows
     * beyond `units` are unused.  `weights` then has the kernel alone. */
    const float *lines;
    const float *bias;                 /* (padded units / panel, slots, panel) */
    const float *recurrent_transposed; /* (padded units / panel, gates padded units, panel) */
    const float *kernel_transposed;    /* (padded features / panel, gates padded units, panel) */
    /* For blocks of a single sample, instead of `weights`; NULL: not used.  For each panel of units two blocks of
     * gates * panel columns, as narrow.h describes them: kernel, then recurrent kernel. */
    const leati_narrow *narrow;
    const unsigned char *narrow_weights;
    const float *narrow_scales; /* (padded units / panel, 2, gates * panel) */
} leati_rnn_packed;

/* Returns the number of sums of products that one step computes per unit: one per gate.  A GRU that resets after
 * the product keeps the two sums of its last gate apart: x K + b0 in slot 2 and h' R + b1 in slot 3. */
static inline int64_t leati_rnn_slots(const leati_rnn_shape *shape) {
    return shape->cell == LEATI_CELL_GRU_RESET_AFTER ? shape->gates + 1 : shape->gates;
}

/* Weights that are packed for the forward pass; bias may be NULL. */
typedef struct leati_rnn_packing {
    const leati_rnn_shape *shape;
    const float *kernel, *recurrent, *bias;
    float *weights, *lines, *packed_bias; /* leati_rnn_packed describes them */
    bool large;
} leati_rnn_packing;

/* A block of samples through all steps, forward or backward.  Pointers without a comment are arguments of the op;
 * NULL where absent. */
typedef struct leati_rnn_job {
    const leati_rnn_shape *shape;
    leati_rnn_packed packed;
    int64_t first, rows; /* samples */
    bool large; /* the weights do not fit in the L2 cache: products read them in long runs, ahead of use */
    uint64_t run_number; /* leati_run.run_number; used if the block has a single sample */
    /* Threads of the pool that share the units of a single sample in each step; 1: the caller computes all. */
    leati_thread_pool *pool;
    int unit_threads;
    float *scratch; /* as many floats as rnn_scratch() returns */
    const float *x, *h0, *c0, *x_mask, *h_mask, *steps;
    /* sequence and workspace are inputs of the backward pass */
    float *sequence, *h_last, *c_last, *workspace;
    const float *diff_sequence, *diff_h_last, *diff_c_last;
    float *diff_x, *diff_h0, *diff_c0;
    float *diff_weights; /* packed like weights, then the bias (slots, padded units); gradients are added */
} leati_rnn_job;

#endif
