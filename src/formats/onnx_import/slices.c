/* SPDX-License-Identifier: Apache-2.0 */
/* Reads operators that take elements: slices, splits, lookups.  Room: formats. */
#include <string.h>

#include "base/memory.h"
#include "formats/onnx_import/import.h"

/* ---- Keys of GetItem ---- */

/* Returns Python's slice(start, stop, step); NULL for a number that is absent. */
static json_t *slice_of(const int64_t *start, const int64_t *stop, const int64_t *step) {
    json_t *config = json_object();
    const char *const keys[] = {"start", "stop", "step"};
    const int64_t *const numbers[] = {start, stop, step};
    for (int i = 0; config && i < 3; ++i)
        leati_import_put_key(&config, keys[i], numbers[i] ? json_integer(*numbers[i]) : json_null());
    return json_pack("{s:s, s:o}", "class_name", "__slice__", "config", config);
}

/* Returns a key that keeps everything. */
static json_t *whole_key(int rank) {
    json_t *key = json_array();
    for (int i = 0; key && i < rank; ++i) leati_import_append(&key, slice_of(NULL, NULL, NULL));
    return key;
}

static leati_source item_of(leati_import *x, leati_source source, json_t *key) {
    return leati_import_operation(x, "GetItem", json_pack("[o, o]", leati_import_argument(0), key), NULL, 1,
                                  &source);
}

leati_source leati_import_take(leati_import *x, const leati_view *view, int stored, int64_t index) {
    json_t *key = whole_key(view->shape.rank);
    if (key) leati_import_put_item(&key, (size_t)stored, json_integer(index));
    return item_of(x, view->source, key);
}

/* ---- Slice ---- */

/* One axis of a slice. */
typedef struct cut {
    leati_import_size start, end;
    int axis;
    int64_t step;
} cut;

/* Returns true if a cut keeps the whole axis. */
static bool keeps_all(const leati_import *x, const cut *c, leati_import_size length) {
    if (c->step != 1 || c->start.batch || c->start.count != 0) return false;
    if (c->end.batch) return length.batch && c->end.count >= length.count;
    if (length.batch)
        return c->end.count >= INT32_MAX ||
               (x->fixed_batch > 0 && c->end.count >= x->fixed_batch * length.count);
    return length.open ? c->end.count >= INT32_MAX : c->end.count >= length.count;
}

static void read_numbers(leati_import *x, const char *name, int index, int *count, leati_import_size *out) {
    const leati_import_attr *attr = leati_import_attr_of(x->node, name);
    const leati_import_tensor *tensor = attr ? NULL : leati_import_constant_in(x, index, name);
    *count = -1;
    if (attr && attr->int_count <= LEAT_MAX_RANK)
        for (*count = 0; *count < attr->int_count; ++*count)
            out[*count] = (leati_import_size){attr->ints[*count], false, false};
    else if (tensor)
        *count = leati_import_sizes(x, tensor, out);
}

/* Reads the cuts; returns their number, -1 after a failure. */
static int read_cuts(leati_import *x, const leati_view *view, cut *cuts) {
    leati_import_size starts[LEAT_MAX_RANK], ends[LEAT_MAX_RANK], axes[LEAT_MAX_RANK], steps[LEAT_MAX_RANK];
    int count, end_count, axis_count, step_count;
    read_numbers(x, "starts", 1, &count, starts);
    read_numbers(x, "ends", 2, &end_count, ends);
    read_numbers(x, "axes", 3, &axis_count, axes);
    read_numbers(x, "steps", 4, &step_count, steps);
    if (leati_import_ok(x) && (count < 0 || count != end_count || (axis_count >= 0 && axis_count != count) ||
                               (step_count >= 0 && step_count != count)))
        leati_import_refuse(x, "expected starts, ends, axes and steps as lists of the same length");
    if (!leati_import_ok(x)) return -1;
    for (int i = 0; i < count; ++i) {
        cuts[i] = (cut){.start = starts[i], .end = ends[i], .step = step_count < 0 ? 1 : steps[i].count};
        cuts[i].axis = leati_import_axis(x, axis_count < 0 ? i : axes[i].count, view->rank);
        if (cuts[i].step == 0) leati_import_refuse(x, "expected a step other than 0");
    }
    return count;
}

