/* SPDX-License-Identifier: Apache-2.0 */
/* Small matrix products for attention, for the code that is compiled once per instruction set.  A tile is at most
 * LEATI_ROWS rows of the product times some vectors, kept in registers over the whole depth.  Unlike matmul's panels,
 * a panel is one vector wide, so that tiles of 2, 3 and 4 vectors share the columns evenly: heads are 32 to 64 wide. */
#ifndef LEATI_BACKENDS_NATIVE_ATTENTION_TILE_TMPL_H
#define LEATI_BACKENDS_NATIVE_ATTENTION_TILE_TMPL_H

#include <math.h>

#include "backends/native/attention/jobs.h"
#include "backends/native/matmul/tile_tmpl.h"
#include "backends/native/simd/transpose_tmpl.h"

#if LEATI_LANES == 16
#define ATTENTION_VECTORS 4
#else
#define ATTENTION_VECTORS 2
#endif

#define PACK_AHEAD      8 /* rows that are prefetched */
#define ATTENTION_LOG2E 1.44269504088896341f
#define ATTENTION_LN2   0.693147180559945309f
/* Scores are kept as multiples of log 2.  This one stands for LEATI_ATTENTION_MASKED. */
#define ATTENTION_MASKED (LEATI_ATTENTION_MASKED * ATTENTION_LOG2E)

/* c = factor a b, or c += factor a b, for any rows and vectors of c.  Element (i, k) of a is a[i * a_row + k *
 * a_depth]; b is in panels that lie b_panel floats apart.  Row i has the factor factor[i * factor_step]; scores have
 * none. */
typedef struct attention_product {
    const float *a, *b;
    float *c;
    int64_t a_row, a_depth, b_panel, c_row, depth, columns;
    const float *factor;
    int64_t factor_step;
    bool add;
    /* Of scores: NULL, or the mask of the block's first row; and the largest scores of each row so far, as a vector. */
    const float *mask;
    int64_t mask_row;
    float *largest;
} attention_product;

typedef void (*attention_tile)(const attention_product *p, int64_t row, int64_t vector);

#define EACH(i, count) _Pragma("GCC unroll 6") for (int i = 0; i < count; i++)

/* Returns x with -infinity in all lanes but the first `count`: the score of what is no key, whose weight is 0. */
LEATI_INLINE vf only_first(vf x, int64_t count) {
    static const float zeros[LEATI_LANES] = {0};
    return v_select((vi)(v_load_part_or_one(zeros, count) > v_all(0)), v_all(-INFINITY), x);
}

/* Finishes a tile of scores that go beyond the last key: masks them and adds them to the largest ones. */
static __attribute__((noinline)) void finish_scores(const attention_product *p, int64_t row, int64_t vector,
                                                    int64_t rows, int64_t vectors) {
    for (int64_t i = row; i < row + rows; i++)
        for (int64_t j = vector * LEATI_LANES; j < (vector + vectors) * LEATI_LANES; j += LEATI_LANES) {
            vf x = v_load(p->c + i * p->c_row + j);
            if (p->mask) {
                vf counts = v_load_part(p->mask + i * p->mask_row + j, p->columns - j);
                x = v_select((vi)(counts > v_all(0)), x, v_all(ATTENTION_MASKED));
            }
            x = only_first(x, p->columns - j);
            v_store(p->c + i * p->c_row + j, x);
            if (!p->largest) continue;
            float *largest = p->largest + i * LEATI_LANES;
            v_store(largest, v_max(x, v_load(largest)));
        }
}

/* Stores a tile of sums that goes beyond the last column. */
static __attribute__((noinline)) void store_edge(const attention_product *p, const float *tile, int64_t row,
                                                 int64_t vector, int64_t rows, int64_t vectors) {
    for (int64_t i = row; i < row + rows; i++)
        for (int64_t j = vector * LEATI_LANES; j < (vector + vectors) * LEATI_LANES; j += LEATI_LANES) {
            float *to = p->c + i * p->c_row + j;
            vf x = v_load(tile);
            tile += LEATI_LANES;
            if (p->add) x += v_load_part(to, p->columns - j);
            v_store_part(to, x, p->columns - j);
        }
}

LEATI_INLINE const float *float_after(const float *from, int64_t bytes) {
    return (const float *)(const void *)((const char *)from + bytes);
}

/* Computes `rows` rows of `vectors` vectors, from the given row and vector on.  A product of scores is masked.  The
 * stride of a counts bytes, or the compiler would make another loop for a stride of 1. */
