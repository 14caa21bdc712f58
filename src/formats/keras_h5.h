/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes Keras 2's HDF5 layout (docs/formats/keras-h5.md): a model's weights and its optimizer's state. */
#ifndef LEATI_FORMATS_KERAS_H5_H
#define LEATI_FORMATS_KERAS_H5_H

#include <jansson.h>

#include "h5/h5.h"
#include "nn/model/model.h"

/* The arguments of load_weights. */
typedef struct leati_matching {
    bool by_name; /* otherwise by order */
    bool
        skip_mismatch; /* weights of other shapes, and layers with other numbers of weights, keep their values */
    bool reshape;      /* weights of other shapes with as many numbers are read in their order */
} leati_matching;

/* Sets *modern to true for a file of weights in current Keras's layout (.weights.h5).
 * Errors: LEAT_ENOMEM, LEAT_EFORMAT. */
leat_status leati_keras_h5_is_modern(leati_h5 *file, bool *modern, leat_error *err);

/* Finds the group that holds the layers: "model_weights" in the file of a model, "/" in a file of weights.
 * Errors: LEAT_EFORMAT neither group is there. */
leat_status leati_keras_h5_find(leati_h5 *file, const char **group, leat_error *err);

/* Reads weights into the model: by order, or by name into the layers whose names the file has.
 * Errors: LEAT_ESHAPE, LEAT_EFORMAT, with the layer, the weight, what was expected and what was found. */
leat_status leati_keras_h5_read_weights(leati_h5 *file, const char *group, leat_model *model,
                                        const leati_matching *matching, leat_error *err);
/* Reads a dataset into the tensor of a weight, whose values stay if the dataset is skipped. */
leat_status leati_keras_h5_read_matching(leati_h5 *file, const char *path, leat_tensor *tensor,
                                         const leati_matching *matching, leat_error *err);
/* Reads all weights of the model by name.  Errors: also LEAT_EFORMAT the file lacks a layer. */
leat_status leati_keras_h5_read_all(leati_h5 *file, const char *group, leat_model *model, leat_error *err);
/* Writes an attribute of the root that is a JSON text. */
leat_status leati_keras_h5_write_json(leati_h5 *file, const char *name, const json_t *value, leat_error *err);

/* Writes all weights.  `version` is the version of Keras that the file names: files of current Keras (3) have names
 * of weights without ":0". */
leat_status leati_keras_h5_write_weights(leati_h5 *file, const char *group, const char *version,
                                         const leat_model *model, leat_error *err);

/* Reads weight `index` of a compiled model's optimizer from a dataset.  Errors: LEAT_ESHAPE another number of
 * elements. */
leat_status leati_keras_h5_read_optimizer_weight(leati_h5 *file, const char *path, leat_model *model,
                                                 int index, leat_error *err);

/* Reads the state of a compiled model's optimizer; a file without a state changes nothing. */
leat_status leati_keras_h5_read_optimizer(leati_h5 *file, leat_model *model, leat_error *err);
leat_status leati_keras_h5_write_optimizer(leati_h5 *file, const leat_model *model, leat_error *err);

#endif
