# SPDX-License-Identifier: Apache-2.0
"""leat.keras's enqueuers, without a Keras: order, hooks, errors, generators, the end."""

import itertools
import os
import random
import signal
import sys
import tempfile
import threading
import time
import unittest
import warnings

import enqueuer_data
import leat
import leat.keras
from leat import _enqueuers, _keras_glue
from leat.keras import GeneratorEnqueuer, OrderedEnqueuer, PyDatasetEnqueuer


def take(batches, count):
    return [int(batch) for batch in itertools.islice(batches, count)]


class Locked:
    """An iterator that many threads may call."""

    def __init__(self, values):
        self.values = iter(values)
        self.lock = threading.Lock()

    def __iter__(self):
        return self

    def __next__(self):
        with self.lock:
            value = next(self.values)
        time.sleep(0.001 * (value % 3))
        return value


class Ordered(unittest.TestCase):
    def open(self, sequence, workers=3, queue=10, **options):
        enqueuer = OrderedEnqueuer(sequence, **options)
        enqueuer.start(workers, queue)
        self.addCleanup(enqueuer.stop)
        return enqueuer, enqueuer.get()

    def test_order_over_passes_and_hooks(self):
        expected = [value * factor for factor in (1, 5, 25) for value in range(7)]
        for processes in (False, True):
            enqueuer, batches = self.open(enqueuer_data.Multiplied(7), use_multiprocessing=processes)
            self.assertTrue(enqueuer.is_running())
            self.assertEqual(take(batches, 21), expected)
            enqueuer.stop()
            self.assertFalse(enqueuer.is_running())
            self.assertEqual(take(batches, 1), [])

    def test_a_queue_without_bound_has_a_pass(self):
        made = threading.Semaphore(0)

        class Counted:
            def __len__(self):
                return 100

            def __getitem__(self, index):
                made.release()
                return index

        enqueuer, batches = self.open(Counted(), queue=0)
        for _ in range(100):
            self.assertTrue(made.acquire(timeout=30))  # Nothing was taken.
        self.assertEqual(take(batches, 200), [*range(100)] * 2)

    def test_shuffle_is_that_of_keras(self):
        random.seed(3)
        expected = []
        for _ in range(2):
            order = list(range(50))
            random.shuffle(order)
            expected += order
        for processes in (False, True):
            random.seed(3)
            _, batches = self.open(enqueuer_data.Numbers(50), shuffle=True, use_multiprocessing=processes)
            self.assertEqual(take(batches, 100), expected)

    def test_an_order_that_is_drawn_late_is_one_order(self):
        for shuffle in (False, True):
            _, batches = self.open(enqueuer_data.DrawsOrder(40), shuffle=shuffle, use_multiprocessing=True)
            for _ in range(2):
                self.assertEqual(sorted(take(batches, 40)), list(range(40)))

    def test_batches_that_are_none_are_skipped(self):
        for processes in (False, True):
            _, batches = self.open(enqueuer_data.Sparse(6), use_multiprocessing=processes)
            self.assertEqual(take(batches, 6), [1, 3, 5] * 2)

    def test_an_exception_arrives_and_stops_the_enqueuer(self):
        for processes in (False, True):
            enqueuer, batches = self.open(enqueuer_data.Faulty(), use_multiprocessing=processes)
            with self.assertRaises(IndexError):
                take(batches, 100)
            self.assertFalse(enqueuer.is_running())

    def test_an_exception_of_on_epoch_end_arrives(self):
        _, batches = self.open(enqueuer_data.BadEnd(4))
        with self.assertRaisesRegex(ValueError, "no epoch ends"):
            take(batches, 100)

    def test_the_length_may_change(self):
        sequence = enqueuer_data.Halved(8)
        enqueuer, batches = self.open(sequence)
        self.assertEqual(take(batches, 8), list(range(8)))
        enqueuer.join_end_of_epoch()
        self.assertEqual(len(sequence), 4)
        self.assertEqual(take(batches, 6), [0, 1, 2, 3, 0, 1])

    def test_no_batch_at_all(self):
        with self.assertRaisesRegex(ValueError, "length 0"):
            OrderedEnqueuer(enqueuer_data.Numbers(0)).start()

    def test_a_sequence_that_cannot_be_pickled_is_forked(self):
        sequence = enqueuer_data.Numbers(5)
        sequence.lock = threading.Lock()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            _, batches = self.open(sequence, use_multiprocessing=True)
            self.assertEqual(take(batches, 7), [0, 1, 2, 3, 4, 0, 1])
        self.assertIn("data.lock", str(caught[0].message))

    def test_a_killed_worker_costs_nothing(self):
        _, batches = self.open(enqueuer_data.Pids(40), workers=2, queue=2, use_multiprocessing=True)
        got = []
        for number, (value, pid) in enumerate(itertools.islice(batches, 40)):
            got.append(value)
            if number in (5, 20):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        self.assertEqual(got, list(range(40)))

    def test_a_late_batch_is_worth_one_warning(self):
        _enqueuers._PATIENCE, patience = 0.5, _enqueuers._PATIENCE
        self.addCleanup(setattr, _enqueuers, "_PATIENCE", patience)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            _, batches = self.open(enqueuer_data.Late(4), workers=2)
            self.assertEqual(take(batches, 8), [0, 1, 2, 3] * 2)
        texts = [str(warning.message) for warning in caught]
        # On a busy machine other inputs may be late, too.
        late = "The input 2 could not be retrieved. It could be because a worker has died."
        self.assertEqual(texts.count(late), 1, texts)

    def test_stop_while_another_thread_waits(self):
        class Gated(enqueuer_data.Numbers):
            def __getitem__(self, index):
                return index if index < 2 else gate.wait(120)

        gate, waits = threading.Event(), threading.Event()
        self.addCleanup(gate.set)
        enqueuer, batches = self.open(Gated(4), workers=1)
        got = []

        def wait():
            got.extend(take(batches, 2))
            waits.set()
            got.extend(take(batches, 100))

        waiter = threading.Thread(target=wait)
        waiter.start()
        self.assertTrue(waits.wait(60))
        time.sleep(0.1)  # The waiter waits for batch 2 now, most likely.
        stopper = threading.Thread(target=enqueuer.stop)  # It waits for the thread that makes batch 2.
        stopper.start()
        waiter.join(60)
        self.assertFalse(waiter.is_alive())
        self.assertEqual(got, [0, 1])
        gate.set()
        stopper.join(60)
        self.assertFalse(stopper.is_alive())

    def test_stop_without_start_and_twice(self):
        enqueuer = OrderedEnqueuer(enqueuer_data.Numbers(3))
        enqueuer.stop()
        enqueuer.start()
        with self.assertRaisesRegex(RuntimeError, "runs already"):
            enqueuer.start()
        enqueuer.stop()
        enqueuer.stop()
        enqueuer.start()
        self.assertEqual(take(enqueuer.get(), 3), [0, 1, 2])
        enqueuer.stop()


