# SPDX-License-Identifier: Apache-2.0
"""leat.Model and leat.source: training, data of all kinds, callbacks, errors, and the C command beside it."""

import gc
import os
import pickle
import signal
import subprocess
import tempfile
import threading
import time
import traceback
import unittest

import numpy

import leat
from leat import callbacks
from models import GOLDEN, Sequence, data, lstm, mlp, run_python, two_inputs

COMMAND = os.environ.get("LEAT_COMMAND")


class AsCurrentKeras(unittest.TestCase):
    """Data that current Keras takes, and Keras 2.3.1 did not."""

    def setUp(self):
        random = numpy.random.default_rng(5)
        self.x = {"a": random.normal(size=(6, 3)).astype("float32"), "b": random.normal(size=(6, 2)).astype("float32")}
        self.y = [random.normal(size=(6, 1)).astype("float32"), random.normal(size=(6, 2)).astype("float32")]

    def test_inputs_that_are_numbers(self):
        def layer(name, class_name, source, **config):
            nodes = [[[source, 0, 0, {}]]] if source else []
            return {"name": name, "class_name": class_name, "config": dict(config, name=name), "inbound_nodes": nodes}

        layers = [
            layer("x", "InputLayer", None, batch_input_shape=[None], dtype="float32", sparse=False),
            layer("column", "Operation", "x", function="ExpandDims", options={"axis": -1}),
            layer("y", "Dense", "column", units=2),
        ]
        config = {"name": "numbers", "layers": layers, "input_layers": [["x", 0, 0]], "output_layers": [["y", 0, 0]]}
        with leat.Model.from_json({"class_name": "Model", "config": config}) as model:
            model.compile("sgd", "mse", arithmetic="keras3")
            x = numpy.arange(6, dtype="float32")
            first = model.predict(x, verbose=0)
            self.assertEqual(first.shape, (6, 2))
            numpy.testing.assert_array_equal(first, model.predict({"x": x[:, None]}, verbose=0))
            numpy.testing.assert_array_equal(first, model(x))
            model.fit(x, self.y[1], batch_size=6, verbose=0)
            self.assertGreater(abs(model.predict(x, verbose=0) - first).max(), 0)

    def test_targets_of_outputs_without_a_loss(self):
        logs = []
        for y in (self.y[:1], self.y, {"left": self.y[0]}, {"left": self.y[0], "right": self.y[1]}):
            with two_inputs() as model:
                model.compile("sgd", {"left": "mse"}, arithmetic="keras3")
                model.initialize(3)
                before = model.weights["right/kernel:0"]
                logs.append(model.fit(self.x, y, batch_size=6, shuffle=False, verbose=0).history["loss"])
                numpy.testing.assert_array_equal(before, model.weights["right/kernel:0"])
        self.assertEqual(logs[1:], logs[:1] * 3)

    def test_weights_of_time_steps(self):
        x, y = numpy.ones((4, 5, 3), "float32"), numpy.zeros((4, 5, 2), "float32")
        weights = numpy.random.default_rng(1).uniform(size=(4, 5)).astype("float32")
        layers = [{"class_name": "Dense", "config": {"name": "d", "units": 2, "batch_input_shape": [None, None, 3]}}]
        with leat.Model.from_json({"class_name": "Sequential", "config": {"name": "s", "layers": layers}}) as model:
            model.compile("sgd", "mse", arithmetic="keras3")
            losses = ((model.predict(x, verbose=0) - y) ** 2).mean(-1)
            for w, wanted in ((weights, weights), (weights[..., None], weights), (weights[:, 0], weights[:, :1])):
                loss = model.evaluate(x, y, sample_weight=w, batch_size=4, verbose=0)
                self.assertAlmostEqual(loss, float((losses * wanted).mean()), places=5)
            with self.assertRaisesRegex(leat.ShapeError, "sample weights of output 'd'"):
                model.evaluate(x, y, sample_weight=weights[:, :4], verbose=0)
            model.compile("sgd", "mse", arithmetic="keras2")
            with self.assertRaisesRegex(leat.ShapeError, "sample_weight_mode"):
                model.evaluate(x, y, sample_weight=weights, verbose=0)


