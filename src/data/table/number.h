/* SPDX-License-Identifier: Apache-2.0 */
/* Reads numbers of text files.  Nearly all numbers take the short way in this header; number.c reads the others.  The
 * results do not depend on the process's locale. */
#ifndef LEATI_DATA_TABLE_NUMBER_H
#define LEATI_DATA_TABLE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The powers of ten from 10^0 to 10^LEATI_NUMBER_POWERS, each correctly rounded; up to 10^22 they are exact. */
enum { LEATI_NUMBER_POWERS = 44 };
extern const double leati_number_powers[LEATI_NUMBER_POWERS + 1];

/* Like leati_read_float(), for any number, also "inf", "infinity" and "nan". */
const char *leati_read_float_slowly(const char *at, const char *end, char point, float *out);

/* Reads an integer and returns the text after it; NULL if there is none or it does not fit into 32 bits.  A fraction of
 * zeros (12.0) is allowed, since pandas writes integers so if their column has missing values. */
const char *leati_read_int32(const char *at, const char *end, char point, int32_t *out);

/* Returns true if the 8 bytes, the first in the lowest byte, are digits. */
static inline bool leati_are_digits(uint64_t eight) {
    return ((eight & 0xf0f0f0f0f0f0f0f0u) | (((eight + 0x0606060606060606u) & 0xf0f0f0f0f0f0f0f0u) >> 4)) ==
           0x3333333333333333u;
}

/* Returns the number that 8 digits are. */
static inline uint64_t leati_eight_digits(uint64_t eight) {
    eight = (eight & 0x0f0f0f0f0f0f0f0fu) * 2561 >> 8;
    eight = (eight & 0x00ff00ff00ff00ffu) * 6553601 >> 16;
    return (eight & 0x0000ffff0000ffffu) * 42949672960001u >> 32;
}

/* Appends the digits at `at` to *mantissa, modulo 2^64, and returns the text after them. */
static inline const char *leati_read_digits(const char *at, const char *end, uint64_t *mantissa) {
    uint64_t value = *mantissa, eight = 0;
    while (end - at >= 8) {
        memcpy(&eight, at, 8);
        if (!leati_are_digits(eight)) break;
        value = value * 100000000u + leati_eight_digits(eight);
        at += 8;
    }
    for (; at < end && (unsigned char)(*at - '0') <= 9; ++at) value = value * 10 + (uint64_t)(*at - '0');
    *mantissa = value;
    return at;
}

/* Writes mantissa * 10^exponent, rounded to the nearest float; returns false if this way is not exact enough.
 *
 * The computation in double has an error of at most 2 units in the last of 53 bits.  The rounding to the 24 bits of a
 * float is therefore right unless the 29 bits that it drops are within 8 units of their half. */
static inline bool leati_round_to_float(uint64_t mantissa, int exponent, float *out) {
    if (exponent < -LEATI_NUMBER_POWERS || exponent > LEATI_NUMBER_POWERS) return false;
    double value = (double)mantissa;
    if (exponent < 0)
        value /= leati_number_powers[-exponent];
    else
        value *= leati_number_powers[exponent];
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    const uint64_t dropped = bits & 0x1fffffffu;
    const bool is_exact = exponent == 0 && mantissa <= (uint64_t)1 << 53;
    *out = (float)value;
    if (mantissa == 0) return true;
    if (value < 0x1p-125 || value > 0x1p127) return false;
    return is_exact || dropped - 0x0ffffff8u > 16;
}

/* Reads a decimal number and returns the text after it; NULL if there is no number at `at`.  *out is the float that is
 * nearest to the number, the one with an even last bit if two are equally near.
 * @param end  The end of the text, which need not be terminated.
 * @param point  The decimal separator. */
static inline const char *leati_read_float(const char *at, const char *end, char point, float *out) {
    const char *p = at;
    uint64_t mantissa = 0;
    const bool negative = p < end && *p == '-';
    p += negative;
    const char *digits = p;
    p = leati_read_digits(p, end, &mantissa);
    int64_t count = p - digits, exponent = 0;
    if (p < end && *p == point) {
        digits = ++p;
        p = leati_read_digits(p, end, &mantissa);
        exponent = digits - p;
        count -= exponent;
    }
    /* 19 digits fit into 64 bits. */
    if (count < 1 || count > 19 || (p < end && (*p == 'e' || *p == 'E')) ||
        !leati_round_to_float(mantissa, (int)exponent, out))
        return leati_read_float_slowly(at, end, point, out);
    if (negative) *out = -*out;
    return p;
}

#endif
