# SPDX-License-Identifier: Apache-2.0
"""Cases: Dense, Activation, shape layers, merging layers, normalisation, Dropout, ZeroPadding2D."""
from .model_case import record
from .session import keras

L = keras.layers
GROUP = "layers"

ACTIVATIONS = ["softmax", "elu", "selu", "softplus", "softsign", "relu", "tanh", "sigmoid",
               "hard_sigmoid", "exponential", "linear"]


def stack(shape, *layers, batch=None):
    """A Sequential model from functions that make its layers (after the session is cleared).

    The first layer has the input shape, because 2.3.1 does not write the InputLayer of a Sequential."""
    def build():
        made = [make() for make in layers]
        made[0].batch_input_shape = (batch,) + shape
        return keras.Sequential(made)
    return build


def dense(root):
    """Dense on ranks 2, 3 and 4, and without bias."""
    def case(name, shape, make, **options):
        record(root, GROUP, name, "Dense", stack(shape, *make), **options)

    case("dense", (5,), [lambda: L.Dense(4)])
    case("dense_no_bias", (5,), [lambda: L.Dense(4, use_bias=False)])
    case("dense_relu_stack", (5,), [lambda: L.Dense(6, activation="relu"), lambda: L.Dense(3)])
    case("dense_tanh_sigmoid", (4,), [lambda: L.Dense(5, activation="tanh"),
                                      lambda: L.Dense(2, activation="sigmoid")])
    case("dense_rank3", (4, 5), [lambda: L.Dense(3), lambda: L.Dense(2)])
    case("dense_rank4", (2, 3, 4), [lambda: L.Dense(3), lambda: L.Dense(2)])
    case("dense_one_unit", (1,), [lambda: L.Dense(1)])
    case("dense_batch1", (7,), [lambda: L.Dense(3, activation="tanh")], batch=1)


def activation(root):
    """Every activation of 2.3.1 after a Dense layer, on ranks 2 and 3, with inputs of some size."""
    for name in ACTIVATIONS:
        layers = [lambda: L.Dense(6), lambda name=name: L.Activation(name)]
        scale = 1.0 if name == "exponential" else 3.0
        record(root, GROUP, "activation_" + name, "Activation", stack((5,), *layers),
               input_scale=scale, batch=4)
        record(root, GROUP, "activation_%s_rank3" % name, "Activation", stack((4, 3), *layers),
               input_scale=scale)
    layers = [lambda: L.Conv2D(3, 1), lambda: L.Activation("softmax")]
    record(root, GROUP, "activation_softmax_rank4", "Activation", stack((2, 3, 2), *layers))


def shape_layers(root):
    """Flatten, Reshape, Permute: each after a layer with weights, so that gradients pass through."""
    def case(name, class_name, shape, *layers):
        record(root, GROUP, name, class_name, stack(shape, *layers))

    case("flatten", "Flatten", (2, 3, 4), lambda: L.Conv2D(2, 1), lambda: L.Flatten(),
         lambda: L.Dense(3))
    case("flatten_rank3", "Flatten", (3, 4), lambda: L.Dense(2), lambda: L.Flatten())
    case("flatten_channels_first", "Flatten", (2, 3, 4),
         lambda: L.Flatten(data_format="channels_first"), lambda: L.Dense(3))
    case("reshape", "Reshape", (6,), lambda: L.Dense(12), lambda: L.Reshape((3, 4)), lambda: L.Dense(2))
    case("reshape_inferred", "Reshape", (4, 3), lambda: L.Dense(4), lambda: L.Reshape((2, -1)),
         lambda: L.Dense(3))
    case("reshape_inferred_first", "Reshape", (12,), lambda: L.Reshape((-1, 2, 2)),
         lambda: L.Conv2D(2, 1))
    case("permute_21", "Permute", (3, 4), lambda: L.Dense(2), lambda: L.Permute((2, 1)),
         lambda: L.Dense(2))
    case("permute_312", "Permute", (2, 3, 4), lambda: L.Dense(3), lambda: L.Permute((3, 1, 2)),
         lambda: L.Dense(2))
    case("permute_132", "Permute", (2, 3, 4), lambda: L.Permute((1, 3, 2)), lambda: L.Dense(2))


def dropout(root):
    """Dropout and similar layers do nothing in predict; with a rate of 0 they do nothing in training, either."""
    record(root, GROUP, "dropout_predict", "Dropout",
           stack((5,), lambda: L.Dense(4), lambda: L.Dropout(0.5), lambda: L.Dense(2)), train=False)
    record(root, GROUP, "dropout_noise_shape_predict", "Dropout",
           stack((4, 3), lambda: L.Dense(4), lambda: L.Dropout(0.3, noise_shape=[None, 1, 4], seed=7)),
           train=False)
    record(root, GROUP, "dropout_rate_zero", "Dropout",
           stack((5,), lambda: L.Dense(4), lambda: L.Dropout(0.0), lambda: L.Dense(2)))


