/* SPDX-License-Identifier: Apache-2.0 */
/* The builder of include/leat/model.h.  A node is a tensor of a model that is being made; the builder keeps the
 * first error.  Room: nn. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "json/json.h"
#include "nn/config/name.h"
#include "nn/custom/registry.h"
#include "nn/layers/types.h"
#include "nn/model/builder.h"
#include "nn/network/surgery.h"
#include "nn/weights/weights.h"

leat_status leat_builder_create(leat_builder **out, leat_error *err) {
    LEATI_GIVEN(out, err);
    leat_builder *builder = leati_calloc(1, sizeof *builder);
    *out = NULL;
    if (!builder) return leati_fail_memory(err, sizeof *builder, "a builder");
    leat_status status = leati_network_create(&builder->model, "Model", err);
    if (status != LEAT_OK) {
        leat_builder_destroy(&builder);
        return status;
    }
    snprintf(builder->model->name, sizeof builder->model->name, "model_1");
    *out = builder;
    return LEAT_OK;
}

void leat_builder_destroy(leat_builder **builder) {
    if (!builder || !*builder) return;
    leat_builder *b = *builder;
    *builder = NULL;
    while (b->nodes) {
        leat_node *node = b->nodes;
        b->nodes = node->next;
        leati_free(node);
    }
    leat_model_destroy(&b->model);
    leati_free(b);
}

void leat_builder_use(leat_builder *builder, const leat_registry *registry) {
    if (builder) builder->registry = registry;
}

void leat_builder_set_name(leat_builder *builder, const char *name) {
    if (!builder || builder->failure.code != LEAT_OK) return;
    leat_status status = leati_name_check(name, &builder->failure);
    if (status == LEAT_OK)
        memcpy(builder->model->name, name, strlen(name) + 1);
    else
        leati_prefix(status, &builder->failure, "the model");
}

/* Keeps the failure in *err, unless the builder already has one. */
static void keep(leat_builder *builder, const leat_error *err) {
    if (builder->failure.code == LEAT_OK) builder->failure = *err;
}

leat_node *leati_builder_node(leat_builder *builder, leati_source source) {
    leat_error err = {0};
    leat_node *node = leati_calloc(1, sizeof *node);
    if (!node) {
        leati_fail_memory(&err, sizeof *node, "a node");
        keep(builder, &err);
        return NULL;
    }
    *node = (leat_node){.builder = builder, .source = source, .next = builder->nodes};
    builder->nodes = node;
    return node;
}

/* ---- Calls ---- */

/* Returns the builder of the tensors.  Returns NULL unless all tensors are of one builder without a failure; the
 * builder, if there is one, keeps the error. */
static leat_builder *builder_of(leat_node *const *x, int count) {
    leat_builder *builder = NULL;
    for (int i = 0; i < count && !builder; ++i) builder = x && x[i] ? x[i]->builder : NULL;
    if (!builder || builder->failure.code != LEAT_OK) return NULL;
    for (int i = 0; i < count; ++i) {
        if (x[i] && x[i]->builder == builder) continue;
        leat_error_set(&builder->failure, LEAT_EINVAL, "input %d of a layer is %s", i,
                       x[i] ? "of another builder" : "NULL");
        return NULL;
    }
    return builder;
}

static leat_node *call_member(leat_builder *builder, int32_t member, leat_node *const *x, int count) {
    leati_source sources[LEATI_MAX_INPUTS];
    leat_error err = {0};
    if (count > LEATI_MAX_INPUTS) {
        leat_error_set(&builder->failure, LEAT_ENOTSUP, "expected at most %d inputs, received %d",
                       LEATI_MAX_INPUTS, count);
        return NULL;
    }
    for (int i = 0; i < count; ++i) sources[i] = x[i]->source;
    if (leati_network_call(builder->model, member, count, sources, &err) != LEAT_OK) {
        keep(builder, &err);
        return NULL;
    }
    return leati_builder_node(builder,
                              (leati_source){member, builder->model->members[member].call_count - 1, 0});
}

