/* SPDX-License-Identifier: Apache-2.0 */
/* Whether all of many numbers are finite.  Room: tensor. */
#ifndef LEATI_TENSOR_FINITE_H
#define LEATI_TENSOR_FINITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Returns true if no number is NaN or infinite: in such a number, all bits of the exponent are set.  The loop has no
 * branch, so that compilers can vectorize it. */
static inline bool leati_all_finite(const float *x, size_t count) {
    const uint32_t exponent = UINT32_C(0x7F800000);
    uint32_t found = 0;
    for (size_t i = 0; i < count; ++i) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        found |= (bits & exponent) == exponent;
    }
    return found == 0;
}

#endif
