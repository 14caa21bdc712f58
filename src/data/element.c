/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions, one pair of functions per element type, made by a macro.  Layer: data. */
#include "data/element.h"

#include <math.h>
#include <string.h>

static uint16_t load16(const unsigned char *p, bool swapped) {
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return swapped ? (uint16_t)(v >> 8 | v << 8) : v;
}

static uint32_t load32(const unsigned char *p, bool swapped) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return swapped ? v >> 24 | (v >> 8 & 0xff00) | (v << 8 & 0xff0000) | v << 24 : v;
}

static uint64_t load64(const unsigned char *p, bool swapped) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    if (!swapped) return v;
    uint64_t reversed = 0;
    for (int i = 0; i < 8; ++i) reversed = reversed << 8 | (v >> 8 * i & 0xff);
    return reversed;
}

/* IEEE 754 binary16. */
static float read_F16(const unsigned char *p, bool swapped) {
    uint16_t bits = load16(p, swapped);
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    float value = exponent == 31 ? (fraction ? NAN : INFINITY)
                  : exponent     ? ldexpf((float)(fraction | 1024), exponent - 25)
                                 : ldexpf((float)fraction, -24);
    return bits >> 15 ? -value : value;
}

static float read_F32(const unsigned char *p, bool swapped) {
    uint32_t bits = load32(p, swapped);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double read_F64(const unsigned char *p, bool swapped) {
    uint64_t bits = load64(p, swapped);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint8_t read_U8(const unsigned char *p, bool swapped) {
    (void)swapped;
    return *p;
}

static uint8_t read_BOOL(const unsigned char *p, bool swapped) {
    (void)swapped;
    return *p != 0;
}

static int32_t read_I8(const unsigned char *p, bool swapped) {
    (void)swapped;
    return (int8_t)*p;
}

static int32_t read_I16(const unsigned char *p, bool swapped) {
    return (int16_t)load16(p, swapped);
}

static int32_t read_U16(const unsigned char *p, bool swapped) {
    return load16(p, swapped);
}

static int32_t read_I32(const unsigned char *p, bool swapped) {
    return (int32_t)load32(p, swapped);
}

static int64_t read_U32(const unsigned char *p, bool swapped) {
    return load32(p, swapped);
}

static int64_t read_I64(const unsigned char *p, bool swapped) {
    return (int64_t)load64(p, swapped);
}

#define TYPE_LEAT_F32 float
#define TYPE_LEAT_F64 double
#define TYPE_LEAT_U8  uint8_t
#define TYPE_LEAT_I32 int32_t
#define TYPE_LEAT_I64 int64_t

#define CONVERSIONS(name, code, bytes, dtype)                                                                \
    static void convert_##name(const unsigned char *src, bool swapped, void *dst, size_t count) {            \
        TYPE_##dtype *to = dst;                                                                              \
        for (size_t i = 0; i < count; ++i) to[i] = read_##name(src + i * bytes, swapped);                    \
    }                                                                                                        \
    static void scale_##name(const unsigned char *src, bool swapped, double numerator, double denominator,   \
                             float *dst, size_t count) {                                                     \
        for (size_t i = 0; i < count; ++i)                                                                   \
            dst[i] = (float)((double)read_##name(src + i * bytes, swapped) * numerator / denominator);       \
    }
LEATI_ELEMENT_LIST(CONVERSIONS)
#undef CONVERSIONS

static const struct {
    const char *code;
    size_t bytes;
    leat_dtype dtype;
    void (*convert)(const unsigned char *src, bool swapped, void *dst, size_t count);
    void (*scale)(const unsigned char *src, bool swapped, double numerator, double denominator, float *dst,
                  size_t count);
} elements[] = {
#define ELEMENT_ROW(name, code, bytes, dtype) {code, bytes, dtype, convert_##name, scale_##name},
    LEATI_ELEMENT_LIST(ELEMENT_ROW)
#undef ELEMENT_ROW
};

enum { element_count = sizeof elements / sizeof *elements };

bool leati_little_endian(void) {
    const uint16_t one = 1;
    return *(const unsigned char *)&one == 1;
}

bool leati_element_parse(leati_element *out, const char *code) {
    for (size_t i = 0; i < element_count; ++i) {
        if (strcmp(elements[i].code, code) != 0) continue;
        *out = (leati_element)i;
        return true;
    }
    return false;
}

leati_element leati_element_of(leat_dtype dtype) {
    static const leati_element of[] = {
        [LEAT_F32] = LEATI_F32, [LEAT_F64] = LEATI_F64, [LEAT_I32] = LEATI_I32,
        [LEAT_I64] = LEATI_I64, [LEAT_U8] = LEATI_U8,
    };
    return of[dtype];
}

const char *leati_element_code(leati_element element) {
    return elements[element].code;
}

size_t leati_element_bytes(leati_element element) {
    return elements[element].bytes;
}

leat_dtype leati_element_dtype(leati_element element) {
    return elements[element].dtype;
}

bool leati_element_is_integer(leati_element element) {
    return elements[element].dtype != LEAT_F32 && elements[element].dtype != LEAT_F64;
}

bool leati_element_is_plain(leati_element element) {
    return elements[element].bytes == leat_dtype_bytes(elements[element].dtype) && element != LEATI_BOOL;
}

void leati_element_convert(leati_element element, bool swapped, const void *src, void *dst, size_t count) {
    if (count == 0) return;
    if (leati_element_is_plain(element) && (!swapped || elements[element].bytes == 1))
        memcpy(dst, src, count * elements[element].bytes);
    else
        elements[element].convert(src, swapped, dst, count);
}

void leati_element_scale(leati_element element, bool swapped, double numerator, double denominator,
                         const void *src, float *dst, size_t count) {
    elements[element].scale(src, swapped, numerator, denominator, dst, count);
}

int64_t leati_element_integer(leati_element element, bool swapped, const void *src) {
    int64_t value = 0;
    switch (elements[element].dtype) {
    case LEAT_U8: value = element == LEATI_BOOL ? read_BOOL(src, swapped) : read_U8(src, swapped); break;
    case LEAT_I32: {
        int32_t narrow = 0;
        elements[element].convert(src, swapped, &narrow, 1);
        value = narrow;
        break;
    }
    case LEAT_I64: elements[element].convert(src, swapped, &value, 1); break;
    case LEAT_F32:
    case LEAT_F64: break; /* leati_element_is_integer says no */
    }
    return value;
}
