# SPDX-License-Identifier: Apache-2.0
"""Cases: element-wise layers: activations with parameters, merging, noise, penalties of activities."""
import numpy as np

from .layers_core import GROUP, stack
from .model_case import record
from .session import keras

L = keras.layers


def rectifiers(root):
    """LeakyReLU, ELU, ThresholdedReLU, ReLU with each argument; inputs that lie on the threshold too."""
    cases = {
        "leakyrelu": lambda: L.LeakyReLU(),
        "leakyrelu_alpha": lambda: L.LeakyReLU(alpha=0.05),
        "leakyrelu_zero": lambda: L.LeakyReLU(alpha=0.0),
        "elu": lambda: L.ELU(),
        "elu_alpha": lambda: L.ELU(alpha=0.3),
        "thresholdedrelu": lambda: L.ThresholdedReLU(),
        "thresholdedrelu_theta": lambda: L.ThresholdedReLU(theta=0.25),
        "thresholdedrelu_zero": lambda: L.ThresholdedReLU(theta=0.0),
        "relu": lambda: L.ReLU(),
        "relu_max": lambda: L.ReLU(max_value=1.0),
        "relu_six": lambda: L.ReLU(max_value=6.0),
        "relu_slope": lambda: L.ReLU(negative_slope=0.1),
        "relu_threshold": lambda: L.ReLU(threshold=0.5),
        "relu_slope_threshold": lambda: L.ReLU(negative_slope=0.2, threshold=0.5),
        "relu_all": lambda: L.ReLU(max_value=1.5, negative_slope=0.1, threshold=0.5),
        "relu_negative_threshold": lambda: L.ReLU(threshold=-0.5),
        "relu_negative_threshold_max": lambda: L.ReLU(max_value=1.0, threshold=-0.5),
        "relu_negative_threshold_all": lambda: L.ReLU(max_value=1.0, negative_slope=0.2, threshold=-0.5),
    }
    for name, make in cases.items():
        record(root, GROUP, "layer_" + name, make().__class__.__name__,
               stack((5,), lambda: L.Dense(6), make, lambda: L.Dense(3)), input_scale=2.0, batch=4)
    edges = np.array([[-1.0, -0.5, 0.0, 0.5], [1.0, 1.5, 2.0, -0.25], [0.25, 0.75, 6.0, 7.0]], "float32")
    for name in ("leakyrelu", "elu_alpha", "thresholdedrelu", "relu_threshold", "relu_all",
                 "relu_negative_threshold_all"):
        record(root, GROUP, "layer_%s_edges" % name, cases[name]().__class__.__name__,
               stack((4,), cases[name]), inputs=[edges], train=False)


def softmax(root):
    """Softmax over every axis; for a matrix, Keras always uses the last axis."""
    def case(name, shape, axis, loss="mean_squared_error", targets="normal"):
        record(root, GROUP, "layer_softmax_" + name, "Softmax",
               stack(shape, lambda: L.Dense(4), lambda: L.Softmax(axis=axis)), input_scale=2.0,
               loss=loss, targets=targets)
    case("matrix", (5,), -1, "categorical_crossentropy", "onehot")
    case("matrix_axis1", (5,), 1)
    case("rank3", (3, 2), -1)
    case("rank3_axis1", (3, 2), 1)
    case("rank4_axis2", (2, 3, 2), 2)
    case("rank4_axis_minus3", (2, 3, 2), -3)


def prelu(root):
    """PReLU on ranks 2 to 4, shared axes, its penalties."""
    def case(name, shape, *layers):
        record(root, GROUP, "prelu" + name, "PReLU", stack(shape, *layers), input_scale=2.0, batch=4)
    case("", (5,), lambda: L.Dense(6), lambda: L.PReLU(), lambda: L.Dense(3))
    case("_rank3_shared", (3, 4), lambda: L.Dense(3), lambda: L.PReLU(shared_axes=[1]))
    case("_rank4", (3, 2, 2), lambda: L.Conv2D(2, 1), lambda: L.PReLU(), lambda: L.Conv2D(2, 1))
    case("_rank4_shared", (3, 2, 2), lambda: L.Conv2D(3, 1), lambda: L.PReLU(shared_axes=[1, 2]),
         lambda: L.Conv2D(2, 1))
    case("_all_shared", (3, 2), lambda: L.PReLU(shared_axes=[1, 2]), lambda: L.Dense(2))
    case("_regularized", (4,), lambda: L.Dense(4), lambda: L.PReLU(
        alpha_initializer="glorot_uniform", alpha_regularizer="l2",
        alpha_constraint=keras.constraints.NonNeg()))


