/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bf16, two at once into one f32 sum (AVX512_BF16), for the convolutions of backends/native. */
#ifndef LEATI_BACKENDS_NATIVE_CONV_BFLOAT16_H
#define LEATI_BACKENDS_NATIVE_CONV_BFLOAT16_H

#include <stdint.h>

#include "engine/op_semantics/op.h"

#define LEATI_BFLOAT16_PANEL 32

/* c (rows, columns) = f(a b + bias + addend).  a and b hold pairs of bf16, neighbours in depth: row i of a begins at
 * i * a_row, b lies in panels of LEATI_BFLOAT16_PANEL columns, of which columns is a multiple; depth counts pairs.  c and
 * addend (NULL: 0) are bf16, their rows c_row and addend_row apart.  low and high: what f, a max and a min, cuts. */
typedef struct leati_bfloat16_product {
    const uint32_t *a, *b;
    const float *bias; /* may be NULL */
    const uint16_t *addend;
    uint16_t *c;
    int64_t rows, columns, depth, a_row, c_row, addend_row;
    float low, high;
} leati_bfloat16_product;

void leati_bfloat16_multiply(const leati_bfloat16_product *p);

/* Rows of b (rows, columns) f32, b_row apart, as one panel of pairs; rows is even. */
void leati_bfloat16_pack(const float *b, int64_t b_row, int64_t rows, uint32_t *panel);

#endif
