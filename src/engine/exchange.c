/* SPDX-License-Identifier: Apache-2.0 */
/* Joins sums and moments of the ranks.  Room: engine. */
#include "engine/exchange.h"

#include <string.h>

#include "base/error.h"

/* Tells the values, or zeros for a rank without samples, to all ranks. */
static leat_status gather(const leati_exchange *x, double *values, int64_t count, const double **all,
                          leat_error *err) {
    if (x->is_empty) memset(values, 0, (size_t)count * sizeof *values);
    return x->gather(x->user, values, count, all, err);
}

leat_status leati_exchange_sum(const leati_exchange *x, double *values, int64_t count, leat_error *err) {
    const double *all = NULL;
    LEATI_TRY(gather(x, values, count, &all, err));
    memset(values, 0, (size_t)count * sizeof *values);
    for (int rank = 0; rank < x->ranks; ++rank)
        for (int64_t i = 0; i < count; ++i) values[i] += all[rank * count + i];
    return LEAT_OK;
}

leat_status leati_exchange_moments(const leati_exchange *x, double *values, int64_t channels,
                                   leat_error *err) {
    const int64_t count = 1 + 2 * channels;
    const double *all = NULL;
    double *means = values + 1, *squares = means + channels;
    LEATI_TRY(gather(x, values, count, &all, err));
    memset(values, 0, (size_t)count * sizeof *values);
    for (int rank = 0; rank < x->ranks; ++rank) {
        const double *theirs = all + rank * count;
        values[0] += theirs[0];
        for (int64_t c = 0; c < channels; ++c) means[c] += theirs[0] * theirs[1 + c];
    }
    if (!(values[0] > 0)) return LEAT_OK; /* every rank has failed, and only completes its exchanges */
    for (int64_t c = 0; c < channels; ++c) means[c] /= values[0];
    for (int rank = 0; rank < x->ranks; ++rank) {
        const double *theirs = all + rank * count;
        for (int64_t c = 0; c < channels; ++c) {
            const double difference = theirs[1 + c] - means[c];
            squares[c] += theirs[1 + channels + c] + theirs[0] * difference * difference;
        }
    }
    return LEAT_OK;
}
