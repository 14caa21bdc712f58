/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of keras.ops that move elements: shapes, slices, joins, copies.  Room: nn. */
#include <string.h>

#include "base/memory.h"
#include "nn/config/object.h"
#include "nn/layers/layer.h"
#include "nn/layers/operations/operations.h"

static leati_desc desc_of(const leati_operands *o, leati_value x) {
    return *leati_graph_desc(o->g, x);
}

static leati_value reshaped(const leati_operands *o, leati_value x, const leati_desc *desc) {
    return leati_reshape(o->g, x, desc->rank, desc->shape);
}

/* ---- Shapes ---- */

/* Reshapes x; one dimension of the new shape may be -1. */
static void lower_reshape(leati_operands *o) {
    leati_value x = leati_operand(o, "x");
    const leati_desc desc = desc_of(o, x);
    leati_desc out = {0};
    int64_t known = 1;
    int unknown = -1, count = leati_operand_ints(o, "newshape", out.shape);
    for (int i = 0; i < count; ++i) {
        if (out.shape[i] == -1)
            unknown = i;
        else
            known = leati_mul_saturated(known, out.shape[i]);
    }
    out.rank = count;
    int64_t total = leati_desc_count(&desc);
    if (unknown >= 0) out.shape[unknown] = known > 0 ? total / known : 0;
    o->outputs[0] = count < 0 ? leati_operand_fail(o, LEAT_EINVAL, "newshape: expected a list of integers")
                              : reshaped(o, x, &out);
}

static void lower_ravel(leati_operands *o) {
    leati_value x = leati_operand(o, "x");
    const leati_desc desc = desc_of(o, x);
    int64_t count = leati_desc_count(&desc);
    o->outputs[0] = leati_reshape(o->g, x, 1, &count);
}

static void lower_transpose(leati_operands *o) {
    leati_value x = leati_operand(o, "x");
    const leati_desc desc = desc_of(o, x);
    int64_t axes[LEAT_MAX_RANK];
    int32_t perm[LEAT_MAX_RANK];
    int count = leati_operand_ints(o, "axes", axes);
    if (count != -1 && count != desc.rank) {
        o->outputs[0] = leati_operand_fail(o, LEAT_ESHAPE, "axes: expected %d axes", (int)desc.rank);
        return;
    }
    for (int i = 0; i < desc.rank; ++i)
        perm[i] = count == -1 ? desc.rank - 1 - i : leati_axis_from(axes[i], desc.rank);
    o->outputs[0] = leati_transpose(o->g, x, perm);
}

leati_value leati_operation_swap_last(leati_graph *g, leati_value x) {
    int32_t perm[LEAT_MAX_RANK];
    const int rank = leati_graph_desc(g, x)->rank;
    for (int i = 0; i < rank; ++i) perm[i] = i == rank - 1 ? rank - 2 : i == rank - 2 ? rank - 1 : i;
    return leati_transpose(g, x, perm);
}

static void lower_swapaxes(leati_operands *o) {
    leati_value x = leati_operand(o, "x");
    int rank = desc_of(o, x).rank;
    int a = leati_operand_axis(o, "axis1", rank, 0), b = leati_operand_axis(o, "axis2", rank, 0);
    int32_t perm[LEAT_MAX_RANK];
    for (int i = 0; i < rank; ++i) perm[i] = i == a ? b : i == b ? a : i;
    o->outputs[0] = a < 0 || b < 0 ? LEATI_INVALID : leati_transpose(o->g, x, perm);
}

static void lower_moveaxis(leati_operands *o) {
    leati_value x = leati_operand(o, "x");
    int rank = desc_of(o, x).rank;
    int64_t from[LEAT_MAX_RANK], to[LEAT_MAX_RANK];
    int count = leati_operand_ints(o, "source", from);
    bool fits = count > 0 && count == leati_operand_ints(o, "destination", to);
    int32_t perm[LEAT_MAX_RANK];
    uint32_t moved = 0;
    for (int i = 0; i < rank; ++i) perm[i] = -1;
    for (int i = 0; fits && i < count; ++i) {
        int a = leati_axis_from(from[i], rank), b = leati_axis_from(to[i], rank);
        fits = a >= 0 && b >= 0 && perm[b] < 0 && !(moved >> a & 1u);
        if (!fits) break;
        perm[b] = a;
        moved |= UINT32_C(1) << a;
    }
    for (int i = 0, next = 0; fits && i < rank; ++i) {
        if (perm[i] >= 0) continue;
        while (moved >> next & 1u) ++next;
        perm[i] = next++;
    }
    o->outputs[0] = fits ? leati_transpose(o->g, x, perm)
                         : leati_operand_fail(o, LEAT_EINVAL, "source, destination: expected axes of x");
}