class Fit(unittest.TestCase):
    def setUp(self):
        self.x, self.y = data()
        self.model = mlp()
        self.addCleanup(self.model.close)

    def test_history_and_losses(self):
        history = self.model.fit(self.x, self.y, epochs=3, validation_split=0.25, verbose=0)
        self.assertEqual(list(history.history), ["loss", "mae", "val_loss", "val_mae"])
        self.assertEqual(history.epoch, [0, 1, 2])
        self.assertLess(history.history["loss"][2], history.history["loss"][0])
        self.assertEqual(history.params["epochs"], 3)
        self.assertEqual(history.params["steps"], 2)
        self.assertIs(self.model.history, history)
        self.assertIn("history", history.to_dict())

    def test_evaluate_is_the_loss_of_the_predictions(self):
        loss, mae = self.model.evaluate(self.x, self.y, verbose=0)
        errors = self.model.predict(self.x) - self.y
        self.assertAlmostEqual(loss, float((errors**2).mean()), 6)
        self.assertAlmostEqual(mae, float(abs(errors).mean()), 6)
        logs = self.model.evaluate(self.x, self.y, verbose=0, return_dict=True)
        self.assertEqual(list(logs), ["loss", "mae"])

    def test_predict_forms(self):
        expected = self.model.predict(self.x)
        weights = self.model.get_weights()
        by_hand = numpy.tanh(self.x @ weights[0] + weights[1]) @ weights[2] + weights[3]
        numpy.testing.assert_allclose(expected, by_hand, atol=1e-6)
        for x in (self.x.astype("float64"), self.x.tolist(), numpy.asfortranarray(self.x), {"hidden_input": self.x}):
            numpy.testing.assert_array_equal(self.model.predict(x), expected)
        numpy.testing.assert_array_equal(self.model.predict(self.x[::-2]), expected[::-2])
        numpy.testing.assert_allclose(self.model.predict_on_batch(self.x[:3]), expected[:3], atol=1e-6)

    def test_integers_and_halves(self):
        x = numpy.arange(32).reshape(8, 4) % 3
        expected = self.model.predict(x.astype("float32"))
        for dtype in ("int8", "uint8", "int16", "int64", "uint32", "float16", ">f4", "longdouble"):
            numpy.testing.assert_array_equal(self.model.predict(x.astype(dtype)), expected)

    def test_results_belong_to_the_caller(self):
        first = self.model.predict(self.x)
        copy = first.copy()
        self.model.predict(self.x + 1)
        self.model.close()
        numpy.testing.assert_array_equal(first, copy)

    def test_same_seed_same_bytes(self):
        other = self.model.clone()
        other.compile("sgd", "mse", ["mae"])
        for model in (self.model, other):
            model.fit(self.x, self.y, epochs=2, seed=7, verbose=0)
        for a, b in zip(self.model.get_weights(), other.get_weights()):
            numpy.testing.assert_array_equal(a, b)

    def test_sample_weight_and_class_weight(self):
        zero = numpy.zeros(len(self.x), "float32")
        self.assertEqual(self.model.evaluate(self.x, self.y, sample_weight=zero, verbose=0)[0], 0)
        before = self.model.get_weights()
        self.model.fit(self.x, self.y, sample_weight=zero, verbose=0)
        numpy.testing.assert_array_equal(self.model.get_weights()[0], before[0])
        model = mlp("SparseCategoricalCrossentropy(from_logits=True)", ["accuracy"])
        classes = (self.x[:, 0] > 0.5).astype("int64")
        before = model.get_weights()
        model.fit(self.x, classes, class_weight={0: 0.0, 1: 0.0}, verbose=0)
        numpy.testing.assert_array_equal(model.get_weights()[0], before[0])
        model.train_on_batch(self.x, classes, class_weight={0: 1.0, 1: 2.0})
        self.assertGreater(abs(model.get_weights()[0] - before[0]).max(), 0)

    def test_initial_epoch_and_validation_freq(self):
        history = self.model.fit(
            self.x, self.y, initial_epoch=2, epochs=5, validation_data=(self.x, self.y), validation_freq=[4], verbose=0
        )
        self.assertEqual(history.epoch, [2, 3, 4])
        self.assertEqual(len(history.history["val_loss"]), 1)

    def test_several_inputs_and_outputs(self):
        model = two_inputs()
        a, b = numpy.ones((10, 3), "float32"), numpy.ones((10, 2), "float32")
        left, right = numpy.ones((10, 1), "float32"), numpy.ones((10, 2), "float32")
        self.assertEqual(model.metrics_names, ["loss", "left_loss", "right_loss"])
        model.fit([a, b], [left, right], verbose=0)
        model.fit({"b": b, "a": a}, {"right": right, "left": left}, verbose=0)
        outputs = model.predict({"a": a, "b": b})
        self.assertEqual([output.shape for output in outputs], [(10, 1), (10, 2)])
        with self.assertRaisesRegex(leat.ArgumentError, "expected a dict with the keys a, b, received a, c"):
            model.predict({"a": a, "c": b})

    def test_on_batch(self):
        first = self.model.train_on_batch(self.x, self.y)
        self.assertEqual(len(first), 2)
        self.assertLess(self.model.test_on_batch(self.x, self.y, return_dict=True)["loss"], first[0])

    def test_checkpoints(self):
        with tempfile.TemporaryDirectory() as folder:
            whole = self.model.clone()
            whole.compile("adam", "mse")
            whole.fit(self.x, self.y, epochs=4, verbose=0)
            part = self.model.clone()
            part.compile("adam", "mse")
            part.fit(self.x, self.y, epochs=2, verbose=0, checkpoints=folder)
            again = self.model.clone()
            again.compile("adam", "mse")
            again.fit(self.x, self.y, epochs=4, verbose=0, checkpoints={"folder": folder, "resume": True})
            numpy.testing.assert_array_equal(again.get_weights()[0], whole.get_weights()[0])


