/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions, gathered batch by batch. */
#ifndef LEATI_TRAIN_STEP_PREDICTIONS_H
#define LEATI_TRAIN_STEP_PREDICTIONS_H

#include "leat/train.h"
#include "train/step/trainer.h"

leat_status leati_predictions_create(leat_predictions **out, int output_count, leat_error *err);
/* The same in memory of the caller's: outputs[i] has room for shape[0] samples, or no data where the output is not wanted.
 * Errors: LEAT_ESHAPE less room than for `samples`, or samples of another shape than the model's. */
leat_status leati_predictions_create_in(leat_predictions **out, const leat_model *model,
                                        const leat_tensor *outputs, int64_t samples, leat_error *err);

/* Copies what the step's last run left, `size` samples per output. */
leat_status leati_predictions_append(leat_predictions *predictions, const leati_compiled_step *step,
                                     int64_t size, leat_error *err);

#endif
