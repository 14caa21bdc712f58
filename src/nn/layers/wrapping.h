/* SPDX-License-Identifier: Apache-2.0 */
/* Layers inside a layer, like that of Bidirectional or TimeDistributed.  The outer layer has the weights and
 * decides if they train; the inner layer decides shapes, lowering and configuration. */
#ifndef LEATI_NN_LAYERS_WRAPPING_H
#define LEATI_NN_LAYERS_WRAPPING_H

#include "nn/layers/layer.h"

/* The field LEATI_FIELD_LAYER: {"class_name": ..., "config": ...}; null is NULL.  A layer without a name gets its
 * type's prefix as its name. */
leat_status leati_layer_read(leati_layer **out, const json_t *value, const leati_layer_reader *reader,
                             leat_error *err);
leat_status leati_layer_write(const leati_layer *layer, json_t **out, leat_error *err);

#define LEATI_FIELD_LAYER (&leati_field_layer)
extern const leati_field_kind leati_field_layer;

/* The field LEATI_FIELD_LAYERS: a list of layers, without null. */
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

/* For check: makes the outer layer the owner of the inner layer's weights. */
void leati_layer_adopt(leati_layer *outer, leati_layer *inner);

/* Freezes or thaws a layer, and the layer inside if the type says so. */
void leati_layer_set_trainable(leati_layer *layer, bool trainable);

/* For build: declares the inner layer's weights in the outer layer, as "<scope>/kernel", or as "kernel" if scope
 * is NULL. */
leat_status leati_layer_build_inner(leati_layer *outer, leati_layer *inner, const char *scope,
                                    int input_count, const leati_shape *inputs, leat_error *err);

/* For weight_path: writes the path of weight `index` of the outer layer, which belongs to the inner layer:
 * "<group>/...". */
void leati_layer_inner_weight_path(const leati_layer *inner, const char *group, int index, char *out,
                                   size_t bytes);

/* For lower: calls the inner layer on values and masks (LEATI_NONE: none), without its activity_regularizer.  The
 * graph keeps failures. */
typedef struct leati_inner_call {
    int input_count, output_count;
    leati_value inputs[LEATI_MAX_INPUTS], masks[LEATI_MAX_INPUTS];
    leati_value outputs[LEATI_LAYER_MAX_OUTPUTS], output_masks[LEATI_LAYER_MAX_OUTPUTS]; /* out */
} leati_inner_call;
void leati_layer_lower_inner(const leati_layer *inner, leati_lowering *lowering, leati_inner_call *call);

#endif
