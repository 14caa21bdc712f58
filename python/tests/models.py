# SPDX-License-Identifier: Apache-2.0
"""Small models and data for the tests of the trainer."""

import json
import os
import subprocess
import sys
import threading
import time

import numpy

import leat

# tools/wheel runs copies of these files outside of the repository.
ROOT = os.environ.get("LEAT_REPOSITORY") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GOLDEN = os.path.join(ROOT, "tests", "golden", "files")


def run_python(text, **options):
    """Starts Python with the modules of this process."""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([os.path.dirname(__file__), *filter(None, sys.path)]))
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return subprocess.Popen([sys.executable, "-c", text], env=environment, **pipes, **options)


def run_all(*functions):
    """Runs functions in threads at the same time, and raises the first exception."""
    errors = []
    start = threading.Barrier(len(functions))

    def run(function):
        start.wait()
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def dense(units, activation="linear", name="dense", **more):
    return {"class_name": "Dense", "config": dict(name=name, units=units, activation=activation, **more)}


def mlp(loss="mse", metrics=("mae",), hidden=8, inputs=4, outputs=2):
    layers = [
        dense(hidden, "tanh", "hidden", batch_input_shape=[None, inputs]),
        dense(outputs, name="out"),
    ]
    model = leat.Model.from_json(json.dumps({"class_name": "Sequential", "config": {"name": "mlp", "layers": layers}}))
    if loss:
        model.compile("sgd", loss, list(metrics))
    return model


def two_inputs():
    """inputs a (3), b (2); outputs left (1), right (2)."""

    def entry(name, size):
        config = {"name": name, "batch_input_shape": [None, size], "dtype": "float32", "sparse": False}
        return {"name": name, "class_name": "InputLayer", "config": config, "inbound_nodes": []}

    def layer(name, units, source):
        return dict(dense(units, name=name), name=name, inbound_nodes=[[[source, 0, 0, {}]]])

    both = {
        "name": "both",
        "class_name": "Concatenate",
        "config": {"name": "both", "axis": -1},
        "inbound_nodes": [[["a", 0, 0, {}], ["b", 0, 0, {}]]],
    }
    config = {
        "name": "two",
        "layers": [entry("a", 3), entry("b", 2), both, layer("left", 1, "both"), layer("right", 2, "both")],
        "input_layers": [["a", 0, 0], ["b", 0, 0]],
        "output_layers": [["left", 0, 0], ["right", 0, 0]],
    }
    model = leat.Model.from_json(json.dumps({"class_name": "Model", "config": config}))
    model.compile("sgd", "mse")
    return model


def lstm(stateful=False, steps=None):
    layers = [
        {
            "class_name": "LSTM",
            "config": {
                "name": "lstm",
                "units": 5,
                "return_sequences": True,
                "stateful": stateful,
                "batch_input_shape": [1 if stateful else None, steps, 3],
            },
        },
        dense(2, name="out"),
    ]
    return leat.Model.from_json(json.dumps({"class_name": "Sequential", "config": {"name": "r", "layers": layers}}))


def data(samples=64, inputs=4, outputs=2, seed=0):
    random = numpy.random.RandomState(seed)
    x = random.rand(samples, inputs).astype("float32")
    return x, (x[:, :1] * numpy.arange(1, outputs + 1)).astype("float32")


class Sequence:
    """Like keras.utils.Sequence."""

    def __init__(self, x, y, batch_size=16, fails_at=None):
        self.x, self.y, self.batch_size, self.fails_at = x, y, batch_size, fails_at

    def __len__(self):
        return len(self.x) // self.batch_size

    def __getitem__(self, index):
        if index == self.fails_at:
            raise KeyError(f"no batch {index}")
        rows = slice(index * self.batch_size, (index + 1) * self.batch_size)
        return self.x[rows], self.y[rows]


class Slow(Sequence):
    """The first batch is there at once, the others take minutes."""

    def __getitem__(self, index):
        if index:
            time.sleep(300)
        return super().__getitem__(index)
