# SPDX-License-Identifier: Apache-2.0
"""The part of tools/collection that runs in Keras: 2.3.1, tf.keras 2.12 to 2.15, or current.

collection_keras.py record MODELS WORK [WORD]: takes every model of the folder MODELS through Keras and writes what Keras
computed into a folder of WORK for each model.  collection_keras.py exact WORK [WORD]: repeats in float64 what leat did
not do within the scatter.  collection_keras.py back WORK SUFFIX [WORD]: opens the files that leat wrote there,
predicts with them and trains on.  See tests/interop/README.md for what a script of MODELS defines."""
import glob
import json
import os
import sys
import traceback
import warnings

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
warnings.filterwarnings("ignore")

import h5py  # noqa: E402
import keras  # noqa: E402
import numpy as np  # noqa: E402

from collection import (FACTOR, FLOOR, MORE, STEPS, WARM, distances, judged, numbered, worst_error,  # noqa: E402
                        worst_pair, write)

VERSION = tuple(int(n) for n in keras.__version__.split(".")[:2])
CURRENT, LATE = VERSION >= (3, 0), (2, 4) <= VERSION < (3, 0)  # LATE is the Keras of TensorFlow 2.4 to 2.15
if not CURRENT and not LATE:  # Keras 2.3.1 on TensorFlow 2.1 may count a step before or after its optimizer reads the count
    sys.path.insert(1, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "golden"))
    import recorder.ordered  # noqa: E402,F401
BATCH = 4
NOISE, NOISY_RUNS, EPSILON = 1e-7, 2, 1.2e-7
# A power of two: a step of SGD with this rate contains the gradient without further rounding that matters.
GRADIENT_RATE = 1024.0
RANDOM = {"Dropout": "rate", "SpatialDropout1D": "rate", "SpatialDropout2D": "rate", "SpatialDropout3D": "rate",
          "GaussianDropout": "rate", "AlphaDropout": "rate", "GaussianNoise": "stddev"}


class Caught(Exception):
    """Ends a script at its first call of fit."""


def without_randomness():
    """Makes every Dropout, noise and dropout of a cell that a script asks for 0: random numbers cannot be compared."""
    for name, argument in RANDOM.items():
        if hasattr(keras.layers, name):
            silence(getattr(keras.layers, name), argument)
    for name in ("LSTM", "GRU", "SimpleRNN", "LSTMCell", "GRUCell", "SimpleRNNCell", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D",
                 "MultiHeadAttention", "Attention", "AdditiveAttention", "GroupQueryAttention"):
        if hasattr(keras.layers, name):
            silence(getattr(keras.layers, name), None)


def silence(layer, argument):
    """Replaces the constructor of a layer by one that sets the arguments of randomness to 0."""
    original = layer.__init__

    def init(self, *args, **kwargs):
        if argument:
            args = (0.0,) + args[1:] if args else args
            kwargs.update({} if args else {argument: 0.0})
        for key in ("dropout", "recurrent_dropout"):
            if key in kwargs:
                kwargs[key] = 0.0
        original(self, *args, **kwargs)
    layer.__init__ = init


def listed(values):
    """Returns a list of arrays, whatever a model takes or gives; Keras orders a dictionary by its keys."""
    if isinstance(values, dict):
        values = [values[key] for key in sorted(values)]
    return [np.asarray(v) for v in (values if isinstance(values, (list, tuple)) else [values])]


def one(values):
    return values[0] if len(values) == 1 else values


def dims(tensor):
    """Returns the shape of an input or an output without the batch."""
    shape = keras.backend.int_shape(tensor) if not CURRENT else tensor.shape
    return tuple(5 if d is None else int(d) for d in shape[1:])


def all_layers(model):
    """Yields all layers, also those of models within the model."""
    for layer in getattr(model, "layers", []):
        yield layer
        for inner in all_layers(layer):
            yield inner
        for inner in ("layer", "forward_layer"):
            if hasattr(layer, inner) and layer is not getattr(layer, inner):
                yield getattr(layer, inner)


def made_inputs(model, r):
    """Returns random inputs of the right shapes; integers are indices of the smallest Embedding."""
    limit = min([l.input_dim for l in all_layers(model) if type(l).__name__ == "Embedding"] or [10])
    made = []
    for tensor in model.inputs:
        shape, kind = (BATCH,) + dims(tensor), str(getattr(tensor, "dtype", "float32"))
        is_index = "int" in kind or feeds_embedding(model, tensor)
        if is_index:
            made.append(r.randint(0, limit, shape).astype("int32"))
        elif "bool" in kind:
            made.append(r.randint(0, 2, shape).astype("int32"))
        else:
            made.append(r.normal(0.0, 1.0, shape).astype("float32"))
    return made


