/* SPDX-License-Identifier: Apache-2.0 */
/* The table of layer types.  A new layer is a file in a folder beside this one, a line in types.h and a line here. */
#include "nn/layers/types.h"

#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "nn/layers/added.h"

const leati_layer_type *const leati_layer_types[] = {
    &leati_layer_activation,
    &leati_layer_activity_regularization,
    &leati_layer_adaptive_average_pooling1d,
    &leati_layer_adaptive_average_pooling2d,
    &leati_layer_adaptive_average_pooling3d,
    &leati_layer_adaptive_max_pooling1d,
    &leati_layer_adaptive_max_pooling2d,
    &leati_layer_adaptive_max_pooling3d,
    &leati_layer_add,
    &leati_layer_additive_attention,
    &leati_layer_alpha_dropout,
    &leati_layer_attention,
    &leati_layer_average,
    &leati_layer_average_pooling1d,
    &leati_layer_average_pooling2d,
    &leati_layer_average_pooling3d,
    &leati_layer_batch_normalization,
    &leati_layer_bidirectional,
    &leati_layer_category_encoding,
    &leati_layer_center_crop,
    &leati_layer_concatenate,
    &leati_layer_conv1d,
    &leati_layer_conv1d_transpose,
    &leati_layer_conv2d,
    &leati_layer_conv2d_transpose,
    &leati_layer_conv3d,
    &leati_layer_conv3d_transpose,
    &leati_layer_conv_lstm1d,
    &leati_layer_conv_lstm2d,
    &leati_layer_conv_lstm3d,
    &leati_layer_cropping1d,
    &leati_layer_cropping2d,
    &leati_layer_cropping3d,
    &leati_layer_custom_scale_layer,
    &leati_layer_cudnn_gru,
    &leati_layer_cudnn_lstm,
    &leati_layer_dense,
    &leati_layer_depthwise_conv1d,
    &leati_layer_depthwise_conv2d,
    &leati_layer_discretization,
    &leati_layer_dot,
    &leati_layer_dropout,
    &leati_layer_einsum_dense,
    &leati_layer_elu,
    &leati_layer_embedding,
    &leati_layer_flatten,
    &leati_layer_gaussian_dropout,
    &leati_layer_gaussian_noise,
    &leati_layer_global_average_pooling1d,
    &leati_layer_global_average_pooling2d,
    &leati_layer_global_average_pooling3d,
    &leati_layer_global_max_pooling1d,
    &leati_layer_global_max_pooling2d,
    &leati_layer_global_max_pooling3d,
    &leati_layer_group_normalization,
    &leati_layer_group_query_attention,
    &leati_layer_gru,
    &leati_layer_hashed_crossing,
    &leati_layer_hashing,
    &leati_layer_identity,
    &leati_layer_input,
    &leati_layer_integer_lookup,
    &leati_layer_layer_normalization,
    &leati_layer_layer_scale,
    &leati_layer_leaky_relu,
    &leati_layer_locally_connected1d,
    &leati_layer_locally_connected2d,
    &leati_layer_lstm,
    &leati_layer_masking,
    &leati_layer_max_pooling1d,
    &leati_layer_max_pooling2d,
    &leati_layer_max_pooling3d,
    &leati_layer_maximum,
    &leati_layer_minimum,
    &leati_layer_multi_head_attention,
    &leati_layer_multiply,
    &leati_layer_normalization,
    &leati_layer_operation,
    &leati_layer_permute,
    &leati_layer_prelu,
    &leati_layer_mel_spectrogram,
    &leati_layer_stft_spectrogram,
    &leati_layer_random_brightness,
    &leati_layer_random_color_degeneration,
    &leati_layer_random_color_jitter,
    &leati_layer_random_contrast,
    &leati_layer_random_crop,
    &leati_layer_random_elastic_transform,
    &leati_layer_random_erasing,
    &leati_layer_random_flip,
    &leati_layer_random_gaussian_blur,
    &leati_layer_random_grayscale,
    &leati_layer_random_hue,
    &leati_layer_random_invert,
    &leati_layer_random_perspective,
    &leati_layer_random_posterization,
    &leati_layer_random_rotation,
    &leati_layer_random_saturation,
    &leati_layer_random_sharpness,
    &leati_layer_random_shear,
    &leati_layer_random_translation,
    &leati_layer_random_zoom,
    &leati_layer_relu,
    &leati_layer_repeat_vector,
    &leati_layer_rescaling,
    &leati_layer_reshape,
    &leati_layer_resizing,
    &leati_layer_reversible_embedding,
    &leati_layer_rms_normalization,
    &leati_layer_rnn,
    &leati_layer_separable_conv1d,
    &leati_layer_separable_conv2d,
    &leati_layer_simple_rnn,
    &leati_layer_softmax,
    &leati_layer_spatial_dropout1d,
    &leati_layer_spatial_dropout2d,
    &leati_layer_spatial_dropout3d,
    &leati_layer_spectral_normalization,
    &leati_layer_stochastic_depth,
    &leati_layer_subtract,
    &leati_layer_thresholded_relu,
    &leati_layer_time_distributed,
    &leati_layer_unit_normalization,
    &leati_layer_up_sampling1d,
    &leati_layer_up_sampling2d,
    &leati_layer_up_sampling3d,
    &leati_layer_zero_padding1d,
    &leati_layer_zero_padding2d,
    &leati_layer_zero_padding3d,
    &leati_layer_f_net_encoder,
    &leati_layer_masked_lm_head,
    &leati_layer_position_embedding,
    &leati_layer_rotary_embedding,
    &leati_layer_sine_position_encoding,
    &leati_layer_token_and_position_embedding,
    &leati_layer_transformer_decoder,
    &leati_layer_transformer_encoder,
    NULL,
};

