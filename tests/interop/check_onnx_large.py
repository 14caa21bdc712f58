# SPDX-License-Identifier: Apache-2.0
"""Checks an ONNX model above 2 GiB, whose weights are in a file beside it.

Usage: check_onnx_large.py API.json libleat.so FOLDER [UNITS].  Needs onnxruntime, 8 GB of memory
and 2.3 GB in FOLDER.  ONNX Runtime must predict what follows from leat's weights (1e-5)."""
import ctypes
import json
import os
import sys

import numpy as np
import onnxruntime

import bind_leat

UNITS = 23500


def architecture(units):
    """Returns the JSON text of two Dense layers."""
    first = {"name": "wide", "units": units, "bias_initializer": "random_uniform", "batch_input_shape": [None, units]}
    layers = [{"class_name": "Dense", "config": first},
              {"class_name": "Dense", "config": {"name": "narrow", "units": 3}}]
    return json.dumps({"class_name": "Sequential", "keras_version": "2.3.1",
                       "config": {"name": "large", "layers": layers}})


def weight(api, model, index):
    """Returns a view of a weight of the model."""
    tensor = api.model_weight_into(model, index)
    shape = tuple(tensor.shape[:tensor.rank])
    numbers = (ctypes.c_float * int(np.prod(shape))).from_address(tensor.data)
    return np.frombuffer(numbers, "float32").reshape(shape)


def main():
    api = bind_leat.Api(sys.argv[1], sys.argv[2])
    units = int(sys.argv[4]) if len(sys.argv) > 4 else UNITS
    path = os.path.join(sys.argv[3], "large.onnx")
    model = api.model_from_json(architecture(units))
    api.model_save(model, path, False)
    x = np.random.RandomState(0).uniform(0, 1, (2, units)).astype("float32")
    wanted = np.matmul(x, weight(api, model, 0)) + weight(api, model, 1)
    wanted = np.matmul(wanted, weight(api, model, 2)) + weight(api, model, 3)
    session = onnxruntime.InferenceSession(path)
    found = session.run(None, {session.get_inputs()[0].name: x})[0]
    error = np.abs(found - wanted).max() / np.abs(wanted).max()
    print("%d bytes, and %d beside it: off by %.1e of the scale" % (
        os.path.getsize(path), os.path.getsize(path + ".data") if os.path.exists(path + ".data") else 0, error))
    return 0 if error <= 1e-5 else 1


if __name__ == "__main__":
    sys.exit(main())
