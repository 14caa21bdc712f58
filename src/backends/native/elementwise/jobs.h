/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of the loops that exist once per instruction set: element-wise ops, reductions, softmax, pooling,
 * resampling, lookups and optimizer updates (the _tmpl.h files of this folder). */
#ifndef LEATI_BACKENDS_NATIVE_ELEMENTWISE_JOBS_H
#define LEATI_BACKENDS_NATIVE_ELEMENTWISE_JOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/op_semantics/geometry.h"
#include "engine/op_semantics/op.h"

#define LEATI_POOL_TAPS 128 /* elements of the window of a POOLING at most */

/* BINARY, which also serves a DROPOUT whose elements share draws.  The loop goes over dst in row-major order, along
 * `axes` axes of `dim` elements; operand k advances by stride[k] elements along each axis, 0 where it is broadcast. */
typedef struct leati_binary_args {
    int axes;
    int64_t dim[LEAT_MAX_RANK], stride[2][LEAT_MAX_RANK];
    /* operand 1 holds dropout factors: 0 where the factor is 0, even if operand 0 is infinite or NaN */
    bool dropout;
} leati_binary_args;

/* REDUCE.  src is (rows, axes..., reduced, columns), dst is (rows, kept axes..., columns); the job's range counts rows.
 * Along an axis of `dim` elements src advances by src_stride, dst by dst_stride (0 where the axis is reduced). */
typedef struct leati_reduce_args {
    int axes; /* between the rows and the innermost two */
    int64_t dim[LEAT_MAX_RANK], src_stride[LEAT_MAX_RANK], dst_stride[LEAT_MAX_RANK];
    int64_t reduced, columns;
    int64_t src_row, dst_row; /* floats of one row of src and of dst */
    double divisor;           /* divisor of the sums: the count for a mean, else 1 */
    double *sums;             /* (dst_row): one thread's accumulators */
} leati_reduce_args;

/* SOFTMAX, SOFTMAX_BWD, SOFTMAX_XENT, ARGMAX, IN_TOP_K: tensors are (rows, classes, columns); the range counts rows. */
typedef struct leati_softmax_args {
    int64_t classes, columns;
    leat_dtype target_dtype; /* IN_TOP_K */
    bool scaled;             /* SOFTMAX_XENT: in[2] multiplies the gradient */
    int64_t scale_step;      /* 1: in[2] has a number for each row; 0: one for all */
} leati_softmax_args;

/* GATHER, GATHER_BWD: rows of a (rows, columns) table. */
typedef struct leati_gather_args {
    const int64_t *indices; /* (count), each within the table */
    int64_t count, columns;
} leati_gather_args;

#define LEATI_UPDATE_SLOTS 3 /* optimizer slots of an update at most */

/* A loop over the elements (or rows, or images) first to last - 1, which threads share.  `op` says which member of
 * the union is set; the ops that it does not name need none. */
typedef struct leati_range_job {
    leati_op op;
    const leati_attrs *attrs;
    const float *in[6];
    float *out[4];
    union {
        leati_binary_args binary;
        leati_reduce_args reduce;
        leati_softmax_args softmax; /* and SOFTMAX_BWD, SOFTMAX_XENT, ARGMAX, IN_TOP_K */
        leati_gather_args gather;   /* and GATHER_BWD */
        struct {
            bool from_dst; /* the derivative is computed from dst instead of src */
        } eltwise_bwd;
        struct {
            leat_dtype src_dtype;
        } cast;
        struct {
            uint64_t key; /* key of the random generator, made from the run's seed and step */
        } random;         /* DROPOUT, RANDOM_NORMAL */
        struct {
            int64_t units;
        } cell; /* LSTM_CELL, LSTM_CELL_BWD, by rows */
        struct {
            const leati_geometry *geometry; /* geometry of the forward op */
        } window; /* POOLING, by rows of dst; RESAMPLE, by rows of pixels; and their gradients, that of POOLING by
                     images */
    };
} leati_range_job;

/* An update of a table by a gradient that is a list of rows. */
typedef struct leati_row_update {
    void (*update)(const leati_range_job *job, int64_t first, int64_t last); /* of elements */
    leati_range_job job;                                                     /* of the whole table */
    const float *gradient;                                                   /* (count, columns) */
    leati_gather_args rows;
    bool skips;         /* without a gradient the update changes nothing */
    const float *zeros; /* (zero_count): the gradient of other rows */
    int64_t zero_count;
    /* Lists of the gradient's rows with the same index: first[row] (rows of the table) and next[i] (count), -1 at the
     * end.  Each thread makes those of its rows; with `skips`, first[row] is set only where there is a list. */
    int32_t *first, *next;
    float *sums; /* (2, columns): one thread's sum over a list, and the sum of its powers */
} leati_row_update;

#endif
