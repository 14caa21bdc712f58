/* SPDX-License-Identifier: Apache-2.0 */
/* Layers that are made of other layers by a few numbers, like TransformerEncoder: the inner layers are made by check,
 * with sizes that build sets when it knows the shape of the input. */
#ifndef LEATI_NN_LAYERS_HUB_BLOCK_H
#define LEATI_NN_LAYERS_HUB_BLOCK_H

#include "nn/activations/activation.h"
#include "nn/layers/layer.h"
#include "nn/layers/wrapping.h"

#define LEATI_BLOCK_MAX_LAYERS 16

/* The inner layers, in Keras's order of weights.  A part of the configuration that is no field; check fills it. */
typedef struct leati_block {
    int32_t count;
    leati_layer *layers[LEATI_BLOCK_MAX_LAYERS];
    const char *groups[LEATI_BLOCK_MAX_LAYERS]; /* the layers' groups in files of current Keras */
} leati_block;

/* For check: makes an inner layer of the name `name`.  Consumes the configuration; NULL is a lack of memory. */
leat_status leati_block_add(leati_layer *outer, leati_block *block, const leati_layer_type *type,
                            const char *name, const char *group, json_t *config, leat_error *err);
/* What the kernels and biases of the inner layers begin with, and their penalties (NULL: none). */
typedef struct leati_block_weights {
    const leati_initializer *kernel, *bias;
    const leati_regularizer *on_kernel, *on_bias;
} leati_block_weights;
/* Like leati_block_add(), for a layer that has a kernel and a bias. */
leat_status leati_block_add_weighted(leati_layer *outer, leati_block *block, const leati_layer_type *type,
                                     const char *name, const char *group, json_t *config,
                                     const leati_block_weights *weights, leat_error *err);
/* For check: add a Dense (activation NULL: linear), a LayerNormalization and a Dropout. */
leat_status leati_block_add_dense(leati_layer *outer, leati_block *block, const char *name, const char *group,
                                  int64_t units, const leati_activation *activation,
                                  const leati_block_weights *weights, leat_error *err);
leat_status leati_block_add_norm(leati_layer *outer, leati_block *block, const char *name, const char *group,
                                 double epsilon, leat_error *err);
leat_status leati_block_add_dropout(leati_layer *outer, leati_block *block, const char *name, double rate,
                                    leat_error *err);
/* For fini. */
void leati_block_fini(leati_block *block);

/* Returns the inner layer of a name, which must be there. */
leati_layer *leati_block_find(const leati_block *block, const char *name);

/* For build: sets an integer of the layer's configuration, unless the layer is built. */
void leati_block_set_size(leati_layer *inner, const char *key, int64_t size);
/* For build: declares the weights of an inner layer that has one input. */
leat_status leati_block_build(leati_layer *outer, const leati_block *block, const char *name,
                              const leati_shape *input, leat_error *err);

/* For weight_path: the path of a weight of an inner layer, or else "vars/<index>" counted from the first weight that
 * the layer has itself. */
void leati_block_weight_path(const leati_block *block, int index, char *out, size_t bytes);

/* For lower: calls an inner layer that has one input, on a value without a mask. */
leati_value leati_block_call(const leati_block *block, const char *name, leati_lowering *lowering,
                             leati_value x);

#endif
