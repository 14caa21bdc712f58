# SPDX-License-Identifier: Apache-2.0
"""Checks continued training in both directions: check_continued.py API.json libleat.so FOLDER [WORD...], in the Keras that runs
the script, 2.3.1 or current.

For each optimizer, "to leat": Keras trains three steps, saves, and trains five more; leat opens the file and trains five.
"from leat": leat does the first part and Keras opens its file.  "born in leat": also the first three steps are leat's, from
an architecture that leat compiles.  The figure is the largest difference of the weights, relative to the largest change of
that weight in the five steps.  An Embedding repeats indices within a batch.  Prints a table; exits 1 beyond the limit."""
import json
import os
import sys
import traceback

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "golden"))

import h5py  # noqa: E402
import numpy as np  # noqa: E402

OLD = sys.version_info < (3, 8)
if OLD:
    import recorder.ordered  # noqa: F401,E402  (one thread, and no race in the optimizers)
    from recorder.session import keras  # noqa: E402
else:
    import keras  # noqa: E402

import bind_leat  # noqa: E402
from leat_model import Leat  # noqa: E402

LIMIT = 1e-4
L, O = keras.layers, keras.optimizers
FIRST, MORE, BATCH = 3, 5, 8


def old_optimizers():
    """The optimizers of 2.3.1."""
    return {
        "SGD": lambda: O.SGD(0.05), "SGD momentum": lambda: O.SGD(0.05, 0.9),
        "SGD nesterov": lambda: O.SGD(0.05, 0.9, nesterov=True), "SGD decay": lambda: O.SGD(0.05, 0.9, decay=0.1),
        "RMSprop": lambda: O.RMSprop(0.01), "RMSprop decay": lambda: O.RMSprop(0.01, decay=0.1),
        "Adagrad": lambda: O.Adagrad(0.05), "Adagrad decay": lambda: O.Adagrad(0.05, decay=0.1),
        "Adadelta": lambda: O.Adadelta(0.5), "Adam": lambda: O.Adam(0.01), "Adam decay": lambda: O.Adam(0.01, decay=0.1),
        "Adam amsgrad": lambda: O.Adam(0.01, amsgrad=True), "Adamax": lambda: O.Adamax(0.01),
        "Adamax decay": lambda: O.Adamax(0.01, decay=0.1), "Nadam": lambda: O.Nadam(0.01),
        "Adam clipnorm": lambda: O.Adam(0.01, clipnorm=0.1), "SGD clipnorm": lambda: O.SGD(0.05, clipnorm=0.1),
        "SGD clipvalue": lambda: O.SGD(0.05, clipvalue=0.02),
        "RMSprop both clips": lambda: O.RMSprop(0.01, clipnorm=0.5, clipvalue=0.02)}


