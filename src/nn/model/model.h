/* SPDX-License-Identifier: Apache-2.0 */
/* Reading, writing and compiling a model (nn/network/network.h). */
#ifndef LEATI_NN_MODEL_MODEL_H
#define LEATI_NN_MODEL_MODEL_H

#include "nn/network/network.h"

/* From and to Keras's JSON: {"class_name": "Sequential" | "Model" | "Functional", "config": ...}.  A "keras_version"
 * beside them says whose defaults count. */
leat_status leati_model_from_config(leat_model **out, const json_t *root, leat_error *err);
leat_status leati_model_from_config_with(leat_model **out, const json_t *root, const leat_registry *registry,
                                         leat_error *err);
leat_status leati_model_config(const leat_model *model, json_t **out, leat_error *err);
/* One that is to stand in the place of a layer: its weights have no memory yet. */
leat_status leati_model_read_inner(leat_model **out, const json_t *item, const leat_registry *registry,
                                   leat_error *err);

/* The reader of layers inside a layer: the custom layers of a registry (NULL: none), and models.  The registry must live as
 * long as the reader. */
leati_layer_reader leati_layer_reader_for(const leat_registry *registry);

/* training_config of a file: {"optimizer_config": ..., "loss": ..., "metrics": ..., ...}. */
leat_status leati_model_compile_config(leat_model *model, const json_t *training_config, leat_error *err);
leat_status leati_model_training_config(const leat_model *model, json_t **out, leat_error *err);

/* Layers of the policy mixed_bfloat16. */
int32_t leati_model_count_mixed(const leat_model *model);

/* The end of a fit: with use_ema the weights become their average, as in current Keras. */
void leati_optimizer_finish(leat_model *model);

/* The optimizer's weights as files hold them: iterations, then (Nadam) m_schedule, then all of the first slot, ..., then
 * (use_ema) all averages.
 * A compiled model's; none before the first step of training in Keras, always there in leat. */
typedef struct leati_optimizer_weight {
    char name[LEAT_NAME_BYTES]; /* "Adam/iterations:0", "m_0:0" */
    leati_desc desc;            /* i64 for iterations, f32 for all others */
} leati_optimizer_weight;

int leati_optimizer_weight_count(const leat_model *model);
leati_optimizer_weight leati_optimizer_weight_at(const leat_model *model, int index);
/* Copies weight `index` to out, which has room for its desc. */
void leati_optimizer_weight_copy(const leat_model *model, int index, void *out);
/* Sets weight `index`.  Any numeric type will do for iterations.  Errors: LEAT_ESHAPE, LEAT_EDTYPE. */
leat_status leati_optimizer_weight_set(leat_model *model, int index, const leat_tensor *value,
                                       leat_error *err);

#endif
