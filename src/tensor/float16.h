/* SPDX-License-Identifier: Apache-2.0 */
/* IEEE 754 binary16 (float16).  The conversions use integers and normal floats only, so that the result is the same
 * in threads that flush denormal numbers (base/os/denormals.h). */
#ifndef LEATI_TENSOR_FLOAT16_H
#define LEATI_TENSOR_FLOAT16_H

#include <stdint.h>
#include <string.h>

/* Converts exactly; NaN becomes a quiet NaN of the same sign.  Has no branch, so that compilers vectorize loops that
 * call it. */
static inline float leati_float16_to_float(uint16_t x) {
    const uint32_t shifted = (uint32_t)(x & 0x7fffu) << 13, exponent = shifted & 0x0f800000u;
    uint32_t bits = shifted + (112u << 23);           /* the exponent's bias: 127 instead of 15 */
    bits += exponent == 0x0f800000u ? 112u << 23 : 0; /* infinity and NaN have the largest exponent */
    bits |= shifted > 0x0f800000u ? 0x00400000u : 0;  /* a NaN is made quiet */
    const uint32_t above = (113u << 23) | (shifted & 0x007fe000u); /* 2^-14 + the subnormal number */
    const uint32_t least_normal = 113u << 23;
    float above_value, least_value;
    memcpy(&above_value, &above, sizeof above_value);
    memcpy(&least_value, &least_normal, sizeof least_value);
    above_value -= least_value;
    uint32_t small;
    memcpy(&small, &above_value, sizeof small);
    bits = (exponent ? bits : small) | (uint32_t)(x & 0x8000u) << 16;
    float out;
    memcpy(&out, &bits, sizeof out);
    return out;
}

/* Returns the nearest binary16, ties to even: infinity from 65520 on, a subnormal number or 0 below 2^-14. */
static inline uint16_t leati_float16_of_double(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t sign = (uint32_t)(bits >> 48) & 0x8000u;
    const int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    const uint64_t fraction = bits & 0xfffffffffffffu;
    if (exponent == 1024) return (uint16_t)(sign | (fraction ? 0x7e00u : 0x7c00u));
    if (exponent > 15) return (uint16_t)(sign | 0x7c00u);
    if (exponent < -25) return (uint16_t)sign;
    const int cut =
        exponent < -14 ? 28 - exponent : 42; /* low bits that binary16 does not keep, at most 53 */
    const uint64_t kept =
        exponent < -14 ? fraction | (uint64_t)1 << 52 : fraction | (uint64_t)(exponent + 15) << 52;
    const uint64_t half = (uint64_t)1 << (cut - 1), rest = kept & (2 * half - 1);
    const uint64_t nearest = (kept >> cut) + (rest > half || (rest == half && (kept >> cut & 1)));
    return (uint16_t)(sign | (uint32_t)nearest); /* a carry out of the fraction increments the exponent */
}

#endif
