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
    DataError,
    Error,
    LateError,
    MemoryLackError,
    PickleError,
    StoppedError,
    WorkerError,
)
from leat.feed import Feed
from leat.random import rng
from leat.workers import WorkerInfo, worker_info

__version__ = _version()

__all__ = [
    "DataError",
    "Error",
    "Feed",
    "LateError",
    "MemoryLackError",
    "PickleError",
    "StoppedError",
    "WorkerError",
    "WorkerInfo",
    "rng",
    "worker_info",
]