/* Types that are only allowed inside other layers. */
static const leati_layer_type *const cells[] = {
    &leati_layer_gru_cell,
    &leati_layer_lstm_cell,
    &leati_layer_simple_rnn_cell,
    &leati_layer_stacked_rnn_cells,
    NULL,
};

/* Types of layers that tf.keras adds to a model by itself, so that nobody makes them. */
static const leati_layer_type *const added[] = {&leati_layer_add_loss, &leati_layer_add_metric, NULL};

static const leati_layer_type *find(const leati_layer_type *const *types, const char *class_name) {
    while (*types && strcmp((*types)->class_name, class_name) != 0) ++types;
    return *types;
}

const leati_layer_type *leati_layer_find(const char *class_name) {
    const leati_layer_type *type = find(cells, class_name);
    if (!type) type = find(added, class_name);
    return type ? type : find(leati_layer_types, class_name);
}

bool leati_layer_is_added(const leati_layer *layer) {
    return layer->type == &leati_layer_add_loss || layer->type == &leati_layer_add_metric;
}

const char *leati_layer_name_at(int index) {
    const leati_layer_type *type = leati_layer_types[index];
    return type ? type->class_name : NULL;
}

/* Keras's layers that leat does not have, with what takes their place. */
static const char image_step[] = "it changes images in training: remove the layer from the model in Keras "
                                 "and augment the pictures of the data "
                                 "instead (docs/pictures.md)";
static const char image_filter[] = "it filters images in predictions, too: apply it to the data, and remove "
                                   "the layer from the model in Keras";
static const char foreign_code[] =
    "it has code of another library: write the layer in C and register it (leat/layer.h)";
static const struct {
    const char *class_name, *instead;
} absent[] = {{"AugMix", image_step},
              {"CutMix", image_step},
              {"MixUp", image_step},
              {"RandAugment", image_step},
              {"AutoContrast", image_filter},
              {"ContrastLimitedAdaptiveHistogramEqualization", image_filter},
              {"Equalization", image_step},
              {"Solarization", image_step},
              {"MaxNumBoundingBoxes", "it prepares boxes for detection: apply it to the data"},
              {"FlaxLayer", foreign_code},
              {"JaxLayer", foreign_code},
              {"TFSMLayer", foreign_code},
              {"TorchModuleWrapper", foreign_code}};

leat_status leati_layer_unknown(const char *class_name, leat_error *err) {
    const char *names[sizeof leati_layer_types / sizeof leati_layer_types[0]];
    size_t count = 0;
    for (; leati_layer_types[count]; ++count) names[count] = leati_layer_types[count]->class_name;
    if (strcmp(class_name, "StringLookup") == 0 || strcmp(class_name, "TextVectorization") == 0)
        return leati_fail(
            err, LEAT_ENOTSUP,
            "no layer '%s' in leat, which has no tensors of strings: save the model that begins "
            "behind this layer (in Keras: keras.Model(layer.output, model.outputs)), and feed it the "
            "indices that the layer gives",
            class_name);
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; ++i)
        if (strcmp(absent[i].class_name, class_name) == 0)
            return leati_fail(err, LEAT_ENOTSUP, "no layer '%s' in leat; %s", class_name, absent[i].instead);
    const char *nearest = leati_nearest(class_name, names, count);
    return leati_fail(
        err, LEAT_ENOTSUP,
        "no layer '%s' in leat%s%s%s; a layer class of your own, or of a package, is written in C "
        "and registered under this name: leat_registry_add in leat/layer.h (a plugin for the "
        "command: --layers)",
        class_name, nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}
