# SPDX-License-Identifier: Apache-2.0
"""Compares leat with Keras 2.3.1 on the models of keras.applications: see tools/applications."""
import argparse
import json
import os
import re
import subprocess
import sys
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
LAYER_LIMIT = 1e-4
LOSS_LIMIT = 1e-4
# Limits of the two errors that step_errors returns; a wrong gradient has a second error of about 1.
STEP_LIMITS = np.array([1e-4, 1e-2])
SCATTERS = 3  # a larger error is allowed up to SCATTERS times the scatter of Keras's own results
ROW3 = "| %-17s | %6s | %6s | %10s | %8s | %-25s |"
ROW = ROW3 + " %8s | %8s | %8s | %8s | %8s | %8s | %-7s |"


def distance(a, b):
    """Returns the largest difference, divided by b's largest absolute value."""
    if a.shape != b.shape or not np.all(np.isfinite(a)):
        return float("inf")
    return float(np.max(np.abs(a - b)) / max(float(np.max(np.abs(b))), 1e-30)) if b.size else 0.0


def median_time(run, repeats):
    """Returns the median time of `repeats` runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return sorted(times)[repeats // 2] if repeats else None


def in_keras(model, x, t, path, repeats):
    """Computes with Keras what leat computes: layers with natural weights, a training step with steady weights."""
    import keras
    from recorder import application_models
    model.save(path % "layers")
    lines = []
    model.summary(print_fn=lines.append)
    found = {"summary": "".join(line + "\n" for line in lines), "config": json.loads(model.to_json())}
    found["parameters"] = model.count_params()
    probe = keras.Model(model.inputs, [layer.output for layer in model.layers])
    outputs = probe.predict_on_batch(x)
    found["outputs"] = dict(zip([layer.name for layer in model.layers], outputs))
    natural = model.get_weights()
    application_models.fill(model, model.name, "steady")
    model.save(path % "step")
    found["before"] = named_weights(model)
    found["loss"] = float(model.train_on_batch(x, t))
    found["after"] = named_weights(model)
    found["output_again"] = lambda: another_prediction(model, probe, natural, x, outputs)
    found["step_again"] = lambda: another_step(model, x, t, found)
    found["train_seconds"] = median_time(lambda: model.train_on_batch(x, t), repeats)
    found["predict_seconds"] = median_time(lambda: model.predict_on_batch(x), repeats)
    return found


def named_weights(model):
    """Returns name -> weight, in the order of model.get_weights()."""
    return dict(zip([w.name for layer in model.layers for w in layer.weights], model.get_weights()))


def in_leat(program, path, x, t, folder, repeats):
    """Runs leat and returns its results from its files in `folder` and its output."""
    data = os.path.join(folder, "data.npz")
    np.savez(data, x=x, t=t)
    subprocess.check_call([program, "layers", path % "layers", data, folder])
    times = [str(repeats)] if repeats else []
    out = subprocess.check_output([program, "step", path % "step", data, folder] + times)
    found = {k: float(v) for k, v in (line.split() for line in out.decode().splitlines())}
    for name in ("summary.txt", "config.json"):
        with open(os.path.join(folder, name)) as file:
            found[name.split(".")[0]] = file.read()
    found["config"] = json.loads(found["config"])
    found["outputs"] = np.load(os.path.join(folder, "layers.npz"))
    found["predict"] = np.load(os.path.join(folder, "predict.npy"))
    found["after"] = np.load(os.path.join(folder, "weights.npz"))
    return found


def step_errors(after, theirs):
    """Returns the errors of each weight after a step, (weights, 2): relative to the weight, and relative to its
    update."""
    scale = {n: float(np.max(np.abs(v - theirs["before"][n]))) for n, v in theirs["after"].items()}
    floor = 1e-3 * max(scale.values())
    return np.array([(distance(after[n], v), float(np.max(np.abs(after[n] - v))) / max(scale[n], floor))
                     for n, v in theirs["after"].items()])


def scatter(errors, limit, again, times=8):
    """Returns how much Keras's own results vary with the rounding of its sums (rounding.py): the maximum of `times`
    runs.  NaN if no error exceeds the limit."""
    from recorder import rounding
    if np.all(errors < limit):
        return np.full(errors.shape, np.nan)
    with rounding.at_random():
        return np.max([again() for _ in range(times)], axis=0)


def another_prediction(model, probe, weights, x, outputs):
    """Predicts again, and returns each layer's distance from the first prediction of Keras."""
    model.set_weights(weights)
    return [distance(*v) for v in zip(probe.predict_on_batch(x), outputs)]


def another_step(model, x, t, found):
    """Repeats Keras's step, and returns its step_errors."""
    model.set_weights(list(found["before"].values()))
    model.train_on_batch(x, t)
    return step_errors(named_weights(model), found)


