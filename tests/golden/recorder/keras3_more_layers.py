# SPDX-License-Identifier: Apache-2.0
"""Layers that current Keras alone has: convolutions of other ranks, adaptive pooling, normalizations."""
import keras
import numpy as np

from .keras3_case import L, functional


def one(name, make, shape, **options):
    """Records the layer between two Dense layers."""
    def build():
        x = L.Input(shape, name="x")
        return [x], L.Dense(2)(make()(L.Dense(shape[-1], name="before")(x)))
    functional(name, make().__class__.__name__, build, **options)


def penalties(prefix):
    """Returns arguments of a layer that has a kernel and a bias."""
    return {prefix + "_regularizer": keras.regularizers.L2(0.01), "bias_regularizer": keras.regularizers.L1(0.02),
            "activity_regularizer": keras.regularizers.L2(0.01), prefix + "_constraint": keras.constraints.MaxNorm(0.5),
            "bias_constraint": keras.constraints.NonNeg()}


def transposed():
    """Conv1DTranspose: lengths, gaps, order of axes."""
    layer = L.Conv1DTranspose
    one("conv1dtranspose", lambda: layer(3, 3), (5, 2))
    one("conv1dtranspose_strides", lambda: layer(3, 2, strides=3, activation="tanh"), (4, 2))
    one("conv1dtranspose_same", lambda: layer(4, 3, strides=2, padding="same", use_bias=False), (5, 3))
    one("conv1dtranspose_output_padding", lambda: layer(3, 3, strides=2, output_padding=1), (4, 2))
    one("conv1dtranspose_output_padding_same", lambda: layer(3, 5, strides=3, padding="same", output_padding=2), (4, 2))
    one("conv1dtranspose_channels_first", lambda: layer(3, 2, strides=2, data_format="channels_first"), (2, 4))
    one("conv1dtranspose_regularized", lambda: layer(3, 2, **penalties("kernel")), (5, 2))


def orthogonal():
    """OrthogonalRegularizer of rows and of columns."""
    regularizer = keras.regularizers.OrthogonalRegularizer
    one("dense_orthogonal_rows", lambda: L.Dense(4, kernel_regularizer=regularizer(0.1)), (3,))
    one("dense_orthogonal_columns", lambda: L.Dense(3, kernel_regularizer=regularizer(0.2, "columns")), (4,))


def depthwise():
    """DepthwiseConv1D: filters for each channel, gaps, order of axes."""
    layer = L.DepthwiseConv1D
    one("depthwiseconv1d", lambda: layer(3), (6, 2))
    one("depthwiseconv1d_multiplier", lambda: layer(2, depth_multiplier=3, padding="same", activation="tanh"), (5, 3))
    one("depthwiseconv1d_strides", lambda: layer(3, strides=2, padding="same", use_bias=False), (7, 2))
    one("depthwiseconv1d_dilation", lambda: layer(2, dilation_rate=3, depth_multiplier=2), (7, 2))
    one("depthwiseconv1d_channels_first", lambda: layer(2, data_format="channels_first"), (3, 5))
    one("depthwiseconv1d_regularized", lambda: layer(2, **penalties("depthwise")), (5, 2))


def memories():
    """ConvLSTM1D and ConvLSTM3D."""
    def pair(name, line, volume, **options):
        if line:
            one("convlstm1d" + name, lambda: L.ConvLSTM1D(2, 2, **options), line)
        if volume:
            one("convlstm3d" + name, lambda: L.ConvLSTM3D(2, 2, **options), volume, batch=2)
    pair("", (3, 5, 2), (2, 3, 3, 4, 2))
    pair("_same", (3, 4, 2), (2, 2, 3, 2, 2), padding="same", return_sequences=True, go_backwards=True)
    pair("_strides", (3, 5, 2), (2, 3, 3, 4, 1), strides=2, padding="same", recurrent_activation="hard_sigmoid")
    pair("_dilation", (3, 6, 2), None, dilation_rate=2, use_bias=False)
    pair("_channels_first", (3, 2, 5), (2, 2, 3, 2, 3), data_format="channels_first", return_sequences=True)
    pair("_regularized", (3, 4, 2), (2, 2, 2, 2, 1), recurrent_regularizer=keras.regularizers.L1(0.01),
         recurrent_constraint=keras.constraints.NonNeg(), unit_forget_bias=False, **penalties("kernel"))

    def states(layer, shape):
        def build():
            x = L.Input(shape, name="x")
            y, h, c = layer(2, 2, return_state=True, padding="same")(x)
            return [x], L.Concatenate()([y, h, c])
        functional(layer.__name__.lower() + "_states", layer.__name__, build, batch=2)
    states(L.ConvLSTM1D, (3, 4, 2))
    states(L.ConvLSTM3D, (2, 2, 3, 2, 2))


