# SPDX-License-Identifier: Apache-2.0
"""ReversibleEmbedding of current Keras, and the layers of KerasHub that models of text are made of."""
import keras
import keras_hub
import numpy as np
from keras_hub.src.utils.keras_utils import gelu_approximate

from .keras3_case import functional

L, H = keras.layers, keras_hub.layers
NAMES = {kind: "keras_hub>" + kind for kind in (
    "FNetEncoder", "MaskedLMHead", "PositionEmbedding", "RotaryEmbedding", "SinePositionEncoding",
    "TokenAndPositionEmbedding", "TransformerDecoder", "TransformerEncoder")}


def indices(seed, shape, limit):
    """Returns indices of words, zeros among them."""
    return np.random.RandomState(seed).randint(0, limit, shape).astype("int32")


def padding(shape, lengths):
    """Returns a padding mask: 1 for the first steps of each sample."""
    return (np.arange(shape[1])[None, :] < np.array(lengths)[:, None]).astype("int32")


def pairs(seed, shape):
    """Returns a mask of pairs of steps; the first step always counts."""
    mask = (np.random.RandomState(seed).uniform(0, 1, shape) > 0.4).astype("int32")
    mask[:, :, 0] = 1
    return mask


def numbers(seed, shape):
    return np.random.RandomState(seed).normal(0, 1, shape).astype("float32")


def ints(name, *shape):
    return L.Input(shape, dtype="int32", name=name)


def reversible():
    """ReversibleEmbedding: forward and reversed calls, with the same weights or others, penalties and masks."""
    def one(name, ids, **options):
        def build():
            x = ints("x", *ids.shape[1:])
            table = L.ReversibleEmbedding(7, 4, **options)
            y = L.Dense(4, activation="tanh")(table(x))
            return [x], L.Softmax()(table(y, reverse=True))
        functional(name, "ReversibleEmbedding", build, inputs=[ids], exact=True)
    ids = indices(1, (3, 5), 7)
    one("reversible_embedding", ids)
    one("reversible_embedding_untied", ids, tie_weights=False, logit_soft_cap=1.5, reverse_dtype="float32")
    one("reversible_embedding_penalty", ids, embeddings_regularizer=keras.regularizers.L2(0.01),
        embeddings_constraint=keras.constraints.MaxNorm(1.5), activity_regularizer=keras.regularizers.L2(0.02))
    one("reversible_embedding_rank3", indices(2, (2, 3, 2), 7), logit_soft_cap=2)

    def masked():
        x = ints("x", 5)
        table = L.ReversibleEmbedding(7, 4, mask_zero=True)
        return [x], table(L.LSTM(4, return_sequences=True)(table(x)), reverse=True)
    functional("reversible_embedding_masks", "ReversibleEmbedding", masked, inputs=[ids], exact=True)


def positions():
    """What tells a model the positions of its words."""
    def one(name, class_name, make, shape=(5, 4), given=None, **call):
        def build():
            x = L.Input(shape, name="x")
            inputs, y = [x], L.Dense(shape[-1])(x)
            if given is not None:
                inputs.append(ints("given", given.shape[1]))
                call["positions"] = inputs[1]
            return inputs, L.Dense(2)(y + make()(y, **call))
        inputs = [numbers(3, (3,) + shape)] + ([] if given is None else [given])
        functional(name, NAMES[class_name], build, inputs=inputs, exact=True)
    given = indices(4, (3, 5), 8)
    one("position_embedding", "PositionEmbedding", lambda: H.PositionEmbedding(8))
    one("position_embedding_start", "PositionEmbedding",
        lambda: H.PositionEmbedding(8, initializer="ones"), start_index=2)
    one("position_embedding_given", "PositionEmbedding", lambda: H.PositionEmbedding(8), given=given)
    one("position_embedding_rank4", "PositionEmbedding", lambda: H.PositionEmbedding(6), shape=(2, 5, 4))
    one("sine_position_encoding", "SinePositionEncoding", H.SinePositionEncoding)
    one("sine_position_encoding_odd", "SinePositionEncoding",
        lambda: H.SinePositionEncoding(max_wavelength=50), shape=(6, 5), start_index=3)
    one("sine_position_encoding_given", "SinePositionEncoding", H.SinePositionEncoding, given=given)
    one("rotary_embedding", "RotaryEmbedding", H.RotaryEmbedding)
    one("rotary_embedding_heads", "RotaryEmbedding",
        lambda: H.RotaryEmbedding(max_wavelength=100, scaling_factor=2.0), shape=(5, 2, 6), start_index=2)
    one("rotary_embedding_dynamic", "RotaryEmbedding",
        lambda: H.RotaryEmbedding(rope_type="dynamic", scaling_factor=1.5), shape=(5, 6), given=given)
    one("rotary_embedding_yarn", "RotaryEmbedding", lambda: H.RotaryEmbedding(
        rope_type="yarn", scaling_factor=4.0, original_max_position_embeddings=64), shape=(5, 16))
    one("rotary_embedding_yarn_options", "RotaryEmbedding", lambda: H.RotaryEmbedding(
        rope_type="yarn", scaling_factor=2.0, original_max_position_embeddings=32, beta_fast=8.0, beta_slow=0.5,
        truncate=False), shape=(5, 16))
    one("rotary_embedding_axes", "RotaryEmbedding", lambda: H.RotaryEmbedding(
        sequence_axis=2, feature_axis=1, denominator_dim=8), shape=(4, 5, 3))


