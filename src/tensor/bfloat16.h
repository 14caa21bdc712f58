/* SPDX-License-Identifier: Apache-2.0 */
/* bfloat16, the upper half of a float's bits.  The engine may store activations in this type; batches and files never
 * have it, so leat/tensor.h does not list it. */
#ifndef LEATI_TENSOR_BFLOAT16_H
#define LEATI_TENSOR_BFLOAT16_H

#include <stdint.h>
#include <string.h>

#include "leat/tensor.h"

#define LEATI_BF16 ((leat_dtype)16)

static inline float leati_bfloat16_to_float(uint16_t x) {
    uint32_t bits = (uint32_t)x << 16;
    float out;
    memcpy(&out, &bits, sizeof out);
    return out;
}

/* Returns the nearest bfloat16, ties to even.  NaN stays NaN. */
static inline uint16_t leati_bfloat16_of_float(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t nearest = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16, nan = bits >> 16 | 0x40u;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? nan : nearest);
}

#endif
