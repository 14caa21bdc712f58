#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs PyTorch's or torchdata's own tests of their loaders with leat.torch in the place of their classes.

    run_torch_tests.py [--fork | --theirs] [--skip NAME[,NAME...]] FILE [NAME...]

FILE is a test file that was fetched before: PyTorch's test/test_dataloader.py, or torchdata's
test/stateful_dataloader/test_dataloader.py or test_state_dict.py.  NAME is part of the name of a class or of
class.test.  With --fork, loaders whose multiprocessing_context is None fork their workers from this process, which
saves starting an interpreter per loader.  With --theirs, the tests run with the classes for which they were written.
docs/python/torch.md has the results.
"""

import importlib
import os
import sys
import time
import unittest

import torch.utils.data

import leat.torch

try:
    import torchdata.stateful_dataloader as stateful
except ImportError:
    stateful = None

_their_loader = torch.utils.data.DataLoader
_their_stateful = getattr(stateful, "StatefulDataLoader", None)
_FORK = "LEAT_TORCH_TESTS_FORK"
_THEIRS = "LEAT_TORCH_TESTS_THEIRS"


def _let_fork():
    """Lets loaders fork their workers unless they are told otherwise."""
    original = leat.torch.DataLoader.__init__

    def forking(self, *arguments, **named):
        workers = named.get("num_workers", arguments[5] if len(arguments) > 5 else 0)
        if workers and len(arguments) <= 11 and named.get("multiprocessing_context") is None:
            named["multiprocessing_context"] = "fork"
        original(self, *arguments, **named)

    leat.torch.DataLoader.__init__ = forking


def _substitute():
    """Puts leat's classes in the place of theirs, also in processes that the tests spawn."""
    if os.environ.get(_THEIRS):
        return
    if os.environ.get(_FORK):
        _let_fork()
    torch.utils.data.DataLoader = leat.torch.DataLoader
    if stateful is not None:
        stateful.StatefulDataLoader = leat.torch.StatefulDataLoader


_substitute()


class _Result(unittest.TextTestResult):
    def startTest(self, test):
        self.began = time.monotonic()
        super().startTest(test)

    def stopTest(self, test):
        super().stopTest(test)
        self.stream.writeln(f"  {time.monotonic() - self.began:.1f} s")
        self.stream.flush()


def _find(module):
    """Returns the tests of a module.  Its load_tests refuses any script but itself."""
    loader = unittest.TestLoader()
    classes = [one for one in vars(module).values() if isinstance(one, type) and issubclass(one, unittest.TestCase)]
    own = [one for one in classes if one.__module__ == module.__name__]
    return [test for one in own for test in loader.loadTestsFromTestCase(one)]


def main():
    words = sys.argv[1:]
    if "--fork" in words:
        words.remove("--fork")
        os.environ[_FORK] = "1"
        _let_fork()
    if "--theirs" in words:
        words.remove("--theirs")
        os.environ[_THEIRS] = "1"
        torch.utils.data.DataLoader = _their_loader
        if stateful is not None:
            stateful.StatefulDataLoader = _their_stateful
    skipped = ()
    if "--skip" in words:
        at = words.index("--skip")
        skipped = tuple(words[at + 1].split(","))
        del words[at : at + 2]
    if not words:
        sys.exit(__doc__)
    folder, file = os.path.split(os.path.abspath(words[0]))
    sys.path.insert(0, folder)
    module = importlib.import_module(os.path.splitext(file)[0])
    module.JOIN_TIMEOUT = 300  # On a busy machine a spawned interpreter needs a minute to import torch.
    tests = [test for test in _find(module) if not any(name in test.id() for name in skipped)]
    if words[1:]:
        tests = [test for test in tests if any(name in test.id().split(".", 1)[1] for name in words[1:])]
    suite = unittest.TestSuite(tests)
    result = unittest.TextTestRunner(verbosity=2, resultclass=_Result).run(suite)
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun} run, {len(result.skipped)} skipped, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
