# SPDX-License-Identifier: Apache-2.0
"""The data of fit, evaluate and predict, as the extension reads it."""

import math
import threading

from leat import _arrays, _sources, _trainer
from leat.errors import ArgumentError, Error, ShapeError
from leat.feed import Feed
from leat.native_source import Source

_SHUFFLES = {False: 0, True: 4, None: 0, "batch": 1, "batches": 1, "samples": 2, "blocks": 5}
_LARGEST_GROWTH, _LEAST_BOUND = 4, 64  # how large a None dimension of later batches may become
_MOST_AHEAD, _BYTES_AHEAD = 8, 4 << 20  # batches that are taken ahead: at most so many, and 2 if they are large
_KEPT = 2 * _MOST_AHEAD + 8  # batches of a feed that may be alive: those in the ring of native/ahead.c, and some more
_MOST_STEPS = 2**31 - 1  # of an iterable whose length is not known
_END_SECONDS = 2  # how long the end of a call waits for threads that are in the data's own code


def read_shuffle(shuffle):
    """Returns (a leat_shuffle, its window)."""
    if isinstance(shuffle, str) and shuffle.startswith("window:"):
        return 3, int(shuffle[len("window:") :])
    if shuffle not in _SHUFFLES:
        raise ArgumentError(f'shuffle is {shuffle!r}, expected True, False, "samples", "batches", "blocks" or "window:N"')
    return _SHUFFLES[shuffle], 0


def holds_arrays(x):
    """Returns True for arrays, and for lists of numbers; False for data that gives batches."""
    if _sources.is_array(x) or _sources.holds_arrays(x):
        return True
    if isinstance(x, dict):
        return True
    if isinstance(x, (list, tuple)):
        first = x[0] if x else 0
        while isinstance(first, list) and first:
            first = first[0]
        return isinstance(first, (int, float, bool))
    return hasattr(x, "__array__") or hasattr(x, "__array_interface__") or isinstance(x, (memoryview, bytearray))


def validation_parts(data):
    """Returns (x, y, sample_weight) of the argument validation_data."""
    if isinstance(data, (tuple, list)) and len(data) in (2, 3) and holds_arrays(data[0]):
        return (*data, None)[:3]
    return data, None, None


def split_validation(opened, x, y, sample_weight, share):
    """Returns ((x, y, sample_weight), validation data) of the argument validation_split; None if it is 0."""
    if not share:
        return None
    if not 0 < share < 1:
        raise ArgumentError(f"validation_split is {share}, expected a number between 0 and 1")
    if isinstance(x, Source):
        first, last = (opened.keep(part) for part in x._parts(share))
        return (first, None, None), last
    if not holds_arrays(x):
        raise ArgumentError("validation_split needs arrays or a leat.source: pass validation_data for other data")
    lists = [
        _arrays.name_arrays(value, name) for value, name in ((x, "x"), (y, "y"), (sample_weight, "sample_weight"))
    ]
    at = int(_arrays.count_samples(sum(lists, [])) * (1.0 - share))

    def cut(named, rows):
        if not named:
            return None
        if named[0][0] is not None:
            return {name: array[rows] for name, array in named}
        return [array[rows] for _, array in named]

    first = tuple(cut(named, slice(None, at)) for named in lists)
    return first, tuple(cut(named, slice(at, None)) for named in lists)


class Opened:
    """The data of one call; closed by `with`."""

    def __init__(self):
        self._opened = []
        self.in_python = False  # some of the data
        self.all_in_python = True

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for item in reversed(self._opened):
            item.close()

    def keep(self, item):
        """Closes an object at the end."""
        self._opened.append(item)
        return item

    def open(self, model, x, y, sample_weight, batch_size, needs_targets, **options):
        """Returns an object with `native`, `in_python` and verdict()."""
        if x is None:
            raise ArgumentError("x: expected arrays, a leat.source, a leat.Feed, a Sequence or an iterable")
        if isinstance(x, Source):
            _refuse(y, sample_weight, "a leat.source has its own targets: leave y and sample_weight out")
            x._check_batch_size(batch_size)
            self.all_in_python = False
            return _Native(x._get())
        if holds_arrays(x):
            self.all_in_python = False
            return self.keep(_Arrays(model, x, y, sample_weight, batch_size, needs_targets))
        _refuse(y, sample_weight, "data that gives batches gives (x, y): leave y and sample_weight out")
        self.in_python = True
        return self.keep(_Stream(model, x, needs_targets, **options))


def count_steps(steps, data, what, epochs=1):
    """Returns (steps, True if they are not known): a single pass through an iterable goes to its end."""
    if steps or not data.ends_by_itself():
        return int(steps or 0), False
    if epochs > 1:
        raise ArgumentError(
            f"{what} is needed for {epochs} epochs: the data is an iterable without a length; one epoch goes to its end"
        )
    return _MOST_STEPS, True


def _refuse(y, sample_weight, message):
    if y is not None or sample_weight is not None:
        raise ArgumentError(message)


