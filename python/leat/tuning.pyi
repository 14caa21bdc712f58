# SPDX-License-Identifier: Apache-2.0
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence

from leat.feed import Feed

class Trial(NamedTuple):
    workers: int
    kind: str
    max_queue_size: int
    rate: float
    waiting: float

class Tuning:
    trials: List[Trial]
    best: Dict[str, Any]
    def __init__(self, trials: List[Trial]) -> None: ...

def tune(
    data: Any = None,
    batch_size: Optional[int] = None,
    *,
    step: Optional[Callable[[Any], Any]] = None,
    seconds: float = 2.0,
    workers: Optional[Iterable[int]] = None,
    kinds: Sequence[str] = ("process",),
    make_feed: Optional[Callable[..., Feed]] = None,
    **more: Any,
) -> Tuning: ...
