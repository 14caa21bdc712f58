# SPDX-License-Identifier: Apache-2.0
"""A PyTorch model from the JSON architecture of a graph of layers in current Keras, for bench/applications.py.

The layers are those that a user of PyTorch would write: NCHW shapes (features last in models with recurrent layers), padding
inside the convolutions and poolings (symmetric, where Keras pads one side more; the amount of arithmetic is the same), ReLU in
place where the value has no other reader, logits instead of a softmax in training.  With `fold`, BatchNormalization becomes
part of the convolution or the product before it."""
import json
import math
import re

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval


class Softmax(nn.Module):
    """That of the classes, which are the last dimension; in training the loss contains it."""

    def forward(self, x):
        return x if self.training else x.softmax(-1)


ACTIVATIONS = {"linear": nn.Identity, "softmax": Softmax, "relu": nn.ReLU, "relu6": nn.ReLU6, "silu": nn.SiLU,
               "swish": nn.SiLU, "gelu": nn.GELU, "sigmoid": nn.Sigmoid, "hard_silu": nn.Hardswish,
               "hard_sigmoid": nn.Hardsigmoid, "tanh": nn.Tanh}
IN_PLACE = (nn.ReLU, nn.ReLU6)
CONVOLUTION = re.compile(r"(Depthwise|Separable)?Conv[123]D$")
TRANSPOSED = re.compile(r"Conv[123]DTranspose$")
POOLING = re.compile(r"(Max|Average)Pooling[123]D$")
PADDING = re.compile(CONVOLUTION.pattern + "|" + POOLING.pattern)  # layers that can pad their input themselves
RECURRENT = ("LSTM", "GRU")
CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
TRANSPOSED_CONVOLUTIONS = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)


class Function(nn.Module):
    """A layer without weights."""

    def __init__(self, compute):
        super().__init__()
        self.compute = compute

    def forward(self, *x):
        return self.compute(*x)


