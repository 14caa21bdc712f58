# SPDX-License-Identifier: Apache-2.0
"""leat.torch.DataLoader: torch's class, whose workers are leat's."""

import copy
import inspect
import weakref
from typing import TypeVar

import torch
from torch.utils.data.dataloader import DataLoader as _TorchDataLoader

from leat.errors import ArgumentError
from leat.torch import _engine, _source
from leat.torch._engine import LateBatchError, WorkerDiedError  # noqa: F401  (names of leat.torch)
from leat.torch._iterators import InlineIterator, MapIterator, StreamIterator, resolve_streams
from leat.torch._position import FORMAT, state_between_passes

_Batch = TypeVar("_Batch", covariant=True)
_KNOWN = frozenset(inspect.signature(_TorchDataLoader.__init__).parameters)


class DataLoader(_TorchDataLoader[_Batch]):
    """torch.utils.data.DataLoader with leat's workers, and with all of its arguments.

    Batches arrive in order, with the same bytes for any number of workers; a worker process that dies is replaced and
    costs its own batch.  Workers descend from a fresh interpreter, and stay between passes.

    Arguments of torch with a meaning of their own:
        multiprocessing_context: None or "forkserver": workers are forked from a fresh interpreter, to which the data
            set is sent by pickle; "spawn": each worker is a fresh interpreter; "fork": they are forked from this
            process.  With None, a data set that cannot be pickled is forked, too, with a warning.
        timeout: seconds that a worker may take for a batch; it is then killed, and the batch made once more.
        in_order: batches are in order, also with False.

    Arguments of leat:
        seed: of the samplers' order (unless they have generators of their own) and of all random numbers in the
            workers, together with the number of the pass.  None: they follow from torch's default generator, or from
            `generator`, as in torch.
        retries: further attempts at a batch whose data set has raised an exception.
        bad_batch: "fail" or "skip", for a batch that cannot be made.
        max_deaths: worker processes that may die while they make one batch.
        keep: batches that may be alive at the same time without being copied.
        seed_globals: seeds the global generators of Python, NumPy and torch before each batch.  None: yes, unless
            worker_init_fn seeds torch.
    """

    snapshots = False

    def __init__(
        self,
        dataset,
        batch_size=1,
        shuffle=None,
        sampler=None,
        batch_sampler=None,
        num_workers=0,
        collate_fn=None,
        pin_memory=False,
        drop_last=False,
        timeout=0,
        worker_init_fn=None,
        multiprocessing_context=None,
        generator=None,
        *,
        prefetch_factor=None,
        persistent_workers=False,
        pin_memory_device="",
        in_order=True,
        seed=None,
        retries=0,
        bad_batch="fail",
        max_deaths=3,
        keep=8,
        seed_globals=None,
    ):
        arguments = dict(
            batch_size=batch_size,
            shuffle=shuffle,
            sampler=sampler,
            batch_sampler=batch_sampler,
            num_workers=num_workers,
            collate_fn=collate_fn,
            pin_memory=pin_memory,
            drop_last=drop_last,
            timeout=timeout,
            worker_init_fn=worker_init_fn,
            multiprocessing_context=multiprocessing_context,
            generator=generator,
            prefetch_factor=prefetch_factor,
            persistent_workers=persistent_workers,
            pin_memory_device=pin_memory_device,
            in_order=in_order,
        )
        if bad_batch not in ("fail", "skip"):
            raise ArgumentError(f"bad_batch is {bad_batch!r}, expected 'fail' or 'skip'")
        super().__init__(dataset, **{name: value for name, value in arguments.items() if name in _KNOWN})
        self.pin_memory_device = pin_memory_device
        self.in_order = in_order
        self.seed = None if seed is None else int(seed) & 0x7FFFFFFFFFFFFFFF
        self.retries = retries
        self.bad_batch = bad_batch
        self.max_deaths = max_deaths
        self.keep = keep
        self.seed_globals = seed_globals
        self._init_position()

    def _init_position(self):
        self._passes = 0  # passes that have begun
        self._pass = None  # the last of them
        self._loaded = None  # what load_state_dict has received, for the next pass
        self._engine = None  # workers that no iterator uses
        self._last_engine = None  # weak reference to the workers that were used last

    @property
    def is_iterable(self):
        return isinstance(self.dataset, torch.utils.data.IterableDataset)

    # ---- iterators ----

    def _get_iterator(self):
        if self.num_workers == 0:
            return InlineIterator(self)
        check = getattr(self, "check_worker_number_rationality", None)
        if check is not None:
            check()
        return StreamIterator(self) if self.is_iterable else MapIterator(self)

    def _take_engine(self, at_pass):
        """Returns workers: those of the last pass, or new ones."""
        engine = self._find_engine(at_pass)
        self._last_engine = weakref.ref(engine)
        return engine

    def _find_engine(self, at_pass):
        engine, self._engine = self._engine, None
        plan = _source.Plan(self)
        plan.worker_init_fn = _wrap_init_function(self)
        if engine is not None and not engine.closed:
            if engine.kind != "fork":
                engine.update(plan)
                return engine
            engine.close()  # Worker processes that were forked from this one do not see how the data set has changed.
        return _engine.open_engine(self, plan, at_pass.seed)

    def _give_back(self, engine):
        if engine.closed or self._engine is not None or engine.kind == "fork":
            engine.close()
        else:
            self._engine = engine

    def stats(self):
        """Returns measurements of the workers since they were started: a dict, empty if there are none.

        `wait_ns` is the time for which the caller waited, `get_ns` the time for which workers made batches, and
        `copied` the number of batches that were copied, because more than `keep` batches were alive.
        """
        engine = self._last_engine() if self._last_engine is not None else None
        return {} if engine is None or engine.closed else engine.stats()

    def close(self):
        """Ends the workers that wait for the next pass.  The loader can still be used."""
        if self._engine is not None:
            self._engine.close()
        self._engine = None

    def __getstate__(self):
        state = dict(self.__dict__)
        state.update(_engine=None, _last_engine=None, _pass=None, _iterator=None)
        return state

    # ---- position ----

    def state_dict(self):
        """Returns the position after the batch that was received last, as JSON can hold it, for load_state_dict.

        It is the position of the iterator that was made last.
        """
        if self._loaded is not None:
            return copy.deepcopy(self._loaded)
        if self._pass is None or self._pass.ended:
            state = state_between_passes(self, self._resolved_pass())
        else:
            state = self._pass.state_dict(self)
        state["num_workers"] = self.num_workers
        if not self.is_iterable and _source.is_stateful(self.dataset):
            state["dataset_state"] = self.dataset.state_dict()
        return self._lay_out(copy.deepcopy(resolve_streams(state)))

    def _resolved_pass(self):
        if self._pass is not None:
            resolve_streams(self._pass.__dict__)
        return self._pass

    def _lay_out(self, state):
        """Adds the names under which torchdata has the states of data sets."""
        if self.num_workers:
            empty = {"dataset_state": None, "fetcher_state": None}
            names = [f"worker_{number}" for number in range(self.num_workers)]
            state["_snapshot"] = {"_worker_snapshots": {name: state["streams"].get(name) or empty for name in names}}
        elif self.is_iterable:
            held = state["streams"].get("worker_0") or {}
            state["dataset_state"] = held.get("dataset_state")
            state["fetcher_state"] = held.get("fetcher_state")
        return state

    def load_state_dict(self, state):
        """Lets the next iterator continue where state_dict() was called, with the same batches.

        For a map-style data set the number of workers may be another one; for an iterable one it must be the same.
        """
        if not isinstance(state, dict) or state.get("leat.torch") != FORMAT:
            raise ArgumentError("expected what state_dict() of a leat.torch.DataLoader returned")
        if self.is_iterable and state["num_workers"] != self.num_workers:
            raise ArgumentError(
                f"the state is of {state['num_workers']} workers, and this loader has {self.num_workers}: each worker"
                " has its own copy of an iterable data set, so their number must be the same"
            )
        self._loaded = copy.deepcopy(state)
        if state["seed"] is not None:
            self.seed = state["seed"]
        if not self.is_iterable and "dataset_state" in state and _source.is_stateful(self.dataset):
            self.dataset.load_state_dict(state["dataset_state"])


class StatefulDataLoader(DataLoader[_Batch]):
    """DataLoader with the argument of torchdata's class: the states of iterable data sets travel with their batches.

    snapshot_every_n_steps: accepted; each batch carries the state.
    """

    snapshots = True

    def __init__(self, *arguments, snapshot_every_n_steps=1, **named):
        super().__init__(*arguments, **named)
        self.snapshot_every_n_steps = snapshot_every_n_steps


def _wrap_init_function(loader):
    """Returns the function that torch calls in a worker: data pipes are given their shares, too."""
    data = torch.utils.data
    pipes = tuple(kind for kind in (getattr(data, "IterDataPipe", None), getattr(data, "MapDataPipe", None)) if kind)
    module = inspect.getmodule(_TorchDataLoader)
    share = getattr(module, "_sharding_worker_init_fn", None)
    if not pipes or not isinstance(loader.dataset, pipes) or share is None:
        return loader.worker_init_fn
    import functools

    return functools.partial(share, loader.worker_init_fn, *module._get_distributed_settings())
