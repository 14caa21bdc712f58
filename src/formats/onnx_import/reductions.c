/* SPDX-License-Identifier: Apache-2.0 */
/* Reads reductions, positions of extrema and sums along an axis.  Room: formats. */
#include <string.h>

#include "formats/onnx_import/import.h"

/* Reduces the axes of a settled view; `keep`: they stay with length 1. */
static leati_view reduced(leati_import *x, const char *function, const leati_view *view, uint32_t axes,
                          bool keep) {
    leati_view out = *view;
    json_t *list = json_array();
    for (int i = 0; i < view->rank; ++i)
        if (axes >> i & 1u && list) leati_import_append(&list, json_integer(leati_import_stored(x, view, i)));
    json_t *options = json_pack("{s:o, s:b}", "axis", list, "keepdims", 0);
    const leati_source source =
        leati_import_operation(x, function, json_pack("[o]", leati_import_argument(0)), options, 1,
                               &view->source);
    for (int i = view->rank - 1; i >= 0; --i)
        if (axes >> i & 1u) leati_view_drop(&out, i, keep);
    return leati_import_ok(x) ? leati_view_with(x, &out, source) : out;
}

/* The detail is the function, and the functions before and after it: "Square Sum Sqrt". */
static void read_reduce(leati_import *x) {
    const char *const detail = leati_import_operator_of(x->node->op)->detail;
    char names[3][16] = {"", "", ""};
    int64_t list[LEAT_MAX_RANK];
    leati_view view = leati_import_settle(x, leati_import_need(x, 0), NULL);
    const int count = leati_import_ints(x, "axes", 1, LEAT_MAX_RANK, list);
    uint32_t axes = 0;
    if (!leati_import_ok(x)) return;
    const char *at = detail;
    for (int i = 0; i < 3 && *at; ++i) {
        const size_t length = strcspn(at, " ");
        memcpy(names[i], at, length < 15 ? length : 15);
        at += length + (at[length] == ' ');
    }
    for (int i = 0; i < count; ++i) axes |= UINT32_C(1) << leati_import_axis(x, list[i], view.rank);
    if (count <= 0 && leati_import_int(x, "noop_with_empty_axes", 0) == 0)
        axes = (UINT32_C(1) << view.rank) - 1;
    const bool keep = leati_import_int(x, "keepdims", 1) != 0;
    if (strcmp(names[0], "-") != 0) view = leati_import_unary(x, names[0], &view);
    if (axes != 0) view = reduced(x, names[1], &view, axes, keep);
    if (names[2][0]) view = leati_import_unary(x, names[2], &view);
    leati_import_set(x, 0, &view);
}

static void read_arg(leati_import *x) {
    const leati_view view = leati_import_settle(x, leati_import_need(x, 0), NULL);
    if (leati_import_int(x, "select_last_index", 0) != 0)
        leati_import_refuse(x, "select_last_index is not supported");
    if (!leati_import_ok(x)) return;
    const int axis = leati_import_axis(x, leati_import_int(x, "axis", 0), view.rank);
    const bool keep = leati_import_int(x, "keepdims", 1) != 0;
    leati_view out = view;
    json_t *options = json_pack("{s:i, s:b}", "axis", leati_import_stored(x, &view, axis), "keepdims", 0);
    const leati_source source =
        leati_import_operation(x, leati_import_operator_of(x->node->op)->detail,
                               json_pack("[o]", leati_import_argument(0)), options, 1, &view.source);
    leati_view_drop(&out, axis, keep);
    out = leati_view_with(x, &out, source);
    leati_import_value *made = leati_import_set(x, 0, &out);
    if (made) made->type = LEATI_IMPORT_INT64;
}

static void read_cumsum(leati_import *x) {
    const leati_view view = leati_import_settle(x, leati_import_need(x, 0), NULL);
    const leati_import_tensor *axis = leati_import_constant_in(x, 1, "axis");
    if (leati_import_int(x, "exclusive", 0) != 0 || leati_import_int(x, "reverse", 0) != 0)
        leati_import_refuse(x, "exclusive and reverse are not supported");
    if (leati_import_ok(x) && (!axis || axis->count != 1)) leati_import_refuse(x, "expected an axis");
    if (!leati_import_ok(x)) return;
    const int stored =
        leati_import_stored(x, &view, leati_import_axis(x, leati_import_integer(axis, 0), view.rank));
    const leati_source source =
        leati_import_operation(x, "Cumsum", json_pack("[o]", leati_import_argument(0)),
                               json_pack("{s:i}", "axis", stored), 1, &view.source);
    const leati_view out = leati_view_with(x, &view, source);
    leati_import_set(x, 0, &out);
}

const leati_import_operator leati_import_reduce_operators[] = {
    {"ReduceMean", read_reduce, "- Mean"},
    {"ReduceSum", read_reduce, "- Sum"},
    {"ReduceMax", read_reduce, "- Max"},
    {"ReduceMin", read_reduce, "- Min"},
    {"ReduceProd", read_reduce, "- Prod"},
    {"ReduceL1", read_reduce, "Abs Sum"},
    {"ReduceL2", read_reduce, "Square Sum Sqrt"},
    {"ReduceSumSquare", read_reduce, "Square Sum"},
    {"ReduceLogSum", read_reduce, "- Sum Log"},
    {"ReduceLogSumExp", read_reduce, "- Logsumexp"},
    {"ArgMax", read_arg, "Argmax"},
    {"ArgMin", read_arg, "Argmin"},
    {"CumSum", read_cumsum, NULL},
    {.name = NULL},
};
