# SPDX-License-Identifier: Apache-2.0
"""Cases: SimpleRNN and GRU with every argument of 2.3.1's configuration but `stateful`; recurrent layers with masks."""
from .layers_core import GROUP, stack
from .layers_masks import padded
from .model_case import record
from .session import keras

L = keras.layers


def single(root, prefix, layer, gated):
    """One layer with each option in turn."""
    def case(name, *more, **kwargs):
        options = kwargs.pop("case", {})
        record(root, GROUP, prefix + "_" + name, layer.__name__, stack((5, 3), lambda: layer(4, **kwargs), *more),
               **options)

    case("default")
    case("return_sequences", return_sequences=True)
    case("go_backwards_sequences", go_backwards=True, return_sequences=True)
    case("no_bias", use_bias=False, return_sequences=True)
    case("relu", activation="relu", return_sequences=True)
    case("dropout_predict", dropout=0.3, recurrent_dropout=0.2, case=dict(train=False))
    case("regularized", kernel_regularizer=keras.regularizers.l1(0.01), recurrent_regularizer="l2",
         bias_regularizer=keras.regularizers.l1_l2(0.01, 0.02), activity_regularizer="l2")
    case("constrained", kernel_constraint=keras.constraints.MaxNorm(0.5),
         recurrent_constraint=keras.constraints.UnitNorm(axis=1), bias_constraint="non_neg")
    case("head", lambda: L.Dense(3, activation="softmax"),
         case=dict(targets="onehot", loss="categorical_crossentropy", batch=4))
    if gated:
        case("softsign_hard_sigmoid", activation="softsign", recurrent_activation="hard_sigmoid",
             case=dict(input_scale=3.0))
        for implementation in (1, 2):
            case("implementation%d_unroll" % implementation, implementation=implementation, unroll=True,
                 return_sequences=True)
        case("reset_after", reset_after=True)
        case("reset_after_sequences", reset_after=True, return_sequences=True, go_backwards=True)
        case("reset_after_implementation1", reset_after=True, implementation=1)
        case("reset_after_no_bias", reset_after=True, use_bias=False)
        case("reset_after_hard_sigmoid", reset_after=True, recurrent_activation="hard_sigmoid", activation="relu")
    else:
        case("unroll", unroll=True, return_sequences=True)
        case("sigmoid", activation="sigmoid")
    record(root, GROUP, prefix + "_batch1", layer.__name__, stack((6, 2), lambda: layer(3)), batch=1)
    record(root, GROUP, prefix + "_stack", layer.__name__,
           stack((5, 3), lambda: layer(4, return_sequences=True), lambda: layer(2)))


def states(root, prefix, layer):
    """return_state, and the initial state as an input."""
    def final_state():
        x = L.Input((5, 3))
        y, h = layer(4, return_state=True, return_sequences=True)(x)
        return keras.Model(x, [L.Dense(2)(y), h])
    record(root, GROUP, prefix + "_return_state", layer.__name__, final_state)

    def initial_state():
        x, h = L.Input((5, 3)), L.Input((4,))
        return keras.Model([x, h], layer(4)(x, initial_state=h))
    record(root, GROUP, prefix + "_initial_state", layer.__name__, initial_state)


def masks(root, prefix, layer, class_name):
    """Recurrent layers after Masking: samples of different lengths, one without any step, one with a gap."""
    x = padded(5, 5, 3)
    x[4] = 0.0

    def case(name, *layers, **options):
        record(root, GROUP, prefix + "_mask_" + name, class_name, stack((5, 3), L.Masking, *layers),
               inputs=[x], **options)

    case("last", lambda: layer(4))
    case("sequences", lambda: layer(4, return_sequences=True), metrics=["mae"])
    case("backwards", lambda: layer(4, return_sequences=True, go_backwards=True), metrics=["mae"])
    case("unroll", lambda: layer(4, unroll=True), lambda: L.Dense(2))
    case("stack", lambda: layer(4, return_sequences=True), lambda: layer(3, go_backwards=True), lambda: L.Dense(2))
    case("regularized", lambda: layer(4, return_sequences=True, activity_regularizer="l2"))

    def from_states(sequences):
        def build():
            first, second = L.Input((5, 3)), L.Input((5, 3))
            _, *h = layer(4, return_state=True)(second)
            y = layer(4, return_state=True, return_sequences=sequences)(L.Masking()(first), initial_state=h)
            return keras.Model([first, second], y)
        return build

    both = [x, padded(5, 5, 3, seed=9)[::-1]]
    record(root, GROUP, prefix + "_mask_states", class_name, from_states(False), inputs=both)
    record(root, GROUP, prefix + "_mask_states_sequences", class_name, from_states(True), inputs=both)


def run(root):
    """Records all cases of this module."""
    for prefix, layer in (("simplernn", L.SimpleRNN), ("gru", L.GRU)):
        single(root, prefix, layer, layer is L.GRU)
        states(root, prefix, layer)
        masks(root, prefix, layer, layer.__name__)
    masks(root, "lstm", L.LSTM, "LSTM")
    masks(root, "gru_reset_after", lambda *a, **k: L.GRU(*a, reset_after=True, **k), "GRU")
