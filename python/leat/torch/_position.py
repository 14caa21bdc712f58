# SPDX-License-Identifier: Apache-2.0
"""Where a loader is: the beginning of its pass, as far as samplers depend on it, and the batches since then.

A sampler is an arbitrary iterable.  So its position is the state of the random generators, and of the sampler if it
has one, when the pass began; to return to a batch, the sampler is run again from there.
"""

import contextlib
import random as _random

import torch

from leat import _native, random
from leat.torch._source import is_stateful

FORMAT = 1


def _own_generators(loader):
    """Returns the generators that were passed to the loader and its samplers, by name, each once."""
    sampler = loader._index_sampler
    found = {}
    for name, owner in (
        ("loader", loader),
        ("sampler", sampler),
        ("inner", getattr(sampler, "sampler", None)),
    ):
        generator = getattr(owner, "generator", None)
        if isinstance(generator, torch.Generator) and not any(generator is other for other in found.values()):
            found[name] = generator
    return found


def _stateful_samplers(loader):
    sampler = loader._index_sampler
    named = (("sampler", sampler), ("inner", getattr(sampler, "sampler", None)))
    return {name: one for name, one in named if one is not None and is_stateful(one)}


# ---- states as numbers and text, so that JSON can hold them ----


def _to_text(state):
    return bytes(state.numpy()).hex()


def _from_text(text):
    return torch.frombuffer(bytearray.fromhex(text), dtype=torch.uint8)


def _encode_globals(state):
    version, numbers, gauss = state["random"]
    numpy_state = None
    if "numpy.random" in state:
        name, keys, at, has_gauss, cached = state["numpy.random"]
        numpy_state = [name, [int(key) for key in keys], int(at), int(has_gauss), float(cached)]
    return {
        "python": [version, list(numbers), gauss],
        "numpy": numpy_state,
        "torch": _to_text(state["torch"]),
    }


def _set_globals(encoded):
    version, numbers, gauss = encoded["python"]
    _random.setstate((version, tuple(numbers), gauss))
    if encoded["numpy"] is not None:
        import numpy

        name, keys, at, has_gauss, cached = encoded["numpy"]
        numpy.random.set_state((name, numpy.array(keys, numpy.uint32), at, has_gauss, cached))
    torch.set_rng_state(_from_text(encoded["torch"]))


class Start:
    """What the order of a pass depends on, when the pass begins."""

    def __init__(self, loader):
        self._globals = random.save_globals() if loader.seed is None else None
        self._generators = {name: one.get_state() for name, one in _own_generators(loader).items()}
        self._samplers = {name: one.state_dict() for name, one in _stateful_samplers(loader).items()}
        self._encoded = None

    @classmethod
    def decode(cls, encoded):
        self = cls.__new__(cls)
        self._encoded = encoded
        return self

    def encode(self):
        if self._encoded is None:
            self._encoded = {
                "globals": _encode_globals(self._globals) if self._globals else None,
                "generators": {name: _to_text(state) for name, state in self._generators.items()},
                "samplers": self._samplers,
            }
        return self._encoded

    def apply(self, loader):
        """Sets the loader's own generators and samplers as they were, and the global generators."""
        for name, generator in _own_generators(loader).items():
            if name in self._encoded["generators"]:
                generator.set_state(_from_text(self._encoded["generators"][name]))
        for name, sampler in _stateful_samplers(loader).items():
            if name in self._encoded["samplers"]:
                sampler.load_state_dict(self._encoded["samplers"][name])
        if self._encoded["globals"]:
            _set_globals(self._encoded["globals"])


class Pass:
    """One pass of a loader: where it began, and where it is."""

    def __init__(self, loader):
        loaded, loader._loaded = loader._loaded, None
        self.number = loaded["pass"] if loaded else loader._passes
        loader._passes = self.number + 1
        self.batches = loaded["batch"] if loaded else 0  # batches that the caller has received
        self.ended = False
        self.streams = dict(loaded["streams"]) if loaded else {}  # states of the streams of an iterable data set
        self.turn = loaded["turn"] if loaded else 0  # the stream whose batch is the next one
        with _restored_globals(loader.seed is not None or (loaded is not None and self.batches > 0)):
            if loaded:
                self.start = Start.decode(loaded["start"])
                self.start.apply(loader)
            else:
                self.start = Start(loader)
            if loader.seed is not None:
                random.begin(*_native.random_key(loader.seed & _MASK, self.number, 1 << 62), True)
                random.end()
            self._begin(loader)

    def _begin(self, loader):
        sampler = iter(loader._index_sampler)
        drawn = int(torch.empty((), dtype=torch.int64).random_(generator=loader.generator).item())
        self.seed = drawn if loader.seed is None else loader.seed
        self.tasks = iter(())
        if loader.is_iterable:
            return
        for _ in range(self.batches):
            next(sampler, None)
        first = []
        try:
            first.append(next(sampler))  # Most samplers draw their random numbers now.
        except StopIteration:
            pass
        self.tasks = enumerate(_chain(first, sampler), self.batches)

    def state_dict(self, loader):
        return {
            "leat.torch": FORMAT,
            "pass": self.number,
            "batch": self.batches,
            "seed": loader.seed,
            "turn": self.turn,
            "streams": dict(self.streams),
            "start": self.start.encode(),
        }


_MASK = (1 << 64) - 1


def _chain(first, others):
    yield from first
    yield from others


@contextlib.contextmanager
def _restored_globals(wanted):
    state = random.save_globals() if wanted else None
    try:
        yield
    finally:
        if wanted:
            random.restore_globals(state)


def state_between_passes(loader, ended):
    """Returns the state of a loader that is not in the middle of a pass.  ended: its last pass, or None."""
    streams = {}
    for name, state in (ended.streams if ended else {}).items():
        if isinstance(state, dict) and state.get("dataset_state") is not None:
            streams[name] = {"num_batches": 0, "dataset_state": state["dataset_state"], "fetcher_state": None}
    return {
        "leat.torch": FORMAT,
        "pass": loader._passes,
        "batch": 0,
        "seed": loader.seed,
        "turn": 0,
        "streams": streams,
        "start": Start(loader).encode(),
    }
