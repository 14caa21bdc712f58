# SPDX-License-Identifier: Apache-2.0
"""What programs for Keras write around a model runs with leat, or says what to write instead."""

import copy
import json
import os
import pathlib
import pickle
import tempfile
import unittest

import numpy

import leat
from leat import callbacks, losses, metrics, optimizers
from models import Sequence, data, mlp, two_inputs


class Compile(unittest.TestCase):
    def setUp(self):
        self.x, self.y = data()
        self.model = mlp(loss=None)

    def losses(self, *arguments, **options):
        model = self.model.clone()
        model.compile(*arguments, **options)
        return model.fit(self.x, self.y, epochs=2, verbose=0, shuffle=False).history

    def test_descriptions(self):
        expected = self.losses("Adam(learning_rate=0.01)", "mse", ["mae"])
        for optimizer in (optimizers.Adam(0.01), optimizers.Adam(learning_rate=0.01)):
            self.assertEqual(self.losses(optimizer, losses.MeanSquaredError(), [metrics.MeanAbsoluteError(name="mae")]), expected)
        schedule = optimizers.schedules.ExponentialDecay(0.1, decay_steps=2, decay_rate=0.5)
        self.assertNotEqual(self.losses(optimizers.SGD(schedule), "mse"), self.losses(optimizers.SGD(0.1), "mse"))
        self.assertEqual(repr(optimizers.SGD(0.1, momentum=0.9)), "SGD(learning_rate=0.1, momentum=0.9)")
        with self.assertRaisesRegex(ValueError, "unknown optimizer 'Adamm'; did you mean 'Adam'"):
            self.losses(optimizers.Adamm(), "mse")
        with self.assertRaisesRegex(TypeError, "by their names"):
            losses.Huber(1.0)
        with self.assertRaisesRegex(AttributeError, "capital letter"):
            optimizers.adam

    def test_arguments_without_effect(self):
        expected = self.losses("sgd", "mse")
        self.assertEqual(self.losses("sgd", "mse", run_eagerly=True, jit_compile=False, steps_per_execution=4), expected)

    def test_functions(self):
        def mine(target, prediction):
            return 0

        with self.assertRaisesRegex(leat.ArgumentError, "mine: a function in Python cannot be a loss"):
            self.model.compile("sgd", mine)
        for name, arguments in (("optimizer", ("adamm", "mse")), ("loss", ("sgd", "msee")), ("metric", ("sgd", "mse", ["ma"]))):
            with self.assertRaisesRegex(ValueError, f"unknown {name}"):
                self.model.compile(*arguments)


