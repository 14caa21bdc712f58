/* SPDX-License-Identifier: Apache-2.0 */
/* Elements that do not lie one behind the other, in row-major order: a walk over strided memory. */
#ifndef LEATI_TENSOR_STRIDED_H
#define LEATI_TENSOR_STRIDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat/tensor.h"

/* Where a walk stands.  Dimensions that are one in memory have been joined, those of length 1 left out. */
typedef struct leati_strides {
    size_t bytes; /* of an element: 1, 2, 4 or 8 */
    int rank;
    int64_t shape[LEAT_MAX_RANK], stride[LEAT_MAX_RANK]; /* bytes */
} leati_strides;

typedef struct leati_strided_walk {
    const leati_strides *over;
    const unsigned char *at;
    int64_t index[LEAT_MAX_RANK];
} leati_strided_walk;

/* strides in bytes; NULL: row-major, contiguous. */
leati_strides leati_strides_make(size_t element_bytes, int rank, const int64_t *shape,
                                 const int64_t *strides);

/* Whether the elements lie one behind the other. */
bool leati_strides_are_dense(const leati_strides *strides);

/* From the first element, whose address is data. */
leati_strided_walk leati_strided_begin(const leati_strides *over, const void *data);

/* Copies the next `count` elements, as they are; there must be as many.  Neither side need be aligned. */
void leati_strided_take(leati_strided_walk *walk, void *dst, int64_t count);

#endif
