# SPDX-License-Identifier: Apache-2.0
"""Cases: convolutions and pooling, both paddings, strides, dilation, both data formats."""
from .layers_core import GROUP, stack
from .model_case import record
from .session import keras

L = keras.layers
FIRST = "channels_first on a CPU: Keras transposes around a channels_last kernel"


def conv(root):
    """Conv2D.  An even kernel or a stride makes 'same' padding uneven: the extra row is at the end."""
    def case(name, shape, *args, **kwargs):
        notes = kwargs.pop("notes", "")
        tail = kwargs.pop("tail", True)
        layers = [lambda: L.Conv2D(*args, **kwargs)]
        if tail:
            layers.append(lambda: L.Conv2D(2, 1, data_format=kwargs.get("data_format")))
        record(root, GROUP, "conv2d_" + name, "Conv2D", stack(shape, *layers), notes=notes)

    case("valid", (5, 4, 2), 3, 3, tail=False)
    case("valid_rect", (5, 6, 2), 3, (2, 3))
    case("1x1", (3, 4, 2), 3, 1)
    for size in (1, 2, 3, 4, 5):
        case("same_k%d" % size, (5, 6, 2), 2, size, padding="same")
    for size in (1, 2, 3, 4, 5):
        for stride in (2, 3):
            case("same_k%d_s%d" % (size, stride), (6, 7, 2), 2, size, strides=stride, padding="same")
    case("same_rect_strides", (6, 7, 2), 3, (3, 2), strides=(2, 1), padding="same")
    case("valid_k2_s2", (5, 6, 2), 2, 2, strides=2)
    case("valid_k3_s2", (6, 7, 2), 2, 3, strides=(2, 2))
    case("valid_rect_strides", (6, 7, 2), 2, (2, 3), strides=(1, 3))
    case("valid_dilation2", (7, 6, 2), 2, 3, dilation_rate=2)
    case("same_dilation2", (6, 7, 2), 2, 3, dilation_rate=2, padding="same")
    case("same_dilation_even", (6, 5, 2), 2, 2, dilation_rate=(2, 3), padding="same")
    case("valid_dilation_rect", (7, 8, 1), 2, (3, 2), dilation_rate=(2, 3))
    case("no_bias", (4, 4, 2), 2, 2, use_bias=False)
    case("relu", (5, 5, 2), 3, 3, activation="relu", padding="same")
    case("big_kernel_same", (2, 3, 1), 2, 5, padding="same")
    for data in (dict(padding="valid"), dict(padding="same", strides=2), dict(dilation_rate=2)):
        name = "channels_first_" + "_".join(sorted(data))
        case(name, (2, 6, 5), 3, 3, data_format="channels_first", notes=FIRST, **data)


def depthwise(root):
    """DepthwiseConv2D: multiplier, strides, padding."""
    def case(name, shape, *args, **kwargs):
        record(root, GROUP, "depthwise_" + name, "DepthwiseConv2D",
               stack(shape, lambda: L.DepthwiseConv2D(*args, **kwargs),
                     lambda: L.Conv2D(2, 1, data_format=kwargs.get("data_format"))),
               notes=FIRST if "data_format" in kwargs else "")

    for multiplier in (1, 2):
        for padding in ("valid", "same"):
            for stride in (1, 2):
                case("m%d_%s_s%d" % (multiplier, padding, stride), (6, 5, 3), 3, strides=stride,
                     padding=padding, depth_multiplier=multiplier)
    case("even_same_s2", (6, 5, 2), (2, 4), strides=2, padding="same", depth_multiplier=2)
    case("m3_one_channel", (4, 5, 1), 2, depth_multiplier=3)
    case("no_bias_relu", (4, 5, 2), 2, use_bias=False, activation="relu")
    case("channels_first", (2, 5, 4), 3, padding="same", depth_multiplier=2,
         data_format="channels_first")
    case("channels_first_s2", (2, 5, 4), 2, strides=2, data_format="channels_first")
    record(root, GROUP, "depthwise_regularized", "DepthwiseConv2D",
           stack((4, 4, 2), lambda: L.DepthwiseConv2D(
               2, depthwise_regularizer="l2", bias_regularizer="l1", activity_regularizer="l2",
               depthwise_constraint=keras.constraints.MaxNorm(0.6, axis=[0, 1, 2]),
               bias_constraint="non_neg")))


