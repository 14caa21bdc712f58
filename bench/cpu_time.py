# SPDX-License-Identifier: Apache-2.0
"""CPU time for bench/pictures.py, augmentation.py and shards.py: user and system time of all threads and processes, which says more
than wall time on a machine that others use too."""

import os
import pathlib
import resource
import subprocess
import time


def descendants():
    """The process itself and the processes below it."""
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                pass
    found, new = [], [os.getpid()]
    while new:
        found += new
        new = [pid for pid, parent in parents.items() if parent in new]
    return found


def used():
    """Seconds of CPU time of this process, of the processes below it that are alive, and of its children that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = ended.ru_utime + ended.ru_stime
    for pid in descendants():
        try:
            total += time.clock_gettime((~pid << 3) | 2)  # what clock_getcpuclockid() returns
        except OSError:
            pass
    return total


def measure(batches, count):
    """Goes over the batches twice; returns samples per second and CPU microseconds per sample of the second time."""
    for _ in batches:  # starts the workers
        pass
    cpu, start = used(), time.perf_counter()
    for _ in batches:
        pass
    return count / (time.perf_counter() - start), 1e6 * (used() - cpu) / count


def run(command):
    """Runs a program; returns its seconds, its seconds of CPU time and what it prints."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    out = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - start, cpu, out


def run_leat(leat, spec, count, workers, batch, passes, shuffle="none"):
    """Measures `leat feed bench`.  Samples per second contain the start of the process; the CPU time does not, since it is the
    difference between one pass and more of them."""
    command = [leat, "feed", "bench", spec, "--batch-size", batch, "--workers", workers, "--shuffle", shuffle, "--json", "--passes"]
    _, once, _ = run([*command, 1])
    seconds, all_of_them, _ = run([*command, 1 + passes])
    return (1 + passes) * count / seconds, 1e6 * (all_of_them - once) / (passes * count)


def print_table(results, base, notes=None):
    """Prints the median rate and the least CPU time of each program; `results` has pairs (samples per second, CPU us)."""
    import statistics

    least = {name: min(cpu for _, cpu in pairs) for name, pairs in results.items()}
    for name, pairs in results.items():
        rate = statistics.median(rate for rate, _ in pairs)
        print(f"{name:38} {rate:7.0f} samples/s  {least[name]:7.0f} us CPU each, {least[name] / least[base]:5.2f} x {base}"
              f"{'   ' + notes[name] if notes else ''}")
