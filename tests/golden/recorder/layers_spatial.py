# SPDX-License-Identifier: Apache-2.0
"""Cases: pooling, padding, cropping and up-sampling over 1 to 3 spatial axes, and Embedding."""
import numpy as np

from .layers_conv import FIRST
from .layers_core import GROUP, stack
from .model_case import record
from .session import keras

L = keras.layers
SHAPES = {1: (7, 2), 2: (5, 4, 2), 3: (4, 3, 5, 2)}


def around(root, name, spatial, make, first=False, **options):
    """A case of a layer between two that have weights: Dense, or Permute and Dense where channels come first."""
    shape = SHAPES[spatial]
    if first:
        shape = shape[-1:] + shape[:-1]
    record(root, GROUP, name, make().__class__.__name__,
           stack(shape, lambda: L.Dense(shape[-1]), make, lambda: L.Dense(2)),
           notes=FIRST if first else "", **options)


def pooling(root):
    """MaxPooling and AveragePooling of sequences and volumes: windows that overlap, skip, or hang over."""
    one = {"default": dict(), "overlap": dict(pool_size=3, strides=2), "skip": dict(pool_size=2, strides=3),
           "same": dict(pool_size=2, padding="same"), "same_overlap": dict(pool_size=3, strides=2, padding="same"),
           "same_stride1": dict(pool_size=3, strides=1, padding="same"),
           "channels_first": dict(pool_size=2, padding="same", data_format="channels_first")}
    three = {"default": dict(), "rect": dict(pool_size=(2, 1, 3)), "overlap": dict(pool_size=2, strides=1),
             "same": dict(pool_size=(2, 2, 3), padding="same"),
             "same_strides": dict(pool_size=(2, 3, 2), strides=(1, 2, 3), padding="same"),
             "channels_first": dict(pool_size=(2, 2, 1), data_format="channels_first")}
    for prefix in ("Max", "Average"):
        for spatial, cases in ((1, one), (3, three)):
            kind = getattr(L, "%sPooling%dD" % (prefix, spatial))
            for name, config in cases.items():
                around(root, "%spooling%dd_%s" % (prefix.lower(), spatial, name), spatial,
                       lambda: kind(**config), "data_format" in config)


def global_pooling(root):
    """Global pooling of sequences and volumes, both data formats; an average of masked sequences."""
    for prefix in ("Max", "Average"):
        for spatial in (1, 3):
            kind = getattr(L, "Global%sPooling%dD" % (prefix, spatial))
            for first in (None, "channels_first"):
                name = "global%spooling%dd%s" % (prefix.lower(), spatial, "_" + first if first else "")
                config = dict(data_format=first) if first else {}
                around(root, name, spatial, lambda: kind(**config), bool(first))
    x = np.array([[[1, 2], [3, 4], [0, 0]], [[1, 1], [0, 0], [0, 0]], [[1, 0], [2, 2], [0, 3]]], "float32")
    record(root, GROUP, "globalaveragepooling1d_masked", "GlobalAveragePooling1D",
           stack((3, 2), lambda: L.Masking(), lambda: L.Dense(3), lambda: L.GlobalAveragePooling1D(),
                 lambda: L.Dense(2)), inputs=[x])


def padding(root):
    """ZeroPadding and Cropping: a number, numbers, pairs."""
    first = dict(data_format="channels_first")
    for name, spatial, make in (
            ("zeropadding1d_int", 1, lambda: L.ZeroPadding1D(2)),
            ("zeropadding1d_pair", 1, lambda: L.ZeroPadding1D((1, 3))),
            ("zeropadding3d_default", 3, lambda: L.ZeroPadding3D()),
            ("zeropadding3d_triple", 3, lambda: L.ZeroPadding3D((1, 0, 2))),
            ("zeropadding3d_nested", 3, lambda: L.ZeroPadding3D(((1, 0), (0, 2), (1, 1)))),
            ("cropping1d_default", 1, lambda: L.Cropping1D()),
            ("cropping1d_int", 1, lambda: L.Cropping1D(2)),
            ("cropping1d_pair", 1, lambda: L.Cropping1D((0, 3))),
            ("cropping2d_default", 2, lambda: L.Cropping2D()),
            ("cropping2d_int", 2, lambda: L.Cropping2D(1)),
            ("cropping2d_pair", 2, lambda: L.Cropping2D((2, 1))),
            ("cropping2d_nested", 2, lambda: L.Cropping2D(((1, 0), (0, 2)))),
            ("cropping3d_default", 3, lambda: L.Cropping3D()),
            ("cropping3d_nested", 3, lambda: L.Cropping3D(((1, 2), (0, 1), (2, 2))))):
        around(root, name, spatial, make)
    around(root, "zeropadding3d_channels_first", 3, lambda: L.ZeroPadding3D(((1, 0), (0, 2), (1, 1)), **first), True)
    around(root, "cropping2d_channels_first", 2, lambda: L.Cropping2D(((1, 0), (0, 2)), **first), True)
    around(root, "cropping3d_channels_first", 3, lambda: L.Cropping3D(((1, 2), (0, 1), (2, 1)), **first), True)