static void lower_expand_dims(leati_operands *o) {
    leati_value x = leati_operand(o, "x");
    const leati_desc desc = desc_of(o, x);
    int64_t axes[LEAT_MAX_RANK];
    int count = leati_operand_ints(o, "axis", axes);
    if (count < 1 || desc.rank + count > LEAT_MAX_RANK) {
        o->outputs[0] = leati_operand_fail(o, LEAT_ESHAPE, "expected at most %d axes in all", LEAT_MAX_RANK);
        return;
    }
    leati_desc out = {.dtype = desc.dtype, .rank = desc.rank + count};
    for (int i = 0; i < count; ++i) {
        int axis = leati_axis_from(axes[i], out.rank);
        if (axis < 0) {
            o->outputs[0] =
                leati_operand_fail(o, LEAT_ESHAPE, "axis: there is no axis %lld", (long long)axes[i]);
            return;
        }
        out.shape[axis] = -1;
    }
    for (int i = 0, next = 0; i < out.rank; ++i)
        out.shape[i] = out.shape[i] == -1 || next >= desc.rank ? 1 : desc.shape[next++];
    o->outputs[0] = reshaped(o, x, &out);
}

static void lower_squeeze(leati_operands *o) {
    leati_value x = leati_operand(o, "x");
    const leati_desc desc = desc_of(o, x);
    bool all = !leati_operand_json(o, "axis");
    uint32_t axes = leati_operand_axes(o, "axis", desc.rank);
    leati_desc out = {.dtype = desc.dtype};
    for (int i = 0; i < desc.rank; ++i) {
        bool leaves = axes >> i & 1u && (!all || (i > 0 && desc.shape[i] == 1));
        if (!leaves) out.shape[out.rank++] = desc.shape[i];
        if (leaves && desc.shape[i] != 1)
            leati_operand_fail(o, LEAT_ESHAPE, "axis %d has length %lld, expected 1", i,
                               (long long)desc.shape[i]);
    }
    o->outputs[0] = reshaped(o, x, &out);
}

static void lower_broadcast_to(leati_operands *o) {
    leati_value x = leati_operand(o, "x");
    const leati_desc desc = desc_of(o, x);
    int64_t dims[LEAT_MAX_RANK];
    int count = leati_operand_ints(o, "shape", dims);
    for (int i = 0; i < count; ++i) {
        int from = desc.rank - count + i;
        if (dims[i] == -1 && from >= 0) dims[i] = desc.shape[from];
        if (dims[i] < 0) count = -1;
    }
    o->outputs[0] = count < 0 ? leati_operand_fail(o, LEAT_EINVAL, "shape: expected a list of integers")
                              : leati_broadcast(o->g, x, count, dims);
}

/* ---- Slices ---- */

