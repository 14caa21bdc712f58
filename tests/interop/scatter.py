# SPDX-License-Identifier: Apache-2.0
"""Compares training in leat with training in current Keras: scatter.py LEAT WORKDIR [WORD].  The yardstick is the
scatter of Keras itself.

Each model is trained on one batch by Keras, by Keras again with every weight changed by about one rounding, by Keras in
float64, and by leat from the .keras file.  Two results are compared: the gradient of the first step, and the change of
the weights after STEPS steps with the model's own optimizer.  The distance of two results is the largest difference
in a weight tensor, relative to the largest change in that tensor.  leat must lie inside Keras's scatter: at most
FACTOR times as far from Keras in float64 as the farther of Keras's two runs in float32, or below FLOOR."""
import json
import os
import subprocess
import sys

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

import models as stored  # noqa: E402

L = keras.layers
STEPS = 3
FACTOR, FLOOR = 8.0, 2e-6
# A power of two: a step of SGD with this rate contains the gradient without further rounding that matters.
GRADIENT_RATE = 1024.0
PLAIN = ["--no-shuffle", "--workers", "0", "--threads", "1", "--verbose", "0"]


def real(random, *shape):
    """Returns numbers as an image or a sequence has them."""
    return random.normal(0.0, 1.0, shape).astype("float32")


def whole(random, limit, *shape):
    """Returns indices from 0, with repetitions."""
    return random.randint(0, limit, shape).astype("int32")


def char_lstm(r):
    """A character LSTM, whose tiny gradients show where epsilon is."""
    model = keras.Sequential([L.Input((12, 20)), L.LSTM(16), L.Dense(20, activation="softmax")])
    x = np.eye(20, dtype="float32")[whole(r, 20, 8, 12)]
    return model, keras.optimizers.RMSprop(0.01), "categorical_crossentropy", x, np.eye(20, dtype="float32")[
        whole(r, 20, 8)]


def embedding_lstm(r):
    """Repeated indices and a mask."""
    model = keras.Sequential([L.Input((10,), dtype="int32"), L.Embedding(30, 8, mask_zero=True), L.LSTM(8),
                              L.Dense(1, activation="sigmoid")])
    x = whole(r, 30, 8, 10)
    x[:, 7:] *= whole(r, 2, 8, 3)
    x[:, 0] += x[:, 0] == 0
    return model, "adam", "binary_crossentropy", np.sort(x > 0, axis=1)[:, ::-1] * np.maximum(x, 1), whole(r, 2, 8, 1)


def embedding_mean(r):
    """An average of embeddings."""
    model = keras.Sequential([L.Input((10,), dtype="int32"), L.Embedding(30, 8), L.GlobalAveragePooling1D(),
                              L.Dense(6, activation="relu"), L.Dense(3, activation="softmax")])
    return model, "rmsprop", "sparse_categorical_crossentropy", whole(r, 30, 8, 10), whole(r, 3, 8)


def conv1d_text(r):
    """The text classifier of Keras's examples: Conv1D with strides on embeddings."""
    model = keras.Sequential([
        L.Input((40,), dtype="int32"), L.Embedding(50, 16), L.Dropout(0.0),
        L.Conv1D(12, 7, padding="valid", activation="relu", strides=3),
        L.Conv1D(12, 7, padding="valid", activation="relu", strides=3), L.GlobalMaxPooling1D(),
        L.Dense(8, activation="relu"), L.Dense(1, activation="sigmoid")])
    return model, "adam", "binary_crossentropy", whole(r, 50, 8, 40), whole(r, 2, 8, 1)


def conv1d_padded(r):
    """Conv1D with every padding and a dilation."""
    model = keras.Sequential([L.Input((24, 3)), L.Conv1D(6, 3, padding="causal", activation="tanh"),
                              L.Conv1D(6, 4, padding="same", strides=2, activation="tanh"),
                              L.Conv1D(6, 3, padding="causal", dilation_rate=2, activation="tanh"),
                              L.BatchNormalization(), L.Flatten(), L.Dense(2)])
    return model, "adamax", "mse", real(r, 6, 24, 3), real(r, 6, 2)


