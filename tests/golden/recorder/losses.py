# SPDX-License-Identifier: Apache-2.0
"""Cases: every loss as a function, its gradient and parameters; y_pred is not the output of a softmax or sigmoid."""
import collections

import numpy as np

from . import store
from .model_case import TARGETS, as_json
from .session import K, VERSIONS, keras

GROUP = "losses"

# name: (targets, predictions)
FUNCTIONS = {
    "mean_squared_error": ("normal", "normal"),
    "mean_absolute_error": ("normal", "normal"),
    "mean_absolute_percentage_error": ("normal", "normal"),
    "mean_squared_logarithmic_error": ("positive", "positive"),
    "squared_hinge": ("pm1", "normal"),
    "hinge": ("pm1", "normal"),
    "categorical_hinge": ("onehot", "normal"),
    "logcosh": ("normal", "normal"),
    "huber_loss": ("normal", "normal"),
    "categorical_crossentropy": ("onehot", "distribution"),
    "sparse_categorical_crossentropy": ("sparse", "distribution"),
    "binary_crossentropy": ("binary", "probability"),
    "kullback_leibler_divergence": ("distribution", "distribution"),
    "poisson": ("positive", "positive"),
    "cosine_proximity": ("normal", "normal"),
}
ALIASES = {
    "mean_squared_error": ["mse", "MSE"],
    "mean_absolute_error": ["mae", "MAE"],
    "mean_absolute_percentage_error": ["mape", "MAPE"],
    "mean_squared_logarithmic_error": ["msle", "MSLE"],
    "kullback_leibler_divergence": ["kld", "KLD"],
    "cosine_proximity": ["cosine", "cosine_similarity"],
}
CLASSES = {
    "mean_squared_error": "MeanSquaredError",
    "mean_absolute_error": "MeanAbsoluteError",
    "mean_absolute_percentage_error": "MeanAbsolutePercentageError",
    "mean_squared_logarithmic_error": "MeanSquaredLogarithmicError",
    "squared_hinge": "SquaredHinge",
    "hinge": "Hinge",
    "categorical_hinge": "CategoricalHinge",
    "logcosh": "LogCosh",
    "huber_loss": "Huber",
    "categorical_crossentropy": "CategoricalCrossentropy",
    "sparse_categorical_crossentropy": "SparseCategoricalCrossentropy",
    "binary_crossentropy": "BinaryCrossentropy",
    "kullback_leibler_divergence": "KLDivergence",
    "poisson": "Poisson",
}


def make(random, kind, shape):
    """Returns an array of a kind in TARGETS, or of probabilities."""
    if kind == "probability":
        return random.uniform(0.02, 0.98, shape)
    return TARGETS[kind](random, shape)


def case(root, name, loss, y_true, y_pred, config=None, notes=""):
    """Evaluates a loss function, or a loss class where there is a config, on placeholders."""
    K.clear_session()
    y_true = np.asarray(y_true)
    y_pred = np.asarray(y_pred, dtype="float32")
    y_true = y_true.astype("int32" if y_true.dtype.kind in "iu" else "float32")
    function = getattr(keras.losses, loss)
    described = as_json(function)
    if config is not None:
        instance = getattr(keras.losses, CLASSES[loss])(**config)
        described, function = as_json(instance), instance.call
    t = K.placeholder(y_true.shape, dtype=str(y_true.dtype))
    p = K.placeholder(y_pred.shape)
    values = function(t, p)
    mean = K.mean(values)
    results = K.function([t, p], [values, mean, K.gradients(mean, [p])[0]])([y_true, y_pred])
    meta = dict(VERSIONS)
    meta.update({"group": GROUP, "case": name, "class_name": CLASSES.get(loss), "loss": described,
                 "function": loss, "aliases": ALIASES.get(loss, []), "notes": notes})
    members = collections.OrderedDict()
    members["meta"] = store.text(meta)
    members["y_true"], members["y_pred"] = y_true, y_pred
    members["values"], members["loss"], members["grad"] = results
    store.save("%s/%s/%s.npz" % (root, GROUP, name), members)


def plain(root):
    """Each function on ranks 2 and 3."""
    for loss, (true, pred) in FUNCTIONS.items():
        for shape in ((4, 5), (3, 2, 4)):
            name = "%s_rank%d" % (loss, len(shape))
            random = store.random_for(name)
            case(root, name, loss, make(random, true, shape), make(random, pred, shape))
    random = store.random_for("one_unit")
    case(root, "binary_crossentropy_one_unit", "binary_crossentropy", make(random, "binary", (5, 1)),
         make(random, "probability", (5, 1)))
    case(root, "sparse_categorical_crossentropy_flat", "sparse_categorical_crossentropy",
         make(random, "sparse_flat", (4, 5)), make(random, "distribution", (4, 5)))
    case(root, "huber_loss_one_unit", "huber_loss", make(random, "normal", (5, 1)),
         make(random, "normal", (5, 1)), notes="no mean over the last axis: the values keep it")


