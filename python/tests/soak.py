#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The feed's contract under faults, for as long as it takes:

    PYTHONPATH=build/release/python nice python3 python/tests/soak.py [--short] [storm] [stops] [passes] [faults]

storm: workers are killed 2,000 times; the digest of all batches is that of workers=0.
stops: 200 feeds end in random states; no process, thread, descriptor or file in /dev/shm is left.
passes: 500 passes; the memory of this process and of its workers stays.
faults: a data set that misbehaves in each known way.
--short: fewer kills, stops and passes, as ctest runs them.  The exit status is 0 if all checks hold."""

import argparse
import gc
import hashlib
import os
import pickle
import random
import signal
import sys
import threading
import time

import data_sets
import leat

SHORT = {"storm": 40, "stops": 14, "passes": 40}
LONG = {"storm": 2000, "stops": 200, "passes": 500}


def children(pid):
    """Returns the children of a process, from /proc, which is faster than ps."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def workers():
    return [worker for helper in children(os.getpid()) for worker in children(helper)]


def private_bytes(pid):
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return sum(int(line.split()[1]) << 10 for line in file if line.startswith(("Private_Clean", "Private_Dirty")))


def resources():
    """Returns the numbers of descriptors, children, threads, and files of leat in /dev/shm."""
    return (
        len(os.listdir("/proc/self/fd")),
        len(children(os.getpid())),
        threading.active_count(),
        sum("leat" in name for name in os.listdir("/dev/shm")),
    )


def check(holds, text):
    print(("ok      " if holds else "FAILED  ") + text, flush=True)
    return holds


def kill_storm(kills):
    """Kills workers at random instants until there are `kills` deaths."""
    data, seed, reference = data_sets.Batches(40), 9, hashlib.sha256()
    digest, passes = hashlib.sha256(), 0
    stop = threading.Event()

    def kill():
        generator = random.Random(4)

        def pause():
            # On a busy machine a worker needs longer to begin; ten that have not begun in a row are an error.
            return generator.random() * 0.02 * max(1, os.getloadavg()[0] / len(os.sched_getaffinity(0)))

        while not stop.wait(pause()):
            found = workers()
            for pid in generator.sample(found, min(1, len(found))):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass

    with leat.Feed(data, seed=seed, workers=2, shuffle=True, max_deaths=1 << 30) as feed:
        killer = threading.Thread(target=kill)
        killer.start()
        try:
            while feed.stats()["worker_deaths"] < kills:
                for batch in feed:
                    digest.update(pickle.dumps(batch))
                    time.sleep(0.001)
                passes += 1
        finally:
            stop.set()
            killer.join()
        deaths = feed.stats()["worker_deaths"]
    with leat.Feed(data, seed=seed, workers=0, shuffle=True) as feed:
        for _ in range(passes):
            for batch in feed:
                reference.update(pickle.dumps(batch))
    return check(
        digest.digest() == reference.digest(), f"{deaths} workers killed in {passes} passes: the bytes of workers=0"
    )


def random_stops(count):
    """Ends feeds in random states, in random ways."""
    generator = random.Random(7)
    leat.Feed(data_sets.Batches(), workers=1).close()
    gc.collect()
    before = resources()
    for number in range(count):
        kind = generator.choice(["process", "process", "spawn", "thread", "fork"])
        data = generator.choice([data_sets.Batches, data_sets.Epochs, lambda: data_sets.Slow(20, 0.02)])()
        feed = leat.Feed(data, kind=kind, workers=generator.randrange(4), seed=number)
        how = generator.randrange(6)
        if how == 1:
            threading.Timer(generator.random() * 0.1, feed.stop).start()
        try:
            for _ in zip(feed, range(generator.choice([0, 1, 5, 40]))):
                pass
            if how == 2:
                for _ in range(3):
                    next(iter(feed))
            if how == 3 and workers():
                os.kill(workers()[0], signal.SIGKILL)
            if how == 4 and kind in ("process", "spawn") and children(os.getpid()):
                os.kill(children(os.getpid())[0], signal.SIGKILL)
                next(iter(feed))
        except (leat.StoppedError, leat.WorkerError, leat.Error, StopIteration):
            pass
        if how == 5:
            del feed
        else:
            time.sleep(generator.random() * 0.05)
            feed.close()
    for _ in range(100):
        gc.collect()
        after = resources()
        if all(now <= then for now, then in zip(after, before)):
            break
        time.sleep(0.1)
    left = all(now <= then for now, then in zip(after, before))
    return check(left, f"{count} feeds ended in random states: descriptors, children, threads, shm {before} -> {after}")


