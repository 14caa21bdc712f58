# SPDX-License-Identifier: Apache-2.0
"""Cases of the metrics of current Keras: the running values over three batches, with and without weights."""
import collections

import keras
import numpy as np
import tensorflow as tf

from . import store
from .keras3_case import ROOT

GROUP = "metrics"
SIZES = (5, 3, 4)
M = keras.metrics

# Name, constructor, targets, predictions, shape of a sample, True if weights get an axis for the classes.
CASES = [
    ("F1Score_default", M.F1Score, "onehot", "shares", (4,), False),
    ("F1Score_micro", lambda: M.F1Score(average="micro", threshold=0.3), "bits", "shares", (3,), False),
    ("F1Score_zeros", lambda: M.F1Score(average="macro"), "bits", "zeros", (3,), False),
    ("FBetaScore_macro", lambda: M.FBetaScore(average="macro", beta=2.0), "onehot", "shares", (4,), False),
    ("FBetaScore_weighted", lambda: M.FBetaScore(average="weighted", beta=0.5, threshold=0.4), "bits", "shares",
     (3,), False),
    ("FBetaScore_each", lambda: M.FBetaScore(beta=0.7), "onehot", "shares", (3,), False),
    ("R2Score_default", M.R2Score, "reals", "reals", (3,), False),
    ("R2Score_variance", lambda: M.R2Score(class_aggregation="variance_weighted_average"), "reals", "reals", (3,),
     False),
    ("R2Score_each", lambda: M.R2Score(class_aggregation=None, num_regressors=2), "reals", "reals", (2,), False),
    ("R2Score_few", lambda: M.R2Score(num_regressors=90), "reals", "reals", (2,), False),
    ("PearsonCorrelation", M.PearsonCorrelation, "reals", "reals", (4,), False),
    ("PearsonCorrelation_axis", lambda: M.PearsonCorrelation(axis=1), "reals", "reals", (3, 1), True),
    ("ConcordanceCorrelation", M.ConcordanceCorrelation, "reals", "reals", (4,), False),
    ("IoU_default", lambda: M.IoU(4, [0, 2]), "numbers", "numbers", (1,), False),
    ("IoU_dense", lambda: M.IoU(3, [1], sparse_y_pred=False), "numbers", "shares", (3,), False),
    ("IoU_ignored", lambda: M.IoU(4, [0, 1, 3], ignore_class=2), "numbers", "numbers", (1,), False),
    ("IoU_outside", lambda: M.IoU(3, [0, 1]), "numbers", "numbers", (1,), False),
    ("MeanIoU_current", lambda: M.MeanIoU(4), "numbers", "numbers", (1,), False),
    ("MeanIoU_dense", lambda: M.MeanIoU(3, sparse_y_true=False, sparse_y_pred=False), "onehot", "shares", (3,),
     False),
    ("BinaryIoU_default", M.BinaryIoU, "bits", "shares", (1,), False),
    ("BinaryIoU_options", lambda: M.BinaryIoU(target_class_ids=[1], threshold=0.3), "bits", "shares", (1,), False),
    ("OneHotIoU", lambda: M.OneHotIoU(4, [0, 3]), "onehot", "shares", (4,), False),
    ("OneHotMeanIoU", lambda: M.OneHotMeanIoU(4, ignore_class=1), "onehot", "shares", (4,), False),
    ("SensitivityAtSpecificity_current", lambda: M.SensitivityAtSpecificity(0.6), "bits", "shares", (3,), True),
    ("SpecificityAtSensitivity_current", lambda: M.SpecificityAtSensitivity(0.5, num_thresholds=7), "bits", "shares",
     (3,), True),
    ("PrecisionAtRecall", lambda: M.PrecisionAtRecall(0.6), "bits", "shares", (3,), True),
    ("PrecisionAtRecall_class", lambda: M.PrecisionAtRecall(0.4, class_id=1, num_thresholds=9), "bits", "shares",
     (3,), False),
    ("RecallAtPrecision", lambda: M.RecallAtPrecision(0.55), "bits", "shares", (3,), True),
    ("RecallAtPrecision_none", lambda: M.RecallAtPrecision(1.0, num_thresholds=1), "bits", "shares", (3,), True),
    ("AUC_labels", lambda: M.AUC(multi_label=True), "bits", "shares", (3,), True),
    ("AUC_labels_pr", lambda: M.AUC(multi_label=True, num_labels=3, curve="PR", num_thresholds=20,
                                    label_weights=[0.5, 2.0, 0.0]), "bits", "shares", (3,), True),
    ("AUC_labels_major", lambda: M.AUC(multi_label=True, thresholds=[0.2, 0.7, 0.3], summation_method="majoring",
                                       label_weights=[0.5, 2.0, 1.0]), "bits", "shares", (3,), True),
    ("AUC_label_weights", lambda: M.AUC(label_weights=[0.5, 2.0, 1.0], num_thresholds=30), "bits", "shares", (3,),
     True),
    ("AUC_logits", lambda: M.AUC(from_logits=True), "bits", "logits", (3,), True),
    ("AUC_logits_labels", lambda: M.AUC(from_logits=True, multi_label=True, num_labels=3, curve="PR"), "bits", "logits", (3,),
     True),
    ("TopKCategoricalAccuracy_rows", lambda: M.TopKCategoricalAccuracy(2), "onehots", "shares", (5, 4), True),
    ("BinaryAccuracy_logits", M.BinaryAccuracy, "bits", "logits", (4,), False),
    ("BinaryAccuracy_half", M.BinaryAccuracy, "bits", "halves", (4,), False),
    ("BinaryAccuracy_threshold", lambda: M.BinaryAccuracy(threshold=-0.4), "bits", "logits", (4,), False),
]


