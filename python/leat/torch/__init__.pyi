# SPDX-License-Identifier: Apache-2.0
from leat.torch._engine import LateBatchError as LateBatchError
from leat.torch._engine import WorkerDiedError as WorkerDiedError
from leat.torch.loader import DataLoader as DataLoader
from leat.torch.loader import StatefulDataLoader as StatefulDataLoader
