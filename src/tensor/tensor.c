/* SPDX-License-Identifier: Apache-2.0 */
/* Data types and tensor views.  Room: tensor. */
#include "leat/tensor.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"

const char *leat_dtype_name(leat_dtype dtype) {
    switch (dtype) {
#define DTYPE_NAME(name, value, text, bytes)                                                                 \
    case name: return text;
        LEAT_DTYPE_LIST(DTYPE_NAME)
#undef DTYPE_NAME
    }
    return "unknown";
}

size_t leat_dtype_bytes(leat_dtype dtype) {
    switch (dtype) {
#define DTYPE_BYTES(name, value, text, bytes)                                                                \
    case name: return bytes;
        LEAT_DTYPE_LIST(DTYPE_BYTES)
#undef DTYPE_BYTES
    }
    return 0;
}

leat_status leat_dtype_parse(leat_dtype *out, const char *name, leat_error *err) {
    LEATI_GIVEN(out, err);
    LEATI_GIVEN(name, err);
#define DTYPE_PARSE(dtype, value, text, bytes)                                                               \
    if (strcmp(name, text) == 0) {                                                                           \
        *out = dtype;                                                                                        \
        return LEAT_OK;                                                                                      \
    }
    LEAT_DTYPE_LIST(DTYPE_PARSE)
#undef DTYPE_PARSE
#define DTYPE_LISTED(dtype, value, text, bytes) " " text
    return leati_fail(err, LEAT_EDTYPE, "data type '%s' is not one of" LEAT_DTYPE_LIST(DTYPE_LISTED), name);
#undef DTYPE_LISTED
}

leat_tensor leat_tensor_view(leat_dtype dtype, int rank, const int64_t *shape, void *data) {
    leat_tensor tensor = {.dtype = dtype, .rank = rank, .data = data};
    int copied = rank < LEAT_MAX_RANK ? rank : LEAT_MAX_RANK;
    if (shape && copied > 0) memcpy(tensor.shape, shape, (size_t)copied * sizeof *shape);
    return tensor;
}

leat_status leat_tensor_view_into(leat_dtype dtype, int rank, const int64_t *shape, void *data,
                                  leat_tensor *out, leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = (leat_tensor){0};
    if (leat_dtype_bytes(dtype) == 0)
        return leati_fail(err, LEAT_EDTYPE, "expected a data type, received the number %d", (int)dtype);
    if (rank < 0 || rank > LEAT_MAX_RANK)
        return leati_fail(err, LEAT_ESHAPE, "expected a rank from 0 to %d, received %d", LEAT_MAX_RANK, rank);
    if (rank > 0) LEATI_GIVEN(shape, err);
    *out = leat_tensor_view(dtype, rank, shape, data);
    return LEAT_OK;
}

int64_t leat_tensor_count(const leat_tensor *tensor) {
    if (!tensor || tensor->rank < 0 || tensor->rank > LEAT_MAX_RANK) return 0;
    return leati_shape_count(tensor->rank, tensor->shape);
}

size_t leat_tensor_bytes(const leat_tensor *tensor) {
    if (!tensor) return 0;
    return leati_count_bytes(leat_tensor_count(tensor), leat_dtype_bytes(tensor->dtype));
}