def values_of(random, kind, size, shape):
    """Returns targets or predictions of a batch."""
    if kind == "onehot":
        return np.eye(shape[-1], dtype="float32")[random.randint(0, shape[-1], size)]
    if kind == "onehots":
        return np.eye(shape[-1], dtype="float32")[random.randint(0, shape[-1], (size,) + shape[:-1])]
    if kind == "numbers":
        return random.randint(0, 4, (size, 1)).astype("float32")
    if kind == "bits":
        return random.randint(0, 2, (size,) + shape).astype("float32")
    if kind == "zeros":
        return (random.uniform(0.0, 1.0, (size,) + shape) * random.randint(0, 2, (size, 1))).astype("float32")
    if kind == "halves":
        return (random.randint(-6, 7, (size,) + shape) / 4).astype("float32")
    if kind == "logits":
        return random.normal(0.0, 2.0, (size,) + shape).astype("float32")
    if kind == "shares":
        return random.uniform(0.0, 1.0, (size,) + shape).astype("float32")
    return random.normal(0.0, 1.0, (size,) + shape).astype("float32")


def case(name, make, true, pred, shape, by_class):
    """Records a metric that is called alone."""
    random = store.random_for("keras-3/%s/%s" % (GROUP, name))
    plain, weighted = make(), make()
    members, rows = collections.OrderedDict([("meta", None)]), []
    for i, size in enumerate(SIZES):
        t, p = values_of(random, true, size, shape), values_of(random, pred, size, shape)
        if pred == "reals":
            p = (t + 0.5 * p).astype("float32")
        w = random.uniform(0.2, 2.9, (size,)).astype("float32")
        plain.update_state(t, p)
        weighted.update_state(t, p, tf.constant(w[:, None] if by_class else w))
        members["y_true_%d" % i], members["y_pred_%d" % i], members["sw_%d" % i] = t, p, w
        rows.append((np.atleast_1d(plain.result()), np.atleast_1d(weighted.result())))
    members["result"] = np.stack([r[0] for r in rows]).astype("float32")
    members["result_weighted"] = np.stack([r[1] for r in rows]).astype("float32")
    config = {k: keras.saving.serialize_keras_object(v) if tf.is_tensor(v) else v
              for k, v in plain.get_config().items() if k != "dtype"}
    members["meta"] = store.text({
        "keras": keras.__version__, "tensorflow": tf.__version__, "group": GROUP, "case": name, "aliases": [],
        "metrics": [{"class_name": type(plain).__name__, "config": config}], "loss": "mean_squared_error",
        "notes": ""})
    store.save("%s/%s/%s.npz" % (ROOT, GROUP, name), members)


def run():
    """Records all cases of this module."""
    for arguments in CASES:
        case(*arguments)