static leat_status add_layer(leat_builder *builder, const char *class_name, const json_t *config,
                             int32_t *member, leat_error *err) {
    if (!class_name)
        return leati_fail(err, LEAT_EINVAL, "layer %d: its class is NULL", (int)builder->model->member_count);
    const leati_layer_type *type = leati_registry_find(builder->registry, class_name, config, err);
    const leati_layer_reader reader = leati_layer_reader_for(builder->registry);
    leati_layer *layer = NULL;
    if (!type) return LEAT_ENOTSUP;
    LEATI_TRY(leati_prefix(leati_layer_create(&layer, type, config, &reader, err), err, "layer %d (%s)",
                           (int)builder->model->member_count, class_name));
    return leati_network_add_layer(builder->model, &layer, member, err);
}

/* Consumes the reference to config. */
static leat_node *call_new(leat_node *const *x, int count, const char *class_name, json_t *config) {
    leat_builder *builder = builder_of(x, count);
    leat_error err = {0};
    int32_t member;
    leat_node *made = NULL;
    if (builder && !config) leati_fail(&builder->failure, LEAT_ENOMEM, "no memory for a configuration");
    if (builder && config) {
        if (add_layer(builder, class_name, config, &member, &err) == LEAT_OK)
            made = call_member(builder, member, x, count);
        else
            keep(builder, &err);
    }
    json_decref(config);
    return made;
}

leat_node *leat_merge(leat_node *const *x, int count, const char *class_name, const char *config) {
    leat_builder *builder = builder_of(x, count);
    json_t *parsed = NULL;
    leat_error err = {0};
    if (!builder) return NULL;
    if (!config) return call_new(x, count, class_name, json_object());
    leat_status status = leati_json_parse_argument(&parsed, config, strlen(config), &err);
    if (status != LEAT_OK) {
        leati_prefix(status, &err, "layer %d (%s)", (int)builder->model->member_count, class_name);
        keep(builder, &err);
        return NULL;
    }
    return call_new(x, count, class_name, parsed);
}

static leat_node *merge_printed(leat_node *const *x, int count, const char *class_name, const char *format,
                                va_list arguments) {
    leat_builder *builder = builder_of(x, count);
    va_list again;
    if (!builder) return NULL;
    if (!format) {
        if (builder->failure.code == LEAT_OK)
            leat_error_set(&builder->failure, LEAT_EINVAL, "a layer's format is NULL");
        return NULL;
    }
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    size_t bytes = length < 0 ? 1 : (size_t)length + 1;
    char *config = leati_calloc(bytes, 1);
    leat_node *made = NULL;
    if (!config)
        leati_fail_memory(&builder->failure, bytes, "a configuration");
    else if (vsnprintf(config, bytes, format, arguments) < 0)
        leati_fail(&builder->failure, LEAT_EINVAL, "layer %d (%s): the configuration cannot be printed",
                   (int)builder->model->member_count, class_name);
    else
        made = leat_merge(x, count, class_name, config);
    leati_free(config);
    return made;
}

leat_node *leat_mergef(leat_node *const *x, int count, const char *class_name, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    leat_node *made = merge_printed(x, count, class_name, format, arguments);
    va_end(arguments);
    return made;
}

leat_node *leat_layerf(leat_node *x, const char *class_name, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    leat_node *made = merge_printed(&x, 1, class_name, format, arguments);
    va_end(arguments);
    return made;
}

leat_node *leat_layer(leat_node *x, const char *class_name, const char *config) {
    return leat_merge(&x, 1, class_name, config);
}

leat_node *leat_batch_input(leat_builder *builder, const int64_t *batch_shape, int rank) {
    leat_error err = {0};
    int32_t member;
    if (!builder || builder->failure.code != LEAT_OK) return NULL;
    if (rank > LEAT_MAX_RANK) {
        leat_error_set(&builder->failure, LEAT_ESHAPE,
                       "expected an input of at most %d dimensions, with the batch; received %d",
                       LEAT_MAX_RANK, rank);
        return NULL;
    }
    if (!batch_shape && rank > 0) {
        leat_error_set(&builder->failure, LEAT_EINVAL, "an input's shape is NULL");
        return NULL;
    }
    json_t *dims = json_array(), *config = json_object();
    bool set = dims && config;
    for (int i = 0; set && i < rank; ++i)
        set = json_array_append_new(dims,
                                    batch_shape[i] == -1 ? json_null() : json_integer(batch_shape[i])) == 0;
    set = set && json_object_set(config, "batch_input_shape", dims) == 0;
    leat_status status = set ? add_layer(builder, leati_layer_input.class_name, config, &member, &err)
                             : leati_fail(&err, LEAT_ENOMEM, "no memory for an input");
    json_decref(dims);
    json_decref(config);
    if (status == LEAT_OK) return leati_builder_node(builder, (leati_source){member, 0, 0});
    keep(builder, &err);
    return NULL;
}