class _Native:
    in_python = False

    def __init__(self, native):
        self.native = native

    def verdict(self, measured):
        """Returns a text for the history, or None for that of the C library."""
        return None

    def ends_by_itself(self):
        """Returns True if the data is an iterable whose length is not known."""
        return False

    def finish(self):
        """Called after a fit that has ended without an exception."""

    def close(self):
        pass


class _Arrays(_Native):
    def __init__(self, model, x, y, sample_weight, batch_size, needs_targets):
        inputs = _arrays.sort_names(_arrays.name_arrays(x, "x"), model.input_names, "x")
        targets, weights = [], []
        if needs_targets and y is None:
            raise ArgumentError(f"y is missing: pass the targets of {', '.join(model.output_names)}")
        if needs_targets:
            targets = _arrays.sort_names(_arrays.name_arrays(y, "y"), model.output_names, "y")
            weights = _arrays.name_arrays(sample_weight, "sample_weight")
            weights = _arrays.sort_names(weights, model.output_names, "sample_weight")
        if _arrays.count_samples(inputs + targets + weights) == 0 and inputs:
            raise ArgumentError(f"x has no samples: its shape is {inputs[0][1].shape}")
        _look_for_single_sample(inputs, model)
        shapes = list(model.inputs.values())
        declared = shapes[0][0] if shapes else None
        super().__init__(_trainer.arrays_data(inputs, targets, weights, int(batch_size or declared or 32)))

    def close(self):
        self.native.close()


def _look_for_single_sample(inputs, model):
    """Refuses a sample without the batch dimension, which would be read as many samples."""
    for (_, array), shape in zip(inputs, model.inputs.values()):
        if len(shape) > 2 or (shape and len(shape) == 2 and shape[1] not in (1, None)):
            if array.ndim == len(shape) - 1 and all(size in (None, one) for size, one in zip(shape[1:], array.shape)):
                raise ShapeError(
                    f"x has the shape {array.shape} of one sample, expected {shape}: pass a batch, such as x[None]"
                )


class _Stream(_Native):
    """Batches that Python gives: those of a feed, one after the other.

    They are taken ahead by a thread, so that a step never waits for the interpreter's lock.  A leat.Feed of the caller
    is read between the steps, since its position belongs to the caller; so is data with workers=0.
    """

    in_python = True

    def __init__(self, model, data, needs_targets, shuffle=False, at_pass=0, passes=None, **options):
        options["passes"] = passes  # of a Sequence; None: unknown
        self._needs_targets = needs_targets
        self._feed, self._length, self._owns = _make_feed(data, shuffle, at_pass, options)
        self._iterator = iter(self._feed)
        self._dtypes = None
        self._fresh = True
        self._thread = None
        try:
            try:
                self._first = next(self._iterator)
            except StopIteration:
                raise ArgumentError("the data gives no batch") from None
            spec, size = self._learn(model, self._first)
            depth = self._choose_depth(options) if self._owns and options["workers"] else 0
            super().__init__(_trainer.python_data(self._next, self._length, spec, size, depth))
            if depth:
                self._thread = threading.Thread(target=self.native.run_ahead, name="leat-take", daemon=True)
                self._thread.start()
        except BaseException:
            self._close_feed()
            raise

    def _choose_depth(self, options):
        size = sum(array.nbytes for _, _, array in self._parts(self._first))
        return max(1, min(options["queue"], _MOST_AHEAD if size * _MOST_AHEAD <= _BYTES_AHEAD else 2))

    def _parts(self, batch):
        """Returns the arrays of a batch: [(part, name, array), ...]."""
        x, y, weights = batch, None, None
        if isinstance(batch, (tuple, list)) and 1 <= len(batch) <= 3 and not hasattr(batch, "shape"):
            if len(batch) > 1 or isinstance(batch, tuple):
                x, y, weights = (*batch, None, None)[:3]
        parts = []
        for part, value, what in ((0, x, "x"), (1, y, "y"), (2, weights, "sample_weight")):
            if part and not self._needs_targets:
                continue
            for name, array in _arrays.name_arrays(value, f"{what} of a batch"):
                if array.ndim == 1 and part < 2:
                    array = array.reshape(-1, 1)
                parts.append((part, name, array))
        return parts

    def _learn(self, model, batch):
        parts = self._parts(batch)
        if not parts or parts[0][2].ndim == 0:
            raise ArgumentError(
                f"a batch of the data is a {type(batch).__name__}: expected x, (x, y) or (x, y, sample_weight)"
            )
        self._dtypes = [array.dtype for _, _, array in parts]
        self._keys = [(part, name) for part, name, _ in parts]
        sides = {0: list(model.inputs.items()), 1: list(model.outputs.items()), 2: list(model.outputs.items())}
        spec, places = [], {0: 0, 1: 0, 2: 0}
        for part, name, array in parts:
            by_name = dict(sides[part])
            shape = by_name.get(name) if name is not None else None
            if shape is None and places[part] < len(sides[part]):
                shape = sides[part][places[part]][1]
            places[part] += 1
            spec.append((part, name, array.dtype.name, _bounds(array.shape[1:], shape)))
        return spec, parts[0][2].shape[0]

    def _next(self, index):
        """Returns the arrays of the next batch; None: there is none in this pass."""
        import numpy

        if index == 0 and not self._fresh:
            self._iterator = iter(self._feed)
        self._fresh = False
        if self._first is not None:
            batch, self._first = self._first, None
        else:
            batch = next(self._iterator, _END)
            if batch is _END:
                return None
        parts = self._parts(batch)
        if [(part, name) for part, name, _ in parts] != self._keys:
            raise ArgumentError(f"a batch has {len(parts)} arrays, expected {len(self._keys)} as in the first batch")
        return [
            numpy.ascontiguousarray(array, dtype) for (_, _, array), dtype in zip(parts, self._dtypes)
        ]

    def ends_by_itself(self):
        return self._length is None

    def finish(self):
        """Ends the last pass, as Keras does: a Sequence has on_epoch_end called after each epoch."""
        if not self._owns or self._feed._source.generator or not self._end_thread():
            return
        data = self._feed._data
        if _sources.overrides_end(data) and self._feed._native.next_position()[1] == len(self._feed):
            data.on_epoch_end()

    def verdict(self, measured):
        text = measured.get("text", "")
        try:
            stats = self._feed.stats()
        except Error:
            return None  # Another thread, or the end of the program, has closed the feed.
        if not measured.get("steps") or " A step takes" not in text or text.startswith("The run was too short"):
            return None
        judged, _, rest = text.partition(" A step takes")
        _, memory, rest = rest.partition(" Memory:")
        step = 1e3 * (measured["compute_s"] + measured.get("copy_wait_s", 0)) / measured["steps"]
        batch = stats["get_ns"] / max(1, stats["batches"]) / 1e6
        waited = 100 * measured["data_wait_s"] / measured["wall_s"]
        advice = _advise(self._feed, self._owns, waited, max(1, math.ceil(batch / step)) if step else 1)
        return f"{judged} A step takes {step:.2f} ms; a batch takes {batch:.2f} ms of a worker. {advice}{memory}{rest}"

    def _close_feed(self):
        """Closes the feed.  Worker threads that do not return from the data's own code are left behind."""
        self._iterator = self._first = None
        if self._owns and self._feed.kind == "thread":
            closing = threading.Thread(target=self._feed.close, name="leat-close", daemon=True)
            try:
                closing.start()
            except RuntimeError:
                return  # The program is ending: Python 3.12 and later start no more threads.
            closing.join(_END_SECONDS)
        elif self._owns:
            self._feed.close()

    def _end_thread(self):
        """Returns False if the thread is still in the data's own code."""
        if self._thread is None:
            return True
        self.native.stop_ahead()
        self._feed.stop()
        self._thread.join(_END_SECONDS)
        return not self._thread.is_alive()

    def close(self):
        if self._end_thread():
            self.native.close()
            self._close_feed()


