# SPDX-License-Identifier: Apache-2.0
"""leat under a real Keras: Keras 3 (KERAS_BACKEND=tensorflow, jax, torch or numpy), tf.keras 2.12 to 2.15, Keras 2.3.1.

From this folder, with leat's build folder and this folder's parent on PYTHONPATH:
    KERAS_BACKEND=jax python -m unittest -v test_keras
"""

import os
import unittest

import numpy

import leat
import leat.keras

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
try:
    import keras
except ImportError as error:
    raise unittest.SkipTest(f"Keras is missing: {error}")

import keras_data

VERSION = tuple(int(part) for part in keras.__version__.split(".")[:2])
BACKEND = keras.backend.backend() if VERSION >= (3, 0) else "tensorflow"
CAN_TRAIN = BACKEND != "numpy"


def build(features=4):
    """Returns a model whose weights are the same in each call."""
    model = keras.models.Sequential()
    if VERSION >= (3, 0):
        model.add(keras.layers.Input((features,)))
    model.add(keras.layers.Dense(3, activation="tanh", input_shape=(features,)) if VERSION < (3, 0)
              else keras.layers.Dense(3, activation="tanh"))
    model.add(keras.layers.Dense(1, activation="sigmoid"))
    model.compile(loss="binary_crossentropy", optimizer="sgd", metrics=["mse"])
    rng = numpy.random.RandomState(0)
    model.set_weights([rng.normal(size=w.shape).astype("float32") for w in model.get_weights()])
    return model


def fit(x, y=None, **options):
    options.setdefault("epochs", 3)
    model = build()
    history = model.fit(x, y, verbose=0, **options).history
    return history, model.get_weights()


def fit_arrays(sample_weight=None, **options):
    x, y = keras_data.make_arrays()
    return fit(x, y, batch_size=5, shuffle=False, sample_weight=sample_weight, **options)


def make_sequence(data):
    """Returns Keras's own kind of data set."""

    class Data(keras.utils.Sequence):
        def __len__(self):
            return len(data)

        def __getitem__(self, index):
            return data[index]

    return Data()


class Keras(unittest.TestCase):
    def assert_same(self, received, expected):
        self.assertEqual(sorted(received[0]), sorted(expected[0]))
        for name in expected[0]:
            numpy.testing.assert_allclose(received[0][name], expected[0][name], rtol=1e-4, err_msg=name)
        for a, b in zip(received[1], expected[1]):
            numpy.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


