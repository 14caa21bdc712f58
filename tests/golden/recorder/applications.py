# SPDX-License-Identifier: Apache-2.0
"""Small models of keras.applications, and what Keras writes of ResNet-50, 101 and 152.

No weight and no image is recorded: rules say how both sides make them.  Value i of stream s lies at u(s, i) between
two bounds; README.md has the formula."""
import json
import types

import keras_applications
import numpy as np
from keras import applications, backend, layers, models, utils

from . import store
from .application_models import before_relu, fan_in, rewrite_graphs, without_dropout
from .session import K, VERSIONS, keras

PROBES = 15
BATCH, CLASSES = 4, 5
SHUT_STREAMS = 1000003
IMAGE_STREAM, SAMPLE_STREAM = 2000003, 2000004


def unit(stream, count):
    """Returns numbers in [0, 1): a hash of stream and position."""
    with np.errstate(over="ignore"):
        x = np.arange(count, dtype=np.uint32) * np.uint32(0x9E3779B9) + np.uint32(stream) * np.uint32(0x85EBCA6B)
        x = (x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D)
        x = (x ^ (x >> np.uint32(15))) * np.uint32(0x846CA68B)
        return (x ^ (x >> np.uint32(16))) / 2.0**32


def natural(layer, name, shape):
    """Returns kernels by He's rule, and weights of normalisations near 0 and 1."""
    if "gamma" in name or "moving_variance" in name:
        return {"low": 0.7, "high": 1.3}
    bound = 0.15 if len(shape) == 1 else float(np.sqrt(6.0 / fan_in(name, shape)))
    return {"low": -bound, "high": bound}


def steady(layer, name, shape):
    """Keeps the input of a ReLU far from its kinks; application_models.py explains this."""
    if "gamma" in name:
        return {"low": 0.2, "high": 0.3}
    if "moving_variance" in name:
        return {"low": 0.7, "high": 1.3}
    if "moving_mean" in name:
        return {"low": -0.15, "high": 0.15}
    if len(shape) == 1:
        return {"low": 1.8, "high": 2.2, "shut": 0.2 if before_relu(layer) else 0.0}
    if "depthwise" in name:
        return {"low": float(0.5 / np.prod(shape[:2])), "high": float(1.0 / np.prod(shape[:2]))}
    bound = float(0.9 / np.sqrt(fan_in(name, shape)))
    return {"low": -bound, "high": bound, "center": True}


def value(rule, stream, shape):
    """Returns the weight that a rule describes."""
    count = int(np.prod(shape))
    values = rule["low"] + (rule["high"] - rule["low"]) * unit(stream, count)
    if rule.get("shut"):
        values = np.where(unit(stream + SHUT_STREAMS, count) < rule["shut"], -values, values)
    values = values.astype("float32").reshape(shape)
    if rule.get("center"):
        values = values - values.astype("float64").mean(axis=tuple(range(len(shape) - 1)))
    return values.astype("float32")


def fill(model, choose, first_stream):
    """Sets all weights by rules, and returns the rules."""
    rules, index = [], 0
    for layer in model.layers:
        values = []
        for weight in layer.weights:
            shape = K.int_shape(weight)
            rules.append(choose(layer, weight.name.split("/")[-1], shape))
            values.append(value(rules[-1], first_stream + 2 * index, shape))
            index += 1
        layer.set_weights(values)
    return rules


def images(pixels):
    """Returns (N, pixels, pixels, 3): samples differ in their means and in each pixel."""
    x = 2.0 * unit(IMAGE_STREAM, BATCH * pixels * pixels * 3).reshape(BATCH, pixels, pixels, 3) - 1.0
    return (x + 3.0 * unit(SAMPLE_STREAM, BATCH * 3).reshape(BATCH, 1, 1, 3) - 1.5).astype("float32")