def compare(name, ours, theirs):
    """Returns one row of the table."""
    names, weights = list(theirs["outputs"]), list(theirs["after"])
    output = np.array([distance(ours["outputs"][n], v) for n, v in theirs["outputs"].items()])
    last = names.index(theirs["config"]["config"]["output_layers"][0][0])
    output[last] = max(output[last], distance(ours["predict"], theirs["outputs"][names[last]]))
    step = step_errors(ours["after"], theirs)
    output_scatter = scatter(output, LAYER_LIMIT, theirs["output_again"])
    step_scatter = scatter(step, STEP_LIMITS, theirs["step_again"])
    layer, (weight, update) = output.argmax(), step.argmax(axis=0)
    row = {
        "model": name, "layers": len(names), "parameters": theirs["parameters"],
        "layer": names[layer], "outputs": [output[layer], output_scatter[layer]],
        "weight": weights[weight], "weights": [step[weight, 0], step_scatter[weight, 0]],
        "updates": [step[update, 1], step_scatter[update, 1]],
        "loss": abs(ours["loss"] - theirs["loss"]) / abs(theirs["loss"]),
        "excess": [float(np.max(found / np.fmax(limit, SCATTERS * scattered))) for found, limit, scattered in
                   ((output, LAYER_LIMIT, output_scatter), (step, STEP_LIMITS, step_scatter))],
        "summary": ours["summary"] == theirs["summary"],
        "config": ours["config"]["config"] == theirs["config"]["config"],
        "same_weights": list(ours["after"].keys()) == list(theirs["after"].keys()),
        "scale": [float(f(np.std(v) for v in theirs["outputs"].values())) for f in (min, max)],
        "predict_seconds": [ours.get("predict_seconds"), theirs["predict_seconds"]],
        "train_seconds": [ours.get("train_seconds"), theirs["train_seconds"]],
        "losses": [ours["loss"], theirs["loss"]],
    }
    row["passed"] = (max(row["excess"]) < 1 and row["loss"] < LOSS_LIMIT and
                     all(row[k] for k in ("summary", "config", "same_weights")))
    return row


def one(arguments):
    """Compares one model, in a process of its own: TensorFlow gives no memory back."""
    sys.path.insert(0, HERE)
    from recorder import ordered  # noqa: F401
    from recorder import application_models
    application_models.rewrite_graphs(False)
    from recorder import rounding  # noqa: F401
    name, _, pixels = arguments.models[0].partition("@")
    folder = os.path.join(arguments.out, arguments.models[0])
    os.makedirs(folder, exist_ok=True)
    pixels = int(pixels or application_models.MODELS[name][1])
    model, x, t = application_models.make(name, pixels, arguments.classes, arguments.batch)
    path = os.path.join(folder, "%s.h5")
    theirs = in_keras(model, x, t, path, arguments.repeats)
    ours = in_leat(arguments.program, path, x, t, folder, arguments.repeats)
    row = dict(compare(name, ours, theirs), pixels=pixels)
    with open(os.path.join(folder, "row.json"), "w") as file:
        json.dump(row, file)
    if not arguments.keep:
        for file in ("layers.h5", "step.h5", "data.npz", "layers.npz", "weights.npz", "predict.npy"):
            os.remove(os.path.join(folder, file))


def head(row, *names):
    """Prints a table's head, in Markdown."""
    print(row % names + "\n" + re.sub("[^|]", "-", row % names), flush=True)


def show(row):
    """Prints it."""
    numbers = ["" if np.isnan(v) else "%.1e" % v for v in row["outputs"] + [row["loss"]] + row["weights"] + row["updates"]]
    words = "same" if row["summary"] and row["config"] else "DIFFER"
    print(ROW % tuple([row["model"], row["pixels"], row["layers"], row["parameters"], numbers[0], row["layer"][-25:]] +
                      numbers[1:] + [words]) + ("" if row["passed"] else " FAILED"))
    for kind in ("predict_seconds", "train_seconds"):
        if row[kind][0]:
            print("    %-16s leat %.4f, Keras %.4f" % (kind, row[kind][0], row[kind][1]))
    sys.stdout.flush()


def main():
    """Parses the command line, runs each model and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=0, help="time so many predictions and steps of both")
    parser.add_argument("--keep", action="store_true", help="keep the files")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("models", nargs="*", help="NAME or NAME@PIXELS; all of them")
    arguments = parser.parse_args()
    if arguments.one:
        one(arguments)
        return
    with open(os.path.join(HERE, "recorder", "application_models.py")) as file:
        known = [line.split('"')[1] for line in file if line.startswith('    "') and "applications." in line]
    head(ROW, "Model", "Pixels", "Layers", "Parameters", "Output", "of layer", "Keras's", "Loss", "Weights", "Keras's", "Updates",
         "Keras's", "Summary")
    failed = 0
    for name in arguments.models or known:
        status = subprocess.call([sys.executable, os.path.abspath(__file__), "--one", name] +
                                 [a for a in sys.argv[1:] if a not in arguments.models])
        if status != 0:
            print("%-18s FAILED to run" % name)
            failed += 1
            continue
        with open(os.path.join(arguments.out, name, "row.json")) as file:
            row = json.load(file)
        show(row)
        failed += not row["passed"]
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
