# SPDX-License-Identifier: Apache-2.0
"""Finds the workers and the queue with which training waits least, by trying them."""

import html
import os
import time
from typing import NamedTuple

from leat.feed import Feed

_TIE = 0.05  # Rates that differ by less are equal: fewer workers win.


class Trial(NamedTuple):
    """One setting, and what it reached."""

    workers: int
    kind: str
    max_queue_size: int
    rate: float  # batches per second
    waiting: float  # share of the time, 0 to 1


class Tuning:
    """What leat.tune has found: `best`, arguments for leat.Feed; `trials`, a list of Trial."""

    def __init__(self, trials):
        self.trials = trials
        fastest = max(trial.rate for trial in trials)
        equal = [trial for trial in trials if trial.rate >= fastest * (1 - _TIE)]
        chosen = min(equal, key=lambda trial: (trial.workers, trial.max_queue_size))
        self.best = {"workers": chosen.workers, "max_queue_size": chosen.max_queue_size}
        if chosen.workers:
            self.best["kind"] = chosen.kind

    def _rows(self):
        for trial in self.trials:
            is_best = (trial.workers, trial.max_queue_size) == (self.best["workers"], self.best["max_queue_size"])
            kind = trial.kind if trial.workers else "inline"
            mark = is_best and self.best.get("kind", trial.kind) == trial.kind
            figures = f"{trial.rate:.4g}", f"{100 * trial.waiting:.0f} %"
            yield (str(trial.workers), kind, str(trial.max_queue_size), *figures, "best" if mark else "")

    def __repr__(self):
        lines = ["workers  kind     queue  batches/s  waiting"]
        lines += [f"{w:>7}  {k:8} {q:>5}  {r:>9}  {s:>7}  {m}".rstrip() for w, k, q, r, s, m in self._rows()]
        return "\n".join(lines)

    def _repr_html_(self):
        head = "".join(f"<th>{name}</th>" for name in ("workers", "kind", "queue", "batches/s", "waiting", ""))
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in self._rows()
        )
        return f"<table><tr>{head}</tr>{body}</table>"


def _measure(make_feed, step, seconds, setting):
    """Takes batches for a time, of which a quarter warms up."""
    with make_feed(**setting) as feed:
        begin = now = time.perf_counter()
        start, taken, waited_before = None, 0, 0
        while now - begin < seconds or taken < 2:
            for batch in feed:
                step(batch)
                now = time.perf_counter()
                if start is not None:
                    taken += 1
                elif now - begin >= seconds / 4:
                    start, waited_before = now, feed.stats()["wait_ns"]
                if now - begin >= seconds and taken >= 2:
                    break
            else:
                if not feed.has_more:
                    break
        elapsed = now - start if start is not None else 0.0
        waited = (feed.stats()["wait_ns"] - waited_before) / 1e9
    rate = taken / elapsed if elapsed > 0 else 0.0
    share = min(1.0, waited / elapsed) if elapsed > 0 else 1.0
    return Trial(setting["workers"], setting["kind"], setting["max_queue_size"], rate, share)


def tune(
    data=None, batch_size=None, *, step=None, seconds=2.0, workers=None, kinds=("process",), make_feed=None, **more
):
    """Tries numbers of workers and queues, and returns a Tuning: feed = leat.Feed(data, **leat.tune(data).best).

    data, batch_size, more: as for leat.Feed.
    step: what is done with a batch, such as a training step; default: nothing, and then the fastest data wins.
    seconds: the time of one trial, without the start of its workers' interpreter.
    workers: the numbers to try; default: 0, 1, 2, 4 ... up to twice the cores, as long as more are faster.
    kinds: kinds of workers to try.
    make_feed: a function of workers, kind and max_queue_size that returns a feed, in place of `data`.
    """
    if make_feed is None:

        def make_feed(**setting):
            return Feed(data, batch_size, **{**more, **setting})

    cores = len(os.sched_getaffinity(0))
    numbers = list(workers) if workers is not None else [0, *(1 << i for i in range(10) if 1 << i <= 2 * cores)]
    trials = []
    for kind in kinds:
        best = 0.0
        for number in numbers:
            if number == 0 and kind != kinds[0]:
                continue
            setting = {"workers": number, "kind": kind, "max_queue_size": 10}
            trial = _measure(make_feed, step or (lambda batch: None), seconds, setting)
            trials.append(trial)
            if workers is None and number > 1 and trial.rate < best * (1 + _TIE):
                break
            best = max(best, trial.rate)
    fastest = max(trials, key=lambda trial: trial.rate)
    if fastest.workers and fastest.waiting > 0.02:  # A longer queue helps if single batches are slow.
        setting = {"workers": fastest.workers, "kind": fastest.kind, "max_queue_size": 40}
        trials.append(_measure(make_feed, step or (lambda batch: None), seconds, setting))
    return Tuning(trials)
