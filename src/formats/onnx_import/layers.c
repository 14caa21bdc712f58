/* SPDX-License-Identifier: Apache-2.0 */
/* Adds layers to the network of an import, and gives them the weights of the file.  Room: formats. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "formats/onnx_import/import.h"
#include "nn/custom/registry.h"

/* ---- Names ---- */

/* Copies a name of the file as the name of a layer: current Keras has no "/" in names.  A long name keeps its end,
 * which says more. */
static void name_of(const char *from, char out[LEAT_NAME_BYTES]) {
    while (*from == '/' || *from == ':') ++from;
    const size_t length = strlen(from), most = LEAT_NAME_BYTES - 8;
    if (length > most) from += length - most;
    size_t count = 0;
    for (; *from; ++from) {
        const char c = *from;
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        const char kept = plain || c == '.' || c == '-' ? c : '_';
        if (count > 0 || plain) out[count++] = kept;
    }
    out[count] = '\0';
    if (count == 0) snprintf(out, LEAT_NAME_BYTES, "layer");
}

/* Returns the module that a weight belongs to: "fc" for "fc.weight" and "fc/kernel". */
static bool module_of(const char *weight, char out[LEAT_NAME_BYTES]) {
    static const char *const ends[] = {".weight",     "/kernel",     "/depthwise_kernel", "/gamma",
                                       "/embeddings", "/scale",      ".weight_ih_l0",     "/recurrent_kernel",
                                       "/alpha",      "/moving_mean"};
    if (strncmp(weight, "onnx::", 6) == 0) return false;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; ++i) {
        const size_t length = strlen(weight), end = strlen(ends[i]);
        char start[4 * LEAT_NAME_BYTES];
        if (length <= end || length - end >= sizeof start || strcmp(weight + length - end, ends[i]) != 0)
            continue;
        snprintf(start, sizeof start, "%.*s", (int)(length - end), weight);
        name_of(start, out);
        return true;
    }
    return false;
}

static void unique(const leati_import *x, char name[LEAT_NAME_BYTES]) {
    char base[LEAT_NAME_BYTES];
    snprintf(base, sizeof base, "%.*s", LEAT_NAME_BYTES - 8, name);
    for (int number = 1; leati_network_find(x->model, name) >= 0; ++number)
        snprintf(name, LEAT_NAME_BYTES, "%.*s_%d", LEAT_NAME_BYTES - 8, base, number);
}

/* Names the next layer after the weight's module, the node, or the output of the node. */
static void choose_name(const leati_import *x, const leati_import_weight *weight, char out[LEAT_NAME_BYTES]) {
    const leati_import_node *node = x->node;
    if (weight && weight->tensor && module_of(weight->tensor->name, out))
        ;
    else if (node && node->name[0])
        name_of(node->name, out);
    else if (node && node->output_count > 0)
        name_of(node->outputs[0], out);
    else
        name_of("layer", out);
    unique(x, out);
}

/* ---- Configurations ---- */

static void keep(json_t **value, int failed) {
    if (!failed) return;
    json_decref(*value);
    *value = NULL;
}

void leati_import_append(json_t **list, json_t *item) {
    keep(list, json_array_append_new(*list, item));
}

void leati_import_put_key(json_t **object, const char *key, json_t *item) {
    keep(object, json_object_set_new(*object, key, item));
}

void leati_import_put_item(json_t **list, size_t index, json_t *item) {
    keep(list, json_array_set_new(*list, index, item));
}

/* ---- Layers ---- */

/* Sets "as_keras3" for a type that has it: the model computes as current Keras does. */
static bool set_version(const leati_layer_type *type, json_t *config) {
    for (const leati_field *field = type->fields; field->key; ++field)
        if (strcmp(field->key, "as_keras3") == 0 && !json_object_get(config, "as_keras3"))
            return json_object_set_new(config, "as_keras3", json_true()) == 0;
    return true;
}

