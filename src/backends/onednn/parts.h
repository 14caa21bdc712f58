/* SPDX-License-Identifier: Apache-2.0 */
/* How the work of an op with a window is divided among the tasks of the thread pool.  A part is a range of samples, or
 * a range of rows of the result of one sample: positions along the outermost spatial axis that has more than one.  In
 * memory its source and its result are contiguous, and it is an op of its own, which has the padding that its rows
 * touch. */
#ifndef LEATI_BACKENDS_ONEDNN_PARTS_H
#define LEATI_BACKENDS_ONEDNN_PARTS_H

#include "engine/op_semantics/geometry.h"

typedef struct leati_dnnl_range {
    int64_t begin, count;
} leati_dnnl_range;

/* Returns range `index` of `ranges` ranges that divide `total` as equally as possible, larger ones first. */
static inline leati_dnnl_range leati_dnnl_range_of(int64_t total, int64_t ranges, int64_t index) {
    int64_t size = total / ranges, larger = total % ranges;
    return (leati_dnnl_range){index * size + (index < larger ? index : larger), size + (index < larger)};
}

typedef struct leati_dnnl_parts {
    const leati_geometry *whole;
    int axis;       /* of the rows */
    int64_t ranges; /* of rows in each sample; 1: the parts are ranges of samples */
    int64_t count;
} leati_dnnl_parts;

typedef struct leati_dnnl_part {
    leati_geometry g;
    int64_t src, dst; /* pixels of the source and of the result before the part's own */
} leati_dnnl_part;

/* Divides an op into at least `threads` parts if it has as many samples or rows, so that each thread gets almost as
 * much as another.  rows: parts may be ranges of rows.  *whole must live as long as the result. */
leati_dnnl_parts leati_dnnl_divide(const leati_geometry *whole, int threads, bool rows);

/* Returns part `index`.  Parts of equal geometry are neighbours. */
leati_dnnl_part leati_dnnl_part_at(const leati_dnnl_parts *parts, int64_t index);

/* True if two parts of an op have the same geometry. */
bool leati_dnnl_parts_equal(const leati_dnnl_part *a, const leati_dnnl_part *b);

#endif