def tokens():
    """TokenAndPositionEmbedding, and MaskedLMHead behind it."""
    ids, taken = indices(5, (3, 5), 7), indices(6, (3, 2), 5)

    def one(name, trains=True, **options):
        def build():
            x = ints("x", 5)
            y = H.TokenAndPositionEmbedding(7, 6, 4, **options)(x)
            return [x], L.LSTM(3)(y)
        functional(name, NAMES["TokenAndPositionEmbedding"], build, inputs=[ids], exact=True, trains=trains)
    one("token_position")
    one("token_position_masks", mask_zero=True, embeddings_initializer="glorot_normal")
    one("token_position_untied", tie_weights=False, trains=False)  # its second matrix has no gradient

    def started(given):
        x, p = ints("x", 5), ints("given", 5)
        layer = H.TokenAndPositionEmbedding(7, 8, 4)
        return ([x, p], L.Dense(2)(layer(x, positions=p))) if given else ([x], L.Dense(2)(layer(x, start_index=3)))
    functional("token_position_start", NAMES["TokenAndPositionEmbedding"], lambda: started(False), inputs=[ids], exact=True)
    functional("token_position_given", NAMES["TokenAndPositionEmbedding"], lambda: started(True),
               inputs=[ids, indices(7, (3, 5), 8)], exact=True)

    def head(**options):
        x, m = L.Input((5, 4), name="x"), ints("m", 2)
        return [x, m], H.MaskedLMHead(vocabulary_size=7, **options)(L.Dense(4)(x), m)
    inputs = [numbers(8, (3, 5, 4)), taken]
    functional("masked_lm_head", NAMES["MaskedLMHead"], head, inputs=inputs, exact=True)
    functional("masked_lm_head_options", NAMES["MaskedLMHead"], lambda: head(
        intermediate_activation="gelu", activation="softmax", layer_norm_epsilon=1e-3, kernel_initializer="he_normal",
        bias_initializer="ones"), inputs=inputs, exact=True)


