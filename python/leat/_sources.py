# SPDX-License-Identifier: Apache-2.0
"""What a feed does with the object that it receives: how many batches there are, and how one is made.

A source is sent to the worker processes by pickle.  `make` runs there; `length`, `samples` and `end_pass` run in the
process of the feed.
"""

import os
import sys
import threading

from leat import _pack, random, workers
from leat.errors import ArgumentError


def default_collate(samples):
    """Stacks samples: arrays and numbers become arrays with a first dimension, other values lists.

    Nested dict, list, tuple, NamedTuple are kept.  If torch is loaded and the first sample has a tensor, tensors are
    stacked by torch.
    """
    import numpy

    first = samples[0]
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(first, torch.Tensor):
        return torch.stack(samples)
    if isinstance(first, dict):
        return type(first)((key, default_collate([sample[key] for sample in samples])) for key in first)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(list(column)) for column in zip(*samples)))
    if isinstance(first, (tuple, list)):
        if any(len(sample) != len(first) for sample in samples):
            raise ValueError("the samples of a batch have different lengths: pass a function `collate`")
        return type(first)(default_collate(list(column)) for column in zip(*samples))
    if isinstance(first, (numpy.ndarray, numpy.generic, int, float, complex, bool)):
        return numpy.stack([numpy.asarray(sample) for sample in samples])
    return list(samples)


def _flush_output():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass  # It is None or closed.


class _Source:
    by_samples = False
    generator = False
    retries = 0
    skips = False
    seed_globals = True
    is_constant = True  # The data does not change between passes, so that the helper never frees it.
    keeps_globals = False  # The batches are made by the caller, whose global generators must stay as they are.

    info = None  # the WorkerInfo of worker processes
    native = None  # the data of a native source

    def __init__(self, data):
        self.data = data
        self.owner = os.getpid()

    def call(self, numbers):
        raise NotImplementedError

    def make(self, numbers, key, stream):
        """Makes a batch: (kind, parts), or None for a batch that is skipped or the end of a generator.

        An exception of the data is tried again `retries` times, and then travels like a batch.
        """
        in_worker_process = os.getpid() != self.owner
        if in_worker_process:
            workers.set_worker_info(self.info)
        keeps = self.keeps_globals and self.seed_globals
        states = random.save_globals() if keeps else None
        try:
            return self._try(numbers, key, stream)
        finally:
            random.end()
            if keeps:
                random.restore_globals(states)
            if in_worker_process:
                _flush_output()  # A worker process ends without it.

    def _try(self, numbers, key, stream):
        tries = 0
        at = key, stream
        while True:
            random.begin(*at, self.seed_globals)
            try:
                return self._make(numbers, at)
            except BaseException as error:
                if tries < self.retries and isinstance(error, Exception):
                    tries += 1
                    continue
                if self.skips and isinstance(error, Exception) and not self.generator:
                    return None
                return _pack.EXCEPTION, _pack.pack_exception(error)

    def _make(self, numbers, at):
        """Makes a batch; `at` is the place of its random numbers."""
        return _pack.pack(self.call(numbers))

    def end_pass(self, number):
        self.data.on_epoch_end()


def settle_order(data):
    """Lets an iterator of Keras's ImageDataGenerator draw its order here: each worker would draw another one."""
    if hasattr(data, "_set_index_array") and getattr(data, "index_array", data) is None:
        data._set_index_array()


class Batches(_Source):
    """An object whose item i is batch i: keras.utils.Sequence, keras.utils.PyDataset, or any list of batches."""

    def length(self):
        count = getattr(self.data, "num_batches", None)
        if count is None or callable(count):
            count = len(self.data)
        return int(count)

    samples = None
    _template = None  # the parts of a batch, for get_into

    def __init__(self, data):
        super().__init__(data)
        settle_order(data)
        self.into = callable(getattr(data, "get_into", None))
        spec = getattr(data, "batch_spec", None)
        if self.into and spec is not None:
            self._template = self._make_template(spec() if callable(spec) else spec)
        elif self.into and not hasattr(data, "__getitem__"):
            raise ArgumentError(
                "data with get_into needs a batch_spec, a batch whose arrays have the shapes and types of all batches,"
                " or __getitem__, from which leat learns it"
            )

    def call(self, number):
        return self.data[number]

    def _make(self, number, at):
        if not self.into:
            return super()._make(number, at)
        if self._template is None:
            if number == 0:
                return super()._make(0, at)
            self._template = self._make_template(self.data[0])  # Another batch may be smaller, such as the last one.
            random.begin(*at, self.seed_globals)
        out = _pack.begin_in_place(self._template)
        made = self.data.get_into(number, out, random.rng())
        return (_pack.STRUCTURE, None) if made is None or made is out else _pack.pack(made)

    @staticmethod
    def _make_template(example):
        template = _pack.make_template(example)
        if template is None:
            raise ArgumentError("get_into needs batches of dict, list, tuple, NumPy arrays, numbers and text alone")
        return template


