# SPDX-License-Identifier: Apache-2.0
"""What the comparisons have in common: the peers' processes, the description of the machine, the build of leat."""
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
RELEASE = os.path.join(ROOT, "build", "release")
PATIENCE_S = 150
# The peers of steps and predictions: the environments that bench/peers/setup makes, and the scripts in bench/peers.
PYTHONS = {"torch": "build/peers/torch", "keras": "build/keras231", "keras3": "build/keras3", "onnx": "build/peers/onnx"}
SCRIPTS = {"torch": "torch_step.py", "keras": "keras_step.py", "keras3": "keras_step.py", "onnx": "onnx_step.py"}
# These restrict to AVX2: leat, oneDNN (in leat, PyTorch and TensorFlow), PyTorch, MKL.  ONNX Runtime has no such variable;
# the wheels of TensorFlow use no more than AVX2.
AVX2_ONLY = {"LEAT_MAX_ISA": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "DNNL_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2",
             "MKL_ENABLE_INSTRUCTIONS": "AVX2"}


def say(text):
    print(text, file=sys.stderr, flush=True)


def limiter(most_bytes):
    """Returns what a new process calls so that it gets no more memory than this; None: as much as there is."""
    return (lambda: resource.setrlimit(resource.RLIMIT_DATA, (most_bytes, most_bytes))) if most_bytes else None


class Peer:
    """A Python process that measures one request after the other, so that no figure contains its imports."""

    def __init__(self, name, python, script, words=("--serve",), environment=None, most_bytes=None):
        self.name, self.best, self.most_bytes = name, {}, most_bytes
        self.command = [python, os.path.join(HERE, "peers", script)] + list(words)
        self.environment = dict(os.environ, **(environment or {}))
        self.process = None

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, bufsize=1, env=self.environment,
                                        preexec_fn=limiter(self.most_bytes))

    def ask(self, patience_s=PATIENCE_S, **wishes):
        if self.process is None:
            self.start()
        timer = threading.Timer(patience_s, self.process.kill)
        timer.start()
        try:
            self.process.stdin.write(json.dumps(wishes) + "\n")
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        timer.cancel()
        if line:
            return json.loads(line)
        say("%s gave no answer within %d s or the memory it may use to %s; it is started again" % (self.name, patience_s, json.dumps(wishes)))
        self.process.kill()
        self.process.wait()
        self.process = None
        return {}

    def close(self):
        if self.process is None:
            return
        self.process.stdin.close()
        self.process.wait()
        self.process = None


def median_of(values):
    """Returns the median of numbers; of dictionaries, the median of each key."""
    if isinstance(values[0], dict):
        return {key: median_of([v[key] for v in values]) for key in values[0]}
    return statistics.median(values) if isinstance(values[0], (int, float)) else values[-1]


def load():
    return [round(value, 2) for value in os.getloadavg()]


def about_machine():
    about = {"cores": len(os.sched_getaffinity(0)), "kernel": platform.release(), "machine": platform.machine()}
    with open("/proc/cpuinfo") as lines:
        for line in lines:
            name, _, value = (part.strip() for part in line.partition(":"))
            if name == "model name":
                about.setdefault("cpu", value)
            elif name == "flags":
                flags = value.split()
                about.setdefault("isa", " ".join(f for f in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if f in flags))
    return about


def version_of_leat():
    described = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
    return described.stdout.strip()


def build(*targets):
    for words in (["cmake", "--preset", "release", "-DLEAT_BENCH=ON"],
                  ["cmake", "--build", "--preset", "release", "--target"] + list(targets)):
        done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            sys.exit("%s\n%s" % (" ".join(words), done.stdout))