def new_optimizers():
    """The optimizers of current Keras that leat has."""
    s = O.schedules
    found = {
        "SGD": lambda: O.SGD(0.05), "SGD momentum": lambda: O.SGD(0.05, 0.9),
        "SGD nesterov": lambda: O.SGD(0.05, 0.9, nesterov=True), "RMSprop": lambda: O.RMSprop(0.01),
        "RMSprop momentum": lambda: O.RMSprop(0.01, momentum=0.5), "RMSprop centered": lambda: O.RMSprop(0.01, centered=True),
        "RMSprop both": lambda: O.RMSprop(0.01, momentum=0.5, centered=True), "Adagrad": lambda: O.Adagrad(0.05),
        "Adadelta": lambda: O.Adadelta(0.5), "Adam": lambda: O.Adam(0.01), "Adam amsgrad": lambda: O.Adam(0.01, amsgrad=True),
        "AdamW": lambda: O.AdamW(0.01), "AdamW amsgrad": lambda: O.AdamW(0.01, amsgrad=True), "Adamax": lambda: O.Adamax(0.01),
        "Nadam": lambda: O.Nadam(0.01), "Ftrl": lambda: O.Ftrl(0.05),
        "Ftrl penalties": lambda: O.Ftrl(0.05, l1_regularization_strength=0.01, l2_regularization_strength=0.1, beta=0.1),
        "Lion": lambda: O.Lion(0.01), "Adafactor": lambda: O.Adafactor(0.01)}
    for name in ("SGD", "RMSprop", "Adagrad", "Adadelta", "Adam", "Adamax", "Nadam", "Ftrl", "Lion", "Adafactor"):
        def make(cls=getattr(O, name), rate=0.5 if name == "Adadelta" else 0.02, **options):
            return lambda: cls(rate, **options)
        found[name + " weight_decay"] = make(weight_decay=0.1)
        found[name + " ema"] = make(use_ema=True, ema_momentum=0.5)
        found[name + " ema overwrites"] = make(use_ema=True, ema_overwrite_frequency=2)
        found[name + " clipnorm"] = make(clipnorm=0.05)
        first = 0.5 if name == "Adadelta" else 0.05  # smaller steps of Adadelta are lost in the rounding of the weights
        found[name + " schedule"] = (lambda cls=getattr(O, name), first=first: cls(s.ExponentialDecay(first, 3, 0.5)))
    for name in ("SGD", "Adam"):
        def make(cls=getattr(O, name), **options):
            return lambda: cls(0.02, **options)
        found[name + " clipvalue"] = make(clipvalue=0.01)
        found[name + " global_clipnorm"] = make(global_clipnorm=0.1)
        found[name + " everything"] = make(global_clipnorm=0.1, weight_decay=0.1, use_ema=True, ema_momentum=0.7)
    for name, schedule in {
            "PiecewiseConstantDecay": s.PiecewiseConstantDecay([2, 5], [0.1, 0.05, 0.02]),
            "PolynomialDecay": s.PolynomialDecay(0.1, 6, 0.01, power=2.0), "InverseTimeDecay": s.InverseTimeDecay(0.1, 2, 0.5),
            "CosineDecay": s.CosineDecay(0.01, 5, warmup_target=0.1, warmup_steps=2),
            "CosineDecayRestarts": s.CosineDecayRestarts(0.1, 3)}.items():
        found["SGD " + name] = lambda schedule=schedule: O.SGD(schedule, 0.5)
        found["Adam " + name] = lambda schedule=schedule: O.Adam(schedule)
    for name in ("Lamb", "Muon"):
        if hasattr(O, name):
            found[name] = lambda cls=getattr(O, name): cls(0.01)
    return found


def build(optimizer):
    """Two inputs, so that both kinds of gradients occur: dense, and the rows of a table.  (A centered RMSprop of current Keras
    becomes NaN where indices repeat, in Keras, too.)"""
    centered = getattr(optimizer, "centered", False)
    words, numbers = L.Input((4,), dtype="float32" if centered else "int32"), L.Input((5,))
    first = L.Dense(6)(words) if centered else L.Flatten()(L.Embedding(5, 3)(words))
    y = L.Concatenate()([first, L.Dense(4, activation="tanh")(numbers)])
    model = keras.models.Model([words, numbers], L.Dense(2)(y))
    model.compile(optimizer, "mean_squared_error", **({} if OLD else {"jit_compile": False}))
    return model


def data():
    r = np.random.RandomState(1)
    xs = [r.randint(0, 5, (BATCH, 4)).astype("int32"), r.normal(size=(BATCH, 5)).astype("float32")]
    return xs, [r.uniform(-1, 1, (BATCH, 2)).astype("float32")]


def set_weights(model):
    r = np.random.RandomState(2)
    model.set_weights([r.normal(0, 0.5, w.shape).astype("float32") for w in model.get_weights()])


def data_for(model):
    xs, ts = data()
    return [xs[0].astype(str(getattr(model.inputs[0].dtype, "name", model.inputs[0].dtype))), xs[1]], ts


def train(model, steps):
    xs, ts = data_for(model)
    for _ in range(steps):
        model.train_on_batch(xs, ts[0])


