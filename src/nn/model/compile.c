/* SPDX-License-Identifier: Apache-2.0 */
/* model.compile: sets the optimizer, a loss for each output and the metrics with Keras's names, and allocates the
 * slabs that training needs.  Source: keras/engine/training.py and training_utils.py, 2.3.1. */
#include "nn/model/model.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/growing.h"
#include "base/memory.h"
#include "nn/losses/types.h"
#include "nn/layers/added.h"
#include "nn/layers/types.h"
#include "nn/metrics/types.h"
#include "nn/model/arguments.h"
#include "nn/model/export.h"
#include "nn/weights/weights.h"

/* The keys of a training_config that are arguments of compile, in the order of parse_all. */
static const char *const argument_keys[] = {"loss", "metrics", "weighted_metrics", "sample_weight_mode",
                                            "loss_weights"};

static const char optimizer_key[] = "optimizer_config";

/* A key of leat's own, which every Keras ignores: a training_config without it has the arithmetic of the Keras that
 * wrote the file. */
static const char arithmetic_key[] = "arithmetic", keras3[] = "keras3";

#define ARGUMENT_COUNT (sizeof(argument_keys) / sizeof(argument_keys[0]))

/* ---- Losses ---- */

static leat_status read_weight(leati_output_loss *loss, const json_t *value, leat_error *err) {
    if (value && !json_is_number(value)) {
        return leati_fail(err, LEAT_EINVAL, "loss_weights: expected a number");
    }
    loss->weight = value ? json_number_value(value) : 1.0;
    return LEAT_OK;
}

static leat_status read_mode(leati_output_loss *loss, const json_t *value, const leati_shape *shape,
                             leat_error *err) {
    if (!value) return LEAT_OK;
    if (!json_is_string(value) || strcmp(json_string_value(value), "temporal") != 0) {
        return leati_fail(err, LEAT_EINVAL, "sample_weight_mode: expected null or \"temporal\"");
    }
    if (shape->rank < 3) {
        return leati_fail(
            err, LEAT_ESHAPE,
            "sample_weight_mode \"temporal\": expected an output with a time axis (rank 3 or more), "
            "received rank %d",
            (int)shape->rank);
    }
    loss->temporal = true;
    return LEAT_OK;
}