leati_value leati_operation_take_axis(leati_graph *g, leati_value x, int axis, int64_t start, int64_t step,
                                      int64_t count) {
    leati_desc desc = *leati_graph_desc(g, x);
    if (step < 0) {
        x = leati_reverse(g, x, axis);
        start = desc.shape[axis] - 1 - start;
        step = -step;
    }
    if (step == 1 || count <= 1) return leati_slice_axis(g, x, axis, count > 0 ? start : 0, count);
    /* Takes the first of each `step` elements: pads the axis to a multiple of step, and splits it. */
    x = leati_slice_axis(g, x, axis, start, desc.shape[axis] - start);
    int64_t before[LEAT_MAX_RANK] = {0}, after[LEAT_MAX_RANK] = {0}, dims[LEAT_MAX_RANK + 1];
    int64_t rest = desc.shape[axis] - start;
    if (rest > count * step) x = leati_slice_axis(g, x, axis, 0, count * step);
    after[axis] = rest < count * step ? count * step - rest : 0;
    if (after[axis] > 0) x = leati_pad(g, x, before, after, 0);
    if (desc.rank >= LEAT_MAX_RANK)
        return leati_graph_fail(g, LEAT_ENOTSUP, "a slice with a step needs a tensor of at most %d axes",
                                LEAT_MAX_RANK - 1);
    for (int i = 0; i <= desc.rank; ++i)
        dims[i] = i < axis ? desc.shape[i] : i == axis ? count : i == axis + 1 ? step : desc.shape[i - 1];
    x = leati_slice_axis(g, leati_reshape(g, x, desc.rank + 1, dims), axis + 1, 0, 1);
    desc.shape[axis] = count;
    return leati_reshape(g, x, desc.rank, desc.shape);
}

static int64_t clamped(int64_t value, int64_t low, int64_t high) {
    return value < low ? low : value > high ? high : value;
}

/* Computes the start and the count of Python's slice(start, stop, step) of an axis. */
static bool read_slice(const json_t *config, int64_t length, int64_t *start, int64_t *step, int64_t *count) {
    const json_t *a = json_object_get(config, "start"), *b = json_object_get(config, "stop");
    const json_t *c = json_object_get(config, "step");
    *step = json_is_integer(c) ? (int64_t)json_integer_value(c) : 1;
    if (*step == 0 || *step > INT32_MAX || *step < -INT32_MAX) return false;
    int64_t low = *step < 0 ? -1 : 0, high = *step < 0 ? length - 1 : length;
    int64_t stop = *step < 0 ? low : high;
    *start = *step < 0 ? high : low;
    for (int i = 0; i < 2; ++i) {
        const json_t *edge = i == 0 ? a : b;
        if (edge && !json_is_null(edge) && !json_is_integer(edge)) return false;
        if (!json_is_integer(edge)) continue;
        int64_t value = (int64_t)json_integer_value(edge);
        value = clamped(value < 0 ? value + length : value, low, high);
        *(i == 0 ? start : &stop) = value;
    }
    int64_t span = *step < 0 ? *start - stop : stop - *start, size = *step < 0 ? -*step : *step;
    *count = span > 0 ? (span + size - 1) / size : 0;
    return true;
}

typedef struct indexing {
    leati_operands *o;
    leati_value x;
    int axis; /* the next axis of x */
    leati_desc out;
} indexing;

static bool is_ellipsis(const json_t *key) {
    return strcmp(leati_item_class(key), "__ellipsis__") == 0;
}

/* Applies one part of a key to the next axis of x. */
static bool index_by(indexing *at, const json_t *key) {
    const leati_desc desc = *leati_graph_desc(at->o->g, at->x);
    int64_t start, step = 1, count = 1;
    if (json_is_null(key)) {
        if (at->out.rank < LEAT_MAX_RANK) at->out.shape[at->out.rank++] = 1;
        return true;
    }
    if (at->axis >= desc.rank || at->out.rank >= LEAT_MAX_RANK) return false;
    if (json_is_integer(key)) {
        start = leati_mul_saturated((int64_t)json_integer_value(key), 1);
        start = start < 0 ? start + desc.shape[at->axis] : start;
        if (start < 0 || start >= desc.shape[at->axis]) return false;
    } else if (strcmp(leati_item_class(key), "__slice__") != 0 ||
               !read_slice(json_object_get(key, "config"), desc.shape[at->axis], &start, &step, &count)) {
        return false;
    }
    at->x = leati_operation_take_axis(at->o->g, at->x, at->axis++, start, step, count);
    if (!json_is_integer(key)) at->out.shape[at->out.rank++] = count;
    return true;
}

static bool keep_axes(indexing *at, int count) {
    for (int i = 0; i < count && at->out.rank < LEAT_MAX_RANK; ++i)
        at->out.shape[at->out.rank++] = leati_graph_desc(at->o->g, at->x)->shape[at->axis++];
    return true;
}

