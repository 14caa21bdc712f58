# SPDX-License-Identifier: Apache-2.0
"""Records whole fits with batches of different sizes: History, CSVLogger's file and the final weights."""
import collections
import os
import tempfile
import warnings

import numpy as np

from . import store
from .model_case import compile_model, describe, listed, one_hot, put, set_initial_weights
from .session import K, keras

GROUP = "loops"
TRAIN_SIZES = [4, 3, 4, 1, 2]
VALIDATION_SIZES = [3, 4, 2]

# A value that decides something (better or not) must be at least this far from the threshold.
DECISIVE = 1e-4


class Batches(keras.utils.Sequence):
    """Batch i is the next sizes[i] samples of the arrays."""

    def __init__(self, data):
        self.data = data
        self.starts = np.cumsum([0] + data["sizes"])

    def __len__(self):
        return len(self.data["sizes"])

    def __getitem__(self, index):
        part = slice(self.starts[index], self.starts[index + 1])
        x, t, sw = [[array[part] for array in self.data[key]] for key in ("x", "t", "sw")]
        return (x, t, sw) if sw else (x, t)


def mean_squared_error(t, y):
    """One value per sample."""
    return np.mean((y - t) ** 2, axis=-1)


def categorical_crossentropy(t, y):
    """One value per sample."""
    return -np.sum(t * np.log(y), axis=-1)


FUNCTIONS = {f.__name__: f for f in (mean_squared_error, categorical_crossentropy)}


def batch_losses(model, spec, data, index):
    """Returns the losses of one batch, from predictions, in float64: the total, then each output's if there are
    several."""
    batch = Batches(data)[index]
    predicted = listed(model.predict_on_batch(batch[0]))
    names = listed(spec["loss"])
    losses = []
    for i, (name, t, y) in enumerate(zip(names, batch[1], predicted)):
        values = FUNCTIONS[name](t.astype("float64"), y.astype("float64"))
        losses.append(np.mean(values * (batch[2][i] if len(batch) == 3 else 1.0)))
    total = np.dot(losses, spec["loss_weights"] or [1.0] * len(losses))
    return np.array([total] + (losses if len(losses) > 1 else []))


def losses_of(model, spec, data, steps):
    """Returns the mean over the first `steps` batches, weighted by their numbers of samples."""
    sizes = data["sizes"][:steps]
    return np.average([batch_losses(model, spec, data, i) for i in range(len(sizes))], axis=0, weights=sizes)


class Witness(keras.callbacks.Callback):
    """Records which epochs validate, and the correct losses where Keras's are wrong.

    Keras's loss of a validation by a generator is that of the last batch (checked here); the losses of several outputs
    are means over batches of whatever size."""

    def __init__(self, spec, data, validation):
        super(Witness, self).__init__()
        self.spec, self.data, self.held_out = spec, data, validation
        self.validated, self.right = [], collections.defaultdict(list)

    def on_epoch_begin(self, epoch, logs=None):
        self.means, self.sizes, self.tested = [], [], False

    def on_batch_end(self, batch, logs=None):
        names = self.loss_names()[1:]
        self.means.append([logs[name] for name in names])
        self.sizes.append(logs["size"])

    def on_test_begin(self, logs=None):
        self.tested = True

    def loss_names(self):
        """Returns the loss, then each output's loss if there are several."""
        several = len(self.model.outputs) > 1
        return self.model.metrics_names[:1 + len(self.model.outputs) if several else 1]

    def on_epoch_end(self, epoch, logs=None):
        names = self.loss_names()
        if len(names) > 1:
            sums = np.array(self.means, "float64") * np.arange(1, len(self.means) + 1)[:, None]
            means = np.average(np.diff(sums, axis=0, prepend=0.0), axis=0, weights=self.sizes)
            for name, value in zip(names[1:], means):
                self.right[name].append(value)
        if self.tested:
            self.validated.append(epoch)
            self.check_validation(names, logs)

    def check_validation(self, names, logs):
        """Checks that Keras's loss is the expected one, correct or not."""
        steps = self.spec["arguments"].get("validation_steps")
        right = losses_of(self.model, self.spec, self.held_out, steps)
        expected = right[0]
        if self.spec["call"] == "fit_generator":
            last = len(self.held_out["sizes"]) - 1
            expected = batch_losses(self.model, self.spec, self.held_out, last)[0]
        if not steps:
            np.testing.assert_allclose(logs["val_loss"], expected, rtol=1e-5)
        for name, value in zip(names, right):
            self.right["val_" + name].append(value)


