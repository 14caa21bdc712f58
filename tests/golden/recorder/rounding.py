# SPDX-License-Identifier: Apache-2.0
"""Layers whose sums can be disturbed like rounding errors do: if K products are added one by one in float32, each
addition is rounded by up to 2^-24 of the sum so far, so that random errors add up to 2^-24 sqrt(K / 3).  Import this
module before models are made."""
import contextlib

import numpy as np
from keras.layers import convolutional, core

from .application_models import fan_in
from .session import K, tf

_SIZE = K.variable(0.0)
_seeds = iter(range(1, 1 << 30))


def _disturb(layer_class):
    call = layer_class.call

    def disturbed(self, inputs, **options):
        activation, self.activation = self.activation, None
        y = call(self, inputs, **options)
        self.activation = activation
        products = max(fan_in(w.name.split("/")[-1], K.int_shape(w)) for w in self.weights)
        size = tf.stop_gradient(_SIZE * float(np.sqrt(products / 3)) * K.sqrt(K.mean(K.square(y))))
        y = y + size * K.random_normal(K.shape(y), seed=next(_seeds))
        return y if activation is None else activation(y)
    layer_class.call = disturbed


for _class in (convolutional._Conv, convolutional._SeparableConv, convolutional.DepthwiseConv2D, core.Dense):
    _disturb(_class)


@contextlib.contextmanager
def at_random():
    """A context in which sums are disturbed."""
    K.set_value(_SIZE, 2.0**-24)
    try:
        yield
    finally:
        K.set_value(_SIZE, 0.0)
