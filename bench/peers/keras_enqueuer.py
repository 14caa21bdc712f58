# SPDX-License-Identifier: Apache-2.0
"""Keras 2.3.1's OrderedEnqueuer on ready-made batches, with the figures of bench_feed --json.

Only keras/utils/data_utils.py of the installed package is loaded, without TensorFlow, so that forking the pool of each
epoch is as cheap as possible."""
import importlib.util
import multiprocessing
import os
import signal
import statistics
import sys
import time
import types

import numpy

import feed_common


def enqueuer_module():
    root = os.path.dirname(importlib.util.find_spec("keras").origin)
    for name, path in (("keras", root), ("keras.utils", os.path.join(root, "utils"))):
        package = types.ModuleType(name)
        package.__path__ = [path]
        sys.modules[name] = package
    import keras.utils.data_utils as module

    return module


data_utils = enqueuer_module()
VICTIM = 9  # this batch begins when the first was taken and the queue behind it is full


class Batches(data_utils.Sequence):
    def __init__(self, options, victim):
        self.options, self.victim = options, victim
        self.x = numpy.ones(options.payload // 4, numpy.float32)
        self.y = numpy.zeros(64, numpy.float32)

    def __len__(self):
        return 1000000 if self.options.tax else self.options.batches

    def __getitem__(self, index):
        if self.victim and index == VICTIM:
            self.victim[0] = os.getpid()
        if self.options.work_us:
            feed_common.compute(self.options.work_us)
        return self.x, self.y


def open_feed(options, victim=None):
    """Returns the enqueuer, its stream of batches, and the ms until the first batch."""
    sequence = Batches(options, victim)
    start = time.perf_counter()
    feed = data_utils.OrderedEnqueuer(sequence, use_multiprocessing=options.processes)
    feed.start(workers=options.workers, max_queue_size=options.queue)
    batches = feed.get()
    next(batches)
    return feed, batches, (time.perf_counter() - start) * 1e3


def close_feed(feed):
    """Stops the enqueuer and waits for the pool's processes, which first finish their work; stop() does not wait."""
    feed.stop()
    patience = time.perf_counter() + 30
    while multiprocessing.active_children() and time.perf_counter() < patience:
        time.sleep(0.002)


def time_kill(options):
    victim = multiprocessing.Array("q", [0], lock=False)
    _, batches, _ = open_feed(options, victim)
    while victim[0] == 0:
        time.sleep(0.00005)
    time.sleep(options.work_us / 2e6)
    start = time.perf_counter()
    os.kill(victim[0], signal.SIGKILL)
    for _ in range(VICTIM):
        next(batches)
    return {"kill_ms": (time.perf_counter() - start) * 1e3 - options.work_us / 1e3}


def measure(options):
    if options.kill:
        return time_kill(options)
    if options.first:
        times = []
        for _ in range(options.passes):
            feed, _, first_ms = open_feed(options)
            times.append(first_ms)
            close_feed(feed)
        return {"first_ms": statistics.median(times)}
    feed, batches, first_ms = open_feed(options)
    if options.tax:
        figures = feed_common.time_tax(batches, options)
    else:
        figures = feed_common.time_passes(lambda: batches, options, batches)
    close_feed(feed)
    return dict(figures, first_ms=first_ms)


if __name__ == "__main__":
    feed_common.main(measure, {"peer": "keras", "version": "2.3.1", "python": sys.version.split()[0],
                               "numpy": numpy.__version__})
