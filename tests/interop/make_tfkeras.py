# SPDX-License-Identifier: Apache-2.0
"""Makes files of tf.keras for check_tfkeras.py: make_tfkeras.py FOLDER [WORD...], with the Python of a virtual environment that
has tensorflow-cpu 2.4 to 2.15.

Each model trains two steps and is saved as .h5 and, by versions that write archives (2.12 or later), as .keras.  NAME.npz has
the data, the predictions, the result of evaluate, and the predictions after one and after three further steps."""
import os
import sys

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

keras = tf.keras
L, O = keras.layers, keras.optimizers
VERSION = tuple(int(part) for part in tf.__version__.split(".")[:2])
BATCH = 6
MODELS = {}


def model(function):
    """Registers a function that returns a model, or (model, arguments of compile)."""
    MODELS[function.__name__] = function
    return function


def chain(shape, *layers, **options):
    return keras.Sequential([L.InputLayer(shape, **options)] + list(layers))


def preprocessing(name):
    """Returns a layer that was experimental up to tf.keras 2.5."""
    return getattr(L, name, None) or getattr(L.experimental.preprocessing, name)


@model
def mlp():
    return chain((5,), L.Dense(4, "relu", kernel_regularizer="l2", bias_constraint="non_neg"), L.Dropout(0.0),
                 L.Dense(3, "softmax")), dict(loss="categorical_crossentropy", metrics=["accuracy", "mae"])


@model
def activations():
    names = ["elu", "selu", "softplus", "softsign", "tanh", "sigmoid", "hard_sigmoid", "exponential", "linear", "swish"]
    return chain((4,), *([L.Dense(4, name) for name in names] +
                         [L.LeakyReLU(0.2), L.PReLU(), L.ELU(0.7), L.ReLU(2.0, 0.1, 0.1), L.Softmax(), L.Dense(2, tf.nn.relu),
                          L.Dense(2)]))


@model
def cnn():
    return chain((8, 8, 2), L.Conv2D(3, 3, activation="relu"), L.BatchNormalization(), L.MaxPooling2D(2),
                 L.SeparableConv2D(3, 2, padding="same"), L.DepthwiseConv2D(2), L.Flatten(), L.Dense(3, "softmax")), dict(
        loss="categorical_crossentropy", optimizer=O.SGD(0.05, 0.9))


@model
def cnn_1d_and_3d():
    return chain((8, 4, 4, 2), L.Conv3D(2, 2), L.BatchNormalization(), L.Conv3DTranspose(2, 2), L.UpSampling3D(1), L.Reshape((8, -1)),
                 L.Conv1D(3, 3, padding="causal"), L.BatchNormalization(), L.ZeroPadding1D(1), L.GlobalMaxPooling1D(),
                 L.Dense(2)), dict(optimizer=O.SGD(0.05))


@model
def images():
    x = keras.Input((8, 8, 3))
    y = preprocessing("Rescaling")(1.0 / 2, 0.1)(x)
    y = L.Conv2DTranspose(3, 3, strides=2, padding="same")(y)
    y = L.UpSampling2D(2, interpolation="bilinear")(L.Cropping2D(1)(L.ZeroPadding2D(1)(y)))
    y = L.LayerNormalization()(L.AveragePooling2D(2)(y))
    return keras.Model(x, L.Dense(2)(L.GlobalAveragePooling2D()(y)))


@model
def normalization():
    n = preprocessing("Normalization")()
    n.adapt(np.random.RandomState(0).normal(size=(20, 3)).astype("float32"))
    return chain((3,), n, L.Dense(2))


@model
def recurrent():
    return chain((5, 3), L.LSTM(4, return_sequences=True), L.GRU(3, return_sequences=True),
                 L.Bidirectional(L.LSTM(2, return_sequences=True)), L.GRU(3, reset_after=False, return_sequences=True),
                 L.Bidirectional(L.GRU(2), merge_mode="sum"), L.Dense(2))


@model
def cells():
    return chain((5, 3), L.RNN([L.LSTMCell(2), L.GRUCell(3)], return_sequences=True), L.SimpleRNN(3, return_sequences=True),
                 L.TimeDistributed(L.Dense(2)), L.RNN(L.SimpleRNNCell(3)), L.Dense(2))


@model
def conv_lstm():
    return chain((3, 6, 6, 2), L.ConvLSTM2D(2, 3, return_sequences=True), L.ConvLSTM2D(2, 2), L.Flatten(), L.Dense(2))


@model
def stateful():
    return keras.Sequential([L.InputLayer(batch_input_shape=(BATCH, 5, 3)), L.LSTM(4, stateful=True, return_sequences=True),
                             L.GRU(3, stateful=True), L.Dense(2)])


