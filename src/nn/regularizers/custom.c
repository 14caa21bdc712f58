/* SPDX-License-Identifier: Apache-2.0 */
/* Custom regularizers: calls of the user's functions.  Room: nn. */
#include "base/error.h"
#include "nn/regularizers/regularizer.h"

static const leat_regularizer_definition *definition_of(const leati_callee *callee) {
    return ((const leati_part_object *)(const void *)callee)->part->definition;
}

static leat_status infer(const leati_callee *callee, int input_count, const leati_desc *inputs,
                         leati_desc *outputs, leat_error *err) {
    (void)callee;
    (void)input_count;
    (void)inputs;
    (void)err;
    outputs[0] = leati_desc_make(LEAT_F32, 0, NULL);
    return LEAT_OK;
}

static leat_regularizer_call call_of(const leati_callee *callee, const leati_callee_run *run) {
    const leati_part_object *object = (const void *)callee;
    const leati_desc *x = &run->inputs[0];
    return (leat_regularizer_call){.size = sizeof(leat_regularizer_call),
                                   .config = leati_part_settings(object),
                                   .user = object->part->spec.user,
                                   .rank = x->rank,
                                   .shape = x->shape,
                                   .count = leati_desc_count(x),
                                   .x = run->args[0]};
}

static leat_status forward(const leati_callee *callee, const leati_callee_run *run, leat_error *err) {
    const leat_regularizer_definition *d = definition_of(callee);
    leat_regularizer_call call = call_of(callee, run);
    LEATI_TRY(leati_prefix(d->penalty(&call, err), err, "regularizer '%s'", d->name));
    *(float *)run->results[0] = (float)call.penalty;
    return LEAT_OK;
}

static leat_status backward(const leati_callee *callee, const leati_callee_run *run, leat_error *err) {
    const leat_regularizer_definition *d = definition_of(callee);
    const float diff = *(const float *)run->diff_results[0];
    leat_regularizer_call call = call_of(callee, run);
    call.gradient = run->diff_args[0];
    call.penalty = (double)*(const float *)run->results[0];
    LEATI_TRY(leati_prefix(d->gradient(&call, err), err, "regularizer '%s'", d->name));
    for (int64_t i = 0; i < call.count; ++i) call.gradient[i] *= diff;
    return LEAT_OK;
}

void leati_custom_regularizer_prepare(leati_part_object *object) {
    const leat_regularizer_definition *d = object->part->definition;
    object->callee = (leati_callee){.output_count = 1,
                                    .infer = infer,
                                    .forward = forward,
                                    .backward = d->gradient ? backward : NULL};
}