/* Adds a layer without calling it; returns its member, -1 after a failure.  Consumes config. */
static int32_t add_member(leati_import *x, const char *class_name, json_t *config,
                          const leati_import_weight *weight) {
    char name[LEAT_NAME_BYTES];
    leat_error err = {0};
    leati_layer *layer = NULL;
    int32_t member = -1;
    const leati_layer_type *type = leati_registry_find(NULL, class_name, config, &err);
    const leati_layer_reader reader = leati_layer_reader_for(NULL);
    choose_name(x, weight, name);
    leat_status status = type ? LEAT_OK : LEAT_EINTERNAL;
    if (type && (json_object_set_new(config, "name", json_string(name)) != 0 || !set_version(type, config)))
        status = leati_fail(&err, LEAT_ENOMEM, "no memory for a layer");
    if (status == LEAT_OK) status = leati_layer_create(&layer, type, config, &reader, &err);
    if (status == LEAT_OK) status = leati_network_add_layer(x->model, &layer, &member, &err);
    json_decref(config);
    leati_import_failed(x, status, &err);
    return status == LEAT_OK ? member : -1;
}

static leati_source call(leati_import *x, int32_t member, int count, const leati_source *inputs) {
    leat_error err = {0};
    if (member < 0 || !leati_import_ok(x)) return (leati_source){0};
    leati_import_failed(x, leati_network_call(x->model, member, count, inputs, &err), &err);
    if (!leati_import_ok(x)) return (leati_source){0};
    return (leati_source){.layer = member, .call = x->model->members[member].call_count - 1};
}

/* Returns true if a layer can be made; frees the configuration otherwise. */
static bool is_ready(leati_import *x, json_t *config) {
    leat_error err = {0};
    if (!config) leati_import_failed(x, leati_fail(&err, LEAT_ENOMEM, "no memory for a layer"), &err);
    if (leati_import_ok(x)) return true;
    json_decref(config);
    return false;
}

leati_source leati_import_layer(leati_import *x, const char *class_name, json_t *config, int count,
                                const leati_source *inputs) {
    if (!is_ready(x, config)) return (leati_source){0};
    return call(x, add_member(x, class_name, config, NULL), count, inputs);
}

leati_source leati_import_input(leati_import *x, json_t *config) {
    leat_error err = {0};
    leati_layer *layer = NULL;
    int32_t member = 0;
    if (!is_ready(x, config)) return (leati_source){0};
    const leati_layer_type *type = leati_registry_find(NULL, "InputLayer", config, &err);
    const leati_layer_reader reader = leati_layer_reader_for(NULL);
    leat_status status = type ? leati_layer_create(&layer, type, config, &reader, &err) : LEAT_EINTERNAL;
    if (status == LEAT_OK) status = leati_network_add_layer(x->model, &layer, &member, &err);
    json_decref(config);
    leati_import_failed(x, status, &err);
    return (leati_source){.layer = member};
}

json_t *leati_import_argument(int index) {
    return json_pack("{s:i}", "input", index);
}

leati_source leati_import_operation(leati_import *x, const char *function, json_t *args, json_t *options,
                                    int count, const leati_source *inputs) {
    if (!options) options = json_object();
    json_t *config =
        args && options ? json_pack("{s:s, s:O, s:O}", "function", function, "args", args, "options", options)
                        : NULL;
    json_decref(args);
    json_decref(options);
    return leati_import_layer(x, "Operation", config, count, inputs);
}

leati_view leati_import_unary(leati_import *x, const char *function, const leati_view *view) {
    return leati_view_with(x, view,
                           leati_import_operation(x, function, json_pack("[o]", leati_import_argument(0)),
                                                  NULL, 1, &view->source));
}

leati_view leati_import_activation(leati_import *x, const char *activation, const leati_view *view) {
    return leati_view_with(x, view,
                           leati_import_layer(x, "Activation", json_pack("{s:s}", "activation", activation),
                                              1, &view->source));
}

/* ---- Order and shape ---- */

/* Returns the call that makes a source if it is of a layer of this class with one input. */
static const leati_call *call_of(const leati_import *x, leati_source source, const char *class_name) {
    const leati_member *member = &x->model->members[source.layer];
    if (!member->layer || strcmp(member->layer->type->class_name, class_name) != 0) return NULL;
    const leati_call *made = &member->calls[source.call];
    return made->input_count == 1 ? made : NULL;
}

static bool same_shape(const leati_shape *a, const leati_shape *b) {
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; ++i)
        if (a->dims[i] != b->dims[i]) return false;
    return true;
}

