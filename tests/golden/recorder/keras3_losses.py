# SPDX-License-Identifier: Apache-2.0
"""Cases of current Keras's crossentropies behind every kind of output, with probabilities that saturate: the format
of layers.  In TensorFlow, the tensor of a softmax or sigmoid carries its logits, from which the loss is computed."""
import collections
import json

import keras
import numpy as np
import tensorflow as tf

from . import store
from .keras3_case import RATE, ROOT, STEPS, listed, weights_of

L = keras.layers
GROUP = "losses"
CATEGORICAL, SPARSE, BINARY = ("categorical_crossentropy", "sparse_categorical_crossentropy",
                               "binary_crossentropy")

# Name, shape of an input, layers after a Dense of three units, loss.
CASES = [
    ("softmax", (4,), [lambda: L.Softmax()], CATEGORICAL),
    ("softmax_rank3", (2, 4), [lambda: L.Softmax()], CATEGORICAL),
    ("softmax_rank4", (2, 2, 4), [lambda: L.Activation("softmax")], CATEGORICAL),
    ("softmax_rank3_sparse", (2, 4), [lambda: L.Softmax()], SPARSE),
    ("softmax_rank4_sparse", (2, 2, 4), [lambda: L.Softmax()], SPARSE),
    ("softmax_axis1", (2, 4), [lambda: L.Softmax(axis=1)], CATEGORICAL),
    ("softmax_two_axes", (2, 4), [lambda: L.Softmax(axis=(1, 2))], CATEGORICAL),
    ("softmax_linear", (4,), [lambda: L.Softmax(), lambda: L.Activation("linear")], CATEGORICAL),
    ("softmax_dropout", (4,), [lambda: L.Softmax(), lambda: L.Dropout(0.0)], CATEGORICAL),
    ("softmax_identity", (2, 4), [lambda: L.Softmax(), lambda: L.Identity()], SPARSE),
    ("softmax_reshape", (2, 4), [lambda: L.Softmax(), lambda: L.Reshape((2, 3))], CATEGORICAL),
    ("softmax_distributed", (2, 4), [lambda: L.TimeDistributed(L.Activation("softmax"))], CATEGORICAL),
    ("softmax_smoothed", (2, 4), [lambda: L.Softmax()],
     keras.losses.CategoricalCrossentropy(label_smoothing=0.3)),
    ("softmax_binary", (4,), [lambda: L.Softmax()], BINARY),
    ("sigmoid_binary", (2, 4), [lambda: L.Activation("sigmoid")], BINARY),
    ("sigmoid_smoothed", (2, 4), [lambda: L.Activation("sigmoid")],
     keras.losses.BinaryCrossentropy(label_smoothing=0.2)),
    ("sigmoid_categorical", (2, 4), [lambda: L.Activation("sigmoid")], CATEGORICAL),
    ("sigmoid_distributed", (2, 4), [lambda: L.TimeDistributed(L.Activation("sigmoid"))], BINARY),
    ("hard_sigmoid", (4,), [lambda: L.Activation("hard_sigmoid")], BINARY),
    ("relu_sparse", (2, 4), [lambda: L.Activation("relu")], SPARSE),
    ("one_class", (4,), [lambda: L.Activation("softplus"), lambda: L.Reshape((3, 1))], CATEGORICAL),
    ("from_logits", (2, 4), [], keras.losses.CategoricalCrossentropy(from_logits=True)),
    ("from_logits_sparse", (2, 4), [], keras.losses.SparseCategoricalCrossentropy(from_logits=True)),
    ("from_logits_binary", (2, 4), [], keras.losses.BinaryCrossentropy(from_logits=True)),
]

K = keras.losses
PROBABILITY, SHARES = (lambda: L.Activation("sigmoid")), (lambda: L.Softmax())
CLIPPED = lambda: L.ReLU(max_value=1.0)

