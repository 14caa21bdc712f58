/* SPDX-License-Identifier: Apache-2.0 */
/* Custom activations: calls of the user's functions.  Room: nn. */
#include "base/error.h"
#include "nn/activations/activation.h"

static const leat_activation_definition *definition_of(const leati_callee *callee) {
    return ((const leati_part_object *)(const void *)callee)->part->definition;
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
                                    .infer = leati_part_infer_same,
                                    .forward = forward,
                                    .backward = d->backward ? backward : NULL};
}
