/* SPDX-License-Identifier: Apache-2.0 */
/* Reshapes views: joins and splits axes.  The elements keep their order, so that a new axis is a product of stored
 * axes, or a part of one, wherever the old and the new sizes have common factors.  Room: formats. */
#include <string.h>

#include "base/memory.h"
#include "formats/onnx_import/import.h"

/* The stored axes in the order of the tensor's elements, and their parts. */
typedef struct parts {
    int count; /* of the stored axes in order */
    int stored[LEAT_MAX_RANK];
    int part_count[LEAT_MAX_RANK]; /* by stored axis */
    int64_t lengths[LEAT_MAX_RANK][LEAT_MAX_RANK];
    /* The axes of the new tensor: pairs of a stored axis and a part of it. */
    int axis_count[LEAT_MAX_RANK];
    int32_t axes[LEAT_MAX_RANK][LEAT_MAX_RANK][2];
    int at;       /* the next stored axis in order */
    int64_t rest; /* what is left of its length; 0: all of it */
} parts;

static bool take(parts *p, int axis, int stored, int64_t length) {
    const int part = p->part_count[stored]++, place = p->axis_count[axis]++;
    if (part >= LEAT_MAX_RANK || place >= LEAT_MAX_RANK) return false;
    p->lengths[stored][part] = length;
    p->axes[axis][place][0] = stored;
    p->axes[axis][place][1] = part;
    return true;
}

/* Gives a new axis the elements that come next.  Returns false if it has no whole parts of stored axes. */
static bool take_axis(parts *p, const leati_view *from, int axis, leati_import_size want) {
    while (want.count > 1 || want.batch || want.open) {
        if (p->at >= p->count) return false;
        const int stored = p->stored[p->at];
        const int64_t length = p->rest > 0 ? p->rest : from->shape.dims[stored];
        if (stored == 0 || length < 0) {
            bool *wanted = stored == 0 ? &want.batch : &want.open;
            if (!*wanted) return false;
            *wanted = false;
            if (!take(p, axis, stored, stored == 0 ? 0 : -1)) return false;
            ++p->at;
            continue;
        }
        if (want.count % length == 0) { /* the rest of the stored axis */
            if (!take(p, axis, stored, length)) return false;
            want.count /= length;
            p->rest = 0;
            ++p->at;
            continue;
        }
        if (want.count == 1 || length % want.count != 0) return false;
        if (!take(p, axis, stored, want.count)) return false;
        p->rest = length / want.count;
        want.count = 1;
    }
    return true;
}

/* Gives stored axes of length 1 that are left to the last axis. */
static bool take_rest(parts *p, const leati_view *from, int rank) {
    for (; p->at < p->count; ++p->at) {
        const int stored = p->stored[p->at];
        if (p->rest > 1 || stored == 0 || from->shape.dims[stored] != 1 || rank < 1) return false;
        if (!take(p, rank - 1, stored, 1)) return false;
    }
    return p->rest <= 1;
}

/* Makes the view of the parts; adds a Reshape if a stored axis is split. */
static leati_view view_of(leati_import *x, const parts *p, const leati_view *from, int rank) {
    leati_view out = {.rank = rank};
    leati_shape shape = {.rank = 0};
    int first[LEAT_MAX_RANK] = {0};
    for (int s = 0; s < from->shape.rank; ++s) {
        first[s] = shape.rank;
        for (int k = 0; k < p->part_count[s]; ++k) {
            if (shape.rank >= LEAT_MAX_RANK) {
                leati_import_refuse(x, "expected tensors of at most %d axes", LEAT_MAX_RANK);
                return out;
            }
            shape.dims[shape.rank++] = s == 0 ? from->shape.dims[0] : p->lengths[s][k];
        }
    }
    for (int i = 0; i < rank; ++i) {
        out.axes[i].count = p->axis_count[i];
        for (int k = 0; k < p->axis_count[i]; ++k)
            out.axes[i].stored[k] = first[p->axes[i][k][0]] + p->axes[i][k][1];
    }
    return leati_view_with(x, &out, leati_import_to_shape(x, from->source, &shape));
}

static bool split(leati_import *x, const leati_view *from, int rank, const leati_import_size *sizes,
                  leati_view *out) {
    parts p = {0};
    for (int i = 0; i < from->rank; ++i)
        for (int k = 0; k < from->axes[i].count; ++k) p.stored[p.count++] = from->axes[i].stored[k];
    for (int i = 0; i < rank; ++i)
        if (!take_axis(&p, from, i, sizes[i])) return false;
    if (!take_rest(&p, from, rank)) return false;
    *out = view_of(x, &p, from, rank);
    return true;
}

/* ---- Sizes ---- */

