# SPDX-License-Identifier: Apache-2.0
from typing import Any, Dict, List, Optional

from leat.model import Model

class History:
    params: Dict[str, Any]
    epoch: List[int]
    history: Dict[str, List[float]]
    stop_reason: Optional[str]
    verdict: str
    def __init__(self, model: Optional[Model] = None) -> None: ...
    @property
    def model(self) -> Optional[Model]: ...
    def __getstate__(self) -> Dict[str, Any]: ...
    def to_dict(self) -> Dict[str, Any]: ...
