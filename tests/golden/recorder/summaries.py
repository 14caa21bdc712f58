# SPDX-License-Identifier: Apache-2.0
"""Records model.summary() of some models after they were written to JSON and read: <name>.json and <name>.txt."""
import os

import keras
from keras.layers import (Add, BatchNormalization, Concatenate, Conv2D, Dense, Dropout, Flatten, Input, LSTM,
                           MaxPooling2D)
from keras.models import Model, Sequential, model_from_json


def _cnn():
    return Sequential([
        Conv2D(32, 3, activation="relu", input_shape=(28, 28, 1)), Conv2D(64, 3, activation="relu"), MaxPooling2D(),
        Dropout(0.25), Flatten(), Dense(128, activation="relu"), BatchNormalization(), Dense(10, activation="softmax")
    ])


def _joins():
    """Several inputs and outputs, a shared layer, states, names that are cut, a frozen layer."""
    a = Input((8,))
    b = Input((None, 8), name="a_rather_long_name_of_an_input_layer_here")
    shared = Dense(4)
    last, hidden, cell = LSTM(4, return_state=True)(b)
    x = Concatenate()([shared(a), last, hidden])
    x = Add()([Dense(4, trainable=False)(x), cell])
    return Model([a, b], [shared(Dense(8)(x)), x])


def _nested():
    i = Input((8,))
    inner = Model(i, Dense(3)(BatchNormalization()(i)))
    outer = Sequential([Dense(8, input_dim=3), inner])
    a = Input((8,))
    y = outer(inner(a))
    return Model(a, [inner(Dense(8)(y)), y])


def _varying():
    """Layers that are called on several shapes."""
    short, long = Input((4, 6)), Input((9, 6))
    layer = LSTM(5, return_sequences=True)
    i = Input((None, 6))
    inner = Model(i, Dense(2)(i))
    return Model([short, long], [layer(short), layer(long), inner(short)])


def _chain():
    i = Input((8,))
    return Model(i, Dense(3)(Dense(1000000)(i)))


def _sequence():
    return Sequential([LSTM(7, return_sequences=True, input_shape=(4, 5)), Dense(2)])


def _frozen():
    inner = Sequential([Dense(6, input_dim=4), BatchNormalization()])
    return Sequential([Dense(4, input_dim=3, trainable=False), inner, Dense(1)])


MODELS = {"cnn": _cnn, "joins": _joins, "nested": _nested, "varying": _varying, "chain": _chain,
          "sequence": _sequence, "frozen": _frozen}


def run(out):
    """Records all models."""
    folder = os.path.join(out, "summaries")
    os.makedirs(folder, exist_ok=True)
    for name, make in sorted(MODELS.items()):
        keras.backend.clear_session()
        text = make().to_json()
        keras.backend.clear_session()
        with open(os.path.join(folder, name + ".json"), "w") as file:
            file.write(text + "\n")
        with open(os.path.join(folder, name + ".txt"), "w") as file:
            model_from_json(text).summary(print_fn=lambda line: file.write(line + "\n"))
