/* SPDX-License-Identifier: Apache-2.0 */
/* Reads, writes and compiles a model; nn/network/network.h has its structure. */
#ifndef LEATI_NN_MODEL_MODEL_H
#define LEATI_NN_MODEL_MODEL_H

#include "nn/network/network.h"

/* Read and write Keras's JSON: {"class_name": "Sequential" | "Model" | "Functional", "config": ...}.  The version
 * in "keras_version" decides about defaults. */
leat_status leati_model_from_config(leat_model **out, const json_t *root, leat_error *err);
leat_status leati_model_from_config_with(leat_model **out, const json_t *root, const leat_registry *registry,
                                         leat_error *err);
leat_status leati_model_config(const leat_model *model, json_t **out, leat_error *err);
/* Reads a model that takes the place of a layer.  Its weights get no memory. */
leat_status leati_model_read_inner(leat_model **out, const json_t *item, const leat_registry *registry,
                                   leat_error *err);

/* Returns a reader of layers inside a layer that knows the custom layers of a registry (NULL: none) and models.
 * The registry must live as long as the reader. */
leati_layer_reader leati_layer_reader_for(const leat_registry *registry);

/* Read and write the training_config of a file: {"optimizer_config": ..., "loss": ..., "metrics": ..., ...}. */
leat_status leati_model_compile_config(leat_model *model, const json_t *training_config, leat_error *err);
leat_status leati_model_training_config(const leat_model *model, json_t **out, leat_error *err);
/* Stores the training_config of a file (borrowed) for leat_compile_options.keep, without compiling. */
void leati_model_store_compilation(leat_model *model, const json_t *training_config);

/* Gives the layers in the order of the configuration that the model was read from, which is the order in which current
 * Keras numbers the groups of its files: a configuration that has classes, names and inner layers only (new
 * reference). */
leat_status leati_model_layer_order(const leat_model *model, json_t **out, leat_error *err);
/* Stores that order from a configuration of current Keras in the form of 2.3.1. */
leat_status leati_model_store_layer_order(leat_model *model, const json_t *root, leat_error *err);

/* Sets the learning rate; does nothing for a model that is not compiled.  Errors: LEAT_EINVAL the learning rate is a
 * schedule. */
leat_status leati_model_set_rate(leat_model *model, double learning_rate, leat_error *err);

/* Returns the number of layers with the policy mixed_bfloat16. */
int32_t leati_model_count_mixed(const leat_model *model);

/* Ends a fit: with use_ema, the weights become their moving average, as in current Keras. */
void leati_optimizer_finish(leat_model *model);

/* The weights of the optimizer of a compiled model, in the order of files: iterations, m_schedule (Nadam), all of
 * the first slot, all of the second, ..., all moving averages (use_ema), all sums of
 * gradients (gradient_accumulation_steps).  Keras has none before the first training
 * step; leat always has them. */
typedef struct leati_optimizer_weight {
    char name[LEAT_NAME_BYTES]; /* "Adam/iterations:0", "m_0:0" */
    leati_desc desc;            /* int64 for iterations, float32 for the others */
} leati_optimizer_weight;

int leati_optimizer_weight_count(const leat_model *model);
leati_optimizer_weight leati_optimizer_weight_at(const leat_model *model, int index);
/* Copies weight `index` to out, which must have room for it.  Errors: LEAT_ENOTSUP other ranks have it. */
leat_status leati_optimizer_weight_copy(const leat_model *model, int index, void *out, leat_error *err);
/* Sets weight `index`.  Iterations may have any numeric type.  Errors: LEAT_ESHAPE, LEAT_EDTYPE. */
leat_status leati_optimizer_weight_set(leat_model *model, int index, const leat_tensor *value,
                                       leat_error *err);
/* Returns true if the optimizer has a loss scale and a gradient in the model's slab is not finite: there must be no
 * update.  Then halves the scale. */
bool leati_model_skips_update(leat_model *model);

#endif
