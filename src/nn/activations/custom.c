/* SPDX-License-Identifier: Apache-2.0 */
/* Custom activations: calls of the user's functions.  Room: nn. */
#include "base/error.h"
#include "nn/activations/activation.h"

static const leat_activation_definition *definition_of(const leati_callee *callee) {
    return ((const leati_part_object *)(const void *)callee)->part->definition;
}

static leat_status infer(const leati_callee *callee, int input_count, const leati_desc *inputs,
                         leati_desc *outputs, leat_error *err) {
    (void)callee;
    (void)input_count;
    (void)err;
    outputs[0] = inputs[0];
    return LEAT_OK;
}

static leat_activation_call call_of(const leati_callee *callee, const leati_callee_run *run) {
    const leati_part_object *object = (const void *)callee;
    const leati_desc *x = &run->inputs[0];
    const int64_t width = x->rank > 0 ? x->shape[x->rank - 1] : 1;
    return (leat_activation_call){.size = sizeof(leat_activation_call),
                                  .config = leati_part_settings(object),
                                  .user = object->part->spec.user,
                                  .rows = width > 0 ? leati_desc_count(x) / width : 0,
                                  .width = width,
                                  .x = run->args[0],
                                  .y = run->results[0]};
}

static leat_status forward(const leati_callee *callee, const leati_callee_run *run, leat_error *err) {
    const leat_activation_definition *d = definition_of(callee);
    const leat_activation_call call = call_of(callee, run);
    return leati_prefix(d->forward(&call, err), err, "activation '%s'", d->name);
}

static leat_status backward(const leati_callee *callee, const leati_callee_run *run, leat_error *err) {
    const leat_activation_definition *d = definition_of(callee);
    leat_activation_call call = call_of(callee, run);
    call.diff_y = run->diff_results[0];
    call.diff_x = run->diff_args[0];
    return leati_prefix(d->backward(&call, err), err, "activation '%s'", d->name);
}

void leati_custom_activation_prepare(leati_part_object *object) {
    const leat_activation_definition *d = object->part->definition;
    object->callee = (leati_callee){.output_count = 1,
                                    .infer = infer,
                                    .forward = forward,
                                    .backward = d->backward ? backward : NULL};
}

leati_value leati_custom_activation_lower(const leati_part_object *object, leati_graph *graph,
                                          leati_value x) {
    leati_value y = LEATI_INVALID;
    if (x < 0) return LEATI_INVALID;
    leati_graph_call(graph, &object->callee, false, 0, 1, &x, &y);
    return y;
}
