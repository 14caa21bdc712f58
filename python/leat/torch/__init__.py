# SPDX-License-Identifier: Apache-2.0
"""leat's feed behind the names of PyTorch's loader.

    from leat.torch import DataLoader       # in place of torch.utils.data.DataLoader

    loader = DataLoader(dataset, batch_size=64, shuffle=True, num_workers=4)
    for x, y in loader:
        ...

DataLoader has all arguments of torch.utils.data.DataLoader, of which it is a subclass, and those of leat.Feed that it
lacks.  StatefulDataLoader has torchdata's arguments, too.
"""

from leat.torch.loader import DataLoader, LateBatchError, StatefulDataLoader, WorkerDiedError

__all__ = ["DataLoader", "LateBatchError", "StatefulDataLoader", "WorkerDiedError"]
