/* SPDX-License-Identifier: Apache-2.0 */
/* The mean of all values that were added: sum(weight * value) / sum(weight).  Room: nn. */
#include <math.h>

#include "nn/metrics/types.h"

/* state: total, sum of weights */
static leat_status add(const leati_metric *metric, double *state, const leati_metric_batch *batch,
                       leat_error *err) {
    int64_t count = leat_tensor_count(batch->values);
    const float *v = batch->values->data, *w = batch->weights ? batch->weights->data : NULL;
    double total = state[0], sum = state[1];
    (void)metric;
    (void)err;
    for (int64_t i = 0; i < count; ++i) {
        total += w ? (double)v[i] * (double)w[i] : (double)v[i];
        sum += w ? (double)w[i] : 1.0;
    }
    state[0] = total;
    state[1] = sum;
    return LEAT_OK;
}

static void mean(const leati_metric *metric, const double *state, double *out) {
    (void)metric;
    out[0] = state[0] / state[1];
}

static void root(const leati_metric *metric, const double *state, double *out) {
    (void)metric;
    out[0] = sqrt(state[0] / state[1]);
}

const leati_tally leati_tally_mean = {.add = add, .results = mean};
const leati_tally leati_tally_root = {.add = add, .results = root};