static void read_slice(leati_import *x) {
    const leati_view view = leati_import_settle(x, leati_import_need(x, 0), NULL);
    cut cuts[LEAT_MAX_RANK];
    if (!leati_import_ok(x)) return;
    const int count = read_cuts(x, &view, cuts);
    json_t *key = whole_key(view.shape.rank);
    bool changes = false;
    for (int i = 0; i < count && leati_import_ok(x); ++i) {
        const cut *c = &cuts[i];
        const leati_import_size length = leati_view_size(&view, c->axis);
        if (keeps_all(x, c, length)) continue;
        const bool end_open = c->end.count == -1 && !c->end.batch && leati_import_in(x, 2) &&
                              leati_import_in(x, 2)->constant && leati_import_in(x, 2)->constant->sizes;
        if (c->start.batch || c->end.batch || end_open)
            leati_import_refuse(
                x, "it cuts at a size that is open in the model; export the model with fixed sizes, except "
                   "for the batch");
        const int stored = leati_import_stored(x, &view, c->axis);
        const bool to_end = c->step > 0 ? c->end.count >= INT32_MAX : c->end.count <= -INT32_MAX;
        const bool to_start = c->step < 0 && c->end.count < 0 && !length.open && c->end.count < -length.count;
        if (key)
            leati_import_put_item(&key, (size_t)stored,
                                  slice_of(&c->start.count, to_end || to_start ? NULL : &c->end.count,
                                           c->step == 1 ? NULL : &c->step));
        changes = true;
    }
    if (!changes || !leati_import_ok(x)) {
        json_decref(key);
        if (leati_import_ok(x)) leati_import_alias(x, 0, leati_import_need(x, 0));
        return;
    }
    const leati_view out = leati_view_with(x, &view, item_of(x, view.source, key));
    leati_import_set(x, 0, &out);
}

/* ---- Split ---- */

/* Returns elements start ... start + count of an axis. */
static leati_view range_of(leati_import *x, const leati_view *view, int stored, int64_t start,
                           int64_t count) {
    const int64_t stop = start + count;
    json_t *key = whole_key(view->shape.rank);
    if (key) leati_import_put_item(&key, (size_t)stored, slice_of(&start, &stop, NULL));
    return leati_view_with(x, view, item_of(x, view->source, key));
}

static void read_split(leati_import *x) {
    const leati_view view = leati_import_settle(x, leati_import_need(x, 0), NULL);
    const int outputs = x->node->output_count;
    if (!leati_import_ok(x)) return;
    const int axis = leati_import_axis(x, leati_import_int(x, "axis", 0), view.rank);
    const int stored = leati_import_stored(x, &view, axis);
    int64_t *lengths = leati_import_memory(x, outputs, sizeof *lengths);
    if (!lengths) return;
    const int64_t length = view.shape.dims[stored],
                  even = (length + outputs - 1) / (outputs > 0 ? outputs : 1);
    const int count = leati_import_ints(x, "split", 1, outputs, lengths);
    if (length < 0) leati_import_refuse(x, "it splits an axis whose size is open in the model");
    if (count >= 0 && count != outputs) leati_import_refuse(x, "expected %d lengths", outputs);
    bool equal = true;
    for (int i = 0; i < outputs; ++i) {
        if (count < 0) lengths[i] = length - i * even < even ? length - i * even : even;
        equal = equal && lengths[i] == lengths[0];
    }
    if (equal && outputs <= LEATI_LAYER_MAX_OUTPUTS && outputs > 1) {
        json_t *options = json_pack("{s:i, s:i}", "indices_or_sections", outputs, "axis", stored);
        const leati_source source =
            leati_import_operation(x, "Split", json_pack("[o]", leati_import_argument(0)), options, 1,
                                   &view.source);
        for (int i = 0; i < outputs && leati_import_ok(x); ++i) {
            const leati_view out = leati_view_with(x, &view, leati_import_output(source, i));
            leati_import_set(x, i, &out);
        }
        return;
    }
    for (int64_t i = 0, start = 0; i < outputs && leati_import_ok(x); start += lengths[i++]) {
        if (!leati_import_is_read(x, (int)i)) continue;
        const leati_view out = range_of(x, &view, stored, start, lengths[i]);
        leati_import_set(x, (int)i, &out);
    }
}

/* ---- Lookups ---- */

/* The rows of a constant table are an Embedding. */
static void read_embedding(leati_import *x, leati_import_value *table, leati_import_value *indices) {
    const leati_import_tensor *rows = table->constant;
    if (rows->rank != 2 || leati_import_int(x, "axis", 0) != 0) {
        leati_import_refuse(x, "expected a table of 2 axes whose rows are looked up");
        return;
    }
    const leati_view view = leati_import_settle(x, indices, NULL);
    if (leati_import_ok(x) && view.rank >= LEAT_MAX_RANK) leati_import_refuse(x, "too many axes");
    if (!leati_import_ok(x)) return;
    const leati_import_weight weight = leati_import_weight_of(rows);
    json_t *config = json_pack("{s:I, s:I}", "input_dim", (json_int_t)rows->dims[0], "output_dim",
                               (json_int_t)rows->dims[1]);
    const leati_source source = leati_import_weighted(x, "Embedding", config, 1, &view.source, 1, &weight);
    leati_view out = view;
    out.axes[out.rank++] = (leati_view_axis){1, {view.shape.rank}};
    out = leati_view_with(x, &out, source);
    leati_import_value *made = leati_import_set(x, 0, &out);
    if (made) made->type = table->type;
}

