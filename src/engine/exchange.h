/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels exchange with the other ranks of a run during a step: the sums of a synchronized BatchNormalization,
 * whose statistics are those of the whole batch (decision 0703).  Room: engine. */
#ifndef LEATI_ENGINE_EXCHANGE_H
#define LEATI_ENGINE_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "leat/error.h"

/* The ranks that compute the same step on their parts of the batch at the same time. */
typedef struct leati_exchange {
    /* Concatenates `count` doubles of each rank, in the order of the ranks.  All ranks make the same calls in the same
     * order.  *all is valid until the next call. */
    leat_status (*gather)(void *user, const double *mine, int64_t count, const double **all, leat_error *err);
    void *user;
    int ranks;
    /* True if this rank has no samples of the batch: it computes one sample, which must not count. */
    bool is_empty;
} leati_exchange;

/* Replaces the moments of this rank's rows by those of the rows of all ranks.  values: the number of rows, then the
 * mean of each channel, then the sum of the squared deviations of each channel from the mean: 1 + 2 `channels`. */
leat_status leati_exchange_moments(const leati_exchange *exchange, double *values, int64_t channels,
                                   leat_error *err);

/* Replaces the values by their sums over all ranks, added in the order of the ranks. */
leat_status leati_exchange_sum(const leati_exchange *exchange, double *values, int64_t count,
                               leat_error *err);

#endif
