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
import scipy.ndimage  # noqa: F401  SciPy draws numbers when it is imported: before the generator is replaced
import scipy.signal  # noqa: F401
import scipy.stats  # noqa: F401
from keras.src.backend.numpy import image as backend_image
from keras.src.backend.numpy import random as backend_random
from keras.src.layers.preprocessing.image_preprocessing import aug_mix

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
    "RandomPerspective()",
    "RandomPerspective(0.8, scale=0.4, interpolation='nearest', fill_value=9)",
    "RandomElasticTransform()",
    "RandomElasticTransform(1.0, (0.5, 0.9), fill_mode='constant', fill_value=30)",
    "RandomElasticTransform((0.8, 1.0), 0.9, interpolation='nearest', fill_mode='wrap')",
    "RandAugment()",
    "RandAugment(factor=0.8, num_ops=5)",
    "RandAugment(factor=(0.1, 0.3), num_ops=3, interpolation='nearest')",
    "AugMix()",
    "AugMix(factor=0.7, num_chains=4, chain_depth=2, alpha=0.4)",
    "AugMix(num_chains=2, chain_depth=5, alpha=2.5, all_ops=False)",
    "RandomColorJitter(brightness_factor=0.3, contrast_factor=(0.2, 0.6), saturation_factor=(0.1, 0.7), hue_factor=0.4)",
    "RandomColorJitter(saturation_factor=0.8, brightness_factor=(-0.4, 0.1))",
    "RandomColorJitter(hue_factor=(0.3, 0.5))",
    "RandomColorJitter()",
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


class Stream:
    """leat_rng: its 32-bit words, uniform numbers and normal numbers."""

    def __init__(self, key, number):
        self.key, self.number, self.counter, self.block, self.kept = key, number, 0, [], None

    def word(self):
        if not self.block:
            self.block = philox(self.key, self.counter, self.number)
            self.counter += 1
        return self.block.pop(0)

    def uniform(self):
        high = self.word()
        return ((high << 32 | self.word()) >> 11) * 2.0 ** -53

    def standard_normal(self):
        if self.kept is not None:
            kept, self.kept = self.kept, None
            return kept
        radius = np.sqrt(-2 * np.log(1 - self.uniform()))
        angle = 6.283185307179586 * self.uniform()
        self.kept = radius * np.sin(angle)
        return radius * np.cos(angle)

    def normal(self, size, loc=0.0, scale=1.0):
        return np.array([self.standard_normal() for _ in range(int(np.prod(size)))]).reshape(size)

    def gamma(self, alpha):
        """Marsaglia and Tsang 2000."""
        if alpha < 1:
            power = (1 - self.uniform()) ** (1 / alpha)
            return power * self.gamma(alpha + 1)
        d = alpha - 1 / 3
        while True:
            x = self.standard_normal()
            v = (1 + x / np.sqrt(9 * d)) ** 3
            if v > 0 and np.log(1 - self.uniform()) < 0.5 * x * x + d - d * v + d * np.log(v):
                return d * v


def numbers(sample):
    """Returns the stream of the first step of a sample."""
    return Stream(mix(mix(5, 2), 0x6175676D656E74), sample)


def protect(layer):
    """Gives inner layers copies of pictures: under NumPy some of them change their input, which RandAugment goes on using."""
    for inner in vars(layer).values():
        if isinstance(inner, keras.layers.Layer):
            change = inner.transform_images
            inner.transform_images = lambda images, *rest, change=change: change(np.array(images), *rest)


def main():
    i = np.arange(7 * 6 * 3)
    picture = ((i * i * 37 + i * 11) % 256).astype(np.float32).reshape(1, 7, 6, 3)
    for text in CASES:
        for sample in range(1 if text.startswith(("CenterCrop", "Auto", "Equal", "Rescal")) else 8 if text.startswith(("RandA", "AugM")) else 2):
            stream = numbers(sample)

            def uniform(shape, minval=0.0, maxval=1.0, dtype=None, seed=None):
                count = int(np.prod(shape))
                drawn = [minval + (maxval - minval) * stream.uniform() for _ in range(count)]
                return np.array(drawn, np.float32).reshape(shape)

            def randint(shape, minval, maxval, dtype="int32", seed=None):
                return np.floor(uniform(shape, minval, maxval)).astype(dtype)

            def gamma(shape, alpha, dtype=None, seed=None):
                return np.array([stream.gamma(alpha) for _ in range(int(np.prod(shape)))], np.float32).reshape(shape)

            def beta(shape, alpha, beta, dtype=None, seed=None):
                first = stream.gamma(alpha)
                return np.float32(first / (first + stream.gamma(beta)))

            class Choice:
                @staticmethod
                def choice(names):
                    return names[int(stream.uniform() * len(names))]

            aug_mix.py_random = Choice
            backend_image.draw_seed = lambda seed: stream.word()
            np.random.default_rng = lambda seed: Stream(mix(int(seed), 0), 0)
            backend_random.gamma = gamma
            backend_random.beta = beta
            backend_random.uniform = uniform
            backend_random.randint = randint
            layer = eval("keras.layers." + text)
            protect(layer)
            result = np.asarray(layer(picture, training=True) if not text.startswith("Rescal") else layer(picture))[0]
            print(sample, text)
            print(result.shape[0], result.shape[1], " ".join("%.6g" % value for value in result.ravel()))


main()
