# SPDX-License-Identifier: Apache-2.0
"""leat under Keras: Keras 3, tf.keras 2.12 to 2.15, and Keras 2.3.1.  See docs/python/keras.md.

    model.fit(leat.Feed(sequence, workers=4), validation_data=leat.Feed(validation), epochs=10)

works as it stands.  This module has what needs more: a feed that is an instance of Keras's PyDataset or Sequence, and
Keras's enqueuers.
"""

import sys

from leat import _keras_glue
from leat._enqueuers import GeneratorEnqueuer, OrderedEnqueuer, PyDatasetEnqueuer, SequenceEnqueuer
from leat.errors import ArgumentError
from leat.feed import Feed

__all__ = [
    "GeneratorEnqueuer",
    "OrderedEnqueuer",
    "PyDataset",
    "PyDatasetEnqueuer",
    "Sequence",
    "SequenceEnqueuer",
    "use_enqueuers",
]

_keras_glue.watch()
_classes = {}


def __getattr__(name):
    """Makes the classes PyDataset and Sequence when they are asked for: that imports Keras."""
    if name not in ("PyDataset", "Sequence"):
        raise AttributeError(f"module 'leat.keras' has no attribute {name!r}")
    if "tf_keras" in sys.modules and "keras" not in sys.modules:
        import tf_keras as keras
    else:
        import keras
    base = getattr(keras.utils, name, None)
    if base is None:
        raise AttributeError(f"Keras {keras.__version__} has no keras.utils.{name}: use leat.keras.Sequence")
    if base not in _classes:
        _classes[base] = _make_class(base, name)
    return _classes[base]


def _make_class(base, name):
    class Dataset(base):
        """A feed that is an instance of Keras's class.

        data: a leat.Feed, or what leat.Feed takes, with the same options.

        fit(), evaluate() and predict() take the batches from the feed in its order, whatever `shuffle`, `workers` and
        `use_multiprocessing` say there: they are options of the feed.
        """

        def __init__(self, data, batch_size=None, **options):
            super().__init__()
            if isinstance(data, Feed) and (batch_size is not None or options):
                raise ArgumentError("options cannot be changed for an open leat.Feed: pass them when it is opened")
            self.leat_feed = data if isinstance(data, Feed) else Feed(data, batch_size, **options)
            self._stream = None
            self._last = (-1, None)

        def __len__(self):
            return len(self.leat_feed)

        def __iter__(self):
            return iter(self.leat_feed)

        def __getitem__(self, index):
            """Returns the next batch, or the one that was returned last: index has to say which."""
            last = self._last[0]
            if index == last:
                return self._last[1]
            if index == 0:
                self._stream = iter(self.leat_feed)
            elif index != last + 1:
                raise IndexError(
                    f"batch {index} was asked for after batch {last}: a feed delivers its batches in order.  Pass"
                    " shuffle=False, and workers=1, to what asks for them; leat.Feed has its own shuffle and workers"
                )
            try:
                self._last = index, next(self._stream)
            except StopIteration:
                raise IndexError(f"the pass has ended before batch {index}") from None
            return self._last[1]

        @property
        def num_batches(self):
            return _keras_glue.length(self.leat_feed)

        def on_epoch_end(self):
            """Does nothing: the feed calls on_epoch_end of its data."""

        def close(self):
            self.leat_feed.close()

        def __enter__(self):
            return self

        def __exit__(self, *exception):
            self.close()

    Dataset.__name__ = Dataset.__qualname__ = name
    return Dataset


_ENQUEUERS = {
    "keras.utils": ("OrderedEnqueuer", "GeneratorEnqueuer", "SequenceEnqueuer"),
    "keras.utils.data_utils": ("OrderedEnqueuer", "GeneratorEnqueuer", "SequenceEnqueuer"),
    "keras.src.utils.data_utils": ("OrderedEnqueuer", "GeneratorEnqueuer", "SequenceEnqueuer"),
    "keras.engine.training_generator": ("OrderedEnqueuer", "GeneratorEnqueuer"),
    "tf_keras.src.utils.data_utils": ("OrderedEnqueuer", "GeneratorEnqueuer", "SequenceEnqueuer"),
    "keras.src.trainers.data_adapters.py_dataset_adapter": ("OrderedEnqueuer",),
}


def use_enqueuers():
    """Lets Keras use leat's enqueuers for the Sequences, PyDatasets and generators that it is given itself.

    `fit_generator(sequence, workers=4, use_multiprocessing=True)`, and a PyDataset with workers=4, then have leat's
    workers, and need no other change.  Call it after Keras was imported.  Returns a function that undoes it.
    """
    changed = []
    for module_name, names in _ENQUEUERS.items():
        module = sys.modules.get(module_name)
        for name in names if module is not None else ():
            original = getattr(module, name, None)
            if original is None:
                continue
            ours = PyDatasetEnqueuer if module_name.endswith("py_dataset_adapter") else globals()[name]
            changed.append((module, name, original))
            setattr(module, name, _choose(ours) if module_name == "keras.engine.training_generator" else ours)
    if not changed:
        raise ImportError("no Keras was imported: import it before leat.keras.use_enqueuers() is called")

    def undo():
        for module, name, original in changed:
            setattr(module, name, original)

    return undo


def _choose(ours):
    """Returns a function that makes an enqueuer: of a feed, the one that takes its batches."""
    from leat._enqueuers import FeedEnqueuer

    def make(sequence, *arguments, **named):
        feed = _keras_glue.feed_of(sequence)
        return ours(sequence, *arguments, **named) if feed is None else FeedEnqueuer(feed)

    return make
