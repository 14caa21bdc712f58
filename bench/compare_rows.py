# SPDX-License-Identifier: Apache-2.0
"""The rows of bench/compare: what each program measures, in which settings, and the goals.

A goal is (peer, how many times as fast leat should be); there are goals for machines with AVX2 and for those with AVX-512.
"best" is the fastest peer of the run.  `flops` are the operations of one evaluation, from which the limit is computed."""
PEERS = ("torch", "keras3", "keras", "onnx")
TRANSFORMERS = ("vit", "char", "text")
MLP, LSTM, CNN, RESNET = 50176, 2359808, 23951872, 8.18e9  # operations of one sample, forward
SMALL, BOTH = {"torch": [{"threads": 1}]}, {"torch": [{"threads": 1}, {"threads": 2}]}
NHWC = {"torch": [{"threads": 2, "channels_last": True}, {"threads": 2}]}
COMPILED = {"torch": [{"threads": 1}, {"threads": 1, "compile": True}]}
RL = {"window": 64, "units": 64, "passes": 1}
EPOCH = {"torch": [{"threads": 2, "workers": 0}, {"threads": 2, "workers": 2}],
         "keras": [{"workers": 0}, {"workers": 2}, {"workers": 2, "processes": True}], "keras3": [{"workers": 1}]}


def row(name, title, ask, goals, **more):
    return dict({"name": name, "title": title, "ask": ask, "unit": "us", "goals_avx2": goals, "goals_avx512": goals,
                 "figure": "us", "scale": 1.0, "settings": SMALL, "peers": ("torch", "keras3", "keras"),
                 "flops": 0, "threads": 2, "beside": 0}, **more)


def step(model, batch, **more):
    return dict({"model": model, "mode": "train", "batch": batch}, **more)


def predict(model, batch, **more):
    return step(model, batch, mode="predict", **more)


def rl_rows():
    found = []
    for name, title, batch, figure, goals in (
            ("rl-64", "RL iteration: 20,000 predictions and a fit of 20,000 by 64", 64, "us", [("torch", 3), ("keras", 15)]),
            ("rl-predictions", "  its predictions", 64, "predictions_us", []),
            ("rl-fit-64", "  its fit by 64", 64, "fit_us", []),
            ("rl-fit-1024", "  a fit of 20,000 by 1024", 1024, "fit_us", [])):
        found.append(row(name, title, dict(RL, mode="rl", batch_size=batch), goals, unit="s", scale=1e-6, figure=figure,
                         goals_avx512=[("torch", 5), ("keras", 25)] if goals else [], settings=BOTH))
    return found


def beside_rows():
    """Steps while one or two other processes always compute, as workers that make batches do."""
    return [row("%s-beside%s" % (name, "" if count == 1 else "-%d" % count), "%s, beside %s" % (
                title, "a busy process" if count == 1 else "two busy processes"), step(model, batch), [("best", 1.5)], unit="ms",
                scale=1e-3, beside=count, settings=settings)
            for count in (1, 2) for name, title, model, batch, settings in (
                ("mlp-train-1024", "MLP, Adam step 1024", "mlp", 1024, BOTH),
                ("lstm-train-64", "LSTM, Adam step 64", "lstm", 64, BOTH),
                ("cnn-train-64", "CNN, Adam step 64", "cnn", 64, NHWC))]


def sequence_rows():
    """Other layers of sequences: an Adam step and a prediction.  torch.compile helps only where PyTorch has no kernel."""
    found = []
    for name, title in (("gru", "GRU(64) x 64 steps"), ("rnn", "SimpleRNN(64) x 64 steps"),
                        ("bilstm", "Bidirectional(LSTM(64)) x 64 steps"), ("convlstm", "ConvLSTM2D(16), 8 pictures of 32x32x4"),
                        ("conv1d", "Conv1D(64, 5) twice, 128 steps of 16"), ("embedding", "Embedding of 100,000 words, 64 of them")):
        compiled = [dict(setting, compile=True) for setting in BOTH["torch"]] if name in ("convlstm", "conv1d", "embedding") else []
        found.append(row(name + "-train-64", title + ", Adam step 64", step(name, 64), [("best", 2)], unit="ms", scale=1e-3,
                         peers=("torch", "keras3"), settings={"torch": BOTH["torch"] + compiled}))
        found.append(row(name + "-predict-1", title + ", predict 1", predict(name, 1), [("best", 2)], peers=("torch", "keras3"),
                         settings={"torch": SMALL["torch"] + compiled[:1]}))
    return found


def transformer_rows():
    """PyTorch's attention is scaled_dot_product_attention, also compiled."""
    found, every = [], {"torch": [dict(setting, compile=compile) for setting in BOTH["torch"] for compile in (False, True)]}
    for name, title in zip(TRANSFORMERS, ("ViT, 6 blocks of 192 on 32x32x3", "character model, 4 blocks of 256, 128 places",
                                          "text classification, a block of 32, 200 words")):
        more = {"unit": "ms", "scale": 1e-3, "peers": ("torch", "keras3"), "settings": every}
        found.append(row(name + "-train-32", title + ", Adam step 32", step(name, 32), [("best", 1.3)], **more))
        found.append(row(name + "-predict-32", title + ", predict 32", predict(name, 32), [("best", 1.3)], **more))
        found.append(row(name + "-predict-1", title + ", predict 1", predict(name, 1), [("best", 3)], **more))
    return found