class Objects(unittest.TestCase):
    def setUp(self):
        self.x, self.y = data()
        self.model = mlp()

    def test_optimizer(self):
        self.model.fit(self.x, self.y, batch_size=16, epochs=3, verbose=0)
        optimizer = self.model.optimizer
        self.assertEqual(optimizer.iterations, 12)
        self.assertEqual((float(optimizer.learning_rate), optimizer.learning_rate.numpy()), (self.model.learning_rate,) * 2)
        optimizer.learning_rate.assign(0.25)
        self.assertEqual(self.model.learning_rate, 0.25)
        self.assertEqual(optimizer.get_config()["name"], "sgd")

    def test_layers_of_a_sequential(self):
        self.assertEqual([layer.name for layer in self.model.layers], ["hidden", "out"])
        self.assertEqual(self.model.get_layer("hidden_input").class_name, "InputLayer")
        self.assertEqual([layer.name for layer in two_inputs().layers], ["a", "b", "both", "left", "right"])

    def test_attributes_of_layers(self):
        layer = self.model.get_layer("hidden")
        self.assertEqual((layer.units, layer.use_bias, layer.kernel.shape), (8, True, (4, 8)))
        numpy.testing.assert_array_equal(layer.kernel, layer.get_weights()[0])
        layer.bias.assign(numpy.arange(8))
        numpy.testing.assert_array_equal(layer.bias.numpy(), numpy.arange(8))
        self.assertEqual([weight.name for weight in layer.weights], ["hidden/kernel:0", "hidden/bias:0"])
        self.assertIsInstance(copy.copy(layer), type(layer))
        with self.assertRaisesRegex(AttributeError, "'hidden', a Dense, has no 'filters': it has kernel, bias, .*units"):
            layer.filters

    def test_weights(self):
        self.assertEqual([len(self.model.trainable_weights), len(self.model.non_trainable_variables)], [4, 0])
        self.assertEqual(self.model.weights[0].name, self.model.variables[0].name)
        self.model.layers[0].trainable = False
        self.assertEqual([weight.path for weight in self.model.trainable_variables], ["out/kernel", "out/bias"])

    def test_trainable(self):
        self.model.trainable = False
        self.assertFalse(self.model.trainable)
        self.assertFalse(self.model.layers[1].trainable)
        self.model.trainable = True
        self.model.layers[0].trainable = False
        self.assertTrue(self.model.trainable)
        self.model.compile("sgd", "mse")
        before = self.model.get_weights()
        self.model.fit(self.x, self.y, verbose=0)
        same = [bool((a == b).all()) for a, b in zip(before, self.model.get_weights())]
        self.assertEqual(same, [True, True, False, False])

    def test_a_call(self):
        numpy.testing.assert_array_equal(self.model(self.x), self.model.predict_on_batch(self.x))
        with self.assertRaisesRegex(ValueError, "training=True is not supported"):
            self.model(self.x, training=True)

    def test_summary(self):
        texts = []
        self.model.summary(line_length=80, expand_nested=True, print_fn=texts.append)
        self.assertIn("hidden", texts[0])

    def test_configurations(self):
        for model in (self.model, two_inputs()):
            again = leat.Model.from_config(model.get_config())
            self.assertEqual(again.to_json(), model.to_json())
            self.assertEqual(leat.Model.from_json(json.loads(model.to_json())).to_json(), model.to_json())
        with self.assertRaisesRegex(leat.ArgumentError, "expected a model of Keras, received a dict"):
            leat.Model.from_keras({})

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "m.keras"
            self.model.save(path)
            with self.assertRaisesRegex(ValueError, "exists: pass overwrite=True"):
                self.model.save(path, overwrite=False)
            with self.assertRaises(FileNotFoundError):
                self.model.load_weights(folder + "/none.weights.h5")

    def test_copies(self):
        expected = self.model.predict(self.x)
        for other in (copy.deepcopy(self.model), copy.copy(self.model), pickle.loads(pickle.dumps(self.model))):
            numpy.testing.assert_array_equal(other.predict(self.x), expected)
            self.assertTrue(other.compiled)
        predictor = leat.Predictor(self.model)
        for function in (copy.copy, copy.deepcopy, pickle.dumps):
            with self.assertRaisesRegex(TypeError, "pickle the model"):
                function(predictor)
            with self.assertRaises(TypeError):
                function(self.model._native)


