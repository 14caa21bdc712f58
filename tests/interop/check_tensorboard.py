# SPDX-License-Identifier: Apache-2.0
"""Reads the event files of leat with TensorBoard's own code.  tools/check-tensorboard calls it."""

import csv
import json
import pathlib
import socket
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import numpy as np

EPOCHS, STEPS, UPDATE_FREQ = 12, 20, 5  # as in tools/check-tensorboard

MODEL = {
    "class_name": "Model",
    "config": {
        "name": "watched",
        "layers": [
            {"class_name": "InputLayer", "name": "in", "inbound_nodes": [],
             "config": {"name": "in", "batch_input_shape": [None, 8]}},
            {"class_name": "Dense", "name": "shared", "inbound_nodes": [[["in", 0, 0, {}]], [["shared", 0, 0, {}]]],
             "config": {"name": "shared", "units": 8, "activation": "relu"}},
            {"class_name": "Sequential", "name": "encoder", "inbound_nodes": [[["shared", 1, 0, {}]]],
             "config": {"name": "encoder", "layers": [
                 {"class_name": "Dense", "config": {"name": "wide", "units": 32, "batch_input_shape": [None, 8]}},
                 {"class_name": "BatchNormalization", "config": {"name": "norm"}},
                 {"class_name": "Activation", "config": {"name": "tanh", "activation": "tanh"}}]}},
            {"class_name": "Concatenate", "name": "both",
             "inbound_nodes": [[["encoder", 1, 0, {}], ["shared", 0, 0, {}]]], "config": {"name": "both"}},
            {"class_name": "Dense", "name": "scores", "inbound_nodes": [[["both", 0, 0, {}]]],
             "config": {"name": "scores", "units": 3, "activation": "softmax"}},
        ],
        "input_layers": [["in", 0, 0]],
        "output_layers": [["scores", 0, 0]],
    },
}

# Weights by tag, and their numbers of elements.
WEIGHTS = {"shared/kernel_0": 64, "shared/bias_0": 8, "encoder/wide/kernel_0": 256, "encoder/wide/bias_0": 32,
           "encoder/norm/gamma_0": 32, "encoder/norm/beta_0": 32, "encoder/norm/moving_mean_0": 32,
           "encoder/norm/moving_variance_0": 32, "scores/kernel_0": 120, "scores/bias_0": 3}

# Nodes of the graph: class, and inputs.
NODES = {"in": ("InputLayer", []), "shared/call_0": ("Dense", ["in"]), "shared/call_1": ("Dense", ["shared/call_0"]),
         "encoder/wide_input": ("InputLayer", ["shared/call_1"]), "encoder/wide": ("Dense", ["encoder/wide_input"]),
         "encoder/norm": ("BatchNormalization", ["encoder/wide"]), "encoder/tanh": ("Activation", ["encoder/norm"]),
         "both": ("Concatenate", ["encoder/tanh", "shared/call_0"]), "scores": ("Dense", ["both"])}

failures = 0


def expect(correct, what):
    global failures
    if not correct:
        failures += 1
        print(f"check-tensorboard: {what}", file=sys.stderr)


def make(work):
    """Writes the model and the data."""
    random = np.random.default_rng(1)
    (work / "model.json").write_text(json.dumps(MODEL))
    for name, samples in (("train", 16 * STEPS), ("test", 100)):
        x = random.normal(size=(samples, 8)).astype(np.float32)
        labels = (x[:, 0] > 0).astype(int) + (x[:, 1] * x[:, 2] > 0.3)
        np.savez(work / f"{name}.npz", x=x, y=np.eye(3, dtype=np.float32)[labels])


def expected_scalars(work):
    """Returns {(run, tag): [(step, value)]} of the values that history.json has."""
    history = json.loads((work / "run/history.json").read_text())["history"]
    expected = {}
    for name, values in history.items():
        run, bare = ("validation", name[4:]) if name.startswith("val_") else ("train", name)
        expected[run, "epoch_" + bare] = list(enumerate(values))
        if run == "validation":
            expected[run, f"evaluation_{bare}_vs_iterations"] = [(STEPS * (i + 1), v) for i, v in enumerate(values)]
        else:
            # The last batch of an epoch shows the values of the epoch.
            expected[run, "batch_" + bare] = [(STEPS * (i + 1), v) for i, v in enumerate(values)]
    expected["train", "epoch_learning_rate"] = [(i, 0.003) for i in range(EPOCHS)]
    return expected


def check_series(tag, found, expected):
    if tag[1].startswith("batch_"):
        steps = [step for step, _ in found]
        expect(steps == list(range(UPDATE_FREQ, EPOCHS * STEPS + 1, UPDATE_FREQ)), f"{tag}: steps {steps}")
        found = [(step, value) for step, value in found if step % STEPS == 0]
    expected = [(step, np.float32(value)) for step, value in expected]
    expect(found == expected, f"{tag}: TensorBoard reads {found}, expected {expected}")


