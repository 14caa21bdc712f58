# SPDX-License-Identifier: Apache-2.0
"""Checks what leat saves against current Keras: check_saved.py API.json libleat.so FOLDER [WORD...].

For each model of saved_models.py: Keras trains and saves it; leat loads it, trains one step and saves it as .keras, .h5
and .weights.h5; Keras loads each file, must predict what leat predicts, and both train two more steps.  Prints a table;
exits 1 if a cell has an error above its limit."""
import json
import os
import sys
import traceback
import zipfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import h5py  # noqa: E402
import keras  # noqa: E402
import numpy as np  # noqa: E402

import bind_leat  # noqa: E402
import saved_models  # noqa: E402
import saved_hub_models  # noqa: E402, F401
from leat_model import Leat  # noqa: E402

PREDICTS, CONTINUES = 1e-6, 1e-5
BATCH = 6


def listed(y):
    return [np.asarray(a, "float32") for a in (y if isinstance(y, (list, tuple)) else [y])]


def error_of(found, wanted):
    worst = 0.0
    for a, b in zip(found, wanted):
        scale = max(1.0, float(np.max(np.abs(b))))
        worst = max(worst, float(np.max(np.abs(np.float64(a) - b))) / scale if a.shape == b.shape else np.inf)
    return worst if len(found) == len(wanted) else np.inf


def data_for(model, arguments):
    r = np.random.RandomState(1)
    xs = []
    for x in model.inputs:
        shape = (BATCH,) + tuple(d or 3 for d in x.shape[1:])
        is_integer = "int" in str(x.dtype)
        xs.append(r.randint(0, 10, shape).astype("int32") if is_integer else r.normal(size=shape).astype("float32"))
    ts = []
    for i, y in enumerate(model.outputs):
        shape = (BATCH,) + tuple(d or 3 for d in y.shape[1:])
        if "sparse" in str(arguments.get("loss")).lower():
            ts.append(r.randint(0, shape[-1], shape[:-1] + (1,)).astype("int32"))
        elif shape[-1] == 3:
            ts.append(np.eye(3, dtype="float32")[r.randint(0, 3, shape[:-1])])
        else:
            ts.append(r.uniform(0.1, 0.9, size=shape).round(1).astype("float32"))
    return xs, ts


def one(values):
    return values[0] if len(values) == 1 else values


def reset(model):
    for layer in model.layers:
        if getattr(layer, "stateful", False):
            layer.reset_states() if hasattr(layer, "reset_states") else layer.reset_state()


def keras_predict(model, xs):
    reset(model)
    return listed(model.predict_on_batch(one(xs)))


def keras_train(model, xs, ts, steps):
    reset(model)
    for _ in range(steps):
        model.train_on_batch(one(xs), one(ts))


def give_state(model, path):
    """Builds the optimizer of a model from an .h5 file and sets its variables.  Keras 3.15 builds it without the variables
    of the layers, so that no .h5 file, Keras's own neither, can be trained without this."""
    with h5py.File(path) as file:
        group = file["optimizer_weights"]
        values = [group[n][()] for n in group.attrs["weight_names"]]
    config = keras.optimizers.serialize(model.optimizer)
    optimizer = keras.optimizers.deserialize(config)
    optimizer.build(model.trainable_variables)
    optimizer.set_weights(values)
    model.optimizer = optimizer


def compare_configs(path, original):
    """Keys of the two config.json that differ: where leat writes something else than Keras wrote."""
    def read(p):
        return json.loads(zipfile.ZipFile(p).read("config.json"))
    found = []

    def walk(a, b, where):
        if isinstance(a, dict) and isinstance(b, dict):
            for key in sorted(set(a) | set(b)):
                if key == "shared_object_id":
                    continue
                if key not in a:
                    if b[key] not in (None, False):
                        found.append("%s.%s: missing, %.60s" % (where, key, json.dumps(b[key])))
                elif key not in b:
                    found.append("%s.%s: extra, %.60s" % (where, key, json.dumps(a[key])))
                else:
                    walk(a[key], b[key], "%s.%s" % (where, key))
        elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
            for i, (p, q) in enumerate(zip(a, b)):
                walk(p, q, "%s[%d]" % (where, i))
        elif a != b:
            found.append("%s: %.60s, Keras %.60s" % (where, json.dumps(a), json.dumps(b)))
    walk(read(path), read(original), "")
    return found


def attempt(row, name, function):
    try:
        row[name] = function()
    except Exception as e:  # the table tells
        row[name] = ("%s: %s" % (type(e).__name__, str(e).strip().split("\n")[0]))[:300]
        if os.environ.get("TRACE"):
            traceback.print_exc()


