# SPDX-License-Identifier: Apache-2.0
"""The time of Keras 2.3.1, or of current Keras on TensorFlow, for the work of bench/compare.  In current Keras a prediction
is a compiled function of the model, which is faster than its predict methods."""
import os
import time
import warnings

warnings.filterwarnings("ignore")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras  # noqa: E402
import numpy  # noqa: E402
import tensorflow  # noqa: E402
from keras import layers  # noqa: E402

import serving  # noqa: E402

threads = int(os.environ.get("PEER_THREADS", "0"))
tensorflow.config.threading.set_intra_op_parallelism_threads(threads)
tensorflow.config.threading.set_inter_op_parallelism_threads(threads)
CURRENT = int(keras.__version__.split(".")[0]) >= 3
LAYERS = {"mlp": lambda: [layers.Dense(128, activation="relu"), layers.Dense(128, activation="relu"), layers.Dense(4)],
          "lstm": lambda: [layers.LSTM(64), layers.Dense(4)],
          "gru": lambda: [layers.GRU(64, reset_after=True), layers.Dense(4)],
          "rnn": lambda: [layers.SimpleRNN(64), layers.Dense(4)],
          "bilstm": lambda: [layers.Bidirectional(layers.LSTM(64)), layers.Dense(4)],
          "convlstm": lambda: [layers.ConvLSTM2D(16, 3, padding="same"), layers.GlobalAveragePooling2D(), layers.Dense(4)],
          "conv1d": lambda: [layers.Conv1D(64, 5, activation="relu"), layers.Conv1D(64, 5, activation="relu"),
                             layers.GlobalMaxPooling1D(), layers.Dense(4)],
          "embedding": lambda: [layers.Embedding(100000, 64), layers.GlobalAveragePooling1D(), layers.Dense(4)],
          "stream": lambda: [layers.LSTM(64, stateful=True)],
          "cnn": lambda: [layers.Conv2D(32, 3, activation="relu"), layers.Conv2D(64, 3, activation="relu"),
                          layers.MaxPooling2D(2), layers.Flatten(), layers.Dense(128, activation="relu"),
                          layers.Dense(10, activation="softmax")]}
SHAPES = {"mlp": (64,), "lstm": (64, 8), "gru": (64, 8), "rnn": (64, 8), "bilstm": (64, 8), "convlstm": (8, 32, 32, 4),
          "conv1d": (128, 16), "embedding": (64,), "stream": (1, 8), "cnn": (28, 28, 1), "resnet50": (224, 224, 3)}
CLASSIFIERS = ("cnn", "resnet50")
WORDS = {"embedding": 100000, "char": 96, "text": 20000}


def make(wishes):
    name = wishes["model"]
    if name.endswith(".keras"):
        return keras.models.load_model(name)
    if name.endswith(".json"):
        with open(name) as file:
            model = keras.models.model_from_json(file.read())
    elif name == "resnet50":
        model = keras.applications.resnet50.ResNet50(weights=None)
    elif name == "stream":
        start = x = layers.Input(batch_shape=(1,) + SHAPES[name])
        for layer in LAYERS[name]():
            x = layer(x)
        model = keras.models.Model(start, x)
    else:
        start = x = layers.Input(shape=SHAPES[name])
        for layer in LAYERS[name]():
            x = layer(x)
        model = keras.models.Model(start, x)
    large = name == "resnet50" or name.endswith(".json")
    optimizer = keras.optimizers.SGD(0.01, momentum=0.9) if large else keras.optimizers.Adam()
    more = {"jit_compile": bool(wishes.get("jit"))} if CURRENT else {}
    loss = wishes.get("loss", "sparse_categorical_crossentropy" if large or name in CLASSIFIERS else "mse")
    model.compile(optimizer=optimizer, loss=loss, **more)
    return model


def data(wishes, model):
    shape, outputs = tuple(model.input_shape[1:]), tuple(model.output_shape[1:])
    name, batch = os.path.basename(wishes["model"]).replace(".keras", ""), wishes["batch"]
    x = numpy.random.rand(batch, *shape).astype("float32")
    if name in WORDS:
        x = numpy.random.randint(0, WORDS[name], (batch,) + shape).astype("int32")
    if wishes.get("loss") == "mse" or (name in SHAPES and name not in CLASSIFIERS):
        return x, numpy.random.rand(batch, *outputs).astype("float32")
    labels = (batch,) + outputs[:-1]
    return x, numpy.random.randint(0, 2 if name == "text" else 10, labels).astype("int32")


def predictor(model, x, wishes):
    if not CURRENT:
        return lambda: model.predict_on_batch(x)
    compiled = tensorflow.function(lambda a: model(a, training=False), jit_compile=bool(wishes.get("jit")),
                                   input_signature=[tensorflow.TensorSpec(x.shape, x.dtype)])
    return lambda: compiled(tensorflow.constant(x)).numpy()


Base = keras.utils.PyDataset if CURRENT else keras.utils.Sequence


class Batches(Base):
    def __init__(self, wishes, **more):
        if CURRENT:
            super().__init__(**more)
        self.images, self.labels = serving.fashion(wishes["data"])
        self.batch, self.steps = wishes["batch"], wishes["steps"]

    def __len__(self):
        return self.steps

    def __getitem__(self, i):
        part = slice(i * self.batch, (i + 1) * self.batch)
        return self.images[part, :, :, None].astype("float32") / 255, self.labels[part]


class Clock(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.start = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        self.taken = time.perf_counter() - self.start


def epoch(wishes):
    """Returns the us per step of the second of two epochs."""
    model, clock, processes = make(wishes), Clock(), bool(wishes.get("processes"))
    how = {"workers": wishes["workers"], "use_multiprocessing": processes, "max_queue_size": 10}
    if CURRENT:
        model.fit(Batches(wishes, **dict(how, workers=max(1, wishes["workers"]))), epochs=2, verbose=0, callbacks=[clock],
                  shuffle=False)
    else:
        model.fit_generator(Batches(wishes), epochs=2, verbose=0, callbacks=[clock], shuffle=False, **how)
    return clock.taken / wishes["steps"] * 1e6


def measure(wishes):
    if wishes["mode"] == "epoch":
        return epoch(wishes)
    model = make(wishes)
    x, y = data(wishes, model)
    if wishes["mode"] == "first":
        return float(model.train_on_batch(x, y))
    once = (lambda: model.train_on_batch(x, y)) if wishes["mode"] == "train" else predictor(model, x, wishes)
    return serving.median_us(once, wishes.get("seconds", 1), cpu=bool(wishes.get("cpu")))


if __name__ == "__main__":
    serving.serve(lambda wishes: {"us": measure(wishes),
                                  "version": "%s on TensorFlow %s" % (keras.__version__, tensorflow.__version__)})
