# SPDX-License-Identifier: Apache-2.0
"""Records layers that only current Keras has: keras-3/layers/*.npz, in the format of keras-2.3.1/layers.

The configuration is written in the form of Keras 2.3.1 (a Sequential of layers with their own keys), which leat reads."""
import collections
import json
import os

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from recorder import store  # noqa: E402

L = keras.layers
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "keras-3")
STEPS = 3
RATE = 0.1
COMMON = ("name", "trainable", "dtype", "build_config")


def plain(value):
    """A part of a configuration as 2.3.1 has it: no modules, no registered names, one class of penalties."""
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
    """Its keys as Keras 2.3.1 would write them, before the layer is built (which changes axis)."""
    config = {"name": layer.name, "trainable": layer.trainable, "dtype": "float32"}
    if shape is not None:
        config["batch_input_shape"] = [None] + list(shape)
    own = {k: plain(v) for k, v in layer.get_config().items() if k not in COMMON}
    if isinstance(layer, L.Dense):
        for key in ("quantization_config", "lora_rank"):
            own.pop(key, None)
        own.setdefault("activity_regularizer", None)
        own["activation"] = layer.get_config()["activation"]
    return {"class_name": layer.__class__.__name__, "config": dict(config, **own)}


def initial(random, variable):
    """A value by what the variable is."""
    shape = tuple(variable.shape)
    if variable.name in ("gamma", "variance"):
        return random.uniform(0.5, 1.5, shape)
    if variable.name == "count":
        return np.zeros(shape)
    scale = 0.3 if len(shape) < 2 else 1.0 / np.sqrt(max(2.0, np.prod(shape[:-1])))
    return random.normal(0.0, scale, shape)


def listed(prefix, values):
    """Numbers the arrays."""
    return collections.OrderedDict(("%s%d" % (prefix, i), np.asarray(v)) for i, v in enumerate(values))


def weights_of(model):
    """By layer."""
    return [w for layer in model.layers for w in layer.weights]


def total_loss(model, x, t):
    """What compile's mean_squared_error gives in training, and the penalties."""
    error = tf.reduce_mean(tf.square(model(x, training=True) - t))
    return error + tf.add_n([tf.convert_to_tensor(p) for p in model.losses] or [tf.constant(0.0)])


def train(model, x, t, members):
    """Loss, gradients, and some steps of plain gradient descent, with the constraints after each."""
    variables = model.trainable_variables
    losses = []
    for step in range(STEPS):
        with tf.GradientTape() as tape:
            loss = total_loss(model, x, t)
        gradients = tape.gradient(loss, [v.value for v in variables])
        if step == 0:
            members["loss0"] = loss.numpy()
            members["test0"] = [loss.numpy()]
            members.update(listed("g", [tf.convert_to_tensor(g) for g in gradients]))
        losses.append(loss.numpy())
        for variable, gradient in zip(variables, gradients):
            variable.assign_sub(RATE * gradient)
            if variable.constraint is not None:
                variable.assign(variable.constraint(variable))
    members["train_loss"] = losses
    members["train_outputs"] = [[loss] for loss in losses]
    members.update(listed("wt", [w.numpy() for w in weights_of(model)]))
    members["yt0"] = model(x, training=False).numpy()


def case(name, class_name, shape, *makes, scale=1.0, batch=3, notes="", trains=True):
    """A stack of layers with fixed weights: prediction, loss, gradients, steps."""
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
    t = random.normal(0.0, 1.0, (batch,) + tuple(y.shape[1:])).astype("float32")
    weights = weights_of(model)
    members = collections.OrderedDict()
    members["meta"] = store.text({
        "keras": keras.__version__, "tensorflow": tf.__version__, "group": "layers", "case": name,
        "class_name": class_name, "loss": "mean_squared_error", "metrics": [], "weighted_metrics": [],
        "optimizer": {"class_name": "SGD", "config": {"learning_rate": RATE}}, "steps": STEPS,
        "weights": [w.path for w in weights],
        "trainable": [i for w in model.trainable_variables for i, v in enumerate(weights) if v is w],
        "metrics_names": ["loss"], "notes": notes,
    })
    members["config"] = store.text(json.dumps({
        "class_name": "Sequential", "config": {"name": "sequential_1", "layers": config},
        "keras_version": "2.3.1", "backend": "tensorflow"}))
    members.update(listed("x", [x]))
    members.update(listed("t", [t]))
    members.update(listed("w", [w.numpy() for w in weights]))
    members["y0"] = model(x, training=False).numpy()
    if trains:
        train(model, x, t, members)
    store.save("%s/layers/%s.npz" % (ROOT, name), members)


