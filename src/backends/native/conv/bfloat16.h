/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bf16 matrices with f32 sums by AVX512_BF16, which multiplies and adds two pairs at once; for the
 * convolutions of backends/native. */
#ifndef LEATI_BACKENDS_NATIVE_CONV_BFLOAT16_H
#define LEATI_BACKENDS_NATIVE_CONV_BFLOAT16_H

#include <stdint.h>

#include "engine/op_semantics/op.h"

#define LEATI_BFLOAT16_PANEL 32

/* c (rows, columns) = f(a b + bias + addend), where f clamps to [low, high].  a and b hold pairs of bf16 that are
 * neighbours in depth, and depth counts pairs.  Row i of a begins at i * a_row; b is packed in panels of
 * LEATI_BFLOAT16_PANEL columns, of which columns is a multiple.  c and addend (NULL: 0) are bf16, with rows c_row
 * and addend_row apart. */
typedef struct leati_bfloat16_product {
    const uint32_t *a, *b;
    const float *bias; /* may be NULL */
    const uint16_t *addend;
    uint16_t *c;
    int64_t rows, columns, depth, a_row, c_row, addend_row;
    float low, high;
} leati_bfloat16_product;

void leati_bfloat16_multiply(const leati_bfloat16_product *p);

/* Packs LEATI_BFLOAT16_PANEL columns of b (rows, ...) f32, whose rows are b_row apart, into one panel of pairs;
 * rows is even. */
void leati_bfloat16_pack(const float *b, int64_t b_row, int64_t rows, uint32_t *panel);

#endif
