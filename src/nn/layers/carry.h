/* SPDX-License-Identifier: Apache-2.0 */
/* States of recurrent layers that belong to a program and not to the model: a predictor carries them from run to
 * run.  Streaming is a program for one step of a sequence.  Its recurrent layers carry their states, stateful or
 * not, so that the steps give the same results as the whole sequence. */
#ifndef LEATI_NN_LAYERS_CARRY_H
#define LEATI_NN_LAYERS_CARRY_H

#include "nn/layers/layer.h"

/* One state.  It begins as zeros. */
typedef struct leati_carried {
    const leati_layer *layer;
    int32_t index; /* h, c, ... */
    leati_desc desc;
    size_t offset_bytes;
} leati_carried;

typedef struct leati_carry {
    int32_t count, capacity;
    leati_carried *items;
    size_t bytes; /* size of the program's LEATI_SLAB_STATES */
    int32_t step_capacity;
    bool *steps; /* per value of the graph: true if axis 1 has the one step of this run */
} leati_carry;

void leati_carry_fini(leati_carry *carry);

/* Returns state `index` of a layer.  If `shared`, as for a stateful layer, all calls of the layer have the same
 * state; otherwise each call has its own. */
leati_value leati_carry_state(const leati_layer *layer, leati_lowering *lowering, bool shared, int32_t index,
                              const leati_desc *desc);

void leati_carry_mark(leati_lowering *lowering, leati_value value);
bool leati_carry_is_step(const leati_lowering *lowering, leati_value value);

#define LEATI_READS_SEVERAL_STEPS "streaming: %s reads several steps of a sequence at once"

/* Sets *makes_step if the outputs of a call are single steps.  Errors: LEAT_ENOTSUP a layer that reads several
 * steps of a sequence at once. */
leat_status leati_stepwise_check(const leati_layer *layer, const leati_lowering *lowering, int input_count,
                                 const leati_value *inputs, bool *makes_step, leat_error *err);
/* Marks the output of such a call as a step.  Errors: LEAT_ENOTSUP the call joined a step with several steps. */
leat_status leati_stepwise_mark(const leati_layer *layer, leati_lowering *lowering, leati_value output,
                                leat_error *err);

#endif
