# SPDX-License-Identifier: Apache-2.0
"""Cases of current Keras: its optimizers, and its options of the older ones: the weights after each of ten steps.

Networks and data are those of 2.3.1's cases, but for one with a kernel of three axes."""
import collections
import json
import os

import keras
import numpy as np
import tensorflow as tf

from . import store

GROUP = "optimizers"
STEPS = 10
OLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "keras-2.3.1", GROUP)

# The attributes of an optimizer that contain its slots, and their names in files.
SLOTS = {
    "SGD": [("momentums", "moment")],
    "Adam": [("_momentums", "m"), ("_velocities", "v"), ("_velocity_hats", "vhat")],
    "AdamW": [("_momentums", "m"), ("_velocities", "v"), ("_velocity_hats", "vhat")],
    "RMSprop": [("_velocities", "accumulator"), ("_momentums", "momentum"),
                ("_average_gradients", "average_gradient")],
    "Adagrad": [("_accumulators", "accumulator")],
    "Adadelta": [("_accumulated_grads", "accumulator"), ("_accumulated_delta_vars", "delta_accumulator")],
    "Adamax": [("_m", "m"), ("_u", "u")],
    "Nadam": [("_momentums", "m"), ("_velocities", "v")],
    "Lion": [("_momentums", "momentum")],
    "Ftrl": [("_accumulators", "accumulator"), ("_linears", "linear")],
    "Adafactor": [("_r", "r"), ("_c", "c"), ("_v", "v")],
    "Lamb": [("_momentums", "m"), ("_velocities", "v")],
    "ScheduleFreeAdamW": [("_momentums", "m"), ("_velocities", "v")],
    "Muon": [("momentums", "momentum"), ("adam_velocities", "velocity")],
}
CLIPPING = {
    "clipnorm": {"clipnorm": 0.3},
    "global_clipnorm": {"global_clipnorm": 0.5},
    "clipvalue": {"clipvalue": 0.1},
}
OPTIONS = {
    "AdamW": {
        "default": {"learning_rate": 0.01},
        "weight_decay": {"learning_rate": 0.02, "weight_decay": 0.5},
        "amsgrad": {"learning_rate": 0.05, "beta_2": 0.5, "amsgrad": True},
        "ema": {"learning_rate": 0.02, "use_ema": True, "ema_momentum": 0.7},
        "ema_overwrite": {"learning_rate": 0.02, "use_ema": True, "ema_momentum": 0.8,
                          "ema_overwrite_frequency": 3},
    },
    "Lion": {
        "default": {"learning_rate": 0.01},
        "betas": {"learning_rate": 0.02, "beta_1": 0.6, "beta_2": 0.7},
        "weight_decay": {"learning_rate": 0.02, "weight_decay": 0.3},
    },
    "Adafactor": {
        "default": {"learning_rate": 0.05},
        "absolute": {"learning_rate": 0.1, "relative_step": False},
        "options": {"learning_rate": 0.2, "beta_2_decay": -0.5, "epsilon_1": 1e-4, "epsilon_2": 0.2,
                    "clip_threshold": 0.5},
        "weight_decay": {"learning_rate": 0.1, "weight_decay": 0.2},
    },
    "Ftrl": {
        "default": {"learning_rate": 0.1},
        "power": {"learning_rate": 0.1, "learning_rate_power": -0.7, "initial_accumulator_value": 0.5},
        "strengths": {"learning_rate": 0.2, "l1_regularization_strength": 0.05,
                      "l2_regularization_strength": 0.1, "l2_shrinkage_regularization_strength": 0.02,
                      "beta": 0.3},
        "weight_decay": {"learning_rate": 0.1, "weight_decay": 0.2},
    },
    "Adam": {
        "default": {"learning_rate": 0.01},
        "epsilon": {"learning_rate": 0.01, "epsilon": 0.01},
        "amsgrad": {"learning_rate": 0.05, "beta_2": 0.5, "amsgrad": True},
        "betas": {"learning_rate": 0.01, "beta_1": 0.5, "beta_2": 0.9},
        "weight_decay": {"learning_rate": 0.02, "weight_decay": 0.1},
        "ema": {"learning_rate": 0.01, "amsgrad": True, "use_ema": True, "ema_momentum": 0.5},
    },
    "RMSprop": {
        "default": {},
        "rho": {"learning_rate": 0.01, "rho": 0.5},
        "epsilon": {"learning_rate": 0.01, "epsilon": 0.01},
        "momentum": {"learning_rate": 0.01, "momentum": 0.7},
        "centered": {"learning_rate": 0.01, "rho": 0.7, "epsilon": 1e-3, "centered": True},
        "everything": {"learning_rate": 0.01, "momentum": 0.5, "centered": True, "epsilon": 1e-3,
                       "weight_decay": 0.1, "use_ema": True, "ema_momentum": 0.6},
        "weight_decay": {"learning_rate": 0.01, "weight_decay": 0.5},
    },
    "Adagrad": {
        "default": {},
        "epsilon": {"learning_rate": 0.05, "epsilon": 0.1},
        "accumulator": {"learning_rate": 0.05, "initial_accumulator_value": 0.0},
        "weight_decay": {"learning_rate": 0.05, "weight_decay": 0.2},
    },
    "Adadelta": {
        "default": {},
        "rho": {"learning_rate": 1.0, "rho": 0.5},
        "epsilon": {"learning_rate": 1.0, "epsilon": 1e-3},
        "weight_decay": {"learning_rate": 1.0, "weight_decay": 0.05},
    },
    "Adamax": {
        "default": {},
        "betas": {"learning_rate": 0.02, "beta_1": 0.5, "beta_2": 0.8},
        "epsilon": {"learning_rate": 0.02, "epsilon": 0.01},
        "weight_decay": {"learning_rate": 0.02, "weight_decay": 0.2},
    },
    "Nadam": {
        "default": {},
        "betas": {"learning_rate": 0.02, "beta_1": 0.5, "beta_2": 0.8},
        "epsilon": {"learning_rate": 0.02, "epsilon": 0.01},
        "weight_decay": {"learning_rate": 0.02, "weight_decay": 0.2},
    },
    "SGD": {
        "default": {"learning_rate": 0.1},
        "momentum": {"learning_rate": 0.1, "momentum": 0.9},
        "nesterov": {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True},
        "weight_decay": {"learning_rate": 0.1, "weight_decay": 0.2},
        "momentum_ema": {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True, "use_ema": True,
                         "ema_overwrite_frequency": 4, "weight_decay": 0.1},
        "batches": {"learning_rate": 0.1, "momentum": 0.9, "gradient_accumulation_steps": 3, "clipnorm": 0.3},
    },
    "Lamb": {
        "default": {"learning_rate": 0.05},
        "betas": {"learning_rate": 0.05, "beta_1": 0.5, "beta_2": 0.8},
        "epsilon": {"learning_rate": 0.05, "epsilon": 0.01},
        "weight_decay": {"learning_rate": 0.05, "weight_decay": 0.2},
    },
    "ScheduleFreeAdamW": {
        "default": {"learning_rate": 0.02},
        "betas": {"learning_rate": 0.02, "beta_1": 0.6, "beta_2": 0.8, "epsilon": 1e-3},
        "warmup": {"learning_rate": 0.05, "warmup_steps": 6},
        "weight_decay": {"learning_rate": 0.02, "weight_decay": 0.2},
    },
    "Muon": {
        "default": {"learning_rate": 0.02},
        "plain": {"learning_rate": 0.02, "nesterov": False, "rms_rate": None, "momentum": 0.7, "ns_steps": 3,
                  "weight_decay": None, "adam_weight_decay": None},
        "options": {"learning_rate": 0.02, "muon_a": 3.0, "muon_b": -3.5, "muon_c": 1.5, "adam_lr_ratio": 0.5,
                    "adam_beta_1": 0.6, "adam_beta_2": 0.8, "epsilon": 1e-3, "weight_decay": 0.2,
                    "adam_weight_decay": 0.1},
    },
}
BATCHES = {
    "adam_batches": ("Adam", {"learning_rate": 0.02, "gradient_accumulation_steps": 2}),
    "adam_batches_ema": ("Adam", {"learning_rate": 0.02, "gradient_accumulation_steps": 3, "amsgrad": True,
                                  "use_ema": True, "ema_momentum": 0.6, "ema_overwrite_frequency": 2}),
    "nadam_batches": ("Nadam", {"learning_rate": 0.02, "gradient_accumulation_steps": 4, "weight_decay": 0.1}),
    "muon_batches": ("Muon", {"learning_rate": 0.02, "gradient_accumulation_steps": 2}),
    "adafactor_batches": ("Adafactor", {"learning_rate": 0.05, "gradient_accumulation_steps": 2}),
}
CLIPPED_RATE = {"RMSprop": 0.01, "Adagrad": 0.05, "Adadelta": 1.0, "Adamax": 0.02, "Nadam": 0.02, "SGD": 0.1, "Adam": 0.01, "AdamW": 0.01, "Lion": 0.02, "Adafactor": 0.1, "Ftrl": 0.1,
                "Lamb": 0.05, "ScheduleFreeAdamW": 0.02, "Muon": 0.02}


