/* SPDX-License-Identifier: Apache-2.0 */
/* Translates configurations of current Keras (3) to the form of Keras 2.3.1, the only form that leat's readers
 * know.  What 2.3.1 does not have, like arguments of calls and functions that are called as layers, becomes a key
 * of a layer, or a layer. */
#ifndef LEATI_NN_KERAS3_TRANSLATE_H
#define LEATI_NN_KERAS3_TRANSLATE_H

#include <stdbool.h>

#include <jansson.h>

#include "leat/error.h"

/* True if current Keras wrote the model's configuration: it has a module, or a "keras_version" of at least 3. */
bool leati_is_modern(const json_t *root);
/* True for a configuration of tf.keras 2.0 to 2.15, which is translated, too. */
bool leati_is_late(const json_t *root);

/* Returns a model's configuration in the form of 2.3.1 (new reference).
 * Errors: LEAT_ENOTSUP, LEAT_EFORMAT with the layer and the reason. */
leat_status leati_translate_model(const json_t *root, json_t **out, leat_error *err);

/* Keys of a translated configuration that are leat's own: the names in a dictionary of inputs or outputs, in the order
 * of the lists beside them. */
#define LEATI_INPUT_KEYS  "input_keys"
#define LEATI_OUTPUT_KEYS "output_keys"

/* Like leati_translate_model, but makes a training_config of a compile_config. */
leat_status leati_translate_compilation(const json_t *compile_config, bool late, json_t **out,
                                        leat_error *err);
/* Makes lists of the arguments of compile that have the structure of the model's outputs, nested lists and
 * dictionaries.  `outputs` is the value of "output_layers" in Keras's form; without nesting nothing changes. */
leat_status leati_flatten_compilation(json_t *training_config, const json_t *outputs, leat_error *err);

/* A key of leat's own in files of current Keras, which ignores the key: in metadata.json, or in the training_config of
 * an .h5 file.  Its value is an object with the keys of a training_config of 2.3.1 that current Keras cannot have. */
#define LEATI_KEPT_KEY "leat"

/* Replaces the keys of a translated training_config by those in `kept`, the value of LEATI_KEPT_KEY or NULL. */
leat_status leati_translate_kept(json_t *training_config, const json_t *kept, leat_error *err);

/* For leati_translate_model: translates the calls in the configuration of a functional model (translate_calls.c). */
leat_status leati_translate_calls(json_t *config, leat_error *err);
/* True if an item of the list of layers, not yet translated, is a function of keras.ops. */
bool leati_item_is_function(const json_t *item);

#endif
