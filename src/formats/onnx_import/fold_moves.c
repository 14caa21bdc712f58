/* SPDX-License-Identifier: Apache-2.0 */
/* Computes constants at import: operators that move elements.  Room: formats. */
#include <string.h>

#include "base/memory.h"
#include "formats/onnx_import/fold.h"

static const leati_import_tensor *input(leati_import *x, int index) {
    const leati_import_value *value = leati_import_in(x, index);
    return value ? value->constant : NULL;
}

/* Returns a copy of a constant's description with another shape. */
static leati_import_tensor *reshaped(leati_import *x, const leati_import_tensor *from, int rank,
                                     const int64_t *dims, uint32_t spread) {
    leati_import_tensor *out = leati_import_memory(x, 1, sizeof *out);
    if (!out) return NULL;
    *out = *from;
    out->rank = rank;
    for (int i = 0; i < rank; ++i) out->dims[i] = dims[i];
    out->spread = spread;
    if (leati_shape_count(rank, dims) == from->count) return out;
    leati_import_refuse(x, "a constant of %lld elements does not have the new shape", (long long)from->count);
    return NULL;
}

static const leati_import_tensor *fold_identity(leati_import *x) {
    return input(x, 0);
}

static const leati_import_tensor *fold_cast(leati_import *x) {
    const leati_import_tensor *from = input(x, 0);
    const int to = (int)leati_import_int(x, "to", LEATI_IMPORT_FLOAT);
    if (leati_import_is_real(to) == leati_import_is_real(from->type) && to != LEATI_IMPORT_BOOL) return from;
    leati_import_tensor *out = leati_import_new_constant(x, to, from->rank, from->dims);
    if (!out) return NULL;
    if (from->sizes) leati_fold_sizes(x, out);
    for (int64_t i = 0; i < from->count; ++i) {
        leati_fold_copy(out, i, from, i);
        if (to == LEATI_IMPORT_BOOL) leati_import_put_int(out, i, leati_import_number(from, i) != 0);
    }
    out->spread = from->spread;
    return out;
}

/* Returns true if all elements of a constant are the same. */
static bool is_uniform(const leati_import_tensor *tensor) {
    for (int64_t i = 1; i < tensor->count; ++i)
        if (leati_import_number(tensor, i) != leati_import_number(tensor, 0)) return false;
    return tensor->count > 0;
}

/* Makes a constant whose elements are all the first one of `from`; a size of the batch becomes 1. */
static const leati_import_tensor *filled(leati_import *x, const leati_import_tensor *from, int rank,
                                         const leati_import_size *sizes) {
    int64_t dims[LEAT_MAX_RANK], strides[LEAT_MAX_RANK] = {0};
    uint32_t spread = 0;
    for (int i = 0; i < rank; ++i) {
        if (sizes[i].count < 0) return NULL;
        if (sizes[i].batch && sizes[i].count != 1) return NULL;
        dims[i] = sizes[i].count;
        spread |= sizes[i].batch ? UINT32_C(1) << i : 0;
    }
    leati_import_tensor *out = leati_fold_strided(x, from, rank, dims, strides, 0);
    if (out) out->spread = spread;
    return out;
}

static const leati_import_tensor *fold_reshape(leati_import *x) {
    const leati_import_tensor *from = input(x, 0), *to = input(x, 1);
    leati_import_size sizes[LEAT_MAX_RANK];
    int64_t dims[LEAT_MAX_RANK], known = 1;
    int unknown = -1;
    const int rank = leati_import_sizes(x, to, sizes);
    for (int i = 0; i < rank; ++i) {
        if (sizes[i].batch && is_uniform(from)) return filled(x, from, rank, sizes);
        if (sizes[i].batch) return NULL;
        dims[i] = sizes[i].count == 0 && i < from->rank ? from->dims[i] : sizes[i].count;
        if (dims[i] == -1)
            unknown = i;
        else
            known = leati_mul_saturated(known, dims[i]);
    }
    if (rank < 0 || from->spread) return NULL;
    if (unknown >= 0) dims[unknown] = known > 0 ? from->count / known : 0;
    return reshaped(x, from, rank, dims, 0);
}

