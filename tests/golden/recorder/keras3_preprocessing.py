# SPDX-License-Identifier: Apache-2.0
"""Preprocessing layers of current Keras, behind and before a convolution: keras-3/layers/*.npz.  Layers that change images
at random are recorded for prediction."""
import collections

import keras
import numpy as np
import tensorflow as tf

from . import store
from .keras3_case import L, ROOT, case, functional


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
             lambda: L.RandomCrop(4, 5), lambda: L.RandomElasticTransform(), lambda: L.RandomErasing(), lambda: L.RandomFlip("horizontal"),
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


def lookup(name, make, inputs):
    """Records a layer of integers (or numbers) in front of a Dense layer.  Indices are too large to train on."""

    def build():
        x = [L.Input(v.shape[1:], name="x%d" % i, dtype="int64" if v.dtype.kind == "i" else "float32")
             for i, v in enumerate(inputs)]
        y = make()(x if len(x) > 1 else x[0])
        return x, L.Dense(2)(keras.ops.cast(y, "float32"))
    layer = make()
    functional(name, layer.__class__.__name__, build, inputs=inputs, exact=True, trains=layer.output_mode != "int")


TOKENS = np.array([[3, 7, 3, 12], [0, 5, -4, 7], [123456789, -1, 40000000000, 3], [2, 2, 0, 12345678901234567]], "int64")


def lookups():
    """Integers as indices of a vocabulary."""
    terms = [7, 3, 40000000000, -4, 12]
    modes = ("int", "one_hot", "multi_hot", "count")
    for mode in modes:
        lookup("integer_lookup_" + mode, lambda: L.IntegerLookup(vocabulary=terms, output_mode=mode), [TOKENS])
        lookup("integer_lookup_mask_" + mode, lambda: L.IntegerLookup(
            vocabulary=terms, output_mode=mode, mask_token=0, num_oov_indices=3), [TOKENS])
    lookup("integer_lookup_column", lambda: L.IntegerLookup(vocabulary=terms, output_mode="one_hot"), [TOKENS[:, :1]])
    lookup("integer_lookup_tf_idf", lambda: L.IntegerLookup(
        vocabulary=terms, output_mode="tf_idf", idf_weights=[0.5, 0.25, 1.5, 2.0, 0.75]), [TOKENS])
    lookup("integer_lookup_tf_idf_padded", lambda: L.IntegerLookup(
        vocabulary=[-1] + terms, output_mode="tf_idf", idf_weights=[0.1, 0.5, 0.25, 1.5, 2.0, 0.75], max_tokens=9,
        pad_to_max_tokens=True), [TOKENS])
    lookup("integer_lookup_padded", lambda: L.IntegerLookup(
        vocabulary=terms, output_mode="count", max_tokens=8, pad_to_max_tokens=True, mask_token=2), [TOKENS])
    lookup("integer_lookup_invert", lambda: L.IntegerLookup(vocabulary=[7, 3, 400000, -4, 12], invert=True, mask_token=0),
           [np.array([[0, 1, 2, 3], [4, 5, 6, 7], [-1, 2, 900, 3]], "int64")])
    lookup("integer_lookup_special", lambda: L.IntegerLookup(vocabulary=[0, -1, 7, 3], mask_token=0), [TOKENS])
    lookup("integer_lookup_none_unknown", lambda: L.IntegerLookup(vocabulary=[5, 3, 9], num_oov_indices=0),
           [np.array([[3, 5], [9, 9], [3, 3]], "int64")])
    lookup("integer_lookup_farmhash", lambda: L.IntegerLookup(
        vocabulary=terms, num_oov_indices=1000, oov_method="farmhash"), [TOKENS])
    lookup("integer_lookup_siphash", lambda: L.IntegerLookup(
        vocabulary=terms, num_oov_indices=1000, oov_method="farmhash", salt=[1, 99]), [TOKENS])


