/* SPDX-License-Identifier: Apache-2.0 */
/* Images of 1 to 3 spatial axes: data_format, padding and sliding windows, for all layers that have them.  Ops know
 * (N, spatial..., C) alone, so channels_first layers look at their shapes, and compute, between two transposes. */
#ifndef LEATI_NN_LAYERS_SPATIAL_H
#define LEATI_NN_LAYERS_SPATIAL_H

#include "nn/layers/common_fields.h"

enum { LEATI_CHANNELS_LAST, LEATI_CHANNELS_FIRST };
enum { LEATI_PADDING_VALID, LEATI_PADDING_SAME, LEATI_PADDING_CAUSAL };
extern const char *const leati_data_formats[];
extern const char *const leati_paddings[], *const leati_causal_paddings[]; /* valid, same; and causal */

#define LEATI_DATA_FORMAT_ROW(config)                                                                        \
    LEATI_CHOICE_ROW(config, data_format, leati_data_formats, "\"channels_last\"")
#define LEATI_LATER_DATA_FORMAT_ROW(config)                                                                  \
    {                                                                                                        \
        .key = "data_format", .kind = LEATI_FIELD_CHOICE, .offset = offsetof(config, data_format),           \
        .preset = "\"channels_last\"", .choices = leati_data_formats, .later = true                          \
    }
#define LEATI_PADDING_ROW(config) LEATI_CHOICE_ROW(config, padding, leati_paddings, "\"valid\"")

/* How a window moves; it has as many axes as `kernel` has numbers. */
typedef struct leati_slide {
    const leati_ints *kernel, *strides, *dilation; /* dilation: NULL for none */
    int32_t padding;
} leati_slide;

/* The shape as (N, spatial..., C).  Errors: LEAT_ESHAPE unless the rank is spatial + 2. */
leat_status leati_image_shape(const leati_shape *shape, int spatial, int32_t data_format, leati_shape *out,
                              leat_error *err);
/* (N, spatial..., C) as the layer gives it. */
leati_shape leati_image_shape_back(const leati_shape *shape, int32_t data_format);

/* Where the layer has its spatial axes: the first, and all as bits. */
int leati_image_first_axis(int32_t data_format);
uint32_t leati_image_axes(int spatial, int32_t data_format);

/* The same of values, at any rank above 2 (channels are axis 1 or the last). */
leati_value leati_image_value(leati_graph *graph, leati_value x, int32_t data_format);
leati_value leati_image_value_back(leati_graph *graph, leati_value x, int32_t data_format);

/* The spatial sizes that a window makes of those of a (N, spatial..., C); unknown ones stay so.
 * Errors: LEAT_ESHAPE a window that is larger than the image. */
leat_status leati_slide_infer(const leati_slide *slide, leati_shape *image, leat_error *err);

/* The same of a transposed convolution, whose window makes the image's sizes of the new ones.  output_padding: NULL or a
 * count of -1 where the layer finds it.  Errors: LEAT_ESHAPE where no window of this padding makes them so. */
leat_status leati_slide_infer_transposed(const leati_slide *slide, const leati_ints *output_padding,
                                         leati_shape *image, leat_error *err);

/* The window for an image of known size: with "same", the odd row or column of padding is at the end. */
leati_window leati_slide_window(const leati_slide *slide, const leati_desc *image);

#endif