def make_schedule(rates=None, factor=None):
    """Returns a learning rate for each epoch, or a factor for the current rate."""
    if rates:
        return lambda epoch: rates[epoch]
    return lambda epoch, rate: float(rate * factor)


def make_callbacks(spec, csv_path):
    """Returns the callbacks of a case, from their names and arguments."""
    made = []
    for class_name, config in spec["callbacks"]:
        if class_name == "LearningRateScheduler":
            config = {"schedule": make_schedule(**config)}
        if class_name == "CSVLogger":
            config = dict(config, filename=csv_path)
        made.append(getattr(keras.callbacks, class_name)(**config))
    return made


def make_data(random, model, spec, sizes):
    """Arrays of as many samples as the batches have, targets as each output's loss wants them."""
    count = sum(sizes)
    x = [random.normal(0.0, 1.0, (count,) + K.int_shape(i)[1:]).astype("float32") for i in model.inputs]
    t = []
    for loss, output in zip(listed(spec["loss"]), model.outputs):
        shape = (count,) + K.int_shape(output)[1:]
        t.append(one_hot(random, shape) if "crossentropy" in loss
                 else random.normal(0.0, 1.0, shape).astype("float32"))
    if spec["learnable"]:
        t = [0.8 * x[0][:, :array.shape[1]] + 0.4 * array for array in t]
    sw = [random.uniform(0.2, 2.0, count).astype("float32") for _ in t] if spec["sample_weight"] else []
    data = {"x": x, "t": t, "sw": sw, "sizes": list(sizes)}
    return data


def run_fit(model, spec, data, validation, callbacks):
    """Calls the function that the case tests."""
    arguments = dict(spec["arguments"], callbacks=callbacks, verbose=0, shuffle=False)
    if spec["call"] == "fit_generator":
        held_out = Batches(validation) if validation else None
        return model.fit_generator(Batches(data), validation_data=held_out, **arguments)
    if validation:
        parts = [validation[key] for key in ("x", "t", "sw")]
        arguments["validation_data"] = tuple(parts if parts[2] else parts[:2])
    return model.fit(data["x"], data["t"], sample_weight=data["sw"] or None, **arguments)


def check_decisions(spec, history):
    """Checks that no decision of a callback is so close that rounding could change it."""
    for class_name, config in spec["callbacks"]:
        if "monitor" not in config:
            continue
        values = np.array(history.history[config["monitor"]])
        delta = config.get("min_delta", 1e-4 if class_name == "ReduceLROnPlateau" else 0.0)
        sign = -1 if "acc" in config["monitor"] else 1
        for i in range(1, len(values)):
            gains = sign * (values[:i] - values[i]) - delta
            if np.any((np.abs(gains) < DECISIVE) & (np.abs(values[:i] - values[i]) > 1e-7)):
                raise ValueError("%s decides by a hair: %s" % (class_name, values))


def evaluate(members, model, spec, validation):
    """Calls evaluate_generator or evaluate, and corrects the loss."""
    if spec["call"] == "fit_generator":
        values = listed(model.evaluate_generator(Batches(validation)))
    else:
        values = listed(model.evaluate(validation["x"], validation["t"], verbose=0,
                                       sample_weight=validation["sw"] or None,
                                       batch_size=spec["arguments"]["batch_size"]))
    right = losses_of(model, spec, validation, None)
    members["evaluated"] = list(right) + values[len(right):]


DEFAULTS = {
    "call": "fit_generator",
    "loss": "categorical_crossentropy",
    "loss_weights": None,
    "metrics": None,
    "weighted_metrics": None,
    "sample_weight": False,
    "sample_weight_mode": None,
    "optimizer": ("SGD", {"learning_rate": 0.2}),
    "sizes": TRAIN_SIZES,
    "validation": None,
    "callbacks": [],
    "learnable": False,
    "spoil": None,
    "notes": "",
}


