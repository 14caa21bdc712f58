#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A model of the time of a training step by many ranks (bench/scaling.md):

    bench/scaling.py --measure build/scaling.json --plot docs/scaling.svg --write bench/scaling.md
    bench/scaling.py build/scaling.json                   # again, without measuring

--measure runs `bench/ranks.py scaling`: sums, profiles of steps, and steps by 2 to 8 ranks.  It knows leat's sums (src/dist/mpi/sums.c), the rule by which buckets get their size (src/train/parallel/buckets.c) and the
messages of a step.  It prints the fitted costs, predicted beside measured steps, and what follows for 64 to 4096 nodes.
"""
import argparse
import contextlib
import io
import json
import math
import os
import statistics
import subprocess
import sys

import plot
import table

NETWORKS = {"10 Gbit/s, 50 us": (50e-6, 8 / 10e9), "25 Gbit/s, 20 us": (20e-6, 8 / 25e9),
            "100 Gbit/s, 5 us": (5e-6, 8 / 100e9), "400 Gbit/s, 2 us": (2e-6, 8 / 400e9)}
NODES = [64, 128, 256, 512, 1024, 2048, 4096]
BUCKET_SIZES = [65536 * 4 ** i for i in range(5)]  # bytes that leati_buckets_measure tries, from 64 KiB to 16 MiB
MOST_BUCKETS = 64
BEGIN, END = "<!-- bench/scaling.py writes from here -->", "<!-- to here -->"
SPEEDS = {"as fast as 32 cores": 32, "as fast as 640 cores": 640}  # nodes: of processors, and with accelerators
# Of src/dist/mpi/sums.c, in bytes; PIECES of a large sum are under way at once.
FACTORS, SMALL, PIECE, PIECES = [4, 2, 3, 5, 7, 11, 13], 32768, 262144, 4


class Cost:
    """What a sum takes: the time of its bytes, during which no other sum's bytes pass, and its wait for messages."""

    def __init__(self, busy, latency=0.0):
        self.busy, self.latency = busy, latency

    def alone(self):
        return self.busy + self.latency


def factors_of(p):
    found = []
    for factor in FACTORS:
        while p % factor == 0:
            p //= factor
            found.append(factor)
    return found


def leat_sum(a, b, p, n):
    """leat's sum of n bytes: in the stages of a small one, each rank sends all values to the others of its group; a large
    one passes each stage twice, in pieces.  If the latency is long, the network waits for the pieces under way."""
    factors = factors_of(p)
    if n <= SMALL:
        return Cost(sum(f - 1 for f in factors) * n * b, len(factors) * a)
    piece = min(n, PIECE)
    bytes_of_one = 2 * (p - 1) / p * piece * b
    whole = 2 * len(factors) * a + bytes_of_one
    busy = max(bytes_of_one, whole / PIECES)
    return Cost(busy * n / piece, whole - busy)


def ring(a, b, p, n):
    return Cost(2 * (p - 1) * (a + n * b / p))


def no_network(a, b, p, n):
    return Cost(0.0)


ALGORITHMS = {"ring": ring, "leat": leat_sum}


def fit_line(points):
    """Returns c and d of the time c + d n that fits (n, time) best, by relative errors."""
    w = [1 / time ** 2 for _, time in points]
    s, sx, sy = sum(w), sum(wi * n for wi, (n, _) in zip(w, points)), sum(wi * t for wi, (_, t) in zip(w, points))
    sxx, sxy = sum(wi * n * n for wi, (n, _) in zip(w, points)), sum(wi * n * t for wi, (n, t) in zip(w, points))
    d = max((s * sxy - sx * sy) / (s * sxx - sx * sx), 0)
    return max((sy - d * sx) / s, 0), d


class Copying:
    """The work of the processor for a sum of n bytes, c + d n: one line for small sums and one for large ones."""

    def __init__(self, points):
        self.small = fit_line([(n, t) for n, t in points if n <= SMALL])
        self.large = fit_line([(n, t) for n, t in points if n > SMALL])

    def time(self, n):
        c, d = self.small if n <= SMALL else self.large
        return c + d * n


