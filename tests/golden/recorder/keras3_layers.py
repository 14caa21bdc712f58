# SPDX-License-Identifier: Apache-2.0
"""Layers and arguments that current Keras alone has: keras-3/layers/*.npz."""
import keras

import numpy as np

from . import store
from .keras3_case import L, case, functional, initial, layer_config, record, weights_of


def activations():
    """Each activation that 2.3.1 lacks, between two Dense layers."""
    for name in ("relu6", "leaky_relu", "celu", "gelu", "silu", "hard_silu", "mish", "hard_tanh", "sparse_sigmoid",
                 "log_softmax", "log_sigmoid", "tanh_shrink", "soft_shrink", "hard_shrink", "squareplus",
                 "sparse_plus", "sparsemax"):
        case("activation_" + name, "Activation", (5,), lambda: L.Dense(6),
             lambda: L.Activation(name), lambda: L.Dense(2), scale=3.0, batch=4)
    case("activation_log_softmax_rank3", "Activation", (3, 4), lambda: L.Dense(5), lambda: L.Activation("log_softmax"))
    case("activation_sparsemax_rank3", "Activation", (3, 4), lambda: L.Dense(5), lambda: L.Activation("sparsemax"))
    # Keras assumes that glu keeps the shape, so only a layer without weights may follow.
    case("activation_glu", "Activation", (2, 3), lambda: L.Dense(6), lambda: L.Activation("glu"), batch=4)


def normalizations():
    """Layer, group and unit normalisation: axes, parameters, penalties."""
    def one(name, shape, make, **options):
        case(name, make().__class__.__name__, shape, lambda: L.Dense(shape[-1]), make, lambda: L.Dense(2), **options)
    layer, group, unit = L.LayerNormalization, L.GroupNormalization, L.UnitNormalization
    one("layernorm", (6,), lambda: layer())
    one("layernorm_rank3", (3, 4), lambda: layer(epsilon=1e-6))
    one("layernorm_rank4", (2, 3, 4), lambda: layer())
    one("layernorm_axis1", (3, 4), lambda: layer(axis=1))
    one("layernorm_axes", (3, 2, 4), lambda: layer(axis=[1, 3]))
    one("layernorm_neighbours", (3, 2, 4), lambda: layer(axis=[2, 3]))
    one("layernorm_no_center", (6,), lambda: layer(center=False))
    one("layernorm_no_scale", (6,), lambda: layer(scale=False))
    one("layernorm_regularized", (6,), lambda: layer(
        gamma_regularizer=keras.regularizers.L2(0.01), beta_regularizer=keras.regularizers.L1(0.02),
        gamma_constraint=keras.constraints.MaxNorm(1.5), beta_constraint=keras.constraints.NonNeg()))
    one("layernorm_rms_scaling", (3, 4), lambda: layer(rms_scaling=True))
    one("groupnorm_regularized", (2, 4), lambda: group(
        groups=2, gamma_regularizer=keras.regularizers.L2(0.01), beta_regularizer=keras.regularizers.L1(0.02),
        gamma_constraint=keras.constraints.MaxNorm(0.9), beta_constraint=keras.constraints.NonNeg()))
    one("groupnorm", (2, 3, 6), lambda: group(groups=3))
    one("groupnorm_instance", (3, 2, 4), lambda: group(groups=-1, epsilon=1e-5))
    one("groupnorm_one", (3, 4), lambda: group(groups=1))
    one("groupnorm_axis1", (4, 2, 3), lambda: group(groups=2, axis=1))
    one("groupnorm_vector", (6,), lambda: group(groups=2, center=False))
    one("groupnorm_no_scale", (2, 4), lambda: group(groups=2, scale=False))
    one("unitnorm", (5,), lambda: unit())
    one("unitnorm_axis1", (3, 4), lambda: unit(axis=1))
    one("unitnorm_axes", (3, 4), lambda: unit(axis=[1, 2]))


def rescalings():
    """Rescaling and Normalization: numbers, lists, weights."""
    def one(name, shape, make, **options):
        case(name, make().__class__.__name__, shape, make, lambda: L.Dense(3), **options)
    one("rescaling", (4,), lambda: L.Rescaling(0.5, offset=-1.0))
    one("rescaling_list", (2, 3), lambda: L.Rescaling([0.5, 1.5, 2.0], offset=[0.0, 1.0, -1.0]))
    one("normalization_weights", (4,), lambda: L.Normalization())
    one("normalization_two_axes", (2, 3), lambda: L.Normalization(axis=(1, 2)))
    one("normalization_list", (2, 3), lambda: L.Normalization(mean=[0.5, 0.0, 1.0], variance=[0.25, 1.0, 2.0]))
    one("normalization_number", (4,), lambda: L.Normalization(axis=None, mean=0.5, variance=0.25))
    one("normalization_invert", (4,), lambda: L.Normalization(invert=True))