static const leati_import_tensor *fold_flatten(leati_import *x) {
    const leati_import_tensor *from = input(x, 0);
    int64_t axis = leati_import_int(x, "axis", 1), dims[2] = {1, 1};
    if (axis < 0) axis += from->rank;
    for (int i = 0; i < from->rank; ++i)
        dims[i >= axis] = leati_mul_saturated(dims[i >= axis], from->dims[i]);
    return from->spread ? NULL : reshaped(x, from, 2, dims, 0);
}

static const leati_import_tensor *fold_squeeze(leati_import *x) {
    const leati_import_tensor *from = input(x, 0);
    int64_t axes[LEAT_MAX_RANK], dims[LEAT_MAX_RANK];
    const int count = leati_import_ints(x, "axes", 1, LEAT_MAX_RANK, axes);
    uint32_t leaves = 0, spread = 0;
    int rank = 0;
    for (int i = 0; i < count; ++i) leaves |= UINT32_C(1) << leati_import_axis(x, axes[i], from->rank);
    for (int i = 0; i < from->rank; ++i) {
        const bool gone = count < 0 ? from->dims[i] == 1 && !(from->spread >> i & 1u) : leaves >> i & 1u;
        if (gone) continue;
        spread |= (from->spread >> i & 1u) << rank;
        dims[rank++] = from->dims[i];
    }
    return leati_import_ok(x) ? reshaped(x, from, rank, dims, spread) : NULL;
}

static const leati_import_tensor *fold_unsqueeze(leati_import *x) {
    const leati_import_tensor *from = input(x, 0);
    int64_t axes[LEAT_MAX_RANK], dims[LEAT_MAX_RANK];
    const int count = leati_import_ints(x, "axes", 1, LEAT_MAX_RANK, axes), rank = from->rank + count;
    uint32_t added = 0, spread = 0;
    if (count < 0 || rank > LEAT_MAX_RANK) return NULL;
    for (int i = 0; i < count; ++i) added |= UINT32_C(1) << leati_import_axis(x, axes[i], rank);
    for (int i = 0, next = 0; i < rank; ++i) {
        dims[i] = 1;
        if (added >> i & 1u || next >= from->rank) continue;
        spread |= (from->spread >> next & 1u) << i;
        dims[i] = from->dims[next++];
    }
    return leati_import_ok(x) ? reshaped(x, from, rank, dims, spread) : NULL;
}

static const leati_import_tensor *fold_transpose(leati_import *x) {
    const leati_import_tensor *from = input(x, 0);
    int64_t perm[LEAT_MAX_RANK], dims[LEAT_MAX_RANK], own[LEAT_MAX_RANK], strides[LEAT_MAX_RANK];
    const int count = leati_import_ints(x, "perm", -1, LEAT_MAX_RANK, perm);
    uint32_t spread = 0;
    if (count >= 0 && count != from->rank) return NULL;
    leati_fold_strides(from, own);
    for (int i = 0; i < from->rank; ++i) {
        const int axis = count < 0 ? from->rank - 1 - i : leati_import_axis(x, perm[i], from->rank);
        dims[i] = from->dims[axis];
        strides[i] = own[axis];
        spread |= (from->spread >> axis & 1u) << i;
    }
    leati_import_tensor *out = leati_fold_strided(x, from, from->rank, dims, strides, 0);
    if (out) out->spread = spread, out->name = from->name;
    return out;
}

static const leati_import_tensor *fold_concat(leati_import *x) {
    const leati_import_tensor *first = input(x, 0);
    const int axis = leati_import_axis(x, leati_import_int(x, "axis", 0), first->rank);
    int64_t dims[LEAT_MAX_RANK], before = 1, after = 1, start = 0;
    bool sizes = false;
    memcpy(dims, first->dims, sizeof dims);
    for (int i = 0; i < first->rank; ++i) {
        if (i < axis) before *= dims[i];
        if (i > axis) after *= dims[i];
    }
    dims[axis] = 0;
    for (int i = 0; i < x->node->input_count && leati_import_ok(x); ++i) {
        const leati_import_tensor *part = input(x, i);
        if (!part || part->rank != first->rank || part->spread) return NULL;
        if (part->count != leati_mul_saturated(leati_mul_saturated(before, part->dims[axis]), after))
            return NULL;
        dims[axis] += part->dims[axis];
        sizes = sizes || part->sizes;
    }
    leati_import_tensor *out = leati_import_new_constant(x, first->type, first->rank, dims);
    if (out && sizes) leati_fold_sizes(x, out);
    for (int i = 0; out && i < x->node->input_count; ++i) {
        const leati_import_tensor *part = input(x, i);
        const int64_t row = part->dims[axis] * after;
        for (int64_t b = 0; b < before; ++b)
            for (int64_t k = 0; k < row; ++k)
                leati_fold_copy(out, b * dims[axis] * after + start + k, part, b * row + k);
        start += row;
    }
    return out;
}