leati_source leati_import_permute(leati_import *x, leati_source source, const int *perm) {
    if (!leati_import_ok(x)) return source;
    const leati_shape shape = leati_network_shape(x->model, &source);
    json_t *dims = json_array();
    bool changes = false, set = dims != NULL;
    for (int i = 0; i < shape.rank; ++i) {
        changes = changes || perm[i] != i;
        if (i > 0) set = set && json_array_append_new(dims, json_integer(perm[i])) == 0;
    }
    if (!changes) {
        json_decref(dims);
        return source;
    }
    return leati_import_layer(x, "Permute", set ? json_pack("{s:o}", "dims", dims) : NULL, 1, &source);
}

/* Adds axes of length 1, where several axes of unknown length keep a Reshape from being used. */
static leati_source expand(leati_import *x, leati_source source, const leati_shape *from,
                           const leati_shape *to) {
    json_t *axes = json_array();
    int next = 0;
    for (int i = 0; axes && i < to->rank; ++i) {
        if (next < from->rank && from->dims[next] == to->dims[i])
            ++next;
        else if (to->dims[i] == 1)
            leati_import_append(&axes, json_integer(i));
        else
            next = from->rank + 1;
    }
    if (axes && next != from->rank)
        leati_import_refuse(
            x, "it needs a shape with two sizes that are open in the model; export the model with fixed "
               "sizes, except for the batch");
    json_t *options = axes ? json_pack("{s:o}", "axis", axes) : NULL;
    return leati_import_operation(x, "ExpandDims", json_pack("[o]", leati_import_argument(0)), options, 1,
                                  &source);
}

leati_source leati_import_to_shape(leati_import *x, leati_source source, const leati_shape *shape) {
    if (!leati_import_ok(x)) return source;
    const leati_shape from = leati_network_shape(x->model, &source);
    if (same_shape(&from, shape)) return source;
    const leati_call *before = call_of(x, source, "Reshape");
    if (before) {
        const leati_source inner = before->inputs[0];
        const leati_shape original = leati_network_shape(x->model, &inner);
        if (same_shape(&original, shape)) return inner;
    }
    int open = 0;
    for (int i = 1; i < shape->rank; ++i) open += shape->dims[i] < 0;
    if (open > 1) return expand(x, source, &from, shape);
    json_t *dims = json_array();
    bool set = dims != NULL;
    for (int i = 1; i < shape->rank; ++i)
        set = set && json_array_append_new(dims, json_integer(shape->dims[i])) == 0;
    return leati_import_layer(x, "Reshape", set ? json_pack("{s:o}", "target_shape", dims) : NULL, 1,
                              &source);
}

/* ---- Weights ---- */

leati_import_weight leati_import_weight_of(const leati_import_tensor *tensor) {
    leati_import_weight weight = {.tensor = tensor, .scale = 1};
    if (!tensor) return weight;
    weight.rank = tensor->rank;
    for (int i = 0; i < tensor->rank; ++i) weight.dims[i] = tensor->dims[i], weight.perm[i] = i;
    return weight;
}

static bool same_weight(const leati_import_weight *a, const leati_import_weight *b) {
    return a->tensor == b->tensor && !a->numbers && !b->numbers && a->rank == b->rank &&
           a->scale == b->scale && memcmp(a->dims, b->dims, sizeof a->dims) == 0 &&
           memcmp(a->perm, b->perm, sizeof a->perm) == 0;
}

/* Finds the layer of the same class, configuration and weights; -1: none. */
static int32_t find_layer(const leati_import *x, const char *class_name, const json_t *config, int count,
                          const leati_import_weight *weights) {
    for (int32_t i = 0; i < x->binding_count; ++i) {
        const leati_import_binding *b = &x->bindings[i];
        bool same =
            strcmp(b->class_name, class_name) == 0 && b->count == count && json_equal(b->config, config);
        for (int k = 0; same && k < count; ++k) same = same_weight(&b->weights[k], &weights[k]);
        if (same) return b->member;
    }
    return -1;
}

