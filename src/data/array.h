/* SPDX-License-Identifier: Apache-2.0 */
/* Describes an array in a file or in the caller's memory, before any conversion. */
#ifndef LEATI_DATA_ARRAY_H
#define LEATI_DATA_ARRAY_H

#include "base/os/file.h"
#include "data/element.h"

/* Reads rows that are not all in memory at the same time: writes the rows first ... first + count - 1 to dst. */
typedef struct leati_array_reader {
    leat_status (*read)(void *user, int64_t first, int64_t count, unsigned char *dst, leat_error *err);
    void *user;
} leati_array_reader;

typedef struct leati_array {
    leat_dtype dtype;
    bool swapped; /* the byte order is not this machine's */
    bool fortran; /* Fortran order, where it differs from C order; never together with `strided` */
    bool strided; /* `strides` is set; otherwise the array is contiguous */
    int rank;
    int64_t shape[LEAT_MAX_RANK];
    int64_t strides[LEAT_MAX_RANK]; /* bytes */
    const unsigned char
        *data;    /* any alignment; with strides, the address of the element whose indices are all 0 */
    size_t bytes; /* of all elements */
    leati_array_reader reader; /* read is not NULL: reads the rows of this contiguous array; `data` is NULL */
    const leati_map *map;      /* the guarded mapping that `data` points into; NULL: ordinary memory */
} leati_array;

/* Checks that a tensor can be read or written as an array.  `name` names the tensor in messages.
 * Errors: LEAT_EDTYPE an unknown type; LEAT_ESHAPE an invalid rank or dimension; LEAT_EINVAL elements without data. */
leat_status leati_array_check(const leat_tensor *tensor, const char *name, leat_error *err);

/* Describes a tensor that has passed leati_array_check; strides NULL: contiguous. */
leati_array leati_array_of(const leat_tensor *tensor, const int64_t *strides);

int64_t leati_array_count(const leati_array *array);

/* Copies the elements of a contiguous array to C order, without conversion; dst has array->bytes bytes. */
void leati_array_to_c_order(const leati_array *array, void *dst);

#endif
