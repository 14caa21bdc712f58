/* SPDX-License-Identifier: Apache-2.0 */
/* Saves everything of a model that training changes: weights, states of layers, slots of the optimizer, its iterations
 * and its learning rate.  Room: train. */
#ifndef LEATI_TRAIN_STATE_MODEL_STATE_H
#define LEATI_TRAIN_STATE_MODEL_STATE_H

#include <stdbool.h>

#include "checkpoint/state.h"
#include "leat/model.h"

/* Returns false if a weight that is trained is infinite or NaN. */
bool leati_model_state_is_finite(const leat_model *model);

leat_status leati_model_state_save(const leat_model *model, leat_state *state, leat_error *err);

/* Checks that the compiled model can load the state.  Errors: LEAT_EINVAL the model, its optimizer or its metrics are
 * not those of the checkpoint, with the first difference; LEAT_EFORMAT. */
leat_status leati_model_state_check(const leat_model *model, const leat_state *state, leat_error *err);

/* Loads a state that was checked. */
leat_status leati_model_state_load(leat_model *model, const leat_state *state, leat_error *err);

#endif
