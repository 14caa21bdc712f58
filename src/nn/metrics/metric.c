/* SPDX-License-Identifier: Apache-2.0 */
/* Reads, writes and names metrics, and calls their tallies.  Room: nn. */
#include "nn/metrics/metric.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "nn/losses/types.h"
#include "nn/metrics/types.h"
#include "nn/config/object.h"

/* True for the name; current Keras ignores its case. */
static bool is_named(const char *name, const char *text, bool as_keras3) {
    return as_keras3 ? strcasecmp(name, text) == 0 : strcmp(name, text) == 0;
}

/* Returns the function that "accuracy" or "crossentropy" stands for at an output; returns another name unchanged.
 * Keras 2.3.1 decides by the loss.  Later Kerases decide by the shape of the targets, which follows from the loss. */
static const char *resolve(const char *name, int64_t last_dimension, const leati_output_loss *loss) {
    const leati_loss_type *type = loss ? loss->type : NULL;
    const bool as_keras3 = loss && loss->options.as_keras3;
    bool accuracy = is_named(name, "accuracy", as_keras3) || is_named(name, "acc", as_keras3);
    bool crossentropy = strcmp(name, "crossentropy") == 0 || strcmp(name, "ce") == 0;
    if (!accuracy && !crossentropy) return name;
    if (last_dimension == 1 || (type == &leati_loss_binary_crossentropy && !as_keras3))
        return accuracy ? "binary_accuracy" : "binary_crossentropy";
    if (type == &leati_loss_sparse_categorical_crossentropy || (as_keras3 && type && type->sparse))
        return accuracy ? "sparse_categorical_accuracy" : "sparse_categorical_crossentropy";
    return accuracy ? "categorical_accuracy" : "categorical_crossentropy";
}

/* Sets the name in the logs: the "name" of an object; else the user's name of a function; else the default name of
 * the class. */
static leat_status set_name(leati_metric *out, const json_t *value, const leati_object *object,
                            const leati_measure *measure, leat_error *err) {
    const json_t *configured_name = object->config ? json_object_get(object->config, "name") : NULL;
    bool is_class = measure->class_name && strcmp(leati_bare_name(object->name), measure->class_name) == 0;
    const char *name = json_is_string(value) && !is_class ? leati_bare_name(object->name) : measure->name;
    if (json_is_string(configured_name)) name = json_string_value(configured_name);
    if (snprintf(out->name, sizeof(out->name), "%s", name) >= (int)sizeof(out->name)) {
        return leati_fail(err, LEAT_EINVAL, "metric '%.40s...': expected a name shorter than %d bytes", name,
                          LEATI_METRIC_NAME_BYTES);
    }
    if (leati_has_control(name))
        return leati_fail(err, LEAT_EINVAL, "metric's name: control character in '%s'", name);
    out->is_object = !json_is_string(value) || is_class;
    return LEAT_OK;
}

/* Keys of later versions of Keras, with the values that change nothing. */
static const struct {
    const char *key, *neutral;
} neutral_keys[] = {{"from_logits", "false"},  {"class_id", "null"},      {"ignore_class", "null"},
                    {"sparse_y_true", "true"}, {"sparse_y_pred", "true"}, {"axis", "-1"}};

static bool has_field(const leati_metric_type *type, const char *key) {
    for (const leati_field *field = type->measure->fields; field && field->key; ++field)
        if (strcmp(field->key, key) == 0) return true;
    return false;
}

static void drop_neutral_keys(const leati_metric_type *type, json_t *config) {
    for (size_t i = 0; i < sizeof(neutral_keys) / sizeof(neutral_keys[0]); ++i) {
        const json_t *value = json_object_get(config, neutral_keys[i].key);
        if (!value || has_field(type, neutral_keys[i].key)) continue;
        json_t *neutral = json_loads(neutral_keys[i].neutral, JSON_DECODE_ANY, NULL);
        if (neutral && json_equal(value, neutral)) json_object_del(config, neutral_keys[i].key);
        json_decref(neutral);
    }
}

/* Replaces a tensor that is written by value, as current Keras writes label_weights, by its list of numbers. */
static leat_status unwrap_tensor(json_t *config, const char *key, leat_error *err) {
    const json_t *item = json_object_get(config, key);
    if (!json_is_object(item)) return LEAT_OK;
    json_t *value = json_object_get(json_object_get(item, "config"), "value");
    if (!json_is_array(value))
        return leati_fail(err, LEAT_EINVAL, "%s: expected a list of numbers, received an object", key);
    return json_object_set(config, key, value) == 0 ? LEAT_OK
                                                    : leati_fail(err, LEAT_ENOMEM, "no memory for options");
}

