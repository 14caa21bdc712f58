# SPDX-License-Identifier: Apache-2.0
"""Keras's enqueuers, made of feeds.  They need no Keras."""

import itertools
import math
import random
import sys
import threading
import time
import types
import warnings
import weakref
import zlib

from leat import _keras_glue
from leat._sources import overrides_hook, settle_order
from leat.errors import PickleError, StoppedError
from leat.feed import Feed

_PATIENCE = 30.0  # seconds until a missing batch is worth a warning, as in Keras
_ENDLESS = 1 << 40  # batches of a pass that does not end
_counter = itertools.count()


def _draw_seed():
    """Returns a seed that is a function of the global generators' states, which are left as they are."""
    numpy = sys.modules.get("numpy")
    states = (random.getstate(), numpy.random.get_state()[1:] if numpy else None, next(_counter))
    text = repr((states[0], states[1][0].tobytes() if numpy else None, states[1][1:] if numpy else None, states[2]))
    return zlib.crc32(text.encode()) << 24 ^ zlib.adler32(text.encode())


def _open_processes(sequence, kind, **options):
    """Returns a feed with worker processes: with forked ones if the sequence cannot be pickled."""
    if kind != "fork":
        try:
            return Feed(sequence, kind=kind or "process", **options)
        except PickleError as error:
            warnings.warn(f"{error}.  The workers are forked from this process instead.", UserWarning, stacklevel=4)
    return Feed(sequence, kind="fork", **options)


def finish_pass(feed):
    """Ends the pass of a feed whose last batch was taken, so that on_epoch_end of its data has run."""
    if feed._source.generator or feed._ended:
        return
    native = feed._get_native()
    position = native.next_position()
    if 0 < position[1] >= native.length() and not native.end_pass():
        feed._ended = True


_QUEUE_OF_GENERATOR = 64
_LONGEST_QUEUE = 4096


def _limit_queue(count):
    """Returns the batches made ahead for max_queue_size=0.  count: batches of a pass, or None."""
    return min(count, _LONGEST_QUEUE) if count else _QUEUE_OF_GENERATOR


def _find_queue(data):
    return _limit_queue(len(data) if hasattr(data, "__len__") else None)


class SequenceEnqueuer:
    """What the enqueuers have in common: start(), get(), stop() and is_running()."""

    def __init__(self, sequence, use_multiprocessing=False):
        self.sequence = sequence
        self.use_multiprocessing = use_multiprocessing
        self.workers = 0
        self._feeds = []
        self._running = False
        self._taking = threading.RLock()  # held while a batch is taken
        self._since = None  # when the call that waits for a batch began
        self._stopped = threading.Event()

    def _open(self, workers, max_queue_size):
        """Returns the feeds."""
        raise NotImplementedError

    def _batches(self):
        """Yields the batches of the feeds until they end."""
        raise NotImplementedError

    def _describe_wait(self):
        return (
            "An input could not be retrieved. It could be because a worker has died."
            "We do not have any information on the lost sample."
        )

    def is_running(self):
        return self._running

    def start(self, workers=1, max_queue_size=10):
        """Starts the workers.

        workers: the number of threads or processes.  max_queue_size: batches made ahead; 0: as many as a pass has, but
        64 of a generator, which could fill the memory.
        """
        if self._running:
            raise RuntimeError("the enqueuer runs already: call stop() before start()")
        self.workers = workers
        self._stopped = threading.Event()
        self._feeds = self._open(workers, max_queue_size or _find_queue(self.sequence))
        self._running = True

    def get(self):
        """Yields the batches, without those that are None.  An exception of the data is raised after stop()."""
        threading.Thread(target=_warn_late, args=(weakref.ref(self), self._stopped), daemon=True).start()
        batches = self._batches()
        try:
            while self._running:
                self._since = time.monotonic()
                with self._taking:
                    batch = next(batches, self)
                self._since = None
                if batch is self:
                    return
                if batch is not None:
                    yield batch
        except StoppedError:
            if self._running:
                raise
        except Exception:
            self._fail()
            raise
        finally:
            self._since = None

    def _fail(self):
        """Ends the enqueuer after an exception of the data."""
        self.stop()

    def stop(self, timeout=None):
        """Stops the workers.  A thread that waits in get() gets no further batch.

        timeout: seconds to wait for such a thread; None: without end.
        """
        self._running = False
        self._stopped.set()
        for feed in self._feeds:
            feed.stop()
        if self._taking.acquire(timeout=-1 if timeout is None else timeout):
            try:
                self._close()
            finally:
                self._taking.release()

    def _close(self):
        feeds, self._feeds = self._feeds, []
        for feed in feeds:
            try:
                feed.close()
            except RuntimeError:  # This thread waits for a batch: stop() was called by a signal handler.
                self._feeds.append(feed)


def _warn_late(reference, stopped):
    """Warns once for each batch that is waited for longer than Keras would wait."""
    warned = None
    while not stopped.wait(1.0):
        enqueuer = reference()
        if enqueuer is None:
            return
        since = enqueuer._since
        if since is not None and since != warned and time.monotonic() - since > _PATIENCE:
            warned = since
            warnings.warn(enqueuer._describe_wait(), UserWarning)
        del enqueuer


