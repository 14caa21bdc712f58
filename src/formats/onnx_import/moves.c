/* SPDX-License-Identifier: Apache-2.0 */
/* Reads operators that change shapes and the order of elements, join and repeat.  Most of them change only the view.
 * Room: formats. */
#include <string.h>

#include "base/memory.h"
#include "formats/onnx_import/import.h"

/* ---- Shapes ---- */

/* Keeps a view's other forms: a change of shape that needs no layer in one form may need one in another. */
static void set(leati_import *x, const leati_view *view) {
    leati_import_set(x, 0, view);
}

static const leati_view *first_view(leati_import *x) {
    static const leati_view none;
    leati_import_value *value = leati_import_need(x, 0);
    if (leati_import_ok(x) && !value->constant && value->view_count > 0) return &value->views[0];
    leati_import_refuse(x, "expected a computed tensor");
    return &none;
}

static void read_reshape(leati_import *x) {
    leati_import_value *value = leati_import_need(x, 0);
    const leati_import_attr *attr = leati_import_attr_of(x->node, "shape");
    leati_import_size sizes[LEAT_MAX_RANK];
    int rank = 0;
    if (attr) {
        for (; rank < attr->int_count && rank < LEAT_MAX_RANK; ++rank)
            sizes[rank] = (leati_import_size){attr->ints[rank], false, false};
    } else {
        const leati_import_tensor *shape = leati_import_constant_in(x, 1, "shape");
        rank = leati_import_ok(x) ? leati_import_sizes(x, shape, sizes) : -1;
    }
    const leati_view *view = first_view(x);
    const bool copies = leati_import_int(x, "allowzero", 0) == 0;
    for (int i = 0; i < rank && leati_import_ok(x); ++i) {
        if (sizes[i].count == 0 && !sizes[i].batch && copies && i < view->rank)
            sizes[i] = leati_view_size(view, i);
        if (sizes[i].count < -1)
            leati_import_refuse(x, "the new shape has a size of %lld", (long long)sizes[i].count);
    }
    if (rank < 0 || !leati_import_ok(x)) return;
    const leati_view out = leati_import_reshape(x, value, rank, sizes);
    set(x, &out);
}

static leati_import_size product(leati_import_size a, leati_import_size b) {
    return (leati_import_size){leati_mul_saturated(a.count, b.count), a.batch || b.batch, a.open || b.open};
}

static void read_flatten(leati_import *x) {
    const leati_view *view = first_view(x);
    const int64_t axis = leati_import_int(x, "axis", 1);
    leati_import_size sizes[2] = {{1, false, false}, {1, false, false}};
    for (int i = 0; i < view->rank; ++i) {
        leati_import_size *to = &sizes[i >= (axis < 0 ? axis + view->rank : axis)];
        *to = product(*to, leati_view_size(view, i));
    }
    if (!leati_import_ok(x)) return;
    const leati_view out = leati_import_reshape_view(x, view, 2, sizes);
    set(x, &out);
}

static void read_squeeze(leati_import *x) {
    const leati_view *view = first_view(x);
    int64_t axes[LEAT_MAX_RANK];
    leati_import_size sizes[LEAT_MAX_RANK];
    const int count = leati_import_ints(x, "axes", 1, LEAT_MAX_RANK, axes);
    uint32_t leaves = 0;
    int rank = 0;
    for (int i = 0; i < count; ++i) leaves |= UINT32_C(1) << leati_import_axis(x, axes[i], view->rank);
    for (int i = 0; i < view->rank && leati_import_ok(x); ++i) {
        const leati_import_size size = leati_view_size(view, i);
        const bool one = size.count == 1 && !size.batch && !size.open;
        if (count < 0 ? one : leaves >> i & 1u) {
            if (!one)
                leati_import_refuse(x, "axis %d, which it removes, is the batch or has another size than 1",
                                    i);
            continue;
        }
        sizes[rank++] = size;
    }
    if (!leati_import_ok(x)) return;
    const leati_view out = leati_import_reshape_view(x, view, rank, sizes);
    set(x, &out);
}

static void read_unsqueeze(leati_import *x) {
    const leati_view *view = first_view(x);
    int64_t axes[LEAT_MAX_RANK];
    const int count = leati_import_ints(x, "axes", 1, LEAT_MAX_RANK, axes),
              rank = view->rank + (count > 0 ? count : 0);
    uint32_t added = 0;
    if (rank > LEAT_MAX_RANK) leati_import_refuse(x, "expected tensors of at most %d axes", LEAT_MAX_RANK);
    for (int i = 0; i < count && leati_import_ok(x); ++i)
        added |= UINT32_C(1) << leati_import_axis(x, axes[i], rank);
    if (!leati_import_ok(x)) return;
    leati_view out = *view;
    out.rank = rank;
    for (int i = 0, next = 0; i < rank; ++i)
        out.axes[i] = added >> i & 1u || next >= view->rank ? (leati_view_axis){0} : view->axes[next++];
    set(x, &out);
}

