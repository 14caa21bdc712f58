/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a call may be made for one step of a sequence at a time, from the `steps` of each layer type.  Room:
 * nn. */
#include "base/error.h"
#include "nn/layers/carry.h"
#include "nn/layers/recurrence.h"

static bool is_behind_time(const json_t *axis, int rank) {
    int64_t value = json_integer_value(axis);
    return json_is_integer(axis) && (value < 0 ? value + rank : value) >= 2;
}

static leat_status axes_are_behind_time(const leati_layer *layer, int rank, bool *out, leat_error *err) {
    json_t *config = NULL;
    LEATI_TRY(leati_layer_config(layer, &config, err));
    const json_t *axis = json_object_get(config, "axis");
    *out = json_is_array(axis) || is_behind_time(axis, rank);
    for (size_t i = 0; i < json_array_size(axis); ++i)
        *out = *out && is_behind_time(json_array_get(axis, i), rank);
    json_decref(config);
    return LEAT_OK;
}

static leat_status check_recurrent(const leati_layer *layer, int input_count, bool *makes_step,
                                   leat_error *err) {
    const leati_recurrence *r = leati_recurrence_of(layer);
    *makes_step = r->return_sequences;
    if (r->go_backwards)
        return leati_fail(err, LEAT_ENOTSUP,
                          "streaming: go_backwards begins with the last step, which is not known yet");
    if (input_count == 1) return LEAT_OK;
    return leati_fail(err, LEAT_ENOTSUP, "streaming: initial states as inputs are not supported");
}

leat_status leati_stepwise_check(const leati_layer *layer, const leati_lowering *lowering, int input_count,
                                 const leati_value *inputs, bool *makes_step, leat_error *err) {
    int rank = leati_graph_desc(lowering->graph, inputs[0])->rank;
    *makes_step = false;
    for (int i = 0; i < input_count; ++i) {
        if (!leati_carry_is_step(lowering, inputs[i])) continue;
        *makes_step = true;
        rank = leati_graph_desc(lowering->graph, inputs[i])->rank;
    }
    if (!*makes_step) return LEAT_OK;
    leati_steps steps = layer->type->steps;
    bool allowed = steps == LEATI_STEPS_BY_NUMBER || (steps == LEATI_STEPS_APART && rank > 2);
    if (leati_recurrence_of(layer)) return check_recurrent(layer, input_count, makes_step, err);
    if (steps == LEATI_STEPS_BY_AXIS && rank > 2) LEATI_TRY(axes_are_behind_time(layer, rank, &allowed, err));
    if (allowed) return LEAT_OK;
    return leati_fail(err, LEAT_ENOTSUP, LEATI_READS_SEVERAL_STEPS, layer->type->class_name);
}

leat_status leati_stepwise_mark(const leati_layer *layer, leati_lowering *lowering, leati_value output,
                                leat_error *err) {
    const leati_desc *desc = leati_graph_desc(lowering->graph, output);
    leati_carry_mark(lowering, output);
    if (output < 0 || (desc->rank > 1 && desc->shape[1] == 1)) return LEAT_OK;
    return leati_fail(err, LEAT_ENOTSUP, "streaming: %s joins one step of a sequence with several steps",
                      layer->type->class_name);
}