def record(root, case, build, epochs=3, **options):
    """Runs one case and writes <root>/loops/<case>.npz.  What is not in DEFAULTS is an argument of the fit."""
    spec = dict(DEFAULTS, class_name="Model", steps=0, class_weight=options.get("class_weight"))
    spec.update((k, v) for k, v in options.items() if k in DEFAULTS)
    spec["arguments"] = dict({k: v for k, v in options.items() if k not in DEFAULTS}, epochs=epochs)
    random = store.random_for("%s/%s" % (GROUP, case))
    K.clear_session()
    for key in ("metrics", "weighted_metrics"):
        if callable(spec[key]):
            spec[key] = spec[key]()
    model = build()
    set_initial_weights(random, model, 1.0)
    data = make_data(random, model, spec, spec["sizes"])
    validation = make_data(random, model, spec, spec["validation"]) if spec["validation"] else None
    if spec["spoil"]:
        spec["spoil"](data)
    optimizer = compile_model(model, spec)
    meta = describe(spec, model, optimizer, GROUP, case)
    members = collections.OrderedDict(meta=None, config=store.text(model.to_json()))
    put_data(members, "", data)
    if validation:
        put_data(members, "v", validation)
    put(members, "w", model.get_weights())
    witness = Witness(spec, data, validation)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        csv_path = os.path.join(folder, "log.csv")
        history = run_fit(model, spec, data, validation, [witness] + make_callbacks(spec, csv_path))
        if os.path.exists(csv_path):
            with open(csv_path, "rb") as file:
                members["csv"] = np.frombuffer(file.read(), dtype=np.uint8)
    check_decisions(spec, history)
    put(members, "wt", model.get_weights())
    names = list(history.history)
    put(members, "h", [history.history[name] for name in names])
    put(members, "right", [witness.right.get(name) for name in names])
    if validation:
        evaluate(members, model, spec, validation)
    for key in ("class_name", "steps", "trainable", "class_weight"):
        del meta[key]
    meta.update(call=spec["call"], arguments=spec["arguments"], callbacks=spec["callbacks"], history=names,
                epoch=history.epoch, validated=witness.validated)
    members["meta"] = store.text(meta)
    store.save("%s/%s/%s.npz" % (root, GROUP, case), members)


def put_data(members, prefix, data):
    """x0.., t0.., sw0.. and the sizes of the batches."""
    for key in ("x", "t", "sw"):
        put(members, prefix + key, data[key])
    members[prefix + "sizes"] = data["sizes"]


def classifier():
    """Three classes."""
    return keras.Sequential([keras.layers.Dense(5, activation="tanh", batch_input_shape=(None, 4)),
                             keras.layers.Dense(3, activation="softmax")])


def regressor():
    """Two numbers."""
    return keras.Sequential([keras.layers.Dense(5, activation="tanh", batch_input_shape=(None, 4)),
                             keras.layers.Dense(2)])


def normalised():
    """A model that behaves differently in training and evaluation.  The gradient of a bias before the normalisation
    would be only rounding errors, which Adam scales up."""
    return keras.Sequential([keras.layers.Dense(5, use_bias=False, batch_input_shape=(None, 4)),
                             keras.layers.BatchNormalization(momentum=0.8),
                             keras.layers.Dense(3, activation="softmax")])


def recurrent():
    """A model that reads five time steps."""
    return keras.Sequential([keras.layers.LSTM(4, batch_input_shape=(None, 5, 3)),
                             keras.layers.Dense(3, activation="softmax")])


def stateful():
    """A stateful model: each batch continues where the previous one ended."""
    return keras.Sequential([keras.layers.LSTM(4, stateful=True, return_sequences=True, batch_input_shape=(3, 5, 2)),
                             keras.layers.GRU(3, stateful=True),
                             keras.layers.Dense(2)])


def two_inputs():
    """Inputs of two widths, joined."""
    left, right = keras.Input((3,), name="left"), keras.Input((2,), name="right")
    joined = keras.layers.Concatenate()([left, right])
    return keras.Model([left, right], keras.layers.Dense(2, name="out")(joined))


def two_outputs():
    """A model with two outputs, classes and numbers, from shared layers."""
    x = keras.Input((4,), name="x")
    trunk = keras.layers.Dense(5, activation="tanh", name="trunk")(x)
    return keras.Model(x, [keras.layers.Dense(3, activation="softmax", name="kind")(trunk),
                           keras.layers.Dense(2, name="place")(trunk)])


ADAM = ("Adam", {"learning_rate": 0.02})
MSE = {"loss": "mean_squared_error", "metrics": ["mse", "mae"]}
TWO = {"loss": ["categorical_crossentropy", "mean_squared_error"], "loss_weights": [1.0, 0.4],
       "metrics": {"kind": "accuracy", "place": ["mae", "mse"]}}
CLASSES = {0: 0.5, 1: 2.0, 2: 1.25}


