#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures JAX on a GPU for bench/gpu: training steps compiled as one function with donated state, and the first step of a
process.  The settings are jit, float32 without TF32 (matmul precision "highest"), bf16 for the activations and products."""
import os
import sys

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
if "cpu" in sys.argv:
    os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import jax.numpy as jnp
import numpy
from jax import lax

from peer import Row, arguments, emit, per_step_us

SETTINGS = ["jit"]
HOST_BATCHES = 4
LAYOUT = ("NHWC", "HWIO", "NHWC")


# ---- Layers: functions of a dictionary of weights ----

class Weights:
    """Makes the weights of a model while its function runs for the first time, and gives them back afterwards."""

    def __init__(self):
        self.values, self.random = {}, numpy.random.default_rng(1)

    def get(self, name, shape, scale):
        self.values[name] = self.random.standard_normal(shape).astype("float32") * scale if scale else numpy.zeros(shape, "float32")
        return jnp.asarray(self.values[name])


def weight(w, name, shape, scale):
    return w.get(name, shape, scale) if isinstance(w, Weights) else w[name]


def dense(w, name, x, units):
    kernel = weight(w, name + "/kernel", (x.shape[-1], units), (2 / x.shape[-1]) ** 0.5)
    return x @ kernel.astype(x.dtype) + weight(w, name + "/bias", (units,), 0).astype(x.dtype)


def conv(w, name, x, filters, size, stride=1, padding="VALID"):
    shape = (size, size, x.shape[-1], filters)
    kernel = weight(w, name + "/kernel", shape, (2 / (size * size * x.shape[-1])) ** 0.5)
    found = lax.conv_general_dilated(x, kernel.astype(x.dtype), (stride, stride), padding, dimension_numbers=LAYOUT)
    return found + weight(w, name + "/bias", (filters,), 0).astype(x.dtype)


def norm(w, name, x):
    """Batch normalisation; the moving averages are left out, which is to JAX's advantage."""
    gamma = weight(w, name + "/gamma", x.shape[-1:], 0) + 1
    beta = weight(w, name + "/beta", x.shape[-1:], 0)
    wide = x.astype("float32")
    mean, square = wide.mean((0, 1, 2)), (wide * wide).mean((0, 1, 2))
    scale = gamma * lax.rsqrt(square - mean * mean + 1e-5)
    return (wide * scale + (beta - mean * scale)).astype(x.dtype)


def max_pool(x, size, stride, padding="VALID"):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, size, size, 1), (1, stride, stride, 1), padding)


def dropout(x, rate, key):
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0).astype(x.dtype)


def mlp(w, x, key):
    x = jax.nn.relu(dense(w, "0", x, 512))
    return dense(w, "2", jax.nn.relu(dense(w, "1", x, 512)), 10)


def lstm(w, x, key):
    kernel, recurrent = (weight(w, name, (n, 256), 0.1).astype(x.dtype) for name, n in (("kernel", 32), ("recurrent", 64)))
    inputs = jnp.swapaxes(x @ kernel + weight(w, "bias", (256,), 0).astype(x.dtype), 0, 1)

    def cell(state, one):
        h, c = state
        i, f, g, o = jnp.split(one + h @ recurrent, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None
    zero = jnp.zeros((x.shape[0], 64), x.dtype)
    return dense(w, "out", lax.scan(cell, (zero, zero), inputs, unroll=8)[0][0], 1)


def cnn(w, x, key):
    one, other = jax.random.split(key)
    x = max_pool(jax.nn.relu(conv(w, "1", jax.nn.relu(conv(w, "0", x, 32, 3)), 64, 3)), 2, 2)
    x = dropout(x, 0.25, one).reshape(x.shape[0], -1)
    return dense(w, "3", dropout(jax.nn.relu(dense(w, "2", x, 128)), 0.5, other), 10)


def bottleneck(w, name, x, filters, stride, project):
    short = norm(w, name + "/s", conv(w, name + "/s", x, 4 * filters, 1, stride)) if project else x
    x = jax.nn.relu(norm(w, name + "/1", conv(w, name + "/1", x, filters, 1, stride)))
    x = jax.nn.relu(norm(w, name + "/2", conv(w, name + "/2", x, filters, 3, 1, "SAME")))
    return jax.nn.relu(norm(w, name + "/3", conv(w, name + "/3", x, 4 * filters, 1)) + short)


def resnet50(w, x, key):
    x = jax.nn.relu(norm(w, "stem", conv(w, "stem", x, 64, 7, 2, [(3, 3), (3, 3)])))
    x = max_pool(x, 3, 2, [(0, 0), (1, 1), (1, 1), (0, 0)])
    for stage, (filters, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for i in range(blocks):
            x = bottleneck(w, "%d/%d" % (stage, i), x, filters, 2 if i == 0 and stage else 1, i == 0)
    return dense(w, "out", x.mean((1, 2)), 1000)


MODELS = {"mlp": mlp, "lstm": lstm, "cnn": cnn, "resnet50": resnet50}


# ---- A training step ----

def make_step(row):
    """Returns the weights and a function (state, x, y) -> (state, loss)."""
    model, dtype = MODELS[row.model], jnp.bfloat16 if row.precision == "bf16" else jnp.float32
    made = Weights()
    jax.eval_shape(lambda x: model(made, x, jax.random.key(0)), jax.ShapeDtypeStruct((2,) + row.shape, jnp.float32))

    def loss_of(weights, x, y, key):
        found = model(weights, x.astype(dtype), key).astype(jnp.float32)
        if not row.classes:
            return jnp.mean((found - y) ** 2)
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(found), y[:, None], 1))

    def adam(weights, slots, gradients, t):
        m = jax.tree.map(lambda a, g: 0.9 * a + 0.1 * g, slots[0], gradients)
        v = jax.tree.map(lambda a, g: 0.999 * a + 0.001 * g * g, slots[1], gradients)
        rate = 1e-3 * jnp.sqrt(1 - 0.999 ** t) / (1 - 0.9 ** t)
        return jax.tree.map(lambda w, a, b: w - rate * a / (jnp.sqrt(b) + 1e-7), weights, m, v), (m, v)

    def momentum(weights, slots, gradients, t):
        moments = jax.tree.map(lambda a, g: 0.9 * a - 0.01 * g, slots[0], gradients)
        return jax.tree.map(jnp.add, weights, moments), (moments,)

    def step(state, x, y):
        weights, slots, t = state
        loss, gradients = jax.value_and_grad(loss_of)(weights, x, y, jax.random.fold_in(jax.random.key(0), t))
        update = momentum if row.model == "resnet50" else adam
        weights, slots = update(weights, slots, gradients, t.astype(jnp.float32) + 1)
        return (weights, slots, t + 1), loss
    weights = {name: jnp.asarray(value) for name, value in made.values.items()}
    zeros = tuple(jax.tree.map(jnp.zeros_like, weights) for _ in range(1 if row.model == "resnet50" else 2))
    return (weights, zeros, jnp.zeros((), jnp.int32)), jax.jit(step, donate_argnums=0)


