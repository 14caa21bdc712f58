# SPDX-License-Identifier: Apache-2.0
"""How Keras comes to know leat.Feed: one function of each Keras that looks at the type of its data is wrapped.

Nothing here imports a Keras.  watch() wraps what is loaded already, and asks to be told when more is loaded.
"""

import functools
import sys
import threading

from leat.errors import Error

_MOST_REPLAYED = 8  # batches; a feed has as many at the same time without copying them


class Stream:
    """The passes of a feed, for a Keras that looks at the first batches before it begins."""

    def __init__(self, feed):
        self.feed = feed
        self._lock = threading.Lock()  # guards all members: TensorFlow calls from threads of its own
        self._turn = 0  # the number of begin() calls: earlier iterators end
        self._iterator = None
        self._first = []  # all batches that were taken so far, or None

    def peek(self, count):
        """Returns the first batches of the pass that begins next."""
        batches = self.begin()
        return [batch for batch, _ in zip(batches, range(count))]

    def begin(self):
        """Returns an iterator over a pass: the same pass again if few batches were taken since the first call."""
        with self._lock:
            self._turn += 1
            replayed = self._first
            self._first = [] if self._iterator is None else None
            if not replayed:
                self._iterator = iter(self.feed)
            return self._run(self._turn, list(replayed or ()))

    def _run(self, turn, replayed):
        first = self._first if self._turn == turn else None
        at = 0
        while True:
            with self._lock:
                if turn != self._turn:
                    return
                if at < len(replayed):
                    batch = replayed[at]
                else:
                    batch = next(self._iterator, self)
                    if batch is self:
                        self._first = None
                        break
                    if self._first is not None and self._first is first:
                        self._first.append(batch)
                        if len(first) > _MOST_REPLAYED:
                            self._first = first = None
                at += 1
            yield batch
        if not at:
            raise make_ended_error()


def make_ended_error():
    return Error(
        "the feed has ended: expected another pass.  A leat.Feed of an iterable has one pass, and one with passes=N has"
        " N: open another feed, or use data with __len__ and __getitem__"
    )


def length(feed):
    """Returns the number of batches of a pass; None if it is not known."""
    return None if feed._source.generator else len(feed)


def feed_of(data):
    """Returns the feed that the data is, or that it wraps; None for other data."""
    from leat.feed import Feed

    if isinstance(data, Feed):
        return data
    return getattr(data, "leat_feed", None)


# ---- Keras 3 ----


@functools.lru_cache(maxsize=None)
def _get_adapter_class(data_adapters):
    from keras.src.trainers.data_adapters import data_adapter_utils as utils
    from keras.src.trainers.data_adapters.data_adapter import DataAdapter

    class FeedAdapter(DataAdapter):
        """Keras 3's adapter of a leat.Feed."""

        def __init__(self, feed, class_weight):
            self._feed = feed
            self._class_weight = class_weight
            self._stream = Stream(feed)
            self._signature = None

        def _iterate(self):
            return map(self._standardize, self._stream.begin())

        def _standardize(self, batch):
            if isinstance(batch, dict):
                return batch
            if isinstance(batch, list):
                batch = tuple(batch)
            if not isinstance(batch, tuple):
                batch = (batch,)
            if len(batch) not in (1, 2, 3):
                raise ValueError(
                    "A batch of a leat.Feed must be an array, a dict, or a tuple (inputs,), (inputs, targets) or"
                    f" (inputs, targets, sample_weights).  Received: a tuple with {len(batch)} items"
                )
            if self._class_weight is None or len(batch) == 1:
                return batch
            if len(batch) == 3:
                raise ValueError("You cannot specify `class_weight` and `sample_weight` at the same time.")
            return (*batch, utils.class_weight_to_sample_weights(batch[1], self._class_weight))

        def get_numpy_iterator(self):
            return utils.get_numpy_iterator(self._iterate())

        def get_jax_iterator(self):
            return utils.get_jax_iterator(self._iterate())

        def get_torch_dataloader(self):
            return utils.get_torch_dataloader(self._iterate())

        def get_tf_dataset(self):
            import tensorflow as tf

            if self._signature is None:
                count = utils.NUM_BATCHES_FOR_TENSOR_SPEC
                batches = [self._standardize(batch) for batch in self._stream.peek(count)]
                self._signature = utils.get_tensor_spec(batches)
            dataset = tf.data.Dataset.from_generator(self._iterate, output_signature=self._signature)
            options = tf.data.Options()  # The workers of the feed prefetch; TensorFlow's threads would interfere.
            options.autotune.enabled = False
            options.experimental_optimization.inject_prefetch = False
            options.threading.private_threadpool_size = 1
            return dataset.with_options(options)

        @property
        def num_batches(self):
            return length(self._feed)

        @property
        def batch_size(self):
            return None

    return FeedAdapter


