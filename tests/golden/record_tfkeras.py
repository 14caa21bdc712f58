# SPDX-License-Identifier: Apache-2.0
"""Records small files of tf.keras, which lies between Keras 2.3.1 and current Keras: record_tfkeras.py PREFIX
[CASE...], with the Python of a virtual environment that has tensorflow-cpu, such as 2.4.4 (files/tf24_*), 2.12.1
(files/tf212_*: separable and attention), 2.14.1 (files/tf214_*: attention) and 2.15.1 (files/tf215_*).  .keras
archives come from versions that write them (2.12 or later)."""
import collections
import json
import os
import sys
import zipfile

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from recorder import store  # noqa: E402

keras = tf.keras
L = keras.layers
HERE = os.path.dirname(os.path.abspath(__file__))


def cnn():
    """A small CNN with Adam."""
    model = keras.Sequential([
        L.InputLayer((6, 6, 1)),
        L.Conv2D(3, 3, activation="relu", kernel_regularizer="l2"),
        L.BatchNormalization(),
        L.MaxPooling2D(2),
        L.Flatten(),
        L.Dense(3, activation="softmax"),
    ], name="cnn")
    model.compile(keras.optimizers.Adam(0.01), keras.losses.CategoricalCrossentropy(), metrics=["accuracy"])
    return model


def memory():
    """Recurrent layers with SGD and momentum, and a schedule of the learning rate."""
    model = keras.Sequential([
        L.InputLayer((5, 2)),
        L.Bidirectional(L.LSTM(2, return_sequences=True)),
        L.GRU(3),
        L.Dense(1),
    ], name="memory")
    rate = keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)
    model.compile(keras.optimizers.SGD(rate, momentum=0.9), "mse")
    return model


def graph():
    """A functional model with a nested model, whose layers have names of tf.keras, and Adagrad."""
    a = L.Input((4,), name="a")
    inner = keras.Sequential([L.Dense(3, activation="tanh", input_shape=(4,)), L.LayerNormalization()], name="inner")
    x = L.Concatenate()([inner(a), L.Dense(2)(a)])
    model = keras.Model(a, L.Dense(2)(L.LeakyReLU(0.2)(x)), name="graph")
    model.compile(keras.optimizers.Adamax(0.01), keras.losses.Huber(), metrics=["mae"])
    return model


def added():
    """A loss and a metric of inner tensors: layers AddLoss and AddMetric behind operations of TensorFlow."""
    x = L.Input((4,), name="x")
    h = L.Dense(3, activation="tanh", name="h")(x)
    mean, scale = L.Dense(2, name="mean")(h), L.Dense(2, name="scale")(h)
    model = keras.Model(x, L.Dense(2, name="y")(L.Concatenate()([mean, scale])), name="added")
    model.add_loss(tf.reduce_mean(tf.square(mean) + tf.exp(scale) - scale))
    model.add_metric(mean, name="center", aggregation="mean")
    model.compile(keras.optimizers.SGD(0.1), "mse")
    return model


def vae():
    """The loss of a variational autoencoder, without its random numbers: a Kullback-Leibler term and the error of the
    reconstruction, both by add_loss, two metrics, and no loss of an output."""
    x = L.Input((5,), name="x")
    h = L.Dense(4, activation="relu", name="h")(x)
    mean, scale = L.Dense(2, name="mean")(h), L.Dense(2, name="scale")(h)
    decoder = keras.Sequential([L.Dense(4, activation="tanh", input_shape=(2,)), L.Dense(5)], name="decoder")
    y = decoder(L.Add(name="z")([mean, scale]))
    model = keras.Model(x, y, name="vae")
    kl = -0.5 * tf.reduce_sum(1 + scale - tf.square(mean) - tf.exp(scale), axis=-1)
    error = tf.reduce_mean(tf.square(x - y)) * 5.0
    model.add_loss(tf.reduce_mean(kl))
    model.add_loss(error)
    model.add_metric(kl, name="kl", aggregation="mean")
    model.add_metric(error, name="error", aggregation="mean")
    model.compile(keras.optimizers.Adam(0.01))
    return model


