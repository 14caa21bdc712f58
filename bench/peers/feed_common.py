# SPDX-License-Identifier: Apache-2.0
"""What the peers of bench_feed have in common: they measure the same figures in the same way.

A peer reads its request from the command line (`--payload 1024 --workers 2 ...`) or, with --serve, requests as lines of JSON
from standard input, so that it starts and imports only once.  Each answer is one line of JSON."""
import argparse
import gc
import json
import os
import statistics
import sys
import time

DEFAULTS = {"payload": 1024, "workers": 2, "batches": 200, "passes": 3, "work_us": 0, "tax": 0, "queue": 10,
            "processes": False, "first": False, "kill": False, "sharing": ""}
WARM_UP_US = 300000
BLOCK_S = 1.0


def compute(us):
    """Computes for so much CPU time; time in which other programs use the core does not count."""
    end = time.thread_time() + us / 1e6
    while time.thread_time() < end:
        pass


def options_of(wishes):
    return argparse.Namespace(**dict(DEFAULTS, **wishes))


def time_passes(begin_pass, options, first):
    """Times passes from their first batch to their last, and from the last batch to the next pass's first.  begin_pass()
    returns an iterator over the batches of a pass; `first` is the pass that was begun to time the first batch."""
    passes, gaps, waits = [], [], []
    for number in range(options.passes):
        if number > 0:
            asked = time.perf_counter()
            first = begin_pass()
            next(first)
            gaps.append(time.perf_counter() - asked)
        begun = time.perf_counter()
        for _ in range(1, options.batches):
            asked = time.perf_counter()
            next(first)
            waits.append(time.perf_counter() - asked)
        passes.append((time.perf_counter() - begun) / (options.batches - 1))
    us = 1e6
    return {"us_batch": statistics.median(passes) * us, "turnover_us": statistics.median(gaps) * us if gaps else 0,
            "wait_us": statistics.median(waits) * us}


def time_steps(batches, options):
    begun = now = time.perf_counter()
    steps = waited = 0
    while steps < options.batches and now - begun < BLOCK_S:
        if batches is not None:
            batch = next(batches)
            waited += time.perf_counter() - now
        compute(options.tax)
        batch = None  # as a trainer, keep the batch until here
        steps += 1
        now = time.perf_counter()
    del batch
    return (now - begun) / steps, waited / steps


def time_tax(batches, options):
    """Times the same steps without a feed and with it, in turns."""
    compute(WARM_UP_US)
    alone, stretch, waits = [], [], []
    for _ in range(options.passes):
        alone.append(time_steps(None, options)[0])
        step, waited = time_steps(batches, options)
        stretch.append(step - alone[-1])
        waits.append(waited)
    us = 1e6
    return {"alone_us": statistics.median(alone) * us,
            "step_us": (statistics.median(alone) + statistics.median(stretch)) * us,
            "wait_us": statistics.median(waits) * us}


def answer(measure, wishes, about):
    options = options_of(wishes)
    gc.collect()
    figures = dict(measure(options), payload=options.payload, workers=options.workers,
                   kind="processes" if options.processes else "threads", **about)
    print(json.dumps(figures), flush=True)


def main(measure, about):
    parser = argparse.ArgumentParser()
    for name, value in DEFAULTS.items():
        option = "--" + name.replace("_", "-")
        if value is False:
            parser.add_argument(option, action="store_true")
        else:
            parser.add_argument(option, type=type(value), default=value)
    parser.add_argument("--serve", action="store_true")
    options = vars(parser.parse_args())
    if not options.pop("serve"):
        answer(measure, options, about)
    else:
        for line in sys.stdin:
            answer(measure, json.loads(line), about)
    sys.stdout.flush()
    os._exit(0)  # do not wait for processes that are still working