static void read_transpose(leati_import *x) {
    leati_import_value *value = leati_import_need(x, 0);
    const leati_view *view = first_view(x);
    int64_t list[LEAT_MAX_RANK];
    int perm[LEAT_MAX_RANK] = {0};
    uint32_t seen = 0;
    const int count = leati_import_ints(x, "perm", -1, LEAT_MAX_RANK, list);
    if (count >= 0 && count != view->rank) leati_import_refuse(x, "perm: expected %d axes", (int)view->rank);
    for (int i = 0; i < view->rank && leati_import_ok(x); ++i) {
        perm[i] = count < 0 ? view->rank - 1 - i : leati_import_axis(x, list[i], view->rank);
        seen |= UINT32_C(1) << perm[i];
    }
    if (leati_import_ok(x) && seen != (UINT32_C(1) << view->rank) - 1)
        leati_import_refuse(x, "perm: expected each axis once");
    if (!leati_import_ok(x)) return;
    leati_view out = leati_view_permuted(view, perm);
    leati_import_value *made = leati_import_set(x, 0, &out);
    if (!made) return;
    made->positive = value->positive;
    for (int i = 1; i < value->view_count; ++i)
        made->views[made->view_count++] = leati_view_permuted(&value->views[i], perm);
}

/* ---- Joining ---- */

leati_source leati_import_joined(leati_import *x, int count, const leati_source *sources, int axis) {
    leati_source groups[32];
    enum { MOST = 32 };
    if (count == 1 || !leati_import_ok(x)) return sources[0];
    if (count <= MOST)
        return leati_import_layer(x, "Concatenate", json_pack("{s:i}", "axis", axis), count, sources);
    int group_count = 0;
    const int size = (count + MOST - 1) / MOST > MOST ? 0 : (count + MOST - 1) / MOST > 1 ? MOST : count;
    if (size == 0) {
        leati_import_refuse(x, "expected at most %d tensors, received %d", MOST * MOST, count);
        return sources[0];
    }
    for (int i = 0; i < count; i += size)
        groups[group_count++] =
            leati_import_joined(x, count - i < size ? count - i : size, sources + i, axis);
    return leati_import_joined(x, group_count, groups, axis);
}

/* Collects the tensors of the node; a constant becomes a tensor. */
static int collect(leati_import *x, leati_import_value **values) {
    int count = 0;
    for (int i = 0; i < x->node->input_count && leati_import_ok(x); ++i) {
        leati_import_value *value = leati_import_need(x, i);
        if (!leati_import_ok(x)) return 0;
        if (value->constant && value->constant->count == 0) continue;
        if (value->constant) {
            const leati_view view = leati_import_spread(x, value->constant);
            leati_import_value *tensor = leati_import_memory(x, 1, sizeof *tensor);
            if (!tensor) return 0;
            *tensor = (leati_import_value){
                .name = "", .type = value->type, .view_count = 1, .views = {view}, .made = true};
            value = tensor;
        }
        values[count++] = value;
    }
    return count;
}

static void read_concat(leati_import *x) {
    leati_import_value **values = leati_import_memory(x, x->node->input_count, sizeof *values);
    leati_view *views = leati_import_memory(x, x->node->input_count, sizeof *views);
    leati_source *sources = leati_import_memory(x, x->node->input_count, sizeof *sources);
    if (!values || !views || !sources) return;
    const int count = collect(x, values);
    if (count < 1) leati_import_refuse(x, "expected at least one tensor");
    if (!leati_import_ok(x)) return;
    const leati_view pattern = leati_import_align(x, count, values, views);
    if (!leati_import_ok(x)) return;
    const int axis = leati_import_axis(x, leati_import_int(x, "axis", 1), pattern.rank);
    leati_view like = pattern;
    if (leati_import_ok(x) && !leati_view_is_settled(&pattern)) { /* the axis must be a stored one */
        like = leati_import_settle_view(x, &pattern, NULL);
        for (int i = 0; i < count; ++i) views[i] = leati_import_settle_view(x, &views[i], NULL);
    }
    const int stored = leati_import_stored(x, &like, axis);
    bool positive = true;
    for (int i = 0; i < count; ++i) {
        sources[i] = views[i].source;
        positive = positive && values[i]->positive;
    }
    const leati_view out = leati_view_with(x, &like, leati_import_joined(x, count, sources, stored));
    leati_import_value *made = leati_import_set(x, 0, &out);
    if (made) made->positive = positive;
}

