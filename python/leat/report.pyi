# SPDX-License-Identifier: Apache-2.0
from typing import Any, Iterator, Optional, TextIO

from leat.feed import Feed

def progress(feed: Feed, file: Optional[TextIO] = None, every: float = 0.1) -> Iterator[Any]: ...
def make_html(feed: Feed) -> str: ...
