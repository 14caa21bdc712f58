# SPDX-License-Identifier: Apache-2.0
"""Random numbers that belong to a batch: a function of (seed, pass, index), whatever worker makes the batch."""

import random as _random
import sys
import threading

_local = threading.local()


def rng():
    """Returns NumPy's Generator of the batch that this worker is making.

    Its numbers are a function of (seed, pass, index) of the feed.  Each call returns the same generator until the batch
    is finished.  Outside of a feed's functions there is no such generator: RuntimeError.
    """
    key = getattr(_local, "key", None)
    if key is None:
        raise RuntimeError("leat.rng() belongs to a batch: call it in the functions that make one")
    if _local.generator is None:
        import numpy

        _local.generator = numpy.random.Generator(numpy.random.Philox(key=list(key)))
    return _local.generator


def begin(key, stream, seed_globals):
    """Sets the key of the batch that this thread makes now; seeds the global generators of Python, NumPy and torch."""
    _local.key = (key, stream)
    _local.generator = None
    if not seed_globals:
        return
    mixed = (key ^ (stream * 0x9E3779B97F4A7C15)) & 0xFFFFFFFFFFFFFFFF
    _random.seed(mixed)
    numpy = sys.modules.get("numpy")
    if hasattr(numpy, "random"):
        numpy.random.seed((mixed ^ mixed >> 32) & 0xFFFFFFFF)  # a number: a list takes seven times as long
    torch = sys.modules.get("torch")
    if hasattr(torch, "default_generator"):
        # torch.manual_seed also keeps a call with its stack for each kind of device that is not in use.
        torch.default_generator.manual_seed(mixed & 0x7FFFFFFFFFFFFFFF)


def end():
    """Ends the batch: rng() has no generator any more."""
    _local.key = None
    _local.generator = None


def save_globals():
    """Returns the states of the global generators that begin() seeds."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    return (
        _random.getstate(),
        (numpy, numpy.random.get_state()) if numpy is not None else None,
        (torch, torch.random.get_rng_state()) if torch is not None else None,
    )


def restore_globals(state):
    """Restores what save_globals() returned."""
    _random.setstate(state[0])
    if state[1]:
        state[1][0].random.set_state(state[1][1])
    if state[2]:
        state[2][0].random.set_rng_state(state[2][1])