class Data(unittest.TestCase):
    def setUp(self):
        self.x, self.y = data()
        self.model = mlp()

    def generate(self):
        for i in range(4):
            yield Sequence(self.x, self.y)[i]

    def test_an_iterable_without_steps(self):
        expected = self.model.clone()
        expected.compile("sgd", "mse", ["mae"])
        expected = expected.fit(self.x, self.y, batch_size=16, shuffle=False, verbose=0).history
        history = self.model.fit(self.generate(), validation_data=self.generate(), verbose=0)
        self.assertEqual({name: history.history[name] for name in expected}, expected)
        self.assertIsNone(history.stop_reason)
        self.assertIn("val_loss", history.history)
        self.assertEqual(self.model.predict(x for x, _ in self.generate()).shape, (64, 2))
        self.assertEqual(len(self.model.evaluate(self.generate(), verbose=1)), 2)
        with self.assertRaisesRegex(ValueError, "steps_per_epoch is needed for 2 epochs"):
            self.model.fit(self.generate(), epochs=2, verbose=0)

    def test_on_epoch_end_after_each_epoch(self):
        class Counted(Sequence):
            ends = 0

            def on_epoch_end(self):
                self.ends += 1

        for workers in (0, 1):
            sequence = Counted(self.x, self.y)
            self.model.fit(sequence, epochs=3, verbose=0, workers=workers)
            self.assertEqual(sequence.ends, 3)

    def test_arrays_that_do_not_fit(self):
        with self.assertRaisesRegex(leat.ArgumentError, r"x has no samples: its shape is \(0, 4\)"):
            self.model.fit(self.x[:0], self.y[:0], verbose=0)
        with self.assertRaisesRegex(leat.ShapeError, r"x has the shape \(4,\) of one sample, .* such as x\[None\]"):
            self.model.predict(self.x[0])
        with self.assertRaisesRegex(leat.ArgumentError, "array 0: .64, 4., array 1: .10, 2."):
            self.model.fit(self.x, self.y[:10], verbose=0)
        with self.assertRaisesRegex(leat.ArgumentError, "y is missing: pass the targets of out"):
            self.model.fit(self.x, verbose=0)

    def test_memory_of_all_kinds(self):
        expected = self.model.predict(self.x)
        read_only = self.x.copy()
        read_only.setflags(write=False)
        with tempfile.TemporaryDirectory() as folder:
            numpy.save(folder + "/x.npy", self.x)
            mapped = numpy.load(folder + "/x.npy", mmap_mode="r")
            for array in (
                mapped,
                read_only,
                numpy.asfortranarray(self.x),
                numpy.repeat(self.x, 2, 1)[:, ::2],
                self.x[::-1][::-1],
                self.x.astype(">f4"),
                self.x.astype("float64"),
                numpy.ma.masked_array(self.x),
                self.x.tolist(),
            ):
                numpy.testing.assert_array_equal(self.model.predict(array), expected)

    def test_an_output_without_a_loss(self):
        model = two_inputs()
        model.get_layer("right").trainable = False
        model.compile("sgd", {"left": "mse"})
        x = {"a": self.x[:, :3], "b": self.x[:, :2]}
        self.assertIn("loss", model.fit(x, {"left": self.y[:, :1]}, verbose=0).history)


class Callbacks(unittest.TestCase):
    def setUp(self):
        self.x, self.y = data()
        self.model = mlp()

    def fit(self, *items, **options):
        return self.model.fit(self.x, self.y, batch_size=16, verbose=0, callbacks=list(items), **options)

    def test_history(self):
        recorded = callbacks.History()
        history = self.fit(recorded, epochs=2)
        self.assertEqual((recorded.history, recorded.epoch), (history.history, history.epoch))

    def test_both_names_of_the_learning_rate(self):
        history = self.fit(callbacks.LearningRateScheduler(lambda epoch, rate: rate / 2), epochs=2).history
        self.assertEqual(history["learning_rate"], history["lr"])
        with self.assertRaises(KeyError):
            history["val_loss"]

    def test_checkpoints_by_batches(self):
        with tempfile.TemporaryDirectory() as folder:
            self.fit(callbacks.ModelCheckpoint(folder + "/{epoch}-{batch}-{loss:.0f}.keras", save_freq=3), epochs=2)
            names = [name.rsplit("-", 1)[0] for name in sorted(os.listdir(folder))]
            self.assertEqual(names, ["1-3", "2-2"])
            best = callbacks.ModelCheckpoint(
                folder + "/b.weights.h5", monitor="loss", mode="max", save_freq=1, save_best_only=True, save_weights_only=True
            )
            self.fit(best, epochs=1)
            self.model.load_weights(folder + "/b.weights.h5")
        with self.assertRaisesRegex(ValueError, 'expected "epoch" or a number of batches'):
            callbacks.ModelCheckpoint("x", save_freq="batch")

    def test_early_stopping_from_an_epoch(self):
        class Fixed(callbacks.Callback):
            def on_epoch_end(self, epoch, logs):
                logs["value"] = [5.0, 1.0, 4.0, 3.0, 3.5, 3.6, 0.0][epoch]
                at_end.append(self.model.get_weights())

        at_end = []
        stop = callbacks.EarlyStopping("value", patience=2, start_from_epoch=2, restore_best_weights=True)
        history = self.fit(Fixed(), stop, epochs=7)
        self.assertEqual(history.epoch, [0, 1, 2, 3, 4, 5])
        for weight, expected in zip(self.model.get_weights(), at_end[3]):
            numpy.testing.assert_array_equal(weight, expected)


if __name__ == "__main__":
    unittest.main()