static void lower_getitem(leati_operands *o) {
    indexing at = {.o = o, .x = leati_operand(o, "x"), .out = {.dtype = LEAT_F32}};
    const json_t *key = leati_operand_json(o, "key");
    size_t parts = json_is_array(key) ? json_array_size(key) : 1;
    int rank = leati_graph_desc(o->g, at.x)->rank, used = 0;
    bool fits = true;
    for (size_t i = 0; i < parts; ++i) {
        const json_t *part = json_is_array(key) ? json_array_get(key, i) : key;
        if (part && !json_is_null(part) && !is_ellipsis(part)) ++used;
    }
    for (size_t i = 0; fits && i < parts; ++i) {
        const json_t *part = json_is_array(key) ? json_array_get(key, i) : key ? key : json_null();
        fits = is_ellipsis(part) ? keep_axes(&at, rank - used) : index_by(&at, part);
    }
    if (fits) keep_axes(&at, rank - at.axis);
    o->outputs[0] = fits && at.axis == rank
                        ? reshaped(o, at.x, &at.out)
                        : leati_operand_fail(o, LEAT_ENOTSUP,
                                             "key: expected integers and slices within a tensor of %d axes, "
                                             "None and '...'; for other keys use keras.ops.take",
                                             rank);
}

/* ---- Joining and splitting ---- */

static void lower_concatenate(leati_operands *o) {
    leati_value parts[LEATI_MAX_CONCAT];
    int count = leati_operand_list(o, "xs", parts, LEATI_MAX_CONCAT);
    int axis = count > 0 ? leati_operand_axis(o, "axis", desc_of(o, parts[0]).rank, 0) : -1;
    o->outputs[0] = axis < 0 ? LEATI_INVALID : leati_concat(o->g, count, parts, axis);
}

static void lower_stack(leati_operands *o) {
    leati_value parts[LEATI_MAX_CONCAT];
    int count = leati_operand_list(o, "x", parts, LEATI_MAX_CONCAT);
    leati_desc desc = count > 0 ? desc_of(o, parts[0]) : (leati_desc){0};
    int axis = count > 0 && desc.rank < LEAT_MAX_RANK ? leati_operand_axis(o, "axis", desc.rank + 1, 0) : -1;
    if (axis < 0) {
        o->outputs[0] = LEATI_INVALID;
        return;
    }
    for (int i = desc.rank++; i > axis; --i) desc.shape[i] = desc.shape[i - 1];
    desc.shape[axis] = 1;
    for (int i = 0; i < count; ++i) parts[i] = reshaped(o, parts[i], &desc);
    o->outputs[0] = leati_concat(o->g, count, parts, axis);
}

static void too_many(leati_operands *o, int64_t count) {
    leati_operand_fail(o, LEAT_ENOTSUP, "expected 1 to %d outputs, received %lld", LEATI_LAYER_MAX_OUTPUTS,
                       (long long)count);
}

/* Splits x into equal parts, or before the elements of a list. */
static void lower_split(leati_operands *o) {
    leati_value x = leati_operand(o, "x");
    const leati_desc desc = desc_of(o, x);
    int64_t list[LEAT_MAX_RANK], start = 0;
    int axis = leati_operand_axis(o, "axis", desc.rank, 0);
    bool equal = json_is_integer(leati_operand_json(o, "indices_or_sections"));
    int64_t count = leati_operand_ints(o, "indices_or_sections", list);
    count = equal ? list[0] : count + 1;
    if (axis < 0 || count < 1 || count > LEATI_LAYER_MAX_OUTPUTS) {
        too_many(o, count);
        return;
    }
    if (equal && desc.shape[axis] % count != 0)
        leati_operand_fail(o, LEAT_ESHAPE, "axis %d of length %lld has no %lld equal parts", axis,
                           (long long)desc.shape[axis], (long long)count);
    o->output_count = (int)count;
    for (int64_t i = 0; i < count; ++i) {
        int64_t end = equal           ? (i + 1) * (desc.shape[axis] / count)
                      : i + 1 < count ? clamped(list[i], start, desc.shape[axis])
                                      : desc.shape[axis];
        o->outputs[i] = leati_slice_axis(o->g, x, axis, start, end - start);
        start = end;
    }
}

