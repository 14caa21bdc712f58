# SPDX-License-Identifier: Apache-2.0
"""Files that Keras 2.3.1 wrote after some training, and how training goes on after it has loaded them."""
import collections
import os

from . import store
from .model_case import listed, make_inputs, make_targets, put, set_initial_weights
from .session import K, VERSIONS, keras

L = keras.layers
STEPS_BEFORE = 4
STEPS_AFTER = 10


def cnn(dropout=0.0):
    """Convolution, normalisation, pooling, dropout (of rate 0 where training is to be followed), dense."""
    return keras.Sequential([
        L.Conv2D(3, 3, activation="relu", input_shape=(8, 8, 1)),
        L.BatchNormalization(),
        L.MaxPooling2D(2),
        L.Dropout(dropout),
        L.Flatten(),
        L.Dense(4, activation="relu", kernel_regularizer="l2"),
        L.Dropout(dropout),
        L.Dense(3, activation="softmax"),
    ], name="cnn")


def two_inputs():
    """Two inputs through a shared layer and a nested model, two outputs."""
    a, b = L.Input((4,), name="left"), L.Input((4,), name="right")
    shared = L.Dense(3, activation="tanh", name="shared")
    inner = keras.Sequential([L.Dense(4, input_shape=(3,), use_bias=False), L.BatchNormalization(),
                              L.Dense(2, activation="tanh")], name="inner")
    twice = keras.Sequential([L.Dense(3, activation="tanh", input_shape=(3,)), L.Dense(2)], name="twice")
    left, right = shared(a), shared(b)
    x = L.Concatenate(name="join")([inner(left), twice(left), twice(right), right])
    return keras.Model([a, b], [L.Dense(3, activation="softmax", name="kind")(x),
                                L.Dense(1, name="size")(x)], name="pair")


def lstm():
    """Two LSTM layers and a head."""
    return keras.Sequential([
        L.LSTM(3, return_sequences=True, input_shape=(5, 2)),
        L.LSTM(2, recurrent_activation="hard_sigmoid"),
        L.Dense(1),
    ], name="memory")


def wrapped():
    """Layers inside layers, with names of their own."""
    return keras.Sequential([
        L.Masking(batch_input_shape=(None, 4, 2)),
        L.TimeDistributed(L.Dense(3, activation="tanh")),
        L.Bidirectional(L.GRU(2, return_sequences=True, reset_after=True)),
        L.Bidirectional(L.SimpleRNN(2), merge_mode="sum"),
        L.Dense(1),
    ], name="wrapped")


CASES = {
    "cnn_adam": (cnn, "onehot", lambda: dict(
        optimizer=keras.optimizers.Adam(0.01), loss="categorical_crossentropy", metrics=["accuracy"])),
    "cnn_adam_amsgrad": (cnn, "sparse", lambda: dict(
        optimizer=keras.optimizers.Adam(0.01, amsgrad=True, decay=0.05), metrics=["acc"],
        loss=keras.losses.SparseCategoricalCrossentropy())),
    "two_inputs_rmsprop": (two_inputs, ["onehot", "normal"], lambda: dict(
        optimizer=keras.optimizers.RMSprop(0.01), loss_weights={"kind": 0.5, "size": 2.0},
        loss={"kind": "categorical_crossentropy", "size": "mse"},
        metrics={"kind": ["accuracy"], "size": ["mae"]})),
    "lstm_sgd": (lstm, "normal", lambda: dict(
        optimizer=keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True, clipnorm=1.0),
        loss=keras.losses.Huber(0.7), weighted_metrics=["mse"])),
    "lstm_nadam": (lstm, "normal", lambda: dict(
        optimizer=keras.optimizers.Nadam(0.01), loss="mse", metrics=["mae"])),
    "lstm_adadelta": (lstm, "normal", lambda: dict(
        optimizer=keras.optimizers.Adadelta(), loss="mae")),
    "lstm_adamax": (lstm, "normal", lambda: dict(
        optimizer=keras.optimizers.Adamax(0.01, clipvalue=0.5), loss="logcosh")),
    "wrapped_sgd": (wrapped, "normal", lambda: dict(
        optimizer=keras.optimizers.SGD(0.05, momentum=0.9), loss="mse")),
    "lstm_adagrad": (lstm, "normal", lambda: dict(
        optimizer=keras.optimizers.Adagrad(0.05), loss="mse")),
}


