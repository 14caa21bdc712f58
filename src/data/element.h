/* SPDX-License-Identifier: Apache-2.0 */
/* The number types that files hold, and their conversion to the types that batches have. */
#ifndef LEATI_DATA_ELEMENT_H
#define LEATI_DATA_ELEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat/tensor.h"

/* Every type: name, NumPy's code, bytes in the file, data type in memory. */
#define LEATI_ELEMENT_LIST(X)                                                                                \
    X(F16, "f2", 2, LEAT_F32)                                                                                \
    X(F32, "f4", 4, LEAT_F32)                                                                                \
    X(F64, "f8", 8, LEAT_F64)                                                                                \
    X(BOOL, "b1", 1, LEAT_U8)                                                                                \
    X(U8, "u1", 1, LEAT_U8)                                                                                  \
    X(I8, "i1", 1, LEAT_I32)                                                                                 \
    X(I16, "i2", 2, LEAT_I32)                                                                                \
    X(U16, "u2", 2, LEAT_I32)                                                                                \
    X(I32, "i4", 4, LEAT_I32)                                                                                \
    X(U32, "u4", 4, LEAT_I64)                                                                                \
    X(I64, "i8", 8, LEAT_I64)

typedef enum leati_element {
#define LEATI_ELEMENT_ENUM(name, code, bytes, dtype) LEATI_##name,
    LEATI_ELEMENT_LIST(LEATI_ELEMENT_ENUM)
#undef LEATI_ELEMENT_ENUM
} leati_element;

/* Whether this machine's byte order is little-endian. */
bool leati_little_endian(void);

/* The element with NumPy's code ("f4"); false for any other text. */
bool leati_element_parse(leati_element *out, const char *code);

leati_element leati_element_of(leat_dtype dtype); /* as it lies in memory */
const char *leati_element_code(leati_element element);
size_t leati_element_bytes(leati_element element);
leat_dtype leati_element_dtype(leati_element element);
bool leati_element_is_integer(leati_element element);

/* Whether conversion to leati_element_dtype leaves the bytes as they are (byte order aside). */
bool leati_element_is_plain(leati_element element);

/* count elements to leati_element_dtype.  src need not be aligned; swapped: its byte order is the other one. */
void leati_element_convert(leati_element element, bool swapped, const void *src, void *dst, size_t count);

/* dst[i] = src[i] * numerator / denominator, computed in double, rounded once. */
void leati_element_scale(leati_element element, bool swapped, double numerator, double denominator,
                         const void *src, float *dst, size_t count);

/* One element of an integer type. */
int64_t leati_element_integer(leati_element element, bool swapped, const void *src);

#endif
