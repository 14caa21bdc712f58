/* SPDX-License-Identifier: Apache-2.0 */
/* How the tensors of a batch meet the inputs and outputs of a model: by name where names are given, by position
 * otherwise.  Checked once, when data and model first meet. */
#ifndef LEATI_TRAIN_STEP_BINDING_H
#define LEATI_TRAIN_STEP_BINDING_H

#include "leat/train.h"
#include "nn/program/program.h"

typedef struct leati_binding {
    leati_mode mode;
    const leat_model *model; /* borrowed */
    int32_t input_count, target_count;
    int32_t inputs[LEATI_PROGRAM_MAX_OUTPUTS];  /* tensor of the batch for each input of the model */
    int32_t targets[LEATI_PROGRAM_MAX_OUTPUTS]; /* for each output; -1: it has no loss, or mode is predict */
    int32_t weights[LEATI_PROGRAM_MAX_OUTPUTS]; /* for each output; -1: no sample weights */
    const leat_class_weight *class_weight;      /* borrowed; NULL: none */
    int32_t class_weight_count;
    float *class_factors; /* (batch_size): sample weight times class weight; owned */
    int64_t batch_size;
} leati_binding;

/* Errors: LEAT_EINVAL a part that is missing or one too many; LEAT_ESHAPE a sample whose shape the model cannot take;
 * LEAT_EINVAL class weights for a model with several outputs. */
leat_status leati_binding_init(leati_binding *binding, const leat_model *model, const leat_batch_spec *spec,
                               leati_mode mode, leat_error *err);
/* From now on, sample weights are multiplied by the weight of the sample's class.  spec is that of leati_binding_init.
 * Errors: LEAT_EINVAL a class twice, one that the output does not have, a weight that is not finite. */
leat_status leati_binding_set_class_weight(leati_binding *binding, const leat_batch_spec *spec,
                                           const leat_class_weight *class_weight, int count, leat_error *err);
void leati_binding_fini(leati_binding *binding);

/* The step's inputs for this batch, in the order in which a program binds them, and what they look like.
 * Errors: LEAT_EINVAL a class that class_weight does not list, or a class number that the output does not have. */
leat_status leati_binding_apply(leati_binding *binding, const leat_batch *batch, leati_program_spec *spec,
                                const void **pointers, leat_error *err);

#endif