def convolutions():
    """Layers whose configurations have keys without effect: groups, the initializer of a kernel that they do not have."""
    model = keras.Sequential([
        L.InputLayer((5, 4, 2)),
        L.DepthwiseConv2D(2, depth_multiplier=2),
        L.Conv2DTranspose(3, 2, strides=2, activation="tanh"),
        L.SeparableConv2D(2, 2),
        L.Reshape((-1, 2)),
        L.Conv1DTranspose(3, 2),
        L.DepthwiseConv1D(2),
        L.SeparableConv1D(2, 3),
        L.Flatten(),
        L.Flatten(),
        L.Dense(2),
    ], name="convolutions")
    model.compile(keras.optimizers.SGD(0.05), "mse")
    return model


def separable():
    """Convolutions to which tf.keras gives keys of their base class, and SGD without momentum, which has slots all the same."""
    model = keras.Sequential([
        L.InputLayer((4, 4, 2)),
        L.SeparableConv2D(2, 2, activation="tanh"),
        L.Conv2DTranspose(2, 2, strides=2),
        L.DepthwiseConv2D(2),
        L.Flatten(),
        L.Dense(2),
    ], name="convolutions")
    model.compile(keras.optimizers.SGD(0.05), "mse")
    return model


def heads():
    """Attention, whose calls have named tensors, and a convolution that drops a mask."""
    x = L.Input((5, 3), name="x")
    y = L.Dense(4)(L.Masking(-9.0)(x))
    y = L.Conv1D(3, 2, padding="same")(y)
    y = L.MultiHeadAttention(2, 3)(y, x, use_causal_mask=True)
    y = L.MultiHeadAttention(1, 2)(y, value=x, key=L.Dense(3)(x))
    y = L.ConvLSTM1D(2, 2)(L.Reshape((5, 3, 1))(y))
    model = keras.Model(x, L.Dense(2)(L.Flatten()(y)), name="heads")
    model.compile(keras.optimizers.SGD(0.05), "mse")
    return model


def functions():
    """Functions of TensorFlow as layers: TFOpLambda and SlicingOpLambda."""
    a = L.Input((4, 3), name="a")
    x = L.Dense(3, activation="tanh")(a)
    x = 1 - (x * 3.0 + [1.0, 2.0, 3.0]) / 4.0 - x ** 2
    x = tf.nn.leaky_relu(x, 0.1) + tf.nn.softmax(x) + tf.sigmoid(x) + tf.maximum(x, 0.25) + tf.sqrt(tf.square(x) + 1.0)
    x = x + tf.expand_dims(tf.reduce_mean(x, axis=1), 1) - tf.reduce_max(x, axis=-1, keepdims=True)
    x = tf.concat([x, tf.abs(x)], axis=-1)[:, :, 1:4]
    x = tf.matmul(x, x[:, ::-1], transpose_b=True) + tf.transpose(x[:, :, None, 0] * x, perm=(0, 2, 1))[:, :1, :]
    x = tf.where(x > 0.0, x, tf.exp(x)) + tf.cast(x > 1.0, "float32") + tf.clip_by_value(x, -0.5, 0.5)
    parts = tf.split(x, [1, 3], axis=1)
    x = tf.stack([parts[0][:, 0], parts[1][:, 1]], axis=1) + tf.math.l2_normalize(parts[1][:, :2], axis=-1)
    x = tf.reshape(tf.pad(x, [[0, 0], [0, 1], [0, 0]]), (tf.shape(x)[0], 12))
    model = keras.Model(a, L.Dense(2)(x), name="functions")
    model.compile(keras.optimizers.Adamax(0.002), "mse")
    return model


def attention():
    """Keyword arguments of calls, layers of one class, and an optimizer that 2.3.1 does not have."""
    x = L.Input((4, 3), name="x")
    y = L.MultiHeadAttention(2, 2)(x, x)
    y = L.MultiHeadAttention(1, 2, use_bias=False)(y, value=x, key=x)
    model = keras.Model(x, L.Dense(2)(L.Dense(3, activation="tanh")(y)), name="attention")
    model.compile(keras.optimizers.RMSprop(0.01, momentum=0.5, centered=True), "mse")
    return model