class _Shuffled:
    """A sequence whose batches have the order that Keras gives them, by the same numbers of Python's generator."""

    def __init__(self, sequence):
        self.sequence = sequence
        self._shuffle()

    def _shuffle(self):
        self.order = list(range(len(self.sequence)))
        random.shuffle(self.order)

    def __len__(self):
        return len(self.order)

    def __getitem__(self, place):
        return self.sequence[self.order[place]]

    def on_epoch_end(self):
        if hasattr(self.sequence, "on_epoch_end"):
            self.sequence.on_epoch_end()
        self._shuffle()


class OrderedEnqueuer(SequenceEnqueuer):
    """Keras's OrderedEnqueuer: the batches of a Sequence, pass after pass, in order.

    sequence: a keras.utils.Sequence, or any object with __getitem__ and __len__, and on_epoch_end if it needs it.
    use_multiprocessing: worker processes instead of threads.
    shuffle: permutes the batches of each pass, by random.shuffle: random.seed() repeats Keras's own order.
    kind: "process", "spawn" or "fork", as leat.Feed has them.  Default: "process"; "fork" for what cannot be pickled,
        with a warning.
    seed: of the global generators in worker processes; default: a function of the generators' states here.
    """

    def __init__(self, sequence, use_multiprocessing=False, shuffle=False, *, kind=None, seed=None):
        super().__init__(sequence, use_multiprocessing)
        self.shuffle = shuffle
        self._kind = kind
        self._seed = seed

    def _open(self, workers, max_queue_size):
        if len(self.sequence) == 0:
            raise ValueError("the sequence has length 0: expected at least one batch")
        options = dict(
            workers=workers,
            max_queue_size=max_queue_size,
            seed=_draw_seed() if self._seed is None else self._seed,
        )
        settle_order(self.sequence)
        data = _Shuffled(self.sequence) if self.shuffle else self.sequence
        if self.use_multiprocessing:
            return [_open_processes(data, self._kind, **options)]
        return [Feed(data, kind="thread", **options)]

    def _describe_wait(self):
        try:
            native = self._feeds[0]._native
            index = native.next_position()[1] % native.length()
            index = getattr(self._feeds[0]._data, "order", range(index + 1))[index]
        except (IndexError, AttributeError, RuntimeError):
            index = "at hand"  # Another thread stops the enqueuer.
        return f"The input {index} could not be retrieved. It could be because a worker has died."

    def _batches(self):
        feed = self._feeds[0]
        while True:
            yield from feed

    def join_end_of_epoch(self):
        """Returns once on_epoch_end of the sequence has run, if the last batch of the pass was taken."""
        with self._taking:
            for feed in self._feeds:
                finish_pass(feed)


class FeedEnqueuer(OrderedEnqueuer):
    """An enqueuer over a feed that the user has opened, and will close."""

    def __init__(self, feed):
        super().__init__(feed)

    def _open(self, workers, max_queue_size):
        return [self.sequence]

    def _batches(self):
        return _keras_glue.run_on(self.sequence)

    def stop(self, timeout=None):
        self._running = False
        self._stopped.set()


class _Ended:
    """Stands for StopIteration on its way from a worker."""


class _Draws:
    """Item i is the i-th value that a worker thread has drawn from an iterator."""

    def __init__(self, iterator):
        self.iterator = iterator

    def __len__(self):
        return _ENDLESS

    def __getitem__(self, index):
        try:
            return next(self.iterator)
        except StopIteration:
            return _Ended()


class GeneratorEnqueuer(SequenceEnqueuer):
    """Keras's GeneratorEnqueuer: the batches that a generator, or another iterator, yields.

    use_multiprocessing: each of the workers is a process with a copy of the generator, forked from this one.  The
        batches of the copies take turns.
    Otherwise the workers are threads.  An iterator that is no generator is called by all of them at once.  A generator
        is called by one, because no other may: its batches arrive in order, and it need not be thread-safe.
    wait_time: has no effect.
    random_seed: of the global generators of the worker processes, which differ from process to process.
    """

    def __init__(self, generator, use_multiprocessing=False, wait_time=None, random_seed=None):
        super().__init__(generator, use_multiprocessing)
        self.random_seed = random_seed
        if wait_time is not None:
            warnings.warn("`wait_time` is not used anymore.", DeprecationWarning, stacklevel=2)

    def _open(self, workers, max_queue_size):
        seed = _draw_seed() if self.random_seed is None else self.random_seed
        if self.use_multiprocessing:
            queued = max(1, math.ceil(max_queue_size / workers))
            return [
                Feed(self.sequence, workers=1, kind="fork", seed=seed + copy, max_queue_size=queued)
                for copy in range(workers)
            ]
        if isinstance(self.sequence, types.GeneratorType):
            return [Feed(self.sequence, workers=1, kind="thread", seed=seed, max_queue_size=max_queue_size)]
        draws = _Draws(self.sequence)
        return [Feed(draws, workers=workers, kind="thread", seed=seed, max_queue_size=max_queue_size)]

    def _batches(self):
        streams = [iter(feed) for feed in self._feeds]
        ends = 0
        while streams and ends < self.workers:
            for stream in list(streams):
                try:
                    batch = next(stream)
                except StopIteration:
                    streams.remove(stream)
                    continue
                # A thread may have drawn its value before another one met the end, and have a later number.
                ends = ends + 1 if isinstance(batch, _Ended) else 0
                if not ends:
                    yield batch


