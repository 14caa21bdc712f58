/* SPDX-License-Identifier: Apache-2.0 */
/* Checks and describes arrays, and copies them to C order.  Room: data. */
#include "data/array.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "tensor/strided.h"

leat_status leati_array_check(const leat_tensor *tensor, const char *name, leat_error *err) {
    int64_t bytes = (int64_t)leat_dtype_bytes(tensor->dtype);
    bool fits = true;
    if (bytes == 0)
        return leati_fail(err, LEAT_EDTYPE, "'%s' has the unknown data type %d", name, (int)tensor->dtype);
    if (tensor->rank < 0 || tensor->rank > LEAT_MAX_RANK)
        return leati_fail(err, LEAT_ESHAPE, "'%s' has rank %d, expected 0 to %d", name, (int)tensor->rank,
                          LEAT_MAX_RANK);
    for (int i = 0; i < tensor->rank; ++i) {
        if (tensor->shape[i] < 0)
            return leati_fail(err, LEAT_ESHAPE, "'%s': dimension %d is %lld, expected at least 0", name, i,
                              (long long)tensor->shape[i]);
        fits = fits && leati_mul_i64(bytes, tensor->shape[i], &bytes);
    }
    if (!fits) return leati_fail(err, LEAT_ESHAPE, "'%s' is larger than the address space", name);
    if (!tensor->data && bytes > 0)
        return leati_fail(err, LEAT_EINVAL, "'%s': the tensor's data is NULL", name);
    return LEAT_OK;
}

leati_array leati_array_of(const leat_tensor *tensor, const int64_t *strides) {
    leati_array array = {.dtype = tensor->dtype,
                         .rank = tensor->rank,
                         .strided = strides != NULL,
                         .data = tensor->data,
                         .bytes = leat_tensor_bytes(tensor)};
    memcpy(array.shape, tensor->shape, sizeof array.shape);
    if (strides) memcpy(array.strides, strides, (size_t)tensor->rank * sizeof *strides);
    return array;
}

int64_t leati_array_count(const leati_array *array) {
    return leati_shape_count(array->rank, array->shape);
}

void leati_array_to_c_order(const leati_array *array, void *dst) {
    if (!array->fortran) {
        if (array->bytes) memcpy(dst, array->data, array->bytes);
        return;
    }
    int64_t strides[LEAT_MAX_RANK], step = (int64_t)leat_dtype_bytes(array->dtype);
    for (int i = 0; i < array->rank; step *= array->shape[i++]) strides[i] = step;
    const leati_strides over =
        leati_strides_make(leat_dtype_bytes(array->dtype), array->rank, array->shape, strides);
    leati_strided_walk walk = leati_strided_begin(&over, array->data);
    leati_strided_take(&walk, dst, leati_array_count(array));
}
