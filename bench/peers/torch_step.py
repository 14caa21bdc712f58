# SPDX-License-Identifier: Apache-2.0
"""Measures PyTorch for bench/compare, each model in PyTorch's fastest form: fused Adam, inference_mode, and, as the
request says, threads, channels_last, torch.compile, DataLoader workers."""
import time

import torch
import torch._inductor.config
from torch import nn
from torch.nn import functional

import serving
import keras_in_torch
from torch_models import SMALL, TRANSFORMERS, resnet50, transformer


def cnn():
    return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10))


class CrossEntropy(nn.Module):
    """That of scores whose last dimension are the classes."""

    def forward(self, scores, labels):
        return functional.cross_entropy(scores.flatten(0, -2), labels.flatten())


def output_shape(model, x):
    with torch.no_grad():
        return model.eval()(x).shape


def made_of_layers(wishes):
    """A model of current Keras, with inputs, targets and the loss."""
    model, shape = keras_in_torch.build(wishes["model"], bool(wishes.get("fold")))
    x = torch.rand(wishes["batch"], *shape)
    layout = {4: torch.channels_last, 5: torch.channels_last_3d}.get(x.dim()) if wishes.get("channels_last") else None
    if layout:
        model, x = model.to(memory_format=layout), x.contiguous(memory_format=layout)
    out = output_shape(model, x)
    model.train()
    if wishes.get("loss") == "mse":
        return model, x, torch.rand(out), nn.MSELoss()
    return model, x, torch.randint(0, out[-1], out[:-1]), CrossEntropy()


def make(wishes):
    name, batch = wishes["model"], wishes["batch"]
    if name in SMALL:
        build, shape = SMALL[name]
        x = torch.randint(0, 100000, (batch,) + shape) if name == "embedding" else torch.rand(batch, *shape)
        return build(), x, torch.rand(batch, 4), nn.MSELoss()
    if name in TRANSFORMERS:
        return transformer(name, batch) + (nn.CrossEntropyLoss(),)
    if name.endswith(".json"):
        return made_of_layers(wishes)
    classes, shape = (10, (batch, 1, 28, 28)) if name == "cnn" else (1000, (batch, 3, 224, 224))
    model = cnn() if name == "cnn" else resnet50()
    x = torch.rand(shape)
    if wishes.get("channels_last"):
        model, x = model.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    return model, x, torch.randint(0, classes, (batch,)), nn.CrossEntropyLoss()


def optimizer_of(model, wishes):
    if wishes["model"] == "resnet50" or wishes["model"].endswith(".json"):
        return torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, fused=True)
    return torch.optim.Adam(model.parameters(), fused=True)


def trainer(model, loss, wishes):
    """Returns a function that makes one training step."""
    optimizer = optimizer_of(model, wishes)

    def loss_of(x, y):
        with torch.autocast("cpu", torch.bfloat16, enabled=wishes.get("policy") == "mixed_bfloat16"):
            return loss(model(x), y)

    forward = torch.compile(loss_of) if wishes.get("compile") else loss_of

    def train(x, y):
        optimizer.zero_grad(set_to_none=True)
        found = forward(x, y)
        found.backward()
        optimizer.step()
        return found
    return train


def stream(seconds):
    """An LSTM that computes one time step and keeps its state."""
    lstm, x = nn.LSTM(8, 64, batch_first=True), torch.rand(1, 1, 8)
    state = (torch.zeros(1, 1, 64), torch.zeros(1, 1, 64))

    def once():
        nonlocal state
        with torch.inference_mode():
            state = lstm(x, state)[1]
    return serving.median_us(once, seconds)


def epoch(wishes):
    """Returns the us per step of the second of two passes over so many batches of the CNN's data."""
    images, labels = serving.fashion(wishes["data"])
    model, _, _, loss = make(wishes)
    train, batch = trainer(model, loss, wishes), wishes["batch"]

    class Batches(torch.utils.data.Dataset):
        def __len__(self):
            return wishes["steps"]

        def __getitem__(self, i):
            return (images[i * batch:(i + 1) * batch, None].astype("float32") / 255, labels[i * batch:(i + 1) * batch])

    loader = torch.utils.data.DataLoader(Batches(), batch_size=None, num_workers=wishes["workers"],
                                         persistent_workers=wishes["workers"] > 0)
    for _ in range(2):
        start = time.perf_counter()
        for x, y in loader:
            train(torch.as_tensor(x), torch.as_tensor(y)).item()
    return (time.perf_counter() - start) / wishes["steps"] * 1e6


def measure(wishes):
    torch.set_num_threads(wishes["threads"])
    torch.manual_seed(1)
    mode, seconds, cpu = wishes["mode"], wishes.get("seconds", 1), bool(wishes.get("cpu"))
    if mode == "epoch":
        return epoch(wishes)
    if mode == "stream":
        return stream(seconds)
    if mode == "matrix":  # the GFLOP/s that PyTorch reaches on this machine
        a, b = torch.rand(2048, 2048), torch.rand(2048, 2048)
        return serving.median_us(lambda: a @ b, seconds)
    model, x, y, loss = make(wishes)
    if mode in ("train", "first"):
        train = trainer(model, loss, wishes)
        return train(x, y).item() if mode == "first" else serving.median_us(lambda: train(x, y), seconds, cpu=cpu)
    model.eval()
    torch._inductor.config.freezing = bool(wishes.get("compile"))  # weights as constants, BatchNormalization folded
    forward = torch.compile(model) if wishes.get("compile") else model

    def predict():
        with torch.inference_mode():
            forward(x)
    return serving.median_us(predict, seconds, cpu=cpu)


def answer(wishes):
    if wishes["mode"] == "compare":  # with leat's and Keras's model
        return keras_in_torch.description(wishes["model"])
    return {"us": measure(wishes), "version": torch.__version__}


if __name__ == "__main__":
    serving.serve(answer)
