# SPDX-License-Identifier: Apache-2.0
"""Iterators over a pass of a loader, with the names that torch's iterators have."""

import pickle
import warnings
import weakref

import torch
from torch.utils.data import _utils

from leat import _native, random
from leat.torch import _source
from leat.torch._position import Pass


def _find_accelerator():
    """Returns (True if tensors can be pinned, the device's name)."""
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is None:
        return torch.cuda.is_available(), None
    if not accelerator.is_available():
        return False, None
    device = accelerator.current_accelerator()
    return device.type != "mps", device.type


class _Iterator:
    def __init__(self, loader):
        self._loader = weakref.ref(loader)
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._num_workers = loader.num_workers
        self._index_sampler = loader._index_sampler
        self._persistent_workers = loader.persistent_workers
        self._pin_memory = False
        if loader.pin_memory:
            self._check_pinning(loader)
        self._reset(loader)

    def _check_pinning(self, loader):
        self._pin_memory, self._device = _find_accelerator()
        if loader.pin_memory_device:
            warnings.warn(
                f"pin_memory_device={loader.pin_memory_device!r} is ignored: the current accelerator is used",
                stacklevel=5,
            )
        if not self._pin_memory:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be"
                " used.",
                stacklevel=5,
            )

    def _reset(self, loader, first_iter=False):
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._pass = loader._pass = Pass(loader)
        self._begin(loader)

    def __iter__(self):
        return self

    def __len__(self):
        return len(self._index_sampler)

    def __next__(self):
        batch = self._next()
        self._pass.batches += 1
        self._num_yielded += 1
        reported = self._IterableDataset_len_called
        if reported is not None and self._num_yielded > reported:
            self._warn_of_length(reported)
        if self._pin_memory:
            batch = _utils.pin_memory.pin_memory(batch, self._device)
        return batch

    def _warn_of_length(self, reported):
        text = f"The length of {self._dataset} is {reported}, but {self._num_yielded} samples have been fetched. "
        if self._num_workers:
            text += (
                "For multiprocessing data-loading, this means that several workers deliver the same samples: let"
                " __iter__ choose a share by torch.utils.data.get_worker_info()"
            )
        warnings.warn(text, stacklevel=3)

    def __getstate__(self):
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled")


class InlineIterator(_Iterator):
    """Makes each batch when it is asked for, in this process."""

    def _begin(self, loader):
        if loader.timeout:
            raise AssertionError("timeout needs num_workers > 0: without workers nobody could end a batch that is late")
        self._plan = _source.Plan(loader)
        self._stream = None
        if loader.is_iterable:
            with _own_randomness():
                state = self._pass.streams.get("worker_0")
                self._stream = _source.Stream(self._plan, 0, self._pass.seed, self._pass.number, state)
            if self._plan.snapshots:
                self._pass.streams["worker_0"] = _Live(self._stream)

    def _next(self):
        try:
            if self._stream is not None:
                return self._next_of_stream()
            number, index = next(self._pass.tasks)
        except StopIteration:
            self._pass.ended = True
            raise
        with _own_randomness():
            return self._try(number, index)

    def _next_of_stream(self):
        try:
            with _own_randomness():
                return self._stream.next()
        finally:
            if not self._plan.snapshots:
                self._pass.streams["worker_0"] = _count(self._stream.made)

    def _try(self, number, index):
        seeds = self._plan.seed_globals is not False
        tries = 0
        while True:
            random.begin(*_native.random_key(self._pass.seed & _MASK, self._pass.number, number), seeds)
            try:
                return self._plan.fetch(index)
            except Exception:
                if tries == self._plan.retries:
                    raise
            tries += 1


_MASK = (1 << 64) - 1


class _own_randomness:
    """Gives the global generators of the caller back after a batch was made."""

    def __enter__(self):
        self.state = random.save_globals()

    def __exit__(self, *exception):
        random.end()
        random.restore_globals(self.state)