def choose_bucket(cost, total):
    """The rule of src/train/parallel/buckets.c: the smallest size whose time by byte is at most 1.25 times that of the largest."""
    sizes = [size for size in BUCKET_SIZES if size <= total] or [total]
    best = cost(sizes[-1]).alone() / sizes[-1]
    size = next(size for size in sizes if cost(size).alone() / size <= 1.25 * best)
    return max(size, total / MOST_BUCKETS)


class Profile:
    """When the backward pass of a step finishes which gradients: seconds before its end, by bytes from the last layer on."""

    def __init__(self, found, scale=1.0):
        self.compute = scale * (found["median_us"] - found["tail_us"]) / 1e6
        self.pieces = [(size, scale * lead / 1e6) for size, lead in found["buckets"]]
        self.total = sum(size for size, _ in self.pieces)

    def lead(self, bytes_done):
        """Returns the seconds between the moment when so many bytes are final and the end of the backward pass."""
        passed = 0
        for size, lead in self.pieces:
            passed += size
            if passed >= bytes_done:
                return lead
        return 0.0

    def step(self, cost, measures, hook, bucket, steals=lambda n: 0.0):
        """Returns the time of a step.  cost(n): of a sum; measures: the time of gathering them, which follows the last
        bucket on the network; hook: of the message behind the update; steals(n): the time that a sum takes from computing."""
        done, free, due, stolen = 0.0, 0.0, 0.0, 0.0
        while done < self.total:
            size = min(bucket, self.total - done)
            done += size
            ready = self.compute - self.lead(done) + stolen
            found = cost(size)
            free = max(free, ready) + found.busy
            due = max(due, free + found.latency)
            if self.lead(done) > 0:
                stolen += steals(size)
        computed = self.compute + stolen
        return max(due, computed + measures) + hook


def scaled(found, factor):
    """Returns a profile whose times are all multiplied by a factor."""
    return dict(found, median_us=factor * found["median_us"], tail_us=factor * found["tail_us"],
                buckets=[[size, factor * lead] for size, lead in found["buckets"]])


def best_bucket(profile, cost):
    sizes = [profile.total / k for k in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)]
    return min(sizes, key=lambda size: profile.step(cost, 0, 0, size))


def slower(a, b):
    """The cost of two things that happen at once."""
    return Cost(max(a.busy, b.busy), max(a.latency, b.latency))


def check_sums(found):
    """Fits the sums of this machine, and returns the fit for each number of ranks."""
    fits, rows, errors = {}, [], []
    for s in found["sums"]:
        points = [(size["bytes"], size["median_us"] / 1e6) for size in s["sizes"]]
        fit = fits[s["ranks"]] = Copying(points)
        errors += [fit.time(n) / t for n, t in points]
        rows.append([str(s["ranks"])] + [text for c, d in (fit.small, fit.large)
                                         for text in ("%.3g" % (c * 1e6), "%.3g" % (1 / d / 1e9) if d else "-")])
    print("Sums on this machine, fitted by c + d n, up to 32 KB and above:\n")
    print("\n".join(table.lines_of(["ranks", "small: c us", "1/d GB/s", "large: c us", "1/d GB/s"], rows, True)))
    print("\nfitted / measured: from %.2f to %.2f" % (min(errors), max(errors)))
    return fits


