# SPDX-License-Identifier: Apache-2.0
"""The models of PyTorch that torch_step.py and bench/gpu/torch_peer.py both measure."""
import torch
from torch import nn


class Lstm(nn.Module):
    def __init__(self, features, outputs):
        super().__init__()
        self.lstm = nn.LSTM(features, 64, batch_first=True)
        self.out = nn.Linear(64, outputs)

    def forward(self, x):
        return self.out(self.lstm(x)[0][:, -1])


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