def _count(batches):
    return {"num_batches": batches, "dataset_state": None, "fetcher_state": None}


class _Live:
    """The state of a stream in this process, which is asked for when it is needed."""

    def __init__(self, stream):
        self.stream = stream

    def get(self):
        return self.stream.state()


class _WorkersIterator(_Iterator):
    _engine = None

    @property
    def _workers(self):
        return self._engine.handles

    def _end(self):
        """Gives the workers back to the loader, which keeps them for the next pass."""
        self._pass.ended = True
        engine, loader = self._engine, self._loader()
        if not self._persistent_workers and engine is not None:
            self._done = True
            if loader is not None:
                loader._give_back(engine)

    _done = False

    def _next(self):
        if self._done:
            raise StopIteration
        try:
            return self._next_of_engine()
        except StopIteration:
            self._end()
            raise

    def _shutdown_workers(self):
        """Ends the workers.  Some libraries call this method of torch's iterators."""
        self._done = True
        self._engine.close()

    def _check_engine(self):
        if self._engine.closed:
            raise RuntimeError("the workers of this iterator have ended: make a new one")

    def __del__(self):
        loader = self._loader()
        if self._engine is not None and not self._done and loader is not None and not self._persistent_workers:
            self._done = True
            loader._give_back(self._engine)


class MapIterator(_WorkersIterator):
    """Takes the batches of a map-style data set from the workers."""

    def _begin(self, loader):
        if self._engine is None or self._engine.closed:
            self._engine = loader._take_engine(self._pass)
        self._engine.begin(self._pass.tasks, self._pass.seed, self._pass.number)

    def _next_of_engine(self):
        self._check_engine()
        self._pass.batches, batch = self._engine.next()
        return batch


class StreamIterator(_WorkersIterator):
    """Takes the batches of an iterable data set from the workers, in turn."""

    def _begin(self, loader):
        if self._engine is None or self._engine.closed:
            self._engine = loader._take_engine(self._pass)
        streams = self._pass.streams
        states = None
        if streams:
            names = [f"worker_{number}" for number in range(self._num_workers)]
            states = [pickle.dumps(streams[name]) if streams.get(name) else None for name in names]
        self._left = [True] * self._num_workers
        self._engine.begin(self._pass.seed, self._pass.number, not self._persistent_workers, states)
        if loader.snapshots:
            self._take_first_states()

    def _take_first_states(self):
        """Waits until all workers have begun, as torchdata does: a state exists before the first batch."""
        for stream in range(self._num_workers):
            kind, state, value = self._engine.next(stream)
            if kind == _source.EXCEPTION:
                pickle.loads(value).reraise()
            name = f"worker_{stream}"
            if self._pass.streams.get(name) is None:
                self._pass.streams[name] = _Pickled(state)

    def _next_of_engine(self):
        self._check_engine()
        while any(self._left):
            stream = self._pass.turn % self._num_workers
            if not self._left[stream]:
                self._pass.turn += 1
                continue
            kind, state, value = self._engine.next(stream)
            name = f"worker_{stream}"
            if state is not None:
                self._pass.streams[name] = _Pickled(state)
            self._pass.turn += 1
            if kind == _source.END:
                self._left[stream] = False
                continue
            if kind == _source.EXCEPTION:
                pickle.loads(value).reraise()
            if state is None:
                before = self._pass.streams.get(name)
                self._pass.streams[name] = _count((before["num_batches"] if before else 0) + 1)
            return value
        raise StopIteration


class _Pickled:
    """The state of a stream in a worker, as it was sent."""

    def __init__(self, data):
        self.data = data

    def get(self):
        return pickle.loads(self.data)


def resolve_streams(state):
    """Replaces the states of streams that are held in another form."""
    for name, held in state["streams"].items():
        if isinstance(held, (_Live, _Pickled)):
            state["streams"][name] = held.get()
    return state
