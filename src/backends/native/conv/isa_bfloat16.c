/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bf16 matrices for x86-64 with AVX512_BF16.  A tile of 12 rows and 2 vectors of sums stays in
 * registers over the whole depth.  Room: backends/native. */
#include <immintrin.h>

#include "backends/native/conv/bfloat16.h"
#include "tensor/bfloat16.h"

#define ROWS 12
#define FAST static inline __attribute__((always_inline))

FAST __m512 load_as_f32(const uint16_t *from) {
    __m256i bits = _mm256_loadu_si256((const __m256i *)(const void *)from);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

FAST void tile(const leati_bfloat16_product *p, int64_t row, int64_t column, const int rows) {
    __m512 sum[ROWS][2];
    const uint32_t *a = p->a + row * p->a_row, *b = p->b + column * p->depth;
    const int64_t a_row = p->a_row;
    for (int j = 0; j < 2; j++) {
        __m512 start = p->bias ? _mm512_loadu_ps(p->bias + column + 16 * j) : _mm512_setzero_ps();
        for (int i = 0; i < rows; i++) sum[i][j] = start;
    }
    for (int64_t k = p->depth; k > 0; k--, a++, b += LEATI_BFLOAT16_PANEL) {
        __m512bh left, right[2];
        for (int j = 0; j < 2; j++) right[j] = (__m512bh)_mm512_loadu_si512(b + 16 * j);
        for (int i = 0; i < rows; i++) {
            left = (__m512bh)_mm512_set1_epi32((int)a[i * a_row]);
            for (int j = 0; j < 2; j++) sum[i][j] = _mm512_dpbf16_ps(sum[i][j], left, right[j]);
        }
    }
    const __m512 low = _mm512_set1_ps(p->low), high = _mm512_set1_ps(p->high);
    for (int i = 0; i < rows; i++) {
        if (p->addend)
            for (int j = 0; j < 2; j++)
                sum[i][j] = _mm512_add_ps(sum[i][j], load_as_f32(p->addend + (row + i) * p->addend_row +
                                                                 column + 16 * j));
        for (int j = 0; j < 2; j++) /* NaN stays */
            sum[i][j] = _mm512_min_ps(high, _mm512_max_ps(low, sum[i][j]));
        __m512bh bits = _mm512_cvtne2ps_pbh(sum[i][1], sum[i][0]);
        _mm512_storeu_si512(p->c + (row + i) * p->c_row + column, (__m512i)bits);
    }
}

#define TILE(rows)                                                                                           \
    static __attribute__((noinline)) void tile_##rows(const leati_bfloat16_product *p, int64_t row,          \
                                                      int64_t column) {                                      \
        tile(p, row, column, rows);                                                                          \
    }
TILE(1)
TILE(2)
TILE(3)
TILE(4)
TILE(5)
TILE(6)
TILE(7)
TILE(8)
TILE(9)
TILE(10)
TILE(11)
TILE(12)
#undef TILE

void leati_bfloat16_multiply(const leati_bfloat16_product *p) {
    static void (*const tiles[])(const leati_bfloat16_product *, int64_t,
                                 int64_t) = {NULL,   tile_1, tile_2, tile_3,  tile_4,  tile_5, tile_6,
                                             tile_7, tile_8, tile_9, tile_10, tile_11, tile_12};
    int64_t blocks = (p->rows + ROWS - 1) / ROWS, size = p->rows / blocks,
            larger = p->rows % blocks * (size + 1);
    for (int64_t column = 0; column < p->columns; column += LEATI_BFLOAT16_PANEL)
        for (int64_t row = 0, n; row < p->rows; row += n) {
            n = size + (row < larger);
            tiles[n](p, row, column);
        }
}

void leati_bfloat16_pack(const float *b, int64_t b_row, int64_t rows, uint32_t *panel) {
    for (int64_t k = 0; k < rows; k += 2, panel += LEATI_BFLOAT16_PANEL)
        for (int64_t j = 0; j < LEATI_BFLOAT16_PANEL; j++)
            panel[j] = leati_bfloat16_of_float(b[k * b_row + j]) |
                       (uint32_t)leati_bfloat16_of_float(b[(k + 1) * b_row + j]) << 16;
}
