# SPDX-License-Identifier: Apache-2.0
"""Cases: masks, from Masking through layers that keep them to losses and metrics."""
import numpy as np

from .layers_core import GROUP, stack
from .model_case import record
from .session import keras

L = keras.layers
M = keras.metrics


def padded(batch, steps, features, value=0.0, seed=7):
    """Sequences of several lengths, padded with `value`; one has a gap in its middle."""
    random = np.random.RandomState(seed)
    x = random.normal(0.0, 1.0, (batch, steps, features)).astype("float32")
    for i in range(batch):
        x[i, steps - i % steps:] = value
    x[0, steps // 2] = value
    return x


def chains(root):
    """One input, one output."""
    x = [padded(4, 5, 3)]

    def case(name, *layers, **options):
        record(root, GROUP, "mask_" + name, "Masking", stack((5, 3), *layers), inputs=options.pop("x", x), **options)

    masking, dense = (lambda: L.Masking()), (lambda: L.Dense(2))
    case("dense", masking, dense, metrics=["mae", "mse"], weighted_metrics=["mae"])
    case("value", lambda: L.Masking(mask_value=-1.5), dense, x=[padded(4, 5, 3, -1.5)])
    case("sample_weight", masking, dense, sample_weight=True, metrics=["mae"], weighted_metrics=["mae"])
    case("temporal", masking, dense, sample_weight=True, sample_weight_mode="temporal",
         metrics=["mae"], weighted_metrics=["mae"])
    case("metrics_of_classes", masking, lambda: L.Dense(1, activation="sigmoid"), sample_weight=True,
         sample_weight_mode="temporal", targets="binary", loss="binary_crossentropy",
         metrics=lambda: [M.AUC(num_thresholds=10), M.Precision(0.4)],
         weighted_metrics=lambda: [M.AUC(num_thresholds=10), M.Recall(0.4), M.FalseNegatives(0.6)])
    case("kept", masking, lambda: L.Dense(4), lambda: L.Activation("tanh"), lambda: L.BatchNormalization(),
         lambda: L.Dense(3, activation="softmax"), targets="onehot", loss="categorical_crossentropy",
         metrics=["accuracy"])
    case("all_masked", masking, dense, x=[np.zeros((3, 5, 3), "float32")])


def graphs(root):
    """Masks that meet, and masks through a nested model."""
    def case(name, build, x, **options):
        record(root, GROUP, "mask_" + name, "Masking", build, inputs=x, **options)

    def inputs():
        return L.Input((5, 3)), L.Input((5, 3))

    def added():
        a, b = inputs()
        return keras.Model([a, b], L.Dense(2)(L.Add()([L.Masking()(a), L.Masking()(b)])))

    def added_one():
        a, b = inputs()
        return keras.Model([a, b], L.Dense(2)(L.Add()([a, L.Masking()(b)])))

    def joined(axis, both):
        def build():
            a, b = inputs()
            return keras.Model(
                [a, b], L.Dense(2)(L.Concatenate(axis=axis)([L.Masking()(a), L.Masking()(b) if both else b])))
        return build

    def nested():
        x = L.Input((5, 3))
        y = L.Input((5, 4))
        inner = keras.Model(y, L.Dense(2)(L.Activation("tanh")(y)))
        return keras.Model(x, L.Dense(2)(inner(L.Dense(4)(L.Masking()(x)))))

    two = [padded(4, 5, 3), padded(4, 5, 3, seed=8)[::-1]]
    case("add", added, two, metrics=["mae"])
    case("add_one", added_one, two)
    case("concatenate", joined(-1, True), two)
    case("concatenate_one", joined(-1, False), two)
    case("concatenate_steps", joined(1, True), two)
    case("nested", nested, two[:1])


def run(root):
    """Records all cases of this module."""
    chains(root)
    graphs(root)