class Data(unittest.TestCase):
    def setUp(self):
        self.x, self.y = data()
        self.model = mlp()
        self.addCleanup(self.model.close)

    def losses(self, *arguments, **options):
        model = self.model.clone()
        model.compile("sgd", "mse")
        options.setdefault("epochs", 2)
        return model.fit(*arguments, verbose=0, shuffle=False, **options).history["loss"]

    def test_all_kinds_give_the_same_losses(self):
        expected = self.losses(self.x, self.y, batch_size=16)
        sequence = Sequence(self.x, self.y)

        def generate():
            while True:
                for i in range(4):
                    yield sequence[i]

        with tempfile.TemporaryDirectory() as folder:
            numpy.save(f"{folder}/x.npy", self.x)
            numpy.save(f"{folder}/y.npy", self.y)
            with leat.source(f"npy:{folder}/x.npy,{folder}/y.npy", batch_size=16) as source:
                self.assertEqual((len(source), source.samples), (4, 64))
                self.assertEqual(self.losses(source), expected)
                self.assertEqual(self.losses(source, workers=2, use_multiprocessing=True), expected)
                with leat.Feed(source, workers=2) as feed:
                    self.assertEqual(self.losses(feed), expected)
        for workers in (0, 1, 2):
            self.assertEqual(self.losses(sequence, workers=workers), expected)
        self.assertEqual(self.losses(sequence, workers=1, use_multiprocessing=True), expected)
        self.assertEqual(self.losses(generate(), steps_per_epoch=4), expected)
        self.assertEqual(self.losses(generate, steps_per_epoch=4), expected)
        with leat.Feed((self.x, self.y), 16, kind="thread") as feed:
            self.assertEqual(self.losses(feed), expected)

    def test_passes_end_within_epochs(self):
        sequence = Sequence(self.x, self.y)
        self.assertEqual(
            self.losses(sequence, steps_per_epoch=3, epochs=4),
            self.losses(self.x, self.y, batch_size=16, steps_per_epoch=3, epochs=4),
        )

    def test_validation_data_of_all_kinds(self):
        sequence = Sequence(self.x, self.y)
        results = []
        for validation in (sequence, (self.x, self.y)):
            results.append(self.model.clone())
            results[-1].compile("sgd", "mse")
            history = results[-1].fit(sequence, validation_data=validation, shuffle=False, epochs=2, verbose=0)
            results[-1] = history.history["val_loss"]
        numpy.testing.assert_allclose(results[0], results[1], rtol=1e-6)

    def test_evaluate_and_predict_a_sequence(self):
        sequence = Sequence(self.x, self.y)
        self.assertAlmostEqual(
            self.model.evaluate(sequence, verbose=0)[0], self.model.evaluate(self.x, self.y, verbose=0)[0], 6
        )
        numpy.testing.assert_array_equal(self.model.predict(sequence), self.model.predict(self.x, batch_size=16))

    def test_batches_of_several_lengths(self):
        model = lstm()
        model.compile("sgd", "mse")
        lengths = [5, 3, 9]

        class Padded:
            def __len__(self):
                return len(lengths)

            def __getitem__(self, index):
                return numpy.ones((4, lengths[index], 3)), numpy.ones((4, lengths[index], 2))

        self.assertEqual(len(model.fit(Padded(), epochs=2, verbose=0).history["loss"]), 2)

    def test_a_source_in_a_feed(self):
        with tempfile.TemporaryDirectory() as folder:
            numpy.savez(f"{folder}/d.npz", x=self.x, y=self.y)
            numpy.save(f"{folder}/x.npy", self.x)
            numpy.save(f"{folder}/y.npy", self.y)
            source = leat.source(f"npy:{folder}/x.npy,{folder}/y.npy", batch_size=10)
            reference = None
            for workers, kind in ((0, "process"), (2, "process"), (2, "fork")):
                with leat.Feed(source, workers=workers, kind=kind, shuffle=True, seed=4, passes=2) as feed:
                    self.assertEqual(len(feed), 7)
                    batches = [[(x.copy(), y.copy()) for x, y in feed] for _ in range(2)]
                digest = [[x.tobytes() + y.tobytes() for x, y in one_pass] for one_pass in batches]
                reference = reference or digest
                self.assertEqual(digest, reference)
                self.assertNotEqual(digest[0], digest[1])
            with leat.Feed(source, keep=2) as feed:
                kept = list(feed)
                self.assertGreater(feed.stats()["copied"], 0)
            numpy.testing.assert_array_equal(numpy.concatenate([x for x, _ in kept]), self.x)
            with self.assertRaisesRegex(leat.BusyError, "in use"):
                source.close()
            with self.assertRaisesRegex(leat.ArgumentError, "batch_size is 3, but that of the source is 10"):
                leat.Feed(source, batch_size=3)
            first, last = source.split(0.25)
            with first, last:
                self.assertEqual((first.samples, last.samples), (48, 16))
                with leat.Feed(last) as feed:
                    numpy.testing.assert_array_equal(numpy.concatenate([x for x, _ in feed]), self.x[48:])
                    feed.close()
                gc.collect()
            del kept, batches
            source.close()
            with self.assertRaisesRegex(leat.Error, "closed"):
                len(source)

    def test_a_state_of_a_feed_of_a_source(self):
        with tempfile.TemporaryDirectory() as folder:
            numpy.save(f"{folder}/x.npy", self.x)
            with leat.source(f"npy:{folder}/x.npy", batch_size=8) as source:
                with leat.Feed(source, shuffle=True, seed=1) as feed:
                    batches = iter(feed)
                    next(batches), next(batches)
                    state = feed.state_dict()
                    rest = [batch.copy() for batch in batches]
                with leat.Feed(source, shuffle=True, workers=1) as feed:
                    feed.load_state_dict(state)
                    again = [batch.copy() for batch in feed]
                numpy.testing.assert_array_equal(rest, again)
                batches = None