LEATI_INLINE void attend_tile(const attention_product *p, int64_t row, int64_t vector, const int rows,
                              const int vectors, const bool scores) {
    vf acc[LEATI_ROWS][ATTENTION_VECTORS];
    const int64_t a_row = p->a_row, a_step = p->a_depth * (int64_t)sizeof(float), b_panel = p->b_panel,
                  c_row = p->c_row;
    const float *a = p->a + row * a_row, *b = p->b + vector * b_panel;
    float *c = p->c + row * c_row + vector * LEATI_LANES;
    EACH (i, rows)
        EACH (j, vectors) acc[i][j] = (vf){0};
    if (!scores) {
        EACH (i, rows)
            EACH (j, vectors) __builtin_prefetch(c + i * c_row + j * LEATI_LANES, 1);
    }
#pragma GCC unroll 4
    for (int64_t n = p->depth; n > 0; n--, a = float_after(a, a_step), b += LEATI_LANES) {
        vf right[ATTENTION_VECTORS];
        EACH (j, vectors) right[j] = v_load(b + j * b_panel);
        EACH (i, rows) {
            vf all = v_all(a[i * a_row]);
            EACH (j, vectors) acc[i][j] += all * right[j];
        }
    }
    if (!scores) {
        EACH (i, rows) {
            vf factor = v_all(p->factor[(row + i) * p->factor_step]);
            EACH (j, vectors) acc[i][j] *= factor;
        }
    }
    if (p->columns < (vector + vectors) * LEATI_LANES) {
        float tile[LEATI_ROWS * ATTENTION_VECTORS * LEATI_LANES], *to = scores ? c : tile;
        const int64_t step = scores ? c_row : vectors * LEATI_LANES;
        EACH (i, rows)
            EACH (j, vectors) v_store(to + i * step + j * LEATI_LANES, acc[i][j]);
        if (scores)
            finish_scores(p, row, vector, rows, vectors);
        else
            store_edge(p, tile, row, vector, rows, vectors);
        return;
    }
    if (scores && p->mask) {
        const float *mask = p->mask + row * p->mask_row + vector * LEATI_LANES;
        EACH (i, rows)
            EACH (j, vectors) {
                vf counts = v_load(mask + i * p->mask_row + j * LEATI_LANES);
                acc[i][j] = v_select((vi)(counts > v_all(0)), acc[i][j], v_all(ATTENTION_MASKED));
            }
    }
    if (scores && p->largest) {
        EACH (i, rows) {
            vf largest = v_load(p->largest + (row + i) * LEATI_LANES);
            EACH (j, vectors) largest = v_max(acc[i][j], largest);
            v_store(p->largest + (row + i) * LEATI_LANES, largest);
        }
    }
    if (!scores && p->add) {
        EACH (i, rows)
            EACH (j, vectors) acc[i][j] += v_load(c + i * c_row + j * LEATI_LANES);
    }
    EACH (i, rows)
        EACH (j, vectors) v_store(c + i * c_row + j * LEATI_LANES, acc[i][j]);
}

#undef EACH

#define ATTENTION_TILE(rows, vectors)                                                                        \
    static __attribute__((noinline)) void attend_scores_##rows##_##vectors(const attention_product *p,       \
                                                                           int64_t row, int64_t vector) {    \
        attend_tile(p, row, vector, rows, vectors, true);                                                    \
    }                                                                                                        \
    static __attribute__((noinline)) void attend_sums_##rows##_##vectors(const attention_product *p,         \
                                                                         int64_t row, int64_t vector) {      \
        attend_tile(p, row, vector, rows, vectors, false);                                                   \
    }
#define ATTENTION_TILES(vectors)                                                                             \
    ATTENTION_TILE(1, vectors)                                                                               \
    ATTENTION_TILE(2, vectors)                                                                               \
    ATTENTION_TILE(3, vectors)                                                                               \
    ATTENTION_TILE(4, vectors)                                                                               \
    ATTENTION_TILE(5, vectors)                                                                               \
    ATTENTION_TILE(6, vectors)
#define ATTENTION_ROW_OF_TILES(what, vectors)                                                                \
    {                                                                                                        \
        NULL, attend_##what##_1_##vectors, attend_##what##_2_##vectors, attend_##what##_3_##vectors,         \
            attend_##what##_4_##vectors, attend_##what##_5_##vectors, attend_##what##_6_##vectors            \
    }

ATTENTION_TILES(1)
ATTENTION_TILES(2)
#if ATTENTION_VECTORS == 4
ATTENTION_TILES(3)
ATTENTION_TILES(4)
#endif

/* By vectors, then by rows. */
static const attention_tile attend_scores[ATTENTION_VECTORS + 1][LEATI_ROWS + 1] = {
    {NULL},
    ATTENTION_ROW_OF_TILES(scores, 1),
    ATTENTION_ROW_OF_TILES(scores, 2),
#if ATTENTION_VECTORS == 4
    ATTENTION_ROW_OF_TILES(scores, 3),
    ATTENTION_ROW_OF_TILES(scores, 4),
#endif
};
static const attention_tile attend_sums[ATTENTION_VECTORS + 1][LEATI_ROWS + 1] = {
    {NULL},
    ATTENTION_ROW_OF_TILES(sums, 1),
    ATTENTION_ROW_OF_TILES(sums, 2),
#if ATTENTION_VECTORS == 4
    ATTENTION_ROW_OF_TILES(sums, 3),
    ATTENTION_ROW_OF_TILES(sums, 4),
#endif
};

#undef ATTENTION_ROW_OF_TILES
#undef ATTENTION_TILES
#undef ATTENTION_TILE

