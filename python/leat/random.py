# SPDX-License-Identifier: Apache-2.0
"""Random numbers that belong to a batch: a function of (seed, pass, index), whatever worker makes the batch."""

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


# ---- the global generators of Python, NumPy and torch ----


class _PythonGenerator:
    @staticmethod
    def seed(module, number):
        module.seed(number)

    @staticmethod
    def get_state(module):
        return module.getstate()

    @staticmethod
    def set_state(module, state):
        module.setstate(state)


class _NumpyGenerator:
    @staticmethod
    def seed(module, number):
        module.seed((number ^ number >> 32) & 0xFFFFFFFF)  # a number: a list takes seven times as long

    @staticmethod
    def get_state(module):
        return module.get_state()

    @staticmethod
    def set_state(module, state):
        module.set_state(state)


class _TorchGenerator:
    @staticmethod
    def seed(module, number):
        if hasattr(module, "default_generator"):
            # torch.manual_seed also keeps a call with its stack for each kind of device that is not in use.
            module.default_generator.manual_seed(number & 0x7FFFFFFFFFFFFFFF)

    @staticmethod
    def get_state(module):
        return module.random.get_rng_state()

    @staticmethod
    def set_state(module, state):
        module.random.set_rng_state(state)


_GLOBALS = {"random": _PythonGenerator, "numpy.random": _NumpyGenerator, "torch": _TorchGenerator}


class _Finder:
    """Seeds the global generator of a module that is imported while a batch is made.

    So modules that the data may never use need not be imported to be seeded: NumPy 2 imports numpy.random late.
    """

    def __init__(self):
        self.watches = False
        self.number = None  # the seed of the batch that is being made, or None
        self.states = {}  # the states of generators whose modules were loaded since save_globals()

    def watch(self):
        """Begins to watch imports."""
        if not self.watches:
            sys.meta_path.insert(0, self)
            self.watches = True

    def find_spec(self, name, path=None, target=None):
        if name not in _GLOBALS or self.number is None:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None) if finder is not self else None
            spec = find(name, path, target) if find is not None else None
            if spec is not None:
                self._wrap(name, spec.loader)
                return spec
        return None

    def _wrap(self, name, loader):
        execute = getattr(loader, "exec_module", None)
        if execute is None or isinstance(loader, type):
            return

        def execute_and_seed(module):
            del loader.exec_module
            execute(module)
            if self.number is not None:
                self.states[name] = _GLOBALS[name].get_state(module)
                _GLOBALS[name].seed(module, self.number)

        loader.exec_module = execute_and_seed


_finder = _Finder()


def begin(key, stream, seed_globals):
    """Sets the key of the batch that this thread makes now; seeds the global generators of Python, NumPy and torch."""
    _local.key = (key, stream)
    _local.generator = None
    if not seed_globals:
        return
    number = (key ^ (stream * 0x9E3779B97F4A7C15)) & 0xFFFFFFFFFFFFFFFF
    for name, generator in _GLOBALS.items():
        module = sys.modules.get(name)
        if module is not None:
            generator.seed(module, number)
    _finder.watch()
    _finder.number = number


def end():
    """Ends the batch: rng() has no generator any more."""
    _local.key = None
    _local.generator = None
    _finder.number = None


def save_globals():
    """Returns the states of the global generators that begin() seeds, and whose modules are loaded."""
    _finder.states = {}
    loaded = [(name, sys.modules.get(name)) for name in _GLOBALS]
    return {name: _GLOBALS[name].get_state(module) for name, module in loaded if module is not None}


def restore_globals(states):
    """Restores what save_globals() returned, and the states of modules that were loaded since then."""
    for name, state in {**_finder.states, **states}.items():
        _GLOBALS[name].set_state(sys.modules[name], state)
    _finder.states = {}