def encoders():
    """TransformerEncoder and FNetEncoder."""
    x, lengths, which = numbers(9, (3, 5, 4)), padding((3, 5), (5, 3, 2)), pairs(10, (3, 5, 5))

    def one(name, make, padded=False, chosen=False):
        def build():
            inputs, call = [L.Input((5, 4), name="x")], {}
            if padded:
                inputs.append(ints("padding", 5))
                call["padding_mask"] = inputs[-1]
            if chosen:
                inputs.append(ints("pairs", 5, 5))
                call["attention_mask"] = inputs[-1]
            return inputs, L.Dense(2)(make()(L.Dense(4)(inputs[0]), **call))
        functional(name, NAMES[type(make()).__name__], build,
                   inputs=[x] + [lengths] * padded + [which] * chosen, exact=True)
    one("transformer_encoder", lambda: H.TransformerEncoder(3, 2))
    one("transformer_encoder_first", lambda: H.TransformerEncoder(
        6, 2, activation=gelu_approximate, layer_norm_epsilon=1e-3, normalize_first=True, kernel_initializer="he_normal",
        bias_initializer="ones"))
    one("transformer_encoder_padding", lambda: H.TransformerEncoder(3, 2), padded=True)
    one("transformer_encoder_pairs", lambda: H.TransformerEncoder(3, 4), chosen=True)
    one("transformer_encoder_both", lambda: H.TransformerEncoder(3, 3, normalize_first=True), padded=True, chosen=True)
    one("f_net_encoder", lambda: H.FNetEncoder(3))
    one("f_net_encoder_options", lambda: H.FNetEncoder(
        6, activation="tanh", layer_norm_epsilon=1e-2, kernel_initializer="he_normal", bias_initializer="ones"))

    def masked(first, padded):
        ids, p = ints("x", 5), ints("padding", 5)
        y = L.Embedding(7, 4, mask_zero=True)(ids)
        layer = H.TransformerEncoder(3, 2, normalize_first=first)
        y = layer(y, padding_mask=p) if padded else layer(y)
        return [ids] + [p] * padded, L.LSTM(3)(y)
    ids = indices(11, (3, 5), 7) * padding((3, 5), (5, 4, 3))
    for first in (False, True):
        for padded in (False, True):
            functional("transformer_encoder_masks_%d%d" % (first, padded), NAMES["TransformerEncoder"],
                       lambda: masked(first, padded), inputs=[ids] + [lengths] * padded, exact=True)


def decoders():
    """TransformerDecoder: with and without an encoder's sequence, and all masks."""
    x, s = numbers(12, (3, 5, 4)), numbers(13, (3, 6, 3))
    given = {"decoder_padding_mask": padding((3, 5), (5, 3, 4)), "decoder_attention_mask": pairs(14, (3, 5, 5)),
             "encoder_padding_mask": padding((3, 6), (6, 3, 1)), "encoder_attention_mask": pairs(15, (3, 5, 6))}

    def one(name, make, crossed, *masks, **call):
        def build():
            inputs = [L.Input((5, 4), name="x")] + ([L.Input((6, 3), name="s")] if crossed else [])
            sequences = [inputs[0] if crossed else L.Dense(4)(inputs[0])] + inputs[1:]
            for mask in masks:
                inputs.append(ints(mask, *given[mask].shape[1:]))
                call[mask] = inputs[-1]
            return inputs, L.Dense(2, use_bias=not crossed)(make()(*sequences, **call))
        functional(name, NAMES["TransformerDecoder"], build,
                   inputs=[x] + [s] * crossed + [given[mask] for mask in masks], exact=True)
    one("transformer_decoder", lambda: H.TransformerDecoder(3, 2), False)
    one("transformer_decoder_free", lambda: H.TransformerDecoder(3, 2), False, use_causal_mask=False)
    one("transformer_decoder_first", lambda: H.TransformerDecoder(
        6, 2, activation="gelu", layer_norm_epsilon=1e-3, normalize_first=True, kernel_initializer="he_normal",
        bias_initializer="ones"), False, "decoder_padding_mask")
    one("transformer_decoder_cross", lambda: H.TransformerDecoder(3, 2), True)
    one("transformer_decoder_masks", lambda: H.TransformerDecoder(3, 3, normalize_first=True), True, *given)
    one("transformer_decoder_cross_masks", lambda: H.TransformerDecoder(3, 2), True, "encoder_padding_mask",
        "encoder_attention_mask")

    def masked(first):
        inputs = [L.Input((5, 4), name="x"), L.Input((6, 3), name="s")]
        y, e = (L.Masking()(i) for i in inputs)
        y = H.TransformerDecoder(3, 2, normalize_first=first)(y, e)
        return inputs, L.GlobalAveragePooling1D()(y)
    inputs = [x * padding((3, 5), (5, 3, 4))[:, :, None], s * padding((3, 6), (6, 4, 2))[:, :, None]]
    for first in (False, True):
        functional("transformer_decoder_implicit_%d" % first, NAMES["TransformerDecoder"], lambda: masked(first),
                   inputs=[i.astype("float32") for i in inputs], exact=True)


def run():
    """Records all cases of this module."""
    for part in (reversible, positions, tokens, encoders, decoders):
        part()