def feeds_embedding(model, tensor):
    """Tells if an input, which may be float, goes into an Embedding."""
    for layer in all_layers(model):
        if type(layer).__name__ == "Embedding":
            for node in layer._inbound_nodes:
                if any(t.name.split(":")[0] == tensor.name.split(":")[0] for t in node.input_tensors):
                    return True
    return False


def loss_names(model, arguments):
    """Returns the name of the loss of each output, in lower case; '' if unknown."""
    loss = arguments.get("loss")
    if isinstance(loss, dict):
        loss = [loss.get(n, "") for n in model.output_names]
    if not isinstance(loss, (list, tuple)):
        loss = [loss] * len(model.outputs)
    return [str(l if isinstance(l, str) else getattr(l, "__name__", type(l).__name__)).lower().replace("_", "")
            for l in loss]


def made_targets(model, arguments, r):
    """Returns random targets that fit the losses."""
    made = []
    for tensor, loss in zip(model.outputs, loss_names(model, arguments)):
        shape = (BATCH,) + dims(tensor)
        if "sparse" in loss:
            made.append(r.randint(0, shape[-1], shape[:-1]).astype("int32"))
        elif "categorical" in loss or "kld" in loss or "kullback" in loss:
            made.append(np.eye(shape[-1], dtype="float32")[r.randint(0, shape[-1], shape[:-1])])
        elif "binary" in loss:
            made.append(r.randint(0, 2, shape).astype("float32"))
        else:
            made.append(r.normal(0.0, 1.0, shape).astype("float32") if "log" not in loss and "poisson" not in loss else
                        r.uniform(0.0, 1.0, shape).astype("float32"))
    return made


def plain(arrays):
    """Returns arrays of types that leat takes, with BATCH samples at most."""
    out = []
    for a in arrays:
        a = np.asarray(a)[:64]
        out.append(np.ascontiguousarray(a.astype("int32") if a.dtype.kind in "iub" else
                                        a if a.dtype.kind not in "f" else a.astype("float32")))
    return out


class Compiled:
    """Remembers the arguments of the last compile of each model, and catches the call of fit."""
    arguments = {}
    caught = []

    @classmethod
    def install(cls):
        base = keras.Model
        kinds = [base] + ([keras.Sequential] if "compile" in keras.Sequential.__dict__ else [])
        for kind in kinds:
            cls.wrap(kind)

    @classmethod
    def wrap(cls, kind):
        original = kind.compile

        def compile(self, *args, **kwargs):
            names = ("optimizer", "loss", "metrics")
            cls.arguments[id(self)] = dict(zip(names, args), **kwargs)
            if CURRENT:
                kwargs["jit_compile"] = False
            result = original(self, *args, **kwargs)
            if CURRENT or LATE:
                self.run_eagerly = True  # tracing a few steps costs more than the steps
            return result

        def fit(self, x=None, y=None, *args, **kwargs):
            cls.caught.append((self, x, y))
            raise Caught()
        kind.compile = compile
        kind.fit = fit
        if hasattr(kind, "fit_generator"):
            kind.fit_generator = lambda self, *args, **kwargs: fit(self)


def models_of(folder, word):
    """Yields (name, function that returns the model, x and y, source) of each script and model file of a folder."""
    for path in sorted(glob.glob(os.path.join(folder, "*"))):
        stem, suffix = os.path.splitext(os.path.basename(path))
        if suffix in (".h5", ".keras"):
            if word in stem:
                yield stem, lambda path=path: (keras.models.load_model(path), None, None), ""
        elif suffix == ".py" and not stem.startswith("_"):
            space = {"__name__": "__collection__", "__file__": os.path.abspath(path)}
            with open(path) as file:
                code = compile(file.read(), path, "exec")
            sys.path.insert(0, os.path.abspath(folder))
            if b"MODELS" not in open(path, "rb").read():
                if word in stem:
                    yield stem, lambda code=code, space=space: run_script(code, space), ""
                continue
            exec(code, space)
            for name, build in space["MODELS"].items():
                if word in name:
                    yield name, lambda build=build: with_data(build()), space.get("SOURCES", {}).get(name, "")


def with_data(made):
    """Returns (model, x, y) of what a function returned."""
    if not isinstance(made, tuple):
        return made, None, None
    return made if len(made) == 3 else made + (None,) * (3 - len(made))


