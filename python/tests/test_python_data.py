# SPDX-License-Identifier: Apache-2.0
"""Data of Python in fit: it is taken ahead of the steps, and ends, fails and stops like other data."""

import itertools
import re
import threading
import time
import unittest

import numpy

import leat
from models import Sequence, Slow, data, mlp, run_python


class Watched(Sequence):
    """Records the names of the threads that make batches, and the indices in their order."""

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.threads, self.indices, self.ends = set(), [], 0

    def __getitem__(self, index):
        self.threads.add(threading.get_ident())
        self.indices.append(index)
        return super().__getitem__(index)


class PythonData(unittest.TestCase):
    def setUp(self):
        self.x, self.y = data()
        self.model = mlp()
        self.addCleanup(self.model.close)

    def test_batches_are_made_while_a_step_runs(self):
        sequence = Watched(self.x, self.y)
        made = []

        def wait(batch, logs):
            if batch == 0:  # The step goes on only when later batches are there.
                until = time.monotonic() + 20
                while len(sequence.indices) < 4 and time.monotonic() < until:
                    time.sleep(0.001)
                made.append(len(sequence.indices))

        self.model.fit(
            sequence, verbose=0, shuffle=False, callbacks=[leat.callbacks.LambdaCallback(on_train_batch_end=wait)]
        )
        self.assertEqual(made, [4])
        self.assertNotIn(threading.get_ident(), sequence.threads)
        self.assertNotIn("leat-take", {thread.name for thread in threading.enumerate()})

    def test_without_workers_the_caller_makes_batches(self):
        sequence = Watched(self.x, self.y)
        self.model.fit(sequence, verbose=0, shuffle=False, workers=0)
        self.assertEqual(sequence.threads, {threading.get_ident()})

    def test_validation_data_of_another_kind(self):
        """The kind of the validation data does not change the numbers, nor does that of the training data."""

        def values(train, validation, **options):
            model = self.model.clone()
            model.compile("sgd", "mse")
            history = model.fit(*train, validation_data=validation, shuffle=False, epochs=3, verbose=0, **options)
            return history.history["loss"] + history.history["val_loss"]

        arrays, sequence = (self.x, self.y), Sequence(self.x, self.y)
        expected = values(arrays, arrays, batch_size=16)
        for workers in (0, 1, 3):
            self.assertEqual(values(arrays, sequence, batch_size=16, workers=workers), expected)
            self.assertEqual(values((sequence,), arrays, validation_batch_size=16, workers=workers), expected)
            self.assertEqual(values((sequence,), sequence, workers=workers), expected)
        part = values((sequence,), Sequence(self.x, self.y), validation_steps=2)
        self.assertEqual(part, values(arrays, (self.x[:32], self.y[:32]), batch_size=16))

    def test_validations_of_a_generator_go_on(self):
        def generate():
            for number in itertools.count():
                yield self.x[:8], numpy.full((8, 2), number, "float32")

        self.model.set_weights([numpy.zeros_like(weight) for weight in self.model.get_weights()])
        self.model.learning_rate = 0.0
        history = self.model.fit(
            self.x, self.y, validation_data=generate(), validation_steps=2, epochs=3, verbose=0
        ).history["val_loss"]
        self.assertEqual(history, [0.5, 6.5, 20.5])  # the means of 0, 1 and 4, 9 and 16, 25

    def test_a_feed_is_where_training_is(self):
        with leat.Feed(Sequence(self.x, self.y), workers=1, kind="thread", passes=3) as feed:
            seen = []
            note = leat.callbacks.LambdaCallback(on_train_batch_end=lambda *_: seen.append(feed.state_dict()["batch"]))
            self.model.fit(feed, verbose=0, callbacks=[note])
            self.assertEqual(seen, [1, 2, 3, 4])

    def test_failures(self):
        for workers in (0, 1, 2):
            with self.assertRaises(KeyError) as caught:
                self.model.fit(Sequence(self.x, self.y, fails_at=3), workers=workers, verbose=0)
            self.assertEqual(caught.exception.args, ("no batch 3",))

        def other_shapes():
            yield self.x[:4], self.y[:4]
            yield self.x[:4, :3], self.y[:4]

        with self.assertRaises(leat.Error):
            self.model.fit(other_shapes(), steps_per_epoch=2, verbose=0)

        def nothing():
            yield self.x[:4], self.y[:4]
            yield self.x[:0], self.y[:0]

        with self.assertRaisesRegex(leat.ShapeError, "no samples"):
            self.model.fit(nothing(), steps_per_epoch=2, verbose=0)
        self.assertEqual(len(self.model.fit(self.x, self.y, verbose=0).epoch), 1)

    def test_stop_training_ends_a_wait_for_data(self):
        begun, ended = threading.Event(), threading.Event()
        note = leat.callbacks.LambdaCallback(
            on_train_batch_end=lambda *_: begun.set(), on_train_end=lambda *_: ended.set()
        )
        outcome = []

        def stop():
            begun.wait(60)
            time.sleep(0.1)  # The fit waits for data now, most likely.
            self.model.stop_training = True
            outcome.append(ended.wait(60))
            gate.set()  # The end of the fit waits for a worker thread.

        class Waits(Slow):
            def __getitem__(self, index):
                if index:
                    gate.wait(120)
                return Sequence.__getitem__(self, index)

        gate = threading.Event()
        self.addCleanup(gate.set)
        thread = threading.Thread(target=stop)
        thread.start()
        history = self.model.fit(Waits(self.x, self.y), verbose=0, shuffle=False, callbacks=[note], epochs=5)
        thread.join()
        self.assertEqual(outcome, [True])
        self.assertTrue(history.stop_reason)
        self.assertTrue(self.model.stop_training)

    def test_the_verdict(self):
        class Costly(Sequence):
            def __getitem__(self, index):
                time.sleep(0.05)
                return super().__getitem__(index)

        verdict = self.model.fit(Costly(self.x, self.y), verbose=0).verdict
        self.assertRegex(verdict, r"Training waited \d+ % of the time for data .* bound by data")
        self.assertRegex(verdict, r"a batch takes \d+\.\d\d ms of a worker. About \d+ workers would be enough")
        self.assertGreaterEqual(float(re.search(r"a batch takes (\S+) ms", verdict).group(1)), 50)
        verdict = self.model.fit(Costly(self.x, self.y), verbose=0, workers=0).verdict
        self.assertIn("Batches are made between the steps: workers=", verdict)

        def generate():
            yield from (Costly(self.x, self.y)[i % 4] for i in range(8))

        verdict = self.model.fit(generate(), steps_per_epoch=8, verbose=0).verdict
        self.assertIn("An iterable is read by one thread", verdict)
        slow = leat.callbacks.LambdaCallback(on_train_batch_end=lambda *_: time.sleep(0.03))
        verdict = self.model.fit(Sequence(self.x, self.y), epochs=2, verbose=0, callbacks=[slow]).verdict
        self.assertIn("bound by callbacks", verdict)
        self.assertIn("More workers would not help: the batches are there in time", verdict)


