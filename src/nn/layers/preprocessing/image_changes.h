/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of one image that current Keras's Random* layers make in training, with Keras's formulas for given random
 * numbers.  Images are (height, width, channels). */
#ifndef LEATI_NN_LAYERS_PREPROCESSING_IMAGE_CHANGES_H
#define LEATI_NN_LAYERS_PREPROCESSING_IMAGE_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

typedef enum leati_change_kind {
    LEATI_ROTATE,     /* amount[0]: degrees */
    LEATI_TRANSLATE,  /* amount[0]: rows, amount[1]: columns */
    LEATI_ZOOM,       /* amount[0]: factor of the height, amount[1]: factor of the width */
    LEATI_SHEAR,      /* amount[0]: rows for each column, amount[1]: columns for each row */
    LEATI_CONTRAST,   /* amount[0]: factor of the distance from the mean of the channel */
    LEATI_BRIGHTEN,   /* amount[0]: the addend */
    LEATI_INVERT,     /* amount[0]: 1: values are subtracted from `highest`; 0: nothing changes */
    LEATI_FADE,       /* amount[0]: share of the grey image; of images of 3 channels */
    LEATI_HUE,        /* amount[0]: turns of the colour wheel; of images of 3 channels */
    LEATI_SATURATION, /* amount[0]: factor; of images of 3 channels */
    LEATI_POSTERIZE,  /* amount[0]: bits of a byte that become 0 */
    LEATI_SHARPEN,    /* amount[0]: 0: smooth, 0.5: nothing changes, 1: sharp */
    LEATI_BLUR,       /* amount[0]: 1: the image is blurred; amount[1], [2]: sigma of lines and of columns */
    LEATI_ERASE, /* amount[0]: 1: erased; amount[1] to [4]: x0, x1, y0, y1; amount[5]: key of the noise */
    LEATI_PERSPECTIVE, /* amount[0] to [7]: relative shifts in x and y of the 4 corners, line by line */
    LEATI_ELASTIC      /* amount[0]: 1: distorted; amount[1]: factor; amount[2]: key of the noise */
} leati_change_kind;

/* How pixels outside of the image are filled, in the order of the names in random_images.c. */
enum {
    LEATI_FILL_REFLECT,
    LEATI_FILL_WRAP,
    LEATI_FILL_CONSTANT,
    LEATI_FILL_NEAREST,
    LEATI_FILL_MIRROR /* only of ELASTIC */
};

#define LEATI_CHANGE_AMOUNTS 8
#define LEATI_MOST_TAPS      31 /* of a side of the kernel of BLUR */

typedef struct leati_change {
    leati_change_kind kind;
    int32_t fill_mode; /* ROTATE, TRANSLATE, ZOOM, SHEAR, ELASTIC */
    bool bilinear;     /* otherwise nearest */
    float fill_value;
    float lowest, highest; /* the limits of values; not of changes that move pixels, except ELASTIC */
    int32_t taps[2];       /* BLUR: columns and rows of the kernel */
    int32_t fill_count;    /* ERASE: 0: noise fills the box, 1: fills[0], 3: a value for each channel */
    float fills[3];
    const float *field; /* ELASTIC: (height, width), the displacement of each pixel in x and in y */
    float amount[LEATI_CHANGE_AMOUNTS];
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

/* Computes the displacements of ELASTIC from normally distributed numbers (height, width), which become unusable. */
void leati_elastic_field(const leati_change *change, const leati_image_size *size, float *noise,
                         float *field);

#endif