/* ---- Repeating and padding ---- */

/* Multiplies by ones, which have the new sizes. */
static void read_expand(leati_import *x) {
    leati_import_value *value = leati_import_need(x, 0);
    const leati_import_tensor *shape = leati_import_constant_in(x, 1, "shape");
    leati_import_size sizes[LEAT_MAX_RANK];
    int64_t dims[LEAT_MAX_RANK];
    const int count = leati_import_ok(x) ? leati_import_sizes(x, shape, sizes) : -1;
    const leati_view *first = first_view(x);
    if (count < 0 || !leati_import_ok(x)) return;
    const int rank = count > first->rank ? count : first->rank;
    const leati_view view = leati_view_padded(x, first, rank);
    bool changes = false;
    for (int i = 0; i < rank; ++i) {
        const leati_import_size want =
            i < rank - count ? (leati_import_size){1, false, false} : sizes[i - (rank - count)];
        const leati_import_size have = leati_view_size(&view, i);
        dims[i] = 1;
        if (have.batch || have.open || have.count != 1 || (want.count == 1 && !want.batch)) continue;
        if (want.batch || want.count < 1) {
            leati_import_refuse(x,
                                "axis %d becomes as long as the batch, or a size that is open in the model",
                                i);
            return;
        }
        dims[i] = want.count;
        changes = true;
    }
    leati_import_value wide = *value;
    wide.view_count = 1;
    wide.views[0] = view;
    leati_import_tensor *ones = changes ? leati_import_new_constant(x, LEATI_IMPORT_FLOAT, rank, dims) : NULL;
    for (int64_t i = 0; ones && i < ones->count; ++i) leati_import_put(ones, i, 1);
    leati_import_value factor = {.constant = ones, .type = LEATI_IMPORT_FLOAT, .made = true};
    if (!leati_import_ok(x)) return;
    const leati_view out =
        changes ? leati_import_function(x, "Multiply", 2, (leati_import_value *[]){&wide, &factor}) : view;
    set(x, &out);
}

/* Applies a function to a settled view, with a list of one item per stored axis. */
static void read_tile(leati_import *x) {
    const leati_view view = leati_import_settle(x, leati_import_need(x, 0), NULL);
    int64_t repeats[LEAT_MAX_RANK];
    const int count = leati_import_ints(x, "repeats", 1, LEAT_MAX_RANK, repeats);
    if (leati_import_ok(x) && count != view.rank)
        leati_import_refuse(x, "expected %d numbers of repeats", (int)view.rank);
    if (!leati_import_ok(x)) return;
    json_t *list = json_array();
    for (int i = 0; list && i < view.shape.rank; ++i) leati_import_append(&list, json_integer(1));
    for (int i = 0; list && i < count; ++i)
        if (repeats[i] != 1)
            leati_import_put_item(&list, (size_t)leati_import_stored(x, &view, i), json_integer(repeats[i]));
    const leati_source source = leati_import_operation(x, "Tile", json_pack("[o]", leati_import_argument(0)),
                                                       json_pack("{s:o}", "repeats", list), 1, &view.source);
    const leati_view out = leati_view_with(x, &view, source);
    set(x, &out);
}

/* Reads the number that fills the padding. */
static double padding_number(leati_import *x) {
    const leati_import_tensor *tensor = x->file->opset < 11 ? NULL : leati_import_constant_in(x, 2, "value");
    return tensor && tensor->count == 1 ? leati_import_number(tensor, 0)
                                        : (double)leati_import_real(x, "value", 0);
}

