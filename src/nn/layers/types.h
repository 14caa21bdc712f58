/* SPDX-License-Identifier: Apache-2.0 */
/* The layer types, for the registry: one file each, or one family. */
#ifndef LEATI_NN_LAYERS_TYPES_H
#define LEATI_NN_LAYERS_TYPES_H

#include "nn/layer.h"

extern const leati_layer_type leati_layer_activation;
extern const leati_layer_type leati_layer_add;
extern const leati_layer_type leati_layer_average_pooling2d;
extern const leati_layer_type leati_layer_batch_normalization;
extern const leati_layer_type leati_layer_concatenate;
extern const leati_layer_type leati_layer_conv2d;
extern const leati_layer_type leati_layer_dense;
extern const leati_layer_type leati_layer_depthwise_conv2d;
extern const leati_layer_type leati_layer_dropout;
extern const leati_layer_type leati_layer_flatten;
extern const leati_layer_type leati_layer_global_average_pooling2d;
extern const leati_layer_type leati_layer_global_max_pooling2d;
extern const leati_layer_type leati_layer_input;
extern const leati_layer_type leati_layer_lstm;
extern const leati_layer_type leati_layer_masking;
extern const leati_layer_type leati_layer_max_pooling2d;
extern const leati_layer_type leati_layer_permute;
extern const leati_layer_type leati_layer_reshape;
extern const leati_layer_type leati_layer_zero_padding2d;

#endif