class TheEnd(unittest.TestCase):
    """Programs that end, fork or go on after their fits."""

    def run_program(self, text, expected):
        head = "import leat, models, os, threading\nx, y = models.data(256)\nmodel = models.mlp()\n"
        process = run_python(head + text)
        out, _ = process.communicate(timeout=200)
        self.assertEqual((out, process.returncode), (expected, 0))

    def test_the_program_ends_during_a_fit(self):
        self.run_program(
            "begun = threading.Event()\n"
            "note = leat.callbacks.LambdaCallback(on_train_batch_end=lambda *_: begun.set())\n"
            "def fit():\n"
            "    model.fit(models.Sequence(x, y), epochs=10**9, verbose=0, callbacks=[note])\n"
            "threading.Thread(target=fit, daemon=True).start()\n"
            "begun.wait()\n"
            "print('end')\n",
            "end\n",
        )

    def test_a_fork(self):
        self.run_program(
            "import warnings\n"
            "warnings.simplefilter('ignore')  # Python warns of a fork beside other threads.\n"
            "model.fit(models.Sequence(x, y), verbose=0)\n"
            "child = os.fork()\n"
            "if child == 0:\n"
            "    model.fit(models.Sequence(x, y), verbose=0)\n"
            "    leat.Predictor(model)(x[:1])\n"
            "    os._exit(7)\n"
            "def fork(*_):\n"
            "    grandchild = os.fork()\n"
            "    if grandchild == 0: os._exit(0)\n"
            "    os.waitpid(grandchild, 0)\n"
            "note = leat.callbacks.LambdaCallback(on_train_batch_end=fork)\n"
            "model.fit(models.Sequence(x, y), verbose=0, callbacks=[note])\n"
            "print('end', os.waitpid(child, 0)[1] >> 8)\n",
            "end 7\n",
        )

    def test_nothing_is_left_behind(self):
        self.run_program(
            "import gc\n"
            "gc.disable()  # A model is freed with its last reference.\n"
            "sequence = models.Sequence(x, y)\n"
            "def repeat(times):\n"
            "    for number in range(times):\n"
            "        model = models.mlp()\n"
            "        model.fit(x, y, verbose=0, validation_split=0.2)\n"
            "        model.fit(sequence, verbose=0, validation_data=(x, y))\n"
            "        model.fit((sequence[i] for i in range(4)), verbose=0)\n"
            "        leat.Predictor(model)(x[:1])\n"
            "    gc.collect()\n"
            "    with open('/proc/self/statm') as file:\n"
            "        pages = int(file.read().split()[1])\n"
            "    return threading.active_count(), len(os.listdir('/proc/self/fd')), pages\n"
            "first, last = repeat(50), repeat(200)\n"
            "assert last[0] <= first[0] and last[1] <= first[1], (first, last)\n"
            "assert last[2] < 1.05 * first[2], (first, last)\n"
            "print('end')\n",
            "end\n",
        )


if __name__ == "__main__":
    unittest.main()