@model
def embedding_mask():
    return chain((6,), L.Embedding(11, 4, mask_zero=True), L.Bidirectional(L.LSTM(3)), L.Dense(2), dtype="int32")


@model
def embedding_functional():
    x = keras.Input((6,), dtype="int32")
    y = L.LSTM(3, return_sequences=True)(L.Embedding(11, 4, mask_zero=True)(x))
    return keras.Model(x, L.Dense(2)(L.GRU(2)(y))), dict(optimizer=O.RMSprop(0.01))


@model
def encoder_decoder():
    a, b = keras.Input((5, 3), name="source"), keras.Input((4, 2), name="target")
    _, h, c = L.LSTM(3, return_state=True)(a)
    y = L.LSTM(3, return_sequences=True)(b, initial_state=[h, c])
    return keras.Model([a, b], L.Dense(2)(y))


@model
def two_outputs():
    a, b = keras.Input((4,), name="left"), keras.Input((3,), name="right")
    y = L.Concatenate()([L.Dense(3)(a), L.Dense(2)(b)])
    m = keras.Model([a, b], [L.Dense(3, "softmax", name="kind")(y), L.Dense(1, name="size")(y)])
    return m, dict(loss={"kind": "categorical_crossentropy", "size": "mse"}, loss_weights={"kind": 1.0, "size": 0.5},
                   metrics={"kind": ["accuracy"], "size": ["mae"]})


@model
def two_outputs_by_list():
    a = keras.Input((4,))
    m = keras.Model(a, [L.Dense(3, "softmax")(a), L.Dense(1)(a)])
    return m, dict(loss=[keras.losses.CategoricalCrossentropy(label_smoothing=0.1), keras.losses.Huber()], loss_weights=[1, 0.3])


@model
def shared_layer():
    a, b = keras.Input((4,)), keras.Input((4,))
    d = L.Dense(3, "tanh")
    return keras.Model([a, b], L.Dense(2)(L.Concatenate()([d(a), d(b), d(a)])))


@model
def merges():
    a, b = keras.Input((4,)), keras.Input((4,))
    m = [layer([a, b]) for layer in (L.Add(), L.Subtract(), L.Multiply(), L.Average(), L.Maximum(), L.Minimum(),
                                     L.Dot(axes=-1, normalize=True))]
    return keras.Model([a, b], L.Dense(2)(L.Concatenate()(m)))


@model
def nested():
    inner = keras.Sequential([L.Dense(3, input_shape=(4,)), L.BatchNormalization(), L.Dense(3)], name="inner")
    x = keras.Input((3,))
    deep = keras.Model(x, L.Add()([L.Dense(3)(x), x]), name="deep")
    a, b = keras.Input((4,)), keras.Input((4,))
    return keras.Model([a, b], L.Dense(2)(L.Concatenate()([deep(inner(a)), inner(b)]))), dict(optimizer=O.SGD(0.05, 0.9))


@model
def nested_frozen():
    base = chain((5,), L.Dense(4, "relu"), L.BatchNormalization())
    base.trainable = False
    return keras.Sequential([base, L.Dense(3, "relu"), L.Dense(2)])


@model
def sequential_without_shape():
    m = keras.Sequential([L.Dense(4, "relu"), L.Dense(2)])
    m.build((None, 5))
    return m


@model
def attention():
    q, v = keras.Input((4, 3)), keras.Input((5, 3))
    y = L.Concatenate()([L.Attention(use_scale=True)([q, v]), L.AdditiveAttention()([q, v])])
    return keras.Model([q, v], L.Dense(2)(L.Flatten()(y)))


@model
def multi_head_attention():
    q, v = keras.Input((4, 3)), keras.Input((5, 3))
    y = L.MultiHeadAttention(2, 2)(q, v)
    y = L.LayerNormalization()(L.Add()([y, q]))
    y = L.MultiHeadAttention(2, 2, value_dim=3, output_shape=4, use_bias=False)(y, y, y)
    return keras.Model([q, v], L.Dense(2)(L.Flatten()(y))), dict(optimizer=O.SGD(0.1))


@model
def multi_head_attention_options():
    q, v, pairs = keras.Input((4, 3)), keras.Input((5, 3)), keras.Input((4, 5))
    causal = {"use_causal_mask": True} if VERSION >= (2, 10) else {}
    y, scores = L.MultiHeadAttention(2, 2)(q, v, key=L.Dense(3)(v), return_attention_scores=True,
                                           attention_mask=L.ReLU(1.0)(L.Rescaling(1e9, 1e8)(pairs)))
    z = L.Attention()([y, q], **causal)
    z = L.MultiHeadAttention(1, 3, attention_axes=(1,), kernel_regularizer="l2")(z, y, **causal)
    return keras.Model([q, v, pairs], L.Dense(2)(L.Concatenate()([L.Flatten()(z), L.Flatten()(scores)])))


