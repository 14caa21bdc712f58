/* SPDX-License-Identifier: Apache-2.0 */
/* States that belong to one program instead of the model: where a predictor keeps what recurrent layers carry from run to
 * run.  And streaming: a program for one step of a sequence, whose recurrent layers carry their states whether they are
 * stateful or not, so that the steps one by one give what the whole sequence would. */
#ifndef LEATI_NN_LAYERS_CARRY_H
#define LEATI_NN_LAYERS_CARRY_H

#include "nn/layers/layer.h"

/* One state, in LEATI_SLAB_STATES of the program; zeros at first. */
typedef struct leati_carried {
    const leati_layer *layer;
    int32_t index; /* h, c, ... */
    leati_desc desc;
    size_t offset_bytes;
} leati_carried;

typedef struct leati_carry {
    int32_t count, capacity;
    leati_carried *items;
    size_t bytes; /* of the slab */
    int32_t step_capacity;
    bool *steps; /* by value of the graph: axis 1 is the step that this run is about */
} leati_carry;

void leati_carry_fini(leati_carry *carry);

/* State `index` of a layer: of a stateful one the same for all its calls, of another one for this call alone. */
leati_value leati_carry_state(const leati_layer *layer, leati_lowering *lowering, bool shared, int32_t index,
                              const leati_desc *desc);

void leati_carry_mark(leati_lowering *lowering, leati_value value);
bool leati_carry_is_step(const leati_lowering *lowering, leati_value value);

#define LEATI_LOOKS_AT_SEVERAL "streaming: %s looks at several steps of a sequence at once"

/* Whether a call is given a step, and then makes one of each output.  Errors: LEAT_ENOTSUP a layer that looks at several
 * steps of a sequence at once. */
leat_status leati_stepwise_check(const leati_layer *layer, const leati_lowering *lowering, int input_count,
                                 const leati_value *inputs, bool *makes_step, leat_error *err);
/* Of what such a call has made.  Errors: LEAT_ENOTSUP a step that was joined with several. */
leat_status leati_stepwise_mark(const leati_layer *layer, leati_lowering *lowering, leati_value output,
                                leat_error *err);

#endif
