# SPDX-License-Identifier: Apache-2.0
"""A model and its predictors in several threads at once, also of a free-threaded interpreter."""

import threading
import time
import unittest

import numpy

import leat
from models import data, mlp, run_all


class Threads(unittest.TestCase):
    def setUp(self):
        self.x, self.y = data()
        self.model = mlp()
        self.addCleanup(self.model.close)

    def test_predictors_while_weights_are_published(self):
        """Each prediction is that of one publication, whose number is the bias of both outputs."""
        weights = [numpy.zeros_like(weight) for weight in self.model.get_weights()]
        done = threading.Event()
        predictors = []
        for _ in range(4):
            self.model.set_weights(weights)
            predictors.append(leat.Predictor(self.model))
        seen = [set() for _ in predictors]

        def publish():
            for number in range(1, 200):
                weights[-1][:] = number
                self.model.set_weights(weights)
                self.model.publish()
            done.set()

        def act(predict, mine):
            out = numpy.empty((1, 2), "float32")
            last, ends = 0.0, False
            while not ends:
                ends = done.is_set()
                predict.sync()
                predict.run(self.x[:1], out=out)
                self.assertEqual(out[0, 0], out[0, 1])
                self.assertGreaterEqual(out[0, 0], last)
                last = float(out[0, 0])
                mine.add(last)
                numpy.testing.assert_array_equal(predict(self.x[:1]), out)

        actors = [lambda predict=predict, mine=mine: act(predict, mine) for predict, mine in zip(predictors, seen)]
        run_all(publish, *actors)
        for predict, mine in zip(predictors, seen):
            self.assertEqual(max(mine), 199.0)
            predict.close()

    def test_one_predictor_in_four_threads(self):
        """Calls at the same time are refused or right, and the predictor can be closed at any moment."""
        expected = self.model.predict(self.x[:1])
        counts = {"right": 0, "busy": 0, "closed": 0, "ended": 0}
        lock = threading.Lock()
        predict = leat.Predictor(self.model, release_gil=True)

        def count(name):
            with lock:
                counts[name] += 1

        def call():
            try:
                for _ in range(500):
                    try:
                        numpy.testing.assert_array_equal(predict(self.x[:1]), expected)
                        count("right")
                    except leat.BusyError:
                        count("busy")
                    except leat.Error as error:
                        self.assertIn("closed", str(error))
                        count("closed")
            finally:
                count("ended")

        def close():
            while counts["right"] < 50 and counts["ended"] < 3:
                time.sleep(0.001)
            while not predict.closed:
                try:
                    predict.close()
                except leat.BusyError:
                    pass

        run_all(call, call, call, close)
        self.assertGreaterEqual(counts["right"], 50)

    def test_a_model_in_four_threads(self):
        """Calls at the same time are refused or right."""
        expected = self.model.evaluate(self.x, self.y, verbose=0)
        counts = {"right": 0, "busy": 0}

        def call():
            for _ in range(20):
                try:
                    self.assertEqual(self.model.evaluate(self.x, self.y, verbose=0), expected)
                    counts["right"] += 1
                except leat.BusyError as error:
                    self.assertIn("leat.Predictor", str(error))
                    counts["busy"] += 1

        def look():
            for _ in range(200):
                self.assertTrue(self.model.compiled)
                self.assertEqual((self.model.device, self.model.stop_training), ("cpu", False))

        run_all(call, call, look, look)
        self.assertGreater(counts["right"], 0)

    def test_a_model_in_each_thread(self):
        results = []

        def fit(model):
            with model:
                model.compile("sgd", "mse")

                def generate():
                    for i in range(0, 64, 16):
                        yield self.x[i : i + 16], self.y[i : i + 16]

                notes = []
                note = leat.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: notes.append(logs["loss"]))
                model.fit(generate(), verbose=0, callbacks=[note], threads=1)
                results.append((notes, model.predict(self.x).tobytes()))

        models = [self.model.clone() for _ in range(4)]
        run_all(*(lambda model=model: fit(model) for model in models))
        self.assertEqual(len(results), 4)
        for result in results[1:]:
            self.assertEqual(result, results[0])

    def test_closing_while_others_look(self):
        for _ in range(20):
            model = self.model.clone()

            def look():
                for _ in range(50):
                    try:
                        model.inputs, model.learning_rate, model.get_weights()
                    except leat.Error:
                        pass

            def close():
                while True:
                    try:
                        return model.close()
                    except leat.BusyError:
                        pass

            run_all(look, look, close)


if __name__ == "__main__":
    unittest.main()
