# SPDX-License-Identifier: Apache-2.0
"""Nets of PyTorch with random weights, for check_onnx_import.py.

NETS has a function for each name that returns (module, inputs) or (module, inputs, axes): the axis of each input that is
the batch, 0 unless given.  The outputs have the batch as axis 0, or as the same axis as the first input."""
import torch
import torch.nn as nn
import torch.nn.functional as F

NETS = {}


def net(make):
    NETS[make.__name__] = make
    return make


def images(*shape, batch=2):
    return (torch.randn(batch, *shape),)


class Apply(nn.Module):
    """A module whose forward is a function of its parts and the inputs."""

    def __init__(self, function, **parts):
        super().__init__()
        self.function = function
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *xs):
        return self.function(self, *xs)


# ---- Dense ----

@net
def mlp():
    return nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 16), nn.Tanh(), nn.Linear(16, 5), nn.Softmax(-1)), \
        images(12)


@net
def mlp_batch_norm():
    return nn.Sequential(nn.Linear(12, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 1), nn.Sigmoid()), \
        images(12)


@net
def mlp_activations():
    kinds = [nn.ELU(0.7), nn.SELU(), nn.LeakyReLU(0.1), nn.PReLU(), nn.SiLU(), nn.Mish(), nn.Hardswish(), nn.Hardsigmoid(),
             nn.Softplus(), nn.Softsign(), nn.GELU(), nn.GELU("tanh"), nn.CELU(0.8), nn.ReLU6(), nn.Hardtanh(), nn.Tanhshrink(),
             nn.LogSigmoid(), nn.GLU()]
    parts = [part for kind in kinds for part in (nn.Linear(8, 8) if kind is not kinds[-1] else nn.Linear(8, 16), kind)]
    return nn.Sequential(*parts), images(8)


@net
def mlp_residual():
    def forward(m, x):
        h = m.a(x)
        return m.c(torch.cat([h + m.b(F.relu(h)), x], 1)) * 0.5 - x.mean(1, keepdim=True)
    return Apply(forward, a=nn.Linear(6, 9), b=nn.Linear(9, 9), c=nn.Linear(15, 4)), images(6)


@net
def mlp_shared():
    def forward(m, x):
        return m.b(torch.tanh(m.a(torch.tanh(m.a(x)))))
    return Apply(forward, a=nn.Linear(6, 6), b=nn.Linear(6, 2)), images(6)


@net
def mlp_two_inputs():
    def forward(m, a, b):
        h = F.relu(m.a(a) + m.b(b))
        return m.c(h), h.sum(-1)
    return Apply(forward, a=nn.Linear(5, 8), b=nn.Linear(3, 8), c=nn.Linear(8, 2)), (torch.randn(2, 5), torch.randn(2, 3))


@net
def autoencoder():
    return nn.Sequential(nn.Flatten(), nn.Linear(49, 10), nn.ReLU(), nn.Linear(10, 49), nn.Unflatten(1, (1, 7, 7)),
                         nn.Sigmoid()), images(1, 7, 7)


# ---- Convolutions ----

@net
def cnn():
    return nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * 6 * 6, 10)), images(1, 28, 28)