/* Computes a size of -1: the product of the old sizes divided by that of the other new ones. */
static void solve(leati_import *x, const leati_view *from, int rank, leati_import_size *sizes) {
    leati_import_size total = {1, false, false}, known = total;
    int unknown = -1;
    for (int i = 0; i < from->rank; ++i) {
        const leati_import_size size = leati_view_size(from, i);
        total.count = leati_mul_saturated(total.count, size.count);
        total.batch = total.batch || size.batch;
        total.open = total.open || size.open;
    }
    for (int i = 0; i < rank; ++i) {
        if (sizes[i].count == -1) {
            if (unknown >= 0) leati_import_refuse(x, "expected at most one size of -1");
            unknown = i;
            continue;
        }
        known.count = leati_mul_saturated(known.count, sizes[i].count);
        known.batch = known.batch || sizes[i].batch;
        known.open = known.open || sizes[i].open;
    }
    if (unknown < 0 || !leati_import_ok(x)) return;
    if (known.count <= 0 || total.count % known.count != 0)
        leati_import_refuse(x, "the new sizes do not divide the %lld elements of a sample",
                            (long long)total.count);
    else
        sizes[unknown] = (leati_import_size){total.count / known.count, total.batch && !known.batch,
                                             total.open && !known.open};
}

/* A file with a fixed batch size has it in the new sizes as a number.  Finds the axis that has the batch: the one at
 * the same place among the elements. */
static void open_batch(leati_import *x, const leati_view *from, int rank, leati_import_size *sizes) {
    int64_t before = 1, total = x->fixed_batch, known = 1, passed = 1;
    int unknown = -1;
    const leati_view_axis *batch = &from->axes[leati_view_batch_axis(from)];
    for (int i = 0; i < rank; ++i)
        if (sizes[i].batch || sizes[i].open) return;
    for (int i = 1; i < from->shape.rank; ++i) total = leati_mul_saturated(total, from->shape.dims[i]);
    for (int i = 0; i < leati_view_batch_axis(from); ++i) before *= leati_view_size(from, i).count;
    for (int k = 0; k < batch->count && batch->stored[k] != 0; ++k)
        before *= from->shape.dims[batch->stored[k]];
    for (int i = 0; i < rank; ++i) {
        if (sizes[i].count == -1)
            unknown = i;
        else
            known = leati_mul_saturated(known, sizes[i].count);
    }
    if (unknown >= 0 && known > 0) sizes[unknown].count = total / known;
    for (int i = 0; i < rank; ++i) {
        const int64_t size = sizes[i].count, next = leati_mul_saturated(passed, size);
        const bool inside = size == x->fixed_batch ? passed == before : passed <= before && before < next;
        /* Between the last two axes, the batch belongs to the first of them: the last one has the features. */
        const bool precedes = i + 2 == rank && passed < before && before == next && x->fixed_batch == 1;
        if ((inside || precedes) && size % x->fixed_batch == 0) {
            sizes[i] = (leati_import_size){size / x->fixed_batch, true, false};
            return;
        }
        passed = next;
    }
}

static bool has_open(const leati_view *view) {
    for (int i = 1; i < view->shape.rank; ++i)
        if (view->shape.dims[i] < 0) return true;
    return false;
}

leati_view leati_import_reshape_view(leati_import *x, const leati_view *view, int rank,
                                     const leati_import_size *wanted) {
    leati_import_size sizes[LEAT_MAX_RANK];
    leati_view out = {0};
    if (!leati_import_ok(x)) return out;
    memcpy(sizes, wanted, (size_t)rank * sizeof *sizes);
    if (x->fixed_batch > 0 && !has_open(view)) open_batch(x, view, rank, sizes);
    solve(x, view, rank, sizes);
    if (!leati_import_ok(x) || split(x, view, rank, sizes, &out)) return out;
    int order[LEAT_MAX_RANK];
    for (int i = 0; i < LEAT_MAX_RANK; ++i) order[i] = i + 1;
    if (leati_view_batch_axis(view) == 0 && sizes[0].batch && sizes[0].count == 1 && !sizes[0].open) {
        const leati_view plain = leati_import_settle_view(x, view, order);
        leati_shape shape = {.rank = rank, .dims = {plain.shape.dims[0]}};
        int unknown = 0;
        for (int i = 1; i < rank; ++i) {
            shape.dims[i] = sizes[i].open ? -1 : sizes[i].count;
            unknown += sizes[i].open;
        }
        if (plain.axes[0].count == 1 && unknown <= 1)
            return leati_view_of(x, leati_import_to_shape(x, plain.source, &shape));
    }
    leati_import_refuse(
        x, "its new shape mixes samples, or depends on a size that is open in the model; export the model "
           "with fixed sizes, except for the batch");
    return out;
}

leati_view leati_import_reshape(leati_import *x, leati_import_value *value, int rank,
                                const leati_import_size *sizes) {
    if (value->constant || value->view_count == 0) {
        leati_import_refuse(x, "expected a tensor of numbers");
        return (leati_view){0};
    }
    return leati_import_reshape_view(x, &value->views[0], rank, sizes);
}
