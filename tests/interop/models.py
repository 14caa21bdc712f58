# SPDX-License-Identifier: Apache-2.0
"""Lists the models of this test: every trained case of the golden layers, and the golden files."""
import glob
import json
import os

import h5py
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(os.path.dirname(HERE), "golden")


def numbered(archive, prefix):
    """Returns the arrays prefix0, prefix1, ... of an npz."""
    arrays = []
    while "%s%d" % (prefix, len(arrays)) in archive.files:
        arrays.append(archive["%s%d" % (prefix, len(arrays))])
    return arrays


def meta_of(archive):
    """Returns the JSON of the member `meta`."""
    return json.loads(bytes(archive["meta"]).decode("utf-8"))


def layer_cases(only):
    """Yields (name, archive, meta) of each golden layer case; random layers predict without randomness."""
    for path in sorted(glob.glob(os.path.join(GOLDEN, "keras-2.3.1", "layers", "*.npz"))):
        name = os.path.splitext(os.path.basename(path))[0]
        if only and only not in name:
            continue
        archive = np.load(path)
        yield name, archive, meta_of(archive)


def file_cases(only):
    """Yields (path of the .h5, archive, meta) of each golden file that has vectors of continued training."""
    for path in sorted(glob.glob(os.path.join(GOLDEN, "files", "*.npz"))):
        name = os.path.splitext(os.path.basename(path))[0]
        archive = np.load(path)
        if "train_loss" in archive.files and (not only or only in name):
            yield path[:-4] + ".h5", archive, meta_of(archive)


def stored_weights(path):
    """Returns the weights of a model file in Keras's order."""
    def names(attributes, key):
        if key in attributes:
            return list(attributes[key])
        chunks = []
        while "%s%d" % (key, len(chunks)) in attributes:
            chunks.append(attributes["%s%d" % (key, len(chunks))])
        return [name for chunk in chunks for name in chunk]

    def plain(name):
        return name.decode("utf-8") if isinstance(name, bytes) else str(name)
    with h5py.File(path, "r") as file:
        root = file["model_weights"]
        layers = [root[plain(n)] for n in names(root.attrs, "layer_names")]
        return [np.array(layer[plain(n)]) for layer in layers for n in names(layer.attrs, "weight_names")]


def spec(path, members):
    """Returns the SPEC of an npz whose arrays are x0, x1, ... and, for training, t0, t1, ..."""
    for character in "%,?&":
        path = path.replace(character, "%%%02X" % ord(character))
    inputs = ",".join(m for m in members if m.startswith("x"))
    targets = ",".join(m for m in members if m.startswith("t"))
    return "npz:%s?inputs=%s%s" % (path, inputs, "&targets=" + targets if targets else "")


def relative_error(found, wanted, floor):
    """Returns the largest difference divided by the largest expected magnitude (at least floor)."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    if found.shape != wanted.shape:
        return float("inf")
    if wanted.size == 0:
        return 0.0
    error = np.abs(found.astype("float64") - wanted).max() / max(floor, np.abs(wanted).max())
    return float(error) if np.isfinite(error) else float("inf")
