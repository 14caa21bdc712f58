#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures leat beside PyTorch, current Keras and ONNX Runtime on the models of keras.applications: an SGD step of 8
samples and predictions of 8 and of 1, in float32, at each model's own size.

    bench/peers/setup all                                      once
    bench/applications.py [--models MobileNetV2,EfficientNetB0] [--minutes 3] [--json FILE] [--add FILE]

Current Keras writes each model; leat and ONNX Runtime (from the .onnx file that leat writes) read the files, and PyTorch gets
the same layers as modules (bench/peers/keras_in_torch.py): channels_last, with BatchNormalization folded into the
convolutions for predictions, and, with --compile, by torch.compile.  The programs take turns, and the fastest of a program's
settings and iterations counts.  --cpu measures CPU time on one thread, which other work on the machine changes little.
--minutes is the most that one model may take (one measurement of a peer a sixth of it), --gigabytes what one program may use: measurements that need more are left
out, and the row says so."""
import argparse
import datetime
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
from programs import PYTHONS, RELEASE, ROOT, SCRIPTS, Peer, about_machine, build, limiter, load, say, version_of_leat  # noqa: E402
from table import lines_of, number, ratio  # noqa: E402

MODELS = (["Xception", "VGG16", "VGG19"] + ["ResNet%d%s" % (depth, v) for v in ("", "V2") for depth in (50, 101, 152)] +
          ["InceptionV3", "InceptionResNetV2", "MobileNet", "MobileNetV2", "MobileNetV3Small", "MobileNetV3Large", "DenseNet121",
           "DenseNet169", "DenseNet201", "NASNetMobile", "NASNetLarge"] + ["EfficientNetB%d" % i for i in range(8)] +
          ["EfficientNetV2" + size for size in ("B0", "B1", "B2", "B3", "S", "M", "L")] +
          ["ConvNeXt" + size for size in ("Tiny", "Small", "Base", "Large", "XLarge")])
WORKS = (("step 8", "train", 8), ("predict 8", "predict", 8), ("predict 1", "predict", 1))
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


def leat(path, mode, batch, options, clock):
    more = ["--cpu"] if options.cpu else []
    if mode == "train":
        text = run([os.path.join(RELEASE, "bench_step"), path, mode, str(batch), str(options.threads), str(options.seconds)] +
                   more, clock, options.most_bytes)
        key, scale = "min_us" if options.cpu else "median_us", 1.0
    else:
        text = run([os.path.join(RELEASE, "bench_predict"), path, str(batch), "--threads", str(options.threads), "--seconds",
                    str(2 * options.seconds)] + more, clock, options.most_bytes)
        key, scale = "min_ns" if options.cpu else "median_ns", 1e-3
    found = json.loads(text) if text else {}
    return {"us": found[key] * scale, "mib": found["peak_mib"]} if found else {}


def settings_of(name, mode, options):
    """Returns the settings in which a peer is measured."""
    if name == "keras3":
        return [{"environment": {"TF_ENABLE_ONEDNN_OPTS": value}} for value in ("1", "0")]
    if name == "onnx":
        return [{"wishes": {}}] if mode == "predict" else []
    found = [{"wishes": {"channels_last": True, "fold": mode == "predict"}}]
    if options.compile:
        found.append({"wishes": {"channels_last": True, "compile": True}})
    return found


class Programs:
    """The processes of the peers for one model."""

    def __init__(self, options, clock):
        self.options, self.clock, self.processes, self.versions = options, clock, {}, {}

    def ask(self, name, setting, path, mode, batch):
        environment = dict(setting.get("environment", {}))
        if name == "keras3":
            environment["PEER_THREADS"] = str(self.options.threads)
        key = (name, json.dumps(environment))
        if key not in self.processes:
            self.processes[key] = Peer(name, getattr(self.options, name), SCRIPTS[name], environment=environment,
                                       most_bytes=self.options.most_bytes)
        answer = self.processes[key].ask(patience_s=min(self.clock.left(), self.clock.whole / 6), model=path, mode=mode, batch=batch,
                                         threads=self.options.threads, cpu=self.options.cpu, seconds=self.options.seconds,
                                         **setting.get("wishes", {}))
        self.versions.update({name: answer["version"]} if "version" in answer else {})
        return answer.get("us")

    def close(self):
        for process in self.processes.values():
            process.close()


def measure_work(row, path, mode, batch, programs, options, clock):
    """Adds the least time of each program to the row, in ms."""
    for _ in range(options.rounds):
        found = leat(path + ".json", mode, batch, options, clock)
        if found:
            row["leat"] = min(row.get("leat", float("inf")), found["us"] / 1e3)
            row["mib"] = found["mib"]
        for name in options.peers:
            for setting in settings_of(name, mode, options):
                file = path + (".onnx" if name == "onnx" else ".json")
                taken = programs.ask(name, setting, file, mode, batch) if os.path.exists(file) else None
                if taken and taken / 1e3 < row["peers"].get(name, float("inf")):
                    row["peers"][name] = taken / 1e3
                    row["settings"][name] = setting


def measure_model(name, options, report):
    clock, path = Clock(options.minutes), os.path.join(FOLDER, name)
    programs, rows = Programs(options, clock), []
    try:
        if not write_model(name, options, clock, "onnx" in options.peers and any(w[1] == "predict" for w in options.works)):
            return
        for title, mode, batch in options.works:
            rows.append({"model": name, "work": title, "peers": {}, "settings": {}, "complete": False})
            measure_work(rows[-1], path, mode, batch, programs, options, clock)
            rows[-1]["complete"] = "leat" in rows[-1] and all(p in rows[-1]["peers"] for p in options.peers
                                                              if settings_of(p, mode, options))
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
        "" if row["complete"] else "not complete"]


HEADS = ["model", "work", "leat ms"] + list(LABELS.values()) + ["best peer", "ratio", "leat MiB", ""]


def text_of(report, markdown):
    order = {name: i for i, name in enumerate(MODELS)}
    rows = sorted(report["rows"], key=lambda row: (order[row["model"]], row["work"]))
    lines = lines_of(HEADS, [cells_of(row) for row in rows], markdown, left=(0, 1, 6))
    for title, _, _ in WORKS:
        found = sorted(ratio_of(row) for row in rows if row["work"] == title and ratio_of(row))
        if found:
            lines += ["", "%s: %d models, median %s, least %s, %d below 1.15x" % (
                title, len(found), ratio(found[len(found) // 2]), ratio(found[0]), sum(value < 1.15 for value in found))]
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
    parser.add_argument("--models", metavar="NAME,...", default=",".join(MODELS), help="the models (default: all %d)" % len(MODELS))
    parser.add_argument("--works", metavar="NAME,...", default=",".join(work[0] for work in WORKS), help="default: all of them")
    parser.add_argument("--peers", metavar="NAME,...", default=",".join(LABELS), help="torch, keras3, onnx (default: all)")
    parser.add_argument("--minutes", type=float, default=6, help="the most that a model may take (default: 6)")
    parser.add_argument("--rounds", type=int, default=1, help="iterations over the programs; the fastest counts (default: 1)")
    parser.add_argument("--seconds", type=float, default=1.0, help="duration of each measurement (default: 1)")
    parser.add_argument("--threads", type=int, default=0, help="threads of every program (default: all cores; 1 with --cpu)")
    parser.add_argument("--cpu", action="store_true", help="CPU time on one thread instead of the time on the clock")
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
    options.models = [name for name in options.models.split(",") if name]
    options.works = [work for work in WORKS if work[0] in options.works.split(",")]
    unknown = [name for name in options.models if name not in MODELS]
    if unknown or not options.works:
        parser.error("unknown model %s; the models are %s" % (unknown[0], ", ".join(MODELS)) if unknown else
                     "--works expects names of " + ", ".join(work[0] for work in WORKS))
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
    report = {"rows": [], "versions": {}}
    if options.add and os.path.exists(options.add):
        with open(options.add) as file:
            report = json.load(file)
    report.update(when=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), machine=about_machine(),
                  load_average=load(), how="%s, %d thread%s" % ("CPU time" if options.cpu else "time on the clock",
                                                                options.threads, "s" if options.threads > 1 else ""))
    report["versions"]["leat"] = version_of_leat()
    for i, name in enumerate(options.models):
        say("%d of %d: %s, at most %g minutes, %.0f GB of disk left" % (i + 1, len(options.models), name, options.minutes,
                                                                       shutil.disk_usage(FOLDER).free / 1e9))
        measure_model(name, options, report)
        if options.json:
            with open(options.json, "w") as file:
                json.dump(report, file, indent=1)
    print(text_of(report, options.markdown))


if __name__ == "__main__":
    main()
