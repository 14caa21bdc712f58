/* SPDX-License-Identifier: Apache-2.0 */
/* Binds the tensors of a batch to the inputs and outputs of a model, by name if the tensors have the model's
 * names, otherwise by position.  The binding is made and checked once for all batches of a sequence.  Room: train. */
#ifndef LEATI_TRAIN_STEP_BINDING_H
#define LEATI_TRAIN_STEP_BINDING_H

#include "leat/train.h"
#include "nn/program/program.h"

/* The weights of classes that a caller gives: for the only output, or for outputs by their names. */
typedef struct leati_class_weights {
    const leat_class_weight *weights; /* borrowed */
    int count;
    const leat_output_class_weight *outputs; /* borrowed */
    int output_count;
} leati_class_weights;

/* The weights of the classes of an output. */
typedef struct leati_output_classes {
    const leat_class_weight *weights; /* borrowed; NULL: none */
    int count;
    float *factors; /* (batch_size): sample weight times class weight; owned */
} leati_output_classes;

typedef struct leati_binding {
    leati_mode mode;
    const leat_model *model; /* borrowed */
    int32_t input_count, target_count;
    int32_t inputs[LEATI_PROGRAM_MAX_OUTPUTS];  /* index in the batch of the tensor for each input */
    int32_t targets[LEATI_PROGRAM_MAX_OUTPUTS]; /* for each output; -1 without a loss, or to predict */
    int32_t weights[LEATI_PROGRAM_MAX_OUTPUTS]; /* for each output; -1 without sample weights */
    leati_output_classes classes[LEATI_PROGRAM_MAX_OUTPUTS]; /* for each output */
    bool has_classes;                                        /* an output has weights of classes */
    int64_t batch_size;
} leati_binding;

/* Errors: LEAT_EINVAL the data has too few or too many tensors, or only some have the model's names; LEAT_ESHAPE
 * the shape of samples does not fit the model's input; LEAT_ENOTSUP the model has too many inputs or outputs. */
leat_status leati_binding_init(leati_binding *binding, const leat_model *model, const leat_batch_spec *spec,
                               leati_mode mode, leat_error *err);
/* Makes leati_binding_apply multiply sample weights by the weight of the sample's class.  spec must be the spec
 * that was given to leati_binding_init.  Errors: LEAT_EINVAL a class is listed twice, the output does not have a
 * class, a weight is not finite, there is no output of a name, or the model has several outputs and no name is
 * given. */
leat_status leati_binding_set_class_weights(leati_binding *binding, const leat_batch_spec *spec,
                                            const leati_class_weights *given, leat_error *err);
void leati_binding_fini(leati_binding *binding);

/* Writes the data pointers of this batch in the order in which a program binds them, and their types and shapes to
 * *spec.  Errors: LEAT_EINVAL class_weight does not list a class of the batch, or the output does not have a
 * target's class number. */
leat_status leati_binding_apply(leati_binding *binding, const leat_batch *batch, leati_program_spec *spec,
                                const void **pointers, leat_error *err);

#endif