/* True for a loss of class numbers as a metric. */
static bool needs_class_numbers(const leati_metric_type *type) {
    const leati_loss_type *loss = leati_loss_find(type->measure->name);
    return loss && type->measure == &loss->measure && loss->sparse;
}

static leat_status configure(leati_metric *out, const leati_metric_type *type, const json_t *config,
                             int64_t last_dimension, leat_error *err) {
    json_t *known = config ? json_copy((json_t *)(uintptr_t)config) : NULL;
    if (config && !known) return leati_fail(err, LEAT_ENOMEM, "no memory for options");
    drop_neutral_keys(type, known);
    leat_status status = unwrap_tensor(known, "label_weights", err);
    if (status == LEAT_OK)
        status = leati_measure_options_read(&out->options, type->measure->fields, known, err);
    json_decref(known);
    LEATI_TRY(status);
    out->fields = type->measure->fields;
    out->lower = type->measure->lower;
    out->tally = type->tally;
    out->class_numbers = needs_class_numbers(type);
    out->state_count = 2;
    out->result_count = 1;
    return type->prepare ? type->prepare(out, last_dimension, err) : LEAT_OK;
}

/* Returns the custom metric, or the custom loss, that an object names; NULL if there is none. */
static const leati_part *find_custom(const leati_part *parts, const leati_object *object, bool is_builtin) {
    const leati_part *part = leati_part_find(parts, LEATI_PART_METRIC, object, is_builtin);
    return part ? part : leati_part_find(parts, LEATI_PART_LOSS, object, is_builtin);
}

static leat_status read_custom(leati_metric *out, const leati_part *part, const json_t *value,
                               const leati_object *object, int64_t last_dimension, leat_error *err) {
    leat_status status = leati_custom_metric_read(out, part, object, last_dimension, err);
    if (status == LEAT_OK) status = set_name(out, value, object, part->type, err);
    if (status != LEAT_OK) leati_metric_fini(out);
    return status;
}

leat_status leati_metric_read_with(leati_metric *out, const json_t *value, int64_t last_dimension,
                                   const leati_output_loss *loss, const leati_part *parts, leat_error *err) {
    *out = (leati_metric){0};
    leati_object object;
    LEATI_TRY(leati_object_read(&object, value, "metric", err));
    const json_t *function = object.config ? json_object_get(object.config, "fn") : NULL;
    if (strcmp(object.name, "MeanMetricWrapper") == 0 && json_is_string(function)) {
        object.name = json_string_value(function); /* tf.keras and Keras 3 */
    }
    bool text = json_is_string(value); /* {"class_name": "Accuracy"} is never resolved */
    const leati_metric_type *type =
        leati_metric_find(text ? resolve(object.name, last_dimension, loss) : object.name);
    const leati_part *part = find_custom(parts, &object, type != NULL);
    if (part) return read_custom(out, part, value, &object, last_dimension, err);
    if (!type) return leati_part_unknown(err, parts, LEATI_PART_METRIC, object.name, leati_metric_name_at);
    leat_status status = configure(out, type, object.config, last_dimension, err);
    if (status != LEAT_OK) status = leati_prefix(status, err, "metric '%s'", object.name);
    if (status == LEAT_OK) status = set_name(out, value, &object, type->measure, err);
    if (status != LEAT_OK) leati_metric_fini(out);
    return status;
}

void leati_metric_fini(leati_metric *metric) {
    if (metric->fields) leati_fields_fini(metric->fields, &metric->options);
    leati_part_object_destroy(&metric->options.object);
    leati_free(metric->cuts);
    *metric = (leati_metric){0};
}

/* ---- Writing ---- */

static bool same_options(const leati_measure_options *a, const leati_measure_options *b) {
    return a->from_logits == b->from_logits && a->label_smoothing == b->label_smoothing &&
           a->delta == b->delta && a->threshold == b->threshold && a->axis == b->axis &&
           a->ignore_class == b->ignore_class && a->k == b->k && a->alpha == b->alpha && a->beta == b->beta &&
           a->gamma == b->gamma && a->q == b->q && a->apply_class_balancing == b->apply_class_balancing &&
           memcmp(&a->axes, &b->axes, sizeof a->axes) == 0;
}

