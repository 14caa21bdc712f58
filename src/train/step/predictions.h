/* SPDX-License-Identifier: Apache-2.0 */
/* The predictions of many batches, joined into one tensor per output.  Room: train. */
#ifndef LEATI_TRAIN_STEP_PREDICTIONS_H
#define LEATI_TRAIN_STEP_PREDICTIONS_H

#include "leat/train.h"
#include "train/step/trainer.h"

leat_status leati_predictions_create(leat_predictions **out, int output_count, leat_error *err);
/* Like leati_predictions_create, but in the caller's memory: outputs[i] has room for shape[0] samples; its data is
 * NULL if the caller does not want the output.  Errors: LEAT_ESHAPE there is room for fewer than `samples`
 * samples, or the shape of a sample is not the model's. */
leat_status leati_predictions_create_in(leat_predictions **out, const leat_model *model,
                                        const leat_tensor *outputs, int64_t samples, leat_error *err);

/* Appends a copy of the outputs of the step's last run, `size` samples per output. */
leat_status leati_predictions_append(leat_predictions *predictions, const leati_compiled_step *step,
                                     int64_t size, leat_error *err);
/* Appends a copy of samples of one output. */
leat_status leati_predictions_append_samples(leat_predictions *predictions, int output,
                                             const leat_tensor *samples, leat_error *err);
/* Fails with LEAT_ESHAPE if a batch of `size` samples has an output of another number of samples. */
leat_status leati_predictions_check(int output, const leat_tensor *samples, int64_t size, leat_error *err);

#endif