ROWS = [
    row("mlp-predict-1", "MLP 64-128-128-4, predict 1", predict("mlp", 1), [("rtneural", 1.15), ("torch", 30), ("onnx", 5)],
        goals_avx512=[("rtneural", 1.15), ("torch", 30)], peers=PEERS, settings=COMPILED, flops=MLP, threads=1),
    row("lstm-predict-1", "LSTM(64) x 64 steps, predict 1", predict("lstm", 1), [("rtneural", 1.5), ("torch", 5), ("keras", 35)],
        goals_avx512=[("rtneural", 1.15), ("torch", 10)], peers=PEERS, flops=LSTM, threads=1),
    row("lstm-step", "LSTM(64), one step with its state", {"model": "stream", "mode": "stream", "batch": 1},
        [("rtneural", 1.15)], peers=("torch", "onnx", "keras"), flops=LSTM / 64, threads=1),
    row("mlp-train-64", "MLP, Adam step 64", step("mlp", 64), [("torch", 4)], settings=COMPILED, flops=3 * 64 * MLP),
    row("mlp-train-1024", "MLP, Adam step 1024", step("mlp", 1024), [("torch", 1.7)], goals_avx512=[("torch", 2.5)],
        settings={"torch": BOTH["torch"] + [{"threads": 2, "compile": True}]}, flops=3 * 1024 * MLP),
    row("lstm-train-64", "LSTM, Adam step 64", step("lstm", 64), [("torch", 2)], goals_avx512=[("torch", 3.5)], settings=BOTH,
        flops=3 * 64 * LSTM, unit="ms", scale=1e-3),
    row("lstm-train-1024", "LSTM, Adam step 1024", step("lstm", 1024), [("torch", 1.8)], goals_avx512=[("torch", 2.5)],
        settings=BOTH, flops=3 * 1024 * LSTM, unit="ms", scale=1e-3),
    row("cnn-train-64", "CNN 28x28, Adam step 64", step("cnn", 64), [("best", 1.35)], goals_avx512=[("best", 1.8)],
        settings=NHWC, flops=3 * 64 * CNN, unit="ms", scale=1e-3),
    row("cnn-train-128", "CNN, Adam step 128", step("cnn", 128), [("best", 1.35)], goals_avx512=[("best", 1.8)],
        settings=NHWC, flops=3 * 128 * CNN, unit="ms", scale=1e-3),
    row("cnn-predict-128", "CNN, predict 128", predict("cnn", 128), [("best", 1.3)], goals_avx512=[("best", 1.8)],
        settings=NHWC, flops=128 * CNN, unit="ms", scale=1e-3),
    row("resnet-train-8", "ResNet-50, SGD step 8", step("resnet50", 8), [("torch", 1.25)], goals_avx512=[("torch", 1.6)],
        settings=NHWC, flops=3 * 8 * RESNET, unit="ms", scale=1e-3),
    row("resnet-train-8-bf16", "ResNet-50, SGD step 8, mixed_bfloat16", step("resnet50", 8, policy="mixed_bfloat16"), [],
        goals_avx512=[("torch", 1.9)], settings=NHWC, peers=("torch",), flops=3 * 8 * RESNET, unit="ms", scale=1e-3),
    row("resnet-predict-8", "ResNet-50, predict 8", predict("resnet50", 8), [("best", 1.15)], goals_avx512=[("best", 1.4)],
        settings=NHWC, flops=8 * RESNET, unit="ms", scale=1e-3),
    row("resnet-predict-1", "ResNet-50, predict 1", predict("resnet50", 1), [("best", 1.35)], goals_avx512=[("best", 1.4)],
        settings=NHWC, flops=RESNET, unit="ms", scale=1e-3),
    row("cnn-epoch", "CNN, an epoch of 60,000 by 64, from files", step("cnn", 64, mode="epoch"), [("best", 1.35)],
        goals_avx512=[("best", 1.8)], settings=EPOCH, flops=938 * 3 * 64 * CNN, unit="s", scale=938e-6),
] + sequence_rows() + transformer_rows() + beside_rows() + rl_rows() + [
    row("start", "from the process's start to the end of the first CNN step", step("cnn", 64, mode="first"), [("keras", 25)],
        unit="ms", scale=1e-3, settings=BOTH),
    row("start-memory", "  its peak memory", step("cnn", 64, mode="first"), [("keras", 5)], unit="MiB", figure="mib",
        settings=BOTH),
]
# Settings that are tried in every row: current Keras with oneDNN and without.
ENVIRONMENTS = {"keras3": [{"TF_ENABLE_ONEDNN_OPTS": "1"}, {"TF_ENABLE_ONEDNN_OPTS": "0"}]}
LABELS = {"leat": "leat", "torch": "PyTorch", "keras3": "Keras (current)", "keras": "Keras 2.3.1", "onnx": "ONNX Runtime",
          "rtneural": "RTNeural"}
