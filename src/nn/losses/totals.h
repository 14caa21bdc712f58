/* SPDX-License-Identifier: Apache-2.0 */
/* Totals: sums over the samples of a batch by which losses are divided, where a program computes a part of the batch.
 * A first program computes the part's own sums; the program of the part then reads those of the whole batch (decision
 * 0706). */
#ifndef LEATI_NN_LOSSES_TOTALS_H
#define LEATI_NN_LOSSES_TOTALS_H

#include "engine/graph/graph.h"

enum { LEATI_TOTALS_MAX = 64 };

typedef struct leati_totals {
    bool collects;          /* the program computes the part's sums, and nothing else */
    int64_t samples, whole; /* of the part, of the batch */
    int64_t first, most;    /* the place of the part in the batch; the most samples of a batch */
    int32_t *binding;       /* the number of the next graph input */
    int32_t count;          /* totals so far; both programs ask for them in the same order */
    leati_value values[LEATI_TOTALS_MAX]; /* of collects: the part's sums; otherwise those of the batch */
} leati_totals;

/* Returns the sum over the batch, of which `part` is the sum over the samples of the part.  A loss of such sums is the
 * same in all parts, each of which contributes its share of the loss.  Since a part computes only the gradient with
 * respect to its own samples, the gradient is divided by the share.  totals NULL: the batch is whole, and the result is
 * `part`. */
leati_value leati_total(leati_graph *graph, leati_totals *totals, leati_value part);
/* The same without a gradient, for counts. */
leati_value leati_total_count(leati_graph *graph, leati_totals *totals, leati_value part);

/* Returns the rows of all samples of the batch, of which `part` has those of the part: a total of rows that are zeros
 * outside of the part.  Gradients: as leati_total; none without `differentiates`.  totals NULL: the result is `part`.
 */
leati_value leati_total_rows(leati_graph *graph, leati_totals *totals, leati_value part, bool differentiates);

/* Returns the share of the part in the batch, as a number; 1 without totals. */
float leati_share_of_part(const leati_totals *totals);

#endif
