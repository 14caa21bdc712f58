# SPDX-License-Identifier: Apache-2.0
from typing import Any, Callable, Dict, Iterator, List, Optional, Union

class Feed:
    workers: int
    kind: str
    seed: int
    def __init__(
        self,
        data: Any,
        batch_size: Optional[int] = None,
        *,
        collate: Optional[Callable[[List[Any]], Any]] = None,
        drop_last: bool = False,
        workers: int = 2,
        kind: str = "process",
        shuffle: Union[bool, str] = False,
        seed: Optional[int] = None,
        passes: Optional[int] = None,
        max_queue_size: int = 10,
        rank: int = 0,
        world: int = 1,
        remainder: str = "uneven",
        retries: int = 0,
        bad_batch: str = "fail",
        timeout: Optional[float] = None,
        max_deaths: int = 3,
        keep: int = 8,
        seed_globals: Optional[bool] = None,
    ) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def stop(self) -> None: ...
    def state_dict(self) -> Dict[str, int]: ...
    def load_state_dict(self, state: Dict[str, int]) -> None: ...
    def stats(self) -> Dict[str, Any]: ...
    def verdict(self) -> str: ...
    def close(self) -> None: ...
    def __enter__(self) -> Feed: ...
    def __exit__(self, *exception: object) -> None: ...
