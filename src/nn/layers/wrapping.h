/* SPDX-License-Identifier: Apache-2.0 */
/* Layers inside a layer: Bidirectional, TimeDistributed.  The outer layer has the weights, under the inner one's name or
 * its own, and says whether they train; shapes, lowering and configuration stay the inner layer's. */
#ifndef LEATI_NN_LAYERS_WRAPPING_H
#define LEATI_NN_LAYERS_WRAPPING_H

#include "nn/layers/layer.h"

/* For the row LEATI_FIELD_LAYER: {"class_name": ..., "config": ...}; null is NULL.  A layer without a name gets its
 * type's prefix. */
leat_status leati_layer_read(leati_layer **out, const json_t *value, const leati_layer_reader *reader,
                             leat_error *err);
leat_status leati_layer_write(const leati_layer *layer, json_t **out, leat_error *err);

#define LEATI_FIELD_LAYER (&leati_field_layer)
extern const leati_field_kind leati_field_layer;

/* For the row LEATI_FIELD_LAYERS: a list of such, without null. */
#define LEATI_FIELD_LAYERS (&leati_field_layers)
#define LEATI_LAYERS_MAX   4096
extern const leati_field_kind leati_field_layers;

typedef struct leati_layers {
    int32_t count;
    leati_layer **items;
} leati_layers;
leat_status leati_layers_read(leati_layers *out, const json_t *value, const leati_layer_reader *reader,
                              leat_error *err);
leat_status leati_layers_write(const leati_layers *layers, json_t **out, leat_error *err);
void leati_layers_fini(leati_layers *layers);

/* For check: the outer layer's weights shall be the inner one's. */
void leati_layer_adopt(leati_layer *outer, leati_layer *inner);

/* Freezes or thaws a layer, with the one inside where its type says so. */
void leati_layer_set_trainable(leati_layer *layer, bool trainable);

/* For build: declares the inner layer's weights in the outer one, as "<scope>/kernel", or "kernel" where scope is NULL. */
leat_status leati_layer_build_inner(leati_layer *outer, leati_layer *inner, const char *scope,
                                    int input_count, const leati_shape *inputs, leat_error *err);

/* For place: weight `index` of the outer layer, one of the inner layer's, in that one's group "<group>/...". */
void leati_layer_place_inner(const leati_layer *inner, const char *group, int index, char *out, size_t bytes);

/* For lower: calls the inner layer on values and masks (LEATI_NONE: none); its activity_regularizer does not count.
 * Failures are kept by the graph. */
typedef struct leati_inner_call {
    int input_count, output_count;
    leati_value inputs[LEATI_MAX_INPUTS], masks[LEATI_MAX_INPUTS];
    leati_value outputs[LEATI_LAYER_MAX_OUTPUTS], output_masks[LEATI_LAYER_MAX_OUTPUTS]; /* out */
} leati_inner_call;
void leati_layer_lower_inner(const leati_layer *inner, leati_lowering *lowering, leati_inner_call *call);

#endif
