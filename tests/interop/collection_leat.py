# SPDX-License-Identifier: Apache-2.0
"""The part of tools/collection that runs in leat, for one model: collection_leat.py API.json libleat.so FOLDER.

Reads FOLDER/data.npz and the model files that Keras wrote; writes leat.json, leat.npz, leat.keras and leat.h5."""
import ctypes
import glob
import json
import os
import sys

import numpy as np

import bind_leat
import models as stored
from collection import MORE, STEPS, distances, numbered, worst_error, worst_pair


class Leat:
    """A model of leat."""

    def __init__(self, api, path, compiled=True):
        self.api = api
        options = api.defaults("model_load_options")
        options.compile = compiled
        self.model = api.model_load_using(path, ctypes.byref(options))

    def view(self, a):
        code = {"float32": "LEAT_F32", "int32": "LEAT_I32"}[str(a.dtype)]
        return self.api.tensor_view_into(self.api.values[code], a.ndim, (ctypes.c_int64 * a.ndim)(*a.shape), a.ctypes.data)

    def arrays(self, xs, ts=()):
        make, arrays = self.api.types["leat_array"], self.api.types["leat_arrays"]()
        self.held = [np.ascontiguousarray(a) for a in list(xs) + list(ts)]

        def pack(some):
            return (make * len(some))(*[make(None, self.view(a)) for a in some])
        arrays.inputs, arrays.input_count = pack(self.held[:len(xs)]), len(xs)
        if len(ts):
            arrays.targets, arrays.target_count = pack(self.held[len(xs):]), len(ts)
        return ctypes.byref(arrays)

    def predict(self, xs, like):
        self.api.library.leat_model_reset_states(self.model)
        outs = [np.full(y.shape, np.nan, "float32") for y in like]
        tensors = (self.api.types["leat_tensor"] * len(outs))(*[self.view(o) for o in outs])
        self.api.model_predict_on_batch_into(self.model, self.arrays(xs), tensors)
        return outs

    def test(self, xs, ts):
        self.api.library.leat_model_reset_states(self.model)
        logs = self.api.model_test_on_batch(self.model, self.arrays(xs, ts))
        return {logs.items[i].name.decode(): logs.items[i].value for i in range(logs.count)}

    def train(self, xs, ts, steps):
        self.api.library.leat_model_reset_states(self.model)
        for _ in range(steps):
            self.api.model_train_on_batch(self.model, self.arrays(xs, ts))

    def weights(self, path):
        self.api.model_save(self.model, path, False)
        return stored.stored_weights(path)


def attempt(row, key, function):
    """Writes the result of a function, or its error, into row[key]; returns True if there was no error."""
    try:
        row[key] = function()
        return True
    except Exception as e:
        row[key] = str(e).strip().split("\n")[0][:500]
        return False


def evaluate_error(found, wanted):
    """Returns the largest relative difference of loss and metrics that both have, and the names that leat lacks."""
    error, missing = 0.0, []
    for name, value in wanted.items():
        mine = found.get(name)
        if mine is None:
            missing.append(name)
        elif np.isfinite(value):
            error = max(error, abs(mine - value) / max(1e-3, abs(value)))
    return error, missing


def changes(before, after):
    if len(before) != len(after) or any(a.shape != b.shape for a, b in zip(before, after)):
        raise RuntimeError("weights of other shapes, or in another order: Keras %s, leat %s" %
                           ([a.shape for a in before][:12], [b.shape for b in after][:12]))
    return [b.astype("float64") - a for a, b in zip(before, after)]


def trained(leat, row, key, folder, archive, steps):
    """Trains and compares the change of the weights with that of Keras."""
    xs, ts, wanted = (numbered(archive, p) for p in "xt" + key[0])
    leat.train(xs, ts, steps)
    after = leat.weights(os.path.join(folder, "scratch.h5"))
    moved = changes(numbered(archive, "w"), after)
    row["arrays"].update(("%s%d" % (key[0], i), a) for i, a in enumerate(moved))
    return worst_pair(distances(moved, wanted), archive[key[0] + "_scatter"])


def check(api, folder, suffix):
    """Takes the file of one suffix through leat; returns the facts."""
    row, archive = {"arrays": {}}, np.load(os.path.join(folder, "data.npz"))
    with open(os.path.join(folder, "keras.json")) as file:
        facts = json.load(file)
    xs, ts, ys = (numbered(archive, p) for p in "xty")
    held = {}

    def opens():
        held["leat"] = Leat(api, os.path.join(folder, "keras" + suffix))
    if not attempt(row, "opens", opens):
        attempt(row, "uncompiled_predict", lambda: worst_error(Leat(api, os.path.join(folder, "keras" + suffix), False)
                                                               .predict(xs, ys), ys))
        return row
    leat = held["leat"]

    def predicts():
        found = leat.predict(xs, ys)
        row["arrays"].update(("y%d" % i, a) for i, a in enumerate(found))
        return worst_error(found, ys)
    attempt(row, "predict", predicts)
    attempt(row, "evaluate", lambda: evaluate_error(leat.test(xs, ts), facts["evaluate"]))
    attempt(row, "gradient", lambda: trained(Leat(api, os.path.join(folder, "gradient" + suffix)), row, "gradient", folder,
                                             archive, 1))
    if not attempt(row, "update", lambda: trained(leat, row, "update", folder, archive, STEPS)):
        return row
    if suffix == main_suffix(folder):
        attempt(row, "saved", lambda: save_and_continue(leat, row, folder, xs, ts, ys))
    return row


def save_and_continue(leat, row, folder, xs, ts, ys):
    """Writes the trained model in both formats, and what leat predicts and how it trains on from there."""
    arrays = {"y%d" % i: a for i, a in enumerate(leat.predict(xs, ys))}
    for suffix in (".keras", ".h5"):
        attempt(row, "writes " + suffix, lambda: leat.api.model_save(leat.model, os.path.join(folder, "leat" + suffix), True))
    before = stored.stored_weights(os.path.join(folder, "leat.h5"))
    leat.train(xs, ts, MORE)
    after = leat.weights(os.path.join(folder, "scratch.h5"))
    arrays.update(("m%d" % i, a) for i, a in enumerate(changes(before, after)))
    np.savez(os.path.join(folder, "leat.npz"), **arrays)


def main_suffix(folder):
    return ".keras" if os.path.exists(os.path.join(folder, "keras.keras")) else ".h5"


def main():
    folder = sys.argv[3]
    for old in glob.glob(os.path.join(folder, "leat[._]*")) + glob.glob(os.path.join(folder, "back.*")):
        os.unlink(old)
    api, rows = bind_leat.Api(sys.argv[1], sys.argv[2]), {}
    for suffix in (".keras", ".h5"):
        if os.path.exists(os.path.join(folder, "keras" + suffix)):
            rows[suffix] = {"opens": "the process ended"}
            with open(os.path.join(folder, "leat.json"), "w") as out:
                json.dump(rows, out)
            rows[suffix] = check(api, folder, suffix)
            arrays = rows[suffix].pop("arrays")
            if suffix == main_suffix(folder) and rows[suffix]["opens"] is None:
                np.savez(os.path.join(folder, "leat_changes.npz"), **arrays)
    with open(os.path.join(folder, "leat.json"), "w") as out:
        json.dump(rows, out, indent=1, sort_keys=True)
    if os.path.exists(os.path.join(folder, "scratch.h5")):
        os.unlink(os.path.join(folder, "scratch.h5"))


if __name__ == "__main__":
    main()
