# SPDX-License-Identifier: Apache-2.0
"""Sequences for test_enqueuers.py, in a module of their own, because worker processes import it."""

import os
import time

import numpy


class Numbers:
    """Batch i is the number i, or what a subclass makes of it."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(0.001 * (index % 3))
        return index


class DrawsOrder(Numbers):
    """Draws an order when its first batch is asked for, as the iterators of Keras's ImageDataGenerator do."""

    index_array = None

    def _set_index_array(self):
        self.index_array = numpy.random.permutation(self.count)

    def __getitem__(self, index):
        if self.index_array is None:
            self._set_index_array()
        return self.index_array[index]

    def on_epoch_end(self):
        self._set_index_array()


class Multiplied(Numbers):
    factor = 1

    def __getitem__(self, index):
        return index * self.factor

    def on_epoch_end(self):
        self.factor *= 5


class Sparse(Numbers):
    def __getitem__(self, index):
        return index if index % 2 else None


class Halved(Numbers):
    def on_epoch_end(self):
        self.count //= 2


class BadEnd(Numbers):
    def on_epoch_end(self):
        raise ValueError("no epoch ends")


class Faulty(Numbers):
    def __init__(self):
        super().__init__(10)

    def __getitem__(self, index):
        raise IndexError(index, "is not present")


class Pids(Numbers):
    def __getitem__(self, index):
        time.sleep(0.005)
        return index, os.getpid()


class Late(Numbers):
    """Batch 2 takes some seconds, once."""

    def __init__(self, count, seconds=2.5):
        super().__init__(count)
        self.seconds = seconds

    def __getitem__(self, index):
        if index == 2:
            seconds, self.seconds = self.seconds, 0
            time.sleep(seconds)
        return index


class PyNumbers(Numbers):
    """What Keras 3 asks of a PyDataset."""

    @property
    def num_batches(self):
        return self.count


class PyMultiplied(PyNumbers):
    factor = 1

    def __getitem__(self, index):
        return index * self.factor

    def on_epoch_end(self):
        self.factor *= 5
