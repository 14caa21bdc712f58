# SPDX-License-Identifier: Apache-2.0
"""The programs from which a feed's worker processes come: fresh interpreters with one thread.

With kind="process" one helper program unpickles the data and forks the workers.  With kind="spawn" the helper program
only watches the workers, and each worker is a program that unpickles the data.
"""

import gc
import os
import sys

from leat import _native
from leat._compat import pickle

_importing_main = False
_prepared = False
_former_mains = []  # Functions of these modules may still run.


def importing_main():
    """Returns True while this program imports the main module of the feed's program: no feed with processes can be
    opened then."""
    return _importing_main


# ---- the source ----


def _load(payload):
    """Makes the source from what the feed has sent: how to find modules, and the source."""
    preparation, source = pickle.loads(payload)
    if not _prepared:
        _prepare(preparation)
    source = pickle.loads(source)
    return source, source.describe() if hasattr(source, "describe") else _describe(source)


def _describe(source):
    return source.make, source.samples or len, source.by_samples, source.generator


def _load_for_forks(payload):
    """Makes the source in the helper program: workers share its memory."""
    if _prepared:
        gc.unfreeze()  # the source of the pass before, if it has cycles
        gc.collect()
    gc.disable()  # A collection would take longer than the import of most modules.
    source, described = _load(payload)
    gc.freeze()  # The collector would otherwise write to all objects, and each worker would have copies of them.
    gc.enable()
    _import_late(source)
    if getattr(source, "is_constant", False) and can_be_immortal():
        _native.make_immortal(source.data)
    return described


def _import_late(source):
    """Imports numpy.random when all workers have been forked: those that replace dead ones need not do it then."""
    info = getattr(source, "info", None)
    left = [info.workers if info is not None else 0]

    def count_fork():
        left[0] -= 1
        if left[0] == 0 and "numpy" in sys.modules and "numpy.random" not in sys.modules:
            import numpy.random  # noqa: F401

    if left[0] and not _prepared_forks:
        _prepared_forks.append(count_fork)
        os.register_at_fork(after_in_parent=count_fork)


_prepared_forks = []


def can_be_immortal():
    """Returns True for a CPython whose objects need not count references, with its usual layout of objects."""
    is_usual = sys.implementation.name == "cpython" and sys.maxsize > 1 << 32 and sys.byteorder == "little"
    has_lock = getattr(sys, "_is_gil_enabled", lambda: True)() and "t" not in sys.abiflags
    return sys.version_info >= (3, 12) and is_usual and has_lock and not hasattr(sys, "gettotalrefcount")


# ---- the program's modules ----


def describe_program():
    """Returns how a fresh interpreter finds the modules of this program, as multiprocessing.spawn does it."""
    main = sys.modules["__main__"]
    sys.modules.setdefault("__mp_main__", main)  # Its classes have this name in workers.
    process = sys.modules.get("multiprocessing.process")
    folder = getattr(process, "ORIGINAL_DIR", None) or _FOLDER
    path = list(sys.path)
    if "" in path and folder:
        path[path.index("")] = folder
    description = {"path": path, "argv": sys.argv, "folder": _find_folder(), "main": None, "is_name": False}
    contexts = sys.modules.get("multiprocessing")
    method = contexts.get_start_method(allow_none=True) if hasattr(contexts, "get_start_method") else None
    description["start_method"] = method
    name = getattr(getattr(main, "__spec__", None), "name", None)
    file = getattr(main, "__file__", None)
    if name is not None:
        description.update(main=name, is_name=True)
    elif file is not None:
        if folder and not os.path.isabs(file):
            file = os.path.join(folder, file)
        description["main"] = os.path.normpath(file)
    return description


def _find_folder():
    try:
        return os.getcwd()
    except OSError:
        return None


_FOLDER = _find_folder()


def _prepare(program):
    """Lets this interpreter find the modules of the program, and imports its main module."""
    global _importing_main, _prepared
    sys.path[:] = program["path"]
    sys.argv[:] = program["argv"]
    if program["folder"] is not None:
        os.chdir(program["folder"])
    if program["start_method"] is not None:
        import multiprocessing

        multiprocessing.set_start_method(program["start_method"], force=True)
    _importing_main = True
    try:
        if program["main"] is not None:
            _import_main(program["main"], program["is_name"])
    finally:
        _importing_main = False
    _prepared = True


def _import_main(main, is_name):
    """Runs the main module under the name __mp_main__, and puts it in the place of this program's main module."""
    current = sys.modules["__main__"]
    if is_name:
        is_same = getattr(getattr(current, "__spec__", None), "name", None) == main
        if is_same or main == "__main__" or main.endswith(".__main__"):
            return
    elif os.path.splitext(os.path.basename(main))[0] == "ipython" or getattr(current, "__file__", None) == main:
        return
    _former_mains.append(current)
    module = type(sys)("__mp_main__")
    if is_name or not main.endswith(".py"):
        import runpy

        run = runpy.run_module if is_name else runpy.run_path
        named = {"alter_sys": True} if is_name else {}
        module.__dict__.update(run(main, run_name="__mp_main__", **named))
    else:
        module.__dict__.update(__file__=main, __cached__=None, __package__="", __builtins__=__builtins__)
        sys.modules["__mp_main__"] = module
        with open(main, "rb") as file:
            exec(compile(file.read(), main, "exec"), module.__dict__)
    sys.modules["__main__"] = sys.modules["__mp_main__"] = module


# ---- main functions ----


def _run(function, *arguments):
    try:
        function(*arguments)
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)  # The interpreter's end would meet objects that are not counted.


def main():
    """Unpickles the data, and forks the workers."""
    _run(_native.run_helper, int(sys.argv[-1]), _load_for_forks)


def supervise(command):
    """Starts each worker by a command: a tuple of words."""
    _run(_native.run_supervisor, int(sys.argv[-1]), command)


def work():
    """Makes batches, as a worker."""
    _run(_native.run_worker, sys.argv[-1], lambda payload: _load(payload)[1])
