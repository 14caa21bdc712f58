# SPDX-License-Identifier: Apache-2.0
from typing import Any, Dict, List, Optional

from leat.model import Model

class History:
    model: Optional[Model]
    params: Dict[str, Any]
    epoch: List[int]
    history: Dict[str, List[float]]
    stop_reason: Optional[str]
    verdict: str
    def __init__(self, model: Optional[Model] = None) -> None: ...
    def to_dict(self) -> Dict[str, Any]: ...
