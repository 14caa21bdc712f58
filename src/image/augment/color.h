/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of steps that change the values of pixels; each is the `apply` of a step type. */
#ifndef LEATI_IMAGE_AUGMENT_COLOR_H
#define LEATI_IMAGE_AUGMENT_COLOR_H

#include "image/augment/augment.h"

typedef leat_status leati_apply(const leati_step *step, const double *drawn, leati_work *work,
                                leat_error *err);

/* ImageDataGenerator's steps. */
leati_apply leati_color_channel_shift, leati_color_enhance_brightness, leati_color_rescale,
    leati_color_samplewise_center, leati_color_samplewise_std, leati_color_featurewise_center,
    leati_color_featurewise_std, leati_color_whiten;

/* Multiplies the colours by drawn[0] and keeps them between 0 and 255; alpha stays. */
leati_apply leati_color_multiply;

#endif
