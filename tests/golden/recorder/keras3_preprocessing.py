# SPDX-License-Identifier: Apache-2.0
"""Preprocessing layers of current Keras, behind and before a convolution: keras-3/layers/*.npz.  Layers that change images
at random are recorded for prediction."""
import numpy as np

from .keras3_case import L, case, functional


def one(name, shape, make, trains=True, **options):
    """Records a layer between two convolutions with kernels of one pixel."""
    case(name, make().__class__.__name__, shape, lambda: L.Conv2D(2, 1), make, lambda: L.Conv2D(2, 1), batch=2,
         trains=trains, **options)


def resizing():
    """Each interpolation, larger and smaller, with and without antialiasing; aspect ratios."""
    for kind in ("bilinear", "nearest", "bicubic", "lanczos3", "lanczos5", "area"):
        trains = kind != "area"  # of which TensorFlow has no gradient
        one("resizing_%s_up" % kind, (4, 5, 2), lambda: L.Resizing(7, 11, interpolation=kind), trains)
        one("resizing_%s_down" % kind, (8, 9, 2), lambda: L.Resizing(5, 3, interpolation=kind), trains)
    for kind in ("bilinear", "bicubic", "lanczos3", "lanczos5"):
        one("resizing_%s_antialias" % kind, (9, 8, 2), lambda: L.Resizing(4, 3, interpolation=kind, antialias=True))
        one("resizing_%s_antialias_up" % kind, (3, 4, 2), lambda: L.Resizing(6, 7, interpolation=kind, antialias=True))
    one("resizing_crop", (9, 5, 2), lambda: L.Resizing(4, 4, crop_to_aspect_ratio=True))
    one("resizing_crop_wide", (4, 9, 2), lambda: L.Resizing(6, 5, crop_to_aspect_ratio=True))
    one("resizing_pad", (9, 5, 2), lambda: L.Resizing(4, 4, pad_to_aspect_ratio=True, fill_value=0.5))
    one("resizing_pad_wide", (4, 9, 2), lambda: L.Resizing(6, 5, pad_to_aspect_ratio=True))


def crops():
    """Crops that fit into the image, and those that are larger."""
    one("center_crop", (7, 6, 2), lambda: L.CenterCrop(4, 3))
    one("center_crop_same", (5, 4, 2), lambda: L.CenterCrop(5, 3))
    one("center_crop_larger", (4, 6, 2), lambda: L.CenterCrop(6, 5))
    one("center_crop_wide", (6, 4, 2), lambda: L.CenterCrop(5, 5))


def random():
    """Layers that return the image in predictions."""
    makes = (lambda: L.RandomBrightness(0.2, value_range=(0, 1)), lambda: L.RandomColorDegeneration(0.2),
             lambda: L.RandomColorJitter(brightness_factor=0.2, hue_factor=0.1), lambda: L.RandomContrast(0.2),
             lambda: L.RandomElasticTransform(), lambda: L.RandomErasing(), lambda: L.RandomFlip("horizontal"),
             lambda: L.RandomGaussianBlur(), lambda: L.RandomGrayscale(), lambda: L.RandomHue(0.1), lambda: L.RandomInvert(),
             lambda: L.RandomPerspective(), lambda: L.RandomPosterization(3),
             lambda: L.RandomRotation(0.1, fill_mode="nearest"), lambda: L.RandomSaturation(0.2),
             lambda: L.RandomSharpness(0.2), lambda: L.RandomShear(0.1, 0.2), lambda: L.RandomTranslation(0.1, 0.2),
             lambda: L.RandomZoom(0.1))
    for make in makes:
        name = make().name
        case(name, make().__class__.__name__, (4, 5, 3), lambda: L.Conv2D(3, 1), make, lambda: L.Conv2D(2, 1), batch=2,
             trains=False)


def encodings():
    """Integers as vectors."""
    def one(name, shape, **options):
        def build():
            x = L.Input(shape, name="x")
            return [x], L.Dense(2)(L.CategoryEncoding(5, **options)(x))
        count = 4 * int(np.prod(shape))
        functional("category_encoding_" + name, "CategoryEncoding", build,
                   inputs=[(np.arange(count) * 7 % 5).reshape((4,) + shape)])
    one("multi_hot", (3,))
    one("count", (4,), output_mode="count")
    one("one_hot", (3,), output_mode="one_hot")
    one("one_hot_column", (1,), output_mode="one_hot")


def run():
    """Records all cases of this module."""
    for part in (resizing, crops, random, encodings):
        part()