leat_node *leat_input(leat_builder *builder, const int64_t *shape, int rank) {
    int64_t batch_shape[LEAT_MAX_RANK + 1] = {-1};
    int known = rank < LEAT_MAX_RANK ? rank : LEAT_MAX_RANK;
    if (!shape && known > 0) return leat_batch_input(builder, NULL, 1 + known);
    for (int i = 0; i < known; ++i) batch_shape[1 + i] = shape[i];
    return leat_batch_input(builder, batch_shape, 1 + known);
}

leat_node *leat_call(leat_node *made, leat_node *const *x, int count) {
    leat_builder *builder = made ? builder_of(x, count) : NULL;
    if (!builder) return NULL;
    if (made->builder == builder) return call_member(builder, made->source.layer, x, count);
    leat_error_set(&builder->failure, LEAT_EINVAL, "a layer is called on tensors of another builder");
    return NULL;
}

leat_node *leat_call_model(leat_model **inner, leat_node *const *x, int count) {
    leat_builder *builder = builder_of(x, count);
    leat_error err = {0};
    int32_t member;
    if (!builder || !inner || !*inner) {
        leat_model_destroy(inner);
        return NULL;
    }
    /* The inner model gets a new name if its own is taken: the builder names models, so that two may be "model_1". */
    if (leati_network_find(builder->model, (*inner)->name) >= 0) (*inner)->name[0] = '\0';
    if (leati_network_add_model(builder->model, inner, &member, &err) == LEAT_OK)
        return call_member(builder, member, x, count);
    keep(builder, &err);
    return NULL;
}

leat_node *leat_output(leat_node *made, int index) {
    if (!made || made->builder->failure.code != LEAT_OK) return NULL;
    leati_source source = {made->source.layer, made->source.call, index};
    if (leati_network_has(made->builder->model, &source)) return leati_builder_node(made->builder, source);
    leat_error_set(&made->builder->failure, LEAT_EINVAL, "layer '%s' has no output %d",
                   leati_member_name(made->builder->model, source.layer), index);
    return NULL;
}

/* ---- The common layers ---- */

static leat_node *with(leat_node *x, const char *class_name, json_t *config) {
    return call_new(&x, 1, class_name, config);
}

leat_node *leat_dense(leat_node *x, int64_t units, const char *activation) {
    return with(x, leati_layer_dense.class_name,
                json_pack("{s:I, s:s?}", "units", (json_int_t)units, "activation", activation));
}

leat_node *leat_conv2d(leat_node *x, int64_t filters, int64_t kernel_size, const char *activation) {
    return with(x, leati_layer_conv2d.class_name,
                json_pack("{s:I, s:I, s:s?}", "filters", (json_int_t)filters, "kernel_size",
                          (json_int_t)kernel_size, "activation", activation));
}

leat_node *leat_max_pooling2d(leat_node *x, int64_t pool_size) {
    return with(x, leati_layer_max_pooling2d.class_name,
                json_pack("{s:I}", "pool_size", (json_int_t)pool_size));
}

leat_node *leat_average_pooling2d(leat_node *x, int64_t pool_size) {
    return with(x, leati_layer_average_pooling2d.class_name,
                json_pack("{s:I}", "pool_size", (json_int_t)pool_size));
}

leat_node *leat_flatten(leat_node *x) {
    return with(x, leati_layer_flatten.class_name, json_object());
}

