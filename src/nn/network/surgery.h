/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of a finished network: other outputs, an input in place of an inner tensor, more outputs of a nested model.
 * After them the network must be finished again. */
#ifndef LEATI_NN_NETWORK_SURGERY_H
#define LEATI_NN_NETWORK_SURGERY_H

#include "nn/network/network.h"

/* Like leati_network_finish, but for a model that may be finished already.  Weights keep their values until the next
 * leati_weights_layout.  On failure the model can only be destroyed. */
leat_status leati_network_finish_again(leat_model *model, int32_t input_count, const leati_source *inputs,
                                       int32_t output_count, const leati_source *outputs, leat_error *err);

/* Finds the tensors that a layer makes.
 * @param path  "dense_1"; "dense_1:2" for call 2 of a layer that is called several times; "-2" for a layer by its index
 * in Keras's model.layers; "outer/inner" for a layer of a nested model, to which outputs are added for its tensors.
 * @param[out] out  Room for LEATI_LAYER_MAX_OUTPUTS sources.
 * Errors: LEAT_ENOTFOUND no such layer; LEAT_EINVAL the layer is called several times; LEAT_ENOTSUP the nested model
 * has too many outputs. */
leat_status leati_network_outputs_of(leat_model *model, const char *path, leati_source *out, int32_t *count,
                                     leat_error *err);

/* Finds the call of a layer of the outermost model, by the same names.
 * Errors: as in leati_network_outputs_of; LEAT_ENOTSUP the layer is inside a nested model. */
leat_status leati_network_call_named(const leat_model *model, const char *path, int32_t *member,
                                     int32_t *call, leat_error *err);

/* Makes an InputLayer that takes the place of a tensor: all calls that read *source read the new input afterwards, and
 * *source becomes the new input.  A tensor of an InputLayer stays.
 * @param name  The name of the new InputLayer; another one is chosen if it is taken. */
leat_status leati_network_begin_at(leat_model *model, leati_source *source, const char *name,
                                   leat_error *err);

/* Drops outputs of nested models that nothing reads, and the layers that only these outputs need.  The outermost model
 * must be finished. */
leat_status leati_network_drop_unread(leat_model *model, leat_error *err);

#endif
