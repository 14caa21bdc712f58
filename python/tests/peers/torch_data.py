# SPDX-License-Identifier: Apache-2.0
"""Data sets for test_torch.py, in a module of their own, because worker processes import it."""

import os
import time

import numpy
import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info


class Numbers(Dataset):
    """Sample i is i, with random numbers."""

    def __init__(self, count=30, scale=1):
        self.count = count
        self.scale = scale

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.scale * index, torch.rand(2), numpy.random.rand()


class Nested(Numbers):
    def __getitem__(self, index):
        array = numpy.arange(index, index + 2)
        return {"x": torch.full((3,), float(index)), "pair": (index, f"name {index}"), "array": array}


class Faulty(Numbers):
    """Does something bad at sample 5; once only, if there is a marker."""

    def __init__(self, fault, marker=None):
        super().__init__(12)
        self.fault = fault
        self.marker = marker

    def __getitem__(self, index):
        if index == 5 and not (self.marker and os.path.exists(self.marker)):
            if self.marker:
                open(self.marker, "w").close()
            getattr(self, self.fault)()
        return index

    def raises(self):
        raise KeyError("no such picture")

    def dies(self):
        os.kill(os.getpid(), 9)

    def sleeps(self):
        time.sleep(60)


class Where(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, index):
        info = get_worker_info()
        return info.id, info.num_workers, info.dataset.count if hasattr(info.dataset, "count") else -1


class Shares(IterableDataset):
    """Each worker yields its share, of another length than those of the other workers."""

    def __init__(self, counts):
        self.counts = counts

    def __iter__(self):
        info = get_worker_info()
        number = info.id if info else 0
        for i in range(self.counts[number]):
            yield 100 * number + i, torch.rand(1).item()


class Resumable(Shares):
    """Has a state, with which it continues where it was without making the samples before."""

    def __init__(self, counts):
        super().__init__(counts)
        self.at = 0

    def __iter__(self):
        info = get_worker_info()
        number = info.id if info else 0
        while self.at < self.counts[number]:
            self.at += 1
            yield 100 * number + self.at - 1, torch.rand(1).item()
        self.at = 0

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


class Unpicklable(Numbers):
    def __init__(self):
        super().__init__(6)
        self.function = lambda value: value


def seed_torch(number):
    torch.manual_seed(1234)


def fail_to_begin(number):
    raise ValueError("the file is missing")
