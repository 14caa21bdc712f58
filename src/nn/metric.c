/* SPDX-License-Identifier: Apache-2.0 */
/* The table of metrics, how one is named and configured, and the running mean. */
#include "nn/metric.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "nn/losses/rows.h"
#include "nn/metrics/rows.h"
#include "nn/object.h"

/* Metrics of their own; every loss follows them as a metric under its own names. */
static const leati_metric_type *const table[] = {
    &leati_metric_accuracy,
    &leati_metric_binary_accuracy,
    &leati_metric_categorical_accuracy,
    &leati_metric_sparse_categorical_accuracy,
    &leati_metric_top_k,
    &leati_metric_sparse_top_k,
    &leati_metric_root_mean_squared_error,
    &leati_metric_cosine,
};

#define TABLE_COUNT ((int)(sizeof(table) / sizeof(table[0])))

static bool named(const leati_metric_type *type, const char *name) {
    if (strcmp(type->name, name) == 0 || (type->class_name && strcmp(type->class_name, name) == 0))
        return true;
    for (int i = 0; type->aliases && type->aliases[i]; ++i) {
        if (strcmp(type->aliases[i], name) == 0) return true;
    }
    return false;
}

static leati_metric_type as_metric(const leati_loss_type *loss) {
    return (leati_metric_type){.name = loss->name,
                               .class_name = loss->class_name,
                               .aliases = loss->aliases,
                               .fields = loss->fields,
                               .lower = loss->lower};
}

bool leati_metric_type_at(int index, leati_metric_type *out) {
    if (index < TABLE_COUNT) {
        *out = *table[index];
        return true;
    }
    const leati_loss_type *loss = leati_loss_type_at(index - TABLE_COUNT);
    if (loss) *out = as_metric(loss);
    return loss != NULL;
}

bool leati_metric_type_find(const char *name, leati_metric_type *out) {
    if (strcmp(name, "LogCoshError") == 0) name = "LogCosh"; /* the one class that a metric calls otherwise */
    for (int i = 0; leati_metric_type_at(i, out); ++i) {
        if (named(out, name)) return true;
    }
    return false;
}

static const char *name_at(int index) {
    static const char *const more[] = {"acc", "crossentropy", "ce", "mse", "mae", "mape", "msle", NULL};
    leati_metric_type type;
    if (leati_metric_type_at(index, &type)) return type.name;
    return more[index - TABLE_COUNT - leati_loss_type_count()];
}

/* What "accuracy" and "crossentropy" mean for an output; other names stay. */
static const char *resolve(const char *name, int64_t last_dimension, const leati_output_loss *loss) {
    bool accuracy = strcmp(name, "accuracy") == 0 || strcmp(name, "acc") == 0;
    bool crossentropy = strcmp(name, "crossentropy") == 0 || strcmp(name, "ce") == 0;
    if (!accuracy && !crossentropy) return name;
    const leati_loss_type *type = loss ? loss->type : NULL;
    if (last_dimension == 1 || type == &leati_loss_binary_crossentropy) {
        return accuracy ? "binary_accuracy" : "binary_crossentropy";
    }
    if (type == &leati_loss_sparse_categorical_crossentropy) {
        return accuracy ? "sparse_categorical_accuracy" : "sparse_categorical_crossentropy";
    }
    return accuracy ? "categorical_accuracy" : "categorical_crossentropy";
}

/* The name in the logs: what the user wrote, or that of the object. */
static leat_status set_name(leati_metric *out, const json_t *value, const leati_object *object,
                            const leati_metric_type *type, leat_error *err) {
    const json_t *given = object->config ? json_object_get(object->config, "name") : NULL;
    const char *name = json_is_string(value) ? object->name : type->name;
    if (json_is_string(given)) name = json_string_value(given);
    if (snprintf(out->name, sizeof(out->name), "%s", name) >= (int)sizeof(out->name)) {
        return leati_fail(err, LEAT_EINVAL, "metric '%.40s...': expected a name shorter than %d bytes", name,
                          LEATI_METRIC_NAME_BYTES);
    }
    return LEAT_OK;
}

leat_status leati_metric_read(leati_metric *out, const json_t *value, int64_t last_dimension,
                              const leati_output_loss *loss, leat_error *err) {
    *out = (leati_metric){0};
    leati_object object;
    LEATI_TRY(leati_object_read(&object, value, "metric", err));
    const json_t *function = object.config ? json_object_get(object.config, "fn") : NULL;
    if (strcmp(object.name, "MeanMetricWrapper") == 0 && json_is_string(function)) {
        object.name = json_string_value(function); /* tf.keras and Keras 3 */
    }
    bool text = json_is_string(value); /* {"class_name": "Accuracy"} is never resolved */
    leati_metric_type type;
    if (!leati_metric_type_find(text ? resolve(object.name, last_dimension, loss) : object.name, &type)) {
        return leati_unknown_name(err, "metric", object.name, name_at);
    }
    leat_status status = leati_measure_options_read(&out->options, type.fields, object.config, err);
    if (status != LEAT_OK) return leati_prefix(status, err, "metric '%s'", object.name);
    out->lower = type.lower;
    out->root = type.root;
    return set_name(out, value, &object, &type, err);
}

static bool same_options(const leati_measure_options *a, const leati_measure_options *b) {
    return a->from_logits == b->from_logits && a->label_smoothing == b->label_smoothing &&
           a->delta == b->delta && a->threshold == b->threshold && a->axis == b->axis && a->k == b->k;
}

leat_status leati_metric_write(const json_t *value, json_t **out, leat_error *err) {
    leati_metric metric, named;
    *out = NULL;
    LEATI_TRY(leati_metric_read(&metric, value, 0, NULL, err));
    json_t *name = json_string(metric.name);
    if (!name) return leati_fail(err, LEAT_ENOMEM, "no memory for a metric's name");
    leati_metric_type type;
    bool says_all = leati_metric_type_find(metric.name, &type) && type.lower == metric.lower && !type.root &&
                    leati_metric_read(&named, name, 0, NULL, NULL) == LEAT_OK &&
                    named.lower == metric.lower && same_options(&named.options, &metric.options);
    *out = says_all ? json_incref(name) : json_deep_copy(value);
    json_decref(name);
    return *out ? LEAT_OK : leati_fail(err, LEAT_ENOMEM, "no memory for a metric");
}

void leati_metric_reset(leati_metric *metric) {
    metric->total = metric->count = 0.0;
}

void leati_metric_accumulate(leati_metric *metric, const leat_tensor *values, const leat_tensor *weights) {
    int64_t count = leat_tensor_count(values);
    const float *v = values->data, *w = weights ? weights->data : NULL;
    double total = 0.0, sum = w ? 0.0 : (double)count;
    for (int64_t i = 0; i < count; ++i) {
        total += w ? (double)v[i] * (double)w[i] : (double)v[i];
        if (w) sum += (double)w[i];
    }
    metric->total += total;
    metric->count += sum;
}

double leati_metric_result(const leati_metric *metric) {
    double mean = metric->total / metric->count;
    return metric->root ? sqrt(mean) : mean;
}
