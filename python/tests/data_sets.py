# SPDX-License-Identifier: Apache-2.0
"""Data sets for the tests, in a module of their own, because worker processes import it."""

import ctypes
import os
import random
import sys
import threading
import time
from collections import namedtuple
from dataclasses import dataclass

import numpy

import leat

Pair = namedtuple("Pair", "x y")


@dataclass
class Record:
    image: numpy.ndarray
    label: int


class Batches:
    """Batches of every kind of value; their random numbers come from leat.rng() alone."""

    def __init__(self, count=17):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        rng = leat.rng()
        x = rng.random((3, 4 + index % 3), dtype=numpy.float32)
        return {
            "x": x,
            "fortran": numpy.asfortranarray(x),
            "strided": x[:, ::2],
            "empty": numpy.zeros((0, 5)),
            "scalar": numpy.float64(index),
            "date": numpy.array(["2020-01-01"], "M8[D]"),
            "text": numpy.array(["a", "bc"]),
            "objects": [1, "two", None, 3.5, b"four"],
            "pair": Pair(x[0], (index, [x[1]])),
            "record": Record(numpy.full((2, 2), index, numpy.uint8), index),
        }


class Into:
    """Writes into the slot; the last batch is smaller."""

    count = 9

    def __len__(self):
        return self.count

    def fill(self, index, out, rng):
        rows = 3 if index == self.count - 1 else 8
        out["x"][:rows] = rng.random((rows, 5))
        out["y"][0][:rows] = index
        if rows == 8:
            return None
        return {"x": out["x"][:rows], "y": (out["y"][0][:rows],), "last": f"batch {index}" * 50}

    def __getitem__(self, index):
        out = {"x": numpy.empty((8, 5)), "y": (numpy.empty(8, numpy.int32),)}
        made = self.fill(index, out, leat.rng())
        return out if made is None else made


class Declared(Into):
    batch_spec = {"x": numpy.empty((8, 5)), "y": (numpy.empty(8, numpy.int32),)}

    def get_into(self, index, out, rng):
        if not 0 <= index < self.count or out["x"].shape != (8, 5):
            raise ValueError(index)
        return self.fill(index, out, rng)


class Learnt(Into):
    get_into = Declared.get_into


class Twice(Batches):
    def __getitem__(self, index):
        x = numpy.ones(5)
        return x, x


class Globals(Batches):
    """Uses the global generators, as most augmentation code does."""

    def __getitem__(self, index):
        return random.random(), numpy.random.rand(3), leat.rng().integers(1000)


class Samples:
    def __init__(self, count=103):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return {"x": numpy.full((3,), index, numpy.float32), "y": index, "name": f"sample {index}"}


class Growing:
    """Batches of very different sizes."""

    def __len__(self):
        return 40

    def __getitem__(self, index):
        return numpy.full(1 << (index % 20), index, numpy.uint8)


class Faulty:
    """Does something bad once at batch 5, if `marker` does not exist, or each time if marker is None."""

    def __init__(self, fault, marker=None):
        self.fault = fault
        self.marker = marker

    def __len__(self):
        return 12

    def __getitem__(self, index):
        if index == 5 and not (self.marker and os.path.exists(self.marker)):
            if self.marker:
                open(self.marker, "w").close()
            made = getattr(self, self.fault)()
            if made is not None:
                return made
        return numpy.arange(4) + index

    def raises(self):
        raise KeyError("no such picture")

    def raises_unpicklable(self):
        class Own(Exception):
            def __reduce__(self):
                raise TypeError("never")

        raise Own("of this function")

    def raises_unloadable(self):
        raise Unloadable("one", "two")

    def exits(self):
        sys.exit(3)

    def exits_hard(self):
        os._exit(4)

    def segfaults(self):
        ctypes.string_at(0)

    def kills_itself(self):
        os.kill(os.getpid(), 9)

    def hangs(self):
        while True:
            time.sleep(0.01)

    def closes_stdin(self):
        os.close(0)

    def prints(self):
        print("x" * 10, end="")
        print("y" * 10, end="", file=sys.stderr)


    def loops(self):
        while True:
            pass

    def returns_lock(self):
        return threading.Lock()

    def returns_any_shape(self):
        return numpy.zeros(tuple(numpy.random.randint(1, 9, size=numpy.random.randint(4))))

    def returns_views(self):
        return numpy.arange(1000).reshape(10, 100)[::-2, ::3].T

    def closes_output(self):
        os.close(1)
        os.close(2)

    def returns_much(self):
        return numpy.zeros(300000000, numpy.uint8)

    def changes_itself(self):
        self.fault = "changes_itself"
        self.history = getattr(self, "history", []) + [numpy.zeros(1000)]

    def starts_threads(self):
        for _ in range(3):
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()

    def stops_itself(self):
        os.kill(os.getpid(), 19)

    def recurses(self):
        self.recurses()

    def lacks_memory(self):
        return numpy.zeros(1 << 60, numpy.uint8)


class Unloadable(Exception):
    """Can be pickled, but not unpickled."""

    def __init__(self, one, two):
        super().__init__(one)


class Leaking(Batches):
    """Each batch leaks 8 MB."""

    leaked = []

    def __getitem__(self, index):
        self.leaked.append(numpy.ones(1 << 20))
        time.sleep(0.02)
        return index, os.getpid()


class ReturnsLock(Batches):
    def __getitem__(self, index):
        return threading.Lock()


class Epochs:
    """on_epoch_end changes what the batches are, and how many there are."""

    def __init__(self):
        self.epoch = 0

    def __len__(self):
        return 4 + self.epoch

    def __getitem__(self, index):
        return numpy.array([self.epoch, index])

    def on_epoch_end(self):
        self.epoch += 1


class Slow(Batches):
    def __init__(self, count, seconds):
        super().__init__(count)
        self.seconds = seconds

    def __getitem__(self, index):
        time.sleep(self.seconds)
        return index


class Unopenable(Batches):
    """Can be pickled, but not unpickled in a worker's interpreter."""

    def __reduce__(self):
        return _refuse, ()


def _refuse():
    raise ValueError("this data is for one process")


class Unpicklable(Batches):
    def __init__(self):
        super().__init__()
        self.settings = {"path": "a", "reader": [1, threading.Lock()]}


class Numbers:
    """An iterable that can be pickled."""

    def __init__(self, count):
        self.count = count

    def __iter__(self):
        for i in range(self.count):
            yield numpy.full(3, i), leat.rng().random()


class Broken(Numbers):
    def __iter__(self):
        yield numpy.zeros(1)
        raise OSError("the stream broke")


def make_numbers():
    return iter(Numbers(9))