static leati_import_binding *new_binding(leati_import *x) {
    leat_error err = {0};
    if (x->binding_count == x->binding_capacity) {
        const int32_t more = x->binding_capacity ? 2 * x->binding_capacity : 64;
        leati_import_binding *moved = leati_realloc(x->bindings, (size_t)more, sizeof *moved);
        if (!moved) {
            leati_import_failed(x, leati_fail_memory(&err, (size_t)more * sizeof *moved, "weights"), &err);
            return NULL;
        }
        x->bindings = moved;
        x->binding_capacity = more;
    }
    leati_import_binding *binding = &x->bindings[x->binding_count++];
    *binding = (leati_import_binding){0};
    return binding;
}

leati_source leati_import_weighted(leati_import *x, const char *class_name, json_t *config, int input_count,
                                   const leati_source *inputs, int count,
                                   const leati_import_weight *weights) {
    if (!is_ready(x, config)) return (leati_source){0};
    const int32_t shared = find_layer(x, class_name, config, count, weights);
    if (shared >= 0) {
        json_decref(config);
        return call(x, shared, input_count, inputs);
    }
    leati_import_binding *binding = new_binding(x);
    if (binding) binding->config = json_deep_copy(config);
    if (!binding || !is_ready(x, binding->config)) {
        json_decref(config);
        return (leati_source){0};
    }
    binding->class_name = class_name;
    binding->count = count;
    memcpy(binding->weights, weights, (size_t)count * sizeof *weights);
    binding->member = add_member(x, class_name, config, &weights[0]);
    if (binding->member < 0) return (leati_source){0};
    snprintf(binding->layer, sizeof binding->layer, "%s", leati_member_name(x->model, binding->member));
    return call(x, binding->member, input_count, inputs);
}

/* Copies a weight with its axes permuted. */
static void copy_weight(const leati_import_weight *weight, float *out, int64_t count) {
    int64_t strides[LEAT_MAX_RANK], at[LEAT_MAX_RANK] = {0}, from = 0;
    if (weight->numbers) {
        memcpy(out, weight->numbers, (size_t)count * sizeof *out);
        return;
    }
    int64_t stride = 1;
    for (int i = weight->rank - 1; i >= 0; --i) {
        strides[i] = stride;
        stride *= weight->dims[i];
    }
    for (int64_t i = 0; i < count; ++i) {
        out[i] = weight->scale * (float)leati_import_number(weight->tensor, from);
        for (int k = weight->rank - 1; k >= 0; --k) {
            const int axis = weight->perm[k];
            from += strides[axis];
            if (++at[k] < weight->dims[axis]) break;
            from -= at[k] * strides[axis];
            at[k] = 0;
        }
    }
}

static void fill_layer(leati_import *x, const leati_import_binding *binding, char *slab) {
    leat_error err = {0};
    const int32_t member = leati_network_find(x->model, binding->layer);
    if (member < 0) return; /* no output needs it */
    if (leati_member_weight_count(x->model, member) != binding->count) {
        leati_import_failed(x,
                            leati_fail(&err, LEAT_EINTERNAL, "layer '%s': another number of weights",
                                       binding->layer),
                            &err);
        return;
    }
    for (int i = 0; i < binding->count; ++i) {
        const leati_weight *weight = &x->model->members[member].layer->weights[i];
        const leati_import_weight *from = &binding->weights[i];
        const int64_t count = leati_desc_count(&weight->desc);
        if (!from->numbers &&
            (leati_shape_count(from->rank, from->dims) != count || from->tensor->count != count))
            leati_import_failed(
                x,
                leati_fail(&err, LEAT_EFORMAT,
                           "layer '%s': weight '%s' needs %lld numbers, constant '%.64s' has %lld",
                           binding->layer, weight->name, (long long)count, from->tensor->name,
                           (long long)from->tensor->count),
                &err);
        if (!leati_import_ok(x)) return;
        copy_weight(from, (float *)(void *)(slab + weight->offset_bytes), count);
    }
}

void leati_import_fill(leati_import *x) {
    char *slab = leati_weights_slab(&x->model->weights, LEATI_SLAB_WEIGHTS);
    x->node = NULL;
    for (int32_t i = 0; i < x->binding_count && leati_import_ok(x); ++i) fill_layer(x, &x->bindings[i], slab);
    leati_model_weights_changed(x->model);
}
