/* SPDX-License-Identifier: Apache-2.0 */
/* Custom constraints: calls of the user's functions.  Room: nn. */
#include <string.h>

#include "base/error.h"
#include "nn/constraints/constraint.h"

static leat_status forward(const leati_callee *callee, const leati_callee_run *run, leat_error *err) {
    const leati_part_object *object = (const void *)callee;
    const leat_constraint_definition *d = object->part->definition;
    const leati_desc *w = &run->inputs[0];
    const leat_constraint_call call = {.size = sizeof call,
                                       .config = leati_part_settings(object),
                                       .user = d->user,
                                       .rank = w->rank,
                                       .shape = w->shape,
                                       .count = leati_desc_count(w),
                                       .weight = run->results[0]};
    memcpy(run->results[0], run->args[0], leati_desc_bytes(w));
    return leati_prefix(d->apply(&call, err), err, "constraint '%s'", d->name);
}

void leati_custom_constraint_prepare(leati_part_object *object) {
    object->callee = (leati_callee){.output_count = 1, .infer = leati_part_infer_same, .forward = forward};
}