def give_state(model, path):
    """Builds the optimizer of a model from an .h5 file and sets its variables: Keras 3.15 builds it without the variables of
    the layers, so that it cannot train on from an .h5 file, its own neither."""
    with h5py.File(path, "r") as file:
        group = file["optimizer_weights"]
        values = [group[n][()] for n in group.attrs["weight_names"]]
    optimizer = O.deserialize(O.serialize(model.optimizer))
    optimizer.build(model.trainable_variables)
    optimizer.set_weights(values)
    model.optimizer = optimizer


def keras_opens(path):
    model = keras.models.load_model(path)
    if not OLD and path.endswith(".h5"):
        give_state(model, path)
    return model


def sorted_like(model, leat):
    """Returns leat's weights in the order of Keras's: a weight is known by its shape."""
    found = {w.shape: w for w in leat.weights()}
    return [found[w.shape] for w in model.get_weights()]


def distance(found, wanted, before):
    return max(float(np.abs(np.float64(a) - b).max() / max(np.abs(b - c).max(), 1e-12))
               for a, b, c in zip(found, wanted, before))


def to_leat(api, make, path):
    model = build(make())
    set_weights(model)
    train(model, FIRST)
    try:
        model.save(path)
    except ValueError as e:  # current Keras cannot write an Adafactor into an .h5 file: two variables have one name
        if OLD or "name already exists" not in str(e):
            raise
        return None
    before = model.get_weights()
    leat = Leat(api, path)
    leat.train(*data_for(model), MORE)
    train(model, MORE)
    return distance(sorted_like(model, leat), model.get_weights(), before)


def from_leat(api, make, path):
    model = build(make())
    set_weights(model)
    if OLD:
        model._make_train_function()  # so that the file has the state
    else:
        model.optimizer.build(model.trainable_variables)
    plain = os.path.splitext(path)[0] + (".h5" if OLD else ".keras")
    model.save(plain)
    return goes_on(Leat(api, plain), path, data_for(model))


def goes_on(leat, path, arrays):
    """leat trains, saves and trains on; Keras opens the file and trains."""
    leat.train(*arrays, FIRST)
    leat.save(path)
    model = keras_opens(path)
    before = model.get_weights()
    leat.train(*arrays, MORE)
    train(model, MORE)
    return distance(sorted_like(model, leat), model.get_weights(), before)


def born_in_leat(api, make, path):
    """leat compiles with the configuration of the optimizer, and has never seen a file of Keras."""
    model = build(make())
    set_weights(model)
    plain = os.path.splitext(path)[0] + ".born.h5"
    model.save(plain, include_optimizer=False)
    text = json.dumps(json.loads(json.dumps(O.serialize(model.optimizer), default=float)))
    leat = Leat(api, plain)
    leat.compile(optimizer=text, loss="mean_squared_error", arithmetic="keras2" if OLD else "keras3")
    return goes_on(leat, path, data_for(model))


def main():
    api = bind_leat.Api(sys.argv[1], sys.argv[2])
    folder, words = sys.argv[3], sys.argv[4:]
    suffixes = [".h5"] if OLD else [".keras", ".h5"]
    columns = [(way, suffix) for way in (to_leat, from_leat, born_in_leat) for suffix in suffixes]
    print("| Optimizer | " + " | ".join("%s, %s" % (w.__name__.replace("_", " "), s) for w, s in columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    notes, wrong = [], 0
    for name, make in (old_optimizers() if OLD else new_optimizers()).items():
        if words and not any(word in name for word in words):
            continue
        cells = []
        for way, suffix in columns:
            keras.backend.clear_session()
            try:
                value = way(api, make, os.path.join(folder, "continued" + suffix))
            except Exception as e:  # the table tells
                value = float("inf")
                notes.append("%s: %s, %s: %s: %s" % (name, way.__name__, suffix, type(e).__name__, str(e).strip()[:300]))
                if os.environ.get("TRACE"):
                    traceback.print_exc()
            wrong += value is not None and not value <= LIMIT
            cells.append("not saved" if value is None else "%.0e" % value if value <= LIMIT else "**%.0e**" % value)
        print("| %s | %s |" % (name, " | ".join(cells)))
        sys.stdout.flush()
    print("\n".join(notes))
    print("Keras %s: %d cells beyond the limit" % (keras.__version__, wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
