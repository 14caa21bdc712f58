# SPDX-License-Identifier: Apache-2.0
"""PyTorch's DataLoader on ready-made batches: one line of JSON with the figures of bench_feed --json.

Its best setting for this: a batch per index (batch_size=None), persistent workers."""
import argparse
import json
import statistics
import time

import numpy
import torch
from torch.utils.data import DataLoader, Dataset


def compute(us):
    end = time.perf_counter() + us / 1e6
    while time.perf_counter() < end:
        pass


class Batches(Dataset):
    def __init__(self, options):
        self.options = options
        # NumPy's: a tensor would move into shared memory once, and no later batch would carry its bytes.
        self.x = numpy.ones(options.payload // 4, numpy.float32)
        self.y = numpy.zeros(64, numpy.float32)

    def __len__(self):
        return self.options.batches

    def __getitem__(self, index):
        if index >= self.options.batches:
            raise IndexError(index)
        if self.options.work_us:
            compute(self.options.work_us)
        return self.x, self.y


def measure(options):
    torch.set_num_threads(1)
    start = time.perf_counter()
    loader = DataLoader(Batches(options), batch_size=None, num_workers=options.workers, persistent_workers=True)
    passes, gaps, waits, first = [], [], [], 0
    for number in range(options.passes):
        begun = asked = time.perf_counter()
        count = 0
        for _ in loader:
            now = time.perf_counter()
            if count == 0 and number == 0:
                first = now - start
                begun = now
            elif count == 0:
                gaps.append(now - asked)
            waits.append(now - asked)
            if options.step_us:
                compute(options.step_us)
            count += 1
            asked = time.perf_counter()
        passes.append((asked - begun) / (options.batches - (number == 0)))
    us = 1e6
    return {"us_batch": statistics.median(passes) * us, "first_ms": first * 1e3,
            "turnover_us": statistics.median(gaps) * us if gaps else 0, "wait_us": statistics.median(waits) * us}


def main():
    parser = argparse.ArgumentParser()
    for name in ("payload", "workers", "batches", "passes", "work-us", "step-us"):
        parser.add_argument("--" + name, type=int, default=0)
    parser.add_argument("--processes", action="store_true")
    options = parser.parse_args()
    print(json.dumps(dict(measure(options), peer="torch", payload=options.payload, workers=options.workers,
                          kind="processes", version=torch.__version__)), flush=True)


if __name__ == "__main__":
    main()
