/* SPDX-License-Identifier: Apache-2.0 */
/* Wrong configurations: each failure has its code, and its message says which layer, what was expected and what
 * was received. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "nn/model/model.h"

typedef struct wrong {
    const char *json;
    leat_status code;
    const char *says[4]; /* each must be in the message; NULL at the end */
} wrong;

static void check(const wrong *w, const char *json) {
    leat_error err = {0};
    leat_model *model = NULL;
    leat_status status = leat_model_from_json(&model, json, &err);
    if (status != w->code)
        fail_msg("%s: expected code %d, received %d: %s", json, w->code, status, err.message);
    assert_null(model);
    for (int i = 0; i < 4 && w->says[i]; ++i)
        if (!strstr(err.message, w->says[i])) fail_msg("\"%s\" does not say \"%s\"", err.message, w->says[i]);
    assert_int_equal(leat_model_from_json(&model, json, NULL), w->code);
}

static void check_all(const wrong *cases, size_t count, const char *before, const char *after) {
    for (size_t i = 0; i < count; ++i) {
        char json[4096];
        snprintf(json, sizeof json, "%s%s%s", before, cases[i].json, after);
        check(&cases[i], json);
    }
}

#define CHECK_ALL(cases, before, after) check_all(cases, sizeof cases / sizeof cases[0], before, after)

/* ---- One layer after an image (6, 6, 2) ---- */

#define LAYER(class, config) "{\"class_name\": \"" class "\", \"config\": {\"name\": \"it\", " config "}}"

