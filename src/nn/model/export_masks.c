/* SPDX-License-Identifier: Apache-2.0 */
/* Follows masks through a model, to find what current Keras would compute otherwise.  Room: nn. */
#include "nn/model/export_masks.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/config/object.h"
#include "nn/layers/recurrence.h"
#include "nn/layers/types.h"

#define ADVICE "save the model as .h5 for Keras 2.3.1"

/* The mask of a tensor. */
typedef struct mask {
    int32_t id;         /* equal masks have equal numbers; 0: no mask */
    const char *joiner; /* the layer that joins masks in another way in current Keras; NULL: none */
    const char *filler; /* the layer whose outputs at masked steps are others in current Keras; NULL: none */
} mask;

/* The state of a walk through a model. */
typedef struct walk {
    int32_t last_id;
    leat_error *err;
} walk;

/* A call of a layer. */
typedef struct layer_call {
    const leati_layer *layer;
    int32_t input_count;
    const mask *inputs;
    mask *outputs; /* begin as tensors without masks */
    bool masked;   /* the call has the argument `mask` */
} layer_call;

/* ---- Refusals ---- */

static leat_status refuse_states(walk *w, const leati_layer *layer) {
    return leati_fail(
        w->err, LEAT_ENOTSUP,
        "layer '%s' (%s): its input has a mask, which current Keras ignores in a call with initial "
        "states; " ADVICE,
        layer->name, layer->type->class_name);
}

static leat_status refuse_values(walk *w, const leati_layer *layer) {
    return leati_fail(
        w->err, LEAT_ENOTSUP,
        "layer '%s' (%s): its inputs have different masks, and current Keras leaves the masked steps of "
        "an input out; " ADVICE,
        layer->name, layer->type->class_name);
}

/* Fails if the layer or output `reader`, which uses the mask, gets another one in current Keras. */
static leat_status check_joined(walk *w, const mask *m, const char *reader) {
    if (!m->joiner) return LEAT_OK;
    return leati_fail(
        w->err, LEAT_ENOTSUP,
        "layer '%s': current Keras treats the masks of its inputs in another way than Keras 2.3.1, and "
        "'%s' uses the result; " ADVICE,
        m->joiner, reader);
}

/* Fails if `reader` uses the values at masked steps, and these are other values in current Keras. */
static leat_status check_filled(walk *w, const mask *m, const char *reader) {
    if (!m->filler) return LEAT_OK;
    return leati_fail(
        w->err, LEAT_ENOTSUP,
        "layer '%s': current Keras gives its outputs other values at masked steps than Keras 2.3.1, and "
        "'%s' uses these steps; " ADVICE,
        m->filler, reader);
}

/* ---- Layers ---- */

static mask new_mask(walk *w) {
    return (mask){.id = ++w->last_id};
}

/* Returns a mask that depends on the masks of all inputs of a call. */
static mask joined(walk *w, const layer_call *call) {
    mask out = {0};
    bool differ = false;
    for (int32_t i = 0; i < call->input_count; ++i) {
        const mask *in = &call->inputs[i];
        differ = differ || (in->id && out.id && in->id != out.id);
        if (!out.id) out.id = in->id;
        if (!out.joiner) out.joiner = in->joiner;
        if (!out.filler) out.filler = in->filler;
    }
    if (differ) out.id = ++w->last_id;
    return out;
}

static bool true_key(const json_t *config, const char *key) {
    return json_is_true(json_object_get(config, key));
}

static bool is_one_of(const leati_layer_type *type, const leati_layer_type *const *types) {
    while (*types && *types != type) ++types;
    return *types != NULL;
}

/* Add and its kind: 2.3.1 takes the steps that count in all masks, current Keras those that count in any, and makes no
 * mask if an input has none; Concatenate likewise, with ones for an input without a
 * mask.  Current Keras's Multiply, Maximum and Minimum leave masked steps of an input out. */
static leat_status pass_merge(walk *w, const layer_call *call, const json_t *config) {
    static const leati_layer_type *const by_masks[] = {&leati_layer_multiply, &leati_layer_maximum,
                                                       &leati_layer_minimum, NULL};
    const bool concatenates = call->layer->type == &leati_layer_concatenate;
    bool all_equal = true, without = false;
    for (int32_t i = 0; i < call->input_count; ++i) {
        all_equal = all_equal && call->inputs[i].id == call->inputs[0].id;
        without = without || !call->inputs[i].id;
    }
    call->outputs[0] = joined(w, call);
    if (all_equal && !call->inputs[0].id) return LEAT_OK;
    if (!true_key(config, "as_keras3") && is_one_of(call->layer->type, by_masks)) {
        if (!all_equal) return refuse_values(w, call->layer);
        call->outputs[0].filler = call->layer->name;
    }
    if (all_equal) return LEAT_OK;
    if (!true_key(config, "as_keras3"))
        call->outputs[0].joiner = call->layer->name;
    else if (concatenates)
        call->outputs[0].id = ++w->last_id;
    else if (without)
        call->outputs[0].id = 0;
    return LEAT_OK;
}

