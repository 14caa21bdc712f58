#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures `csv:` beside the readers of PyArrow and pandas: from a file to float32 arrays in memory.

    bench/tables.py build/release/libleat.so [--numbers 10000000] [--columns 20] [--rounds 5] [--threads 1]

Needs NumPy, PyArrow and pandas.  The file has the numbers with 9 significant digits, then with 17, as pandas writes a
random double.  The programs take turns in each round; the figures are medians of the rounds, and the least CPU time of
all threads, which says more on a machine that others use too.  --threads 1 pins the process to one core; otherwise
leat and PyArrow use all cores, and pandas one.
tests/interop/check_tables.py compares the numbers.
"""

import argparse
import ctypes
import os
import statistics
import tempfile
import time

import numpy as np
import pandas
import pyarrow
import pyarrow.csv


SEQUENCE_BYTES = 4472  # sizeof(leat_sequence)


def open_leat(library, path):
    """Opens the source, which reads the whole file, and destroys it."""
    sequence, error = ctypes.create_string_buffer(SEQUENCE_BYTES), ctypes.create_string_buffer(8192)
    size = ctypes.c_size_t(SEQUENCE_BYTES)
    if library.leat_source_open(sequence, size, f"csv:{path}".encode(), None, error):
        raise SystemExit(f"leat: {error.raw[:600]}")
    library.leat_sequence_destroy(sequence)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", help="libleat.so")
    parser.add_argument("--numbers", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    library = ctypes.CDLL(os.path.abspath(arguments.library))
    if arguments.threads == 1:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        pyarrow.set_cpu_count(1)
    rng = np.random.default_rng(0)
    numbers = rng.normal(0, 100, (arguments.numbers // arguments.columns, arguments.columns))
    names = ",".join(f"c{i}" for i in range(arguments.columns))
    for digits in (9, 17):
        with tempfile.NamedTemporaryFile(suffix=".csv", dir=os.environ.get("TMPDIR", "/tmp")) as file:
            np.savetxt(file, numbers, f"%.{digits}g", ",", header=names, comments="")
            file.flush()
            megabytes = os.path.getsize(file.name) / 1e6
            readers = {
                "leat": lambda: open_leat(library, file.name),
                "PyArrow": lambda: pyarrow.csv.read_csv(
                    file.name, read_options=pyarrow.csv.ReadOptions(use_threads=arguments.threads != 1)),
                "pandas": lambda: pandas.read_csv(file.name),
            }
            times, cpu = {name: [] for name in readers}, {name: [] for name in readers}
            for _ in range(arguments.rounds):
                for name, read in readers.items():
                    start, before = time.perf_counter(), time.process_time()
                    read()
                    times[name].append(time.perf_counter() - start)
                    cpu[name].append(time.process_time() - before)
            base, base_cpu = statistics.median(times["PyArrow"]), min(cpu["PyArrow"])
            print(f"{digits} digits, {megabytes:.0f} MB, threads: {arguments.threads}")
            for name, taken in times.items():
                middle = statistics.median(taken)
                print(f"  {name:8} {middle:7.3f} s  {megabytes / middle:6.0f} MB/s  {base / middle:5.2f} x PyArrow; "
                      f"CPU {min(cpu[name]):.3f} s  {base_cpu / min(cpu[name]):5.2f} x")


if __name__ == "__main__":
    main()