def plain(root):
    """Losses, metrics, steps, epochs, weights of samples and classes."""
    record(root, "plain", classifier)
    record(root, "no_workers", classifier, workers=0)
    record(root, "metrics", classifier, optimizer=ADAM,
           metrics=["accuracy", "categorical_crossentropy", "mae"])
    record(root, "metrics_of_numbers", regressor, **MSE)
    record(root, "metrics_of_classes", classifier, sample_weight=True, validation=VALIDATION_SIZES,
           metrics=lambda: [keras.metrics.AUC(num_thresholds=20), keras.metrics.Precision(top_k=2),
                            keras.metrics.TruePositives(thresholds=0.3), "accuracy"],
           weighted_metrics=lambda: [keras.metrics.AUC(num_thresholds=20, curve="PR"),
                                     keras.metrics.Recall(thresholds=0.4)])
    record(root, "momentum_decay", regressor, epochs=4,
           optimizer=("SGD", {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True, "decay": 0.05}), **MSE)
    record(root, "class_weight", classifier, class_weight=CLASSES, metrics=["accuracy"],
           weighted_metrics=["categorical_crossentropy"], validation=VALIDATION_SIZES)
    record(root, "sample_weight", classifier, sample_weight=True, metrics=["accuracy"],
           weighted_metrics=["accuracy", "mae"], validation=VALIDATION_SIZES)
    record(root, "class_and_sample_weight", classifier, class_weight=CLASSES, sample_weight=True,
           weighted_metrics=["accuracy"])
    record(root, "steps_below_length", classifier, epochs=4, steps_per_epoch=3, metrics=["accuracy"])
    record(root, "steps_above_length", classifier, epochs=3, steps_per_epoch=7, metrics=["accuracy"],
           validation=VALIDATION_SIZES)
    record(root, "initial_epoch", classifier, epochs=5, initial_epoch=2, metrics=["accuracy"],
           callbacks=[("LearningRateScheduler", {"rates": [9.0, 9.0, 0.3, 0.2, 0.1]})])
    record(root, "batchnorm", normalised, metrics=["accuracy"], sizes=[4, 3, 5, 2],
           validation=VALIDATION_SIZES, optimizer=ADAM)
    record(root, "lstm", recurrent, metrics=["accuracy"], validation=VALIDATION_SIZES, optimizer=ADAM)
    record(root, "two_inputs", two_inputs, validation=VALIDATION_SIZES, optimizer=("RMSprop", {}), **MSE)


LAST = "val_loss is the last batch's; the right one was computed from predictions"
STALE = LAST + "; epochs without validation repeat the val_* before"
BATCHES = LAST + "; the outputs' losses are means over batches, whatever their sizes"


def validation(root):
    """Validation by a sequence; several outputs."""
    held_out = {"validation": VALIDATION_SIZES, "notes": LAST}
    record(root, "validation", classifier, metrics=["accuracy"], **held_out)
    record(root, "validation_one_batch", regressor, validation=[6], **MSE)
    record(root, "validation_steps", classifier, metrics=["accuracy"], validation_steps=2,
           validation=VALIDATION_SIZES, notes=LAST + "; a validation goes on where the last one ended")
    held_out["notes"] = STALE
    record(root, "validation_freq", classifier, epochs=5, metrics=["accuracy"], validation_freq=2, **held_out)
    record(root, "validation_freq_list", classifier, epochs=5, metrics=["accuracy"],
           validation_freq=[1, 4], **held_out)
    held_out["notes"] = BATCHES
    record(root, "two_outputs", two_outputs, **dict(TWO, **held_out))
    record(root, "two_outputs_sample_weight", two_outputs, sample_weight=True,
           weighted_metrics={"place": "mae"}, **dict(TWO, **held_out))


def nan_at(*samples):
    """Data with a NaN in some samples."""
    def spoil(data):
        data["x"][0][list(samples), 0] = np.nan
    return spoil


