# SPDX-License-Identifier: Apache-2.0
"""Cases: penalties, constraints, weights of samples and classes, and models that are graphs."""
from .layers_core import GROUP, stack
from .model_case import record
from .session import keras

L = keras.layers
R = keras.regularizers
C = keras.constraints


def regularizers(root):
    """l1, l2, l1_l2 on kernel, bias and output; an activity penalty is a plain sum over the batch."""
    for name, make in {"l1": lambda: R.l1(0.02), "l2": lambda: R.l2(0.03),
                       "l1_l2": lambda: R.l1_l2(0.01, 0.02)}.items():
        for place in ("kernel", "bias", "activity"):
            key = "%s_regularizer" % place
            record(root, GROUP, "dense_%s_%s" % (place, name), "Dense",
                   stack((4,), lambda: L.Dense(5, activation="tanh", **{key: make()}), lambda: L.Dense(2)))
        record(root, GROUP, "conv2d_%s" % name, "Conv2D",
               stack((4, 4, 2), lambda: L.Conv2D(2, 3, padding="same", kernel_regularizer=make(),
                                                 bias_regularizer=make(), activity_regularizer=make())))
    record(root, GROUP, "dense_regularizer_names", "Dense",
           stack((4,), lambda: L.Dense(3, kernel_regularizer="l1", bias_regularizer="l2",
                                       activity_regularizer="l1_l2")))

    def shared():
        a, b = L.Input((4,)), L.Input((4,))
        layer = L.Dense(3, kernel_regularizer=R.l2(0.05), activity_regularizer=R.l1(0.02))
        return keras.Model([a, b], L.Add()([layer(a), layer(b)]))
    record(root, GROUP, "shared_regularized", "Dense", shared,
           notes="a weight penalty counts once, an activity penalty once per call")

    def nested():
        inner = keras.Sequential([L.Dense(3, input_shape=(4,), kernel_regularizer=R.l2(0.05),
                                          activity_regularizer=R.l1(0.02))])
        x = L.Input((4,))
        return keras.Model(x, L.Dense(2)(inner(x)))
    record(root, GROUP, "nested_regularized", "Sequential", nested)
    record(root, GROUP, "not_trainable_regularized", "Dense",
           stack((4,), lambda: L.Dense(3, trainable=False, kernel_regularizer=R.l2(0.05)),
                 lambda: L.Dense(2)))


def constraints(root):
    """Each constraint on Dense and Conv2D kernels, with axes and rate; applied after the update."""
    table = {
        "maxnorm": lambda axis: C.MaxNorm(0.7, axis=axis),
        "nonneg": lambda axis: C.NonNeg(),
        "unitnorm": lambda axis: C.UnitNorm(axis=axis),
        "minmaxnorm": lambda axis: C.MinMaxNorm(0.5, 0.8, axis=axis),
        "minmaxnorm_rate": lambda axis: C.MinMaxNorm(0.6, 0.9, rate=0.3, axis=axis),
    }
    for name, make in table.items():
        axes = [0] if name == "nonneg" else [0, 1]
        for axis in axes:
            record(root, GROUP, "dense_%s_axis%d" % (name, axis), "Dense",
                   stack((4,), lambda: L.Dense(3, kernel_constraint=make(axis), bias_constraint=make(0))))
        record(root, GROUP, "conv2d_%s" % name, "Conv2D",
               stack((4, 4, 2), lambda: L.Conv2D(3, 2, kernel_constraint=make([0, 1, 2]),
                                                 bias_constraint=make(0))))
    record(root, GROUP, "dense_constraint_names", "Dense",
           stack((4,), lambda: L.Dense(3, kernel_constraint="max_norm", bias_constraint="non_neg")),
           weights_scale=4.0)


