#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures training by several ranks (docs/distributed.md) beside bare MPI and PyTorch with Gloo, in turns:

    bench/ranks.py all --write bench/ranks.md    the first four of these kinds, the goals, and a file of all tables
    bench/ranks.py reduce     sums of 1 KB to 100 MB: leat, MPI_Allreduce, Gloo
    bench/ranks.py step       a step by 2 ranks x 1 thread: leat, PyTorch's DistributedDataParallel; leat alone with 2 threads
    bench/ranks.py overlap    what communication adds to a step of ResNet-50 on an emulated network: buckets during the
                              backward pass, and one sum after it
    bench/ranks.py start      from the start of the launcher to the end of the first step of 4 ranks: mpirun, torchrun
    bench/ranks.py scaling    what bench/scaling.py needs: sums, and steps by 2 to 8 ranks on several networks

It builds build/release/bench_ranks.  PyTorch is that of bench/peers/setup torch, or of the interpreter LEAT_TORCH_PYTHON; it
is left out if it is missing.  Each figure is the median of the rounds.  --quick runs everything once and briefly, to see
that it works.
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
LIMIT_S = 300
STEPS = {"lstm": (64, 200), "cnn": (64, 60), "resnet50": (8, 6)}  # batch, steps
TITLES = {"lstm": "LSTM", "cnn": "CNN", "resnet50": "ResNet-50"}
SCALING_MAX_BYTES = 10000000  # of the sums that bench/scaling.py fits: its buckets are not much larger
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


def leat(mpi, ranks, *words, realtime=False):
    """Runs bench_ranks; ranks 0: without MPI."""
    launcher = [os.path.join(programs.ROOT, "tests", "dist", "run-ranks"), mpi, str(ranks)] if ranks else []
    priority = ["chrt", "-r", "1"] if realtime else []
    return run(priority + launcher + [RANKS] + [str(word) for word in words])


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


class Report:
    """Prints tables and verdicts on goals, and keeps them for a file."""

    def __init__(self):
        self.lines, self.goals = [], []

    def say(self, text=""):
        print(text, flush=True)
        self.lines += text.split("\n")

    def table(self, heads, rows):
        self.say("\n".join(table.lines_of(heads, rows, True)) + "\n")

    def goal(self, name, a, b, most=None, least=None):
        """Notes the ratio of two figures, which should be at most or at least a number."""
        if not a or not b:
            self.goals.append([name, "", "<= %g" % most if most else ">= %g" % least, "not measured"])
            return
        found = a / b
        met = found <= most if most else found >= least
        self.goals.append([name, "%.2f" % found, "<= %g" % most if most else ">= %g" % least, "met" if met else "missed"])

    def finish(self):
        self.say("### Goals\n")
        self.table(["goal", "ratio", "", ""], self.goals)


