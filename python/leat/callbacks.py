# SPDX-License-Identifier: Apache-2.0
"""Callbacks of fit, evaluate and predict, with the names and arguments of keras.callbacks.

A callback in Python is an object with any of Keras's methods (on_train_begin(logs), on_epoch_end(epoch, logs),
on_train_batch_end(batch, logs), ...); Callback is a base class for it, and callbacks of Keras work, too.  The classes
in capital letters below it run in C.
"""

import json


class Callback:
    """The base class of callbacks in Python: override the methods that you need.

    model: the leat.Model; `self.model.stop_training = True` ends the fit.
    params: a dict with epochs, steps, samples, batch_size, verbose, do_validation and metrics.

    logs: a dict of floats.  What on_epoch_end adds to it becomes a part of the history.  Methods that are not
    overridden cost nothing.  An exception ends the call, and is raised by it.
    """

    def __init__(self):
        self.model = None
        self.params = {}

    def set_model(self, model):
        self.model = model

    def set_params(self, params):
        self.params = params

    def on_train_begin(self, logs=None):
        """Called at the beginning of fit."""

    def on_train_end(self, logs=None):
        """Called at the end of fit."""

    def on_epoch_begin(self, epoch, logs=None):
        """Called at the beginning of an epoch, which counts from 0."""

    def on_epoch_end(self, epoch, logs=None):
        """Called at the end of an epoch, after its validation."""

    def on_batch_begin(self, batch, logs=None):
        """Like on_train_batch_begin."""

    def on_batch_end(self, batch, logs=None):
        """Like on_train_batch_end."""

    def on_train_batch_begin(self, batch, logs=None):
        """Called before a training step."""

    def on_train_batch_end(self, batch, logs=None):
        """Called after a training step; logs has the means of the epoch so far."""

    def on_test_begin(self, logs=None):
        """Called at the beginning of evaluate, or of a validation."""

    def on_test_end(self, logs=None):
        """Called at the end of evaluate, or of a validation."""

    def on_test_batch_begin(self, batch, logs=None):
        """Called before a batch of evaluate, or of a validation."""

    def on_test_batch_end(self, batch, logs=None):
        """Called after a batch of evaluate, or of a validation."""

    def on_predict_begin(self, logs=None):
        """Called at the beginning of predict."""

    def on_predict_end(self, logs=None):
        """Called at the end of predict."""

    def on_predict_batch_begin(self, batch, logs=None):
        """Called before a batch of predict."""

    def on_predict_batch_end(self, batch, logs=None):
        """Called after a batch of predict."""


class History(Callback):
    """Records the logs of each epoch, like the object that fit returns: history, epoch."""

    def __init__(self):
        super().__init__()
        self.history = {}
        self.epoch = []

    def on_epoch_end(self, epoch, logs=None):
        self.epoch.append(epoch)
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(value)


class LambdaCallback(Callback):
    """Makes a callback of functions: LambdaCallback(on_epoch_end=lambda epoch, logs: print(logs))."""

    def __init__(self, **functions):
        super().__init__()
        known = {name for name in dir(Callback) if name.startswith("on_")}
        for name, function in functions.items():
            if name not in known:
                raise TypeError(f"there is no hook {name!r}: expected one of {', '.join(sorted(known))}")
            if function is not None:
                setattr(self, name, function)


class LearningRateScheduler(Callback):
    """Sets the learning rate at the beginning of each epoch to schedule(epoch, lr), or schedule(epoch)."""

    def __init__(self, schedule, verbose=0):
        super().__init__()
        self.schedule = schedule
        self.verbose = verbose

    def on_epoch_begin(self, epoch, logs=None):
        try:
            rate = self.schedule(epoch, self.model.learning_rate)
        except TypeError:
            rate = self.schedule(epoch)
        self.model.learning_rate = rate
        if self.verbose:
            print(f"\nEpoch {epoch + 1}: LearningRateScheduler setting learning rate to {float(rate)}.")

    def on_epoch_end(self, epoch, logs=None):
        logs["lr"] = self.model.learning_rate


class _Native:
    """A callback of the C library, described by its class and arguments."""

    def __init__(self, **arguments):
        self._arguments = {name: value for name, value in arguments.items() if value is not None}

    def _text(self):
        return json.dumps({"class_name": type(self).__name__, "config": self._arguments})

    def _make_hooks(self, model):
        return None

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._arguments.items())})"


