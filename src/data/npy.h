/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npy: a header that is a Python literal, then the numbers.  Versions 1 to 3, both byte orders, C and Fortran
 * order.  Source: numpy/lib/format.py's module text. */
#ifndef LEATI_DATA_NPY_H
#define LEATI_DATA_NPY_H

#include <stddef.h>

#include "data/array.h"
#include "leat/error.h"

/* Reads the header of a whole .npy file; out->data points into data.  label is the file's name, for messages.
 * Errors: LEAT_EFORMAT damaged; LEAT_ENOTSUP a type or a rank that leat does not have. */
leat_status leati_npy_parse(leati_array *out, const void *data, size_t size, const char *label,
                            leat_error *err);

#define LEATI_NPY_HEADER_BYTES 256

/* Writes the header that goes before a tensor's data; returns its length, a multiple of 64. */
size_t leati_npy_header(char out[LEATI_NPY_HEADER_BYTES], const leat_tensor *tensor);

#endif
