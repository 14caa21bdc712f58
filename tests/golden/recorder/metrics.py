# SPDX-License-Identifier: Apache-2.0
"""Cases: metrics as Model.compile makes them, over three batches of unequal size, plain and weighted."""
import collections

import numpy as np

from . import store
from .losses import ALIASES, FUNCTIONS, make
from .model_case import as_json
from .session import K, VERSIONS, keras

GROUP = "metrics"
SIZES = (4, 2, 3)


def case(root, name, metric, loss, batches, notes="", mode=None, weighted=True):
    """batches: pairs of y_true and y_pred; metric: a name or a function that makes a metric.

    weighted: True if Keras 2.3.1 supports sample weights for the metric."""
    K.clear_session()
    random = store.random_for(name + " weights")
    y_true = [np.asarray(t) for t, _ in batches]
    y_true = [t.astype("int32" if t.dtype.kind in "iu" else "float32") for t in y_true]
    y_pred = [np.asarray(p, dtype="float32") for _, p in batches]
    ranks = 2 if mode == "temporal" else 1
    weights = [random.uniform(0.0, 2.0, p.shape[:ranks]).astype("float32") for p in y_pred]
    x = keras.layers.Input(y_pred[0].shape[1:])
    model = keras.Model(x, keras.layers.Activation("linear")(x))
    made = [metric if isinstance(metric, str) else metric() for _ in range(2)]
    described = as_json(made[0])
    model.compile("sgd", loss=loss, metrics=[made[0]], weighted_metrics=[made[1]] if weighted else None,
                  sample_weight_mode=mode)
    meta = dict(VERSIONS)
    meta.update({"group": GROUP, "case": name, "metrics": [described], "loss": loss, "notes": notes,
                 "metrics_names": model.metrics_names, "sample_weight_mode": mode,
                 "aliases": ALIASES.get(metric, []) if isinstance(metric, str) else []})
    results = [
        model.test_on_batch(p, t, sample_weight=w, reset_metrics=False)
        for t, p, w in zip(y_true, y_pred, weights)
    ]
    members = collections.OrderedDict()
    members["meta"] = store.text(meta)
    for i, (t, p, w) in enumerate(zip(y_true, y_pred, weights)):
        members["y_true_%d" % i], members["y_pred_%d" % i], members["sw_%d" % i] = t, p, w
    members["result"] = [r[1] for r in results]
    if weighted:
        members["result_weighted"] = [r[2] for r in results]
    members["loss"] = [r[0] for r in results]
    store.save("%s/%s/%s.npz" % (root, GROUP, name), members)


def batches_of(name, true, pred, shape):
    """Batches of SIZES with targets and predictions of the kinds that losses.make knows."""
    random = store.random_for(name)
    return [(make(random, true, (n,) + shape), make(random, pred, (n,) + shape)) for n in SIZES]


def accuracies(root):
    """The metrics that 'accuracy' and 'crossentropy' stand for, which depend on the loss and the last axis of the
    output."""
    kinds = {
        "one_unit": ("mean_squared_error", "binary", "probability", (1,)),
        "binary": ("binary_crossentropy", "binary", "probability", (3,)),
        "categorical": ("categorical_crossentropy", "onehot", "distribution", (4,)),
        "sparse": ("sparse_categorical_crossentropy", "sparse", "distribution", (4,)),
        "mse": ("mean_squared_error", "onehot", "distribution", (4,)),
        "binary_rank3": ("binary_crossentropy", "binary", "probability", (2, 3)),
        "categorical_rank3": ("categorical_crossentropy", "onehot", "distribution", (2, 4)),
        "sparse_rank3": ("sparse_categorical_crossentropy", "sparse", "distribution", (2, 4)),
    }
    for metric in ("accuracy", "acc", "crossentropy", "ce"):
        for kind, (loss, true, pred, shape) in kinds.items():
            if metric in ("acc", "ce") and "rank3" in kind:
                continue
            name = "%s_%s" % (metric, kind)
            case(root, name, metric, loss, batches_of(name, true, pred, shape))
    for kind, mode in (("categorical_rank3", "temporal"), ("sparse_rank3", "temporal"),
                       ("binary_rank3", "temporal")):
        loss, true, pred, shape = kinds[kind]
        name = "accuracy_%s_temporal" % kind
        case(root, name, "accuracy", loss, batches_of(name, true, pred, shape), mode=mode)