class _Epochs:
    """Item t is a batch of epoch first_epoch + t // (batches of an epoch): epochs follow each other without a gap."""

    def __init__(self, data, count, shuffle, first_epoch, shards, shard, endless):
        self.data, self.count, self.shuffle, self.first_epoch = data, count, shuffle, first_epoch
        self.shards, self.shard = shards, shard
        self.each = None if count is None else len(range(shard, count, shards))
        self.length = _ENDLESS if endless or count is None else self.each
        self._order = None, None

    def __len__(self):
        return self.length

    def __getitem__(self, number):
        if self.count is None:
            return self.data[number * self.shards + self.shard]
        epoch, place = divmod(number, self.each)
        place = place * self.shards + self.shard
        return self.data[self._get_order(self.first_epoch + epoch)[place] if self.shuffle else place]

    def _get_order(self, epoch):
        known, order = self._order
        if known != epoch:
            order = list(range(self.count))
            random.Random(epoch).shuffle(order)
            self._order = epoch, order
        return order


class PyDatasetEnqueuer(SequenceEnqueuer):
    """Keras 3's OrderedEnqueuer, which its adapter of PyDatasets uses: one epoch from each start() to its stop()."""

    def __init__(
        self,
        py_dataset,
        workers=1,
        use_multiprocessing=False,
        max_queue_size=10,
        shuffle=False,
        num_data_shards=1,
        data_shard_id=0,
    ):
        super().__init__(py_dataset, use_multiprocessing)
        self.py_dataset = py_dataset
        self.workers, self.max_queue_size = workers, max_queue_size
        self.shuffle = shuffle
        self._shards, self._shard = num_data_shards, data_shard_id
        self._hooks = any(overrides_hook(py_dataset, name) for name in ("on_epoch_begin", "on_epoch_end"))
        self._stream = None
        self._taken = 0  # batches of this epoch
        self._first = []  # the first ones of them, for a caller who has looked at them and begins again

    def start(self, epoch=0):
        """Starts the workers, unless they run.  They go on from epoch to epoch if the data has no hooks."""
        if self._running:
            return
        if self._feeds and self._hooks:
            self._close()
        if not self._feeds:
            self._feeds = self._open(epoch)
            self._stream, self._taken = None, 0
            self._first = []
        self._stopped = threading.Event()
        self._running = True

    def _open(self, epoch):
        count = self.py_dataset.num_batches
        if count == 0:
            raise ValueError("The PyDataset has length 0")
        endless = not self._hooks
        data = _Epochs(self.py_dataset, count, self.shuffle, epoch, self._shards, self._shard, endless)
        options = dict(workers=self.workers, max_queue_size=self.max_queue_size or _limit_queue(count), seed=_draw_seed())
        if self.use_multiprocessing:
            return [_open_processes(data, None, **options)]
        return [Feed(data, kind="thread", **options)]

    def get(self):
        """Yields batches; from the first batch of an epoch on if another iterator was left in the middle of one."""
        self._rewind()
        replayed = list(self._first)
        self._taken = len(replayed)
        yield from (batch for batch in replayed if batch is not None)
        yield from super().get()
        raise ValueError("Iterator called after `on_epoch_end` or before `on_epoch_begin`.")

    def _rewind(self):
        """Lets the next batch be the first one of an epoch, or of those in _first."""
        each = self._feeds[0]._data.each if self._feeds else None
        if each is None or self._taken == 0 or self._taken <= len(self._first):
            return
        feed = self._feeds[0]
        at = feed.state_dict()
        at["batch"] = -(-at["batch"] // each) * each
        feed.load_state_dict(at)
        self._stream, self._taken, self._first = None, 0, []

    def _batches(self):
        while True:
            feed = self._feeds[0]  # With hooks, each epoch has a feed of its own.
            if self._stream is None:
                self._stream = iter(feed)
            batch = next(self._stream, self)
            if batch is self:
                return
            self._count(feed._data.each, batch)
            yield batch

    def _count(self, each, batch):
        if self._taken == each:
            self._taken, self._first = 0, []
        self._taken += 1
        if self._taken <= 2:
            self._first.append(batch)
        else:
            self._first = []
        if self._taken == each:
            self._taken, self._first = 0, []

    def _fail(self):
        self.stop(drain_queue_and_join=False)

    def stop(self, drain_queue_and_join=True):
        """Ends the epoch.  The workers go on with the next one if the data has no hooks."""
        self._running = False
        self._stopped.set()
        if self._hooks or not drain_queue_and_join:
            with self._taking:
                self._close()

    def __del__(self):
        self.stop(drain_queue_and_join=False)
