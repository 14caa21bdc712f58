/* SPDX-License-Identifier: Apache-2.0 */
/* Mixes the samples of a batch with each other: Keras's MixUp and CutMix. */
#ifndef LEATI_DATA_IMAGES_MIX_H
#define LEATI_DATA_IMAGES_MIX_H

#include "leat/rng.h"
#include "leat/sequence.h"

typedef enum leati_mix_mode { LEATI_MIX_NONE, LEATI_MIX_UP, LEATI_MIX_CUT } leati_mix_mode;

typedef struct leati_mix {
    leati_mix_mode mode;
    double alpha; /* of the beta distribution; for CutMix the upper limit of a random alpha */
} leati_mix;

/* Reads mixup, mixup(0.2), cutmix or cutmix(1).  Errors: LEAT_EINVAL. */
leat_status leati_mix_read(leati_mix *out, const char *text, leat_error *err);

/* Mixes the pictures (tensor 0, uint8 or float32) and the labels (tensor 1, float32) of batch->size samples.  The
 * numbers are a function of *rng, whose stream belongs to the batch; *rng does not change.  Errors: LEAT_ENOMEM. */
leat_status leati_mix_batch(const leati_mix *mix, const leat_rng *rng, leat_batch *batch, leat_error *err);

#endif
