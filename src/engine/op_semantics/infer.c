/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that shape rules share.  Room: engine. */
#include "engine/op_semantics/infer.h"

#include <stdio.h>

#include "base/memory.h"
#include "base/text.h"

const char *leati_desc_text(char out[LEATI_DESC_TEXT_BYTES], const leati_desc *desc) {
    if (desc->rank < 0) {
        snprintf(out, LEATI_DESC_TEXT_BYTES, "absent");
        return out;
    }
    char shape[LEATI_DESC_TEXT_BYTES - 16];
    leati_shape_text(shape, sizeof shape, desc->rank, desc->shape);
    snprintf(out, LEATI_DESC_TEXT_BYTES, "%s %s", shape, leati_dtype_name(desc->dtype));
    return out;
}

leat_status leati_expect_dtype(const leati_desc *desc, const char *what, leat_dtype dtype, leat_error *err) {
    if (desc->dtype == dtype) return LEAT_OK;
    char text[LEATI_DESC_TEXT_BYTES];
    return leati_fail(err, LEAT_EDTYPE, "%s: expected %s, received %s", what, leati_dtype_name(dtype),
                      leati_desc_text(text, desc));
}

leat_status leati_expect_f32(const leati_desc *desc, const char *what, leat_error *err) {
    return leati_expect_dtype(desc, what, LEAT_F32, err);
}

leat_status leati_expect_rank(const leati_desc *desc, const char *what, int rank, leat_error *err) {
    if (desc->rank == rank) return LEAT_OK;
    char text[LEATI_DESC_TEXT_BYTES];
    return leati_fail(err, LEAT_ESHAPE, "%s: expected %d dimensions, received %s", what, rank,
                      leati_desc_text(text, desc));
}

leat_status leati_expect_like(const leati_desc *desc, const char *what, const leati_desc *like,
                              leat_error *err) {
    if (desc->dtype == like->dtype && leati_desc_same_shape(desc, like)) return LEAT_OK;
    char expected[LEATI_DESC_TEXT_BYTES], text[LEATI_DESC_TEXT_BYTES];
    return leati_fail(err, desc->dtype == like->dtype ? LEAT_ESHAPE : LEAT_EDTYPE,
                      "%s: expected %s, received %s", what, leati_desc_text(expected, like),
                      leati_desc_text(text, desc));
}

leat_status leati_expect_shape(const leati_desc *desc, const char *what, int rank, const int64_t *dims,
                               leat_error *err) {
    leati_desc like = leati_desc_make(LEAT_F32, rank, dims);
    return leati_expect_like(desc, what, &like, err);
}

leat_status leati_expect_axis(const leati_desc *desc, int axis, leat_error *err) {
    if (axis >= 0 && axis < desc->rank) return LEAT_OK;
    char text[LEATI_DESC_TEXT_BYTES];
    return leati_fail(err, LEAT_ESHAPE, "axis %d is out of range for shape %s", axis,
                      leati_desc_text(text, desc));
}

leati_axis_split leati_split_at(const leati_desc *desc, int axis) {
    leati_axis_split split = {.length = desc->shape[axis]};
    split.outer = leati_shape_count(axis, desc->shape);
    split.inner = leati_shape_count(desc->rank - axis - 1, desc->shape + axis + 1);
    return split;
}

leat_status leati_broadcast_shape(const leati_desc *a, const leati_desc *b, leati_desc *out,
                                  leat_error *err) {
    int rank = a->rank > b->rank ? a->rank : b->rank;
    *out = (leati_desc){.dtype = a->dtype, .rank = rank};
    for (int i = 0; i < rank; ++i) { /* i counts axes from the last one */
        int64_t x = i < a->rank ? a->shape[a->rank - 1 - i] : 1;
        int64_t y = i < b->rank ? b->shape[b->rank - 1 - i] : 1;
        if (x != y && x != 1 && y != 1) {
            char left[LEATI_DESC_TEXT_BYTES], right[LEATI_DESC_TEXT_BYTES];
            return leati_fail(err, LEAT_ESHAPE, "shapes cannot be broadcast together: %s and %s",
                              leati_desc_text(left, a), leati_desc_text(right, b));
        }
        out->shape[rank - 1 - i] = x == 1 ? y : x;
    }
    return LEAT_OK;
}