def batch_normalization(root):
    """BatchNormalization: axis, options, and the moving statistics after three steps."""
    def case(name, shape, *layers, **options):
        record(root, GROUP, name, "BatchNormalization", stack(shape, *layers), **options)

    bn = L.BatchNormalization
    case("batchnorm", (4,), lambda: L.Dense(5), lambda: bn(), lambda: L.Dense(2), batch=4)
    case("batchnorm_last", (3,), lambda: L.Dense(4), lambda: bn(), batch=5)
    case("batchnorm_rank3", (4, 3), lambda: L.Dense(3), lambda: bn(), lambda: L.Dense(2))
    case("batchnorm_rank4", (3, 4, 2), lambda: L.Conv2D(3, 1), lambda: bn(), lambda: L.Conv2D(2, 1))
    case("batchnorm_rank4_small_epsilon", (3, 4, 2), lambda: L.Conv2D(3, 1), lambda: bn(epsilon=1e-5),
         lambda: L.Conv2D(2, 1))
    case("batchnorm_axis1_rank4", (3, 2, 4), lambda: L.Conv2D(4, 1), lambda: bn(axis=1),
         lambda: L.Conv2D(2, 1))
    case("batchnorm_axis1_rank3", (3, 4), lambda: L.Dense(3), lambda: bn(axis=1), lambda: L.Dense(2))
    case("batchnorm_axis2_rank4", (2, 3, 4), lambda: L.Conv2D(2, 1), lambda: bn(axis=2),
         lambda: L.Conv2D(2, 1))
    for center in (True, False):
        for scale in (True, False):
            if center and scale:
                continue
            suffix = ("" if center else "_no_center") + ("" if scale else "_no_scale")
            case("batchnorm" + suffix, (4,), lambda: L.Dense(5),
                 lambda c=center, s=scale: bn(center=c, scale=s), lambda: L.Dense(2), batch=4)
            case("batchnorm_rank4" + suffix, (2, 3, 2), lambda: L.Conv2D(3, 1),
                 lambda c=center, s=scale: bn(center=c, scale=s), lambda: L.Conv2D(2, 1))
    case("batchnorm_momentum_epsilon", (4,), lambda: L.Dense(5), lambda: bn(momentum=0.5, epsilon=0.1),
         lambda: L.Dense(2), batch=4)
    case("batchnorm_momentum_epsilon_rank4", (2, 3, 2), lambda: L.Conv2D(3, 1),
         lambda: bn(momentum=0.5, epsilon=0.1), lambda: L.Conv2D(2, 1))
    case("batchnorm_first_layer", (4,), lambda: bn(), lambda: L.Dense(2), batch=6)
    case("batchnorm_first_layer_rank4", (2, 3, 2), lambda: bn(), lambda: L.Conv2D(2, 1))
    case("batchnorm_regularized", (4,), lambda: L.Dense(5),
         lambda: bn(gamma_regularizer="l2", beta_regularizer=keras.regularizers.l1(0.02),
                    gamma_constraint=keras.constraints.MaxNorm(1.5), beta_constraint="non_neg"),
         lambda: L.Dense(2), batch=4)
    case("batchnorm_not_trainable", (4,), lambda: L.Dense(5), lambda: bn(trainable=False),
         lambda: L.Dense(2), batch=4,
         notes="a frozen layer still normalises by the batch in training; its averages stay")


def zero_padding(root):
    """ZeroPadding2D: int, pair, nested pairs, both data formats."""
    paddings = {"int": 2, "pair": (1, 2), "nested": ((1, 0), (2, 3)), "nested_zero": ((0, 1), (0, 0))}
    for name, padding in paddings.items():
        record(root, GROUP, "zeropadding2d_" + name, "ZeroPadding2D",
               stack((3, 2, 2), lambda: L.Conv2D(2, 1), lambda p=padding: L.ZeroPadding2D(p),
                     lambda: L.Conv2D(2, 2)))
    record(root, GROUP, "zeropadding2d_channels_first", "ZeroPadding2D",
           stack((2, 3, 2), lambda: L.Dense(3),
                 lambda: L.ZeroPadding2D(((1, 0), (2, 1)), data_format="channels_first"),
                 lambda: L.Dense(2)))


def merging(root):
    """Add and Concatenate of two and three branches, with broadcasting in Add."""
    def merged(shape, units, merge, head=None):
        def build():
            x = L.Input(shape)
            branches = [L.Dense(u, activation="tanh")(x) for u in units]
            y = merge()(branches)
            return keras.Model(x, head()(y) if head else y)
        return build

    head = lambda: L.Dense(2)  # noqa: E731
    case = lambda name, kind, build: record(root, GROUP, name, kind, build)  # noqa: E731
    case("add", "Add", merged((4,), [3, 3], lambda: L.Add(), head))
    case("add_three", "Add", merged((3, 4), [2, 2, 2], lambda: L.Add(), head))
    case("concatenate", "Concatenate", merged((4,), [3, 2], lambda: L.Concatenate(), head))
    case("concatenate_rank4", "Concatenate", merged((2, 3, 2), [3, 1, 2], lambda: L.Concatenate(axis=-1)))
    case("concatenate_axis1", "Concatenate", merged((3, 4), [2, 2], lambda: L.Concatenate(axis=1), head))
    case("concatenate_axis2", "Concatenate",
         merged((2, 3, 2), [2, 2], lambda: L.Concatenate(axis=2), head))
    case("concatenate_axis_minus2", "Concatenate",
         merged((3, 4), [2, 2, 2], lambda: L.Concatenate(axis=-2), head))

    def same_twice():
        x = L.Input((4,))
        y = L.Dense(3, activation="tanh")(x)
        return keras.Model(x, L.Dense(2)(L.Concatenate()([L.Add()([y, y]), y])))
    case("add_same_twice", "Add", same_twice)

    def broadcast():
        a, b = L.Input((3, 4)), L.Input((1, 4))
        return keras.Model([a, b], L.Dense(2)(L.Add()([L.Dense(3)(a), L.Dense(3)(b)])))
    case("add_broadcast", "Add", broadcast)


def run(root):
    """Records all cases of this module."""
    for part in (dense, activation, shape_layers, dropout, batch_normalization, zero_padding, merging):
        part(root)
