# SPDX-License-Identifier: Apache-2.0
"""Checks the ONNX files that leat writes with ONNX Runtime: check_onnx.py API.json libleat.so FOLDER [WORD...].

A WORD selects golden layer cases whose name contains it; a WORD that is the path of a model file adds that model.  leat
saves each model as .onnx, with the recorded weights.  ONNX Runtime predicts the recorded inputs, which must give what Keras
recorded, and batches of 1, 3 and 8 samples, which must give what leat predicts.  Prints a line for each case that differs
and a table; exits 1 if there is a difference above 1e-5 of the output's scale."""
import collections
import ctypes
import glob
import json
import os
import re
import sys
import time

import numpy as np
import onnx
import onnxruntime

import bind_leat
import models

LIMIT = 1e-5
BATCHES = (1, 3, 8)
GROUPS = ("keras-2.3.1/layers", "keras-3/layers")
TYPES = {"float32": "LEAT_F32", "int32": "LEAT_I32", "int64": "LEAT_I64", "uint8": "LEAT_U8", "float64": "LEAT_F64",
         "bool": "LEAT_BOOL"}


def cases(words):
    """Yields the group, the name and the archive of each golden layer case."""
    for group in GROUPS:
        for path in sorted(glob.glob(os.path.join(models.GOLDEN, group, "*.npz"))):
            name = os.path.basename(path)[:-4]
            if not words or any(word in name for word in words):
                yield group, name, np.load(path)


def build(api, archive):
    """Returns a model of leat with the recorded weights."""
    model = api.model_from_json(bytes(archive["config"]).decode())
    for i, weight in enumerate(models.numbered(archive, "w")):
        weight, tensor = np.ascontiguousarray(weight, "float32"), api.model_weight_into(model, i)
        if weight.nbytes:
            ctypes.memmove(tensor.data, weight.ctypes.data, weight.nbytes)
    return model


def view(api, a):
    return api.tensor_view_into(api.values[TYPES[str(a.dtype)]], a.ndim, (ctypes.c_int64 * a.ndim)(*a.shape),
                                a.ctypes.data)


def predict(api, model, xs, like, reset=True):
    """Returns what leat predicts; `like` has the shapes of the outputs.  reset: states begin as zeros."""
    outs, held = [np.zeros(y.shape, "float32") for y in like], [np.ascontiguousarray(x) for x in xs]
    arrays, make = api.types["leat_arrays"](), api.types["leat_array"]
    arrays.inputs, arrays.input_count = (make * len(held))(*[make(None, view(api, x)) for x in held]), len(held)
    tensors = (api.types["leat_tensor"] * len(outs))(*[view(api, o) for o in outs])
    if reset:
        api.library.leat_model_reset_states(model)
    api.model_predict_on_batch_into(model, ctypes.byref(arrays), tensors)
    return outs


def error_of(found, wanted):
    """Returns the largest difference, relative to the output's scale; NaN agrees with NaN."""
    worst = 0.0
    for a, b in zip(found, wanted):
        if a.shape != b.shape:
            return np.inf
        a, b = np.float64(a), np.float64(b)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        scale = max(1e-3, float(np.max(np.abs(b[np.isfinite(b)]), initial=0)))
        with np.errstate(invalid="ignore"):
            worst = max(worst, float(np.max(np.where(same, 0, np.abs(a - b)), initial=0)) / scale)
    return worst


def session_of(path):
    onnx.checker.check_model(path)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 2
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def run(session, xs, count, states=None):
    """Predicts with ONNX Runtime; returns the first `count` outputs.  The states of stateful layers are inputs and further
    outputs: `states` is a list of them, which the function replaces; None: zeros."""
    feeds = {}
    for i, item in enumerate(session.get_inputs()):
        if i < len(xs):
            x = xs[i].astype({"float": "float32", "double": "float64"}.get(item.type[7:-1], item.type[7:-1]))
            feeds[item.name] = x.reshape(x.shape + (1,)) if x.ndim == len(item.shape) - 1 else x
        else:
            feeds[item.name] = np.zeros(item.shape, "float32") if states is None else states[i - len(xs)]
    outs = session.run(None, feeds)
    if states is not None:
        states[:] = outs[count:]
    return outs[:count]


