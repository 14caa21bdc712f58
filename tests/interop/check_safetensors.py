# SPDX-License-Identifier: Apache-2.0
"""Compares leat's safetensors files with Python's package: check_safetensors.py API.json libleat.so FOLDER [WORD...].

For each golden layer case with weights: leat writes them, Python reads the recorded values; Python writes other values, as
float32, float64 and float16, in another order, and leat reads them.  Exits 1 if a weight differs in a bit."""
import ctypes
import os
import sys

import numpy as np
from safetensors.numpy import load_file, save_file

import bind_leat
import check_onnx
import models


def names_of(api, model, count):
    api.library.leat_model_weight_name.restype = ctypes.c_char_p
    return [api.library.leat_model_weight_name(model, i).decode().rsplit(":", 1)[0] for i in range(count)]


def values_of(api, model, like):
    found = []
    for i, weight in enumerate(like):
        tensor, value = api.model_weight_into(model, i), np.empty(weight.shape, "float32")
        if value.nbytes:
            ctypes.memmove(value.ctypes.data, tensor.data, value.nbytes)
        found.append(value)
    return found


def same(a, b):
    return len(a) == len(b) and all(x.shape == y.shape and x.tobytes() == y.tobytes() for x, y in zip(a, b))


def check(api, archive, path):
    weights = [np.ascontiguousarray(w, "float32") for w in models.numbered(archive, "w")]
    model = check_onnx.build(api, archive)
    names = names_of(api, model, len(weights))
    api.model_save_weights(model, path)
    stored = load_file(path)
    if sorted(stored) == sorted(names):  # a recorded scalar has the shape (1,)
        weights = [w.reshape(stored[n].shape) if w.size == 1 else w for n, w in zip(names, weights)]
    if sorted(stored) != sorted(names) or not same([stored[n] for n in names], weights):
        return "Python reads other values"
    for dtype in ("float32", "float64", "float16"):
        others = [np.array(w * 2 + 1, dtype) for w in weights]
        save_file(dict(reversed(list(zip(names, others)))), path, metadata={"by": "Python"})
        api.model_load_weights(model, path, False)
        if not same(values_of(api, model, weights), [o.astype("float32") for o in others]):
            return "leat reads other values of type " + dtype
    return ""


def main():
    api, path = bind_leat.Api(sys.argv[1], sys.argv[2]), os.path.join(sys.argv[3], "case.safetensors")
    right = wrong = 0
    for _, name, archive in check_onnx.cases(sys.argv[4:]):
        try:
            error = check(api, archive, path)
        except Exception as e:  # the list tells
            error = " ".join(str(e).split())[:300]
        right, wrong = right + (not error), wrong + bool(error)
        if error:
            print("%s: %s" % (name, error))
    print("%d right, %d wrong" % (right, wrong))
    return 1 if wrong or not right else 0


if __name__ == "__main__":
    sys.exit(main())
