# SPDX-License-Identifier: Apache-2.0
"""Models of the policy mixed_bfloat16: keras-3/policies/*.npz."""
import keras

from .keras3_case import L, functional


def mlp():
    """Dense layers, the last one in float32, as in Keras's guide."""
    x = L.Input((12,))
    y = L.Dense(24, activation="relu")(x)
    y = L.Dense(16, activation="tanh")(y)
    return [x], L.Dense(3, activation="softmax", dtype="float32")(y)


def all_mixed():
    """No layer in float32: the output of the model is bfloat16."""
    x = L.Input((12,))
    return [x], L.Dense(4)(L.LayerNormalization()(L.Dense(16, activation="gelu")(x)))


def cnn():
    """Convolutions, normalisation, a residual, pooling."""
    x = L.Input((6, 6, 3))
    y = L.Conv2D(8, 3, padding="same", use_bias=False)(x)
    y = L.ReLU()(L.BatchNormalization()(y))
    z = L.BatchNormalization()(L.Conv2D(8, 1)(y))
    y = L.MaxPooling2D(2)(L.ReLU()(L.Add()([y, z])))
    y = L.GlobalAveragePooling2D()(L.Conv2D(8, 1, activation="relu")(y))
    return [x], L.Dense(2, dtype="float32")(y)


def lstm():
    """Two LSTM layers."""
    x = L.Input((6, 5))
    y = L.LSTM(8)(L.LSTM(8, return_sequences=True)(x))
    return [x], L.Dense(2, dtype="float32")(y)


def mixed(build):
    """Calls build() with the policy, which the end of a session resets."""
    def made():
        keras.config.set_dtype_policy("mixed_bfloat16")
        return build()
    return made


def run():
    """Records all models."""
    for build in (mlp, all_mixed, cnn, lstm):
        functional(build.__name__, "Dense", mixed(build), batch=8, group="policies")
    keras.config.set_dtype_policy("float32")