class Generators(unittest.TestCase):
    def open(self, generator, workers=3, queue=10, **options):
        enqueuer = GeneratorEnqueuer(generator, **options)
        enqueuer.start(workers, queue)
        self.addCleanup(enqueuer.stop)
        return enqueuer, enqueuer.get()

    def test_a_generator_keeps_its_order_and_ends(self):
        _, batches = self.open(value for value in range(40))
        self.assertEqual(take(batches, 100), list(range(40)))

    def test_threads_share_an_iterator(self):
        _, batches = self.open(Locked(range(40)))
        self.assertEqual(sorted(take(batches, 100)), list(range(40)))

    def test_a_queue_without_bound_ends_somewhere(self):
        generator = itertools.count()
        enqueuer = GeneratorEnqueuer(generator)
        enqueuer.start(1, 0)
        self.addCleanup(enqueuer.stop)
        self.assertEqual(take(enqueuer.get(), 300), [*range(300)])
        time.sleep(0.2)
        enqueuer.stop()
        self.assertLess(next(generator), 300 + 80)

    def test_processes_have_copies_that_take_turns(self):
        _, batches = self.open((value for value in range(10)), use_multiprocessing=True)
        self.assertEqual(take(batches, 100), [value for value in range(10) for _ in range(3)])

    def test_the_copies_have_random_numbers_of_their_own_that_the_seed_repeats(self):
        drawn = []
        for _ in range(2):
            source = (random.getrandbits(48) for _ in itertools.count())
            enqueuer, batches = self.open(source, use_multiprocessing=True, random_seed=5)
            drawn.append(take(batches, 12))
            enqueuer.stop()
        self.assertEqual(drawn[0], drawn[1])
        self.assertEqual(len(set(drawn[0])), 12)

    def test_an_exception_arrives(self):
        def fail():
            yield 1
            raise KeyError("broken")

        for options in ({}, {"use_multiprocessing": True}):
            enqueuer, batches = self.open(fail(), **options)
            with self.assertRaises(KeyError):
                take(batches, 10)
            self.assertFalse(enqueuer.is_running())

    def test_wait_time_is_deprecated(self):
        with self.assertWarns(DeprecationWarning):
            GeneratorEnqueuer(iter(()), wait_time=0.1)


