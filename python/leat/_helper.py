# SPDX-License-Identifier: Apache-2.0
"""The helper program of a feed: a fresh interpreter with one thread, from which the worker processes are forked."""

import gc
import os
import sys
import sysconfig

from leat import _native
from leat._compat import pickle

_importing_main = False
_prepared = False


def importing_main():
    """Returns True while this helper imports the program's main module: no feed with processes can be opened then."""
    return _importing_main


def _load(payload):
    """Makes the source from what the feed has sent: how to find modules, and the source."""
    preparation, source = pickle.loads(payload)
    if not _prepared:
        _prepare(preparation)
    gc.unfreeze()  # the source of the pass before, if it has cycles
    gc.collect()
    source = pickle.loads(source)
    described = source.describe() if hasattr(source, "describe") else None
    gc.collect()
    gc.freeze()  # The collector would otherwise write to all objects, and each worker would have copies of them.
    if getattr(source, "is_constant", False) and _can_be_immortal():
        _native.make_immortal(source.data)
    return described or (source.make, source.samples or len, source.by_samples, source.generator)


def _can_be_immortal():
    """Returns True for a CPython whose objects need not count references, with its usual layout of objects."""
    is_usual = sys.implementation.name == "cpython" and sys.maxsize > 1 << 32 and sys.byteorder == "little"
    has_lock = getattr(sys, "_is_gil_enabled", lambda: True)() and not sysconfig.get_config_var("Py_GIL_DISABLED")
    return sys.version_info >= (3, 12) and is_usual and has_lock and not hasattr(sys, "gettotalrefcount")


def _prepare(preparation):
    """Lets this interpreter find the modules of the program, and imports its main module."""
    from multiprocessing import spawn

    global _importing_main, _prepared
    _importing_main = True
    try:
        spawn.prepare(preparation)
    finally:
        _importing_main = False
    _prepared = True


def main():
    try:
        _native.run_helper(int(sys.argv[-1]), _load)
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)  # The interpreter's end would meet objects that are not counted.


if __name__ == "__main__":
    main()
