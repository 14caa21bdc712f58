/* SPDX-License-Identifier: Apache-2.0 */
/* The two orders of axes that a value has in ONNX, and constants whose shape is open.  Room: formats. */
#include <stddef.h>

#include "formats/onnx/exporter.h"

int leati_onnx_first_axis(int rank, int axis) {
    if (rank < 3 || axis == 0) return axis;
    return axis == rank - 1 ? 1 : axis + 1;
}

bool leati_onnx_is_first(const leati_onnx *x, leati_value value) {
    return x->forms[value].first && !x->forms[value].plain;
}

void leati_onnx_set_plain(leati_onnx *x, leati_value value, const char *name) {
    x->forms[value].plain = name;
}

void leati_onnx_set_first(leati_onnx *x, leati_value value, const char *name) {
    leati_onnx_forms *forms = &x->forms[value];
    if (leati_graph_desc(x->graph, value)->rank < 3)
        forms->plain = name;
    else
        forms->first = name;
}

/* ---- Constants whose shape is open ---- */

static float at(const leati_value_info *info, int64_t i) {
    return ((const float *)info->where.constant)[i];
}

static bool is_full(const leati_value_info *info) {
    const int64_t count = leati_desc_count(&info->desc);
    for (int64_t i = 1; i < count; ++i)
        if (at(info, i) != at(info, 0)) return false;
    return count > 0;
}

/* True if the matrix (1, rows, columns) is 1 where low <= column - row <= high, and 0 elsewhere. */
static bool is_band(const leati_value_info *info, int64_t low, int64_t high) {
    const int64_t rows = info->desc.shape[1], columns = info->desc.shape[2];
    for (int64_t i = 0; i < rows * columns; ++i) {
        int64_t apart = i % columns - i / columns;
        if (at(info, i) != (apart >= low && apart <= high ? 1.0f : 0.0f)) return false;
    }
    return true;
}

/* Finds the limits of a band: INT64_MIN and INT64_MAX stand for none. */
static void limits_of(const leati_value_info *info, int64_t *low, int64_t *high) {
    const int64_t rows = info->desc.shape[1], columns = info->desc.shape[2];
    *low = INT64_MIN, *high = INT64_MAX;
    for (int64_t c = columns - 1; c >= 0 && at(info, c) == 0; --c) *high = c - 1;
    for (int64_t r = rows - 1; r >= 0 && at(info, r * columns) == 0; --r) *low = 1 - r;
}

static const char *triangle(leati_onnx *x, const char *name, int64_t k, bool upper) {
    const leati_onnx_attr attrs[] = {LEATI_ATTR_INT("upper", upper), LEATI_ATTR_END};
    const leati_desc scalar = leati_desc_make(LEAT_I64, 0, NULL);
    int64_t *copy = leati_onnx_allocate(x, sizeof *copy);
    if (!copy) return "";
    *copy = k;
    const char *diagonal = leati_onnx_initialize(x, "diagonal", &scalar, copy, copy);
    return leati_onnx_node(x, "Trilu", 2, (const char *[]){name, diagonal}, attrs);
}

/* Emits a constant whose shape differs between the graphs: all elements are equal, or a band around the diagonal, as
 * attention has it. */
static const char *open_constant(leati_onnx *x, leati_value value) {
    const leati_value_info *infos[] = {leati_graph_value(x->probes[0].graph, value),
                                       leati_graph_value(x->probes[1].graph, value)};
    leati_onnx_size sizes[LEAT_MAX_RANK];
    const leati_desc *desc = &infos[0]->desc;
    int64_t low, high;
    for (int i = 0; i < desc->rank; ++i) sizes[i] = leati_onnx_size_of(x, value, i);
    if (desc->dtype == LEAT_F32 && is_full(infos[0]) && is_full(infos[1]) &&
        at(infos[0], 0) == at(infos[1], 0))
        return leati_onnx_binary(x, "Expand", leati_onnx_scalar(x, at(infos[0], 0)),
                                 leati_onnx_shape(x, desc->rank, sizes));
    if (desc->dtype == LEAT_F32 && desc->rank == 3 && desc->shape[0] == 1) {
        limits_of(infos[0], &low, &high);
        if (is_band(infos[0], low, high) && is_band(infos[1], low, high)) {
            const char *band = leati_onnx_binary(x, "Expand", leati_onnx_scalar(x, 1.0f),
                                                 leati_onnx_shape(x, desc->rank, sizes));
            if (high != INT64_MAX) band = triangle(x, band, high, false);
            return low != INT64_MIN ? triangle(x, band, low, true) : band;
        }
    }
    return leati_onnx_refuse(x,
                             "it has a constant that depends on an open size of an input, which ONNX cannot "
                             "represent; give the inputs of the model fixed sizes, apart from the batch");
}

/* ---- Forms ---- */

static const char *constant(leati_onnx *x, leati_value value) {
    const leati_value_info *info = leati_graph_value(x->graph, value);
    const void *data = leati_onnx_data_of(x, value);
    if (data) return leati_onnx_initialize(x, leati_onnx_wish_of(x, value), &info->desc, data, NULL);
    if (info->storage == LEATI_IN_CONSTANT) return open_constant(x, value);
    return leati_onnx_refuse(x, "a value of this layer has not been computed");
}

/* Fills perm with the permutation from leat's order of axes, or with its inverse. */
static void to_first(int rank, int64_t *perm) {
    for (int axis = 0; axis < rank; ++axis) perm[leati_onnx_first_axis(rank, axis)] = axis;
}
static void to_plain(int rank, int64_t *perm) {
    for (int axis = 0; axis < rank; ++axis) perm[axis] = leati_onnx_first_axis(rank, axis);
}

const char *leati_onnx_plain(leati_onnx *x, leati_value value) {
    int64_t perm[LEAT_MAX_RANK];
    leati_onnx_forms *forms = &x->forms[value];
    const int rank = leati_graph_desc(x->graph, value)->rank;
    if (x->failure.code != LEAT_OK) return "";
    to_plain(rank, perm);
    if (!forms->plain)
        forms->plain = forms->first ? leati_onnx_transposed(x, forms->first, rank, perm) : constant(x, value);
    return forms->plain;
}

const char *leati_onnx_first(leati_onnx *x, leati_value value) {
    int64_t perm[LEAT_MAX_RANK];
    leati_onnx_forms *forms = &x->forms[value];
    const int rank = leati_graph_desc(x->graph, value)->rank;
    if (rank < 3) return leati_onnx_plain(x, value);
    if (x->failure.code != LEAT_OK) return "";
    to_first(rank, perm);
    if (!forms->first) forms->first = leati_onnx_permuted(x, value, perm);
    return forms->first;
}

const char *leati_onnx_form(leati_onnx *x, leati_value value, bool first) {
    return first ? leati_onnx_first(x, value) : leati_onnx_plain(x, value);
}

void leati_onnx_set_form(leati_onnx *x, leati_value value, bool first, const char *name) {
    if (first)
        leati_onnx_set_first(x, value, name);
    else
        leati_onnx_set_plain(x, value, name);
}
