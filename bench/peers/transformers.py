# SPDX-License-Identifier: Apache-2.0
"""Writes the transformers of bench/compare as current Keras builds and compiles them: transformers.py FOLDER makes
FOLDER/vit.keras, char.keras and text.keras, which leat and current Keras read.  torch_models.py has the same models."""
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
from keras import Model, layers, ops  # noqa: E402


def block(x, heads, hidden, activation, dropout=0.0, norm_first=True, **call):
    """Attention and two Dense layers, each with a residual addition and a LayerNormalization before it or after."""
    width = x.shape[-1]
    y = layers.LayerNormalization(epsilon=1e-6)(x) if norm_first else x
    y = layers.MultiHeadAttention(heads, width // heads)(y, y, **call)
    x = layers.Add()([x, layers.Dropout(dropout)(y) if dropout else y])
    x = x if norm_first else layers.LayerNormalization(epsilon=1e-6)(x)
    y = layers.LayerNormalization(epsilon=1e-6)(x) if norm_first else x
    y = layers.Dense(width)(layers.Dense(hidden, activation=activation)(y))
    x = layers.Add()([x, layers.Dropout(dropout)(y) if dropout else y])
    return x if norm_first else layers.LayerNormalization(epsilon=1e-6)(x)


def embedded(words, vocabulary, width):
    """Word embeddings plus embeddings of the positions."""
    steps = words.shape[1]
    positions = ops.cumsum(ops.ones_like(words), axis=1) - 1
    return layers.Add()([layers.Embedding(vocabulary, width)(words), layers.Embedding(steps, width)(positions)])


def vit():
    """Patches of 4 by 4 of pictures of 32 by 32; the bias of the projection has a row for each position."""
    start = layers.Input((32, 32, 3))
    x = layers.Permute((1, 3, 2, 4, 5))(layers.Reshape((8, 4, 8, 4, 3))(start))
    x = layers.EinsumDense("abc,cd->abd", (64, 192), bias_axes="bd")(layers.Reshape((64, 48))(x))
    for _ in range(6):
        x = block(x, 4, 768, "gelu")
    x = layers.GlobalAveragePooling1D()(layers.LayerNormalization(epsilon=1e-6)(x))
    return Model(start, layers.Dense(10, activation="softmax")(x))


def char():
    """Predicts the next of 96 characters at each of 128 places."""
    start = layers.Input((128,), dtype="int32")
    x = embedded(start, 96, 256)
    for _ in range(4):
        x = block(x, 4, 1024, "gelu", use_causal_mask=True)
    return Model(start, layers.Dense(96, activation="softmax")(layers.LayerNormalization(epsilon=1e-6)(x)))


def text():
    """keras.io's text classification with a transformer."""
    start = layers.Input((200,), dtype="int32")
    x = block(embedded(start, 20000, 32), 2, 32, "relu", dropout=0.1, norm_first=False)
    x = layers.Dropout(0.1)(layers.GlobalAveragePooling1D()(x))
    x = layers.Dropout(0.1)(layers.Dense(20, activation="relu")(x))
    return Model(start, layers.Dense(2, activation="softmax")(x))


if __name__ == "__main__":
    for make in (vit, char, text):
        model = make()
        model.compile("adam", "sparse_categorical_crossentropy")
        model.save(os.path.join(sys.argv[1], make.__name__ + ".keras"))
