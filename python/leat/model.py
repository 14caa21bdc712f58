# SPDX-License-Identifier: Apache-2.0
"""Models: loading, compiling, training, evaluating, predicting and saving them."""

import atexit
import json
import os
import time
import weakref
from typing import Any, Dict, List, Optional

from leat import _arguments, _arrays, _data, _ranks, _trainer, callbacks as _callbacks
from leat.errors import ArgumentError, Error
from leat.errors import _make as _make_error
from leat.history import History
from leat._model_contents import ModelContents
from leat._model_files import ModelFiles
from leat.model_parts import Optimizer

_trainer.set_error_maker(_make_error)

_TUNINGS = {"off": 0, "known": 1, "measure": 2}

_open_objects = weakref.WeakSet()


def _close_all():
    """Closes what is open at the end of the program; a call that another thread has not finished is stopped."""
    until = time.monotonic() + 5
    for opened in sorted(_open_objects, key=lambda item: isinstance(item, Model)):
        while True:
            try:
                opened.close()
            except Error:  # It is in use.
                if isinstance(opened, Model) and time.monotonic() < until:
                    opened._native.stop()
                    time.sleep(0.01)
                    continue
            break


atexit.register(_close_all)


class Model(ModelContents, ModelFiles):
    """A model of Keras's layers, which leat trains and runs.

    Model.load(path), Model.from_keras(model), Model.from_json(text) and Model.sequential(...) make one.  A model serves
    one thread at a time; for predictions in other threads there is leat.Predictor.  Long calls release the
    interpreter's lock, and Ctrl-C ends them between two batches.  Use a model as a context manager, or call close().

    Data of fit, evaluate and predict:
        - x and y: arrays of NumPy or torch with samples along the first dimension, or lists (by position) or dicts (by
          the names of the model's inputs and outputs) of them.  They are read where they are.  Integers, bool and
          float16 to float64 are converted to float32 batch by batch;
        - leat.source("SPEC"): files that leat itself reads;
        - a leat.Feed, a keras.utils.Sequence or PyDataset, or an iterable, whose batches are x, (x, y) or
          (x, y, sample_weight).
    """

    def __init__(self, native):
        if not isinstance(native, _trainer.Model):
            raise TypeError("use Model.load(path), Model.from_keras(model), Model.from_json(text) or Model.sequential(...)")
        self._native = native
        self._closed = False
        self._stop = False
        self._is_sequential = None  # not known yet
        self.history: Optional[History] = None
        _open_objects.add(self)

    # ---- compiling ----

    def compile(
        self,
        optimizer="rmsprop",
        loss=None,
        metrics=None,
        loss_weights=None,
        sample_weight_mode=None,
        weighted_metrics=None,
        *,
        arithmetic: Optional[str] = None,
        keep: bool = False,
        run_eagerly=None,
        jit_compile=None,
        steps_per_execution: int = 1,
        auto_scale_loss: bool = True,
    ) -> None:
        """Compiles the model, like keras.Model.compile, with a new state of the optimizer.

        Each argument is a name ("adam"), a call ("Adam(learning_rate=0.01)", "AUC(curve=PR)"), a configuration
        ({"class_name": "Adam", "config": {...}}), an object of Keras with get_config(), or a list (by output) or dict
        (by the output's name) of such.
        arithmetic: "keras2" or "keras3"; None: that of the model's file.
        keep: what is None here stays as it was compiled, or as the file says.
        run_eagerly, jit_compile, steps_per_execution, auto_scale_loss: of Keras; they change nothing in leat.
        """
        self._get().compile(
            _arguments.text(optimizer),
            _arguments.text(loss),
            _arguments.text(metrics, joins=True),
            _arguments.text(weighted_metrics, joins=True),
            _arguments.text(loss_weights),
            _arguments.text(sample_weight_mode),
            arithmetic,
            keep,
        )

    @property
    def compiled(self) -> bool:
        """True if the model can be trained: after compile(), or if its file has an optimizer and a loss."""
        return self._get().is_compiled()

    @property
    def metrics_names(self) -> List[str]:
        """The names of what evaluate() and train_on_batch() return: "loss", then the metrics."""
        return self._get().metric_names()

    @property
    def optimizer_config(self) -> Dict[str, Any]:
        """The optimizer with its current learning rate: {"class_name": ..., "config": {...}}."""
        return json.loads(self._get().optimizer_config())

    @property
    def training_config(self) -> Dict[str, Any]:
        """All arguments of compile, in the form of Keras's files."""
        return json.loads(self._get().training_config())

    @property
    def learning_rate(self) -> float:
        """The optimizer's learning rate; may be set."""
        return self._get().learning_rate()

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        self._get().set_learning_rate(float(rate))

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer: model.optimizer.learning_rate = 0.01."""
        return Optimizer(self)

    # ---- training ----

    def fit(
        self,
        x=None,
        y=None,
        batch_size: Optional[int] = None,
        epochs: int = 1,
        verbose=1,
        callbacks=None,
        validation_split: float = 0.0,
        validation_data=None,
        shuffle=True,
        class_weight=None,
        sample_weight=None,
        initial_epoch: int = 0,
        steps_per_epoch: Optional[int] = None,
        validation_steps: Optional[int] = None,
        validation_freq=1,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
        *,
        validation_batch_size: Optional[int] = None,
        seed: int = 0,
        threads: int = 0,
        checkpoints=None,
        bad_batch: str = "fail",
        retries: int = 0,
        timeout: Optional[float] = None,
        check_finite: bool = False,
        comm=None,
        shard_optimizer: bool = False,
    ) -> History:
        """Trains the model, like keras.Model.fit, and returns its History.

        x, y, sample_weight: the data (see the class).  batch_size: of arrays; default 32, or that of the model's input.
        epochs: the number of the last epoch.  verbose: 0: silent, 1: a progress bar, 2: a line per epoch, on stderr.
        callbacks: objects of leat.callbacks or of Keras, or texts such as "EarlyStopping(patience=3)".
        validation_data: (x, y), (x, y, sample_weight), or data that gives batches.  validation_split: the last share of
        arrays, or of a source, for validation.
        shuffle: True: samples of arrays and sources, batches of a Sequence; False; "batches" or "batch"; "window:N";
            "blocks", for large HDF5 files in chunks.
        class_weight: {class: weight}, or {output: {class: weight}}.
        validation_freq: epochs between validations, or a list of epochs, counted from 1.
        workers, use_multiprocessing, max_queue_size: of the feed; a Sequence has worker threads of Python, or worker
        processes with use_multiprocessing.
        seed: of shuffling, dropout and the data's random numbers.  threads: compute threads; 0: all cores.
        checkpoints: a folder, or a dict with folder, every_steps, every_seconds, every_epochs, resume, keep: the fit
        can be continued from there.
        bad_batch, retries, timeout (seconds), check_finite: what happens to batches that fail; a Feed has its own.
        comm: a communicator of mpi4py, all of whose ranks make this call: each computes a part of every batch, and all
        end with the same weights and history.  Callbacks are called, and progress is printed, on rank 0.
        shard_optimizer: with comm, each rank keeps the optimizer's state for its share of the weights only: less memory,
        the same numbers.  Afterwards rank 0 has the whole state; the other ranks do not.

        An exception of the data or of a callback, or KeyboardInterrupt, ends training and is raised as itself; the
        model then has the weights of the last step, and `model.history` what was recorded.
        """
        native = self._get_compiled()
        if isinstance(checkpoints, (str, os.PathLike)):
            checkpoints = {"folder": checkpoints}
        history = History(self)
        with _data.Opened() as opened:
            split = _data.split_validation(opened, x, y, sample_weight, validation_split)
            if split is not None:
                (x, y, sample_weight), validation_data = split
            options = dict(workers=workers, processes=use_multiprocessing, queue=max_queue_size, seed=seed)
            passes = None if steps_per_epoch else max(int(epochs), int(initial_epoch) + 1)
            data = opened.open(
                self,
                x,
                y,
                sample_weight,
                batch_size,
                True,
                shuffle=shuffle,
                at_pass=initial_epoch,
                passes=passes,
                **options,
            )
            validation = None
            if validation_data is not None:
                parts = _data.validation_parts(validation_data)
                size = validation_batch_size or (batch_size if _data.holds_arrays(parts[0]) else None)
                validation = opened.open(self, *parts, size, True, **options)
            steps, unknown = _data.count_steps(
                steps_per_epoch, data, "steps_per_epoch", int(epochs) - int(initial_epoch)
            )
            if validation is not None:
                validation_steps, _ = _data.count_steps(
                    validation_steps, validation, "validation_steps", int(epochs) - int(initial_epoch)
                )
            samples = data.native.samples()
            history.params = {"steps": None if unknown else steps or data.native.length(), "samples": samples}
            order, window = _data.read_shuffle(False if data.in_python else shuffle)
            epoch_list = None if isinstance(validation_freq, int) else [int(epoch) for epoch in validation_freq]
            arguments = (
                data.native,
                validation.native if validation is not None else None,
                self._describe(callbacks, history),
                _arguments.class_weights(class_weight, self.output_names),
                _arguments.checkpoint_tuple(checkpoints),
                epoch_list,
                int(epochs),
                int(initial_epoch),
                steps,
                2 if unknown and verbose else _arguments.verbose(verbose),
                int(validation_steps or 0),
                1 if epoch_list is not None else int(validation_freq),
                1 if opened.all_in_python else int(max_queue_size),
                0 if data.in_python else int(workers),
                -1 if not workers or (validation is not None and validation.in_python) else int(workers),
                bool(use_multiprocessing) and not opened.in_python,
                int(threads),
                order,
                window,
                int(seed),
                _arguments.choose("bad_batch", bad_batch, {"fail": False, "skip": True}),
                int(retries),
                int(timeout * 1000) if timeout and workers and not opened.in_python else 0,
                bool(check_finite),
                _ranks.describe(comm),
                bool(shard_optimizer),
            )
            self._stop = False
            self.history = history
            error, told = native.fit(*arguments)
            history._fill(*told)
            if unknown and history.epoch:
                history.stop_reason = None  # The iterable has ended, as it should.
            if error is None:
                data.finish()
            history.verdict = data.verdict(history.to_dict().get("verdict", {})) or history.verdict
        self._stop = history.stop_reason is not None
        if error is not None:
            raise error
        return history

    def evaluate(
        self,
        x=None,
        y=None,
        batch_size: Optional[int] = None,
        verbose=1,
        sample_weight=None,
        steps: Optional[int] = None,
        callbacks=None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
        *,
        return_dict: bool = False,
        seed: int = 0,
        threads: int = 0,
        comm=None,
    ):
        """Returns the loss, or [loss, metric, ...] in the order of metrics_names, over all samples.

        return_dict: returns a dict.  The other arguments are those of fit.
        """
        native = self._get_compiled()
        with _data.Opened() as opened:
            options = dict(workers=workers, processes=use_multiprocessing, queue=max_queue_size, seed=seed)
            passes = None if steps else 1
            data = opened.open(self, x, y, sample_weight, batch_size, True, passes=passes, **options)
            logs = native.evaluate(*self._evaluation(data, callbacks, steps, verbose, options, threads, comm))
        return self._order(logs, return_dict)

    def predict(
        self,
        x,
        batch_size: Optional[int] = None,
        verbose=0,
        steps: Optional[int] = None,
        callbacks=None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
        *,
        seed: int = 0,
        threads: int = 0,
        comm=None,
    ):
        """Returns the predictions of all samples: an array (samples, ...), or a list of arrays for several outputs."""
        native = self._get()
        with _data.Opened() as opened:
            options = dict(workers=workers, processes=use_multiprocessing, queue=max_queue_size, seed=seed)
            passes = None if steps else 1
            data = opened.open(self, x, None, None, batch_size, False, passes=passes, **options)
            memories = native.predict(*self._evaluation(data, callbacks, steps, verbose, options, threads, comm))
        return _arguments.outputs(memories)

    def _evaluation(self, data, callbacks, steps, verbose, options, threads, comm):
        steps, unknown = _data.count_steps(steps, data, "steps")
        return (
            data.native,
            self._describe(callbacks, None),
            steps,
            0 if unknown else _arguments.verbose(verbose),
            1 if data.in_python else int(options["queue"]),
            0 if data.in_python else int(options["workers"]),
            bool(options["processes"]) and not data.in_python,
            int(threads),
            int(options["seed"]),
            _ranks.describe(comm),
        )

    def _describe(self, callbacks, history):
        def note(params):
            if history is not None:
                params.update({name: value for name, value in history.params.items() if not params.get(name)})
                history.params = params

        if callbacks is None:
            callbacks = []
        elif not isinstance(callbacks, (list, tuple)):
            callbacks = [callbacks]
        return [{"set_params": note}, *(_callbacks.describe(item, self, note) for item in callbacks)]

    def _order(self, logs, return_dict):
        names = self.metrics_names
        if return_dict:
            return {name: logs[name] for name in names}
        return [logs[name] for name in names] if len(names) > 1 else logs[names[0]]

    # ---- one batch ----

    def train_on_batch(
        self, x, y=None, sample_weight=None, class_weight=None, reset_metrics: bool = True, *, return_dict: bool = False
    ):
        """Trains on one batch, and returns what evaluate() returns, for this batch.

        reset_metrics: False: metrics accumulate over the calls, as in Keras.
        """
        weights = _arguments.class_weights(class_weight, self.output_names)
        logs = self._get_compiled().train_on_batch(*self._batch(x, y, sample_weight), weights, reset_metrics)
        return self._order(logs, return_dict)

    def test_on_batch(self, x, y=None, sample_weight=None, reset_metrics: bool = True, *, return_dict: bool = False):
        """Returns the loss and the metrics of one batch."""
        logs = self._get_compiled().test_on_batch(*self._batch(x, y, sample_weight), None, reset_metrics)
        return self._order(logs, return_dict)

    def predict_on_batch(self, x):
        """Returns the predictions of one batch.  For many small batches leat.Predictor is faster."""
        return _arguments.outputs(self._get().predict_on_batch(self._batch(x, None, None)[0]))

    def __call__(self, x, training: bool = False):
        """Returns predict_on_batch(x).  training: only False, since layers such as Dropout train in fit alone."""
        if training:
            raise ArgumentError("training=True is not supported: train with fit or train_on_batch")
        return self.predict_on_batch(x)

    def reset_metrics(self) -> None:
        """Begins the metrics of calls with reset_metrics=False anew."""
        self._get().reset_metrics()

    def _batch(self, x, y, sample_weight):
        return (
            _arrays.sort_names(_arrays.name_arrays(x, "x"), self.input_names, "x"),
            _arrays.sort_names(_arrays.name_arrays(y, "y"), self.output_names, "y"),
            _arrays.sort_names(_arrays.name_arrays(sample_weight, "sample_weight"), self.output_names, "sample_weight"),
        )

    # ---- stopping ----

    @property
    def stop_training(self) -> bool:
        """Set it to True in a callback, or in any other thread, to end the running call after the current batch."""
        return self._stop

    @stop_training.setter
    def stop_training(self, value: bool) -> None:
        self._stop = bool(value)
        if value:
            self._get().stop()

    def publish(self) -> None:
        """Offers the current weights to the predictors of this model, which take them by sync()."""
        self._get().publish()

    # ---- settings ----

    @property
    def device(self) -> str:
        """Where the model computes: "cpu", "cuda", "cuda:1", "auto"; may be set."""
        return self._get().device()

    @device.setter
    def device(self, name: str) -> None:
        self._get().set("device", name)

    def set_threads(self, threads: int) -> None:
        """Sets the number of compute threads of the calls for one batch."""
        self._get().set("threads", threads)

    def set_deterministic(self, on: bool = True) -> None:
        """Makes results the same bytes for any number of compute threads."""
        self._get().set("deterministic", int(on))

    def set_tf32(self, on: bool = True) -> None:
        """Lets a GPU multiply float32 with 10 bits of mantissa, which is faster; no effect on the CPU."""
        self._get().set("tf32", int(on))

    def set_gradient_checkpointing(self, on: bool = True) -> None:
        """Lets training steps use less memory and more time, with the same numbers."""
        self._get().set("gradient_checkpointing", int(on))

    def set_dtype_policy(self, policy: str) -> None:
        """Sets the policy of all layers: "float32" or "mixed_bfloat16"."""
        self._get().set("dtype_policy", policy)

    def set_tuning(self, tuning: str) -> None:
        """Sets how kernels are chosen: "off", "known" or "measure"."""
        self._get().set("tuning", _arguments.choose("tuning", tuning, _TUNINGS))

    # ---- the end ----

    def close(self) -> None:
        """Frees the model.  Predictors that were made from it go on."""
        self._native.close()
        self._closed = True
        _open_objects.discard(self)

    def _get(self):
        if self._closed:
            raise Error("the model is closed")
        return self._native

    def _get_compiled(self):
        native = self._get()
        if not native.is_compiled():
            raise ArgumentError("the model is not compiled: call compile(optimizer, loss) first")
        return native

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __repr__(self):
        if self._closed:
            return "<leat.Model, closed>"
        return f"<leat.Model {self.name!r}: {self.inputs} -> {self.outputs}>"
