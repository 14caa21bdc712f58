# SPDX-License-Identifier: Apache-2.0
"""Small models whose files test what leat opens: files/open_*.keras and .h5 (losses, metrics and optimizers that leat
does not have, options of losses, schedules of the learning rate, initializers that hold arrays), and
files/open_weights.weights.h5."""
import collections
import json
import os
import zipfile

import keras
import numpy as np

from . import store

L = keras.layers
S = keras.optimizers.schedules

MATRIX = np.arange(12, dtype="float32").reshape(6, 2) / 8


def distant(y_true, y_pred):
    """A loss that only this file has."""
    return keras.ops.mean(keras.ops.power(keras.ops.abs(y_true - y_pred), 3.0), axis=-1)


def nearest(y_true, y_pred):
    """A metric that only this file has."""
    return keras.ops.min(keras.ops.abs(y_true - y_pred), axis=-1)


@keras.saving.register_keras_serializable(package="golden")
class Slow(keras.optimizers.SGD):
    """An optimizer that only this file has."""


def classes():
    """Classes of which one is ignored, behind logits of each step."""
    model = keras.Sequential([L.Input((4, 2)), L.Dense(3)], name="classes")
    model.compile(keras.optimizers.SGD(S.ExponentialDecay(0.5, 2, 0.5)),
                  keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=2))
    return model


def labels():
    """The class of the usual loss for labels, whose ignore_class is null."""
    model = keras.Sequential([L.Input((4,)), L.Dense(3, activation="softmax")], name="labels")
    model.compile(keras.optimizers.Adam(S.CosineDecay(0.01, 6, alpha=0.1, warmup_target=0.1, warmup_steps=4)),
                  keras.losses.SparseCategoricalCrossentropy(),
                  metrics=[keras.metrics.SparseCategoricalAccuracy()])
    return model


def columns():
    """Classes on axis 1."""
    model = keras.Sequential([L.Input((4, 2)), L.Dense(3, use_bias=False), L.Softmax(axis=1)], name="columns")
    model.compile(keras.optimizers.Adam(S.CosineDecayRestarts(0.1, 2, t_mul=1.5, m_mul=0.8, alpha=0.01)),
                  keras.losses.CategoricalCrossentropy(axis=1))
    return model


def pieces():
    """A piecewise constant rate."""
    model = keras.Sequential([L.Input((4,)), L.Dense(2)], name="pieces")
    model.compile(keras.optimizers.SGD(S.PiecewiseConstantDecay([4, 6], [0.5, 0.1, 0.01]), momentum=0.5), "mse")
    return model


def own():
    """A loss, a metric and an optimizer that leat does not have."""
    model = keras.Sequential([L.Input((4,)), L.Dense(2)], name="own")
    model.compile(Slow(0.1), distant, metrics=[nearest])
    return model


def vectors():
    """An Embedding that is initialised from a matrix, and initializers that hold arrays."""
    model = keras.Sequential([
        L.Input((3,)),
        L.Embedding(6, 2, embeddings_initializer=keras.initializers.Constant(MATRIX), trainable=False),
        L.Flatten(),
        L.Dense(2, bias_initializer=keras.initializers.Constant(np.array([0.25, -0.5], dtype="float32"))),
    ], name="vectors")
    model.compile("sgd", "mse")
    return model


def transfer():
    """A base that is called with training=False, which has no effect: fit calls the model with training=True, which
    reaches all calls inside; predict does so with False."""
    x = L.Input((5, 5, 1), name="x")
    base = keras.Sequential([L.Input((5, 5, 1)), L.Conv2D(2, 2), L.BatchNormalization(), L.Dropout(0.0)], name="base")
    frozen = keras.Sequential([L.Input((5, 5, 1)), L.Conv2D(2, 2), L.BatchNormalization()], name="frozen")
    frozen.trainable = False
    y = L.Concatenate()([base(x, training=False), frozen(x, training=False)])
    y = L.BatchNormalization(name="still")(L.Dense(3, name="d")(L.Flatten()(y)), training=False)
    model = keras.Model(x, L.Dense(2, name="head")(y), name="transfer")
    model.compile(keras.optimizers.SGD(0.05), "mse")
    return model