def _advise(feed, owns, waited, needed):
    """Returns what would shorten the waits for data, which took `waited` % of the time."""
    if waited < 10:
        return "More workers would not help: the batches are there in time."
    if not feed.workers:
        return f"Batches are made between the steps: workers={needed} would make them beside the steps."
    if feed._source.generator:
        return "An iterable is read by one thread: pass a Sequence or a data set, which several workers can read."
    if needed > feed.workers:
        where = "" if owns else " of the feed"
        processes = "" if feed.kind != "thread" else ", as processes (use_multiprocessing=True) if they run Python code"
        return f"About {needed} workers{where} would be enough{processes}; it has {feed.workers}."
    return "More workers would not help: on average they keep up; they share the cores with the steps."


_END = object()


def _bounds(sizes, shape):
    """Returns the largest sizes of later batches: those of the first batch, but more where the model has None."""
    free = [False] * len(sizes)
    if shape is not None and len(shape) == len(sizes) + 1:
        free = [size is None for size in shape[1:]]
    return tuple(
        max(_LARGEST_GROWTH * size, _LEAST_BOUND) if any_size else size for size, any_size in zip(sizes, free)
    )


def _make_feed(data, shuffle, at_pass, options):
    """Returns (an iterable with a pass per iteration, a function that returns its length or None, True to close it)."""
    if isinstance(data, Feed):
        return data, (None if data._source.generator else lambda: len(data)), False
    common = dict(workers=options["workers"], max_queue_size=options["queue"], seed=options["seed"], keep=_KEPT)
    if hasattr(data, "__getitem__") and hasattr(data, "__len__"):
        kind = "process" if options["processes"] else "thread"
        feed = Feed(data, kind=kind, shuffle="batches" if shuffle else False, passes=options["passes"], **common)
        if at_pass:
            feed._reopen(at_pass, 0)
        return feed, lambda: len(feed), True
    if hasattr(data, "__len__") and hasattr(data, "__iter__"):

        def cycle():
            while True:
                yield from data

        return Feed(cycle, kind="thread", **common), lambda: len(data), True
    if hasattr(data, "__iter__") or callable(data):
        return Feed(data, kind="thread", **common), None, True
    raise ArgumentError(
        f"x is of the type {type(data).__name__}: expected arrays, a leat.source, a leat.Feed, a Sequence or an iterable"
    )
