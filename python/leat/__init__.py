# SPDX-License-Identifier: Apache-2.0
"""leat's feed for Python: batches made by workers, delivered in order, with the same bytes for any number of them.

    import leat
    with leat.Feed(dataset, workers=4, seed=1, shuffle=True) as feed:
        for epoch in range(10):
            for x, y in feed:
                ...
"""

from leat._native import version as _version
from leat.errors import (
    ArgumentError,
    BusyError,
    DataError,
    DtypeError,
    Error,
    FileError,
    FormatError,
    LateError,
    MemoryLackError,
    MissingFileError,
    NotFoundError,
    PickleError,
    ShapeError,
    StoppedError,
    WorkerError,
)
from leat.random import rng
from leat.workers import WorkerInfo, worker_info

__version__ = _version()

# What is loaded when it is used first: worker processes of a feed do without it.
_LAZY = {
    "Feed": "leat.feed",
    "History": "leat.history",
    "Model": "leat.model",
    "Predictor": "leat.predictor",
    "Source": "leat.native_source",
    "concat": "leat.combine",
    "mix": "leat.combine",
    "pad_sequences": "leat.combine",
    "save_ragged": "leat.combine",
    "timeseries_dataset_from_array": "leat.combine",
    "timeseries_generator": "leat.combine",
    "zip": "leat.combine",
    "source": "leat.native_source",
    "Trial": "leat.tuning",
    "Tuning": "leat.tuning",
    "progress": "leat.report",
    "source_help": "leat.native_source",
    "tune": "leat.tuning",
}
_MODULES = ("callbacks", "feed", "losses", "metrics", "optimizers", "report", "tuning")


def __getattr__(name):
    import importlib

    if name in _MODULES:
        return importlib.import_module("leat." + name)
    if name not in _LAZY:
        raise AttributeError(f"module 'leat' has no attribute {name!r}")
    try:
        value = getattr(importlib.import_module(_LAZY[name]), name)
    except ImportError as error:
        if (error.name or "") != "leat._trainer":
            raise
        raise ImportError(
            f"leat.{name} needs leat's trainer, and this leat was built with LEAT_FEED_ONLY: install a wheel, or build"
            " leat with oneDNN, HDF5 and jansson",
            name=error.name,
        ) from None
    globals()[name] = value
    return value


def __dir__():
    return sorted(set(globals()) | set(_LAZY) | set(_MODULES))


__all__ = [
    "ArgumentError",
    "BusyError",
    "DataError",
    "DtypeError",
    "Error",
    "Feed",
    "FileError",
    "FormatError",
    "LateError",
    "MemoryLackError",
    "MissingFileError",
    "NotFoundError",
    "PickleError",
    "ShapeError",
    "StoppedError",
    "WorkerError",
    "WorkerInfo",
    "Trial",
    "Tuning",
    "progress",
    "rng",
    "tune",
    "worker_info",
]