def pooling(root):
    """Max and average pooling: windows that overlap, skip, or hang over the edge."""
    cases = {
        "default": dict(),
        "rect": dict(pool_size=(3, 2)),
        "overlap": dict(pool_size=3, strides=2),
        "overlap_stride1": dict(pool_size=2, strides=1),
        "skip": dict(pool_size=2, strides=3),
        "same": dict(pool_size=2, padding="same"),
        "same_overlap": dict(pool_size=3, strides=2, padding="same"),
        "same_stride1": dict(pool_size=3, strides=1, padding="same"),
        "same_rect": dict(pool_size=(2, 4), strides=(3, 2), padding="same"),
        "same_whole": dict(pool_size=9, padding="same"),
        "channels_first": dict(pool_size=2, padding="same", data_format="channels_first"),
        "channels_first_valid": dict(pool_size=(3, 2), strides=2, data_format="channels_first"),
    }
    for prefix in ("Max", "Average"):
        kind = getattr(L, prefix + "Pooling2D")
        for name, config in cases.items():
            first = config.get("data_format")
            shape = (2, 7, 5) if first else (7, 5, 2)
            record(root, GROUP, "%spooling2d_%s" % (prefix.lower(), name), prefix + "Pooling2D",
                   stack(shape, lambda: L.Conv2D(2, 1, data_format=first), lambda: kind(**config),
                         lambda: L.Conv2D(2, 1, data_format=first)), notes=FIRST if first else "")


def global_pooling(root):
    """Global pooling over both data formats."""
    for prefix in ("Max", "Average"):
        kind = getattr(L, "Global%sPooling2D" % prefix)
        for first in (None, "channels_first"):
            name = "global%spooling2d%s" % (prefix.lower(), "_" + first if first else "")
            record(root, GROUP, name, "Global%sPooling2D" % prefix,
                   stack((3, 4, 2) if not first else (2, 3, 4),
                         lambda: L.Conv2D(3, 1, data_format=first), lambda: kind(data_format=first),
                         lambda: L.Dense(2)), notes=FIRST if first else "")


def networks(root):
    """Several layers together, as in a usual network for MNIST."""
    def cnn():
        return stack((8, 8, 1), lambda: L.Conv2D(3, 3, activation="relu"),
                     lambda: L.Conv2D(4, 3, activation="relu"), lambda: L.MaxPooling2D(2),
                     lambda: L.Flatten(), lambda: L.Dense(5, activation="relu"),
                     lambda: L.Dense(3, activation="softmax"))()
    record(root, GROUP, "network_cnn", "Sequential", cnn, targets="onehot",
           loss="categorical_crossentropy", metrics=["accuracy"])

    def residual():
        x = L.Input((6, 6, 2))
        y = L.Conv2D(4, 3, padding="same", use_bias=False)(x)
        y = L.Activation("relu")(L.BatchNormalization()(y))
        z = L.Conv2D(4, 3, padding="same", use_bias=False)(y)
        z = L.BatchNormalization()(z)
        y = L.Activation("relu")(L.Add()([y, z]))
        y = L.DepthwiseConv2D(3, strides=2, padding="same", use_bias=False)(y)
        y = L.GlobalAveragePooling2D()(L.BatchNormalization()(y))
        return keras.Model(x, L.Dense(3, activation="softmax")(y))
    record(root, GROUP, "network_residual", "Model", residual, targets="onehot", batch=4,
           loss="categorical_crossentropy", metrics=["accuracy"])


def run(root):
    """Records all cases of this module."""
    for part in (conv, depthwise, pooling, global_pooling, networks):
        part(root)
