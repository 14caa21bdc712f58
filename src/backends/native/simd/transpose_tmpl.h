/* SPDX-License-Identifier: Apache-2.0 */
/* Squares of LEATI_LANES elements turned in registers, for the code that is compiled once per instruction set.  The bits of
 * elements are moved as they are, whatever their type. */
#ifndef LEATI_BACKENDS_NATIVE_SIMD_TRANSPOSE_TMPL_H
#define LEATI_BACKENDS_NATIVE_SIMD_TRANSPOSE_TMPL_H

#include "backends/native/simd/vector_tmpl.h"

/* The elements of both, alternating: of their lower halves, and of their upper ones. */
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

/* to[i][j] = from[j][i], rows so many elements apart.  Element i of row j is moved to place LEATI_LANES i + j, whose digits in
 * base 2 are those of LEATI_LANES j + i turned by half; a round of alternating turns them by one. */
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

#endif