def nested():
    """The output is that of a nested Functional's second call, which Keras counts from 1 there, and not elsewhere."""
    i = L.Input((4,), name="i")
    inner = keras.Model(i, L.Dense(3, activation="tanh", name="d")(i), name="inner")
    x = L.Input((4,), name="x")
    y = L.Concatenate()([inner(x), L.Dense(1, name="e")(x)])
    model = keras.Model(x, inner(y), name="nested")
    model.compile(keras.optimizers.SGD(0.1), "mse")
    return model


def adapted(**options):
    """Returns an IntegerLookup that has learned its vocabulary, which a .keras file has as a text file."""
    layer = L.IntegerLookup(**options)
    layer.adapt(np.array([[5, 5, 5, 7], [7, 9, 2, 5]]))
    return layer


def lookups():
    """Vocabularies that were learned, one of them in a nested model, and one with factors of tf_idf."""
    x = L.Input((4,), name="x", dtype="int64")
    inner = keras.Sequential([L.Input((4,), dtype="int64"), adapted(output_mode="count")], name="inner")
    words = L.Flatten()(L.Embedding(6, 2)(adapted()(x)))
    y = L.Concatenate()([words, adapted(output_mode="tf_idf")(x), inner(x),
                         L.IntegerLookup(vocabulary=[2, 9], output_mode="tf_idf", idf_weights=[0.5, 0.25])(x)])
    model = keras.Model(x, L.Dense(2, name="d")(y), name="lookups")
    model.compile(keras.optimizers.SGD(0.1), "mse")
    return model


def attended():
    """Masked steps in attention, which takes the masks off its inputs, so that Add has none."""
    x = L.Input((6,), name="x")
    e = L.Embedding(5, 3, mask_zero=True)(x)
    g = L.GRU(3, return_sequences=True)(e)
    y = L.Add()([g, L.MultiHeadAttention(1, 3)(query=g, value=e)])
    model = keras.Model(x, L.Dense(2)(L.LayerNormalization()(y)), name="attended")
    model.compile(keras.optimizers.SGD(0.1), "mse")
    return model


def merged():
    """Merging layers of masked steps, some of which count in one input only, and a masked loss."""
    x = L.Input((6,), name="x")
    a, b = L.Embedding(5, 3, mask_zero=True)(x), L.Embedding(5, 3, mask_zero=True)(x[:, ::-1])
    c = L.Concatenate()([L.Maximum()([a, b]), L.Multiply()([a, b]), L.Average()([a, b])])
    d = L.Minimum()([L.Embedding(5, 3)(x), a])
    y = L.Multiply()([L.GRU(3, return_sequences=True)(c), L.GRU(3, return_sequences=True)(d)])
    model = keras.Model(x, L.Concatenate()([L.Dense(2)(L.Subtract()([c, L.Dense(9)(c)])), y]), name="merged")
    model.compile(keras.optimizers.SGD(0.1), "mse")
    return model


def chosen():
    """The argument mask of calls, and an output of rank 1."""
    x = L.Input((5, 3), name="x")
    mask = keras.ops.greater(x[:, :, 0], -0.5)
    y = L.Bidirectional(L.LSTM(2, return_sequences=True))(x, mask=mask)
    z = L.Concatenate()([L.GRU(2)(y, mask=mask), L.GlobalAveragePooling1D()(y, mask=mask),
                         L.SimpleRNN(2)(x, initial_state=L.Dense(2)(x[:, 0]), mask=mask), L.GRU(2)(x)])
    model = keras.Model(x, keras.ops.squeeze(L.Dense(1)(z), axis=-1), name="chosen")
    model.compile(keras.optimizers.SGD(0.1), "mse", metrics=["mae"])
    return model


def sized():
    """A model without an Input, whose file has the size of the first batch that the model has seen."""
    model = keras.Sequential([L.Dense(3, activation="relu"), L.Dense(2)], name="sized")
    model.compile("sgd", "mse")
    model.predict(np.zeros((32, 4)), verbose=0)
    return model


def batch(model, random):
    """Returns a batch of data that suits the model."""
    x = random.normal(0.0, 1.0, (4,) + model.input_shape[1:]).astype("float32")
    t = random.uniform(0.0, 1.0, (4,) + model.output_shape[1:]).astype("float32")
    if model.name in ("attended", "merged"):
        x = random.randint(0, 3, x.shape).astype("int32")
    if model.name == "vectors":
        x = random.randint(0, 6, x.shape).astype("int32")
    if model.name == "lookups":
        x = random.randint(0, 10, x.shape)
    if model.name in ("classes", "labels"):
        t = random.randint(0, 3, t.shape[:-1]).astype("int32")
    if model.name == "columns":
        t = np.moveaxis(np.eye(4, dtype="float32")[random.randint(0, 4, (4, 3))], 2, 1)
    return x, t


