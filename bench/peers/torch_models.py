# SPDX-License-Identifier: Apache-2.0
"""The models of PyTorch that torch_step.py and bench/gpu/torch_peer.py both measure."""
import torch
from torch import nn


class Recurrent(nn.Module):
    """A recurrent layer of 64 units and a linear layer on its last output, of both directions where there are two."""

    def __init__(self, make, features, outputs, **more):
        super().__init__()
        self.cells = make(features, 64, batch_first=True, **more)
        self.out = nn.Linear(128 if more.get("bidirectional") else 64, outputs)

    def forward(self, x):
        found = self.cells(x)[0]
        if self.cells.bidirectional:
            return self.out(torch.cat([found[:, -1, :64], found[:, 0, 64:]], 1))
        return self.out(found[:, -1])


def Lstm(features, outputs):
    return Recurrent(nn.LSTM, features, outputs)


class ConvLstm(nn.Module):
    """Keras's ConvLSTM2D, which PyTorch does not have: the inputs of all steps are convolved at once, gates by hard_sigmoid."""

    def __init__(self, channels, filters, outputs):
        super().__init__()
        self.filters = filters
        self.inputs = nn.Conv2d(channels, 4 * filters, 3, padding=1)
        self.state = nn.Conv2d(filters, 4 * filters, 3, padding=1, bias=False)
        self.out = nn.Linear(filters, outputs)

    def forward(self, x):
        batch, steps = x.shape[:2]
        z = self.inputs(x.flatten(0, 1)).unflatten(0, (batch, steps))
        h = c = None
        for t in range(steps):
            gates = z[:, t] if h is None else z[:, t] + self.state(h)
            i, f, g, o = gates.chunk(4, 1)
            i, f, o = torch.sigmoid(i), torch.sigmoid(f), torch.sigmoid(o)
            c = i * torch.tanh(g) if c is None else f * c + i * torch.tanh(g)
            h = o * torch.tanh(c)
        return self.out(h.mean((2, 3)))


class Conv1d(nn.Module):
    def __init__(self, features, filters, outputs):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(features, filters, 5), nn.ReLU(inplace=True), nn.Conv1d(filters, filters, 5),
                                  nn.ReLU(inplace=True))
        self.out = nn.Linear(filters, outputs)

    def forward(self, x):
        return self.out(self.body(x).amax(2))


class Embedding(nn.Module):
    def __init__(self, words, features, outputs):
        super().__init__()
        self.words, self.out = nn.Embedding(words, features), nn.Linear(features, outputs)

    def forward(self, x):
        return self.out(self.words(x).mean(1))


class Bottleneck(nn.Module):
    def __init__(self, inputs, filters, stride, project):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, filters, 1, stride), nn.BatchNorm2d(filters), nn.ReLU(inplace=True),
            nn.Conv2d(filters, filters, 3, padding=1), nn.BatchNorm2d(filters), nn.ReLU(inplace=True),
            nn.Conv2d(filters, 4 * filters, 1), nn.BatchNorm2d(4 * filters))
        self.short = nn.Sequential(nn.Conv2d(inputs, 4 * filters, 1, stride), nn.BatchNorm2d(4 * filters)) if project else None

    def forward(self, x):
        return torch.relu(self.body(x) + (self.short(x) if self.short else x))


def resnet50():
    """keras.applications' ResNet-50, as examples/resnet.c: biases, and the stride is in the first convolution of a block."""
    layers = [nn.Conv2d(3, 64, 7, 2, 3), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for filters, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(blocks):
            layers.append(Bottleneck(inputs, filters, stride if i == 0 else 1, i == 0))
            inputs = 4 * filters
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


# The models of bench/models.c with the outputs of mean squared error: how to make each, and the shape of a sample.
SMALL = {
    "mlp": (lambda: nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 4)), (64,)),
    "lstm": (lambda: Lstm(8, 4), (64, 8)),
    "gru": (lambda: Recurrent(nn.GRU, 8, 4), (64, 8)),
    "rnn": (lambda: Recurrent(nn.RNN, 8, 4), (64, 8)),
    "bilstm": (lambda: Recurrent(nn.LSTM, 8, 4, bidirectional=True), (64, 8)),
    "convlstm": (lambda: ConvLstm(4, 16, 4), (8, 4, 32, 32)),
    "conv1d": (lambda: Conv1d(16, 64, 4), (16, 128)),
    "embedding": (lambda: Embedding(100000, 64, 4), (64,))}
