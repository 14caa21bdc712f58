# SPDX-License-Identifier: Apache-2.0
"""How a batch is made: the part of the loader that runs in the workers, or in the caller if there are none."""

import os
import pickle
import struct

import torch
from torch._utils import ExceptionWrapper
from torch.utils.data import _utils

from leat import _native, _pack, random, workers

TASK = struct.Struct("<QQQQ")  # version of the data set, seed, pass, number of the batch; the indices follow
BATCH, EXCEPTION, STRUCTURE = _pack.BATCH, _pack.EXCEPTION, _pack.STRUCTURE  # kinds of what a worker delivers
VOID, SKIPPED, END, READY = 16, 17, 18, 19

_default_collate = _utils.collate.default_collate


pack = _pack.pack


def unpack(kind, parts):
    """Returns the batch of a kind and its parts; its arrays view the parts."""
    return parts if kind == STRUCTURE else _pack.unpack(parts)


def is_stateful(value):
    return callable(getattr(value, "state_dict", None)) and callable(getattr(value, "load_state_dict", None))


def _apply_shared_seed(dataset, seed):
    """Gives the data pipes of a graph the seed that all workers share, as torch does."""
    pipes = getattr(torch.utils.data, "IterDataPipe", None)
    if pipes is not None and isinstance(dataset, pipes):
        generator = torch.Generator()
        generator.manual_seed(seed & 0x7FFFFFFFFFFFFFFF)
        return torch.utils.data.graph_settings.apply_random_seed(dataset, generator)
    return dataset


class Plan:
    """What the workers have to know: the data set, and the loader's arguments that concern the making of a batch."""

    def __init__(self, loader):
        self.dataset = loader.dataset
        self.iterable = loader.is_iterable
        self.collates = loader._auto_collation
        self.collate_fn = loader.collate_fn
        self.batch_size = loader.batch_size
        self.drop_last = loader.drop_last
        self.worker_init_fn = loader.worker_init_fn
        self.workers = loader.num_workers
        self.seed_globals = loader.seed_globals
        self.retries = loader.retries
        self.skips = loader.bad_batch == "skip"
        self.snapshots = loader.snapshots

    def collate(self, samples):
        if self.collate_fn is not _default_collate:
            return self.collate_fn(samples)
        # In a worker torch would put the tensors into shared memory, from which they would be copied again.
        info, _utils.worker._worker_info = _utils.worker._worker_info, None
        try:
            return self.collate_fn(samples)
        finally:
            _utils.worker._worker_info = info

    def fetch(self, index):
        """Makes a batch of a map-style data set."""
        if not self.collates:
            return self.collate(self.dataset[index])
        fetch_all = getattr(self.dataset, "__getitems__", None)
        return self.collate(fetch_all(index) if fetch_all else [self.dataset[i] for i in index])


class Stream:
    """An iteration over an iterable data set: one copy of it, in one worker."""

    def __init__(self, plan, number, seed, at_pass, state):
        self.plan = plan
        self.key = (_mix(seed, number), at_pass)
        self.made = 0
        self.ended = False
        state = state or {}
        if state.get("dataset_state") is not None:
            plan.dataset.load_state_dict(state["dataset_state"])
        random.begin(*_native.random_key(*self.key, (1 << 63) - 1), plan.seed_globals is not False)
        self.iterator = iter(_apply_shared_seed(plan.dataset, seed))
        fetched = state.get("fetcher_state") or {}
        batches = state.get("num_batches", 0)
        if fetched.get("dataset_iter_state") is not None:
            self.iterator.load_state_dict(fetched["dataset_iter_state"])
            self.made = batches
        elif state.get("dataset_state") is not None:
            self.made = batches
        else:
            self._skip(batches)
        self.ended = self.ended or bool(fetched.get("fetcher_ended"))

    def _skip(self, batches):
        while self.made < batches and not self.ended:
            try:
                self._take()
            except StopIteration:
                self.ended = True

    def _take(self):
        """Takes the samples of the next batch."""
        if self.ended:
            raise StopIteration
        random.begin(*_native.random_key(*self.key, self.made), self.plan.seed_globals is not False)
        samples = self._take_list() if self.plan.collates else next(self.iterator)
        self.made += 1
        return samples

    def _take_list(self):
        samples = []
        try:
            while len(samples) < self.plan.batch_size:
                samples.append(next(self.iterator))
        except StopIteration:
            self.ended = True
            if not samples or self.plan.drop_last:
                raise
        return samples

    def next(self):
        try:
            samples = self._take()
        except StopIteration:
            self.ended = True
            raise
        return self.plan.collate(samples)

    def state(self):
        """Returns the state after the last batch, in the form of torchdata."""
        dataset, iterator = self.plan.dataset, self.iterator
        has_own = is_stateful(iterator)
        return {
            "num_batches": self.made,
            "dataset_state": dataset.state_dict() if is_stateful(dataset) and iterator is not dataset else None,
            "fetcher_state": {
                "dataset_iter_state": iterator.state_dict() if has_own else None,
                "fetcher_ended": self.ended,
            },
        }


