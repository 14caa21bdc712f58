#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures leat beside PyTorch, current Keras and ONNX Runtime in float32: on the models of keras.applications an SGD step of
8 samples and predictions of 8 and of 1, at each model's own size; on common networks that are not among them (--models common)
a step and a prediction of a usual batch and a prediction of 1.

    bench/peers/setup all                                      once
    bench/applications.py [--models MobileNetV2,EfficientNetB0 | --models common] [--minutes 3] [--json FILE] [--add FILE]

Current Keras writes each model; leat and ONNX Runtime (from the .onnx file that leat writes) read the files, and PyTorch gets
the same layers as modules (bench/peers/keras_in_torch.py): channels_last, with BatchNormalization folded into the
convolutions for predictions, and, with --compile, by torch.compile.  An error says where PyTorch's module has another shape of
the output, or 1 % more or fewer parameters; --compare measures nothing.  The loss is the crossentropy of a model that ends
in a softmax, and the mean squared error of another.  Common networks are small: PyTorch is also tried with channels first,
and every program with one thread for predictions of 1.  The programs take turns, and the fastest of a program's settings and
iterations counts.  --cpu measures CPU time on one thread, which other work on the machine changes little.  --minutes is the
most that one model may take (one measurement of a peer a sixth of it), --gigabytes what one program may use: measurements
that need more are left out, and the row says so."""
import argparse
import datetime
import functools
import json
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

from compare_rows import LABELS as ALL_LABELS  # noqa: E402
from programs import (AVX2_ONLY, PYTHONS, RELEASE, ROOT, SCRIPTS, Peer, about_machine, build, limiter, load, say,  # noqa: E402
                      version_of_leat)
from table import lines_of, number, ratio  # noqa: E402

MODELS = (["Xception", "VGG16", "VGG19"] + ["ResNet%d%s" % (depth, v) for v in ("", "V2") for depth in (50, 101, 152)] +
          ["InceptionV3", "InceptionResNetV2", "MobileNet", "MobileNetV2", "MobileNetV3Small", "MobileNetV3Large", "DenseNet121",
           "DenseNet169", "DenseNet201", "NASNetMobile", "NASNetLarge"] + ["EfficientNetB%d" % i for i in range(8)] +
          ["EfficientNetV2" + size for size in ("B0", "B1", "B2", "B3", "S", "M", "L")] +
          ["ConvNeXt" + size for size in ("Tiny", "Small", "Base", "Large", "XLarge")])
# The networks of peers/common_models.py, with the samples of a batch.
COMMON = {"unet": 8, "vnet": 4, "resnet20": 128, "resnext": 8, "autoencoder": 64, "dcgan": 64, "discriminator": 32, "conv3d": 4,
          "tcn": 64, "wave": 64, "sepconv": 64, "tabular": 256, "mlp": 128, "cifar": 64, "lenet": 64, "alexnet": 16, "atari": 32,
          "srcnn": 16, "upsampling": 16, "dilated": 16, "groupnorm": 64, "lstm": 64, "lstm_512": 64, "gru": 64, "tagger": 64}
GROUPS = {"applications": MODELS, "common": list(COMMON)}
WORKS = ("step", "predict", "predict 1")
LABELS = {name: ALL_LABELS[name] for name in ("torch", "keras3", "onnx")}
FOLDER = os.path.join(ROOT, "build", "applications-bench")


class OutOfTime(Exception):
    pass


class Clock:
    """The time that one model may take."""

    def __init__(self, minutes):
        self.whole = 60 * minutes  # seconds
        self.end = time.monotonic() + self.whole

    def left(self):
        left = self.end - time.monotonic()
        if left <= 0:
            raise OutOfTime()
        return left


def run(words, clock, most_bytes=None):
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=clock.left(),
                              preexec_fn=limiter(most_bytes))
    except subprocess.TimeoutExpired:
        raise OutOfTime() from None
    if done.returncode != 0:
        say("%s\n%s" % (" ".join(words), done.stderr[-2000:]))
    return done.stdout if done.returncode == 0 else ""


def write_model(name, options, clock, weights):
    """Lets Keras write the layers as NAME.json and, for ONNX Runtime, the weights too; returns whether it could."""
    path = os.path.join(FOLDER, name)
    words = [options.keras3, os.path.join(HERE, "peers", "keras_models.py"), name, path + ".json"] + (
        [path + ".keras"] if weights else [])
    if not os.path.exists(path + ".json") or weights:
        run(words, clock)
    if weights and os.path.exists(path + ".keras"):
        run([os.path.join(RELEASE, "leat"), "convert", path + ".keras", path + ".onnx"], clock)
        os.remove(path + ".keras")
    return os.path.exists(path + ".json")


@functools.lru_cache(maxsize=1)
def loss_of(path):
    """Returns the loss of a model of one output, whose layer is the last in the file."""
    with open(path) as file:
        last = json.load(file)["config"]["layers"][-1]["config"]
    last = last["layer"]["config"] if "layer" in last else last
    return "categorical_crossentropy" if last.get("activation") == "softmax" else "mse"


def compare(name, path, programs, options, clock):
    """Says where PyTorch's module differs from leat's model in the shape of its output or the number of parameters."""
    summary = run([os.path.join(RELEASE, "leat"), "summary", "--json", path], clock)
    other = programs.answer("torch", {}, path, "compare", 1) if "torch" in options.peers else {}
    if not summary or "shape" not in other:
        return
    summary = json.loads(summary)
    shape, count = summary["layers"][-1]["calls"][-1]["output_shapes"][0][1:], summary["trainable_params"]
    if other["shape"][1:] != shape or abs(other["parameters"] - count) > 0.01 * count:
        say("error: %s has an output %s and %d parameters, PyTorch's module %s and %d" % (
            name, shape, count, other["shape"][1:], other["parameters"]))
    elif options.compare:
        say("%s: output %s, %d parameters; PyTorch's module has %d" % (name, shape, count, other["parameters"]))


def leat(path, mode, batch, threads, options, clock):
    more = ["--cpu"] if options.cpu else []
    if mode == "train":
        text = run([os.path.join(RELEASE, "bench_step"), path, mode, str(batch), str(threads), str(options.seconds), "--loss",
                    loss_of(path)] + more, clock, options.most_bytes)
        key, scale = "min_us" if options.cpu else "median_us", 1.0
    else:
        text = run([os.path.join(RELEASE, "bench_predict"), path, str(batch), "--threads", str(threads), "--seconds",
                    str(2 * options.seconds)] + more, clock, options.most_bytes)
        key, scale = "min_ns" if options.cpu else "median_ns", 1e-3
    found = json.loads(text) if text else {}
    return {"us": found[key] * scale, "mib": found["peak_mib"]} if found else {}


def threads_of(model, batch, options):
    """Returns the numbers of threads to try."""
    return [1, options.threads] if model in COMMON and batch == 1 and options.threads > 1 else [options.threads]


def settings_of(name, model, mode, batch, options):
    """Returns the settings in which a peer is measured."""
    if name == "keras3":
        return [{"environment": {"TF_ENABLE_ONEDNN_OPTS": value, "PEER_THREADS": str(threads)}}
                for value in ("1", "0") for threads in threads_of(model, batch, options)]
    if name == "onnx":
        forms = [{}] if mode == "predict" else []
    else:
        forms = [{"channels_last": last, "fold": mode == "predict"} for last in ((True, False) if model in COMMON else (True,))]
        forms += [{"channels_last": True, "compile": True}] if options.compile else []
    return [{"wishes": dict(form, threads=threads)} for form in forms for threads in threads_of(model, batch, options)]


class Programs:
    """The processes of the peers for one model."""

    def __init__(self, options, clock):
        self.options, self.clock, self.processes, self.versions = options, clock, {}, {}

    def answer(self, name, setting, path, mode, batch, **more):
        environment = setting.get("environment", {})
        key = (name, json.dumps(environment))
        if key not in self.processes:
            self.processes[key] = Peer(name, getattr(self.options, name), SCRIPTS[name], environment=environment,
                                       most_bytes=self.options.most_bytes)
        return self.processes[key].ask(patience_s=min(self.clock.left(), self.clock.whole / 6), model=path, mode=mode, batch=batch,
                                       cpu=self.options.cpu, seconds=self.options.seconds, **setting.get("wishes", {}), **more)

    def ask(self, name, setting, path, mode, batch):
        more = {"loss": "mse"} if path.endswith(".json") and loss_of(path) == "mse" else {}
        found = self.answer(name, setting, path, mode, batch, **more)
        self.versions.update({name: found["version"]} if "version" in found else {})
        return found.get("us")

    def close(self):
        for process in self.processes.values():
            process.close()


def measure_work(row, path, mode, batch, programs, options, clock):
    """Adds the least time of each program to the row, in ms."""
    for _ in range(options.rounds):
        for threads in threads_of(row["model"], batch, options):
            found = leat(path + ".json", mode, batch, threads, options, clock)
            if found and found["us"] / 1e3 < row.get("leat", float("inf")):
                row.update(leat=found["us"] / 1e3, mib=found["mib"])
        for name in options.peers:
            for setting in settings_of(name, row["model"], mode, batch, options):
                file = path + (".onnx" if name == "onnx" else ".json")
                taken = programs.ask(name, setting, file, mode, batch) if os.path.exists(file) else None
                if taken and taken / 1e3 < row["peers"].get(name, float("inf")):
                    row["peers"][name] = taken / 1e3
                    row["settings"][name] = setting


def measure_model(name, options, report):
    clock, path = Clock(options.minutes), os.path.join(FOLDER, name)
    programs, rows = Programs(options, clock), []
    try:
        if not write_model(name, options, clock, "onnx" in options.peers and any(w != "step" for w in options.works)):
            return
        compare(name, path + ".json", programs, options, clock)
        for work in options.works:
            mode = "train" if work == "step" else "predict"
            batch = 1 if work == "predict 1" else options.batch or COMMON.get(name, 8)
            rows.append({"model": name, "work": "%s %d" % (work.split()[0], batch), "peers": {}, "settings": {},
                         "complete": False, "version": report["versions"]["leat"]})
            measure_work(rows[-1], path, mode, batch, programs, options, clock)
            rows[-1]["complete"] = "leat" in rows[-1] and all(p in rows[-1]["peers"] for p in options.peers
                                                              if settings_of(p, name, mode, batch, options))
            say("  ".join(cells_of(rows[-1])))
    except OutOfTime:
        say("%s: not complete after %g minutes" % (name, options.minutes))
    finally:
        programs.close()
        report["versions"].update(programs.versions)
        if os.path.exists(path + ".onnx"):
            os.remove(path + ".onnx")
    names = [(row["model"], row["work"]) for row in rows]
    report["rows"] = [old for old in report["rows"] if (old["model"], old["work"]) not in names] + rows


def ratio_of(row):
    return min(row["peers"].values()) / row["leat"] if row["peers"] and row.get("leat") else None


def cells_of(row):
    best = min(row["peers"], key=row["peers"].get, default=None)
    return [row["model"], row["work"], number(row.get("leat"))] + [number(row["peers"].get(name)) for name in LABELS] + [
        LABELS[best] if best else "", ratio(ratio_of(row)) if ratio_of(row) else "", number(row.get("mib")),
        row.get("version", "") + ("" if row["complete"] else ", not complete")]


def work_of(row):
    return row["work"] if row["work"] in WORKS else row["work"].split()[0]


HEADS = ["model", "work", "leat ms"] + list(LABELS.values()) + ["best peer", "ratio", "leat MiB", "leat"]


def text_of(report, markdown):
    order = {name: i for i, name in enumerate(MODELS + list(COMMON))}
    rows = sorted(report["rows"], key=lambda row: (order[row["model"]], row["work"]))
    lines = lines_of(HEADS, [cells_of(row) for row in rows], markdown, left=(0, 1, 6))
    for work in WORKS:
        found = sorted(ratio_of(row) for row in rows if work_of(row) == work and ratio_of(row))
        if found:
            lines += ["", "%s: %d models, median %s, least %s, %d below 1.15x" % (
                work, len(found), ratio(found[len(found) // 2]), ratio(found[0]), sum(value < 1.15 for value in found))]
    machine = report["machine"]
    return "\n".join(lines + ["", "%s, %d cores, %s; %s; load average %s, %s" % (
        machine.get("cpu", ""), machine["cores"], machine.get("isa", ""), report["how"], report["load_average"][0], report["when"]),
        ", ".join("%s %s" % (LABELS.get(name, name), version) for name, version in sorted(report["versions"].items()))])


def free_bytes():
    with open("/proc/meminfo") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for peer, label in LABELS.items():
        parser.add_argument("--" + peer, metavar="PYTHON", default=os.path.join(ROOT, PYTHONS[peer], "bin", "python"),
                            help="a Python that has %s (default: %s)" % (label, PYTHONS[peer]))
    parser.add_argument("--models", metavar="NAME,...", default="applications", help="models and groups of them: applications "
                        "(all %d) or common (%d other networks) (default: applications)" % (len(MODELS), len(COMMON)))
    parser.add_argument("--works", metavar="NAME,...", default=",".join(WORKS),
                        help="step, predict (of as many samples), predict 1 (default: all of them)")
    parser.add_argument("--batch", metavar="N", type=int, default=0, help="samples of a step and of a prediction (default: 8, or "
                        "what is usual for a common network)")
    parser.add_argument("--peers", metavar="NAME,...", default=",".join(LABELS), help="torch, keras3, onnx (default: all)")
    parser.add_argument("--minutes", type=float, default=6, help="the most that a model may take (default: 6)")
    parser.add_argument("--rounds", type=int, default=1, help="iterations over the programs; the fastest counts (default: 1)")
    parser.add_argument("--seconds", type=float, default=1.0, help="duration of each measurement (default: 1)")
    parser.add_argument("--threads", type=int, default=0, help="threads of every program (default: all cores; 1 with --cpu)")
    parser.add_argument("--cpu", action="store_true", help="CPU time on one thread instead of the time on the clock")
    parser.add_argument("--avx2", action="store_true", help="restrict all programs except ONNX Runtime to AVX2")
    parser.add_argument("--compare", action="store_true", help="only compare the models with PyTorch's modules")
    parser.add_argument("--compile", action="store_true", help="PyTorch also by torch.compile, which takes minutes for a model")
    parser.add_argument("--gigabytes", type=float, default=0, help="the most memory of a program; a measurement that needs more "
                        "is left out (default: nine tenths of what is free now)")
    parser.add_argument("--json", metavar="FILE", help="write all measurements to FILE, after each model")
    parser.add_argument("--add", metavar="FILE", help="take rows that are not measured now from an earlier --json")
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    parser.add_argument("--no-build", action="store_true", help="do not build; build/release is up to date")
    options = parser.parse_args()
    options.threads = options.threads or (1 if options.cpu else len(os.sched_getaffinity(0)))
    options.most_bytes = int(options.gigabytes * 1e9) or free_bytes() * 9 // 10
    options.models = [model for name in options.models.split(",") if name for model in GROUPS.get(name, [name])]
    options.works = [work for work in WORKS if work in options.works.split(",")]
    every = MODELS + list(COMMON)
    unknown = [name for name in options.models if name not in every]
    if unknown or not options.works:
        parser.error("unknown model %s; the models are %s" % (unknown[0], ", ".join(every)) if unknown else
                     "--works expects names of " + ", ".join(WORKS))
    options.works = [] if options.compare else options.works
    return options


def choose_peers(options):
    wanted = options.peers.split(",")
    if not os.path.exists(options.keras3):
        sys.exit("applications.py: current Keras writes the models, but there is no %s: bench/peers/setup keras3 makes it, or "
                 "--keras3 names another" % options.keras3)
    options.peers = [name for name in LABELS if name in wanted and os.path.exists(getattr(options, name))]
    for name in wanted:
        if name and name not in options.peers:
            say("%s is left out: there is no Python for it (bench/peers/setup makes one)" % LABELS.get(name, name))


def main():
    options = arguments()
    choose_peers(options)
    os.makedirs(FOLDER, exist_ok=True)
    if not options.no_build:
        build("leat", "bench_step", "bench_predict")
    os.environ.update({"OMP_NUM_THREADS": str(options.threads)} if options.cpu else {})
    os.environ.update(AVX2_ONLY if options.avx2 else {})
    report = {"rows": [], "versions": {}}
    if options.add and os.path.exists(options.add):
        with open(options.add) as file:
            report = json.load(file)
    report.update(when=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), machine=about_machine(),
                  load_average=load(), how="%s, %d thread%s" % ("CPU time" if options.cpu else "time on the clock",
                                                                options.threads, "s" if options.threads > 1 else ""))
    report["versions"]["leat"] = version_of_leat()
    if options.avx2:
        report["machine"]["isa"] = "held to avx2"
    for i, name in enumerate(options.models):
        say("%d of %d: %s, at most %g minutes, %.0f GB of disk left" % (i + 1, len(options.models), name, options.minutes,
                                                                       shutil.disk_usage(FOLDER).free / 1e9))
        measure_model(name, options, report)
        if options.json:
            with open(options.json, "w") as file:
                json.dump(report, file, indent=1)
    if not options.compare:
        print(text_of(report, options.markdown))


if __name__ == "__main__":
    main()
