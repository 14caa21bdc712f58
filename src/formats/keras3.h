/* SPDX-License-Identifier: Apache-2.0 */
/* Reads files of current Keras (docs/formats/keras3.md): the .keras archive, and the weights in its
 * model.weights.h5. */
#ifndef LEATI_FORMATS_KERAS3_H
#define LEATI_FORMATS_KERAS3_H

#include "formats/keras_h5.h"
#include "formats/load.h"
#include "h5/h5.h"
#include "nn/model/model.h"

/* A weight, and the path of its dataset: "layers/dense_1/vars/0". */
typedef struct leati_placed_weight {
    char path[256];
    const leati_weight *weight;
} leati_placed_weight;

/* All weights of a model in the order of current Keras, which is the order of the layers in the configuration. */
typedef struct leati_placement {
    int32_t count, capacity;
    leati_placed_weight *items;
} leati_placement;
/* Makes a placement, for leati_placement_fini, from a configuration in the form of Keras 2.3.1.
 * Errors: LEAT_ENOTSUP a path that is too long; LEAT_EFORMAT a layer without a name; LEAT_ENOMEM. */
leat_status leati_placement_make(leati_placement *out, const leat_model *model, const json_t *config,
                                 leat_error *err);
void leati_placement_fini(leati_placement *placement);

/* Reads the values of all placed weights from the file into the model. */
leat_status leati_placement_read(const leati_placement *placement, leati_h5 *file, leat_model *model,
                                 const leati_matching *matching, leat_error *err);

/* Writes the path of the dataset of the optimizer's variable `index` into `out`. */
typedef void (*leati_state_name)(void *user, int index, char *out, size_t bytes);
/* Reads the optimizer's `count` variables in current Keras's order: iteration, learning_rate (unless it is a
 * schedule), then the slots.
 * in_blocks: the slots are not interleaved weight by weight, as in files of tf.keras up to 2.10. */
leat_status leati_keras3_read_state(const leati_placement *placement, leati_h5 *file, leat_model *model,
                                    int count, bool in_blocks, leati_state_name name_of, void *user,
                                    leat_error *err);
/* Returns the number of variables that the optimizer of a compiled model has. */
int leati_keras3_state_count(const leat_model *model);

/* Loads a .keras archive, as leat_model_load_using does. */
leat_status leati_keras3_load(leat_model **out, const char *path, const leati_load *load, leat_error *err);
/* Like leati_keras3_load, but the archive's `size` bytes lie in memory; `label` replaces the path in messages. */
leat_status leati_keras3_load_bytes(leat_model **out, const char *label, const void *data, size_t size,
                                    const leati_load *load, leat_error *err);

#endif
