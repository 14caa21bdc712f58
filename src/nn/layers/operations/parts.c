/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of keras.ops that cut tensors into parts along an axis, replace parts, and turn images.  Room: nn. */
#include "base/memory.h"
#include "nn/layers/layer.h"
#include "nn/layers/operations/operations.h"

enum { COLUMNS = 1, LAYERS };

/* Joins along axis 1 or 2; where the latter is missing, it is added. */
static void lower_stack(leati_operands *o) {
    leati_value parts[LEATI_MAX_CONCAT];
    const int count = leati_operand_list(o, "xs", parts, LEATI_MAX_CONCAT), axis = o->operation->detail;
    for (int i = 0; i < count; ++i) {
        const int rank = leati_graph_desc(o->g, parts[i])->rank;
        if (rank < 2) leati_operand_fail(o, LEAT_ESHAPE, "expected tensors of at least 2 axes");
        if (rank == axis) parts[i] = leati_expand_last(o->g, parts[i]);
    }
    o->outputs[0] = count < 1    ? LEATI_INVALID
                    : count == 1 ? parts[0]
                                 : leati_concat(o->g, count, parts, axis);
}

static void lower_append(leati_operands *o) {
    leati_value parts[] = {leati_operand(o, "x1"), leati_operand(o, "x2")};
    const int rank = leati_graph_desc(o->g, parts[0])->rank;
    const int axis = leati_operand_json(o, "axis") ? leati_operand_axis(o, "axis", rank, 0) : -1;
    o->outputs[0] = axis < 0 ? leati_operand_fail(o, LEAT_ENOTSUP, "expected an axis")
                             : leati_concat(o->g, 2, parts, axis);
}

enum { UNEVEN = 4 };

/* Splits an axis into a number of parts, or at the indices of a list.  UNEVEN: the first parts may have one element
 * more, and the axis is an argument. */
static void lower_split(leati_operands *o) {
    leati_value x = leati_operand(o, "x");
    const leati_desc desc = *leati_graph_desc(o->g, x);
    int64_t list[LEAT_MAX_RANK], start = 0;
    const int detail = o->operation->detail;
    const int axis = detail == UNEVEN     ? leati_operand_axis(o, "axis", desc.rank, 0)
                     : detail < desc.rank ? detail
                                          : -1;
    const bool even = json_is_integer(leati_operand_json(o, "indices_or_sections"));
    int64_t count = leati_operand_ints(o, "indices_or_sections", list);
    count = even ? list[0] : count + 1;
    if (axis < 0 || count < 1 || count > LEATI_LAYER_MAX_OUTPUTS ||
        (even && detail != UNEVEN && desc.shape[axis] % count != 0)) {
        leati_operand_fail(o, LEAT_ENOTSUP, "expected 1 to %d equal parts of an axis of the tensor",
                           LEATI_LAYER_MAX_OUTPUTS);
        return;
    }
    o->output_count = (int)count;
    for (int64_t i = 0; i < count; ++i) {
        const int64_t length = desc.shape[axis];
        int64_t end = length;
        if (even)
            end = start + length / count + (i < length % count);
        else if (i + 1 < count)
            end = list[i] < start ? start : list[i] > length ? length : list[i];
        o->outputs[i] = leati_slice_axis(o->g, x, axis, start, end - start);
        start = end;
    }
}

/* Reads where a part begins, which has to be a constant. */
static bool read_starts(leati_operands *o, int rank, int64_t starts[LEAT_MAX_RANK]) {
    if (leati_operand_is_constant(o, "start_indices") &&
        leati_operand_ints(o, "start_indices", starts) == rank)
        return true;
    o->outputs[0] = leati_operand_fail(o, LEAT_ENOTSUP, "start_indices: expected a constant for each axis");
    return false;
}

