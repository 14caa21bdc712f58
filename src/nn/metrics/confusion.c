/* SPDX-License-Identifier: Apache-2.0 */
/* Counts samples in the pieces between thresholds, and computes the counts at each threshold.  Room: nn. */
#include "nn/metrics/confusion.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"

#define BELOW_ALL (-1e10f) /* Keras's value for a prediction outside the top k */

static int ascending(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

leat_status leati_confusion_check(const leati_metric *metric, leat_error *err) {
    const leati_reals *thresholds = &metric->options.thresholds;
    for (int32_t i = 0; i < thresholds->count; ++i)
        if (!(thresholds->values[i] >= 0.0 && thresholds->values[i] <= 1.0))
            return leati_fail(err, LEAT_EINVAL, "thresholds: expected numbers from 0 to 1, received %g",
                              thresholds->values[i]);
    return LEAT_OK;
}

leat_status leati_confusion_check_class(const leati_metric *metric, int64_t classes, leat_error *err) {
    const leati_measure_options *o = &metric->options;
    if (o->class_id != INT64_MIN && (o->class_id < 0 || (classes > 0 && o->class_id >= classes)))
        return leati_fail(err, LEAT_EINVAL, "class_id: expected a class from 0 to %lld, received %lld",
                          classes > 0 ? (long long)classes - 1 : (long long)INT32_MAX,
                          (long long)o->class_id);
    if (o->top_k != INT64_MIN && (o->top_k < 1 || (classes > 0 && o->top_k > classes)))
        return leati_fail(err, LEAT_EINVAL, "top_k: expected a number from 1 to %lld, received %lld",
                          classes > 0 ? (long long)classes : (long long)INT32_MAX, (long long)o->top_k);
    return LEAT_OK;
}

void leati_confusion_sort(leati_metric *metric) {
    qsort(metric->cuts, (size_t)metric->cut_count, sizeof(float), ascending);
}

leat_status leati_confusion_cut(leati_metric *metric, int64_t count, leat_error *err) {
    if (count > LEATI_MAX_REALS)
        return leati_fail(err, LEAT_EINVAL, "expected at most %d thresholds, received %lld", LEATI_MAX_REALS,
                          (long long)count);
    metric->cuts = leati_calloc((size_t)count, sizeof(float));
    if (!metric->cuts) return leati_fail_memory(err, (size_t)count * sizeof(float), "thresholds");
    metric->cut_count = (int32_t)count;
    metric->state_count = 2 * (count + 1);
    return LEAT_OK;
}

/* Returns the number of cuts below the prediction; 0 for a NaN. */
static int32_t piece_of(const leati_metric *metric, float prediction) {
    int32_t low = 0, high = metric->cut_count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (metric->cuts[middle] < prediction)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns the index of the k-th largest element of a row; of equal elements the first counts as the larger one. */
static int64_t last_of_top(const float *row, int64_t count, int64_t k) {
    int64_t last = -1;
    for (int64_t i = 0; i < k; ++i) {
        int64_t best = -1;
        for (int64_t j = 0; j < count; ++j) {
            bool after = last < 0 || row[j] < row[last] || (row[j] == row[last] && j > last);
            if (after && (best < 0 || row[j] > row[best])) best = j;
        }
        if (best < 0) break;
        last = best;
    }
    return last;
}

static bool in_top(const float *row, int64_t index, int64_t last) {
    return row[index] > row[last] || (row[index] == row[last] && index <= last);
}

/* Adds a batch; the state of column i begins at i * stride. */
static void add_columns(const leati_metric *metric, double *state, int64_t stride,
                        const leati_metric_batch *batch) {
    const leat_tensor *values = batch->values;
    const float *weights = batch->weights ? batch->weights->data : NULL;
    const float *p = values->data, *t = batch->targets->data;
    int64_t columns = values->rank > 0 ? values->shape[values->rank - 1] : 1, only = metric->options.class_id;
    int64_t count = leat_tensor_count(values), k = metric->options.top_k;
    const leati_reals *of_labels = &metric->options.label_weights;
    bool by_label =
        stride == 0 && of_labels->count == columns; /* otherwise the labels' results are weighted */
    for (int64_t row = 0; row < count; row += columns) {
        int64_t first = only < 0 ? 0 : only, end = only < 0 ? columns : only + 1;
        int64_t last = k > 0 ? last_of_top(p + row, columns, k) : -1;
        for (int64_t i = first; i < end; ++i) {
            float prediction = last < 0 || in_top(p + row, i, last) ? p[row + i] : BELOW_ALL;
            if (metric->options.from_logits) prediction = 1.0f / (1.0f + expf(-prediction));
            int32_t piece = piece_of(metric, prediction);
            double weight = weights ? (double)weights[row + i] : 1.0;
            state[i * stride + 2 * piece + (t[row + i] != 0.0f)] +=
                by_label ? weight * of_labels->values[i] : weight;
        }
    }
}

leat_status leati_confusion_add(const leati_metric *metric, double *state, const leati_metric_batch *batch,
                                leat_error *err) {
    (void)err;
    add_columns(metric, state, 0, batch);
    return LEAT_OK;
}

leat_status leati_confusion_add_labels(const leati_metric *metric, double *state,
                                       const leati_metric_batch *batch, leat_error *err) {
    (void)err;
    add_columns(metric, state, 2 * ((int64_t)metric->cut_count + 1), batch);
    return LEAT_OK;
}

leati_confusion_walk leati_confusion_begin(const leati_metric *metric, const double *state) {
    leati_confusion_walk walk = {.state = state, .cut = metric->cut_count};
    for (int32_t piece = metric->cut_count; piece >= 0; --piece) {
        walk.negatives += state[2 * piece];
        walk.positives += state[2 * piece + 1];
    }
    return walk;
}

bool leati_confusion_next(leati_confusion_walk *walk) {
    if (walk->cut == 0) return false;
    leati_confusion *now = &walk->now;
    now->fp += walk->state[2 * walk->cut];
    now->tp += walk->state[2 * walk->cut + 1];
    now->tn = walk->negatives - now->fp;
    now->fn = walk->positives - now->tp;
    walk->cut -= 1;
    return true;
}
