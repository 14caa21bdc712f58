/* SPDX-License-Identifier: Apache-2.0 */
/* Views: outputs of layers as tensors of an ONNX graph (import.h).  Room: formats. */
#include <string.h>

#include "base/memory.h"
#include "formats/onnx_import/import.h"

int leati_view_batch_axis(const leati_view *view) {
    for (int i = 0; i < view->rank; ++i)
        for (int k = 0; k < view->axes[i].count; ++k)
            if (view->axes[i].stored[k] == 0) return i;
    return 0;
}

leati_import_size leati_view_size(const leati_view *view, int axis) {
    leati_import_size size = {1, false, false};
    for (int k = 0; k < view->axes[axis].count; ++k) {
        const int stored = view->axes[axis].stored[k];
        const int64_t length = view->shape.dims[stored];
        if (stored == 0)
            size.batch = true;
        else if (length < 0)
            size.open = true;
        else
            size.count = leati_mul_saturated(size.count, length);
    }
    return size;
}

/* Returns true if a stored axis is joined with the batch without need, as its length is 1. */
static bool is_idle(const leati_view *view, int stored) {
    return stored != 0 && view->shape.dims[stored] == 1;
}

bool leati_view_is_settled(const leati_view *view) {
    const int batch = leati_view_batch_axis(view);
    for (int i = 0; i < view->rank; ++i)
        if (i != batch && view->axes[i].count != 1) return false;
    for (int k = 0; k < view->axes[batch].count; ++k)
        if (is_idle(view, view->axes[batch].stored[k])) return false;
    return true;
}

leati_view leati_view_of(const leati_import *x, leati_source source) {
    leati_view view = {.source = source};
    if (leati_import_ok(x)) view.shape = leati_network_shape(x->model, &source);
    view.rank = view.shape.rank;
    for (int i = 0; i < view.rank; ++i) view.axes[i] = (leati_view_axis){1, {i}};
    return view;
}

leati_view leati_view_with(const leati_import *x, const leati_view *view, leati_source source) {
    leati_view out = *view;
    out.source = source;
    if (leati_import_ok(x)) out.shape = leati_network_shape(x->model, &source);
    return out;
}

leati_view leati_view_permuted(const leati_view *view, const int *perm) {
    leati_view out = *view;
    for (int i = 0; i < view->rank; ++i) out.axes[i] = view->axes[perm[i]];
    return out;
}

leati_view leati_view_padded(leati_import *x, const leati_view *view, int rank) {
    leati_view out = *view;
    if (rank > LEAT_MAX_RANK) leati_import_refuse(x, "expected tensors of at most %d axes", LEAT_MAX_RANK);
    if (rank > LEAT_MAX_RANK || rank <= view->rank) return out;
    const int more = rank - view->rank;
    for (int i = 0; i < rank; ++i) out.axes[i] = i < more ? (leati_view_axis){0} : view->axes[i - more];
    out.rank = rank;
    return out;
}

void leati_view_drop(leati_view *view, int axis, bool keep) {
    const int stored = view->axes[axis].stored[0];
    view->axes[axis] = (leati_view_axis){0};
    for (int i = axis; !keep && i + 1 < view->rank; ++i) view->axes[i] = view->axes[i + 1];
    if (!keep) --view->rank;
    for (int i = 0; i < view->rank; ++i)
        for (int k = 0; k < view->axes[i].count; ++k)
            if (view->axes[i].stored[k] > stored) --view->axes[i].stored[k];
}

int leati_import_stored(leati_import *x, const leati_view *view, int axis) {
    if (!leati_import_ok(x)) return 0;
    if (axis != leati_view_batch_axis(view)) return view->axes[axis].stored[0];
    leati_import_refuse(x, "it works along axis %d, which is the batch: leat computes each sample by itself",
                        axis);
    return 0;
}

/* ---- Settling ---- */

/* Lists the axes of a tensor but that with the batch: in the order of the stored axes of a settled view, or in their
 * own order. */