leat_node *leat_dropout(leat_node *x, double rate) {
    json_t *config = json_object();
    if (config && json_object_set_new(config, "rate", leati_json_real(rate)) != 0) {
        json_decref(config);
        config = NULL;
    }
    return with(x, leati_layer_dropout.class_name, config);
}

leat_node *leat_batch_normalization(leat_node *x) {
    return with(x, leati_layer_batch_normalization.class_name, json_object());
}

leat_node *leat_activation(leat_node *x, const char *activation) {
    return with(x, leati_layer_activation.class_name, json_pack("{s:s?}", "activation", activation));
}

leat_node *leat_lstm(leat_node *x, int64_t units, bool return_sequences) {
    return with(x, leati_layer_lstm.class_name,
                json_pack("{s:I, s:b}", "units", (json_int_t)units, "return_sequences",
                          (int)return_sequences));
}

/* ---- The whole ---- */

static leat_status sources_of(const leat_builder *builder, leat_node *const *nodes, int count,
                              const char *what, leati_source **out, leat_error *err) {
    if (!nodes || count < 1)
        return leati_fail(err, LEAT_EINVAL, nodes ? "expected at least one %s" : "%ss is NULL", what);
    *out = leati_calloc((size_t)count, sizeof **out);
    if (!*out) return leati_fail_memory(err, sizeof **out, what);
    for (int i = 0; i < count; ++i) {
        if (!nodes[i] || nodes[i]->builder != builder)
            return leati_fail(err, LEAT_EINVAL, "%s %d is %s", what, i,
                              nodes[i] ? "of another builder" : "NULL");
        (*out)[i] = nodes[i]->source;
    }
    return LEAT_OK;
}

/* Makes an InputLayer in place of each input that is a tensor inside the network. */
static leat_status begin_at_inputs(leat_model *model, leati_source *inputs, int input_count,
                                   leati_source *outputs, int output_count, leat_error *err) {
    for (int i = 0; i < input_count; ++i) {
        const leati_source before = inputs[i];
        char name[LEAT_NAME_BYTES];
        leati_name_append(name, leati_member_name(model, before.layer), "_output");
        LEATI_TRY(leati_network_begin_at(model, &inputs[i], name, err));
        for (int j = 0; j < output_count; ++j)
            if (memcmp(&outputs[j], &before, sizeof before) == 0) outputs[j] = inputs[i];
    }
    return LEAT_OK;
}

static leat_status finish(leat_builder *builder, leat_node *const *inputs, int input_count,
                          leat_node *const *outputs, int output_count, leat_error *err) {
    leati_source *in = NULL, *out = NULL;
    leat_status status = (leat_status)builder->failure.code;
    if (status != LEAT_OK) {
        if (err) *err = builder->failure;
        return status;
    }
    status = sources_of(builder, inputs, input_count, "input", &in, err);
    if (status == LEAT_OK) status = sources_of(builder, outputs, output_count, "output", &out, err);
    if (status == LEAT_OK) status = begin_at_inputs(builder->model, in, input_count, out, output_count, err);
    if (status == LEAT_OK)
        status = leati_network_finish_again(builder->model, input_count, in, output_count, out, err);
    if (status == LEAT_OK && builder->from_model) status = leati_network_drop_unread(builder->model, err);
    if (status == LEAT_OK) status = leati_weights_layout(builder->model, err);
    leati_free(in);
    leati_free(out);
    return status;
}

leat_status leat_model_create(leat_model **out, leat_builder **builder, leat_node *const *inputs,
                              int input_count, leat_node *const *outputs, int output_count, leat_error *err) {
    if (out) *out = NULL;
    if (!builder || !*builder) return leati_fail(err, LEAT_EINVAL, "the builder is NULL");
    if (!out) {
        leat_builder_destroy(builder);
        LEATI_GIVEN(out, err);
    }
    leat_status status = finish(*builder, inputs, input_count, outputs, output_count, err);
    if (status == LEAT_OK) {
        (*builder)->model->parts = leati_part_hold(leati_registry_parts((*builder)->registry));
        *out = (*builder)->model;
        (*builder)->model = NULL;
    }
    leat_builder_destroy(builder);
    return leati_prefix(status, err, "model");
}