class Callbacks(unittest.TestCase):
    def setUp(self):
        self.x, self.y = data()
        self.model = mlp()
        self.addCleanup(self.model.close)

    def fit(self, *callbacks, **options):
        options.setdefault("epochs", 3)
        return self.model.fit(self.x, self.y, verbose=0, callbacks=list(callbacks), **options)

    def test_all_hooks_in_order(self):
        calls = []

        class Record(callbacks.Callback):
            pass

        def make(name):
            def method(self, *arguments):
                calls.append(name)

            return method

        for name in dir(callbacks.Callback):
            if name.startswith("on_"):
                setattr(Record, name, make(name))
        record = Record()
        self.fit(record, epochs=1, batch_size=64, validation_data=(self.x, self.y), validation_batch_size=64)
        self.assertIs(record.model, self.model)
        self.assertTrue(record.params["do_validation"])
        self.assertEqual(
            calls,
            "on_train_begin on_epoch_begin on_train_batch_begin on_batch_begin on_train_batch_end on_batch_end"
            " on_test_begin on_test_batch_begin on_test_batch_end on_test_end on_epoch_end on_train_end".split(),
        )
        calls.clear()
        self.model.predict(self.x, callbacks=[record], batch_size=64)
        self.assertEqual(calls, "on_predict_begin on_predict_batch_begin on_predict_batch_end on_predict_end".split())

    def test_any_object_with_a_method(self):
        class Mine:
            epochs = []

            def on_epoch_end(self, epoch, logs):
                self.epochs.append((epoch, sorted(logs)))

        self.fit(Mine())
        self.assertEqual(Mine.epochs, [(epoch, ["loss", "mae"]) for epoch in range(3)])
        with self.assertRaisesRegex(TypeError, "is no callback"):
            self.fit(object())

    def test_stop_training(self):
        class Stop(callbacks.Callback):
            def on_epoch_end(self, epoch, logs=None):
                self.model.stop_training = epoch == 1

        history = self.fit(Stop(), epochs=10)
        self.assertEqual(history.epoch, [0, 1])
        self.assertTrue(self.model.stop_training)
        self.assertIn("stop_training", history.stop_reason)
        self.fit(epochs=1)
        self.assertFalse(self.model.stop_training)

    def test_logs_become_history(self):
        def add(epoch, logs):
            logs["mine"] = epoch * 2.0

        history = self.fit(callbacks.LambdaCallback(on_epoch_end=add))
        self.assertEqual(history.history["mine"], [0.0, 2.0, 4.0])

    def test_exceptions(self):
        for hook in ("on_train_begin", "on_train_batch_end", "on_epoch_end"):
            with self.subTest(hook):

                def fail(*arguments):
                    raise KeyError(hook)

                try:
                    self.fit(callbacks.LambdaCallback(**{hook: fail}))
                    self.fail("no exception")
                except KeyError as error:
                    self.assertEqual(error.args, (hook,))
                    self.assertIn("in fail\n", "".join(traceback.format_tb(error.__traceback__)))
        self.assertEqual(self.fit().epoch, [0, 1, 2])

    def test_the_model_inside_a_callback(self):
        seen = []

        class Use(callbacks.Callback):
            def on_epoch_end(self, epoch, logs=None):
                kernel = self.model.get_weights()[0]
                seen.append((self.model.predict(x[:2]).shape, self.model.to_bytes()[:4], kernel.shape))
                self.model.optimizer.learning_rate = 0.5

        x = self.x
        self.fit(Use(), epochs=2)
        self.assertEqual(seen, [((2, 2), b"\x89HDF", (4, 8))] * 2)
        self.assertAlmostEqual(self.model.learning_rate, 0.5)

    def test_a_fit_inside_a_callback(self):
        def again(epoch, logs):
            self.model.fit(self.x, self.y, verbose=0)

        try:
            self.fit(callbacks.LambdaCallback(on_epoch_end=again), epochs=2)
        except leat.Error:
            pass
        self.fit()

    def test_callbacks_of_the_library(self):
        with tempfile.TemporaryDirectory() as folder:
            history = self.fit(
                callbacks.EarlyStopping(monitor="loss", min_delta=100, patience=1),
                callbacks.CSVLogger(f"{folder}/log.csv"),
                callbacks.ModelCheckpoint(f"{folder}/m{{epoch:02d}}.h5", monitor="loss"),
                callbacks.ReduceLROnPlateau(monitor="loss", patience=0, min_delta=100),
                callbacks.TensorBoard(f"{folder}/tb"),
                callbacks.TerminateOnNaN(),
                "ExponentialDecay(initial_learning_rate=0.1, decay_steps=10, decay_rate=0.5)",
                epochs=9,
            )
            self.assertEqual(history.epoch, [0, 1])
            self.assertTrue(self.model.stop_training)
            self.assertEqual(sorted(os.listdir(folder)), ["log.csv", "m01.h5", "m02.h5", "tb"])
            with open(f"{folder}/log.csv") as file:
                self.assertEqual(len(file.readlines()), 3)
        with self.assertRaisesRegex(leat.Error, "mode"):
            self.fit(callbacks.EarlyStopping(mode="best"))

    def test_monitoring(self):
        with tempfile.TemporaryDirectory() as folder:
            self.fit(callbacks.OpenMetrics(f"{folder}/fit.prom", labels={"run": "a"}))
            with open(f"{folder}/fit.prom") as file:
                self.assertIn('run="a"', file.read())
        with self.assertRaisesRegex(leat.ArgumentError, "label"):
            self.fit(callbacks.OpenMetrics("x", labels={"1": "a"}))
        try:
            self.fit(callbacks.RemoteMonitor("http://127.0.0.1:1", headers={"A": "b"}, send_as_json=True))
        except leat.ArgumentError as error:
            self.assertIn("libcurl", str(error))

    def test_learning_rate_scheduler(self):
        history = self.fit(callbacks.LearningRateScheduler(lambda epoch, rate: 0.1 / (epoch + 1)))
        numpy.testing.assert_allclose(history.history["lr"], [0.1, 0.05, 0.1 / 3], rtol=1e-6)

    def test_an_exception_of_the_data(self):
        sequence = Sequence(self.x, self.y, fails_at=2)
        for workers in (0, 1):
            with self.assertRaises(KeyError) as caught:
                self.model.fit(sequence, workers=workers, verbose=0, shuffle=False)
            self.assertEqual(caught.exception.args, ("no batch 2",))
        with self.assertRaises(KeyError):
            self.model.fit(self.x, self.y, validation_data=sequence, verbose=0)
        self.fit()


