/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of TensorFlow in functional models of tf.keras 2.4 to 2.15: TFOpLambda and SlicingOpLambda. */
#ifndef LEATI_NN_KERAS3_TRANSLATE_TF_H
#define LEATI_NN_KERAS3_TRANSLATE_TF_H

#include <jansson.h>

#include "leat/error.h"

/* Rewrites the functions of TensorFlow in a list of layers as functions of keras.ops, in the form of current Keras, and
 * removes functions that compute only shapes.
 * Errors: LEAT_ENOTSUP with the layer, and what to do. */
leat_status leati_translate_tf(json_t *items, leat_error *err);

#endif
