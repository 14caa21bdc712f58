# SPDX-License-Identifier: Apache-2.0
"""Cases: metrics that are classes: every mean by its class, the counts at thresholds, the curves, MeanIoU."""
import collections

import numpy as np

from . import store
from .losses import CLASSES, FUNCTIONS
from .metrics import GROUP, SIZES, batches_of, case
from .session import VERSIONS, keras, tf

MSE = "mean_squared_error"


def means(root):
    """The classes that are means of a function, with options where they have some."""
    m = keras.metrics
    for loss, class_name in CLASSES.items():
        if loss == "huber_loss":
            continue
        class_name = "LogCoshError" if class_name == "LogCosh" else class_name
        true, pred = FUNCTIONS[loss]
        other = loss if "sparse" in loss else MSE
        name = "mean_" + class_name
        case(root, name, getattr(m, class_name), other, batches_of(name, true, pred, (4,)))
    more = {
        "root_mean_squared_error": (m.RootMeanSquaredError, "normal", "normal", (4,)),
        "cosine_similarity": (m.CosineSimilarity, "normal", "normal", (4,)),
        "cosine_similarity_axis": (lambda: m.CosineSimilarity(axis=1), "normal", "normal", (2, 3)),
        "binary_crossentropy_smoothing": (lambda: m.BinaryCrossentropy(label_smoothing=0.2), "binary",
                                          "probability", (3,)),
        "binary_crossentropy_logits": (lambda: m.BinaryCrossentropy(from_logits=True), "binary",
                                       "normal", (3,)),
        "categorical_crossentropy_smoothing": (lambda: m.CategoricalCrossentropy(label_smoothing=0.2),
                                               "onehot", "distribution", (4,)),
    }
    for name, (make, true, pred, shape) in more.items():
        case(root, "mean_" + name, make, MSE, batches_of(name, true, pred, shape))


def counts(root):
    """The confusion counts, precision and recall: thresholds, top_k, class_id, rank 3."""
    m = keras.metrics
    several = [0.8, 0.2, 0.5]
    for class_name in ("TruePositives", "FalsePositives", "TrueNegatives", "FalseNegatives", "Precision",
                       "Recall"):
        made = getattr(m, class_name)
        for kind, options in (("default", {}), ("threshold", {"thresholds": 0.3}),
                              ("several", {"thresholds": several})):
            name = "%s_%s" % (class_name, kind)
            case(root, name, lambda: made(**options), MSE, batches_of(name, "binary", "probability", (3,)))
        name = class_name + "_rank3"
        case(root, name, made, MSE, batches_of(name, "binary", "probability", (2, 3)), mode="temporal")
    for class_name in ("Precision", "Recall"):
        made = getattr(m, class_name)
        for kind, options in (("top_k", {"top_k": 2}), ("top_k_thresholds", {"top_k": 3, "thresholds": several}),
                              ("class", {"class_id": 1}), ("class_top_k", {"class_id": 2, "top_k": 2})):
            name = "%s_%s" % (class_name, kind)
            case(root, name, lambda: made(**options), MSE, batches_of(name, "onehot", "distribution", (5,)),
                 weighted="class_id" not in options)
    ties = [([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]], [[0.5, 0.5, 0.5], [0.2, 0.7, 0.7]]),
            ([[0.0, 0.0, 1.0]], [[0.4, 0.9, 0.4]]), ([[1.0, 1.0, 0.0]], [[0.0, 0.0, 0.0]])]
    case(root, "Precision_top_k_ties", lambda: m.Precision(top_k=2), MSE, ties,
         notes="of equal predictions the first is within")


def curves(root):
    """AUC by curve, summation and thresholds; a rate where the other has a value."""
    m = keras.metrics
    table = {}
    for curve in ("ROC", "PR"):
        for summation in ("interpolation", "minoring", "majoring"):
            options = {"curve": curve, "summation_method": summation, "num_thresholds": 20}
            table["AUC_%s_%s" % (curve, summation)] = lambda options=options: m.AUC(**options)
        table["AUC_%s_thresholds" % curve] = lambda curve=curve: m.AUC(curve=curve, thresholds=[0.7, 0.1, 0.4])
    table["AUC_default"] = m.AUC
    table["AUC_two"] = lambda: m.AUC(num_thresholds=2)
    for kind, options in (("default", {}), ("few", {"num_thresholds": 5}), ("one", {"num_thresholds": 1})):
        table["SensitivityAtSpecificity_" + kind] = lambda options=options: m.SensitivityAtSpecificity(
            0.7, **options)
        table["SpecificityAtSensitivity_" + kind] = lambda options=options: m.SpecificityAtSensitivity(
            0.6, **options)
    for name, make in table.items():
        case(root, name, make, MSE, batches_of(name, "binary", "probability", (3,)))
    grid = [([[0.0], [1.0], [1.0], [0.0]], [[0.0], [0.25], [1.0], [0.5]]),
            ([[1.0], [0.0]], [[0.75], [0.75]]), ([[1.0], [0.0], [0.0]], [[0.5], [1.0], [0.25]])]
    for curve in ("ROC", "PR"):
        case(root, "AUC_%s_on_thresholds" % curve, lambda: m.AUC(num_thresholds=5, curve=curve), "mse", grid,
             notes="predictions that are thresholds, 0 and 1 among them")
    none = [([[0.0], [0.0]], [[0.1], [0.9]])] * 3
    for name, make in (("AUC_no_positives", m.AUC), ("AUC_PR_no_positives", lambda: m.AUC(curve="PR")),
                       ("SensitivityAtSpecificity_no_positives", lambda: m.SensitivityAtSpecificity(0.5))):
        case(root, name, make, "mse", none)


def mean_iou(root):
    """MeanIoU is called alone, because compile of 2.3.1 would wrap it and average its running values."""
    random = store.random_for("mean_iou")
    plain, weighted = tf.keras.metrics.MeanIoU(4, name="mean_io_u"), tf.keras.metrics.MeanIoU(4)
    members = collections.OrderedDict([("meta", None)])
    results = []
    for i, n in enumerate(SIZES):
        t = random.randint(0, 3, (n, 1)).astype("float32")
        p = random.randint(0, 3, (n, 1)).astype("float32")
        w = random.uniform(0.0, 2.0, (n,)).astype("float32")
        members["y_true_%d" % i], members["y_pred_%d" % i], members["sw_%d" % i] = t, p, w
        plain.update_state(t, p)
        weighted.update_state(t, p, tf.constant(w))
        results.append((plain.result().numpy(), weighted.result().numpy()))
    members["result"] = [r[0] for r in results]
    members["result_weighted"] = [r[1] for r in results]
    meta = dict(VERSIONS)
    described = {"class_name": "MeanIoU", "config": plain.get_config()}
    meta.update({"group": GROUP, "case": "MeanIoU", "metrics": [described], "loss": MSE, "aliases": [],
                 "notes": "one of the four classes never occurs"})
    members["meta"] = store.text(meta)
    store.save("%s/%s/MeanIoU.npz" % (root, GROUP), members)


def run(root):
    """Records all cases of this module."""
    for part in (means, counts, curves, mean_iou):
        part(root)
