/* SPDX-License-Identifier: Apache-2.0 */
/* The C type of each data type, and elements read as numbers.  LEATI_NUMBER_LIST has every data type, so that a
 * switch made from it is complete. */
#ifndef LEATI_TENSOR_NUMBER_H
#define LEATI_TENSOR_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "leat/tensor.h"
#include "tensor/float16.h"

#define LEATI_SAME(x)  (x)
#define LEATI_TRUTH(x) ((x) != 0)
#define LEATI_WIDER(x) leati_float16_to_float(x)

/* Real types: the data type, its C type in memory, and the macro that reads an element as a number. */
#define LEATI_REAL_LIST(X)                                                                                   \
    X(LEAT_F32, float, LEATI_SAME)                                                                           \
    X(LEAT_F64, double, LEATI_SAME)                                                                          \
    X(LEAT_F16, uint16_t, LEATI_WIDER)

/* The integer types whose numbers fit in an int64_t: all except uint64. */
#define LEATI_INTEGER_LIST(X)                                                                                \
    X(LEAT_I32, int32_t, LEATI_SAME)                                                                         \
    X(LEAT_I64, int64_t, LEATI_SAME)                                                                         \
    X(LEAT_U8, uint8_t, LEATI_SAME)                                                                          \
    X(LEAT_BOOL, uint8_t, LEATI_TRUTH)                                                                       \
    X(LEAT_I8, int8_t, LEATI_SAME)                                                                           \
    X(LEAT_I16, int16_t, LEATI_SAME)                                                                         \
    X(LEAT_U16, uint16_t, LEATI_SAME)                                                                        \
    X(LEAT_U32, uint32_t, LEATI_SAME)

#define LEATI_NUMBER_LIST(X)                                                                                 \
    LEATI_REAL_LIST(X)                                                                                       \
    LEATI_INTEGER_LIST(X)                                                                                    \
    X(LEAT_U64, uint64_t, LEATI_SAME)

/* Returns true for integer types and bool. */
static inline bool leati_dtype_is_integer(leat_dtype dtype) {
    return dtype != LEAT_F32 && dtype != LEAT_F64 && dtype != LEAT_F16;
}

/* Returns element i as a double; 64-bit integers beyond 2^53 are rounded. */
static inline double leati_number_at(leat_dtype dtype, const void *data, int64_t i) {
    switch (dtype) {
#define NUMBER(name, type, READ)                                                                             \
    case name: return (double)READ(((const type *)data)[i]);
        LEATI_NUMBER_LIST(NUMBER)
#undef NUMBER
    }
    return 0;
}

/* Returns element i as an integer.  A real number is truncated towards zero, a number out of range becomes INT64_MIN
 * or INT64_MAX, and NaN becomes 0. */
static inline int64_t leati_integer_at(leat_dtype dtype, const void *data, int64_t i) {
    switch (dtype) {
#define INTEGER(name, type, READ)                                                                            \
    case name: return (int64_t)READ(((const type *)data)[i]);
        LEATI_INTEGER_LIST(INTEGER)
#undef INTEGER
    case LEAT_U64: {
        uint64_t value = ((const uint64_t *)data)[i];
        return value > INT64_MAX ? INT64_MAX : (int64_t)value;
    }
    case LEAT_F32:
    case LEAT_F64:
    case LEAT_F16: break;
    }
    const double x = leati_number_at(dtype, data, i);
    return x != x ? 0 : x <= -0x1p63 ? INT64_MIN : x >= 0x1p63 ? INT64_MAX : (int64_t)x;
}

#endif
