# SPDX-License-Identifier: Apache-2.0
"""A program that `mypy --strict` accepts: it checks that the stubs serve users.  docs/python/install.md has the command."""

from typing import Dict, Tuple

import numpy
from numpy.typing import NDArray

import leat
from leat.callbacks import Callback, EarlyStopping

Array = NDArray[numpy.float32]


class Samples:
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> Tuple[Array, int]:
        noise = leat.rng().standard_normal(4)
        return noise.astype(numpy.float32), index % 3


class Losses(Callback):
    def on_epoch_end(self, epoch: int, logs: "Dict[str, float] | None" = None) -> None:
        if logs is not None and self.model is not None:
            print(epoch, logs["loss"], self.model.learning_rate)


def main() -> None:
    model = leat.Model.sequential((4,), [("Dense", {"units": 3, "activation": "softmax"})])
    model.compile("adam", "sparse_categorical_crossentropy", "accuracy")
    with leat.Feed(Samples(), batch_size=16, workers=2, seed=1) as feed:
        callbacks = [Losses(), EarlyStopping("loss", patience=3)]
        history: leat.History = model.fit(feed, epochs=2, verbose=0, callbacks=callbacks)
        print(feed.verdict())
    losses = history.history["loss"]
    with leat.Predictor(model) as predict:
        out: Array = predict(numpy.zeros((1, 4), numpy.float32))
    try:
        leat.Model.load("missing.h5")
    except leat.MissingFileError as error:
        print(error.code, losses[-1], out.shape)


if __name__ == "__main__":
    main()