def resized(xs, batch):
    return [np.concatenate([x] * (batch // len(x) + 1))[:batch] for x in xs]


def is_open(session):
    return isinstance(session.get_inputs()[0].shape[0], str)


def compare_batches(api, model, session, xs, outputs):
    """Returns the largest difference between ONNX Runtime and leat for several batches."""
    worst = 0.0
    for batch in BATCHES if is_open(session) else ():
        some = resized(xs, batch)
        found = run(session, some, outputs)
        worst = max(worst, error_of(predict(api, model, some, found), found))
    return worst


def compare_states(api, model, session, xs, ys):
    """Returns the largest difference in three predictions in which the states are handed on."""
    states, worst = [np.zeros(item.shape, "float32") for item in session.get_inputs()[len(xs):]], 0.0
    for step in range(3):
        found = run(session, xs, len(ys), states)
        worst = max(worst, error_of(predict(api, model, xs, found, step == 0), found))
    return worst


def check_case(api, archive, path):
    model = build(api, archive)
    api.model_save(model, path, True)
    session = session_of(path)
    xs, ys = models.numbered(archive, "x"), models.numbered(archive, "y")
    error = error_of(run(session, xs, len(ys)), ys)
    if len(session.get_inputs()) > len(xs):
        error = max(error, compare_states(api, model, session, xs, ys))
    return max(error, compare_batches(api, model, session, xs, len(ys)))


def random_inputs(session, batch):
    """Returns inputs for a model whose data are not known: numbers for reals, small integers for indices."""
    draw, xs = np.random.RandomState(1), []
    for item in session.get_inputs():
        shape = [batch if i == 0 else (d if isinstance(d, int) else 32) for i, d in enumerate(item.shape)]
        is_real = "float" in item.type
        xs.append(draw.uniform(-1, 1, shape).astype("float32") if is_real else draw.randint(0, 9, shape).astype("int32"))
    return xs


def check_file(api, source, path):
    begun = time.time()
    model = api.model_load(source)
    api.model_save(model, path, True)
    wrote = time.time()
    session = session_of(path)
    error = compare_batches(api, model, session, random_inputs(session, 3), len(session.get_outputs()))
    size = os.path.getsize(path) / 1e6
    transposes = sum(node.op_type == "Transpose" for node in onnx.load(path, load_external_data=False).graph.node)
    print("| %s | %.0f MB | %.1f s | %d | %.1e |" % (os.path.basename(source), size, wrote - begun, transposes, error))
    sys.stdout.flush()
    return error


def main():
    api, folder, words = bind_leat.Api(sys.argv[1], sys.argv[2]), sys.argv[3], sys.argv[4:]
    files = [word for word in words if os.path.isfile(word)]
    names = [word for word in words if word not in files]
    path, counts, refused, worst = os.path.join(folder, "case.onnx"), collections.Counter(), [], collections.Counter()
    for source in files:
        error = check_file(api, source, path)
        counts["files", "right" if error <= LIMIT else "wrong"] += 1
        worst["files"] = max(worst["files"], error)
    for group, name, archive in cases(names) if names or not files else ():
        try:
            error = check_case(api, archive, path)
        except bind_leat.LeatError as e:
            counts[group, "refused"] += 1
            refused.append("%s: %s" % (name, re.sub(r"\s+", " ", str(e))[:230]))
            continue
        except Exception as e:  # the list tells
            error = " ".join(str(e).split())[:300]
        right = isinstance(error, float) and error <= LIMIT
        counts[group, "right" if right else "wrong"] += 1
        if right:
            worst[group] = max(worst[group], error)
        else:
            print("%s/%s: %s" % (group, name, error))
            sys.stdout.flush()
    for line in refused:
        print("refused " + line)
    print("| Cases | Right | Wrong | Refused | Largest difference |\n|---|---|---|---|---|")
    for group in sorted({key[0] for key in counts}):
        numbers = tuple(counts[group, word] for word in ("right", "wrong", "refused"))
        print("| %s | %d | %d | %d | %.1e |" % ((group,) + numbers + (worst[group],)))
    return 1 if any(key[1] == "wrong" for key in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