def _teach_keras_3(data_adapters):
    original = data_adapters.get_data_adapter

    @functools.wraps(original)
    def get_data_adapter(x, y=None, sample_weight=None, **options):
        feed = feed_of(x)
        if feed is None:
            return original(x, y=y, sample_weight=sample_weight, **options)
        for name, value in (("y", y), ("sample_weight", sample_weight)):
            if value is not None:
                raise ValueError(f"`{name}` cannot be passed with a leat.Feed: its batches have to contain it")
        return _get_adapter_class(data_adapters)(feed, options.get("class_weight"))

    data_adapters.get_data_adapter = get_data_adapter


# ---- tf.keras 2.12 to 2.15, and tf_keras ----


@functools.lru_cache(maxsize=None)
def _get_legacy_adapter_class(data_adapter):
    class FeedAdapter(data_adapter.KerasSequenceAdapter):
        """tf.keras's adapter of a leat.Feed."""

        @staticmethod
        def can_handle(x, y=None):
            return feed_of(x) is not None

        def __init__(self, x, y=None, sample_weights=None, **options):
            self._feed = feed_of(x)
            self._stream = Stream(self._feed)
            options.update(shuffle=False, workers=0, use_multiprocessing=False)
            super().__init__(x, y, sample_weights, **options)

        def _peek_and_restore(self, x):
            batches = self._stream.peek(1)
            return batches[0], x

        def _handle_multiprocessing(self, *_):
            return self._stream.begin

        def get_size(self):
            return length(self._feed)

        def on_epoch_end(self):
            pass

    return FeedAdapter


def _teach_tf_keras(data_adapter):
    original = data_adapter.select_data_adapter

    @functools.wraps(original)
    def select_data_adapter(x, y):
        return original(x, y) if feed_of(x) is None else _get_legacy_adapter_class(data_adapter)

    data_adapter.select_data_adapter = select_data_adapter


# ---- Keras 2.3.1 ----


class Passes:
    """What Keras 2 calls a Sequence, of a feed: its enqueuer takes the batches from the feed."""

    use_sequence_api = True

    def __init__(self, feed):
        self.leat_feed = feed

    def __len__(self):
        return len(self.leat_feed)

    def __iter__(self):
        return iter(self.leat_feed)

    def on_epoch_end(self):
        """Does nothing: the feed calls on_epoch_end of its data."""
        from leat._enqueuers import finish_pass

        finish_pass(self.leat_feed)


def _wrap_feed(data):
    """Returns a Sequence for a feed; a generator if it has no length; other data as it is."""
    feed = feed_of(data)
    if feed is None:
        return data
    return Passes(feed) if length(feed) is not None else run_on(feed)


def run_on(feed):
    """Yields the batches of a feed, pass after pass."""
    while True:
        taken = False
        for batch in feed:
            taken = True
            yield batch
        if not taken:
            raise make_ended_error()


def _teach_keras_2(training_generator):
    from leat.feed import Feed

    Feed.use_sequence_api = True  # Model.fit() asks for it.
    for name in ("fit_generator", "evaluate_generator", "predict_generator"):
        _wrap_loop(training_generator, name)
    _wrap_enqueuer(training_generator)


def _wrap_loop(training_generator, name):
    original = getattr(training_generator, name)

    @functools.wraps(original)
    def loop(model, generator, *arguments, **named):
        if named.get("validation_data") is not None:
            named["validation_data"] = _wrap_feed(named["validation_data"])
        return original(model, _wrap_feed(generator), *arguments, **named)

    setattr(training_generator, name, loop)


def _wrap_enqueuer(training_generator):
    original = training_generator.OrderedEnqueuer

    @functools.wraps(original, updated=())
    def make(sequence, *arguments, **named):
        from leat._enqueuers import FeedEnqueuer

        feed = feed_of(sequence)
        return original(sequence, *arguments, **named) if feed is None else FeedEnqueuer(feed)

    training_generator.OrderedEnqueuer = make


# ---- watching for Keras ----

_LESSONS = {
    "keras.src.trainers.data_adapters": _teach_keras_3,
    "keras.src.engine.data_adapter": _teach_tf_keras,
    "keras.engine.data_adapter": _teach_tf_keras,
    "tf_keras.src.engine.data_adapter": _teach_tf_keras,
    "keras.engine.training_generator": _teach_keras_2,
}
_taught = set()
_lock = threading.Lock()


def _teach(name, module):
    with _lock:
        if name in _taught:
            return
        _taught.add(name)
    _LESSONS[name](module)


class _Watcher:
    """A finder of modules that finds none: it has each module of _LESSONS changed once it is loaded."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in _LESSONS or name in _taught:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None) if finder is not _Watcher else None
            found = find(name, path, target) if find else None
            if found is not None and found.loader is not None:
                execute = found.loader.exec_module
                found.loader.exec_module = lambda module: (execute(module), _teach(name, module))
                return found
        return None


def watch():
    """Lets every Keras of this process know leat.Feed, also one that is imported later."""
    for name in _LESSONS:
        module = sys.modules.get(name)
        if module is not None and not getattr(module.__spec__, "_initializing", False):
            _teach(name, module)
    if _Watcher not in sys.meta_path:
        sys.meta_path.insert(0, _Watcher)
