# SPDX-License-Identifier: Apache-2.0
"""leat.Predictor: the numbers of Model.predict, memory, threads, publication and states."""

import gc
import threading
import unittest
import weakref

import numpy

import leat
from models import data, lstm, mlp, run_all, two_inputs


class Predictor(unittest.TestCase):
    def setUp(self):
        self.x, self.y = data()
        self.model = mlp()
        self.addCleanup(self.model.close)

    def test_same_numbers_as_predict(self):
        expected = self.model.predict(self.x)
        for release in (None, True, False):
            with leat.Predictor(self.model, release_gil=release) as predict:
                for i in range(30):
                    row = self.x[i : i + 1]
                    numpy.testing.assert_allclose(predict(row), expected[i : i + 1], atol=1e-6)
        with leat.Predictor(self.model, batch=8) as predict:
            self.assertEqual((predict.input_shapes, predict.output_shapes), ([(8, 4)], [(8, 2)]))
            numpy.testing.assert_allclose(predict.run(self.x[:8]), expected[:8], atol=1e-6)

    def test_forms_of_an_input(self):
        with leat.Predictor(self.model) as predict:
            row = self.x[:1].copy()
            expected = predict(row)
            wide = numpy.zeros((1, 8), "float32")
            wide[:, ::2] = row
            for form in (row[0], row.tolist(), row.astype("float64"), wide[:, ::2], memoryview(row)):
                numpy.testing.assert_array_equal(predict(form), expected)
            predict.inputs[0][:] = row
            numpy.testing.assert_array_equal(predict(), expected)
            whole = numpy.array([[1, 2, 3, 4]])
            numpy.testing.assert_array_equal(predict(whole), predict(whole.astype("float32")))

    def test_the_same_array_with_other_numbers(self):
        with leat.Predictor(self.model) as predict:
            row = self.x[:1].copy()
            first = predict(row)
            row += 1
            second = predict(row)
            self.assertGreater(abs(first - second).max(), 0)
            numpy.testing.assert_allclose(second, self.model.predict(row), atol=1e-6)

    def test_out(self):
        with leat.Predictor(self.model) as predict:
            out = numpy.empty((1, 2), "float32")
            for i in range(3):
                self.assertIs(predict(self.x[i : i + 1], out=out), out)
                numpy.testing.assert_array_equal(out, predict(self.x[i : i + 1]))
            kept = predict(self.x[:1])
            copy = kept.copy()
            predict(self.x[1:2])
            numpy.testing.assert_array_equal(kept, copy)

    def test_wrong_arguments(self):
        with leat.Predictor(self.model) as predict:
            with self.assertRaisesRegex(leat.ShapeError, r"input 0 .*expected \(1, 4\) float32, received \(1, 3\)"):
                predict(self.x[:1, :3])
            with self.assertRaisesRegex(leat.ShapeError, r"expected \(1, 4\) float32, received \(2, 4\)"):
                predict(self.x[:2])
            with self.assertRaisesRegex(leat.DtypeError, r"output 0 .*received \(1, 2\) float64; `out`"):
                predict(self.x[:1], out=numpy.empty((1, 2)))
            frozen = numpy.empty((1, 2), "float32")
            frozen.flags.writeable = False
            with self.assertRaisesRegex((leat.Error, ValueError), "writ|read-only"):
                predict(self.x[:1], out=frozen)
            with self.assertRaisesRegex(leat.ArgumentError, "1 inputs"):
                predict(self.x[:1], self.x[:1])
            with self.assertRaisesRegex(TypeError, "`out`"):
                predict.run(self.x[:1], into=None)
            with self.assertRaises((TypeError, ValueError, leat.Error)):
                predict("text")
            predict(self.x[:1])
        with self.assertRaisesRegex(leat.Error, "the predictor is closed"):
            predict(self.x[:1])
        with self.assertRaisesRegex(leat.ArgumentError, "expected a leat.Model"):
            leat.Predictor(self.x)

    def test_several_inputs_and_outputs(self):
        model = two_inputs()
        a, b = numpy.ones((1, 3), "float32"), numpy.full((1, 2), 2, "float32")
        expected = model.predict([a, b])
        with leat.Predictor(model) as predict:
            for got in (predict(a, b), predict([a, b])):
                for one, other in zip(got, expected):
                    numpy.testing.assert_allclose(one, other, atol=1e-6)
            out = [numpy.empty((1, 1), "float32"), numpy.empty((1, 2), "float32")]
            self.assertIs(predict(a, b, out=out), out)
            numpy.testing.assert_allclose(out[1], expected[1], atol=1e-6)

    def test_publish_and_sync(self):
        with leat.Predictor(self.model) as predict:
            before = predict(self.x[:1])
            self.model.set_weights([weight * 2 + 1 for weight in self.model.get_weights()])
            self.assertFalse(predict.sync())
            numpy.testing.assert_array_equal(predict(self.x[:1]), before)
            self.model.publish()
            version = predict.version
            self.assertTrue(predict.sync())
            self.assertGreater(predict.version, version)
            numpy.testing.assert_allclose(predict(self.x[:1]), self.model.predict(self.x[:1]), rtol=1e-5)

    def test_states(self):
        model = lstm()
        steps = numpy.random.RandomState(1).rand(1, 6, 3).astype("float32")
        expected = model.predict(steps)
        with leat.Predictor(model, streaming=True, inputs=[(1, 1, 3)]) as predict:
            saved = []
            for t in range(6):
                saved.append(predict.save_state())
                numpy.testing.assert_allclose(predict(steps[:, t : t + 1]), expected[:, t : t + 1], atol=1e-6)
            predict.restore_state(saved[3])
            numpy.testing.assert_allclose(predict(steps[:, 3:4]), expected[:, 3:4], atol=1e-6)
            h = predict.state("lstm", 0)
            self.assertEqual(h.shape, (1, 5))
            self.assertGreater(abs(h).max(), 0)
            predict.reset()
            self.assertEqual(abs(h).max(), 0)
            numpy.testing.assert_allclose(predict(steps[:, :1]), expected[:, :1], atol=1e-6)
            predict.reset(0)
            self.assertEqual(abs(h).max(), 0)
            with self.assertRaisesRegex(leat.Error, "out of range"):
                predict.reset(1)
            with self.assertRaisesRegex(leat.ShapeError, "bytes"):
                predict.restore_state(b"")
            with self.assertRaises(leat.NotFoundError):
                predict.state("no")

    def test_device(self):
        x = self.x[:4]
        with leat.Predictor(self.model, 4) as host:
            self.assertEqual(host.device, "cpu")
            expected = host(x).copy()
        with leat.Predictor(self.model, 4, device="auto") as predict:
            self.assertIn(predict.device, ("cpu", "cuda:0"))
            numpy.testing.assert_allclose(predict(x), expected, rtol=1e-4, atol=1e-5)
        with self.assertRaisesRegex(leat.Error, "there is no device 'tpu'"):
            leat.Predictor(self.model, device="tpu")

    def test_smaller_weights(self):
        model = lstm()
        window = numpy.random.RandomState(2).rand(1, 6, 3).astype("float32")
        for weights in ("bf16", "int8"):
            with leat.Predictor(model, weights=weights, inputs=[(1, 6, 3)]) as predict:
                numpy.testing.assert_allclose(predict(window), model.predict(window), atol=0.02)
        with self.assertRaisesRegex(leat.Error, "expected f32, bf16 or int8, received 'int4'"):
            leat.Predictor(model, weights="int4", inputs=[(1, 6, 3)])

    def test_memory(self):
        predict = leat.Predictor(self.model)
        row = self.x[:1].copy()
        predict(row)
        self.model.close()
        predict(row)
        view = predict.inputs[0]
        gone = weakref.ref(predict)
        predict.close()
        predict.close()
        del predict
        view[:] = 1  # the memory lives as long as the array
        self.assertEqual(view.sum(), 4)
        del view
        gc.collect()
        self.assertIsNone(gone())

    def test_a_predictor_in_each_thread(self):
        expected = self.model.predict(self.x)

        def act(predict):
            with predict:
                for _ in range(20):
                    for i in range(len(self.x)):
                        numpy.testing.assert_allclose(predict(self.x[i : i + 1])[0], expected[i], atol=1e-6)

        # To make a predictor is a call of the model, which serves one thread at a time.
        predictors = [leat.Predictor(self.model, release_gil=True) for _ in range(3)]
        run_all(*(lambda predict=predict: act(predict) for predict in predictors))

    def test_one_predictor_in_two_threads(self):
        model = mlp(hidden=60000)
        errors, begun, stop = [], threading.Event(), threading.Event()
        with leat.Predictor(model, batch=64, release_gil=True) as predict:

            def act():
                while not stop.is_set():
                    begun.set()
                    try:
                        predict(self.x)
                    except leat.BusyError as error:
                        errors.append(str(error))

            thread = threading.Thread(target=act)
            thread.start()
            begun.wait()
            for _ in range(500):
                try:
                    predict(self.x)
                except leat.BusyError as error:
                    errors.append(str(error))
                if errors:
                    break
            stop.set()
            thread.join()
            self.assertIn("a predictor for each thread", errors[0])
            numpy.testing.assert_allclose(predict(self.x), model.predict(self.x), atol=1e-4)


if __name__ == "__main__":
    unittest.main()
