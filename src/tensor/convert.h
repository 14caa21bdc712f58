/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of numbers from any data type to any other. */
#ifndef LEATI_TENSOR_CONVERT_H
#define LEATI_TENSOR_CONVERT_H

#include <stddef.h>

#include "leat/tensor.h"

/* Converts count elements, by the rules of leat_tensor_copy.  src and dst are aligned for their types, and do not
 * overlap unless they are equal and `to` equals `from`. */
void leati_convert(leat_dtype to, void *dst, leat_dtype from, const void *src, size_t count);

#endif