def callbacks(root):
    """The effects of callbacks between epochs."""
    record(root, "scheduler", classifier, epochs=4, validation=VALIDATION_SIZES, metrics=["accuracy"],
           callbacks=[("LearningRateScheduler", {"rates": [0.3, 0.03, 0.2, 0.1]})], notes=LAST)
    record(root, "scheduler_of_rate", regressor, epochs=4, optimizer=ADAM,
           callbacks=[("LearningRateScheduler", {"factor": 0.5})], **MSE)
    reduce = {"monitor": "val_mse", "factor": 0.5, "patience": 1, "min_delta": 0.05, "cooldown": 3,
              "min_lr": 0.03}
    record(root, "reduce_lr", regressor, epochs=9, validation=VALIDATION_SIZES, notes=LAST,
           callbacks=[("ReduceLROnPlateau", reduce)], **MSE)
    record(root, "reduce_lr_loss", regressor, epochs=6, optimizer=("SGD", {"learning_rate": 0.4}),
           callbacks=[("ReduceLROnPlateau", {"monitor": "loss", "patience": 1, "factor": 0.3})], **MSE)
    stop = {"monitor": "val_mse", "patience": 2, "restore_best_weights": True}
    overfit = dict(MSE, epochs=16, validation=VALIDATION_SIZES, learnable=True,
                   optimizer=("Adam", {"learning_rate": 0.06}))
    record(root, "early_stopping_restore", regressor, callbacks=[("EarlyStopping", stop)], notes=LAST,
           **overfit)
    record(root, "early_stopping_keep_last", regressor, notes=LAST,
           callbacks=[("EarlyStopping", dict(stop, restore_best_weights=False, min_delta=0.01))], **overfit)
    record(root, "early_stopping_one_batch", regressor, notes="one batch: val_loss is right",
           callbacks=[("EarlyStopping", dict(stop, monitor="val_loss"))], **dict(overfit, validation=[7]))
    record(root, "early_stopping_accuracy", classifier, epochs=14, metrics=["accuracy"], notes=LAST,
           optimizer=("Adam", {"learning_rate": 0.03}), validation=VALIDATION_SIZES,
           callbacks=[("EarlyStopping", {"monitor": "val_accuracy", "patience": 5,
                                         "restore_best_weights": True})])
    record(root, "csv_logger", regressor, epochs=4, validation=VALIDATION_SIZES, notes=LAST,
           callbacks=[("LearningRateScheduler", {"rates": [0.3, 0.03, 0.2, 0.1]}), ("CSVLogger", {})], **MSE)
    record(root, "csv_logger_separator", two_outputs, callbacks=[("CSVLogger", {"separator": ";"})],
           notes="the outputs' losses are means over batches, whatever their sizes", **TWO)
    record(root, "csv_logger_validation_freq", classifier, epochs=4, validation=VALIDATION_SIZES,
           metrics=["accuracy"], validation_freq=2, callbacks=[("CSVLogger", {})],
           notes=STALE + "; the file has no val_* columns")
    record(root, "terminate_on_nan", classifier, epochs=4, steps_per_epoch=3, spoil=nan_at(12),
           metrics=["accuracy"], validation=VALIDATION_SIZES, callbacks=[("TerminateOnNaN", {})], notes=STALE)
    record(root, "nan_in_last_batch", classifier, spoil=nan_at(13), metrics=["accuracy"],
           validation=VALIDATION_SIZES, callbacks=[("TerminateOnNaN", {})],
           notes=LAST + "; validation clears the request to stop: the next epoch runs its first batch")


def arrays(root):
    """fit: the same loop over arrays, where Keras's val_loss is right."""
    fit = {"call": "fit", "batch_size": 4}
    record(root, "fit_plain", classifier, metrics=["accuracy"], **fit)
    record(root, "fit_validation", classifier, metrics=["accuracy"], validation=VALIDATION_SIZES, **fit)
    record(root, "fit_weights", classifier, metrics=["accuracy"], weighted_metrics=["mae"],
           sample_weight=True, class_weight=CLASSES, validation=VALIDATION_SIZES, **fit)
    record(root, "fit_validation_freq", regressor, epochs=5, validation_freq=2, validation=VALIDATION_SIZES,
           **dict(MSE, **fit))
    record(root, "fit_initial_epoch", regressor, epochs=4, initial_epoch=1, optimizer=ADAM,
           callbacks=[("LearningRateScheduler", {"factor": 0.8})], **dict(MSE, **fit))
    record(root, "fit_stateful", stateful, sizes=[3, 3, 3, 3], call="fit", batch_size=3, notes="states outlive epochs",
           **MSE)
    record(root, "fit_two_outputs", two_outputs, validation=VALIDATION_SIZES,
           notes="the outputs' losses are means over batches, whatever their sizes", **dict(TWO, **fit))


def run(root):
    """Records all cases of this module."""
    for part in (plain, validation, callbacks, arrays):
        part(root)
