# SPDX-License-Identifier: Apache-2.0
"""Cases of layers and arguments that current Keras alone has: its numbers, with configurations in the form of 2.3.1."""
import collections

import keras
import numpy as np
import tensorflow as tf

from . import store

L = keras.layers
GLOROT = {"class_name": "VarianceScaling",
          "config": {"scale": 1.0, "mode": "fan_avg", "distribution": "uniform", "seed": None}}
SGD = {"class_name": "SGD",
       "config": {"decay": 0.0, "learning_rate": 0.10000000149011612, "momentum": 0.0, "nesterov": False}}


def as_2_3_1(value):
    """A value of a configuration, as Keras 2.3.1 writes its like."""
    if isinstance(value, dict) and value.get("class_name") == "GlorotUniform":
        return GLOROT
    if isinstance(value, dict) and value.get("class_name") == "DTypePolicy":
        return value["config"]["name"]
    if isinstance(value, dict):
        return {k: as_2_3_1(v) for k, v in value.items() if k not in ("module", "registered_name")}
    return [as_2_3_1(v) for v in value] if isinstance(value, (list, tuple)) else value


def layer_config(layer, shape):
    """The layer's entry; `shape` where it is the first."""
    config = as_2_3_1(layer.get_config())
    if config.get("groups") == 1:
        del config["groups"]
    if shape:
        config["batch_input_shape"] = [None] + list(shape)
    return {"class_name": type(layer).__name__, "config": config}


def train_step(model, x, t):
    """Loss and gradients of one batch; the weights move by SGD with a rate of 0.1."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.reduce_mean(tf.square(model(x, training=True) - t), axis=-1))
    gradients = tape.gradient(loss, model.trainable_variables)
    for variable, gradient in zip(model.trainable_variables, gradients):
        variable.assign_sub(np.float32(0.1) * gradient)
    return loss.numpy(), [g.numpy() for g in gradients]


def record(root, case, class_name, shape, layers, steps=3, batch=2):
    """Runs a Sequential model of these layers and writes <root>/layers/<case>.npz."""
    random = store.random_for("layers/" + case)
    model = keras.Sequential([L.Input(shape)] + layers)
    model.set_weights([random.normal(0.0, 0.3 if len(w.shape) < 2 else 1 / np.sqrt(np.prod(w.shape[:-1])), w.shape)
                       for w in model.weights])
    x = random.normal(0.0, 1.0, (batch,) + shape).astype("float32")
    t = random.normal(0.0, 1.0, model(x).shape).astype("float32")
    members = collections.OrderedDict()
    members["meta"] = store.text({
        "keras": keras.__version__, "tensorflow": tf.__version__, "group": "layers", "case": case,
        "class_name": class_name, "loss": "mean_squared_error", "loss_weights": None, "metrics": [],
        "weighted_metrics": [], "sample_weight_mode": None, "class_weight": None, "optimizer": SGD, "steps": steps,
        "weights": ["%s/%s:0" % (layer.name, w.name) for layer in layers for w in layer.weights],
        "trainable": list(range(len(model.trainable_variables))), "metrics_names": ["loss"],
        "notes": "current Keras; the configuration is written as 2.3.1 would"})
    members["config"] = store.text({
        "class_name": "Sequential", "keras_version": "2.3.1", "backend": "tensorflow",
        "config": {"name": "sequential_1",
                   "layers": [layer_config(layer, shape if i == 0 else None) for i, layer in enumerate(layers)]}})
    members["x0"], members["t0"] = x, t
    members.update(("w%d" % i, w) for i, w in enumerate(model.get_weights()))
    members["y0"] = model(x, training=False).numpy()
    losses = []
    for step in range(steps):
        loss, gradients = train_step(model, x, t)
        losses.append(loss)
        if step == 0:
            members["loss0"] = members["test0"] = loss
            members.update(("g%d" % i, g) for i, g in enumerate(gradients))
    members["train_loss"], members["train_outputs"] = losses, [[loss] for loss in losses]
    members.update(("wt%d" % i, w) for i, w in enumerate(model.get_weights()))
    members["yt0"] = model(x, training=False).numpy()
    store.save("%s/layers/%s.npz" % (root, case), members)


def groups(root):
    """Convolutions whose channels are in groups."""
    def case(name, kind, shape, **options):
        record(root, "%s_%s" % (kind.__name__.lower(), name), kind.__name__, shape,
               [kind(4, 1, name="in"), kind(name="it", **options), kind(2, 1, name="out")])

    case("groups", L.Conv1D, (6, 2), filters=6, kernel_size=3, groups=2, padding="causal", dilation_rate=2)
    case("groups", L.Conv2D, (5, 4, 2), filters=6, kernel_size=3, groups=2, activation="tanh")
    case("groups_depthwise", L.Conv2D, (4, 5, 2), filters=8, kernel_size=(2, 3), groups=4, strides=2, padding="same")
    case("groups_dilated", L.Conv2D, (5, 4, 2), filters=2, kernel_size=2, groups=2, dilation_rate=2, use_bias=False)
    case("groups", L.Conv3D, (3, 3, 4, 2), filters=4, kernel_size=2, groups=2, padding="same")


def run(root):
    """All of this module."""
    groups(root)