static const leati_import_tensor *fold_gather(leati_import *x) {
    const leati_import_tensor *from = input(x, 0), *indices = input(x, 1);
    if (!indices || indices->sizes || from->rank < 1) return NULL;
    const int axis = leati_import_axis(x, leati_import_int(x, "axis", 0), from->rank);
    int64_t dims[LEAT_MAX_RANK], before = 1, after = 1;
    const int rank = from->rank - 1 + indices->rank;
    if (rank > LEAT_MAX_RANK || from->spread >> axis & 1u || (from->spread && indices->rank > 1)) return NULL;
    for (int i = 0; i < rank; ++i)
        dims[i] = i < axis                   ? from->dims[i]
                  : i < axis + indices->rank ? indices->dims[i - axis]
                                             : from->dims[i - indices->rank + 1];
    for (int i = 0; i < from->rank; ++i) {
        if (i < axis) before *= from->dims[i];
        if (i > axis) after *= from->dims[i];
    }
    leati_import_tensor *out = leati_import_new_constant(x, from->type, rank, dims);
    if (!out) return NULL;
    if (from->sizes) leati_fold_sizes(x, out);
    for (int i = 0; i < from->rank; ++i)
        if (from->spread >> i & 1u) out->spread |= UINT32_C(1) << (i > axis ? i + indices->rank - 1 : i);
    for (int64_t b = 0; b < before; ++b)
        for (int64_t i = 0; i < indices->count; ++i) {
            int64_t at = leati_import_integer(indices, i);
            at = at < 0 ? at + from->dims[axis] : at;
            if (at < 0 || at >= from->dims[axis]) {
                leati_import_refuse(x, "an index is outside of a constant's axis of %lld",
                                    (long long)from->dims[axis]);
                return NULL;
            }
            for (int64_t k = 0; k < after; ++k)
                leati_fold_copy(out, (b * indices->count + i) * after + k, from,
                                (b * from->dims[axis] + at) * after + k);
        }
    return out;
}

static int64_t clamped(int64_t value, int64_t low, int64_t high) {
    return value < low ? low : value > high ? high : value;
}

static const leati_import_tensor *fold_slice(leati_import *x) {
    const leati_import_tensor *from = input(x, 0);
    int64_t starts[LEAT_MAX_RANK], ends[LEAT_MAX_RANK], axes[LEAT_MAX_RANK], steps[LEAT_MAX_RANK];
    int64_t dims[LEAT_MAX_RANK], strides[LEAT_MAX_RANK], base = 0;
    const int count = leati_import_ints(x, "starts", 1, LEAT_MAX_RANK, starts);
    const int end_count = leati_import_ints(x, "ends", 2, LEAT_MAX_RANK, ends);
    const int axis_count = leati_import_ints(x, "axes", 3, LEAT_MAX_RANK, axes);
    const int step_count = leati_import_ints(x, "steps", 4, LEAT_MAX_RANK, steps);
    if (!leati_import_ok(x) || count != end_count || count > from->rank) return NULL;
    if ((axis_count >= 0 && axis_count != count) || (step_count >= 0 && step_count != count)) return NULL;
    memcpy(dims, from->dims, sizeof dims);
    leati_fold_strides(from, strides);
    for (int i = 0; i < count; ++i) {
        const int axis = leati_import_axis(x, axis_count < 0 ? i : axes[i], from->rank);
        const int64_t step = step_count < 0 ? 1 : steps[i], length = from->dims[axis];
        const int64_t low = step < 0 ? -1 : 0, high = step < 0 ? length - 1 : length;
        if (step == 0 || step < -INT32_MAX || step > INT32_MAX || !leati_import_ok(x)) return NULL;
        const int64_t begin = clamped(starts[i] < 0 ? starts[i] + length : starts[i], low, high);
        const int64_t end =
            ends[i] < -length ? low : clamped(ends[i] < 0 ? ends[i] + length : ends[i], low, high);
        const int64_t span = step < 0 ? begin - end : end - begin, size = step < 0 ? -step : step;
        dims[axis] = span > 0 ? (span + size - 1) / size : 0;
        base += begin * strides[axis];
        strides[axis] *= step;
    }
    leati_import_tensor *out = leati_fold_strided(x, from, from->rank, dims, strides, base);
    if (out) out->spread = from->spread;
    return out;
}

