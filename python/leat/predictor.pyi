# SPDX-License-Identifier: Apache-2.0
from typing import Any, List, Optional, Sequence, Tuple

from numpy.typing import NDArray

from leat import _trainer
from leat.model import Model

class Predictor(_trainer.Predictor):
    def __new__(
        cls,
        model: Model,
        batch: int = 1,
        *,
        threads: int = 1,
        streaming: bool = False,
        weights: str = "f32",
        device: str = "cpu",
        inputs: Optional[Sequence[Any]] = None,
        release_gil: Optional[bool] = None,
    ) -> Predictor: ...
    @property
    def inputs(self) -> List[NDArray[Any]]: ...
    @property
    def input_shapes(self) -> List[Tuple[int, ...]]: ...
    @property
    def output_shapes(self) -> List[Tuple[int, ...]]: ...
    @property
    def version(self) -> int: ...
    @property
    def device(self) -> str: ...
    @property
    def closed(self) -> bool: ...
    def __enter__(self) -> Predictor: ...
    def __exit__(self, *exception: object) -> None: ...