def attention(r):
    """A transformer block: MultiHeadAttention, LayerNormalization, a residual, an Embedding of positions."""
    tokens, places = L.Input((9,), dtype="int32", name="tokens"), L.Input((9,), dtype="int32", name="places")
    x = L.Add()([L.Embedding(20, 8)(tokens), L.Embedding(9, 8)(places)])
    y = L.MultiHeadAttention(2, 4)(x, x)
    x = L.LayerNormalization(epsilon=1e-6)(L.Add()([x, L.Dropout(0.0)(y)]))
    y = L.Dense(8)(L.Dense(16, activation="relu")(x))
    x = L.GlobalAveragePooling1D()(L.LayerNormalization(epsilon=1e-6)(L.Add()([x, y])))
    model = keras.Model([tokens, places], L.Dense(2, activation="softmax")(x))
    return (model, "adam", "sparse_categorical_crossentropy",
            [whole(r, 20, 6, 9), np.tile(np.arange(9, dtype="int32"), (6, 1))], whole(r, 2, 6))


def cross_attention(r):
    """MultiHeadAttention of two sequences, with a causal one before it."""
    a, b = L.Input((7, 6), name="a"), L.Input((5, 6), name="b")
    y = L.MultiHeadAttention(3, 4, use_bias=False)(a, a, use_causal_mask=True)
    y = L.MultiHeadAttention(2, 5, value_dim=3)(L.Add()([a, y]), b)
    model = keras.Model([a, b], L.Dense(1)(L.Flatten()(y)))
    return model, "adam", "mse", [real(r, 5, 7, 6), real(r, 5, 5, 6)], real(r, 5, 1)


def conv_lstm(r):
    """The frame predictor of Keras's examples, small."""
    model = keras.Sequential([
        L.Input((4, 8, 8, 1)), L.ConvLSTM2D(4, 5, padding="same", return_sequences=True, activation="relu"),
        L.BatchNormalization(), L.ConvLSTM2D(4, 3, padding="same", return_sequences=True, activation="relu"),
        L.Conv3D(1, 3, activation="sigmoid", padding="same")])
    return model, "adam", "binary_crossentropy", r.uniform(0, 1, (3, 4, 8, 8, 1)).astype("float32"), r.uniform(
        0, 1, (3, 4, 8, 8, 1)).astype("float32")


def conv_lstm_last(r):
    """ConvLSTM2D with tanh and its last output only."""
    model = keras.Sequential([L.Input((5, 6, 6, 2)), L.ConvLSTM2D(3, 3, recurrent_activation="sigmoid"), L.Flatten(),
                              L.Dense(2)])
    return model, keras.optimizers.SGD(0.1, momentum=0.9), "mse", real(r, 4, 5, 6, 6, 2), real(r, 4, 2)


def segmentation(r):
    """A U-Net in small: a softmax of rank 4 with saturated probabilities."""
    x = inputs = L.Input((16, 16, 3))
    down = L.Conv2D(8, 3, padding="same", activation="relu")(x)
    x = L.MaxPooling2D()(down)
    x = L.SeparableConv2D(12, 3, padding="same", activation="relu")(x)
    x = L.BatchNormalization()(x)
    x = L.Conv2DTranspose(8, 3, strides=2, padding="same", activation="relu")(x)
    x = L.Concatenate()([x, down])
    x = L.Rescaling(60.0)(L.UpSampling2D(1)(x))
    model = keras.Model(inputs, L.Conv2D(3, 3, activation="softmax", padding="same")(x))
    return model, keras.optimizers.Adam(1e-4), "sparse_categorical_crossentropy", real(r, 2, 16, 16, 3), whole(
        r, 3, 2, 16, 16, 1)


