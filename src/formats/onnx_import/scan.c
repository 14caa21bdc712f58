/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a Scan, a loop over the steps of tensors, by adding the layers of its body once for each step.  The layers with
 * weights are shared by all steps.  leat writes masked recurrent layers so.  Room: formats. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "formats/onnx_import/import.h"

enum { MOST_TENSORS = 8, MOST_STEPS = 512 };

typedef struct scan {
    leati_import_file body;
    int state_count, input_count,
        output_count; /* states, tensors that are cut into steps, collected tensors */
    int64_t steps;
    leati_import_value states[MOST_TENSORS];
    leati_view inputs[MOST_TENSORS];
    int input_axes[MOST_TENSORS];
    bool reversed[MOST_TENSORS];
    leati_source *collected[MOST_TENSORS]; /* one for each step: (N, 1, ...) */
    leati_view collected_views[MOST_TENSORS];
} scan;

static int64_t list_item(leati_import *x, const char *name, int index, int64_t preset) {
    const leati_import_attr *attr = leati_import_attr_of(x->node, name);
    return attr && index < attr->int_count ? attr->ints[index] : preset;
}

/* Settles the tensors that are cut into steps, and the first states, which must be tensors of the batch. */
static void read_tensors(leati_import *x, scan *s) {
    for (int i = 0; i < s->state_count && leati_import_ok(x); ++i) {
        leati_import_value *value = leati_import_need(x, i);
        const leati_view view = leati_import_settle(x, value, NULL);
        s->states[i] = (leati_import_value){
            .name = "", .type = value->type, .view_count = 1, .views = {view}, .made = true};
    }
    for (int i = 0; i < s->input_count && leati_import_ok(x); ++i) {
        leati_view *view = &s->inputs[i];
        *view = leati_import_settle(x, leati_import_need(x, s->state_count + i), NULL);
        if (!leati_import_ok(x)) return;
        s->input_axes[i] = leati_import_axis(x, list_item(x, "scan_input_axes", i, 0), view->rank);
        s->reversed[i] = list_item(x, "scan_input_directions", i, 0) != 0;
        const int64_t length = view->shape.dims[leati_import_stored(x, view, s->input_axes[i])];
        if (i == 0) s->steps = length;
        if (leati_import_ok(x) && (length < 1 || length > MOST_STEPS || length != s->steps))
            leati_import_refuse(x, "expected 1 to %d steps, a number that is fixed in the model", MOST_STEPS);
    }
}

static bool read_counts(leati_import *x, scan *s) {
    s->input_count = (int)leati_import_int(x, "num_scan_inputs", 0);
    s->state_count = x->node->input_count - s->input_count;
    s->output_count = s->body.output_count - s->state_count;
    const bool fits = s->input_count > 0 && s->input_count <= MOST_TENSORS && s->state_count >= 0 &&
                      s->state_count <= MOST_TENSORS && s->output_count >= 0 &&
                      s->output_count <= MOST_TENSORS && s->body.input_count == x->node->input_count &&
                      x->node->output_count == s->body.output_count;
    if (!fits) leati_import_refuse(x, "its inputs and outputs do not fit its body");
    return fits;
}

/* ---- A step ---- */

/* Gives the inputs of the body their tensors. */
static void set_inputs(leati_import *inner, scan *s, int64_t step) {
    for (int i = 0; i < s->state_count + s->input_count && leati_import_ok(inner); ++i) {
        leati_import_value *to = leati_import_find(inner, s->body.inputs[i].name);
        if (!to) continue;
        const int k = i - s->state_count, readers = to->readers;
        const char *name = to->name;
        leati_import_value from = {.type = LEATI_IMPORT_FLOAT, .view_count = 1, .made = true};
        if (k < 0) {
            from = s->states[i];
        } else {
            leati_view view = s->inputs[k];
            const int stored = view.axes[s->input_axes[k]].stored[0];
            from.views[0] = view;
            const leati_source source =
                leati_import_take(inner, &view, stored, s->reversed[k] ? s->steps - 1 - step : step);
            leati_view_drop(&from.views[0], s->input_axes[k], false);
            from.views[0] = leati_view_with(inner, &from.views[0], source);
        }
        *to = from;
        to->name = name, to->readers = readers, to->maker = -1;
    }
}

