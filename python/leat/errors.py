# SPDX-License-Identifier: Apache-2.0
"""The exceptions of leat: all are Error, and some are a built-in exception, too."""

from leat import _native


class Error(Exception):
    """An error of leat.  `code` is the number of its leat_status."""

    code = 0


class DataError(Error, RuntimeError):
    """The data could not make a batch, and its own exception could not be pickled."""


class WorkerError(Error, RuntimeError):
    """Worker processes died while they made a batch, or their helper process was lost."""


class LateError(Error, TimeoutError):
    """A batch was not ready before the deadline (`timeout`)."""


class StoppedError(Error):
    """The feed was stopped."""


class MemoryLackError(Error, MemoryError):
    """There is not enough memory."""


class PickleError(Error, TypeError):
    """The data cannot be sent to the worker processes."""


class ArgumentError(Error, ValueError):
    """An argument is wrong."""


_classes = {1: ArgumentError, 4: MemoryLackError, 8: ArgumentError, 9: DataError, 10: WorkerError, 11: StoppedError, 14: LateError}


def _make(code, message):
    error = _classes.get(code, Error)(message)
    error.code = code
    return error


_native.set_error_maker(_make)
