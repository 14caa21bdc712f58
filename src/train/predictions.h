/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions, gathered batch by batch. */
#ifndef LEATI_TRAIN_PREDICTIONS_H
#define LEATI_TRAIN_PREDICTIONS_H

#include "leat/train.h"
#include "train/trainer.h"

leat_status leati_predictions_create(leat_predictions **out, int output_count, leat_error *err);
/* Copies what the step's last run left, `size` samples per output. */
leat_status leati_predictions_append(leat_predictions *predictions, const leati_compiled_step *step,
                                     int64_t size, leat_error *err);

#endif
