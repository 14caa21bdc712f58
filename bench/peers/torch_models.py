# SPDX-License-Identifier: Apache-2.0
"""The models of PyTorch that torch_step.py and bench/gpu/torch_peer.py both measure."""
import torch
from torch import nn
from torch.nn import functional


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


class Block(nn.Module):
    """block() of transformers.py: scaled_dot_product_attention, whose projections of query, key and value are one product."""

    def __init__(self, width, heads, hidden, causal=False, text=False):
        super().__init__()
        self.heads, self.causal, self.text = heads, causal, text
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width, eps=1e-6) for _ in range(2))
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.ReLU() if text else nn.GELU(), nn.Linear(hidden, width))

    def attend(self, x):
        n, steps, width = x.shape
        q, k, v = self.qkv(x).view(n, steps, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(n, steps, width))

    def forward(self, x):
        if self.text:
            x = self.norms[0](x + functional.dropout(self.attend(x), 0.1, self.training))
            return self.norms[1](x + functional.dropout(self.mlp(x), 0.1, self.training))
        x = x + self.attend(self.norms[0](x))
        return x + self.mlp(self.norms[1](x))


class Words(nn.Module):
    def __init__(self, vocabulary, steps, width):
        super().__init__()
        self.words, self.steps = nn.Embedding(vocabulary, width), nn.Parameter(torch.rand(steps, width))

    def forward(self, x):
        return self.words(x) + self.steps


class Patches(nn.Module):
    def __init__(self):
        super().__init__()
        self.out, self.places = nn.Linear(48, 192, bias=False), nn.Parameter(torch.rand(64, 192))

    def forward(self, x):
        return self.out(x.view(-1, 8, 4, 8, 4, 3).transpose(2, 3).reshape(-1, 64, 48)) + self.places


class Mean(nn.Module):
    def forward(self, x):
        return x.mean(1)


class Places(nn.Module):
    """Classes at each place, in the form that CrossEntropyLoss takes: one row for each place."""

    def forward(self, x):
        return x.flatten(0, 1)


def vit():
    return nn.Sequential(Patches(), *(Block(192, 4, 768) for _ in range(6)), nn.LayerNorm(192, eps=1e-6), Mean(),
                         nn.Linear(192, 10))


def char():
    return nn.Sequential(Words(96, 128, 256), *(Block(256, 4, 1024, causal=True) for _ in range(4)),
                         nn.LayerNorm(256, eps=1e-6), nn.Linear(256, 96), Places())


def text():
    return nn.Sequential(Words(20000, 200, 32), Block(32, 2, 32, text=True), Mean(), nn.Dropout(0.1), nn.Linear(32, 20),
                         nn.ReLU(), nn.Dropout(0.1), nn.Linear(20, 2))


# Each transformer with the shape of its input, the words that exist (0: numbers), labels of a sample, classes.
TRANSFORMERS = {"vit": (vit, (32, 32, 3), 0, 1, 10), "char": (char, (128,), 96, 128, 96), "text": (text, (200,), 20000, 1, 2)}


def transformer(name, batch):
    """Returns a model, a batch and its labels."""
    make, shape, words, labels, classes = TRANSFORMERS[name]
    x = torch.randint(0, words, (batch,) + shape) if words else torch.rand((batch,) + shape)
    return make(), x, torch.randint(0, classes, (batch * labels,))