static void lower_unstack(leati_operands *o) {
    leati_value x = leati_operand(o, "x");
    leati_desc desc = desc_of(o, x);
    int axis = leati_operand_axis(o, "axis", desc.rank, 0);
    int64_t count = axis < 0 ? 0 : desc.shape[axis];
    if (count < 1 || count > LEATI_LAYER_MAX_OUTPUTS) {
        too_many(o, count);
        return;
    }
    --desc.rank;
    for (int i = axis; i < desc.rank; ++i) desc.shape[i] = desc.shape[i + 1];
    o->output_count = (int)count;
    for (int64_t i = 0; i < count; ++i)
        o->outputs[i] = reshaped(o, leati_slice_axis(o->g, x, axis, i, 1), &desc);
}

/* ---- Copies of elements ---- */

static void lower_flip(leati_operands *o) {
    leati_value x = leati_operand(o, "x");
    int rank = desc_of(o, x).rank;
    uint32_t axes = leati_operand_axes(o, "axis", rank);
    for (int i = 0; i < rank; ++i)
        if (axes >> i & 1u) x = leati_reverse(o->g, x, i);
    o->outputs[0] = x;
}

/* Moves elements along axes; those that leave at one end come back at the other. */
static void lower_roll(leati_operands *o) {
    leati_value x = leati_operand(o, "x");
    const leati_desc desc = desc_of(o, x);
    int64_t shifts[LEAT_MAX_RANK], axes[LEAT_MAX_RANK];
    int count = leati_operand_ints(o, "shift", shifts);
    if (count < 1 || leati_operand_ints(o, "axis", axes) != count)
        leati_operand_fail(o, LEAT_ENOTSUP, "expected one axis for each shift");
    for (int i = 0; i < count; ++i) {
        int axis = leati_axis_from(axes[i], desc.rank);
        if (axis < 0 || desc.shape[axis] == 0) continue;
        int64_t length = desc.shape[axis], end = (shifts[i] % length + length) % length;
        if (end == 0) continue;
        leati_value parts[] = {leati_slice_axis(o->g, x, axis, length - end, end),
                               leati_slice_axis(o->g, x, axis, 0, length - end)};
        x = leati_concat(o->g, 2, parts, axis);
    }
    o->outputs[0] = x;
}

/* Repeats each element along an axis as often as the elements of a constant list say. */
static void lower_repeat_each(leati_operands *o, leati_value x) {
    const leati_desc desc = desc_of(o, x);
    const json_t *list = leati_operand_plain(o, "repeats");
    int axis = leati_operand_axis(o, "axis", desc.rank, LEATI_AXIS_NEEDED);
    leati_value parts[LEATI_MAX_CONCAT];
    int count = 0;
    bool fits = axis >= 0 && json_array_size(list) > 0 && (int64_t)json_array_size(list) == desc.shape[axis];
    for (size_t i = 0; fits && i < json_array_size(list); ++i) {
        const json_t *times = json_array_get(list, i);
        fits = json_is_integer(times) && json_integer_value(times) >= 0;
        for (json_int_t k = 0; fits && k < json_integer_value(times); ++k) {
            fits = count < LEATI_MAX_CONCAT;
            if (fits) parts[count++] = leati_slice_axis(o->g, x, axis, (int64_t)i, 1);
        }
    }
    o->outputs[0] = !fits || count == 0
                        ? leati_operand_fail(o, LEAT_ENOTSUP,
                                             "repeats: expected a number, or a constant for each "
                                             "element of the axis that add up to 1 to %d",
                                             LEATI_MAX_CONCAT)
                    : count == 1 ? parts[0]
                                 : leati_concat(o->g, count, parts, axis);
}

