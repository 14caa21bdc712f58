/* SPDX-License-Identifier: Apache-2.0 */
/* Adds up, in front of a step, what its losses need to know of the whole batch, such as the number of time steps that
 * count (decision 0706).  Room: train. */
#ifndef LEATI_TRAIN_PARALLEL_TOTALS_H
#define LEATI_TRAIN_PARALLEL_TOTALS_H

#include "nn/losses/totals.h"

struct leati_parts;

typedef struct leati_batch_totals {
    bool is_known; /* the members below are those of `version`, the model's version */
    uint64_t version;
    int count;                        /* of totals; 0: the losses need none */
    int64_t width;                    /* floats of all totals */
    int64_t offset[LEATI_TOTALS_MAX]; /* of a total, in `values` */
    float *values;                    /* (width): of the batch; the programs of parts read them */
    double *mine, *all; /* what a rank tells: its status, then the sums of its parts; the same of all ranks */
} leati_batch_totals;

/* Makes the totals of the batch, which is bound if `status`, this rank's status so far, is LEAT_OK.  All ranks return
 * the same status, and then set run->agreed_failure, if there are totals; otherwise the function returns `status`.
 * Errors: those of the step, in the words of the first rank that failed; those of the communicator; LEAT_ENOMEM. */
leat_status leati_batch_totals_sum(struct leati_parts *run, leat_status status, leat_error *err);
void leati_batch_totals_fini(leati_batch_totals *totals);

#endif
