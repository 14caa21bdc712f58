#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A model of the time of a training step by many ranks (bench/scaling.md):

    bench/ranks.py scaling --json build/scaling.json      # measures sums, profiles of steps, and steps by 2 to 8 ranks
    bench/scaling.py build/scaling.json --plot docs/scaling.svg

A sum of n bytes by p ranks costs (latency a of a message, time b of a byte): by a ring 2 (p - 1) (a + n b / p), by a tree
2 log2 p a + 2 (p - 1) / p n b (recursive halving and doubling), by recursive doubling log2 p (a + n b).  A bucket is summed
when the backward pass has finished all its gradients and the buckets before it are summed; small messages and the update
follow.  It prints the fitted costs, predicted beside measured steps, and what follows for 64 to 4096 nodes.
"""
import argparse
import json
import math
import statistics

import plot
import table

NETWORKS = {"10 Gbit/s, 50 us": (50e-6, 8 / 10e9), "25 Gbit/s, 20 us": (20e-6, 8 / 25e9),
            "100 Gbit/s, 5 us": (5e-6, 8 / 100e9), "400 Gbit/s, 2 us": (2e-6, 8 / 400e9)}
NODES = [64, 128, 256, 512, 1024, 2048, 4096]
BUCKET_SIZES = [65536 * 4 ** i for i in range(5)]  # bytes that leati_buckets_measure tries, from 64 KiB to 16 MiB
MOST_BUCKETS = 64
SPEEDS = {"as fast as 32 cores": 32, "as fast as 640 cores": 640}  # nodes: of processors, and with accelerators
SMALL_MESSAGES = 4


def ring(a, b, p, n):
    return 2 * (p - 1) * (a + n * b / p)


def tree(a, b, p, n):
    return 2 * math.ceil(math.log2(p)) * a + 2 * (p - 1) / p * n * b


def doubling(a, b, p, n):
    return math.ceil(math.log2(p)) * (a + n * b)


ALGORITHMS = {"ring": ring, "tree": tree}


def emulated(a, b, p, n):
    """The cost of a sum in bench/emulated.c."""
    return min(ring(a, b, p, n), doubling(a, b, p, n))


def fit_line(points):
    """Returns c and d of the time c + d n that fits (n, time) best, by relative errors."""
    w = [1 / time ** 2 for _, time in points]
    s, sx, sy = sum(w), sum(wi * n for wi, (n, _) in zip(w, points)), sum(wi * t for wi, (_, t) in zip(w, points))
    sxx, sxy = sum(wi * n * n for wi, (n, _) in zip(w, points)), sum(wi * n * t for wi, (n, t) in zip(w, points))
    d = max((s * sxy - sx * sy) / (s * sxx - sx * sx), 0)
    return max((sy - d * sx) / s, 0), d


def choose_bucket(cost, total):
    """The rule of src/train/parallel/buckets.c: the smallest size whose time by byte is at most 1.25 times that of the largest."""
    sizes = [size for size in BUCKET_SIZES if size <= total] or [total]
    best = cost(sizes[-1]) / sizes[-1]
    size = next(size for size in sizes if cost(size) / size <= 1.25 * best)
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

    def step(self, cost, small, bucket):
        """Returns the time of a step: cost(n) of a sum, `small` of the messages behind the sums."""
        done, free = 0.0, 0.0
        while done < self.total:
            size = min(bucket, self.total - done)
            done += size
            free = max(free, self.compute - self.lead(done)) + cost(size)
        return max(self.compute, free) + small


def scaled(found, factor):
    """Returns a profile whose times are all multiplied by a factor."""
    return dict(found, median_us=factor * found["median_us"], tail_us=factor * found["tail_us"],
                buckets=[[size, factor * lead] for size, lead in found["buckets"]])


def best_bucket(profile, cost):
    sizes = [profile.total / k for k in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)]
    return min(sizes, key=lambda size: profile.step(cost, 0, size))


def check(found, cores):
    """Predicts the steps that were measured."""
    fits = {s["ranks"]: fit_line([(size["bytes"], size["median_us"] / 1e6) for size in s["sizes"]]) for s in found["sums"]}
    print("Sums on this machine, fitted by c + d n:\n")
    rows = [[str(p), "%.3g" % (c * 1e6), "%.3g" % (1 / d / 1e9 if d else 0)] for p, (c, d) in sorted(fits.items())]
    print("\n".join(table.lines_of(["ranks", "c us", "1/d GB/s"], rows, True)))
    profiles = {p["model"]: p for p in found["profiles"]}
    rows, errors = [], []
    for step in found["steps"]:
        p, (gbit, ms) = step["ranks"], (float(x) for x in step["network"].split(","))
        c, d = fits[p]
        slow = (lambda n: emulated(ms / 1e3, 8 / gbit / 1e9, p, n)) if gbit else (lambda n: 0.0)
        cost = lambda n: max(c + d * n, slow(n))  # the real sum runs below the emulated one
        profile = Profile(profiles[step["model"]], max(1.0, p / cores))
        small = SMALL_MESSAGES * max(c, math.ceil(math.log2(p)) * ms / 1e3)
        time = profile.step(cost, small, choose_bucket(cost, profile.total))
        errors.append(time / step["median_us"] * 1e6)
        rows.append([step["model"], str(p), step["network"], "%.4g" % (step["median_us"] / 1e3), "%.4g" % (time * 1e3),
                     "%.2f" % errors[-1]])
    print("\nSteps, predicted from the profile of 2 ranks:\n")
    print("\n".join(table.lines_of(["model", "ranks", "Gbit/s, ms", "measured ms", "predicted ms", "ratio"], rows, True)))
    print("\nratio: median %.2f, from %.2f to %.2f" % (statistics.median(errors), min(errors), max(errors)))


def efficiency(profile, network, algorithm, p, bucket=None):
    a, b = NETWORKS[network]
    cost = lambda n: ALGORITHMS[algorithm](a, b, p, n)
    size = bucket or choose_bucket(cost, profile.total)
    return profile.compute / profile.step(cost, SMALL_MESSAGES * math.ceil(math.log2(p)) * a, size)


def weak(resnet):
    """Prints how a fixed number of samples for each node scales, and returns the curves for the fast node."""
    curves, rows = [], []
    for node, speed in SPEEDS.items():
        profile = Profile(resnet, 32 / resnet["samples"] / speed)
        for network, (a, b) in NETWORKS.items():
            for algorithm, sum_cost in ALGORITHMS.items():
                values = [efficiency(profile, network, algorithm, p) for p in NODES]
                sizes = [f(p) for p in (64, 4096) for f in (
                    lambda p: choose_bucket(lambda n: sum_cost(a, b, p, n), profile.total),
                    lambda p: best_bucket(profile, lambda n: sum_cost(a, b, p, n)))]
                rows.append([node, network, algorithm] + ["%.0f %%" % (100 * values[NODES.index(p)]) for p in (64, 512, 4096)] +
                            ["%.3g, %.3g" % (sizes[i] / 2 ** 20, sizes[i + 1] / 2 ** 20) for i in (0, 2)])
                if speed == max(SPEEDS.values()):
                    curves.append(("%s, %s" % (network, algorithm), values))
    print("\nResNet-50, 32 samples for each node: efficiency, and the bucket that leat chooses and the best one, in MiB\n")
    print("\n".join(table.lines_of(["node", "network", "sum", "64", "512", "4096", "buckets at 64", "at 4096"], rows, True)))
    return curves


def strong(resnet, batch=8192):
    """Prints how a fixed batch scales, and returns the curves for the fast node."""
    curves, rows = [], []
    for node, speed in SPEEDS.items():
        one = Profile(resnet, batch / resnet["samples"] / speed).compute
        for network, (a, b) in NETWORKS.items():
            speeds = []
            for p in NODES:
                profile = Profile(resnet, batch / p / resnet["samples"] / speed)
                cost = lambda n: tree(a, b, p, n)
                small = SMALL_MESSAGES * math.log2(p) * a
                speeds.append(one / profile.step(cost, small, choose_bucket(cost, profile.total)))
            half = [p for p, found in zip(NODES, speeds) if found >= p / 2]
            rows.append([node, network] + ["%.0f" % found for found in speeds] + [str(max(half)) if half else "below 64"])
            if speed == max(SPEEDS.values()):
                curves.append((network, speeds))
    print("\nA fixed batch of %d samples, sums by a tree: speed relative to one node, and the most nodes with half of the ideal "
          "speed\n" % batch)
    print("\n".join(table.lines_of(["node", "network"] + [str(p) for p in NODES] + ["half"], rows, True)))
    return curves


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="written by bench/ranks.py scaling --json")
    parser.add_argument("--plot", metavar="FILE", help="write an SVG file")
    parser.add_argument("--sample-seconds", type=float, help="the time of one core for a step of one sample of ResNet-50, if the "
                        "profile was taken on a busy machine")
    arguments = parser.parse_args()
    with open(arguments.file) as file:
        whole = json.load(file)
    check(whole["scaling"], whole["machine"]["cores"])
    resnet = next(p for p in whole["scaling"]["profiles"] if p["model"] == "resnet50")
    if arguments.sample_seconds:
        resnet = scaled(resnet, arguments.sample_seconds * resnet["samples"] / Profile(resnet).compute)
    by_node, by_batch = weak(resnet), strong(resnet)
    if arguments.plot:
        with open(arguments.plot, "w") as file:
            file.write(plot.lines_over_nodes([
                ("efficiency of nodes as fast as 640 cores, 32 samples for each", NODES, 1.0, by_node),
                ("speed of such nodes relative to one, a batch of 8192, sums by a tree", NODES, None, by_batch)]))


main()