def named(root):
    """The accuracy functions by their own names, and their classes with options."""
    m = keras.metrics
    mse = "mean_squared_error"
    sparse = "sparse_categorical_crossentropy"
    table = {
        "binary_accuracy": ("binary_accuracy", mse, "binary", "probability", (3,)),
        "categorical_accuracy": ("categorical_accuracy", mse, "onehot", "distribution", (4,)),
        "sparse_categorical_accuracy": ("sparse_categorical_accuracy", sparse, "sparse", "distribution",
                                        (4,)),
        "top_k_categorical_accuracy": ("top_k_categorical_accuracy", mse, "onehot", "distribution", (8,)),
        "sparse_top_k_categorical_accuracy": ("sparse_top_k_categorical_accuracy", sparse, "sparse",
                                              "distribution", (8,)),
        "class_binary_accuracy": (lambda: m.BinaryAccuracy(), mse, "binary", "probability", (3,)),
        "class_binary_accuracy_threshold": (lambda: m.BinaryAccuracy(threshold=0.7), mse, "binary",
                                            "probability", (3,)),
        "class_categorical_accuracy": (lambda: m.CategoricalAccuracy(), mse, "onehot", "distribution",
                                       (4,)),
        "class_sparse_categorical_accuracy": (lambda: m.SparseCategoricalAccuracy(), sparse, "sparse",
                                              "distribution", (4,)),
        "class_top_k3": (lambda: m.TopKCategoricalAccuracy(k=3), mse, "onehot", "distribution", (8,)),
        "class_top_k_default": (lambda: m.TopKCategoricalAccuracy(), mse, "onehot", "distribution", (8,)),
        "class_sparse_top_k3": (lambda: m.SparseTopKCategoricalAccuracy(k=3), sparse, "sparse",
                                "distribution", (8,)),
        "class_accuracy": (lambda: m.Accuracy(), mse, "binary", "binary", (3,)),
    }
    for name, (metric, loss, true, pred, shape) in table.items():
        case(root, name, metric, loss, batches_of(name, true, pred, shape))


def losses_as_metrics(root):
    """Each loss function as a metric."""
    for loss, (true, pred) in FUNCTIONS.items():
        if loss == "huber_loss":
            continue
        for shape in ((4,), (2, 3)):
            name = "%s_rank%d" % (loss, len(shape) + 1)
            notes = "as a metric it is the plain cosine, not its negative" if "cosine" in loss else ""
            other = loss if "sparse" in loss else "mean_squared_error"
            case(root, name, loss, other, batches_of(name, true, pred, shape), notes=notes)
    for alias in ("mse", "mae", "mape", "msle", "cosine", "cosine_similarity"):
        loss = next(k for k, v in ALIASES.items() if alias in v)
        true, pred = FUNCTIONS[loss]
        case(root, "alias_" + alias, alias, "mean_squared_error",
             batches_of(alias, true, pred, (4,)))
    case(root, "mean_squared_error_temporal", "mse", "mean_squared_error",
         batches_of("temporal", "normal", "normal", (2, 3)), mode="temporal")


def edges(root):
    """Equal predictions, and predictions of one half."""
    mse = "mean_squared_error"
    half = [([[0.0, 1.0], [1.0, 0.0]], [[0.5, 0.5], [1.5, -0.5]]), ([[1.0, 0.0]], [[2.5, 0.4999]]),
            ([[1.0, 1.0]], [[0.5001, 0.9]])]
    case(root, "binary_accuracy_halves", "binary_accuracy", mse, half, notes="rounds halves to even")
    ties = [(np.eye(3)[[0, 1, 2]], [[0.3, 0.3, 0.2], [0.3, 0.3, 0.2], [0.1, 0.4, 0.4]]),
            (np.eye(3)[[1]], [[0.0, 0.0, 0.0]]), ([[1.0, 1.0, 0.0]], [[0.1, 0.9, 0.2]])]
    case(root, "categorical_accuracy_ties", "categorical_accuracy", mse, ties, notes="the first wins")
    case(root, "top_k_ties", lambda: keras.metrics.TopKCategoricalAccuracy(k=2), mse, ties[:2] + [
        (np.eye(3)[[2]], [[0.5, 0.5, 0.5]])], notes="a tie at the k-th place counts as within")


def run(root):
    """Records all cases of this module."""
    for part in (accuracies, named, losses_as_metrics, edges):
        part(root)
