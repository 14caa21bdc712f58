/* SPDX-License-Identifier: Apache-2.0 */
/* What a model is made of, at run time: its layers with their configurations, weights and connections; what it was compiled
 * with; the optimizer's state.  Every text that is returned as a pointer is borrowed.  It is valid until the model is
 * destroyed or becomes a layer of another model (leat_call_model).
 * Threads: a call on the model. */
#ifndef LEAT_INSPECT_H
#define LEAT_INSPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat/error.h"
#include "leat/model.h"
#include "leat/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Layers ---- */

/** Layers, those of nested models included.  They are numbered from 0: first the layers of Keras's model.layers in that order,
 *  then, for each nested model in turn, its layers in the same way.  A nested model has a number itself, as the layer whose
 *  place it takes.  0 for NULL. */
LEAT_API int leat_model_layer_count(const leat_model *model);

/** The number of the layer with this name, -1 where there is none.  A name is searched for in the model before its nested
 *  models; "outer/inner" names the layer "inner" of the nested model "outer". */
LEAT_API int leat_model_find_layer(const leat_model *model, const char *name);

/** The layer's name, and Keras's name of its class ("Dense"; "Sequential" or "Model" for a nested model).  NULL where there
 *  is no such layer. */
LEAT_API const char *leat_model_layer_name(const leat_model *model, int layer);
LEAT_API const char *leat_model_layer_class(const leat_model *model, int layer);

/** The number of the nested model that the layer is in; -1 for a layer of model.layers, and where there is no such layer. */
LEAT_API int leat_model_layer_parent(const leat_model *model, int layer);

/** layer.trainable, as leat_model_set_trainable left it; false where there is no such layer. */
LEAT_API bool leat_model_layer_trainable(const leat_model *model, int layer);

/** layer.get_config() as a JSON object; that of a nested model holds the configurations of its layers.
 *  @param[out] out  A string for leat_string_free; NULL on failure.
 *  Errors: LEAT_EINVAL the layer's number; LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_model_layer_config(const leat_model *model, int layer, char **out,
                                                          leat_error *err);

/** layer.get_weights(): how many weights the layer has (a nested model has those of its layers), and the index of one of
 *  them for leat_model_weight; -1 where there is no such weight.  leat_model_set_trainable can change indices. */
LEAT_API int leat_model_layer_weight_count(const leat_model *model, int layer);
LEAT_API int leat_model_layer_weight(const leat_model *model, int layer, int index);

/* ---- Connections ---- */

/** Where a tensor comes from: output `output` of call number `call` of a layer. */
typedef struct leat_layer_source {
    int32_t layer;
    int32_t call;
    int32_t output;
} leat_layer_source;

/** How often the layer is called in the graph that it belongs to (more than once where its weights are shared), and how
 *  many tensors such a call reads and makes.  An InputLayer has one call, which reads none.  0 where there is none. */
LEAT_API int leat_model_layer_call_count(const leat_model *model, int layer);
LEAT_API int leat_model_layer_input_count(const leat_model *model, int layer, int call);
LEAT_API int leat_model_layer_output_count(const leat_model *model, int layer, int call);

/** Which tensor is input `index` of the call.  The source is a layer of the same model or nested model.
 *  @param[out] out  Zeroed on failure.  Errors: LEAT_EINVAL a number that is out of range. */
LEAT_API LEAT_CHECKED leat_status leat_model_layer_input(const leat_model *model, int layer, int call,
                                                         int index, leat_layer_source *out, leat_error *err);

/** The shapes of the tensors that a call reads and makes: the batch in front, -1 for None, data NULL.
 *  @param[out] out  Zeroed on failure.  Errors: LEAT_EINVAL a number that is out of range. */
LEAT_API LEAT_CHECKED leat_status leat_model_layer_input_shape(const leat_model *model, int layer, int call,
                                                               int index, leat_tensor *out, leat_error *err);
LEAT_API LEAT_CHECKED leat_status leat_model_layer_output_shape(const leat_model *model, int layer, int call,
                                                                int index, leat_tensor *out, leat_error *err);

/* ---- Weights ---- */

/** The index for leat_model_weight of the weight with this name ("dense_1/kernel:0", or "dense_1/kernel"); -1 where there is
 *  none. */
LEAT_API int leat_model_find_weight(const leat_model *model, const char *name);

/** Whether training would change the weight if the model were compiled now: it is among Keras's model.trainable_weights. */
LEAT_API bool leat_model_weight_trainable(const leat_model *model, int index);

/* ---- What the model was compiled with ---- */

/** The optimizer as JSON, with the learning rate that it has now: {"class_name": "Adam", "config": {...}}.
 *  leat_compile_options.optimizer takes it.
 *  @param[out] out  A string for leat_string_free; NULL on failure.
 *  Errors: LEAT_EINVAL a model that is not compiled; LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_model_optimizer_config(const leat_model *model, char **out,
                                                              leat_error *err);

/** All arguments of compile as JSON, as Keras's files hold them: an object with the keys optimizer_config, loss, metrics,
 *  weighted_metrics, sample_weight_mode and loss_weights.
 *  @param[out] out  A string for leat_string_free; NULL on failure.
 *  Errors: LEAT_EINVAL a model that is not compiled; LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_model_training_config(const leat_model *model, char **out,
                                                             leat_error *err);

/* ---- The optimizer's state ---- */

/** optimizer.get_weights(): the step counter first, then one tensor per slot and weight.  0 for a model that is not
 *  compiled.  A compiled model has all of them before its first step. */
LEAT_API int leat_model_optimizer_weight_count(const leat_model *model);

/** Data type, shape and name of one of them; data is NULL.
 *  @param[out] out  Zeroed on failure.
 *  @param[out] name  NULL allowed: room for LEAT_OPTIMIZER_NAME_BYTES bytes, "Adam/iterations:0" or "m_0:0".
 *  Errors: LEAT_EINVAL the index. */
#define LEAT_OPTIMIZER_NAME_BYTES 64
LEAT_API LEAT_CHECKED leat_status leat_model_optimizer_weight_shape(const leat_model *model, int index,
                                                                    leat_tensor *out, char *name,
                                                                    leat_error *err);

/** Copies one of them into the memory of `out`, a tensor of the type and shape that leat_model_optimizer_weight_shape says.
 *  Errors: LEAT_EINVAL the index, no data; LEAT_EDTYPE, LEAT_ESHAPE another type or shape. */
LEAT_API LEAT_CHECKED leat_status leat_model_optimizer_weight_get(const leat_model *model, int index,
                                                                  const leat_tensor *out, leat_error *err);

/** Copies `value` into one of them.  The step counter takes every integer type.
 *  Errors: LEAT_EINVAL the index, no data; LEAT_EDTYPE, LEAT_ESHAPE another type or shape. */
LEAT_API LEAT_CHECKED leat_status leat_model_optimizer_weight_set(leat_model *model, int index,
                                                                  const leat_tensor *value, leat_error *err);

#ifdef __cplusplus
}
#endif
#endif