@model
def mixed_bfloat16():
    maker = getattr(keras.mixed_precision, "Policy")
    return chain((6,), L.Dense(8, "relu", dtype=maker("mixed_bfloat16")), L.Dense(4, dtype=maker("mixed_bfloat16")),
                 L.Dense(2, dtype="float32"))


@model
def binary():
    return chain((6,), L.Dense(4, "relu"), L.Dense(1, "sigmoid")), dict(
        loss="binary_crossentropy", metrics=["accuracy", keras.metrics.AUC(), keras.metrics.Precision(), keras.metrics.Recall()])


@model
def sparse_classes():
    return chain((6,), L.Dense(4, "relu"), L.Dense(3)), dict(
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["sparse_categorical_accuracy"])


@model
def segmentation():
    return chain((6, 6, 2), L.Conv2D(3, 3, padding="same", activation="relu"), L.Conv2D(3, 1, activation="softmax")), dict(
        loss="categorical_crossentropy", metrics=["accuracy"])


def _loss(value):
    def build():
        return chain((5,), L.Dense(4, "tanh"), L.Dense(3, "sigmoid")), dict(loss=value)
    return build


for _name in ("mse", "mean_absolute_error", "mape", "msle", "huber", "log_cosh", "hinge", "squared_hinge", "categorical_hinge",
              "kl_divergence", "poisson", "cosine_similarity"):
    MODELS["loss_" + _name] = _loss(_name)
for _class in ("MeanSquaredError", "LogCosh", "Huber", "KLDivergence", "Poisson", "CosineSimilarity", "BinaryCrossentropy"):
    MODELS["loss_" + _class] = _loss(getattr(keras.losses, _class)())


def _optimizers(found, package, mark):
    """Adds the optimizers of a package under names that begin with `mark`."""
    def get(name):
        return getattr(package, name)
    new = VERSION >= (2, 11) and not mark or mark == "experimental_"
    found.update({
        "sgd": lambda: get("SGD")(0.05), "sgd_momentum": lambda: get("SGD")(0.05, 0.9),
        "sgd_nesterov": lambda: get("SGD")(0.05, 0.9, nesterov=True),
        "rmsprop": lambda: get("RMSprop")(0.01), "rmsprop_momentum": lambda: get("RMSprop")(0.01, momentum=0.5),
        "rmsprop_centered": lambda: get("RMSprop")(0.01, centered=True),
        "adagrad": lambda: get("Adagrad")(0.05), "adadelta": lambda: get("Adadelta")(0.5),
        "adam": lambda: get("Adam")(0.01), "amsgrad": lambda: get("Adam")(0.01, amsgrad=True),
        "clipnorm": lambda: get("Adam")(0.01, clipnorm=0.1), "clipvalue": lambda: get("SGD")(0.05, clipvalue=0.05),
        "global_clipnorm": lambda: get("SGD")(0.05, global_clipnorm=0.1)})
    if mark != "experimental_" or VERSION >= (2, 11):
        found.update({"adamax": lambda: get("Adamax")(0.01), "nadam": lambda: get("Nadam")(0.01),
                      "ftrl": lambda: get("Ftrl")(0.05, l1_regularization_strength=0.001)})
    if new:
        found.update({"adamw": lambda: get("AdamW")(0.01), "ema": lambda: get("Adam")(0.01, use_ema=True),
                      "weight_decay": lambda: get("SGD")(0.05, weight_decay=0.01)})
        if VERSION >= (2, 12):
            found.update({"adafactor": lambda: get("Adafactor")(0.01)})
        if VERSION >= (2, 13):
            found.update({"lion": lambda: get("Lion")(0.01)})
    else:
        found.update({"decay": lambda: get("Adam")(0.01, decay=0.1), "sgd_decay": lambda: get("SGD")(0.05, decay=0.1)})


def _schedules():
    s = O.schedules
    found = {"exponential": s.ExponentialDecay(0.1, 2, 0.5), "staircase": s.ExponentialDecay(0.1, 2, 0.5, staircase=True),
             "piecewise": s.PiecewiseConstantDecay([2, 4], [0.1, 0.05, 0.01]),
             "polynomial": s.PolynomialDecay(0.1, 4, 0.01, power=2.0), "inverse_time": s.InverseTimeDecay(0.1, 2, 0.5)}
    if hasattr(s, "CosineDecay"):
        found.update({"cosine": s.CosineDecay(0.1, 5), "restarts": s.CosineDecayRestarts(0.1, 3)})
    return found