def hashes():
    """Integers as bins; the numbers have 1 to 20 characters, since short and long texts are hashed in other ways."""
    numbers = np.array([[(-1) ** i * (10 ** i // 9 + 8 * i) for i in range(19)],
                        [0, 1, 2, 9, 10, 42, 99, -1, -2, -9, 123, 1234, 12345, 999999, -1000000, 2 ** 31, 2 ** 53 + 1,
                         2 ** 63 - 1, -2 ** 63]], "int64")
    lookup("hashing", lambda: L.Hashing(1009), [numbers])
    lookup("hashing_salt", lambda: L.Hashing(1009, salt=[133, 137]), [numbers])
    lookup("hashing_mask", lambda: L.Hashing(5, mask_value=0, salt=7), [numbers])
    lookup("hashing_one", lambda: L.Hashing(1, mask_value=0), [numbers])
    for mode in ("one_hot", "multi_hot", "count"):
        lookup("hashing_" + mode, lambda: L.Hashing(6, mask_value=3, output_mode=mode), [TOKENS])
    left, right = numbers[:1].T.copy(), numbers[1:].T.copy()
    lookup("hashed_crossing", lambda: L.HashedCrossing(1009), [left, right])
    lookup("hashed_crossing_one_hot", lambda: L.HashedCrossing(4, output_mode="one_hot"), [left, right])


def intervals():
    """Numbers as indices of intervals."""
    x = np.array([[-1.5, 0.0, 0.5, 2.25], [0.1, 3.0, -0.0, 1e9], [-1e9, 0.25, 0.3, 0.1]], "float32")
    lookup("discretization", lambda: L.Discretization([0.0, 0.1, 0.5, 2.5]), [x])
    for mode in ("one_hot", "multi_hot", "count"):
        lookup("discretization_" + mode, lambda: L.Discretization([0.0, 0.5, 2.25], output_mode=mode), [x])


def change(name, layer, kind, transformation, amounts, low=0.0, high=255.0, channels=2, size=(5, 7), noise=None):
    """Records images that a layer changes by given numbers; `noise`: normal numbers for TensorFlow's generator."""
    random = store.random_for("keras-3/images/" + name)
    images = random.uniform(0.0, 255.0, (len(amounts),) + size + (channels,)).astype("float32")
    amounts = np.array(amounts, "float32")
    given = transformation(layer, keras.ops.convert_to_tensor(amounts))
    arrays = [("x", images), ("amounts", amounts)]
    if noise is not None:
        arrays.append(("noise", random.normal(0.0, 1.0, (len(amounts),) + size).astype("float32")))
        tf.random.stateless_normal = lambda **options: tf.constant(arrays[-1][1])
    changed = layer.transform_images(keras.ops.convert_to_tensor(images), given, training=True)
    options = {"kind": kind, "fill_mode": getattr(layer, "fill_mode", "reflect"),
               "fill_value": getattr(layer, "fill_value", 0.0),
               "interpolation": getattr(layer, "interpolation", "bilinear"), "value_range": [low, high]}
    if hasattr(layer, "kernel_size"):
        options["kernel_size"] = list(layer.kernel_size)
    store.save("%s/images/%s.npz" % (ROOT, name), collections.OrderedDict([
        ("meta", store.text({"keras": keras.__version__, "case": name, "options": options}))] + arrays + [
            ("y", np.array(changed))]))


def filters():
    """Images whose colours are changed, or which are filtered, erased or distorted: keras-3/images/*.npz."""
    def erased(layer, a):
        shape = (len(a), 5, 7, 3)
        return {"apply_erasing": a[:, 0] > 0, "batch_masks": layer._generate_batch_mask(shape, [a[:, i] for i in (1, 2, 3, 4)]),
                "fill_value": layer._get_fill_value(np.zeros(shape, "float32"), shape, None)}

    def corners(layer, a):
        start = np.tile(np.array([[[0, 0], [6, 0], [0, 4], [6, 4]]], "float32"), (len(a), 1, 1))
        return {"apply_perspective": np.any(np.array(a) != 0, axis=1), "start_points": start, "input_shape": None,
                "end_points": start + start * np.array(a).reshape(-1, 4, 2)}

    def distortion(layer, a):
        return {"apply_transform": a[:, 0] > 0, "distortion_factor": a[0, 1], "seed": 1}

    def factor(layer, a):
        return {"factor": a[:, 0]}

    change("hue", L.RandomHue(0.5), 8, factor, [[0.21], [-0.47], [0.03]], channels=3)
    change("hue_range", L.RandomHue(0.5, value_range=(-20, 300)), 8, factor, [[-0.31], [0.44]], -20, 300, channels=3)
    change("saturation", L.RandomSaturation(0.5), 9, factor, [[0.4], [1.7], [30.0]], channels=3)
    change("saturation_range", L.RandomSaturation(0.5, value_range=(0, 1)), 9, factor, [[0.4], [7.5]], 0, 1, channels=3)
    for name, limits in (("posterization", (0, 255)), ("posterization_range", (-20, 300))):
        change(name, L.RandomPosterization(3, value_range=limits), 10,
               lambda layer, a: {"shift_factor": keras.ops.cast(a[:, 0], "uint8")}, [[3], [7], [0]], *limits)
    change("sharpness", L.RandomSharpness(0.5, value_range=(30, 220)), 11, factor, [[0.0], [0.8], [0.5]], 30, 220)
    for size in (3, 5):
        change("blur_%d" % size, L.RandomGaussianBlur(kernel_size=size, value_range=(30, 220)), 12,
               lambda layer, a: {"should_apply_blur": a[:, 0] > 0, "blur_factor": a[0, 1:]},
               [[1, 0.9, 0.4], [0, 0.9, 0.4], [1, 0.9, 0.4]], 30, 220)
    boxes = [[1, 1.2, 4.0, 0.0, 3.1, 0], [0, 0, 7, 0, 5, 0], [1, 3.0, 6.5, 2.0, 2.5, 0]]
    change("erasing", L.RandomErasing(fill_value=99.5), 13, erased, boxes, channels=3)
    change("erasing_colour", L.RandomErasing(fill_value=(10.0, 20.5, 999.0)), 13, erased, boxes, channels=3)
    shifts = [[0.1, 0.4, -0.31, 0.2, 0.3, -0.12, 0.23, 0.41], [0] * 8, [0, 0, 0.45, 0.1, 0, 0.48, -0.4, -0.49]]
    for kind in ("bilinear", "nearest"):
        change("perspective_" + kind, L.RandomPerspective(interpolation=kind, fill_value=7.5), 14, corners, shifts)
        for mode in ("reflect", "wrap", "constant", "nearest"):
            change("elastic_%s_%s" % (mode, kind), L.RandomElasticTransform(
                interpolation=kind, fill_mode=mode, fill_value=7.5, value_range=(30, 220)), 15, distortion,
                   [[1, 0.9, 0], [0, 0.9, 0]], 30, 220, noise=True)
    change("elastic_large", L.RandomElasticTransform(), 15, distortion, [[1, 0.98, 0]], channels=1, size=(21, 24), noise=True)


def changes():
    """Images that layers change in training by given numbers: keras-3/images/*.npz.  The numbers of an image are those
    of leati_change.amount."""
    one = change

    def rotation(layer, a):
        zeros = keras.ops.zeros(len(a))
        return {"rotation_matrix": layer._compute_affine_matrix(
            center_x=0.5, center_y=0.5, angle=a[:, 0], translate_x=zeros, translate_y=zeros, scale=zeros + 1,
            shear_x=zeros, shear_y=zeros, height=5, width=7)}

    def shear(layer, a):
        return {"shear_factor": keras.ops.stack([a[:, 1], a[:, 0]], axis=1)}

    def zoom(layer, a):
        return {"height_zoom": a[:, :1], "width_zoom": a[:, 1:]}

    def translation(layer, a):
        return {"translations": keras.ops.stack([a[:, 1], a[:, 0]], axis=1)}

    angles, zooms = [[11.3, 0], [-97.4, 0], [181.9, 0]], [[0.63, 1.37], [1.71, 0.55], [0.21, 1.93]]
    shifts = [[1.3, -2.6], [-4.2, 6.7], [0.4, 3.2]]
    for mode in ("reflect", "wrap", "constant", "nearest"):
        for kind in ("bilinear", "nearest"):
            options = dict(fill_mode=mode, interpolation=kind, fill_value=7.5)
            name = "%s_%s" % (mode, kind)
            one("rotation_" + name, L.RandomRotation(0.5, **options), 0, rotation, angles)
            one("translation_" + name, L.RandomTranslation(0.5, 0.5, **options), 1, translation, shifts)
            one("zoom_" + name, L.RandomZoom(0.5, 0.5, **options), 2, zoom, zooms)
            one("shear_" + name, L.RandomShear(0.5, 0.5, **options), 3, shear, [[0.31, -0.17], [-0.83, 0.9], [0.05, 0.66]])
    one("contrast", L.RandomContrast(0.5), 4, lambda layer, a: {"contrast_factor": a[:, 0][:, None, None, None]},
        [[1.4, 0], [0.3, 0], [1.9, 0]])
    one("brightness", L.RandomBrightness(0.5, value_range=(20, 200)), 5,
        lambda layer, a: {"rgb_delta": a[:, 0][:, None, None, None]}, [[40.5, 0], [-80.25, 0], [3.0, 0]], 20, 200)
    one("invert", L.RandomInvert(), 6, lambda layer, a: {"apply_inversion": a[:, 0] > 0}, [[1, 0], [0, 0], [1, 0]])
    for channels in (1, 3):
        one("degeneration_%d" % channels, L.RandomColorDegeneration(0.5, value_range=(60, 240)), 7,
            lambda layer, a: {"factor": a[:, 0][:, None, None, None]}, [[0.4, 0], [-0.7, 0]], 60, 240, channels)
    one("grayscale", L.RandomGrayscale(), 7, lambda layer, a: a[:, 0][:, None, None, None] > 0, [[1, 0], [0, 0]],
        -1e30, 1e30, 3)


def spectrograms():
    """Frequencies of signals over time.  Decibels are recorded for prediction: their gradients are large."""
    def mel(name, samples, trains=False, **options):
        options = dict(dict(sampling_rate=1000, num_mel_bins=5), **options)
        before = [lambda: L.Dense(samples)] if trains else []
        case("mel_spectrogram_" + name, "MelSpectrogram", (samples,), *before, lambda: L.MelSpectrogram(**options),
             lambda: L.Dense(2), trains=trains)

    def stft(name, shape, **options):
        case("stft_spectrogram_" + name, "STFTSpectrogram", shape, lambda: L.Conv1D(shape[-1], 1),
             lambda: L.STFTSpectrogram(**options), lambda: L.Dense(2))
    mel("decibels", 100, fft_length=32, sequence_stride=12)
    mel("hamming", 61, fft_length=30, sequence_length=21, sequence_stride=10, window="hamming", min_freq=50.0,
        max_freq=450.0, top_db=12.0, ref_power=3.0, min_power=1e-8, mag_exp=1.0)
    mel("powers", 24, trains=True, fft_length=16, sequence_stride=8, sequence_length=12, window=None, power_to_db=False,
        mag_exp=2.0)
    stft("log", (30, 2), frame_length=8)
    stft("magnitude", (30, 2), mode="magnitude", frame_length=7, frame_step=3, padding="same", expand_dims=True)
    stft("psd", (30, 1), mode="psd", frame_length=8, fft_length=10, frame_step=5)
    stft("real", (2, 30), mode="real", frame_length=8, data_format="channels_first")
    stft("imag", (2, 30), mode="imag", frame_length=8, data_format="channels_first", expand_dims=True)
    case("stft_spectrogram_angle", "STFTSpectrogram", (30, 2), lambda: L.Conv1D(2, 1, activation="sigmoid"),
         lambda: L.STFTSpectrogram(mode="angle", frame_length=9, fft_length=12), lambda: L.Dense(2))
    stft("both", (30, 2), mode="stft", frame_length=6, periodic=True, scaling="spectrum", window="hamming")


def run():
    """Records all cases of this module."""
    for part in (resizing, crops, random, encodings, lookups, hashes, intervals, changes, filters, spectrograms):
        part()
