/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of any data type to any other: the one table of conversions. */
#ifndef LEATI_TENSOR_CONVERT_H
#define LEATI_TENSOR_CONVERT_H

#include <stddef.h>

#include "leat/tensor.h"

/* count elements, both sides aligned for their types, as leat_tensor_copy says.  The memory does not overlap, or is the same and
 * the type too. */
void leati_convert(leat_dtype to, void *dst, leat_dtype from, const void *src, size_t count);

#endif
