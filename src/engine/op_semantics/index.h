/* SPDX-License-Identifier: Apache-2.0 */
/* Indices in tensors of any type, for the kernels that look something up. */
#ifndef LEATI_ENGINE_OP_SEMANTICS_INDEX_H
#define LEATI_ENGINE_OP_SEMANTICS_INDEX_H

#include <stdint.h>

#include "engine/op_semantics/op.h"
#include "tensor/number.h"

/* The index in element i, -1 where it is not in [0, limit).  Reals are cut towards zero. */
static inline int64_t leati_index_at(leat_dtype dtype, const void *data, int64_t i, int64_t limit) {
    if (leati_dtype_is_integer(dtype)) {
        const int64_t index = leati_integer_at(dtype, data, i);
        return index >= 0 && index < limit ? index : -1;
    }
    const double real = leati_number_at(dtype, data, i);
    return real > -1 && real < (double)limit ? (int64_t)real : -1;
}

/* The failure of index i of a tensor with the batch in front, which is not in [0, limit): names its value, its sample and its
 * place there.  Errors: LEAT_EINVAL. */
leat_status leati_index_fail(const leati_desc *indices, const void *data, int64_t i, int64_t limit,
                             leat_error *err);

#endif
