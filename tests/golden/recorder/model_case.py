# SPDX-License-Identifier: Apache-2.0
"""Records a model: forward pass, gradients and a few training steps from fixed weights."""
import collections
import json

import numpy as np

from . import store
from .session import K, VERSIONS, keras, tf

SGD = ("SGD", {"learning_rate": 0.1})


def initial_weight(random, variable):
    """Returns a value that suits the kind of the variable and keeps the layer well conditioned."""
    shape = K.int_shape(variable)
    name = variable.name
    if "gamma" in name or "moving_variance" in name:
        return random.uniform(0.5, 1.5, shape)
    scale = 0.3 if len(shape) < 2 else 1.0 / np.sqrt(max(2.0, np.prod(shape[:-1])))
    return random.normal(0.0, scale, shape)


def one_hot(random, shape):
    """Returns one-hot rows."""
    labels = random.randint(0, shape[-1], shape[:-1])
    return np.eye(shape[-1], dtype="float32")[labels]


TARGETS = {
    "normal": lambda random, shape: random.normal(0.0, 1.0, shape),
    "positive": lambda random, shape: random.uniform(0.1, 2.0, shape),
    "onehot": one_hot,
    "sparse": lambda random, shape: random.randint(0, shape[-1], shape[:-1] + (1,)),
    "sparse_flat": lambda random, shape: random.randint(0, shape[-1], shape[:-1]),
    "binary": lambda random, shape: random.randint(0, 2, shape).astype("float32"),
    "pm1": lambda random, shape: random.choice([-1.0, 1.0], shape),
    "distribution": lambda random, shape: random.dirichlet(np.ones(shape[-1]), shape[:-1]),
}


def as_json(value):
    """Losses, metrics and optimizers the way Keras writes them into a file."""
    if isinstance(value, (list, tuple)):
        return [as_json(v) for v in value]
    if isinstance(value, dict):
        return {k: as_json(v) for k, v in value.items()}
    if hasattr(value, "get_config"):
        return {"class_name": value.__class__.__name__, "config": value.get_config()}
    if callable(value):
        return value.__name__
    return value


def make_inputs(random, model, batch, inputs, scale):
    """One array per model input, unless the case brings its own."""
    if inputs is not None:
        return [np.asarray(x) for x in inputs]
    shapes = [(batch,) + K.int_shape(x)[1:] for x in model.inputs]
    return [random.normal(0.0, scale, shape).astype("float32") for shape in shapes]


def make_targets(random, model, batch, kinds):
    """One array per model output: a kind from TARGETS, or an array."""
    shapes = [(batch,) + K.int_shape(y)[1:] for y in model.outputs]
    if not isinstance(kinds, (list, tuple)):
        kinds = [kinds] * len(shapes)
    return [
        (TARGETS[kind](random, shape) if isinstance(kind, str) else np.asarray(kind))
        for kind, shape in zip(kinds, shapes)
    ]


def weights_of(model):
    """Returns the weights in the order of model.get_weights(), by layer.  (model.weights has all trainable ones
    first.)"""
    return [w for layer in model.layers for w in layer.weights]


def set_initial_weights(random, model, weights_scale):
    """Fills every weight, in model.get_weights() order."""
    model.set_weights([initial_weight(random, w) * weights_scale for w in weights_of(model)])


