# SPDX-License-Identifier: Apache-2.0
"""Cases: LSTM with every argument of 2.3.1's configuration; `stateful` is in layers_states."""
from . import layers_cells, layers_conv_lstm, layers_states, layers_wrappers
from .layers_core import GROUP, stack
from .model_case import record
from .session import keras

L = keras.layers


def single(root):
    """One layer with each option in turn; the order of the gates is i, f, c, o."""
    def case(name, *more, **kwargs):
        options = kwargs.pop("case", {})
        record(root, GROUP, "lstm_" + name, "LSTM", stack((5, 3), lambda: L.LSTM(4, **kwargs), *more),
               **options)

    case("default")
    case("return_sequences", return_sequences=True)
    case("go_backwards", go_backwards=True)
    case("go_backwards_sequences", go_backwards=True, return_sequences=True)
    case("no_unit_forget_bias", unit_forget_bias=False)
    case("no_bias", use_bias=False, return_sequences=True)
    case("hard_sigmoid", recurrent_activation="hard_sigmoid", case=dict(input_scale=3.0))
    case("relu", activation="relu", return_sequences=True)
    case("softsign_hard_sigmoid", activation="softsign", recurrent_activation="hard_sigmoid")
    case("linear", activation="linear", recurrent_activation="sigmoid")
    for implementation in (1, 2):
        case("implementation%d" % implementation, implementation=implementation)
        case("implementation%d_unroll" % implementation, implementation=implementation, unroll=True,
             return_sequences=True)
    case("dropout_predict", dropout=0.3, recurrent_dropout=0.2, case=dict(train=False))
    case("regularized", kernel_regularizer=keras.regularizers.l1(0.01), recurrent_regularizer="l2",
         bias_regularizer=keras.regularizers.l1_l2(0.01, 0.02), activity_regularizer="l2")
    case("constrained", kernel_constraint=keras.constraints.MaxNorm(0.5),
         recurrent_constraint=keras.constraints.UnitNorm(axis=1), bias_constraint="non_neg")
    case("sequences_activity_regularized", return_sequences=True,
         activity_regularizer=keras.regularizers.l1_l2(0.01, 0.02))
    case("head", lambda: L.Dense(3, activation="softmax"),
         case=dict(targets="onehot", loss="categorical_crossentropy", batch=4))
    record(root, GROUP, "lstm_one_step", "LSTM", stack((1, 3), lambda: L.LSTM(2)))
    record(root, GROUP, "lstm_batch1", "LSTM", stack((6, 2), lambda: L.LSTM(3)), batch=1)
    record(root, GROUP, "lstm_any_length", "LSTM", stack((None, 3), lambda: L.LSTM(3)),
           inputs=[[[[0.1 * i - 0.2 * j * k for k in range(3)] for j in range(4)] for i in range(3)]],
           notes="the time axis of the input layer is None; the batch has 4 steps")
    record(root, GROUP, "lstm_stack", "LSTM",
           stack((5, 3), lambda: L.LSTM(4, return_sequences=True),
                 lambda: L.LSTM(3, go_backwards=True, return_sequences=True), lambda: L.LSTM(2)))
    record(root, GROUP, "lstm_not_trainable", "LSTM",
           stack((4, 3), lambda: L.LSTM(3, trainable=False), lambda: L.Dense(2)))


def states(root):
    """return_state, and the initial state as inputs."""
    def final_state():
        x = L.Input((5, 3))
        return keras.Model(x, L.LSTM(4, return_state=True)(x))
    record(root, GROUP, "lstm_return_state", "LSTM", final_state)

    def final_state_sequences():
        x = L.Input((5, 3))
        y, h, c = L.LSTM(4, return_state=True, return_sequences=True, go_backwards=True)(x)
        return keras.Model(x, [L.Dense(2)(y), L.Concatenate()([h, c])])
    record(root, GROUP, "lstm_return_state_sequences", "LSTM", final_state_sequences)

    def initial_state():
        x, h, c = L.Input((5, 3)), L.Input((4,)), L.Input((4,))
        return keras.Model([x, h, c], L.LSTM(4)(x, initial_state=[h, c]))
    record(root, GROUP, "lstm_initial_state", "LSTM", initial_state)

    def encoder_decoder():
        a, b = L.Input((4, 3)), L.Input((5, 2))
        _, h, c = L.LSTM(3, return_state=True)(a)
        return keras.Model([a, b], L.Dense(2)(L.LSTM(3, return_sequences=True)(b, initial_state=[h, c])))
    record(root, GROUP, "lstm_encoder_decoder", "LSTM", encoder_decoder)


def run(root):
    """Records all cases of this module."""
    single(root)
    states(root)
    layers_cells.run(root)
    layers_wrappers.run(root)
    layers_states.run(root)
    layers_conv_lstm.run(root)