# Name, shape of an input, layers after a Dense of three units, loss, targets ("bits", "numbers", "onehot", "labels",
# "reals"), True with sample weights.  Logits are small.
MORE_CASES = [
    ("binary_focal", (4,), [PROBABILITY], K.BinaryFocalCrossentropy(), "bits", False),
    ("binary_focal_balanced", (2, 4), [PROBABILITY],
     K.BinaryFocalCrossentropy(apply_class_balancing=True, alpha=0.3, gamma=1.5), "bits", True),
    ("binary_focal_logits", (4,), [], K.BinaryFocalCrossentropy(from_logits=True, label_smoothing=0.2), "bits",
     False),
    ("binary_focal_clipped", (4,), [CLIPPED], K.BinaryFocalCrossentropy(gamma=2.0), "bits", False),
    ("binary_focal_axis", (2, 4), [PROBABILITY], K.BinaryFocalCrossentropy(axis=1), "bits", False),
    ("binary_focal_name", (4,), [PROBABILITY], "binary_focal_crossentropy", "bits", False),
    ("categorical_focal", (4,), [SHARES], K.CategoricalFocalCrossentropy(), "onehot", False),
    ("categorical_focal_logits", (2, 4), [],
     K.CategoricalFocalCrossentropy(from_logits=True, alpha=0.5, gamma=3.0), "onehot", True),
    ("categorical_focal_smoothed", (2, 4), [SHARES],
     K.CategoricalFocalCrossentropy(label_smoothing=0.3, axis=1), "onehot", False),
    ("categorical_focal_name", (4,), [SHARES], "categorical_focal_crossentropy", "onehot", False),
    ("generalized", (4,), [SHARES], K.CategoricalGeneralizedCrossEntropy(), "numbers", False),
    ("generalized_q", (4,), [SHARES], K.CategoricalGeneralizedCrossEntropy(q=0.8), "numbers", True),
    ("dice", (2, 4), [PROBABILITY], K.Dice(), "bits", False),
    ("dice_axis", (2, 4), [PROBABILITY], K.Dice(axis=(1, 2)), "bits", True),
    ("dice_one_axis", (2, 4), [PROBABILITY], K.Dice(axis=-1, reduction="sum"), "bits", False),
    ("dice_weighted", (4,), [PROBABILITY], K.Dice(), "bits", True),
    ("dice_name", (2, 4), [PROBABILITY], "dice", "bits", False),
    ("tversky", (2, 4), [PROBABILITY], K.Tversky(), "bits", False),
    ("tversky_options", (2, 4), [PROBABILITY], K.Tversky(alpha=0.3, beta=0.7, axis=[1, 2]), "bits", True),
    ("tversky_name", (4,), [PROBABILITY], "tversky", "bits", False),
    ("circle", (4,), [lambda: L.UnitNormalization()], K.Circle(gamma=4.0), "labels", False),
    ("circle_options", (4,), [lambda: L.UnitNormalization()],
     K.Circle(gamma=8.0, margin=0.25, remove_diagonal=False), "labels", False),
    ("circle_sum", (4,), [lambda: L.UnitNormalization()], K.Circle(gamma=4.0, reduction="sum"), "labels", True),
    ("ctc", (6, 4), [], K.CTC(), "lists", False),
    ("ctc_weighted", (5, 4), [], K.CTC(reduction="sum"), "lists", True),
    ("ctc_name", (4, 4), [], "ctc", "lists", False),
    ("huber_sum", (2, 4), [], K.Huber(reduction="sum"), "reals", False),
    ("mean_by_weight", (2, 4), [], K.MeanSquaredError(reduction="mean_with_sample_weight"), "reals", True),
    ("mean", (4,), [], K.MeanAbsoluteError(reduction="mean"), "reals", True),
    ("mean_without_weight", (4,), [], K.MeanSquaredError(reduction="mean_with_sample_weight"), "reals", False),
]


def gradients_of(model, x, t, variables, weights=None):
    """Returns the gradients of the training loss, computed in a graph as fit computes them."""
    @tf.function
    def compute():
        with tf.GradientTape() as tape:
            loss = model.compute_loss(x, t, model(x, training=True), weights)
        return tape.gradient(loss, [v.value for v in variables])
    return [tf.convert_to_tensor(g).numpy() for g in compute()]


def case(name, shape, makes, loss):
    """Records prediction, loss, the metric of the same name, gradients and steps of descent."""
    keras.backend.clear_session()
    random = store.random_for("keras-3/%s/%s" % (GROUP, name))
    model = keras.Sequential([L.Input(shape), L.Dense(3, name="logits")] + [make() for make in makes], name=name)
    function = loss if isinstance(loss, str) else loss.name
    model.compile(keras.optimizers.SGD(RATE), loss, metrics=[function])
    weights = weights_of(model)
    # Logits beyond those of 1e-7.  1 - p, of a p near 1 that is not clipped, would have few correct digits.
    weights[0].assign(random.normal(0.0, 2.0 if name == "sigmoid_distributed" else 12.0, weights[0].shape))
    weights[1].assign(random.normal(0.0, 1.0, weights[1].shape))
    x = random.normal(0.0, 1.0, (5,) + shape).astype("float32")
    outputs = model.output_shape[1:]
    if function == SPARSE:
        t = random.randint(0, 3, (5,) + outputs[:-1] + (1,)).astype("int32")
    elif function == BINARY:
        t = random.randint(0, 2, (5,) + outputs).astype("float32")
    elif outputs[-1] == 1:
        t = random.uniform(0.0, 1.0, (5,) + outputs).astype("float32")
    else:
        t = np.eye(3, dtype="float32")[random.randint(0, 3, (5,) + outputs[:-1])]
    members = collections.OrderedDict()
    members["meta"] = store.text({
        "keras": keras.__version__, "tensorflow": tf.__version__, "group": GROUP, "case": name,
        "class_name": type(loss).__name__ if not isinstance(loss, str) else loss,
        "loss": loss if isinstance(loss, str) else {"class_name": type(loss).__name__, "config": {
            k: v for k, v in loss.get_config().items() if v is not None}},
        "metrics": [function], "weighted_metrics": [],
        "optimizer": {"class_name": "SGD", "config": {"learning_rate": RATE}}, "steps": STEPS,
        "weights": [w.path for w in weights], "trainable": [0, 1], "metrics_names": ["loss", function], "notes": ""})
    members["config"] = store.text(json.dumps(json.loads(model.to_json())))
    members.update(listed("x", [x]))
    members.update(listed("t", [t]))
    members.update(listed("w", [w.numpy() for w in weights]))
    members["y0"] = model.predict_on_batch(x)
    tested = model.test_on_batch(x, t)
    members["loss0"], members["test0"] = np.float32(tested[0]), np.array(tested, "float32")
    members.update(listed("g", gradients_of(model, x, t, weights)))
    outputs = []
    for _ in range(STEPS):
        model.reset_metrics()
        outputs.append(model.train_on_batch(x, t))
    members["train_loss"] = np.array([o[0] for o in outputs], "float32")
    members["train_outputs"] = np.array(outputs, "float32")
    members.update(listed("wt", [w.numpy() for w in weights]))
    members["yt0"] = model.predict_on_batch(x)
    store.save("%s/%s/%s.npz" % (ROOT, GROUP, name), members)