def run_script(code, space):
    """Runs a script until it calls fit, or returns what its function build() returns."""
    del Compiled.caught[:]
    try:
        exec(code, space)
    except Caught:
        model, x, y = Compiled.caught[0]
        arrays = not (hasattr(x, "__next__") or hasattr(x, "element_spec"))
        return (model, x, y) if arrays else (model, None, None)
    return with_data(space["build"]())


def weights_of(model):
    """Returns the weights in the order of HDF5 files."""
    if CURRENT:
        lists = [layer.trainable_weights + layer.non_trainable_weights for layer in model.layers]
        return [keras.ops.convert_to_numpy(w) for some in lists for w in some]
    return [w for layer in model.layers for w in layer.get_weights()]


def reset_states(model):
    for layer in all_layers(model):
        if getattr(layer, "stateful", False):
            getattr(layer, "reset_states", getattr(layer, "reset_state", lambda: None))()


def optimizer_state(model):
    if CURRENT:
        return [keras.ops.convert_to_numpy(v) for v in model.optimizer.variables]
    if not hasattr(model.optimizer, "get_weights"):
        return [v.numpy() for v in model.optimizer.variables]
    return model.optimizer.get_weights()


def set_optimizer_state(model, values):
    if CURRENT or not hasattr(model.optimizer, "set_weights"):
        if not CURRENT:
            model.optimizer.build(model.trainable_variables)
        for variable, value in zip(model.optimizer.variables, values):
            variable.assign(value)
    else:
        make = getattr(model.optimizer, "_create_all_weights", getattr(model.optimizer, "build", None))
        if LATE and make:  # an optimizer of tf.keras makes its variables at its first step
            make(model.trainable_variables)
        model.optimizer.set_weights(values)


def steps(model, xs, ts, count):
    """Trains some steps; returns the change of the weights."""
    before = weights_of(model)
    reset_states(model)
    for _ in range(count):
        model.train_on_batch(one(xs), one(ts))
    return [b.astype("float64") - a for a, b in zip(before, weights_of(model))]


def run_and_scatter(model, xs, ts, count, start):
    """Returns the change of the weights after some steps, and for each tensor how far runs from weights with noise are
    from it: at least the median of all tensors, and at least a rounding of the tensor's own values."""
    state, runs = (optimizer_state(model) if count > 1 else None), []
    for i in range(1 + NOISY_RUNS):
        r = np.random.RandomState(100 + i)
        change = NOISE if i else 0.0
        model.set_weights([w if w.dtype.kind != "f" else
                           (w * (1.0 + change * r.uniform(-1, 1, w.shape))).astype(w.dtype) for w in start])
        if state is not None:
            set_optimizer_state(model, state)
        runs.append(steps(model, xs, ts, count))
    scatter = np.max([distances(run, runs[0]) for run in runs[1:]], axis=0)
    least = max([1e-6 * np.max(np.abs(v)) for v in runs[0] if v.size] + [1e-30])
    rounding = np.array([EPSILON * np.max(np.abs(w)) / max(np.max(np.abs(v)), least) if v.size else 0.0
                         for w, v in zip(weights_of(model), runs[0])])
    return runs[0], np.maximum(np.maximum(scatter, rounding), np.median(scatter) if len(scatter) else 0.0)


def tested(model, xs, ts):
    """Returns loss and metrics of the batch by name."""
    reset_states(model)
    if CURRENT or LATE:
        model.reset_metrics()
        return {k: float(np.asarray(v)) for k, v in model.test_on_batch(one(xs), one(ts), return_dict=True).items()
                if np.asarray(v).size == 1}
    if hasattr(model, "reset_metrics"):
        model.reset_metrics()
    values = model.test_on_batch(one(xs), one(ts))
    return dict(zip(model.metrics_names, [float(v) for v in (values if isinstance(values, list) else [values])]))


def predicted(model, xs):
    reset_states(model)
    return listed(model.predict_on_batch(one(xs)))


def save_all(model, stem):
    """Saves in each format of this Keras; returns what could not be saved."""
    failed = {}
    for suffix in ((".keras", ".h5") if VERSION >= (2, 12) else (".h5",)):
        try:
            model.save(stem + suffix)
        except Exception as e:
            failed[suffix] = "%s: %s" % (type(e).__name__, str(e)[:200])
    return failed


