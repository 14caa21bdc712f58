/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays as they lie.  Layer: data. */
#include "data/array.h"

#include <string.h>

leati_array leati_array_of(const leat_tensor *tensor) {
    leati_array array = {.element = leati_element_of(tensor->dtype),
                         .rank = tensor->rank,
                         .data = tensor->data,
                         .bytes = leat_tensor_bytes(tensor)};
    memcpy(array.shape, tensor->shape, sizeof array.shape);
    return array;
}

int64_t leati_array_count(const leati_array *array) {
    int64_t count = 1;
    for (int i = 0; i < array->rank; ++i) count *= array->shape[i];
    return count;
}

void leati_array_to_c_order(const leati_array *array, void *dst) {
    size_t bytes = leati_element_bytes(array->element);
    if (!array->fortran) {
        if (array->bytes) memcpy(dst, array->data, array->bytes);
        return;
    }
    size_t stride[LEAT_MAX_RANK] = {0}, step = bytes;
    int64_t index[LEAT_MAX_RANK] = {0};
    for (int i = 0; i < array->rank; ++i) {
        stride[i] = step;
        step *= (size_t)array->shape[i];
    }
    unsigned char *to = dst;
    const unsigned char *from = array->data;
    for (int64_t left = leati_array_count(array); left > 0; --left, to += bytes) {
        memcpy(to, from, bytes);
        for (int d = array->rank - 1; d >= 0; --d) {
            from += stride[d];
            if (++index[d] < array->shape[d]) break;
            from -= stride[d] * (size_t)index[d];
            index[d] = 0;
        }
    }
}
