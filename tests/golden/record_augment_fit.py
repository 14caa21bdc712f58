#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what ImageDataGenerator of Keras 2.3.1 makes of a picture after `fit`, with featurewise steps and ZCA whitening.

    tests/golden/record_augment_fit.py > tests/golden/augment/fit.txt

Needs Python 3.7 with Keras 2.3.1 and SciPy 1.4.1.  Each case is two lines.  The first has the number of pictures, their
size (h, w, c) and the steps in the syntax of `augment=`.  The second has the values of picture 3.  The values of all
pictures are a sequence: x becomes (x * 1103515245 + 12345) % 2**31 from 1 on, and the value is x // 65536 % 256; every
second value is the mean of itself and the one before, so that values correlate.
"""

import numpy as np
from keras_preprocessing.image import ImageDataGenerator

SIZES = [(120, 3, 4, 3), (150, 5, 4, 1)]
CASES = [
    dict(featurewise_center=True),
    dict(featurewise_center=True, featurewise_std_normalization=True),
    dict(featurewise_center=True, zca_whitening=True),
    dict(featurewise_center=True, zca_whitening=True, zca_epsilon=100),
]


def pictures(size):
    x, last, values = 1, 0, []
    for i in range(int(np.prod(size))):
        x = (x * 1103515245 + 12345) % 2**31
        value = x // 65536 % 256
        values.append((value + last) // 2 if i % 2 else value)
        last = value
    return np.array(values, np.float32).reshape(size)


def main():
    for size in SIZES:
        for arguments in CASES:
            generator = ImageDataGenerator(**arguments)
            data = pictures(size)
            generator.fit(data)
            steps = ",".join("%s=%s" % item for item in arguments.items())
            print("%d %d %d %d %s" % (size + (steps,)))
            print(" ".join("%.6g" % value for value in generator.standardize(data[3].copy()).ravel()))


main()
