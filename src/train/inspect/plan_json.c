/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a plan as JSON, in the format of docs/formats/plan.md.  Room: train. */
#include "base/error.h"
#include "base/text.h"
#include "engine/op_semantics/infer.h"
#include "json/json.h"
#include "train/inspect/plan_view.h"

static json_t *shape_json(const leati_desc *desc) {
    json_t *shape = json_array();
    bool complete = shape != NULL;
    for (int i = 0; complete && i < desc->rank; ++i)
        complete = json_array_append_new(shape, json_integer((json_int_t)desc->shape[i])) == 0;
    if (complete) return shape;
    json_decref(shape);
    return NULL;
}

/* Returns an array of shapes, with null for an absent input. */
static json_t *values_json(const leati_graph *graph, int count, const leati_value *values) {
    json_t *all = json_array();
    bool complete = all != NULL;
    for (int i = 0; complete && i < count; ++i)
        complete =
            json_array_append_new(all, values[i] < 0 ? json_null()
                                                     : shape_json(leati_graph_desc(graph, values[i]))) == 0;
    if (complete) return all;
    json_decref(all);
    return NULL;
}

static json_t *step_json(const leati_plan_view *view, int32_t s) {
    leati_plan_step step;
    leati_plan_step_get(view->step->plan, s, &step);
    const leati_node *node = step.node;
    json_t *object =
        json_pack("{s:s, s:s, s:I, s:o, s:o, s:s, s:b, s:s, s:s, s:I, s:I, s:f, s:i, s:I, s:I}", "layer",
                  node->label ? node->label : "", "op", step.op, "runs", (json_int_t)step.runs, "inputs",
                  values_json(step.graph, node->input_count, node->inputs), "outputs",
                  values_json(step.graph, node->output_count, node->outputs), "implementation",
                  step.implementation, "measured", step.measured, "layout", step.layout, "declined",
                  step.declined, "bytes", (json_int_t)step.bytes, "arena_bytes", (json_int_t)step.arena_bytes,
                  "operations", step.operations, "reorders", step.reorders, "reorder_bytes",
                  (json_int_t)step.reorder_bytes, "kept_bytes", (json_int_t)step.kept_bytes);
    if (object && view->step_ns &&
        json_object_set_new(object, "us", json_real(view->step_ns[s] / 1e3)) != 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static json_t *steps_json(const leati_plan_view *view) {
    json_t *all = json_array();
    bool complete = all != NULL;
    for (int32_t s = 0; complete && s < view->count; ++s)
        complete = json_array_append_new(all, step_json(view, s)) == 0;
    if (complete) return all;
    json_decref(all);
    return NULL;
}

leat_status leati_plan_json(const leati_plan_view *view, char **out, leat_error *err) {
    const leati_plan *plan = view->step->plan;
    json_t *root =
        json_pack("{s:s, s:s, s:I, s:i, s:I, s:I, s:f, s:i, s:I, s:I, s:o}", "model", view->model->name,
                  "mode", view->options.train ? "train" : "predict", "batch_size",
                  (json_int_t)view->options.batch_size, "threads", view->options.threads, "arena_bytes",
                  (json_int_t)leati_plan_arena_bytes(plan), "bound_bytes",
                  (json_int_t)leati_plan_bound_bytes(plan), "operations", view->operations, "reorders",
                  view->reorders, "reorder_bytes", (json_int_t)view->reorder_bytes, "kept_bytes",
                  (json_int_t)view->kept_bytes, "steps", steps_json(view));
    bool complete = root != NULL;
    if (complete && view->step_ns)
        complete = json_object_set_new(root, "us", json_real(view->total_ns / 1e3)) == 0;
    leat_status status =
        complete ? leati_json_write(root, out, err) : leati_fail_memory(err, 0, "a summary of the plan");
    json_decref(root);
    return status;
}
