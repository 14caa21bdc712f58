/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps keys that only leat has out of the configurations of layers in .h5 files and JSON: Keras refuses a layer with
 * an unknown key, but ignores unknown keys beside the configuration. */
#ifndef LEATI_NN_KERAS3_OWN_KEYS_H
#define LEATI_NN_KERAS3_OWN_KEYS_H

#include <stdbool.h>

#include <jansson.h>

#include "leat/error.h"

/* Moves the keys of every layer in a configuration, also of layers inside layers, into the object LEATI_KEPT_KEY beside
 * the layer's "config", and removes defaults of options that tf.keras 2.15 does not have.  Errors: LEAT_ENOMEM. */
leat_status leati_own_keys_set_aside(json_t *config, leat_error *err);

/* Gives a training_config in the form of 2.3.1 the names that tf.keras also reads, where they mean the same: the loss
 * cosine_similarity of a model with the arithmetic of current Keras, and no options of a moving average that is off.
 * Errors: LEAT_ENOMEM. */
leat_status leati_own_keys_adapt_training(json_t *training_config, leat_error *err);

/* True if leati_own_keys_set_aside moved a key in this configuration. */
bool leati_own_keys_present(const json_t *config);

/* Moves the keys back.  Errors: LEAT_ENOMEM. */
leat_status leati_own_keys_restore(json_t *config, leat_error *err);

#endif
