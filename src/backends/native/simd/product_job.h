/* SPDX-License-Identifier: Apache-2.0 */
/* What the products of backends/native hand to the code that is compiled once per instruction set. */
#ifndef LEATI_BACKENDS_NATIVE_SIMD_PRODUCT_JOB_H
#define LEATI_BACKENDS_NATIVE_SIMD_PRODUCT_JOB_H

#include "engine/op_semantics/geometry.h"

/* c (rows, columns) = f(a b + from + bias).  Element (i, k) of a is a[i * a_row + k * a_depth].  b lies in panels of
 * isa->panel columns, the last one with zeros behind its columns.  from (NULL: 0), rows from_row apart, may be c. */
typedef struct leati_product {
    const float *a, *b, *from, *bias;
    float *c;
    int64_t rows, columns, depth, a_row, a_depth, b_panel, c_row, from_row;
    const leati_eltwise *f; /* NULL: none */
} leati_product;

/* Winograd's F(2x2, 3x3) and F(4x4, 3x3) (Lavin and Gray, "Fast algorithms for convolutional neural networks", 2016): a tile
 * is `size` x `size` pixels of the destination, which depend on (size + 2)^2 of the source.  As many numbers stand for either,
 * at places 0 to 15 or 35, and the convolution is a product of matrices at each place: 16 multiplications for what takes 36,
 * or 36 for 144.  Tiles are numbered along rows, images. */
typedef struct leati_winograd {
    const leati_geometry *g;
    int64_t size;        /* 2 or 4 */
    int64_t first, last; /* tiles */
    const void *image;   /* what is read */
    const float *zeros;  /* as many as it has channels */
    bool narrow;         /* image, addend and dst are bf16 */
    float *parts;        /* of tile `first` on; element (place, group, tile, channel of the group) */
    int64_t by_place, by_group, group;
    int64_t from, columns; /* winograd_result: the filters, of which parts has `columns` */
    const float *bias;
    const void *addend;
    const leati_eltwise *f;
    void *dst;
} leati_winograd;

/* Of rows first to last - 1 of the depth: weights (9, depth, columns) to panels (place, columns / panel, depth, panel); or, for
 * their gradient, back from sums (place, depth, columns). */
typedef struct leati_winograd_weights {
    int64_t size, depth, columns, first, last;
    float *weights, *packed;
} leati_winograd_weights;

static inline int64_t leati_winograd_places(int64_t size) {
    return (size + 2) * (size + 2);
}

static inline int64_t leati_winograd_tiles(const leati_geometry *g, int64_t size) {
    return g->batch * ((g->out[1] + size - 1) / size) * ((g->out[2] + size - 1) / size);
}

#endif
