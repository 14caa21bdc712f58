/* SPDX-License-Identifier: Apache-2.0 */
/* An array as it lies in a file or in the caller's memory, before any conversion. */
#ifndef LEATI_DATA_ARRAY_H
#define LEATI_DATA_ARRAY_H

#include "base/os/file.h"
#include "data/element.h"

typedef struct leati_array {
    leat_dtype dtype;
    bool swapped; /* the other byte order */
    bool fortran; /* first index fastest, and that makes a difference; never with strides */
    bool strided; /* strides count; otherwise the elements lie one behind the other */
    int rank;
    int64_t shape[LEAT_MAX_RANK];
    int64_t strides[LEAT_MAX_RANK]; /* bytes */
    const unsigned char
        *data;            /* need not be aligned; with strides, that of the element whose indices are all 0 */
    size_t bytes;         /* of all elements */
    const leati_map *map; /* the guarded file that data lies in; NULL: data is memory */
} leati_array;

/* What can be read as an array, or written as one.  `name` is for messages.  Errors: LEAT_EDTYPE an unknown type; LEAT_ESHAPE a
 * rank or a dimension that does not exist; LEAT_EINVAL elements without data. */
leat_status leati_array_check(const leat_tensor *tensor, const char *name, leat_error *err);

/* The tensor must have passed leati_array_check.  strides may be NULL: contiguous. */
leati_array leati_array_of(const leat_tensor *tensor, const int64_t *strides);

int64_t leati_array_count(const leati_array *array);

/* Copies the elements of a contiguous array, as they are, to C order.  dst: array->bytes. */
void leati_array_to_c_order(const leati_array *array, void *dst);

#endif