def prepared(name, build, targets):
    """Returns a model with fixed weights, and a batch."""
    K.clear_session()
    random = store.random_for("files/" + name)
    model = build()
    set_initial_weights(random, model, 1.0)
    x = make_inputs(random, model, 4, None, 1.0)
    return model, x, make_targets(random, model, 4, targets)


def meta_of(name, **more):
    """Returns the member `meta` of a case."""
    return store.text(dict(VERSIONS, group="files", case=name, file=name + ".h5", **more))


def continued(root, name, build, targets, compiling):
    """Records <name>.h5 after some steps, and <name>.npz with ten more steps after keras.models.load_model."""
    model, x, t = prepared(name, build, targets)
    model.compile(**compiling())
    for _ in range(STEPS_BEFORE):
        model.train_on_batch(x, t)
    path = "%s/%s.h5" % (root, name)
    model.save(path)
    K.clear_session()
    model = keras.models.load_model(path)
    members = collections.OrderedDict()
    members["meta"] = meta_of(name, metrics_names=model.metrics_names, steps=STEPS_AFTER,
                              steps_before=STEPS_BEFORE,
                              optimizer=keras.optimizers.serialize(model.optimizer))
    put(members, "x", x)
    put(members, "t", t)
    put(members, "w", model.get_weights())
    put(members, "y", listed(model.predict_on_batch(x)))
    members["test0"] = listed(model.test_on_batch(x, t))
    members["loss0"] = members["test0"][0]
    # Loading sets the optimizer's weights through its train function, so they are there already.
    put(members, "ow", model.optimizer.get_weights())
    outputs = []
    for step in range(1, STEPS_AFTER + 1):
        outputs.append(listed(model.train_on_batch(x, t)))
        put(members, "s%d_w" % step, model.get_weights())
    members["train_loss"] = [o[0] for o in outputs]
    members["train_outputs"] = outputs
    put(members, "owt", model.optimizer.get_weights())
    store.save("%s/%s.npz" % (root, name), members, limit_bytes=48 * 1024)


def predicting(root, name, build, save):
    """Records a file that is only for predict; save(model, path without extension) writes it."""
    model, x, _ = prepared(name, build, "normal")
    save(model, "%s/%s" % (root, name))
    members = collections.OrderedDict([("meta", meta_of(name))])
    put(members, "x", x)
    put(members, "w", model.get_weights())
    put(members, "y", listed(model.predict_on_batch(x)))
    store.save("%s/%s.npz" % (root, name), members)


def weights_only(model, path):
    """Records weights in one file and the architecture as JSON in another."""
    model.save_weights(path + ".h5")
    with open(path + ".json", "w") as out:
        out.write(model.to_json())


def split_attributes(model, path):
    """Records a file with a list of names in several attributes.  Keras splits lists of more than 64512 bytes; a
    smaller limit makes a small file."""
    limit = keras.utils.io_utils.HDF5_OBJECT_HEADER_LIMIT
    keras.utils.io_utils.HDF5_OBJECT_HEADER_LIMIT = 64
    try:
        model.save(path + ".h5")
    finally:
        keras.utils.io_utils.HDF5_OBJECT_HEADER_LIMIT = limit


def run(root):
    """All of this module; the files lie beside keras-2.3.1/."""
    root = os.path.join(os.path.dirname(os.path.abspath(root)), "files")
    os.makedirs(root, exist_ok=True)
    for name, (build, targets, compiling) in CASES.items():
        continued(root, name, build, targets, compiling)
    predicting(root, "cnn_uncompiled", lambda: cnn(0.5), lambda model, path: model.save(path + ".h5"))
    predicting(root, "cnn_weights", cnn, weights_only)
    predicting(root, "two_inputs_weights", two_inputs, weights_only)
    predicting(root, "split_attributes", lstm, split_attributes)