@unittest.skipUnless(CAN_TRAIN, "Keras's numpy backend does not train")
class Fit(Keras):
    def test_a_feed_trains_as_arrays_do(self):
        expected = fit_arrays()
        for kind, workers in (("process", 2), ("thread", 2), ("process", 0)):
            with leat.Feed(keras_data.Batches(), workers=workers, kind=kind) as feed:
                self.assert_same(fit(feed), expected)
                self.assertEqual(feed.stats()["worker_deaths"], 0)

    def test_keras_does_not_reorder_and_passes_are_not_restarted(self):
        data = keras_data.Recorded()
        with leat.Feed(data, workers=0) as feed:
            fit(feed, epochs=4, shuffle=True)
            self.assertEqual(data.made[:32], list(range(8)) * 4)
            self.assertEqual(feed.state_dict()["pass"] * 8 + feed.state_dict()["batch"], 32)

    def test_validation_by_a_second_feed(self):
        theirs = make_sequence(keras_data.Batches(20))  # Keras 2.3.1 reports the last batch's loss.
        expected = fit(make_sequence(keras_data.Batches()), validation_data=theirs, shuffle=False)
        with leat.Feed(keras_data.Batches()) as feed, leat.Feed(keras_data.Batches(20)) as validation:
            self.assert_same(fit(feed, validation_data=validation), expected)
            self.assertEqual(validation.stats()["batches"], 4 * 3)

    def test_steps_per_epoch(self):
        with leat.Feed(keras_data.Batches(), passes=None) as feed:
            history, _ = fit(feed, steps_per_epoch=4, epochs=2)
        self.assertEqual(len(history["loss"]), 2)

    def test_two_calls_of_fit_go_on(self):
        expected = fit_arrays(epochs=4)
        model = build()
        with leat.Feed(keras_data.Batches(), workers=1) as feed:
            losses = [model.fit(feed, epochs=2, verbose=0).history["loss"] for _ in range(2)]
        numpy.testing.assert_allclose(sum(losses, []), expected[0]["loss"], rtol=1e-4)

    def test_class_weight(self):
        weights = {0: 0.5, 1: 3.0}
        expected = fit_arrays(class_weight=weights)
        with leat.Feed(keras_data.Batches()) as feed:
            self.assert_same(fit(feed, class_weight=weights), expected)
        plain = fit_arrays()
        self.assertNotAlmostEqual(plain[0]["loss"][0], expected[0]["loss"][0], places=3)

    def test_sample_weights_in_the_batches(self):
        expected = fit_arrays(sample_weight=numpy.tile(numpy.arange(1, 6, dtype="float32"), 8))
        with leat.Feed(keras_data.Batches(weights=True)) as feed:
            self.assert_same(fit(feed), expected)

    def test_on_epoch_end_of_the_data_is_called_between_epochs(self):
        for workers in (0, 2):
            with leat.Feed(keras_data.Growing(), workers=workers) as feed:
                received = fit(feed, epochs=3)
            model, losses, (x, y) = build(), [], keras_data.make_arrays()
            for factor in (1, 2, 4):
                history = model.fit(x * factor, y, batch_size=5, shuffle=False, verbose=0)
                losses += history.history["loss"]
            numpy.testing.assert_allclose(received[0]["loss"], losses, rtol=1e-4)

    def test_the_exception_of_the_data(self):
        with leat.Feed(keras_data.Failing()) as feed:
            with self.assertRaisesRegex(Exception, "no such image: 3.png"):
                fit(feed)

    def test_a_feed_of_an_iterable(self):
        with leat.Feed(keras_data.EndlessPairs(), workers=1) as feed:
            history, _ = fit(feed, steps_per_epoch=4, epochs=2)
            self.assertEqual(len(history["loss"]), 2)

    def test_an_ended_feed(self):
        with leat.Feed(keras_data.Batches(), passes=1) as feed:
            fit(feed, epochs=1)
            with self.assertRaisesRegex(Exception, "the feed has ended"):
                fit(feed, epochs=1)

    def test_train_on_batch_in_a_loop_of_ones_own(self):
        model = build()
        with leat.Feed(keras_data.Batches(), passes=2) as feed:
            for _ in range(2):
                for x, y in feed:
                    model.train_on_batch(x, y)
        for a, b in zip(model.get_weights(), fit_arrays(epochs=2)[1]):
            numpy.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


class Look(Keras):
    @unittest.skipUnless(CAN_TRAIN, "Keras's numpy backend has a defect in evaluate() with some versions")
    def test_evaluate(self):
        expected = build().evaluate(make_sequence(keras_data.Batches()), verbose=0)
        with leat.Feed(keras_data.Batches()) as feed:
            model = build()
            for _ in range(3):
                numpy.testing.assert_allclose(model.evaluate(feed, verbose=0), expected, rtol=1e-5)

    def test_predict(self):
        x, _ = keras_data.make_arrays()
        expected = build().predict(x, batch_size=5, verbose=0)
        with leat.Feed(x, batch_size=5) as feed:
            received = build().predict(feed, verbose=0)
        numpy.testing.assert_allclose(received, expected, rtol=1e-5)


