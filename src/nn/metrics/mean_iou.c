/* SPDX-License-Identifier: Apache-2.0 */
/* Intersection over union of the samples of a class and the samples predicted as that class, as a mean over the
 * classes that occur.  Predictions and targets are class numbers.  Source: keras/metrics.py, 2.3.1. */
#include "base/error.h"
#include "nn/metrics/types.h"

#define MAX_CLASSES 4096 /* a table of 128 MiB */

static leat_status prepare(leati_metric *metric, int64_t last_dimension, leat_error *err) {
    int64_t classes = metric->options.num_classes;
    (void)last_dimension;
    if (classes > MAX_CLASSES)
        return leati_fail(err, LEAT_EINVAL, "num_classes: expected at most %d, received %lld", MAX_CLASSES,
                          (long long)classes);
    metric->state_count = classes * classes;
    metric->result_count = 1;
    return LEAT_OK;
}

/* Truncates a class number to an integer; returns -1 if it is not the number of a class. */
static int64_t class_of(float value, int64_t classes) {
    return value > -1.0f && value < (float)classes ? (int64_t)value : -1;
}

/* state: (classes, classes); row: target, column: prediction */
static leat_status add(const leati_metric *metric, double *state, const leati_metric_batch *batch,
                       leat_error *err) {
    int64_t count = leat_tensor_count(batch->values), classes = metric->options.num_classes;
    const float *p = batch->values->data, *t = batch->targets->data;
    const float *w = batch->weights ? batch->weights->data : NULL;
    for (int64_t i = 0; i < count; ++i) {
        int64_t row = class_of(t[i], classes), column = class_of(p[i], classes);
        if (row < 0 || column < 0)
            return leati_fail(err, LEAT_EINVAL,
                              "expected class numbers from 0 to %lld, received %g among the %s",
                              (long long)(classes - 1), (double)(row < 0 ? t[i] : p[i]),
                              row < 0 ? "targets" : "predictions");
        state[row * classes + column] += w ? (double)w[i] : 1.0;
    }
    return LEAT_OK;
}

static void mean(const leati_metric *metric, const double *state, double *out) {
    int64_t classes = metric->options.num_classes, present = 0;
    double sum = 0.0;
    for (int64_t c = 0; c < classes; ++c) {
        double both = state[c * classes + c], either = -both;
        for (int64_t other = 0; other < classes; ++other)
            either += state[c * classes + other] + state[other * classes + c];
        if (either == 0.0) continue;
        sum += both / either;
        present += 1;
    }
    out[0] = present > 0 ? sum / (double)present : 0.0;
}

static const leati_tally tally = {.add = add, .results = mean};
static const leati_field fields[] = {LEATI_METRIC_INT_FIELD(num_classes, NULL, 1), {.key = NULL}};

const leati_metric_type leati_metric_mean_iou = {.measure = &(const leati_measure){.name = "mean_io_u",
                                                                                   .class_name = "MeanIoU",
                                                                                   .fields = fields},
                                                 .tally = &tally,
                                                 .prepare = prepare};
