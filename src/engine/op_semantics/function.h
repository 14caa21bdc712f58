/* SPDX-License-Identifier: Apache-2.0 */
/* The element-wise functions of one variable (LEATI_FUNCTION_LIST) and their derivatives, for one value at a time. */
#ifndef LEATI_ENGINE_OP_SEMANTICS_FUNCTION_H
#define LEATI_ENGINE_OP_SEMANTICS_FUNCTION_H

#include <stdbool.h>

#include "engine/op_semantics/op.h"

float leati_eltwise_at(const leati_eltwise *f, float x);

/* Returns f'(x).  Where f has a corner, the value is TensorFlow 2.1's. */
float leati_slope_at(const leati_eltwise *f, float x);

/* leati_slope_known_from_dst returns true if f'(x) can be computed from y = f(x) alone; leati_slope_from_dst computes
 * it. A recurrent cell needs this, because it keeps only the values of its gates after the activation.  The result
 * equals leati_slope_at, except for hard_sigmoid at exactly 0 and 1, where it is 0. */
bool leati_slope_known_from_dst(const leati_eltwise *f);
float leati_slope_from_dst(const leati_eltwise *f, float y);

#endif
