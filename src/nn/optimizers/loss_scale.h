/* SPDX-License-Identifier: Apache-2.0 */
/* The loss scale of a LossScaleOptimizer.  The loss is multiplied by the scale before it is differentiated, and the
 * gradients are divided by it before the update.  A step whose gradients are not finite changes no weight and halves
 * the scale; growth_steps steps in a row whose gradients are finite double it.
 * Source: keras.src.optimizers.loss_scale_optimizer.  Room: nn. */
#ifndef LEATI_NN_OPTIMIZERS_LOSS_SCALE_H
#define LEATI_NN_OPTIMIZERS_LOSS_SCALE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nn/config/object.h"

typedef struct leati_loss_scale {
    bool wraps; /* read from a LossScaleOptimizer, whose variables come before the optimizer's in files */
    int64_t growth_steps; /* 0: there is no scale, and no step is skipped */
    double initial;
    float value;     /* the scale of the next step */
    int64_t counter; /* steps with finite gradients since the scale has changed */
} leati_loss_scale;

/* If the object is a LossScaleOptimizer, replaces it by its inner optimizer and reads the scale; otherwise *out is
 * zeroed.  With "dynamic": false, which tf.keras has, the scale changes no step and is ignored. */
leat_status leati_loss_scale_read(leati_loss_scale *out, leati_object *object, leat_error *err);

/* Returns the configuration of the LossScaleOptimizer (new reference; NULL: no memory).  Consumes the reference to the
 * inner optimizer. */
json_t *leati_loss_scale_config(const leati_loss_scale *scale, json_t *inner);

/* Returns true if one of the gradients is not finite: the step must not be made.  Then halves the scale. */
bool leati_loss_scale_skips(leati_loss_scale *scale, const float *gradients, size_t count);

/* Counts a step that was made, and doubles the scale when it is time. */
void leati_loss_scale_count(leati_loss_scale *scale);

#endif
