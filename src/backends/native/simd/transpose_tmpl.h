/* SPDX-License-Identifier: Apache-2.0 */
/* Transposes squares of LEATI_LANES x LEATI_LANES elements in registers, for the code that is compiled once per
 * instruction set.  Elements are moved as bits, so their type does not matter. */
#ifndef LEATI_BACKENDS_NATIVE_SIMD_TRANSPOSE_TMPL_H
#define LEATI_BACKENDS_NATIVE_SIMD_TRANSPOSE_TMPL_H

#include "backends/native/simd/vector_tmpl.h"

/* Shuffles that interleave two vectors: ZIP_LOW takes their lower halves, ZIP_HIGH their upper halves. */
#if LEATI_LANES == 4
#define ZIP_LOW  0, 4, 1, 5
#define ZIP_HIGH 2, 6, 3, 7
#elif LEATI_LANES == 8
#define ZIP_LOW  0, 8, 1, 9, 2, 10, 3, 11
#define ZIP_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#else
#define ZIP_LOW  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define ZIP_HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#endif

/* to[i][j] = from[j][i]; the strides count elements.  Element i of row j moves to index LEATI_LANES i + j, whose
 * binary digits are those of LEATI_LANES j + i rotated by half of their number; each iteration of interleaving
 * rotates the digits by one. */
static void transpose_square(float *to, int64_t to_step, const float *from, int64_t from_step) {
    vf rows[LEATI_LANES], next[LEATI_LANES];
    for (int i = 0; i < LEATI_LANES; i++) rows[i] = v_load(from + i * from_step);
    for (int round = 1; round < LEATI_LANES; round *= 2) {
        for (int i = 0; i < LEATI_LANES / 2; i++) {
            vf a = rows[i], b = rows[i + LEATI_LANES / 2];
            next[2 * i] = __builtin_shufflevector(a, b, ZIP_LOW);
            next[2 * i + 1] = __builtin_shufflevector(a, b, ZIP_HIGH);
        }
        memcpy(rows, next, sizeof rows);
    }
    for (int i = 0; i < LEATI_LANES; i++) v_store(to + i * to_step, rows[i]);
}

/* Returns v_sum() of row r in lane r: the same additions in the same order. */
LEATI_INLINE vf v_sums(const float rows[LEATI_LANES][LEATI_LANES]) {
    float lanes[LEATI_LANES][LEATI_LANES];
    vf sum = {0};
    transpose_square(lanes[0], LEATI_LANES, rows[0], LEATI_LANES);
    for (int i = 0; i < LEATI_LANES; i++) sum += v_load(lanes[i]);
    return sum;
}

#endif
