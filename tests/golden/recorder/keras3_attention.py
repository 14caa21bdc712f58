# SPDX-License-Identifier: Apache-2.0
"""Attention, EinsumDense and other layers that are called on several tensors: functional models, in the configuration
of current Keras."""
import keras
import numpy as np
from keras.src.applications import convnext, inception_resnet_v2

from .keras3_case import L, functional


def class_name(layer):
    """Returns a shape as configurations contain it."""
    return keras.saving.serialize_keras_object(layer)["class_name"]


def dense(units, name):
    """Returns a layer with weights, which comes before the tested layer."""
    return L.Dense(units, activation="tanh", name=name)


def attention():
    """Attention and AdditiveAttention: scores, scale, masks, order of steps."""
    def one(name, make, key=False, **call):
        def build():
            q, v = L.Input((4, 3), name="q"), L.Input((5, 3), name="v")
            parts = [dense(3, "a")(q), dense(2 if key else 3, "b")(v)] + ([dense(3, "c")(v)] if key else [])
            y = make()(parts, **call)
            if isinstance(y, (list, tuple)):
                y = L.Concatenate()([y[0], y[1]])
            return [q, v], L.Dense(2)(y)
        functional(name, class_name(make()), build)
    one("attention", lambda: L.Attention())
    one("attention_key", lambda: L.Attention(use_scale=True), key=True)
    one("attention_concat", lambda: L.Attention(use_scale=True, score_mode="concat"))
    one("attention_causal", lambda: L.Attention(), use_causal_mask=True)
    one("attention_scores", lambda: L.Attention(), return_attention_scores=True)
    one("additive", lambda: L.AdditiveAttention())
    one("additive_no_scale", lambda: L.AdditiveAttention(use_scale=False), key=True)
    one("additive_causal", lambda: L.AdditiveAttention(), use_causal_mask=True)


def masked(name, make, inner=3):
    """Two sequences of word numbers, 0 for none; the layer gets both masks."""
    def build():
        q, v = L.Input((4,), name="q"), L.Input((5,), name="v")
        a = L.Embedding(6, inner, mask_zero=True, name="a")(q)
        b = L.Embedding(6, inner, mask_zero=True, name="b")(v)
        layer = make()
        y = layer([a, b]) if isinstance(layer, L.Attention) else layer(a, b)
        return [q, v], L.GlobalAveragePooling1D()(L.Dense(2)(y))
    words = [np.array([[1, 2, 3, 0], [4, 5, 1, 2], [3, 1, 0, 0]]), np.array([[2, 1, 0, 0, 0], [1, 2, 3, 4, 5], [5, 5, 1, 2, 0]])]
    functional(name, class_name(make()), build, inputs=words)


def recurrent():
    """Masks and penalties that only current Keras has."""
    words = [np.array([[1, 2, 3, 0], [4, 5, 1, 2], [3, 1, 0, 0]])]

    def one(name, make):
        def build():
            x = L.Input((4,), name="x")
            return [x], L.GlobalAveragePooling1D()(L.Dense(2)(make()(L.Embedding(6, 3, mask_zero=True)(x))))
        functional(name, make().__class__.__name__, build, inputs=words)
    one("bidirectional_zeros", lambda: L.Bidirectional(L.GRU(2, return_sequences=True), merge_mode="sum"))
    one("rnn_zeros", lambda: L.RNN(L.LSTMCell(2), return_sequences=True, go_backwards=True, zero_output_for_mask=True))

    def penalised():
        x = L.Input((4, 3), name="x")
        y = L.ReLU(activity_regularizer=keras.regularizers.L2(0.1))(L.Dense(3)(x))
        y = L.Bidirectional(L.RNN(L.GRUCell(2), return_sequences=True, activity_regularizer=keras.regularizers.L1(0.1)))(y)
        return [x], L.Dense(2)(L.RNN(L.GRUCell(2), activity_regularizer=keras.regularizers.L1(0.05))(y))
    functional("activity_penalties", "ReLU", penalised)


def heads():
    """MultiHeadAttention and GroupQueryAttention."""
    def one(name, make, key=False, shapes=((4, 3), (5, 3)), width=2, **call):
        def build():
            q, v = L.Input(shapes[0], name="q"), L.Input(shapes[1], name="v")
            arguments = [dense(3, "a")(q), dense(width, "b")(v)] + ([dense(4, "c")(v)] if key else [])
            y = make()(*arguments, **call)
            return [q, v], L.Dense(2)(L.Flatten()(y[1]) if isinstance(y, (list, tuple)) else y)
        functional(name, class_name(make()), build)
    heads = L.MultiHeadAttention
    one("mha", lambda: heads(2, 3))
    one("mha_key", lambda: heads(2, 3, value_dim=2, output_shape=5), key=True)
    one("mha_shape", lambda: heads(2, 2, output_shape=(2, 3)))
    one("mha_plain", lambda: heads(3, 2, use_bias=False))
    one("mha_causal", lambda: heads(2, 3), shapes=((4, 3), (4, 3)), use_causal_mask=True)
    one("mha_axes", lambda: heads(2, 3, attention_axes=2), shapes=((2, 4, 3), (2, 5, 3)))
    one("mha_two_axes", lambda: heads(2, 3), shapes=((2, 2, 3), (3, 2, 3)))
    one("mha_gate_window", lambda: heads(2, 3, use_gate=True, sliding_window=2), shapes=((4, 3), (4, 3)))
    one("mha_regularized", lambda: heads(2, 3, kernel_regularizer=keras.regularizers.L2(0.01),
                                         bias_regularizer=keras.regularizers.L1(0.02),
                                         activity_regularizer=keras.regularizers.L2(0.01),
                                         kernel_constraint=keras.constraints.MaxNorm(1.5)))
    one("gqa", lambda: L.GroupQueryAttention(2, 4, 2), width=3)
    one("gqa_penalty", lambda: L.GroupQueryAttention(2, 2, 1, activity_regularizer=keras.regularizers.L2(0.1)), width=3)
    one("gqa_one", lambda: L.GroupQueryAttention(3, 3, 1, use_gate=True, use_bias=False), width=3,
        use_causal_mask=True)

    def scores():
        x = L.Input((4, 3), name="q")
        y, w = heads(2, 3)(x, x, return_attention_scores=True)
        return [x], L.Add()([L.Dense(2)(L.Flatten()(w)), L.Dense(2)(L.Flatten()(y))])
    functional("mha_scores", "MultiHeadAttention", scores)

    def explicit(dtype=None):
        q, v, m = L.Input((4, 3), name="q"), L.Input((5, 3), name="v"), L.Input((4, 5), name="m", dtype=dtype)
        return [q, v, m], heads(2, 3)(q, v, attention_mask=m)
    random = np.random.RandomState(5)
    pairs = random.uniform(0, 1, (3, 4, 5)) > 0.4
    pairs[:, :, 0] = True
    inputs = [random.normal(0, 1, (3, 4, 3)), random.normal(0, 1, (3, 5, 3)), pairs]
    functional("mha_mask", "MultiHeadAttention", explicit, inputs=inputs)
    functional("mha_bool_mask", "MultiHeadAttention", lambda: explicit("bool"), inputs=inputs)