/* Sets *out if the function's name alone would be read as this metric, and the metric is a mean. */
static leat_status name_suffices(const leati_metric *metric, bool *out, leat_error *err) {
    leati_metric named = {0};
    const leati_metric_type *type = leati_metric_find(metric->name);
    json_t *name = json_string(metric->name);
    if (!name) return leati_fail(err, LEAT_ENOMEM, "no memory for a metric's name");
    *out = type && type->measure->lower == metric->lower && metric->tally == &leati_tally_mean &&
           leati_metric_read(&named, name, 0, NULL, NULL) == LEAT_OK && named.lower == metric->lower &&
           same_options(&named.options, &metric->options);
    leati_metric_fini(&named);
    json_decref(name);
    return LEAT_OK;
}

/* {"class_name": ..., "config": {"name": ..., "dtype": ..., all options}} */
static leat_status write_object(const leati_metric *metric, const char *class_name, json_t **out,
                                leat_error *err) {
    json_t *config = json_pack("{s:s, s:s}", "name", metric->name, "dtype", "float32");
    leat_status status = config && metric->fields
                             ? leati_fields_write(metric->fields, &metric->options, config, err)
                             : LEAT_OK;
    if (status == LEAT_OK) return leati_object_write(class_name, config, out, err);
    json_decref(config);
    return status;
}

static leat_status write_metric(const leati_metric *metric, const json_t *value, json_t **out,
                                leat_error *err) {
    leati_object object;
    bool suffices = false;
    LEATI_TRY(leati_object_read(&object, value, "metric", err));
    const leati_metric_type *type = metric->lower ? NULL : leati_metric_find(object.name);
    if (type) return write_object(metric, type->measure->class_name, out, err);
    LEATI_TRY(name_suffices(metric, &suffices, err));
    *out = suffices ? json_string(metric->name) : json_deep_copy(value);
    return *out ? LEAT_OK : leati_fail(err, LEAT_ENOMEM, "no memory for a metric");
}

static leat_status write_custom(const leati_part *part, const leati_object *object, json_t **out,
                                leat_error *err) {
    leati_part_object *made = NULL;
    LEATI_TRY(leati_part_object_create(&made, part, object, leati_measure_common_keys, err));
    leat_status status = leati_part_object_write(made, leati_measure_common_keys, object->config, out, err);
    leati_part_object_destroy(&made);
    return status;
}

leat_status leati_metric_write_with(const json_t *value, const leati_part *parts, json_t **out,
                                    leat_error *err) {
    leati_metric metric;
    leati_object object;
    *out = NULL;
    LEATI_TRY(leati_object_read(&object, value, "metric", err));
    const leati_part *part = find_custom(parts, &object, leati_metric_find(object.name) != NULL);
    if (part) return write_custom(part, &object, out, err);
    const leati_metric_type *type =
        json_is_string(value) ? leati_metric_find(json_string_value(value)) : NULL;
    if (json_is_string(value) && (!type || type->measure->lower)) {
        *out = json_deep_copy(value); /* the name of a function is valid in all versions */
        return *out ? LEAT_OK : leati_fail(err, LEAT_ENOMEM, "no memory for a name");
    }
    LEATI_TRY(leati_metric_read(&metric, value, 0, NULL, err));
    leat_status status = write_metric(&metric, value, out, err);
    leati_metric_fini(&metric);
    return status;
}

/* ---- Results ---- */

leat_status leati_metric_add(const leati_metric *metric, double *state, const leati_metric_batch *batch,
                             leat_error *err) {
    return leati_prefix(metric->tally->add(metric, state, batch, err), err, "metric '%s'", metric->name);
}

void leati_metric_results(const leati_metric *metric, const double *state, double *out) {
    metric->tally->results(metric, state, out);
}

void leati_metric_result_name(const leati_metric *metric, int index, char *out, size_t bytes) {
    char threshold[32];
    if (metric->result_count == 1) {
        snprintf(out, bytes, "%s", metric->name);
        return;
    }
    const leati_reals *thresholds = &metric->options.thresholds;
    snprintf(threshold, sizeof threshold, "%g",
             thresholds->values ? thresholds->values[index] : (double)index);
    leati_decimal_point(threshold);
    snprintf(out, bytes, "%s@%s", metric->name, threshold);
}
