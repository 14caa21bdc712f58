/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of the convolution kernels that exist once per instruction set (winograd_tmpl.h, few_filters_tmpl.h,
 * grouped_tmpl.h, depthwise_forward_tmpl.h, depthwise_tmpl.h). */
#ifndef LEATI_BACKENDS_NATIVE_CONV_JOBS_H
#define LEATI_BACKENDS_NATIVE_CONV_JOBS_H

#include "engine/op_semantics/geometry.h"

/* Winograd's F(2x2, 3x3) and F(4x4, 3x3) (Lavin and Gray, "Fast algorithms for convolutional neural networks",
 * 2016).  A tile is `size` x `size` pixels of the destination, which depend on (size + 2)^2 pixels of the source.
 * Source, weights and destination are transformed into (size + 2)^2 elements per tile and channel; the convolution
 * is then one matrix product per element: 16 multiplications instead of 36, or 36 instead of 144.  Tiles are
 * numbered along a row, then the rows, then the images.
 *
 * For windows of one axis with 3 or 5 taps, a tile is 4 pixels of a line: F(4, 3) and F(4, 5) have 6 multiplications
 * instead of 12, and 8 instead of 20.
 *
 * With a dilation d the pixels of a tile are d apart, in the source and in the destination, so that the window has no
 * gaps among them: along an axis, d tiles that begin at neighbouring pixels cover d * size pixels. */
typedef struct leati_winograd {
    const leati_geometry *g;
    int64_t size;        /* 2 or 4; 4 for windows of one axis */
    int64_t first, last; /* tiles */
    const void *image;   /* the image that is read */
    const float *zeros;  /* (channels of the image) */
    bool bf16;           /* image, addend and dst are bf16 */
    /* transformed tiles from `first` on: (element, group of channels, tile, channel of the group) */
    float *transformed;
    int64_t element_stride, group_stride; /* strides of `transformed`, in floats */
    int64_t group;                        /* channels of a group */
    /* winograd_result: the filters of `transformed` are `first_filter` to first_filter + columns - 1 */
    int64_t first_filter, columns;
    const float *bias;
    const void *addend;
    const leati_eltwise *f;
    void *dst;
    float *sums; /* winograd_diff: the tiles' pixels are added to it, filter by filter; may be NULL */
} leati_winograd;

/* Columns whose transformed weights lie together, and for which all elements are multiplied before the next ones. */
#define LEATI_WINOGRAD_COLUMNS 64

/* For rows first to last - 1 of the depth: transforms weights (taps, depth, columns) into panels (columns /
 * LEATI_WINOGRAD_COLUMNS, element, LEATI_WINOGRAD_COLUMNS / panel, depth, panel), of which the last columns may have
 * fewer; or, for their gradient, transforms sums (element, depth, columns) back into weights. */
typedef struct leati_winograd_weights {
    int64_t size, elements, taps, depth, columns, first, last;
    float *weights, *packed;
} leati_winograd_weights;

/* True for a window of one axis. */
static inline bool leati_winograd_is_line(const leati_geometry *g) {
    return g->kernel[1] == 1;
}

static inline int64_t leati_winograd_elements(const leati_geometry *g, int64_t size) {
    return leati_winograd_is_line(g) ? size + g->kernel[2] - 1 : (size + 2) * (size + 2);
}

/* Returns the height of a tile, in pixels. */
static inline int64_t leati_winograd_height(const leati_geometry *g, int64_t size) {
    return leati_winograd_is_line(g) ? 1 : size;
}

/* Returns the tiles of `size` pixels along an axis of the destination. */
static inline int64_t leati_winograd_tiles_along(const leati_geometry *g, int axis, int64_t size) {
    int64_t dilation = g->dilation[axis], pixels = dilation * size;
    return (g->out[axis] + pixels - 1) / pixels * dilation;
}

/* Returns the first pixel of tile `tile` along an axis. */
static inline int64_t leati_winograd_first(const leati_geometry *g, int axis, int64_t size, int64_t tile) {
    int64_t dilation = g->dilation[axis];
    return tile / dilation * dilation * size + tile % dilation;
}

static inline int64_t leati_winograd_tiles(const leati_geometry *g, int64_t size) {
    return g->batch * leati_winograd_tiles_along(g, 1, leati_winograd_height(g, size)) *
           leati_winograd_tiles_along(g, 2, size);
}

/* The rows first_row to last_row - 1 of a convolution, numbered over all samples; of these the filters first_filter to
 * last_filter - 1.  With 1 to 4 filters all are computed, and the weights of each filter, (taps, channels), lie
 * together.  With groups of a few channels and filters these are whole vectors of filters, and the weights of each
 * vector, (taps, channels of a group, lanes), lie together. */
typedef struct leati_conv_rows {
    const leati_geometry *g;
    const float *src, *packed, *bias, *addend; /* bias and addend may be NULL */
    const leati_eltwise *f;                    /* may be NULL */
    float *dst;
    int64_t first_row, last_row, first_filter, last_filter;
} leati_conv_rows;

/* Adds what the rows first_row to last_row - 1 give to the gradients with respect to weights and bias of such a
 * convolution. */
typedef struct leati_conv_rows_bwd {
    const leati_geometry *g;
    const float *src, *diff_dst;
    float *sums; /* (taps, channels of a group, filters); with 1 to 4 filters (filters, taps, channels) */
    float *bias; /* (filters); may be NULL */
    int64_t first_row, last_row;
} leati_conv_rows_bwd;

/* The rows first_row to last_row - 1 of a depthwise convolution with one filter per channel, numbered over all samples;
 * of these the vectors first_vector to last_vector - 1 of each pixel.  dst and addend begin with row `origin`. */
typedef struct leati_depthwise {
    const leati_geometry *g;
    const float *src, *packed, *addend /* may be NULL */;
    const leati_eltwise *f; /* may be NULL */
    float *dst;
    int64_t origin, first_row, last_row, first_vector, last_vector;
} leati_depthwise;

/* A gradient of a depthwise convolution with one filter per channel.  For the gradient with respect to the source,
 * first and last bound the samples; for the gradient with respect to the weights they bound the channels. */
typedef struct leati_depthwise_bwd {
    const leati_geometry *geometry;
    const float *src, *diff_dst, *weights;
    float *diff_src, *diff_weights, *diff_bias /* may be NULL */;
    int64_t first, last;
} leati_depthwise_bwd;
/* channels whose sums are kept in registers; threads share the channels in multiples of it */
#define LEATI_DEPTHWISE_CHANNELS 32

#endif
