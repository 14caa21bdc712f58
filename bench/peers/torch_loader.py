# SPDX-License-Identifier: Apache-2.0
"""PyTorch's DataLoader on ready-made batches, with the figures of bench_feed --json.

It makes a batch per index (batch_size=None) with persistent workers, prefetches --queue batches in total, and shares tensors
as --sharing says (file_descriptor, file_system; bench/compare-feed uses the faster one)."""
import os
import signal
import statistics
import sys
import time

import numpy
import torch
import torch.multiprocessing
from torch.utils.data import DataLoader, Dataset

import feed_common

VICTIM = 9  # this batch begins when the first was taken and the others are being prefetched


class Batches(Dataset):
    def __init__(self, options, victim):
        self.options, self.victim = options, victim
        # A NumPy array: a tensor would be moved to shared memory once, and later batches would not copy it.
        self.x = numpy.ones(options.payload // 4, numpy.float32)
        self.y = numpy.zeros(64, numpy.float32)

    def __len__(self):
        return 1000000 if self.options.tax else self.options.batches

    def __getitem__(self, index):
        if index >= len(self):
            raise IndexError(index)
        if self.victim is not None and index == VICTIM:
            self.victim[0] = os.getpid()
        if self.options.work_us:
            feed_common.compute(self.options.work_us)
        return self.x, self.y


def open_loader(options, victim=None):
    """Returns the loader, its first pass, and the ms until the first batch."""
    batches = Batches(options, victim)
    start = time.perf_counter()
    loader = DataLoader(batches, batch_size=None, num_workers=options.workers, persistent_workers=options.workers > 0,
                        prefetch_factor=max(1, options.queue // options.workers) if options.workers else None)
    first_pass = iter(loader)
    next(first_pass)
    return loader, first_pass, (time.perf_counter() - start) * 1e3


def time_kill(options):
    """Kills a worker.  Training then ends with an error; returns the ms until this error."""
    victim = torch.zeros(1, dtype=torch.int64).share_memory_()
    _, batches, _ = open_loader(options, victim)
    while int(victim[0]) == 0:
        time.sleep(0.00005)
    time.sleep(options.work_us / 2e6)
    start = time.perf_counter()
    os.kill(int(victim[0]), signal.SIGKILL)
    try:
        for _ in range(VICTIM):
            next(batches)
    except Exception as error:  # RuntimeError, or an error of the connection to the worker
        return {"kill_error": repr(error)[:200], "kill_error_ms": (time.perf_counter() - start) * 1e3}
    return {"kill_ms": (time.perf_counter() - start) * 1e3 - options.work_us / 1e3}


def time_first(options):
    times = []
    for _ in range(options.passes):
        loader, first_pass, first_ms = open_loader(options)
        times.append(first_ms)
        del first_pass, loader
    return {"first_ms": statistics.median(times)}


def measure(options):
    torch.set_num_threads(1)
    if options.sharing:
        torch.multiprocessing.set_sharing_strategy(options.sharing)
    if options.kill:
        return time_kill(options)
    if options.first:
        return time_first(options)
    loader, first_pass, first_ms = open_loader(options)
    if options.tax:
        figures = feed_common.time_tax(first_pass, options)
    else:
        figures = feed_common.time_passes(lambda: iter(loader), options, first_pass)
    del first_pass, loader
    return dict(figures, first_ms=first_ms)


if __name__ == "__main__":
    feed_common.main(measure, {"peer": "torch", "version": torch.__version__, "python": sys.version.split()[0],
                               "numpy": numpy.__version__})