@net
def cnn_batch_norm():
    return nn.Sequential(nn.Conv2d(3, 8, 5, stride=2, padding=2, bias=False), nn.BatchNorm2d(8), nn.LeakyReLU(0.2),
                         nn.AvgPool2d(3, 2, 1), nn.Conv2d(8, 8, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()), images(3, 32, 30)


@net
def cnn_pools():
    return nn.Sequential(nn.MaxPool2d(3, 2, 1), nn.Conv2d(3, 4, 3, padding=(2, 1)), nn.AvgPool2d(3, 2, 1, count_include_pad=False),
                         nn.MaxPool2d(2, 2, ceil_mode=True), nn.AvgPool2d(3, 2, ceil_mode=True)), images(3, 41, 39)


@net
def cnn_groups():
    return nn.Sequential(nn.Conv2d(6, 12, 3, groups=3, padding=1), nn.ReLU(), nn.Conv2d(12, 12, 3, groups=12, dilation=2),
                         nn.Conv2d(12, 24, 3, groups=12, stride=2)), images(6, 20, 20)


@net
def cnn_1d():
    return nn.Sequential(nn.Conv1d(4, 8, 5, padding=4, dilation=2), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(8, 3, 3),
                         nn.AdaptiveMaxPool1d(1), nn.Flatten()), images(4, 33)


@net
def cnn_3d():
    return nn.Sequential(nn.Conv3d(2, 4, 3, padding=1), nn.BatchNorm3d(4), nn.ReLU(), nn.MaxPool3d(2), nn.Flatten(),
                         nn.Linear(4 * 3 * 4 * 5, 3)), images(2, 6, 8, 10)


@net
def gan_generator():
    return nn.Sequential(nn.Linear(10, 8 * 4 * 4), nn.Unflatten(1, (8, 4, 4)), nn.ConvTranspose2d(8, 6, 4, 2, 1),
                         nn.BatchNorm2d(6), nn.ReLU(), nn.ConvTranspose2d(6, 3, 3, 2, 1, output_padding=1), nn.Tanh()), images(10)


@net
def unet():
    def forward(m, x):
        a = m.down1(x)
        b = m.down2(F.max_pool2d(a, 2))
        up = F.interpolate(b, scale_factor=2, mode="nearest")
        wide = F.interpolate(b, scale_factor=2, mode="bilinear", align_corners=False)
        return torch.sigmoid(m.out(torch.cat([a, up, wide], 1)))
    block = lambda i, o: nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU())
    return Apply(forward, down1=block(3, 8), down2=block(8, 16), out=nn.Conv2d(40, 1, 1)), images(3, 24, 24)


@net
def squeeze_excite():
    def forward(m, x):
        x = m.a(x)
        s = torch.sigmoid(m.c(F.silu(m.b(x.mean((2, 3), keepdim=True)))))
        return (x * s).mean((2, 3))
    return Apply(forward, a=nn.Conv2d(3, 8, 3), b=nn.Conv2d(8, 2, 1), c=nn.Conv2d(2, 8, 1)), images(3, 16, 16)


@net
def group_norm():
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(4, 8), nn.SiLU(), nn.InstanceNorm2d(8, affine=True), nn.Flatten(2)), \
        images(3, 12, 10)


@net
def pixel_shuffle():
    return nn.Sequential(nn.Conv2d(3, 12, 3, padding=1), nn.PixelShuffle(2), nn.Conv2d(3, 4, 3), nn.PixelUnshuffle(2)), \
        images(3, 12, 12)


@net
def open_image():
    """Images of any size: heads that pool globally."""
    return nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(8, 4)), images(3, 17, 19)


@net
def conv_lstm():
    def forward(m, x):
        h = F.relu(m.a(x)).transpose(1, 2)
        return m.c(m.b(h)[0][:, -1])
    return Apply(forward, a=nn.Conv1d(4, 8, 3, padding=1), b=nn.LSTM(8, 6, batch_first=True), c=nn.Linear(6, 2)), images(4, 15)


# ---- Recurrent ----

def recurrent(cell, head):
    return lambda m, x: head(m, cell(m, x))


@net
def lstm():
    return Apply(lambda m, x: m.head(m.rnn(x)[0]), rnn=nn.LSTM(5, 7, batch_first=True), head=nn.Linear(7, 2)), images(9, 5)


@net
def lstm_steps_first():
    return Apply(lambda m, x: m.head(m.rnn(x)[0]), rnn=nn.LSTM(5, 7), head=nn.Linear(7, 2)), (torch.randn(9, 2, 5),), (1,)


