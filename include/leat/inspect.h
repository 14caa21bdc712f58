/* SPDX-License-Identifier: Apache-2.0 */
/* Inspecting a model at run time: its layers with their configurations, weights and connections, the arguments of
 * compile, and the optimizer's state.  Texts that a function returns are borrowed from the model.  They are valid
 * until the model is destroyed or becomes a layer of another model (leat_call_model).  All functions are calls on
 * the model (leat/error.h says what this means for threads). */
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

/** Returns the number of layers, including layers of nested models; 0 for NULL.  Layers are numbered from 0:
 *  first the layers of Keras's model.layers in their order, then, for each nested model in turn, its layers in
 *  the same way.  A nested model has a number itself, as a layer of the model that contains it. */
LEAT_API int leat_model_layer_count(const leat_model *model);

/** Returns the number of the layer with this name, or -1.  A name is searched for in the model first and then in
 *  its nested models; "outer/inner" is the layer "inner" of the nested model "outer". */
LEAT_API int leat_model_find_layer(const leat_model *model, const char *name);

/** Return the layer's name, and the name of its class in Keras ("Dense"; "Sequential" or "Model" for a nested
 *  model).  NULL if there is no such layer. */
LEAT_API const char *leat_model_layer_name(const leat_model *model, int layer);
LEAT_API const char *leat_model_layer_class(const leat_model *model, int layer);

/** Returns the number of the nested model that contains the layer; -1 for a layer of model.layers, and if there
 *  is no such layer. */
LEAT_API int leat_model_layer_parent(const leat_model *model, int layer);

/** Returns layer.trainable, as set by leat_model_set_trainable; false if there is no such layer. */
LEAT_API bool leat_model_layer_trainable(const leat_model *model, int layer);

/** Gives layer.get_config() as a JSON object.  The object of a nested model contains the configurations of its layers.
 *  @param[out] out  A string for leat_string_free; NULL on failure.
 *  Errors: LEAT_EINVAL there is no such layer; LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_model_layer_config(const leat_model *model, int layer, char **out,
                                                          leat_error *err);

/** Return the number of weights of a layer (layer.get_weights(); a nested model has the weights of its layers),
 *  and the index for leat_model_weight of one of these weights, or -1.  leat_model_set_trainable can change
 *  indices. */
LEAT_API int leat_model_layer_weight_count(const leat_model *model, int layer);
LEAT_API int leat_model_layer_weight(const leat_model *model, int layer, int index);

/* ---- Connections ---- */

/** The origin of a tensor: an output of a call of a layer.  Frozen. */
typedef struct leat_layer_source {
    int32_t layer;  /* number of the layer */
    int32_t call;   /* number of its call, from 0 */
    int32_t output; /* index of the output of that call */
} leat_layer_source;

/** Return the number of calls of a layer in its graph (more than one if its weights are shared), and the numbers
 *  of tensors that a call reads and makes.  An InputLayer has one call, which reads none.  0 if there is no such
 *  layer or call. */
LEAT_API int leat_model_layer_call_count(const leat_model *model, int layer);
LEAT_API int leat_model_layer_input_count(const leat_model *model, int layer, int call);
LEAT_API int leat_model_layer_output_count(const leat_model *model, int layer, int call);

/** Gives the origin of input `index` of a call.  It is a layer of the same model or nested model.
 *  @param[out] out  The origin; zeroed on failure.  Errors: LEAT_EINVAL a number is out of range. */
LEAT_API LEAT_CHECKED leat_status leat_model_layer_input(const leat_model *model, int layer, int call,
                                                         int index, leat_layer_source *out, leat_error *err);

/** Give the shape of an input or output of a call: batch dimension first, -1 for None; `data` is NULL.
 *  @param[out] out  The shape; zeroed on failure.  Errors: LEAT_EINVAL a number is out of range. */
LEAT_API LEAT_CHECKED leat_status leat_model_layer_input_shape(const leat_model *model, int layer, int call,
                                                               int index, leat_tensor *out, leat_error *err);
LEAT_API LEAT_CHECKED leat_status leat_model_layer_output_shape(const leat_model *model, int layer, int call,
                                                                int index, leat_tensor *out, leat_error *err);

/* ---- Weights ---- */

/** Returns the index for leat_model_weight of the weight with this name ("dense_1/kernel:0" or "dense_1/kernel"),
 *  or -1. */
LEAT_API int leat_model_find_weight(const leat_model *model, const char *name);

/** Returns true if training would change the weight if the model were compiled now: the weight is in Keras's
 *  model.trainable_weights. */
LEAT_API bool leat_model_weight_trainable(const leat_model *model, int index);

/* ---- What the model was compiled with ---- */

/** Gives the optimizer with its current learning rate as JSON, {"class_name": "Adam", "config": {...}}, a form that
 *  leat_compile_options.optimizer accepts.
 *  @param[out] out  A string for leat_string_free; NULL on failure.
 *  Errors: LEAT_EINVAL the model is not compiled; LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_model_optimizer_config(const leat_model *model, char **out,
                                                              leat_error *err);

/** Gives all arguments of compile as JSON, or those of the file if the model was loaded without its compilation
 *  (leat_model_load_options.compile), in the form of Keras's files: an object with the keys
 *  optimizer_config, loss, metrics, weighted_metrics, sample_weight_mode and loss_weights.
 *  @param[out] out  A string for leat_string_free; NULL on failure.
 *  Errors: LEAT_EINVAL the model is not compiled; LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_model_training_config(const leat_model *model, char **out,
                                                             leat_error *err);

/* ---- The optimizer's state ---- */

/** Returns the number of tensors of optimizer.get_weights(): the step counter, then one tensor for each optimizer
 *  slot and weight.  0 for a model that is not compiled.  A compiled model has all of them, even before its first
 *  step. */
LEAT_API int leat_model_optimizer_weight_count(const leat_model *model);

/** Gives the data type, the shape and the name of a tensor of optimizer.get_weights().
 *  @param[out] out  The type and shape; `data` is NULL; zeroed on failure.
 *  @param[out] name  NULL allowed: room for LEAT_OPTIMIZER_NAME_BYTES bytes; receives "Adam/iterations:0" or "m_0:0".
 *  Errors: LEAT_EINVAL the index is out of range. */
#define LEAT_OPTIMIZER_NAME_BYTES 64
LEAT_API LEAT_CHECKED leat_status leat_model_optimizer_weight_shape(const leat_model *model, int index,
                                                                    leat_tensor *out, char *name,
                                                                    leat_error *err);

/** Copies a tensor of optimizer.get_weights() into the memory of *out.
 *  @param out  Memory with the type and shape that leat_model_optimizer_weight_shape gives.
 *  Errors: LEAT_EINVAL the index is out of range, or out->data is NULL; LEAT_EDTYPE, LEAT_ESHAPE another type or
 *  shape. */
LEAT_API LEAT_CHECKED leat_status leat_model_optimizer_weight_get(const leat_model *model, int index,
                                                                  const leat_tensor *out, leat_error *err);

/** Replaces a tensor of optimizer.get_weights() by a copy of `value`.  The step counter accepts every integer
 *  type.
 *  Errors: LEAT_EINVAL the index is out of range, or value->data is NULL; LEAT_EDTYPE, LEAT_ESHAPE another type
 *  or shape. */
LEAT_API LEAT_CHECKED leat_status leat_model_optimizer_weight_set(leat_model *model, int index,
                                                                  const leat_tensor *value, leat_error *err);

#ifdef __cplusplus
}
#endif
#endif
