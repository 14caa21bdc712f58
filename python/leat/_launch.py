# SPDX-License-Identifier: Apache-2.0
"""Starting the helper program of feeds, and opening feeds."""

import os
import sys

from leat import _helper
from leat._compat import pickle
from leat.errors import Error

_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_NO_MEMORY, _NO_FILE = 4, 5  # codes of leat_status
_LARGEST_BATCHES = (1 << 36, 1 << 32, 1 << 29)  # bytes of address space; memory is used for what batches need


def make_command(kind="process"):
    """Returns the command that starts a fresh interpreter as a helper program."""
    if kind == "process":
        return _make_interpreter("main()")
    worker = _make_interpreter("work()")
    return _make_interpreter(f"supervise({tuple(worker)!r})", "-S")  # It needs nothing but leat.


def _make_interpreter(call, *options):
    # The new interpreter may not look for modules where this one has found leat.
    name = call.partition("(")[0]
    start = f"import sys; sys.path.append({_FOLDER!r}); from leat._helper import {name}; {call}"
    return [sys.executable, *_list_flags(), *options, "-c", start]


def _list_flags():
    """Returns the options with which this interpreter was started."""
    import subprocess

    return subprocess._args_from_interpreter_flags()


def make_payload(pickled):
    """Returns what the helper program receives: how to find modules, and the pickle of a source."""
    if _helper.importing_main():
        raise Error(
            "a feed with worker processes is opened while a worker's interpreter imports the main module: write the"
            ' code that opens it under  if __name__ == "__main__":'
        )
    return pickle.dumps((_helper.describe_program(), pickled))


def open_with_space(open_feed):
    """Returns what open_feed(most_bytes) opens.  A limit of address space or of file sizes may be lower than usual."""
    for most in _LARGEST_BATCHES:
        try:
            return open_feed(most)
        except Error as error:
            if most == _LARGEST_BATCHES[-1] or error.code not in (_NO_MEMORY, _NO_FILE):
                raise