/* Some things in a row, shared among as few groups of at most `most` as possible, as evenly as possible: group i begins
 * with number even_share(i). */
typedef struct even_groups {
    int64_t count, size, larger; /* the first `larger` groups have one more */
} even_groups;

LEATI_INLINE even_groups even_groups_of(int64_t things, int64_t most) {
    const int64_t count = (things + most - 1) / most;
    if (count == 0) return (even_groups){0};
    return (even_groups){.count = count, .size = things / count, .larger = things % count};
}

LEATI_INLINE int64_t even_start(const even_groups *g, int64_t i) {
    return i * g->size + (i < g->larger ? i : g->larger);
}

/* Computes all tiles of a product that is no scores. */
static void attend_product(const attention_product *p, int64_t rows) {
    const even_groups down = even_groups_of(rows, LEATI_ROWS),
                      across =
                          even_groups_of((p->columns + LEATI_LANES - 1) / LEATI_LANES, ATTENTION_VECTORS);
    for (int64_t g = 0; g < across.count; g++) {
        const int64_t vector = even_start(&across, g);
        const attention_tile *tiles = attend_sums[even_start(&across, g + 1) - vector];
        for (int64_t i = 0, row = 0, next; i < down.count; i++, row = next) {
            next = even_start(&down, i + 1);
            tiles[next - row](p, row, vector);
        }
    }
}

/* Packs b (rows, columns), whose rows are b_row apart, into panels. */
static void pack_rows(const float *b, int64_t b_row, int64_t rows, int64_t columns, float *panels) {
    for (int64_t i = 0; i < rows; i++, b += b_row, panels += LEATI_LANES)
        for (int64_t j = 0; j < columns; j += LEATI_LANES) {
            __builtin_prefetch(b + PACK_AHEAD * b_row + j);
            v_store(panels + j * rows, v_load_part(b + j, columns - j));
        }
}

/* Packs the transpose of factor b (rows, columns), whose rows are b_row apart, into panels of the columns rounded up to
 * whole vectors; zeros fill the last panel and the added rows. */
static void pack_across(const float *b, int64_t b_row, int64_t rows, int64_t columns, float factor,
                        float *panels) {
    float part[LEATI_LANES * LEATI_LANES];
    for (int64_t i = 0; i < rows; i += LEATI_LANES)
        for (int64_t j = 0; j < columns; j += LEATI_LANES, panels += LEATI_LANES * LEATI_LANES) {
            for (int64_t x = 0; x < LEATI_LANES; x++)
                v_store(part + x * LEATI_LANES,
                        i + x < rows ? v_load_part(b + (i + x) * b_row + j, columns - j) * factor : (vf){0});
            transpose_square(panels, LEATI_LANES, part, LEATI_LANES);
        }
}

/* Folds each of `rows` vectors into one number of `to`: rows is a multiple of LEATI_LANES.  In each iteration, pairs of
 * vectors become one that has both of their lanes alternately, which is the order of transpose_square(). */
#define FOLD_ROWS_OF_LANES(name, FOLD)                                                                       \
    static void name(const float *from, int64_t rows, float *to) {                                           \
        for (int64_t row = 0; row < rows; row += LEATI_LANES, from += LEATI_LANES * LEATI_LANES) {           \
            vf x[LEATI_LANES];                                                                               \
            for (int i = 0; i < LEATI_LANES; i++) x[i] = v_load(from + i * LEATI_LANES);                     \
            _Pragma("GCC unroll 4") for (int half = LEATI_LANES / 2; half > 0; half /= 2)                    \
                _Pragma("GCC unroll 8") for (int i = 0; i < half; i++) {                                     \
                const vf a = x[i], b = x[i + half];                                                          \
                x[i] =                                                                                       \
                    FOLD(__builtin_shufflevector(a, b, ZIP_LOW), __builtin_shufflevector(a, b, ZIP_HIGH));   \
            }                                                                                                \
            v_store(to + row, x[0]);                                                                         \
        }                                                                                                    \
    }
#define ADD(a, b) ((a) + (b))
FOLD_ROWS_OF_LANES(largest_of_rows, v_max)
FOLD_ROWS_OF_LANES(sums_of_rows, ADD)
#undef ADD
#undef FOLD_ROWS_OF_LANES

/* 2^x within 2 units in the last place, for x < 128; 0 where the result would be subnormal.  A minimax polynomial in
 * the difference from the nearest integer. */
LEATI_INLINE vf v_exp2_below(vf x) {
    const float shift = 12582912.0f + 127; /* v_exp() explains it; the exponents of floats are 127 higher */
    vf limited = v_max(x, v_all(-126.0f)), shifted = limited + shift, r = limited - (shifted - shift);
    vf p = r * 1.3264746e-3f + 9.6715204e-3f;
    p = p * r + 5.5507338e-2f;
    p = p * r + 2.4022242e-1f;
    p = p * r + 6.9314698e-1f;
    p = p * r + 1.0f;
    return (vf)(~(vi)(x < v_all(-126.0f)) & (vi)(p * (vf)((vi)shifted << 23)));
}

#endif
