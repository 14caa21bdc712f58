/* SPDX-License-Identifier: Apache-2.0 */
/* The slabs: one block each for weights, gradients and every slot of the optimizer, with the same offsets in all.
 * Trainable weights come first, so that an update is one operation over the first trainable_bytes. */
#ifndef LEATI_NN_MODEL_WEIGHTS_H
#define LEATI_NN_MODEL_WEIGHTS_H

#include "nn/model/model.h"

/* Lists the model's weights by what is trainable now, gives each its place (64-byte aligned, trainable ones first) and
 * allocates LEATI_SLAB_WEIGHTS; values of weights that had a place are kept, others are drawn from the model's seed; so with states,
 * which begin as zeros.  Frees the other slabs: their offsets are no longer true.  On failure the model is as before. */
leat_status leati_weights_layout(leat_model *model, leat_error *err);

/* Finds the order of files anew, after a change of `trainable` that the layout does not know yet. */
leat_status leati_weights_reorder(leat_model *model, leat_error *err);

/* Frees everything and zeroes it. */
void leati_weights_fini(leati_weights *weights);

/* Allocates zeroed slabs for gradients, slots and scalars, in place of any that are there (nn/model/compile.c). */
leat_status leati_weights_train(leati_weights *weights, int slot_count, int scalar_count, leat_error *err);

/* Bytes of all slabs but the scalars. */
size_t leati_weights_slab_bytes(const leati_weights *weights);

/* Frees what training needs: all slabs but those of weights and states. */
void leati_weights_untrain(leati_weights *weights);

#endif
