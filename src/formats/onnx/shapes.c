/* SPDX-License-Identifier: Apache-2.0 */
/* Emits the ops that move elements.  Room: formats. */
#include <stddef.h>

#include "formats/onnx/exporter.h"

static int rank_of(const leati_onnx *x, leati_value value) {
    return leati_graph_desc(x->graph, value)->rank;
}

static void sizes_of(const leati_onnx *x, leati_value value, leati_onnx_size *sizes) {
    for (int i = 0; i < rank_of(x, value); ++i) sizes[i] = leati_onnx_size_of(x, value, i);
}

void leati_onnx_concat(leati_onnx *x, const leati_node *node, const leati_node *other) {
    (void)other;
    const char *inputs[LEATI_MAX_INPUTS];
    const int rank = rank_of(x, node->outputs[0]);
    bool first = false;
    for (int i = 0; i < node->input_count; ++i) first |= leati_onnx_is_first(x, node->inputs[i]);
    for (int i = 0; i < node->input_count; ++i) inputs[i] = leati_onnx_form(x, node->inputs[i], first);
    const leati_onnx_attr attrs[] = {LEATI_ATTR_INT("axis",
                                                    leati_onnx_axis(rank, node->attrs.concat.axis, first)),
                                     LEATI_ATTR_END};
    const char *name = leati_onnx_node(x, "Concat", node->input_count, inputs, attrs);
    leati_onnx_set_form(x, node->outputs[0], first, name);
}

/* ---- Slices ---- */

/* Sets *index to the beginning or the end of a slice, counted from the end of the axis if the axis is open and the
 * distance from its end is fixed.  Returns false if neither distance is fixed. */
static bool index_of(leati_onnx_size at, leati_onnx_size size, bool is_end, int64_t *index) {
    const int64_t left = size.at[0] - at.at[0];
    const bool from_end = leati_onnx_is_open(size) && left == size.at[1] - at.at[1];
    *index = !from_end ? at.at[0] : left == 0 && is_end ? INT64_MAX : -left;
    return from_end || !leati_onnx_is_open(at);
}

void leati_onnx_slice(leati_onnx *x, const leati_node *node, const leati_node *other) {
    int64_t starts[LEAT_MAX_RANK], ends[LEAT_MAX_RANK], axes[LEAT_MAX_RANK];
    const leati_value src = node->inputs[0];
    const bool first = leati_onnx_is_first(x, src);
    const char *name = leati_onnx_form(x, src, first);
    int count = 0;
    for (int i = 0; i < rank_of(x, src); ++i) {
        const leati_onnx_size whole = leati_onnx_size_of(x, src, i);
        const leati_onnx_size start = {{node->attrs.slice.start[i], other->attrs.slice.start[i]}};
        const leati_onnx_size end = {{start.at[0] + node->attrs.slice.size[i], //
                                      start.at[1] + other->attrs.slice.size[i]}};
        if (start.at[0] == 0 && start.at[1] == 0 && end.at[0] == whole.at[0] && end.at[1] == whole.at[1])
            continue;
        if (!index_of(start, whole, false, &starts[count]) || !index_of(end, whole, true, &ends[count]))
            leati_onnx_refuse(x, "it cuts a part whose place depends on an open size; give the inputs of the "
                                 "model fixed sizes, apart from the batch");
        axes[count++] = leati_onnx_axis(rank_of(x, src), i, first);
    }
    const char *const inputs[] = {name, leati_onnx_ints(x, count, starts), leati_onnx_ints(x, count, ends),
                                  leati_onnx_ints(x, count, axes)};
    if (count > 0) name = leati_onnx_node(x, "Slice", 4, inputs, NULL);
    leati_onnx_set_form(x, node->outputs[0], first, name);
}

void leati_onnx_reverse(leati_onnx *x, const leati_node *node, const leati_node *other) {
    (void)other;
    const leati_value src = node->inputs[0];
    const bool first = leati_onnx_is_first(x, src);
    const int64_t axis = leati_onnx_axis(rank_of(x, src), node->attrs.reverse.axis, first);
    const int64_t start = -1, end = INT64_MIN, step = -1;
    const char *const inputs[] = {leati_onnx_form(x, src, first), leati_onnx_ints(x, 1, &start),
                                  leati_onnx_ints(x, 1, &end), leati_onnx_ints(x, 1, &axis),
                                  leati_onnx_ints(x, 1, &step)};
    leati_onnx_set_form(x, node->outputs[0], first, leati_onnx_node(x, "Slice", 5, inputs, NULL));
}