def keepdims():
    """Global pooling that keeps its axes, GlobalAveragePooling's later argument."""
    for kind, shape in ((L.GlobalAveragePooling1D, (3, 4)), (L.GlobalAveragePooling2D, (2, 3, 4)),
                        (L.GlobalAveragePooling3D, (2, 2, 3, 2)), (L.GlobalMaxPooling1D, (3, 4)),
                        (L.GlobalMaxPooling2D, (2, 3, 4)), (L.GlobalMaxPooling3D, (2, 2, 3, 2))):
        case(kind.__name__.lower() + "_keepdims", kind.__name__, shape, lambda: L.Dense(3),
             lambda: kind(keepdims=True), lambda: L.Dense(2))


def groups():
    """Convolutions with groups of channels."""
    def one(name, kind, shape, **options):
        case("%s_%s" % (kind.__name__.lower(), name), kind.__name__, shape, lambda: kind(4, 1, name="in"),
             lambda: kind(name="it", **options), lambda: kind(2, 1, name="out"), batch=2)
    one("groups", L.Conv1D, (6, 2), filters=6, kernel_size=3, groups=2, padding="causal", dilation_rate=2)
    one("groups", L.Conv2D, (5, 4, 2), filters=6, kernel_size=3, groups=2, activation="tanh")
    one("groups_depthwise", L.Conv2D, (4, 5, 2), filters=8, kernel_size=(2, 3), groups=4, strides=2, padding="same")
    one("groups_dilated", L.Conv2D, (5, 4, 2), filters=2, kernel_size=2, groups=2, dilation_rate=2, use_bias=False)
    one("groups", L.Conv3D, (3, 3, 4, 2), filters=4, kernel_size=2, groups=2, padding="same")


def dilated():
    """Conv3DTranspose with dilation.  TensorFlow does not support it on a CPU, so a kernel with zeros between its
    elements is recorded."""
    keras.backend.clear_session()
    name = "conv3dtranspose_dilated"
    random = store.random_for("keras-3/layers/" + name)
    dense, layer = L.Dense(2), L.Conv3DTranspose(3, (2, 1, 2), dilation_rate=(2, 1, 3), name="it")
    config = [layer_config(dense, (2, 2, 3, 2)), layer_config(layer, None)]
    wide = L.Conv3DTranspose(3, (3, 1, 4), name="wide")
    x = L.Input((2, 2, 3, 2))
    model = keras.Model(x, wide(dense(x)))
    for weight in weights_of(model):
        weight.assign(initial(random, weight))
    kernel = wide.kernel.numpy()[::2, :, ::3]
    spread = np.zeros(wide.kernel.shape)
    spread[::2, :, ::3] = kernel
    wide.kernel.assign(spread)
    x = random.normal(0.0, 1.0, (2, 2, 2, 3, 2)).astype("float32")
    record(name, "Conv3DTranspose", model, {
        "class_name": "Sequential", "config": {"name": "sequential_1", "layers": config}, "keras_version": "2.3.1",
        "backend": "tensorflow"}, [x], random, "a kernel with zeros between", False, {wide.kernel.path: kernel})


def masked_softmax():
    """Softmax with a mask of its elements; no element of the last row counts."""
    masks = np.array([[[1, 1, 0, 1], [0, 1, 1, 1], [0, 0, 0, 0]], [[1, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]]], bool)

    def one(name, mask):
        def build():
            x, m = L.Input((3, 4), name="x"), L.Input(mask.shape[1:], name="m", dtype="bool")
            return [x, m], L.Dense(2)(L.Softmax()(L.Dense(4)(x), mask=m))
        x = store.random_for("softmax_mask").normal(0.0, 1.0, (2, 3, 4)).astype("float32")
        functional("softmax_mask" + name, "Softmax", build, inputs=[x, mask], exact=True)
    one("", masks)
    one("_column", masks[:, :, :1])


def later():
    """Layers that current Keras computes in another way than 2.3.1, or over more axes."""
    def one(name, shape, make):
        def build():
            x = L.Input(shape, name="x")
            return [x], L.Dense(2)(make()(L.Dense(shape[-1])(x)))
        functional(name, make().__class__.__name__, build)
    one("softmax_axes", (3, 2, 4), lambda: L.Softmax(axis=[1, 3]))
    one("softmax_last_axes", (3, 2, 4), lambda: L.Softmax(axis=(-1, -2)))
    one("upsampling2d_bilinear", (3, 2, 4), lambda: L.UpSampling2D((2, 3), interpolation="bilinear"))
    one("upsampling2d_bicubic", (3, 2, 4), lambda: L.UpSampling2D((2, 3), interpolation="bicubic"))
    one("upsampling2d_lanczos3", (3, 2, 4), lambda: L.UpSampling2D(2, interpolation="lanczos3"))
    one("zeropadding1d_first", (4, 3), lambda: L.ZeroPadding1D((1, 2), data_format="channels_first"))
    one("activityregularization", (4,), lambda: L.ActivityRegularization(0.02, 0.03))


def run():
    """Records all cases of this module."""
    for part in (activations, normalizations, rescalings, keepdims, groups, dilated, later, masked_softmax):
        part()