static void list_axes(const leati_view *view, bool as_stored, int order[LEAT_MAX_RANK]) {
    const int batch = leati_view_batch_axis(view);
    int count = 0;
    for (int i = 0; i < view->rank; ++i)
        if (i != batch) order[count++] = i;
    for (int i = 1; as_stored && i < count; ++i)
        for (int k = i; k > 0 && view->axes[order[k]].stored[0] < view->axes[order[k - 1]].stored[0]; --k) {
            const int swapped = order[k];
            order[k] = order[k - 1], order[k - 1] = swapped;
        }
}

/* Lists the stored axes in the order that a settled view has. */
static int list_stored(const leati_view *view, const int *order, int perm[LEAT_MAX_RANK]) {
    const leati_view_axis *batch = &view->axes[leati_view_batch_axis(view)];
    int count = 0;
    perm[count++] = 0;
    for (int k = 0; k < batch->count; ++k)
        if (batch->stored[k] != 0) perm[count++] = batch->stored[k];
    for (int i = 0; i + 1 < view->rank; ++i)
        for (int k = 0; k < view->axes[order[i]].count; ++k) perm[count++] = view->axes[order[i]].stored[k];
    return count;
}

leati_view leati_import_settle_view(leati_import *x, const leati_view *view, const int *order) {
    int perm[LEAT_MAX_RANK] = {0}, own[LEAT_MAX_RANK];
    leati_view out = *view;
    if (!leati_import_ok(x)) return out;
    if (!order) list_axes(view, leati_view_is_settled(view), own);
    if (!order) order = own;
    (void)list_stored(view, order, perm);
    const int batch = leati_view_batch_axis(view);
    leati_shape shape = {.rank = 1, .dims = {view->shape.dims[0]}};
    out.axes[batch].count = 0;
    for (int k = 0; k < view->axes[batch].count; ++k) {
        const int stored = view->axes[batch].stored[k];
        if (is_idle(view, stored)) continue;
        out.axes[batch].stored[out.axes[batch].count++] = stored == 0 ? 0 : shape.rank;
        if (stored != 0) shape.dims[shape.rank++] = view->shape.dims[stored];
    }
    if (shape.rank + view->rank - 1 > LEAT_MAX_RANK) {
        leati_import_refuse(x, "expected tensors of at most %d axes", LEAT_MAX_RANK);
        return out;
    }
    for (int i = 0; i + 1 < view->rank; ++i) {
        const leati_import_size size = leati_view_size(view, order[i]);
        out.axes[order[i]] = (leati_view_axis){1, {shape.rank}};
        shape.dims[shape.rank++] = size.open ? -1 : size.count;
    }
    const leati_source source = leati_import_to_shape(x, leati_import_permute(x, view->source, perm), &shape);
    return leati_view_with(x, &out, source);
}

/* Returns true if a settled view has its stored axes in this order. */
static bool has_order(const leati_view *view, const int *order) {
    if (!leati_view_is_settled(view)) return false;
    for (int i = 0; i + 2 < view->rank; ++i)
        if (view->axes[order[i]].stored[0] > view->axes[order[i + 1]].stored[0]) return false;
    return view->axes[leati_view_batch_axis(view)].count == 1 || view->rank < 2 ||
           view->axes[order[0]].stored[0] == view->axes[leati_view_batch_axis(view)].count;
}

leati_view leati_import_settle(leati_import *x, leati_import_value *value, const int *order) {
    if (value->constant) {
        const leati_view view = leati_import_spread(x, value->constant);
        return leati_import_settle_view(x, &view, order);
    }
    for (int i = 0; i < value->view_count; ++i)
        if (order ? has_order(&value->views[i], order) : leati_view_is_settled(&value->views[i]))
            return value->views[i];
    if (value->view_count == 0) leati_import_refuse(x, "an input is not a tensor of numbers");
    if (!leati_import_ok(x)) return (leati_view){0};
    const leati_view out = leati_import_settle_view(x, &value->views[0], order);
    if (value->view_count < LEATI_IMPORT_VIEWS) value->views[value->view_count++] = out;
    return out;
}

leati_view leati_import_natural(leati_import *x, leati_import_value *value) {
    int order[LEAT_MAX_RANK] = {0};
    if (value->view_count > 0) list_axes(&value->views[0], false, order);
    for (int i = 0; value->view_count == 0 && i < LEAT_MAX_RANK; ++i) order[i] = i + 1;
    return leati_import_settle(x, value, order);
}

