/* SPDX-License-Identifier: Apache-2.0 */
/* Intersection over union of the samples of a class and the samples predicted as that class, as a mean over those of
 * some classes that occur.  The graph computes target * classes + prediction for each sample; the tally counts these
 * numbers in a confusion matrix.  Source: keras/metrics.py, 2.3.1; keras.src.metrics.iou_metrics. */
#include <math.h>

#include "base/error.h"
#include "base/memory.h"
#include "engine/graph/build.h"
#include "nn/metrics/types.h"

#define MAX_CLASSES 4096 /* a table of 128 MiB; each pair of classes is an integer that a float represents */
#define DROPPED     (-1.0f)
#define WRONG       (-2.0f)

/* ---- The graph ---- */

/* Returns class numbers, truncated to integers, from class numbers or from a number for each class. */
static leati_value class_numbers(leati_graph *g, leati_value x, bool sparse, int64_t axis) {
    int rank = leati_graph_desc(g, x)->rank;
    if (!sparse) {
        if (axis < 0) axis += rank;
        if (axis < 0 || axis >= rank)
            return leati_graph_fail(g, LEAT_ESHAPE, "axis %lld is out of range for rank %d", (long long)axis,
                                    rank);
        return leati_cast(g, leati_argmax(g, x, (int)axis), LEAT_F32, 1.0f);
    }
    if (leati_graph_desc(g, x)->dtype == LEAT_F32) x = leati_cast(g, x, LEAT_I32, 1.0f);
    return leati_cast(g, x, LEAT_F32, 1.0f);
}

/* Returns 1 where the number is that of a class. */
static leati_value is_class(leati_graph *g, leati_value x, int64_t classes) {
    leati_value above = leati_binary_of(g, LEATI_GREATER, x, leati_scalar(g, -1.0f));
    return leati_mul(g, above, leati_binary_of(g, LEATI_GREATER, leati_scalar(g, (float)classes), x));
}

/* Reshapes (..., 1) to the shape of the other value where that has as many elements. */
static leati_value shaped_like(leati_graph *g, leati_value x, leati_value like) {
    const leati_desc wanted = *leati_graph_desc(g, like);
    if (leati_desc_same_shape(leati_graph_desc(g, x), &wanted)) return x;
    if (leati_desc_count(leati_graph_desc(g, x)) == leati_desc_count(&wanted))
        return leati_reshape(g, x, wanted.rank, wanted.shape);
    return leati_graph_fail(
        g, LEAT_ESHAPE,
        "expected as many class numbers of targets as of predictions; check sparse_y_true "
        "and sparse_y_pred");
}

/* Returns t classes + p; where one of them is no class, DROPPED in current Keras's arithmetic, otherwise WRONG; DROPPED
 * where t is the ignored class. */
static leati_value pairs(leati_graph *g, const leati_measure_options *o, leati_value t, leati_value p) {
    float kept_out = o->as_keras3 ? DROPPED : WRONG;
    t = shaped_like(g, t, p);
    leati_value valid = leati_mul(g, is_class(g, t, o->num_classes), is_class(g, p, o->num_classes));
    leati_value pair = leati_add(g, leati_linear(g, t, (float)o->num_classes, 0.0f), p);
    pair = leati_add(g, leati_mul(g, valid, pair), leati_linear(g, valid, -kept_out, kept_out));
    if (o->ignore_class == INT64_MIN) return pair;
    leati_value ignored = leati_binary_of(g, LEATI_EQUAL, t, leati_scalar(g, (float)o->ignore_class));
    leati_value kept = leati_mul(g, leati_linear(g, ignored, -1.0f, 1.0f), pair);
    return leati_add(g, kept, leati_linear(g, ignored, DROPPED, 0.0f));
}

static leati_value lower(leati_graph *g, const leati_measure_options *o, leati_value y_true,
                         leati_value y_pred) {
    leati_value t = class_numbers(g, y_true, o->sparse_y_true, o->axis);
    return pairs(g, o, t, class_numbers(g, y_pred, o->sparse_y_pred, o->axis));
}

static leati_value lower_binary(leati_graph *g, const leati_measure_options *o, leati_value y_true,
                                leati_value y_pred) {
    leati_value threshold = leati_scalar(g, (float)o->threshold);
    return pairs(g, o, class_numbers(g, y_true, true, -1),
                 leati_binary_of(g, LEATI_GREATER_EQUAL, y_pred, threshold));
}

/* ---- The tally ---- */

/* Keeps the classes whose mean is the result as cuts. */
static leat_status keep_targets(leati_metric *metric, leat_error *err) {
    const json_t *ids = metric->options.target_class_ids;
    int64_t classes = metric->options.num_classes, count = ids ? (int64_t)json_array_size(ids) : classes;
    if (ids && (!json_is_array(ids) || count < 1 || count > MAX_CLASSES))
        return leati_fail(err, LEAT_EINVAL, "target_class_ids: expected a list of class numbers");
    metric->cuts = leati_calloc((size_t)count, sizeof(float));
    if (!metric->cuts) return leati_fail_memory(err, (size_t)count * sizeof(float), "target_class_ids");
    metric->cut_count = (int32_t)count;
    for (int64_t i = 0; i < count; ++i) {
        const json_t *id = ids ? json_array_get(ids, (size_t)i) : NULL;
        json_int_t number = ids ? json_integer_value(id) : i;
        if ((ids && !json_is_integer(id)) || number < 0 || number >= classes)
            return leati_fail(err, LEAT_EINVAL, "target_class_ids: expected class numbers from 0 to %lld",
                              (long long)classes - 1);
        metric->cuts[i] = (float)number;
    }
    return LEAT_OK;
}

