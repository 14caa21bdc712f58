# SPDX-License-Identifier: Apache-2.0
"""The feed: batches of a data set, made ahead of time by workers, in order."""

import atexit
import os
import random as _random
import weakref

from leat import _keras_glue, _launch, _native, _pack, _sources, report, workers as _workers
from leat._compat import pickle
from leat.errors import ArgumentError, DataError, Error, PickleError

_KINDS = {"thread": 1, "process": 2, "spawn": 2, "fork": 2}
_LAUNCHED = ("process", "spawn")  # kinds whose workers come from a fresh interpreter, to which the data is pickled
_SHUFFLES = {"none": 0, "batches": 1, "samples": 2, "window": 3, "blocks": 5}
_REMAINDERS = {"uneven": 0, "drop": 1, "pad": 2}

_open_feeds = weakref.WeakSet()


def _close_all():
    for feed in list(_open_feeds):
        feed.close()


atexit.register(_close_all)


class Feed:
    """Delivers the batches of `data`, which workers make ahead of time, in order.

    The order and all bytes are a function of (seed, pass, index): neither the number nor the kind of workers nor the
    death of one changes them, if the data draws its random numbers from leat.rng(), or with worker processes from the
    global generators of Python, NumPy or torch, which are seeded before each batch.

    data:
        - an object whose item i is batch i (keras.utils.Sequence, keras.utils.PyDataset, a list of batches);
          With get_into(index, out, rng) it writes the batch into `out`, a batch in the memory that the caller receives;
        - with batch_size: an object whose item i is sample i (a map-style data set of torch), or arrays with a common
          first dimension, alone or in a dict, list or tuple;
        - an iterable, or a function without arguments that returns one: then one worker makes all batches;
        - a leat.source("SPEC"), whose workers are threads that never touch the interpreter (kind="fork": processes).
    batch_size: samples of a batch; None: the items of `data` are batches.
    collate: makes a batch of a list of samples; default: leat's default_collate, which stacks arrays and numbers.
    drop_last: leaves out the last samples if they do not fill a batch.
    workers: number of workers; 0: batches are made when they are asked for, by the caller.
    kind: "process": worker processes that are forked from a fresh interpreter (the data is pickled); "spawn": each
        worker is a fresh interpreter, and nothing is forked; "fork": worker processes that are forked from this one,
        unsafe if it has threads; "thread".
    shuffle: False, True (samples if there is a batch_size, otherwise batches), "batches", "samples", "window:N".
    seed: of the order and of all random numbers; None: drawn at random.  `feed.seed` has it.
    passes: passes after which the stream ends; None: none.
    max_queue_size: batches made ahead of the one in use.
    rank, world: this feed delivers every world-th batch, from batch `rank` on.  remainder: what happens if world does
        not divide the number of batches: "uneven", "drop" or "pad".
    retries: further attempts at a batch whose data has raised an exception.
    bad_batch: "fail" or "skip", for a batch that cannot be made.
    timeout: seconds that a worker may take for a batch, or None.  A process is killed then, and the batch made again.
    max_deaths: worker processes that may die while they make one batch.
    max_worker_rss: bytes of memory of its own that a worker process may have, or None.  A larger one is replaced after
        its batch; stats()["replaced"] counts them.
    keep: batches that may be alive at the same time without being copied.
    seed_globals: seeds the global generators of Python, NumPy and torch before each batch.  Default: True, but False
        with worker threads, which share these generators.
    trace: path of a file that records what each worker did and when, for ui.perfetto.dev; see also trace().

    Use it as a context manager, or call close().  A feed serves one thread at a time.
    """

    def __init__(
        self,
        data,
        batch_size=None,
        *,
        collate=None,
        drop_last=False,
        workers=2,
        kind="process",
        shuffle=False,
        seed=None,
        passes=None,
        max_queue_size=10,
        rank=0,
        world=1,
        remainder="uneven",
        retries=0,
        bad_batch="fail",
        timeout=None,
        max_deaths=3,
        max_worker_rss=None,
        keep=8,
        seed_globals=None,
        trace=None,
    ):
        self._native = None
        _pack.learn_types()
        _check("kind", kind, _KINDS)
        _check("bad_batch", bad_batch, ("fail", "skip"))
        _check("remainder", remainder, _REMAINDERS)
        self._source = _choose_source(data, batch_size, collate, drop_last)
        if self._source.native is not None:
            batch_size = self._source.native.spec()[0]
            kind = "thread" if kind in _LAUNCHED else kind  # Its workers never touch the interpreter.
        self._source.retries = retries
        self._source.skips = bad_batch == "skip"
        if seed_globals and workers and kind == "thread":
            raise ArgumentError("worker threads share the global generators: use leat.rng() instead of seed_globals")
        self._source.seed_globals = seed_globals if seed_globals is not None else not workers or kind != "thread"
        self._source.keeps_globals = not workers
        self._data = data
        self._source.is_constant = not _sources.overrides_end(data)
        self.workers = 1 if self._source.generator and workers else workers
        self.kind = kind if workers else "inline"
        self.seed = _random.SystemRandom().getrandbits(63) if seed is None else int(seed)
        self._source.info = _workers.WorkerInfo(self.kind, self.workers, self.seed)
        order, window = _read_shuffle(shuffle, self._source)
        self._options = dict(
            kind=_KINDS[kind],
            workers=self.workers,
            queue=max_queue_size,
            kept=keep,
            batch_size=batch_size if self._source.by_samples else 1,
            by_samples=self._source.by_samples,
            generator=self._source.generator,
            shuffle=order,
            window=window,
            seed=self.seed,
            rank=rank,
            world=world,
            remainder=_REMAINDERS[remainder],
            limit=0,
            passes=passes or 0,
            deadline_ms=int(timeout * 1000) if timeout and workers else 0,
            max_deaths=max_deaths,
            skip=bad_batch == "skip",
            max_memory=int(max_worker_rss or 0),
            trace=os.fspath(trace) if trace is not None else None,
        )
        self._ended = self._fresh = False
        self._payload = self._make_payload() if self.kind in _LAUNCHED else None
        self._open(0, 0)
        _keras_glue.watch()

    # ---- opening ----

    def _make_payload(self):
        """Returns the bytes from which the helper program makes the source."""
        return _launch.make_payload(_pickle_source(self._source, self._data))

    def _open(self, at_pass, at_batch):
        source = self._source
        arguments = dict(
            self._options,
            make=source.make,
            length=source.length,
            samples=source.samples,
            end_pass=_weakly(self._end_pass) if _sources.overrides_end(self._data) else None,
            command=_launch.make_command(self.kind) if self.kind in _LAUNCHED else None,
            data=self._payload,
            at_pass=at_pass,
            at_batch=at_batch,
        )
        make = _native.Feed
        if source.native is not None:
            make, arguments["native"] = source.feed_type, source.native
        self._native = _launch.open_with_space(lambda most: make(most_bytes=most, **arguments))
        self._native.set_unpack(_weakly(self._unpack))
        self._ended = False
        self._fresh = True  # The next iteration begins where the feed was opened, also in the middle of a pass.
        _open_feeds.add(self)

    def _end_pass(self, number):
        self._source.end_pass(number)
        if self.kind in _LAUNCHED:
            self._payload = self._make_payload()
            self._native.set_data(self._payload)

    # ---- batches ----

    def __len__(self):
        """The number of batches of a pass, for this rank."""
        if self._source.generator:
            raise TypeError("an iterable has no length")
        return self._get_native().length()

    def __iter__(self):
        """Iterates over one pass.  A pass that was left before its end is given up: the next one begins."""
        native = self._get_native()
        if self._ended:
            return
        at = native.next_position()
        if at[1] > 0 and not self._source.generator:
            if at[1] < native.length():
                if not self._fresh:
                    native.seek(at[0] + 1, 0)
            elif not native.end_pass():
                self._ended = True
                return
        self._fresh = False
        native = self._get_native()
        take, end = native.take, _END
        while self._native is native:
            try:
                batch = take(end)
            except Error:
                self._ended = True
                raise
            if batch is end:
                self._ended = self._ended or self._source.generator
                return
            yield batch

    def _unpack(self, kind, parts):
        """Makes a batch of what is not a structure that the native part knows."""
        if self._source.native is not None:
            return self._source.unpack(parts)
        if kind == _pack.EXCEPTION:
            self._raise(parts)
        return _pack.unpack(parts)

    def _raise(self, parts):
        """Raises the exception of a batch, with the worker's traceback as its cause."""
        at = self._native.position()
        self.stop()
        self._ended = True
        error, (name, text), trace = pickle.loads(parts[0])
        where = f"batch {at[2]} of pass {at[0]}"
        cause = _RemoteTraceback(f'{where}:\n"""\n{trace}"""')
        if self.kind == "inline" and isinstance(error, KeyboardInterrupt):
            raise error from cause  # Ctrl-C, in the thread of the caller
        if error is None or not isinstance(error, Exception) or isinstance(error, StopIteration):
            raise DataError(f"{where}: {name}: {text}") from cause
        if hasattr(error, "add_note"):
            error.add_note(f"leat: {where}")
        raise error from cause

    def stop(self):
        """Stops the stream; a thread that waits for a batch gets StoppedError.  Any thread may call this."""
        if self._native is not None:
            self._native.stop()

    # ---- position ----

    def state_dict(self):
        """Returns the position after the batch that was taken last, for load_state_dict of a feed with the same data."""
        if self._source.generator:
            raise Error("an iterable has no position to which a feed could return: use data with indices")
        at = self._get_native().next_position()
        return {"leat": 1, "seed": self.seed, "pass": at[0], "batch": at[1]}

    def load_state_dict(self, state):
        """Continues at the position that state_dict returned: with the same bytes, for any number of workers."""
        if self._source.generator:
            raise Error("an iterable has no position to which a feed could return: use data with indices")
        if not isinstance(state, dict) or state.get("leat") != 1:
            raise ArgumentError("expected what state_dict() of a leat.Feed returned")
        at = int(state["pass"]), int(state["batch"])
        if int(state["seed"]) == self.seed and not self._ended and self.kind != "inline":
            self._get_native().seek(*at)
            self._fresh = True
            return
        self.seed = self._options["seed"] = int(state["seed"])
        self._source.info = self._source.info._replace(seed=self.seed)
        if self.kind in _LAUNCHED:
            self._payload = self._make_payload()
        self._reopen(*at)

    def _reopen(self, at_pass, at_batch):
        self._get_native().close()
        self._open(at_pass, at_batch)

    # ---- figures ----

    def stats(self):
        """Returns measurements since the feed was opened: a dict.

        Times are in nanoseconds; `wait` and `get` are (50 %, 90 %, 99 %, largest); `elapsed_ns` is the time from the
        first request to the last batch; `copied` counts the batches that were copied, because more than `keep` batches
        were alive, and `replaced` the workers larger than max_worker_rss.
        """
        return self._get_native().stats()

    def trace(self, path):
        """Records from now on what each worker did and when, in a file that ui.perfetto.dev and chrome://tracing open.

        The feed is opened anew for it, at its position.  None ends the recording; closing the feed does so, too.
        """
        native = self._get_native()
        at = native.next_position()
        if self._source.generator and at[1] > 0:
            raise Error("an iterable that has begun cannot be traced: pass trace=path to leat.Feed")
        self._options["trace"] = os.fspath(path) if path is not None else None
        fresh = self._fresh or 0 < at[1] < (0 if self._source.generator else native.length())
        self._reopen(at[0], at[1])
        self._fresh = fresh or at[1] == 0

    def show(self, **arguments):
        """Iterates over one pass with a progress display: leat.progress(feed)."""
        return report.progress(self, **arguments)

    @property
    def is_open(self):
        """True until close()."""
        return self._native is not None

    @property
    def has_more(self):
        """False if the stream has ended: after the last of `passes`, of an iterable, or with an error."""
        return self._native is not None and not self._ended

    def waiting(self):
        """Returns the share of the time, 0 to 1, that the caller waited for data between its first and last batch."""
        stats = self.stats()
        return min(1.0, stats["wait_ns"] / stats["elapsed_ns"]) if stats["elapsed_ns"] > 0 else 0.0

    def _repr_html_(self):
        return report.make_html(self)

    def verdict(self):
        """Returns a sentence that says whether the caller waited for data, and what would help."""
        stats = self.stats()
        if stats["batches"] < 2:
            return "Too few batches were taken to tell."
        elapsed, share = stats["elapsed_ns"] / 1e9, self.waiting()
        advice = " More workers, or cheaper batches, would help." if share >= 0.05 and stats["workers"] else ""
        return (
            f"The caller waited {100 * share:.0f} % of the time for data"
            f" ({stats['batches']} batches in {elapsed:.2f} s, {stats['workers']} workers).{advice}"
            f"{report.advise_on_memory(self)}"
        )

    # ---- the end ----

    def close(self):
        """Stops the workers and frees the feed.  Batches that are still alive stay valid."""
        native, self._native = self._native, None
        if native is not None:
            native.close()
        _open_feeds.discard(self)

    def _get_native(self):
        if self._native is None:
            raise Error("the feed is closed")
        return self._native

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __repr__(self):
        state = "closed" if self._native is None else f"{self.workers} workers"
        return f"<leat.Feed of {type(self._data).__name__}, {state}, kind={self.kind!r}, seed={self.seed}>"


