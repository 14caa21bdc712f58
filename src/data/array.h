/* SPDX-License-Identifier: Apache-2.0 */
/* An array as it lies in a file or in the caller's memory, before any conversion. */
#ifndef LEATI_DATA_ARRAY_H
#define LEATI_DATA_ARRAY_H

#include "base/file.h"
#include "data/element.h"

typedef struct leati_array {
    leati_element element;
    bool swapped; /* the other byte order */
    bool fortran; /* first index fastest, and that makes a difference */
    int rank;
    int64_t shape[LEAT_MAX_RANK];
    const unsigned char *data; /* need not be aligned */
    size_t bytes;
    const leati_map *map; /* the guarded file that data lies in; NULL: data is memory */
} leati_array;

leati_array leati_array_of(const leat_tensor *tensor);

int64_t leati_array_count(const leati_array *array);

/* Copies the elements, as they are, to C order.  dst: array->bytes. */
void leati_array_to_c_order(const leati_array *array, void *dst);

#endif
