# SPDX-License-Identifier: Apache-2.0
from typing import Any, Optional, Sequence, Union

from leat.native_source import Source

def concat(*sources: Union[Source, str], batch_size: Optional[int] = None) -> Source: ...
def zip(*sources: Union[Source, str], batch_size: Optional[int] = None) -> Source: ...
def mix(
    *sources: Union[Source, str],
    weights: Optional[Sequence[float]] = None,
    samples: Optional[int] = None,
    batch_size: Optional[int] = None,
) -> Source: ...
def timeseries_dataset_from_array(
    data: Any,
    targets: Any,
    sequence_length: int,
    sequence_stride: int = 1,
    sampling_rate: int = 1,
    batch_size: int = 128,
    start_index: Optional[int] = None,
    end_index: Optional[int] = None,
) -> Source: ...
def timeseries_generator(
    data: Any,
    targets: Any,
    length: int,
    sampling_rate: int = 1,
    stride: int = 1,
    start_index: int = 0,
    end_index: Optional[int] = None,
    reverse: bool = False,
    batch_size: int = 128,
) -> Source: ...
def pad_sequences(
    sequences: Any,
    maxlen: Optional[int] = None,
    dtype: Any = "int32",
    padding: str = "pre",
    truncating: str = "pre",
    value: float = 0.0,
) -> Any: ...
def save_ragged(
    path: Any, x: Any, y: Any = None, sample_weight: Any = None, dtype: Any = "int32"
) -> None: ...