leati_view leati_import_frames(leati_import *x, leati_import_value *value) {
    int order[LEAT_MAX_RANK] = {0}, count = 0;
    const int rank = value->view_count > 0 ? value->views[0].rank
                     : value->constant     ? value->constant->rank
                                           : 0;
    for (int i = 2; i < rank; ++i) order[count++] = i;
    order[count] = 1;
    leati_view view = leati_import_settle(x, value, order);
    const bool fits = rank >= 3 && leati_import_ok(x) && leati_view_batch_axis(&view) == 0 &&
                      view.axes[0].count <= 2 && view.axes[0].stored[0] == 0;
    if (!fits) leati_import_refuse(x, "expected a tensor (batch, channels, ...) of at least 3 axes");
    return view;
}

leati_view leati_import_channels_last(leati_import *x, leati_import_value *value) {
    const leati_view view = leati_import_frames(x, value);
    if (leati_import_ok(x) && view.axes[0].count != 1)
        leati_import_refuse(
            x, "the batch is joined with another axis, which is supported for convolutions only");
    return view;
}

/* ---- Several tensors ---- */

static bool same_axes(const leati_view *a, const leati_view *b) {
    if (a->rank != b->rank || a->shape.rank != b->shape.rank) return false;
    for (int i = 0; i < a->rank; ++i)
        if (a->axes[i].count != b->axes[i].count ||
            memcmp(a->axes[i].stored, b->axes[i].stored, (size_t)a->axes[i].count) != 0)
            return false;
    return true;
}

/* Finds views of all tensors that have the same axes as a view. */
static bool find_alike(int count, leati_import_value *const *values, const leati_view *like,
                       leati_view *views) {
    for (int i = 0; i < count; ++i) {
        bool found = values[i]->constant != NULL;
        for (int k = 0; !found && k < values[i]->view_count; ++k) {
            found = same_axes(&values[i]->views[k], like);
            if (found) views[i] = values[i]->views[k];
        }
        if (!found) return false;
    }
    return true;
}

leati_view leati_import_align(leati_import *x, int count, leati_import_value *const *values,
                              leati_view *views) {
    leati_import_value *widest = NULL;
    int rank = 0;
    bool constants = false;
    for (int i = 0; i < count; ++i) {
        const int own = values[i]->constant         ? values[i]->constant->rank
                        : values[i]->view_count > 0 ? values[i]->views[0].rank
                                                    : 0;
        rank = own > rank ? own : rank;
        constants = constants || (values[i]->constant && values[i]->constant->count != 1);
        if (!values[i]->constant && (!widest || own > widest->views[0].rank)) widest = values[i];
    }
    if (!widest || widest->view_count == 0)
        leati_import_refuse(x, "expected at least one tensor that is not a constant");
    if (!leati_import_ok(x)) return (leati_view){0};
    for (int k = 0; k < widest->view_count; ++k)
        if (widest->views[k].rank == rank && (!constants || leati_view_is_settled(&widest->views[k])) &&
            find_alike(count, values, &widest->views[k], views))
            return widest->views[k];
    int order[LEAT_MAX_RANK];
    const leati_view settled = leati_import_settle(x, widest, NULL),
                     padded = leati_view_padded(x, &settled, rank);
    const leati_view pattern = leati_import_settle_view(x, &padded, NULL);
    list_axes(&pattern, true, order);
    for (int i = 0; i < count && leati_import_ok(x); ++i) {
        if (values[i]->constant) continue;
        const leati_view *from = &values[i]->views[0];
        const leati_view wide = leati_view_padded(x, from, rank);
        views[i] = values[i] == widest  ? pattern
                   : from->rank == rank ? leati_import_settle(x, values[i], order)
                                        : leati_import_settle_view(x, &wide, order);
        const int batch = leati_view_batch_axis(&pattern);
        if (leati_view_batch_axis(&views[i]) != batch ||
            views[i].axes[batch].count != pattern.axes[batch].count)
            leati_import_refuse(x, "it mixes samples: the batch is not the same axis of both tensors");
    }
    return pattern;
}