def _rises(mode, monitor):
    """Returns True if larger values of the monitored series are better."""
    return mode == "max" or (mode == "auto" and monitor.endswith(("acc", "accuracy", "auc")))


class EarlyStopping(_Native):
    """Stops the fit when a value no longer improves; start_from_epoch: epochs before it begins to look."""

    def __init__(
        self,
        monitor="val_loss",
        min_delta=0,
        patience=0,
        verbose=0,
        mode="auto",
        baseline=None,
        restore_best_weights=False,
        start_from_epoch=0,
    ):
        self._first = int(start_from_epoch)
        super().__init__(
            monitor=monitor,
            min_delta=float(min_delta),
            patience=patience,
            verbose=verbose,
            mode=mode,
            baseline=baseline,
            restore_best_weights=bool(restore_best_weights),
        )


    def _make_hooks(self, model):
        """Returns the hooks of an EarlyStopping that begins later; None: C's begins with the first epoch."""
        if self._first == 0:
            return None
        a = self._arguments
        rises = _rises(a["mode"], a["monitor"])
        at = {"best": None, "waited": 0, "weights": None}

        def improves(value, best):
            return best is None or (value - best if rises else best - value) > abs(a["min_delta"])

        def end(epoch, logs):
            value = logs.get(a["monitor"])
            if value is None or epoch < self._first:
                return
            at["waited"] += 1
            if improves(value, at["best"]):
                at.update(best=value, weights=model.get_weights() if a["restore_best_weights"] else None)
                if improves(value, a.get("baseline")):
                    at["waited"] = 0
                return
            if at["waited"] >= a["patience"]:
                model.stop_training = True
                if at["weights"] is not None:
                    model.set_weights(at["weights"])

        return {"on_epoch_end": end}


class ModelCheckpoint(_Native):
    """Saves the model after each `period` epochs; `filepath` may contain {epoch:02d} and values of the logs.

    save_freq: "epoch", or a number of batches; `filepath` may then contain {batch}, too.
    """

    def __init__(
        self,
        filepath,
        monitor="val_loss",
        verbose=0,
        save_best_only=False,
        save_weights_only=False,
        mode="auto",
        period=1,
        save_freq="epoch",
    ):
        import os

        if save_freq != "epoch" and (isinstance(save_freq, str) or int(save_freq) < 1):
            raise ValueError(f'save_freq is {save_freq!r}, expected "epoch" or a number of batches')
        self._save_freq = save_freq
        super().__init__(
            filepath=os.fspath(filepath),
            monitor=monitor,
            verbose=verbose,
            save_best_only=bool(save_best_only),
            save_weights_only=bool(save_weights_only),
            mode=mode,
            period=period,
        )


    def _make_hooks(self, model):
        """Returns the hooks that save after each save_freq batches; None: C saves after epochs."""
        if self._save_freq == "epoch":
            return None
        a, at = self._arguments, {"epoch": 0, "batches": 0, "best": None}
        rises = _rises(a["mode"], a["monitor"])

        def begin(epoch, logs):
            at["epoch"] = epoch

        def save(batch, logs):
            at["batches"] += 1
            if at["batches"] % self._save_freq:
                return
            value = logs.get(a["monitor"])
            if a["save_best_only"]:
                if value is None or (at["best"] is not None and (value <= at["best"] if rises else value >= at["best"])):
                    return
                at["best"] = value
            path = a["filepath"].format(**{**logs, "epoch": at["epoch"] + 1, "batch": batch + 1})
            (model.save_weights if a["save_weights_only"] else model.save)(path)

        return {"on_epoch_begin": begin, "on_train_batch_end": save}


class ReduceLROnPlateau(_Native):
    """Reduces the learning rate when a value no longer improves."""

    def __init__(
        self,
        monitor="val_loss",
        factor=0.1,
        patience=10,
        verbose=0,
        mode="auto",
        min_delta=1e-4,
        cooldown=0,
        min_lr=0,
    ):
        super().__init__(
            monitor=monitor,
            factor=float(factor),
            patience=patience,
            verbose=verbose,
            mode=mode,
            min_delta=float(min_delta),
            cooldown=cooldown,
            min_lr=float(min_lr),
        )