static const wrong image_layers[] = {
    {LAYER("Dense", "\"units\": 0"),
     LEAT_EINVAL,
     {"layer 1 'it' (Dense)", "units", "at least 1", "received 0"}},
    {LAYER("Dense", "\"units\": 2.5"), LEAT_EINVAL, {"'it'", "units", "integer", "2.5"}},
    {LAYER("Dense", "\"units\": \"x\""), LEAT_EINVAL, {"'it'", "units", "integer", "\"x\""}},
    {LAYER("Dense", "\"units\": 1e30"), LEAT_EINVAL, {"'it'", "units", "integer", "1e+30"}},
    {LAYER("Dense", "\"units\": NaN"), LEAT_EINVAL, {"'it'", "units", "integer", "NaN"}},
    {LAYER("Dense", "\"use_bias\": true"), LEAT_EINVAL, {"'it'", "'units' is missing"}},
    {LAYER("Dense", "\"units\": 3, \"use_bias\": 2"),
     LEAT_EINVAL,
     {"'it'", "use_bias", "true or false", "2"}},
    {LAYER("Dense", "\"units\": 3, \"use_bais\": true"),
     LEAT_ENOTSUP,
     {"'it'", "unknown key 'use_bais'", "'use_bias'"}},
    {LAYER("Dense", "\"units\": 3, \"activation\": \"rely\""),
     LEAT_ENOTFOUND,
     {"'it'", "activation", "'relu'"}},
    {LAYER("Dense", "\"units\": 4, \"activation\": \"glu\""),
     LEAT_ENOTSUP,
     {"'it'", "activation", "a separate Activation layer"}},
    {"{\"class_name\": \"Dense\", \"config\": {\"name\": \"odd\", \"units\": 3}}, " LAYER(
         "Activation", "\"activation\": \"glu\""),
     LEAT_ESHAPE,
     {"'it'", "an even last axis"}},
    {LAYER("Dense", "\"units\": 3, \"dtype\": \"float64\""),
     LEAT_ENOTSUP,
     {"'it'", "dtype", "float32", "float64"}},
    {LAYER("Dense", "\"units\": 3, \"trainable\": 1"), LEAT_EINVAL, {"'it'", "trainable", "true or false"}},
    {LAYER("Dense", "\"units\": 3, \"kernel_initializer\": null"),
     LEAT_EINVAL,
     {"'it'", "kernel", "initializer"}},
    {LAYER("Dense", "\"units\": 3, \"kernel_initializer\": \"identiti\""),
     LEAT_ENOTFOUND,
     {"'it'", "'identity'"}},
    {LAYER("Conv2D", "\"filters\": 3, \"kernel_size\": [3]"),
     LEAT_EINVAL,
     {"'it'", "kernel_size", "2 integers", "[3]"}},
    {LAYER("Conv2D", "\"filters\": 3, \"kernel_size\": [3, null]"),
     LEAT_EINVAL,
     {"'it'", "kernel_size", "null"}},
    {LAYER("Conv2D", "\"filters\": 3, \"kernel_size\": 7"),
     LEAT_ESHAPE,
     {"'it'", "at least 7 rows", "(None, 6, 6, 2)"}},
    {LAYER("Conv2D", "\"filters\": 3, \"kernel_size\": 3, \"padding\": \"full\""),
     LEAT_EINVAL,
     {"'it'", "padding", "\"valid\" or \"same\"", "\"full\""}},
    {LAYER("Conv2D", "\"filters\": 3, \"kernel_size\": 3, \"strides\": 2, \"dilation_rate\": 2"),
     LEAT_EINVAL,
     {"'it'", "strides", "dilation_rate"}},
    {LAYER("Conv2D", "\"filters\": 2147483647, \"kernel_size\": 2147483647, \"padding\": \"same\""),
     LEAT_ESHAPE,
     {"'it'", "known sizes", "'kernel'"}},
    {LAYER("Conv2D", "\"filters\": 3, \"kernel_size\": 3, \"groups\": 2"),
     LEAT_EINVAL,
     {"'it'", "groups", "divisor of 3 filters", "2"}},
    {LAYER("Conv2D", "\"filters\": 3, \"kernel_size\": 3, \"groups\": 3"),
     LEAT_ESHAPE,
     {"'it'", "groups", "divisor of 2 channels", "3"}},
    {LAYER("Conv2D", "\"filters\": 3, \"kernel_size\": 3, \"padding\": \"causal\""),
     LEAT_EINVAL,
     {"'it'", "padding", "\"valid\" or \"same\"", "\"causal\""}},
    {LAYER("Conv1D", "\"filters\": 3, \"kernel_size\": 3"),
     LEAT_ESHAPE,
     {"'it' (Conv1D)", "(batch, steps, channels)", "(None, 6, 6, 2)"}},
    {LAYER("Conv1D", "\"filters\": 3, \"kernel_size\": [3, 3]"),
     LEAT_EINVAL,
     {"'it'", "kernel_size", "1 integer,", "[3, 3]"}},
    {LAYER("Conv1D", "\"filters\": 3, \"kernel_size\": 3, \"padding\": \"casual\""),
     LEAT_EINVAL,
     {"'it'", "padding", "\"causal\"", "\"casual\""}},
    {LAYER(
         "Conv1D",
         "\"filters\": 3, \"kernel_size\": 3, \"padding\": \"causal\", \"data_format\": \"channels_first\""),
     LEAT_EINVAL,
     {"'it'", "data_format", "channels_last", "causal"}},
    {LAYER("Conv3D", "\"filters\": 3, \"kernel_size\": 2, \"data_format\": \"channels_first\""),
     LEAT_ESHAPE,
     {"'it' (Conv3D)", "(batch, channels, planes, rows, columns)", "(None, 6, 6, 2)"}},
    {LAYER("Conv2DTranspose", "\"filters\": 3, \"kernel_size\": 3, \"output_padding\": 1"),
     LEAT_EINVAL,
     {"'it' (Conv2DTranspose)", "output_padding", "less than strides", "1 with a stride of 1"}},
    {LAYER("Conv2DTranspose", "\"filters\": 3, \"kernel_size\": 3, \"output_padding\": [0, 0, 0]"),
     LEAT_EINVAL,
     {"'it'", "output_padding", "2 integers"}},
    {LAYER("Conv2DTranspose", "\"filters\": 3, \"kernel_size\": 3, \"strides\": 2, \"output_padding\": -1"),
     LEAT_EINVAL,
     {"'it'", "output_padding", "at least 0"}},
    {LAYER(
         "Conv2DTranspose",
         "\"filters\": 3, \"kernel_size\": 4, \"strides\": 2, \"output_padding\": 0, \"padding\": \"same\""),
     LEAT_ESHAPE,
     {"'it'", "output_padding", "gives 6 rows", "output has 10 rows"}},
    {LAYER("Conv2DTranspose", "\"filters\": 3, \"kernel_size\": 3, \"strides\": 2147483647"),
     LEAT_ESHAPE,
     {"'it'", "below 2147483648", "(None, 6, 6, 2)"}},
    {LAYER("Conv2DTranspose", "\"filters\": 3, \"kernel_size\": 3, \"strides\": 2, \"dilation_rate\": 2"),
     LEAT_EINVAL,
     {"'it'", "strides", "dilation_rate"}},
    {LAYER("Conv3DTranspose", "\"filters\": 3, \"kernel_size\": 3"),
     LEAT_ESHAPE,
     {"'it' (Conv3DTranspose)", "a volume", "(None, 6, 6, 2)"}},
    {LAYER("AdaptiveMaxPooling2D", "\"output_size\": [1031, 3]"),
     LEAT_ENOTSUP,
     {"'it' (AdaptiveMaxPooling2D)", "output_size", "at most 1024", "1031 outputs for 6 elements"}},
    {LAYER("AdaptiveAveragePooling1D", "\"output_size\": 2"),
     LEAT_ESHAPE,
     {"'it' (AdaptiveAveragePooling1D)", "a sequence", "(None, 6, 6, 2)"}},
    {LAYER("RMSNormalization", "\"axis\": 1"),
     LEAT_ESHAPE,
     {"'it' (RMSNormalization)", "last axes", "(None, 6, 6, 2)", "axis"}},
    {LAYER("SpectralNormalization", "\"layer\": {\"class_name\": \"Flatten\", \"config\": {}}"),
     LEAT_ENOTSUP,
     {"'it' (SpectralNormalization)", "layer", "one kernel", "received Flatten"}},
    {LAYER("SpectralNormalization",
           "\"power_iterations\": 1001, \"layer\": {\"class_name\": \"Dense\", \"config\": {\"units\": 2}}"),
     LEAT_ENOTSUP,
     {"'it'", "power_iterations", "at most 1000", "1001"}},
    {LAYER("ConvLSTM3D", "\"filters\": 2, \"kernel_size\": 2"),
     LEAT_ESHAPE,
     {"'it' (ConvLSTM3D)", "a sequence of volumes, of rank 6", "(None, 6, 6, 2)"}},
    {LAYER("SeparableConv1D", "\"filters\": 3, \"kernel_size\": 3, \"padding\": \"causal\""),
     LEAT_EINVAL,
     {"'it' (SeparableConv1D)", "padding", "\"causal\""}},
    {LAYER("SeparableConv2D", "\"kernel_size\": 3"), LEAT_EINVAL, {"'it'", "'filters' is missing"}},
    {LAYER("SeparableConv2D", "\"filters\": 3, \"kernel_size\": 3, \"depth_multiplier\": 0"),
     LEAT_EINVAL,
     {"'it'", "depth_multiplier", "at least 1"}},
    {LAYER("SeparableConv2D", "\"filters\": 3, \"kernel_size\": 3, \"kernel_initializer\": \"zeros\""),
     LEAT_ENOTSUP,
     {"'it'", "unknown key 'kernel_initializer'"}},
    {LAYER("LocallyConnected2D", "\"filters\": 3, \"kernel_size\": 3, \"padding\": \"same\""),
     LEAT_ENOTSUP,
     {"'it' (LocallyConnected2D)", "padding", "\"valid\" with implementation 1", "\"same\""}},
    {LAYER("LocallyConnected2D", "\"filters\": 3, \"kernel_size\": 3, \"implementation\": 4"),
     LEAT_EINVAL,
     {"'it'", "implementation", "1, 2 or 3", "4"}},
    {LAYER("LocallyConnected2D", "\"filters\": 3, \"kernel_size\": 7"),
     LEAT_ESHAPE,
     {"'it'", "at least 7 rows", "(None, 6, 6, 2)"}},
    {LAYER("LocallyConnected2D", "\"filters\": 3, \"kernel_size\": 3, \"dilation_rate\": 2"),
     LEAT_ENOTSUP,
     {"'it'", "unknown key 'dilation_rate'"}},
    {LAYER("LocallyConnected1D", "\"filters\": 3, \"kernel_size\": 3"),
     LEAT_ESHAPE,
     {"'it' (LocallyConnected1D)", "a sequence", "(None, 6, 6, 2)"}},
    {LAYER("DepthwiseConv2D", "\"kernel_size\": 0"), LEAT_EINVAL, {"'it'", "kernel_size", "at least 1", "0"}},
    {LAYER("MaxPooling2D", "\"pool_size\": [7, 1]"),
     LEAT_ESHAPE,
     {"'it'", "at least 7 rows", "(None, 6, 6, 2)"}},
    {LAYER("ZeroPadding2D", "\"padding\": [[1, 2, 3], 1]"),
     LEAT_EINVAL,
     {"'it'", "padding", "pairs", "[[1, 2, 3], 1]"}},
    {LAYER("ZeroPadding2D", "\"padding\": -1"), LEAT_EINVAL, {"'it'", "padding", "at least 0", "-1"}},
    {LAYER("Reshape", "\"target_shape\": [5, -1]"), LEAT_ESHAPE, {"'it'", "72 elements", "(5, None)"}},
    {LAYER("Reshape", "\"target_shape\": [-1, -1]"), LEAT_EINVAL, {"'it'", "at most one -1", "2"}},
    {LAYER("Permute", "\"dims\": [1, 2, 2]"), LEAT_EINVAL, {"'it'", "dims", "1 to 3"}},
    {LAYER("Permute", "\"dims\": [2, 1]"), LEAT_ESHAPE, {"'it'", "as many axes", "(None, 6, 6, 2)"}},
    {LAYER("Dropout", "\"rate\": NaN"), LEAT_EINVAL, {"'it'", "rate", "0 to 1", "NaN"}},
    {LAYER("Dropout", "\"rate\": 0.5, \"noise_shape\": [null, 5, 1, 1]"),
     LEAT_ESHAPE,
     {"'it'", "noise_shape"}},
    {LAYER("SpatialDropout1D", "\"rate\": 0.5"), LEAT_ESHAPE, {"'it'", "a sequence", "(None, 6, 6, 2)"}},
    {LAYER("SpatialDropout3D", "\"rate\": 0.5, \"data_format\": \"channels_first\""),
     LEAT_ESHAPE,
     {"'it'", "a volume (batch, channels,", "(None, 6, 6, 2)"}},
    {LAYER("AlphaDropout", "\"noise_shape\": [3]"), LEAT_EINVAL, {"'it'", "'rate' is missing"}},
    {LAYER("LeakyReLU", "\"alpha\": \"x\""), LEAT_EINVAL, {"'it'", "alpha", "a number", "\"x\""}},
    {LAYER("ReLU", "\"max_value\": -1.0"), LEAT_EINVAL, {"'it'", "max_value", "at least 0", "-1.0"}},
    {LAYER("ReLU", "\"negative_slope\": -0.5"),
     LEAT_EINVAL,
     {"'it'", "negative_slope", "at least 0", "-0.5"}},
    {LAYER("Softmax", "\"axis\": 4"), LEAT_ESHAPE, {"'it'", "has the axis", "(None, 6, 6, 2)"}},
    {LAYER("Softmax", "\"axis\": [1, 4]"), LEAT_ESHAPE, {"'it'", "has the axis", "(None, 6, 6, 2)"}},
    {LAYER("PReLU", "\"shared_axes\": [4]"), LEAT_ESHAPE, {"'it'", "shared_axes", "(None, 6, 6, 2)"}},
    {LAYER("PReLU", "\"shared_axes\": [0]"), LEAT_EINVAL, {"'it'", "shared_axes", "at least 1", "[0]"}},
    {LAYER("RepeatVector", "\"n\": 3"), LEAT_ESHAPE, {"'it'", "vectors", "(None, 6, 6, 2)"}},
    {LAYER("RepeatVector", "\"n\": 0"), LEAT_EINVAL, {"'it'", "n:", "at least 1", "0"}},
    {LAYER("ActivityRegularization", "\"l1\": null"), LEAT_EINVAL, {"'it'", "l1", "a number", "null"}},
    {LAYER("Subtract", "\"dtype\": \"float32\""), LEAT_EINVAL, {"'it' (Subtract)", "2 inputs", "received 1"}},
    {LAYER("BatchNormalization", "\"axis\": 4"), LEAT_ESHAPE, {"'it'", "has the axis", "(None, 6, 6, 2)"}},
    {LAYER("LSTM", "\"units\": 3"), LEAT_ESHAPE, {"'it'", "a sequence", "(None, 6, 6, 2)"}},
    {LAYER("Bidirectional", "\"merge_mode\": \"sum\""), LEAT_EINVAL, {"'it'", "'layer'", "missing"}},
    {LAYER("Bidirectional", "\"layer\": null"), LEAT_ENOTSUP, {"'it'", "recurrent layer", "none"}},
    {LAYER("Bidirectional", "\"layer\": {\"class_name\": \"Dense\", \"config\": {\"units\": 3}}"),
     LEAT_ENOTSUP,
     {"'it'", "recurrent layer", "Dense"}},
    {LAYER("Bidirectional", "\"layer\": {\"class_name\": \"GRU\", \"config\": {\"units\": 0}}"),
     LEAT_EINVAL,
     {"'it'", "layer", "GRU", "units"}},
    {LAYER("Bidirectional", "\"layer\": {\"class_name\": \"GRU\", \"config\": {\"units\": 3}}, "
                            "\"merge_mode\": \"max\""),
     LEAT_EINVAL,
     {"'it'", "merge_mode", "\"sum\"", "\"max\""}},
    {LAYER("Bidirectional", "\"layer\": {\"class_name\": \"GRU\", \"config\": {\"units\": 3}}"),
     LEAT_ESHAPE,
     {"'it'", "a sequence", "(None, 6, 6, 2)"}},
    {LAYER("LSTMCell", "\"units\": 3"), LEAT_EINVAL, {"'it' (LSTMCell)", "expected 0 inputs, received 1"}},
    {LAYER("RNN", "\"cell\": {\"class_name\": \"LSTM\", \"config\": {\"units\": 3}}"),
     LEAT_ENOTSUP,
     {"'it'", "cell", "LSTMCell", "received LSTM"}},
    {LAYER("RNN", "\"cell\": {\"class_name\": \"GRUCell\", \"config\": {\"units\": 3, \"stateful\": true}}"),
     LEAT_ENOTSUP,
     {"'it'", "cell", "GRUCell", "stateful"}},
    {LAYER("RNN",
           "\"num_constants\": 1, \"cell\": {\"class_name\": \"GRUCell\", \"config\": {\"units\": 3}}"),
     LEAT_ENOTSUP,
     {"'it'", "num_constants", "expected null or 0"}},
    {LAYER("RNN", "\"cell\": {\"class_name\": \"StackedRNNCells\", \"config\": {\"cells\": []}}"),
     LEAT_EINVAL,
     {"'it'", "cell", "cells", "at least one"}},
    {LAYER("RNN", "\"cell\": {\"class_name\": \"StackedRNNCells\", \"config\": {\"cells\": [{\"class_name\": "
                  "\"GRU\", \"config\": {\"units\": 3}}]}}"),
     LEAT_ENOTSUP,
     {"'it'", "cell", "LSTMCell", "received GRU"}},
    {LAYER("TimeDistributed", "\"layer\": {\"class_name\": \"Denze\", \"config\": {}}"),
     LEAT_ENOTSUP,
     {"'it'", "layer", "'Dense'"}},
    {LAYER("TimeDistributed", "\"layer\": {\"class_name\": \"Dense\"}"), LEAT_EINVAL, {"'it'", "\"config\""}},
    {LAYER("TimeDistributed",
           "\"layer\": {\"class_name\": \"InputLayer\", \"config\": {\"batch_input_shape\": "
           "[null, 3]}}"),
     LEAT_EINVAL,
     {"'it'", "has an input"}},
    {LAYER("TimeDistributed",
           "\"layer\": {\"class_name\": \"Conv2D\", \"config\": {\"filters\": 1, \"kernel_size\": "
           "2}}"),
     LEAT_ESHAPE,
     {"'it'", "Conv2D of each step", "(None, 6, 2)"}},
    {LAYER("GRU", "\"units\": 3"), LEAT_ESHAPE, {"'it'", "a sequence", "(None, 6, 6, 2)"}},
    {LAYER("GRU", "\"units\": 3, \"unit_forget_bias\": true"), LEAT_ENOTSUP, {"'it'", "unit_forget_bias"}},
    {LAYER("GRU", "\"units\": 3, \"implementation\": 3"), LEAT_EINVAL, {"'it'", "implementation", "3"}},
    {LAYER("GRU", "\"units\": 2147483647"), LEAT_ESHAPE, {"'it'", "a sequence"}},
    {LAYER("SimpleRNN", "\"units\": 0"), LEAT_EINVAL, {"'it'", "units", "at least 1"}},
    {LAYER("SimpleRNN", "\"units\": 3, \"recurrent_activation\": \"tanh\""),
     LEAT_ENOTSUP,
     {"'it'", "recurrent_activation"}},
    {LAYER("Add", "\"dtype\": \"float32\""), LEAT_EINVAL, {"'it' (Add)", "2 to 64 inputs", "received 1"}},
    {LAYER("InputLayer", "\"batch_input_shape\": [null, 3]"), LEAT_EINVAL, {"'it'", "no inputs"}},
    {LAYER("Dot", "\"axes\": 1"), LEAT_EINVAL, {"'it' (Dot)", "2 inputs", "received 1"}},
    {LAYER("Dot", "\"axes\": [1, 2, 3]"), LEAT_EINVAL, {"'it'", "axes", "a number or two", "3"}},
    {LAYER("LayerNormalization", "\"axis\": [1, 4]"),
     LEAT_ESHAPE,
     {"'it'", "has the axis", "(None, 6, 6, 2)"}},
    {LAYER("GroupNormalization", "\"groups\": 3"), LEAT_ESHAPE, {"'it'", "a multiple of groups"}},
    {LAYER("GroupNormalization", "\"groups\": 0"), LEAT_EINVAL, {"'it'", "groups", "at least 1, or -1"}},
    {LAYER("UnitNormalization", "\"axis\": 0"), LEAT_ESHAPE, {"'it'", "not the batch axis"}},
    {LAYER("Rescaling", "\"scale\": [1.0, 2.0, 3.0]"), LEAT_ESHAPE, {"'it'", "as long as scale"}},
    {LAYER("Rescaling", "\"scale\": []"), LEAT_EINVAL, {"'it'", "scale", "a list of 1 to 65536", "[]"}},
    {LAYER("Rescaling", "\"scale\": null"), LEAT_EINVAL, {"'it'", "scale", "a number", "null"}},
    {LAYER("Normalization", "\"mean\": 1.0"), LEAT_EINVAL, {"'it'", "mean and variance", "both"}},
    {LAYER("Normalization", "\"mean\": [1.0, 2.0, 3.0], \"variance\": [1.0, 2.0, 3.0]"),
     LEAT_ESHAPE,
     {"'it'", "as long as mean"}},
    {LAYER("Lambda", "\"units\": 3"), LEAT_ENOTSUP, {"layer 1 'it' (Lambda)", "Python code of a Lambda"}},
    {LAYER("Embedding", "\"input_dim\": 3"), LEAT_EINVAL, {"'it'", "'output_dim' is missing"}},
    {LAYER("Embedding", "\"input_dim\": 3, \"output_dim\": 0"),
     LEAT_EINVAL,
     {"'it'", "output_dim", "at least 1", "0"}},
    {LAYER("Embedding", "\"input_dim\": 3, \"output_dim\": 2, \"input_length\": 6"),
     LEAT_ESHAPE,
     {"'it'", "input_length", "(None, 6, 6, 2)"}},
    {LAYER("Embedding", "\"input_dim\": 3, \"output_dim\": 2, \"input_length\": [6, 5, null]"),
     LEAT_ESHAPE,
     {"'it'", "as long as input_length", "(None, 6, 6, 2)"}},
    {LAYER("GaussianNoise", "\"stddev\": -1.0"), LEAT_EINVAL, {"'it'", "stddev", "at least 0", "-1.0"}},
    {LAYER("GaussianDropout", "\"stddev\": 1.0"), LEAT_ENOTSUP, {"'it'", "unknown key 'stddev'"}},
    {LAYER("MaxPooling1D", "\"pool_size\": 2"), LEAT_ESHAPE, {"'it'", "a sequence", "(None, 6, 6, 2)"}},
    {LAYER("AveragePooling3D", "\"pool_size\": [2, 2]"),
     LEAT_EINVAL,
     {"'it'", "pool_size", "3 integers", "[2, 2]"}},
    {LAYER("GlobalMaxPooling3D", "\"keepdims\": true"), LEAT_ESHAPE, {"'it'", "a volume", "(None, 6, 6, 2)"}},
    {LAYER("GlobalAveragePooling2D", "\"keepdims\": 2"), LEAT_EINVAL, {"'it'", "keepdims", "true or false"}},
    {LAYER("Cropping2D", "\"cropping\": [[3, 3], [0, 0]]"),
     LEAT_ESHAPE,
     {"'it'", "larger than what is cropped", "(None, 6, 6, 2)"}},
    {LAYER("Cropping3D", "\"cropping\": [1, 2]"), LEAT_EINVAL, {"'it'", "cropping", "per axis", "[1, 2]"}},
    {LAYER("ZeroPadding1D", "\"padding\": [[1, 2]]"), LEAT_EINVAL, {"'it'", "padding", "2 integers"}},
    {LAYER("UpSampling2D", "\"size\": 0"), LEAT_EINVAL, {"'it'", "size", "at least 1", "0"}},
    {LAYER("UpSampling2D", "\"interpolation\": \"cubic\""),
     LEAT_EINVAL,
     {"'it'", "interpolation", "\"lanczos3\" or \"lanczos5\"", "\"cubic\""}},
    {LAYER("UpSampling2D", "\"size\": 2147483647"), LEAT_ESHAPE, {"'it'", "fewer than 2147483648"}},
    {"{\"class_name\": \"Dense\", \"config\": {\"name\": \"in\", \"units\": 3}}",
     LEAT_EINVAL,
     {"'in' twice"}},
    {"{\"class_name\": \"Dense\", \"config\": {\"name\": 3, \"units\": 3}}",
     LEAT_EINVAL,
     {"layer 1", "name"}},
    {"{\"class_name\": \"Dense\"}", LEAT_EINVAL, {"layer 1", "configuration"}},
    {"{\"config\": {}}", LEAT_EFORMAT, {"layer 1", "class_name"}},
    {"[]", LEAT_EFORMAT, {"layer 1", "class_name"}},
};

