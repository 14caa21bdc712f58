/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of one number (LEATI_FUNCTION_LIST), one value at a time, and their derivatives. */
#ifndef LEATI_ENGINE_OP_SEMANTICS_FUNCTION_H
#define LEATI_ENGINE_OP_SEMANTICS_FUNCTION_H

#include <stdbool.h>

#include "engine/op_semantics/op.h"

float leati_eltwise_at(const leati_eltwise *f, float x);

/* f'(x), as TensorFlow 2.1 defines it at corners. */
float leati_slope_at(const leati_eltwise *f, float x);

/* Whether f' can be told from f(x) alone, and its value there: what a recurrent cell that keeps only its gates after
 * activation needs.  The same as leati_slope_at, but for hard_sigmoid at exactly 0 and 1, which counts as flat. */
bool leati_slope_known_from_dst(const leati_eltwise *f);
float leati_slope_from_dst(const leati_eltwise *f, float y);

#endif