def _optimizer(make, embedding):
    def build():
        if embedding:
            return chain((4,), L.Embedding(5, 3), L.Flatten(), L.Dense(2), dtype="int32"), dict(optimizer=make())
        return chain((5,), L.Dense(4, "tanh"), L.Dense(2)), dict(optimizer=make())
    return build


for _mark, _package in (("", O), ("legacy_", getattr(O, "legacy", None) if VERSION >= (2, 11) else None),
                        ("experimental_", getattr(O, "experimental", None))):
    _found = {}
    if _package and hasattr(_package, "Adam"):
        _optimizers(_found, _package, _mark)
    for _name, _make in _found.items():
        MODELS["%soptimizer_%s" % (_mark, _name)] = _optimizer(_make, False)
        MODELS["%ssparse_%s" % (_mark, _name)] = _optimizer(_make, True)
for _name, _schedule in _schedules().items():
    MODELS["schedule_" + _name] = _optimizer(lambda s=_schedule: O.SGD(s, 0.5), False)
    MODELS["schedule_adam_" + _name] = _optimizer(lambda s=_schedule: O.Adam(s), False)


def data_for(m, arguments):
    r = np.random.RandomState(1)
    xs, ts = [], []
    for x in m.inputs:
        shape = (BATCH,) + tuple(d or 3 for d in x.shape[1:])
        is_integer = "int" in x.dtype.name
        xs.append(r.randint(0, 5, shape).astype("int32") if is_integer else r.normal(size=shape).astype("float32"))
    for y in m.outputs:
        shape = (BATCH,) + tuple(d or 3 for d in y.shape[1:])
        if "Sparse" in str(arguments.get("loss")):
            ts.append(r.randint(0, shape[-1], shape[:-1] + (1,)).astype("float32"))
        elif shape[-1] == 3:
            ts.append(np.eye(3, dtype="float32")[r.randint(0, 3, shape[:-1])])
        elif arguments.get("loss") == "binary_crossentropy":
            ts.append(r.randint(0, 2, shape).astype("float32"))
        else:
            ts.append(r.uniform(0.1, 0.9, size=shape).round(1).astype("float32"))
    return xs, ts


def case(folder, name):
    """Makes the files of one model."""
    keras.backend.clear_session()
    tf.random.set_seed(3)
    made = MODELS[name]()
    m, arguments = made if isinstance(made, tuple) else (made, {})
    arguments = dict(dict(optimizer=O.Adam(0.01), loss="mse"), **arguments)
    eager = name.split("_")[0] in ("optimizer", "legacy", "experimental", "sparse", "schedule")  # without tracing: faster
    m.compile(run_eagerly=eager, **arguments)
    xs, ts = data_for(m, arguments)
    stored = {}

    def one(values):
        return values[0] if len(values) == 1 else values

    def predict(prefix):
        m.reset_states()
        y = m(one(xs), training=False)
        for i, a in enumerate(y if isinstance(y, (list, tuple)) else [y]):
            stored["%s%d" % (prefix, i)] = np.asarray(a, "float32")

    def train(steps):
        m.reset_states()
        for _ in range(steps):
            m.train_on_batch(one(xs), one(ts))
    train(2)
    path = os.path.join(folder, name)
    m.save(path + ".h5")
    if VERSION >= (2, 12):
        try:  # 2.12 writes HDF5 into a .keras file if it is not told otherwise
            m.save(path + ".keras", save_format="keras_v3" if VERSION == (2, 12) else "keras")
        except Exception as e:  # some models cannot be saved in early versions
            print("%s: .keras: %s" % (name, str(e)[:200]))
    predict("y")
    m.reset_states()
    stored["evaluated"] = np.float32(m.evaluate(one(xs), one(ts), batch_size=BATCH, verbose=0)).reshape(-1)
    train(1)
    predict("a")
    train(2)
    predict("b")
    stored.update(("x%d" % i, x) for i, x in enumerate(xs))
    stored.update(("t%d" % i, t) for i, t in enumerate(ts))
    np.savez(path + ".npz", **stored)


def main():
    folder, words = sys.argv[1], sys.argv[2:]
    os.makedirs(folder, exist_ok=True)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    for name in MODELS:
        if words and not any(word in name for word in words):
            continue
        try:
            case(folder, name)
        except Exception as e:  # the list tells
            print("%s: not made: %s: %s" % (name, type(e).__name__, str(e).strip()[:300]))


if __name__ == "__main__":
    main()
