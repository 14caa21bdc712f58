#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures training by several ranks (docs/distributed.md) beside bare MPI and PyTorch with Gloo, in turns:

    bench/ranks.py reduce     sums of 1 KB to 100 MB: leat, MPI_Allreduce, Gloo
    bench/ranks.py step       a step by 2 ranks x 1 thread: leat, PyTorch's DistributedDataParallel; leat alone with 2 threads
    bench/ranks.py overlap    what communication adds to a step of ResNet-50 on an emulated network: buckets during the
                              backward pass, and one sum after it
    bench/ranks.py start      from the start of the launcher to the end of the first step of 4 ranks: mpirun, torchrun
    bench/ranks.py scaling    what bench/scaling.py needs: sums, and steps by 2 to 8 ranks on several networks

It builds build/release/bench_ranks.  PyTorch is that of bench/peers/setup torch, or of the interpreter LEAT_TORCH_PYTHON; it
is left out if it is missing.  Each figure is the median of the rounds.
"""
import argparse
import json
import os
import subprocess
import sys
import time

import programs
import table

RANKS = os.path.join(programs.RELEASE, "bench_ranks")
RESNET = os.path.join(programs.RELEASE, "resnet50.json")
TORCH = os.environ.get("LEAT_TORCH_PYTHON") or os.path.join(programs.ROOT, "build", "peers", "torch", "bin", "python")
LIMIT_S = 120
STEPS = {"lstm": (64, 200), "cnn": (64, 60), "resnet50": (8, 6)}  # batch, steps
NETWORK = "10,1"  # Gbit/s and ms


def run(words, environment=None):
    """Runs a program whose last line of output is JSON; returns None if there is no such line."""
    start = time.time()
    environment = dict(os.environ, OMP_NUM_THREADS="1", **(environment or {}))
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S, env=environment)
    lines = done.stdout.strip().split("\n")
    if done.returncode != 0 or not lines[-1].startswith("{"):
        programs.say("%s: exit code %d\n%s" % (" ".join(words), done.returncode, done.stderr[-2000:]))
        return None
    found = json.loads(lines[-1])
    if "first_at" in found:
        found["start_s"] = found["first_at"] - start
    return found


def leat(mpi, ranks, *words):
    """Runs bench_ranks; ranks 0: without MPI."""
    launcher = [os.path.join(programs.ROOT, "tests", "dist", "run-ranks"), mpi, str(ranks)] if ranks else []
    return run(launcher + [RANKS] + [str(word) for word in words])


def torch(ranks, *words):
    if not os.path.exists(TORCH):
        return None
    script = os.path.join(programs.HERE, "peers", "torch_ranks.py")
    return run([TORCH, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(ranks), script] +
               [str(word) for word in words])


def in_turns(rounds, measures):
    """Calls each function once in each round; returns the lists of what they returned, without None."""
    found = {name: [] for name in measures}
    for turn in range(rounds):
        names = list(measures)
        for name in names[turn % len(names):] + names[:turn % len(names)]:
            result = measures[name]()
            if result:
                found[name].append(result)
    return found


def median(results, key):
    return programs.median_of([result[key] for result in results]) if results else None


def ratio(a, b):
    return "%.2fx" % (a / b) if a and b else ""


def milliseconds(us):
    return "%.3g" % (us / 1e3) if us else ""


def model_of(name):
    return RESNET if name == "resnet50" else name


def measure_reduce(arguments):
    rows = []
    for ranks in arguments.ranks:
        found = in_turns(arguments.rounds, {
            "leat": lambda: leat(arguments.mpi, ranks, "reduce", "leat", arguments.max_bytes),
            "bare": lambda: leat(arguments.mpi, ranks, "reduce", "bare", arguments.max_bytes),
            "gloo": lambda: torch(ranks, "reduce", arguments.max_bytes)})
        for i, size in enumerate(found["leat"][0]["sizes"]):
            us = {name: median([result["sizes"][i] for result in results], "median_us") for name, results in found.items()}
            rows.append(dict(ranks=ranks, bytes=size["bytes"], **us))
    print_table(["ranks", "bytes", "leat us", "MPI_Allreduce us", "Gloo us", "leat / MPI", "Gloo / leat"],
                [[str(r["ranks"]), str(r["bytes"])] + ["%.4g" % r[k] if r[k] else "" for k in ("leat", "bare", "gloo")] +
                 [ratio(r["leat"], r["bare"]), ratio(r["gloo"], r["leat"])] for r in rows])
    return rows


def measure_step(arguments):
    rows = []
    for name in arguments.models:
        batch, steps = STEPS[name]
        found = in_turns(arguments.rounds, {
            "leat": lambda: leat(arguments.mpi, 2, "step", model_of(name), batch, steps),
            "alone": lambda: leat(arguments.mpi, 0, "step", model_of(name), batch, steps, "--threads", 2),
            "torch": lambda: torch(2, "step", name, batch, steps)})
        rows.append(dict(model=name, batch=batch, exposed_us=median(found["leat"], "exposed_us"),
                         **{key: median(results, "median_us") for key, results in found.items()}))
    print_table(["model", "batch", "2 ranks ms", "exposed ms", "1 rank, 2 threads ms", "PyTorch, 2 ranks ms", "alone / 2 ranks",
                 "PyTorch / leat"],
                [[r["model"], str(r["batch"])] + [milliseconds(r[k]) for k in ("leat", "exposed_us", "alone", "torch")] +
                 [ratio(r["alone"], r["leat"]), ratio(r["torch"], r["leat"])] for r in rows])
    return rows


def measure_overlap(arguments):
    batch, steps = STEPS["resnet50"]
    words = ("step", RESNET, batch, steps, "--network", arguments.network)
    found = in_turns(arguments.rounds, {"buckets": lambda: leat(arguments.mpi, 2, *words),
                                        "bulk": lambda: leat(arguments.mpi, 2, *words, "--bulk")})
    rows = [dict(way=way, **{key: median(results, key) for key in ("median_us", "exposed_us", "communication_us")})
            for way, results in found.items()]
    print_table(["ResNet-50 at %s Gbit/s, ms" % arguments.network, "step ms", "communication ms", "exposed ms"],
                [[r["way"]] + [milliseconds(r[k]) for k in ("median_us", "communication_us", "exposed_us")] for r in rows])
    print("exposed by buckets / bulk: " + ratio(rows[0]["exposed_us"], rows[1]["exposed_us"]))
    return rows


def measure_start(arguments):
    found = in_turns(arguments.rounds, {"leat": lambda: leat(arguments.mpi, 4, "step", "cnn", 64, 1),
                                        "torch": lambda: torch(4, "step", "cnn", 64, 1)})
    row = {name: median(results, "start_s") for name, results in found.items()}
    print_table(["4 ranks, s to the first step", "torchrun", "torchrun / leat"],
                [["%.3g" % row["leat"], "%.3g" % row["torch"] if row["torch"] else "", ratio(row["torch"], row["leat"])]])
    return [row]


def measure_scaling(arguments):
    """Sums by 2, 4 and 8 ranks; steps of 16 samples for each rank on the networks of bench/scaling.py, and their profiles."""
    sums = [leat(arguments.mpi, ranks, "reduce", "leat", arguments.max_bytes) for ranks in (2, 4, 8)]
    steps, profiles = [], []
    for name in ("cnn", "resnet50"):
        samples, count = (16, 40) if name == "cnn" else (1, 5)
        # Without latency, the smallest buckets are as fast as large ones: they show when each gradient is final.
        profile = leat(arguments.mpi, 2, "step", model_of(name), 2 * samples, count, "--network", "0.5,0")
        profiles.append(dict(profile, model=name, samples=samples))
        for ranks in (2, 4, 8):
            for network in ("0,0", "10,1", "1,0.1"):
                found = leat(arguments.mpi, ranks, "step", model_of(name), ranks * samples, count, "--network", network)
                steps.append(dict(found, model=name, samples=samples, network=network))
    return {"sums": [s for s in sums if s], "profiles": profiles, "steps": steps}


def print_table(heads, rows):
    print("\n".join(table.lines_of(heads, rows, True)), flush=True)


def main():
    kinds = {"reduce": measure_reduce, "step": measure_step, "overlap": measure_overlap, "start": measure_start,
             "scaling": measure_scaling}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="+", choices=list(kinds))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mpi", choices=["openmpi", "mpich"], default="openmpi")
    parser.add_argument("--ranks", type=lambda text: [int(n) for n in text.split(",")], default=[2, 4], help="of reduce")
    parser.add_argument("--max-bytes", type=int, default=100000000, help="of a sum")
    parser.add_argument("--models", type=lambda text: text.split(","), default=list(STEPS), help="of step")
    parser.add_argument("--network", default=NETWORK, help="of overlap: Gbit/s and ms (default %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="also write all figures")
    arguments = parser.parse_args()
    programs.build("bench_ranks", "example_resnet")
    with open(RESNET, "w") as file:
        subprocess.run([os.path.join(programs.RELEASE, "example_resnet"), "--depth", "50", "--pixels", "224", "--classes",
                        "1000", "--json"], stdout=file, check=True)
    found = {"machine": programs.about_machine(), "leat": programs.version_of_leat(), "load": programs.load()}
    for kind in arguments.kinds:
        start = time.time()
        found[kind] = kinds[kind](arguments)
        programs.say("%s: %.0f s, load %s" % (kind, time.time() - start, programs.load()))
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(found, file, indent=1)


main()
