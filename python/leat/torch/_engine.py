# SPDX-License-Identifier: Apache-2.0
"""The workers of a loader and their feeds.  An engine serves one iterator at a time, and then the next one."""

import collections
import os
import pickle
import re
import signal
import time

from leat import _launch, _native, _pack
from leat import feed as _feed
from leat.errors import Error, LateError, PickleError, WorkerError
from leat.torch import _source
from leat.torch._board import Board
from leat.torch._packed import Forked, Packed

_SLACK = 2  # tasks that are posted beyond those whose tickets the feed may issue


class LateBatchError(LateError, RuntimeError):
    """A worker needed more than `timeout` seconds for a batch, twice."""


class WorkerDiedError(WorkerError):
    """Worker processes died while they made a batch."""


class WorkerHandle:
    """A worker process, with the methods of multiprocessing.Process that users of `_workers` call."""

    daemon = True

    def __init__(self, board, number):
        self._board = board
        self._number = number
        self._pid = None
        self.name = f"leat worker {number}"

    @property
    def pid(self):
        return self._board.signature(self._number)[0] or self._pid

    def keep(self):
        self._pid = self.pid

    def is_alive(self):
        try:
            with open(f"/proc/{self.pid or 0}/stat") as file:
                return file.read().rpartition(")")[2].split()[0] not in "ZX"
        except OSError:
            return self.pid is None and self._board.descriptor >= 0

    @property
    def exitcode(self):
        return None if self.is_alive() else 0

    def join(self, timeout=None):
        end = None if timeout is None else time.monotonic() + timeout
        while self.is_alive() and (end is None or time.monotonic() < end):
            time.sleep(0.01)

    def terminate(self):
        if self.pid and self.is_alive():
            os.kill(self.pid, signal.SIGTERM)

    kill = terminate


class Engine:
    """Common parts of the engines for map-style and for iterable data sets."""

    def __init__(self, loader, plan, kind, seed):
        self.process = os.getpid()
        self.workers = loader.num_workers
        self.timeout = loader.timeout
        self.kind = kind
        self.seed = seed
        self.queue = max(1, loader.prefetch_factor) * (1 if plan.iterable else loader.num_workers)
        self.options = dict(keep=loader.keep, max_deaths=loader.max_deaths)
        self.board = Board.create(self.workers, 2 * (self.queue + _SLACK))
        self.packed = Forked(plan) if kind == "fork" else Packed(plan)
        self.older = None
        self.feeds = []
        self.handles = [WorkerHandle(self.board, number) for number in range(self.workers)]

    def update(self, plan):
        """Takes the plan of a further pass; the workers make it anew if it has changed."""
        if self.kind == "fork":
            return
        packed = Packed(plan, self.packed)
        if packed.version != self.packed.version:
            if self.older is not None:
                self.older.close()
            self.older, self.packed = self.packed, packed

    def open(self, iterable):
        """Starts the workers.  The first tasks must have been posted."""
        _pack.learn_types()
        launch = _source.Launch(self.board, self.packed, self.seed, iterable)
        command = payload = None
        if self.kind != "fork":
            payload = _launch.make_payload(pickle.dumps(launch))
            command = _launch.make_command(self.kind)
            makers = [len] * (self.workers if iterable else 1)
        else:
            makers = [worker.make for worker in launch.workers()]

        def open_all(most):
            options = [
                self._options(make, iterable, command, payload if i == 0 else None, most)
                for i, make in enumerate(makers)
            ]
            return _native.open_together(_native.Feed, options)

        self.feeds = _launch.open_with_space(open_all)
        _feed._open_feeds.add(self)

    def _options(self, make, iterable, command, payload, most):
        return dict(
            make=make,
            length=_endless,
            samples=None,
            end_pass=None,
            command=command,
            data=payload,
            workers=self.workers,
            kind=_feed._KINDS[self.kind],
            queue=self.queue,
            kept=self.options["keep"],
            most_bytes=most,
            batch_size=1,
            by_samples=False,
            generator=iterable,
            shuffle=0,
            window=0,
            seed=0,
            rank=0,
            world=1,
            remainder=0,
            limit=0,
            passes=0,
            deadline_ms=int(self.timeout * 1000),
            max_deaths=self.options["max_deaths"],
            skip=False,
            max_memory=0,
            trace=None,
            at_pass=0,
            at_batch=0,
        )

    def take(self, feed, task):
        """Returns (kind, parts) of the next batch of a feed, or raises torch's exception for what has happened."""
        try:
            return feed.get()
        except LateError as error:
            self.close()
            raise LateBatchError(f"DataLoader timed out after {self.timeout:g} seconds: {_shorten(error)}") from None
        except WorkerError as error:
            found = re.search(r"was killed by signal (\d+)", str(error))
            pids = [str(handle.pid) for handle in self.handles if self.board.signature(handle._number)[1] == task]
            pid = pids[0] if len(pids) == 1 else str(self.handles[0].pid)
            self.close()
            if not found:
                text = f"DataLoader worker (pid(s) {pid}) exited unexpectedly: {_shorten(error)}"
                raise WorkerDiedError(text) from None
            name = signal.strsignal(int(found.group(1)))
            raise WorkerDiedError(
                f"DataLoader worker (pid {pid}) is killed by signal: {name}.  {_shorten(error)}"
            ) from None
        except Error:
            self.close()
            raise

    def stats(self):
        """Returns measurements, summed over the feeds: times are in nanoseconds."""
        found = [feed.stats() for feed in self.feeds]
        totals = {name: value for name, value in found[0].items() if isinstance(value, int)} if found else {}
        for other in found[1:]:
            for name in totals:
                totals[name] += other[name]
        totals["workers"] = self.workers
        return totals

    @property
    def closed(self):
        return self.board.descriptor < 0 or self.process != os.getpid()

    def close(self):
        """Ends the workers.  Batches that are still alive stay valid."""
        feeds, self.feeds = self.feeds, []
        for handle in self.handles:
            handle.keep()
        if self.process == os.getpid():
            for feed in feeds:
                feed.close()
        for file in (self.board, self.packed, self.older):
            if file is not None:
                file.close()
        _feed._open_feeds.discard(self)

    def __del__(self):
        try:
            self.close()
        except Exception:
            pass  # The interpreter is ending, or __init__ has failed.


