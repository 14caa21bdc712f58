/* SPDX-License-Identifier: Apache-2.0 */
/* Writes models and their compilations in the form of current Keras (3): the inverse of nn/keras3/translate.h. */
#ifndef LEATI_NN_MODEL_EXPORT_H
#define LEATI_NN_MODEL_EXPORT_H

#include "nn/model/model.h"

/* The version of Keras whose form is written. */
#define LEATI_KERAS3_VERSION "3.15.1"

/* In .h5 files, the items of a list of layers have no module, registered_name and build_config. */
typedef enum leati_keras3_form { LEATI_KERAS3_ARCHIVE, LEATI_KERAS3_H5 } leati_keras3_form;

/* Makes the configuration of a model: the config.json of an archive without its compile_config, or the model_config
 * of an .h5 file (new reference).
 * Errors: LEAT_ENOTSUP names the layer that current Keras does not have or computes in another way; LEAT_ENOMEM. */
leat_status leati_keras3_model(const leat_model *model, leati_keras3_form form, json_t **out,
                               leat_error *err);

/* Makes the compile_config of an archive, or the training_config of an .h5 file, of a compiled model (new reference).
 * Errors: LEAT_ENOTSUP an option that current Keras does not have; LEAT_ENOMEM. */
leat_status leati_keras3_compilation(const leat_model *model, leati_keras3_form form, json_t **out,
                                     leat_error *err);

/* Makes an optimizer's object in the form of current Keras, which has the same rates and limits (new reference).
 * Errors: as in leati_keras3_compilation. */
leat_status leati_keras3_optimizer(const leati_optimizer *optimizer, leati_keras3_form form, json_t **out,
                                   leat_error *err);

/* Makes the value of the key LEATI_KEPT_KEY of a file of current Keras (new reference).  *out is NULL if the model is
 * compiled in the arithmetic of current Keras.  Errors: LEAT_ENOMEM. */
leat_status leati_keras3_kept(const leat_model *model, json_t **out, leat_error *err);

/* Adds the shapes of an attention layer's query, value and key to its item, as the build_config of current Keras; other
 * items stay as they are.  Returns false if there is no memory. */
bool leati_add_attention_shapes(const leat_model *model, const leati_member *member, json_t *item);

/* Writes the name that current Keras gives an optimizer: "adam". */
void leati_keras3_optimizer_name(const leati_optimizer *optimizer, char out[LEAT_NAME_BYTES]);

#endif
