/* SPDX-License-Identifier: Apache-2.0 */
/* Images of another size, as tf.image.resize makes them: one product with a constant matrix for each axis. */
#ifndef LEATI_NN_LAYERS_OPERATIONS_RESAMPLE_H
#define LEATI_NN_LAYERS_OPERATIONS_RESAMPLE_H

#include <stdbool.h>

#include "engine/graph/build.h"

enum {
    LEATI_RESIZE_BILINEAR,
    LEATI_RESIZE_NEAREST,
    LEATI_RESIZE_BICUBIC,
    LEATI_RESIZE_LANCZOS3,
    LEATI_RESIZE_LANCZOS5,
    LEATI_RESIZE_AREA
};
extern const char *const leati_interpolations[]; /* Keras's names in this order; NULL at the end */

typedef struct leati_resize {
    int32_t interpolation;
    bool antialias; /* smaller images: wider kernels; nearest and area have no effect */
    bool crop, pad; /* keep the aspect ratio: cut the image, or add `fill` around it, first */
    double fill;
    int64_t height, width;
} leati_resize;

/* Resizes an image (N, H, W, C) of type f32.  The graph keeps failures. */
leati_value leati_resize_image(leati_graph *g, leati_value x, const leati_resize *resize);

#endif