/* Keeps the states of the body for the next step, and what it collects. */
static void get_outputs(leati_import *inner, scan *s, int64_t step) {
    for (int i = 0; i < s->state_count + s->output_count && leati_import_ok(inner); ++i) {
        leati_import_value *value = leati_import_find(inner, s->body.outputs[i].name);
        const int k = i - s->state_count;
        if (!value || !value->made)
            leati_import_refuse(inner, "its body does not make '%.64s'", s->body.outputs[i].name);
        if (!leati_import_ok(inner)) return;
        if (k < 0) {
            s->states[i] = *value;
            continue;
        }
        const leati_view view = leati_import_natural(inner, value);
        if (!leati_import_ok(inner) || view.shape.rank + 1 > LEAT_MAX_RANK || view.shape.rank != view.rank) {
            leati_import_refuse(inner, "it collects a tensor that mixes samples, or of too many axes");
            return;
        }
        leati_shape shape = {.rank = view.shape.rank + 1, .dims = {view.shape.dims[0], 1}};
        for (int axis = 1; axis < view.shape.rank; ++axis) shape.dims[axis + 1] = view.shape.dims[axis];
        s->collected[k][step] = leati_import_to_shape(inner, view.source, &shape);
        s->collected_views[k] = view;
    }
}

static void run(leati_import *x, scan *s) {
    for (int64_t step = 0; step < s->steps && leati_import_ok(x); ++step) {
        leati_import inner = *x;
        inner.file = &s->body;
        inner.outer = x;
        inner.values = NULL, inner.slots = NULL, inner.value_count = 0;
        leati_import_values_make(&inner);
        set_inputs(&inner, s, step);
        if (leati_import_ok(&inner)) leati_import_nodes(&inner);
        inner.node = x->node;
        get_outputs(&inner, s, step);
        x->failure = inner.failure;
        x->bindings = inner.bindings;
        x->binding_count = inner.binding_count, x->binding_capacity = inner.binding_capacity;
    }
}

/* ---- The node ---- */

static void set_collected(leati_import *x, const scan *s, int k) {
    const leati_view *each = &s->collected_views[k];
    const int axis = leati_import_axis(x, list_item(x, "scan_output_axes", k, 0), each->rank + 1);
    const bool reversed = list_item(x, "scan_output_directions", k, 0) != 0;
    leati_view out = {.rank = each->rank + 1};
    for (int i = 0, next = 0; i < out.rank; ++i) {
        if (i == axis) {
            out.axes[i] = (leati_view_axis){1, {1}};
            continue;
        }
        const int stored = each->axes[next++].stored[0];
        out.axes[i] = (leati_view_axis){1, {stored == 0 ? 0 : stored + 1}};
    }
    for (int64_t a = 0, b = s->steps - 1; reversed && a < b; ++a, --b) {
        const leati_source swapped = s->collected[k][a];
        s->collected[k][a] = s->collected[k][b], s->collected[k][b] = swapped;
    }
    out = leati_view_with(x, &out, leati_import_joined(x, (int)s->steps, s->collected[k], 1));
    leati_import_set(x, s->state_count + k, &out);
}

static void read_body(leati_import *x, scan *s) {
    if (!read_counts(x, s)) return;
    read_tensors(x, s);
    for (int k = 0; k < s->output_count; ++k)
        s->collected[k] = leati_import_memory(x, s->steps, sizeof *s->collected[k]);
    if (!leati_import_ok(x)) return;
    run(x, s);
    for (int i = 0; i < s->state_count && leati_import_ok(x); ++i)
        if (s->states[i].constant)
            leati_import_set_constant(x, i, s->states[i].constant);
        else
            leati_import_set(x, i, &s->states[i].views[0]);
    for (int k = 0; k < s->output_count && leati_import_ok(x); ++k) set_collected(x, s, k);
}

static void read_scan(leati_import *x) {
    const leati_import_attr *attr = leati_import_attr_of(x->node, "body");
    leat_error err = {0};
    scan s = {0};
    if (x->outer) leati_import_refuse(x, "a Scan inside of a Scan is not supported");
    if (!attr || !attr->graph) leati_import_refuse(x, "expected a body");
    if (!leati_import_ok(x)) return;
    leat_status status = leati_import_parse_graph(&s.body, x->file, attr, &err);
    leati_import_failed(x, status, &err);
    if (!leati_import_ok(x)) return;
    read_body(x, &s);
}

const leati_import_operator leati_import_scan_operators[] = {
    {"Scan", read_scan, NULL},
    {.name = NULL},
};
