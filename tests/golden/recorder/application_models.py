# SPDX-License-Identifier: Apache-2.0
"""The models of keras.applications, with random weights that keep activations within bounds."""
import json

import numpy as np
from keras import applications, layers, models
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.eager import context

from . import store
from .session import K, keras, tf


# Name: function, pixels (few, but enough values per channel for every batch normalisation).
MODELS = {
    "VGG16": (applications.VGG16, 32),
    "VGG19": (applications.VGG19, 32),
    "ResNet50": (applications.resnet.ResNet50, 64),
    "ResNet101": (applications.ResNet101, 64),
    "ResNet152": (applications.ResNet152, 64),
    "ResNet50-2015": (applications.ResNet50, 64),
    "ResNet50V2": (applications.ResNet50V2, 64),
    "ResNet101V2": (applications.ResNet101V2, 64),
    "ResNet152V2": (applications.ResNet152V2, 64),
    "InceptionV3": (applications.InceptionV3, 107),
    "InceptionResNetV2": (applications.InceptionResNetV2, 107),
    "Xception": (applications.Xception, 71),
    "MobileNet": (applications.MobileNet, 64),
    "MobileNetV2": (applications.MobileNetV2, 64),
    "DenseNet121": (applications.DenseNet121, 64),
    "DenseNet169": (applications.DenseNet169, 64),
    "DenseNet201": (applications.DenseNet201, 64),
    "NASNetMobile": (applications.NASNetMobile, 64),
    "NASNetLarge": (applications.NASNetLarge, 64),
}


def _natural(random, layer, weight):
    """Returns a weight by its name: kernels by He's rule, weights of normalisations near 0 and 1."""
    name, shape = weight.name.split("/")[-1], K.int_shape(weight)
    if "gamma" in name or "moving_variance" in name:
        return random.uniform(0.7, 1.3, shape)
    if len(shape) == 1:
        return random.normal(0.0, 0.1, shape)
    return random.normal(0.0, np.sqrt(2.0 / fan_in(name, shape)), shape)


def fan_in(name, shape):
    """Returns the number of products in a sum."""
    return np.prod(shape[:2] if "depthwise" in name else shape[:-1])


def before_relu(layer):
    """Returns True if only a ReLU reads the layer."""
    readers = [node.outbound_layer for node in layer._outbound_nodes]
    names = [getattr(getattr(r, "activation", None), "__name__", r.__class__.__name__).lower() for r in readers]
    own = getattr(getattr(layer, "activation", None), "__name__", "linear")
    return own == "relu" or (own == "linear" and bool(names) and all(n == "relu" for n in names))


def _steady(random, layer, weight):
    """Returns a weight that keeps the input of a ReLU about eight standard deviations away from its kinks, so that
    rounding does not change a training step.  A channel is positive; if only a ReLU reads it, one of five channels is
    negative."""
    name, shape = weight.name.split("/")[-1], K.int_shape(weight)
    if "gamma" in name:
        return random.uniform(0.2, 0.3, shape)
    if "moving_variance" in name:
        return random.uniform(0.7, 1.3, shape)
    if "moving_mean" in name:
        return random.normal(0.0, 0.1, shape)
    if len(shape) == 1:
        shut = random.uniform(0.0, 1.0, shape) < (0.2 if before_relu(layer) else 0.0)
        return random.uniform(1.8, 2.2, shape) * np.where(shut, -1.0, 1.0)
    if "depthwise" in name:
        return random.uniform(0.5, 1.0, shape) / np.prod(shape[:2])
    kernel = random.normal(0.0, 0.5 / np.sqrt(fan_in(name, shape)), shape)
    return kernel - kernel.mean(axis=tuple(range(len(shape) - 1)), keepdims=True)


def _settle(model, x, random):
    """Sets the moving averages near the statistics of the batch, so that activations do not grow with the depth."""
    found = [layer for layer in model.layers if isinstance(layer, layers.BatchNormalization)]
    if not found:
        return
    axes = [[i for i in range(K.ndim(b.input)) if i != b.axis % K.ndim(b.input)] for b in found]
    statistics = [f(b.input, axis=a) for b, a in zip(found, axes) for f in (K.mean, K.var)]
    values = K.function([model.inputs[0], K.learning_phase()], statistics)([x, 1])
    for i, layer in enumerate(found):
        mean, variance = values[2 * i:2 * i + 2]
        mean = mean + 0.1 * np.sqrt(variance) * random.normal(0.0, 1.0, mean.shape)
        variance = variance * random.uniform(0.8, 1.25, variance.shape) + 1e-3
        layer.set_weights(layer.get_weights()[:-2] + [mean, variance])


def rewrite_graphs(wanted):
    """Sets whether TensorFlow optimizes graphs before it runs them, which takes minutes for hundreds of layers.  Call
    it before the first variable is created."""
    levels, options = config_pb2.OptimizerOptions, config_pb2.ConfigProto()
    options.graph_options.optimizer_options.opt_level = levels.L1 if wanted else levels.L0
    context.context()._config = options
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": not wanted})


def without_dropout(model):
    """Returns the model without dropout, because the random numbers of leat differ."""
    if not any(isinstance(layer, layers.Dropout) for layer in model.layers):
        return model
    config = json.loads(model.to_json())
    for layer in config["config"]["layers"]:
        if layer["class_name"] == "Dropout":
            layer["config"]["rate"] = 0.0
    K.clear_session()  # names begin anew
    return models.model_from_json(json.dumps(config))


def fill(model, name, rule):
    """Sets every weight by a rule: "natural" or "steady"."""
    random = store.random_for("applications/%s/%s" % (name, rule))
    choose = {"natural": _natural, "steady": _steady}[rule]
    for layer in model.layers:
        layer.set_weights([choose(random, layer, w) for w in layer.weights])
    return random


def make(name, pixels, classes, batch):
    """Returns the model with natural weights, and a batch: (model, x, t)."""
    K.clear_session()
    model = without_dropout(MODELS[name][0](weights=None, input_shape=(pixels, pixels, 3), classes=classes))
    random = fill(model, name, "natural")
    x = random.normal(0.0, 1.0, (batch, 1, 1, 3)) + random.normal(0.0, 0.5, (batch, pixels, pixels, 3))
    x = x.astype("float32")  # samples differ as wholes: what averages over positions sees them
    t = np.eye(classes, dtype="float32")[random.randint(0, classes, batch)]
    _settle(model, x, random)
    model.compile(keras.optimizers.SGD(1.0), "categorical_crossentropy")
    return model, x, t
