# SPDX-License-Identifier: Apache-2.0
"""A case of what current Keras alone has: its numbers, in the format of keras-2.3.1/layers.  A stack of layers has its
configuration in the form of Keras 2.3.1 (a Sequential of layers with their own keys), a functional model in its own."""
import collections
import json
import os

import keras
import numpy as np
import tensorflow as tf

from . import store

L = keras.layers
ROOT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "keras-3")
STEPS = 3
RATE = 0.1
COMMON = ("name", "trainable", "dtype", "build_config")


def plain(value):
    """Converts a part of a configuration to that of 2.3.1: no modules, no registered names, one class of penalties."""
    if isinstance(value, dict):
        if value.get("class_name") in ("L1", "L2"):
            factors = {k: float(np.float32(value["config"].get(k, 0.0))) for k in ("l1", "l2")}
            return {"class_name": "L1L2", "config": factors}
        if value.get("class_name") == "GlorotUniform":
            return {"class_name": "VarianceScaling", "config": {"scale": 1.0, "mode": "fan_avg",
                                                                "distribution": "uniform", "seed": None}}
        if "class_name" in value:
            return {"class_name": value["class_name"], "config": plain(value["config"])}
        return {k: plain(v) for k, v in value.items() if k != "dtype"}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


def layer_config(layer, shape):
    """Returns the keys of a layer as Keras 2.3.1 would write them, before the layer is built (building changes axis)."""
    config = {"name": layer.name, "trainable": layer.trainable, "dtype": "float32"}
    if shape is not None:
        config["batch_input_shape"] = [None] + list(shape)
    own = {k: plain(v) for k, v in layer.get_config().items() if k not in COMMON}
    if isinstance(layer, L.Dense):
        for key in ("quantization_config", "lora_rank"):
            own.pop(key, None)
        own.setdefault("activity_regularizer", None)
        own["activation"] = layer.get_config()["activation"]
    if own.get("groups") == 1 and isinstance(layer, (L.Conv1D, L.Conv2D, L.Conv3D)):
        del own["groups"]
    return {"class_name": layer.__class__.__name__, "config": dict(config, **own)}


def initial(random, variable):
    """Returns a value that suits the kind of the variable."""
    shape = tuple(variable.shape)
    if variable.name in ("gamma", "variance", "moving_variance"):
        return random.uniform(0.5, 1.5, shape)
    if variable.name == "count":
        return np.zeros(shape)
    scale = 0.3 if len(shape) < 2 else 1.0 / np.sqrt(max(2.0, np.prod(shape[:-1])))
    return random.normal(0.0, scale, shape)


def listed(prefix, values):
    """Returns the arrays under numbered names."""
    return collections.OrderedDict(("%s%d" % (prefix, i), np.asarray(v)) for i, v in enumerate(values))


def weights_of(model):
    """Returns the weights by layer; the vector of SpectralNormalization is the last one of its layer, as in .h5 files."""
    return [w for layer in model.layers for w in sorted(layer.weights, key=lambda w: w.name == "vector_u")]


def total_loss(model, x, t, training=True):
    """Returns the loss: mean_squared_error as in compile, plus the penalties."""
    error = tf.reduce_mean(tf.square(tf.cast(model(x, training=training), t.dtype) - t))
    return error + tf.add_n([tf.convert_to_tensor(p) for p in model.losses] or [tf.constant(0.0)])


def train(model, x, t, members):
    """Records the loss, the gradients, and some steps of gradient descent, with the constraints after each step."""
    variables = [w for w in weights_of(model) if w.trainable]
    losses = []
    before = total_loss(model, x, t, training=False).numpy()
    for step in range(STEPS):
        with tf.GradientTape() as tape:
            loss = total_loss(model, x, t)
        gradients = [tf.convert_to_tensor(g) for g in tape.gradient(loss, [v.value for v in variables])]
        if step == 0:
            members["loss0"] = before
            members["test0"] = [before]
            members.update(listed("g", gradients))
        losses.append(loss.numpy())
        for variable, gradient in zip(variables, gradients):
            variable.assign_sub(RATE * gradient)
            if variable.constraint is not None:
                variable.assign(variable.constraint(variable))
    members["train_loss"] = losses
    members["train_outputs"] = [[loss] for loss in losses]
    members.update(listed("wt", [w.numpy() for w in weights_of(model)]))
    members["yt0"] = model(x, training=False).numpy().astype("float32")


def case(name, class_name, shape, *makes, scale=1.0, batch=3, notes="", trains=True):
    """Records a stack of layers with fixed weights: prediction, loss, gradients, steps."""
    keras.backend.clear_session()
    random = store.random_for("keras-3/layers/" + name)
    layers = [make() for make in makes]
    config = [layer_config(layer, None if i else shape) for i, layer in enumerate(layers)]
    y = inputs = L.Input(shape)
    for layer in layers:
        y = layer(y)
    model = keras.Model(inputs, y)
    for weight in weights_of(model):
        weight.assign(initial(random, weight))
    for layer in layers:
        if isinstance(layer, L.Normalization):
            layer.finalize_state()
    x = random.normal(0.0, scale, (batch,) + shape).astype("float32")
    record(name, class_name, model, {
        "class_name": "Sequential", "config": {"name": "sequential_1", "layers": config},
        "keras_version": "2.3.1", "backend": "tensorflow"}, [x], random, notes, trains)


def functional(name, class_name, build, batch=3, inputs=None, group="layers", exact=False,
               trains=True):
    """Records a model with the inputs and the output that build() returns.  exact: inputs keep their types."""
    keras.backend.clear_session()
    random = store.random_for("keras-3/%s/%s" % (group, name))
    x, y = build()
    model = keras.Model(x, y)
    for weight in weights_of(model):
        weight.assign(initial(random, weight))
    if inputs is None:
        inputs = [random.normal(0.0, 1.0, (batch,) + tuple(i.shape[1:])) for i in x]
    types = ["bool" if i.dtype == "bool" else "float32" for i in x]
    inputs = inputs if exact else [v.astype(t) for v, t in zip(inputs, types)]
    record(name, class_name, model, json.loads(model.to_json()), inputs, random, trains=trains, group=group)


def record(name, class_name, model, config, x, random, notes="", trains=True, kept=None, group="layers"):
    """Prediction, loss, gradients and steps of a model with weights, into keras-3/<group>.  `kept`: values of some."""
    t = random.normal(0.0, 1.0, model(x if len(x) > 1 else x[0]).shape).astype("float32")
    weights = weights_of(model)
    members = collections.OrderedDict()
    members["meta"] = store.text({
        "keras": keras.__version__, "tensorflow": tf.__version__, "group": group, "case": name,
        "class_name": class_name, "loss": "mean_squared_error", "metrics": [], "weighted_metrics": [],
        "optimizer": {"class_name": "SGD", "config": {"learning_rate": RATE}}, "steps": STEPS,
        "weights": [w.path for w in weights],
        "trainable": [i for i, v in enumerate(weights) if v.trainable],
        "metrics_names": ["loss"], "notes": notes,
    })
    members["config"] = store.text(json.dumps(config))
    members.update(listed("x", [v.astype("uint8") if v.dtype == bool else v for v in x]))
    x = x if len(x) > 1 else x[0]
    members.update(listed("t", [t]))
    members.update(listed("w", [(kept or {}).get(w.path, w.numpy()) for w in weights]))
    members["y0"] = model(x, training=False).numpy().astype("float32")
    if trains:
        train(model, x, t, members)
    store.save("%s/%s/%s.npz" % (ROOT, group, name), members)