class PyDatasets(unittest.TestCase):
    """The enqueuer that Keras 3's adapter uses."""

    def epochs(self, data, counts, **options):
        enqueuer = PyDatasetEnqueuer(data, workers=2, **options)
        self.addCleanup(enqueuer.stop, False)
        got = []
        batches = None
        for epoch, count in enumerate(counts):
            enqueuer.start(epoch)
            batches = batches or enqueuer.get()
            got.append(take(batches, count))
            enqueuer.stop()
            if hasattr(data, "on_epoch_end"):
                data.on_epoch_end()
        with self.assertRaisesRegex(ValueError, "on_epoch_end"):
            next(batches)
        return got

    def test_epochs_follow_each_other(self):
        for processes in (False, True):
            got = self.epochs(enqueuer_data.PyNumbers(5), [5, 3, 2, 5], use_multiprocessing=processes)
            self.assertEqual(got, [[0, 1, 2, 3, 4], [0, 1, 2], [3, 4], [0, 1, 2, 3, 4]])

    def test_the_order_is_that_of_keras(self):
        expected = []
        for epoch in range(2):
            expected.append(list(range(9)))
            random.Random(epoch).shuffle(expected[-1])
        self.assertEqual(self.epochs(enqueuer_data.PyNumbers(9), [9, 9], shuffle=True), expected)

    def test_hooks(self):
        got = self.epochs(enqueuer_data.PyMultiplied(3), [3, 3], use_multiprocessing=True)
        self.assertEqual(got, [[0, 1, 2], [0, 5, 10]])

    def test_shards_and_data_without_an_end(self):
        got = self.epochs(enqueuer_data.PyNumbers(7), [3, 3], num_data_shards=2, data_shard_id=1)
        self.assertEqual(got, [[1, 3, 5]] * 2)
        self.assertEqual(self.epochs(enqueuer_data.PyNumbers(None), [3, 3]), [[0, 1, 2], [3, 4, 5]])

    def test_another_iterator_begins_again(self):
        for looked, kept in ((1, True), (4, False)):
            enqueuer = PyDatasetEnqueuer(enqueuer_data.PyNumbers(6), workers=2)
            enqueuer.start(0)
            take(enqueuer.get(), looked)
            enqueuer.stop()
            enqueuer.start(1)
            self.assertEqual(take(enqueuer.get(), 8), [0, 1, 2, 3, 4, 5, 0, 1], kept)
            enqueuer.stop(False)


class Glue(unittest.TestCase):
    def test_no_keras_is_imported(self):
        self.assertFalse({"keras", "tensorflow", "tf_keras"} & set(sys.modules))

    def test_without_keras_the_error_says_so(self):
        with self.assertRaisesRegex(ImportError, "import it before"):
            leat.keras.use_enqueuers()

    def test_a_keras_that_is_imported_after_the_feed_was_opened(self):
        text = "class KerasSequenceAdapter: pass\ndef select_data_adapter(x, y): return 'theirs'\n"
        with tempfile.TemporaryDirectory() as folder, leat.Feed(enqueuer_data.Numbers(3), workers=0) as feed:
            path = folder
            for name in ("tf_keras", "src", "engine"):
                path = os.path.join(path, name)
                os.mkdir(path)
                open(os.path.join(path, "__init__.py"), "w").close()
            with open(os.path.join(path, "data_adapter.py"), "w") as file:
                file.write(text)
            sys.path.insert(0, folder)
            try:
                from tf_keras.src.engine import data_adapter
            finally:
                sys.path.remove(folder)
                for name in [name for name in sys.modules if name.partition(".")[0] == "tf_keras"]:
                    del sys.modules[name]
                _keras_glue._taught.discard("tf_keras.src.engine.data_adapter")
            self.assertEqual(data_adapter.select_data_adapter([1], None), "theirs")
            adapter = data_adapter.select_data_adapter(feed, None)
            self.assertTrue(issubclass(adapter, data_adapter.KerasSequenceAdapter))

    def test_a_module_whose_name_begins_with_keras_is_no_keras(self):
        from leat import _sources

        for module, expected in (("keras_data", True), ("keras.utils", False), ("tensorflow.python", False)):
            hook = type("Data", (), {"on_epoch_end": lambda self: None})
            hook.on_epoch_end.__module__ = module
            self.assertEqual(_sources.overrides_end(hook()), expected, module)

    def test_a_stream_may_be_looked_at(self):
        from leat._keras_glue import Stream

        with leat.Feed(enqueuer_data.Numbers(20), workers=2) as feed:
            stream = Stream(feed)
            self.assertEqual([int(batch) for batch in stream.peek(2)], [0, 1])
            first = stream.begin()
            self.assertEqual(take(first, 3), [0, 1, 2])
            second = stream.begin()
            self.assertEqual(list(first), [])
            self.assertEqual([int(batch) for batch in second], list(range(20)))
            self.assertEqual(feed.state_dict()["pass"], 1)


if __name__ == "__main__":
    unittest.main()
