/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/examples.h"

#include <stddef.h>

#define VECTOR                                                                                               \
    {                                                                                                        \
        1, {                                                                                                 \
            5                                                                                                \
        }                                                                                                    \
    }
#define MATRIX                                                                                               \
    {                                                                                                        \
        2, {                                                                                                 \
            4, 5                                                                                             \
        }                                                                                                    \
    }
#define IMAGE                                                                                                \
    {                                                                                                        \
        3, {                                                                                                 \
            6, 7, 2                                                                                          \
        }                                                                                                    \
    }
#define VOLUME                                                                                               \
    {                                                                                                        \
        4, {                                                                                                 \
            3, 4, 5, 2                                                                                       \
        }                                                                                                    \
    }
#define SEQUENCE                                                                                             \
    {                                                                                                        \
        2, {                                                                                                 \
            4, 3                                                                                             \
        }                                                                                                    \
    }
#define STATE                                                                                                \
    {                                                                                                        \
        1, {                                                                                                 \
            3                                                                                                \
        }                                                                                                    \
    }
#define ACTIVATION(name)                                                                                     \
    {                                                                                                        \
        "Activation", "\"activation\": \"" name "\"", {                                                      \
            MATRIX                                                                                           \
        }                                                                                                    \
    }
#define INNER(class_name, ...)                                                                               \
    "\"layer\": {\"class_name\": \"" class_name "\", \"config\": {" __VA_ARGS__ "}}"
#define CELL(class_name, ...) "\"cell\": {\"class_name\": \"" class_name "\", \"config\": {" __VA_ARGS__ "}}"
#define EVERYTHING                                                                                           \
    "\"kernel_regularizer\": {\"class_name\": \"L1L2\", \"config\": {\"l1\": 0.001, \"l2\": 0.01}}, "        \
    "\"bias_regularizer\": \"l2\", \"activity_regularizer\": \"l1\", \"kernel_constraint\": \"max_norm\", "  \
    "\"bias_constraint\": {\"class_name\": \"MinMaxNorm\", \"config\": {\"min_value\": 0.0, \"max_value\": " \
    "2.0, "                                                                                                  \
    "\"rate\": 0.5, \"axis\": 0}}, \"bias_initializer\": \"random_uniform\""

