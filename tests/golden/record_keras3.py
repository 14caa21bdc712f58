# SPDX-License-Identifier: Apache-2.0
"""Records the cases that need current Keras: record_keras3.py [GROUP...].  The groups are files (.keras and legacy .h5
files, and the training that continues from them, files/keras3_*), opening (files/open_*), layers (those that only current Keras has,
keras-3/layers), attention and more_layers (more of keras-3/layers), losses, metrics, optimizers, policies (mixed_bfloat16, keras-3/policies), and schedules
(of the learning rate, keras-3/schedules), operations (functions of keras.ops, keras-3/layers/operation_*), preprocessing (keras-3/layers), and hub (layers of
KerasHub, and ReversibleEmbedding, keras-3/layers)."""
import collections
import json
import os
import sys
import zipfile

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras  # noqa: E402
import tensorflow as tf  # noqa: E402

from recorder import keras3_attention, keras3_layers, keras3_losses, keras3_opening, keras3_optimizers  # noqa: E402
from recorder import keras3_metrics, keras3_more_layers, keras3_operations, keras3_policies  # noqa: E402
from recorder import keras3_preprocessing, keras3_schedules, store  # noqa: E402

L = keras.layers
HERE = os.path.dirname(os.path.abspath(__file__))


def sequential():
    """A small CNN."""
    model = keras.Sequential([
        L.Input((8, 8, 1)),
        L.Conv2D(3, 3, activation="relu"),
        L.BatchNormalization(),
        L.MaxPooling2D(2),
        L.DepthwiseConv2D(2, padding="same"),
        L.Dropout(0.0),
        L.Activation("hard_sigmoid"),
        L.Flatten(),
        L.Dense(4, activation="relu", kernel_regularizer="l2"),
        L.Dense(3, activation="softmax"),
    ], name="cnn")
    model.compile("adam", "categorical_crossentropy", metrics=["accuracy"])
    return model


def functional():
    """Two inputs through a shared layer and a nested model, two outputs."""
    a, b = L.Input((4,), name="left"), L.Input((4,), name="right")
    shared = L.Dense(3, activation="tanh", name="shared")
    inner = keras.Sequential([L.Input((3,)), L.Dense(4, use_bias=False), L.BatchNormalization(),
                              L.Dense(2, activation="tanh")], name="inner")
    x = L.Concatenate(name="join")([inner(shared(a)), inner(shared(b)), shared(b)])
    x = L.Add(name="sum")([x, L.Dense(7, name="side")(a)])
    model = keras.Model([a, b], [L.Dense(3, activation="softmax", name="kind")(x),
                                 L.Dense(1, name="size")(x)], name="pair")
    model.compile("adamax", ["categorical_crossentropy", "mse"])
    return model


def lstm():
    """Two LSTM layers and a head."""
    model = keras.Sequential([
        L.Input((5, 2)),
        L.LSTM(3, return_sequences=True, go_backwards=True),
        L.LSTM(2, recurrent_activation="hard_sigmoid", use_bias=False, activation="relu"),
        L.Dense(1),
    ], name="memory")
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True), "mse")
    return model


def small(optimizer):
    """A model from four numbers to a probability, with metrics that are classes."""
    model = keras.Sequential([L.Input((4,)), L.Dense(3, activation="tanh"), L.Dense(1, activation="sigmoid")],
                             name="small")
    model.compile(optimizer, "binary_crossentropy", metrics=["AUC", keras.metrics.Precision(thresholds=0.4)])
    return model


def adafactor():
    """An optimizer that stores all slots of a weight together, including numbers that are never used."""
    return small(keras.optimizers.Adafactor(0.05))


def average():
    """Optimizers with averages of the weights before the slots, and with a third slot."""
    return small(keras.optimizers.AdamW(0.02, amsgrad=True, use_ema=True, ema_momentum=0.7,
                                        ema_overwrite_frequency=4))