/* Repeats each element along an axis. */
static void lower_repeat(leati_operands *o) {
    leati_value x = leati_operand(o, "x");
    leati_desc desc = desc_of(o, x), wide = desc;
    const json_t *list = leati_operand_json(o, "repeats");
    if (list && !json_is_integer(list)) {
        lower_repeat_each(o, x);
        return;
    }
    int64_t times = leati_operand_int(o, "repeats", 1);
    int axis = leati_operand_axis(o, "axis", desc.rank, LEATI_AXIS_NEEDED);
    if (axis < 0 || times < 0 || desc.rank >= LEAT_MAX_RANK) {
        o->outputs[0] = leati_operand_fail(o, LEAT_ENOTSUP, "expected an axis and one number of repeats");
        return;
    }
    for (int i = wide.rank++; i > axis + 1; --i) wide.shape[i] = wide.shape[i - 1];
    wide.shape[axis + 1] = 1;
    x = reshaped(o, x, &wide);
    wide.shape[axis + 1] = times;
    x = leati_broadcast(o->g, x, wide.rank, wide.shape);
    desc.shape[axis] = leati_mul_saturated(desc.shape[axis], times);
    o->outputs[0] = reshaped(o, x, &desc);
}

static void lower_tile(leati_operands *o) {
    leati_value x = leati_operand(o, "x");
    const leati_desc desc = desc_of(o, x);
    int64_t times[LEAT_MAX_RANK];
    int count = leati_operand_ints(o, "repeats", times);
    leati_desc out = {.rank = count > desc.rank ? count : desc.rank};
    for (int i = 0; i < out.rank; ++i)
        out.shape[i] = i < out.rank - desc.rank ? 1 : desc.shape[i - (out.rank - desc.rank)];
    if (count >= 0) x = reshaped(o, x, &out);
    for (int i = 0; i < count; ++i) {
        int axis = out.rank - count + i;
        leati_value copies[32];
        if (times[i] == 1) continue;
        if (times[i] < 1 || times[i] > 32) leati_operand_fail(o, LEAT_ENOTSUP, "repeats: expected 1 to 32");
        for (int64_t k = 0; k < times[i] && k < 32; ++k) copies[k] = x;
        if (times[i] >= 1 && times[i] <= 32) x = leati_concat(o->g, (int)times[i], copies, axis);
    }
    o->outputs[0] = x;
}

/* Reads how many elements to add to each axis: one number, one pair, or a pair for each axis. */
static bool read_widths(const json_t *list, int rank, int64_t *before, int64_t *after) {
    bool pairs = json_is_array(json_array_get(list, 0));
    for (int i = 0; i < rank; ++i) {
        const json_t *pair = !pairs                       ? list
                             : json_array_size(list) == 1 ? json_array_get(list, 0)
                                                          : json_array_get(list, (size_t)i);
        const json_t *a = json_is_array(pair) ? json_array_get(pair, 0) : pair;
        const json_t *b = json_is_array(pair) ? json_array_get(pair, 1) : pair;
        if (!json_is_integer(a) || !json_is_integer(b)) return false;
        before[i] = (int64_t)json_integer_value(a);
        after[i] = (int64_t)json_integer_value(b);
    }
    return true;
}

/* Adds mirrored elements to an axis; `skip` is 1 if the first and the last element are the mirrors themselves. */
static leati_value mirrored(leati_operands *o, leati_value x, int axis, int64_t skip, int64_t before,
                            int64_t after) {
    int64_t length = desc_of(o, x).shape[axis], most = length - skip;
    leati_value parts[3];
    int count = 0;
    if (before < 0 || after < 0 || before > most || after > most)
        return leati_operand_fail(o, LEAT_ESHAPE,
                                  "pad_width: axis %d of length %lld can be mirrored by at most %lld", axis,
                                  (long long)length, (long long)most);
    if (before > 0) parts[count++] = leati_reverse(o->g, leati_slice_axis(o->g, x, axis, skip, before), axis);
    parts[count++] = x;
    if (after > 0)
        parts[count++] =
            leati_reverse(o->g, leati_slice_axis(o->g, x, axis, length - skip - after, after), axis);
    return count == 1 ? x : leati_concat(o->g, count, parts, axis);
}

