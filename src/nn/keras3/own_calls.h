/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of attention layers in .h5 files and JSON in the form of Keras 2: query, value, key and mask are inputs of
 * leat's layer and arguments of tf.keras's call; whether to use a causal mask, and to return the scores, are keys of
 * leat's layer and arguments there, too.  Room: nn. */
#ifndef LEATI_NN_KERAS3_OWN_CALLS_H
#define LEATI_NN_KERAS3_OWN_CALLS_H

#include <jansson.h>

#include "leat/error.h"

/* Gives the calls of an attention layer the form of tf.keras 2.4 to 2.15, and moves the keys of its configuration that
 * tf.keras does not have into `kept`.  Other items stay as they are.  Errors: LEAT_ENOMEM. */
leat_status leati_own_calls_set_aside(json_t *item, json_t *kept, leat_error *err);

/* Reverses it; calls that have leat's form, as in files of older versions of leat, stay as they are.
 * Errors: LEAT_ENOMEM. */
leat_status leati_own_calls_restore(json_t *item, const json_t *kept, leat_error *err);

#endif