def adaptive():
    """Adaptive pooling: equal windows, windows that overlap, windows of two lengths, more outputs than inputs."""
    def each(name, kinds, shape, *arguments, **options):
        for kind in kinds:
            one(kind.__name__.lower() + name, lambda: kind(*arguments, **options), shape)
    lines = (L.AdaptiveAveragePooling1D, L.AdaptiveMaxPooling1D)
    images = (L.AdaptiveAveragePooling2D, L.AdaptiveMaxPooling2D)
    volumes = (L.AdaptiveAveragePooling3D, L.AdaptiveMaxPooling3D)
    each("", lines, (6, 3), 2)
    each("_overlap", lines, (4, 3), 3)
    each("_lengths", lines, (7, 2), 5)
    each("_periods", lines, (10, 2), 4)
    each("_more", lines, (3, 2), 5)
    each("_channels_first", lines, (2, 5), 3, data_format="channels_first")
    each("", images, (4, 6, 2), 2)
    each("_one", images[:1], (3, 4, 2), 1)  # the maximum over a whole axis ends TensorFlow 2.21
    each("_lengths", images, (5, 7, 2), (3, 5))
    each("_channels_first", images, (2, 5, 4), (2, 3), data_format="channels_first")
    each("", volumes, (4, 2, 6, 2), 2)
    each("_lengths", volumes, (3, 5, 4, 2), (2, 3, 3))
    each("_channels_first", volumes, (2, 3, 4, 2), (2, 3, 1), data_format="channels_first")


def normalizations():
    """RMSNormalization: axes, epsilon."""
    layer = L.RMSNormalization
    one("rmsnorm", lambda: layer(), (6,))
    one("rmsnorm_rank3", lambda: layer(epsilon=1e-3), (3, 4))
    one("rmsnorm_axes", lambda: layer(axis=(1, 2)), (3, 4))
    one("rmsnorm_negative_axes", lambda: layer(axis=[-1, -2]), (2, 3, 4))
    one("rmsnorm_other_axis", lambda: layer(axis=1), (4, 4))


def flat():
    """Flatten of inputs without more axes than one."""
    one("flatten_rank2", L.Flatten, (4,))
    one("flatten_rank2_channels_first", lambda: L.Flatten(data_format="channels_first"), (4,))

    def vector():
        x = L.Input((), name="x")
        return [x], L.Dense(2)(L.Flatten()(x))
    functional("flatten_rank1", "Flatten", vector)


def spectral():
    """SpectralNormalization: layers of each kind inside, iterations, penalties; frozen, and called twice."""
    layer = L.SpectralNormalization
    one("spectralnorm", lambda: layer(L.Dense(3)), (4,))
    one("spectralnorm_conv", lambda: layer(L.Conv2D(3, 2), power_iterations=3), (4, 3, 2))
    one("spectralnorm_transposed", lambda: layer(L.Conv2DTranspose(3, 2, strides=2, activation="tanh")), (2, 3, 2))
    one("spectralnorm_depthwise", lambda: layer(L.DepthwiseConv2D(2, use_bias=False)), (4, 3, 2))
    one("spectralnorm_einsum", lambda: layer(L.EinsumDense("abc,cd->abd", (None, 3), bias_axes="d")), (3, 4))
    one("spectralnorm_regularized", lambda: layer(L.Conv1D(3, 2, **penalties("kernel"))), (5, 2))

    def frozen():
        x = L.Input((4,), name="x")
        it = layer(L.Dense(3))
        y = it(L.Dense(4)(x))
        it.trainable = False
        return [x], L.Dense(2)(y)
    functional("spectralnorm_frozen", "SpectralNormalization", frozen)

    def twice():
        x = L.Input((4,), name="x")
        shared = layer(L.Dense(4))
        return [x], L.Dense(2)(shared(shared(x)))
    functional("spectralnorm_twice", "SpectralNormalization", twice)


