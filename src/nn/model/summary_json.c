/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a model's summary as JSON (docs/formats/summary.md).  Room: nn. */
#include "base/error.h"
#include "json/json.h"
#include "nn/model/summary.h"

/* Appends a value and consumes its reference; returns false without memory.  A NULL value means that memory was
 * missing. */
static bool append(json_t *list, json_t *value) {
    return json_array_append_new(list, value) == 0;
}

/* Returns the list if it is complete; frees it and returns NULL otherwise. */
static json_t *checked(json_t *list, bool complete) {
    if (complete) return list;
    json_decref(list);
    return NULL;
}

/* Makes a list of dimensions; Keras's None is null. */
static json_t *shape_json(const leati_shape *shape) {
    json_t *list = json_array();
    bool complete = list != NULL;
    for (int32_t i = 0; complete && i < shape->rank; ++i)
        complete = append(list, shape->dims[i] < 0 ? json_null() : json_integer((json_int_t)shape->dims[i]));
    return checked(list, complete);
}

static json_t *call_json(const leat_model *model, const leati_call *call) {
    json_t *inputs = json_array(), *shapes = json_array();
    bool complete = inputs && shapes;
    for (int32_t i = 0; complete && i < call->input_count; ++i) {
        char text[LEATI_SUMMARY_FIELD_BYTES];
        leati_summary_source(text, model, &call->inputs[i]);
        complete = append(inputs, json_string(text));
    }
    for (int32_t i = 0; complete && i < call->output_count; ++i)
        complete = append(shapes, shape_json(&call->outputs[i]));
    if (complete) return json_pack("{s:o, s:o}", "inputs", inputs, "output_shapes", shapes);
    json_decref(inputs);
    json_decref(shapes);
    return NULL;
}

static json_t *layer_json(const leat_model *model, int32_t index) {
    const leati_member *member = &model->members[index];
    json_t *calls = json_array();
    bool complete = calls != NULL;
    for (int32_t i = 0; complete && i < member->call_count; ++i)
        complete = append(calls, call_json(model, &member->calls[i]));
    calls = checked(calls, complete);
    if (!calls) return NULL;
    return json_pack("{s:s, s:s, s:I, s:o}", "name", leati_member_name(model, index), "class_name",
                     member->layer ? member->layer->type->class_name : member->model->class_name, "params",
                     (json_int_t)leati_summary_params(member), "calls", calls);
}

static json_t *layers_json(const leat_model *model) {
    json_t *list = json_array();
    bool complete = list != NULL;
    for (int32_t i = leati_summary_first(model); complete && i < model->member_count; ++i)
        complete = append(list, layer_json(model, i));
    return checked(list, complete);
}

leat_status leat_model_summary_json(const leat_model *model, char **out, leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_GIVEN(model, err);
    int64_t all = 0, trainable = leati_summary_trainable_params(model);
    for (int32_t i = 0; i < model->member_count; ++i) all += leati_summary_params(&model->members[i]);
    json_t *layers = layers_json(model);
    json_t *root =
        layers ? json_pack("{s:s, s:s, s:o, s:I, s:I, s:I, s:i}", "model", model->name, "class_name",
                           model->class_name, "layers", layers, "params", (json_int_t)all, "trainable_params",
                           (json_int_t)trainable, "non_trainable_params", (json_int_t)(all - trainable),
                           "mixed_bfloat16_layers", (int)leati_model_count_mixed(model))
               : NULL;
    leat_status status = root ? leati_json_write(root, out, err) : leati_fail_memory(err, 0, "a summary");
    json_decref(root);
    return status;
}
