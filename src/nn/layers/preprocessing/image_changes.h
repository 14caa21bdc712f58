/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of one image that current Keras's Random* layers make in training, with Keras's formulas for given random
 * numbers.  Images are (height, width, channels). */
#ifndef LEATI_NN_LAYERS_PREPROCESSING_IMAGE_CHANGES_H
#define LEATI_NN_LAYERS_PREPROCESSING_IMAGE_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

typedef enum leati_change_kind {
    LEATI_ROTATE,    /* amount[0]: degrees */
    LEATI_TRANSLATE, /* amount[0]: rows, amount[1]: columns */
    LEATI_ZOOM,      /* amount[0]: factor of the height, amount[1]: factor of the width */
    LEATI_SHEAR,     /* amount[0]: rows for each column, amount[1]: columns for each row */
    LEATI_CONTRAST,  /* amount[0]: factor of the distance from the mean of the channel */
    LEATI_BRIGHTEN,  /* amount[0]: the addend */
    LEATI_INVERT,    /* amount[0]: 1: values are subtracted from `highest`; 0: nothing changes */
    LEATI_FADE       /* amount[0]: share of the grey image; of images of 3 channels */
} leati_change_kind;

/* How pixels outside of the image are filled, in the order of the names in random_images.c. */
enum { LEATI_FILL_REFLECT, LEATI_FILL_WRAP, LEATI_FILL_CONSTANT, LEATI_FILL_NEAREST };

typedef struct leati_change {
    leati_change_kind kind;
    int32_t fill_mode; /* ROTATE, TRANSLATE, ZOOM, SHEAR */
    bool bilinear;     /* otherwise nearest */
    float fill_value;
    float lowest, highest; /* CONTRAST, BRIGHTEN, FADE: the limits of values */
    float amount[2];
} leati_change;

typedef struct leati_image_size {
    int64_t height, width, channels;
} leati_image_size;

/* Computes the changed image. */
void leati_change_image(const leati_change *change, const leati_image_size *size, const float *src,
                        float *dst);
/* Computes the gradient with respect to the image. */
void leati_change_image_back(const leati_change *change, const leati_image_size *size, const float *src,
                             const float *diff_dst, float *diff_src);

#endif
