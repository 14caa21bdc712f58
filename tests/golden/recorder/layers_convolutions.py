# SPDX-License-Identifier: Apache-2.0
"""Cases: convolutions beside Conv2D: of one and three axes, transposed, separable."""
from .layers_core import GROUP, stack
from .model_case import record
from .session import keras

L = keras.layers
FIRST = "channels_first on a CPU: Keras transposes around a channels_last kernel"
EVERYTHING = dict(bias_regularizer="l2", activity_regularizer="l1", bias_constraint="max_norm",
                  bias_initializer="random_uniform")


def kernel_options():
    """Penalty and constraint of a kernel; constraints are objects of their session."""
    return dict(kernel_regularizer=keras.regularizers.l1_l2(0.01, 0.02), kernel_constraint="max_norm")


def around(prefix, kind, class_name, root, front):
    """case(name, shape, ...) records the layer between two others, so that gradients also pass through to its source."""
    def case(name, shape, *args, **kwargs):
        first = kwargs.get("data_format")
        record(root, GROUP, "%s_%s" % (prefix, name), class_name,
               stack(shape, lambda: front(2, 1, data_format=first), lambda: kind(*args, **kwargs),
                     lambda: front(2, 1, data_format=first)), notes=FIRST if first else "", batch=2)
    return case


def conv1d(root):
    """Conv1D: all three paddings, strides, dilation."""
    case = around("conv1d", L.Conv1D, "Conv1D", root, L.Conv1D)
    case("valid", (6, 2), 3, 3)
    case("same", (6, 2), 3, 4, padding="same")
    case("same_s2", (7, 2), 3, 3, strides=2, padding="same")
    case("same_k2_s3", (7, 2), 2, 2, strides=3, padding="same")
    case("valid_s2", (7, 2), 2, 2, strides=2)
    case("causal", (6, 2), 3, 3, padding="causal")
    case("causal_s2", (7, 2), 3, 3, strides=2, padding="causal")
    case("causal_dilation", (7, 2), 3, 3, dilation_rate=2, padding="causal")
    case("causal_reach", (4, 2), 2, 3, dilation_rate=3, padding="causal")
    case("valid_dilation", (8, 2), 3, 3, dilation_rate=3)
    case("same_dilation", (7, 2), 3, 2, dilation_rate=2, padding="same")
    case("1", (4, 2), 3, 1, activation="relu", use_bias=False)
    case("softmax", (4, 2), 3, 2, activation="softmax")
    case("everything", (5, 2), 3, 2, **dict(EVERYTHING, **kernel_options()))
    case("channels_first", (2, 6), 3, 3, data_format="channels_first", padding="same", strides=2)
    case("channels_first_softmax", (2, 6), 3, 3, data_format="channels_first", activation="softmax")
    record(root, GROUP, "conv1d_any_length", "Conv1D",
           stack((None, 2), lambda: L.Conv1D(3, 2, padding="causal"), lambda: L.Conv1D(2, 2, strides=2)),
           inputs=[[[[0.1 * i - 0.2 * j * k for k in range(2)] for j in range(5)] for i in range(2)]],
           targets=[[[[0.3, -0.2], [0.5, 0.1]], [[-0.4, 0.6], [0.2, 0.7]]]],
           notes="the time axis of the input layer is None; the batch has 5 steps")


def conv3d(root):
    """Conv3D: both paddings, strides, dilation."""
    case = around("conv3d", L.Conv3D, "Conv3D", root, L.Conv3D)
    case("valid", (3, 4, 3, 2), 3, 2)
    case("same", (3, 3, 4, 2), 2, (2, 3, 4), padding="same")
    case("same_s2", (3, 4, 5, 2), 2, 3, strides=2, padding="same")
    case("valid_strides", (4, 5, 3, 2), 2, (2, 1, 3), strides=(2, 3, 1), activation="tanh")
    case("dilation", (3, 4, 3, 2), 2, (2, 2, 1), dilation_rate=2)
    case("same_dilation", (3, 4, 3, 2), 2, 2, dilation_rate=2, padding="same")
    case("1", (2, 3, 2, 2), 3, 1, use_bias=False)
    case("everything", (2, 3, 2, 2), 2, 2, **dict(EVERYTHING, **kernel_options()))
    case("channels_first", (2, 3, 4, 3), 2, 2, strides=2, padding="same", data_format="channels_first")
    case("channels_first_softmax", (2, 3, 4, 3), 2, 2, data_format="channels_first", activation="softmax")


