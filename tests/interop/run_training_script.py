# SPDX-License-Identifier: Apache-2.0
"""Runs a public training script with Fashion-MNIST as its data, and optionally with some lines changed.

run_training_script.py FILE [--replace OLD NEW]... [--samples N] [--seed N] [--threads N] [-- arguments of the script]
    --replace: replaces OLD, which must stand in the file, by NEW; \\n stands for a line feed
    --samples: the number of training samples, and of test samples at most
    --threads: of TensorFlow; default 1, so that it adds in the same order; 0: its default
Needs Debian's dataset-fashion-mnist (or its four files in the folder $FASHION_MNIST) and what the script needs.  The loaders of
keras.datasets and torchvision.datasets for MNIST and CIFAR-10 are replaced: CIFAR-10 is Fashion-MNIST with margins and
three channels.  The generators of Python, NumPy and the library are seeded first.  Prints the logs of each epoch of
Keras with all digits.  The script is not part of leat: it comes from its repository."""
import argparse
import gzip
import importlib
import json
import os
import random
import sys

import numpy

FOLDER = os.environ.get("FASHION_MNIST", "/usr/share/datasets/fashion-mnist")


def read(name, header):
    with gzip.open(os.path.join(FOLDER, name + "-ubyte.gz")) as file:
        return numpy.frombuffer(file.read(), numpy.uint8, offset=header)


def load(samples):
    """Returns ((x, y), (x, y)) of training and test, x with shape (samples, 28, 28)."""
    parts = []
    for name in ("train", "t10k"):
        x, y = read(name + "-images-idx3", 16).reshape(-1, 28, 28), read(name + "-labels-idx1", 8)
        parts.append((x[:samples].copy(), y[:samples].copy()))
    return tuple(parts)


def load_color(samples):
    """Returns what load() returns, with the shapes of CIFAR-10."""
    widths = ((0, 0), (2, 2), (2, 2))
    return tuple(
        (numpy.repeat(numpy.pad(x, widths, "constant")[..., None], 3, axis=3), y[:, None]) for x, y in load(samples)
    )


def set_threads(threads):
    import tensorflow

    tensorflow.config.threading.set_intra_op_parallelism_threads(threads)
    tensorflow.config.threading.set_inter_op_parallelism_threads(threads)


def prepare_keras(seed, samples, threads):
    import keras

    if keras.backend.backend() == "tensorflow":
        set_threads(threads)

    for name, function in (("mnist", load), ("fashion_mnist", load), ("cifar10", load_color)):
        module = importlib.import_module("keras.datasets." + name)
        module.load_data = lambda function=function: function(samples)
    random.seed(seed)
    numpy.random.seed(seed)
    if hasattr(keras.utils, "set_random_seed"):
        keras.utils.set_random_seed(seed)
    else:
        sys.modules["tensorflow"].random.set_seed(seed)
    original = keras.callbacks.History.on_epoch_end

    def on_epoch_end(self, epoch, logs=None):
        print("epoch", epoch, json.dumps({name: float(value) for name, value in sorted((logs or {}).items())}))
        return original(self, epoch, logs)

    keras.callbacks.History.on_epoch_end = on_epoch_end


def prepare_torch(seed, samples, threads):
    import torch
    from torchvision import datasets

    os.environ["FASHION_SAMPLES"] = str(samples)  # Worker processes read it, too.
    import fashion_torch

    datasets.MNIST = fashion_torch.MNIST
    torch.manual_seed(seed)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--replace", nargs=2, action="append", default=[])
    parser.add_argument("--samples", type=int, default=60000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    own, rest = sys.argv[1:], []
    if "--" in own:
        own, rest = own[: own.index("--")], own[own.index("--") + 1 :]
    arguments = parser.parse_args(own)
    with open(arguments.file, encoding="utf-8") as file:
        text = file.read()
    for old, new in arguments.replace:
        old, new = old.replace("\\n", "\n"), new.replace("\\n", "\n")
        if old not in text:
            sys.exit(f"{arguments.file} has no text {old!r}")
        text = text.replace(old, new)
    is_torch = "import torch\n" in text and "keras" not in text
    (prepare_torch if is_torch else prepare_keras)(arguments.seed, arguments.samples, arguments.threads)
    sys.argv = [arguments.file, *rest]
    exec(compile(text, arguments.file, "exec"), {"__name__": "__main__", "__file__": arguments.file})


if __name__ == "__main__":
    main()
