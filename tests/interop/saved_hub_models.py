# SPDX-License-Identifier: Apache-2.0
"""Models with layers of KerasHub, and with ReversibleEmbedding, for check_saved.py."""
import keras
import keras_hub
from keras_hub.src.utils.keras_utils import gelu_approximate

from saved_models import L, model

H = keras_hub.layers


def descent():
    """Returns plain descent: the bias of a key has no gradient but for roundings, of which Adam would make whole steps."""
    return {"optimizer": keras.optimizers.SGD(0.1)}


def ints(*shape):
    return L.Input(shape, dtype="int32")


@model
def hub_language_model():
    """One table of words at both ends, tied and untied, and a decoder between them."""
    x = ints(5)
    tied, untied = L.ReversibleEmbedding(11, 6), H.ReversibleEmbedding(11, 6, tie_weights=False, logit_soft_cap=3.0)
    y = tied(x) + untied(x)
    y = y + H.PositionEmbedding(8)(y, start_index=2)
    y = H.TransformerDecoder(5, 2, normalize_first=True)(y)
    return keras.Model(x, [tied(y, reverse=True), untied(y, reverse=True)]), descent()


@model
def hub_encoder():
    x, padding = ints(5), ints(5)
    y = H.TokenAndPositionEmbedding(11, 6, 4, mask_zero=True)(x)
    y = H.TransformerEncoder(3, 2, activation=gelu_approximate)(y, padding_mask=padding)
    y = H.TransformerEncoder(3, 2, normalize_first=True)(y)
    return keras.Model([x, padding], L.Dense(3)(L.GlobalAveragePooling1D()(y))), descent()


@model
def hub_translation():
    x, s, p = L.Input((5, 4)), L.Input((6, 3)), ints(6)
    y = L.Dense(4)(x) + H.SinePositionEncoding()(x)
    y = H.TransformerDecoder(3, 2)(y, s, encoder_padding_mask=p)
    y = H.TransformerDecoder(3, 2)(y, use_causal_mask=False)
    return keras.Model([x, s, p], L.Dense(2)(H.RotaryEmbedding()(y))), descent()


@model
def hub_mixing():
    x, m = L.Input((5, 4)), ints(2)
    y = H.FNetEncoder(3)(H.FNetEncoder(3, activation="tanh")(L.Dense(4)(x)))
    taken = keras.ops.minimum(m, 4)
    return keras.Model([x, m], H.MaskedLMHead(vocabulary_size=7)(y, taken)), descent()