def weighting(root):
    """Weights of samples, of time steps, of classes, of outputs."""
    def net():
        return stack((4,), lambda: L.Dense(5, activation="tanh"), lambda: L.Dense(3, activation="softmax"))()
    crossentropy = dict(loss="categorical_crossentropy", targets="onehot", metrics=["accuracy"],
                        weighted_metrics=["accuracy"])
    record(root, GROUP, "sample_weight", "Sequential", net, sample_weight=True, batch=4, **crossentropy)
    record(root, GROUP, "class_weight", "Sequential", net, class_weight={0: 0.5, 1: 2.0, 2: 1.5}, batch=4,
           **crossentropy)
    record(root, GROUP, "class_and_sample_weight", "Sequential", net, sample_weight=True,
           class_weight={0: 0.5, 1: 2.0, 2: 1.5}, batch=4, **crossentropy)
    record(root, GROUP, "class_weight_sparse", "Sequential", net, batch=4, targets="sparse",
           loss="sparse_categorical_crossentropy", class_weight={0: 0.5, 1: 2.0, 2: 1.5})
    record(root, GROUP, "sample_weight_mse", "Dense", stack((4,), lambda: L.Dense(3)), sample_weight=True,
           batch=4, metrics=["mae"], weighted_metrics=["mae"])
    steps = stack((4, 3), lambda: L.LSTM(3, return_sequences=True), lambda: L.Dense(2))
    record(root, GROUP, "sample_weight_rank3", "Dense", steps, sample_weight=True)
    record(root, GROUP, "sample_weight_temporal", "Dense", steps, sample_weight=True,
           sample_weight_mode="temporal", weighted_metrics=["mse"])


def outputs(root):
    """Several inputs and outputs, a loss for each."""
    def two_heads():
        a, b = L.Input((4,), name="left"), L.Input((3,), name="right")
        y = L.Concatenate()([L.Dense(3, activation="tanh")(a), L.Dense(2, activation="tanh")(b)])
        return keras.Model([a, b], [L.Dense(3, activation="softmax", name="kind")(y),
                                    L.Dense(1, name="size")(y)])
    record(root, GROUP, "two_outputs", "Model", two_heads, batch=4, targets=["onehot", "normal"],
           loss=["categorical_crossentropy", "mse"], metrics={"kind": ["accuracy"], "size": ["mae", "mse"]})
    record(root, GROUP, "two_outputs_loss_weights", "Model", two_heads, batch=4,
           targets=["onehot", "normal"], loss={"kind": "categorical_crossentropy", "size": "mse"},
           loss_weights={"kind": 0.3, "size": 2.0}, sample_weight=True, metrics=["mae"])
    record(root, GROUP, "two_outputs_loss_weights_list", "Model", two_heads, batch=4,
           targets=["normal", "normal"], loss="mae", loss_weights=[0.5, 1.5])

    def steps_and_sample():
        x = L.Input((3, 4), name="x")
        each = L.Dense(2, name="each")(x)
        return keras.Model(x, [L.Dense(3, activation="softmax", name="kind")(L.Flatten()(x)), each])
    weighted = dict(batch=4, targets=["onehot", "normal"], loss=["categorical_crossentropy", "mae"],
                    sample_weight=True)
    record(root, GROUP, "two_outputs_modes_list", "Model", steps_and_sample,
           sample_weight_mode=[None, "temporal"], metrics=[["accuracy"], ["mae", "mse"]],
           weighted_metrics=[["accuracy"], ["mae"]], **weighted)
    record(root, GROUP, "two_outputs_modes_dict", "Model", steps_and_sample,
           sample_weight_mode={"kind": None, "each": "temporal"}, weighted_metrics={"each": "mse"},
           loss_weights=[1.0, 0.25], **weighted)

    def input_is_output():
        x = L.Input((4,))
        y = L.Dense(3, activation="tanh")(x)
        return keras.Model(x, [y, L.Dense(2)(y)])
    record(root, GROUP, "inner_output", "Model", input_is_output)