static void read_pad(leati_import *x) {
    const leati_view view = leati_import_settle(x, leati_import_need(x, 0), NULL);
    int64_t pads[2 * LEAT_MAX_RANK], axes[LEAT_MAX_RANK];
    const int count = leati_import_ints(x, "pads", 1, 2 * LEAT_MAX_RANK, pads);
    const int axis_count = x->file->opset < 18 ? -1 : leati_import_ints(x, "axes", 3, LEAT_MAX_RANK, axes);
    const int padded = axis_count < 0 ? view.rank : axis_count;
    if (strcmp(leati_import_string(x, "mode", "constant"), "constant") != 0)
        leati_import_refuse(x, "mode '%.32s' is not supported; leat pads with a number",
                            leati_import_string(x, "mode", ""));
    if (leati_import_ok(x) && count != 2 * padded)
        leati_import_refuse(x, "pads: expected %d numbers", 2 * padded);
    if (!leati_import_ok(x)) return;
    json_t *list = json_array();
    for (int i = 0; list && i < view.shape.rank; ++i) leati_import_append(&list, json_pack("[i, i]", 0, 0));
    for (int i = 0; i < padded && leati_import_ok(x); ++i) {
        const int axis = axis_count < 0 ? i : leati_import_axis(x, axes[i], view.rank);
        if (pads[i] < 0 || pads[padded + i] < 0)
            leati_import_refuse(x, "negative padding is not supported; use Slice");
        if ((pads[i] == 0 && pads[padded + i] == 0) || !list || !leati_import_ok(x)) continue;
        leati_import_put_item(&list, (size_t)leati_import_stored(x, &view, axis),
                              json_pack("[I, I]", (json_int_t)pads[i], (json_int_t)pads[padded + i]));
    }
    json_t *args = json_pack("[o, f]", leati_import_argument(0), padding_number(x));
    json_t *options = json_pack("{s:o, s:s}", "pad_width", list, "mode", "constant");
    const leati_source source = leati_import_operation(x, "Pad", args, options, 1, &view.source);
    const leati_view out = leati_view_with(x, &view, source);
    set(x, &out);
}

/* ---- Pixels and channels ---- */

/* Splits and joins axes of an image: the sizes of six axes, their order, and which of them are joined. */
static void rearrange(leati_import *x, const leati_import_size *six, const int *perm,
                      const leati_import_size *four) {
    const leati_view split = leati_import_reshape_view(x, first_view(x), 6, six);
    if (!leati_import_ok(x)) return;
    const leati_view moved = leati_view_permuted(&split, perm);
    const leati_view out = leati_import_reshape_view(x, &moved, 4, four);
    set(x, &out);
}

static leati_import_size times(leati_import_size size, int64_t factor) {
    size.count = leati_mul_saturated(size.count, factor);
    return size;
}

static void read_depth_to_space(leati_import *x) {
    const leati_view *view = first_view(x);
    const int64_t b = leati_import_int(x, "blocksize", 0);
    const bool columns = strcmp(leati_import_string(x, "mode", "DCR"), "DCR") == 0;
    if (leati_import_ok(x) && (view->rank != 4 || b < 1 || b > 1024))
        leati_import_refuse(x, "expected an image and a blocksize");
    if (!leati_import_ok(x)) return;
    const leati_import_size n = leati_view_size(view, 0), h = leati_view_size(view, 2),
                            w = leati_view_size(view, 3);
    const leati_import_size c = {leati_view_size(view, 1).count / (b * b), false, false},
                            block = {b, false, false};
    const leati_import_size four[] = {n, c, times(h, b), times(w, b)};
    if (columns)
        rearrange(x, (leati_import_size[]){n, block, block, c, h, w}, (int[]){0, 3, 4, 1, 5, 2}, four);
    else
        rearrange(x, (leati_import_size[]){n, c, block, block, h, w}, (int[]){0, 1, 4, 2, 5, 3}, four);
}

static void read_space_to_depth(leati_import *x) {
    const leati_view *view = first_view(x);
    const int64_t b = leati_import_int(x, "blocksize", 0);
    if (leati_import_ok(x) && (view->rank != 4 || b < 1 || b > 1024))
        leati_import_refuse(x, "expected an image and a blocksize");
    if (!leati_import_ok(x)) return;
    const leati_import_size n = leati_view_size(view, 0), c = leati_view_size(view, 1),
                            block = {b, false, false};
    leati_import_size h = leati_view_size(view, 2), w = leati_view_size(view, 3);
    h.count /= b, w.count /= b;
    const leati_import_size four[] = {n, times(c, b * b), h, w};
    rearrange(x, (leati_import_size[]){n, c, h, block, w, block}, (int[]){0, 3, 5, 1, 2, 4}, four);
}

const leati_import_operator leati_import_move_operators[] = {
    {"Reshape", read_reshape, NULL},
    {"Flatten", read_flatten, NULL},
    {"Squeeze", read_squeeze, NULL},
    {"Unsqueeze", read_unsqueeze, NULL},
    {"Transpose", read_transpose, NULL},
    {"Concat", read_concat, NULL},
    {"Expand", read_expand, NULL},
    {"Tile", read_tile, NULL},
    {"Pad", read_pad, NULL},
    {"DepthToSpace", read_depth_to_space, NULL},
    {"SpaceToDepth", read_space_to_depth, NULL},
    {.name = NULL},
};