def _weakly(method):
    """Returns a function that calls a method without keeping its object: the native feed belongs to the object."""
    reference = weakref.WeakMethod(method)
    return lambda *arguments: reference()(*arguments)


_END = object()


class _RemoteTraceback(Exception):
    """The traceback of a worker, as the cause of the exception that the caller receives."""


def _check(name, value, known):
    if value not in known:
        raise ArgumentError(f"{name} is {value!r}, expected one of {', '.join(repr(word) for word in known)}")


def _choose_source(data, batch_size, collate, drop_last):
    if batch_size is not None and batch_size < 1:
        raise ArgumentError(f"batch_size is {batch_size}, expected at least 1")
    if hasattr(data, "_feed_source"):
        return data._feed_source(batch_size, collate, drop_last)
    if batch_size is not None and collate is None and _sources.holds_arrays(data):
        return _sources.Arrays(data, batch_size, drop_last)
    has_items = hasattr(data, "__getitem__") or (batch_size is None and hasattr(data, "get_into"))
    if has_items and hasattr(data, "__len__"):
        if batch_size is None:
            return _sources.Batches(data)
        return _sources.Samples(data, batch_size, collate, drop_last)
    if batch_size is not None:
        raise ArgumentError(
            f"batch_size needs data with __len__ and __getitem__, or arrays; a {type(data).__name__} has no such"
            " methods: let it yield whole batches, and leave batch_size out"
        )
    if hasattr(data, "__iter__") or callable(data):
        return _sources.Generator(data)
    raise ArgumentError(
        f"a {type(data).__name__} is no data: expected an object with __len__ and __getitem__, arrays, or an iterable"
    )


