/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes NumPy's .npy format: a header that is a Python literal, then the elements.  Reads versions 1 to
 * 3, both byte orders, C and Fortran order.  Source: the documentation of numpy/lib/format.py. */
#ifndef LEATI_DATA_NPY_H
#define LEATI_DATA_NPY_H

#include <stddef.h>

#include "data/array.h"
#include "leat/error.h"

/* Reads the header of a .npy file, whose complete content is `data`; out->data points into it.  `label` is the
 * file's name in messages.  Errors: LEAT_EFORMAT the file is damaged; LEAT_ENOTSUP a type or a rank that leat does
 * not support. */
leat_status leati_npy_parse(leati_array *out, const void *data, size_t size, const char *label,
                            leat_error *err);

/* Like leati_npy_parse(), but only the first `present` bytes of the file, whose length is `size`, are at `data`. */
leat_status leati_npy_parse_start(leati_array *out, const void *data, size_t present, size_t size,
                                  const char *label, leat_error *err);

#define LEATI_NPY_HEADER_BYTES 256

/* Writes the header for a tensor; returns the header's length, a multiple of 64 bytes. */
size_t leati_npy_header(char out[LEATI_NPY_HEADER_BYTES], const leat_tensor *tensor);

#endif
