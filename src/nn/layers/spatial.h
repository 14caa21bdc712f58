/* SPDX-License-Identifier: Apache-2.0 */
/* Images of 1 to 3 spatial axes: data_format, padding and sliding windows, for all layers that have them.  Ops only
 * support (N, spatial..., C); so a layer with channels_first transposes its input and its output. */
#ifndef LEATI_NN_LAYERS_SPATIAL_H
#define LEATI_NN_LAYERS_SPATIAL_H

#include "nn/layers/common_fields.h"

enum { LEATI_CHANNELS_LAST, LEATI_CHANNELS_FIRST };
enum { LEATI_PADDING_VALID, LEATI_PADDING_SAME, LEATI_PADDING_CAUSAL };
extern const char *const leati_data_formats[];
extern const char *const leati_paddings[], *const leati_causal_paddings[]; /* valid, same; and causal */

#define LEATI_DATA_FORMAT_FIELD(config)                                                                      \
    LEATI_CHOICE_FIELD(config, data_format, leati_data_formats, "\"channels_last\"")
#define LEATI_LATER_DATA_FORMAT_FIELD(config)                                                                \
    {                                                                                                        \
        .key = "data_format", .kind = LEATI_FIELD_CHOICE, .offset = offsetof(config, data_format),           \
        .preset = "\"channels_last\"", .choices = leati_data_formats, .later = true                          \
    }
#define LEATI_PADDING_FIELD(config) LEATI_CHOICE_FIELD(config, padding, leati_paddings, "\"valid\"")

/* The movement of a window; the number of axes is kernel->count. */
typedef struct leati_slide {
    const leati_ints *kernel, *strides, *dilation; /* dilation: NULL for none */
    int32_t padding;
} leati_slide;

/* Returns the shape as (N, spatial..., C).  Errors: LEAT_ESHAPE the rank is not spatial + 2. */
leat_status leati_image_shape(const leati_shape *shape, int spatial, int32_t data_format, leati_shape *out,
                              leat_error *err);
/* Returns a shape (N, spatial..., C) in the layer's data_format. */
leati_shape leati_image_shape_back(const leati_shape *shape, int32_t data_format);

/* Return the first spatial axis in the layer's data_format, and all spatial axes as bits. */
int leati_image_first_axis(int32_t data_format);
uint32_t leati_image_axes(int spatial, int32_t data_format);

/* Transpose a value to (N, spatial..., C) and back, at any rank above 2 (channels are axis 1 or the last axis). */
leati_value leati_image_value(leati_graph *graph, leati_value x, int32_t data_format);
leati_value leati_image_value_back(leati_graph *graph, leati_value x, int32_t data_format);

/* Replaces the spatial sizes of an image (N, spatial..., C) by those after the window; unknown sizes stay unknown.
 * Errors: LEAT_ESHAPE the window is larger than the image. */
leat_status leati_slide_infer(const leati_slide *slide, leati_shape *image, leat_error *err);

/* Replaces the spatial sizes of an image by those of the output of a transposed convolution: the window makes the
 * image's sizes from them.  output_padding: NULL, or a count of -1, if the layer chooses it.
 * Errors: LEAT_ESHAPE the output_padding gives an output from which the window does not make the image's sizes. */
leat_status leati_slide_infer_transposed(const leati_slide *slide, const leati_ints *output_padding,
                                         leati_shape *image, leat_error *err);

/* Returns the window for an image of known size.  If padding "same" is odd, the extra element is at the end. */
leati_window leati_slide_window(const leati_slide *slide, const leati_desc *image);

#endif
