/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npy: a header that is a Python literal, then the numbers.  Versions 1 to 3, both byte orders, C and Fortran
 * order.  Source: numpy/lib/format.py's module text. */
#ifndef LEATI_DATA_NPY_H
#define LEATI_DATA_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/element.h"
#include "leat/error.h"

/* An array as it lies in a file.  data need not be aligned. */
typedef struct leati_npy {
    leati_element element;
    bool swapped; /* big-endian in the file */
    bool fortran; /* first index fastest, and that makes a difference */
    int rank;
    int64_t shape[LEAT_MAX_RANK];
    const unsigned char *data;
    size_t bytes;
} leati_npy;

/* Reads the header of a whole .npy file; out->data points into data.  label is the file's name, for messages.
 * Errors: LEAT_EFORMAT damaged; LEAT_ENOTSUP a type or a rank that leat does not have. */
leat_status leati_npy_parse(leati_npy *out, const void *data, size_t size, const char *label,
                            leat_error *err);

int64_t leati_npy_count(const leati_npy *array);

/* Copies the elements, as they are, to C order.  dst: array->bytes. */
void leati_npy_to_c_order(const leati_npy *array, void *dst);

#define LEATI_NPY_HEADER_BYTES 256

/* Writes the header that goes before a tensor's data; returns its length, a multiple of 64. */
size_t leati_npy_header(char out[LEATI_NPY_HEADER_BYTES], const leat_tensor *tensor);

#endif
