/* SPDX-License-Identifier: Apache-2.0 */
/* The layers that leat knows.  A new one is a file beside this one, a line in types.h and a line here. */
#include "base/error.h"
#include "base/text.h"
#include "nn/layers/types.h"

#include <string.h>

static const leati_layer_type *const types[] = {
    &leati_layer_activation,
    &leati_layer_activity_regularization,
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
    &leati_layer_concatenate,
    &leati_layer_conv1d,
    &leati_layer_conv2d,
    &leati_layer_conv2d_transpose,
    &leati_layer_conv3d,
    &leati_layer_conv3d_transpose,
    &leati_layer_conv_lstm2d,
    &leati_layer_cropping1d,
    &leati_layer_cropping2d,
    &leati_layer_cropping3d,
    &leati_layer_cudnn_gru,
    &leati_layer_cudnn_lstm,
    &leati_layer_dense,
    &leati_layer_depthwise_conv2d,
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
    &leati_layer_identity,
    &leati_layer_input,
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
    &leati_layer_permute,
    &leati_layer_prelu,
    &leati_layer_relu,
    &leati_layer_repeat_vector,
    &leati_layer_rescaling,
    &leati_layer_reshape,
    &leati_layer_rnn,
    &leati_layer_separable_conv1d,
    &leati_layer_separable_conv2d,
    &leati_layer_simple_rnn,
    &leati_layer_softmax,
    &leati_layer_spatial_dropout1d,
    &leati_layer_spatial_dropout2d,
    &leati_layer_spatial_dropout3d,
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
};

/* What stands inside other layers only. */
static const leati_layer_type *const cells[] = {
    &leati_layer_gru_cell,
    &leati_layer_lstm_cell,
    &leati_layer_simple_rnn_cell,
    &leati_layer_stacked_rnn_cells,
};

#define CELL_COUNT (sizeof cells / sizeof cells[0])
#define TYPE_COUNT (sizeof types / sizeof types[0])

const leati_layer_type *leati_layer_type_at(int index) {
    return index >= 0 && (size_t)index < TYPE_COUNT ? types[index] : NULL;
}

const leati_layer_type *leati_layer_type_find(const char *class_name, leat_error *err) {
    const char *names[TYPE_COUNT];
    for (size_t i = 0; i < CELL_COUNT; ++i)
        if (strcmp(cells[i]->class_name, class_name) == 0) return cells[i];
    for (size_t i = 0; i < TYPE_COUNT; ++i) {
        names[i] = types[i]->class_name;
        if (strcmp(names[i], class_name) == 0) return types[i];
    }
    const char *nearest = leati_nearest(class_name, names, TYPE_COUNT);
    if (nearest)
        leat_error_set(err, LEAT_ENOTSUP, "no layer '%s' in leat; did you mean '%s'?", class_name, nearest);
    else
        leat_error_set(err, LEAT_ENOTSUP, "no layer '%s' in leat", class_name);
    return NULL;
}
