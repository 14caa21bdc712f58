/* SPDX-License-Identifier: Apache-2.0 */
/* Bidirectional: a recurrent layer and a copy that processes the steps in reverse; their outputs are merged.  Further
 * inputs are the initial states: those of the forward layer, then those of the backward layer.
 * Source: keras.layers.Bidirectional. */
#include <string.h>

#include "base/error.h"
#include "nn/layers/rnn/rnn_common.h"
#include "nn/layers/types.h"
#include "nn/layers/wrapping.h"

enum { SUM, MUL, CONCAT, AVE, SEPARATE };
static const char *const merge_modes[] = {"sum", "mul", "concat", "ave", NULL};

typedef struct config {
    leati_layer *layer; /* as configured; only its copies are called */
    int32_t merge_mode;
    leati_layer *copies[2]; /* created by check: forward, backward */
} config;

static const leati_field fields[] = {LEATI_FIELD(config, layer, LEATI_FIELD_LAYER, NULL),
                                     {.key = "merge_mode",
                                      .kind = LEATI_FIELD_CHOICE,
                                      .offset = offsetof(config, merge_mode),
                                      .preset = "\"concat\"",
                                      .choices = merge_modes,
                                      .nullable = true},
                                     {.key = NULL}};

static leat_status configure_copy(json_t *layer_config, const leati_layer *layer, bool backward,
                                  leat_error *err) {
    const leati_recurrence *r = layer->config;
    json_t *name = json_sprintf("%s_%s", backward ? "backward" : "forward", layer->name);
    bool set =
        name && json_object_set_new(layer_config, "name", name) == 0 &&
        json_object_set_new(layer_config, "go_backwards", json_boolean(r->go_backwards != backward)) == 0;
    return set ? LEAT_OK : leati_fail(err, LEAT_ENOMEM, "no memory for the layer's copies");
}

static leat_status create_copy(const leati_layer *layer, bool backward, const leati_layer_reader *reader,
                               leati_layer **out, leat_error *err) {
    json_t *layer_config = NULL;
    LEATI_TRY(leati_layer_config(layer, &layer_config, err));
    leat_status status = configure_copy(layer_config, layer, backward, err);
    if (status == LEAT_OK) status = leati_layer_create(out, layer->type, layer_config, reader, err);
    json_decref(layer_config);
    return status;
}

static leat_status check(leati_layer *layer, leat_error *err) {
    config *c = layer->config;
    if (!c->layer || !leati_recurrence_of(c->layer))
        return leati_fail(err, LEAT_ENOTSUP, "layer: expected a recurrent layer, received %s",
                          c->layer ? c->layer->type->class_name : "none");
    for (int i = 0; i < 2; ++i) {
        LEATI_TRY(
            leati_prefix(create_copy(c->layer, i == 1, layer->reader, &c->copies[i], err), err, "layer"));
        leati_layer_adopt(layer, c->copies[i]);
    }
    return LEAT_OK;
}

static void fini(void *layer_config) {
    config *c = layer_config;
    for (int i = 0; i < 2; ++i) leati_layer_destroy(&c->copies[i]);
}