def graphs(root):
    """Shared layers, nested models, frozen parts."""
    def siamese():
        a, b = L.Input((4,)), L.Input((4,))
        shared = keras.Sequential([L.Dense(5, activation="tanh", input_shape=(4,)), L.Dense(3)])
        return keras.Model([a, b], L.Dense(2)(L.Concatenate()([shared(a), shared(b)])))
    record(root, GROUP, "shared_nested", "Model", siamese)

    def nested_functional():
        x = L.Input((6, 6, 1))
        y = L.BatchNormalization()(L.Conv2D(2, 3)(x))
        inner = keras.Model(x, [L.MaxPooling2D()(y), L.GlobalAveragePooling2D()(y)], name="features")
        x = L.Input((6, 6, 1))
        p, q = inner(x)
        return keras.Model(x, L.Dense(2)(L.Concatenate()([L.Flatten()(p), q])))
    record(root, GROUP, "nested_functional", "Model", nested_functional)

    def nested_twice():
        inner = keras.Sequential([L.Dense(3, activation="tanh", input_shape=(4,))], name="inner")
        outer = keras.Sequential([inner, L.Dense(4)], name="outer")
        return keras.Sequential([outer, L.Dense(2)])
    record(root, GROUP, "nested_sequential", "Sequential", nested_twice)

    def nested_batchnorm(frozen=None):
        def build():
            inner = keras.Sequential([L.Dense(3, input_shape=(4,)), L.BatchNormalization(),
                                      L.Dense(3, activation="tanh")])
            if frozen is not None:
                inner.layers[frozen].trainable = False
            return keras.Sequential([inner, L.Dense(2)])
        return build
    order = "a nested model lists its trainable weights first, so freezing a layer changes the order"
    record(root, GROUP, "nested_batchnorm", "Sequential", nested_batchnorm(), batch=4, notes=order)
    record(root, GROUP, "nested_frozen", "Sequential", nested_batchnorm(0), batch=4, notes=order)

    def frozen(which):
        def build():
            model = stack((4,), lambda: L.Dense(5, activation="tanh"), lambda: L.Dense(4, activation="tanh"),
                          lambda: L.Dense(2))()
            model.layers[which].trainable = False
            return model
        return build
    record(root, GROUP, "not_trainable_first", "Dense", frozen(0))
    record(root, GROUP, "not_trainable_middle", "Dense", frozen(1))

    def shared_twice_in_chain():
        x = L.Input((4,))
        layer = L.Dense(4, activation="tanh")
        return keras.Model(x, L.Dense(2)(layer(layer(x))))
    record(root, GROUP, "shared_in_chain", "Dense", shared_twice_in_chain)


def other_rank(root):
    """A nested model that is called on another rank than it was built for, like the generator of Keras's ACGAN."""
    def generator():
        inner = keras.Sequential([L.Dense(8, input_dim=3, activation="relu"), L.Reshape((2, 2, 2)),
                                  L.Conv2D(2, 2, padding="same", activation="tanh")])
        latent, number = L.Input((3,)), L.Input((1,))
        scale = L.Dense(3)(L.Reshape((1, 1))(number))
        return keras.Model([latent, number], inner(L.Multiply()([latent, scale])))
    record(root, GROUP, "nested_other_rank", "Sequential", generator)


def scaled_sum(root):
    """The Lambda of keras.applications' InceptionResNetV2."""
    def block():
        a, b = L.Input((3, 3, 2)), L.Input((3, 3, 2))
        x = L.Conv2D(2, 1, use_bias=False)(b)
        x = L.Lambda(lambda inputs, scale: inputs[0] + inputs[1] * scale, output_shape=(3, 3, 2),
                     arguments={"scale": 0.17}, name="block")([a, x])
        return keras.Model([a, b], L.Activation("relu")(x))
    record(root, GROUP, "lambda_scaled_sum", "Lambda", block)


def run(root):
    """Records all cases of this module."""
    for part in (regularizers, constraints, weighting, outputs, graphs):
        part(root)
    other_rank(root)
    scaled_sum(root)
