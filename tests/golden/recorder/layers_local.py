# SPDX-License-Identifier: Apache-2.0
"""Cases: LocallyConnected1D and 2D; with the kernels of implementations 2 and 3, which came with tf.keras."""
import numpy as np
import tensorflow as tf
from tensorflow.python.keras.layers import local
from tensorflow.python.keras.utils import conv_utils as tf_conv_utils

from .layers_core import GROUP, stack
from .model_case import record
from .session import K, keras

L = keras.layers
OPTIONS = dict(bias_regularizer="l2", activity_regularizer="l1", bias_constraint="max_norm",
               bias_initializer="random_uniform")


def kernel_options():
    """Penalty and constraint of a kernel; constraints are objects of their session."""
    return dict(OPTIONS, kernel_regularizer=keras.regularizers.l1_l2(0.01, 0.02), kernel_constraint="max_norm")


def as_tf_keras(base, class_name, spatial):
    """The layer of Keras 2.3.1 with tf.keras's weights and products for implementations 1, 2 and 3."""
    class Layer(base):
        def __init__(self, *args, **kwargs):
            self.implementation = kwargs.pop("implementation")
            padding = kwargs.pop("padding", "valid")
            super(Layer, self).__init__(*args, **kwargs)
            self.padding = padding

        def get_config(self):
            config = super(Layer, self).get_config()
            if self.implementation != 1:
                config["implementation"] = self.implementation
            if self.data_format != "channels_last" or spatial == 2:
                config["data_format"] = self.data_format
            return config

        def sizes(self, shape):
            first = self.data_format == "channels_first"
            sides, channels = (shape[2:], shape[1]) if first else (shape[1:-1], shape[-1])
            outs = tuple(tf_conv_utils.conv_output_length(n, k, self.padding, s)
                         for n, k, s in zip(sides, self.kernel_size, self.strides))
            return tuple(sides), channels, outs

        def compute_output_shape(self, input_shape):
            outs = self.sizes(input_shape)[2]
            first = self.data_format == "channels_first"
            return (input_shape[0],) + ((self.filters,) + outs if first else outs + (self.filters,))

        def build(self, input_shape):
            sides, channels, outs = self.sizes(input_shape)
            first = self.data_format == "channels_first"
            places, taps = int(np.prod(outs)), int(np.prod(self.kernel_size))
            window = dict(input_shape=sides, kernel_shape=self.kernel_size, strides=self.strides,
                          padding=self.padding, data_format=self.data_format)
            if self.implementation == 1:
                shape = (places, taps * channels, self.filters)
            elif self.implementation == 2:
                shape = (channels,) + sides + (self.filters,) + outs if first else \
                    sides + (channels,) + outs + (self.filters,)
                self.mask = local.get_locallyconnected_mask(**window)
            else:
                self.indices = sorted(tf_conv_utils.conv_kernel_idxs(
                    filters_in=channels, filters_out=self.filters, **window))
                self.dense_shape = (places * self.filters, int(np.prod(sides)) * channels)
                shape = (len(self.indices),)
            self.kernel = self.add_weight(shape=shape, initializer=self.kernel_initializer, name="kernel")
            self.bias = None
            if self.use_bias:
                self.bias = self.add_weight(shape=outs + (self.filters,), initializer="zeros", name="bias")
            self.built = True

        def call(self, inputs):
            out_shape = tf.TensorShape(self.compute_output_shape(K.int_shape(inputs)))
            if self.implementation == 1:
                from tensorflow.python.keras import backend
                outs = self.sizes(K.int_shape(inputs))[2]
                y = backend.local_conv(inputs, self.kernel, self.kernel_size, self.strides, outs, self.data_format)
            elif self.implementation == 2:
                y = local.local_conv_matmul(inputs, self.kernel, self.mask, out_shape)
            else:
                y = local.local_conv_sparse_matmul(inputs, self.kernel, self.indices, self.dense_shape, out_shape)
            if self.use_bias:
                y = K.bias_add(y, self.bias, data_format=self.data_format)
            return self.activation(y)

    Layer.__name__ = class_name
    return Layer


def cases(root, spatial):
    """The layer of one or two axes."""
    class_name = "LocallyConnected%dD" % spatial
    prefix = class_name.lower()
    plain = getattr(L, class_name)
    front = L.Conv1D if spatial == 1 else L.Conv2D

    def case(name, shape, *args, **kwargs):
        notes = ""
        kind = plain
        first = kwargs.get("data_format")
        if kwargs.get("implementation") or (spatial == 1 and first):
            kind = as_tf_keras(plain, class_name, spatial)
            kwargs.setdefault("implementation", 1)
            notes = "tf.keras's layer; 2.3.1 has implementation 1 alone, and no data_format of one axis"
        record(root, GROUP, "%s_%s" % (prefix, name), class_name,
               stack(shape, lambda: front(2, 1, data_format=first), lambda: kind(*args, **dict(kwargs)),
                     lambda: front(2, 1, data_format=first)), batch=2, notes=notes)

    shape = (6, 2) if spatial == 1 else (4, 5, 2)
    turned = shape[-1:] + shape[:-1]
    rect = 2 if spatial == 1 else (2, 3)
    case("valid", shape, 3, 3)
    case("strides", shape, 2, 2, strides=2)
    case("rect", shape, 3, rect, activation="tanh", use_bias=False)
    case("whole", shape, 2, shape[:-1])
    case("1", shape, 2, 1, activation="softmax")
    case("everything", shape, 2, 2, **kernel_options())
    case("channels_first", turned, 3, rect, data_format="channels_first")
    case("channels_first_softmax", turned, 3, 2, strides=2, data_format="channels_first", activation="softmax")
    for implementation in (2, 3):
        tag = "implementation%d" % implementation
        case(tag, shape, 3, rect, implementation=implementation)
        case(tag + "_strides", shape, 2, 2, strides=2, implementation=implementation, use_bias=False)
        case(tag + "_channels_first", turned, 3, rect, implementation=implementation, activation="tanh",
             data_format="channels_first")
    small = shape if spatial == 1 else (3, 4, 2)
    turned = small[-1:] + small[:-1]
    case("implementation2_same", small, 2, 3, padding="same", implementation=2)
    case("implementation2_same_even", small, 2, 2, strides=3, padding="same", implementation=2)
    case("implementation2_same_first", turned, 2, 4, strides=2, padding="same", implementation=2,
         data_format="channels_first")


def run(root):
    """Records all cases of this module."""
    cases(root, 1)
    cases(root, 2)