def conv2d_transpose(root):
    """Conv2DTranspose: the output's size with and without output_padding."""
    case = around("conv2dtranspose", L.Conv2DTranspose, "Conv2DTranspose", root, L.Conv2D)
    case("valid", (3, 4, 2), 3, 3)
    case("valid_s2", (3, 2, 2), 3, 3, strides=2)
    case("valid_gaps", (2, 3, 2), 2, 2, strides=3)
    case("valid_rect", (3, 2, 2), 2, (1, 4), strides=(2, 1), use_bias=False)
    case("same", (3, 4, 2), 2, 3, padding="same")
    case("same_even", (3, 4, 2), 2, (2, 4), padding="same")
    case("same_s2", (3, 2, 2), 3, 3, strides=2, padding="same", activation="relu")
    case("same_k2_s3", (2, 3, 2), 2, 2, strides=3, padding="same")
    case("same_k4_s2", (2, 3, 2), 2, 4, strides=2, padding="same")
    case("output_padding_valid", (3, 2, 2), 2, 3, strides=2, output_padding=1)
    case("output_padding_valid_0", (3, 2, 2), 2, 2, strides=3, output_padding=0)
    case("output_padding_same", (3, 2, 2), 2, 3, strides=2, padding="same", output_padding=(1, 0))
    case("output_padding_same_even", (3, 2, 2), 2, (4, 3), strides=(2, 3), padding="same", output_padding=(1, 2))
    case("dilation", (3, 4, 2), 2, 2, dilation_rate=2)
    case("dilation_same", (3, 4, 2), 2, 3, dilation_rate=2, padding="same")
    case("everything", (2, 3, 2), 2, 2, **dict(EVERYTHING, **kernel_options()))
    case("channels_first", (2, 3, 4), 3, 3, strides=2, padding="same", data_format="channels_first")
    case("channels_first_softmax", (2, 3, 4), 3, 2, strides=2, data_format="channels_first",
         activation="softmax", output_padding=1)


def conv3d_transpose(root):
    """Conv3DTranspose."""
    case = around("conv3dtranspose", L.Conv3DTranspose, "Conv3DTranspose", root, L.Conv3D)
    case("valid", (2, 3, 2, 2), 3, 2)
    case("valid_strides", (2, 1, 2, 2), 2, (3, 2, 1), strides=(2, 3, 1), activation="tanh")
    case("same", (2, 3, 2, 2), 2, (2, 3, 1), padding="same", use_bias=False)
    case("same_s2", (2, 1, 2, 2), 2, 3, strides=2, padding="same")
    case("output_padding", (2, 1, 2, 2), 2, 3, strides=2, output_padding=(1, 0, 1))
    case("output_padding_same", (2, 1, 2, 2), 2, 3, strides=2, padding="same", output_padding=1)
    case("everything", (1, 2, 2, 2), 2, 2, **dict(EVERYTHING, **kernel_options()))
    case("channels_first", (2, 2, 1, 2), 3, 2, strides=2, data_format="channels_first",
         activation="softmax")


def separable(root):
    """SeparableConv1D and SeparableConv2D."""
    both = dict(EVERYTHING, depthwise_regularizer="l2", pointwise_regularizer="l1",
                depthwise_constraint="unit_norm", pointwise_constraint="non_neg",
                depthwise_initializer="he_normal", pointwise_initializer="lecun_uniform")
    case = around("separableconv1d", L.SeparableConv1D, "SeparableConv1D", root, L.Conv1D)
    case("valid", (6, 2), 3, 3)
    case("same_s2_m2", (7, 2), 3, 3, strides=2, padding="same", depth_multiplier=2)
    case("dilation", (6, 2), 3, 2, dilation_rate=2, activation="relu", use_bias=False)
    case("everything", (5, 2), 3, 2, **both)
    case("channels_first", (2, 6), 3, 3, padding="same", depth_multiplier=3, data_format="channels_first")
    case = around("separableconv2d", L.SeparableConv2D, "SeparableConv2D", root, L.Conv2D)
    case("valid", (4, 5, 2), 3, 3)
    case("same_s2", (5, 4, 2), 3, 3, strides=2, padding="same")
    case("m3_rect", (4, 5, 2), 2, (2, 3), depth_multiplier=3, activation="tanh")
    case("dilation", (6, 5, 2), 2, 2, dilation_rate=(2, 3), use_bias=False)
    case("same_dilation", (5, 4, 2), 2, 3, dilation_rate=2, padding="same", depth_multiplier=2)
    case("everything", (3, 4, 2), 2, 2, **both)
    case("channels_first", (2, 5, 4), 3, 3, padding="same", data_format="channels_first", activation="softmax")


def depthwise(root):
    """DepthwiseConv2D with dilation."""
    case = around("depthwise", L.DepthwiseConv2D, "DepthwiseConv2D", root, L.Conv2D)
    case("dilation", (6, 5, 2), 2, dilation_rate=2)
    case("same_dilation_m2", (6, 5, 2), (2, 3), dilation_rate=(3, 2), padding="same", depth_multiplier=2)


def run(root):
    """Records all cases of this module."""
    for part in (conv1d, conv3d, conv2d_transpose, conv3d_transpose, separable, depthwise):
        part(root)
