#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures PyTorch on a GPU for bench/gpu: training steps in its fastest forms, a stateful step of an LSTM, the device's
peaks, and the first step of a process.

settings of a training step, each with copies in turn and with copies of the next batch on a second stream (the faster counts):
  eager           fused Adam or SGD, cudnn.benchmark
  compile         torch.compile, mode reduce-overhead, which uses CUDA graphs
  graph           the whole step, with the optimizer, captured as one CUDA graph
  graph+compile   the same of a step that torch.compile made
  graph+autotune  the same of mode max-autotune, which takes minutes for large models
float32 is computed without TF32, which is checked."""
import os
import sys

import torch
from torch import nn

from peer import Row, arguments, emit, per_step_us

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers"))
from torch_models import Lstm, resnet50

SETTINGS = ["eager", "graph", "compile", "graph+compile", "graph+autotune"]
STREAM_SETTINGS = ["cpu", "eager", "graph", "graph+cell"]
PROGRAM, HOST_BATCHES = "PyTorch", 4


# ---- Models ----

def model_of(name):
    if name == "mlp":
        return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    if name == "lstm":
        return Lstm(32, 1)
    if name == "resnet50":
        return resnet50()
    return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25),
                         nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10))


# ---- A training step ----

class Trainer:
    """A model with its optimizer, two device buffers for batches (slots), and a way to make a step on either."""

    def __init__(self, row, setting, device):
        self.row, self.device, self.gpu = row, device, device != "cpu"
        torch.manual_seed(1)
        images = len(row.shape) == 3
        shape = (row.batch,) + ((row.shape[2],) + row.shape[:2] if images else row.shape)
        self.format = torch.channels_last if images and row.shape[2] > 1 else torch.contiguous_format
        self.model = model_of(row.model).to(device, memory_format=self.format)
        self.loss_of_output = nn.CrossEntropyLoss() if row.classes else nn.MSELoss()
        self.optimizer = self.make_optimizer()
        self.host = [self.host_batch(shape) for _ in range(HOST_BATCHES)]
        self.slots = [tuple(torch.empty_like(t, device=device) for t in self.host[0]) for _ in range(2)]
        for slot in self.slots:
            self.fill(slot, self.host[0])
        self.forward = self.loss
        mode = {"compile": "reduce-overhead", "graph+compile": "default",
                "graph+autotune": "max-autotune-no-cudagraphs"}.get(setting)
        if mode:
            self.forward = torch.compile(self.loss, mode=mode)
        self.graphs = [self.capture(slot) for slot in self.slots] if setting.startswith("graph") else None

    def make_optimizer(self):
        weights = list(self.model.parameters())
        if self.row.model == "resnet50":
            return torch.optim.SGD(weights, 0.01, momentum=0.9, fused=True)
        return torch.optim.Adam(weights, fused=True, **({"capturable": True} if self.gpu else {}))

    def host_batch(self, shape):
        x = torch.rand(shape).contiguous(memory_format=self.format)
        y = torch.randint(0, self.row.classes, shape[:1]) if self.row.classes else torch.rand(shape[0], 1)
        return (x.pin_memory(), y.pin_memory()) if self.gpu else (x, y)

    def loss(self, x, y):
        with torch.autocast("cuda" if self.gpu else "cpu", torch.bfloat16, enabled=self.row.precision == "bf16",
                            cache_enabled=False):
            return self.loss_of_output(self.model(x), y)

    def fill(self, slot, batch):
        for to, source in zip(slot, batch):
            to.copy_(source, non_blocking=True)

    def compute(self, slot):
        self.optimizer.zero_grad(set_to_none=True)
        found = self.forward(*slot)
        found.backward()
        self.optimizer.step()
        return found.detach()

    def capture(self, slot):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(4):
                self.compute(slot)
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            found = self.compute(slot)
        gradients = [p.grad for p in self.model.parameters()]  # the graph writes there
        return graph, found, gradients

    def step(self, number):
        """Makes a step on slot `number` and returns its loss, on the device."""
        if not self.graphs:
            return self.compute(self.slots[number])
        self.graphs[number][0].replay()
        return self.graphs[number][1]


def in_turn(trainer, reads):
    """A step: copy a batch, compute, read the loss."""
    def once(i):
        trainer.fill(trainer.slots[0], trainer.host[i % HOST_BATCHES])
        found = trainer.step(0)
        return found.item() if reads else None
    return once


def ahead(trainer, reads):
    """The same, but the next batch is copied on a second stream while the step computes."""
    copies, main = torch.cuda.Stream(), torch.cuda.current_stream()
    copied, used = [torch.cuda.Event() for _ in range(2)], [torch.cuda.Event() for _ in range(2)]

    def copy(slot, i):
        with torch.cuda.stream(copies):
            copies.wait_event(used[slot])
            trainer.fill(trainer.slots[slot], trainer.host[i % HOST_BATCHES])
            copied[slot].record(copies)

    def once(i):
        slot = i % 2
        main.wait_event(copied[slot])
        found = trainer.step(slot)
        used[slot].record(main)
        copy(1 - slot, i + 1)
        return found.item() if reads else None
    copy(0, 0)
    return once


def measure_row(row, settings, device, seconds):
    finish = torch.cuda.synchronize if device != "cpu" else lambda: None
    for setting in settings:
        try:
            trainer = Trainer(row, setting, device)
            figures = {}
            for reads, key in ((True, "us"), (False, "us_ahead")):
                found = {"in turn": per_step_us(in_turn(trainer, reads), finish, seconds)}
                if device != "cpu":
                    found["ahead"] = per_step_us(ahead(trainer, reads), finish, seconds)
                figures[key] = min(found.values())
                figures[key.replace("us", "copies")] = min(found, key=found.get)
            loss = trainer.step(0).item()
            emit(row.name, PROGRAM, setting, loss=loss, version=torch.__version__, **figures)
            del trainer
        except Exception as failure:  # one setting that fails does not end the others
            emit(row.name, PROGRAM, setting, error="%s: %s" % (type(failure).__name__, str(failure)[:300]))
        if device != "cpu":
            torch.cuda.empty_cache()
        torch.compiler.reset()


def warm_row(row, settings, device):
    """Compiles what measure_row will need, so that several rows can be compiled at the same time."""
    for setting in settings:
        trainer = Trainer(row, setting, device)
        for _ in range(3):
            trainer.step(0).item()
        torch.compiler.reset()


# ---- One stateful step of an LSTM ----

def stream_step(setting, device):
    """Returns a function that copies one time step to the device, computes, and reads the prediction."""
    model = Lstm(32, 1).to(device)
    if setting == "graph+cell":  # without cuDNN, which has fixed costs
        cell = nn.LSTMCell(32, 64, device=device)
        forward = torch.compile(lambda x, h, c: cell(x, (h, c)))
    else:
        def forward(x, h, c):
            output, (h, c) = model.lstm(x[None], (h[None], c[None]))
            return h[0], c[0]
    x, h, c = (torch.zeros(1, n, device=device) for n in (32, 64, 64))
    host = torch.rand(1, 32)
    host = host.pin_memory() if device != "cpu" else host

    def compute():
        new_h, new_c = forward(x, h, c)
        h.copy_(new_h)
        c.copy_(new_c)
        return model.out(new_h)

    graph = None
    if setting.startswith("graph"):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(4):
                compute()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = compute()

    def once(_):
        x.copy_(host, non_blocking=True)
        if not graph:
            return compute().item()
        graph.replay()
        return found.item()
    return once


def measure_stream(settings, device, seconds):
    for setting in settings:
        if setting == "cpu":
            torch.set_num_threads(1)
        try:
            with torch.no_grad():
                once = stream_step(setting, "cpu" if setting == "cpu" else device)
                us = per_step_us(once, lambda: None, seconds)
            emit("stream", PROGRAM, setting, us=us, version=torch.__version__)
        except Exception as failure:
            emit("stream", PROGRAM, setting, error="%s: %s" % (type(failure).__name__, str(failure)[:300]))
        torch.compiler.reset()


# ---- The device ----

def measure_peak(device, seconds):
    """Reports the most that the device reaches: products of matrices, copies within its memory and from pinned memory."""
    gpu = device != "cpu"
    n, mib = (8192, 4096) if gpu else (256, 16)
    finish = torch.cuda.synchronize if gpu else lambda: None
    figures = {}
    for name, dtype in (("f32_tflops", torch.float32), ("bf16_tflops", torch.bfloat16)):
        a, b = (torch.randn(n, n, device=device).to(dtype) for _ in range(2))
        out = torch.empty_like(a)
        figures[name] = 2 * n ** 3 / per_step_us(lambda i: torch.matmul(a, b, out=out), finish, 2 * seconds) / 1e6
    source = torch.empty(mib << 20, dtype=torch.uint8, device=device)
    to = torch.empty_like(source)
    figures["copy_gbps"] = 2 * (mib << 20) / per_step_us(lambda i: to.copy_(source), finish, seconds) / 1e3
    host = torch.empty((mib << 20) // 16, dtype=torch.uint8)
    host = host.pin_memory() if gpu else host
    part = source[:host.numel()]
    figures["to_device_gbps"] = host.numel() / per_step_us(lambda i: part.copy_(host, non_blocking=True), finish, seconds) / 1e3
    figures["to_host_gbps"] = host.numel() / per_step_us(lambda i: host.copy_(part, non_blocking=True), finish, seconds) / 1e3
    name = torch.cuda.get_device_name() if gpu else "cpu"
    emit("peak", PROGRAM, "measured", device=name, version=torch.__version__, **figures)


def check_float32(device):
    """Fails if products or convolutions of float32 are computed with TF32."""
    a, b = torch.randn(512, 512, device=device), torch.randn(512, 512, device=device)
    image, kernel = torch.randn(8, 64, 16, 16, device=device), torch.randn(64, 64, 3, 3, device=device)
    for found, exact in ((a @ b, a.double() @ b.double()),
                         (nn.functional.conv2d(image, kernel), nn.functional.conv2d(image.double(), kernel.double()))):
        error = ((found.double() - exact).norm() / exact.norm()).item()
        if error > 1e-5:
            sys.exit("float32 is not computed as float32: relative error %g" % error)


def main():
    wishes = arguments(__doc__, SETTINGS)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    if wishes.row.startswith("first:"):
        torch.backends.cudnn.benchmark = False
        trainer = Trainer(Row(wishes.row[6:]), "eager", wishes.device)
        print(trainer.step(0).item(), flush=True)
        os._exit(0)
    check_float32(wishes.device)
    if wishes.row == "peak":
        measure_peak(wishes.device, wishes.seconds)
    elif wishes.row == "stream":
        measure_stream(wishes.settings or STREAM_SETTINGS, wishes.device, wishes.seconds)
    else:
        row = Row(wishes.row)
        settings = wishes.settings or [s for s in SETTINGS if row.model != "resnet50" or s != "graph+autotune"]
        if wishes.warm:
            warm_row(row, settings, wishes.device)
        else:
            measure_row(row, settings, wishes.device, wishes.seconds)


if __name__ == "__main__":
    main()
