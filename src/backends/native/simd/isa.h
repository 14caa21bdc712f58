/* SPDX-License-Identifier: Apache-2.0 */
/* The table of functions that are compiled once per instruction set, and the choice of the table for this CPU. */
#ifndef LEATI_BACKENDS_NATIVE_SIMD_ISA_H
#define LEATI_BACKENDS_NATIVE_SIMD_ISA_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/op_semantics/geometry.h"
#include "engine/op_semantics/op.h"

/* Defined in the jobs.h of each family: elementwise/, matmul/, conv/, norm/, rnn/, attention/. */
typedef struct leati_range_job leati_range_job;
typedef struct leati_product leati_product;
typedef struct leati_matvec_job leati_matvec_job;
typedef struct leati_rows_job leati_rows_job;
typedef struct leati_winograd leati_winograd;
typedef struct leati_winograd_weights leati_winograd_weights;
typedef struct leati_conv_rows leati_conv_rows;
typedef struct leati_conv_rows_bwd leati_conv_rows_bwd;
typedef struct leati_depthwise leati_depthwise;
typedef struct leati_depthwise_bwd leati_depthwise_bwd;
typedef struct leati_group_norm_job leati_group_norm_job;
typedef struct leati_batch_norm_job leati_batch_norm_job;
typedef struct leati_row_update leati_row_update;
typedef struct leati_rnn_job leati_rnn_job;
typedef struct leati_rnn_packing leati_rnn_packing;
typedef struct leati_attention_job leati_attention_job;
typedef struct leati_narrow_job leati_narrow_job; /* narrow/narrow.h */

/* A loop of the job's op over the elements (or rows, or images) first to last - 1. */
typedef void (*leati_range)(const leati_range_job *job, int64_t first, int64_t last);

/* The kernels of one instruction set.  Matrices are row-major; `first` and `last` bound a range [first, last). */
typedef struct leati_native_isa {
    const char *name;
    int64_t lanes;                      /* floats of a vector */
    int64_t panel;                      /* columns of a panel of packed weights */
    int64_t rows;                       /* rows of a tile: the rows of a block are best a multiple */
    leati_range ranges[LEATI_OP_COUNT]; /* NULL for ops that are no such loops */
    void (*update_rows)(const leati_row_update *update, int64_t first, int64_t last); /* rows of the table */
    void (*bf16_to_f32)(const uint16_t *from, float *to, int64_t count);
    void (*f32_to_bf16)(const float *from, uint16_t *to, int64_t count);
    /* to[i][j] = from[j][i] for i, j < lanes; elements have four bytes, strides count elements. */
    void (*transpose_square)(float *to, int64_t to_stride, const float *from, int64_t from_stride);

    /* Applies a function to each of `count` elements. */
    void (*apply)(const leati_eltwise *f, float *dst, int64_t count);
    void (*matvec)(const leati_matvec_job *job);
    void (*few_rows)(const leati_rows_job *job); /* n is a multiple of panel, and b is not transposed */
    void (*streamed_rows)(const leati_rows_job *job, int64_t first, int64_t last); /* columns of c */
    void (*product)(const leati_product *product);
    /* Packs the columns of b (rows, ...), whose row stride is b_row, into panels that lie panel_floats apart; adds the
     * columns' sums to `sums` (columns) unless that is NULL. */
    void (*pack_columns)(const float *b, int64_t b_row, int64_t rows, int64_t first, int64_t last,
                         float *packed, int64_t panel_floats, float *sums);
    void (*pack_bf16_columns)(const uint16_t *b, int64_t b_row, int64_t rows, int64_t first, int64_t last,
                              float *packed, int64_t panel_floats, float *sums);
    /* Like pack_columns(), but b is the transposed matrix. */
    void (*pack_transposed)(const float *b, int64_t b_row, int64_t rows, int64_t first, int64_t last,
                            float *packed, int64_t panel_floats);

    void (*winograd_source)(const leati_winograd *job);
    void (*winograd_diff)(const leati_winograd *job);
    void (*winograd_result)(const leati_winograd *job);
    void (*winograd_weights)(const leati_winograd_weights *job);
    void (*winograd_weights_back)(const leati_winograd_weights *job);
    void (*few_filters_forward)(const leati_conv_rows *job);
    void (*few_filters_bwd_weights)(const leati_conv_rows_bwd *job);
    void (*grouped_forward)(const leati_conv_rows *job);
    void (*grouped_bwd_weights)(const leati_conv_rows_bwd *job);
    /* Packs weights (taps, channels) times scale (channels), and bias (channels): for each vector of channels taps + 1
     * vectors. */
    void (*depthwise_pack)(const leati_geometry *g, const float *weights, const float *scale,
                           const float *bias, float *packed);
    void (*depthwise_forward)(const leati_depthwise *job);
    void (*depthwise_bwd_data)(const leati_depthwise_bwd *job);
    void (*depthwise_bwd_weights)(const leati_depthwise_bwd *job);

    /* Normalisation: first and last are rows. */
    void (*batch_norm_moments)(const leati_batch_norm_job *job, int64_t first, int64_t last);
    void (*batch_norm_write)(const leati_batch_norm_job *job, int64_t first, int64_t last);
    void (*batch_norm_sums)(const leati_batch_norm_job *job, int64_t first, int64_t last);
    void (*batch_norm_diff)(const leati_batch_norm_job *job, int64_t first, int64_t last);
    void (*group_norm_forward)(const leati_group_norm_job *job, int64_t first, int64_t last);
    void (*group_norm_backward)(const leati_group_norm_job *job, int64_t first, int64_t last);

    /* Returns the floats of scratch for the job's block; of its masks only their presence counts. */
    int64_t (*rnn_scratch)(const leati_rnn_job *job, bool backward);
    /* Packs one panel of units of kernel, recurrent kernel and bias. */
    void (*rnn_pack)(const leati_rnn_packing *packing, int64_t unit_panel);
    /* Packs (rows, gates units) into one panel of its transpose (padded rows / panel, gates padded units, panel). */
    void (*rnn_pack_transposed)(const leati_rnn_shape *shape, const float *from, int64_t rows, float *to,
                                int64_t row_panel);
    /* Copies one panel of units of packed gradients into kernel and recurrent, (rows, gates units); either may
     * be NULL. */
    void (*rnn_unpack)(const leati_rnn_shape *shape, const float *packed, int64_t unit_panel, float *kernel,
                       float *recurrent);
    void (*rnn_forward)(const leati_rnn_job *job);
    void (*rnn_backward)(const leati_rnn_job *job);

    /* A part of a key head of a sample. */
    void (*attention_forward)(const leati_attention_job *job);
    void (*attention_backward)(const leati_attention_job *job);

    /* One row times weights in bf16 or int8: `prepare` and `multiply` of leati_narrow. */
    float (*narrow_prepare_f32)(const float *a, int64_t depth, void *to);
    float (*narrow_prepare_int16)(const float *a, int64_t depth, void *to);
    void (*narrow_multiply_bf16)(const leati_narrow_job *job);
    void (*narrow_multiply_int8)(const leati_narrow_job *job);
} leati_native_isa;

extern const leati_native_isa leati_native_base;
#if LEATI_NATIVE_X86
extern const leati_native_isa leati_native_avx2, leati_native_avx512;
#endif

/* Returns the kernels of the instruction set that leati_cpu_best_isa() chooses. */
const leati_native_isa *leati_native_isa_of(void);

#endif
