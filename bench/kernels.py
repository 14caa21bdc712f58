#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes bench/kernels.md: the fastest kernel of each case of bench_ops, for each instruction set, and its share of what one core allows.

    bench/kernels.py build/release [--cpu] [--isas base,avx2,avx512] [--output bench/kernels.md] [WORD...]

One thread.  What a core allows is measured by bench_peak in the same run: a kernel takes at least as long as its
multiplications and additions in registers, and at least as long as reading its inputs and writing its outputs once at
the speed of the smallest cache that holds them.  The share is the longer of the two divided by the time measured.
--cpu counts CPU time: on a busy machine the shares are lower, but comparable with each other.
"""
import argparse
import json
import os
import re
import subprocess

LOW = 0.6
ONEDNN = {"base": "SSE41", "avx2": "AVX2", "avx512": "AVX512_CORE"}  # leat restricts oneDNN itself; bench_ops does not
# Why a kernel stays below LOW, by a pattern of the case's name.  The first that matches counts.
REASONS = [
    (r"^conv 28x28x1 .*bwd_data", "The gradient of a first convolution by its input: no training step computes it."),
    (r"^conv 28x28x1", "One input channel: a result has 9 products, too few to hide its load and its store."),
    (r"^conv depthwise.* by 2", "Each vector of the source is spread over the lanes of its filters before it is used."),
    (r"^conv depthwise", "A product needs a load of its own, since no two results share an input and a weight: loads are the limit, "
     "not products."),
    (r"^conv .*groups", "A group's channels fill only a part of a vector, and are spread over it before they are used."),
    (r"^conv 1x1 .*bwd_weights", "The sums over all pixels are made in parts, which are added up."),
    (r"^conv causal", "Two taps of 64 channels: a tile is too small to hide its loads."),
    (r"^conv three axes.*bwd_weights", "27 products per weight with 16 channels: a tile is too small to hide its loads."),
    (r"^(patches|broadcast|transpose|concat|cast)", "Rows of a few elements are moved to other places: there are more loads and "
     "stores than the bytes need."),
    (r"^(batch|layer|group) norm", "The inputs are read twice: mean and variance must be known before the first result."),
    (r"^(exp|log|gelu|silu|tanh|pow|sqrt|abs|relu)", "Instructions per element, which the limit does not count: a polynomial, a "
     "division or a square root."),
    (r"^dropout", "Ten rounds of Philox, of two wide multiplications each, for four random numbers."),
    (r"^(softmax|argmax)", "Exponentials, and a maximum and a sum over each row, which the limit does not count."),
    (r"^(maxima|sums|sum of|bias)", "Rows of a few vectors: the result of a row takes as long as its loads."),
    (r"^(add|mul) ", "Rows of a few vectors begin and end more often than long ones."),
    (r"^average pool.* bwd", "Each result is added to the gradients of its window, which are loaded and stored nine times."),
    (r"^average pool", "A mean takes nine loads and additions, and rows of 11 or 44 channels fill vectors only in part."),
    (r"^conv 3x3x3 3->16|^conv 3x3 4->64", "Three or four channels fill only a part of a vector."),
    (r"^one_hot", "A row is cleared, and then one element of it is set."),
    (r"^attention", "Exponentials, and a maximum and a sum over each row, which the limit does not count."),
    (r"^pool", "A result takes a comparison, a load and a mask for each element of its window."),
    (r"^lstm .*n 1 ", "64 steps, each of which needs the result of the step before: latency is the limit."),
    (r"^lstm", "The gates' polynomials and divisions, which the limit does not count."),
    (r"^adam", "A division and a square root per weight."),
    (r"^dense", "At most a few microseconds or a few columns: a tile is only partly filled."),
    (r"^matmul", "Products of small matrices, which are not packed."),
]


def lines_of(command, **environment):
    run = subprocess.run(command, env=dict(os.environ, **environment), stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


class Limits:
    """What bench_peak measured for one instruction set."""

    def __init__(self, lines):
        self.gflops = next(line["gflops"] for line in lines if "gflops" in line)
        self.moves = sorted((line for line in lines if "bytes" in line), key=lambda line: line["bytes"])

    def ns(self, case):
        """The least time of a case: that of its products, or of moving its bytes."""
        moved = case["read"] + case["written"]
        level = next((line for line in self.moves if line["bytes"] >= moved), self.moves[-1])
        rate = level["copy"] if case["written"] > 0.1 * moved else level["read"]
        return max(case["flops"] / self.gflops, moved / rate)


def fastest(cases):
    """Case -> its fastest line, in the order of bench_ops."""
    best = {}
    for line in cases:
        if line["case"] not in best or line["ns"] < best[line["case"]]["ns"]:
            best[line["case"]] = line
    return best


def reason(name):
    return next((text for pattern, text in REASONS if re.search(pattern, name)), "")


def time_text(ns):
    return f"{ns / 1e6:.3g} ms" if ns >= 1e6 else f"{ns / 1e3:.3g} us"


def markdown(limits, best, processor):
    isas = list(best)
    yield "# The kernels and what a core allows"
    yield ""
    yield "`bench/kernels.py build/release` made this page; bench/kernels.py says how a share is computed. The processor was"
    yield f"{processor}, one core."
    yield ""
    yield "| one core | " + " | ".join(isas) + " |"
    yield "|---|" + "---|" * len(isas)
    yield "| products in registers, GFLOP/s | " + " | ".join(f"{limits[isa].gflops:.0f}" for isa in isas) + " |"
    for size in (1 << 15, 1 << 19, 1 << 23, 1 << 28):
        name = f"{size >> 10} KiB" if size < 1 << 20 else f"{size >> 20} MiB"
        rows = [next(line for line in limits[isa].moves if line["bytes"] == size) for isa in isas]
        yield f"| {name} read / copied, GB/s | " + " | ".join(f"{row['read']:.0f} / {row['copy']:.0f}" for row in rows) + " |"
    yield ""
    yield "Each cell has the kernel, its time, and its share of the limit. A share above 100 % is a convolution by Winograd, which"
    yield "needs fewer products than are counted, or an array that partly stays in a cache from one run to the next."
    yield ""
    yield "| case | " + " | ".join(isas) + " |"
    yield "|---|" + "---|" * len(isas)
    low = []
    for name in best[isas[0]]:
        cells = []
        for isa in isas:
            line = best[isa].get(name)
            if not line:
                cells.append("")
                continue
            share = limits[isa].ns(line) / line["ns"]
            kernel = re.sub(r" (base|avx2|avx512)$", "", line["kernel"])
            cells.append(f"{kernel} {time_text(line['ns'])}, {100 * share:.0f} %")
            if share < LOW:
                low.append((name, isa, share))
        yield f"| {name} | " + " | ".join(cells) + " |"
    yield ""
    yield f"## Below {100 * LOW:.0f} %"
    yield ""
    texts = {}
    for name, isa, share in low:
        texts.setdefault(reason(name), {}).setdefault(name, []).append(f"{isa} {100 * share:.0f} %")
    for text, names in texts.items():
        yield f"- {text or 'Not explained yet.'}"
        yield "  " + "; ".join(f"{name} ({', '.join(shares)})" for name, shares in names.items()) + "."


def processor_name():
    with open("/proc/cpuinfo") as file:
        facts = dict(re.findall(r"^(\w[\w ]*?)\s*: (.*)$", file.read(), re.M))
    return f"{facts.get('model name', 'unknown')} (family {facts.get('cpu family', '?')}, model {facts.get('model', '?')})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="a folder with bench_ops and bench_peak")
    parser.add_argument("words", nargs="*", metavar="WORD", help="only cases whose names contain one of the words")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--isas", default="base,avx2,avx512")
    parser.add_argument("--output", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "kernels.md"))
    arguments = parser.parse_intermixed_args()
    cpu = ["--cpu"] if arguments.cpu else []
    peaks = lines_of([os.path.join(arguments.build, "bench_peak"), *cpu])
    limits, best = {}, {}
    for isa in arguments.isas.split(","):
        lines = [line for line in peaks if line["isa"] == isa]
        if not lines:
            continue
        limits[isa] = Limits(lines)
        print(f"{isa}: {limits[isa].gflops:.0f} GFLOP/s; bench_ops ...", flush=True)
        ops = [os.path.join(arguments.build, "bench_ops"), "--threads", "1", "--json", *cpu, *arguments.words]
        best[isa] = fastest(lines_of(ops, LEAT_MAX_ISA=isa, ONEDNN_MAX_CPU_ISA=ONEDNN[isa]))
    with open(arguments.output, "w") as file:
        file.write("\n".join(markdown(limits, best, processor_name())) + "\n")
    print(f"wrote {arguments.output}")


if __name__ == "__main__":
    main()