def _mix(seed, number):
    return (seed + number * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF


def _pack_exception(error):
    """Returns an exception as torch sends it; a RuntimeError in its place if its type cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        sent = ExceptionWrapper.__new__(ExceptionWrapper)
        sent.exc_type, sent.exc_msg, sent.where = RuntimeError, error.exc_msg, error.where
        error = sent
    return pickle.dumps(error)


class Worker:
    """A worker process: makes what the board describes.  number: of the stream of an iterable data set, or None."""

    by_samples = False
    samples = None

    def __init__(self, board, plan, packed, seed, number=None):
        self.board = board
        self.plan = plan
        self.packed = packed  # the data set as it was sent
        self.seed = seed
        self.number = number
        self.generator = number is not None
        self.process = None
        self.failure = None
        self.stream = None
        self.at = 0  # number of the pass of `stream`

    # ---- the beginning ----

    def _begin(self):
        self.process = os.getpid()
        if self.number is None:
            self.number = self.board.claim_number()
        self.board.sign(self.number, 0)
        workers.set_worker_info(workers.WorkerInfo("process", self.plan.workers, self.seed))
        torch.set_num_threads(1)
        self._begin_data()

    def _begin_data(self):
        """Seeds this worker, tells the data set where it is, and calls worker_init_fn."""
        seed = self.seed + self.number
        random.begin(seed & 0xFFFFFFFFFFFFFFFF, 0, True)
        torch.manual_seed(seed)
        _utils.worker._worker_info = _utils.worker.WorkerInfo(
            id=self.number, num_workers=self.plan.workers, seed=seed, dataset=self.plan.dataset
        )
        self.failure = None
        function = self.plan.worker_init_fn
        if function is None:
            return
        try:
            function(self.number)
        except Exception:
            self.failure = _pack_exception(ExceptionWrapper(where=self._where()))
        if self.plan.seed_globals is None and torch.initial_seed() != seed:
            self.plan.seed_globals = False  # The function has seeded this worker in its own way.

    def _renew(self, packed):
        self.packed = packed
        self.plan = packed.load()
        self._begin_data()

    def _where(self):
        return f"in DataLoader worker process {self.number}"

    # ---- batches ----

    def make(self, task, key, stream):
        """Makes a batch: (kind, parts)."""
        try:
            if self.process != os.getpid():
                self._begin()
            return self._next_of_stream() if self.generator else self._make_task(task)
        finally:
            random.end()
            _flush()

    def _make_task(self, task):
        data = self.board.task(task)
        if data is None:
            return VOID, []
        if not data:
            return END, []
        version, seed, at_pass, number = TASK.unpack_from(data)
        index = pickle.loads(data[TASK.size :])
        self.board.sign(self.number, task)
        if version != self.packed.version:
            self._renew(pickle.loads(self.board.described_pass()[1]))
        if self.failure:
            return EXCEPTION, [self.failure]
        seeds = self.plan.seed_globals is not False
        tries = 0
        while True:
            random.begin(*_native.random_key(seed, at_pass, number), seeds)
            try:
                return pack(self.plan.fetch(index))
            except Exception:
                if tries == self.plan.retries:
                    if self.plan.skips:
                        return SKIPPED, []
                    return EXCEPTION, [_pack_exception(ExceptionWrapper(where=self._where()))]
            tries += 1

    # ---- iterable data sets ----

    def _begin_stream(self):
        self.at, data = self.board.described_pass()
        if not data:
            return
        packed, fresh, self.seed, at_pass, states = pickle.loads(data)
        if packed.version != self.packed.version or (fresh and self.stream is not None):
            self._renew(packed)
        self.stream = None
        if self.failure:
            raise _Failed
        state = pickle.loads(states[self.number]) if states and states[self.number] else None
        self.stream = Stream(self.plan, self.number, self.seed, at_pass, state)

    def _next_of_stream(self):
        kind, state, value = BATCH, None, None
        try:
            if self.at != self.board.pass_number():
                self._begin_stream()
                if self.plan.snapshots and self.stream is not None:
                    return self._pack_of_stream(READY, pickle.dumps(self.stream.state()), None)
            if self.stream is None:
                return self._pack_of_stream(END, None, None)
            value = self.stream.next()
        except StopIteration:
            kind = END
        except _Failed:
            kind, value = EXCEPTION, self.failure
        except Exception:
            kind, value = EXCEPTION, _pack_exception(ExceptionWrapper(where=self._where()))
        if self.stream is not None and self.plan.snapshots and kind != EXCEPTION:
            state = pickle.dumps(self.stream.state())
        return self._pack_of_stream(kind, state, value)

    def _pack_of_stream(self, kind, state, value):
        try:
            return pack((self.at, kind, state, value))
        except Exception:
            error = _pack_exception(ExceptionWrapper(where=self._where()))
            return pack((self.at, EXCEPTION, None, error))


class _Failed(Exception):
    """worker_init_fn has failed."""


class Launch:
    """What the helper program receives: it makes the workers' functions for the feeds that are opened together."""

    def __init__(self, board, packed, seed, iterable):
        self.board = board
        self.packed = packed
        self.seed = seed
        self.iterable = iterable

    def workers(self):
        plan = self.packed.load()
        numbers = range(self.board.workers) if self.iterable else [None]
        return [Worker(self.board, plan, self.packed, self.seed, number) for number in numbers]

    def describe(self):
        """Returns what leat._native.run_helper expects."""
        self.board.reopen()
        return [(worker.make, len, False, worker.generator) for worker in self.workers()]


def _flush():
    from leat import _sources

    _sources._flush_output()
