#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Deep Q-learning with an LSTM balances a pole on a cart whose speeds are not observed: examples/dqn_lstm.c in Python.

    python3 dqn_lstm.py --iterations 20

Each iteration acts for some thousand steps, with one prediction per step, and then trains the network on windows from a
replay memory.  With Gymnasium installed the cart-pole is its CartPole-v1, otherwise the one of this file.

Mnih et al. 2015 (replay, target network), van Hasselt et al. 2016 (double Q-learning), Hausknecht and Stone 2015
(windows of episodes; the LSTM's state is zero at the start of a window).
"""

import argparse
import json
import math
import random
import time

import numpy

import leat

SEEN, ACTIONS, LIMIT = 2, 2, 500
GOES_ON, FELL, WAS_CUT = range(3)


class CartPole:
    """Barto, Sutton and Anderson's cart-pole, by Euler's method."""

    def __init__(self, seed):
        self._random = random.Random(seed)

    def reset(self):
        self._x, self._x_dot, self._theta, self._theta_dot = (self._random.uniform(-0.05, 0.05) for _ in range(4))
        self._steps = 0
        return self._x, self._theta

    def step(self, action):
        """Returns the observation, and how the episode goes on."""
        sine, cosine = math.sin(self._theta), math.cos(self._theta)
        push = ((10.0 if action else -10.0) + 0.05 * self._theta_dot**2 * sine) / 1.1
        turn = (9.8 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
        pull = push - 0.05 * turn * cosine / 1.1
        self._x += 0.02 * self._x_dot
        self._x_dot += 0.02 * pull
        self._theta += 0.02 * self._theta_dot
        self._theta_dot += 0.02 * turn
        self._steps += 1
        fell = abs(self._x) > 2.4 or abs(self._theta) > math.radians(12)
        return (self._x, self._theta), FELL if fell else WAS_CUT if self._steps == LIMIT else GOES_ON


class GymCartPole:
    """Gymnasium's CartPole-v1."""

    def __init__(self, seed):
        import gymnasium

        self._game = gymnasium.make("CartPole-v1")
        self._seed = seed

    def reset(self):
        seen, _ = self._game.reset(seed=self._seed)
        self._seed = None
        return seen[0], seen[2]

    def step(self, action):
        seen, _, fell, cut, _ = self._game.step(action)
        return (seen[0], seen[2]), FELL if fell else WAS_CUT if cut else GOES_ON


def make_game(seed):
    try:
        return GymCartPole(seed)
    except ImportError:
        return CartPole(seed)


def scale(seen):
    return 4 * seen[0] / 2.4, 4 * seen[1] / math.radians(12)


def build(units, seed):
    """Q of both actions at each step of a window, times a mask: 0 where an action was not taken."""

    def layer(class_name, name, config, *inputs):
        calls = [[[source, 0, 0, {}] for source in inputs]] if inputs else []
        return {"name": name, "class_name": class_name, "config": {"name": name, **config}, "inbound_nodes": calls}

    layers = [
        layer("InputLayer", "seen", {"batch_input_shape": [None, None, SEEN], "dtype": "float32", "sparse": False}),
        layer("InputLayer", "mask", {"batch_input_shape": [None, None, ACTIONS], "dtype": "float32", "sparse": False}),
        layer("LSTM", "lstm", {"units": units, "return_sequences": True}, "seen"),
        layer("Dense", "q", {"units": ACTIONS}, "lstm"),
        layer("Multiply", "masked", {}, "q", "mask"),
    ]
    inputs, outputs = [["seen", 0, 0], ["mask", 0, 0]], [["masked", 0, 0]]
    config = {"name": "dqn", "layers": layers, "input_layers": inputs, "output_layers": outputs}
    model = leat.Model.from_json(json.dumps({"class_name": "Model", "config": config}))
    model.compile("adam", "mse")
    model.initialize(seed)
    return model


class Replay:
    """A Sequence that draws its batches from the last steps."""

    def __init__(self, model, options):
        shapes = [(options.batch_size, options.window, size) for size in (SEEN, ACTIONS)]
        self.model, self.options = model, options
        self.seen = numpy.zeros((200000, SEEN), "float32")
        self.action = numpy.zeros(200000, "int64")
        self.end = numpy.zeros(200000, "int8")
        self.first = self.count = 0
        # Networks with older weights: one chooses the next action, the other one values it.
        self.chooser, self.target = (leat.Predictor(model, options.batch_size, inputs=shapes) for _ in range(2))
        self.ones = numpy.ones(shapes[1], "float32")

    def remember(self, seen, action, end):
        at = (self.first + self.count) % len(self.action)
        self.seen[at], self.action[at], self.end[at] = seen, action, end
        if self.count < len(self.action):
            self.count += 1
        else:
            self.first = (self.first + 1) % len(self.action)

    def __len__(self):
        return self.options.batches

    def __getitem__(self, index):
        window, rows = self.options.window, numpy.arange(self.options.batch_size)
        starts = leat.rng().integers(0, self.count - window, self.options.batch_size)
        at = (self.first + starts[:, None] + numpy.arange(window)) % len(self.action)
        end, action = self.end[at], self.action[at]
        ended = numpy.cumsum(end != GOES_ON, 1) - (end != GOES_ON) > 0  # after the end of the episode
        seen = self.seen[at] * ~ended[..., None]
        chosen, valued = self.chooser(seen, self.ones).argmax(2), self.target(seen, self.ones)
        mask, y = numpy.zeros_like(self.ones), numpy.zeros_like(self.ones)
        following = numpy.zeros(len(rows), "float32")
        for t in range(window - 1, -1, -1):
            if t + 1 < window:
                best = chosen[:, t + 1]
                value = valued[rows, t + 1, best]
                taken = (best == action[:, t + 1]) & (mask[rows, t + 1, action[:, t + 1]] > 0)
                value = 0.99 * numpy.where(taken, 0.2 * value + 0.8 * following, value)  # Watkins's Q(lambda)
            known = ~ended[:, t] & ((end[:, t] == FELL) | ((end[:, t] == GOES_ON) & (t + 1 < window)))
            following = numpy.where(end[:, t] == FELL, -1.0, value if t + 1 < window else 0.0).astype("float32")
            mask[rows, t, action[:, t]] = known
            y[rows, t, action[:, t]] = following * known
        return [seen, mask], y

    def update(self):
        """The chooser takes the weights that were published before, the target network the current ones."""
        self.chooser.sync()
        self.model.publish()
        self.target.sync()


def play(game, actor, replay, steps, explore, dice, episodes=None):
    """Acts for `steps` steps, or for some episodes.  Returns (episodes, their length in all, seconds of predictions)."""
    mask = numpy.ones((1, 1, ACTIONS), "float32")
    row, q = numpy.zeros((1, 1, SEEN), "float32"), numpy.zeros((1, 1, ACTIONS), "float32")
    ended = length = total = 0
    seconds = 0.0
    seen = scale(game.reset())
    actor.reset()
    while ended < episodes if episodes else steps > 0:
        steps -= 1
        row[0, 0] = seen
        began = time.perf_counter()
        actor.run(row, mask, out=q)  # one time step: the LSTM keeps its state
        seconds += time.perf_counter() - began
        action = int(q[0, 0, 1] > q[0, 0, 0])
        if dice.random() < explore:
            action = dice.randrange(ACTIONS)
        after, end = game.step(action)
        replay.remember(seen, action, end)
        seen = scale(after)
        length += 1
        if end != GOES_ON:
            ended, total, length = ended + 1, total + length, 0
            seen = scale(game.reset())
            actor.reset()
    return ended, total, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in dict(
        seed=1, iterations=20, steps=20000, passes=8, batches=40, batch_size=64, window=16, units=64, explore=5
    ).items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=default)
    options = parser.parse_args()
    model, game, dice = build(options.units, options.seed), make_game(options.seed), random.Random(options.seed)
    replay = Replay(model, options)
    actor = leat.Predictor(model, streaming=True, inputs=[(1, 1, SEEN), (1, 1, ACTIONS)])
    update = leat.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: replay.update())
    for i in range(options.iterations):
        began = time.perf_counter()
        explore = max(0.05, 1 - 0.95 * i / options.explore)
        ended, total, predictions = play(game, actor, replay, options.steps, explore, dice)
        acted = time.perf_counter()
        model.learning_rate = 0.002 * (1 - 0.9 * i / options.iterations)
        history = model.fit(
            replay,
            initial_epoch=i * options.passes,
            epochs=(i + 1) * options.passes,
            seed=options.seed,
            workers=0,
            verbose=0,
            callbacks=[update],
        )
        actor.sync()
        print(
            f"iteration {i + 1:2}: return {total / max(ended, 1):6.1f}, loss {history.history['loss'][-1]:.5f};"
            f" acting {acted - began:.2f} s, of it predictions {predictions:.2f} s, fit {time.perf_counter() - acted:.2f} s",
            flush=True,
        )
    ended, total, _ = play(game, actor, replay, 0, 0, dice, episodes=10)
    print(f"ten episodes without exploration: {total / ended:.1f} of {LIMIT} steps")


if __name__ == "__main__":
    main()
