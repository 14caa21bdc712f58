/* SPDX-License-Identifier: Apache-2.0 */
/* Making a model, for the builder and the reader of configurations: members, then calls, then the whole.  A model that
 * is being made may be destroyed at any point. */
#ifndef LEATI_NN_MODEL_NETWORK_H
#define LEATI_NN_MODEL_NETWORK_H

#include "nn/model/model.h"

/* class_name: "Sequential" or "Model". */
leat_status leati_network_create(leat_model **out, const char *class_name, leat_error *err);

/* Take *layer or *inner over (and set it to NULL), whether they succeed or fail; *member is its place.  One without a
 * name gets one.  An InputLayer has its call at once.
 * Errors: LEAT_EINVAL a name that is taken; LEAT_ENOTSUP more than LEATI_NETWORK_MAX_MEMBERS. */
#define LEATI_NETWORK_MAX_MEMBERS 4096
leat_status leati_network_add_layer(leat_model *model, leati_layer **layer, int32_t *member, leat_error *err);
leat_status leati_network_add_model(leat_model *model, leat_model **inner, int32_t *member, leat_error *err);

/* "dense_1", "dense_2", ...: the first that is free. */
void leati_network_free_name(const leat_model *model, const char *prefix, char out[LEAT_NAME_BYTES]);
/* The member of that name, or -1. */
int32_t leati_network_find(const leat_model *model, const char *name);

/* Calls a member on tensors of the model: infers shapes, declares weights at the first call.  Errors name the layer. */
leat_status leati_network_call(leat_model *model, int32_t member, int32_t count, const leati_source *inputs,
                               leat_error *err);

/* Whether a source is a tensor of the model so far. */
bool leati_network_has(const leat_model *model, const leati_source *source);
leati_shape leati_network_shape(const leat_model *model, const leati_source *source);

/* Says what goes in and out; drops what the outputs do not need, and sorts members and steps as Keras does.
 * Errors: LEAT_EINVAL an input that is no InputLayer, an InputLayer that is not among the inputs. */
leat_status leati_network_finish(leat_model *model, int32_t input_count, const leati_source *inputs,
                                 int32_t output_count, const leati_source *outputs, leat_error *err);

/* Joins the members of a Sequential that has been waiting for its input's shape.  It has none yet: input_count is 0. */
leat_status leati_sequential_connect(leat_model *model, const leati_shape *shape, leat_error *err);

/* The shapes that a model makes where it is called as a layer: a Sequential may have waited for its input's.
 * Errors: LEAT_EINVAL the number of inputs; LEAT_ENOTSUP more outputs than a layer can have. */
leat_status leati_network_infer_call(leat_model *model, int count, const leati_shape *inputs,
                                     leati_shape *outputs, int *output_count, leat_error *err);

/* The shapes that a finished model makes of others.  Errors: LEAT_ESHAPE with the layer's name. */
leat_status leati_network_infer(const leat_model *model, const leati_shape *inputs, leati_shape *outputs,
                                leat_error *err);

/* Adds the ops of such a call, with masks (LEATI_NONE: none) of what goes in and comes out. */
leat_status leati_network_lower(const leat_model *model, leati_lowering *lowering, const leati_value *inputs,
                                const leati_value *masks, leati_value *outputs, leati_value *output_masks,
                                leat_error *err);

/* Frees members, steps, inputs and outputs. */
void leati_network_fini(leat_model *model);

/* A stream of random numbers: the one of `name` within another. */
uint64_t leati_stream(uint64_t parent, const char *name);

#endif
