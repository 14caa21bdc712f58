# SPDX-License-Identifier: Apache-2.0
from typing import Any, Callable, Dict, Iterable, List, Optional, TypeVar, Union

from torch.utils.data import DataLoader as _TorchDataLoader
from torch.utils.data import Dataset, Sampler

_Batch = TypeVar("_Batch", covariant=True)

class DataLoader(_TorchDataLoader[_Batch]):
    snapshots: bool
    pin_memory_device: str
    in_order: bool
    seed: Optional[int]
    retries: int
    bad_batch: str
    max_deaths: int
    keep: int
    seed_globals: Optional[bool]
    def __init__(
        self,
        dataset: Dataset[_Batch],
        batch_size: Optional[int] = 1,
        shuffle: Optional[bool] = None,
        sampler: Union[Sampler[Any], Iterable[Any], None] = None,
        batch_sampler: Union[Sampler[List[Any]], Iterable[List[Any]], None] = None,
        num_workers: int = 0,
        collate_fn: Optional[Callable[[List[Any]], Any]] = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Optional[Callable[[int], None]] = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: Optional[int] = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        seed: Optional[int] = None,
        retries: int = 0,
        bad_batch: str = "fail",
        max_deaths: int = 3,
        keep: int = 8,
        seed_globals: Optional[bool] = None,
    ) -> None: ...
    @property
    def is_iterable(self) -> bool: ...
    def stats(self) -> Dict[str, int]: ...
    def close(self) -> None: ...
    def state_dict(self) -> Dict[str, Any]: ...
    def load_state_dict(self, state: Dict[str, Any]) -> None: ...

class StatefulDataLoader(DataLoader[_Batch]):
    snapshot_every_n_steps: int
    # The arguments of DataLoader, too.
    def __init__(self, *arguments: Any, snapshot_every_n_steps: int = 1, **named: Any) -> None: ...