def size_name(count):
    return "%d KB" % (count // 1000) if count < 1000000 else "%d MB" % (count // 1000000)


def measure_reduce(arguments, report):
    rows = []
    for ranks in arguments.ranks:
        found = in_turns(arguments.rounds, {
            "leat": lambda: leat(arguments.mpi, ranks, "reduce", "both", arguments.max_bytes, realtime=arguments.realtime),
            "gloo": lambda: torch(ranks, "reduce", arguments.max_bytes)})
        for i, size in enumerate(found["leat"][0]["sizes"]):
            of = {name: [result["sizes"][i] for result in results] for name, results in found.items()}
            rows.append(dict(ranks=ranks, bytes=size["bytes"], leat=median(of["leat"], "median_us"),
                             bare=median(of["leat"], "bare_us"), gloo=median(of["gloo"], "median_us"),
                             ratios=[s["median_us"] / s["bare_us"] for s in of["leat"]]))
    report.table(["ranks", "sum", "leat us", "MPI_Allreduce us", "Gloo us", "leat / MPI", "rounds", "Gloo / leat"],
                 [[str(r["ranks"]), size_name(r["bytes"])] + ["%.4g" % r[k] if r[k] else "" for k in ("leat", "bare", "gloo")] +
                  [ratio(r["leat"], r["bare"]), "%.2f to %.2f" % (min(r["ratios"]), max(r["ratios"])),
                   ratio(r["gloo"], r["leat"])] for r in rows])
    for r in rows:
        name = "sum of %s, %d ranks, " % (size_name(r["bytes"]), r["ranks"])
        report.goal(name + "leat / MPI", r["leat"], r["bare"], most=1.05)
        report.goal(name + "Gloo / leat", r["gloo"], r["leat"], least=1.5)
    return rows


def measure_step(arguments, report):
    rows = []
    for name in arguments.models:
        batch, steps = steps_of(arguments, name)
        found = in_turns(arguments.rounds, {
            "leat": lambda: leat(arguments.mpi, 2, "step", model_of(name), batch, steps),
            "alone": lambda: leat(arguments.mpi, 0, "step", model_of(name), batch, steps, "--threads", 2),
            "torch": lambda: torch(2, "step", name, batch, steps)})
        rows.append(dict(model=name, batch=batch, exposed_us=median(found["leat"], "exposed_us"),
                         **{key: median(results, "median_us") for key, results in found.items()}))
    report.table(["model", "batch", "2 ranks ms", "exposed ms", "1 rank, 2 threads ms", "PyTorch, 2 ranks ms", "alone / 2 ranks",
                  "PyTorch / leat"],
                 [[TITLES[r["model"]], str(r["batch"])] + [milliseconds(r[k]) for k in ("leat", "exposed_us", "alone", "torch")] +
                  [ratio(r["alone"], r["leat"]), ratio(r["torch"], r["leat"])] for r in rows])
    for r in rows:
        report.goal("step of %s, PyTorch / leat" % TITLES[r["model"]], r["torch"], r["leat"], least=2)
        report.goal("step of %s, alone / 2 ranks" % TITLES[r["model"]], r["alone"], r["leat"], least=0.9)
    return rows


def measure_overlap(arguments, report):
    batch, steps = steps_of(arguments, "resnet50")
    words = ("step", RESNET, batch, steps, "--network", arguments.network)
    found = in_turns(arguments.rounds, {"buckets": lambda: leat(arguments.mpi, 2, *words),
                                        "bulk": lambda: leat(arguments.mpi, 2, *words, "--bulk")})
    rows = [dict(way=way, **{key: median(results, key) for key in ("median_us", "exposed_us", "communication_us")})
            for way, results in found.items()]
    report.table(["ResNet-50 at %s Gbit/s, ms" % arguments.network, "step ms", "communication ms", "exposed ms"],
                 [[r["way"]] + [milliseconds(r[k]) for k in ("median_us", "communication_us", "exposed_us")] for r in rows])
    report.goal("exposed communication, buckets / bulk", rows[0]["exposed_us"], rows[1]["exposed_us"], most=0.5)
    return rows


def measure_start(arguments, report):
    found = in_turns(arguments.rounds, {"leat": lambda: leat(arguments.mpi, 4, "step", "cnn", 64, 1),
                                        "torch": lambda: torch(4, "step", "cnn", 64, 1)})
    row = {name: median(results, "start_s") for name, results in found.items()}
    report.table(["4 ranks, s to the end of the first step", "torchrun", "torchrun / leat"],
                 [["%.3g" % row["leat"], "%.3g" % row["torch"] if row["torch"] else "", ratio(row["torch"], row["leat"])]])
    report.goal("start of 4 ranks, torchrun / leat", row["torch"], row["leat"], least=5)
    return [row]


def measure_scaling(arguments, _):
    """Sums by 2, 4 and 8 ranks; steps of a few samples for each rank on the networks of bench/scaling.py, and their profiles."""
    most = min(arguments.max_bytes, SCALING_MAX_BYTES)
    sums = [leat(arguments.mpi, ranks, "reduce", "leat", most) for ranks in (2, 4, 8)]
    steps, profiles = [], []
    for name in ("cnn", "resnet50"):
        samples, count = (16, 40) if name == "cnn" else (1, 5)
        # One sum in bulk takes nothing from the backward pass; without latency the smallest buckets are as fast as large
        # ones: they show when each gradient is final.
        profile = leat(arguments.mpi, 2, "step", model_of(name), 2 * samples, 2 * count, "--network", "0.5,0", "--bulk")
        profiles.append(dict(profile, model=name, samples=samples))
        for ranks in (2, 4, 8):
            for network in ("0,0", "10,1", "1,0.1"):
                found = leat(arguments.mpi, ranks, "step", model_of(name), ranks * samples, count, "--network", network)
                steps.append(dict(found, model=name, samples=samples, network=network))
    return {"sums": [s for s in sums if s], "profiles": profiles, "steps": steps}


def steps_of(arguments, name):
    """Returns the batch and the number of steps of a model."""
    batch, steps = STEPS[name]
    return batch, 3 if arguments.quick else steps


KINDS = {"reduce": measure_reduce, "step": measure_step, "overlap": measure_overlap, "start": measure_start,
         "scaling": measure_scaling}
ALL = ["reduce", "step", "overlap", "start"]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="+", choices=list(KINDS) + ["all"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one round, few steps, small sums")
    parser.add_argument("--realtime", action="store_true", help="of reduce: leat's ranks have real-time priority (root)")
    parser.add_argument("--mpi", choices=["openmpi", "mpich"], default="openmpi")
    parser.add_argument("--ranks", type=lambda text: [int(n) for n in text.split(",")], default=[2, 4], help="of reduce")
    parser.add_argument("--max-bytes", type=int, default=100000000, help="of a sum")
    parser.add_argument("--models", type=lambda text: text.split(","), default=list(STEPS), help="of step")
    parser.add_argument("--network", default=NETWORK, help="of overlap: Gbit/s and ms (default %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="also write all figures")
    parser.add_argument("--write", metavar="FILE", help="also write the tables, as Markdown")
    arguments = parser.parse_args()
    if "all" in arguments.kinds:
        arguments.kinds = ALL
    if arguments.quick:
        arguments.rounds, arguments.max_bytes = 1, min(arguments.max_bytes, 1000000)
    return arguments


def describe(found, arguments, seconds):
    machine = found["machine"]
    return ["# Several ranks: the figures of one run", "", "    bench/ranks.py %s" % " ".join(sys.argv[1:]), "",
            "%s, %d cores, %s; leat %s; %s; medians of %d rounds, %.0f s in all; load %s at the start, %s at the end." % (
                machine.get("cpu", machine["machine"]), machine["cores"], machine.get("isa", ""), found["leat"],
                {"openmpi": "Open MPI", "mpich": "MPICH"}[arguments.mpi], arguments.rounds, seconds, found["load"][0],
                programs.load()[0]),
            "[README.md](README.md#several-ranks) says how each figure is taken.", ""]


def main():
    arguments, begin, report = parse(), time.time(), Report()
    programs.build("bench_ranks", "example_resnet")
    with open(RESNET, "w") as file:
        subprocess.run([os.path.join(programs.RELEASE, "example_resnet"), "--depth", "50", "--pixels", "224", "--classes",
                        "1000", "--json"], stdout=file, check=True)
    found = {"machine": programs.about_machine(), "leat": programs.version_of_leat(), "load": programs.load()}
    for kind in arguments.kinds:
        start = time.time()
        if kind != "scaling":
            report.say("### %s\n" % kind)
        found[kind] = KINDS[kind](arguments, report)
        programs.say("%s: %.0f s, load %s" % (kind, time.time() - start, programs.load()))
    if report.goals:
        report.finish()
    if arguments.write:
        with open(arguments.write, "w") as file:
            file.write("\n".join(describe(found, arguments, time.time() - begin) + report.lines).rstrip() + "\n")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(found, file, indent=1)


main()