class CSVLogger(_Native):
    """Writes a line per epoch to a CSV file."""

    def __init__(self, filename, separator=",", append=False):
        import os

        super().__init__(filename=os.fspath(filename), separator=separator, append=bool(append))


class TensorBoard(_Native):
    """Writes event files for TensorBoard."""

    def __init__(
        self,
        log_dir="logs",
        histogram_freq=0,
        write_graph=True,
        write_steps_per_second=False,
        update_freq="epoch",
    ):
        import os

        super().__init__(
            log_dir=os.fspath(log_dir),
            histogram_freq=histogram_freq,
            write_graph=bool(write_graph),
            write_steps_per_second=bool(write_steps_per_second),
            update_freq=update_freq,
        )


class RemoteMonitor(_Native):
    """Sends the logs of each epoch to a server by HTTP POST; training never waits for the server.  Needs libcurl."""

    def __init__(
        self,
        root="http://localhost:9000",
        path="/publish/epoch/end/",
        field="data",
        headers=None,
        send_as_json=False,
    ):
        lines = [f"{name}: {value}" for name, value in (headers or {}).items()]
        super().__init__(root=root, path=path, field=field, headers=lines, send_as_json=bool(send_as_json))

    def _text(self):
        a = self._arguments
        return "RemoteMonitor", a["root"], a["path"], a["field"], a["headers"], a["send_as_json"]


class OpenMetrics(_Native):
    """Writes the state of a fit to a file for Prometheus: at its beginning, its end, epochs, and every few seconds.

    labels: a dict; they are added to all values.
    """

    def __init__(self, path, labels=None, every_seconds=10.0):
        import os

        texts = [f"{name}={value}" for name, value in (labels or {}).items()]
        super().__init__(path=os.fspath(path), labels=texts, every_seconds=every_seconds)

    def _text(self):
        a = self._arguments
        return "OpenMetrics", a["path"], a["labels"], int(a["every_seconds"] * 1000)


class TerminateOnNaN(_Native):
    """Stops the fit after a batch whose loss is not finite."""


_WITH_NUMBER = ("epoch", "batch")
_HOOKS = [name for name in dir(Callback) if name.startswith("on_") and name not in ("on_batch_begin", "on_batch_end")]


def _overrides(callback, name):
    """Returns the method of a callback if it does something."""
    method = getattr(callback, name, None)
    if method is None:
        return None
    function = getattr(method, "__func__", method)
    if getattr(Callback, name, None) is function:
        return None
    module = getattr(function, "__module__", "") or ""
    keras = module.startswith(("keras", "tensorflow", "tf_keras"))
    if keras and getattr(function, "__qualname__", "") == f"Callback.{name}":
        return None  # the empty method of Keras's base class
    return method


def _adapt(name, methods):
    """Returns the function (index, logs) that calls the methods of a hook."""
    if any(word in name for word in _WITH_NUMBER):
        if len(methods) == 1:
            return methods[0]

        def call(index, logs):
            for method in methods:
                method(index, logs)

    else:

        def call(index, logs):
            for method in methods:
                method(logs)

    return call


def describe(callback, model, note_params):
    """Returns what the extension takes for a callback: a text, a tuple, or a dict of functions by the name of the hook."""
    if isinstance(callback, _Native):
        return callback._make_hooks(model) or callback._text()
    if isinstance(callback, str):
        return callback
    set_model = getattr(callback, "set_model", None)
    if set_model is not None:
        set_model(model)
    set_params = getattr(callback, "set_params", None)
    hooks = {}
    for name in _HOOKS:
        methods = [_overrides(callback, name)]
        if name.startswith("on_train_batch"):
            methods.append(_overrides(callback, name.replace("train_batch", "batch")))
        methods = [method for method in methods if method is not None]
        if methods:
            hooks[name] = _adapt(name, methods)
    if not hooks and set_params is None:
        raise TypeError(
            f"a {type(callback).__name__} is no callback: expected an object with methods such as"
            " on_epoch_end(epoch, logs)"
        )

    def pass_params(params):
        note_params(params)
        if set_params is not None:
            set_params(params)

    hooks["set_params"] = pass_params
    return hooks
