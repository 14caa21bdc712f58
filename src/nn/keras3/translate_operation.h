/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of keras.ops and of tf.keras that are items of a functional model: as the layer Operation. */
#ifndef LEATI_NN_KERAS3_TRANSLATE_OPERATION_H
#define LEATI_NN_KERAS3_TRANSLATE_OPERATION_H

#include <stdbool.h>

#include <jansson.h>

#include "leat/error.h"

/* Rewrites an item that is a function of keras.ops: its class is Operation, which has the constants of the calls, and
 * each call has only tensors, as {"args": [tensor, ...], "kwargs": {}}.
 * Errors: LEAT_ENOTSUP the function, or calls with different constants. */
leat_status leati_translate_operation(json_t *item, leat_error *err);

#endif