static void test_layers(void **state) {
    (void)state;
    CHECK_ALL(image_layers,
              "{\"class_name\": \"Sequential\", \"config\": [{\"class_name\": \"InputLayer\", \"config\": "
              "{\"name\": "
              "\"in\", \"batch_input_shape\": [null, 6, 6, 2]}}, ",
              "]}");
}

/* ---- Graphs ---- */

#define INPUT                                                                                                \
    "{\"class_name\": \"InputLayer\", \"name\": \"in\", \"config\": {\"name\": \"in\", "                     \
    "\"batch_input_shape\": [null, 4]},"                                                                     \
    " \"inbound_nodes\": []}, "
#define DENSE(name, from)                                                                                    \
    "{\"class_name\": \"Dense\", \"name\": \"" name "\", \"config\": {\"name\": \"" name                     \
    "\", \"units\": 4}, \"inbound_nodes\": [[" from "]]}"
#define ENDS(inputs, outputs) "], \"input_layers\": [" inputs "], \"output_layers\": [" outputs "]"

/* ---- One layer after a sequence (6, 2) ---- */

static const wrong sequence_layers[] = {
    {LAYER("LSTM", "\"units\": 3, \"stateful\": true"),
     LEAT_ESHAPE,
     {"'it'", "batch size", "batch_input_shape", "(None, 6, 2)"}},
    {LAYER("Bidirectional",
           "\"layer\": {\"class_name\": \"GRU\", \"config\": {\"units\": 3, \"stateful\": true}}"),
     LEAT_ESHAPE,
     {"'it'", "batch size", "(None, 6, 2)"}},
    {LAYER("RNN", "\"stateful\": true, \"cell\": {\"class_name\": \"GRUCell\", \"config\": {\"units\": 3}}"),
     LEAT_ESHAPE,
     {"'it'", "batch size", "(None, 6, 2)"}},
};

