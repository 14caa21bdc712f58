#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Joins the rows that tools/gpu-check measured into Markdown tables: bench/gpu/table.py ROWS.jsonl...

Where a row was measured more than once, the last figure counts.  A ratio is the fastest peer's time divided by leat's: above 1
leat is faster.  "best" of PyTorch is its fastest setting.  Times of steps are of those that copy a batch and read its loss,
and in brackets of those that do not read it.  leat's time is the faster of leat_model_train_on_batch and leat_model_fit: the
peers' loops also copy the next batch while a step computes."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from table import lines_of, number, ratio  # noqa: E402  (bench/table.py)

NAMES = {"mlp": "MLP 784-512-512-10, Adam step", "lstm": "LSTM(64) x 64 steps, Adam step", "cnn": "CNN 28x28, Adam step",
         "resnet50": "ResNet-50, SGD step"}
# Operations of one sample, forward: 2 for each product that is added.
FLOPS = {"mlp": 1.337e6, "lstm": 3.146e6, "cnn": 2.399e7, "resnet50": 7.715e9}
ORDER = ["%s-%s" % (model, rest) for rest in ("64-f32", "1024-f32") for model in ("mlp", "lstm", "cnn")] + [
    "resnet50-64-f32", "resnet50-64-bf16", "mlp-1024-bf16", "lstm-1024-bf16", "cnn-1024-bf16"]


def goal_of(row):
    model, batch, _ = row.split("-")
    return 1.05 if model == "resnet50" else 3 if batch == "64" else 1.3


def title_of(row):
    model, batch, precision = row.split("-")
    return "%s %s%s" % (NAMES[model], batch, "" if precision == "f32" else ", " + precision)


def read(paths):
    """Returns {row: {(program, setting): figures}}."""
    found = {}
    for path in paths:
        with open(path) as lines:
            for line in lines:
                row = json.loads(line)
                if "error" not in row:
                    found.setdefault(row["row"], {})[row["program"], row["setting"]] = row
    return found


def best(figures, program, key, wanted=lambda setting: True):
    """Returns (the least figure, its setting) of a program; (None, "") without one."""
    found = [(row[key], setting) for (who, setting), row in figures.items() if who == program and row.get(key) and wanted(setting)]
    return min(found) if found else (None, "")


def on_gpu(setting):
    return setting.split()[0] != "cpu"


def pair(us, ahead):
    return number(us) + (" (%s)" % number(ahead) if ahead else "")


def steps_of(rows, peak):
    heads = ["work", "leat us", "PyTorch eager", "compile", "graph", "graph+compile", "graph+autotune", "JAX", "best peer",
             "ratio", "goal", "ratio unread", "of the peak"]
    lines = []
    for row in (name for name in ORDER if name in rows):
        figures, goal = rows[row], goal_of(row)
        mine, ahead = (best(figures, "leat", key, on_gpu)[0] for key in ("us", "us_ahead"))
        cells = [pair(*(figures.get(("PyTorch", setting), {}).get(key) for key in ("us", "us_ahead")))
                 for setting in ("eager", "compile", "graph", "graph+compile", "graph+autotune")]
        cells.append(pair(*(best(figures, "JAX", key)[0] for key in ("us", "us_ahead"))))
        theirs = [min(([best(figures, program, key)[0]] for program in ("PyTorch", "JAX") if best(figures, program, key)[0]),
                      default=[None])[0] for key in ("us", "us_ahead")]
        torch, setting = best(figures, "PyTorch", "us")
        name = "PyTorch " + setting if torch == theirs[0] else "JAX"
        reached = theirs[0] / mine if mine and theirs[0] else None
        model, batch, precision = row.split("-")
        limit = peak.get("bf16_tflops" if precision == "bf16" else "f32_tflops")
        part = 3 * FLOPS[model] * int(batch) / (mine * 1e6 * limit) if mine and limit else None
        lines.append([title_of(row), pair(mine, ahead), *cells, name if theirs[0] else "-", ratio(reached) if reached else "-",
                      "%gx %s" % (goal, "-" if reached is None else "met" if reached >= goal else "MISSED"),
                      ratio(theirs[1] / ahead) if ahead and theirs[1] else "-", "%.1f %%" % (100 * part) if part else "-"])
    return lines_of(heads, lines, True) if lines else []


def fed_of(rows):
    """fit, in which the feed makes the batches, beside the same step on arrays that are ready."""
    lines = []
    for row in (name for name in ORDER if name in rows):
        fed = rows[row].get(("leat", "cuda fit"))
        ready = rows[row].get(("leat", "cuda"))
        if fed and ready:
            reached = ready["us"] / fed["us"]
            goal = ("0.98x " + ("met" if reached >= 0.98 else "MISSED")) if row.startswith("resnet50") else "-"
            lines.append([title_of(row), number(ready["us"]), number(fed["us"]), number(fed["wait_us"]), number(fed["compute_us"]),
                          ratio(reached), goal])
    heads = ["work", "train_on_batch us", "fit us", "waiting", "computing", "ratio", "goal"]
    return lines_of(heads, lines, True) if lines else []


def places_of(rows):
    """The small models on the GPU and on the CPU."""
    lines = []
    for row in [name for name in ORDER if name in rows] + ["stream"]:
        figures = rows.get(row, {})
        gpu, cpu = best(figures, "leat", "us", on_gpu)[0], best(figures, "leat", "us", lambda s: not on_gpu(s))[0]
        if cpu:
            theirs = [best(figures, program, "us") for program in ("PyTorch", "JAX")]
            lines.append([title_of(row) if row != "stream" else "LSTM(64), one stateful step", number(gpu), number(cpu),
                          "-" if not gpu else "GPU" if gpu < cpu else "CPU",
                          *("%s %s" % (number(us), setting) if us else "-" for us, setting in theirs)])
    heads = ["work", "leat, GPU us", "leat, CPU us", "faster", "PyTorch", "JAX"]
    return lines_of(heads, lines, True) if lines else []


def starts_of(rows):
    lines = []
    for model in ("mlp", "cnn"):
        figures = rows.get("start-" + model, {})
        values = [best(figures, program, "us")[0] for program in ("leat", "PyTorch", "JAX")]
        if values[0]:
            reached = values[1] / values[0] if values[1] else None
            lines.append(["start to the end of the first step, " + model, *("%.2f" % (v / 1e6) if v else "-" for v in values),
                          ratio(reached) if reached else "-",
                          "5x %s" % ("-" if reached is None else "met" if reached >= 5 else "MISSED")])
    return lines_of(["work", "leat s", "PyTorch s", "JAX s", "ratio to PyTorch", "goal"], lines, True) if lines else []


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    rows = read(sys.argv[1:])
    peak = rows.get("peak", {}).get(("PyTorch", "measured"), {})
    if peak:
        print("Measured peaks of %s: %.1f TFLOP/s in float32, %.0f in bf16; copies %.0f GB/s read and written; %.1f GB/s to the "
              "device, %.1f back.\n" % (peak["device"], peak["f32_tflops"], peak["bf16_tflops"], peak["copy_gbps"],
                                        peak["to_device_gbps"], peak["to_host_gbps"]))
    for lines in (steps_of(rows, peak), fed_of(rows), places_of(rows), starts_of(rows)):
        if lines:
            print("\n".join(lines) + "\n")


main()
