#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The time of one prediction for one sample by an MLP 64-128-128-4: leat.Predictor, and torch and Keras if installed.

    PYTHONPATH=build/release/python python3 bench/python_predictor.py

Rounds of all candidates alternate; the smallest and the median time of a round are printed.
"""

import time

import numpy

import leat

UNITS = ((128, "relu"), (128, "relu"), (4, "linear"))


def time_of(function, count):
    began = time.perf_counter()
    for _ in range(count):
        function()
    return (time.perf_counter() - began) / count * 1e6


def add_leat(candidates, model, x):
    out = numpy.empty((1, 4), "float32")
    plain, released = leat.Predictor(model).run, leat.Predictor(model, release_gil=True).run
    candidates["leat, out="] = (lambda: plain(x, out=out)), 300
    candidates["leat, out=, lock released"] = (lambda: released(x, out=out)), 300
    candidates["leat, a new array"] = (lambda: plain(x)), 300


def add_torch(candidates, model, x):
    import torch

    torch.set_num_threads(1)
    layers = []
    for kernel, bias in zip(*[iter(model.get_weights())] * 2):
        linear = torch.nn.Linear(*kernel.shape)
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(kernel.T.copy()))
            linear.bias.copy_(torch.from_numpy(bias))
        layers += [linear, torch.nn.ReLU()]
    network, tensor = torch.nn.Sequential(*layers[:-1]).eval(), torch.from_numpy(x)

    def predict():
        with torch.inference_mode():
            return network(torch.from_numpy(x)).numpy()

    def predict_tensor():
        with torch.inference_mode():
            return network(tensor)

    candidates["torch, NumPy to NumPy"] = predict, 100
    candidates["torch, tensor to tensor"] = predict_tensor, 100


def add_keras(candidates, model, x):
    import keras

    layers = [keras.layers.Dense(units, activation) for units, activation in UNITS]
    network = keras.Sequential([keras.Input((64,)), *layers])
    network.set_weights(model.get_weights())
    candidates["Keras, predict_on_batch"] = (lambda: network.predict_on_batch(x)), 5
    candidates["Keras, model(x)"] = (lambda: network(x)), 5


def main():
    model = leat.Model.sequential((64,), [("Dense", dict(units=units, activation=name)) for units, name in UNITS])
    x = numpy.random.rand(1, 64).astype("float32")
    candidates = {}
    for add in (add_leat, add_torch, add_keras):
        try:
            add(candidates, model, x)
        except ImportError as error:
            print(f"left out: {error}")
    rounds = {name: [] for name in candidates}
    for turn in range(61):
        for name, (function, count) in candidates.items():
            rounds[name].append(time_of(function, count))
    for name, times in rounds.items():
        times = sorted(times[1:])
        print(f"{name:28} {times[0]:10.2f} us, median {times[len(times) // 2]:10.2f} us")


if __name__ == "__main__":
    main()
