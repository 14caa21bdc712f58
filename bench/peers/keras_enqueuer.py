# SPDX-License-Identifier: Apache-2.0
"""Keras 2.3.1's OrderedEnqueuer on ready-made batches: one line of JSON with the figures of bench_feed --json.

Only keras/utils/data_utils.py runs, from the installed package: no TensorFlow is loaded, which makes the fork of each
epoch's pool as cheap as it can be."""
import argparse
import importlib.util
import json
import os
import signal
import statistics
import sys
import time
import types

import numpy


def enqueuer_module():
    root = os.path.dirname(importlib.util.find_spec("keras").origin)
    for name, path in (("keras", root), ("keras.utils", os.path.join(root, "utils"))):
        package = types.ModuleType(name)
        package.__path__ = [path]
        sys.modules[name] = package
    import keras.utils.data_utils as module

    return module


data_utils = enqueuer_module()


class Batches(data_utils.Sequence):
    def __init__(self, options, victim):
        self.options, self.victim = options, victim
        self.x = numpy.ones(options.payload // 4, numpy.float32)
        self.y = numpy.zeros(64, numpy.float32)

    def __len__(self):
        return self.options.batches

    def __getitem__(self, index):
        if self.victim and index == self.victim[0]:
            self.victim[1] = os.getpid()
        if self.options.work_us:
            end = time.perf_counter() + self.options.work_us / 1e6
            while time.perf_counter() < end:
                pass
        return self.x, self.y


def compute(us):
    end = time.perf_counter() + us / 1e6
    while time.perf_counter() < end:
        pass


def measure(options, victim):
    sequence = Batches(options, victim)
    feed = data_utils.OrderedEnqueuer(sequence, use_multiprocessing=options.processes)
    start = time.perf_counter()
    feed.start(workers=options.workers, max_queue_size=10)
    batches = feed.get()
    next(batches)
    first = time.perf_counter() - start
    if victim:
        return {"first_ms": first * 1e3, "kill_ms": time_kill(batches, victim)}
    passes, gaps, waits = [], [], []
    for number in range(options.passes):
        begun = time.perf_counter()
        for i in range(1 if number == 0 else 0, options.batches):
            asked = time.perf_counter()
            next(batches)
            waited = time.perf_counter() - asked
            waits.append(waited)
            if i == 0:
                gaps.append(waited)
            if options.step_us:
                compute(options.step_us)
        passes.append((time.perf_counter() - begun) / (options.batches - (number == 0)))
    feed.stop()
    us = 1e6
    return {"us_batch": statistics.median(passes) * us, "first_ms": first * 1e3,
            "turnover_us": statistics.median(gaps) * us if gaps else 0, "wait_us": statistics.median(waits) * us}


def time_kill(batches, victim):
    for _ in range(1, victim[0]):
        next(batches)
    while victim[1] == 0:
        time.sleep(0.00005)
    start = time.perf_counter()
    os.kill(victim[1], signal.SIGKILL)
    next(batches)
    return (time.perf_counter() - start) * 1e3


def main():
    parser = argparse.ArgumentParser()
    for name in ("payload", "workers", "batches", "passes", "work-us", "step-us"):
        parser.add_argument("--" + name, type=int, default=0)
    parser.add_argument("--processes", action="store_true")
    parser.add_argument("--kill", action="store_true")
    options = parser.parse_args()
    victim = None
    if options.kill:
        import multiprocessing

        # Near enough that it is not made, and killed over, before anybody waits for it.
        victim = multiprocessing.Array("q", [15, 0], lock=False)
    figures = measure(options, victim)
    print(json.dumps(dict(figures, peer="keras", payload=options.payload, workers=options.workers,
                          kind="processes" if options.processes else "threads", version="2.3.1")), flush=True)
    os._exit(0)  # the pool of the epoch after the last one is still at work


if __name__ == "__main__":
    main()