def record(build, folder, facts):
    """Takes one model through Keras, and writes keras.json, data.npz and the model files."""
    seed_all()
    model, x, y = build()
    arguments = Compiled.arguments.get(id(model), {})
    facts["layers"] = sorted({type(l).__name__ for l in all_layers(model)})
    facts["weights"] = int(sum(np.prod(w.shape) for w in model.get_weights()))
    xs = plain(made_inputs(model, np.random.RandomState(1)) if x is None else listed(x))
    if getattr(model, "optimizer", None) is None:
        facts["compiled"] = "no: sgd and mse given"
        model.compile("sgd", "mse")
        arguments = {"loss": "mse"}
    ts = plain(made_targets(model, arguments, np.random.RandomState(2)) if y is None else listed(y))
    facts["loss"], facts["optimizer"] = loss_names(model, arguments), type(model.optimizer).__name__
    steps(model, xs, ts, WARM)
    facts["failed"] = save_all(model, os.path.join(folder, "keras"))
    start, arrays = model.get_weights(), {}
    ys = predicted(model, xs)
    facts["evaluate"] = tested(model, xs, ts)
    for prefix, some in (("x", xs), ("t", ts), ("y", ys), ("w", weights_of(model))):
        arrays.update(("%s%d" % (prefix, i), a) for i, a in enumerate(some))
    changes, scatter = run_and_scatter(model, xs, ts, STEPS, start)
    arrays.update(("u%d" % i, a) for i, a in enumerate(changes))
    arrays["u_scatter"] = scatter
    model.set_weights(start)
    if CURRENT or LATE:
        model.compile(keras.optimizers.SGD(GRADIENT_RATE), model.loss, loss_weights=arguments.get("loss_weights"))
    else:
        model.compile(keras.optimizers.SGD(GRADIENT_RATE), model.loss, loss_weights=model.loss_weights)
    facts["failed"].update({"gradient" + k: v for k, v in save_all(model, os.path.join(folder, "gradient")).items()})
    changes, scatter = run_and_scatter(model, xs, ts, 1, start)
    arrays.update(("g%d" % i, a) for i, a in enumerate(changes))
    arrays["g_scatter"] = scatter
    np.savez(os.path.join(folder, "data.npz"), **arrays)


def seed_all():
    """Starts a graph and the random numbers afresh."""
    keras.backend.clear_session()
    if hasattr(keras.utils, "set_random_seed"):
        keras.utils.set_random_seed(3)
    else:
        import random
        import tensorflow as tf
        random.seed(3)
        np.random.seed(3)
        tf.compat.v1.set_random_seed(3)


def give_state(model, path):
    """Sets the optimizer's variables from an .h5 file: Keras 3.15 builds the optimizer without the variables of the
    layers, so that it cannot train on from any .h5 file, its own included."""
    with h5py.File(path, "r") as file:
        group = file["optimizer_weights"]
        values = [group[n][()] for n in group.attrs["weight_names"]]
    optimizer = keras.optimizers.deserialize(keras.optimizers.serialize(model.optimizer))
    optimizer.build(model.trainable_variables)
    optimizer.set_weights(values)
    model.optimizer = optimizer


def back(folder, suffix, facts):
    """Opens leat's file in Keras, predicts, trains on; all is compared with what leat itself then did."""
    seed_all()
    archive, leat = np.load(os.path.join(folder, "data.npz")), np.load(os.path.join(folder, "leat.npz"))
    path = os.path.join(folder, "leat" + suffix)
    xs, ts = numbered(archive, "x"), numbered(archive, "t")
    model = opened(path)
    if CURRENT or LATE:
        model.run_eagerly = True
    facts["predict"] = worst_error(predicted(model, xs), numbered(leat, "y"))
    if facts.get("only_predict"):
        return
    if suffix == ".h5" and CURRENT:
        give_state(model, path)
    start, state = model.get_weights(), optimizer_state(model)
    changes, scatter = run_and_scatter(model, xs, ts, MORE, start)
    wanted = numbered(leat, "m")
    if len(changes) != len(wanted) or any(a.shape != b.shape for a, b in zip(changes, wanted)):
        raise RuntimeError("the weights have other shapes or another order")
    found = distances(wanted, changes)
    if np.any(found > FACTOR * scatter + FLOOR):
        model.set_weights(start)
        set_optimizer_state(model, state)
        precise = continued_in_float64(model, xs, ts)
        found, scatter = distances(wanted, precise), scatter + distances(changes, precise)
    facts["continued"], facts["continued_scatter"] = worst_pair(found, scatter)


def continued_in_float64(model, xs, ts):
    """Returns the change of the weights after more steps in float64."""
    try:
        return steps(in_float64(model), xs, ts, MORE)
    finally:
        keras.backend.set_floatx("float32")
        if CURRENT:
            keras.config.set_dtype_policy("float32")


def opened(path):
    return keras.models.load_model(path, safe_mode=False) if VERSION >= (2, 13) else keras.models.load_model(path)


