#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what ImageDataGenerator of Keras 2.3.1 makes of small pictures with given parameters.

    tests/golden/record_augment.py > tests/golden/augment/generator.txt

Needs Python 3.7 with Keras 2.3.1, SciPy 1.4.1 and Pillow.  Each case is two lines.  The first has pairs NAME=VALUE: the
picture's size (h, w, c), the generator's arguments, and the parameters of apply_transform.  The second has the values of
the result.  Element i of the picture is (i * i * 37 + i * 11) % 256.
"""

import itertools

import numpy as np
from keras_preprocessing.image import ImageDataGenerator

MOVES = [
    dict(theta=15.0),
    dict(theta=-90.0),
    dict(tx=1.25, ty=-2.5),
    dict(tx=-9.0, ty=11.0),
    dict(shear=20.0),
    dict(zx=1.6, zy=0.7),
    dict(theta=33.0, tx=-1.5, ty=0.75, shear=-12.0, zx=0.8, zy=1.3, flip_horizontal=1),
    dict(theta=200.0, tx=3.5, zx=2.5, zy=3.5, flip_vertical=1),
]
COLORS = [
    dict(brightness=0.6),
    dict(brightness=1.7),
    dict(channel_shift_intensity=40.5),
    dict(channel_shift_intensity=-33.25, theta=10.0, flip_horizontal=1, brightness=1.2),
    dict(theta=25.0, brightness=0.9),
]
STANDARDS = [
    dict(rescale=0.125),
    dict(samplewise_center=True),
    dict(samplewise_std_normalization=True, rescale=1.0 / 255),
]


def picture(h, w, c):
    i = np.arange(h * w * c)
    return ((i * i * 37 + i * 11) % 256).astype(np.float32).reshape(h, w, c)


def write(size, arguments, parameters, result):
    words = ["%s=%s" % (name, value) for name, value in
             itertools.chain(zip("hwc", size), sorted(arguments.items()), sorted(parameters.items()))]
    print(" ".join(words))
    print(" ".join("%.6g" % value for value in result.ravel()))


def record(size, arguments, parameters):
    generator = ImageDataGenerator(**arguments)
    result = generator.apply_transform(picture(*size), parameters)
    write(size, arguments, parameters, generator.standardize(np.array(result, np.float32)))


def main():
    for fill_mode in ("nearest", "constant", "reflect", "wrap"):
        for order in (0, 1):
            for parameters in MOVES:
                arguments = dict(fill_mode=fill_mode, interpolation_order=order)
                if fill_mode == "constant":
                    arguments["cval"] = 17.5
                record((6, 7, 1), arguments, parameters)
    for parameters in COLORS:
        for size in ((4, 5, 3), (4, 5, 1), (4, 5, 4)):
            record(size, {}, parameters)
    for arguments in STANDARDS:
        record((4, 5, 3), arguments, dict(theta=12.0))


main()
