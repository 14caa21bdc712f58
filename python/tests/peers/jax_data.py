# SPDX-License-Identifier: Apache-2.0
"""Data sets for test_jax.py: a module without JAX, so that worker processes start quickly."""

import numpy


class Batches:
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        x = numpy.random.RandomState(index).normal(size=(8, 16)).astype("float32")
        return {"x": x, "pair": (x[:, 0], [x[:, 1] * 2]), "name": f"batch {index}", "index": index}


class Pairs(Batches):
    def __getitem__(self, index):
        return numpy.full((8, 2), index, "float32"), numpy.full(8, index, "int32")


class Large(Batches):
    """Batches of 64 KiB, so that JAX views them rather than copies them."""

    def __getitem__(self, index):
        return numpy.full((256, 64), index, "float32")
