/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of single kinds of changes, for image_changes.c. */
#ifndef LEATI_NN_LAYERS_PREPROCESSING_IMAGE_CHANGE_KINDS_H
#define LEATI_NN_LAYERS_PREPROCESSING_IMAGE_CHANGE_KINDS_H

#include "nn/layers/preprocessing/image_changes.h"

/* The pixel (x, y) of the result is the pixel ((a0 x + a1 y + a2) / d, (b0 x + b1 y + b2) / d) of the image, where
 * d = c0 x + c1 y + 1. */
typedef struct leati_image_map {
    float a0, a1, a2, b0, b1, b2, c0, c1;
} leati_image_map;

static inline float leati_limit(const leati_change *c, float x) {
    return x < c->lowest ? c->lowest : x > c->highest ? c->highest : x;
}

static inline bool leati_within(const leati_change *c, float x) {
    return x >= c->lowest && x <= c->highest;
}

typedef void leati_image_change(const leati_change *c, const leati_image_size *size, const float *src,
                                float *dst);
leati_image_change leati_change_colors, leati_posterize, leati_filter_image, leati_erase;
/* Compute the gradient with respect to the image.  diff_src of leati_filter_image_back contains zeros. */
void leati_change_colors_back(const leati_change *c, const leati_image_size *size, const float *src,
                              const float *diff_dst, float *diff_src);
void leati_filter_image_back(const leati_change *c, const leati_image_size *size, const float *src,
                             const float *diff_dst, float *diff_src);
void leati_erase_back(const leati_change *c, const leati_image_size *size, const float *diff_dst,
                      float *diff_src);

/* Computes the map that moves the corners by the amounts.  The map stays if no corner moves, or if there is none. */
void leati_perspective_map(const leati_change *c, const leati_image_size *size, leati_image_map *map);

/* Returns the index inside of an axis of that length; -1: the pixel has the fill value. */
int64_t leati_elastic_index(const leati_change *c, int64_t index, int64_t length);

#endif
