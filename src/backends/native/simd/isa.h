/* SPDX-License-Identifier: Apache-2.0 */
/* What is compiled once per instruction set, as a table of functions, and which table this CPU takes. */
#ifndef LEATI_BACKENDS_NATIVE_SIMD_ISA_H
#define LEATI_BACKENDS_NATIVE_SIMD_ISA_H

#include <stdint.h>

#include "backends/native/simd/product_job.h"
#include "engine/op_semantics/geometry.h"
#include "engine/op_semantics/group_norm.h"
#include "engine/op_semantics/op.h"

/* The weights of a recurrent cell packed into panels: (padded units / panel, rows, gates, panel).  Units are padded to
 * whole panels per gate, with zeros. */
typedef struct leati_rnn_packed {
    const float *weights; /* rows: features, then units */
    const float *bias;    /* (padded units / panel, slots, panel) */
    const float *by_h;    /* recurrent transposed: (padded units / panel, gates padded units, panel) */
    const float *by_x;    /* kernel transposed: (padded features / panel, gates padded units, panel) */
} leati_rnn_packed;

/* Sums of products that a step computes: its gates; a GRU that resets after the product has the last gate's two apart,
 * x K + b0 in slot 2 and h' R + b1 in slot 3. */
static inline int64_t leati_rnn_slots(const leati_rnn_shape *shape) {
    return shape->cell == LEATI_CELL_GRU_RESET_AFTER ? shape->gates + 1 : shape->gates;
}

/* A block of samples through all steps.  Pointers are those of the op's arguments; NULL where absent. */
typedef struct leati_rnn_job {
    const leati_rnn_shape *shape;
    leati_rnn_packed packed;
    int64_t first, rows; /* samples */
    uint64_t turn;       /* of the run; a single row's */
    float *scratch;      /* as many floats as rnn_scratch says */
    const float *x, *h0, *c0, *x_mask, *h_mask, *steps;
    float *sequence, *h_last, *c_last, *workspace; /* the first and the last: inputs of the backward pass */
    const float *diff_sequence, *diff_h_last, *diff_c_last;
    float *diff_x, *diff_h0, *diff_c0;
    float *diff_weights; /* packed like weights, then (slots, padded units) of the bias; added to */
} leati_rnn_job;

/* A loop over elements (or rows, or images) first to last - 1, which threads share. */
typedef struct leati_range_job {
    const leati_attrs *attrs;
    const float *in[6];
    float *out[4];
    bool from_dst; /* ELTWISE_BWD */
    bool keep;     /* BINARY as the second half of a DROPOUT with shared draws */
    /* BINARY: dst walks over dim, row-major, operand k by by[k].  REDUCE: src by by[0], sums by by[1]. */
    int axes;
    int64_t dim[LEAT_MAX_RANK], by[2][LEAT_MAX_RANK];
    int64_t step, inside; /* REDUCE: floats of a row, and of what it comes to */
    double divisor;
    uint64_t key;                   /* DROPOUT, RANDOM_NORMAL */
    const int64_t *indices;         /* GATHER, GATHER_BWD */
    const leati_geometry *geometry; /* POOLING, by images; RESAMPLE, by rows */
    leat_dtype dtype;               /* CAST: of the source; IN_TOP_K: of the targets */
    int64_t reduced,
        columns; /* SOFTMAX and its kin: (rows, reduced, columns); REDUCE: the innermost two; GATHER: indices, columns of the table */
    double *sums; /* REDUCE: (columns) */
} leati_range_job;

typedef void (*leati_range)(const leati_range_job *job, int64_t first, int64_t last);

/* b (K, N) row-major, or (N, K) where transposed; dst (N) = a (K) times b + bias, through f (may be NULL). */
typedef struct leati_matvec_job {
    const float *a, *b, *bias;
    float *dst;
    int64_t k, n;
    bool transposed;
    const leati_eltwise *f;
} leati_matvec_job;

/* c (m, n) = a (m, k) times b (k, n) + bias + addend, through f, for at most LEATI_FEW_ROWS rows; n is a multiple of a
 * panel. */
typedef struct leati_rows_job {
    const float *a, *b, *bias, *addend; /* the last two: may be NULL; addend (m, n) */
    float *c;
    int64_t m, n, k;
    const leati_eltwise *f; /* may be NULL */
} leati_rows_job;
#define LEATI_FEW_ROWS 12

/* A depthwise convolution with one filter a channel, of the samples first to last - 1; its gradient by the source of those
 * samples, or by the weights of the channels first to last - 1. */
typedef struct leati_depthwise_job {
    const leati_geometry *geometry;
    const float *src, *diff_dst, *weights, *bias /* may be NULL */;
    float *dst, *diff_src, *diff_weights, *diff_bias /* may be NULL */;
    int64_t first, last;
} leati_depthwise_job;
#define LEATI_DEPTHWISE_CHANNELS 32 /* kept in registers; best shared out in as many */