/* Cuts out a part of the size `shape`; a size of -1 is all that is left. */
static void lower_slice(leati_operands *o) {
    leati_value x = leati_operand(o, "inputs");
    const leati_desc desc = *leati_graph_desc(o->g, x);
    int64_t starts[LEAT_MAX_RANK], sizes[LEAT_MAX_RANK];
    if (!read_starts(o, desc.rank, starts)) return;
    if (leati_operand_ints(o, "shape", sizes) != desc.rank) {
        o->outputs[0] = leati_operand_fail(o, LEAT_EINVAL, "shape: expected a size for each axis");
        return;
    }
    for (int i = 0; i < desc.rank; ++i)
        x = leati_slice_axis(o->g, x, i, starts[i], sizes[i] < 0 ? desc.shape[i] - starts[i] : sizes[i]);
    o->outputs[0] = x;
}

/* Replaces a part. */
static void lower_slice_update(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value x = leati_operand(o, "inputs"), part = leati_operand(o, "updates");
    const leati_desc desc = *leati_graph_desc(g, x), own = *leati_graph_desc(g, part);
    int64_t starts[LEAT_MAX_RANK], after[LEAT_MAX_RANK] = {0};
    if (!read_starts(o, desc.rank, starts)) return;
    bool fits = own.rank == desc.rank;
    for (int i = 0; fits && i < desc.rank; ++i) {
        after[i] = desc.shape[i] - own.shape[i] - starts[i];
        fits = starts[i] >= 0 && after[i] >= 0;
    }
    if (!fits) {
        o->outputs[0] = leati_operand_fail(o, LEAT_ESHAPE, "updates: expected a part within the tensor");
        return;
    }
    leati_value replaced = leati_pad(g, leati_full(g, own.rank, own.shape, 1), starts, after, 0);
    o->outputs[0] = leati_operation_select(o, replaced, leati_pad(g, part, starts, after, 0), x);
}

/* Turns images by right angles, from the first axis to the second one. */
static void lower_rot90(leati_operands *o) {
    leati_value x = leati_operand(o, "array");
    const int rank = leati_graph_desc(o->g, x)->rank;
    int64_t axes[LEAT_MAX_RANK] = {0, 1};
    const int64_t turns = (leati_operand_int(o, "k", 1) % 4 + 4) % 4;
    const int count = leati_operand_ints(o, "axes", axes);
    const int a = leati_axis_from(axes[0], rank), b = leati_axis_from(axes[1], rank);
    if ((count != -1 && count != 2) || a < 1 || b < 1 || a == b) {
        o->outputs[0] =
            leati_operand_fail(o, LEAT_ENOTSUP, "axes: expected two axes behind the batch, such as (1, 2)");
        return;
    }
    int32_t perm[LEAT_MAX_RANK];
    for (int i = 0; i < rank; ++i) perm[i] = i == a ? b : i == b ? a : i;
    if (turns == 1 || turns == 2) x = leati_reverse(o->g, x, b);
    if (turns == 2) x = leati_reverse(o->g, x, a);
    if (turns % 2 == 1) x = leati_transpose(o->g, x, perm);
    if (turns == 3) x = leati_reverse(o->g, x, b);
    o->outputs[0] = x;
}

static void lower_fliplr(leati_operands *o) {
    leati_value x = leati_operand(o, "x");
    o->outputs[0] = leati_graph_desc(o->g, x)->rank < 2
                        ? leati_operand_fail(o, LEAT_ESHAPE, "expected at least two axes")
                        : leati_reverse(o->g, x, 1);
}

#define NUMPY "ops.numpy"

const leati_operation leati_part_operations[] = {
    {"Hstack", NUMPY, "xs", lower_stack, COLUMNS},
    {"Dstack", NUMPY, "xs", lower_stack, LAYERS},
    {"Append", NUMPY, "x1 x2 axis", lower_append, 0},
    {"ArraySplit", NUMPY, "x indices_or_sections axis", lower_split, UNEVEN},
    {"Hsplit", NUMPY, "x indices_or_sections", lower_split, COLUMNS},
    {"Dsplit", NUMPY, "x indices_or_sections", lower_split, LAYERS},
    {"Slice", "ops.core", "inputs start_indices shape", lower_slice, 0},
    {"SliceUpdate", "ops.core", "inputs start_indices updates", lower_slice_update, 0},
    {"Rot90", NUMPY, "array k axes", lower_rot90, 0},
    {"Fliplr", NUMPY, "x", lower_fliplr, 0},
    {.name = NULL},
};
