# SPDX-License-Identifier: Apache-2.0
"""Runs leat on every case and writes a manifest of its files and predictions for check_keras.py.

drive_leat.py LEAT WORKDIR [WORD]; prints a line per failure, exits 1 if there is one."""
import json
import os
import subprocess
import sys

import numpy as np

import models

TOLERANCE = 1e-5
# SGD with momentum has slots, and does not divide by small gradients, which would magnify rounding errors.
OPTIMIZER = {"class_name": "SGD", "config": {"learning_rate": 0.05, "momentum": 0.8, "decay": 0.1,
                                             "nesterov": True}}
STEPS_MORE = 3
PLAIN = ["--no-shuffle", "--workers", "0", "--threads", "1", "--verbose", "0", "--seed", "7"]


class Failed(Exception):
    """leat failed, or its result differs from that of Keras."""


def run(leat, *arguments):
    """Runs the command; a failure has the messages of the command."""
    done = subprocess.run([leat] + list(arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=120)
    if done.returncode:
        text = done.stdout.decode("utf-8", "replace").strip()
        raise Failed("leat %s: exit %d: %s" % (" ".join(arguments[:2]), done.returncode, text[-400:]))


def fit(leat, model, data, out, batch, epochs, *more):
    """Trains for epochs of one batch each; returns the path of the model that it wrote."""
    run(leat, "fit", model, "--train", data, "--batch-size", str(batch), "--epochs", str(epochs),
        "--out", out, *(PLAIN + list(more)))
    return os.path.join(out, "model.h5")


def predict(leat, model, data, batch, path):
    """Returns one array for each output, in the order of the model's outputs."""
    run(leat, "predict", model, "--data", data, "--batch-size", str(batch), "--output", path + ".npz")
    archive = np.load(path + ".npz")
    return [archive[name] for name in archive.files]


def compare(what, found, wanted, floor):
    """Checks that all arrays agree within the tolerance, relative to their scale (at least floor)."""
    if len(found) != len(wanted):
        raise Failed("%s: %d arrays, expected %d" % (what, len(found), len(wanted)))
    for i, (a, b) in enumerate(zip(found, wanted)):
        error = models.relative_error(a, b, floor)
        if not error <= TOLERANCE:
            raise Failed("%s %d: differs by %.3g of its scale" % (what, i, error))


def data_file(folder, archive):
    """Writes the inputs and targets of a case to an npz; returns its SPEC."""
    members = {}
    for prefix in "xt":
        for i, array in enumerate(models.numbered(archive, prefix)):
            members["%s%d" % (prefix, i)] = array
    path = os.path.join(folder, "data.npz")
    np.savez(path, **members)
    return models.spec(path, sorted(members))


def layer_case(leat, folder, archive, meta):
    """Trains, predicts, and continues training; returns the entry of the manifest."""
    os.makedirs(folder, exist_ok=True)
    architecture = os.path.join(folder, "model.json")
    with open(architecture, "wb") as out:
        out.write(bytes(archive["config"]))
    data = data_file(folder, archive)
    batch = len(archive["x0"])
    # Current Keras opens no file in which a loss is called mse; the name that leat writes is part of the test.
    loss = "mse" if meta["class_name"] == "Dense" else "mean_squared_error"
    loss = ["--loss", loss, "--optimizer", json.dumps(OPTIMIZER)]
    random = "dropout" in meta["case"] and "zero" not in meta["case"]
    first = fit(leat, architecture, data, os.path.join(folder, "first"), batch, 2, *loss)
    outputs = predict(leat, first, data, batch, os.path.join(folder, "predicted"))
    record = {"case": meta["case"], "file": first, "data": os.path.join(folder, "data.npz"),
              "predicted": os.path.join(folder, "predicted.npz"), "outputs": len(outputs),
              "iterations": 2, "further": None}
    if not random:
        record["further"] = fit(leat, first, data, os.path.join(folder, "further"), batch, STEPS_MORE)
        record["steps"] = STEPS_MORE
    return record


def file_case(leat, folder, path, archive, meta):
    """Continues training from a file of Keras and compares with what Keras computed."""
    os.makedirs(folder, exist_ok=True)
    data = data_file(folder, archive)
    batch = len(archive["x0"])
    compare("predict", predict(leat, path, data, batch, os.path.join(folder, "predicted")),
            models.numbered(archive, "y"), 1.0)
    for step in range(1, meta["steps"] + 1):
        out = fit(leat, path, data, os.path.join(folder, "step%d" % step), batch, step)
        wanted = models.numbered(archive, "s%d_w" % step)
        compare("weight after step %d," % step, models.stored_weights(out), wanted, 0.1)


def attempt(label, failures, action, *arguments):
    """Runs one case; a failure is recorded and the other cases still run."""
    try:
        return action(*arguments)
    except (Failed, KeyError, OSError, ValueError, subprocess.TimeoutExpired) as error:
        failures.append("%s: %s" % (label, error))
        print("FAIL " + failures[-1], flush=True)
        return None


def main():
    """Runs all cases and writes WORKDIR/manifest.json."""
    leat, work = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    only = sys.argv[3] if len(sys.argv) > 3 else ""
    failures, manifest = [], []
    done = 0
    for name, archive, meta in models.layer_cases(only):
        if "sparse" in name:  # the loss of these cases does not take class numbers
            continue
        done += 1
        manifest.append(attempt("layers/" + name, failures, layer_case, leat,
                                os.path.join(work, "layers", name), archive, meta))
    for path, archive, meta in models.file_cases(only):
        done += 1
        name = os.path.basename(path)
        attempt("files/" + name, failures, file_case, leat, os.path.join(work, "files", name), path,
                archive, meta)
    with open(os.path.join(work, "manifest.json"), "w") as out:
        json.dump([record for record in manifest if record], out, indent=1)
    print("leat: %d of %d cases as expected" % (done - len(failures), done), flush=True)
    sys.exit(1 if failures or not done else 0)


if __name__ == "__main__":
    main()
