# SPDX-License-Identifier: Apache-2.0
"""Cases: losses at the end of a model, where Keras computes the loss from logits or from probabilities."""
import numpy as np

from .layers_core import stack
from .losses import GROUP
from .model_case import record
from .session import keras

L = keras.layers
LOGITS = "from the logits, unclipped"
CLIPPED = "from the probabilities, clipped: the last operation is no Softmax or Sigmoid"


def extreme(model, random):
    """Returns weights that make the pre-activations of the last Dense layer about +-60."""
    weights = model.get_weights()
    weights[-2] = np.sign(weights[-2]) * 30.0
    model.set_weights(weights)


def crossentropies(root):
    """Softmax and sigmoid, written in each way, with moderate and with extreme logits."""
    soft = lambda: L.Activation("softmax")  # noqa: E731
    heads = {
        "softmax": (LOGITS, (4,), [lambda: L.Dense(3, activation="softmax")]),
        "activation_softmax": (LOGITS, (4,), [lambda: L.Dense(3), soft]),
        "softmax_rank3": (CLIPPED, (2, 4), [lambda: L.Dense(3, activation="softmax")]),
        "activation_softmax_rank3": (CLIPPED, (2, 4), [lambda: L.Dense(3), soft]),
        "softmax_rank4": (CLIPPED, (2, 2, 4), [lambda: L.Dense(3, activation="softmax")]),
        "softmax_linear": (CLIPPED, (4,), [lambda: L.Dense(3, activation="softmax"),
                                           lambda: L.Activation("linear")]),
        "softmax_dropout0": (CLIPPED, (4,), [lambda: L.Dense(3, activation="softmax"),
                                             lambda: L.Dropout(0.0)]),
        "softmax_reshape": (CLIPPED, (4,), [lambda: L.Dense(3, activation="softmax"),
                                            lambda: L.Reshape((3,))]),
        "exponential": (CLIPPED, (4,), [lambda: L.Dense(3, activation="exponential")]),
        "softplus": (CLIPPED, (4,), [lambda: L.Dense(3, activation="softplus")]),
        "sigmoid": (CLIPPED, (4,), [lambda: L.Dense(3, activation="sigmoid")]),
    }
    for loss, targets in (("categorical_crossentropy", "onehot"),
                          ("sparse_categorical_crossentropy", "sparse")):
        for name, (notes, shape, layers) in heads.items():
            record(root, GROUP, "model_%s_%s" % (loss, name), "Dense", stack(shape, *layers),
                   loss=loss, targets=targets, batch=4, notes=notes, metrics=[loss, "accuracy"])
            if name in ("exponential", "softplus"):
                continue
            record(root, GROUP, "model_%s_%s_extreme" % (loss, name), "Dense", stack(shape, *layers),
                   loss=loss, targets=targets, batch=4, notes=notes, adjust=extreme, metrics=[loss])
    heads = {
        "sigmoid": (LOGITS, (4,), [lambda: L.Dense(3, activation="sigmoid")]),
        "sigmoid_one_unit": (LOGITS, (4,), [lambda: L.Dense(1, activation="sigmoid")]),
        "activation_sigmoid": (LOGITS, (4,), [lambda: L.Dense(3), lambda: L.Activation("sigmoid")]),
        "sigmoid_rank3": (LOGITS, (2, 4), [lambda: L.Dense(3, activation="sigmoid")]),
        "sigmoid_linear": (CLIPPED, (4,), [lambda: L.Dense(3, activation="sigmoid"),
                                           lambda: L.Activation("linear")]),
        "sigmoid_reshape": (CLIPPED, (4,), [lambda: L.Dense(3, activation="sigmoid"),
                                            lambda: L.Reshape((1, 3))]),
        "hard_sigmoid": (CLIPPED, (4,), [lambda: L.Dense(3, activation="hard_sigmoid")]),
        "softmax": (CLIPPED, (4,), [lambda: L.Dense(3, activation="softmax")]),
    }
    for name, (notes, shape, layers) in heads.items():
        for suffix, adjust in (("", None), ("_extreme", extreme)):
            record(root, GROUP, "model_binary_crossentropy_%s%s" % (name, suffix), "Dense",
                   stack(shape, *layers), loss="binary_crossentropy", targets="binary", batch=4,
                   notes=notes, adjust=adjust, metrics=["binary_crossentropy", "accuracy"])