def written_again(path):
    """Rewrites the archive without times."""
    with zipfile.ZipFile(path) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members:
            if name == "metadata.json":
                data = json.dumps({"keras_version": keras.__version__}).encode()
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)


def weights_of(model):
    """Returns the weights in the order of 2.3.1: layer by layer, the trainable weights of a nested model first."""
    return [w.numpy() for layer in model.layers for w in layer.trainable_weights + layer.non_trainable_weights]


def members_of(prefix, values):
    """Returns the arrays under numbered names."""
    return collections.OrderedDict(("%s%d" % (prefix, i), np.array(v)) for i, v in enumerate(values))


def case(root, build):
    """Records a model, trained for three steps and saved, and what ten further steps do."""
    keras.backend.clear_session()
    name = "open_" + build.__name__
    random = store.random_for("files/" + name)
    model = build()
    model.set_weights([random.uniform(0.5, 1.5, w.shape) if w.name == "moving_variance" else
                       random.normal(0.0, 0.4, w.shape) for w in model.weights])
    if build is vectors:
        model.layers[0].set_weights([MATRIX])
    x, t = batch(model, random)
    for _ in range(3):
        model.train_on_batch(x, t)
    model.save("%s/%s.keras" % (root, name))
    written_again("%s/%s.keras" % (root, name))
    if build in (own, labels, vectors, chosen, sized):
        model.save("%s/%s.h5" % (root, name))
    members = collections.OrderedDict()
    members["meta"] = store.text({"keras": keras.__version__, "group": "opening", "case": name,
                                  "file": name + ".keras", "weights": [w.path for w in model.weights]})
    members.update(members_of("x", [x]))
    members.update(members_of("t", [t]))
    members.update(members_of("w", weights_of(model)))
    members.update(members_of("y", [model.predict_on_batch(x)]))
    members["loss"] = np.array([model.test_on_batch(x, t, return_dict=True)["loss"]], dtype="float32")
    for step in range(1, 11):
        model.train_on_batch(x, t)
        if step in (1, 3, 10):
            members.update(members_of("s%d_w" % step, weights_of(model)))
    store.save("%s/%s.npz" % (root, name), members)


def weights(root):
    """Records a .weights.h5 with its architecture and a prediction."""
    keras.backend.clear_session()
    random = store.random_for("files/open_weights")
    a = L.Input((5, 3), name="a")
    inner = keras.Sequential([L.Input((4,)), L.Dense(3), L.BatchNormalization(), L.Dense(2)], name="inner")
    x = L.Bidirectional(L.GRU(2))(a)
    model = keras.Model(a, L.Add()([L.Dense(2, name="head")(x), inner(x)]), name="weights")
    model.set_weights([random.uniform(0.2, 0.8, w.shape) for w in model.weights])
    x = random.normal(0.0, 1.0, (4, 5, 3)).astype("float32")
    model.save_weights("%s/open_weights.weights.h5" % root)
    with open("%s/open_weights.json" % root, "w") as file:
        file.write(model.to_json())
    members = collections.OrderedDict()
    members["meta"] = store.text({"keras": keras.__version__, "group": "opening", "case": "open_weights"})
    members.update(members_of("x", [x]))
    members.update(members_of("y", [model.predict_on_batch(x)]))
    store.save("%s/open_weights.npz" % root, members)


def dictionaries():
    """Dictionaries of inputs and outputs, whose keys are not the names of the layers; an inner model is called on another."""
    inputs = {"b": L.Input((3,), name="x"), "a": L.Input((3,), name="y")}
    pair = {"right": L.Input((3,), name="p"), "left": L.Input((3,), name="q")}
    inner = keras.Model(pair, L.Dense(2, activation="tanh")(pair["right"] - L.Dense(3)(pair["left"])), name="inner")
    h = inner({"left": inputs["b"], "right": inputs["a"]})
    model = keras.Model(inputs, {"value": L.Dense(1, name="first")(h), "policy": L.Dense(2, name="second")(h)})
    model.compile(keras.optimizers.SGD(0.1), {"policy": "mse", "value": "mae"}, loss_weights={"policy": 0.5, "value": 2.0},
                  metrics={"value": ["mse"]})
    return model


