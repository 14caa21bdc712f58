# SPDX-License-Identifier: Apache-2.0
"""Cases: Bidirectional and TimeDistributed."""
import numpy as np

from .layers_core import GROUP, stack
from .layers_masks import padded
from .model_case import record
from .session import keras

L = keras.layers


def bidirectional(root):
    """All merge modes, states in and out, masks."""
    def case(name, make, *more, **options):
        record(root, GROUP, "bidirectional_" + name, "Bidirectional", stack((5, 3), make, *more), **options)

    case("default", lambda: L.Bidirectional(L.LSTM(4)))
    for mode in ("sum", "mul", "ave", "concat"):
        case(mode + "_sequences", lambda mode=mode: L.Bidirectional(L.GRU(3, return_sequences=True), merge_mode=mode))
    case("go_backwards", lambda: L.Bidirectional(L.SimpleRNN(3, go_backwards=True, return_sequences=True)))
    case("regularized", lambda: L.Bidirectional(
        L.LSTM(3, kernel_regularizer="l2", recurrent_regularizer="l1", activity_regularizer="l2")))
    case("stack", lambda: L.Bidirectional(L.GRU(3, return_sequences=True, reset_after=True)),
         lambda: L.Bidirectional(L.LSTM(2)), lambda: L.Dense(2))
    case("not_trainable", lambda: L.Bidirectional(L.SimpleRNN(3), trainable=False), lambda: L.Dense(2))
    x = [padded(4, 5, 3)]
    record(root, GROUP, "bidirectional_mask", "Bidirectional",
           stack((5, 3), L.Masking, lambda: L.Bidirectional(L.LSTM(3, return_sequences=True)),
                 lambda: L.Bidirectional(L.GRU(2), merge_mode="sum"), lambda: L.Dense(2)), inputs=x)
    record(root, GROUP, "bidirectional_mask_sequences", "Bidirectional",
           stack((5, 3), L.Masking, lambda: L.Bidirectional(L.GRU(3, return_sequences=True))),
           inputs=x, metrics=["mae"])

    def apart():
        x = L.Input((5, 3))
        return keras.Model(x, L.Bidirectional(L.GRU(3, return_sequences=True), merge_mode=None)(x))
    record(root, GROUP, "bidirectional_none", "Bidirectional", apart)

    def states(cell, mode):
        def build():
            x = L.Input((5, 3))
            return keras.Model(x, L.Bidirectional(cell(3, return_state=True), merge_mode=mode)(x))
        return build
    record(root, GROUP, "bidirectional_states", "Bidirectional", states(L.LSTM, "concat"))
    record(root, GROUP, "bidirectional_states_none", "Bidirectional", states(L.LSTM, None))

    def initial():
        x, y = L.Input((5, 3)), L.Input((4, 2))
        _, *s = L.Bidirectional(L.LSTM(3, return_state=True))(x)
        return keras.Model([x, y], L.Bidirectional(L.LSTM(3))(y, initial_state=s))
    record(root, GROUP, "bidirectional_initial_state", "Bidirectional", initial)


def time_distributed(root):
    """A layer over every step, with masks."""
    def case(name, shape, *layers, **options):
        record(root, GROUP, "timedistributed_" + name, "TimeDistributed", stack(shape, *layers), **options)

    case("dense", (4, 3), lambda: L.TimeDistributed(L.Dense(2, activation="tanh")))
    case("regularized", (4, 3),
         lambda: L.TimeDistributed(L.Dense(2, kernel_regularizer="l2", activity_regularizer="l2")))
    case("conv", (3, 5, 4, 2), lambda: L.TimeDistributed(L.Conv2D(2, 2)), lambda: L.TimeDistributed(L.Flatten()),
         lambda: L.GRU(2))
    case("batchnorm", (4, 3), lambda: L.TimeDistributed(L.BatchNormalization()))
    case("lstm", (3, 4, 2), lambda: L.TimeDistributed(L.LSTM(3)), lambda: L.LSTM(2))
    case("bidirectional", (3, 4, 2), lambda: L.TimeDistributed(L.Bidirectional(L.GRU(2))))
    case("nested", (2, 3, 4, 2), lambda: L.TimeDistributed(L.TimeDistributed(L.Dense(3))))
    case("not_trainable", (4, 3), lambda: L.TimeDistributed(L.Dense(2), trainable=False), lambda: L.Dense(2))

    def inner():
        x = L.Input((4, 3))
        y = L.BatchNormalization()(L.Conv1D(3, 2, padding="same", use_bias=False, kernel_regularizer="l2")(x))
        return keras.Model(x, L.Flatten()(L.Add()([x, y])))
    case("model", (3, 4, 3), lambda: L.TimeDistributed(inner()), lambda: L.LSTM(2))
    case("model_not_trainable", (3, 4, 3), lambda: L.TimeDistributed(inner(), trainable=False), lambda: L.LSTM(2))
    case("sequential", (3, 4, 2), lambda: L.TimeDistributed(
        keras.Sequential([L.GRU(3, return_sequences=True, input_shape=(4, 2)), L.Dense(2), L.Flatten()])),
         lambda: L.Dense(2))
    x = padded(4, 5, 3)
    case("mask", (5, 3), L.Masking, lambda: L.TimeDistributed(L.Dense(2)), lambda: L.LSTM(2), inputs=[x])
    words = np.stack([padded(3, 4, 2, seed=s) for s in (1, 2, 3)])
    words[1, 2] = 0.0
    case("masking", (3, 4, 2), lambda: L.TimeDistributed(L.Masking()), lambda: L.TimeDistributed(L.LSTM(3)),
         lambda: L.LSTM(2), inputs=[words])


def cells(root):
    """RNN around a cell."""
    def case(name, cell, *more, **kwargs):
        record(root, GROUP, "rnn_" + name, "RNN", stack((5, 3), *more, lambda: L.RNN(cell(), **kwargs)),
               inputs=[padded(4, 5, 3)])

    case("simple", lambda: L.SimpleRNNCell(3))
    case("gru", lambda: L.GRUCell(3, reset_after=True), return_sequences=True, go_backwards=True)
    case("lstm_mask", lambda: L.LSTMCell(3, recurrent_activation="hard_sigmoid", kernel_regularizer="l2"), L.Masking)

    def states():
        x, h, c = L.Input((5, 3)), L.Input((2,)), L.Input((2,))
        return keras.Model([x, h, c], L.RNN(L.LSTMCell(2), return_state=True, unroll=True)(x, initial_state=[h, c]))
    record(root, GROUP, "rnn_states", "RNN", states)


def run(root):
    """Records all cases of this module."""
    cells(root)
    bidirectional(root)
    time_distributed(root)
