# SPDX-License-Identifier: Apache-2.0
"""What a function that makes batches may know about where it runs."""

from typing import NamedTuple, Optional


class WorkerInfo(NamedTuple):
    """Where a batch is made."""

    kind: str  # "process", "spawn", "fork" or "thread"
    workers: int  # number of workers of the feed
    seed: int  # of the feed


_info: Optional[WorkerInfo] = None


def worker_info() -> Optional[WorkerInfo]:
    """Returns the WorkerInfo of the worker process that calls it; None in any other process."""
    return _info


def set_worker_info(info: Optional[WorkerInfo]) -> None:
    global _info
    _info = info