/* A recurrent layer, or a Bidirectional; `config` is that of the recurrent layer. */
static leat_status pass_recurrent(walk *w, const layer_call *call, const json_t *config) {
    const leati_layer *layer = call->layer;
    const mask *in = &call->inputs[0];
    const bool current = true_key(config, "as_keras3"), with_states = call->input_count > 1;
    if (!in->id) return check_filled(w, in, layer->name);
    LEATI_TRY(check_joined(w, in, layer->name));
    if (with_states && !current) return refuse_states(w, layer);
    if (with_states) LEATI_TRY(check_filled(w, in, layer->name));
    if (!true_key(config, "return_sequences")) return LEAT_OK;
    call->outputs[0].id = in->id;
    if (layer->type == &leati_layer_bidirectional && !current && !true_key(config, "zero_output_for_mask"))
        call->outputs[0].filler = layer->name;
    return LEAT_OK;
}

/* Layers that read masked steps together with others, and whose outputs have the mask of the first input. */
static leat_status pass_attention(walk *w, const layer_call *call) {
    for (int32_t i = 0; i < call->input_count; ++i) {
        LEATI_TRY(check_joined(w, &call->inputs[i], call->layer->name));
        LEATI_TRY(check_filled(w, &call->inputs[i], call->layer->name));
    }
    call->outputs[0].id = call->inputs[0].id;
    return LEAT_OK;
}

static leat_status pass_pooling(walk *w, const layer_call *call) {
    if (!call->inputs[0].id) return check_filled(w, &call->inputs[0], call->layer->name);
    return check_joined(w, &call->inputs[0], call->layer->name);
}

/* Softmax of current Keras takes the mask of its input for a mask of the classes. */
static leat_status pass_softmax(walk *w, const layer_call *call) {
    if (call->masked) return LEAT_OK;
    call->outputs[0] = call->inputs[0];
    if (!call->inputs[0].id) return LEAT_OK;
    return leati_fail(
        w->err, LEAT_ENOTSUP,
        "layer '%s' (Softmax): its input has a mask of steps, which current Keras takes for a mask of "
        "the classes; use Activation('softmax'), or " ADVICE,
        call->layer->name);
}

/* Layers without a rule of their own: they pass the mask on, or drop it and read all steps. */
static leat_status pass_other(walk *w, const layer_call *call) {
    const leati_layer *layer = call->layer;
    const leati_masking masking = layer->type->masking;
    bool drops = masking == LEATI_MASK_DROPPED || masking == LEATI_MASK_REFUSED ||
                 layer->type == &leati_layer_dot || layer->type == &leati_layer_operation;
    for (int32_t i = 0; drops && i < call->input_count; ++i)
        LEATI_TRY(check_filled(w, &call->inputs[i], layer->name));
    if (!drops) call->outputs[0] = joined(w, call);
    return LEAT_OK;
}

static leat_status pass_with_config(walk *w, const layer_call *call, const json_t *config) {
    static const leati_layer_type *const merges[] = {&leati_layer_add,         &leati_layer_subtract,
                                                     &leati_layer_multiply,    &leati_layer_average,
                                                     &leati_layer_maximum,     &leati_layer_minimum,
                                                     &leati_layer_concatenate, NULL};
    static const leati_layer_type *const attentions[] = {&leati_layer_attention,
                                                         &leati_layer_additive_attention,
                                                         &leati_layer_multi_head_attention,
                                                         &leati_layer_group_query_attention,
                                                         &leati_layer_transformer_decoder,
                                                         &leati_layer_transformer_encoder,
                                                         NULL};
    const leati_layer_type *type = call->layer->type;
    if (is_one_of(type, merges)) return pass_merge(w, call, config);
    if (is_one_of(type, attentions)) return pass_attention(w, call);
    if (leati_recurrence_of(call->layer)) return pass_recurrent(w, call, config);
    if (type == &leati_layer_bidirectional)
        return pass_recurrent(w, call, json_object_get(json_object_get(config, "layer"), "config"));
    if (type == &leati_layer_global_average_pooling1d) return pass_pooling(w, call);
    if (type == &leati_layer_softmax) return pass_softmax(w, call);
    if (type == &leati_layer_masking) {
        call->outputs[0] = new_mask(w);
        return check_filled(w, &call->inputs[0], call->layer->name);
    }
    if (type == &leati_layer_embedding || type == &leati_layer_reversible_embedding) {
        if (true_key(config, "mask_zero") && call->input_count == 1) call->outputs[0] = new_mask(w);
        return LEAT_OK;
    }
    return pass_other(w, call);
}

