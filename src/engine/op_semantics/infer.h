/* SPDX-License-Identifier: Apache-2.0 */
/* Checks for shape rules.  All messages have one form: the name of the input, what was expected, and what was received.
 * `what` names the input in the message. */
#ifndef LEATI_ENGINE_OP_SEMANTICS_INFER_H
#define LEATI_ENGINE_OP_SEMANTICS_INFER_H

#include "base/error.h"
#include "engine/op_semantics/op.h"

#define LEATI_DESC_TEXT_BYTES 160

/* Writes a description such as "(32, 784) float32" or "absent" into out.  Returns out. */
const char *leati_desc_text(char out[LEATI_DESC_TEXT_BYTES], const leati_desc *desc);

leat_status leati_expect_f32(const leati_desc *desc, const char *what, leat_error *err);
leat_status leati_expect_dtype(const leati_desc *desc, const char *what, leat_dtype dtype, leat_error *err);
leat_status leati_expect_rank(const leati_desc *desc, const char *what, int rank, leat_error *err);
/* Expects the type f32 and the given shape. */
leat_status leati_expect_shape(const leati_desc *desc, const char *what, int rank, const int64_t *dims,
                               leat_error *err);
leat_status leati_expect_like(const leati_desc *desc, const char *what, const leati_desc *like,
                              leat_error *err);
leat_status leati_expect_axis(const leati_desc *desc, int axis, leat_error *err);

/* The products of the dimensions before an axis, of the axis itself, and after it. */
typedef struct leati_axis_split {
    int64_t outer, length, inner;
} leati_axis_split;
leati_axis_split leati_split_at(const leati_desc *desc, int axis);

/* Computes the shape to which a and b broadcast by NumPy's rule.  Errors: LEAT_ESHAPE; the message has both shapes. */
leat_status leati_broadcast_shape(const leati_desc *a, const leati_desc *b, leati_desc *out, leat_error *err);

#endif