def up_sampling(root):
    """UpSampling: nearest over 1 to 3 axes, bilinear over 2."""
    first = dict(data_format="channels_first")
    for name, spatial, make in (
            ("upsampling1d", 1, lambda: L.UpSampling1D()),
            ("upsampling1d_size", 1, lambda: L.UpSampling1D(3)),
            ("upsampling2d", 2, lambda: L.UpSampling2D()),
            ("upsampling2d_size", 2, lambda: L.UpSampling2D((3, 1))),
            ("upsampling2d_bilinear", 2, lambda: L.UpSampling2D(interpolation="bilinear")),
            ("upsampling2d_bilinear_size", 2, lambda: L.UpSampling2D((3, 4), interpolation="bilinear")),
            ("upsampling2d_bilinear_rows", 2, lambda: L.UpSampling2D((4, 1), interpolation="bilinear")),
            ("upsampling3d", 3, lambda: L.UpSampling3D()),
            ("upsampling3d_size", 3, lambda: L.UpSampling3D((1, 3, 2)))):
        around(root, name, spatial, make)
    around(root, "upsampling2d_channels_first", 2, lambda: L.UpSampling2D((2, 3), **first), True)
    around(root, "upsampling2d_bilinear_channels_first", 2,
           lambda: L.UpSampling2D((2, 3), interpolation="bilinear", **first), True)
    around(root, "upsampling3d_channels_first", 3, lambda: L.UpSampling3D((2, 1, 3), **first), True)


def embedding(root):
    """Embedding: repeated indices, rows that are not used, input_length, mask_zero, penalties, fractional indices."""
    random = np.random.RandomState(11)

    def case(name, shape, make, *layers, **options):
        x = options.pop("x", None)
        x = random.randint(0, 5, (4,) + shape) if x is None else x

        def build():
            first = make()
            first.batch_input_shape = (None,) + shape
            return keras.Sequential([first] + [layer() for layer in layers])
        record(root, GROUP, "embedding" + name, "Embedding", build, inputs=[np.asarray(x, "float32")], **options)
    case("", (3,), lambda: L.Embedding(5, 2))
    case("_dense", (4,), lambda: L.Embedding(6, 3), lambda: L.Dense(2))
    case("_rank3", (2, 3), lambda: L.Embedding(5, 2), lambda: L.Dense(2))
    case("_input_length", (3,), lambda: L.Embedding(5, 2, input_length=3), lambda: L.Flatten(),
         lambda: L.Dense(2))
    case("_input_lengths", (2, 3), lambda: L.Embedding(5, 2, input_length=(2, 3)), lambda: L.Flatten(),
         lambda: L.Dense(2))
    case("_regularized", (3,), lambda: L.Embedding(
        5, 2, embeddings_initializer="he_normal", embeddings_regularizer="l2", activity_regularizer="l1",
        embeddings_constraint=keras.constraints.UnitNorm(axis=1)), lambda: L.Dense(2))
    case("_fractions", (3,), lambda: L.Embedding(5, 2), x=[[0.9, 1.2, 4.7], [3.999, 2.0, -0.5]], train=False)
    case("_adam", (3,), lambda: L.Embedding(5, 2), lambda: L.Dense(2), optimizer=("Adam", {}))
    case("_mask_zero_pooled", (4,), lambda: L.Embedding(5, 3, mask_zero=True),
         lambda: L.GlobalAveragePooling1D(), lambda: L.Dense(2),
         x=[[1, 2, 0, 0], [3, 0, 0, 0], [4, 4, 1, 2], [0, 3, 0, 1]])
    case("_mask_zero_loss", (4,), lambda: L.Embedding(5, 3, mask_zero=True), lambda: L.Dense(2),
         x=[[1, 2, 0, 0], [3, 0, 0, 0], [4, 4, 1, 2], [0, 3, 0, 1]], metrics=["mae"])


def run(root):
    """Records all cases of this module."""
    for part in (pooling, global_pooling, padding, up_sampling, embedding):
        part(root)
