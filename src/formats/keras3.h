/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes files of current Keras (docs/formats/keras3.md): the .keras archive, and the weights in its
 * model.weights.h5. */
#ifndef LEATI_FORMATS_KERAS3_H
#define LEATI_FORMATS_KERAS3_H

#include "formats/keras_h5.h"
#include "formats/load.h"
#include "h5/h5.h"
#include "nn/model/model.h"
#include "zip/zip.h"

/* A weight, and the path of its dataset: "layers/dense_1/vars/0".  Keras writes the kernel inside a
 * SpectralNormalization twice; `copy` is the path of the second dataset, or "". */
typedef struct leati_placed_weight {
    char path[256], copy[256];
    const leati_weight *weight;
} leati_placed_weight;

/* The group of a layer's own variables, "layers/dense_1/vars", which has the layer's name as an attribute. */
typedef struct leati_placed_group {
    char path[264], name[LEAT_NAME_BYTES];
} leati_placed_group;

/* The factors of an IntegerLookup, which are not weights: "layers/integer_lookup/vars/idf_weights". */
typedef struct leati_placed_factors {
    char path[264];
    leati_layer *layer;
} leati_placed_factors;

/* All weights of a model in the order of current Keras, which is the order of the layers in the configuration; and
 * the groups of all its layers, first that of the model. */
typedef struct leati_placement {
    const char *list; /* the name of the group that has the groups of a model's layers: "layers" */
    bool twice;       /* a layer that has weights counts twice in the numbers of groups */
    int32_t count, capacity, group_count, group_capacity, factors_count, factors_capacity;
    leati_placed_weight *items;
    leati_placed_group *groups;
    leati_placed_factors *factors;
} leati_placement;
/* Makes a placement, for leati_placement_fini, from a configuration in the form of Keras 2.3.1.
 * Errors: LEAT_ENOTSUP a path that is too long; LEAT_EFORMAT a layer without a name; LEAT_ENOMEM. */
leat_status leati_placement_make(leati_placement *out, const leat_model *model, const json_t *config,
                                 leat_error *err);
/* Like leati_placement_make(), but for the weights in an archive, whose groups have other names in some versions of
 * tf.keras. */
leat_status leati_placement_find(leati_placement *out, leati_h5 *file, const leat_model *model,
                                 const json_t *config, leat_error *err);
void leati_placement_fini(leati_placement *placement);

/* Makes the placement of the whole files that are written of a model. */
leat_status leati_placement_of(leati_placement *out, const leat_model *model, leat_error *err);
/* Makes the placement of a model's .weights.h5 files, which follow the order of layers that the model was read with. */
leat_status leati_placement_in_order(leati_placement *out, const leat_model *model, leat_error *err);

/* Reads the values of all placed weights from the file into the model. */
leat_status leati_placement_read(const leati_placement *placement, leati_h5 *file, leat_model *model,
                                 const leati_matching *matching, leat_error *err);

/* Writes the path of the dataset of the optimizer's variable `index` into `out`. */
typedef void (*leati_state_name)(void *user, int index, char *out, size_t bytes);
/* Returns false if the optimizer of a file with `count` variables has no slots yet: the model was never trained.
 * late: tf.keras wrote the file, which has no learning rate among the variables. */
bool leati_keras3_has_state(const leat_model *model, int count, bool late);
/* Reads the optimizer's `count` variables in current Keras's order: iteration, learning_rate (unless the learning rate
 * is a schedule), then the slots.
 * in_blocks: the slots are not interleaved weight by weight, as in files of tf.keras up to 2.10. */
leat_status leati_keras3_read_state(const leati_placement *placement, leati_h5 *file, leat_model *model,
                                    int count, bool in_blocks, leati_state_name name_of, void *user,
                                    leat_error *err);
/* Returns the number of variables that the optimizer of a compiled model has. */
int leati_keras3_state_count(const leat_model *model);
/* Returns that number in files of tf.keras 2.11 to 2.15. */
int leati_keras3_late_state_count(const leat_model *model);
/* Writes the optimizer's variables.  placement: NULL for the order of the model's weights and the variables of
 * tf.keras 2.11 to 2.15, which leati_keras3_read_state reads with NULL as well. */
leat_status leati_keras3_write_state(const leati_placement *placement, leati_h5 *file,
                                     const leat_model *model, leati_state_name name_of, void *user,
                                     leat_error *err);
/* Writes those of the optimizer in a LossScaleOptimizer, which .keras and .weights.h5 files have twice. */
leat_status leati_keras3_write_inner_state(const leati_placement *placement, leati_h5 *file,
                                           const leat_model *model, leat_error *err);
/* Writes the path of the optimizer's variable `index` in .keras and .weights.h5 files. */
void leati_keras3_state_path(void *user, int index, char *out, size_t bytes);

/* True if leat writes the model's optimizer into .h5 files as tf.keras 2.11 to 2.15 does, whose formulas it has. */
bool leati_keras3_is_late(const leat_model *model);
/* Writes that optimizer: replaces the one of `training_config`, keeps leat's own form beside it, and writes the
 * state. */
leat_status leati_keras3_write_late(leati_h5 *file, const leat_model *model, json_t *training_config,
                                    leat_error *err);

/* Write the content of a file: a .weights.h5 file, and an .h5 file as current Keras writes it. */
leat_status leati_keras3_write_weights(leati_h5 *file, const leat_model *model, bool include_optimizer,
                                       leat_error *err);
leat_status leati_keras3_write_h5(leati_h5 *file, const leat_model *model, bool include_optimizer,
                                  leat_error *err);
/* Writes the members of a .keras archive. */
leat_status leati_keras3_write_archive(leati_zip_writer *zip, const leat_model *model, bool include_optimizer,
                                       leat_error *err);

/* Loads a .keras archive, as leat_model_load_using does. */
leat_status leati_keras3_load(leat_model **out, const char *path, const leati_load *load, leat_error *err);
/* Like leati_keras3_load, but the archive's `size` bytes lie in memory; `label` replaces the path in messages. */
leat_status leati_keras3_load_bytes(leat_model **out, const char *label, const void *data, size_t size,
                                    const leati_load *load, leat_error *err);

#endif