static leat_status prepare(leati_metric *metric, int64_t last_dimension, leat_error *err) {
    int64_t classes = metric->options.num_classes;
    (void)last_dimension;
    if (classes > MAX_CLASSES)
        return leati_fail(err, LEAT_EINVAL, "num_classes: expected at most %d, received %lld", MAX_CLASSES,
                          (long long)classes);
    metric->state_count = classes * classes;
    metric->result_count = 1;
    return keep_targets(metric, err);
}

static leat_status prepare_one_hot(leati_metric *metric, int64_t last_dimension, leat_error *err) {
    metric->options.sparse_y_true = false;
    return prepare(metric, last_dimension, err);
}

static leat_status prepare_binary(leati_metric *metric, int64_t last_dimension, leat_error *err) {
    metric->options.num_classes = 2;
    return prepare(metric, last_dimension, err);
}

/* Adds to the state (classes, classes); row: target, column: prediction.  Current Keras's matrix has integers, and so
 * truncates weights. */
static leat_status add(const leati_metric *metric, double *state, const leati_metric_batch *batch,
                       leat_error *err) {
    int64_t count = leat_tensor_count(batch->values), classes = metric->options.num_classes;
    const float *pair = batch->values->data, *w = batch->weights ? batch->weights->data : NULL;
    for (int64_t i = 0; i < count; ++i) {
        if (pair[i] == DROPPED) continue;
        if (!(pair[i] >= 0.0f && pair[i] < (float)(classes * classes)))
            return leati_fail(
                err, LEAT_EINVAL,
                "expected class numbers from 0 to %lld, received another number among the targets or "
                "the predictions",
                (long long)(classes - 1));
        double weight = w ? (double)w[i] : 1.0;
        state[(int64_t)pair[i]] += metric->options.as_keras3 ? trunc(weight) : weight;
    }
    return LEAT_OK;
}

static void mean(const leati_metric *metric, const double *state, double *out) {
    int64_t classes = metric->options.num_classes, present = 0;
    double sum = 0.0;
    for (int32_t i = 0; i < metric->cut_count; ++i) {
        int64_t c = (int64_t)metric->cuts[i];
        double both = state[c * classes + c], either = -both;
        for (int64_t other = 0; other < classes; ++other)
            either += state[c * classes + other] + state[other * classes + c];
        if (!(either > 0.0)) continue;
        sum += both / either;
        present += 1;
    }
    out[0] = present > 0 ? sum / (double)present : 0.0;
}

static const leati_tally tally = {.add = add, .results = mean};

/* ---- The descriptors ---- */

#define LATER(member, field_kind, value)                                                                     \
    {                                                                                                        \
        .key = #member, .kind = field_kind, .offset = offsetof(leati_measure_options, member),               \
        .preset = value, .later = true                                                                       \
    }
#define CLASSES LEATI_METRIC_INT_FIELD(num_classes, NULL, 1)
#define SHARED  LATER(ignore_class, LEATI_FIELD_OPTIONAL_INT, "null"), LATER(axis, LEATI_FIELD_INT, "-1")
#define TARGETS LEATI_METRIC_FIELD(target_class_ids, LEATI_FIELD_JSON, NULL)

static const leati_field mean_fields[] = {CLASSES,
                                          SHARED,
                                          LATER(sparse_y_true, LEATI_FIELD_BOOL, "true"),
                                          LATER(sparse_y_pred, LEATI_FIELD_BOOL, "true"),
                                          {.key = NULL}};
static const leati_field fields[] = {CLASSES,
                                     TARGETS,
                                     SHARED,
                                     LATER(sparse_y_true, LEATI_FIELD_BOOL, "true"),
                                     LATER(sparse_y_pred, LEATI_FIELD_BOOL, "true"),
                                     {.key = NULL}};
static const leati_field one_hot_mean_fields[] = {CLASSES,
                                                  SHARED,
                                                  LATER(sparse_y_pred, LEATI_FIELD_BOOL, "false"),
                                                  {.key = NULL}};
static const leati_field one_hot_fields[] = {
    CLASSES, TARGETS, SHARED, LATER(sparse_y_pred, LEATI_FIELD_BOOL, "false"), {.key = NULL}};
static const leati_field binary_fields[] = {LATER(target_class_ids, LEATI_FIELD_JSON, "[0, 1]"),
                                            LATER(threshold, LEATI_FIELD_FLOAT, "0.5"),
                                            {.key = NULL}};

#define METRIC(variable, function, class, keys, lowering, preparation)                                       \
    const leati_metric_type leati_metric_##variable = {                                                      \
        .measure = &(                                                                                        \
            const leati_measure){.name = function, .class_name = class, .fields = keys, .lower = lowering},  \
        .tally = &tally,                                                                                     \
        .prepare = preparation};

METRIC(mean_iou, "mean_io_u", "MeanIoU", mean_fields, lower, prepare)
METRIC(iou, "io_u", "IoU", fields, lower, prepare)
METRIC(one_hot_mean_iou, "one_hot_mean_io_u", "OneHotMeanIoU", one_hot_mean_fields, lower, prepare_one_hot)
METRIC(one_hot_iou, "one_hot_io_u", "OneHotIoU", one_hot_fields, lower, prepare_one_hot)
METRIC(binary_iou, "binary_io_u", "BinaryIoU", binary_fields, lower_binary, prepare_binary)
