/* SPDX-License-Identifier: Apache-2.0 */
/* Weights in bf16 or int8 for predictors, and products of one row with them.
 *
 * A block is some columns of a matrix (depth, columns), stored as (ceil(depth / 2), columns, 2): the two elements of
 * a pair are neighbours in depth, as the instructions for bf16 and int16 read them.  An odd depth is padded with
 * zeros.  bf16 is rounded to nearest, ties to even.  int8 has a scale for each column: the largest weight of the
 * column becomes 127.  The row that is multiplied with int8 is rounded to 16 bits with one scale, and the products
 * are summed as integers, so that every instruction set computes the same sums. */
#ifndef LEATI_BACKENDS_NATIVE_NARROW_NARROW_H
#define LEATI_BACKENDS_NATIVE_NARROW_NARROW_H

#include <stddef.h>
#include <stdint.h>

#include "engine/backend.h"

/* Pairs that are summed as 32-bit integers: 256 * 2 * 127 * 32767 is less than 2^31. */
#define LEATI_NARROW_PAIRS 256

/* z (vectors * lanes) = start + a W for some columns of a block. */
typedef struct leati_narrow_job {
    const void *a;       /* as `prepare` wrote it */
    float a_scale;       /* int8: what `prepare` returned */
    const void *w;       /* the first pair of the first column */
    int64_t w_row;       /* elements from one row of pairs to the next */
    int64_t pairs;       /* rows of pairs */
    int64_t vectors;     /* 2, 4, 6 or 8 */
    const float *scales; /* int8: of the columns */
    const float *start;
    float *z; /* may be start */
} leati_narrow_job;

/* The functions for one format and this CPU. */
typedef struct leati_narrow {
    leati_weights_format format;
    size_t element_bytes;
    const char *name;      /* "bf16" */
    const char *layout;    /* for reports */
    bool scaled;           /* the row and the columns have scales: int8 */
    size_t prepared_bytes; /* of an element of the row as `prepare` writes it; at most 4 */
    /* Writes a (depth) in the form that `multiply` reads, as 2 pairs elements, or one more for an even depth.  Returns
     * its scale; NaN where an element is not finite and the format is int8. */
    float (*prepare)(const float *a, int64_t depth, void *to);
    void (*multiply)(const leati_narrow_job *job);
} leati_narrow;

/* Returns the functions for a format other than f32. */
leati_narrow leati_narrow_of(leati_weights_format format);

/* The part of a matrix that goes into a block: element (k, j) is from[k * row + j * column]; the columns from
 * `present` on are zeros. */
typedef struct leati_narrow_source {
    const float *from;
    int64_t row, column, depth, present;
} leati_narrow_source;

static inline int64_t leati_narrow_pairs(int64_t depth) {
    return (depth + 1) / 2;
}

/* Packs a block of `columns` columns; scales (columns) is written for int8 and otherwise not used. */
void leati_narrow_pack(const leati_narrow *narrow, const leati_narrow_source *source, int64_t columns,
                       void *to, float *scales);

/* Writes `columns` columns of a block, whose rows of pairs are w_row elements apart, as floats to rows that are to_row
 * apart. */
void leati_narrow_expand(const leati_narrow *narrow, const void *w, int64_t w_row, const float *scales,
                         int64_t depth, int64_t columns, float *to, int64_t to_row);

/* The functions that use AVX512_BF16 and AVX512_VNNI. */
float leati_narrow_prepare_bf16(const float *a, int64_t depth, void *to);
void leati_narrow_multiply_bf16(const leati_narrow_job *job);
void leati_narrow_multiply_int8(const leati_narrow_job *job);

#endif
