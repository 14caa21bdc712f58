# SPDX-License-Identifier: Apache-2.0
"""Data sets for test_keras.py: a module without Keras, so that worker processes start quickly."""

import time

import numpy


def make_arrays(samples=40, features=4):
    rng = numpy.random.RandomState(1)
    x = rng.normal(size=(samples, features)).astype("float32")
    y = (x.sum(axis=1, keepdims=True) > 0).astype("float32")
    return x, y


class Batches:
    """Batches of 5 samples."""

    def __init__(self, samples=40, weights=False):
        self.x, self.y = make_arrays(samples)
        self.weights = weights

    def __len__(self):
        return len(self.x) // 5

    def __getitem__(self, index):
        time.sleep(0.001 * (index % 3))  # Workers finish out of order.
        rows = slice(5 * index, 5 * index + 5)
        if self.weights:
            return self.x[rows], self.y[rows], numpy.arange(1, 6, dtype="float32")
        return self.x[rows], self.y[rows]


class Growing(Batches):
    """Each pass has other values."""

    factor = 1.0

    def __getitem__(self, index):
        x, y = super().__getitem__(index)
        return x * self.factor, y

    def on_epoch_end(self):
        self.factor *= 2


class Recorded(Batches):
    """Records the order in which batches were made; for feeds without workers."""

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.made = []

    def __getitem__(self, index):
        self.made.append(index)
        return super().__getitem__(index)


class Failing(Batches):
    def __getitem__(self, index):
        if index == 3:
            raise KeyError("no such image: 3.png")
        return super().__getitem__(index)


class EndlessPairs:
    def __iter__(self):
        while True:
            yield Batches()[0]
