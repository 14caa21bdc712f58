/* SPDX-License-Identifier: Apache-2.0 */
/* The division of ops with windows into parts (parts.h).  Room: backends/onednn. */
#include "backends/onednn/parts.h"

#include <string.h>

/* The source rows under a range of rows of the result, and how much of the windows lies before and behind them. */
typedef struct source {
    leati_dnnl_range rows;
    int64_t before, after;
} source;

static source source_of(const leati_geometry *g, int axis, leati_dnnl_range rows) {
    int64_t begin = rows.begin * g->stride[axis] - g->pad_before[axis],
            end = begin + (rows.count - 1) * g->stride[axis] + (g->kernel[axis] - 1) * g->dilation[axis] + 1,
            first = begin > 0 ? begin : 0, last = end < g->in[axis] ? end : g->in[axis];
    return (source){{first, last - first}, first - begin, end - last};
}

static int64_t pixels(const int64_t size[3]) {
    return size[0] * size[1] * size[2];
}

/* Returns the first axis along which the result has several rows; -1 if its rows are not contiguous. */
static int axis_of(const leati_geometry *g) {
    for (int axis = 0; axis < 3; axis++) {
        if (g->out[axis] > 1) return axis;
        if (g->in[axis] > 1) return -1;
    }
    return -1;
}

/* True if each of `ranges` ranges of rows reads some row of the source. */
static bool ranges_have_sources(const leati_geometry *g, int axis, int64_t ranges) {
    for (int64_t i = 0; i < ranges; i++)
        if (source_of(g, axis, leati_dnnl_range_of(g->out[axis], ranges, i)).rows.count < 1) return false;
    return true;
}

/* Returns the smallest number of ranges per sample with which threads lose at most an eighth of their time waiting, or
 * the number of rows. */
static int64_t balanced_ranges(const leati_geometry *g, int axis, int threads) {
    int64_t ranges = 1;
    for (; ranges < threads && ranges < g->out[axis]; ranges++) {
        int64_t count = g->batch * ranges, left = count % threads;
        if (left == 0 || (threads - left) * 8 <= count) break;
    }
    return ranges;
}

leati_dnnl_parts leati_dnnl_divide(const leati_geometry *whole, int threads, bool rows) {
    leati_dnnl_parts parts = {.whole = whole, .axis = rows ? axis_of(whole) : -1, .ranges = 1};
    if (parts.axis >= 0) {
        int64_t ranges = balanced_ranges(whole, parts.axis, threads);
        if (ranges_have_sources(whole, parts.axis, ranges)) parts.ranges = ranges;
    }
    parts.count =
        parts.ranges > 1 ? whole->batch * parts.ranges : (whole->batch < threads ? whole->batch : threads);
    return parts;
}

leati_dnnl_part leati_dnnl_part_at(const leati_dnnl_parts *parts, int64_t index) {
    const leati_geometry *whole = parts->whole;
    leati_dnnl_part part = {.g = *whole};
    leati_dnnl_range samples = leati_dnnl_range_of(whole->batch, parts->count, index);
    if (parts->ranges > 1) samples = (leati_dnnl_range){index % whole->batch, 1};
    part.g.batch = samples.count;
    part.src = samples.begin * pixels(whole->in);
    part.dst = samples.begin * pixels(whole->out);
    if (parts->ranges > 1) {
        int axis = parts->axis;
        leati_dnnl_range rows = leati_dnnl_range_of(whole->out[axis], parts->ranges, index / whole->batch);
        source from = source_of(whole, axis, rows);
        part.g.in[axis] = from.rows.count;
        part.g.out[axis] = rows.count;
        part.g.pad_before[axis] = from.before;
        part.g.pad_after[axis] = from.after;
        part.src += from.rows.begin * (pixels(whole->in) / whole->in[axis]);
        part.dst += rows.begin * (pixels(whole->out) / whole->out[axis]);
    }
    part.g.out_pixels = part.g.batch * pixels(part.g.out);
    return part;
}

bool leati_dnnl_parts_equal(const leati_dnnl_part *a, const leati_dnnl_part *b) {
    return a->g.batch == b->g.batch && memcmp(a->g.in, b->g.in, sizeof a->g.in) == 0 &&
           memcmp(a->g.out, b->g.out, sizeof a->g.out) == 0 &&
           memcmp(a->g.pad_before, b->g.pad_before, sizeof a->g.pad_before) == 0 &&
           memcmp(a->g.pad_after, b->g.pad_after, sizeof a->g.pad_after) == 0;
}