def listed(value):
    """Returns a list, because Keras returns one array or a list."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def gradients(model, x, t, sw):
    """d total loss / d each trainable weight, in training mode."""
    params = model._collected_trainable_weights
    x, t, w = model._standardize_user_data(x, t, sample_weight=sw)
    grads = [g if g is None else tf.convert_to_tensor(g) for g in K.gradients(model.total_loss, params)]
    present = [g for g in grads if g is not None]
    inputs = model._feed_inputs + model._feed_targets + model._feed_sample_weights
    values = x + t + w
    if model._uses_dynamic_learning_phase():
        inputs, values = inputs + [K.learning_phase()], values + [1]
    values = iter(K.function(inputs, present)(values))
    return [None if g is None else next(values) for g in grads]


def _index(variables, wanted):
    return [next(i for i, v in enumerate(variables) if v is w) for w in wanted]


def put(members, prefix, arrays):
    """Returns the arrays under numbered names: w0, w1, ..."""
    for i, array in enumerate(arrays):
        if array is not None:
            members["%s%d" % (prefix, i)] = array


def compile_model(model, spec):
    """Compiles with the optimizer of the case."""
    class_name, config = spec["optimizer"]
    optimizer = getattr(keras.optimizers, class_name)(**config)
    model.compile(
        optimizer,
        loss=spec["loss"],
        metrics=spec["metrics"],
        weighted_metrics=spec["weighted_metrics"],
        loss_weights=spec["loss_weights"],
        sample_weight_mode=spec["sample_weight_mode"],
    )
    return optimizer


def describe(spec, model, optimizer, group, case):
    """Returns the member `meta`."""
    meta = dict(VERSIONS)
    meta.update({
        "group": group,
        "case": case,
        "class_name": spec["class_name"],
        "loss": as_json(spec["loss"]),
        "loss_weights": spec["loss_weights"],
        "metrics": as_json(spec["metrics"] or []),
        "weighted_metrics": as_json(spec["weighted_metrics"] or []),
        "sample_weight_mode": spec["sample_weight_mode"],
        "class_weight": spec["class_weight"],
        "optimizer": keras.optimizers.serialize(optimizer),
        "steps": spec["steps"],
        "weights": [w.name for w in weights_of(model)],
        "trainable": _index(weights_of(model), model._collected_trainable_weights),
        "metrics_names": model.metrics_names,
        "notes": spec["notes"],
    })
    return meta


DEFAULTS = {
    "batch": 3,
    "inputs": None,
    "input_scale": 1.0,
    "targets": "normal",
    "weights_scale": 1.0,
    "loss": "mean_squared_error",
    "loss_weights": None,
    "metrics": None,
    "weighted_metrics": None,
    "sample_weight": False,
    "sample_weight_mode": None,
    "class_weight": None,
    "optimizer": SGD,
    "steps": 3,
    "train": True,
    "notes": "",
    "adjust": None,
}


def record(root, group, case, class_name, build, **options):
    """Runs one case and writes <root>/<group>/<case>.npz.  build() returns an uncompiled model."""
    unknown = set(options) - set(DEFAULTS)
    if unknown:
        raise ValueError("%s/%s: unknown options %s" % (group, case, sorted(unknown)))
    spec = dict(DEFAULTS, class_name=class_name, **options)
    random = store.random_for("%s/%s" % (group, case))
    K.clear_session()
    for key in ("metrics", "weighted_metrics"):
        if callable(spec[key]):
            spec[key] = spec[key]()
    model = build()
    set_initial_weights(random, model, spec["weights_scale"])
    if spec["adjust"]:
        spec["adjust"](model, random)
    x = make_inputs(random, model, spec["batch"], spec["inputs"], spec["input_scale"])
    t = make_targets(random, model, len(x[0]), spec["targets"])
    sw = None
    if spec["sample_weight"]:
        modes = spec["sample_weight_mode"]
        if isinstance(modes, dict):
            modes = [modes.get(name) for name in model.output_names]
        if not isinstance(modes, list):
            modes = [modes] * len(t)
        sw = [random.uniform(0.0, 2.0, a.shape[:2 if mode else 1]) for a, mode in zip(t, modes)]
    optimizer = compile_model(model, spec)
    members = collections.OrderedDict()
    members["meta"] = store.text(describe(spec, model, optimizer, group, case))
    config = json.loads(model.to_json())
    members["config"] = store.text(json.dumps(config))
    put(members, "x", x)
    put(members, "t", t)
    put(members, "sw", sw or [])
    put(members, "w", model.get_weights())
    put(members, "y", listed(model.predict_on_batch(x)))
    if spec["train"]:
        _train(members, model, x, t, sw, spec)
    store.save("%s/%s/%s.npz" % (root, group, case), members)


def _train(members, model, x, t, sw, spec):
    """Records the loss of the initial weights, the gradients, and then the steps."""
    test = listed(model.test_on_batch(x, t, sample_weight=sw))
    members["loss0"] = test[0]
    members["test0"] = test
    if spec["class_weight"] is None:
        put(members, "g", gradients(model, x, t, sw))
    outputs = []
    for _ in range(spec["steps"]):
        outputs.append(
            listed(model.train_on_batch(x, t, sample_weight=sw, class_weight=spec["class_weight"])))
    members["train_loss"] = [o[0] for o in outputs]
    members["train_outputs"] = outputs
    put(members, "wt", model.get_weights())
    put(members, "yt", listed(model.predict_on_batch(x)))
