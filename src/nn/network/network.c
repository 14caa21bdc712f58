/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a model of members and calls, and frees it.  Room: nn. */
#include "nn/network/network.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/config/name.h"
#include "nn/layers/recurrence.h"
#include "nn/layers/types.h"

leat_status leati_network_create(leat_model **out, const char *class_name, leat_error *err) {
    leat_model *model = leati_calloc(1, sizeof *model);
    *out = model;
    if (!model) return leati_fail_memory(err, sizeof *model, "a model");
    snprintf(model->class_name, sizeof model->class_name, "%s", class_name);
    model->trainable = true;
    atomic_init(&model->stop_requested, false);
    return LEAT_OK;
}

/* Makes room for one more element.  Arrays grow to powers of two, so that no capacity need be stored. */
static leat_status reserve(void **items, int32_t count, size_t size, const char *what, leat_error *err) {
    bool full = (count & (count - 1)) == 0; /* count is 0 or a power of two */
    if (!full) return LEAT_OK;
    size_t capacity = count ? 2 * (size_t)count : 1;
    void *grown = leati_realloc(*items, capacity, size);
    if (!grown) return leati_fail_memory(err, capacity * size, what);
    *items = grown;
    return LEAT_OK;
}

int32_t leati_network_find(const leat_model *model, const char *name) {
    for (int32_t i = 0; i < model->member_count; ++i)
        if (strcmp(leati_member_name(model, i), name) == 0) return i;
    return -1;
}

leat_status leati_network_check_counts(const leat_model *model, leat_error *err) {
    if (model->input_count <= LEATI_NETWORK_MAX_OUTPUTS && model->output_count <= LEATI_NETWORK_MAX_OUTPUTS)
        return LEAT_OK;
    return leati_fail(
        err, LEAT_ENOTSUP,
        "expected a model with at most %d inputs and at most %d outputs, received %d and %d; put "
        "another model in front of it that cuts the inputs out of a single array "
        "(docs/caveats.md)",
        LEATI_NETWORK_MAX_OUTPUTS, LEATI_NETWORK_MAX_OUTPUTS, (int)model->input_count,
        (int)model->output_count);
}

/* Returns the number in "<prefix>_<number>"; 0 if the name has another form. */
static int32_t number_of(const char *name, const char *prefix, size_t length) {
    int32_t number = 0;
    if (strncmp(name, prefix, length) != 0 || name[length] != '_' || name[length + 1] == '0') return 0;
    for (const char *digit = name + length + 1; *digit; ++digit) {
        if (*digit < '0' || *digit > '9' || number > LEATI_NETWORK_MAX_MEMBERS) return 0;
        number = 10 * number + (*digit - '0');
    }
    return number;
}

/* If all numbers up to the largest one are taken, which is usual, one loop over the names is enough. */
void leati_network_free_name(const leat_model *model, const char *prefix, char out[LEAT_NAME_BYTES]) {
    const size_t length = strlen(prefix);
    int32_t taken = 0, largest = 0;
    for (int32_t i = 0; i < model->member_count; ++i) {
        int32_t number = number_of(leati_member_name(model, i), prefix, length);
        taken += number > 0;
        if (number > largest) largest = number;
    }
    for (int32_t i = taken == largest ? largest + 1 : 1; i <= model->member_count + 1; ++i) {
        snprintf(out, LEAT_NAME_BYTES, "%s_%d", prefix, (int)i);
        if (leati_network_find(model, out) < 0) return;
    }
}

/* Appends a zeroed member without counting it, and gives it a name if it has none. */
static leat_status add_member(leat_model *model, char name[LEAT_NAME_BYTES], const char *prefix,
                              leat_error *err) {
    void *members = model->members;
    if (model->member_count == LEATI_NETWORK_MAX_MEMBERS)
        return leati_fail(err, LEAT_ENOTSUP, "expected at most %d layers", LEATI_NETWORK_MAX_MEMBERS);
    if (!name[0])
        leati_network_free_name(model, prefix, name);
    else if (leati_network_find(model, name) >= 0)
        return leati_fail(err, LEAT_EINVAL,
                          "expected names that are unique in the model, received '%s' twice", name);
    LEATI_TRY(reserve(&members, model->member_count, sizeof *model->members, "layers", err));
    model->members = members;
    model->members[model->member_count] = (leati_member){0};
    return LEAT_OK;
}