def targets_of(random, kind, outputs):
    """Returns targets for five samples.  Shapes of weights follow: one for each value of a temporal loss."""
    if kind == "labels":
        return np.array([[0], [1], [0], [1], [7]], "int32")
    if kind == "lists":
        return np.array([[1, 2], [2, 2], [1, 0], [0, 0], [2, 1]], "int32")
    if kind == "numbers":
        return random.randint(0, 3, (5,) + outputs[:-1] + (1,)).astype("int32")
    if kind == "bits":
        return random.randint(0, 2, (5,) + outputs).astype("float32")
    if kind == "onehot":
        return np.eye(3, dtype="float32")[random.randint(0, 3, (5,) + outputs[:-1])]
    return random.normal(0.0, 1.0, (5,) + outputs).astype("float32")


def weights_for(random, loss, t, shape):
    """Returns one weight for each value of the loss."""
    temporal = len(shape) == 2 and not isinstance(loss, (K.Dice, K.Tversky, K.CTC))
    return random.uniform(0.2, 2.0, t.shape[:2] if temporal else (5,)).astype("float32")


def more(name, shape, makes, loss, kind, weighted):
    """Records prediction, loss, gradients and steps of descent with another loss than a crossentropy."""
    keras.backend.clear_session()
    random = store.random_for("keras-3/%s/%s" % (GROUP, name))
    model = keras.Sequential([L.Input(shape), L.Dense(3, name="logits")] + [make() for make in makes], name=name)
    model.compile(keras.optimizers.SGD(RATE), loss)
    weights = weights_of(model)
    weights[0].assign(random.normal(0.0, 1.0, weights[0].shape))
    weights[1].assign(random.normal(0.0, 0.3, weights[1].shape))
    x = random.normal(0.0, 1.0, (5,) + shape).astype("float32")
    t = targets_of(random, kind, model.output_shape[1:])
    given = weights_for(random, loss, t, shape) if weighted else None
    asked = t[:, 0] if kind == "numbers" else t  # Keras's generalized crossentropy takes no axis of length 1
    config = loss if isinstance(loss, str) else {"class_name": type(loss).__name__, "config": {
        k: v for k, v in loss.get_config().items() if v is not None}}
    members = collections.OrderedDict()
    members["meta"] = store.text({
        "keras": keras.__version__, "tensorflow": tf.__version__, "group": GROUP, "case": name,
        "class_name": type(loss).__name__ if not isinstance(loss, str) else loss, "loss": config,
        "metrics": [], "weighted_metrics": [],
        "sample_weight_mode": "temporal" if weighted and given.ndim == 2 else None,
        "optimizer": {"class_name": "SGD", "config": {"learning_rate": RATE}}, "steps": STEPS,
        "weights": [w.path for w in weights], "trainable": [0, 1], "metrics_names": ["loss"], "notes": ""})
    members["config"] = store.text(json.dumps(json.loads(model.to_json())))
    members.update(listed("x", [x]))
    members.update(listed("t", [t]))
    members.update(listed("sw", [given] if weighted else []))
    members.update(listed("w", [w.numpy() for w in weights]))
    members["y0"] = model.predict_on_batch(x)
    tested = [model.test_on_batch(x, asked, given)]
    members["loss0"], members["test0"] = np.float32(tested[0]), np.array(tested, "float32")
    members.update(listed("g", gradients_of(model, x, asked, weights, given)))
    outputs = []
    for _ in range(STEPS):
        model.reset_metrics()
        outputs.append([model.train_on_batch(x, asked, given)])
    members["train_loss"] = np.array([o[0] for o in outputs], "float32")
    members["train_outputs"] = np.array(outputs, "float32")
    members.update(listed("wt", [w.numpy() for w in weights]))
    members["yt0"] = model.predict_on_batch(x)
    store.save("%s/%s/%s.npz" % (ROOT, GROUP, name), members)


def run():
    """Records all cases of this module."""
    for name, shape, makes, loss in CASES:
        case(name, shape, makes, loss)
    for arguments in MORE_CASES:
        more(*arguments)
