# SPDX-License-Identifier: Apache-2.0
"""examples/dqn_lstm.c as a user of PyTorch or of Keras (2.3.1, current) would write it, for bench/compare: the same cart-pole,
network, windows, targets and learning rates.  NumPy holds the replay memory and computes targets; Keras has a Sequence.
    dqn_lstm.py torch|keras --serve, or once with {"steps": 20000, "batches": 40, ...}"""
import math
import random
import sys
import time

import numpy as np

import serving

DEFAULTS = {"seed": 1, "iterations": 1, "steps": 20000, "passes": 8, "batches": 40, "batch_size": 64, "window": 16,
            "units": 64, "explore": 5, "threads": 1}


class CartPole:
    def reset(self):
        self.x, self.x_dot, self.theta, self.theta_dot = (random.uniform(-0.05, 0.05) for _ in range(4))
        self.steps = 0

    def step(self, action):
        sine, cosine = math.sin(self.theta), math.cos(self.theta)
        push = ((10.0 if action else -10.0) + 0.05 * self.theta_dot ** 2 * sine) / 1.1
        turn = (9.8 * sine - cosine * push) / (0.5 * (4.0 / 3 - 0.1 * cosine * cosine / 1.1))
        pull = push - 0.05 * turn * cosine / 1.1
        self.x, self.x_dot = self.x + 0.02 * self.x_dot, self.x_dot + 0.02 * pull
        self.theta, self.theta_dot = self.theta + 0.02 * self.theta_dot, self.theta_dot + 0.02 * turn
        self.steps += 1
        return abs(self.x) <= 2.4 and abs(self.theta) <= math.pi / 15

    def observe(self):
        return 4 * self.x / 2.4, 4 * self.theta / (math.pi / 15)


class Replay:
    """Draws batches as examples/dqn_lstm.c does."""

    def __init__(self, s, q_of):
        self.s, self.q_of, self.count = s, q_of, 0
        self.seen = np.zeros((200000, 2), "float32")
        self.action, self.end = np.zeros(200000, "int64"), np.zeros(200000, "int8")

    def remember(self, seen, action, end):
        i = self.count % len(self.seen)
        self.seen[i], self.action[i], self.end[i] = seen, action, end
        self.count += 1

    def batch(self):
        size, window = self.s["batch_size"], self.s["window"]
        starts = np.random.randint(0, min(self.count, len(self.seen)) - window, size)
        places = starts[:, None] + np.arange(window)
        end, action = self.end[places], self.action[places]
        used = np.cumsum(end != 0, 1) - (end != 0) == 0
        x = self.seen[places] * used[:, :, None]
        chooser, target = self.q_of("chooser", x), self.q_of("target", x)
        mask, y = np.zeros((size, window, 2), "float32"), np.zeros((size, window, 2), "float32")
        rows, later, known = np.arange(size), np.zeros(size, "float32"), np.zeros(size, bool)
        for t in range(window - 1, -1, -1):
            fell = used[:, t] & (end[:, t] == 1)
            goes = used[:, t] & (end[:, t] == 0) & (t + 1 < window)
            value = np.zeros(size, "float32")
            if t + 1 < window:
                best = chooser[:, t + 1].argmax(1)
                value = target[rows, t + 1, best]
                value = np.where(known & (best == action[:, t + 1]), 0.2 * value + 0.8 * later, value)
            later = np.where(fell, -1, 0.99 * value).astype("float32")
            known = fell | goes
            mask[rows, t, action[:, t]] = known
            y[rows, t, action[:, t]] = np.where(known, later, 0)
        return x, mask, y


class Torch:
    def __init__(self, s):
        import torch
        from torch import nn
        self.torch, self.version = torch, torch.__version__
        torch.set_num_threads(s["threads"])
        torch.manual_seed(s["seed"])

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.lstm, self.out = nn.LSTM(2, s["units"], batch_first=True), nn.Linear(s["units"], 2)

            def forward(self, x):
                return self.out(self.lstm(x)[0])
        self.nets = {name: Net() for name in ("online", "chooser", "target")}
        self.optimizer = torch.optim.Adam(self.nets["online"].parameters(), lr=0.002, fused=True)

    def q_of(self, name, x):
        with self.torch.inference_mode():
            return self.nets[name](self.torch.from_numpy(x)).numpy()

    def copy(self, to, source):
        self.nets[to].load_state_dict(self.nets[source].state_dict())

    def fit(self, replay, rate):
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        for _ in range(replay.s["passes"]):
            for _ in range(replay.s["batches"]):
                x, mask, y = (self.torch.from_numpy(a) for a in replay.batch())
                self.optimizer.zero_grad(set_to_none=True)
                loss = ((self.nets["online"](x) * mask - y) ** 2).mean()
                loss.backward()
                self.optimizer.step()
            self.copy("chooser", "target")
            self.copy("target", "online")
        return loss.item()