class MapEngine(Engine):
    """Workers for a map-style data set: one feed without end, whose tasks are posted on the board."""

    def __init__(self, loader, plan, kind, seed):
        super().__init__(loader, plan, kind, seed)
        self.posted = self.taken = 0
        self.waiting = collections.deque()  # for each task that was posted and not taken: its number, or None
        self.tasks = iter(())

    def begin(self, tasks, seed, at_pass):
        """Begins a pass.  tasks: yields (number of the batch, indices)."""
        for task in range(self.taken, self.posted):
            self.board.void(task)
        self.waiting = collections.deque([None] * (self.posted - self.taken))
        self.tasks, self.at = tasks, (seed & 0xFFFFFFFFFFFFFFFF, at_pass)
        if self.kind != "fork":
            self.board.begin_pass(0, pickle.dumps(self.packed))
        self._post()
        if not self.feeds:
            self.open(False)

    def _post(self):
        while self.posted < self.taken + self.queue + _SLACK:
            number = data = None
            try:
                number, index = next(self.tasks)
                data = _source.TASK.pack(self.packed.version, *self.at, number) + pickle.dumps(index, 5)
            except StopIteration:
                number = _END
            except Exception as error:
                number, self.tasks = error, iter(())
            self.board.post(self.posted, data or b"")
            self.waiting.append(number)
            self.posted += 1

    def next(self):
        """Returns (number, batch).  Raises StopIteration at the end of the pass."""
        while True:
            if self.waiting and self.waiting[0] is _END:
                raise StopIteration
            self._post()
            kind, parts = self.take(self.feeds[0], self.taken)
            number = self.waiting.popleft()
            self.taken += 1
            if isinstance(number, Exception):
                raise number
            if number is None or kind == _source.SKIPPED:
                continue
            if kind == _source.EXCEPTION:
                pickle.loads(parts[0]).reraise()
            return number, _source.unpack(kind, parts)


class StreamEngine(Engine):
    """Workers for an iterable data set: each has its own copy, and a feed of its own."""

    def __init__(self, loader, plan, kind, seed):
        super().__init__(loader, plan, kind, seed)
        self.number = 0

    def begin(self, seed, at_pass, fresh, states):
        """Begins a pass.  fresh: the workers make the data set anew.  states: of the streams, pickled, or None."""
        self.number += 1
        packed = _Unchanged if self.kind == "fork" else self.packed
        message = pickle.dumps((packed, fresh, seed, at_pass, states))
        self.board.begin_pass(self.number, message)
        if not self.feeds:
            self.open(True)

    def next(self, stream):
        """Returns (kind, state, value) of the next batch of a stream."""
        while True:
            number, kind, state, value = _source.unpack(*self.take(self.feeds[stream], None))
            if number == self.number:
                return kind, state, value


class _Unchanged:
    version = 0


_END = object()


def _endless():
    return (1 << 63) - 1


def _shorten(error):
    return re.sub(r"^batch \d+ of pass \d+: ", "", str(error))


def choose_kind(context):
    """Returns leat's kind of workers for a multiprocessing context, and if another may be taken in its place."""
    if context is None:
        return "process", True
    method = context if isinstance(context, str) else context.get_start_method()
    return (method if method in ("fork", "spawn") else "process"), False


def open_engine(loader, plan, seed):
    """Returns an engine.  What cannot be sent to worker processes is forked, as torch does."""
    import warnings

    make = StreamEngine if plan.iterable else MapEngine
    kind, may_change = choose_kind(loader.multiprocessing_context)
    try:
        return make(loader, plan, kind, seed)
    except PickleError as error:
        if not may_change:
            raise
        warnings.warn(
            f"{error}.  The workers are forked from this process instead, which can hang if it has threads."
            "  multiprocessing_context='fork' says that this is wanted",
            RuntimeWarning,
            stacklevel=4,
        )
        return make(loader, plan, "fork", seed)