def places():
    """Layers whose weights are in separate groups of the file."""
    steps, images = L.Input((4, 3), name="steps"), L.Input((2, 4, 4, 1), name="images")
    turned = L.Bidirectional(L.LSTM(2, return_sequences=True))(steps)
    parts = [L.RNN([L.LSTMCell(2), L.SimpleRNNCell(2), L.LSTMCell(1)])(turned),
             L.GlobalAveragePooling1D()(L.MultiHeadAttention(2, 2, use_gate=True)(steps, steps)),
             L.GlobalAveragePooling1D()(L.GroupQueryAttention(2, 2, 1, use_gate=True)(steps, steps)),
             L.Flatten()(L.ConvLSTM2D(1, 2)(images)),
             L.SpectralNormalization(L.Dense(2))(L.GlobalAveragePooling1D()(steps))]
    model = keras.Model([steps, images], L.Dense(1)(L.Concatenate()(parts)), name="places")
    model.compile(keras.optimizers.SGD(0.1), "mse")
    return model


def rmsprop():
    """The slots of RMSprop, each a block of its own, in current Keras's arithmetic."""
    return small(keras.optimizers.RMSprop(0.01, momentum=0.5, centered=True, epsilon=1e-3))


def nadam():
    """A variable behind the slots: the product of Nadam's schedule."""
    return small("nadam")


def embedding():
    """Repeated indices in Adam's second moment, and a softmax of rank 3."""
    model = keras.Sequential([L.Input((4,), dtype="int32"), L.Embedding(5, 3), L.SimpleRNN(3, return_sequences=True),
                              L.Dense(3, activation="softmax")], name="words")
    model.compile(keras.optimizers.Adam(0.02), "categorical_crossentropy")
    return model


def muon():
    """A slot that some weights do not have, and sums of gradients, of which the file has those of one batch."""
    return small(keras.optimizers.Muon(0.02, gradient_accumulation_steps=2, exclude_layers=["dense_1"]))


def free():
    """An optimizer whose first slot begins as the weights, with averages and sums before the slots."""
    return small(keras.optimizers.ScheduleFreeAdamW(0.02, warmup_steps=3, use_ema=True, gradient_accumulation_steps=3))


def scaled():
    """An optimizer in a LossScaleOptimizer, whose variables come first."""
    return small(keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(0.02)))


def float16():
    """An optimizer that Keras puts into a LossScaleOptimizer by itself, because of the policy of the model."""
    keras.config.set_dtype_policy("mixed_float16")
    model = keras.Sequential([L.Input((4,), dtype="float32"), L.Dense(3, activation="tanh", dtype="float32"),
                              L.Dense(1, activation="sigmoid", dtype="float32")], name="small")
    keras.config.set_dtype_policy("float32")
    model.compile("adam", "binary_crossentropy")
    return model


def skipping():
    """A loss scale that is doubled after each step, and skips a step when gradients overflow."""
    model = small("adam")
    model.compile(keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(0.02), initial_scale=2.0 ** 115,
                                                      dynamic_growth_steps=1), "mse", loss_weights=[1000.0])
    return model


def scores():
    """A loss and metrics that only current Keras has."""
    model = keras.Sequential([L.Input((4,)), L.Dense(3, activation="softmax")], name="scores")
    metrics = keras.metrics
    model.compile(keras.optimizers.Lamb(0.05), keras.losses.CategoricalFocalCrossentropy(alpha=0.5, gamma=1.5), metrics=[
        metrics.F1Score(average="macro"), metrics.FBetaScore(average="micro", beta=2.0, threshold=0.4),
        metrics.R2Score(), metrics.OneHotIoU(3, [0, 2]), metrics.PrecisionAtRecall(0.5)])
    return model


def initial(random, variable):
    """Returns a value that suits the kind of the variable."""
    if variable.name in ("gamma", "moving_variance"):
        return random.uniform(0.5, 1.5, variable.shape)
    return random.normal(0.0, 0.4, variable.shape)


def arrays(prefix, values):
    """Returns the arrays under numbered names."""
    values = values if isinstance(values, (list, tuple)) else [values]
    return collections.OrderedDict(("%s%d" % (prefix, i), v) for i, v in enumerate(values))