static leat_status pass_layer(walk *w, const layer_call *call) {
    json_t *config = NULL;
    LEATI_TRY(leati_layer_config(call->layer, &config, w->err));
    leat_status status = pass_with_config(w, call, config);
    json_decref(config);
    return status;
}

/* ---- Models ---- */

static leat_status pass_model(walk *w, const leat_model *model, const mask *inputs, mask *outputs);

static size_t index_of(const leat_model *model, int32_t member, int32_t call, int32_t tensor) {
    return (size_t)(model->members[member].first_call + call) * LEATI_LAYER_MAX_OUTPUTS + (size_t)tensor;
}

/* Current Keras's MultiHeadAttention takes the masks off its inputs, so that later calls see none. */
static leat_status take_masks(walk *w, const leat_model *model, const leati_layer *layer,
                              const leati_call *call, mask *table) {
    json_t *config = NULL;
    LEATI_TRY(leati_layer_config(layer, &config, w->err));
    const bool current = true_key(config, "as_keras3");
    json_decref(config);
    for (int32_t i = 0; i < call->input_count; ++i) {
        mask *m =
            &table[index_of(model, call->inputs[i].layer, call->inputs[i].call, call->inputs[i].tensor)];
        if (current)
            m->id = 0;
        else if (m->id)
            m->joiner = layer->name;
    }
    return LEAT_OK;
}

static leat_status pass_call(walk *w, const leat_model *model, const leati_scheduled_call *scheduled,
                             const mask *model_inputs, mask *table) {
    const leati_member *member = &model->members[scheduled->member];
    const leati_call *call = &member->calls[scheduled->call];
    mask inputs[LEATI_MAX_INPUTS], *outputs = &table[index_of(model, scheduled->member, scheduled->call, 0)];
    for (int32_t i = 0; i < model->input_count; ++i) {
        if (model->inputs[i].layer != scheduled->member) continue;
        outputs[0] = model_inputs[i];
        return LEAT_OK;
    }
    if (call->input_count == 0) return LEAT_OK;
    for (int32_t i = 0; i < call->input_count; ++i)
        inputs[i] =
            table[index_of(model, call->inputs[i].layer, call->inputs[i].call, call->inputs[i].tensor)];
    if (member->model) return pass_model(w, member->model, inputs, outputs);
    if (call->masked) inputs[0] = new_mask(w); /* the argument `mask` takes the place of the tensor's mask */
    const layer_call one = {member->layer, call->input_count - (call->masked ? 1 : 0), inputs, outputs,
                            call->masked};
    LEATI_TRY(pass_layer(w, &one));
    return member->layer->type == &leati_layer_multi_head_attention
               ? take_masks(w, model, member->layer, call, table)
               : LEAT_OK;
}

static leat_status pass_model(walk *w, const leat_model *model, const mask *inputs, mask *outputs) {
    const size_t size = (size_t)model->schedule_count * LEATI_LAYER_MAX_OUTPUTS;
    mask *table = leati_calloc(size ? size : 1, sizeof *table);
    leat_status status = table ? LEAT_OK : leati_fail_memory(w->err, size * sizeof *table, "masks");
    for (int32_t i = 0; status == LEAT_OK && i < model->schedule_count; ++i)
        status = pass_call(w, model, &model->schedule[i], inputs, table);
    for (int32_t i = 0; status == LEAT_OK && i < model->output_count; ++i) {
        const leati_source *source = &model->outputs[i];
        outputs[i] = table[index_of(model, source->layer, source->call, source->tensor)];
    }
    leati_free(table);
    return status;
}

/* The mask of an output weights its loss. */
static leat_status check_output(walk *w, const leat_model *model, int32_t index, const mask *output) {
    const char *name = leati_model_output_name(model, index);
    LEATI_TRY(check_filled(w, output, name));
    return model->compiled.ready ? check_joined(w, output, name) : LEAT_OK;
}

leat_status leati_keras3_check_masks(const leat_model *model, leat_error *err) {
    walk w = {.err = err};
    const size_t count = (size_t)model->input_count + (size_t)model->output_count;
    if (count == 0) return LEAT_OK; /* the shape of a Sequential's input is not known yet */
    mask *ends = leati_calloc(count, sizeof *ends);
    if (!ends) return leati_fail_memory(err, count * sizeof *ends, "masks");
    mask *outputs = ends + model->input_count;
    leat_status status = pass_model(&w, model, ends, outputs);
    for (int32_t i = 0; status == LEAT_OK && i < model->output_count; ++i)
        status = check_output(&w, model, i, &outputs[i]);
    leati_free(ends);
    return status;
}
