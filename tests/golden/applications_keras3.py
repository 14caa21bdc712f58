# SPDX-License-Identifier: Apache-2.0
"""Compares every layer's output with current Keras's on some models of keras.applications: see tools/applications."""
import argparse
import os
import subprocess
import sys

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras  # noqa: E402
import numpy as np  # noqa: E402

from applications import LAYER_LIMIT, ROW3, distance, head  # noqa: E402

MODELS = ("MobileNet", "MobileNetV2", "MobileNetV3Small", "EfficientNetB0", "EfficientNetV2B0", "ConvNeXtTiny")


def fill(model, random):
    """Sets kernels by He's rule, and the weights of normalisations near 0 and 1."""
    for weight in model.weights:
        shape = tuple(weight.shape)
        if weight.name in ("gamma", "moving_variance", "variance"):
            weight.assign(random.uniform(0.7, 1.3, shape))
        elif weight.name != "count":
            fan_in = np.prod(shape[:2] if "depthwise" in weight.path else shape[:-1])
            weight.assign(random.normal(0.0, 0.1 if len(shape) < 2 else np.sqrt(2.0 / fan_in), shape))
    for layer in model.layers:
        if isinstance(layer, keras.layers.Normalization):
            layer.finalize_state()  # it goes by copies of its weights


def settle(model, x):
    """Sets the moving averages to the statistics of the batch, so that activations do not grow with the depth."""
    found = [layer for layer in model.layers if isinstance(layer, keras.layers.BatchNormalization)]
    if not found:
        return
    values = keras.Model(model.input, [layer.input for layer in found])(x, training=True)
    for layer, value in zip(found, values):
        layer.moving_mean.assign(np.mean(value, (0, 1, 2)))
        layer.moving_variance.assign(np.var(value, (0, 1, 2)) + 1e-3)


def compare(name, pixels, arguments):
    """Returns one row of the table."""
    folder = os.path.join(arguments.out, "keras3", name)
    os.makedirs(folder, exist_ok=True)
    path, data = os.path.join(folder, "model.keras"), os.path.join(folder, "data.npz")
    keras.backend.clear_session()
    model = getattr(keras.applications, name)(weights=None, input_shape=(pixels, pixels, 3), classes=arguments.classes)
    random = np.random.RandomState(1)
    fill(model, random)
    x = random.normal(0.0, 1.0, (arguments.batch, 1, 1, 3))
    x = x + random.normal(0.0, 0.5, (arguments.batch, pixels, pixels, 3))
    if any(isinstance(layer, keras.layers.Rescaling) for layer in model.layers):
        x = 127.5 + 50.0 * x
    x = x.astype("float32")
    settle(model, x)
    model.save(path)
    np.savez(data, x=x, t=np.zeros((arguments.batch, arguments.classes), "float32"))
    theirs = keras.Model(model.inputs, [layer.output for layer in model.layers]).predict_on_batch(x)
    subprocess.check_call([arguments.program, "layers", path, data, folder])
    with np.load(os.path.join(folder, "layers.npz")) as ours:
        errors = {layer.name: distance(ours[layer.name], v) for layer, v in zip(model.layers, theirs)}
    errors["predict"] = distance(np.load(os.path.join(folder, "predict.npy")), theirs[-1])
    worst = max(errors, key=errors.get)
    passed = errors[worst] < LAYER_LIMIT
    print(ROW3 % (name, pixels, len(model.layers), model.count_params(), "%.1e" % errors[worst], worst[-25:]) +
          ("" if passed else " FAILED"), flush=True)
    for file in (path, data, os.path.join(folder, "layers.npz")):
        os.remove(file)
    return passed


def main():
    """Parses the command line, runs each model and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("models", nargs="*", default=MODELS, help="NAME or NAME@PIXELS; some")
    arguments = parser.parse_args()
    head(ROW3, "Model", "Pixels", "Layers", "Parameters", "Output", "of layer")
    passed = True
    for model in arguments.models:
        name, _, pixels = model.partition("@")
        passed = compare(name, int(pixels or 64), arguments) and passed
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