const example examples[] = {
    ACTIVATION("linear"),
    ACTIVATION("softmax"),
    ACTIVATION("elu"),
    ACTIVATION("selu"),
    ACTIVATION("softplus"),
    ACTIVATION("softsign"),
    ACTIVATION("relu"),
    ACTIVATION("tanh"),
    ACTIVATION("sigmoid"),
    ACTIVATION("hard_sigmoid"),
    ACTIVATION("exponential"),
    ACTIVATION("relu6"),
    ACTIVATION("leaky_relu"),
    ACTIVATION("celu"),
    ACTIVATION("gelu"),
    ACTIVATION("silu"),
    ACTIVATION("swish"),
    ACTIVATION("hard_silu"),
    ACTIVATION("hard_swish"),
    ACTIVATION("mish"),
    ACTIVATION("hard_tanh"),
    ACTIVATION("sparse_sigmoid"),
    ACTIVATION("log_softmax"),
    ACTIVATION("log_sigmoid"),
    ACTIVATION("tanh_shrink"),
    ACTIVATION("soft_shrink"),
    ACTIVATION("hard_shrink"),
    ACTIVATION("squareplus"),
    ACTIVATION("sparse_plus"),
    ACTIVATION("sparsemax"),
    ACTIVATION("keras_hub>gelu_approximate"),
    {"Activation", "\"activation\": \"glu\"", {IMAGE}},
    {"Add", "", {MATRIX, MATRIX}},
    {"Add", "", {MATRIX, {1, {5}}, {2, {1, 5}}}},
    {"Add", "\"as_keras3\": true", {MATRIX, {1, {5}}}},
    {"AdaptiveAveragePooling1D", "\"output_size\": 2", {SEQUENCE}},
    {"AdaptiveAveragePooling1D",
     "\"output_size\": [40], \"data_format\": \"channels_first\"",
     {{2, {3, 37}}}},
    {"AdaptiveAveragePooling2D", "\"output_size\": 1", {IMAGE}},
    {"AdaptiveAveragePooling2D",
     "\"output_size\": [3, 5], \"data_format\": \"channels_first\"",
     {{3, {2, 6, 7}}}},
    {"AdaptiveAveragePooling3D", "\"output_size\": 2", {VOLUME}},
    {"AdaptiveAveragePooling3D",
     "\"output_size\": [2, 3, 1], \"data_format\": \"channels_first\"",
     {{4, {2, 3, 4, 5}}}},
    {"AdaptiveMaxPooling1D", "\"output_size\": 3", {SEQUENCE}},
    {"AdaptiveMaxPooling1D", "\"output_size\": [5], \"data_format\": \"channels_first\"", {{2, {3, 7}}}},
    {"AdaptiveMaxPooling2D", "\"output_size\": 1", {IMAGE}},
    {"AdaptiveMaxPooling2D",
     "\"output_size\": [3, 5], \"data_format\": \"channels_first\"",
     {{3, {2, 6, 7}}}},
    {"AdaptiveMaxPooling3D", "\"output_size\": 2", {VOLUME}},
    {"AdaptiveMaxPooling3D",
     "\"output_size\": [2, 3, 1], \"data_format\": \"channels_first\"",
     {{4, {2, 3, 4, 5}}}},
    {"AveragePooling2D", "", {IMAGE}},
    {"AveragePooling2D", "\"pool_size\": [3, 2], \"strides\": 2, \"padding\": \"same\"", {IMAGE}},
    {"AveragePooling2D", "\"data_format\": \"channels_first\"", {IMAGE}},
    {"BatchNormalization", "", {VECTOR}},
    {"BatchNormalization", "\"axis\": 1, \"momentum\": 0.5, \"epsilon\": 0.01, \"scale\": false", {IMAGE}},
    {"BatchNormalization", "\"axis\": -1, \"center\": false, \"gamma_regularizer\": \"l2\"", {IMAGE}},
    {"Bidirectional", INNER("LSTM", "\"units\": 2"), {SEQUENCE}},
    {"Bidirectional",
     INNER("GRU",
           "\"units\": 3, \"return_state\": true, \"return_sequences\": true") ", \"merge_mode\": \"ave\"",
     {SEQUENCE, STATE, STATE}},
    {"Bidirectional",
     INNER("SimpleRNN",
           "\"units\": 2, \"dropout\": 0.5, \"recurrent_dropout\": 0.25") ", \"merge_mode\": \"mul\"",
     {SEQUENCE}},
    {"Concatenate", "", {MATRIX, {2, {4, 2}}}},
    {"Concatenate", "\"axis\": 1", {MATRIX, {2, {1, 5}}, MATRIX}},
    {"Concatenate", "\"as_keras3\": true", {MATRIX, MATRIX}},
    {"Conv1D", "\"filters\": 3, \"kernel_size\": 3", {SEQUENCE}},
    {"Conv1D",
     "\"filters\": 3, \"kernel_size\": [2], \"padding\": \"causal\", \"dilation_rate\": 2, " EVERYTHING,
     {SEQUENCE}},
    {"Conv1D",
     "\"filters\": 4, \"kernel_size\": 2, \"strides\": 2, \"padding\": \"same\", \"groups\": 2, "
     "\"data_format\": \"channels_first\", \"use_bias\": false, \"activation\": \"softmax\"",
     {SEQUENCE}},
    {"Conv2D", "\"filters\": 3, \"kernel_size\": 3", {IMAGE}},
    {"Conv2D",
     "\"filters\": 3, \"kernel_size\": [2, 3], \"strides\": [2, 1], \"padding\": \"same\", " EVERYTHING,
     {IMAGE}},
    {"Conv2D",
     "\"filters\": 3, \"kernel_size\": 2, \"dilation_rate\": [2, 3], \"activation\": \"tanh\", \"use_bias\": "
     "false",
     {IMAGE}},
    {"Conv2D",
     "\"filters\": 3, \"kernel_size\": [3, 1], \"data_format\": \"channels_first\", \"activation\": "
     "\"softmax\"",
     {{3, {2, 6, 7}}}},
    {"Conv2D", "\"filters\": 4, \"kernel_size\": 3, \"groups\": 2", {IMAGE}},
    {"Conv1DTranspose", "\"filters\": 3, \"kernel_size\": 3", {SEQUENCE}},
    {"Conv1DTranspose",
     "\"filters\": 3, \"kernel_size\": [3], \"strides\": 2, \"padding\": \"same\", \"output_padding\": 1, "
     "\"activation\": \"tanh\", " EVERYTHING,
     {SEQUENCE}},
    {"Conv1DTranspose",
     "\"filters\": 2, \"kernel_size\": 2, \"dilation_rate\": 2, \"use_bias\": false, \"data_format\": "
     "\"channels_first\"",
     {SEQUENCE}},
    {"Conv2DTranspose", "\"filters\": 3, \"kernel_size\": 3", {IMAGE}},
    {"Conv2DTranspose",
     "\"filters\": 3, \"kernel_size\": [2, 3], \"strides\": [3, 2], \"padding\": \"same\", " EVERYTHING,
     {IMAGE}},
    {"Conv2DTranspose",
     "\"filters\": 3, \"kernel_size\": 3, \"strides\": 2, \"output_padding\": [1, 0], \"use_bias\": false, "
     "\"activation\": \"tanh\", \"data_format\": \"channels_first\"",
     {{3, {2, 4, 3}}}},
    {"Conv2DTranspose", "\"filters\": 2, \"kernel_size\": 2, \"dilation_rate\": [2, 3]", {IMAGE}},
    {"Conv3D", "\"filters\": 3, \"kernel_size\": 2", {VOLUME}},
    {"Conv3D",
     "\"filters\": 2, \"kernel_size\": [2, 3, 1], \"strides\": [1, 2, 2], \"padding\": \"same\", " EVERYTHING,
     {VOLUME}},
    {"Conv3D",
     "\"filters\": 4, \"kernel_size\": 2, \"dilation_rate\": [1, 2, 1], \"groups\": 2, \"use_bias\": false, "
     "\"data_format\": \"channels_first\", \"activation\": \"softmax\"",
     {{4, {2, 3, 4, 3}}}},
    {"Conv3DTranspose", "\"filters\": 3, \"kernel_size\": 2", {VOLUME}},
    {"Conv3DTranspose",
     "\"filters\": 2, \"kernel_size\": [2, 3, 1], \"strides\": [1, 2, 2], \"padding\": \"same\", " EVERYTHING,
     {VOLUME}},
    {"Conv3DTranspose",
     "\"filters\": 2, \"kernel_size\": 3, \"strides\": 2, \"output_padding\": 1, \"padding\": \"same\", "
     "\"data_format\": \"channels_first\", \"use_bias\": false",
     {{4, {2, 3, 2, 1}}}},
    {"Conv3DTranspose", "\"filters\": 2, \"kernel_size\": 2, \"dilation_rate\": [1, 2, 1]", {VOLUME}},
    {"ConvLSTM1D", "\"filters\": 2, \"kernel_size\": 2", {{3, {3, 4, 2}}}},
    {"ConvLSTM1D",
     "\"filters\": 2, \"kernel_size\": 2, \"strides\": 2, \"padding\": \"same\", \"data_format\": "
     "\"channels_first\", \"return_sequences\": true, \"return_state\": true, \"go_backwards\": true, "
     "\"dropout\": 0.3, \"recurrent_dropout\": 0.2, \"recurrent_activation\": \"sigmoid\"",
     {{3, {3, 2, 4}}}},
    {"ConvLSTM1D",
     "\"filters\": 2, \"kernel_size\": 2, \"dilation_rate\": 2, \"use_bias\": false, \"stateful\": true",
     {{3, {2, 4, 2}}}},
    {"ConvLSTM2D", "\"filters\": 2, \"kernel_size\": 2", {{4, {3, 4, 5, 2}}}},
    {"ConvLSTM2D",
     "\"filters\": 2, \"kernel_size\": [2, 1], \"strides\": [1, 2], \"padding\": \"same\", \"data_format\": "
     "\"channels_first\", \"return_sequences\": true, \"return_state\": true, \"go_backwards\": true, "
     "\"dropout\": 0.3, "
     "\"recurrent_dropout\": 0.2, \"activation\": \"softsign\", \"recurrent_activation\": \"sigmoid\", "
     "\"unit_forget_bias\": false",
     {{4, {3, 2, 4, 5}}}},
    {"ConvLSTM2D",
     "\"filters\": 2, \"kernel_size\": 2, \"dilation_rate\": 2, \"use_bias\": false, \"stateful\": true",
     {{4, {2, 4, 5, 2}}}},
    {"ConvLSTM3D", "\"filters\": 2, \"kernel_size\": 2", {{5, {2, 3, 3, 2, 2}}}},
    {"ConvLSTM3D",
     "\"filters\": 2, \"kernel_size\": [2, 1, 2], \"strides\": [1, 2, 1], \"padding\": \"same\", "
     "\"data_format\": \"channels_first\", \"return_sequences\": true, \"dropout\": 0.3, "
     "\"recurrent_dropout\": 0.2, \"unit_forget_bias\": false, \"kernel_regularizer\": \"l2\"",
     {{5, {2, 2, 3, 2, 3}}}},
    {"CuDNNGRU", "\"units\": 3", {SEQUENCE}},
    {"CuDNNGRU", "\"units\": 3, \"return_sequences\": true, \"go_backwards\": true", {SEQUENCE, STATE}},
    {"CuDNNLSTM", "\"units\": 3", {SEQUENCE}},
    {"CuDNNLSTM",
     "\"units\": 3, \"return_state\": true, \"stateful\": true, \"unit_forget_bias\": false, "
     "\"recurrent_regularizer\": \"l2\"",
     {SEQUENCE}},
    {"Dense", "\"units\": 3", {VECTOR}},
    {"Dense", "\"units\": 3, \"activation\": \"sigmoid\", " EVERYTHING, {MATRIX}},
    {"Dense", "\"units\": 1, \"use_bias\": false, \"kernel_initializer\": \"he_normal\"", {IMAGE}},
    {"DepthwiseConv1D", "\"kernel_size\": 3", {SEQUENCE}},
    {"DepthwiseConv1D",
     "\"kernel_size\": 2, \"depth_multiplier\": 3, \"padding\": \"same\", \"strides\": 2, \"activation\": "
     "\"tanh\", \"depthwise_regularizer\": \"l2\", \"depthwise_constraint\": \"unit_norm\"",
     {SEQUENCE}},
    {"DepthwiseConv1D",
     "\"kernel_size\": 2, \"dilation_rate\": 2, \"data_format\": \"channels_first\"",
     {SEQUENCE}},
    {"DepthwiseConv2D", "\"kernel_size\": 3", {IMAGE}},
    {"DepthwiseConv2D",
     "\"kernel_size\": 2, \"depth_multiplier\": 3, \"padding\": \"same\", \"strides\": 2, \"activation\": "
     "\"tanh\", "
     "\"depthwise_regularizer\": \"l2\", \"depthwise_constraint\": \"unit_norm\"",
     {IMAGE}},
    {"DepthwiseConv2D", "\"kernel_size\": 2, \"data_format\": \"channels_first\"", {{3, {2, 6, 7}}}},
    {"Dropout", "\"rate\": 0.5", {MATRIX}},
    {"Dropout", "\"rate\": 0.25, \"noise_shape\": [null, 1, 5], \"seed\": 3", {MATRIX}},
    {"Flatten", "", {IMAGE}},
    {"Flatten", "\"data_format\": \"channels_first\"", {IMAGE}},
    {"Flatten", "\"data_format\": \"channels_first\"", {VECTOR}},
    {"GlobalAveragePooling2D", "", {IMAGE}},
    {"GlobalAveragePooling2D", "\"data_format\": \"channels_first\"", {IMAGE}},
    {"GlobalMaxPooling2D", "", {IMAGE}},
    {"GlobalMaxPooling2D", "\"data_format\": \"channels_first\"", {IMAGE}},
    {"GRU", "\"units\": 3", {SEQUENCE}},
    {"GRU",
     "\"units\": 3, \"reset_after\": true, \"return_sequences\": true, \"go_backwards\": true",
     {SEQUENCE}},
    {"GRU", "\"units\": 3, \"reset_after\": true, \"use_bias\": false, \"dropout\": 0.25", {SEQUENCE, STATE}},
    {"GRU",
     "\"units\": 3, \"return_sequences\": true, \"dropout\": 0.3, \"recurrent_dropout\": 0.2, "
     "\"implementation\": 1, \"unroll\": true, \"recurrent_initializer\": \"identity\", "
     "\"activation\": \"softsign\", \"recurrent_activation\": \"hard_sigmoid\", \"recurrent_regularizer\": "
     "\"l2\", \"recurrent_constraint\": \"max_norm\", " EVERYTHING,
     {SEQUENCE}},
    {"GRU", "\"units\": 3, \"dropout\": 0.5, \"recurrent_dropout\": 0.5", {SEQUENCE}},
    {"GRU",
     "\"units\": 3, \"activation\": \"silu\", \"dropout\": 0.5, \"recurrent_dropout\": 0.5",
     {SEQUENCE}},
    {"InputLayer", "\"batch_input_shape\": [null, 5]", {VECTOR}},
    {"LSTM", "\"units\": 3", {SEQUENCE}},
    {"LSTM",
     "\"units\": 3, \"return_sequences\": true, \"go_backwards\": true, \"use_bias\": false",
     {SEQUENCE}},
    {"LSTM", "\"units\": 3, \"return_state\": true", {SEQUENCE, STATE, STATE}},
    {"LSTM",
     "\"units\": 3, \"return_state\": true, \"return_sequences\": true, \"dropout\": 0.3, "
     "\"recurrent_dropout\": 0.2, "
     "\"implementation\": 1, \"unroll\": true, \"recurrent_initializer\": \"identity\", "
     "\"unit_forget_bias\": false, "
     "\"activation\": \"softsign\", \"recurrent_activation\": \"hard_sigmoid\", \"recurrent_regularizer\": "
     "\"l2\", "
     "\"recurrent_constraint\": \"max_norm\", " EVERYTHING,
     {SEQUENCE}},
    {"LSTM", "\"units\": 3, \"dropout\": 0.5, \"recurrent_dropout\": 0.5", {SEQUENCE}},
    {"LSTM", "\"units\": 3, \"stateful\": true, \"return_sequences\": true", {SEQUENCE}},
    {"LSTM",
     "\"units\": 3, \"activation\": \"gelu\", \"recurrent_activation\": \"hard_silu\", \"dropout\": 0.3, "
     "\"recurrent_dropout\": 0.2, \"implementation\": 1",
     {SEQUENCE}},
    {"LocallyConnected1D", "\"filters\": 3, \"kernel_size\": 3", {SEQUENCE}},
    {"LocallyConnected1D",
     "\"filters\": 3, \"kernel_size\": [2], \"implementation\": 3, \"data_format\": "
     "\"channels_first\", \"activation\": \"softmax\"",
     {SEQUENCE}},
    {"LocallyConnected2D", "\"filters\": 3, \"kernel_size\": 3", {IMAGE}},
    {"LocallyConnected2D",
     "\"filters\": 2, \"kernel_size\": [2, 3], \"strides\": [2, 1], " EVERYTHING,
     {IMAGE}},
    {"LocallyConnected2D",
     "\"filters\": 2, \"kernel_size\": 3, \"padding\": \"same\", \"implementation\": 2, \"data_format\": "
     "\"channels_first\", \"use_bias\": false, \"activation\": \"tanh\"",
     {{3, {2, 4, 3}}}},
    {"Masking", "", {SEQUENCE}},
    {"Masking", "\"mask_value\": -1.5", {IMAGE}},
    {"MaxPooling2D", "", {IMAGE}},
    {"MaxPooling2D", "\"pool_size\": 3, \"strides\": [1, 2], \"padding\": \"same\"", {IMAGE}},
    {"MaxPooling2D", "\"data_format\": \"channels_first\", \"pool_size\": [2, 1]", {IMAGE}},
    {"Operation",
     "\"function\": \"Subtract\", \"args\": [1.0, {\"input\": 0}], \"options\": {}, \"kwargs\": {}",
     {MATRIX}},
    {"Operation", "\"function\": \"Multiply\", \"args\": [{\"input\": 0}, {\"input\": 1}]", {MATRIX, MATRIX}},
    {"Operation",
     "\"function\": \"GetItem\", \"args\": [{\"input\": 0}, [{\"class_name\": \"__slice__\", \"config\": "
     "{\"start\": null, \"stop\": null, \"step\": null}}, 1]]",
     {MATRIX}},
    {"Operation", "\"function\": \"Mean\", \"options\": {\"axis\": 1, \"keepdims\": true}", {MATRIX}},
    {"Operation",
     "\"function\": \"Pad\", \"options\": {\"pad_width\": [[0, 0], [1, 0], [0, 2]], \"mode\": \"constant\"}, "
     "\"kwargs\": {\"constant_values\": 0.5}",
     {MATRIX}},
    {"Operation",
     "\"function\": \"Concatenate\", \"options\": {\"axis\": -1}, \"args\": [[{\"input\": 0}, {\"input\": "
     "1}]]",
     {MATRIX, MATRIX}},
    {"Operation",
     "\"function\": \"Split\", \"options\": {\"indices_or_sections\": 2, \"axis\": 1}, \"args\": "
     "[{\"input\": 0}]",
     {MATRIX}},
#include "nn/examples_preprocessing.inc"
    {"Resizing", "\"height\": 4, \"width\": 9", {IMAGE}},
    {"Resizing",
     "\"height\": 8, \"width\": 3, \"interpolation\": \"bicubic\", \"antialias\": true, "
     "\"crop_to_aspect_ratio\": true, \"data_format\": \"channels_first\"",
     {IMAGE}},
    {"Resizing",
     "\"height\": 5, \"width\": 5, \"interpolation\": \"lanczos3\", \"pad_to_aspect_ratio\": true, "
     "\"fill_mode\": \"constant\", \"fill_value\": 0.5",
     {IMAGE}},
    {"Permute", "\"dims\": [2, 1]", {MATRIX}},
    {"Permute", "\"dims\": [3, 1, 2]", {IMAGE}},
    {"Reshape", "\"target_shape\": [5, 4]", {MATRIX}},
    {"Reshape", "\"target_shape\": [2, -1, 2]", {MATRIX}},
    {"SeparableConv1D", "\"filters\": 3, \"kernel_size\": 3", {SEQUENCE}},
    {"SeparableConv1D",
     "\"filters\": 4, \"kernel_size\": [2], \"strides\": 2, \"padding\": \"same\", \"depth_multiplier\": 2, "
     "\"data_format\": \"channels_first\", \"use_bias\": false, \"activation\": \"relu\"",
     {SEQUENCE}},
    {"SeparableConv1D", "\"filters\": 4, \"kernel_size\": 2, \"dilation_rate\": 3", {SEQUENCE}},
    {"SeparableConv2D", "\"filters\": 3, \"kernel_size\": 3", {IMAGE}},
    {"SeparableConv2D",
     "\"filters\": 3, \"kernel_size\": [2, 3], \"strides\": 2, \"padding\": \"same\", \"depth_multiplier\": "
     "3, "
     "\"depthwise_regularizer\": \"l2\", \"depthwise_constraint\": \"unit_norm\", \"pointwise_regularizer\": "
     "\"l1\", \"pointwise_constraint\": \"max_norm\", \"pointwise_initializer\": \"he_normal\", "
     "\"activity_regularizer\": \"l2\"",
     {IMAGE}},
    {"SeparableConv2D",
     "\"filters\": 3, \"kernel_size\": 2, \"dilation_rate\": [1, 2], \"data_format\": \"channels_first\"",
     {{3, {2, 6, 7}}}},
    {"RNN", CELL("LSTMCell", "\"units\": 2, \"unit_forget_bias\": false, \"dropout\": 0.5"), {SEQUENCE}},
    {"RNN",
     CELL("GRUCell", "\"units\": 3, \"reset_after\": true, \"implementation\": 1") ", \"return_sequences\": "
                                                                                   "true, \"go_backwards\": "
                                                                                   "true, \"unroll\": true",
     {SEQUENCE, STATE}},
    {"RNN", CELL("SimpleRNNCell", "\"units\": 2, \"use_bias\": false"), {SEQUENCE}},
    {"RNN",
     CELL("StackedRNNCells", "\"cells\": [{\"class_name\": \"GRUCell\", \"config\": {\"units\": 3, "
                             "\"dropout\": 0.5}}, {\"class_name\": "
                             "\"LSTMCell\", \"config\": {\"units\": 2}}, {\"class_name\": \"LSTMCell\", "
                             "\"config\": {\"units\": 2, "
                             "\"recurrent_dropout\": 0.5}}]") ", \"go_backwards\": true",
     {SEQUENCE}},
    {"SimpleRNN", "\"units\": 3", {SEQUENCE}},
    {"SimpleRNN",
     "\"units\": 3, \"return_sequences\": true, \"go_backwards\": true, \"use_bias\": false",
     {SEQUENCE, STATE}},
    {"SimpleRNN",
     "\"units\": 3, \"dropout\": 0.3, \"recurrent_dropout\": 0.2, \"unroll\": true, \"activation\": "
     "\"sigmoid\", "
     "\"recurrent_initializer\": \"identity\", \"recurrent_regularizer\": \"l2\", "
     "\"recurrent_constraint\": \"max_norm\", " EVERYTHING,
     {SEQUENCE}},
    {"TimeDistributed", INNER("Dense", "\"units\": 3, " EVERYTHING), {SEQUENCE}},
    {"TimeDistributed", INNER("BatchNormalization", ""), {MATRIX}},
    {"TimeDistributed", INNER("Bidirectional", INNER("GRU", "\"units\": 2")), {IMAGE}},
    {"TimeDistributed", INNER("Conv2D", "\"filters\": 2, \"kernel_size\": 2"), {{4, {2, 4, 3, 2}}}},
    {"TimeDistributed", INNER("Dropout", "\"rate\": 0.5"), {SEQUENCE}},
    {"TimeDistributed",
     INNER("Sequential", "\"name\": \"inner\", \"layers\": [{\"class_name\": \"Dense\", \"config\": "
                         "{\"name\": \"d\", \"units\": 3}}, {\"class_name\": \"BatchNormalization\", "
                         "\"config\": {\"name\": \"b\"}}]"),
     {SEQUENCE}},
    {"ZeroPadding2D", "", {IMAGE}},
    {"ZeroPadding2D", "\"padding\": [[1, 0], [2, 3]], \"data_format\": \"channels_first\"", {IMAGE}},
    {"ActivityRegularization", "\"l1\": 0.01, \"l2\": 0.02", {MATRIX}},
    {"ActivityRegularization", "\"l2\": 0.02, \"as_keras3\": true", {MATRIX}},
    {"AlphaDropout", "\"rate\": 0.25", {MATRIX}},
    {"AlphaDropout", "\"rate\": 0.25, \"noise_shape\": [null, 1, 5], \"seed\": 3", {MATRIX}},
    {"Average", "", {MATRIX, MATRIX, MATRIX}},
    {"Average", "\"as_keras3\": true", {MATRIX, {1, {5}}}},
    {"ELU", "\"alpha\": 0.5", {MATRIX}},
    {"LeakyReLU", "\"alpha\": 0.1", {MATRIX}},
    {"Maximum", "", {MATRIX, {1, {5}}}},
    {"Maximum", "\"as_keras3\": true", {MATRIX, {1, {5}}}},
    {"Minimum", "", {MATRIX, {2, {1, 5}}}},
    {"Minimum", "\"as_keras3\": true", {MATRIX, {1, {5}}}},
    {"Multiply", "", {MATRIX, MATRIX, {1, {5}}}},
    {"Multiply", "\"as_keras3\": true", {MATRIX, {1, {5}}}},
    {"PReLU", "", {MATRIX}},
    {"PReLU",
     "\"shared_axes\": [1, 2], \"alpha_initializer\": \"random_uniform\", \"alpha_regularizer\": \"l2\", "
     "\"alpha_constraint\": \"non_neg\"",
     {IMAGE}},
    {"ReLU", "", {MATRIX}},
    {"ReLU", "\"max_value\": 1.5, \"negative_slope\": 0.1, \"threshold\": 0.25", {MATRIX}},
    {"ReLU", "\"max_value\": 1.5, \"negative_slope\": 0.1, \"threshold\": -0.25", {MATRIX}},
    {"RepeatVector", "\"n\": 3", {VECTOR}},
    {"Softmax", "", {VECTOR}},
    {"Softmax", "\"axis\": 2", {IMAGE}},
    {"Softmax", "\"axis\": [1, -1]", {IMAGE}},
    {"SpatialDropout1D", "\"rate\": 0.25", {MATRIX}},
    {"SpatialDropout2D", "\"rate\": 0.25, \"seed\": 4, \"noise_shape\": [null, 1, 1, 1]", {IMAGE}},
    {"SpatialDropout2D", "\"rate\": 0.25, \"data_format\": \"channels_first\"", {IMAGE}},
    {"SpatialDropout3D", "\"rate\": 0.25", {VOLUME}},
    {"SpatialDropout3D", "\"rate\": 0.25, \"data_format\": \"channels_first\"", {VOLUME}},
    {"Subtract", "", {MATRIX, {1, {5}}}},
    {"Subtract", "\"as_keras3\": true", {MATRIX, {1, {5}}}},
    {"ThresholdedReLU", "\"theta\": 0.5", {MATRIX}},
    {"AveragePooling1D", "", {MATRIX}},
    {"AveragePooling1D", "\"pool_size\": 3, \"strides\": 2, \"padding\": \"same\"", {MATRIX}},
    {"AveragePooling3D", "", {VOLUME}},
    {"AveragePooling3D", "\"data_format\": \"channels_first\", \"pool_size\": [2, 3, 1]", {VOLUME}},
    {"Cropping1D", "\"cropping\": [1, 2]", {MATRIX}},
    {"Cropping2D", "", {IMAGE}},
    {"Cropping2D", "\"cropping\": [[1, 2], [0, 3]], \"data_format\": \"channels_first\"", {{3, {2, 6, 7}}}},
    {"Cropping3D", "", {VOLUME}},
    {"Cropping3D",
     "\"cropping\": [[1, 0], [0, 2], 1], \"data_format\": \"channels_first\"",
     {{4, {2, 3, 4, 5}}}},
    {"Embedding", "\"input_dim\": 4, \"output_dim\": 3", {{1, {5}}}},
    {"Embedding",
     "\"input_dim\": 4, \"output_dim\": 3, \"mask_zero\": true, \"input_length\": [5, null], "
     "\"activity_regularizer\": \"l2\", \"embeddings_regularizer\": \"l2\", \"embeddings_constraint\": "
     "\"unit_norm\", \"embeddings_initializer\": \"he_normal\"",
     {{2, {5, 2}}}},
    {"GaussianDropout", "\"rate\": 0.25", {MATRIX}},
    {"GaussianNoise", "\"stddev\": 0.5, \"seed\": 3", {MATRIX}},
    {"GlobalAveragePooling1D", "", {MATRIX}},
    {"GlobalAveragePooling1D", "\"data_format\": \"channels_first\", \"keepdims\": true", {MATRIX}},
    {"GlobalAveragePooling2D", "\"keepdims\": true", {IMAGE}},
    {"GlobalAveragePooling3D", "", {VOLUME}},
    {"GlobalAveragePooling3D", "\"data_format\": \"channels_first\"", {VOLUME}},
    {"GlobalMaxPooling1D", "", {MATRIX}},
    {"GlobalMaxPooling3D", "\"keepdims\": true, \"data_format\": \"channels_first\"", {VOLUME}},
    {"MaxPooling1D", "", {MATRIX}},
    {"MaxPooling1D", "\"data_format\": \"channels_first\", \"strides\": 1, \"padding\": \"same\"", {MATRIX}},
    {"MaxPooling3D", "", {VOLUME}},
    {"MaxPooling3D", "\"pool_size\": 3, \"strides\": [1, 2, 1], \"padding\": \"same\"", {VOLUME}},
    {"UpSampling1D", "\"size\": 3", {MATRIX}},
    {"UpSampling2D", "", {IMAGE}},
    {"UpSampling2D",
     "\"size\": [2, 3], \"interpolation\": \"bilinear\", \"data_format\": \"channels_first\"",
     {IMAGE}},
    {"UpSampling3D", "\"size\": [1, 2, 3]", {VOLUME}},
    {"UpSampling3D", "\"data_format\": \"channels_first\"", {VOLUME}},
    {"ZeroPadding1D", "\"padding\": [1, 2]", {MATRIX}},
    {"ZeroPadding1D", "\"padding\": 2, \"data_format\": \"channels_first\"", {MATRIX}},
    {"ZeroPadding3D", "", {VOLUME}},
    {"ZeroPadding3D", "\"padding\": [[1, 0], [2, 3], 1], \"data_format\": \"channels_first\"", {VOLUME}},
    {"Dot", "\"axes\": 1", {VECTOR, VECTOR}},
    {"Dot", "\"axes\": [2, 1], \"normalize\": true", {MATRIX, {2, {5, 3}}}},
    {"Dot", "\"axes\": -1", {IMAGE, {1, {2}}}},
    {"GroupNormalization", "\"groups\": 2", {{3, {3, 4, 6}}}},
    {"GroupNormalization",
     "\"groups\": -1, \"axis\": 1, \"epsilon\": 0.01, \"center\": false, \"gamma_regularizer\": \"l2\"",
     {MATRIX}},
    {"LayerNormalization", "", {VECTOR}},
    {"LayerNormalization",
     "\"axis\": [1, 3], \"epsilon\": 0.01, \"scale\": false, \"beta_regularizer\": \"l2\", "
     "\"beta_constraint\": "
     "\"non_neg\"",
     {IMAGE}},
    {"LayerNormalization",
     "\"axis\": 2, \"rms_scaling\": true, \"gamma_constraint\": \"max_norm\"",
     {MATRIX}},
    {"Normalization", "\"mean\": [1.0, -1.0], \"variance\": [2.0, 0.5]", {IMAGE}},
    {"Normalization", "\"mean\": 0.5, \"variance\": 2.0, \"invert\": true, \"axis\": null", {MATRIX}},
    {"Rescaling", "\"scale\": 0.5", {MATRIX}},
    {"Rescaling", "\"scale\": [0.5, 2.0], \"offset\": [1.0, -1.0]", {IMAGE}},
    {"UnitNormalization", "", {MATRIX}},
    {"UnitNormalization", "\"axis\": [1, 2]", {MATRIX}},
#include "nn/examples_attention.inc"
    {NULL, NULL, {{0}}},
};
