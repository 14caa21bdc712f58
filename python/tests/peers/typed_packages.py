# SPDX-License-Identifier: Apache-2.0
"""A program with leat.torch, leat.keras and leat.jax that `mypy --strict` accepts.  docs/python/install.md has the command."""

from typing import Any, Iterator, Tuple

import leat
import leat.jax
import leat.keras
import leat.torch
from torch import Tensor, zeros
from torch.utils.data import Dataset


class Samples(Dataset[Tensor]):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> Tensor:
        return zeros(4)


def main() -> None:
    loader = leat.torch.DataLoader(Samples(), batch_size=16, shuffle=True, num_workers=2, seed=1, retries=1)
    for batch in loader:
        print(batch)
    position = loader.state_dict()
    loader.load_state_dict(position)
    stateful: leat.torch.StatefulDataLoader[Tensor] = leat.torch.StatefulDataLoader(Samples(), batch_size=4)
    print(loader.stats(), stateful.snapshot_every_n_steps)
    enqueuer = leat.keras.OrderedEnqueuer([(zeros(1), zeros(1))], use_multiprocessing=True, seed=1)
    enqueuer.start(workers=2, max_queue_size=10)
    batches: Iterator[Any] = enqueuer.get()
    print(next(batches))
    enqueuer.stop()
    with leat.keras.PyDataset(Samples(), 16, workers=2) as data:
        print(len(data), data.num_batches)
    with leat.Feed(Samples(), batch_size=16) as feed:
        pairs: Tuple[Any, ...] = tuple(leat.jax.iterate(feed, prefetch=2))
        print(len(pairs), leat.jax.put(pairs[0]))


if __name__ == "__main__":
    main()