static void test_sequence_layers(void **state) {
    (void)state;
    CHECK_ALL(sequence_layers,
              "{\"class_name\": \"Sequential\", \"config\": [{\"class_name\": \"InputLayer\", \"config\": "
              "{\"name\": "
              "\"in\", \"batch_input_shape\": [null, 6, 2]}}, ",
              "]}");
}

static const wrong graphs[] = {
    {INPUT DENSE("a", "[\"b\", 0, 0, {}]") ENDS("[\"in\", 0, 0]", "[\"a\", 0, 0]"),
     LEAT_EFORMAT,
     {"no layer 'b'"}},
    {INPUT DENSE("a", "[\"a\", 0, 0, {}]") ENDS("[\"in\", 0, 0]", "[\"a\", 0, 0]"),
     LEAT_EFORMAT,
     {"'a'", "never made"}},
    {INPUT DENSE("a", "[\"in\", 0, 1, {}]") ENDS("[\"in\", 0, 0]", "[\"a\", 0, 0]"),
     LEAT_EFORMAT,
     {"'in' has no output 1"}},
    {INPUT DENSE("a", "[\"in\", 0, 0, {\"mask\": 1}]") ENDS("[\"in\", 0, 0]", "[\"a\", 0, 0]"),
     LEAT_ENOTSUP,
     {"argument 'mask'"}},
    {INPUT DENSE("a", "\"in\"") ENDS("[\"in\", 0, 0]", "[\"a\", 0, 0]"),
     LEAT_EFORMAT,
     {"[\"layer\", call, output]"}},
    {INPUT DENSE("a", "[\"in\", 0, 0, {}]") ENDS("[\"a\", 0, 0]", "[\"a\", 0, 0]"),
     LEAT_EINVAL,
     {"InputLayer", "'a'"}},
    {INPUT DENSE("a", "[\"in\", 0, 0, {}]") ENDS("", "[\"a\", 0, 0]"), LEAT_EINVAL, {"at least one input"}},
    {INPUT DENSE("a", "[\"in\", 0, 0, {}]") ENDS("[\"in\", 0, 0]", ""), LEAT_EINVAL, {"at least one output"}},
    {INPUT DENSE("a", "[\"in\", 0, 0, {}]") ENDS("[\"in\", 0, 0]", "[\"a\", 1, 0]"),
     LEAT_EFORMAT,
     {"output_layers"}},
    {INPUT DENSE("a", "[\"in\", 0, 0, {}]") ENDS("[\"in\", 0, 0], [\"in\", 0, 0]", "[\"a\", 0, 0]"),
     LEAT_EINVAL,
     {"'in' is listed twice"}},
    {INPUT DENSE("a", "[\"in\", 0, 0, {}], [\"in\", 0, 0, {}]") ENDS("[\"in\", 0, 0]", "[\"a\", 0, 0]"),
     LEAT_EINVAL,
     {"layer 'a' (Dense)", "expected 1 input, received 2"}},
};