def merging(root):
    """Subtract, Multiply, Average, Maximum, Minimum: two and three inputs, broadcast, of several ranks."""
    def merged(shapes, merge, head):
        def build():
            inputs = [L.Input(s) for s in shapes]
            branches = [L.Dense(s[-1], activation="tanh")(x) for s, x in zip(shapes, inputs)]
            y = merge()(branches)
            return keras.Model(inputs, L.Dense(2)(y) if head else y)
        return build
    kinds = {k.__name__.lower(): k for k in (L.Subtract, L.Multiply, L.Average, L.Maximum, L.Minimum)}
    for name, kind in kinds.items():
        def case(suffix, shapes, head=True, name=name, kind=kind):
            record(root, GROUP, name + suffix, kind.__name__, merged(shapes, kind, head))
        case("", [(4,), (4,)])
        case("_broadcast", [(3, 4), (1, 4)])
        case("_ranks", [(2, 3, 4), (3, 4)], False)
        if kind is not L.Subtract:
            case("_three", [(3, 4), (3, 4), (3, 4)])
            case("_three_ranks", [(4,), (3, 1), (2, 3, 4)])
    record(root, GROUP, "add_ranks", "Add", merged([(2, 3, 4), (4,)], L.Add, True))

    def itself(kind):
        def build():
            x = L.Input((4,))
            y = L.Dense(3, activation="tanh")(x)
            return keras.Model(x, L.Dense(2)(kind()([y, y])))
        return build
    record(root, GROUP, "multiply_same_twice", "Multiply", itself(L.Multiply))


def dot(root):
    """Dot: all axes of ranks 2 to 4, given as one number or two, also with normalize."""
    def case(name, shapes, axes, normalize=False, **options):
        def build():
            inputs = [L.Input(s) for s in shapes]
            branches = [L.Dense(s[-1], activation="tanh")(x) for s, x in zip(shapes, inputs)]
            return keras.Model(inputs, L.Dense(2)(L.Dot(axes, normalize=normalize)(branches)))
        record(root, GROUP, "dot" + name, "Dot", build, **options)
    case("", [(4,), (4,)], 1)
    case("_minus1", [(4,), (4,)], -1)
    case("_normalize", [(4,), (4,)], 1, True)
    case("_rank3", [(3, 4), (2, 4)], 2)
    case("_rank3_axis1", [(3, 4), (3, 2)], 1)
    case("_rank3_axes", [(3, 4), (4, 2)], (2, 1))
    case("_rank3_axes_12", [(4, 3), (2, 4)], [1, 2])
    case("_rank3_negative", [(3, 4), (4, 2)], (-1, -2))
    case("_rank3_normalize", [(3, 4), (2, 4)], 2, True)
    case("_rank2_rank3", [(4,), (3, 4)], (1, 2))
    case("_rank3_rank2", [(4, 3), (4,)], (1, 1))
    case("_rank4_rank3", [(2, 3, 4), (3, 2)], (2, 1))
    case("_rank4_normalize", [(2, 3, 2), (2, 2, 3)], (3, 1), True)


def repeat_vector(root):
    """RepeatVector."""
    record(root, GROUP, "repeatvector", "RepeatVector",
           stack((5,), lambda: L.Dense(4), lambda: L.RepeatVector(3), lambda: L.Dense(2)))


def activity_regularization(root):
    """ActivityRegularization: each factor, on ranks 2 and 3."""
    for name, shape, factors in (("l1", (5,), dict(l1=0.02)), ("l2", (5,), dict(l2=0.03)),
                                 ("both_rank3", (3, 4), dict(l1=0.01, l2=0.02)), ("none", (5,), dict())):
        record(root, GROUP, "activityregularization_" + name, "ActivityRegularization",
               stack(shape, lambda: L.Dense(4), lambda: L.ActivityRegularization(**factors),
                     lambda: L.Dense(2)))


def noise(root):
    """Random layers do nothing in predict; with a rate of 0 they do nothing in training, either."""
    def case(name, shape, make, train=False):
        record(root, GROUP, name, make().__class__.__name__,
               stack(shape, lambda: L.Dense(4), make, lambda: L.Dense(2)), train=train)
    case("spatialdropout1d_predict", (3, 4), lambda: L.SpatialDropout1D(0.5))
    case("spatialdropout2d_predict", (2, 3, 4), lambda: L.SpatialDropout2D(0.5, seed=3))
    case("spatialdropout3d_predict", (2, 2, 3, 4), lambda: L.SpatialDropout3D(0.5))
    case("spatialdropout2d_zero", (2, 3, 4), lambda: L.SpatialDropout2D(0.0), True)
    case("gaussiannoise_predict", (5,), lambda: L.GaussianNoise(0.5))
    case("gaussiandropout_predict", (5,), lambda: L.GaussianDropout(0.25))
    case("gaussiandropout_zero", (5,), lambda: L.GaussianDropout(0.0), True)
    case("alphadropout_predict", (5,), lambda: L.AlphaDropout(0.3))
    case("alphadropout_zero", (5,), lambda: L.AlphaDropout(0.0), True)


def run(root):
    """Records all cases of this module."""
    for part in (rectifiers, softmax, prelu, merging, dot, repeat_vector, activity_regularization, noise):
        part(root)
