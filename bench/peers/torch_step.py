# SPDX-License-Identifier: Apache-2.0
"""PyTorch's time for the steps that bench/step.c measures: torch_step.py MODEL train|predict|first BATCH THREADS SECONDS.

Each model in PyTorch's own best form: fused Adam, channels_last for the convolutions, inference_mode to predict.
"""
import json
import resource
import sys
import time

import torch
from torch import nn


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 64, batch_first=True)
        self.out = nn.Linear(64, 4)

    def forward(self, x):
        return self.out(self.lstm(x)[0][:, -1])


def make(name, batch):
    if name == "mlp":
        model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 4))
        return model, torch.rand(batch, 64), torch.rand(batch, 4), nn.MSELoss()
    if name == "lstm":
        return Lstm(), torch.rand(batch, 64, 8), torch.rand(batch, 4), nn.MSELoss()
    model = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                          nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10)).to(memory_format=torch.channels_last)
    x = torch.rand(batch, 1, 28, 28).contiguous(memory_format=torch.channels_last)
    return model, x, torch.randint(0, 10, (batch,)), nn.CrossEntropyLoss()


def main():
    name, mode, batch, threads, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    model, x, y, loss = make(name, batch)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)

    def train():
        optimizer.zero_grad(set_to_none=True)
        loss(model(x), y).backward()
        optimizer.step()

    def predict():
        with torch.inference_mode():
            model(x)

    if mode == "first":
        return train()
    once = train if mode == "train" else predict
    if mode == "predict":
        model.eval()
    for _ in range(3):
        once()
    samples, end = [], time.perf_counter() + seconds
    while len(samples) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        once()
        samples.append((time.perf_counter() - start) * 1e6)
    samples.sort()
    print(json.dumps({"model": name, "mode": mode, "batch": batch, "threads": threads,
                      "median_us": samples[len(samples) // 2], "min_us": samples[0], "rounds": len(samples),
                      "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
                      "version": torch.__version__}))


main()
