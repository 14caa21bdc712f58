# SPDX-License-Identifier: Apache-2.0
"""What the peers of bench_gpu have in common: rows, their names, and the clock.

A row is one line of JSON: {"row": "mlp-64-f32", "program": "PyTorch", "setting": "graph", "us": 1.5, "us_ahead": 1.1, ...}.
us: a step that copies a batch from pinned memory and reads its loss.  us_ahead: the same without reading the loss."""
import argparse
import json
import statistics
import time

SHAPES = {"mlp": (784,), "lstm": (64, 32), "cnn": (28, 28, 1), "resnet50": (224, 224, 3)}
CLASSES = {"mlp": 10, "lstm": 0, "cnn": 10, "resnet50": 1000}  # 0: one number, mean squared error
ROUNDS = 5


class Row:
    """A row by its name, MODEL-BATCH-PRECISION."""

    def __init__(self, name):
        self.name = name
        self.model, batch, self.precision = name.split("-")
        self.batch = int(batch)
        if self.model not in SHAPES or self.precision not in ("f32", "bf16"):
            raise ValueError("%s: expected MODEL-BATCH-PRECISION, such as mlp-64-f32" % name)
        self.shape, self.classes = SHAPES[self.model], CLASSES[self.model]


def emit(row, program, setting, **figures):
    print(json.dumps(dict({"row": row, "program": program, "setting": setting}, **figures)), flush=True)


def per_step_us(once, finish, seconds):
    """Returns the us of one call of once(i), the median of some rounds.  finish() waits for the device."""
    count, i = 1, 0
    for i in range(6):  # some compile again for the second batch
        once(i)
    finish()
    while True:  # so many calls take about a round
        start = time.perf_counter()
        for _ in range(count):
            once(i)
            i += 1
        finish()
        spent = time.perf_counter() - start
        if spent > seconds / ROUNDS / 2:
            break
        count *= 2
    rounds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(count):
            once(i)
            i += 1
        finish()
        rounds.append((time.perf_counter() - start) / count)
    return statistics.median(rounds) * 1e6


def arguments(text, settings):
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("row", help="MODEL-BATCH-PRECISION, stream, peak, or first:MODEL-BATCH-PRECISION")
    parser.add_argument("--settings", default=None, help="some of %s, with commas" % ",".join(settings))
    parser.add_argument("--device", default="cuda", help="cuda or cpu (to try the script)")
    parser.add_argument("--seconds", type=float, default=0.6, help="about how long a figure is measured")
    parser.add_argument("--warm", action="store_true", help="measure nothing: fill the compiler's caches")
    found = parser.parse_args()
    found.settings = found.settings.split(",") if found.settings else None
    return found