def activations():
    """Each activation that 2.3.1 lacks, between two Dense layers."""
    for name in ("relu6", "leaky_relu", "celu", "gelu", "silu", "hard_silu", "mish", "hard_tanh", "sparse_sigmoid",
                 "log_softmax", "log_sigmoid", "tanh_shrink", "soft_shrink", "hard_shrink", "squareplus",
                 "sparse_plus"):
        case("activation_" + name, "Activation", (5,), lambda: L.Dense(6),
             lambda: L.Activation(name), lambda: L.Dense(2), scale=3.0, batch=4)
    case("activation_log_softmax_rank3", "Activation", (3, 4), lambda: L.Dense(5), lambda: L.Activation("log_softmax"))


def normalizations():
    """Layer, group and unit normalisation: axes, parameters, penalties."""
    def one(name, shape, make, **options):
        case(name, make().__class__.__name__, shape, lambda: L.Dense(shape[-1]), make, lambda: L.Dense(2), **options)
    layer, group, unit = L.LayerNormalization, L.GroupNormalization, L.UnitNormalization
    one("layernorm", (6,), lambda: layer())
    one("layernorm_rank3", (3, 4), lambda: layer(epsilon=1e-6))
    one("layernorm_rank4", (2, 3, 4), lambda: layer())
    one("layernorm_axis1", (3, 4), lambda: layer(axis=1))
    one("layernorm_axes", (3, 2, 4), lambda: layer(axis=[1, 3]))
    one("layernorm_neighbours", (3, 2, 4), lambda: layer(axis=[2, 3]))
    one("layernorm_no_center", (6,), lambda: layer(center=False))
    one("layernorm_no_scale", (6,), lambda: layer(scale=False))
    one("layernorm_regularized", (6,), lambda: layer(
        gamma_regularizer=keras.regularizers.L2(0.01), beta_regularizer=keras.regularizers.L1(0.02),
        gamma_constraint=keras.constraints.MaxNorm(1.5), beta_constraint=keras.constraints.NonNeg()))
    one("groupnorm", (2, 3, 6), lambda: group(groups=3))
    one("groupnorm_instance", (3, 2, 4), lambda: group(groups=-1, epsilon=1e-5))
    one("groupnorm_one", (3, 4), lambda: group(groups=1))
    one("groupnorm_axis1", (4, 2, 3), lambda: group(groups=2, axis=1))
    one("groupnorm_vector", (6,), lambda: group(groups=2, center=False))
    one("groupnorm_no_scale", (2, 4), lambda: group(groups=2, scale=False))
    one("unitnorm", (5,), lambda: unit())
    one("unitnorm_axis1", (3, 4), lambda: unit(axis=1))
    one("unitnorm_axes", (3, 4), lambda: unit(axis=[1, 2]))


def rescalings():
    """Rescaling and Normalization: numbers, lists, weights."""
    def one(name, shape, make, **options):
        case(name, make().__class__.__name__, shape, make, lambda: L.Dense(3), **options)
    one("rescaling", (4,), lambda: L.Rescaling(0.5, offset=-1.0))
    one("rescaling_list", (2, 3), lambda: L.Rescaling([0.5, 1.5, 2.0], offset=[0.0, 1.0, -1.0]))
    one("normalization_weights", (4,), lambda: L.Normalization())
    one("normalization_two_axes", (2, 3), lambda: L.Normalization(axis=(1, 2)))
    one("normalization_list", (2, 3), lambda: L.Normalization(mean=[0.5, 0.0, 1.0], variance=[0.25, 1.0, 2.0]))
    one("normalization_number", (4,), lambda: L.Normalization(axis=None, mean=0.5, variance=0.25))
    one("normalization_invert", (4,), lambda: L.Normalization(invert=True))


def keepdims():
    """Global pooling that keeps its axes, GlobalAveragePooling's later argument."""
    for kind, shape in ((L.GlobalAveragePooling2D, (2, 3, 4)), (L.GlobalMaxPooling1D, (3, 4))):
        case(kind.__name__.lower() + "_keepdims", kind.__name__, shape, lambda: L.Dense(3),
             lambda: kind(keepdims=True), lambda: L.Dense(2))


def main():
    """Records all."""
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    for part in (activations, normalizations, rescalings, keepdims):
        part()


if __name__ == "__main__":
    main()