static leat_status add_call(leati_member *member, int32_t count, const leati_source *inputs, leati_call *call,
                            leat_error *err) {
    void *calls = member->calls;
    LEATI_TRY(reserve(&calls, member->call_count, sizeof *member->calls, "calls", err));
    member->calls = calls;
    call->input_count = count;
    if (count > 0) {
        call->inputs = leati_memdup(inputs, (size_t)count * sizeof *inputs);
        if (!call->inputs) return leati_fail_memory(err, (size_t)count * sizeof *inputs, "calls");
    }
    member->calls[member->call_count++] = *call;
    return LEAT_OK;
}

leat_status leati_network_add_layer(leat_model *model, leati_layer **layer, int32_t *member,
                                    leat_error *err) {
    leati_layer *added = *layer;
    *layer = NULL;
    leat_status status = add_member(model, added->name, added->type->name_prefix, err);
    if (status != LEAT_OK) {
        leati_layer_destroy(&added);
        return status;
    }
    *member = model->member_count++;
    model->members[*member].layer = added;
    if (!leati_layer_is_input(added)) return LEAT_OK;
    leati_call call = {.output_count = 1, .outputs = {added->batch_input_shape}};
    return add_call(&model->members[*member], 0, NULL, &call, err);
}

leat_status leati_network_add_model(leat_model *model, leat_model **inner, int32_t *member, leat_error *err) {
    leat_model *added = *inner;
    *inner = NULL;
    bool sequential = strcmp(added->class_name, "Sequential") == 0;
    leat_status status = add_member(model, added->name, sequential ? "sequential" : "model", err);
    if (status != LEAT_OK) {
        leat_model_destroy(&added);
        return status;
    }
    *member = model->member_count++;
    model->members[*member].model = added;
    return LEAT_OK;
}

bool leati_network_has(const leat_model *model, const leati_source *source) {
    if (source->layer < 0 || source->layer >= model->member_count) return false;
    const leati_member *member = &model->members[source->layer];
    if (source->call < 0 || source->call >= member->call_count) return false;
    return source->tensor >= 0 && source->tensor < member->calls[source->call].output_count;
}

leati_shape leati_network_shape(const leat_model *model, const leati_source *source) {
    return model->members[source->layer].calls[source->call].outputs[source->tensor];
}

/* ---- Calls ---- */

static leat_status call_layer(leati_layer *layer, int32_t count, const leati_shape *shapes, leati_call *call,
                              leat_error *err) {
    int outputs = 0;
    if (leati_layer_is_input(layer)) return leati_fail(err, LEAT_EINVAL, "an InputLayer has no inputs");
    LEATI_TRY(leati_layer_infer(layer, count, shapes, call->outputs, &outputs, err));
    call->output_count = outputs;
    return leati_layer_build(layer, count, shapes, err);
}

leat_status leati_network_infer_call(leat_model *inner, int count, const leati_shape *shapes,
                                     leati_shape *outputs, int *output_count, leat_error *err) {
    if (inner->input_count == 0 && count == 1) LEATI_TRY(leati_sequential_connect(inner, &shapes[0], err));
    if (inner->input_count != count)
        return leati_fail(err, LEAT_EINVAL, "expected %d inputs, received %d", (int)inner->input_count,
                          count);
    if (inner->output_count > LEATI_LAYER_MAX_OUTPUTS)
        return leati_fail(err, LEAT_ENOTSUP,
                          "expected at most %d outputs of a model that is used as a layer, received %d",
                          LEATI_LAYER_MAX_OUTPUTS, (int)inner->output_count);
    *output_count = inner->output_count;
    return leati_network_infer(inner, shapes, outputs, err);
}

static leat_status shapes_of(const leat_model *model, int32_t count, const leati_source *inputs,
                             leati_shape *shapes, leat_error *err) {
    for (int32_t i = 0; i < count; ++i) {
        if (!leati_network_has(model, &inputs[i]))
            return leati_fail(err, LEAT_EINVAL, "input %d is not a tensor of this model", (int)i);
        shapes[i] = leati_network_shape(model, &inputs[i]);
    }
    return LEAT_OK;
}

