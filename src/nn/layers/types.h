/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptors of leat's layer types, each defined in the file of the layer or of its family. */
#ifndef LEATI_NN_LAYERS_TYPES_H
#define LEATI_NN_LAYERS_TYPES_H

#include "nn/layers/layer.h"

/* All types except cells, NULL-terminated. */
extern const leati_layer_type *const leati_layer_types[];
/* Returns the type of a Keras class name, cells included; NULL if there is none. */
const leati_layer_type *leati_layer_find(const char *class_name);
/* Returns a class name of leati_layer_types: index from 0; NULL at the end. */
const char *leati_layer_name_at(int index);
/* Returns the failure "no layer 'Dens' in leat; did you mean 'Dense'?", LEAT_ENOTSUP. */
leat_status leati_layer_unknown(const char *class_name, leat_error *err);

/* True for Add and its kin, and Concatenate (merging/merge.c). */
bool leati_layer_merges(const leati_layer_type *type);

extern const leati_layer_type leati_layer_activation;
extern const leati_layer_type leati_layer_activity_regularization;
extern const leati_layer_type leati_layer_adaptive_average_pooling1d;
extern const leati_layer_type leati_layer_adaptive_average_pooling2d;
extern const leati_layer_type leati_layer_adaptive_average_pooling3d;
extern const leati_layer_type leati_layer_adaptive_max_pooling1d;
extern const leati_layer_type leati_layer_adaptive_max_pooling2d;
extern const leati_layer_type leati_layer_adaptive_max_pooling3d;
extern const leati_layer_type leati_layer_add;
extern const leati_layer_type leati_layer_add_loss;
extern const leati_layer_type leati_layer_add_metric;
extern const leati_layer_type leati_layer_additive_attention;
extern const leati_layer_type leati_layer_alpha_dropout;
extern const leati_layer_type leati_layer_attention;
extern const leati_layer_type leati_layer_average;
extern const leati_layer_type leati_layer_average_pooling1d;
extern const leati_layer_type leati_layer_average_pooling2d;
extern const leati_layer_type leati_layer_average_pooling3d;
extern const leati_layer_type leati_layer_batch_normalization;
extern const leati_layer_type leati_layer_bidirectional;
extern const leati_layer_type leati_layer_category_encoding;
extern const leati_layer_type leati_layer_center_crop;
extern const leati_layer_type leati_layer_concatenate;
extern const leati_layer_type leati_layer_conv1d;
extern const leati_layer_type leati_layer_conv1d_transpose;
extern const leati_layer_type leati_layer_conv2d;
extern const leati_layer_type leati_layer_conv2d_transpose;
extern const leati_layer_type leati_layer_conv3d;
extern const leati_layer_type leati_layer_conv3d_transpose;
extern const leati_layer_type leati_layer_cropping1d;
extern const leati_layer_type leati_layer_cropping2d;
extern const leati_layer_type leati_layer_cropping3d;
extern const leati_layer_type leati_layer_custom_scale_layer;
extern const leati_layer_type leati_layer_dense;
extern const leati_layer_type leati_layer_depthwise_conv1d;
extern const leati_layer_type leati_layer_depthwise_conv2d;
extern const leati_layer_type leati_layer_discretization;
extern const leati_layer_type leati_layer_dot;
extern const leati_layer_type leati_layer_dropout;
extern const leati_layer_type leati_layer_einsum_dense;
extern const leati_layer_type leati_layer_elu;
extern const leati_layer_type leati_layer_embedding;
extern const leati_layer_type leati_layer_flatten;
extern const leati_layer_type leati_layer_f_net_encoder;
extern const leati_layer_type leati_layer_gaussian_dropout;
extern const leati_layer_type leati_layer_gaussian_noise;
extern const leati_layer_type leati_layer_group_query_attention;
extern const leati_layer_type leati_layer_global_average_pooling1d;
extern const leati_layer_type leati_layer_global_average_pooling2d;
extern const leati_layer_type leati_layer_global_average_pooling3d;
extern const leati_layer_type leati_layer_global_max_pooling1d;
extern const leati_layer_type leati_layer_global_max_pooling2d;
extern const leati_layer_type leati_layer_global_max_pooling3d;
extern const leati_layer_type leati_layer_group_normalization;
extern const leati_layer_type leati_layer_gru;
extern const leati_layer_type leati_layer_hashed_crossing;
extern const leati_layer_type leati_layer_hashing;
extern const leati_layer_type leati_layer_identity;
extern const leati_layer_type leati_layer_input;
extern const leati_layer_type leati_layer_integer_lookup;
extern const leati_layer_type leati_layer_layer_normalization;
extern const leati_layer_type leati_layer_layer_scale;
extern const leati_layer_type leati_layer_leaky_relu;
extern const leati_layer_type leati_layer_locally_connected1d;
extern const leati_layer_type leati_layer_locally_connected2d;
extern const leati_layer_type leati_layer_masked_lm_head;
extern const leati_layer_type leati_layer_lstm;
extern const leati_layer_type leati_layer_masking;
extern const leati_layer_type leati_layer_max_pooling1d;
extern const leati_layer_type leati_layer_max_pooling2d;
extern const leati_layer_type leati_layer_max_pooling3d;
extern const leati_layer_type leati_layer_maximum;
extern const leati_layer_type leati_layer_minimum;
extern const leati_layer_type leati_layer_mel_spectrogram;
extern const leati_layer_type leati_layer_stft_spectrogram;
extern const leati_layer_type leati_layer_random_brightness;
extern const leati_layer_type leati_layer_random_color_degeneration;
extern const leati_layer_type leati_layer_random_color_jitter;
extern const leati_layer_type leati_layer_random_contrast;
extern const leati_layer_type leati_layer_random_crop;
extern const leati_layer_type leati_layer_random_elastic_transform;
extern const leati_layer_type leati_layer_random_erasing;
extern const leati_layer_type leati_layer_random_flip;
extern const leati_layer_type leati_layer_random_gaussian_blur;
extern const leati_layer_type leati_layer_random_grayscale;
extern const leati_layer_type leati_layer_random_hue;
extern const leati_layer_type leati_layer_random_invert;
extern const leati_layer_type leati_layer_random_perspective;
extern const leati_layer_type leati_layer_random_posterization;
extern const leati_layer_type leati_layer_random_rotation;
extern const leati_layer_type leati_layer_random_saturation;
extern const leati_layer_type leati_layer_random_sharpness;
extern const leati_layer_type leati_layer_random_shear;
extern const leati_layer_type leati_layer_random_translation;
extern const leati_layer_type leati_layer_random_zoom;
extern const leati_layer_type leati_layer_resizing;
extern const leati_layer_type leati_layer_scaled_sum;
extern const leati_layer_type leati_layer_multi_head_attention;
extern const leati_layer_type leati_layer_multiply;
extern const leati_layer_type leati_layer_normalization;
extern const leati_layer_type leati_layer_operation;
extern const leati_layer_type leati_layer_permute;
extern const leati_layer_type leati_layer_position_embedding;
extern const leati_layer_type leati_layer_prelu;
extern const leati_layer_type leati_layer_relu;
extern const leati_layer_type leati_layer_repeat_vector;
extern const leati_layer_type leati_layer_rescaling;
extern const leati_layer_type leati_layer_reshape;
extern const leati_layer_type leati_layer_reversible_embedding;
extern const leati_layer_type leati_layer_rms_normalization;
extern const leati_layer_type leati_layer_conv_lstm1d;
extern const leati_layer_type leati_layer_conv_lstm2d;
extern const leati_layer_type leati_layer_conv_lstm3d;
extern const leati_layer_type leati_layer_cudnn_gru;
extern const leati_layer_type leati_layer_cudnn_lstm;
extern const leati_layer_type leati_layer_rnn;
extern const leati_layer_type leati_layer_rotary_embedding;
extern const leati_layer_type leati_layer_stacked_rnn_cells;
extern const leati_layer_type leati_layer_separable_conv1d;
extern const leati_layer_type leati_layer_separable_conv2d;
extern const leati_layer_type leati_layer_simple_rnn;
extern const leati_layer_type leati_layer_sine_position_encoding;
extern const leati_layer_type leati_layer_softmax;
extern const leati_layer_type leati_layer_spatial_dropout1d;
extern const leati_layer_type leati_layer_spatial_dropout2d;
extern const leati_layer_type leati_layer_spatial_dropout3d;
extern const leati_layer_type leati_layer_spectral_normalization;
extern const leati_layer_type leati_layer_stochastic_depth;
extern const leati_layer_type leati_layer_subtract;
extern const leati_layer_type leati_layer_thresholded_relu;
extern const leati_layer_type leati_layer_time_distributed;
extern const leati_layer_type leati_layer_token_and_position_embedding;
extern const leati_layer_type leati_layer_transformer_decoder;
extern const leati_layer_type leati_layer_transformer_encoder;
extern const leati_layer_type leati_layer_unit_normalization;
extern const leati_layer_type leati_layer_up_sampling1d;
extern const leati_layer_type leati_layer_up_sampling2d;
extern const leati_layer_type leati_layer_up_sampling3d;
extern const leati_layer_type leati_layer_zero_padding1d;
extern const leati_layer_type leati_layer_zero_padding2d;
extern const leati_layer_type leati_layer_zero_padding3d;

/* Cells, which are only allowed inside an RNN layer. */
extern const leati_layer_type leati_layer_gru_cell;
extern const leati_layer_type leati_layer_lstm_cell;
extern const leati_layer_type leati_layer_simple_rnn_cell;

/* Returns the type of a Lambda whose code leat knows, by its configuration; NULL for another Lambda. */
const leati_layer_type *leati_layer_find_lambda(const json_t *config);

#endif
