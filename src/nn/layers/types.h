/* SPDX-License-Identifier: Apache-2.0 */
/* The layer types, for the registry: one file each, or one family. */
#ifndef LEATI_NN_LAYERS_TYPES_H
#define LEATI_NN_LAYERS_TYPES_H

#include "nn/layer.h"

extern const leati_layer_type leati_layer_activation;
extern const leati_layer_type leati_layer_activity_regularization;
extern const leati_layer_type leati_layer_add;
extern const leati_layer_type leati_layer_alpha_dropout;
extern const leati_layer_type leati_layer_average;
extern const leati_layer_type leati_layer_average_pooling2d;
extern const leati_layer_type leati_layer_batch_normalization;
extern const leati_layer_type leati_layer_concatenate;
extern const leati_layer_type leati_layer_conv1d;
extern const leati_layer_type leati_layer_conv2d;
extern const leati_layer_type leati_layer_conv2d_transpose;
extern const leati_layer_type leati_layer_conv3d;
extern const leati_layer_type leati_layer_conv3d_transpose;
extern const leati_layer_type leati_layer_dense;
extern const leati_layer_type leati_layer_depthwise_conv2d;
extern const leati_layer_type leati_layer_dropout;
extern const leati_layer_type leati_layer_elu;
extern const leati_layer_type leati_layer_flatten;
extern const leati_layer_type leati_layer_global_average_pooling2d;
extern const leati_layer_type leati_layer_global_max_pooling2d;
extern const leati_layer_type leati_layer_input;
extern const leati_layer_type leati_layer_leaky_relu;
extern const leati_layer_type leati_layer_locally_connected1d;
extern const leati_layer_type leati_layer_locally_connected2d;
extern const leati_layer_type leati_layer_lstm;
extern const leati_layer_type leati_layer_masking;
extern const leati_layer_type leati_layer_max_pooling2d;
extern const leati_layer_type leati_layer_maximum;
extern const leati_layer_type leati_layer_minimum;
extern const leati_layer_type leati_layer_multiply;
extern const leati_layer_type leati_layer_permute;
extern const leati_layer_type leati_layer_prelu;
extern const leati_layer_type leati_layer_relu;
extern const leati_layer_type leati_layer_repeat_vector;
extern const leati_layer_type leati_layer_reshape;
extern const leati_layer_type leati_layer_separable_conv1d;
extern const leati_layer_type leati_layer_separable_conv2d;
extern const leati_layer_type leati_layer_softmax;
extern const leati_layer_type leati_layer_spatial_dropout1d;
extern const leati_layer_type leati_layer_spatial_dropout2d;
extern const leati_layer_type leati_layer_spatial_dropout3d;
extern const leati_layer_type leati_layer_subtract;
extern const leati_layer_type leati_layer_thresholded_relu;
extern const leati_layer_type leati_layer_zero_padding2d;

#endif
