# SPDX-License-Identifier: Apache-2.0
from typing import Any, Iterator, Optional

class SequenceEnqueuer:
    sequence: Any
    use_multiprocessing: bool
    workers: int
    def __init__(self, sequence: Any, use_multiprocessing: bool = False) -> None: ...
    def is_running(self) -> bool: ...
    def start(self, workers: int = 1, max_queue_size: int = 10) -> None: ...
    def get(self) -> Iterator[Any]: ...
    def stop(self, timeout: Optional[float] = None) -> None: ...

class OrderedEnqueuer(SequenceEnqueuer):
    shuffle: bool
    def __init__(
        self,
        sequence: Any,
        use_multiprocessing: bool = False,
        shuffle: bool = False,
        *,
        kind: Optional[str] = None,
        seed: Optional[int] = None,
    ) -> None: ...
    def join_end_of_epoch(self) -> None: ...

class FeedEnqueuer(OrderedEnqueuer):
    def __init__(self, feed: Any) -> None: ...
    def stop(self, timeout: Optional[float] = None) -> None: ...

class GeneratorEnqueuer(SequenceEnqueuer):
    random_seed: Optional[int]
    def __init__(
        self,
        generator: Any,
        use_multiprocessing: bool = False,
        wait_time: Optional[float] = None,
        random_seed: Optional[int] = None,
    ) -> None: ...

class PyDatasetEnqueuer(SequenceEnqueuer):
    py_dataset: Any
    max_queue_size: int
    shuffle: bool
    def __init__(
        self,
        py_dataset: Any,
        workers: int = 1,
        use_multiprocessing: bool = False,
        max_queue_size: int = 10,
        shuffle: bool = False,
        num_data_shards: int = 1,
        data_shard_id: int = 0,
    ) -> None: ...
    def start(self, epoch: int = 0) -> None: ...  # type: ignore[override]
    def get(self) -> Iterator[Any]: ...
    def stop(self, drain_queue_and_join: bool = True) -> None: ...  # type: ignore[override]