static void test_graphs(void **state) {
    (void)state;
    CHECK_ALL(graphs, "{\"class_name\": \"Model\", \"config\": {\"name\": \"m\", \"layers\": [", "}}");
}

/* ---- Whole texts ---- */

static const wrong texts[] = {
    {"", LEAT_EFORMAT, {"JSON, line 1"}},
    {"[]", LEAT_EFORMAT, {"class_name", "received a list"}},
    {"{\"class_name\": \"Dense\"}", LEAT_EFORMAT, {"Sequential, Model or Functional", "Dense"}},
    {"{\"class_name\": \"Model\"}", LEAT_EFORMAT, {"Model", "configuration"}},
    {"{\"class_name\": \"Sequential\", \"config\": []}", LEAT_EINVAL, {"build_input_shape"}},
    {"{\"class_name\": \"Sequential\", \"config\": [{\"class_name\": \"Dense\", \"config\": {\"units\": "
     "3}}]}",
     LEAT_EINVAL,
     {"model 'sequential_1'", "shape of its input is missing", "batch_input_shape"}},
    {"{\"class_name\": \"Sequential\", \"config\": {\"name\": \"s\", \"build_input_shape\": [0], \"layers\": "
     "[{\"class_name\": \"Dense\", \"config\": {\"units\": 3}}]}}",
     LEAT_EINVAL,
     {"build_input_shape"}},
    {"{\"class_name\": \"Sequential\", \"config\": [{\"class_name\": \"LSTM\", \"config\": {\"units\": 3, "
     "\"return_state\": true, \"input_shape\": [4, 2]}}]}",
     LEAT_EINVAL,
     {"'lstm_1'", "one output in a Sequential", "3"}},
    {"{\"class_name\": \"Sequential\", \"config\": [{\"class_name\": \"Dense\", \"config\": {\"units\": 3, "
     "\"input_shape\": [1, 2, 3, 4, 5, 6, 7, 8]}}]}",
     LEAT_EINVAL,
     {"input_shape", "8 dimensions"}},
};

