/* SPDX-License-Identifier: Apache-2.0 */
/* Strided memory, read in row-major order. */
#ifndef LEATI_TENSOR_STRIDED_H
#define LEATI_TENSOR_STRIDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat/tensor.h"

/* A shape and its strides.  Neighbouring dimensions that are contiguous in memory are joined, dimensions of length 1
 * left out. */
typedef struct leati_strides {
    size_t bytes; /* size of an element: 1, 2, 4 or 8 */
    int rank;
    int64_t shape[LEAT_MAX_RANK], stride[LEAT_MAX_RANK]; /* strides in bytes */
} leati_strides;

/* A position in strided memory. */
typedef struct leati_strided_walk {
    const leati_strides *over;
    const unsigned char *at;
    int64_t index[LEAT_MAX_RANK];
} leati_strided_walk;

/* Makes the strides of a shape.  strides: in bytes; NULL: row-major and contiguous. */
leati_strides leati_strides_make(size_t element_bytes, int rank, const int64_t *shape,
                                 const int64_t *strides);

/* Returns true if the elements are contiguous. */
bool leati_strides_are_dense(const leati_strides *strides);

/* Begins at the first element, whose address is data. */
leati_strided_walk leati_strided_begin(const leati_strides *over, const void *data);

/* Copies the next `count` elements to dst and moves on; so many must be left.  Neither side need be aligned. */
void leati_strided_take(leati_strided_walk *walk, void *dst, int64_t count);

#endif
