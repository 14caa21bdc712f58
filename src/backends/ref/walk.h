/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over the elements of tensors with arbitrary strides: broadcasting, slices, transposition, reversal. */
#ifndef LEATI_BACKENDS_REF_WALK_H
#define LEATI_BACKENDS_REF_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/op_semantics/op.h"

#define LEATI_WALK_OPERANDS 3

/* A position in `shape`, and for each operand the offset of that position in its memory, in elements.
 *   for (leati_walk w = ...; leati_walk_more(&w); leati_walk_next(&w)) use w.offset[k] */
typedef struct leati_walk {
    int32_t rank;
    int64_t shape[LEAT_MAX_RANK], index[LEAT_MAX_RANK];
    int64_t stride[LEATI_WALK_OPERANDS][LEAT_MAX_RANK];
    int64_t offset[LEATI_WALK_OPERANDS];
    int64_t left;
} leati_walk;

/* Returns a walk over all positions of desc, in row-major order.  Operand 0 has the row-major strides of desc, the
 * others have strides of 0. */
leati_walk leati_walk_over(const leati_desc *desc);

/* Sets the strides of operand k to those of `operand`, broadcast to the walk's shape as in NumPy. */
void leati_walk_broadcast(leati_walk *walk, int k, const leati_desc *operand);

/* Sets the row-major strides of desc, in elements. */
void leati_strides(const leati_desc *desc, int64_t stride[LEAT_MAX_RANK]);

static inline bool leati_walk_more(const leati_walk *walk) {
    return walk->left > 0;
}

static inline void leati_walk_next(leati_walk *walk) {
    --walk->left;
    for (int axis = walk->rank - 1; axis >= 0; --axis) {
        for (int k = 0; k < LEATI_WALK_OPERANDS; ++k) walk->offset[k] += walk->stride[k][axis];
        if (++walk->index[axis] < walk->shape[axis]) return;
        for (int k = 0; k < LEATI_WALK_OPERANDS; ++k)
            walk->offset[k] -= walk->stride[k][axis] * walk->shape[axis];
        walk->index[axis] = 0;
    }
}

#endif