class Trainer:
    def __init__(self, row):
        self.state, self.compute = make_step(row)
        numbers = numpy.random.default_rng(2)
        self.host = []
        for _ in range(HOST_BATCHES):
            y = numbers.integers(0, row.classes, row.batch).astype("int32") if row.classes else \
                numbers.random((row.batch, 1), "float32")
            self.host.append((numbers.random((row.batch,) + row.shape, "float32"), y))
        self.next = None

    def step(self, i, ahead=False):
        """Makes a step, and with `ahead` starts to copy the next batch after the step was given to the device."""
        x, y = self.next if ahead and self.next else jax.device_put(self.host[i % HOST_BATCHES])
        self.state, loss = self.compute(self.state, x, y)
        self.next = jax.device_put(self.host[(i + 1) % HOST_BATCHES]) if ahead else None
        return loss


def measure_row(row, seconds):
    trainer = Trainer(row)
    figures = {}
    for key, reads in (("us", True), ("us_ahead", False)):
        found = {}
        for copies, ahead in (("in turn", False), ("ahead", True)):
            def once(i, reads=reads, ahead=ahead):
                loss = trainer.step(i, ahead)
                return float(loss) if reads else None
            found[copies] = per_step_us(once, lambda: jax.block_until_ready(trainer.state), seconds)
        figures[key] = min(found.values())
        figures[key.replace("us", "copies")] = min(found, key=found.get)
    emit(row.name, "JAX", "jit", loss=float(trainer.step(0)), version=jax.__version__, **figures)


def measure_stream(device, seconds):
    made = Weights()
    jax.eval_shape(lambda x: lstm(made, x, None), jax.ShapeDtypeStruct((1, 1, 32), jnp.float32))
    weights = {name: jnp.asarray(value) for name, value in made.values.items()}

    def step(h, c, x):
        i, f, g, o = jnp.split(x @ weights["kernel"] + weights["bias"] + h @ weights["recurrent"], 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return h, c, dense(weights, "out", h, 1)
    compute = jax.jit(step, donate_argnums=(0, 1))
    state, x = [jnp.zeros((1, 64)), jnp.zeros((1, 64))], numpy.random.default_rng(1).random((1, 32), "float32")

    def once(_):
        *state[:], found = compute(*state, x)
        return float(found[0, 0])
    emit("stream", "JAX", "jit", us=per_step_us(once, lambda: None, seconds), version=jax.__version__)


def main():
    wishes = arguments(__doc__, SETTINGS)
    if not wishes.row.endswith("bf16"):
        jax.config.update("jax_default_matmul_precision", "highest")
    if wishes.row.startswith("first:"):
        print(float(Trainer(Row(wishes.row[6:])).step(0)), flush=True)
        os._exit(0)
    try:
        if wishes.row == "stream":
            measure_stream(wishes.device, wishes.seconds)
        else:
            measure_row(Row(wishes.row), wishes.seconds)
    except Exception as failure:
        emit(wishes.row, "JAX", "jit", error="%s: %s" % (type(failure).__name__, str(failure)[:300]))


if __name__ == "__main__":
    main()
