/* SPDX-License-Identifier: Apache-2.0 */
/* Saves everything of a model that training changes: weights, states of layers, slots of the optimizer, its iterations
 * and its learning rate.  Room: train. */
#ifndef LEATI_TRAIN_STATE_MODEL_STATE_H
#define LEATI_TRAIN_STATE_MODEL_STATE_H

#include "checkpoint/state.h"
#include "leat/model.h"

leat_status leati_model_state_save(const leat_model *model, leat_state *state, leat_error *err);

/* Loads the state into a compiled model.  Errors: LEAT_EINVAL the model, or its optimizer, is not that of the
 * checkpoint, with the first difference; LEAT_EFORMAT.  After a failure the model is unchanged. */
leat_status leati_model_state_load(leat_model *model, const leat_state *state, leat_error *err);

#endif
