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


class ShapeError(Error, ValueError):
    """Shapes do not agree."""


class DtypeError(Error, TypeError):
    """Data types do not agree, or values are no numbers."""


class FileError(Error, OSError):
    """A file could not be read or written."""


class FormatError(Error, ValueError):
    """A file is damaged, or has another format."""


class NotFoundError(Error, LookupError, ValueError):
    """There is no such layer, name or file."""


class MissingFileError(NotFoundError, FileNotFoundError):
    """There is no such file."""


class BusyError(Error, RuntimeError):
    """Another thread uses the object, and it serves one thread at a time."""


_classes = {
    1: ArgumentError,
    2: ShapeError,
    3: DtypeError,
    4: MemoryLackError,
    5: FileError,
    6: FormatError,
    7: NotFoundError,
    8: ArgumentError,
    9: DataError,
    10: WorkerError,
    11: StoppedError,
    14: LateError,
    16: BusyError,
}


def _make(code: int, message: str) -> Error:
    error = _classes.get(code, Error)(message)
    error.code = code
    return error


_native.set_error_maker(_make)