class Last(nn.Module):
    """Applies a module whose features are the last dimension to a tensor of shape (N, C, H, W)."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2) if x.dim() == 4 else self.module(x)


class Sequence(nn.Module):
    """A recurrent layer; its input (N, T, C) has features last."""

    def __init__(self, kind, features, config):
        super().__init__()
        self.layer, self.whole = getattr(nn, kind)(features, config["units"], batch_first=True), config["return_sequences"]

    def forward(self, x):
        found = self.layer(x)[0]
        return found if self.whole else found[:, -1]


class Scale(nn.Module):
    def __init__(self, features, value):
        super().__init__()
        self.gamma = nn.Parameter(torch.full((features, 1, 1), value))

    def forward(self, x):
        return x * self.gamma


def tensors_of(value):
    """Returns the arguments of a call: (layer's name, shape) for each tensor, and numbers as they are."""
    if isinstance(value, dict) and value.get("class_name") == "__keras_tensor__":
        return [(value["config"]["keras_history"][0], value["config"]["shape"])]
    if isinstance(value, list):
        return [found for part in value for found in tensors_of(part)]
    return [value] if isinstance(value, (int, float)) and not isinstance(value, bool) else []


def pad_of(config, shape, padded):
    """Returns the padding on each side of each axis; `padded` is what a ZeroPadding2D before the layer adds in all."""
    kernel = config.get("kernel_size") or config["pool_size"]
    strides, dilation = config["strides"] or kernel, config.get("dilation_rate", [1] * len(kernel))
    found = []
    for i in range(len(kernel)):
        reach = dilation[i] * (kernel[i] - 1) + 1
        total = padded[i] if padded else 0
        if config["padding"] == "same":
            size = shape[1 + i] + total
            total += max((math.ceil(size / strides[i]) - 1) * strides[i] + reach - size, 0)
        found.append((total + 1) // 2)
    return found


def convolution(kind, config, channels, pad):
    plain = getattr(nn, "Conv%dd" % len(config["kernel_size"]))
    common = {"stride": config["strides"], "padding": pad, "dilation": config["dilation_rate"]}
    if kind.startswith("Conv"):
        made = plain(channels, config["filters"], config["kernel_size"], groups=config["groups"], bias=config["use_bias"], **common)
        reach = config["dilation_rate"][0] * (config["kernel_size"][0] - 1)
        return nn.Sequential(nn.ConstantPad1d((reach, 0), 0.0), made) if config["padding"] == "causal" else made
    between = channels * config["depth_multiplier"]
    depthwise = plain(channels, between, config["kernel_size"], groups=channels,
                      bias=config["use_bias"] and kind.startswith("Depthwise"), **common)
    if kind.startswith("Depthwise"):
        return depthwise
    return nn.Sequential(depthwise, plain(between, config["filters"], 1, bias=config["use_bias"]))


def transposed(config, channels):
    """A transposed convolution, whose output Keras makes `strides` times as long ("same") or at least so long ("valid")."""
    beyond = [rate * (size - 1) + 1 - step for rate, size, step in
              zip(config["dilation_rate"], config["kernel_size"], config["strides"])]
    pad = [max(-(-more // 2), 0) if config["padding"] == "same" else 0 for more in beyond]
    extra = [2 * p - more if config["padding"] == "same" else max(-more, 0) for p, more in zip(pad, beyond)]
    return getattr(nn, "ConvTranspose%dd" % len(pad))(channels, config["filters"], config["kernel_size"], config["strides"], pad,
                                                      extra, bias=config["use_bias"], dilation=config["dilation_rate"])


def pooling(kind, config, pad):
    made = getattr(nn, "%sPool%dd" % ("Max" if kind.startswith("Max") else "Avg", len(pad)))
    more = {} if kind.startswith("Max") else {"count_include_pad": False}
    return made(config["pool_size"], config["strides"], pad, **more)


def batch_normalization(config, shape):
    made = getattr(nn, "BatchNorm%dd" % max(len(shape) - 2, 1))
    return made(shape[-1], config["epsilon"], 1 - config["momentum"])


def dense(config, shape):
    product = nn.Linear(shape[-1], config["units"], bias=config["use_bias"])
    return activated(Last(product) if len(shape) == 4 else product, config["activation"])


def normalization(config):
    if config["mean"] is None:
        return nn.Identity()
    mean, scale = (torch.tensor(v).view(-1, 1, 1) for v in (config["mean"], [v ** -0.5 for v in config["variance"]]))
    return Function(lambda x: (x - mean) * scale)


def activated(module, name):
    if name in ("linear", None):
        return module
    activation = ACTIVATIONS[name]()
    activation.inplace = isinstance(activation, IN_PLACE)
    return nn.Sequential(module, activation)


def layer(kind, config, shapes, padded, alone):
    """Returns the module of a layer.  `alone`: nothing else reads its input, which may be overwritten."""
    shape = shapes[0]
    axes = tuple(range(2, len(shape)))
    if CONVOLUTION.match(kind):
        return activated(convolution(kind, config, shape[-1], pad_of(config, shape, padded)), config["activation"])
    if TRANSPOSED.match(kind):
        return activated(transposed(config, shape[-1]), config["activation"])
    if POOLING.match(kind):
        return pooling(kind, config, pad_of(config, shape, padded))
    if kind.startswith("GlobalAveragePooling"):
        return Function(lambda x: x.mean(axes, keepdim=config["keepdims"]))
    if kind.startswith("GlobalMaxPooling"):
        return Function(lambda x: x.amax(axes, keepdim=config["keepdims"]))
    if kind in RECURRENT:
        return Sequence(kind, shape[-1], config)
    if kind == "TimeDistributed" and config["layer"]["class_name"] == "Dense":
        return dense(config["layer"]["config"], shape)
    if kind == "Activation":
        module = ACTIVATIONS[config["activation"]]()
        if alone and isinstance(module, IN_PLACE):
            module.inplace = True
        return module
    makers = {
        "Dense": lambda: dense(config, shape),
        "BatchNormalization": lambda: batch_normalization(config, shape),
        "GroupNormalization": lambda: nn.GroupNorm(config["groups"], shape[-1], config["epsilon"]),
        "LeakyReLU": lambda: nn.LeakyReLU(config["negative_slope"], inplace=alone),
        "UpSampling2D": lambda: nn.Upsample(scale_factor=tuple(config["size"]), mode=config["interpolation"]),
        "ReLU": lambda: nn.ReLU6(inplace=alone) if config["max_value"] else nn.ReLU(inplace=alone),
        "LayerNormalization": lambda: Last(nn.LayerNorm(shape[-1], config["epsilon"])),
        "LayerScale": lambda: Scale(config["projection_dim"], config["init_values"]),
        "CustomScaleLayer": lambda: Function(lambda x, y: x + y * config["scale"]),
        "Reshape": lambda: Function(lambda x: x.reshape(-1, *config["target_shape"][-1:], *config["target_shape"][:-1])),
        "Flatten": lambda: nn.Flatten(), "Dropout": lambda: nn.Dropout(config["rate"]),
        "Concatenate": lambda: Function(lambda *x: torch.cat(x, 1)),
        "Add": lambda: Function(lambda *x: sum(x[1:], x[0])),
        "Multiply": lambda: Function(lambda x, y: x * y),
        "Rescaling": lambda: Function(lambda x: x * config["scale"] + config["offset"]),
        "Normalization": lambda: normalization(config),
        "ZeroPadding2D": lambda: Function(lambda x: functional.pad(x, [v for side in config["padding"][::-1] for v in side])),
        "Cropping2D": lambda: Function(lambda x: functional.pad(x, [-v for side in config["cropping"][::-1] for v in side]))}
    if kind not in makers:
        raise SystemExit("keras_in_torch: there is no module for the layer " + kind)
    return makers[kind]()


def flat(model):
    """Returns [(name, class, configuration, arguments)] in the order of computation, with nested Sequential models opened."""
    found, renamed = [], {}
    for part in model["config"]["layers"]:
        config, nodes = part["config"], part["inbound_nodes"]
        arguments = [(renamed.get(a[0], a[0]), a[1]) if isinstance(a, tuple) else a
                     for a in (tensors_of(nodes[0]["args"]) if nodes else [])]
        if part["class_name"] != "Sequential":
            found.append((config["name"], part["class_name"], config, arguments))
            continue
        before, shape = arguments[0]
        for inner in config["layers"]:
            if inner["class_name"] != "InputLayer":
                found.append((inner["config"]["name"], inner["class_name"], inner["config"],
                              [(before, inner["build_config"]["input_shape"])]))
                before = inner["config"]["name"]
        renamed[config["name"]] = before
    return found


class Model(nn.Module):
    def __init__(self, path, fold):
        super().__init__()
        with open(path) as file:
            parts = flat(json.load(file))
        shape = parts[0][2]["batch_shape"][1:]
        self.features_last = any(kind in RECURRENT for _, kind, _, _ in parts)
        self.sample = tuple(shape) if self.features_last else tuple(shape[-1:] + shape[:-1])
        readers = {}
        for name, kind, _, arguments in parts:
            for argument in arguments:
                if isinstance(argument, tuple):
                    readers.setdefault(argument[0], []).append(kind)
        self.modules_of, self.steps, stands_for, padding = nn.ModuleList(), [], {parts[0][0]: parts[0][0]}, {}
        self.first = parts[0][0]
        for name, kind, config, arguments in parts[1:]:
            tensors = [a for a in arguments if isinstance(a, tuple)]
            if kind == "ZeroPadding2D" and all(PADDING.match(reader) for reader in readers[name]):
                source = tensors[0]
                stands_for[name] = stands_for[source[0]]
                padding[name] = ([sum(side) for side in config["padding"]], source[1])
                continue
            padded, before = padding.get(tensors[0][0], (None, tensors[0][1]))
            shapes = [before] + [shape for _, shape in tensors[1:]]
            module = layer(kind, config, shapes, padded, len(readers[tensors[0][0]]) == 1)
            sources = [stands_for[a[0]] if isinstance(a, tuple) else a for a in arguments]
            if fold and kind == "BatchNormalization" and self.folded(sources[0], module, readers[tensors[0][0]]):
                stands_for[name] = sources[0]
                continue
            stands_for[name] = name
            self.steps.append((name, sources))
            self.modules_of.append(module)
        self.last_reads = self.last_uses()

    def folded(self, source, norm, readers):
        """Makes the normalization part of the convolution or product before it, if there is one that nothing else reads."""
        at = next((i for i, (name, _) in enumerate(self.steps) if name == source), None)
        if at is None or len(readers) > 1:
            return False
        module = self.modules_of[at]
        place, key = (module, -1) if isinstance(module, nn.Sequential) else (self.modules_of, at)
        if isinstance(place[key], CONVOLUTIONS + TRANSPOSED_CONVOLUTIONS):
            place[key] = fuse_conv_bn_eval(place[key].eval(), norm.eval(), isinstance(place[key], TRANSPOSED_CONVOLUTIONS))
        elif isinstance(place[key], nn.Linear):
            place[key] = fuse_linear_bn_eval(place[key].eval(), norm.eval())
        else:
            return False
        return True

    def last_uses(self):
        """Returns for each step the values that no later step reads, so that their memory is free again."""
        last = {source: i for i, (_, sources) in enumerate(self.steps) for source in sources if isinstance(source, str)}
        return [[name for name in last if last[name] == i] for i in range(len(self.steps))]

    def forward(self, x):
        values = {self.first: x}
        for (name, sources), module, done in zip(self.steps, self.modules_of, self.last_reads):
            values[name] = module(*[values[s] if isinstance(s, str) else s for s in sources])
            for old in done:
                del values[old]
        return values[self.steps[-1][0]]


def build(path, fold=False):
    """Returns the model and the shape of a sample: (C, H, W), or (T, C) before recurrent layers."""
    model = Model(path, fold)
    return model, model.sample


def description(path):
    """Returns the output's shape for one sample, in Keras's order, and how many parameters are trained."""
    model, shape = build(path)
    with torch.no_grad():
        out = model.eval()(torch.rand(1, *shape))
    out = out if model.features_last or out.dim() < 3 else out.movedim(1, -1)
    return {"shape": list(out.shape), "parameters": sum(weight.numel() for weight in model.parameters())}
