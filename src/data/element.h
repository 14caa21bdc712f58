/* SPDX-License-Identifier: Apache-2.0 */
/* Converts NumPy's codes of data types, and byte orders. */
#ifndef LEATI_DATA_ELEMENT_H
#define LEATI_DATA_ELEMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "leat/tensor.h"

/* Returns true if this machine is little-endian. */
bool leati_little_endian(void);

/* Finds the data type of NumPy's code ("f4"); returns false for any other text. */
bool leati_dtype_of_code(leat_dtype *out, const char *code);
/* Returns NumPy's code of a data type. */
const char *leati_dtype_code(leat_dtype dtype);

/* Reverses the bytes of each of `count` elements, which need not be aligned. */
void leati_swap_bytes(void *data, size_t element_bytes, size_t count);

#endif