def _read_shuffle(shuffle, source):
    """Returns the number of the order and its window."""
    if shuffle is True:
        shuffle = "samples" if source.by_samples else "batches"
    word, _, window = str(shuffle or "none").partition(":")
    _check("shuffle", word, _SHUFFLES)
    if (word == "window" or window) and not window.isdigit():
        raise ArgumentError(f"shuffle is {shuffle!r}, expected {word}:N with a number")
    if word != "none" and source.generator:
        raise ArgumentError("an iterable has its own order and cannot be shuffled")
    if word == "samples" and not source.by_samples:
        raise ArgumentError("shuffling samples needs a batch_size; shuffle='batches' permutes whole batches")
    return _SHUFFLES[word], int(window or 0)


def _pickle_source(source, data):
    try:
        return pickle.dumps(source, protocol=5)
    except Exception as error:
        try:
            import cloudpickle

            return cloudpickle.dumps(source)
        except ImportError:
            pass
        where = _find_unpicklable(data, "data", 4)
        raise PickleError(
            f"the data cannot be sent to worker processes: {where} cannot be pickled ({error}).  Open files, locks,"
            " lambdas and connections cannot be sent: make them on first use in __getitem__, or in __setstate__; or"
            " install cloudpickle; or use kind='thread' or kind='fork'"
        ) from error


def _find_unpicklable(value, path, depth):
    """Returns the path of the innermost part of a value that cannot be pickled."""
    parts = []
    if isinstance(value, dict):
        parts = [(f"{path}[{key!r}]", part) for key, part in value.items()]
    elif isinstance(value, (list, tuple)):
        parts = [(f"{path}[{i}]", part) for i, part in enumerate(value)]
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        parts = [(f"{path}.{name}", part) for name, part in vars(value).items()]
    for name, part in parts[:1000] if depth else []:
        try:
            pickle.dumps(part)
        except Exception:
            return _find_unpicklable(part, name, depth - 1)
    return f"{path}, a {type(value).__name__}"
