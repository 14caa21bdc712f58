/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over tensors with strides (walk.h).  Room: backends/ref. */
#include "backends/ref/walk.h"

#include <string.h>

void leati_strides(const leati_desc *desc, int64_t stride[LEAT_MAX_RANK]) {
    int64_t step = 1;
    for (int axis = desc->rank - 1; axis >= 0; --axis) {
        stride[axis] = step;
        step *= desc->shape[axis];
    }
}

leati_walk leati_walk_over(const leati_desc *desc) {
    leati_walk walk = {.rank = desc->rank, .left = leati_desc_count(desc)};
    memcpy(walk.shape, desc->shape, sizeof walk.shape);
    leati_strides(desc, walk.stride[0]);
    return walk;
}

void leati_walk_broadcast(leati_walk *walk, int k, const leati_desc *operand) {
    int64_t operand_stride[LEAT_MAX_RANK] = {0};
    leati_strides(operand, operand_stride);
    for (int axis = 0; axis < walk->rank; ++axis) {
        int from = axis - (walk->rank - operand->rank);
        walk->stride[k][axis] = from < 0 || operand->shape[from] == 1 ? 0 : operand_stride[from];
    }
}