static void test_texts(void **state) {
    (void)state;
    CHECK_ALL(texts, "", "");
}

/* A layer that is called with inputs of two widths needs two kernels, which is refused. */
static void test_second_call(void **state) {
    (void)state;
    static const wrong other_width = {
        "{\"class_name\": \"Model\", \"config\": {\"name\": \"m\", \"layers\": [" INPUT
        "{\"class_name\": \"InputLayer\", \"name\": \"wide\", \"config\": {\"name\": \"wide\", "
        "\"batch_input_shape\": "
        "[null, 9]}, \"inbound_nodes\": []}, {\"class_name\": \"Dense\", \"name\": \"a\", \"config\": "
        "{\"name\": \"a\", "
        "\"units\": 4}, \"inbound_nodes\": [[[\"in\", 0, 0, {}]], [[\"wide\", 0, 0, {}]]]}], "
        "\"input_layers\": "
        "[[\"in\", 0, 0], [\"wide\", 0, 0]], \"output_layers\": [[\"a\", 0, 0], [\"a\", 1, 0]]}}",
        LEAT_ESHAPE,
        {"layer 'a' (Dense)", "needs a kernel of shape (9, 4)", "has shape (4, 4)"}};
    check(&other_width, other_width.json);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers),          cmocka_unit_test(test_graphs),
        cmocka_unit_test(test_sequence_layers), cmocka_unit_test(test_texts),
        cmocka_unit_test(test_second_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