def dense(constrained):
    """Returns the network of the cases of 2.3.1."""
    constraint = keras.constraints.MaxNorm(0.8) if constrained else None
    return keras.Sequential([
        keras.layers.Input((4,)),
        keras.layers.Dense(3, activation="tanh", kernel_constraint=constraint),
        keras.layers.Dense(2),
    ])


def convolution():
    """Returns a network with a kernel of three axes, and its configuration in the form of 2.3.1."""
    config = {"class_name": "Sequential", "keras_version": "2.3.1", "config": {"name": "line", "layers": [
        {"class_name": "Conv1D", "config": {"name": "scan", "batch_input_shape": [None, 5, 3], "filters": 4,
                                            "kernel_size": [2], "activation": "tanh"}}]}}
    model = keras.Sequential([keras.layers.Input((5, 3)), keras.layers.Conv1D(4, 2, activation="tanh")])
    random = store.random_for("keras-3/" + GROUP)
    weights = [random.normal(0.0, 0.5, w.shape).astype("float32") for w in model.weights]
    x = random.normal(0.0, 1.0, (3, 5, 3)).astype("float32")
    t = random.normal(0.0, 1.0, (3, 4, 4)).astype("float32")
    return model, json.dumps(config), weights, x, t


def embedding(calls=1, penalty=None):
    """Returns a network with a table whose rows are looked up more than once in a batch, and the configuration of it.
    TensorFlow's gradient of the table is then a list of rows (IndexedSlices) with repeated indices; with a penalty it is
    a tensor."""
    numbers = keras.layers.Input((4,), dtype="int32", name="numbers")
    table = keras.layers.Embedding(6, 3, name="table", embeddings_regularizer=penalty)
    y = table(numbers)
    if calls > 1:
        other = keras.layers.Input((4,), dtype="int32", name="others")
        y = keras.layers.Add(name="sum")([y, table(other)])
    y = keras.layers.Dense(2, name="head")(keras.layers.Flatten(name="flat")(y))
    model = keras.Model([numbers, other] if calls > 1 else numbers, y, name="lookup")
    random = store.random_for("keras-3/%s/lookup%d" % (GROUP, calls))
    weights = [random.normal(0.0, 0.5, w.shape).astype("float32") for w in model.weights]
    x = [random.randint(0, 5, (3, 4)).astype("int32") for _ in range(calls)]
    t = random.normal(0.0, 1.0, (3, 2)).astype("float32")
    return model, model.to_json(), weights, x, t