/* GROUP_NORM or its gradient, whose dst is diff_src.  gamma and beta may be NULL. */
typedef struct leati_norm_job {
    leati_group_shape shape;
    float epsilon;
    const float *src, *gamma, *beta, *diff_dst;
    float *dst, *mean, *inverse;
    double *sums;              /* a thread's own: (4, channels) */
    float *mean_of, *scale_of; /* and (channels), and (3, channels) */
} leati_norm_job;

/* (rows, channels) to be normalised over its rows, and gradients by it; batch_norm_body.h has the formulas. */
typedef struct leati_batch_norm_job {
    int64_t channels;
    const float *src, *addend /* may be NULL */, *diff_dst, *rectified /* may be NULL */;
    float *dst, *diff /* may be NULL */;
    const float *mean, *scale, *shift, *by_src; /* by channel */
    const leati_eltwise *f;                     /* may be NULL */
    double *sums;                               /* (2, channels), of a part of the rows */
    float *some;                                /* (2, channels): the part's own */
    bool narrow;                                /* src, dst, addend and all of the gradient are bf16 */
} leati_batch_norm_job;

typedef struct leati_native_isa {
    const char *name;
    leati_range ranges[LEATI_OP_COUNT];                            /* NULL: none */
    void (*widen)(const uint16_t *from, float *to, int64_t count); /* bf16 */
    void (*narrow)(const float *from, uint16_t *to, int64_t count);
    /* to[i][j] = from[j][i] for i, j < lanes, elements of four bytes, rows so many apart */
    void (*transpose_square)(float *to, int64_t to_step, const float *from, int64_t from_step);
    int64_t lanes;
    void (*matvec)(const leati_matvec_job *job);
    void (*few_rows)(const leati_rows_job *job);
    void (*product)(const leati_product *product);
    /* Columns first to last - 1 of b, rows b_row apart, as panels panel_floats apart; added up into sums (NULL: not). */
    void (*pack_columns)(const float *b, int64_t b_row, int64_t rows, int64_t first, int64_t last,
                         float *packed, int64_t panel_floats, float *sums);
    void (*pack_bf16_columns)(const uint16_t *b, int64_t b_row, int64_t rows, int64_t first, int64_t last,
                              float *packed, int64_t panel_floats, float *sums); /* of bf16 */
    /* The same of a matrix whose transpose is b. */
    void (*pack_transposed)(const float *b, int64_t b_row, int64_t rows, int64_t first, int64_t last,
                            float *packed, int64_t panel_floats);
    void (*winograd_source)(const leati_winograd *job);
    void (*winograd_diff)(const leati_winograd *job);
    void (*winograd_result)(const leati_winograd *job);
    void (*winograd_weights)(const leati_winograd_weights *job);
    void (*winograd_weights_back)(const leati_winograd_weights *job);
    void (*batch_norm_moments)(const leati_batch_norm_job *job, int64_t first, int64_t last); /* rows */
    void (*batch_norm_write)(const leati_batch_norm_job *job, int64_t first, int64_t last);
    void (*batch_norm_sums)(const leati_batch_norm_job *job, int64_t first, int64_t last);
    void (*batch_norm_diff)(const leati_batch_norm_job *job, int64_t first, int64_t last);
    void (*norm_forward)(const leati_norm_job *job, int64_t first, int64_t last); /* rows */
    void (*norm_backward)(const leati_norm_job *job, int64_t first, int64_t last);
    void (*depthwise_forward)(const leati_depthwise_job *job);
    void (*depthwise_bwd_data)(const leati_depthwise_job *job);
    void (*depthwise_bwd_weights)(const leati_depthwise_job *job);
    int64_t panel; /* columns */
    int64_t rows;  /* of a block of samples, best a multiple of this */
    /* rows: at most; masks of dropout by x and by h */
    int64_t (*rnn_scratch)(const leati_rnn_shape *shape, int64_t rows, bool masked_x, bool masked_h,
                           bool backward);
    void (*rnn_pack)(const leati_rnn_shape *shape, const float *kernel, const float *recurrent,
                     const float *bias, float *weights, float *packed_bias);
    /* (rows, gates units) to (padded rows / panel, gates padded units, panel) */
    void (*rnn_pack_transposed)(const leati_rnn_shape *shape, const float *from, int64_t rows, float *to);
    void (*rnn_unpack)(const leati_rnn_shape *shape, const float *packed, int64_t first_row, int64_t rows,
                       float *to);
    void (*rnn_forward)(const leati_rnn_job *job);
    void (*rnn_backward)(const leati_rnn_job *job);
} leati_native_isa;

extern const leati_native_isa leati_native_base;
#if LEATI_NATIVE_X86
extern const leati_native_isa leati_native_avx2, leati_native_avx512;
#endif

/* The one of leati_cpu_best_isa. */
const leati_native_isa *leati_native_isa_of(void);

#endif
