# SPDX-License-Identifier: Apache-2.0
"""Cases: train_on_batch and test_on_batch with class_weight for each output and with reset_metrics."""
import json
import os

import numpy as np

from . import store
from .model_case import set_initial_weights
from .session import VERSIONS, keras

L = keras.layers
GROUP = "on_batch"
SIZES = [4, 3, 5, 4]


def two_outputs():
    """x (4) -> hidden (5, tanh) -> a (3, softmax) and b (1, sigmoid)"""
    x = L.Input((4,), name="x")
    hidden = L.Dense(5, activation="tanh", name="hidden")(x)
    return keras.Model(x, [L.Dense(3, activation="softmax", name="a")(hidden),
                           L.Dense(1, activation="sigmoid", name="b")(hidden)])


def one_output():
    """x (4) -> a (3, softmax)"""
    x = L.Input((4,), name="x")
    return keras.Model(x, L.Dense(3, activation="softmax", name="a")(x))


def batches(random, sparse, outputs, weighted):
    """Returns the inputs, the targets of each output and the sample weights of each batch."""
    made = []
    for size in SIZES:
        labels = random.randint(0, 3, size)
        a = labels if sparse else np.eye(3, dtype="float32")[labels]
        b = random.randint(0, 2, (size, 1)).astype("float32")
        made.append((random.normal(0.0, 1.0, (size, 4)).astype("float32"), [a, b][:outputs],
                     [random.uniform(0.5, 2.0, size).astype("float32") for _ in range(outputs if weighted else 0)]))
    return made


def record(root, case, build, calls, sparse=False, weighted=False, class_weight=None, by_list=False):
    """calls: for each batch "train" or "test", and reset_metrics.  class_weight: by output, {class: weight} or None."""
    random = store.random_for(GROUP + "/" + case)
    keras.backend.clear_session()
    model = build()
    set_initial_weights(random, model, 1.0)
    names = model.output_names
    loss = ["sparse_categorical_crossentropy" if sparse else "categorical_crossentropy", "binary_crossentropy"]
    model.compile("sgd", loss=loss[:len(names)], metrics=["accuracy", "mse"] if not sparse else ["accuracy"],
                  weighted_metrics=["accuracy"])
    weights = [w for layer in model.layers for w in layer.get_weights()]
    members = {"config": store.text(model.to_json())}
    members.update({"w%d" % i: w for i, w in enumerate(weights)})
    results = []
    for k, ((what, reset), (x, y, sw)) in enumerate(zip(calls, batches(random, sparse, len(names), weighted))):
        members["x%d" % k] = x
        members.update({"t%d_%d" % (k, i): t for i, t in enumerate(y)})
        members.update({"sw%d_%d" % (k, i): s for i, s in enumerate(sw)})
        more = {"sample_weight": sw if len(names) > 1 else sw[0]} if sw else {}
        if what == "train" and class_weight:
            more["class_weight"] = ([class_weight.get(n) for n in names] if by_list else
                                    class_weight if len(names) > 1 else class_weight[names[0]])
        call = model.train_on_batch if what == "train" else model.test_on_batch
        results.append(call(x, y if len(names) > 1 else y[0], reset_metrics=reset, **more))
    members["results"] = np.array(results)
    members.update({"wt%d" % i: w for i, w in enumerate(w for layer in model.layers for w in layer.get_weights())})
    members["meta"] = store.text({
        "versions": VERSIONS, "group": GROUP, "case": case, "class_name": "Model", "notes": "",
        "loss": loss[:len(names)], "metrics": ["accuracy"] if sparse else ["accuracy", "mse"],
        "calls": [what for what, _ in calls], "reset_metrics": [reset for _, reset in calls],
        "metrics_names": model.metrics_names, "sample_weights": weighted,
        "class_weight": {name: {str(c): w for c, w in value.items()}
                         for name, value in (class_weight or {}).items() if value}})
    store.save(os.path.join(root, GROUP, case + ".npz"), members)
    print(json.dumps({"case": case, "results": np.array(results).tolist()}))


def run(root):
    """Records all cases."""
    mixed = [("train", False), ("train", False), ("test", False), ("train", True)]
    alone = [("train", True)] * 4
    both = {"a": {0: 0.5, 1: 2.0, 2: 1.0}, "b": {0: 1.0, 1: 3.0}}
    record(root, "reset_metrics", two_outputs, mixed)
    record(root, "reset_metrics_one_output", one_output, mixed)
    record(root, "reset_in_between", two_outputs, [("train", False), ("test", True), ("train", False), ("train", True)],
           weighted=True)
    record(root, "class_weight_two_outputs", two_outputs, alone, class_weight=both)
    record(root, "class_weight_list", two_outputs, alone, class_weight={"b": both["b"]}, by_list=True)
    record(root, "class_weight_sparse", two_outputs, mixed, class_weight=both, sparse=True, weighted=True)
    record(root, "class_weight_one_output", one_output, alone, class_weight={"a": both["a"]}, weighted=True)