static void lower_pad(leati_operands *o) {
    leati_value x = leati_operand(o, "x");
    int rank = desc_of(o, x).rank;
    int64_t before[LEAT_MAX_RANK] = {0}, after[LEAT_MAX_RANK] = {0};
    const double value = leati_operand_number_or(o, "constant_values", 0);
    const char *mode = leati_operand_text(o, "mode", "constant");
    bool constant = strcmp(mode, "constant") == 0, reflect = strcmp(mode, "reflect") == 0;
    if (!read_widths(leati_operand_json(o, "pad_width"), rank, before, after) ||
        (!constant && !reflect && strcmp(mode, "symmetric") != 0)) {
        o->outputs[0] =
            leati_operand_fail(o, LEAT_ENOTSUP,
                               "expected mode \"constant\", \"reflect\" or \"symmetric\", and two numbers "
                               "for each axis");
        return;
    }
    for (int i = 0; i < rank && !constant; ++i) x = mirrored(o, x, i, reflect ? 1 : 0, before[i], after[i]);
    o->outputs[0] = constant ? leati_pad(o->g, x, before, after, (float)value) : x;
}

/* Takes elements of an axis by their indices, which may be negative if they are constant. */
static void lower_take(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value x = leati_operand(o, "x"), indices = leati_operand(o, "indices");
    leati_desc desc = desc_of(o, x), at = desc_of(o, indices);
    int axis = leati_operand_axis(o, "axis", desc.rank, LEATI_AXIS_NEEDED);
    if (axis < 0 || desc.rank - 1 + at.rank > LEAT_MAX_RANK) {
        o->outputs[0] =
            leati_operand_fail(o, LEAT_ENOTSUP, "expected an axis, and a result of at most %d axes",
                               LEAT_MAX_RANK);
        return;
    }
    leati_value below = leati_binary_of(g, LEATI_GREATER, leati_scalar(g, 0), indices);
    indices = leati_add(g, indices, leati_linear(g, below, (float)desc.shape[axis], 0));
    int32_t perm[LEAT_MAX_RANK] = {0}, back[LEAT_MAX_RANK];
    leati_desc out = {.rank = at.rank};
    for (int i = 0; i < desc.rank; ++i) perm[i] = i == 0 ? axis : i <= axis ? i - 1 : i;
    memcpy(out.shape, at.shape, sizeof out.shape);
    for (int i = 1; i < desc.rank; ++i) out.shape[out.rank++] = desc.shape[perm[i]];
    int64_t rows = desc.shape[axis], columns = rows > 0 ? leati_desc_count(&desc) / rows : 0;
    leati_value table = leati_reshape(g, leati_transpose(g, x, perm), 2, (int64_t[]){rows, columns});
    leati_value y = reshaped(o, leati_gather(g, table, indices), &out);
    for (int i = 0; i < out.rank; ++i) back[i] = i < axis ? at.rank + i : i < axis + at.rank ? i - axis : i;
    o->outputs[0] = leati_transpose(g, y, back);
}

#define NUMPY "ops.numpy"

const leati_operation leati_moving_operations[] = {
    {"Reshape", NUMPY, "x newshape", lower_reshape, 0},
    {"Ravel", NUMPY, "x", lower_ravel, 0},
    {"Transpose", NUMPY, "x axes", lower_transpose, 0},
    {"Swapaxes", NUMPY, "x axis1 axis2", lower_swapaxes, 0},
    {"Moveaxis", NUMPY, "x source destination", lower_moveaxis, 0},
    {"ExpandDims", NUMPY, "x axis", lower_expand_dims, 0},
    {"Squeeze", NUMPY, "x axis", lower_squeeze, 0},
    {"BroadcastTo", NUMPY, "x shape", lower_broadcast_to, 0},
    {"GetItem", NUMPY, "x key", lower_getitem, 0},
    {"Concatenate", NUMPY, "xs axis", lower_concatenate, 0},
    {"Stack", NUMPY, "x axis", lower_stack, 0},
    {"Split", NUMPY, "x indices_or_sections axis", lower_split, 0},
    {"Unstack", "ops.core", "x num axis", lower_unstack, 0},
    {"Flip", NUMPY, "x axis", lower_flip, 0},
    {"Roll", NUMPY, "x shift axis", lower_roll, 0},
    {"Repeat", NUMPY, "x repeats axis", lower_repeat, 0},
    {"Tile", NUMPY, "x repeats", lower_tile, 0},
    {"Pad", NUMPY, "x constant_values pad_width mode", lower_pad, 0},
    {"Take", NUMPY, "x indices axis", lower_take, 0},
    {.name = NULL},
};