class Samples(_Source):
    """A map-style data set: item i is sample i, and `collate` makes a batch of a list of samples."""

    by_samples = True

    def __init__(self, data, batch_size, collate, drop_last):
        super().__init__(data)
        self.batch_size = batch_size
        self.collate = collate or default_collate
        self.drop_last = drop_last

    def samples(self):
        count = len(self.data)
        return count - count % self.batch_size if self.drop_last else count

    def length(self):
        return -(-self.samples() // self.batch_size)

    def call(self, numbers):
        fetch = getattr(self.data, "__getitems__", None)
        samples = fetch(numbers) if fetch is not None else [self.data[number] for number in numbers]
        return self.collate(samples)


class Arrays(_Source):
    """Arrays with a common first dimension, in any nesting of dict, list and tuple; batches are runs of rows."""

    by_samples = True

    def __init__(self, data, batch_size, drop_last):
        super().__init__(data)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.count = _count_rows(data)

    def samples(self):
        return self.count - self.count % self.batch_size if self.drop_last else self.count

    length = Samples.length

    def call(self, numbers):
        ordered = numbers[-1] - numbers[0] == len(numbers) - 1 and numbers == list(range(numbers[0], numbers[-1] + 1))
        rows = slice(numbers[0], numbers[-1] + 1) if ordered else numbers
        return _map_arrays(self.data, lambda array: array[rows])


class Generator(_Source):
    """An iterable, or a function that returns one.  One worker makes all batches, since they come one after another."""

    generator = True
    samples = length = None

    def __init__(self, data):
        super().__init__(data)
        self._iterator = None
        self._lock = threading.Lock()

    def __getstate__(self):
        return {key: value for key, value in self.__dict__.items() if key not in ("_iterator", "_lock")}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._iterator = None
        self._lock = threading.Lock()

    def _make(self, numbers, at):
        with self._lock:
            if self._iterator is None:
                self._iterator = iter(self.data() if callable(self.data) else self.data)
            try:
                batch = next(self._iterator)
            except StopIteration:
                return None
        return _pack.pack(batch)


def is_array(value):
    """Returns True for NumPy's arrays, torch's tensors, and other arrays that can be indexed by a list."""
    return hasattr(value, "shape") and hasattr(value, "dtype") and hasattr(value, "__getitem__")


def holds_arrays(data):
    """Returns True for an array, and for a dict, list or tuple of nothing but such."""
    if is_array(data):
        return True
    if isinstance(data, dict):
        return bool(data) and all(holds_arrays(value) for value in data.values())
    if isinstance(data, (list, tuple)):
        return bool(data) and all(holds_arrays(value) for value in data)
    return False


def _map_arrays(data, function):
    if isinstance(data, dict):
        return type(data)((key, _map_arrays(value, function)) for key, value in data.items())
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(_map_arrays(value, function) for value in data))
    if isinstance(data, (list, tuple)):
        return type(data)(_map_arrays(value, function) for value in data)
    return function(data)


def _count_rows(data):
    counts = set()
    _map_arrays(data, lambda array: counts.add(len(array)))
    if len(counts) != 1:
        raise ValueError(f"the arrays have different numbers of rows: {sorted(counts)}")
    return counts.pop()


def overrides_hook(data, name):
    """Returns True if the data has a hook of that name of its own, not the empty one of Keras's base classes."""
    function = getattr(type(data), name, None)
    package = (getattr(function, "__module__", "") or "").partition(".")[0]
    return function is not None and package not in ("keras", "tensorflow", "tf_keras")


def overrides_end(data):
    """Returns True if the data has an on_epoch_end of its own."""
    return overrides_hook(data, "on_epoch_end")