/* Checks the mask of a Softmax, which says for each element if it counts. */
static leat_status check_class_mask(int32_t count, const leati_shape *shapes, leat_error *err) {
    const leati_shape *x = &shapes[0], *mask = &shapes[count - 1];
    bool fits = count > 1 && mask->rank == x->rank;
    for (int32_t i = 1; fits && i < x->rank; ++i)
        fits = mask->dims[i] <= 1 || x->dims[i] < 0 || mask->dims[i] == x->dims[i];
    return fits ? LEAT_OK : leati_shape_unexpected(mask, "a mask of the input's shape, or of size 1", err);
}

/* Checks that a layer takes the argument `mask`, and the shape of the mask, which is the last of the shapes. */
static leat_status check_mask(const leati_member *member, int32_t count, const leati_shape *shapes,
                              leat_error *err) {
    const leati_layer *layer = member->layer;
    if (layer && layer->type == &leati_layer_softmax) return check_class_mask(count, shapes, err);
    bool takes = layer && (leati_recurrence_of(layer) || layer->type == &leati_layer_bidirectional ||
                           layer->type == &leati_layer_global_average_pooling1d);
    if (!takes)
        return leati_fail(err, LEAT_ENOTSUP,
                          "called with the argument 'mask', which leat supports for recurrent layers, "
                          "Bidirectional, GlobalAveragePooling1D and Softmax only");
    const leati_shape *x = &shapes[0], *mask = &shapes[count - 1];
    bool fits = count > 1 && mask->rank == 2 && x->rank > 2 &&
                (mask->dims[1] < 0 || x->dims[1] < 0 || mask->dims[1] == x->dims[1]);
    if (!fits) return leati_shape_unexpected(mask, "a mask (batch, steps) of the input's length", err);
    return LEAT_OK;
}

static leat_status make_call(leat_model *model, leati_member *member, int32_t count,
                             const leati_source *inputs, bool masked, leat_error *err) {
    leati_shape shapes[LEATI_MAX_INPUTS];
    leati_call call = {.masked = masked};
    const int32_t all = count;
    if (count > LEATI_MAX_INPUTS)
        return leati_fail(err, LEAT_ENOTSUP, "expected at most %d inputs, received %d", LEATI_MAX_INPUTS,
                          (int)count);
    LEATI_TRY(shapes_of(model, count, inputs, shapes, err));
    if (masked) LEATI_TRY(check_mask(member, count--, shapes, err));
    if (member->layer) {
        LEATI_TRY(call_layer(member->layer, count, shapes, &call, err));
    } else {
        int outputs = 0;
        LEATI_TRY(leati_network_infer_call(member->model, count, shapes, call.outputs, &outputs, err));
        call.output_count = outputs;
    }
    return add_call(member, all, inputs, &call, err);
}

static leat_status call_member(leat_model *model, int32_t member, int32_t count, const leati_source *inputs,
                               bool masked, leat_error *err) {
    leati_member *m = &model->members[member];
    leat_status status = make_call(model, m, count, inputs, masked, err);
    return leati_prefix(status, err, "layer '%s' (%s)", leati_member_name(model, member),
                        m->layer ? m->layer->type->class_name : m->model->class_name);
}

leat_status leati_network_call(leat_model *model, int32_t member, int32_t count, const leati_source *inputs,
                               leat_error *err) {
    return call_member(model, member, count, inputs, false, err);
}

leat_status leati_network_call_masked(leat_model *model, int32_t member, int32_t count,
                                      const leati_source *inputs, leat_error *err) {
    return call_member(model, member, count, inputs, true, err);
}

/* ---- Sequential ---- */

/* Returns the batch_input_shape of the first layer, also if it is in a nested model; NULL if there is none. */
static const leati_shape *declared_input_shape(const leat_model *model) {
    const leati_member *first = &model->members[0];
    if (model->member_count == 0) return NULL;
    if (first->model) return declared_input_shape(first->model);
    return first->layer && first->layer->has_batch_input_shape ? &first->layer->batch_input_shape : NULL;
}

leat_status leati_network_add_input(leat_model *model, const char *name, const leati_shape *shape,
                                    int32_t *member, leat_error *err) {
    leati_layer *input = leati_calloc(1, sizeof *input);
    if (!input) return leati_fail_memory(err, sizeof *input, "a layer");
    *input =
        (leati_layer){.type = &leati_layer_input, .has_batch_input_shape = true, .batch_input_shape = *shape};
    leati_name_append(input->name, name, "");
    input->config = leati_calloc(1, input->type->config_bytes);
    if (!input->config) {
        leati_layer_destroy(&input);
        return leati_fail_memory(err, leati_layer_input.config_bytes, "a layer");
    }
    if (leati_network_find(model, input->name) >= 0) input->name[0] = '\0';
    return leati_network_add_layer(model, &input, member, err);
}