def translation(r):
    """An encoder and a decoder with initial states, and a softmax of rank 3."""
    a, b = L.Input((6, 10), name="from"), L.Input((5, 12), name="to")
    _, h, c = L.LSTM(8, return_state=True)(a)
    y = L.LSTM(8, return_sequences=True)(b, initial_state=[h, c])
    model = keras.Model([a, b], L.Dense(12, activation="softmax")(y))
    eye = np.eye(12, dtype="float32")
    return model, "rmsprop", "categorical_crossentropy", [np.eye(10, dtype="float32")[whole(r, 10, 6, 6)],
                                                          eye[whole(r, 12, 6, 5)]], eye[whole(r, 12, 6, 5)]


def bidirectional_gru(r):
    """GRUs in both directions, one with hard_sigmoid."""
    model = keras.Sequential([
        L.Input((7, 4)), L.Bidirectional(L.GRU(5, return_sequences=True)),
        L.Bidirectional(L.GRU(4, reset_after=False, recurrent_activation="hard_sigmoid"), merge_mode="sum"),
        L.Dense(3, activation="softmax")])
    return model, keras.optimizers.Nadam(0.01), "sparse_categorical_crossentropy", real(r, 6, 7, 4), whole(r, 3, 6)


def cells(r):
    """Cells in an RNN, stacked."""
    model = keras.Sequential([L.Input((6, 3)), L.RNN([L.LSTMCell(4), L.GRUCell(3), L.SimpleRNNCell(4)],
                                                     return_sequences=True), L.TimeDistributed(L.Dense(2))])
    return model, "adagrad", "mae", real(r, 5, 6, 3), real(r, 5, 6, 2)


def residual_cnn(r):
    """Convolutions with BatchNormalization and an L2 penalty; weight decay and clipping."""
    x = inputs = L.Input((12, 12, 3))
    x = L.Activation("relu")(L.BatchNormalization()(L.Conv2D(6, 3, padding="same", kernel_regularizer="l2")(x)))
    y = L.BatchNormalization()(L.DepthwiseConv2D(3, padding="same")(x))
    x = L.GlobalAveragePooling2D()(L.Activation("swish")(L.Add()([x, y])))
    model = keras.Model(inputs, L.Dense(4, activation="softmax")(x))
    return (model, keras.optimizers.AdamW(0.01, weight_decay=0.01, clipnorm=0.3),
            keras.losses.CategoricalCrossentropy(label_smoothing=0.1), real(r, 6, 12, 12, 3),
            np.eye(4, dtype="float32")[whole(r, 4, 6)])


def autoencoder(r):
    """Transposed convolutions, a sigmoid of rank 4."""
    model = keras.Sequential([
        L.Input((12, 12, 1)), L.Conv2D(6, 3, strides=2, padding="same", activation="relu"),
        L.Conv2DTranspose(6, 3, strides=2, padding="same", activation="relu"),
        L.Conv2D(1, 3, padding="same", activation="sigmoid")])
    x = r.uniform(0, 1, (4, 12, 12, 1)).astype("float32")
    return model, keras.optimizers.Adadelta(1.0), "binary_crossentropy", x, x


MODELS = (char_lstm, embedding_lstm, embedding_mean, conv1d_text, conv1d_padded, attention, cross_attention, conv_lstm,
          conv_lstm_last, segmentation, translation, bidirectional_gru, cells, residual_cnn, autoencoder)


def weights_of(model):
    """Returns the weights in the order of leat's files."""
    return [w.numpy() for layer in model.layers for w in layer.trainable_weights + layer.non_trainable_weights]


def again(model, optimizer, policy="float32"):
    """Returns a copy of the model, compiled alike, whose layers have another dtype policy."""
    keras.config.set_dtype_policy(policy)
    keras.config.set_floatx(policy)
    text = model.to_json().replace('"name": "float32"', '"name": "%s"' % policy)
    copy = keras.models.model_from_json(text)
    made = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    copy.compile(made, model.loss, jit_compile=False)
    return copy