def older(constrained):
    """Returns the network, configuration, weights and data of a case of 2.3.1."""
    case = np.load(os.path.join(OLDER, "adam_constraint.npz" if constrained else "adam_default.npz"))
    weights = [case["w%d" % i] for i in range(4)]
    return dense(constrained), case["config"].tobytes().decode("utf-8"), weights, case["x0"], case["t0"]


def state_of(optimizer, class_name, weights):
    """Returns names and arrays as in files: iterations, then slot by slot; an unused slot has zeros, an unused vhat a
    single zero."""
    names, arrays = [class_name + "/iterations:0"], [int(optimizer._iterations.numpy())]
    slots = [(getattr(optimizer, attribute, None), name) for attribute, name in SLOTS[class_name]]
    slots = [(values, name) for values, name in slots if values or class_name != "RMSprop"]
    if class_name == "Nadam":
        names.append("Nadam/m_schedule:0")
        arrays.append(optimizer._u_product.numpy())
    if optimizer.use_ema:
        slots.append((optimizer._model_variables_moving_average, "average"))
    if optimizer.gradient_accumulation_steps:
        slots.append((optimizer._accumulated_gradients, "gradient_accumulator"))
    for values, name in slots:
        for i, weight in enumerate(weights):
            names.append("%s_%d:0" % (name, i))
            arrays.append(values[i].numpy() if values and values[i] is not None else np.zeros(1 if name == "vhat" else weight.shape))
    return names, arrays


