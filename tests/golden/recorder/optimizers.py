# SPDX-License-Identifier: Apache-2.0
"""Cases: each optimizer of 2.3.1, each option: the weights after each of ten steps."""
import collections

from . import store
from .model_case import TARGETS, as_json, put, set_initial_weights, weights_of
from .session import K, VERSIONS, keras

GROUP = "optimizers"
STEPS = 10
CLIPPING = {
    "clipnorm": {"clipnorm": 0.5},
    "clipnorm_loose": {"clipnorm": 1000.0},
    "clipvalue": {"clipvalue": 0.1},
    "clipnorm_clipvalue": {"clipnorm": 0.8, "clipvalue": 0.2},
}
OPTIONS = {
    "SGD": {
        "default": {},
        "lr": {"lr": 0.2},
        "momentum": {"momentum": 0.9},
        "nesterov": {"momentum": 0.9, "nesterov": True},
        "decay": {"learning_rate": 0.1, "decay": 0.1},
        "momentum_decay": {"learning_rate": 0.1, "momentum": 0.8, "decay": 0.05, "nesterov": True},
    },
    "RMSprop": {
        "default": {},
        "rho": {"learning_rate": 0.01, "rho": 0.5},
        "epsilon": {"learning_rate": 0.01, "epsilon": 0.01},
        "decay": {"learning_rate": 0.01, "decay": 0.1},
    },
    "Adagrad": {
        "default": {},
        "epsilon": {"learning_rate": 0.05, "epsilon": 0.1},
        "decay": {"learning_rate": 0.05, "decay": 0.1},
    },
    "Adadelta": {
        "default": {},
        "rho": {"rho": 0.5},
        "epsilon": {"epsilon": 1e-3},
        "lr": {"learning_rate": 10.0},
        "decay": {"learning_rate": 10.0, "decay": 0.1},
    },
    "Adam": {
        "default": {},
        "amsgrad": {"learning_rate": 0.05, "beta_2": 0.5, "amsgrad": True},
        "betas": {"learning_rate": 0.01, "beta_1": 0.5, "beta_2": 0.9},
        "epsilon": {"learning_rate": 0.01, "epsilon": 0.01},
        "decay": {"learning_rate": 0.01, "decay": 0.1},
    },
    "Adamax": {
        "default": {},
        "betas": {"learning_rate": 0.02, "beta_1": 0.5, "beta_2": 0.8},
        "epsilon": {"learning_rate": 0.02, "epsilon": 0.01},
        "decay": {"learning_rate": 0.02, "decay": 0.1},
    },
    "Nadam": {
        "default": {},
        "betas": {"learning_rate": 0.02, "beta_1": 0.5, "beta_2": 0.8},
        "epsilon": {"learning_rate": 0.02, "epsilon": 0.01},
        "schedule_decay": {"learning_rate": 0.02, "schedule_decay": 0.1},
    },
}
CLIPPED_RATE = {"SGD": 0.1, "RMSprop": 0.01, "Adagrad": 0.05, "Adadelta": 5.0, "Adam": 0.01,
                "Adamax": 0.01, "Nadam": 0.01}


def network(constrained):
    """Returns a small network with the same weights for every optimizer."""
    constraint = keras.constraints.MaxNorm(0.8) if constrained else None
    return keras.Sequential([
        keras.layers.Dense(3, activation="tanh", input_shape=(4,), kernel_constraint=constraint),
        keras.layers.Dense(2),
    ])


def case(root, name, class_name, options, constrained=False):
    """Records ten steps on one batch."""
    K.clear_session()
    random = store.random_for(GROUP)
    model = network(constrained)
    set_initial_weights(random, model, 1.0)
    x = random.normal(0.0, 1.0, (4, 4)).astype("float32")
    t = (2.0 * TARGETS["normal"](random, (4, 2))).astype("float32")
    optimizer = getattr(keras.optimizers, class_name)(**options)
    model.compile(optimizer, loss="mean_squared_error")
    meta = dict(VERSIONS)
    meta.update({"group": GROUP, "case": name, "class_name": class_name, "arguments": options,
                 "loss": as_json(model.loss), "optimizer": keras.optimizers.serialize(optimizer),
                 "metrics": [], "steps": STEPS, "weights": [w.name for w in weights_of(model)],
                 "notes": ""})
    members = collections.OrderedDict([("meta", None), ("config", store.text(model.to_json()))])
    members["opt_config"] = store.text(optimizer.get_config())
    members["x0"], members["t0"] = x, t
    put(members, "w", model.get_weights())
    losses = []
    for step in range(1, STEPS + 1):
        losses.append(model.train_on_batch(x, t))
        put(members, "s%d_w" % step, model.get_weights())
    members["train_loss"] = losses
    put(members, "ow", optimizer.get_weights())
    meta["optimizer_weights"] = [w.name for w in optimizer.weights]
    members["meta"] = store.text(meta)
    store.save("%s/%s/%s.npz" % (root, GROUP, name), members)


def run(root):
    """Records all cases of this module."""
    for class_name, cases in OPTIONS.items():
        for name, options in cases.items():
            case(root, "%s_%s" % (class_name.lower(), name), class_name, options)
        for name, options in CLIPPING.items():
            options = dict(options, learning_rate=CLIPPED_RATE[class_name])
            case(root, "%s_%s" % (class_name.lower(), name), class_name, options)
        options = {"learning_rate": CLIPPED_RATE[class_name]}
        case(root, class_name.lower() + "_constraint", class_name, options, constrained=True)