def weights_of(model):
    """Returns the weights in the order of 2.3.1: layer by layer, the trainable weights of a nested model first."""
    return [w.numpy() for layer in model.layers for w in layer.trainable_weights + layer.non_trainable_weights]


def written_again(path, method):
    """Rewrites the archive without times.  Keras writes stored members, but also reads deflated ones."""
    with zipfile.ZipFile(path) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members:
            if name == "metadata.json":
                data = json.dumps({"keras_version": keras.__version__}).encode()
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            archive.writestr(info, data)


def case(root, name, build):
    """Records a model with fixed weights, trained for three steps and saved."""
    keras.backend.clear_session()
    random = store.random_for("files/" + name)
    model = build()
    model.set_weights([initial(random, w) for w in model.weights])
    x = [random.normal(0.0, 1.0, (4,) + tuple(i.shape[1:])).astype("float32") for i in model.inputs]
    if build is embedding:
        x = [random.randint(0, 5, (4, 4)).astype("int32")]
    t = [random.uniform(0.0, 1.0, (4,) + tuple(o.shape[1:])).astype("float32") for o in model.outputs]
    for _ in range(3):
        model.train_on_batch(x, t)
    model.save("%s/%s.keras" % (root, name))  # first: saving an .h5 file takes the optimizer out of the configuration
    written_again("%s/%s.keras" % (root, name),
                  zipfile.ZIP_STORED if build is lstm else zipfile.ZIP_DEFLATED)
    if build not in ARCHIVES:
        model.save("%s/%s.h5" % (root, name))
    members = collections.OrderedDict()
    members["meta"] = store.text({
        "keras": keras.__version__, "tensorflow": tf.__version__, "group": "files", "case": name,
        "file": name + (".keras" if build in ARCHIVES else ".h5"),
        "weights": [w.path for layer in model.layers for w in layer.trainable_weights + layer.non_trainable_weights],
    })
    members.update(arrays("x", x))
    members.update(arrays("t", t))
    members.update(arrays("w", weights_of(model)))
    members.update(arrays("y", model.predict_on_batch(x)))
    for step in range(1, 11):
        model.train_on_batch(x, t)
        if step in ((10,) if build is places else (1, 4, 10)):
            members.update(arrays("s%d_w" % step, weights_of(model)))
    store.save("%s/%s.npz" % (root, name), members)


ARCHIVES = (adafactor, average, places, rmsprop, nadam, embedding, muon, free, scaled, float16, skipping, scores)  # no .h5 beside them; of Adafactor, Keras cannot write one


def files():
    """Records the models."""
    for build in (sequential, functional, lstm, adafactor, average, places, rmsprop, nadam, embedding,
                  muon, free, scaled, float16, skipping, scores):
        case(os.path.join(HERE, "files"), "keras3_" + build.__name__, build)


def opening():
    """Records files that test what leat opens."""
    keras3_opening.run(os.path.join(HERE, "files"))


def optimizers():
    """Records the optimizers of current Keras."""
    keras3_optimizers.run(os.path.join(HERE, "keras-3"))


def schedules():
    """Records learning rate schedules."""
    keras3_schedules.run(os.path.join(HERE, "keras-3"))


def hub():
    """Records the layers of KerasHub, whose import takes long."""
    from recorder import keras3_hub
    keras3_hub.run()


def main():
    """Records the groups named on the command line, or all groups."""
    groups = {"files": files, "layers": keras3_layers.run, "attention": keras3_attention.run, "losses": keras3_losses.run,
              "metrics": keras3_metrics.run, "more_layers": keras3_more_layers.run, "operations": keras3_operations.run,
              "preprocessing": keras3_preprocessing.run, "hub": hub,
              "opening": opening, "optimizers": optimizers, "policies": keras3_policies.run, "schedules": schedules}
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    keras.utils.set_random_seed(3)
    for name in sys.argv[1:] or groups:
        groups[name]()


if __name__ == "__main__":
    main()
