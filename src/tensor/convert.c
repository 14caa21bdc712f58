/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions between data types: macros define one loop for each pair of types.  The loops have no branch and no
 * call if the pair allows that, so that the compiler vectorizes them.  Room: tensor. */
#include "tensor/convert.h"

#include <string.h>

#include "tensor/number.h"

/* Convert a number to an integer type whose range is [min, max], saturating.  x is a double (SATURATE_REAL), an
 * int64_t (SATURATE_SIGNED) or a uint64_t (SATURATE_UNSIGNED).  The compiler removes the comparisons where the source
 * type's range fits. */
#define SATURATE_REAL(x, type, min, max)                                                                     \
    ((x) != (x)             ? (type)0                                                                        \
     : (x) <= (double)(min) ? (type)(min)                                                                    \
     : (x) >= (double)(max) ? (type)(max)                                                                    \
                            : (type)(x))
#define SATURATE_SIGNED(x, type, min, max)                                                                   \
    ((x) < (int64_t)(min)                         ? (type)(min)                                              \
     : (x) > 0 && (uint64_t)(x) > (uint64_t)(max) ? (type)(max)                                              \
                                                  : (type)(x))
#define SATURATE_UNSIGNED(x, type, min, max) ((x) > (uint64_t)(max) ? (type)(max) : (type)(x))

/* Every source type: its name in function names, its C type, the macro that reads an element as a number, the widest
 * C type of its kind, and the macro that converts a number to an integer type. */
#define SOURCES(X, ...)                                                                                      \
    X(F32, float, LEATI_SAME, double, SATURATE_REAL, __VA_ARGS__)                                            \
    X(F64, double, LEATI_SAME, double, SATURATE_REAL, __VA_ARGS__)                                           \
    X(F16, uint16_t, LEATI_WIDER, double, SATURATE_REAL, __VA_ARGS__)                                        \
    X(I32, int32_t, LEATI_SAME, int64_t, SATURATE_SIGNED, __VA_ARGS__)                                       \
    X(I64, int64_t, LEATI_SAME, int64_t, SATURATE_SIGNED, __VA_ARGS__)                                       \
    X(I8, int8_t, LEATI_SAME, int64_t, SATURATE_SIGNED, __VA_ARGS__)                                         \
    X(I16, int16_t, LEATI_SAME, int64_t, SATURATE_SIGNED, __VA_ARGS__)                                       \
    X(U8, uint8_t, LEATI_SAME, uint64_t, SATURATE_UNSIGNED, __VA_ARGS__)                                     \
    X(BOOL, uint8_t, LEATI_TRUTH, uint64_t, SATURATE_UNSIGNED, __VA_ARGS__)                                  \
    X(U16, uint16_t, LEATI_SAME, uint64_t, SATURATE_UNSIGNED, __VA_ARGS__)                                   \
    X(U32, uint32_t, LEATI_SAME, uint64_t, SATURATE_UNSIGNED, __VA_ARGS__)                                   \
    X(U64, uint64_t, LEATI_SAME, uint64_t, SATURATE_UNSIGNED, __VA_ARGS__)

#define LOOP(from, type, to, to_type, VALUE)                                                                 \
    static void from##_to_##to(const void *source, void *target, size_t count) {                             \
        const type *restrict src = source;                                                                   \
        to_type *restrict dst = target;                                                                      \
        for (size_t i = 0; i < count; ++i) dst[i] = (VALUE);                                                 \
    }

#define TO_REAL(from, type, READ, wide, SATURATE, to, to_type)                                               \
    LOOP(from, type, to, to_type, (to_type)READ(src[i]))
#define TO_F16(from, type, READ, wide, SATURATE, to, to_type)                                                \
    LOOP(from, type, to, to_type, leati_float16_of_double((double)READ(src[i])))
#define TO_BOOL(from, type, READ, wide, SATURATE, to, to_type)                                               \
    LOOP(from, type, to, to_type, READ(src[i]) != 0)
#define TO_INTEGER(from, type, READ, wide, SATURATE, to, to_type, min, max)                                  \
    static inline to_type from##_as_##to(wide x) {                                                           \
        return SATURATE(x, to_type, min, max);                                                               \
    }                                                                                                        \
    LOOP(from, type, to, to_type, from##_as_##to((wide)READ(src[i])))

SOURCES(TO_REAL, F32, float)
SOURCES(TO_REAL, F64, double)
SOURCES(TO_F16, F16, uint16_t)
SOURCES(TO_BOOL, BOOL, uint8_t)
SOURCES(TO_INTEGER, I8, int8_t, INT8_MIN, INT8_MAX)
SOURCES(TO_INTEGER, I16, int16_t, INT16_MIN, INT16_MAX)
SOURCES(TO_INTEGER, I32, int32_t, INT32_MIN, INT32_MAX)
SOURCES(TO_INTEGER, I64, int64_t, INT64_MIN, INT64_MAX)
SOURCES(TO_INTEGER, U8, uint8_t, 0, UINT8_MAX)
SOURCES(TO_INTEGER, U16, uint16_t, 0, UINT16_MAX)
SOURCES(TO_INTEGER, U32, uint32_t, 0, UINT32_MAX)
SOURCES(TO_INTEGER, U64, uint64_t, 0, UINT64_MAX)

#define DTYPE_ONE(name, value, text, bytes) +1
enum { dtype_count = LEAT_DTYPE_LIST(DTYPE_ONE) };
#undef DTYPE_ONE

typedef void (*conversion)(const void *src, void *dst, size_t count);

#define ENTRY(from, type, READ, wide, SATURATE, to) [LEAT_##from] = from##_to_##to,
static const conversion conversions[dtype_count][dtype_count] = {
    [LEAT_F32] = {SOURCES(ENTRY, F32)}, [LEAT_F64] = {SOURCES(ENTRY, F64)},
    [LEAT_F16] = {SOURCES(ENTRY, F16)}, [LEAT_BOOL] = {SOURCES(ENTRY, BOOL)},
    [LEAT_I8] = {SOURCES(ENTRY, I8)},   [LEAT_I16] = {SOURCES(ENTRY, I16)},
    [LEAT_I32] = {SOURCES(ENTRY, I32)}, [LEAT_I64] = {SOURCES(ENTRY, I64)},
    [LEAT_U8] = {SOURCES(ENTRY, U8)},   [LEAT_U16] = {SOURCES(ENTRY, U16)},
    [LEAT_U32] = {SOURCES(ENTRY, U32)}, [LEAT_U64] = {SOURCES(ENTRY, U64)},
};

void leati_convert(leat_dtype to, void *dst, leat_dtype from, const void *src, size_t count) {
    if (count == 0) return;
    if (to == from)
        memmove(dst, src, count * leat_dtype_bytes(from)); /* dst may equal src */
    else
        conversions[to][from](src, dst, count);
}