@net
def lstm_last_state():
    return Apply(lambda m, x: m.head(m.rnn(x)[1][0][-1]), rnn=nn.LSTM(5, 7, 2, batch_first=True), head=nn.Linear(7, 2)), \
        images(9, 5)


@net
def lstm_bidirectional():
    return Apply(lambda m, x: m.head(m.rnn(x)[0][:, 0]), rnn=nn.LSTM(5, 7, 2, batch_first=True, bidirectional=True),
                 head=nn.Linear(14, 2)), images(9, 5)


@net
def lstm_states():
    def forward(m, x, h, c):
        y, (h, c) = m.rnn(x, (h, c))
        return m.head(y), h, c
    return Apply(forward, rnn=nn.LSTM(5, 7), head=nn.Linear(7, 2)), \
        (torch.randn(9, 2, 5), torch.randn(1, 2, 7), torch.randn(1, 2, 7)), (1, 1, 1)


@net
def gru():
    return Apply(lambda m, x: m.head(m.rnn(x)[0][:, -1]), rnn=nn.GRU(5, 7, batch_first=True), head=nn.Linear(7, 2)), images(9, 5)


@net
def gru_bidirectional():
    def forward(m, x):
        y, h = m.rnn(x)
        return m.head(torch.cat([h[0], h[1]], -1)), y.mean(1)
    return Apply(forward, rnn=nn.GRU(5, 7, batch_first=True, bidirectional=True), head=nn.Linear(14, 2)), images(9, 5)


@net
def gru_without_bias():
    return Apply(lambda m, x: m.rnn(x)[0], rnn=nn.GRU(5, 7, batch_first=True, bias=False)), images(9, 5)


@net
def rnn_tanh():
    return Apply(lambda m, x: m.rnn(x)[0], rnn=nn.RNN(5, 7, 2, batch_first=True)), images(9, 5)


@net
def rnn_relu():
    return Apply(lambda m, x: m.rnn(x)[1][0], rnn=nn.RNN(5, 7, nonlinearity="relu", batch_first=True, bidirectional=True)), \
        images(9, 5)


@net
def text_classifier():
    return Apply(lambda m, x: m.head(m.rnn(m.words(x))[0].max(1)[0]), words=nn.Embedding(50, 8),
                 rnn=nn.LSTM(8, 6, batch_first=True, bidirectional=True), head=nn.Linear(12, 3)), \
        (torch.randint(0, 50, (2, 11)),)


# ---- Attention ----

@net
def multi_head_attention():
    return Apply(lambda m, x: m.attention(x, x, x, need_weights=False)[0], attention=nn.MultiheadAttention(12, 3, batch_first=True)), \
        images(7, 12)


@net
def attention_weights():
    return Apply(lambda m, x: m.attention(x, x, x), attention=nn.MultiheadAttention(12, 3, batch_first=True)), images(7, 12)


@net
def transformer_encoder():
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, activation="gelu")
    return Apply(lambda m, x: m.head(m.encoder(x).mean(1)), encoder=nn.TransformerEncoder(layer, 2, enable_nested_tensor=False),
                 head=nn.Linear(16, 3)), images(8, 16)


@net
def transformer_steps_first():
    layer = nn.TransformerEncoderLayer(16, 4, 32, norm_first=True)
    return Apply(lambda m, x: m.encoder(x), encoder=nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)), \
        (torch.randn(8, 2, 16),), (1,)


@net
def transformer_decoder():
    layer = nn.TransformerDecoderLayer(16, 4, 32, batch_first=True)
    return Apply(lambda m, x, memory: m.decoder(x, memory), decoder=nn.TransformerDecoder(layer, 1)), \
        (torch.randn(2, 5, 16), torch.randn(2, 8, 16))