def transfer():
    """A base that is called with training=False and trains, a frozen base with a BatchNormalization, and frozen
    BatchNormalizations of images and of rows: all of them use their moving averages."""
    x = L.Input((5, 5, 1), name="x")
    base = keras.Sequential([L.Conv2D(2, 2, input_shape=(5, 5, 1)), L.BatchNormalization(), L.Dropout(0.5)], name="base")
    frozen = keras.Sequential([L.Conv2D(2, 2, input_shape=(5, 5, 1)), L.BatchNormalization()], name="frozen")
    frozen.trainable = False
    y = L.Concatenate()([base(x, training=False), frozen(x)])
    y = L.BatchNormalization(trainable=False, name="images")(L.Conv2D(3, 2, name="c")(y))
    y = L.BatchNormalization(trainable=False, name="rows")(L.Dense(3, name="d")(L.Flatten()(y)))
    y = L.Dropout(0.5, name="calm")(y, training=False)
    model = keras.Model(x, L.Dense(2, name="head")(L.BatchNormalization(name="still")(y, training=False)), name="transfer")
    model.compile(keras.optimizers.SGD(0.05), "mse")
    return model


def words():
    """Masks of attention and merging layers, as in 2.3.1, repeated indices, and an optimizer that an archive names only."""
    x = L.Input((6,), name="x")
    e = L.Embedding(5, 3, mask_zero=True)(x)
    g = L.GRU(3, return_sequences=True)(e)
    y = L.Add()([g, L.MultiHeadAttention(1, 3)(g, e)])
    y = L.Concatenate()([y, L.Embedding(5, 2)(x), L.Maximum()([g, e])])
    model = keras.Model(x, L.Dense(2)(L.GRU(3, return_sequences=True)(y)), name="words")
    model.compile("adam", "mse")
    return model


def written_again(path):
    """Rewrites the archive without times."""
    with zipfile.ZipFile(path) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members:
            if name == "metadata.json":
                data = json.dumps({"keras_version": tf.__version__}).encode()
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)


def weights_of(model):
    """Returns the weights layer by layer, the trainable weights of a nested model first."""
    return [w.numpy() for layer in model.layers for w in layer.trainable_weights + layer.non_trainable_weights]


def members_of(prefix, values):
    """Returns the arrays under numbered names."""
    return collections.OrderedDict(("%s%d" % (prefix, i), np.array(v)) for i, v in enumerate(values))


def case(root, prefix, build):
    """Records a model, trained for three steps and saved, and what ten further steps do."""
    keras.backend.clear_session()
    name = "%s_%s" % (prefix, build.__name__)
    random = store.random_for("files/" + name)
    model = build()
    model.set_weights([random.uniform(0.5, 1.5, w.shape) if "gamma" in w.name or "variance" in w.name
                       else random.normal(0.0, 0.4, w.shape) for w in model.weights])
    x = random.normal(0.0, 1.0, (4,) + model.input_shape[1:]).astype("float32")
    if model.name == "words":
        x = random.randint(0, 3, x.shape).astype("int32")
    t = random.uniform(0.0, 1.0, (4,) + model.output_shape[1:]).astype("float32")
    if not model.compiled_loss._user_losses:
        t = None
    for _ in range(3):
        model.train_on_batch(x, t)
    model.save("%s/%s.h5" % (root, name))
    version = tuple(int(part) for part in tf.__version__.split(".")[:2])
    if version >= (2, 12):
        model.save("%s/%s.keras" % (root, name), save_format="keras_v3" if version == (2, 12) else "keras")
        written_again("%s/%s.keras" % (root, name))
    members = collections.OrderedDict()
    members["meta"] = store.text({"tensorflow": tf.__version__, "group": "tfkeras",
                                  "case": name})
    members.update(members_of("x", [x]))
    if t is not None:
        members.update(members_of("t", [t]))
    members.update(members_of("y", [model.predict_on_batch(x)]))
    if build in (added, vae):
        members["test"] = np.array(model.test_on_batch(x, t), "float32")
        members["names"] = store.text(model.metrics_names)
    for step in range(1, 11):
        model.train_on_batch(x, t)
        if step in (1, 3, 10):
            members.update(members_of("s%d_w" % step, weights_of(model)))
    store.save("%s/%s.npz" % (root, name), members)


def main():
    """Records all cases."""
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    is_recent = tuple(int(part) for part in tf.__version__.split(".")[:2]) >= (2, 13)
    for build in (cnn, memory, graph, separable, attention, added, vae, functions, transfer, words) + ((convolutions, heads) if is_recent else ()):
        if not sys.argv[2:] or build.__name__ in sys.argv[2:]:
            case(os.path.join(HERE, "files"), sys.argv[1], build)


if __name__ == "__main__":
    main()