/* Sets all outputs but the first one, which it returns. */
static const leati_import_tensor *fold_split(leati_import *x) {
    const leati_import_tensor *from = input(x, 0), *first = NULL;
    const int axis = leati_import_axis(x, leati_import_int(x, "axis", 0), from->rank),
              outputs = x->node->output_count;
    int64_t lengths[LEAT_MAX_RANK * 4], dims[LEAT_MAX_RANK], strides[LEAT_MAX_RANK], start = 0;
    const int count = leati_import_ints(x, "split", 1, LEAT_MAX_RANK * 4, lengths);
    if (outputs < 1 || (count >= 0 && count != outputs) || outputs > LEAT_MAX_RANK * 4) return NULL;
    leati_fold_strides(from, strides);
    memcpy(dims, from->dims, sizeof dims);
    const int64_t even = (from->dims[axis] + outputs - 1) / outputs;
    for (int i = 0; i < outputs && leati_import_ok(x); ++i) {
        const int64_t rest = from->dims[axis] - start;
        dims[axis] = count >= 0 ? lengths[i] : rest < even ? rest : even;
        if (dims[axis] < 0 || dims[axis] > rest) return NULL;
        leati_import_tensor *part =
            leati_fold_strided(x, from, from->rank, dims, strides, start * strides[axis]);
        if (!part) return NULL;
        part->spread = from->spread;
        if (i == 0) first = part;
        if (i > 0) leati_import_set_constant(x, i, part);
        start += dims[axis];
    }
    return first;
}

static const leati_import_tensor *fold_expand(leati_import *x) {
    const leati_import_tensor *from = input(x, 0), *shape = input(x, 1);
    leati_import_size sizes[LEAT_MAX_RANK];
    int64_t dims[LEAT_MAX_RANK], strides[LEAT_MAX_RANK] = {0}, own[LEAT_MAX_RANK];
    const int count = leati_import_sizes(x, shape, sizes), rank = count > from->rank ? count : from->rank;
    uint32_t spread = from->spread << (rank - from->rank);
    if (count < 0) return NULL;
    leati_fold_strides(from, own);
    for (int i = 0; i < rank; ++i) {
        const int c = i - (rank - from->rank), s = i - (rank - count);
        const int64_t length = c < 0 ? 1 : from->dims[c];
        const leati_import_size want = s < 0 ? (leati_import_size){1, false, false} : sizes[s];
        if (want.count < 0 || (want.batch && want.count != 1)) return NULL;
        if (want.batch) spread |= UINT32_C(1) << i;
        dims[i] = length == 1 ? want.count : length;
        strides[i] = length == 1 ? 0 : own[c];
    }
    leati_import_tensor *out = leati_fold_strided(x, from, rank, dims, strides, 0);
    if (out) out->spread = spread;
    return out;
}

static const leati_import_tensor *fold_constant_of_shape(leati_import *x) {
    const leati_import_attr *attr = leati_import_attr_of(x->node, "value");
    leati_import_size sizes[LEAT_MAX_RANK];
    const int rank = leati_import_sizes(x, input(x, 0), sizes);
    leati_import_tensor *zero =
        attr && attr->tensor ? attr->tensor : leati_import_new_constant(x, LEATI_IMPORT_FLOAT, 0, NULL);
    return rank < 0 || !zero || zero->count != 1 ? NULL : filled(x, zero, rank, sizes);
}

const leati_fold_operator leati_fold_moves[] = {
    {"Identity", fold_identity, 0},
    {"Dropout", fold_identity, 0},
    {"Cast", fold_cast, 0},
    {"Reshape", fold_reshape, 0},
    {"Flatten", fold_flatten, 0},
    {"Squeeze", fold_squeeze, 0},
    {"Expand", fold_expand, 0},
    {"Unsqueeze", fold_unsqueeze, 0},
    {"Transpose", fold_transpose, 0},
    {"Concat", fold_concat, 0},
    {"Gather", fold_gather, 0},
    {"Slice", fold_slice, 0},
    {"Split", fold_split, 0},
    {"ConstantOfShape", fold_constant_of_shape, 0},
    {.name = NULL},
};