class Looking(unittest.TestCase):
    def setUp(self):
        self.model = mlp()
        self.addCleanup(self.model.close)

    def test_layers_and_weights(self):
        model = self.model
        self.assertEqual([layer.name for layer in model.layers if layer.class_name != "InputLayer"], ["hidden", "out"])
        layer = model.get_layer("hidden")
        self.assertEqual((layer.class_name, layer.input_shape, layer.output_shape), ("Dense", (None, 4), (None, 8)))
        self.assertEqual(layer.get_config()["units"], 8)
        self.assertEqual(layer.count_params() + model.get_layer("out").count_params(), model.count_params())
        self.assertEqual(list(model.weights), ["hidden/kernel:0", "hidden/bias:0", "out/kernel:0", "out/bias:0"])
        kernel = numpy.arange(32, dtype="float64").reshape(4, 8)
        model.weights["hidden/kernel"] = kernel
        numpy.testing.assert_array_equal(layer.get_weights()[0], kernel.astype("float32"))
        layer.set_weights([kernel * 0, numpy.ones(8)])
        numpy.testing.assert_array_equal(model.get_weights()[1], numpy.ones(8))
        weights = model.get_weights()
        weights[3] = numpy.array([3, 4])
        model.set_weights(weights)
        numpy.testing.assert_array_equal(model.weights["out/bias:0"], [3, 4])
        with self.assertRaisesRegex(leat.ArgumentError, r"expected the shape \(2,\), received \(3,\)"):
            model.weights["out/bias:0"] = numpy.ones(3)
        with self.assertRaises(KeyError):
            model.weights["no"]
        with self.assertRaisesRegex(leat.NotFoundError, "there is no layer 'hiden'"):
            model.get_layer("hiden")
        self.assertEqual(model.name, "mlp")
        self.assertEqual((model.inputs, model.outputs), ({"hidden_input": (None, 4)}, {"out": (None, 2)}))

    def test_freezing(self):
        x, y = data()
        self.assertEqual(self.model.freeze("hid*"), 1)
        self.assertFalse(self.model.get_layer("hidden").trainable)
        self.model.compile("sgd", "mse")
        before = self.model.get_layer("hidden").get_weights()[0], self.model.get_layer("out").get_weights()[0]
        self.model.fit(x, y, verbose=0)
        numpy.testing.assert_array_equal(self.model.get_layer("hidden").get_weights()[0], before[0])
        self.assertGreater(abs(self.model.get_layer("out").get_weights()[0] - before[1]).max(), 0)
        self.model.get_layer("hidden").trainable = True
        self.assertTrue(self.model.get_layer("hidden").trainable)

    def test_saving(self):
        x, _ = data()
        expected = self.model.predict(x)
        with tempfile.TemporaryDirectory() as folder:
            for name in ("m.h5", "m.keras"):
                self.model.save(os.path.join(folder, name))
                with leat.Model.load(os.path.join(folder, name)) as loaded:
                    numpy.testing.assert_array_equal(loaded.predict(x), expected)
                    self.assertTrue(loaded.compiled)
            for name in ("w.h5", "w.weights.h5", "w.safetensors"):
                self.model.save_weights(os.path.join(folder, name))
                other = leat.Model.from_json(self.model.to_json())
                other.initialize(5)
                other.load_weights(os.path.join(folder, name))
                numpy.testing.assert_array_equal(other.predict(x), expected)
        for format in ("h5", "keras"):
            numpy.testing.assert_array_equal(leat.Model.load(self.model.to_bytes(format)).predict(x), expected)
        other.initialize(6)
        other.load_weights(self.model.weights_to_bytes())
        numpy.testing.assert_array_equal(other.predict(x), expected)
        numpy.testing.assert_array_equal(pickle.loads(pickle.dumps(self.model)).predict(x), expected)
        other.initialize(7)
        other.copy_weights(self.model)
        numpy.testing.assert_array_equal(other.predict(x), expected)

    def test_compile_forms(self):
        class Adam:
            def get_config(self):
                return {"learning_rate": numpy.float32(0.25)}

        described = {"class_name": "Adam", "config": {"learning_rate": 0.25}}
        for optimizer in ("Adam(learning_rate=0.25)", described, Adam()):
            self.model.compile(optimizer, {"out": "mae"}, metrics=["mse", "MeanSquaredError(name=other)"])
            self.assertEqual(self.model.optimizer_config["class_name"], "Adam")
            self.assertAlmostEqual(self.model.learning_rate, 0.25)
            self.assertEqual(self.model.metrics_names, ["loss", "mse", "other"])
        with self.assertRaisesRegex(leat.NotFoundError, "adan"):
            self.model.compile("adan", "mse")

    def test_summary(self):
        lines = []
        self.model.summary(print_fn=lines.append)
        self.assertIn("hidden (Dense)", lines[0])