def case(root, name, class_name, options, made=None):
    """Records ten steps on one batch."""
    model, config, weights, x, t = made or older(constrained=name.endswith("constraint"))
    model.set_weights(weights)
    optimizer = getattr(keras.optimizers, class_name)(**options)
    members = collections.OrderedDict([("meta", None), ("config", store.text(config))])
    members["opt_config"] = store.text(optimizer.get_config())
    x = x if isinstance(x, list) else [x]
    members.update(("x%d" % i, v) for i, v in enumerate(x))
    members["t0"] = t
    x = x if len(x) > 1 else x[0]
    members.update(("w%d" % i, w) for i, w in enumerate(weights))
    losses = []
    for step in range(1, STEPS + 1):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True) - t))
            if model.losses:
                loss += tf.add_n(model.losses)
        losses.append(float(loss))
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        members.update(("s%d_w%d" % (step, i), w) for i, w in enumerate(model.get_weights()))
    members["train_loss"] = losses
    names, arrays = state_of(optimizer, class_name, weights)
    members.update(("ow%d" % i, a) for i, a in enumerate(arrays))
    members["meta"] = store.text({
        "keras": keras.__version__, "tensorflow": tf.__version__, "group": GROUP, "case": name,
        "class_name": class_name, "arguments": {k: v for k, v in options.items() if k != "learning_rate" or isinstance(v, float)}, "loss": "mean_squared_error", "metrics": [],
        "optimizer": {"class_name": class_name, "config": optimizer.get_config()}, "steps": STEPS,
        "weights": [w.path for w in model.weights], "optimizer_weights": names, "notes": ""})
    store.save("%s/%s/%s.npz" % (root, GROUP, name), members)


def run(root):
    """Records all cases of this module; `root` contains the groups of current Keras."""
    for class_name, cases in OPTIONS.items():
        lower = class_name.lower()
        for name, options in cases.items():
            case(root, "%s_%s" % (lower, name), class_name, options)
        for name, options in CLIPPING.items():
            options = dict(options, learning_rate=CLIPPED_RATE[class_name])
            if class_name == "SGD":
                options["momentum"] = 0.5
            case(root, "%s_%s" % (lower, name), class_name, options)
    for class_name in OPTIONS:
        options = {"learning_rate": CLIPPED_RATE[class_name]}
        lower = class_name.lower()
        case(root, lower + "_rows", class_name, options, embedding())
    for class_name in ("SGD", "RMSprop", "Adam", "Adamax"):
        for name, clipping in CLIPPING.items():
            options = dict(clipping, learning_rate=CLIPPED_RATE[class_name])
            case(root, "%s_rows_%s" % (class_name.lower(), name), class_name, options, embedding())
    for class_name in ("Adam", "Adamax", "RMSprop"):
        case(root, class_name.lower() + "_rows_twice", class_name, {"learning_rate": CLIPPED_RATE[class_name]},
             embedding(2))
    case(root, "adam_rows_penalty", "Adam", {"learning_rate": CLIPPED_RATE["Adam"]}, embedding(penalty="l2"))
    for name, (class_name, options) in BATCHES.items():
        case(root, name, class_name, options)
    case(root, "adam_batches_rows", "Adam", {"learning_rate": 0.02, "gradient_accumulation_steps": 2}, embedding())
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 4, 0.5)
    case(root, "sgd_batches_schedule", "SGD", {"learning_rate": schedule, "gradient_accumulation_steps": 2})
    case(root, "muon_excluded", "Muon", {"learning_rate": 0.02, "exclude_layers": ["head"]}, embedding())
    case(root, "muon_embeddings", "Muon", {"learning_rate": 0.02, "exclude_embeddings": False}, embedding())
    for class_name in ("AdamW", "Lion", "Adafactor", "Ftrl", "Lamb", "ScheduleFreeAdamW", "Muon"):
        options = {"learning_rate": CLIPPED_RATE[class_name]}
        case(root, class_name.lower() + "_constraint", class_name, options)
        case(root, class_name.lower() + "_convolution", class_name, options, convolution())