/* Splits an axis into the axes of the indices. */
static leati_view with_axes_of(leati_import *x, const leati_view *view, int axis,
                               const leati_import_tensor *indices) {
    leati_import_size sizes[LEAT_MAX_RANK];
    const int rank = view->rank - 1 + indices->rank;
    if (indices->rank == 1 || !leati_import_ok(x)) return *view;
    if (rank > LEAT_MAX_RANK) leati_import_refuse(x, "expected tensors of at most %d axes", LEAT_MAX_RANK);
    for (int i = 0; i < rank && rank <= LEAT_MAX_RANK; ++i)
        sizes[i] = i < axis                   ? leati_view_size(view, i)
                   : i < axis + indices->rank ? (leati_import_size){indices->dims[i - axis], false, false}
                                              : leati_view_size(view, i - indices->rank + 1);
    return leati_import_reshape_view(x, view, rank, sizes);
}

/* Takes one element of an axis, which ends, or several. */
static void read_gather(leati_import *x) {
    leati_import_value *value = leati_import_need(x, 0), *indices = leati_import_need(x, 1);
    if (!leati_import_ok(x)) return;
    if (value->constant && !indices->constant) {
        read_embedding(x, value, indices);
        return;
    }
    if (!indices->constant || indices->constant->sizes) {
        leati_import_refuse(x, "expected constant indices, or a constant table");
        return;
    }
    leati_view view = leati_import_settle(x, value, NULL);
    if (!leati_import_ok(x)) return;
    const int axis = leati_import_axis(x, leati_import_int(x, "axis", 0), view.rank);
    const int stored = leati_import_stored(x, &view, axis);
    if (!leati_import_ok(x)) return;
    if (indices->constant->rank == 0) {
        const leati_source source =
            leati_import_take(x, &view, stored, leati_import_integer(indices->constant, 0));
        leati_view_drop(&view, axis, false);
        const leati_view out = leati_view_with(x, &view, source);
        leati_import_set(x, 0, &out);
        return;
    }
    json_t *list = json_array();
    for (int64_t i = 0; list && i < indices->constant->count; ++i)
        leati_import_append(&list, json_integer(leati_import_integer(indices->constant, i)));
    json_t *array = json_pack("{s:s, s:{s:o, s:s}}", "class_name", "__numpy__", "config", "value", list,
                              "dtype", "int64");
    const leati_source source =
        leati_import_operation(x, "Take", json_pack("[o, o]", leati_import_argument(0), array),
                               json_pack("{s:i}", "axis", stored), 1, &view.source);
    const leati_view taken = leati_view_with(x, &view, source),
                     out = with_axes_of(x, &taken, axis, indices->constant);
    leati_import_set(x, 0, &out);
}

static void read_one_hot(leati_import *x) {
    const leati_view view = leati_import_settle(x, leati_import_need(x, 0), NULL);
    const leati_import_tensor *depth = leati_import_constant_in(x, 1, "depth");
    const leati_import_tensor *values = leati_import_constant_in(x, 2, "values");
    const int64_t axis = leati_import_int(x, "axis", -1);
    if (leati_import_ok(x) && (!depth || depth->count != 1 || !values || values->count != 2 ||
                               (axis != -1 && axis != view.rank) || view.rank >= LEAT_MAX_RANK))
        leati_import_refuse(x, "expected a number of classes, two values, and the last axis");
    if (!leati_import_ok(x)) return;
    const double off = leati_import_number(values, 0), on = leati_import_number(values, 1);
    json_t *options =
        json_pack("{s:I, s:i}", "num_classes", (json_int_t)leati_import_integer(depth, 0), "axis", -1);
    const leati_source source =
        leati_import_operation(x, "OneHot", json_pack("[o]", leati_import_argument(0)), options, 1,
                               &view.source);
    leati_view out = view;
    out.axes[out.rank++] = (leati_view_axis){1, {view.shape.rank}};
    out = leati_view_with(x, &out, source);
    if (on - off != 1) out = leati_import_with_number(x, "Multiply", &out, on - off, false);
    if (off != 0) out = leati_import_with_number(x, "Add", &out, off, false);
    leati_import_value *made = leati_import_set(x, 0, &out);
    if (made) made->type = values->type;
}

const leati_import_operator leati_import_slice_operators[] = {
    {"Slice", read_slice, NULL},
    {"Split", read_split, NULL},
    {"Gather", read_gather, NULL},
    {"OneHot", read_one_hot, NULL},
    {.name = NULL},
};
