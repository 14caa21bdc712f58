/* SPDX-License-Identifier: Apache-2.0 */
/* Custom losses: the values per row and their gradient are calls of the user's functions.  Room: nn. */
#include <string.h>

#include "base/error.h"
#include "engine/graph/build.h"
#include "nn/losses/types.h"

/* The type descriptor of a custom loss, and the name of its objects. */
typedef struct custom_loss {
    leati_loss_type type; /* first, because leati_part.type is read as a leati_loss_type */
    char name[LEAT_NAME_BYTES];
} custom_loss;

const size_t leati_custom_loss_bytes = sizeof(custom_loss);

static const leat_loss_definition *definition_of(const leati_callee *callee) {
    return ((const leati_part_object *)(const void *)callee)->part->definition;
}

/* The values have the first dimensions of the predictions. */
static leat_status infer(const leati_callee *callee, int input_count, const leati_desc *inputs,
                         leati_desc *outputs, leat_error *err) {
    const leat_loss_definition *d = definition_of(callee);
    const int rank = inputs[1].rank, values = d->value_rank > 0 ? d->value_rank : rank - 1;
    (void)input_count;
    if (values < 1 || values > rank)
        return leati_fail(err, LEAT_ESHAPE,
                          "loss '%s': expected predictions of rank %d or more, received rank %d", d->name,
                          d->value_rank > 0 ? d->value_rank : 2, rank);
    outputs[0] = leati_desc_make(LEAT_F32, values, inputs[1].shape);
    return LEAT_OK;
}

static leat_loss_call call_of(const leati_callee *callee, const leati_callee_run *run, leat_tensor views[2]) {
    const leati_part_object *object = (const void *)callee;
    const int64_t rows = leati_desc_count(&run->outputs[0]), count = rows > 0 ? rows : 1;
    for (int i = 0; i < 2; ++i) views[i] = leati_part_view(&run->inputs[i], run->args[i]);
    return (leat_loss_call){.size = sizeof(leat_loss_call),
                            .config = leati_part_settings(object),
                            .user = object->part->spec.user,
                            .rows = rows,
                            .row_elements = leati_desc_count(&run->inputs[1]) / count,
                            .target_elements = leati_desc_count(&run->inputs[0]) / count,
                            .y_true = &views[0],
                            .y_pred = &views[1],
                            .values = run->results[0]};
}

static leat_status forward(const leati_callee *callee, const leati_callee_run *run, leat_error *err) {
    const leat_loss_definition *d = definition_of(callee);
    leat_tensor views[2];
    const leat_loss_call call = call_of(callee, run, views);
    return leati_prefix(d->values(&call, err), err, "loss '%s'", d->name);
}

/* Multiplies the derivatives of the values by the gradient with respect to the values. */
static leat_status backward(const leati_callee *callee, const leati_callee_run *run, leat_error *err) {
    const leat_loss_definition *d = definition_of(callee);
    const float *diff_values = run->diff_results[0];
    leat_tensor views[2];
    leat_loss_call call = call_of(callee, run, views);
    call.gradient = run->diff_args[1];
    if (!call.gradient) return LEAT_OK;
    LEATI_TRY(leati_prefix(d->gradient(&call, err), err, "loss '%s'", d->name));
    for (int64_t i = 0; i < call.rows; ++i)
        for (int64_t j = 0; j < call.row_elements; ++j)
            call.gradient[i * call.row_elements + j] *= diff_values[i];
    return LEAT_OK;
}

static leati_value lower(leati_graph *graph, const leati_measure_options *options, leati_value y_true,
                         leati_value y_pred) {
    leati_value inputs[2] = {y_true, y_pred}, values = LEATI_INVALID;
    if (y_true < 0 || y_pred < 0) return LEATI_INVALID;
    if (leati_graph_desc(graph, y_true)->dtype != LEAT_F32)
        inputs[0] = leati_cast(graph, y_true, LEAT_F32, 1.0f);
    leati_graph_call(graph, &options->object->callee, false, 0, 2, inputs, &values);
    return values;
}

void leati_custom_loss_prepare(leati_part_object *object) {
    const leat_loss_definition *d = object->part->definition;
    object->callee = (leati_callee){.output_count = 1,
                                    .infer = infer,
                                    .forward = forward,
                                    .backward = d->gradient ? backward : NULL};
}

void leati_custom_loss_fill(leati_part *part) {
    const leat_loss_definition *d = part->definition;
    custom_loss *custom = part->type;
    const char *bare = leati_bare_name(part->name);
    leati_snake_name(bare, custom->name);
    custom->type.measure = (leati_measure){.name = custom->name,
                                           .class_name = leati_is_class_name(bare) ? bare : NULL,
                                           .lower = lower};
    custom->type.sparse = d->class_numbers;
}