/* Copies the inputs of one copy of the layer: the sequence, and its half of the states. */
static int select_inputs(int direction, int input_count, size_t size, const void *inputs, void *out) {
    int states = (input_count - 1) / 2;
    memcpy(out, inputs, size);
    memcpy((char *)out + size, (const char *)inputs + (size_t)(1 + direction * states) * size,
           (size_t)states * size);
    return 1 + states;
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    leati_shape selected[LEATI_MAX_INPUTS], inner[LEATI_LAYER_MAX_OUTPUTS];
    int inner_count = 0, count = 0;
    if (input_count % 2 == 0)
        return leati_fail(
            err, LEAT_EINVAL,
            "expected the same number of initial states for both directions, received %d in total",
            input_count - 1);
    for (int i = 0; i < 2; ++i) {
        int selected_count = select_inputs(i, input_count, sizeof *inputs, inputs, selected);
        LEATI_TRY(leati_layer_infer(c->copies[i], selected_count, selected, inner, &inner_count, err));
    }
    if (2 * (inner_count - 1) + 2 > LEATI_LAYER_MAX_OUTPUTS)
        return leati_fail(err, LEAT_ENOTSUP,
                          "return_state: expected at most %d states per direction, the layer has %d",
                          LEATI_LAYER_MAX_OUTPUTS / 2 - 1, inner_count - 1);
    outputs[count++] = inner[0];
    if (c->merge_mode == SEPARATE) outputs[count++] = inner[0];
    if (c->merge_mode == CONCAT) outputs[0].dims[outputs[0].rank - 1] *= 2;
    for (int i = 1; i < 2 * inner_count - 1; ++i) outputs[count++] = inner[1 + (i - 1) % (inner_count - 1)];
    *output_count = count;
    return LEAT_OK;
}

static leat_status build(leati_layer *layer, int input_count, const leati_shape *inputs, leat_error *err) {
    const config *c = layer->config;
    leati_shape selected[LEATI_MAX_INPUTS];
    for (int i = 0; i < 2; ++i) {
        int selected_count = select_inputs(i, input_count, sizeof *inputs, inputs, selected);
        LEATI_TRY(
            leati_layer_build_inner(layer, c->copies[i], c->copies[i]->name, selected_count, selected, err));
    }
    return LEAT_OK;
}

static void weight_path(const leati_layer *layer, int index, char *out, size_t bytes) {
    const config *c = layer->config;
    int direction = index >= c->copies[1]->first_outer_weight;
    leati_layer_inner_weight_path(c->copies[direction], direction ? "backward_layer" : "forward_layer", index,
                                  out, bytes);
}

static leati_value merge(leati_graph *g, int32_t mode, const leati_value y[2]) {
    const leati_desc *desc = leati_graph_desc(g, y[0]);
    switch (mode) {
    case SUM: return leati_add(g, y[0], y[1]);
    case MUL: return leati_mul(g, y[0], y[1]);
    case AVE: return leati_linear(g, leati_add(g, y[0], y[1]), 0.5f, 0.0f);
    default: return leati_concat(g, 2, y, desc->rank - 1);
    }
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    const leati_recurrence *r = leati_recurrence_of(c->copies[0]);
    int states = r->return_state ? r->state_count : 0, count = 0;
    leati_inner_call calls[2] = {{0}};
    for (int i = 0; i < 2; ++i) {
        calls[i].input_count = select_inputs(i, input_count, sizeof *inputs, inputs, calls[i].inputs);
        calls[i].output_count = 1 + states;
        for (int j = 0; j < LEATI_MAX_INPUTS; ++j) calls[i].masks[j] = LEATI_NONE;
        calls[i].masks[0] = lowering->input_masks[0];
        leati_layer_lower_inner(c->copies[i], lowering, &calls[i]);
    }
    leati_value y[2] = {calls[0].outputs[0], calls[1].outputs[0]};
    if (r->return_sequences) y[1] = leati_reverse(g, y[1], 1);
    outputs[count++] = c->merge_mode == SEPARATE ? y[0] : merge(g, c->merge_mode, y);
    if (c->merge_mode == SEPARATE) outputs[count++] = y[1];
    for (int i = 0; i < count; ++i) lowering->output_masks[i] = calls[0].output_masks[0];
    for (int i = 0; i < 2 * states; ++i) outputs[count++] = calls[i / states].outputs[1 + i % states];
    leati_lowering_add_activity(lowering, leati_layer_activity(c->layer), count, outputs);
}

LEATI_LAYER_TYPE(bidirectional, "Bidirectional", "bidirectional", config, fields, .min_inputs = 1,
                 .max_inputs = LEATI_MAX_INPUTS, .masking = LEATI_MASK_COMPUTED, .check = check, .fini = fini,
                 .infer = infer, .build = build, .weight_path = weight_path, .lower = lower);
