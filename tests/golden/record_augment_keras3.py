#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what the preprocessing layers of current Keras make of a small picture with the random numbers that leat draws.

    KERAS_BACKEND=numpy tests/golden/record_augment_keras3.py > tests/golden/augment/layers.txt

Needs Keras 3 with its NumPy backend.  Keras's generator is replaced by leat's: Philox 4x32-10, for seed 5, pass 2, sample
number n and the first step, as docs/pictures.md says.  Each case is two lines: n and the step in the syntax of `augment=`,
then the size and the values of the result.  Element i of the picture, (7, 6, 3), is (i * i * 37 + i * 11) % 256.
"""

import keras
import numpy as np
from keras.src.backend.numpy import random as backend_random

CASES = [
    "RandomFlip()",
    "RandomFlip('horizontal')",
    "RandomFlip('vertical')",
    "RandomRotation(0.2)",
    "RandomRotation((-0.5, 0.1), fill_mode='constant', fill_value=7.5)",
    "RandomRotation(0.3, fill_mode='wrap')",
    "RandomRotation(0.3, fill_mode='nearest', interpolation='nearest')",
    "RandomTranslation(0.4, (-0.9, 0.2))",
    "RandomTranslation(0.7, 0.7, fill_mode='wrap')",
    "RandomZoom(0.4)",
    "RandomZoom((0.2, 0.6), (-0.6, -0.1), fill_mode='constant')",
    "RandomShear(0.4, 0.3, fill_mode='nearest')",
    "RandomShear((0.1, 0.9))",
    "RandomCrop(5, 4)",
    "CenterCrop(4, 5)",
    "RandomBrightness(0.4)",
    "RandomBrightness((0.1, 0.3))",
    "RandomContrast(0.5)",
    "RandomContrast((0.2, 0.9))",
    "RandomHue(0.8)",
    "RandomHue((0.3, 0.4))",
    "RandomSaturation((0.1, 0.7))",
    "RandomGrayscale(0.5)",
    "RandomColorDegeneration((0.2, 0.8))",
    "RandomInvert(0.9)",
    "RandomPosterization((2, 6))",
    "RandomPosterization(4)",
    "Solarization((0.1, 0.2), (0.3, 0.9))",
    "Solarization(threshold_factor=0.7)",
    "AutoContrast()",
    "Equalization()",
    "RandomSharpness((0.1, 0.9))",
    "RandomGaussianBlur(1.0, 3, (0.4, 0.9))",
    "RandomGaussianBlur(0.8, (5, 3), 1.0)",
    "RandomErasing(1.0, (0.1, 0.5), fill_value=99)",
    "RandomErasing(0.5, fill_value=(1, 2, 3))",
    "Rescaling(0.25, -1)",
]
MASK = (1 << 64) - 1


def mix(a, b):
    x = (a + 0x9E3779B97F4A7C15 * (b + 1)) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def philox(key, counter, stream):
    x = [counter & 0xFFFFFFFF, counter >> 32, stream & 0xFFFFFFFF, stream >> 32]
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        p0, p1 = x[0] * 0xD2511F53, x[2] * 0xCD9E8D57
        x = [(p1 >> 32) ^ x[1] ^ k0, p1 & 0xFFFFFFFF, (p0 >> 32) ^ x[3] ^ k1, p0 & 0xFFFFFFFF]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return x


def numbers(sample):
    """Yields leat_rng_uniform of the first step of a sample."""
    key = mix(mix(5, 2), 0x6175676D656E74)
    counter = 0
    while True:
        words = philox(key, counter, sample)
        counter += 1
        for i in (0, 2):
            yield ((words[i] << 32 | words[i + 1]) >> 11) * 2.0 ** -53


def main():
    i = np.arange(7 * 6 * 3)
    picture = ((i * i * 37 + i * 11) % 256).astype(np.float32).reshape(1, 7, 6, 3)
    for text in CASES:
        for sample in range(1 if text.startswith(("CenterCrop", "Auto", "Equal", "Rescal")) else 2):
            stream = numbers(sample)

            def uniform(shape, minval=0.0, maxval=1.0, dtype=None, seed=None):
                count = int(np.prod(shape))
                drawn = [minval + (maxval - minval) * next(stream) for _ in range(count)]
                return np.array(drawn, np.float32).reshape(shape)

            def randint(shape, minval, maxval, dtype="int32", seed=None):
                return np.floor(uniform(shape, minval, maxval)).astype(dtype)

            backend_random.uniform = uniform
            backend_random.randint = randint
            layer = eval("keras.layers." + text)
            result = np.asarray(layer(picture, training=True) if not text.startswith("Rescal") else layer(picture))[0]
            print(sample, text)
            print(result.shape[0], result.shape[1], " ".join("%.6g" % value for value in result.ravel()))


main()