def in_float64(model):
    """Returns a copy of a model with float64 in place of float32, compiled, with its weights and optimizer's state."""
    text = model.to_json().replace('"float32"', '"float64"')
    weights, state = model.get_weights(), optimizer_state(model)
    if not CURRENT and not LATE:
        loss, weighting = model.loss, model.loss_weights
        kind, config = type(model.optimizer), model.optimizer.get_config()
        keras.backend.clear_session()
        keras.backend.set_floatx("float64")
        copy = keras.models.model_from_json(text)
        copy.compile(kind.from_config(config), loss, loss_weights=weighting)
        copy.set_weights(weights)
        copy._make_train_function()
    else:
        compiled = json.loads(json.dumps(model.get_compile_config()).replace('"float32"', '"float64"'))
        keras.backend.set_floatx("float64")
        if CURRENT:
            keras.config.set_dtype_policy("float64")
        copy = keras.models.model_from_json(text)
        copy.set_weights(weights)
        copy.compile_from_config(compiled)
        copy.run_eagerly = True
    if state:
        set_optimizer_state(copy, state)
    return copy


def exact(folder):
    """Writes exact.npz: predictions, gradient and update in float64."""
    archive, arrays = np.load(os.path.join(folder, "data.npz")), {}
    suffix = ".keras" if os.path.exists(os.path.join(folder, "keras.keras")) else ".h5"
    xs, ts = numbered(archive, "x"), numbered(archive, "t")
    for prefix, stem, count in (("u", "keras", STEPS), ("g", "gradient", 1)):
        seed_all()
        try:
            model = in_float64(opened(os.path.join(folder, stem + suffix)))
            if prefix == "u":
                arrays.update(("y%d" % i, a) for i, a in enumerate(predicted(model, xs)))
            arrays.update(("%s%d" % (prefix, i), a) for i, a in enumerate(steps(model, xs, ts, count)))
        finally:
            keras.backend.set_floatx("float32")
            if CURRENT:
                keras.config.set_dtype_policy("float32")
    np.savez(os.path.join(folder, "exact.npz"), **arrays)


def main_exact(work, word):
    for path in sorted(glob.glob(os.path.join(work, "*" + word + "*", "leat_changes.npz"))):
        folder = os.path.dirname(path)
        if os.path.exists(os.path.join(folder, "exact.npz")) or os.path.exists(os.path.join(folder, "exact.txt")):
            continue
        if all(inside for _, inside in judged(folder).values()):
            continue
        try:
            exact(folder)
        except Exception as e:
            with open(os.path.join(folder, "exact.txt"), "w") as out:
                out.write("%s: %s\n" % (type(e).__name__, e))
            if os.environ.get("TRACE"):
                traceback.print_exc()


def main_record(models, work, word):
    without_randomness()
    Compiled.install()
    for name, build, source in models_of(models, word):
        folder = os.path.join(work, name)
        if os.path.exists(os.path.join(folder, "keras.json")):
            continue
        os.makedirs(folder, exist_ok=True)
        facts = {"name": name, "source": source, "keras": keras.__version__}
        write(os.path.join(folder, "keras.json"), dict(facts, error="the process ended"))
        try:
            record(build, folder, facts)
        except Exception as e:
            facts["error"] = "%s: %s" % (type(e).__name__, str(e)[:600])
            if os.environ.get("TRACE"):
                traceback.print_exc()
        write(os.path.join(folder, "keras.json"), facts)
        print("%-44s %s" % (name, (facts.get("error") or "%d weights %s" % (facts["weights"], facts["failed"] or ""))[:200]),
              flush=True)


def main_back(work, suffix, word):
    for path in sorted(glob.glob(os.path.join(work, "*", "leat" + suffix))):
        folder = os.path.dirname(path)
        if word not in os.path.basename(folder):
            continue
        with open(os.path.join(folder, "keras.json")) as file:
            own = json.load(file)["keras"].split(".")[:2] == keras.__version__.split(".")[:2]
        out, facts = os.path.join(folder, "back%s.json" % suffix), {"only_predict": not own}
        if os.path.exists(out):
            continue
        write(out, {"error": "the process ended"})
        try:
            back(folder, suffix, facts)
        except Exception as e:
            facts["error"] = "%s: %s" % (type(e).__name__, str(e)[:600])
            if os.environ.get("TRACE"):
                traceback.print_exc()
        write(out, facts)


if __name__ == "__main__":
    if sys.argv[1] == "record":
        main_record(sys.argv[2], sys.argv[3], (sys.argv + [""])[4])
    elif sys.argv[1] == "exact":
        main_exact(sys.argv[2], (sys.argv + [""])[3])
    else:
        main_back(sys.argv[2], sys.argv[3], (sys.argv + [""])[4])