def trained(model, optimizer, x, t, steps, policy="float32", change=0.0):
    """Returns the change of the weights after some steps of Keras; `change`: the weights are changed at random first."""
    copy = again(model, optimizer, policy)
    random = np.random.RandomState(5)
    copy.set_weights([w * (1.0 + change * random.uniform(-1, 1, w.shape)) for w in model.get_weights()])
    before = weights_of(copy)
    for _ in range(steps):
        copy.train_on_batch(x, t)
    after = weights_of(copy)
    keras.config.set_floatx("float32")
    keras.config.set_dtype_policy("float32")
    return [b.astype("float64") - a for a, b in zip(before, after)]


def leat_trained(leat, folder, model, optimizer, x, t, steps):
    """Returns the change of the weights after some steps of leat, from the model's file."""
    os.makedirs(folder, exist_ok=True)
    copy = again(model, optimizer)
    copy.set_weights(model.get_weights())
    path, data = os.path.join(folder, "model.keras"), os.path.join(folder, "data.npz")
    copy.save(path)
    x = x if isinstance(x, list) else [x]
    np.savez(data, **dict({"x%d" % i: v for i, v in enumerate(x)}, t0=t))
    spec = stored.spec(data, ["t0"] + ["x%d" % i for i in range(len(x))])
    done = subprocess.run([leat, "fit", path, "--train", spec, "--batch-size", str(len(t)), "--epochs", str(steps),
                           "--out", folder + "/out"] + PLAIN, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    if done.returncode:
        raise RuntimeError(done.stdout.decode("utf-8", "replace").strip()[-300:])
    after = stored.stored_weights(os.path.join(folder, "out", "model.h5"))
    return [b.astype("float64") - a for a, b in zip(weights_of(model), after)]


def distances(a, exact):
    """Returns the distance of each tensor.  A tensor that hardly changes, like the bias of a key of attention, is
    compared with the largest change of all tensors."""
    least = 1e-6 * max(np.max(np.abs(v)) for v in exact)
    return np.array([np.max(np.abs(u - v)) / max(np.max(np.abs(v)), least) for u, v in zip(a, exact)])


def compare(leat, folder, model, optimizer, x, t, steps):
    """Returns leat's distance and Keras's, for the tensor where leat is worst compared with Keras."""
    exact = trained(model, optimizer, x, t, steps, "float64")
    keras_runs = [distances(trained(model, optimizer, x, t, steps, change=change), exact) for change in (0.0, 6e-8)]
    scatter = np.maximum(*keras_runs)
    ours = distances(leat_trained(leat, folder, model, optimizer, x, t, steps), exact)
    worst = int(np.argmax(ours / (FACTOR * scatter + FLOOR)))
    return ours[worst], scatter[worst], bool(np.all(ours <= FACTOR * scatter + FLOOR)), worst


def check(leat, work, build):
    """Prints the line of a model; returns False if leat is outside."""
    keras.utils.set_random_seed(11)
    model, optimizer, loss, x, t = build(np.random.RandomState(7))
    model.compile(optimizer, loss)
    inside = True
    figures = []
    for title, chosen, steps in (("gradient", keras.optimizers.SGD(GRADIENT_RATE), 1),
                                 ("update", model.optimizer, STEPS)):
        folder = os.path.join(work, build.__name__ + "_" + title)
        ours, scatter, fits, tensor = compare(leat, folder, model, chosen, x, t, steps)
        figures.append("%9.2g of %9.2g (tensor %2d)%s" % (ours, scatter, tensor, "" if fits else "  OUTSIDE"))
        inside = inside and fits
    print("%-18s gradient %s  update %s" % (build.__name__, figures[0], figures[1]), flush=True)
    return inside


def main():
    """Checks all models, or those whose name contains the word."""
    leat, work, word = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), (sys.argv + [""])[3]
    os.makedirs(work, exist_ok=True)
    print("Keras %s, TensorFlow %s; distance of leat, and of Keras in float32, from Keras in float64"
          % (keras.__version__, tf.__version__))
    failed = 0
    for build in MODELS:
        if word in build.__name__:
            try:
                failed += not check(leat, work, build)
            except (RuntimeError, ValueError, TypeError) as error:
                failed += 1
                print("%-18s %s" % (build.__name__, json.dumps(str(error))[:300]), flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