def check(found, cores):
    """Predicts the steps that were measured; returns the work of the processor for a sum by two ranks."""
    fits = check_sums(found)
    profiles = {p["model"]: p for p in found["profiles"]}
    rows, errors = [], []
    for step in found["steps"]:
        p, (gbit, ms) = step["ranks"], (float(x) for x in step["network"].split(","))
        fit, a = fits[p], ms / 1e3
        network = leat_sum if gbit else no_network
        b = 8 / gbit / 1e9 if gbit else 0
        cost = lambda n: slower(Cost(fit.time(n)), network(a, b, p, n))  # the real sum runs below the emulated one
        profile = Profile(profiles[step["model"]], max(1.0, p / cores))
        message = max(fit.small[0], math.ceil(math.log2(p)) * a)
        # A rank and its thread of messages share a core: what the thread copies and adds is taken from computing.
        time = profile.step(cost, message, message, choose_bucket(cost, profile.total), lambda n: fit.large[1] * n)
        errors.append(time / step["median_us"] * 1e6)
        rows.append([step["model"], str(p), step["network"], "%.4g" % (step["median_us"] / 1e3), "%.4g" % (time * 1e3),
                     "%.2f" % errors[-1]])
    print("\nSteps, predicted from the profile of 2 ranks:\n")
    print("\n".join(table.lines_of(["model", "ranks", "Gbit/s, ms", "measured ms", "predicted ms", "ratio"], rows, True)))
    print("\nratio: median %.2f, from %.2f to %.2f" % (statistics.median(errors), min(errors), max(errors)))
    return fits[2].large[1]


def step_by_nodes(profile, network, algorithm, p, copying=0.0, bucket=None):
    """The time of a step of p nodes; copying: seconds for a byte of a sum by two ranks, of one core of a node."""
    a, b = NETWORKS[network]
    copies = lambda n: Cost(2 * (p - 1) / p * copying * n)
    cost = lambda n: slower(ALGORITHMS[algorithm](a, b, p, n), copies(n))
    message = math.ceil(math.log2(p)) * a
    return profile.step(cost, message, message, bucket or choose_bucket(cost, profile.total))


def weak(resnet, copying):
    """Prints how a fixed number of samples for each node scales, and returns the curves for the fast node."""
    curves, rows = [], []
    for node, speed in SPEEDS.items():
        profile = Profile(resnet, 32 / resnet["samples"] / speed)
        for network, (a, b) in NETWORKS.items():
            for algorithm, sum_cost in ALGORITHMS.items():
                values = [profile.compute / step_by_nodes(profile, network, algorithm, p) for p in NODES]
                copied = profile.compute / step_by_nodes(profile, network, algorithm, NODES[-1], copying)
                sizes = [f(p) for p in (64, 4096) for f in (
                    lambda p: choose_bucket(lambda n: sum_cost(a, b, p, n), profile.total),
                    lambda p: best_bucket(profile, lambda n: sum_cost(a, b, p, n)))]
                rows.append([node, network, algorithm] + ["%.0f %%" % (100 * values[NODES.index(p)]) for p in (64, 512, 4096)] +
                            ["%.0f %%" % (100 * copied)] +
                            ["%.3g, %.3g" % (sizes[i] / 2 ** 20, sizes[i + 1] / 2 ** 20) for i in (0, 2)])
                if speed == max(SPEEDS.values()):
                    curves.append(("%s, %s" % (network, algorithm), values))
    print("\nResNet-50, 32 samples for each node: efficiency, at 4096 nodes also with one core that copies and adds as here, and "
          "the bucket that leat chooses and the best one, in MiB\n")
    print("\n".join(table.lines_of(["node", "network", "sum", "64", "512", "4096", "copied", "buckets at 64", "at 4096"], rows, True)))
    return curves


def strong(resnet, batch=8192):
    """Prints how a fixed batch scales, and returns the curves for the fast node."""
    curves, rows = [], []
    for node, speed in SPEEDS.items():
        one = Profile(resnet, batch / resnet["samples"] / speed).compute
        for network in NETWORKS:
            speeds = [one / step_by_nodes(Profile(resnet, batch / p / resnet["samples"] / speed), network, "leat", p)
                      for p in NODES]
            half = [p for p, found in zip(NODES, speeds) if found >= p / 2]
            rows.append([node, network] + ["%.0f" % found for found in speeds] + [str(max(half)) if half else "below 64"])
            if speed == max(SPEEDS.values()):
                curves.append((network, speeds))
    print("\nA fixed batch of %d samples, leat's sums: speed relative to one node, and the most nodes with half of the ideal "
          "speed\n" % batch)
    print("\n".join(table.lines_of(["node", "network"] + [str(p) for p in NODES] + ["half"], rows, True)))
    return curves