def many_passes(count):
    """Memory after a tenth of the passes, and at the end."""

    def measure():
        gc.collect()
        return [private_bytes(pid) for pid in [os.getpid(), *children(os.getpid()), *sorted(workers())]]

    with leat.Feed(data_sets.Batches(20), seed=1, shuffle=True, workers=2) as feed:
        for number in range(count):
            for _ in feed:
                pass
            if number == count // 5:
                first = measure()
        last = measure()
    growth = [(b - a) / 1024 for a, b in zip(first, last)]
    return check(
        len(first) == len(last) and max(growth) < 1024,
        f"{count} passes: private memory of caller, helper, workers grew by {[f'{kib:.0f} KiB' for kib in growth]}",
    )


def expect(text, fault, outcome, marker=None, **arguments):
    """Takes the batches of a faulty data set.  outcome: an exception's class, or the number of batches."""
    arguments.setdefault("seed", 1)
    try:
        with leat.Feed(data_sets.Faulty(fault, marker), **arguments) as feed:
            seen = sum(1 for _ in feed)
    except Exception as error:
        seen = type(error)
        if isinstance(outcome, type) and isinstance(error, outcome):
            seen = outcome
    return check(seen == outcome, f"{text}: {outcome if isinstance(outcome, int) else outcome.__name__}")


def all_faults(_):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        numbers = iter(range(1000))

        def once():
            return os.path.join(folder, f"{next(numbers)}")

        return all(
            [
                expect("an exception", "raises", KeyError),
                expect("an exception, once, with a retry", "raises", 12, once(), retries=1),
                expect("an exception that is skipped", "raises", 11, bad_batch="skip"),
                expect("an exception whose pickling fails", "raises_unpicklable", leat.DataError),
                expect("an exception whose unpickling fails", "raises_unloadable", leat.DataError),
                expect("sys.exit", "exits", leat.DataError),
                expect("os._exit, once", "exits_hard", 12, once()),
                expect("os._exit, always", "exits_hard", leat.WorkerError),
                expect("a segmentation fault, once", "segfaults", 12, once()),
                expect("a segmentation fault, always", "segfaults", leat.WorkerError),
                expect("an endless loop, once", "loops", 12, once(), timeout=3),
                expect("an endless loop, always", "loops", leat.LateError, timeout=0.5),
                expect("a batch that cannot be pickled", "returns_lock", TypeError),
                expect("another shape in each batch", "returns_any_shape", 12),
                expect("views", "returns_views", 12),
                expect("a closed stdin", "closes_stdin", 12, once()),
                expect("closed output", "closes_output", 12, once()),
                expect("a batch of 300 MB", "returns_much", 12, once()),
                expect("a state that changes", "changes_itself", 12),
                expect("threads that go on", "starts_threads", 12),
                expect("a worker that stops itself, with a deadline", "stops_itself", 12, once(), timeout=3),
                expect("a recursion without end", "recurses", RecursionError),
                expect("no memory", "lacks_memory", MemoryError),
            ]
        )


PARTS = {"storm": kill_storm, "stops": random_stops, "passes": many_passes, "faults": all_faults}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help="storm, stops, passes, faults; default: all")
    parser.add_argument("--short", action="store_true")
    options = parser.parse_args()
    counts = SHORT if options.short else LONG
    held = []
    for part in options.parts or PARTS:
        start = time.monotonic()
        held.append(PARTS[part](counts.get(part)))
        print(f"        {part} took {time.monotonic() - start:.1f} s", flush=True)
    sys.exit(not all(held))


if __name__ == "__main__":
    main()
