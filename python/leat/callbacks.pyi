# SPDX-License-Identifier: Apache-2.0
import os
from typing import Any, Callable, Dict, List, Optional, Union

from leat.model import Model

_Logs = Optional[Dict[str, float]]
_Path = Union[str, "os.PathLike[str]"]

class Callback:
    model: Optional[Model]
    params: Dict[str, Any]
    def __init__(self) -> None: ...
    def set_model(self, model: Model) -> None: ...
    def set_params(self, params: Dict[str, Any]) -> None: ...
    def on_train_begin(self, logs: _Logs = None) -> None: ...
    def on_train_end(self, logs: _Logs = None) -> None: ...
    def on_epoch_begin(self, epoch: int, logs: _Logs = None) -> None: ...
    def on_epoch_end(self, epoch: int, logs: _Logs = None) -> None: ...
    def on_batch_begin(self, batch: int, logs: _Logs = None) -> None: ...
    def on_batch_end(self, batch: int, logs: _Logs = None) -> None: ...
    def on_train_batch_begin(self, batch: int, logs: _Logs = None) -> None: ...
    def on_train_batch_end(self, batch: int, logs: _Logs = None) -> None: ...
    def on_test_begin(self, logs: _Logs = None) -> None: ...
    def on_test_end(self, logs: _Logs = None) -> None: ...
    def on_test_batch_begin(self, batch: int, logs: _Logs = None) -> None: ...
    def on_test_batch_end(self, batch: int, logs: _Logs = None) -> None: ...
    def on_predict_begin(self, logs: _Logs = None) -> None: ...
    def on_predict_end(self, logs: _Logs = None) -> None: ...
    def on_predict_batch_begin(self, batch: int, logs: _Logs = None) -> None: ...
    def on_predict_batch_end(self, batch: int, logs: _Logs = None) -> None: ...

class History(Callback):
    history: Dict[str, Any]
    epoch: List[int]
    def __init__(self) -> None: ...
    def on_epoch_end(self, epoch: int, logs: _Logs = None) -> None: ...

class LambdaCallback(Callback):
    def __init__(self, **functions: Callable[..., Any]) -> None: ...

class LearningRateScheduler(Callback):
    schedule: Callable[..., float]
    verbose: int
    def __init__(self, schedule: Callable[..., float], verbose: int = 0) -> None: ...
    def on_epoch_begin(self, epoch: int, logs: _Logs = None) -> None: ...
    def on_epoch_end(self, epoch: int, logs: _Logs = None) -> None: ...

class _Native:
    def __init__(self, **arguments: Any) -> None: ...

class EarlyStopping(_Native):
    def __init__(
        self,
        monitor: str = "val_loss",
        min_delta: float = 0,
        patience: int = 0,
        verbose: int = 0,
        mode: str = "auto",
        baseline: Optional[float] = None,
        restore_best_weights: bool = False,
        start_from_epoch: int = 0,
    ) -> None: ...

class ModelCheckpoint(_Native):
    def __init__(
        self,
        filepath: _Path,
        monitor: str = "val_loss",
        verbose: int = 0,
        save_best_only: bool = False,
        save_weights_only: bool = False,
        mode: str = "auto",
        period: int = 1,
        save_freq: Union[str, int] = "epoch",
    ) -> None: ...

class ReduceLROnPlateau(_Native):
    def __init__(
        self,
        monitor: str = "val_loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: int = 0,
        mode: str = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0,
    ) -> None: ...

class CSVLogger(_Native):
    def __init__(self, filename: _Path, separator: str = ",", append: bool = False) -> None: ...

class TensorBoard(_Native):
    def __init__(
        self,
        log_dir: _Path = "logs",
        histogram_freq: int = 0,
        write_graph: bool = True,
        write_steps_per_second: bool = False,
        update_freq: Union[str, int] = "epoch",
    ) -> None: ...

class TerminateOnNaN(_Native): ...

class RemoteMonitor(_Native):
    def __init__(
        self,
        root: str = "http://localhost:9000",
        path: str = "/publish/epoch/end/",
        field: str = "data",
        headers: Optional[Dict[str, str]] = None,
        send_as_json: bool = False,
    ) -> None: ...

class OpenMetrics(_Native):
    def __init__(self, path: _Path, labels: Optional[Dict[str, str]] = None, every_seconds: float = 10.0) -> None: ...

def describe(callback: Any, model: Model, note_params: Any) -> Any: ...