def dropped():
    """Layers that do not pass masks on: convolutions, pooling, Flatten, RMSNormalization."""
    words = [np.array([[1, 2, 3, 0, 0], [4, 5, 1, 2, 0], [3, 1, 0, 0, 0]])]

    def one_mask(name, class_name, *makes):
        def build():
            x = L.Input((5,), name="x")
            y = L.Embedding(6, 3, mask_zero=True, name="table")(x)
            for make in makes:
                y = make()(y)
            return [x], L.Dense(2)(y)
        functional(name, class_name, build, inputs=words)
    one_mask("mask_conv", "Conv1D", lambda: L.Conv1D(3, 3, padding="same"), L.GlobalAveragePooling1D)
    one_mask("mask_flatten", "Flatten", L.Flatten)
    one_mask("mask_pooling", "MaxPooling1D", lambda: L.MaxPooling1D(2), lambda: L.LSTM(3))
    one_mask("mask_rmsnorm", "RMSNormalization", L.RMSNormalization, L.GlobalAveragePooling1D)
    one_mask("mask_norm", "LayerNormalization", L.LayerNormalization, L.GlobalAveragePooling1D)
    one_mask("mask_spatial", "SpatialDropout1D", lambda: L.SpatialDropout1D(0.0), lambda: L.GRU(3))


def joined():
    """Masks of several inputs; BatchNormalization by the steps that count."""
    words = [np.array([[1, 2, 3, 0, 0], [4, 5, 1, 2, 0], [3, 1, 0, 0, 0]]),
             np.array([[2, 0, 0, 0, 0], [4, 0, 1, 2, 3], [3, 1, 2, 0, 0]])]

    def two(name, class_name, make, second=True):
        def build():
            x, z = L.Input((5,), name="x"), L.Input((5,), name="z")
            a = L.Embedding(6, 3, mask_zero=True, name="a")(x)
            b = L.Embedding(6, 3, mask_zero=second, name="b")(z)
            return [x, z], L.Dense(2)(L.GlobalAveragePooling1D()(make()([a, b])))
        functional(name, class_name, build, inputs=words)
    for kind in (L.Add, L.Subtract, L.Multiply, L.Average, L.Maximum, L.Minimum):
        two("mask_" + kind.__name__.lower(), kind.__name__, kind)
    two("mask_add_one", "Add", L.Add, False)
    two("mask_concatenate", "Concatenate", L.Concatenate)
    two("mask_concatenate_one", "Concatenate", L.Concatenate, False)
    two("mask_concatenate_steps", "Concatenate", lambda: L.Concatenate(axis=1))
    two("mask_concatenate_steps_one", "Concatenate", lambda: L.Concatenate(axis=1), False)

    def normalised():
        x = L.Input((5,), name="x")
        y = L.BatchNormalization(momentum=0.5)(L.Embedding(6, 3, mask_zero=True, name="table")(x))
        return [x], L.Dense(2)(L.GRU(3)(y))
    functional("mask_batchnorm", "BatchNormalization", normalised, inputs=words[:1])


def distributed():
    """BatchNormalization and penalties of activities in TimeDistributed, of which each step is a call of its own."""
    def build(name, shape, make):
        def made():
            x = L.Input(shape)
            return [x], L.Dense(2)(make(L.Dense(shape[-1], use_bias=False)(x)))
        functional("distributed_" + name, "TimeDistributed", made, batch=8)

    def images(x):
        x = L.TimeDistributed(L.BatchNormalization(axis=1, momentum=0.5, scale=False))(L.TimeDistributed(L.Conv2D(2, 2, use_bias=False))(x))
        return L.TimeDistributed(L.GlobalMaxPooling2D())(x)

    def inner(x):
        step = L.Input((3,))
        model = keras.Model(step, L.BatchNormalization()(L.Dense(3, activity_regularizer="l2", use_bias=False)(step)))
        return L.TimeDistributed(model)(x)

    build("norm", (4, 3), lambda x: L.TimeDistributed(L.BatchNormalization(momentum=0.6))(x))
    build("norm_twice", (2, 3, 2), lambda x: L.TimeDistributed(L.TimeDistributed(L.BatchNormalization(momentum=0.6)))(x))
    build("norm_images", (3, 4, 4, 2), images)
    build("norm_model", (4, 3), inner)
    build("activity", (4, 3), lambda x: L.TimeDistributed(L.Dense(3, activity_regularizer="l2"))(x))


def run():
    """Records all cases of this module."""
    for part in (orthogonal, transposed, depthwise, memories, adaptive, normalizations, flat, spectral, dropped, joined,
                 distributed):
        part()
