/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor of a batch of which each rank has its samples, and which all ranks need as a whole.  Room: train. */
#ifndef LEATI_TRAIN_PARALLEL_ROWS_H
#define LEATI_TRAIN_PARALLEL_ROWS_H

#include "leat/error.h"
#include "leat/tensor.h"

struct leati_parts;

typedef struct leati_rows {
    leat_tensor mine; /* the samples of this rank: a view of its part of `memory` */
    size_t bytes;     /* of one sample */
    size_t block;     /* bytes of the largest number of samples that a rank has */
    char *memory;     /* first a block for this rank, then a block for each rank */
    size_t memory_bytes;
} leati_rows;

/* Makes room for a batch whose samples are like those of `part`, of which there may be fewer.  Errors: LEAT_ENOMEM. */
leat_status leati_rows_begin(leati_rows *rows, const struct leati_parts *run, const leat_tensor *part,
                             leat_error *err);
/* Appends the first `count` samples of `part` to those of this rank. */
void leati_rows_append(leati_rows *rows, const leat_tensor *part, int64_t count);
/* Gives every rank the samples of all, in their order: *whole is valid until the next leati_rows_begin.  All ranks make
 * this call.  Errors: those of the communicator. */
leat_status leati_rows_gather(leati_rows *rows, const struct leati_parts *run, leat_tensor *whole,
                              leat_error *err);
void leati_rows_fini(leati_rows *rows);

#endif
