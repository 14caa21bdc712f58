/* SPDX-License-Identifier: Apache-2.0 */
/* GROUP_NORM's view of its source: (rows, places, groups, channels / groups), row-major.  The moments of one row and
 * group are computed over all places and over the channels of the group. */
#ifndef LEATI_ENGINE_OP_SEMANTICS_GROUP_NORM_H
#define LEATI_ENGINE_OP_SEMANTICS_GROUP_NORM_H

#include "engine/op_semantics/op.h"

typedef struct leati_group_shape {
    int64_t rows, places, channels, groups;
} leati_group_shape;

/* Returns the view of src; the shape rule of GROUP_NORM has accepted attrs. */
static inline leati_group_shape leati_group_shape_of(const leati_attrs *attrs, const leati_desc *src) {
    leati_group_shape shape = {1, 1, attrs->group_norm.channels, attrs->group_norm.groups};
    for (int i = 0; i < src->rank; i++)
        *(i < attrs->group_norm.samples ? &shape.rows : &shape.places) *= src->shape[i];
    shape.places /= shape.channels;
    return shape;
}

#endif