def sums_over_nodes():
    """Prints the times of sums, and below which size one exchange of all values is faster than sharing out parts."""
    rows = []
    for network, (a, b) in NETWORKS.items():
        for p in (64, 4096):
            factors = factors_of(p)
            least = len(factors) * a / ((sum(f - 1 for f in factors) - 2 * (p - 1) / p) * b)
            rows.append([network, str(p), "%.3g" % (least / 1e3)] + [
                "%.3g" % (1e3 * ALGORITHMS[name](a, b, p, n).alone()) for n in (4e3, 1e6, 1e8) for name in ("leat", "ring")])
    print("\nSums of 4 KB, 1 MB and 100 MB in ms, by leat and by a ring; and the size up to which exchanging all values is "
          "faster than sharing out parts, in KB (leat changes at %.3g)\n" % (SMALL / 1e3))
    print("\n".join(table.lines_of(["network", "nodes", "KB", "4 KB: leat", "ring", "1 MB: leat", "ring", "100 MB: leat", "ring"],
                                   rows, True)))


def describe(whole):
    machine = whole["machine"]
    print("%s, %d cores; leat %s; load %s at the start.\n" % (machine.get("cpu", machine["machine"]), machine["cores"],
                                                              whole["leat"], whole["load"][0]))


def replace(path, text):
    """Puts the text between the marks of a file."""
    with open(path) as file:
        before, rest = file.read().split(BEGIN + "\n")
    with open(path, "w") as file:
        file.write(before + BEGIN + "\n\n" + text.strip() + "\n\n" + END + rest.split(END)[1])


def draw(path, by_node, by_batch):
    with open(path, "w") as file:
        file.write(plot.lines_over_nodes([
            ("efficiency of nodes as fast as 640 cores, 32 samples for each", NODES, 1.0, by_node),
            ("speed of such nodes relative to one, a batch of 8192, leat's sums", NODES, None, by_batch)]))


def measure(path):
    ranks = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ranks.py")
    subprocess.run([sys.executable, ranks, "scaling", "--json", path], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", help="written by bench/ranks.py scaling --json")
    parser.add_argument("--measure", metavar="FILE", help="measure first, and write this file")
    parser.add_argument("--plot", metavar="FILE", help="write an SVG file")
    parser.add_argument("--write", metavar="FILE", help="replace the tables between the marks of a Markdown file")
    parser.add_argument("--sample-seconds", type=float, help="the time of one core for a step of one sample of ResNet-50, if the "
                        "profile was taken on a busy machine")
    arguments = parser.parse_args()
    if bool(arguments.file) == bool(arguments.measure):
        parser.error("expected a file, or --measure")
    if arguments.measure:
        measure(arguments.measure)
    with open(arguments.file or arguments.measure) as file:
        whole = json.load(file)
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        describe(whole)
        copying = check(whole["scaling"], whole["machine"]["cores"])
        resnet = next(p for p in whole["scaling"]["profiles"] if p["model"] == "resnet50")
        if arguments.sample_seconds:
            resnet = scaled(resnet, arguments.sample_seconds * resnet["samples"] / Profile(resnet).compute)
        print("\nOne core needs %.3g s for a step of one sample of ResNet-50." % (Profile(resnet).compute / resnet["samples"]))
        sums_over_nodes()
        by_node, by_batch = weak(resnet, copying), strong(resnet)
    print(text.getvalue(), end="")
    if arguments.write:
        replace(arguments.write, text.getvalue())
    if arguments.plot:
        draw(arguments.plot, by_node, by_batch)


main()