def structures():
    """Lists and dictionaries in lists."""
    x, y, z = L.Input((3,), name="x"), L.Input((2,), name="y"), L.Input((2,), name="z")
    h = L.Concatenate()([x, L.Dense(2)(y), z])
    model = keras.Model([x, [y, {"k": z}]], [L.Dense(2)(h), {"m": L.Dense(3)(h), "l": [L.Dense(1)(h), L.Dense(2)(h)]}])
    model.compile(keras.optimizers.SGD(0.1), ["mse", {"m": "mse", "l": ["mae", "mse"]}],
                  loss_weights=[1.0, {"m": 2.0, "l": [0.25, 0.5]}])
    return model


def some():
    """An output with a loss beside a list of outputs without one."""
    x = L.Input((3,), name="x")
    h = L.Dense(4)(x)
    model = keras.Model(x, {"a": [L.Dense(1)(h), L.Dense(2)(h)], "b": L.Dense(3)(h)})
    model.compile(keras.optimizers.SGD(0.1), {"b": "mse"}, loss_weights={"b": 2.0})
    return model


def structured(root, build):
    """Records a model whose inputs and outputs are structures, in the order of Keras's lists of them."""
    keras.backend.clear_session()
    name = "open_" + build.__name__
    random = store.random_for("files/" + name)
    model = build()
    model.set_weights([random.normal(0.0, 0.4, w.shape) for w in model.weights])
    inputs = [random.normal(0.0, 1.0, (4,) + tuple(v.shape[1:])).astype("float32") for v in model.inputs]
    targets = [random.normal(0.0, 1.0, (4,) + tuple(v.shape[1:])).astype("float32") for v in model.outputs]
    x = keras.tree.pack_sequence_as(model._inputs_struct, inputs)
    t = keras.tree.pack_sequence_as(model._outputs_struct, targets)
    model.train_on_batch(x, t)
    model.save("%s/%s.keras" % (root, name))
    written_again("%s/%s.keras" % (root, name))
    members = collections.OrderedDict()
    members["meta"] = store.text({"keras": keras.__version__, "group": "opening", "case": name, "file": name + ".keras"})
    members.update(members_of("x", inputs))
    members.update(members_of("t", targets))
    members.update(members_of("w", weights_of(model)))
    members.update(members_of("y", keras.tree.flatten(model(x, training=False))))
    for step in range(1, 11):
        model.train_on_batch(x, t)
        if step in (1, 3, 10):
            members.update(members_of("s%d_w" % step, weights_of(model)))
    store.save("%s/%s.npz" % (root, name), members)


def adapted(root):
    """Records a model with LoRA weights in two layers, behind a pipeline, with a prediction."""
    keras.backend.clear_session()
    random = store.random_for("files/open_lora")
    x = L.Input((5, 5, 2), name="x", optional=True)
    y = L.Pipeline([L.RandomFlip(), L.Rescaling(0.5)])(x)
    y = L.Flatten()(L.Conv2D(3, 2)(y))
    model = keras.Model(x, L.Dense(2)(y), name="lora")
    for layer in model.layers[-3:]:
        if layer.weights:
            layer.enable_lora(2)
    model.set_weights([random.normal(0.0, 0.4, w.shape) for w in model.weights])
    x = random.normal(0.0, 1.0, (4, 5, 5, 2)).astype("float32")
    model.save("%s/open_lora.keras" % root)
    written_again("%s/open_lora.keras" % root)
    members = collections.OrderedDict()
    members["meta"] = store.text({"keras": keras.__version__, "group": "opening", "case": "open_lora", "file": "open_lora.keras"})
    members.update(members_of("x", [x]))
    members.update(members_of("y", [np.array(model(x, training=False))]))
    store.save("%s/open_lora.npz" % root, members)


def run(root):
    """Records all cases."""
    os.makedirs(root, exist_ok=True)
    for build in (classes, labels, columns, pieces, own, vectors, transfer, nested, lookups, attended, merged,
                  chosen, sized):
        case(root, build)
    for build in (dictionaries, structures, some):
        structured(root, build)
    adapted(root)
    weights(root)