def einsum():
    """EinsumDense: all three forms of equations."""
    def one(name, shape, **options):
        def build():
            x = L.Input(shape, name="x")
            return [x], L.EinsumDense(**options)(dense(shape[-1], "a")(x))
        functional(name, "EinsumDense", build)
    one("einsum", (3,), equation="ab,bc->ac", output_shape=4, bias_axes="c")
    one("einsum_rank3", (4, 3), equation="abc,cd->abd", output_shape=(None, 2), bias_axes="d", activation="relu")
    one("einsum_heads", (4, 3), equation="abc,cde->abde", output_shape=(None, 2, 3), bias_axes="de")
    one("einsum_left", (2, 4, 3), equation="...x,xy->...y", output_shape=4, bias_axes="y")
    one("einsum_right", (4, 3, 2), equation="ab...,bc->ac...", output_shape=5, bias_axes="c")
    one("einsum_order", (4, 3), equation="abc,bde->aced", output_shape=(3, 2, 4),
        kernel_regularizer=keras.regularizers.L2(0.01))


def blocks():
    """Parts of ConvNeXt, MobileNetV3 and similar models: their own layers, and functions called as layers."""
    def convnext_block():
        x = L.Input((4, 4, 3), name="x")
        y = L.Conv2D(3, 3, padding="same", groups=3)(x)
        y = L.LayerNormalization(epsilon=1e-6)(y)
        y = L.Dense(3)(L.Activation("gelu")(L.Dense(6)(y)))
        y = convnext.LayerScale(0.5, 3)(y)
        y = convnext.StochasticDepth(0.0)(y)
        return [x], L.GlobalAveragePooling2D()(L.Identity()(x + y))

    def inception_block():
        x = L.Input((4, 4, 3), name="x")
        y = L.Conv2D(3, 1)(L.Concatenate()([L.Conv2D(2, 1)(x), L.Conv2D(2, 3, padding="same")(x)]))
        y = inception_resnet_v2.CustomScaleLayer(0.17)([x, y])
        return [x], L.GlobalAveragePooling2D()(L.Activation("relu")(y))

    def squeeze():
        x = L.Input((4, 4, 3), name="x")
        y = L.Conv2D(4, 1)(x)
        s = L.Conv2D(4, 1)(L.GlobalAveragePooling2D(keepdims=True)(y))
        s = L.ReLU(6.0)(s + 3.0) * (1.0 / 6.0)
        return [x], L.Dense(2)(L.Flatten()(L.Multiply()([y, s]) - y / 2.0))

    def called():
        x = L.Input((3,), name="x")
        a, f = L.Dense(4)(x), keras.activations
        parts = [call(a) for call in (
            f.celu, f.exponential, f.gelu, f.hard_shrink, f.hard_sigmoid, f.hard_tanh, f.log_sigmoid,
            f.log_softmax, f.relu, f.relu6, f.selu, f.sigmoid, f.silu, f.soft_shrink, f.softplus, f.softsign,
            f.sparse_plus, f.sparse_sigmoid, f.squareplus, f.tanh, f.tanh_shrink, keras.ops.relu)]
        parts += [f.elu(a, 0.5), f.leaky_relu(a, 0.1), f.relu(a, 0.1, 0.7, 0.2), f.softmax(a, -1),
                  f.threshold(a, 0.3, 0), f.glu(L.Dense(8)(x))]
        return [x], L.Dense(2)(L.Add()(parts))

    def between(make):
        x = L.Input((4, 3), name="x")
        return [x], L.Dense(2)(make()(L.Dense(3)(x)))
    functional("identity", "Identity", lambda: between(L.Identity))
    functional("stochastic_depth", "StochasticDepth", lambda: between(lambda: convnext.StochasticDepth(0.0)))
    functional("block_convnext", "LayerScale", convnext_block)
    functional("block_inception_resnet", "CustomScaleLayer", inception_block)
    functional("functions", "Activation", called)
    functional("block_squeeze", "Rescaling", squeeze)


def run():
    """Records all cases of this module."""
    for part in (attention, recurrent, heads, einsum, blocks):
        part()
    masked("attention_masks", L.Attention)
    masked("mha_masks", lambda: L.MultiHeadAttention(2, 3))
    masked("gqa_masks", lambda: L.GroupQueryAttention(2, 4, 2))