def sample(array, most):
    """Returns at most `most` evenly spaced elements."""
    flat = np.asarray(array).reshape(-1)
    return flat[::max(1, -(-flat.size // most))]


def modules(space):
    """Returns the modules of Keras that keras_applications needs."""
    return {"backend": backend, "layers": space, "models": models, "utils": utils}


def thin(divisor):
    """Returns keras.layers with fewer filters."""
    space = types.SimpleNamespace(**{n: getattr(layers, n) for n in dir(layers) if not n.startswith("_")})
    for name in ("Conv2D", "SeparableConv2D", "Dense"):
        make = getattr(layers, name)

        def thinner(filters, *args, make=make, **options):
            keep = options.get("name") in ("predictions", "probs", "fc1000")
            return make(filters if keep else max(4, filters // divisor), *args, **options)
        setattr(space, name, thinner)
    return modules(space)


def _thin(make, divisor):
    return lambda **options: make(**options, **thin(divisor))


def _nasnet(**options):
    return keras_applications.nasnet.NASNet(
        penultimate_filters=96, num_blocks=1, stem_block_filters=8, skip_reduction=False, filter_multiplier=2,
        default_size=224, **options, **modules(layers))


SMALL = {
    "mobilenet": (lambda **options: applications.MobileNet(alpha=0.25, **options), 32),
    "mobilenet_v2": (lambda **options: applications.MobileNetV2(alpha=0.35, **options), 64),
    "resnet50": (_thin(keras_applications.resnet50.ResNet50, 16), 32),
    "resnet50_v2": (_thin(keras_applications.resnet_v2.ResNet50V2, 16), 64),
    "vgg16": (_thin(keras_applications.vgg16.VGG16, 16), 32),
    "xception": (_thin(keras_applications.xception.Xception, 32), 71),
    "inception_v3": (_thin(keras_applications.inception_v3.InceptionV3, 16), 75),
    "densenet121": (_thin(keras_applications.densenet.DenseNet121, 16), 64),
    "nasnet": (_nasnet, 64),
}


def record_small(out, name):
    """Records one case: layers with natural weights, a training step with steady weights."""
    make, pixels = SMALL[name]
    K.clear_session()
    model = without_dropout(make(weights=None, input_shape=(pixels, pixels, 3), classes=CLASSES))
    names = [layer.name for layer in model.layers[1:-1]]
    names = names[::-(-len(names) // PROBES)]
    x, labels = images(pixels), [i % CLASSES for i in range(BATCH)]
    members = {"config": store.text(model.to_json())}
    meta = dict(VERSIONS, group="applications", case=name, layers=names, labels=labels, pixels=pixels)
    meta["parameters"] = model.count_params()
    meta["natural"] = fill(model, natural, 0)
    outputs = [model.get_layer(n).output for n in names]
    found = keras.Model(model.inputs, outputs).predict_on_batch(x)
    members["outputs"] = np.concatenate([sample(array, 64) for array in found])
    members["y"] = model.predict_on_batch(x)
    meta["steady"] = fill(model, steady, 1)
    model.compile(keras.optimizers.SGD(1.0), "categorical_crossentropy")
    members["loss"] = model.train_on_batch(x, np.eye(CLASSES, dtype="float32")[labels])
    members["trained"] = np.concatenate([sample(array, 16) for array in model.get_weights()])
    members = dict({"meta": store.text(meta)}, **members)
    store.save("%s/applications/%s.npz" % (out, name), members, limit_bytes=100 * 1024)


def record_resnet(out, depth):
    """Records the configuration and the summary of the model with its default arguments."""
    K.clear_session()
    model = getattr(applications.resnet, "ResNet%d" % depth)(weights=None)
    lines = []
    model.summary(print_fn=lambda line: lines.append(line + "\n"))
    meta = dict(VERSIONS, group="resnets", case="resnet%d" % depth)
    store.save("%s/resnets/resnet%d.npz" % (out, depth),
               {"meta": store.text(meta), "config": store.text(model.to_json()), "summary": store.text("".join(lines))},
               limit_bytes=40 * 1024)


def run(out):
    """Records all models."""
    rewrite_graphs(False)
    for name in sorted(SMALL):
        record_small(out, name)
    rewrite_graphs(True)
    for depth in (50, 101, 152):
        record_resnet(out, depth)