class Errors(unittest.TestCase):
    def setUp(self):
        self.x, self.y = data()
        self.model = mlp()
        self.addCleanup(self.model.close)

    def test_wrong_data(self):
        cases = [
            (leat.ShapeError, r"expected samples of shape \(4,\), received \(3,\)", (self.x[:, :3], self.y)),
            (leat.ArgumentError, "different numbers of samples", (self.x, self.y[:3])),
            (leat.DtypeError, "expected an array of numbers", (numpy.array([["a"] * 4] * 3), self.y[:3])),
            (leat.ArgumentError, "steps_per_epoch is needed", (iter([(self.x, self.y)]), None, None, 2)),
            (leat.ArgumentError, "x: expected arrays", (None, None)),
            (leat.ArgumentError, "leave y and sample_weight out", (Sequence(self.x, self.y), self.y)),
            (leat.ArgumentError, "y is missing: pass the targets of out", (self.x, None)),
        ]
        for kind, message, arguments in cases:
            with self.subTest(message), self.assertRaisesRegex(kind, message):
                self.model.fit(*arguments, verbose=0)
        with self.assertRaises(leat.ShapeError):
            self.model.predict_on_batch(self.x[:, :2])
        with self.assertRaisesRegex(leat.Error, "not compiled"):
            mlp(loss=None).fit(self.x, self.y, verbose=0)

    def test_files(self):
        with self.assertRaises(FileNotFoundError) as caught:
            leat.Model.load("/nonexistent/model.h5")
        self.assertIsInstance(caught.exception, leat.NotFoundError)
        with self.assertRaises(leat.FormatError):
            leat.Model.load(b"no model")
        with self.assertRaisesRegex(leat.ArgumentError, "npy"):
            leat.source("npz_:x")
        with self.assertRaises(leat.Error):
            leat.source("npy:/nonexistent.npy")

    def test_closed(self):
        self.model.close()
        self.model.close()
        model, x = self.model, self.x
        for call in (model.get_weights, lambda: model.predict(x), lambda: model.fit(x, self.y)):
            with self.assertRaisesRegex(leat.Error, "the model is closed"):
                call()
        self.assertIn("closed", repr(self.model))

    def test_two_threads(self):
        errors = []
        inside, done = threading.Event(), threading.Event()

        def other():
            inside.wait(60)
            for call in (lambda: self.model.predict(self.x), self.model.close):
                try:
                    call()
                except leat.BusyError as error:
                    errors.append(str(error))
            self.model.stop_training = True
            done.set()

        def hold(*arguments):
            inside.set()
            done.wait(60)

        thread = threading.Thread(target=other)
        thread.start()
        history = self.model.fit(
            self.x, self.y, epochs=1000, verbose=0, callbacks=[callbacks.LambdaCallback(on_train_batch_end=hold)]
        )
        thread.join()
        self.assertEqual(len(errors), 2)
        self.assertIn("one thread at a time", errors[0])
        self.assertLess(len(history.epoch), 1000)

    def test_other_threads_run_during_fit(self):
        counted = [0]
        stop = threading.Event()

        def count():
            while not stop.is_set():
                counted[0] += 1
                time.sleep(0.001)

        thread = threading.Thread(target=count)
        model = mlp(hidden=2000)
        thread.start()
        model.fit(self.x.repeat(50, 0), self.y.repeat(50, 0), epochs=5, verbose=0)
        stop.set()
        thread.join()
        self.assertGreater(counted[0], 5)

    def test_interrupt(self):
        calls = {
            "arrays": "model.fit(x, y, epochs=10**9, verbose=0, callbacks=[begun])",
            "a sequence": "model.fit(models.Sequence(x, y), epochs=10**9, verbose=0, callbacks=[begun])",
            "evaluate": "model.evaluate(forever, steps=10**9, verbose=0, callbacks=[begun])",
            "predict": "model.predict(forever, steps=10**9, callbacks=[begun])",
            "a slow feed": "model.fit(leat.Feed(models.Slow(x, y), workers=1), verbose=0, callbacks=[begun])",
            "a slow sequence": "model.fit(waiting, shuffle=False, verbose=0, callbacks=[begun])",
            "its caller": "model.fit(waiting, workers=0, shuffle=False, verbose=0, callbacks=[begun])",
            "a slow iterable": "model.fit((waiting[i] for i in range(9)), verbose=0, callbacks=[begun])",
            "slow validation": "model.fit(x, y, validation_data=waiting, verbose=0, callbacks=[begun])",
            "slow evaluation": "model.evaluate(waiting, verbose=0, callbacks=[begun])",
            "slow predictions": "model.predict(waiting, callbacks=[begun])",
            "a callback": "model.fit(x, y, verbose=0, callbacks=[begun, waits])",
        }
        # All at the same time, since most of them wait for something.
        processes = {name: self.start(call) for name, call in calls.items()}
        for name, process in processes.items():
            with self.subTest(name):
                self.assertEqual(process.stdout.readline(), "begun\n")
        time.sleep(0.5)
        for process in processes.values():
            process.send_signal(signal.SIGINT)
        for name, process in processes.items():
            with self.subTest(name):
                text, _ = process.communicate(timeout=120)
                self.assertEqual((text, process.returncode), ("interrupted (4096, 2)\n", 0))

    def start(self, call):
        process = run_python(
            "import itertools, leat, models, threading\n"
            "x, y = models.data(4096)\n"
            "model = models.mlp(hidden=64)\n"
            "def forever():\n"
            "    return itertools.repeat((x[:16], y[:16]))\n"
            "class Waiting(models.Sequence):\n"
            "    def __getitem__(self, index):\n"
            "        if index: ended.wait(60)\n"
            "        return super().__getitem__(index)\n"
            "ended = threading.Event()\n"
            "waiting = Waiting(x, y)\n"
            "waits = leat.callbacks.LambdaCallback(on_train_batch_end=lambda *_: ended.wait(60))\n"
            "def begin(*_):\n"
            "    if not started: print('begun', flush=True)\n"
            "    started.append(1)\n"
            "started = []\n"
            "begun = leat.callbacks.LambdaCallback(on_train_begin=begin, on_test_begin=begin, on_predict_begin=begin)\n"
            "try:\n"
            f"    {call}\n"
            "except KeyboardInterrupt:\n"
            "    ended.set()\n"
            "    print('interrupted', model.predict(x).shape)\n"
        )
        self.addCleanup(process.kill)  # It would train for ever if a check fails.
        return process

    def test_end_of_the_program(self):
        text = (
            "import leat, models, threading, numpy, tempfile, sys\n"
            "x, y = models.data(256)\n"
            "model = models.mlp()\n"
            "predictor = leat.Predictor(model)\n"
            "view = predictor.inputs\n"
            "feed = leat.Feed(models.Sequence(x, y), workers=1, kind='thread')\n"
            "def forever():\n"
            "    begun.set()\n"
            "    model.fit(feed, epochs=10**9, verbose=0)\n"
            "begun = threading.Event()\n"
            "if %r:\n"
            "    threading.Thread(target=forever, daemon=True).start()\n"
            "    begun.wait()\n"
            "    import time; time.sleep(0.2)\n"
            "print('end')\n"
        )
        for busy in (False, True):
            process = run_python(text % busy)
            out, _ = process.communicate(timeout=120)
            self.assertEqual((out, process.returncode), ("end\n", 0))