def check_csv(work, found):
    """log.csv has nine digits of each value."""
    with open(work / "run/log.csv", newline="") as file:
        for row in csv.DictReader(file):
            step = int(row.pop("epoch"))
            for name, text in row.items():
                run, bare = ("validation", name[4:]) if name.startswith("val_") else ("train", name)
                value = dict(found[run, "epoch_" + bare])[step]
                expect(np.isclose(value, float(text), rtol=1e-6, atol=0), f"log.csv: {name}: {text}, event: {value}")


def check_files(work):
    """Reads the files with TensorBoard's accumulator."""
    from tensorboard.backend.event_processing import plugin_event_accumulator
    from tensorboard.compat.proto import graph_pb2
    from tensorboard.util import tensor_util

    found = {}
    for run in ("train", "validation"):
        events = plugin_event_accumulator.EventAccumulator(
            str(work / "logs" / run), size_guidance={"tensors": 0}, tensor_size_guidance={"scalars": 0, "histograms": 0})
        events.Reload()
        for tag in events.PluginTagToContent("scalars"):
            found[run, tag] = [(e.step, np.float32(tensor_util.make_ndarray(e.tensor_proto).item())) for e in events.Tensors(tag)]
        if run == "train":
            check_histograms(events)
            graph = graph_pb2.GraphDef()
            graph.ParseFromString(events.Graph().SerializeToString())
            check_graph(graph)
    expected = expected_scalars(work)
    expect(set(found) == set(expected), f"scalars: {sorted(set(found) ^ set(expected))} are missing or unexpected")
    for tag in set(found) & set(expected):
        check_series(tag, found[tag], expected[tag])
    check_csv(work, found)
    count = sum(len(series) for series in found.values())
    print(f"files: {count} scalars in {len(found)} series equal history.json; {len(WEIGHTS)} histograms by epoch; a graph")


def check_histograms(events):
    from tensorboard.util import tensor_util

    tags = events.PluginTagToContent("histograms")
    expect(set(tags) == set(WEIGHTS), f"histograms of {sorted(tags)}")
    for tag in tags:
        expect([e.step for e in events.Tensors(tag)] == list(range(EPOCHS)), f"{tag}: steps")
        for e in events.Tensors(tag):
            buckets = tensor_util.make_ndarray(e.tensor_proto)
            expect(buckets.shape == (30, 3) and buckets[:, 2].sum() == WEIGHTS[tag], f"{tag}: buckets {buckets}")
            expect((buckets[1:, 0] == buckets[:-1, 1]).all(), f"{tag}: the buckets do not adjoin")


def check_graph(graph):
    nodes = {node.name: (node.op, list(node.input)) for node in graph.node}
    expect(nodes == NODES, f"graph: {nodes}")
    shape = [node for node in graph.node if node.name == "both"][0].attr["_output_shapes"].list.shape[0]
    expect([dim.size for dim in shape.dim] == [-1, 40], f"graph: shape {shape}")


def get(url, seconds=60):
    """Returns what the server answers, as soon as it does."""
    for attempt in range(seconds):
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return answer.read().decode()
        except (urllib.error.URLError, OSError) as error:
            last = error
            time.sleep(1)
    sys.exit(f"check-tensorboard: {url}: {last}")


def check_server(work, url):
    """Asks a running TensorBoard, whose server reads the files with other code than its Python classes."""
    plugins = f"{url}/data/plugin"
    for attempt in range(60):  # until the server has read all files
        tags = json.loads(get(f"{plugins}/histograms/tags"))
        scalars = json.loads(get(f"{plugins}/scalars/tags"))
        if set(tags.get("train", {})) == set(WEIGHTS) and "epoch_loss" in scalars.get("validation", {}):
            break
        time.sleep(1)
    expected = expected_scalars(work)
    served = {(run, tag) for run in scalars for tag in scalars[run]}
    expect(served == set(expected), f"server: scalars {sorted(served ^ set(expected))} are missing or unexpected")
    for run, tag in expected:
        query = urllib.parse.urlencode({"run": run, "tag": tag})
        series = json.loads(get(f"{plugins}/scalars/scalars?{query}"))
        check_series((run, tag), [(step, np.float32(value)) for _, step, value in series], expected[run, tag])
    for tag, count in WEIGHTS.items():
        query = urllib.parse.urlencode({"run": "train", "tag": tag})
        series = json.loads(get(f"{plugins}/histograms/histograms?{query}"))
        sums = [sum(bucket[2] for bucket in buckets) for _, _, buckets in series]
        expect(sums == [count] * EPOCHS, f"server: histogram {tag}: {sums}")
    query = urllib.parse.urlencode({"run": "train", "conceptual": "false", "large_attrs_key": "_too_large_attrs"})
    graph = get(f"{plugins}/graphs/graph?{query}")
    for name in NODES:
        expect(f'name: "{name}"' in graph, f"server: the graph has no node {name}")
    print(f"server: {len(expected)} series, {len(WEIGHTS)} histograms and the graph are served")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        print(probe.getsockname()[1])


def main():
    command, *arguments = sys.argv[1:]
    work = pathlib.Path(arguments[0]) if arguments else None
    if command == "make":
        make(work)
    elif command == "files":
        check_files(work)
    elif command == "server":
        check_server(work, arguments[1])
    elif command == "port":
        free_port()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