def check(api, name, folder):
    keras.utils.set_random_seed(3)
    keras.utils.clear_session()
    made = saved_models.LAYERS[name]()
    model, arguments = made if isinstance(made, tuple) else (made, {})
    arguments = dict(dict(optimizer=keras.optimizers.Adam(0.01), loss="mse"), **arguments)
    model.compile(jit_compile=False, **arguments)
    xs, ts = data_for(model, arguments)
    keras_train(model, xs, ts, 2)
    path = os.path.join(folder, name)
    model.save(path + ".keras")
    model.save_weights(path + ".weights.h5")
    y = keras_predict(model, xs)
    row = {}

    def loads():
        row["leat"] = Leat(api, path + ".keras")
        return error_of(row["leat"].predict(xs, y), y)
    attempt(row, "opens", loads)
    if "leat" not in row:
        return row
    leat = row["leat"]
    for suffix in (".keras", ".h5", ".weights.h5"):
        def save(target=path + "_leat" + suffix):
            leat.api.model_save_weights(leat.model, target) if suffix == ".weights.h5" else \
                leat.api.model_save(leat.model, target, True)
        attempt(row, "first save " + suffix, save)
    if row["first save .keras"] is None:
        row["config"] = compare_configs(path + "_leat.keras", path + ".keras")

    def weights_from_keras():
        other = Leat(api, path + ".keras")
        other.api.model_initialize(other.model, 5)
        other.api.model_load_weights(other.model, path + ".weights.h5", False)
        return error_of(other.predict(xs, y), y)
    attempt(row, "weights in", weights_from_keras)

    def weights_from_leat():
        keras.utils.set_random_seed(9)
        fresh = keras.models.clone_model(model)
        fresh.load_weights(path + "_leat.weights.h5")
        return error_of(keras_predict(fresh, xs), y)
    attempt(row, "weights out", weights_from_leat)

    def train():
        leat.train(xs, ts, 1)
        row["y"] = leat.predict(xs, y)
        leat.api.model_save(leat.model, path + "_leat.keras", True)
        leat.api.model_save(leat.model, path + "_leat.h5", True)
        leat.train(xs, ts, 2)
        row["z"] = leat.predict(xs, y)
    attempt(row, "trains", train)
    for suffix in (".keras", ".h5"):
        def keras_opens(suffix=suffix):
            row["m"] = keras.models.load_model(path + "_leat" + suffix)
            if suffix == ".h5":
                give_state(row["m"], path + "_leat.h5")
            return error_of(keras_predict(row["m"], xs), row["y"])

        def keras_continues():
            m = row.pop("m")
            keras_train(m, xs, ts, 2)
            return error_of(keras_predict(m, xs), row["z"])
        attempt(row, suffix, keras_opens)
        if "m" in row:
            attempt(row, suffix + " continues", keras_continues)

    def same():
        keras_train(model, xs, ts, 1)
        keras_train(model, xs, ts, 2)
        return error_of(keras_predict(model, xs), row["z"])
    attempt(row, "same", same)
    return row


COLUMNS = [("opens", PREDICTS), (".keras", PREDICTS), (".keras continues", CONTINUES), (".h5", PREDICTS),
           (".h5 continues", CONTINUES), ("weights in", PREDICTS), ("weights out", PREDICTS), ("same", CONTINUES)]


def main():
    api = bind_leat.Api(sys.argv[1], sys.argv[2])
    folder, words = sys.argv[3], sys.argv[4:]
    names = [n for n in saved_models.LAYERS if not words or any(w in n for w in words)]
    failures, notes = 0, []
    print("| Model | " + " | ".join(c for c, _ in COLUMNS) + " |")
    print("|---" * (len(COLUMNS) + 1) + "|")
    for name in names:
        cells, row = [], {}
        try:
            row = check(api, name, folder)
        except Exception as e:
            notes.append("%s: Keras: %s" % (name, str(e).strip()[:300]))
        limit_factor = 1e4 if "bfloat16" in name else 1
        for column, limit in COLUMNS:
            value = row.get(column, "-")
            ok = isinstance(value, float) and value <= limit * limit_factor
            cells.append("%.0e" % value if ok else "**%.0e**" % value if isinstance(value, float) else "**no**")
            if not ok:
                failures += 1
                if isinstance(value, str):
                    notes.append("%s: %s: %s" % (name, column, value))
        for key, value in row.items():
            if key.startswith("first") and value or key == "trains" and value:
                notes.append("%s: %s: %s" % (name, key, value))
        if os.environ.get("CONFIGS"):
            notes += ["%s: config%s" % (name, c) for c in row.get("config", [])]
        print("| %s | %s |" % (name, " | ".join(cells)))
        sys.stdout.flush()
    print("\n".join(notes))
    print("%d models, %d cells beyond the limit" % (len(names), failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
