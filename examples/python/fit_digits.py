#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small convolutional network on pictures of 28 x 28 pixels, in ten classes.

    python3 fit_digits.py                          # pictures that this file makes
    python3 fit_digits.py --data FOLDER            # MNIST or Fashion-MNIST: train-images-idx3-ubyte.gz, ...
"""

import argparse

import numpy

import leat
from leat import callbacks


def make_pictures(samples, seed=0):
    """Returns (x, y): for each class a pattern of its own, moved by up to two pixels, with noise."""
    patterns = numpy.random.RandomState(42).rand(10, 7, 7).repeat(4, 1).repeat(4, 2) > 0.5
    random = numpy.random.RandomState(seed)
    classes = random.randint(0, 10, samples)
    x = patterns[classes] * 0.5 + random.rand(samples, 28, 28) * 0.5
    moves = random.randint(-2, 3, (samples, 2))
    x = numpy.stack([numpy.roll(picture, move, (0, 1)) for picture, move in zip(x, moves)])
    return x[..., None].astype("float32"), numpy.eye(10, dtype="float32")[classes]


def build():
    return leat.Model.sequential(
        (28, 28, 1),
        [
            ("Conv2D", {"filters": 16, "kernel_size": 3, "activation": "relu"}),
            ("MaxPooling2D", {"pool_size": 2}),
            ("Conv2D", {"filters": 32, "kernel_size": 3, "activation": "relu"}),
            ("MaxPooling2D", {"pool_size": 2}),
            ("Flatten", {}),
            ("Dropout", {"rate": 0.25}),
            ("Dense", {"units": 10, "activation": "softmax"}),
        ],
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with the four files of MNIST or Fashion-MNIST")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--samples", type=int, default=4000, help="number of pictures that are made without --data")
    options = parser.parse_args()
    with build() as model:
        model.compile("adam", "categorical_crossentropy", ["accuracy"])
        model.summary()
        stop = callbacks.EarlyStopping(monitor="val_accuracy", patience=2, restore_best_weights=True)
        if options.data:
            images, labels = f"{options.data}/%s-images-idx3-ubyte.gz", f"{options.data}/%s-labels-idx1-ubyte.gz"
            spec = f"idx:{images},{labels}?scale=1/255&onehot=10"
            train, test = (leat.source(spec % (part, part), batch_size=64) for part in ("train", "t10k"))
            history = model.fit(train, epochs=options.epochs, validation_data=test, callbacks=[stop])
        else:
            x, y = make_pictures(options.samples)
            history = model.fit(x, y, 64, options.epochs, validation_split=0.2, callbacks=[stop])
        print(f"best accuracy of the validation: {max(history.history['val_accuracy']):.3f}")


if __name__ == "__main__":
    main()