@net
def gpt():
    """A language model with causal attention, as small ones are written by hand."""
    def block(m, x, i):
        b, t, c = x.shape
        q, k, v = m.qkv[i](m.norm1[i](x)).split(c, 2)
        q, k, v = (z.view(b, t, 4, c // 4).transpose(1, 2) for z in (q, k, v))
        scores = (q @ k.transpose(-2, -1)) / (c // 4) ** 0.5
        scores = scores.masked_fill(m.mask[:, :, :t, :t] == 0, float("-inf"))
        y = (F.softmax(scores, -1) @ v).transpose(1, 2).contiguous().view(b, t, c)
        x = x + m.out[i](y)
        return x + m.down[i](F.gelu(m.up[i](m.norm2[i](x))))

    def forward(m, ids):
        x = m.words(ids) + m.places(torch.arange(ids.shape[1]))
        for i in range(2):
            x = block(m, x, i)
        return m.head(m.norm(x))
    several = lambda *a: nn.ModuleList([a[0](*a[1:]) for _ in range(2)])
    model = Apply(forward, words=nn.Embedding(30, 16), places=nn.Embedding(12, 16), qkv=several(nn.Linear, 16, 48),
                  out=several(nn.Linear, 16, 16), up=several(nn.Linear, 16, 64), down=several(nn.Linear, 64, 16),
                  norm1=several(nn.LayerNorm, 16), norm2=several(nn.LayerNorm, 16), norm=nn.LayerNorm(16),
                  head=nn.Linear(16, 30, bias=False))
    model.register_buffer("mask", torch.tril(torch.ones(12, 12)).view(1, 1, 12, 12))
    return model, (torch.randint(0, 30, (2, 12)),)


@net
def attention_einsum():
    def forward(m, x):
        q, k, v = (f(x).reshape(x.shape[0], 6, 3, 4) for f in (m.q, m.k, m.v))
        weights = torch.softmax(torch.einsum("bqhd,bkhd->bhqk", q, k) / 2, -1)
        return torch.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape[0], 6, 12)
    return Apply(forward, q=nn.Linear(12, 12), k=nn.Linear(12, 12), v=nn.Linear(12, 12)), images(6, 12)


@net
def mixer():
    def forward(m, x):
        x = m.patches(x).flatten(2).transpose(1, 2)
        x = x + m.tokens(m.norm1(x).transpose(1, 2)).transpose(1, 2)
        return m.head((x + m.channels(m.norm2(x))).mean(1))
    block = lambda n, h: nn.Sequential(nn.Linear(n, h), nn.GELU(), nn.Linear(h, n))
    return Apply(forward, patches=nn.Conv2d(3, 12, 4, 4), tokens=block(16, 20), channels=block(12, 30), norm1=nn.LayerNorm(12),
                 norm2=nn.LayerNorm(12), head=nn.Linear(12, 5)), images(3, 16, 16)


# ---- torchvision ----

VISION = {"alexnet": 224, "vgg11": 224, "vgg11_bn": 224, "resnet18": 64, "resnet50": 64, "resnext50_32x4d": 64, "wide_resnet50_2": 64,
          "densenet121": 64, "densenet201": 64, "squeezenet1_0": 64, "squeezenet1_1": 64, "mobilenet_v2": 64, "mobilenet_v3_small": 64,
          "mobilenet_v3_large": 64, "mnasnet0_5": 64, "shufflenet_v2_x1_0": 64, "efficientnet_b0": 64, "efficientnet_v2_s": 64,
          "regnet_y_400mf": 64, "regnet_x_400mf": 64, "googlenet": 64, "inception_v3": 96, "convnext_tiny": 64, "vit_b_32": 224,
          "swin_t": 64, "swin_v2_t": 64, "maxvit_t": 224}


def vision(name, size):
    def make():
        import torchvision
        options = {"init_weights": False, "aux_logits": False} if name in ("googlenet", "inception_v3") else {}
        return getattr(torchvision.models, name)(weights=None, **options), images(3, size, size)
    NETS["torchvision_" + name] = make


for name, size in VISION.items():
    vision(name, size)
