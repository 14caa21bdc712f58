/* SPDX-License-Identifier: Apache-2.0 */
/* Writes layers in the form of current Keras (3): the inverse of translate.h.  Defaults that differ between Keras
 * 2.3.1 and current Keras are written explicitly. */
#ifndef LEATI_NN_KERAS3_EXPORT_LAYER_H
#define LEATI_NN_KERAS3_EXPORT_LAYER_H

#include "nn/layers/layer.h"

/* Makes {"module": ..., "class_name": ..., "config": ..., "registered_name": ...} of a layer (new reference).  `inner`
 * is the configuration of a model inside the layer, or NULL; the reference is consumed.
 * Errors: LEAT_ENOTSUP names the layer that current Keras does not have or computes in another way; LEAT_ENOMEM. */
leat_status leati_keras3_layer(const leati_layer *layer, json_t *inner, json_t **out, leat_error *err);

/* Makes such an object; a reference to config is consumed.  NULL without memory. */
json_t *leati_keras3_object(const char *module, const char *class_name, json_t *config);
/* Makes the DTypePolicy of that name (new reference); NULL without memory. */
json_t *leati_keras3_policy(const char *name);

/* Returns the name that current Keras has for the class of a layer of 2.3.1: "ReLU" for "ThresholdedReLU". */
const char *leati_keras3_class(const char *class_name);

#endif