@unittest.skipUnless(COMMAND, "LEAT_COMMAND does not name the leat command")
class Command(unittest.TestCase):
    """The same bytes as the command's."""

    def test_fit_and_predict(self):
        random = numpy.random.RandomState(0)
        x = random.rand(90, 8, 8, 1).astype("float32")
        y = numpy.eye(3, dtype="float32")[numpy.arange(90) % 3]
        path = os.path.join(GOLDEN, "cnn_adam.h5")
        with tempfile.TemporaryDirectory() as folder:
            spec = f"npy:{folder}/x.npy,{folder}/y.npy"
            numpy.save(f"{folder}/x.npy", x)
            numpy.save(f"{folder}/y.npy", y)
            fit = [COMMAND, "fit", path, "--train", spec, "--epochs", "2", "--seed", "3", "--validation-split", "0.2"]
            subprocess.run([*fit, "--out", f"{folder}/run", "--verbose", "0"], check=True)
            model = f"{folder}/run/model.h5"
            subprocess.run([COMMAND, "predict", model, "--data", spec, "--output", f"{folder}/p.npy"], check=True)
            theirs, expected = leat.Model.load(model), numpy.load(f"{folder}/p.npy")
            for data in ((leat.source(spec),), (x, y)):
                ours = leat.Model.load(path)
                ours.fit(*data, epochs=2, seed=3, validation_split=0.2, verbose=0)
                for a, b in zip(ours.get_weights(), theirs.get_weights()):
                    numpy.testing.assert_array_equal(a, b)
                numpy.testing.assert_array_equal(ours.predict(x), expected)


if __name__ == "__main__":
    unittest.main()