class Datasets(Keras):
    def test_it_is_an_instance_of_keras_class(self):
        ours, theirs = leat.keras.Sequence, keras.utils.Sequence
        with ours(keras_data.Batches(), workers=1) as data:
            self.assertIsInstance(data, theirs)
            self.assertEqual(len(data), 8)
            for index in range(8):
                numpy.testing.assert_array_equal(data[index][0], keras_data.Batches()[index][0])
            with self.assertRaisesRegex(IndexError, "in order"):
                data[3]
            self.assertEqual(len(list(data)), 8)
        with self.assertRaisesRegex(ValueError, "when it is opened"):
            ours(leat.Feed(keras_data.Batches(), workers=0), workers=3)

    @unittest.skipUnless(CAN_TRAIN, "Keras's numpy backend does not train")
    def test_it_trains(self):
        expected = fit_arrays()
        with leat.keras.Sequence(keras_data.Batches(), workers=2) as data:
            self.assert_same(fit(data), expected)

    @unittest.skipUnless(VERSION >= (3, 0), "needs Keras 3")
    def test_py_dataset(self):
        self.assertTrue(issubclass(leat.keras.PyDataset, keras.utils.PyDataset))

    @unittest.skipUnless(VERSION >= (3, 0) and CAN_TRAIN, "needs Keras 3")
    def test_a_model_that_is_built_by_its_first_batch(self):
        for steps in (1,) if BACKEND == "torch" else (1, 4):
            data = keras_data.Recorded()
            with leat.Feed(data, workers=0) as feed:
                model = keras.models.Sequential([keras.layers.Dense(1)])
                model.compile(loss="mse", optimizer="sgd", steps_per_execution=steps)
                model.fit(feed, epochs=2, verbose=0)
            self.assertEqual(data.made, list(range(8)) * 2, steps)


def make_leat(model):
    try:
        return leat.Model.from_keras(model)
    except ImportError as error:
        raise unittest.SkipTest(str(error))


class Models(unittest.TestCase):
    """A model of Keras becomes one of leat, and back."""

    def test_both_ways(self):
        model = build()
        x, y = keras_data.make_arrays()
        with make_leat(model) as made:
            numpy.testing.assert_allclose(made.predict(x), model.predict(x, verbose=0), rtol=1e-5, atol=1e-6)
            self.assertTrue(made.compiled)
            made.fit(x, y, epochs=2, verbose=0)
            again = made.to_keras()
            numpy.testing.assert_allclose(made.predict(x), again.predict(x, verbose=0), rtol=1e-5, atol=1e-6)
            self.assertEqual(made.optimizer.iterations, 2 * -(-len(x) // 32))
            if CAN_TRAIN:
                again.fit(x, y, verbose=0)

    def test_a_functional_model(self):
        a, b = keras.layers.Input((3,), name="a"), keras.layers.Input((2,), name="b")
        out = keras.layers.Dense(1, name="out")(keras.layers.Concatenate()([a, b]))
        model = keras.models.Model([a, b], out)
        arrays = {"a": numpy.ones((4, 3), "float32"), "b": numpy.ones((4, 2), "float32")}
        with make_leat(model) as made:
            self.assertFalse(made.compiled)
            expected = model.predict([arrays["a"], arrays["b"]], verbose=0)
            numpy.testing.assert_allclose(made.predict(arrays), expected, rtol=1e-5)
            with leat.Model.from_json(model.to_json()) as other:
                other.set_weights(model.get_weights())
                numpy.testing.assert_allclose(other.predict(arrays), expected, rtol=1e-5)
            with leat.Model.from_config(model.get_config()) as other:
                self.assertEqual(other.output_names, ["out"])

    def test_objects_of_keras(self):
        model = build()
        made = make_leat(model)
        self.addCleanup(made.close)
        made.compile(keras.optimizers.SGD(0.1, momentum=0.5), keras.losses.BinaryCrossentropy(), [keras.metrics.AUC(name="auc")])
        self.assertEqual(made.metrics_names, ["loss", "auc"])
        made.compile("sgd", keras.losses.mean_squared_error)
        self.assertEqual(made.training_config["loss"], "mean_squared_error")


@unittest.skipUnless(CAN_TRAIN, "Keras's numpy backend does not train")
class Enqueuers(Keras):
    def setUp(self):
        self.addCleanup(leat.keras.use_enqueuers())

    @unittest.skipUnless((2, 4) <= VERSION, "Keras 2.3.1 has tests of its own")
    def test_workers_of_keras_are_those_of_leat(self):
        base = getattr(keras.utils, "PyDataset", None) or keras.utils.Sequence
        expected = fit_arrays()

        class Data(keras_data.Batches, base):
            def __init__(self):
                base.__init__(self)
                keras_data.Batches.__init__(self)

        data = Data()
        if VERSION >= (3, 0):
            data.workers = 3
            self.assert_same(fit(data, shuffle=False), expected)
        else:
            self.assert_same(fit(data, shuffle=False, workers=3), expected)


if __name__ == "__main__":
    unittest.main()
