/* SPDX-License-Identifier: Apache-2.0 */
/* Indices in tensors of any type, for the kernels that look something up. */
#ifndef LEATI_ENGINE_INDEX_H
#define LEATI_ENGINE_INDEX_H

#include <stdint.h>

#include "leat/tensor.h"

/* The index in element i, -1 where it is not in [0, limit).  Reals are cut towards zero. */
static inline int64_t leati_index_at(leat_dtype dtype, const void *data, int64_t i, int64_t limit) {
    int64_t index = -1;
    double real = -1;
    switch (dtype) {
    case LEAT_I32: index = ((const int32_t *)data)[i]; break;
    case LEAT_I64: index = ((const int64_t *)data)[i]; break;
    case LEAT_U8: index = ((const uint8_t *)data)[i]; break;
    case LEAT_F32: real = (double)((const float *)data)[i]; break;
    case LEAT_F64: real = ((const double *)data)[i]; break;
    }
    if (real > -1 && real < (double)limit) index = (int64_t)real;
    return index >= 0 && index < limit ? index : -1;
}

#endif