static leat_status add_first_input(leat_model *model, const char *base, const leati_shape *shape,
                                   leat_error *err) {
    char name[LEAT_NAME_BYTES];
    int32_t member;
    leati_name_append(name, base, "_input");
    LEATI_TRY(leati_network_add_input(model, name, shape, &member, err));
    leati_member moved = model->members[member];
    memmove(&model->members[1], &model->members[0], (size_t)member * sizeof moved);
    model->members[0] = moved;
    return LEAT_OK;
}

leat_status leati_sequential_connect(leat_model *model, const leati_shape *shape, leat_error *err) {
    bool has_input =
        model->member_count > 0 && model->members[0].layer && leati_layer_is_input(model->members[0].layer);
    const leati_shape *declared = declared_input_shape(model);
    if (model->member_count == 0)
        return leati_fail(err, LEAT_EINVAL, "expected a Sequential with layers, received none");
    if (!has_input) {
        const char *base = declared ? leati_member_name(model, 0) : model->name;
        LEATI_TRY(add_first_input(model, base, declared ? declared : shape, err));
    }
    leati_source last = {0};
    for (int32_t i = 1; i < model->member_count; ++i) {
        LEATI_TRY(leati_network_call(model, i, 1, &last, err));
        last = (leati_source){.layer = i};
        if (model->members[i].calls[0].output_count != 1)
            return leati_fail(
                err, LEAT_EINVAL,
                "layer '%s': expected one output in a Sequential, received %d; use a functional model",
                leati_member_name(model, i), (int)model->members[i].calls[0].output_count);
    }
    return leati_network_finish(model, 1, &(leati_source){0}, 1, &last, err);
}

/* ---- Members, inputs and outputs ---- */

const char *leati_member_name(const leat_model *model, int member) {
    const leati_member *m = &model->members[member];
    return m->layer ? m->layer->name : m->model->name;
}

/* Returns the key of an input or output in Keras's dictionary, or the name of its layer. */
static const char *end_name(const leat_model *model, const json_t *keys, const leati_source *end, int index) {
    const char *key = json_string_value(json_array_get(keys, (size_t)index));
    return key ? key : leati_member_name(model, end->layer);
}

const char *leati_model_input_name(const leat_model *model, int index) {
    return end_name(model, model->input_keys, &model->inputs[index], index);
}

const char *leati_model_output_name(const leat_model *model, int index) {
    return end_name(model, model->output_keys, &model->outputs[index], index);
}

void leati_network_forget_keys(leat_model *model) {
    json_decref(model->input_keys);
    json_decref(model->output_keys);
    model->input_keys = model->output_keys = NULL;
}

leati_shape leati_model_input_shape(const leat_model *model, int index) {
    return leati_network_shape(model, &model->inputs[index]);
}

leati_shape leati_model_output_shape(const leat_model *model, int index) {
    return leati_network_shape(model, &model->outputs[index]);
}

/* ---- The end ---- */

void leati_compiled_fini(leati_compiled *compiled) {
    if (compiled->optimizer) leati_optimizer_destroy(&compiled->optimizer);
    for (int i = 0; compiled->losses && i < compiled->output_count; ++i)
        leati_loss_fini(&compiled->losses[i]);
    leati_free(compiled->losses);
    for (int i = 0; i < compiled->metric_count; ++i) leati_metric_fini(&compiled->metrics[i]);
    leati_free(compiled->metrics);
    json_decref(compiled->arguments);
    *compiled = (leati_compiled){0};
}

void leat_model_destroy(leat_model **model) {
    if (!model || !*model) return;
    leat_model *m = *model;
    *model = NULL;
    if (atomic_fetch_sub(&m->holders, 1) > 0) return;
    if (m->session && m->session_destroy) m->session_destroy(&m->session);
    if (m->publication && m->publication_destroy) m->publication_destroy(&m->publication);
    leati_compiled_fini(&m->compiled);
    json_decref(m->file_compilation);
    leati_network_forget_keys(m);
    json_decref(m->layer_order);
    leati_part_release(&m->parts);
    leati_weights_fini(&m->weights);
    leati_network_fini(m);
    leati_free(m);
}