/* True for a loss or a metric that treats each number of the output by itself, and takes their mean. */
static bool is_elementwise(const char *name) {
    static const char *const names[] = {"mean_squared_error",
                                        "mean_absolute_error",
                                        "mean_absolute_percentage_error",
                                        "mean_squared_logarithmic_error",
                                        "root_mean_squared_error",
                                        "huber",
                                        "huber_loss",
                                        "logcosh",
                                        "log_cosh",
                                        "poisson",
                                        "hinge",
                                        "squared_hinge",
                                        "binary_crossentropy",
                                        "binary_accuracy",
                                        "mse",
                                        "mae",
                                        "mape",
                                        "msle"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

/* An output of rank 1, such as that of a squeeze, is compared as (N, 1), if this gives the same number as in Keras. */
static leat_status check_shape(const leati_output_loss *loss, const leati_shape *shape, leat_error *err) {
    if (!loss->type) return LEAT_OK;
    bool takes_vector = loss->options.as_keras3 && is_elementwise(loss->type->measure.name) &&
                        loss->reduction == LEATI_REDUCTION_SUM_OVER_BATCH_SIZE;
    if (shape->rank < 2 && !(shape->rank == 1 && takes_vector)) {
        return leati_fail(err, LEAT_ESHAPE,
                          "loss '%s': expected an output of rank 2 or more, received rank %d",
                          loss->type->measure.name, (int)shape->rank);
    }
    if (loss->type == &leati_loss_categorical_crossentropy && shape->dims[shape->rank - 1] == 1 &&
        !loss->options.as_keras3) { /* current Keras warns only */
        return leati_fail(
            err, LEAT_ESHAPE,
            "loss 'categorical_crossentropy': expected two or more classes, received an output whose "
            "last dimension is 1; did you mean 'binary_crossentropy'?");
    }
    return LEAT_OK;
}

static leat_status read_loss(leati_output_loss *loss, const leat_model *model, const json_t *arguments,
                             int index, bool as_keras3, leat_error *err) {
    const leati_shape shape = leati_model_output_shape(model, index);
    const json_t *value = json_object_get(arguments, "loss");
    LEATI_TRY(leati_loss_read_with(loss, leati_argument_of(value, model, index, true), model->parts, err));
    loss->options.as_keras3 = as_keras3;
    value = json_object_get(arguments, "loss_weights");
    LEATI_TRY(read_weight(loss, leati_argument_of(value, model, index, true), err));
    value = json_object_get(arguments, "sample_weight_mode");
    LEATI_TRY(read_mode(loss, leati_argument_of(value, model, index, true), &shape, err));
    return check_shape(loss, &shape, err);
}

static leat_status read_losses(leati_compiled *out, const leat_model *model, const json_t *arguments,
                               leat_error *err) {
    static const char *const by_output[] = {"loss", "loss_weights", "sample_weight_mode"};
    for (size_t i = 0; i < sizeof(by_output) / sizeof(by_output[0]); ++i) {
        const json_t *value = json_object_get(arguments, by_output[i]);
        LEATI_TRY(leati_argument_check(value, by_output[i], model, true, err));
    }
    size_t count = (size_t)model->output_count;
    out->losses = leati_calloc(count, sizeof(out->losses[0]));
    if (!out->losses) return leati_fail_memory(err, count * sizeof(out->losses[0]), "losses");
    out->output_count = model->output_count;
    for (int i = 0; i < model->output_count; ++i) {
        leat_status status = read_loss(&out->losses[i], model, arguments, i, out->as_keras3, err);
        if (status != LEAT_OK)
            return leati_prefix(status, err, "output '%s'", leati_model_output_name(model, i));
    }
    return LEAT_OK;
}

/* ---- Metrics ---- */

static bool is_name_taken(const leati_compiled *compiled, const leat_model *model, const char *name) {
    if (strcmp(name, "loss") == 0) return true;
    for (int i = 0; model->output_count > 1 && i < model->output_count; ++i) {
        char loss[LEATI_METRIC_NAME_BYTES];
        snprintf(loss, sizeof(loss), "%s_loss", leati_model_output_name(model, i));
        if (compiled->losses[i].type && strcmp(loss, name) == 0) return true;
    }
    for (int i = 0; i < compiled->metric_count; ++i) {
        if (strcmp(compiled->metrics[i].name, name) == 0) return true;
    }
    return false;
}

/* Writes "accuracy", or "<output>_accuracy" if there are several outputs. */
static void name_with_output(char *out, const leati_metric *metric, const leat_model *model,
                             const char *prefix) {
    if (model->output_count > 1)
        snprintf(out, LEATI_METRIC_NAME_BYTES, "%s_%s%s", leati_model_output_name(model, metric->output),
                 prefix, metric->name);
    else
        snprintf(out, LEATI_METRIC_NAME_BYTES, "%s%s", prefix, metric->name);
}

/* Makes the final name: with that of the output if there are several; "..._1" if the name is taken.  In current Keras a
 * weighted metric whose name is taken is "weighted_accuracy". */
static void make_name_unique(leati_metric *metric, const leati_compiled *compiled, const leat_model *model) {
    char base[LEATI_METRIC_NAME_BYTES];
    name_with_output(base, metric, model, "");
    if (metric->weighted && metric->options.as_keras3 && is_name_taken(compiled, model, base))
        name_with_output(base, metric, model, "weighted_");
    snprintf(metric->name, sizeof(metric->name), "%s", base);
    for (int i = 1; is_name_taken(compiled, model, metric->name); ++i) {
        snprintf(metric->name, sizeof(metric->name), "%.*s_%d", LEATI_METRIC_NAME_BYTES - 16, base, i);
    }
}

/* The metrics of one output, before they get their final names. */
typedef struct metric_list {
    int count;
    leati_metric items[LEATI_NETWORK_MAX_METRICS];
} metric_list;

/* Returns the index of the metric that a new one replaces, or the end of the list.  As in Keras, a function that
 * is named twice is one metric, while each object is another metric. */
static int index_of_replaced(const metric_list *list, const leati_metric *metric) {
    int i = 0;
    while (i < list->count && (metric->is_object || strcmp(list->items[i].name, metric->name) != 0)) ++i;
    return i;
}

static leat_status add_metric(metric_list *list, const leat_model *model, const leati_output_loss *loss,
                              int output, const json_t *value, leat_error *err) {
    const leati_shape shape = leati_model_output_shape(model, output);
    leati_metric metric;
    int64_t last = shape.rank > 1 ? shape.dims[shape.rank - 1] : 1;
    LEATI_TRY(leati_metric_read_with(&metric, value, last, loss, model->parts, err));
    if (shape.rank < 2 && !metric.is_object && !is_elementwise(metric.name)) {
        leat_status status = leati_fail(err, LEAT_ESHAPE,
                                        "metric '%s': expected an output of rank 2 or more, received rank %d",
                                        metric.name, (int)shape.rank);
        leati_metric_fini(&metric);
        return status;
    }
    if (loss->options.as_keras3 && json_is_string(value) && metric.is_object) /* "AUC": in 2.3.1 auc */
        snprintf(metric.name, sizeof metric.name, "%s", json_string_value(value));
    metric.output = output;
    metric.options.as_keras3 = loss->options.as_keras3;
    int index = index_of_replaced(list, &metric);
    if (index == LEATI_NETWORK_MAX_METRICS) {
        leati_metric_fini(&metric);
        return leati_fail(err, LEAT_ENOTSUP, "expected at most %d metrics", LEATI_NETWORK_MAX_METRICS);
    }
    if (index == list->count)
        list->count += 1;
    else
        leati_metric_fini(&list->items[index]);
    list->items[index] = metric;
    return LEAT_OK;
}

static leat_status add_metrics(metric_list *list, const leat_model *model, const leati_output_loss *loss,
                               int output, const json_t *metrics, leat_error *err) {
    if (!json_is_array(metrics))
        return metrics ? add_metric(list, model, loss, output, metrics, err) : LEAT_OK;
    for (size_t i = 0; i < json_array_size(metrics); ++i)
        LEATI_TRY(add_metric(list, model, loss, output, json_array_get(metrics, i), err));
    return LEAT_OK;
}

static bool has_sublist(const json_t *value) {
    for (size_t i = 0; json_is_array(value) && i < json_array_size(value); ++i) {
        if (json_is_array(json_array_get(value, i))) return true;
    }
    return false;
}

/* The number of results: a metric with several thresholds has a result for each. */
static int64_t result_count(const leati_metric *metrics, int count) {
    int64_t sum = 0;
    for (int i = 0; i < count; ++i) sum += metrics[i].result_count;
    return sum;
}

/* Appends the metrics of one output, plain or weighted, with their final names. */
static leat_status read_output_metrics(leati_compiled *out, const leat_model *model, const json_t *value,
                                       int index, bool weighted, leat_error *err) {
    metric_list list = {0};
    const leati_output_loss *loss = &out->losses[index];
    const json_t *metrics = leati_argument_of(value, model, index, has_sublist(value));
    leat_status status = add_metrics(&list, model, loss, index, metrics, err);
    if (status == LEAT_OK &&
        result_count(out->metrics, out->metric_count) + result_count(list.items, list.count) >
            LEATI_NETWORK_MAX_METRICS)
        status = leati_fail(err, LEAT_ENOTSUP, "expected at most %d results of metrics",
                            LEATI_NETWORK_MAX_METRICS);
    bool kept = status == LEAT_OK && loss->type; /* an output without a loss has no target to compare with */
    for (int i = 0; i < list.count; ++i) {
        if (!kept) {
            leati_metric_fini(&list.items[i]);
            continue;
        }
        list.items[i].weighted = weighted;
        make_name_unique(&list.items[i], out, model);
        out->metrics[out->metric_count++] = list.items[i];
    }
    return status;
}

static leat_status read_metrics(leati_compiled *out, const leat_model *model, const json_t *arguments,
                                leat_error *err) {
    const json_t *plain = json_object_get(arguments, "metrics");
    const json_t *weighted = json_object_get(arguments, "weighted_metrics");
    LEATI_TRY(leati_argument_check(plain, "metrics", model, has_sublist(plain), err));
    LEATI_TRY(leati_argument_check(weighted, "weighted_metrics", model, has_sublist(weighted), err));
    out->metrics = leati_calloc(LEATI_NETWORK_MAX_METRICS, sizeof(out->metrics[0]));
    if (!out->metrics)
        return leati_fail_memory(err, LEATI_NETWORK_MAX_METRICS * sizeof(leati_metric), "metrics");
    for (int i = 0; i < model->output_count; ++i) {
        LEATI_TRY(read_output_metrics(out, model, plain, i, false, err));
        LEATI_TRY(read_output_metrics(out, model, weighted, i, true, err));
    }
    return LEAT_OK;
}

/* Appends the metrics of the model's AddMetric layers, in their order. */
static leat_status read_added_metrics(leati_compiled *out, const leat_model *model, const leat_model *part,
                                      leat_error *err) {
    for (int32_t i = 0; i < part->member_count; ++i) {
        const leati_member *member = &part->members[i];
        const leat_model *inner = leati_member_model(member);
        if (inner) LEATI_TRY(read_added_metrics(out, model, inner, err));
        if (!member->layer || member->layer->type != &leati_layer_add_metric) continue;
        if (out->metric_count == LEATI_NETWORK_MAX_METRICS)
            return leati_fail(err, LEAT_ENOTSUP, "expected at most %d metrics", LEATI_NETWORK_MAX_METRICS);
        const leati_added_metric_config *config = member->layer->config;
        leati_metric metric = {.added = member->layer,
                               .tally = &leati_tally_mean,
                               .is_object = true,
                               .state_count = 2,
                               .result_count = 1};
        snprintf(metric.name, sizeof metric.name, "%s", config->metric_name);
        for (int k = 1; is_name_taken(out, model, metric.name); ++k)
            snprintf(metric.name, sizeof metric.name, "%s_%d", config->metric_name, k);
        out->metrics[out->metric_count++] = metric;
    }
    return LEAT_OK;
}

/* ---- Compiling ---- */

/* Keeps the arguments: objects in the form of 2.3.1, and losses under names that every Keras reads. */
static leat_status keep_arguments(leati_compiled *out, const leat_model *model, const json_t *arguments,
                                  leat_error *err) {
    out->arguments = json_object();
    if (!out->arguments) return leati_fail(err, LEAT_ENOMEM, "no memory for the arguments of compile");
    for (size_t i = 0; i < ARGUMENT_COUNT; ++i) {
        const json_t *value = json_object_get(arguments, argument_keys[i]);
        json_t *kept = NULL;
        if (!value) continue;
        bool loss = strcmp(argument_keys[i], "loss") == 0;
        LEATI_TRY(leati_argument_map(value, loss ? leati_loss_write_with : leati_metric_write_with,
                                     model->parts, &kept, err));
        if (json_object_set_new(out->arguments, argument_keys[i], kept) != 0) {
            return leati_fail(err, LEAT_ENOMEM, "no memory for the arguments of compile");
        }
    }
    return LEAT_OK;
}

static leat_status read_all(leati_compiled *out, const leat_model *model, const json_t *optimizer,
                            const json_t *arguments, leat_error *err) {
    LEATI_TRY(leati_network_check_counts(model, err));
    LEATI_TRY(leati_optimizer_create_with(&out->optimizer, optimizer, out->as_keras3, model->parts, err));
    LEATI_TRY(read_losses(out, model, arguments, err));
    LEATI_TRY(read_metrics(out, model, arguments, err));
    LEATI_TRY(read_added_metrics(out, model, model, err));
    return keep_arguments(out, model, arguments, err);
}

/* Sets *as_keras3 if the name of an arithmetic is not NULL. */
static leat_status read_arithmetic(bool *as_keras3, const char *name, leat_error *err) {
    if (!name) return LEAT_OK;
    *as_keras3 = strcmp(name, keras3) == 0;
    if (*as_keras3 || strcmp(name, "keras2") == 0) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "arithmetic: expected \"keras2\" or \"keras3\", received \"%.64s\"",
                      name);
}

/* Compiles the model; `arguments` is an object with the keys of argument_keys, `arithmetic` a name, or NULL for that of
 * the model. */
static leat_status compile(leat_model *model, const json_t *optimizer, const json_t *arguments,
                           const char *arithmetic, leat_error *err) {
    leati_compiled compiled = {.as_keras3 = model->as_keras3};
    if (model->added_loss[0])
        return leati_fail(
            err, LEAT_ENOTSUP,
            "layer '%s' (AddLoss) of the file adds a loss to the model, which leat cannot compute (%s): load "
            "the model "
            "without its compilation for predictions (leat_model_load_options.compile); to train it without "
            "this "
            "loss, save it first (leat convert IN OUT --no-compile), which leaves the layer out",
            model->added_loss, model->added_reason);
    LEATI_TRY(leati_prefix(read_arithmetic(&compiled.as_keras3, arithmetic, err), err, "compile"));
    leat_status status = read_all(&compiled, model, optimizer, arguments, err);
    if (status != LEAT_OK) {
        leati_compiled_fini(&compiled);
        return leati_prefix(status, err, "compile");
    }
    leati_compiled_fini(&model->compiled);
    model->version += 1;
    model->iterations = 0;
    status = leati_weights_layout(model, err);
    if (status == LEAT_OK) {
        status = leati_weights_train(&model->weights, leati_optimizer_slab_count(compiled.optimizer),
                                     leati_optimizer_scalar_count(compiled.optimizer), err);
    }
    if (status != LEAT_OK) {
        leati_compiled_fini(&compiled);
        return leati_prefix(status, err, "compile");
    }
    leati_optimizer_preset(compiled.optimizer, &model->weights);
    model->compiled = compiled;
    model->as_keras3 = compiled.as_keras3;
    model->compiled.ready = true;
    leati_model_store_compilation(model, NULL);
    return LEAT_OK;
}

void leati_model_store_compilation(leat_model *model, const json_t *training_config) {
    json_t *stored = json_incref((json_t *)(uintptr_t)training_config);
    const char *arithmetic = json_string_value(json_object_get(training_config, arithmetic_key));
    (void)!read_arithmetic(&model->as_keras3, arithmetic, NULL); /* a wrong name is that of no arithmetic */
    json_decref(model->file_compilation);
    model->file_compilation = stored;
}

static const leat_compile_options defaults = {.optimizer = "rmsprop"};
static const leati_growing options_type = LEATI_GROWING(leat_compile_options, loss, &defaults);

void leat_compile_options_init(leat_compile_options *options, size_t size) {
    leati_growing_init(&options_type, options, size);
}

/* Gives the optimizer of a training_config the form of current Keras: `decay` becomes a schedule, and clipnorm
 * global_clipnorm. */
static leat_status renew_optimizer(json_t *training_config, leat_error *err) {
    const json_t *object = json_object_get(training_config, optimizer_key);
    leati_optimizer *optimizer = NULL;
    json_t *renewed = NULL;
    if (!object) return LEAT_OK;
    LEATI_TRY(leati_optimizer_create(&optimizer, object, false, err));
    leat_status status = leati_keras3_optimizer(optimizer, LEATI_KERAS3_H5, &renewed, err);
    leati_optimizer_destroy(&optimizer);
    if (status == LEAT_OK && json_object_set_new(training_config, optimizer_key, renewed) != 0)
        status = leati_fail(err, LEAT_ENOMEM, "no memory for the arguments of compile");
    return status;
}

/* Gives what the arguments that are not given are taken from (new reference): the current compilation, that of the
 * file, or nothing, which is NULL. */
static leat_status take_kept(const leat_model *model, const leat_compile_options *options, json_t **out,
                             leat_error *err) {
    *out = NULL;
    if (!options->keep) return LEAT_OK;
    if (model->compiled.ready) return leati_model_training_config(model, out, err);
    *out = json_incref(model->file_compilation);
    return LEAT_OK;
}

/* Like take_kept(), but the optimizer has the form of the arithmetic that is asked for. */
static leat_status find_kept(const leat_model *model, const leat_compile_options *options, json_t **out,
                             leat_error *err) {
    bool renews = !options->optimizer && !model->as_keras3 && options->arithmetic &&
                  strcmp(options->arithmetic, keras3) == 0;
    json_t *kept = NULL;
    LEATI_TRY(take_kept(model, options, &kept, err));
    *out = kept;
    if (!kept || !renews) return LEAT_OK;
    *out = json_copy(kept);
    json_decref(kept);
    if (!*out) return leati_fail(err, LEAT_ENOMEM, "no memory for the arguments of compile");
    return leati_prefix(renew_optimizer(*out, err), err, "compile");
}

/* Parses an argument (new reference); one that is not given has the value in `kept`, which may be NULL. */
static leat_status parse_one(const char *text, const char *key, const json_t *kept, json_t **out,
                             leat_error *err) {
    const char *name = strcmp(key, optimizer_key) == 0 ? "optimizer" : key;
    json_t *value = text ? NULL : json_object_get(kept, key);
    *out = json_incref(value);
    return value ? LEAT_OK : leati_argument_parse(text, name, out, err);
}

static leat_status parse_all(const leat_compile_options *options, const json_t *kept, json_t **optimizer,
                             json_t *arguments, leat_error *err) {
    const char *const texts[ARGUMENT_COUNT] = {options->loss, options->metrics, options->weighted_metrics,
                                               options->sample_weight_mode, options->loss_weights};
    const bool preset = !options->optimizer && !json_object_get(kept, optimizer_key);
    LEATI_TRY(parse_one(preset ? "rmsprop" : options->optimizer, optimizer_key, kept, optimizer, err));
    for (size_t i = 0; i < ARGUMENT_COUNT; ++i) {
        json_t *value = NULL;
        LEATI_TRY(parse_one(texts[i], argument_keys[i], kept, &value, err));
        if (json_object_set_new(arguments, argument_keys[i], value) != 0) {
            return leati_fail(err, LEAT_ENOMEM, "no memory for %s", argument_keys[i]);
        }
    }
    return LEAT_OK;
}

leat_status leat_model_compile(leat_model *model, const leat_compile_options *options, leat_error *err) {
    LEATI_GIVEN(model, err);
    LEATI_GIVEN(options, err);
    leat_compile_options all;
    LEATI_TRY(leati_growing_read(&options_type, options, &all, err));
    json_t *optimizer = NULL, *kept = NULL, *arguments = json_object();
    leat_status status = arguments ? find_kept(model, &all, &kept, err)
                                   : leati_fail(err, LEAT_ENOMEM, "no memory for the arguments of compile");
    if (status == LEAT_OK) status = parse_all(&all, kept, &optimizer, arguments, err);
    if (status == LEAT_OK) status = compile(model, optimizer, arguments, all.arithmetic, err);
    json_decref(kept);
    json_decref(optimizer);
    json_decref(arguments);
    return status;
}

leat_status leati_model_compile_config(leat_model *model, const json_t *training_config, leat_error *err) {
    const json_t *optimizer = json_object_get(training_config, optimizer_key);
    if (!optimizer)
        return leati_fail(err, LEAT_EFORMAT, "training_config: expected the key 'optimizer_config'");
    json_t *arguments = json_object();
    leat_status status =
        arguments ? LEAT_OK : leati_fail(err, LEAT_ENOMEM, "no memory for a training_config");
    for (size_t i = 0; status == LEAT_OK && i < ARGUMENT_COUNT; ++i) {
        json_t *value = json_object_get(training_config, argument_keys[i]);
        if (value && json_object_set(arguments, argument_keys[i], value) != 0) {
            status = leati_fail(err, LEAT_ENOMEM, "no memory for a training_config");
        }
    }
    const json_t *arithmetic = json_object_get(training_config, arithmetic_key);
    if (status == LEAT_OK && arithmetic && !json_is_string(arithmetic))
        status = leati_fail(err, LEAT_EFORMAT, "%s: expected \"keras2\" or \"keras3\"", arithmetic_key);
    if (status == LEAT_OK) status = compile(model, optimizer, arguments, json_string_value(arithmetic), err);
    json_decref(arguments);
    return status;
}

static json_t *empty_for(const char *key) {
    if (strcmp(key, "loss") == 0) return json_object();
    if (strcmp(key, "metrics") == 0) return json_array();
    return json_null();
}

leat_status leati_model_training_config(const leat_model *model, json_t **out, leat_error *err) {
    *out = NULL;
    if (!model->compiled.ready) return leati_fail(err, LEAT_EINVAL, "the model is not compiled");
    json_t *root = json_object(), *optimizer = NULL;
    leat_status status =
        root ? leati_optimizer_write(model->compiled.optimizer, &optimizer, err) : LEAT_ENOMEM;
    bool stored = status == LEAT_OK && json_object_set_new(root, optimizer_key, optimizer) == 0;
    for (size_t i = 0; stored && i < ARGUMENT_COUNT; ++i) {
        json_t *value = json_object_get(model->compiled.arguments, argument_keys[i]);
        json_t *written = !value || json_is_null(value) ? empty_for(argument_keys[i]) : json_incref(value);
        stored = json_object_set_new(root, argument_keys[i], written) == 0;
    }
    if (stored && model->as_keras3)
        stored = json_object_set_new(root, arithmetic_key, json_string(keras3)) == 0;
    if (!stored) {
        json_decref(root);
        return leati_fail(err, LEAT_ENOMEM, "no memory for a training_config");
    }
    *out = root;
    return LEAT_OK;
}

bool leat_model_is_compiled(const leat_model *model) {
    return model && model->compiled.ready;
}

double leat_model_learning_rate(const leat_model *model) {
    if (!leat_model_is_compiled(model)) return 0.0;
    const leati_optimizer *optimizer = model->compiled.optimizer;
    return optimizer->schedule ? leati_schedule_rate(optimizer->schedule, model->iterations)
                               : optimizer->config.learning_rate;
}

leat_status leati_model_set_rate(leat_model *model, double learning_rate, leat_error *err) {
    leati_optimizer *optimizer = model->compiled.optimizer;
    if (!optimizer) return LEAT_OK;
    if (optimizer->schedule)
        return leati_fail(
            err, LEAT_EINVAL,
            "the learning rate of the optimizer %s is the schedule %s, which cannot be set: expected an "
            "optimizer whose learning_rate is a number",
            optimizer->type->class_name, leati_schedule_name(optimizer->schedule));
    optimizer->config.learning_rate = (double)(float)learning_rate;
    return LEAT_OK;
}

void leat_model_set_learning_rate(leat_model *model, double learning_rate) {
    if (leat_model_is_compiled(model)) (void)!leati_model_set_rate(model, learning_rate, NULL);
}
