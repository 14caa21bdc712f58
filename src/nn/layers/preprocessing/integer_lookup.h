/* SPDX-License-Identifier: Apache-2.0 */
/* The factors of an IntegerLookup with output_mode "tf_idf", which files of current Keras have beside the weights. */
#ifndef LEATI_NN_LAYERS_PREPROCESSING_INTEGER_LOOKUP_H
#define LEATI_NN_LAYERS_PREPROCESSING_INTEGER_LOOKUP_H

#include "nn/layers/layer.h"

/* Returns true if the layer is an IntegerLookup with factors; *out is a view of them, (categories), f32. */
bool leati_integer_lookup_factors(const leati_layer *layer, leat_tensor *out);

/* Makes the configuration agree after the factors were changed through the view.  Errors: LEAT_ENOMEM. */
leat_status leati_integer_lookup_update(leati_layer *layer, leat_error *err);

#endif
