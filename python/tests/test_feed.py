# SPDX-License-Identifier: Apache-2.0
"""The feed's contract under Python."""

import contextlib
import gc
import io
import itertools
import json
import os
import pickle
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from xml.etree import ElementTree

import numpy

import data_sets
import leat

WAYS = [("process", 0), ("process", 1), ("process", 3), ("spawn", 2), ("thread", 1), ("thread", 3), ("fork", 2)]


def record(data, passes=2, **arguments):
    """Returns the pickled batches of some passes."""
    with leat.Feed(data, **arguments) as feed:
        return [[pickle.dumps(batch) for batch in feed] for _ in range(passes)]


def resources():
    children = subprocess.run(["ps", "--ppid", str(os.getpid()), "-o", "pid="], capture_output=True, text=True)
    return len(os.listdir("/proc/self/fd")), len(children.stdout.split()), threading.active_count()


def await_resources(before):
    """Waits until no more of each resource is used than before, for a minute at most, and returns what is used."""
    until = time.monotonic() + 60
    while True:
        after = resources()
        if all(now <= then for now, then in zip(after, before)) or time.monotonic() > until:
            return after
        time.sleep(0.1)


class Contract(unittest.TestCase):
    def check_same(self, data, ways=WAYS, **arguments):
        expected = record(data, workers=0, **arguments)
        for kind, workers in ways:
            self.assertEqual(record(data, kind=kind, workers=workers, **arguments), expected, (kind, workers))
        return expected

    def test_batches_are_the_same_for_all_workers(self):
        passes = self.check_same(data_sets.Batches(), seed=5)
        self.assertNotEqual(passes[0], passes[1])  # random numbers belong to the pass, too
        self.assertEqual([len(batches) for batches in passes], [17, 17])

    def test_values_arrive_as_they_were(self):
        with leat.Feed(data_sets.Batches(), seed=5) as feed:
            batch = next(iter(feed))
        self.assertEqual(batch["strided"].tolist(), batch["x"][:, ::2].tolist())
        self.assertTrue(batch["fortran"].flags.f_contiguous)
        self.assertEqual(batch["empty"].shape, (0, 5))
        self.assertEqual(batch["objects"], [1, "two", None, 3.5, b"four"])
        self.assertEqual(batch["text"].tolist(), ["a", "bc"])
        self.assertEqual(str(batch["date"][0]), "2020-01-01")
        self.assertIsInstance(batch["pair"], data_sets.Pair)
        self.assertEqual(batch["record"].image.tolist(), [[0, 0], [0, 0]])
        batch["x"][:] = 0  # it belongs to the caller

    def test_shuffled_batches(self):
        for shuffle in (True, "batches", "window:4"):
            self.check_same(data_sets.Batches(), [("process", 2)], seed=5, shuffle=shuffle)

    def test_samples(self):
        for shuffle in (False, True, "window:20"):
            passes = self.check_same(data_sets.Samples(), seed=2, shuffle=shuffle, batch_size=10)
            batches = [pickle.loads(batch) for batch in passes[0]]
            self.assertEqual([len(batch["y"]) for batch in batches], [10] * 10 + [3])
            self.assertEqual(sorted(int(y) for batch in batches for y in batch["y"]), list(range(103)))
            self.assertEqual(batches[0]["name"][0], f"sample {batches[0]['y'][0]}")

    def test_batches_that_are_written_in_place(self):
        expected = record(data_sets.Into(), workers=0, seed=3)
        for data in (data_sets.Declared(), data_sets.Learnt()):
            self.assertEqual(self.check_same(data, seed=3), expected)
        with self.assertRaisesRegex(ValueError, "batch_spec"):
            leat.Feed(type("Lacking", (), {"__len__": len, "get_into": None.__init__})())

    def test_threads_that_learn_the_parts_of_a_batch_keep_their_random_numbers(self):
        class Slow(data_sets.Learnt):
            def __getitem__(self, index):
                time.sleep(0.05)  # the other threads begin their batches meanwhile
                return super().__getitem__(index)

        expected = record(Slow(), 1, workers=0, seed=3)
        self.assertEqual(record(Slow(), 1, kind="thread", workers=3, seed=3), expected)

    def test_an_array_that_is_in_a_batch_twice_is_sent_once(self):
        with leat.Feed(data_sets.Twice()) as feed:
            x, y = next(iter(feed))
        self.assertEqual(x.__array_interface__["data"], y.__array_interface__["data"])

    def test_drop_last(self):
        passes = self.check_same(data_sets.Samples(), [("process", 2)], seed=2, batch_size=10, drop_last=True)
        self.assertEqual(len(passes[0]), 10)

    def test_arrays(self):
        data = {"x": numpy.arange(50) * 2, "y": (numpy.arange(100).reshape(50, 2),)}
        for shuffle in (False, True):
            passes = self.check_same(data, seed=2, shuffle=shuffle, batch_size=8)
            batch = pickle.loads(passes[0][0])
            self.assertEqual((batch["y"][0][:, 0] == batch["x"]).tolist(), [True] * 8)

    def test_global_generators(self):
        before = random.getstate(), numpy.random.get_state()[1].tolist()
        self.check_same(data_sets.Globals(), [("process", 1), ("process", 3), ("fork", 2)], seed=5)
        self.assertEqual(before, (random.getstate(), numpy.random.get_state()[1].tolist()))

    def test_ranks(self):
        parts = [record(data_sets.Batches(), passes=1, seed=5, shuffle=True, rank=rank, world=3)[0] for rank in range(3)]
        whole = record(data_sets.Batches(), passes=1, seed=5, shuffle=True)[0]
        self.assertEqual([parts[i % 3][i // 3] for i in range(17)], whole)

    def test_iterables(self):
        for data in (data_sets.Numbers(9), data_sets.make_numbers):
            for kind, workers in WAYS:
                with leat.Feed(data, kind=kind, workers=workers, seed=1) as feed:
                    seen = list(feed)
                    self.assertEqual([int(batch[0][0]) for batch in seen], list(range(9)))
                    self.assertEqual(list(feed), [])
                    self.assertRaises(TypeError, len, feed)

    def test_passes_end_the_stream(self):
        with leat.Feed(data_sets.Batches(4), passes=2, seed=1) as feed:
            self.assertEqual([len(list(feed)) for _ in range(4)], [4, 4, 0, 0])

    def test_on_epoch_end(self):
        for kind, workers in WAYS:
            with leat.Feed(data_sets.Epochs(), kind=kind, workers=workers, seed=1) as feed:
                passes = [[batch.tolist() for batch in feed] for _ in range(3)]
            expected = [[[epoch, index] for index in range(4 + epoch)] for epoch in range(3)]
            self.assertEqual(passes, expected, (kind, workers))

    def test_breaking_begins_the_next_pass(self):
        whole = record(data_sets.Batches(), passes=3, seed=5)
        with leat.Feed(data_sets.Batches(), seed=5) as feed:
            for _ in feed:
                break
            self.assertEqual([pickle.dumps(batch) for batch in feed], whole[1])
            self.assertEqual([pickle.dumps(batch) for batch in feed], whole[2])

    def test_the_helper_is_kept(self):
        with leat.Feed(data_sets.Epochs(), seed=5) as feed:
            next(iter(feed))
            helper = children()
            for _ in range(3):  # each leaves a pass before its end
                next(iter(feed))
            feed.load_state_dict(feed.state_dict())
            for _ in range(3):  # on_epoch_end changes the data
                list(feed)
            self.assertEqual(children(), helper)
            self.assertEqual(next(iter(feed)).tolist(), [3, 0])

    def test_a_position_is_left_and_found_again(self):
        whole = sum(record(data_sets.Batches(), passes=2, seed=5, shuffle=True), [])
        for kind, workers in WAYS:
            with leat.Feed(data_sets.Batches(), seed=5, shuffle=True, kind=kind, workers=workers) as feed:
                for at in (3, 0, 16, 20, 17, 1):
                    feed.load_state_dict({"leat": 1, "seed": 5, "pass": at // 17, "batch": at % 17})
                    self.assertEqual(feed.state_dict()["batch"], at % 17)
                    seen = [pickle.dumps(batch) for batch, _ in zip(feed, range(5))]
                    self.assertEqual(seen, whole[at : at - at % 17 + 17][:5], (kind, workers, at))

    def test_resume(self):
        whole = sum(record(data_sets.Batches(), passes=3, seed=5, shuffle=True), [])
        for taken in (0, 1, 16, 17, 30):
            with leat.Feed(data_sets.Batches(), seed=5, shuffle=True) as feed:
                seen = []
                while len(seen) < taken:
                    for batch in feed:
                        seen.append(pickle.dumps(batch))
                        if len(seen) == taken:
                            break
                state = pickle.loads(pickle.dumps(feed.state_dict()))
            with leat.Feed(data_sets.Batches(), seed=77, shuffle=True, workers=1) as other:
                other.load_state_dict(state)
                while len(seen) < len(whole):
                    seen += [pickle.dumps(batch) for batch in other]
            self.assertEqual(seen, whole, taken)


class Memory(unittest.TestCase):
    def test_kept_batches_are_copied_instead_of_a_deadlock(self):
        with leat.Feed(data_sets.Growing(), seed=1, keep=3) as feed:
            batches = list(feed)
            self.assertEqual(feed.stats()["copied"], 37)
        for index, batch in enumerate(batches):  # after the feed was closed, too
            self.assertEqual(len(batch), 1 << (index % 20))
            self.assertTrue((batch == index).all())

    def test_nothing_is_copied_if_batches_are_dropped(self):
        with leat.Feed(data_sets.Growing(), seed=1) as feed:
            for _ in range(3):
                for batch in feed:
                    self.assertTrue(batch.flags.aligned)
            self.assertEqual(feed.stats()["copied"], 0)

    def test_views_keep_their_slot(self):
        with leat.Feed(data_sets.Growing(), seed=1, keep=2) as feed:
            first = next(iter(feed))[:1]
            gc.collect()
            for _ in feed:
                pass
            self.assertEqual(first.tolist(), [0])


class Faults(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.marker = os.path.join(self.folder.name, "marker")

    def tearDown(self):
        self.folder.cleanup()

    def take(self, fault, marker=None, **arguments):
        with leat.Feed(data_sets.Faulty(fault, marker), seed=1, **arguments) as feed:
            return [int(batch[0]) for batch in feed], feed.stats()

    def test_exceptions_arrive_in_order(self):
        for kind, workers in WAYS:
            with leat.Feed(data_sets.Faulty("raises"), kind=kind, workers=workers) as feed:
                iterator = iter(feed)
                self.assertEqual([int(next(iterator)[0]) for _ in range(5)], list(range(5)))
                with self.assertRaises(KeyError) as caught:
                    next(iterator)
            self.assertIn("no such picture", str(caught.exception))
            self.assertIn("batch 5 of pass 0", str(caught.exception.__cause__))
            self.assertIn("in raises", str(caught.exception.__cause__))

    def test_exceptions_that_cannot_be_pickled(self):
        with self.assertRaisesRegex(leat.DataError, "batch 5 of pass 0: Own: of this function"):
            self.take("raises_unpicklable")

    def test_exit_is_an_error(self):
        with self.assertRaisesRegex(leat.DataError, "SystemExit: 3"):
            self.take("exits")

    def test_retries(self):
        seen, _ = self.take("raises", self.marker, retries=1)
        self.assertEqual(seen, list(range(12)))

    def test_skips(self):
        seen, stats = self.take("raises", bad_batch="skip")
        self.assertEqual(seen, [i for i in range(12) if i != 5])
        self.assertEqual(stats["skips"], 1)
        self.assertEqual(stats["samples_left_out"], 0)

    def test_dead_workers_are_replaced(self):
        for fault in ("exits_hard", "segfaults", "kills_itself"):
            for kind in ("process", "spawn", "fork"):
                seen, stats = self.take(fault, self.marker, kind=kind)
                os.unlink(self.marker)
                self.assertEqual(seen, list(range(12)), (fault, kind))
                self.assertEqual(stats["worker_deaths"], 1)

    def test_a_deadly_batch_is_an_error(self):
        with self.assertRaisesRegex(leat.WorkerError, "batch 5 of pass 0.*SIGKILL"):
            self.take("kills_itself", max_deaths=2)

    def test_deadline(self):
        seen, stats = self.take("hangs", self.marker, timeout=3)  # A busy machine must not be late, too.
        self.assertEqual(seen, list(range(12)))
        self.assertEqual(stats["timeouts"], 1)

    def test_a_thread_that_is_late_outlives_its_feed(self):
        feed = leat.Feed(data_sets.Slow(3, 1.5), kind="thread", workers=1, timeout=0.2)
        with self.assertRaises(leat.LateError):
            next(iter(feed))
        feed.close()
        del feed
        gc.collect()
        time.sleep(2)  # Until the thread has made its batch and has ended.
        self.assertEqual(len(record(data_sets.Batches(), kind="thread", workers=2, seed=1)[0]), 17)

    def test_large_workers_are_replaced(self):
        for kind in ("process", "spawn", "fork"):
            with leat.Feed(data_sets.Leaking(60), kind=kind, workers=1, max_worker_rss=150 << 20, seed=1) as feed:
                batches = list(feed)
                stats = feed.stats()
            self.assertEqual([index for index, _ in batches], list(range(60)))
            workers = len({pid for _, pid in batches})
            self.assertGreater(workers, 1)
            # The last worker may be replaced after its last batch, before the feed is closed.
            self.assertIn(stats["replaced"], (workers - 1, workers))
            self.assertEqual(stats["worker_deaths"], 0)

    def test_strange_behaviour(self):
        self.assertEqual(self.take("closes_stdin", self.marker)[0], list(range(12)))

    def test_output_of_workers(self):
        code = (
            "import data_sets, leat\n"
            "if __name__ == '__main__':\n"
            "    with leat.Feed(data_sets.Faulty('prints'), passes=1) as feed: print(len(list(feed)), end='')\n"
        )
        done = run_script(code, self.folder.name)
        self.assertEqual(sorted(done.stdout), sorted("x" * 10 + "12"))
        self.assertEqual(done.stderr, "y" * 10)

    def test_batches_that_cannot_be_pickled(self):
        with self.assertRaisesRegex(TypeError, "pickle"), leat.Feed(data_sets.ReturnsLock()) as feed:
            next(iter(feed))

    def test_data_that_cannot_be_pickled(self):
        with self.assertRaisesRegex(leat.PickleError, r"data\.settings\['reader'\]\[1\], a lock"):
            leat.Feed(data_sets.Unpicklable())

    def test_data_that_cannot_be_unpickled(self):
        for kind in ("process", "spawn"):
            with silent_errors(), leat.Feed(data_sets.Unopenable(), kind=kind) as feed:
                with self.assertRaisesRegex(leat.Error, "this data is for one process"):
                    next(iter(feed))

    def test_a_stream_that_breaks(self):
        with leat.Feed(data_sets.Broken(3)) as feed, self.assertRaisesRegex(OSError, "the stream broke"):
            list(feed)

    def test_wrong_arguments(self):
        for arguments in (
            {"kind": "magic"},
            {"shuffle": "sometimes"},
            {"shuffle": "samples"},
            {"shuffle": "window:x"},
            {"batch_size": 0},
            {"workers": -1},
            {"max_queue_size": 0},
            {"bad_batch": "ignore"},
            {"world": 2, "rank": 2},
            {"kind": "thread", "seed_globals": True},
        ):
            with self.assertRaises(ValueError, msg=str(arguments)):
                leat.Feed(data_sets.Batches(), **arguments)
        for data in (3, None):
            self.assertRaises(ValueError, leat.Feed, data)
        self.assertRaises(ValueError, leat.Feed, iter([1]), batch_size=3)

    def test_a_closed_feed_says_so(self):
        feed = leat.Feed(data_sets.Batches())
        feed.close()
        feed.close()
        with self.assertRaisesRegex(leat.Error, "closed"):
            next(iter(feed))


def run_script(code, folder, **arguments):
    """Runs a script in a new interpreter that finds leat and the data sets."""
    path = os.path.join(folder, "script.py")
    with open(path, "w") as file:
        file.write(code)
    places = [os.path.dirname(os.path.dirname(leat.__file__)), os.path.dirname(data_sets.__file__)]
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(places))
    return subprocess.run(
        [sys.executable, path], capture_output=True, text=True, env=environment, timeout=120, **arguments
    )


class Programs(unittest.TestCase):
    """Feeds in programs of several kinds."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()

    def tearDown(self):
        self.folder.cleanup()

    def test_a_main_module_without_a_guard(self):
        code = "import data_sets, leat\nfor batch in leat.Feed(data_sets.Batches()): pass\nprint('never')\n"
        done = run_script(code, self.folder.name)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('if __name__ == "__main__":', done.stderr)

    def test_a_module_found_by_a_changed_path(self):
        places = [os.path.dirname(os.path.dirname(leat.__file__)), os.path.dirname(data_sets.__file__)]
        code = (
            f"import sys; sys.path[:0] = {places!r}\n"
            "import data_sets, leat\n"
            "if __name__ == '__main__':\n"
            "    with leat.Feed(data_sets.Batches()) as feed: print(len(list(feed)))\n"
        )
        path = os.path.join(self.folder.name, "script.py")
        with open(path, "w") as file:
            file.write(code)
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run([sys.executable, path], capture_output=True, text=True, env=environment, timeout=120)
        self.assertEqual(done.stdout, "17\n", done.stderr)

    def test_classes_of_the_main_module(self):
        code = (
            "import leat\n"
            "class Own:\n"
            "    def __len__(self): return 5\n"
            "    def __getitem__(self, index): return [index, leat.worker_info().kind]\n"
            "if __name__ == '__main__':\n"
            "    with leat.Feed(Own()) as feed: print(list(feed)[-1])\n"
        )
        self.assertEqual(run_script(code, self.folder.name).stdout, "[4, 'process']\n")

    def test_modules_that_are_imported_while_a_batch_is_made(self):
        code = (
            "import leat\n"
            "class Late:\n"
            "    def __len__(self): return 4\n"
            "    def __getitem__(self, index):\n"
            "        import numpy.random, random\n"
            "        return [random.random(), float(numpy.random.rand())]\n"
            "if __name__ == '__main__':\n"
            "    for workers, kind in ((0, 'process'), (1, 'process'), (4, 'process'), (2, 'spawn')):\n"
            "        with leat.Feed(Late(), workers=workers, kind=kind, seed=1) as feed: print(list(feed))\n"
        )
        done = run_script(code, self.folder.name)
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 4, done.stderr)
        self.assertEqual(len(set(lines)), 1, lines)
        self.assertEqual(len(set(lines[0].split(","))), 8)

    def test_spawned_workers_are_fresh_interpreters(self):
        code = (
            "import leat, threading\n"
            "class Own:\n"
            "    def __init__(self): self.made = 0\n"
            "    def __setstate__(self, state):\n"
            "        self.made = 1\n"
            "        threading.Thread(target=threading.Event().wait, daemon=True).start()  # lost by a fork\n"
            "    def __len__(self): return 4\n"
            "    def __getitem__(self, index): return [self.made, threading.active_count(), leat.worker_info().kind]\n"
            "if __name__ == '__main__':\n"
            "    with leat.Feed(Own(), kind='spawn') as feed: print(list(feed)[-1])\n"
        )
        self.assertEqual(run_script(code, self.folder.name).stdout, "[1, 2, 'spawn']\n")

    def test_feeds_are_closed_at_exit(self):
        code = (
            "import data_sets, leat, os\n"
            "if __name__ == '__main__':\n"
            "    feeds = [leat.Feed(data_sets.Batches(), kind=kind)\n"
            "             for kind in ('process', 'spawn', 'thread', 'fork')]\n"
            "    for feed in feeds: next(iter(feed))\n"
            "    print('end')\n"
        )
        done = run_script(code, self.folder.name)
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("end\n", "", 0))

    def test_control_c(self):
        code = (
            "import data_sets, leat, os, signal, threading, time\n"
            "if __name__ == '__main__':\n"
            "    with leat.Feed(data_sets.Slow(100, 1000)) as feed:\n"
            "        try:\n"
            "            threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
            "            next(iter(feed))\n"
            "        except KeyboardInterrupt: print('interrupted', flush=True)\n"
            "        os._exit(0)\n"
        )
        # The script is waited for, and its workers, which have its output, for two minutes at most.
        self.assertEqual(run_script(code, self.folder.name).stdout, "interrupted\n")

    def test_threads_that_hold_the_lock_while_feeds_open(self):
        code = (
            "import data_sets, leat, sys, threading, time\n"
            "done = False\n"
            "has_lock = getattr(sys, '_is_gil_enabled', lambda: True)()\n"
            "def busy():\n"
            "    while not done:\n"
            "        sum(range(1000))\n"
            "        if not has_lock: time.sleep(0.001)  # Otherwise the threads would only take the cores.\n"
            "if __name__ == '__main__':\n"
            "    threads = [threading.Thread(target=busy) for _ in range(2)]\n"
            "    for thread in threads: thread.start()\n"
            "    for _ in range(4):\n"
            "        with leat.Feed(data_sets.Batches(), seed=1) as feed: count = len(list(feed))\n"
            "    done = True\n"
            "    print(count)\n"
        )
        self.assertEqual(run_script(code, self.folder.name).stdout, "17\n")


def take_some(feed, count):
    """Takes some batches of a pass, and keeps none of them alive."""
    for _ in zip(feed, range(count)):
        pass


class Ends(unittest.TestCase):
    def test_nothing_is_left(self):
        for _ in range(2):  # the first turn loads what stays loaded
            before = resources()
            for turn in range(8):
                data = data_sets.Batches() if turn < 4 else data_sets.Epochs()
                feed = leat.Feed(data, kind=("process", "thread", "fork", "spawn")[turn % 4], seed=turn)
                take_some(feed, turn * 3)
                if turn % 3:
                    feed.close()
                del feed
                gc.collect()
        after = await_resources(before)
        self.assertTrue(all(now <= then for now, then in zip(after, before)), (before, after))

    def test_address_space_is_limited(self):
        code = (
            "import data_sets, leat, resource\n"
            "if __name__ == '__main__':\n"
            "    resource.setrlimit(resource.RLIMIT_AS, (1 << 36, 1 << 36))\n"
            "    with leat.Feed(data_sets.Growing(), seed=1) as feed: print(len(list(feed)))\n"
        )
        with tempfile.TemporaryDirectory() as folder:
            done = run_script(code, folder)
        self.assertEqual(done.stdout, "40\n", done.stderr)

    def test_stop_from_another_thread(self):
        with leat.Feed(data_sets.Slow(100, 30), kind="process") as feed:
            threading.Timer(0.5, feed.stop).start()
            with self.assertRaises(leat.StoppedError):
                next(iter(feed))
            for pid in children():  # workers that sleep for 30 s need not be waited for
                os.kill(pid, signal.SIGKILL)

    def test_kills_at_random_instants(self):
        for kind, pause in (("process", 0.02), ("spawn", 0.4)):
            self.check_kills(kind, pause)

    def check_kills(self, kind, pause):
        stop = threading.Event()

        def kill():
            generator = random.Random(4)
            # On a busy machine a worker needs longer to begin; ten that have not begun in a row are an error.
            while not stop.wait(generator.random() * pause * max(1, os.getloadavg()[0] / os.cpu_count())):
                for pid in grandchildren()[:1]:
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass

        with leat.Feed(data_sets.Batches(), seed=9, kind=kind, max_deaths=1000) as feed:
            next(iter(feed))
            feed.load_state_dict({"leat": 1, "seed": 9, "pass": 0, "batch": 0})
            killer = threading.Thread(target=kill)
            killer.start()
            seen = []
            try:
                while len(seen) < 6 or (feed.stats()["worker_deaths"] == 0 and len(seen) < 500):
                    batches = []
                    for batch in feed:
                        time.sleep(0.005)
                        batches.append(pickle.dumps(batch))
                    seen.append(batches)
            finally:
                stop.set()
                killer.join()
            self.assertGreater(feed.stats()["worker_deaths"], 0)
        self.assertEqual(seen, record(data_sets.Batches(), passes=len(seen), workers=0, seed=9))


@contextlib.contextmanager
def silent_errors():
    """Sends what worker processes write to the standard error stream to nowhere."""
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def children(parent=None):
    listed = subprocess.run(["ps", "--ppid", str(parent or os.getpid()), "-o", "pid=,comm="], capture_output=True, text=True)
    return [int(line.split()[0]) for line in listed.stdout.splitlines() if not line.endswith(" ps")]


def grandchildren():
    return [pid for child in children() for pid in children(child)]


class Figures(unittest.TestCase):
    def test_figures(self):
        with leat.Feed(data_sets.Slow(20, 0.01), workers=1) as feed:
            self.assertIn("Too few", feed.verdict())
            list(feed)
            stats = feed.stats()
            self.assertEqual(stats["batches"], 20)
            self.assertGreater(stats["wait_ns"], 0)
            self.assertRegex(feed.verdict(), r"waited \d+ % of the time for data \(20 batches")
            self.assertEqual(len(feed), 20)
            self.assertIn("1 workers", repr(feed))

    def test_advice_on_memory(self):
        from leat import report

        with leat.Feed(data_sets.Batches(30), workers=1, kind="fork", seed=1) as feed:
            list(feed)
            self.assertEqual(report.advise_on_memory(feed), "")
        with leat.Feed(data_sets.Leaking(30), workers=1, kind="fork", seed=1) as feed:
            list(feed)
            self.assertGreater(report.measure_memory()[0], 64 << 20)
            self.assertRegex(feed.verdict(), r"worker processes have \d+ MB for themselves.*max_worker_rss")
        self.assertEqual(report.measure_memory()[2], 0)

    def test_trace(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")
            with leat.Feed(data_sets.Batches(20), seed=1) as feed:
                expected = [pickle.dumps(batch) for batch in feed]
                feed.load_state_dict({"leat": 1, "seed": 1, "pass": 0, "batch": 0})
                seen = [pickle.dumps(batch) for batch in itertools.islice(feed, 5)]
                feed.trace(path)  # in the middle of a pass
                seen += [pickle.dumps(batch) for batch in feed]
                feed.trace(None)
                self.assertEqual(seen, expected)
                self.assertEqual(len(list(feed)), 20)
            with open(path) as file:
                events = json.load(file)
            self.assertIn("leat-worker/", json.dumps(events))  # on a busy machine one worker may make all batches
            self.assertGreaterEqual(json.dumps(events).count('"made"'), 15)
            with self.assertRaisesRegex(leat.Error, "folder"):
                leat.Feed(data_sets.Batches(), trace=os.path.join(folder, "no folder", "trace"))

    def test_progress(self):
        cases = (data_sets.Batches(20), r"batch 20/20 \[#{30}\] .*waiting \d+ %"), (data_sets.Numbers(9), "batch 9 ")
        for data, text in cases:
            file = io.StringIO()
            with leat.Feed(data) as feed:
                count = sum(1 for _ in feed.show(file=file))
            self.assertRegex(file.getvalue(), text)
            self.assertEqual(file.getvalue().count("\n"), 1)
            self.assertEqual(file.getvalue().split()[1].split("/")[0], str(count))
        terminal = io.StringIO()
        terminal.isatty = lambda: True
        with leat.Feed(data_sets.Slow(10, 0.01)) as feed:
            list(leat.progress(feed, file=terminal, every=0))
        self.assertGreater(terminal.getvalue().count("\r"), 5)

    def test_html(self):
        with leat.Feed(data_sets.Slow(10, 0.01)) as feed:
            list(feed)
            text = feed._repr_html_()
            self.assertIn("<svg", text)
            self.assertIn("The caller waited", text)
            ElementTree.fromstring(text)
        self.assertIn("closed", feed._repr_html_())

    def test_tuning(self):
        trials = [
            leat.Trial(0, "process", 10, 60.0, 0.5),
            leat.Trial(1, "process", 10, 98.0, 0.1),
            leat.Trial(2, "process", 10, 100.0, 0.0),
        ]
        self.assertEqual(leat.Tuning(trials).best, {"workers": 1, "max_queue_size": 10, "kind": "process"})
        calls = []
        tuning = leat.tune(data_sets.Batches(), step=calls.append, workers=(0, 2), seconds=0.2, seed=1)
        self.assertEqual([trial.workers for trial in tuning.trials[:2]], [0, 2])
        self.assertTrue(all(trial.rate > 0 for trial in tuning.trials))
        self.assertIn("best", repr(tuning))
        ElementTree.fromstring(tuning._repr_html_())
        with leat.Feed(data_sets.Batches(), **tuning.best) as feed:
            self.assertEqual(feed.workers, tuning.best["workers"])
        self.assertTrue(calls)
        once = leat.tune(
            make_feed=lambda **setting: leat.Feed(data_sets.Batches(), passes=1, **setting),
            workers=(1,),
            kinds=("thread",),
        )
        self.assertEqual(once.best["kind"], "thread")

    @unittest.skipUnless(hasattr(numpy, "from_dlpack"), "this NumPy has no from_dlpack")
    def test_arrays_are_passed_on_without_a_copy(self):
        with leat.Feed(data_sets.Growing()) as feed:
            for batch in feed:
                last = batch
        other = numpy.from_dlpack(last)
        self.assertEqual(other.__array_interface__["data"][0], last.__array_interface__["data"][0])
        del batch, last
        gc.collect()
        self.assertTrue((other == 39).all())

    def test_rng_belongs_to_batches(self):
        self.assertRaises(RuntimeError, leat.rng)
        self.assertIsNone(leat.worker_info())


class Together(unittest.TestCase):
    def test_generators_share_a_helper_and_have_a_worker_each(self):
        from leat import _native

        def maker(number):
            return lambda numbers, key, stream: (0, [b"%d %d" % (number, os.getpid())])

        options = dict(
            length=None, samples=None, end_pass=None, command=None, data=None, workers=3, kind=2, queue=2, kept=4,
            most_bytes=1 << 29, batch_size=1, by_samples=False, generator=True, shuffle=0, window=0, seed=0, rank=0,
            world=1, remainder=0, limit=0, passes=0, deadline_ms=0, max_deaths=3, skip=False, max_memory=0,
            trace=None, at_pass=0, at_batch=0,
        )
        before = resources()
        feeds = _native.open_together(_native.Feed, [dict(options, make=maker(number)) for number in range(3)])
        processes = set()
        for number, feed in enumerate(feeds):
            made = {bytes(feed.get()[1][0]) for _ in range(5)}
            self.assertEqual(len(made), 1)  # one process makes all batches of a generator
            name, process = made.pop().split()
            self.assertEqual(int(name), number)
            processes.add(process)
        self.assertEqual(len(processes), 3)
        for feed in feeds:
            feed.close()
        del feeds, feed
        after = await_resources(before)
        self.assertTrue(all(now <= then for now, then in zip(after, before)), (before, after))
        with self.assertRaises(TypeError):
            _native.open_together(_native.Feed, [{}])


if __name__ == "__main__":
    unittest.main()
