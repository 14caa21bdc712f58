/* SPDX-License-Identifier: Apache-2.0 */
/* The flags that all recurrent layers have.  Streaming (nn/layers/carry.h) reads them; nn/layers/rnn/ has the
 * layers. */
#ifndef LEATI_NN_LAYERS_RECURRENCE_H
#define LEATI_NN_LAYERS_RECURRENCE_H

#include "nn/layers/layer.h"

/* The first member of the configuration of every recurrent layer. */
typedef struct leati_recurrence {
    bool return_sequences, return_state, go_backwards, stateful, unroll;
    bool zero_output_for_mask; /* false: the output of the previous step */
    bool as_keras3;            /* a call with initial states ignores the mask */
    leati_regularizer activity_regularizer;
    int32_t state_count; /* set by check */
} leati_recurrence;

/* Returns the flags of a recurrent layer; NULL for another layer. */
const leati_recurrence *leati_recurrence_of(const leati_layer *layer);

#endif
