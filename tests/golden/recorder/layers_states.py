# SPDX-License-Identifier: Apache-2.0
"""Cases: states that are kept between batches, stacked cells, activations of a whole row or without a derivative from
y."""
from .layers_core import GROUP, stack
from .layers_masks import padded
from .model_case import record
from .session import keras

L = keras.layers


def mend(model, _random):
    """Bidirectional of 2.3.1 sets `stateful` before its parent's constructor unsets it: predict and test forget
    states."""
    model.layers[0].stateful = True


def stateful(root):
    """Predictions, evaluation and training steps in sequence: each begins with the states that the previous one has
    left."""
    def case(name, class_name, *layers, **options):
        shape = options.pop("shape", (4, 3))
        record(root, GROUP, "stateful_" + name, class_name, stack(shape, *layers, batch=3), **options)

    case("lstm", "LSTM", lambda: L.LSTM(3, stateful=True))
    case("gru_sequences", "GRU", lambda: L.GRU(3, stateful=True, return_sequences=True, go_backwards=True))
    case("gru_reset_after", "GRU", lambda: L.GRU(2, stateful=True, reset_after=True), lambda: L.Dense(2))
    case("simple_frozen", "SimpleRNN", lambda: L.SimpleRNN(3, stateful=True, trainable=False), lambda: L.Dense(1))
    case("stack", "LSTM", lambda: L.LSTM(3, stateful=True, return_sequences=True),
         lambda: L.GRU(2, stateful=True), lambda: L.Dense(1), metrics=["mae"])
    case("bidirectional", "Bidirectional", lambda: L.Bidirectional(L.LSTM(2, stateful=True)), lambda: L.Dense(2),
         adjust=mend, notes="Bidirectional.stateful set to true, which its constructor forgets")
    case("rnn", "RNN", lambda: L.RNN([L.GRUCell(2), L.LSTMCell(3)], stateful=True))
    case("mask", "LSTM", L.Masking, lambda: L.LSTM(3, stateful=True, return_sequences=True), lambda: L.GRU(2),
         shape=(5, 3), inputs=[padded(3, 5, 3)])

    def returned():
        x = L.Input(batch_shape=(3, 4, 2))
        return keras.Model(x, L.LSTM(2, stateful=True, return_state=True)(x))
    record(root, GROUP, "stateful_return_state", "LSTM", returned)

    def initial():
        x, h = L.Input(batch_shape=(3, 4, 2)), L.Input(batch_shape=(3, 2))
        return keras.Model([x, h], L.SimpleRNN(2, stateful=True)(x, initial_state=h))
    record(root, GROUP, "stateful_initial_state", "SimpleRNN", initial)


def stacked(root):
    """StackedRNNCells."""
    def case(name, cells, *more, **kwargs):
        record(root, GROUP, "cells_" + name, "StackedRNNCells", stack((5, 3), *more, lambda: L.RNN(cells(), **kwargs)),
               inputs=[padded(4, 5, 3)])

    case("two", lambda: [L.LSTMCell(3), L.LSTMCell(2)])
    case("three_sequences", lambda: [L.SimpleRNNCell(3), L.GRUCell(2, kernel_regularizer="l2"), L.LSTMCell(3)],
         return_sequences=True, go_backwards=True)
    case("masked_backwards", lambda: [L.GRUCell(3, reset_after=True), L.SimpleRNNCell(2)], L.Masking,
         return_sequences=True, go_backwards=True)

    def states():
        x, h, c, k = L.Input((5, 3)), L.Input((2,)), L.Input((2,)), L.Input((3,))
        layer = L.RNN([L.LSTMCell(2), L.GRUCell(3)], return_state=True)
        return keras.Model([x, h, c, k], layer(x, initial_state=[h, c, k]))
    record(root, GROUP, "cells_states", "StackedRNNCells", states)

    def bidirectional():
        x = L.Input((5, 3))
        layer = L.Bidirectional(L.RNN([L.LSTMCell(2), L.GRUCell(3)], return_state=True, return_sequences=True))
        return keras.Model(x, layer(x))
    record(root, GROUP, "cells_bidirectional", "StackedRNNCells", bidirectional)


def activations(root):
    """Activations whose derivative cannot be computed from their value."""
    def case(name, make, *more, **options):
        record(root, GROUP, "rnn_ops_" + name, "LSTM", stack((5, 3), *more, make), **options)

    case("lstm_softmax", lambda: L.LSTM(3, activation="softmax", return_sequences=True))
    case("lstm_gates", lambda: L.LSTM(3, recurrent_activation="softmax", go_backwards=True))
    case("gru_softmax", lambda: L.GRU(3, activation="softmax"))
    case("gru_reset_after", lambda: L.GRU(3, activation="softmax", reset_after=True, return_sequences=True))
    case("simple_mask", lambda: L.SimpleRNN(3, activation="softmax", return_sequences=True, go_backwards=True),
         L.Masking, inputs=[padded(4, 5, 3)])
    case("lstm_mask", lambda: L.LSTM(2, activation="softmax"), L.Masking, inputs=[padded(4, 5, 3)])

    def states():
        x, h = L.Input((40, 2)), L.Input((2,))
        return keras.Model([x, h], L.GRU(2, activation="softmax", return_state=True)(x, initial_state=h))
    record(root, GROUP, "rnn_ops_states", "GRU", states, notes="more steps than one Concatenate takes")


def run(root):
    """Records all cases of this module."""
    stateful(root)
    stacked(root)
    activations(root)