void leati_onnx_pad(leati_onnx *x, const leati_node *node, const leati_node *other) {
    int64_t pads[2 * LEAT_MAX_RANK];
    const leati_value src = node->inputs[0];
    const int rank = rank_of(x, src);
    const bool first = leati_onnx_is_first(x, src);
    for (int i = 0; i < rank; ++i) {
        const int axis = leati_onnx_axis(rank, i, first);
        pads[axis] = node->attrs.pad.before[i];
        pads[rank + axis] = node->attrs.pad.after[i];
        if (pads[axis] != other->attrs.pad.before[i] || pads[rank + axis] != other->attrs.pad.after[i])
            leati_onnx_refuse(x, "its padding depends on an open size; give the inputs of the model fixed "
                                 "sizes, apart from the batch");
    }
    const char *const inputs[] = {leati_onnx_form(x, src, first), leati_onnx_ints(x, 2 * rank, pads),
                                  leati_onnx_scalar(x, node->attrs.pad.value)};
    leati_onnx_set_form(x, node->outputs[0], first, leati_onnx_node(x, "Pad", 3, inputs, NULL));
}

/* ---- Order of axes and shapes ---- */

/* A TRANSPOSE between leat's two orders of axes only gives the value its other form. */
void leati_onnx_transpose(leati_onnx *x, const leati_node *node, const leati_node *other) {
    (void)other;
    int64_t perm[LEAT_MAX_RANK];
    const leati_value src = node->inputs[0], dst = node->outputs[0];
    const int rank = rank_of(x, src);
    bool is_to_plain = rank >= 3, is_to_first = rank >= 3;
    for (int i = 0; i < rank; ++i) {
        const int axis = node->attrs.transpose.perm[i];
        is_to_plain &= axis == leati_onnx_first_axis(rank, i);
        is_to_first &= leati_onnx_first_axis(rank, axis) == i;
    }
    const bool first = leati_onnx_is_first(x, src);
    for (int i = 0; i < rank; ++i) perm[i] = leati_onnx_axis(rank, node->attrs.transpose.perm[i], first);
    if (is_to_plain && !first)
        leati_onnx_set_first(x, dst, leati_onnx_plain(x, src));
    else if (is_to_first && x->forms[src].first)
        leati_onnx_set_plain(x, dst, x->forms[src].first);
    else
        leati_onnx_set_plain(x, dst, leati_onnx_transposed(x, leati_onnx_form(x, src, first), rank, perm));
}

/* True if all axes but the first and the last one have size 1: then both orders of axes have the same memory. */
static bool is_flat(const leati_onnx *x, leati_value value) {
    bool flat = true;
    for (int i = 1; i < rank_of(x, value) - 1; ++i) {
        const leati_onnx_size size = leati_onnx_size_of(x, value, i);
        flat &= size.at[0] == 1 && size.at[1] == 1;
    }
    return flat;
}

static bool has_same_shape(const leati_onnx *x, leati_value a, leati_value b) {
    bool same = rank_of(x, a) == rank_of(x, b);
    for (int i = 0; same && i < rank_of(x, a); ++i) {
        const leati_onnx_size left = leati_onnx_size_of(x, a, i), right = leati_onnx_size_of(x, b, i);
        same = left.at[0] == right.at[0] && left.at[1] == right.at[1];
    }
    return same;
}

void leati_onnx_reshape(leati_onnx *x, const leati_node *node, const leati_node *other) {
    leati_onnx_size from[LEAT_MAX_RANK], to[LEAT_MAX_RANK];
    const leati_value src = node->inputs[0], dst = node->outputs[0];
    if (leati_onnx_data_of(x, dst)) return; /* the first reader makes the initializer */
    if (has_same_shape(x, src, dst)) {
        leati_onnx_copy(x, node, other);
        return;
    }
    const bool first = leati_onnx_is_first(x, src) && is_flat(x, src);
    const char *name = leati_onnx_form(x, src, first);
    sizes_of(x, src, from);
    sizes_of(x, dst, to);
    const int comparable = first ? 1 : rank_of(x, src); /* axes at the same place as in the plain order */
    const char *shape = leati_onnx_shape_from(x, comparable, from, rank_of(x, dst), to);
    leati_onnx_set_plain(x, dst, leati_onnx_binary(x, "Reshape", name, shape));
}

/* Expand leaves an axis as it is where the shape has a 1. */
void leati_onnx_broadcast(leati_onnx *x, const leati_node *node, const leati_node *other) {
    (void)other;
    leati_onnx_size to[LEAT_MAX_RANK];
    const leati_value src = node->inputs[0], dst = node->outputs[0];
    const int added = rank_of(x, dst) - rank_of(x, src);
    sizes_of(x, dst, to);
    for (int i = added; i < rank_of(x, dst); ++i) {
        const leati_onnx_size own = leati_onnx_size_of(x, src, i - added);
        if (own.at[0] == to[i].at[0] && own.at[1] == to[i].at[1]) to[i] = (leati_onnx_size){{1, 1}};
    }
    leati_onnx_set_plain(x, dst,
                         leati_onnx_binary(x, "Expand", leati_onnx_plain(x, src),
                                           leati_onnx_shape(x, rank_of(x, dst), to)));
}
