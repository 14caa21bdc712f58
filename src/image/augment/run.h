/* SPDX-License-Identifier: Apache-2.0 */
/* Runs an augmentation on a picture whose memory has the slack of a leati_picture. */
#ifndef LEATI_IMAGE_AUGMENT_RUN_H
#define LEATI_IMAGE_AUGMENT_RUN_H

#include "leat/picture.h"

/* The picture of one run, and the memory for its result: one of `bytes` and `floats`. */
typedef struct leati_augment_picture {
    const unsigned char *src; /* (height, width, channels), and LEATI_PICTURE_SLACK bytes */
    int64_t channels;
    bool is_mask;
    bool is_still;         /* steps that draw numbers are left out, except crops, which take the middle */
    bool for_statistics;   /* run the steps before those whose numbers are computed of the training data */
    const double *numbers; /* for tests, instead of drawing: (steps, LEATI_AUGMENT_MAX_DRAWS); NULL */
    unsigned char *bytes;  /* rounded, and limited to 0 to 255 */
    float *floats;         /* multiplied by `scale` */
    double scale;
} leati_augment_picture;

/* Runs the steps with the random numbers of a sample.  Errors: LEAT_ENOMEM. */
leat_status leati_augment_run(const leat_augment *augment, const leat_rng *rng, int64_t number,
                              const leati_augment_picture *picture, leat_error *err);

#endif
