/* SPDX-License-Identifier: Apache-2.0 */
/* Reads indices from tensors of any data type, for the kernels of GATHER, GATHER_BWD and ONE_HOT. */
#ifndef LEATI_ENGINE_OP_SEMANTICS_INDEX_H
#define LEATI_ENGINE_OP_SEMANTICS_INDEX_H

#include <stdint.h>

#include "engine/op_semantics/op.h"
#include "tensor/number.h"

/* Returns the index in element i, or -1 if it is not in [0, limit).  A real number is truncated towards zero. */
static inline int64_t leati_index_at(leat_dtype dtype, const void *data, int64_t i, int64_t limit) {
    if (leati_dtype_is_integer(dtype)) {
        const int64_t index = leati_integer_at(dtype, data, i);
        return index >= 0 && index < limit ? index : -1;
    }
    const double real = leati_number_at(dtype, data, i);
    return real > -1 && real < (double)limit ? (int64_t)real : -1;
}

/* Fails because index i of a tensor (N, ...) is not in [0, limit).  The message names its value, its sample and its
 * place in the sample.  Returns LEAT_EINVAL. */
leat_status leati_index_fail(const leati_desc *indices, const void *data, int64_t i, int64_t limit,
                             leat_error *err);

/* The same for a device, which reads the index itself: `number` is its value. */
leat_status leati_index_fail_number(const leati_desc *indices, double number, int64_t i, int64_t limit,
                                    leat_error *err);

#endif