def options(root):
    """Loss classes with options, weights and reductions, at the end of a model."""
    soft = stack((4,), lambda: L.Dense(5, activation="softmax"))
    soft3 = stack((2, 4), lambda: L.Dense(5, activation="softmax"))
    sigm = stack((4,), lambda: L.Dense(3, activation="sigmoid"))
    line = stack((4,), lambda: L.Dense(3))
    cce, bce = keras.losses.CategoricalCrossentropy, keras.losses.BinaryCrossentropy
    sparse, mse = keras.losses.SparseCategoricalCrossentropy, keras.losses.MeanSquaredError

    def case(name, build, loss, targets, **more):
        record(root, GROUP, "model_" + name, "Dense", build, loss=loss, targets=targets, batch=4, **more)

    case("cce_smoothing_softmax", soft, cce(label_smoothing=0.1), "onehot")
    case("cce_smoothing_softmax_rank3", soft3, cce(label_smoothing=0.1), "onehot")
    case("bce_smoothing_sigmoid", sigm, bce(label_smoothing=0.1), "binary")
    case("cce_from_logits", line, cce(from_logits=True), "onehot", weights_scale=10.0)
    case("bce_from_logits", line, bce(from_logits=True), "binary", weights_scale=10.0)
    case("sparse_from_logits", line, sparse(from_logits=True), "sparse", weights_scale=10.0)
    case("cce_sample_weight", soft, "categorical_crossentropy", "onehot", sample_weight=True)
    case("sparse_sample_weight", soft, "sparse_categorical_crossentropy", "sparse", sample_weight=True)
    case("sparse_sample_weight_rank3", soft3, "sparse_categorical_crossentropy", "sparse",
         sample_weight=True)
    case("huber_sample_weight", line, keras.losses.Huber(0.5), "normal", sample_weight=True)
    case("huber_name", line, "huber_loss", "normal")
    for reduction in ("sum", "none", "sum_over_batch_size"):
        case("mse_reduction_" + reduction, line, mse(reduction=reduction), "normal")
        case("mse_reduction_%s_sample_weight" % reduction, line, mse(reduction=reduction), "normal",
             sample_weight=True)

    def nested():
        inner = keras.Sequential([L.Dense(3, activation="softmax", input_shape=(4,))])
        x = L.Input((4,))
        return keras.Model(x, inner(x))
    record(root, GROUP, "model_cce_nested_softmax", "Sequential", nested, targets="onehot", batch=4,
           loss="categorical_crossentropy", notes=LOGITS)
    record(root, GROUP, "model_cce_nested_softmax_extreme", "Sequential", nested, targets="onehot", batch=4,
           loss="categorical_crossentropy", adjust=extreme, notes=LOGITS)

    def both():
        x = L.Input((4,))
        y = L.Dense(3, activation="softmax")(x)
        return keras.Model(x, [y, L.Dense(2)(y)])
    record(root, GROUP, "model_cce_inner_softmax", "Model", both, targets=["onehot", "normal"], batch=4,
           loss=["categorical_crossentropy", "mse"], notes=LOGITS)


def others(root):
    """Each further loss by name after a layer whose output suits it."""
    table = {
        "mean_squared_error": ("linear", "normal"),
        "mean_absolute_error": ("linear", "normal"),
        "mean_absolute_percentage_error": ("linear", "positive"),
        "mean_squared_logarithmic_error": ("softplus", "positive"),
        "squared_hinge": ("tanh", "pm1"),
        "hinge": ("tanh", "binary"),
        "categorical_hinge": ("linear", "onehot"),
        "logcosh": ("linear", "normal"),
        "kullback_leibler_divergence": ("softmax", "distribution"),
        "poisson": ("exponential", "positive"),
        "cosine_proximity": ("linear", "normal"),
    }
    for loss, (activation, targets) in table.items():
        rate = 0.001 if "percentage" in loss else 0.1
        record(root, GROUP, "model_" + loss, "Dense",
               stack((4,), lambda: L.Dense(5, activation="tanh"),
                     lambda: L.Dense(3, activation=activation)),
               loss=loss, targets=targets, batch=4, optimizer=("SGD", {"learning_rate": rate}))
    record(root, GROUP, "model_logcosh_rank3", "Dense",
           stack((3, 4), lambda: L.Dense(2)), loss="logcosh", targets="normal", sample_weight=True)


def run(root):
    """Records all cases of this module."""
    for part in (crossentropies, options, others):
        part(root)
