/* SPDX-License-Identifier: Apache-2.0 */
/* Keras 2's HDF5 layout (docs/formats/keras-h5.md): a model's weights, its compilation and its optimizer's state. */
#ifndef LEATI_FORMATS_KERAS_H5_H
#define LEATI_FORMATS_KERAS_H5_H

#include "h5/h5.h"
#include "nn/model/model.h"

/* The group that holds the layers: "/model_weights" in a full file, "/" in one of weights.
 * Errors: LEAT_EFORMAT neither of them, with what the file seems to be instead. */
leat_status leati_keras_h5_find(leati_h5 *file, const char **group, leat_error *err);

/* Weights into the model: by order, or the layers whose names agree.
 * Errors: LEAT_ESHAPE, LEAT_EFORMAT with layer, weight, what was expected and found. */
leat_status leati_keras_h5_read_weights(leati_h5 *file, const char *group, leat_model *model, bool by_name,
                                        leat_error *err);
/* By name, all of the model's weights. */
leat_status leati_keras_h5_read_all(leati_h5 *file, const char *group, leat_model *model, leat_error *err);
leat_status leati_keras_h5_write_weights(leati_h5 *file, const char *group, const leat_model *model,
                                         leat_error *err);

/* Weight `index` of a compiled model's optimizer, from a dataset that must have as many numbers. */
leat_status leati_keras_h5_read_optimizer_weight(leati_h5 *file, const char *path, leat_model *model,
                                                 int index, leat_error *err);

/* The state of a compiled model's optimizer; a file without it leaves the model's as it is. */
leat_status leati_keras_h5_read_optimizer(leati_h5 *file, leat_model *model, leat_error *err);
leat_status leati_keras_h5_write_optimizer(leati_h5 *file, const leat_model *model, leat_error *err);

#endif