def edges(root):
    """Values at which clipping, kinks and conventions matter."""
    random = store.random_for("edges")
    ends = [[0.0, 1.0, 0.5, 1e-8], [1e-7, 1.0 - 1e-7, 2.0, -1.0]]
    bits = [[0.0, 1.0, 1.0, 1.0], [1.0, 1.0, 0.0, 1.0]]
    case(root, "binary_crossentropy_edges", "binary_crossentropy", bits, ends,
         notes="clipped to [1e-7, 1 - 1e-7], and 1e-7 more inside each log")
    case(root, "binary_crossentropy_soft_targets", "binary_crossentropy", random.uniform(0, 1, (3, 4)),
         random.uniform(0, 1, (3, 4)))
    rows = [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [2.0, 3.0, 5.0], [0.2, 0.2, 0.1], [1e-9, 1.0, 1.0]]
    case(root, "categorical_crossentropy_edges", "categorical_crossentropy", np.eye(3)[[0, 0, 1, 2, 0]],
         rows, notes="divided by the sum of the row, then clipped")
    case(root, "categorical_crossentropy_soft_targets", "categorical_crossentropy",
         make(random, "distribution", (4, 3)), make(random, "positive", (4, 3)))
    case(root, "sparse_categorical_crossentropy_edges", "sparse_categorical_crossentropy",
         [[0], [0], [1], [2], [0]], rows,
         notes="clipped without division by the sum; then log, then a crossentropy from these as logits")
    case(root, "categorical_hinge_edges", "categorical_hinge", np.eye(3)[[0, 1, 2]],
         [[2.0, 0.5, 1.0], [0.3, 1.3, 0.1], [-1.0, -2.0, -3.0]])
    for loss in ("hinge", "squared_hinge"):
        case(root, loss + "_binary_labels", loss, make(random, "binary", (4, 3)),
             make(random, "normal", (4, 3)), notes="targets all 0 or 1 become -1 or 1")
        case(root, loss + "_mixed_labels", loss, [[0.0, 1.0, -1.0], [1.0, 0.0, 0.5]],
             [[0.4, 0.2, 0.3], [1.0, -2.0, 3.0]], notes="not all 0 or 1: left as they are")
    case(root, "logcosh_large", "logcosh", [[0.0, 0.0, 0.0, 0.0]], [[100.0, -100.0, 1e-4, -1e4]])
    case(root, "huber_loss_edges", "huber_loss", [[0.0, 0.0, 0.0, 0.0, 0.0]],
         [[1.0, -1.0, 0.0, 1.5, -0.5]])
    case(root, "mean_absolute_error_ties", "mean_absolute_error", [[1.0, 0.0, -2.0]], [[1.0, 0.5, -2.0]])
    case(root, "mean_absolute_percentage_error_zero", "mean_absolute_percentage_error",
         [[0.0, 1e-8, -0.5]], [[1e-6, 2e-8, 0.5]])
    case(root, "mean_squared_logarithmic_error_negative", "mean_squared_logarithmic_error",
         [[-0.5, 0.0, 2.0]], [[0.5, -0.3, 0.0]])
    case(root, "kullback_leibler_divergence_edges", "kullback_leibler_divergence",
         [[0.0, 1.0, 1.5], [0.5, 0.5, -1.0]], [[0.5, 0.0, 1.0], [2.0, 1e-9, 0.3]])
    case(root, "poisson_zero", "poisson", [[0.0, 2.0, 3.0]], [[0.0, 0.0, 1.0]])
    case(root, "cosine_proximity_zero", "cosine_proximity", [[0.0, 0.0], [1.0, 2.0], [0.0, 3.0]],
         [[1.0, 2.0], [0.0, 0.0], [0.0, -2.0]])


def parameters(root):
    """The loss classes with their options."""
    for smoothing in (0.1, 0.3):
        for shape in ((4, 5), (3, 2, 4)):
            for loss in ("categorical_crossentropy", "binary_crossentropy"):
                true, pred = FUNCTIONS[loss]
                name = "%s_smoothing%d_rank%d" % (loss, round(smoothing * 100), len(shape))
                random = store.random_for(name)
                case(root, name, loss, make(random, true, shape), make(random, pred, shape),
                     {"label_smoothing": smoothing},
                     notes="the number of classes is taken from axis 1, whatever the rank"
                     if loss == "categorical_crossentropy" else "")
    for loss in ("categorical_crossentropy", "sparse_categorical_crossentropy", "binary_crossentropy"):
        for shape in ((4, 5), (3, 2, 4)):
            name = "%s_from_logits_rank%d" % (loss, len(shape))
            random = store.random_for(name)
            case(root, name, loss, make(random, FUNCTIONS[loss][0], shape),
                 make(random, "normal", shape) * 4.0, {"from_logits": True})
    random = store.random_for("logits and smoothing")
    for loss in ("categorical_crossentropy", "binary_crossentropy"):
        case(root, loss + "_from_logits_smoothing", loss, make(random, FUNCTIONS[loss][0], (4, 5)),
             make(random, "normal", (4, 5)) * 4.0, {"from_logits": True, "label_smoothing": 0.2})
    for delta in (0.3, 2.5):
        case(root, "huber_loss_delta%d" % round(delta * 10), "huber_loss", make(random, "normal", (4, 5)),
             make(random, "normal", (4, 5)) * 2.0, {"delta": delta})
    for loss in CLASSES:
        true, pred = FUNCTIONS[loss]
        case(root, "class_" + loss, loss, make(random, true, (3, 4)), make(random, pred, (3, 4)), {})


def run(root):
    """Records all cases of this module."""
    for part in (plain, edges, parameters):
        part(root)