class Keras:
    def __init__(self, s):
        import warnings
        warnings.filterwarnings("ignore")
        import keras
        import tensorflow
        self.keras, self.tensorflow, layers = keras, tensorflow, keras.layers
        self.current = int(keras.__version__.split(".")[0]) >= 3
        self.version = "%s on TensorFlow %s" % (keras.__version__, tensorflow.__version__)
        tensorflow.config.threading.set_intra_op_parallelism_threads(s["threads"])
        self.nets, self.compiled = {}, {}
        for name in ("online", "chooser", "target"):
            x, mask = layers.Input((s["window"], 2)), layers.Input((s["window"], 2))
            q = layers.Multiply()([layers.Dense(2)(layers.LSTM(s["units"], return_sequences=True)(x)), mask])
            self.nets[name] = keras.models.Model([x, mask], q)
            self.nets[name].compile(keras.optimizers.Adam(0.002), "mse")

    def q_of(self, name, x):
        ones = np.ones(x.shape, "float32")
        if not self.current:
            return self.nets[name].predict_on_batch([x, ones])
        if name not in self.compiled:
            net = self.nets[name]
            self.compiled[name] = self.tensorflow.function(lambda a, b: net([a, b], training=False))
        return self.compiled[name](self.tensorflow.constant(x), self.tensorflow.constant(ones)).numpy()

    def copy(self, to, source):
        self.nets[to].set_weights(self.nets[source].get_weights())

    def fit(self, replay, rate):
        peer = self

        class Batches(self.keras.utils.PyDataset if self.current else self.keras.utils.Sequence):
            def __len__(self):
                return replay.s["batches"]

            def __getitem__(self, index):
                x, mask, y = replay.batch()
                return ((x, mask), y) if peer.current else ([x, mask], y)

            def on_epoch_end(self):
                peer.copy("chooser", "target")
                peer.copy("target", "online")
        if self.current:
            self.nets["online"].optimizer.learning_rate = rate
            found = self.nets["online"].fit(Batches(), epochs=replay.s["passes"], verbose=0, shuffle=False)
        else:
            self.keras.backend.set_value(self.nets["online"].optimizer.lr, rate)
            found = self.nets["online"].fit_generator(Batches(), epochs=replay.s["passes"], verbose=0, workers=0)
        return found.history["loss"][-1]


def play(pole, net, replay, s, explore, window):
    spent, returns = 0.0, []
    for _ in range(s["steps"]):
        if len(window) == s["window"] - 1:
            del window[0]
        window.append(pole.observe())
        x = np.zeros((1, s["window"], 2), "float32")
        x[0, :len(window)] = window
        asked = time.perf_counter()
        q = net.q_of("online", x)[0, len(window) - 1]
        spent += time.perf_counter() - asked
        action = random.randrange(2) if random.random() < explore else int(q[1] > q[0])
        stands = pole.step(action)
        end = 1 if not stands else 2 if pole.steps == 500 else 0
        replay.remember(window[-1], action, end)
        if end:
            returns.append(pole.steps)
            pole.reset()
            window.clear()
    return spent, sum(returns) / max(1, len(returns))


def run(framework, wishes):
    s = dict(DEFAULTS, **{key: value for key, value in wishes.items() if key in DEFAULTS})
    random.seed(s["seed"])
    np.random.seed(s["seed"])
    net, pole, window = framework(s), CartPole(), []
    replay = Replay(s, net.q_of)
    for name in ("chooser", "target"):
        net.copy(name, "online")
    pole.reset()
    for i in range(s["iterations"]):
        start = time.perf_counter()
        spent, returned = play(pole, net, replay, s, max(0.05, 1 - 0.95 * i / s["explore"]), window)
        acted = time.perf_counter()
        loss = net.fit(replay, 0.002 * (1 - 0.9 * i / s["iterations"]))
        figures = {"iteration": i + 1, "return": returned, "loss": loss, "environment_s": acted - start - spent,
                   "predictions_s": spent, "fit_s": time.perf_counter() - acted, "version": net.version}
        print(figures, file=sys.stderr)
    return figures


if __name__ == "__main__":
    peer = {"torch": Torch, "keras": Keras}[sys.argv.pop(1)]
    serving.serve(lambda wishes: run(peer, wishes))
