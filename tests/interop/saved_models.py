# SPDX-License-Identifier: Apache-2.0
"""Models of current Keras for check_saved.py: every layer type that leat and Keras share, in small models.

Where a bias is followed by BatchNormalization, its gradient is 0 but for rounding; Adam would make whole steps of that, so
these models train with SGD."""
import keras
import numpy as np

L = keras.layers
LAYERS = {}


def model(function):
    """Registers a function that returns a model, or (model, arguments of compile)."""
    LAYERS[function.__name__] = function
    return function


def chain(shape, *layers, dtype="float32", batch_size=None):
    return keras.Sequential([keras.Input(shape, dtype=dtype, batch_size=batch_size)] + list(layers))


@model
def dense_all_options():
    return chain((5,), L.Dense(4, "relu", kernel_regularizer=keras.regularizers.L1L2(0.01, 0.02),
                               bias_regularizer=keras.regularizers.L2(0.1), activity_regularizer=keras.regularizers.L1(0.01),
                               kernel_constraint=keras.constraints.MaxNorm(1.5), bias_constraint=keras.constraints.NonNeg(),
                               kernel_initializer="he_normal", bias_initializer=keras.initializers.Constant(0.1)),
                 L.Dense(3, "gelu", use_bias=False, kernel_constraint=keras.constraints.MinMaxNorm(0.5, 1.0, 0.7, 0)),
                 L.Dense(2, kernel_initializer=keras.initializers.Orthogonal(0.5), kernel_constraint="unit_norm"))


@model
def initializers():
    names = [keras.initializers.RandomNormal(0.1, 0.2), keras.initializers.RandomUniform(-0.1, 0.2),
             keras.initializers.TruncatedNormal(0.1, 0.2), keras.initializers.LecunUniform(), keras.initializers.Identity(0.5),
             keras.initializers.VarianceScaling(2.0, "fan_avg", "untruncated_normal"), "ones", "zeros"]
    return chain((4,), *[L.Dense(4, kernel_initializer=i) for i in names], L.Dense(2))


@model
def activations():
    names = ["elu", "selu", "softplus", "softsign", "tanh", "sigmoid", "exponential", "hard_sigmoid", "linear", "silu",
             "gelu", "mish", "leaky_relu", "relu6", "log_softmax", "softmax"]
    return chain((4,), *[L.Dense(4, name) for name in names], L.Activation("hard_sigmoid"), L.Dense(2))


@model
def activation_layers():
    return chain((6, 4), L.LeakyReLU(negative_slope=0.2), L.ELU(0.7), L.PReLU(shared_axes=[1]), L.Dense(4),
                 L.ReLU(max_value=5.0, negative_slope=0.1, threshold=0.1), L.Softmax(axis=1), L.Flatten(), L.Dense(2))


@model
def convolutions():
    return chain((12, 12, 3), L.Conv2D(4, 3, strides=2, padding="same", activation="relu"),
                 L.DepthwiseConv2D(2, depth_multiplier=2), L.SeparableConv2D(4, 2, activation="tanh"),
                 L.Conv2DTranspose(3, 3, strides=2), L.Conv2D(4, 2, dilation_rate=2), L.GlobalAveragePooling2D(), L.Dense(2))


@model
def convolutions_1d():
    return chain((16, 3), L.Conv1D(4, 3, padding="causal", activation="relu"), L.SeparableConv1D(4, 3),
                 L.MaxPooling1D(2), L.UpSampling1D(2), L.ZeroPadding1D(1), L.Cropping1D((1, 2)), L.AveragePooling1D(2),
                 L.GlobalMaxPooling1D(), L.Dense(2))


@model
def later_convolutions():
    return chain((9, 3), L.Conv1DTranspose(4, 3, strides=2, padding="same", activation="relu"),
                 L.DepthwiseConv1D(3, depth_multiplier=2), L.RMSNormalization(), L.AdaptiveAveragePooling1D(5),
                 L.AdaptiveMaxPooling1D(2), L.Flatten(), L.Flatten(), L.Dense(2))


@model
def spectral_normalization():
    return chain((6, 6, 2), L.SpectralNormalization(L.Conv2D(3, 2)), L.Flatten(),
                 L.SpectralNormalization(L.Dense(4, "tanh"), power_iterations=2), L.Dense(2))


@model
def adaptive_pooling():
    return chain((7, 5, 3, 2), L.AdaptiveAveragePooling3D((4, 5, 2)), L.AdaptiveMaxPooling3D((4, 3, 2)), L.Reshape((12, 2, 2)),
                 L.AdaptiveMaxPooling2D((5, 2)), L.AdaptiveAveragePooling2D(2), L.RMSNormalization(),
                 L.Flatten(), L.Dense(2))


@model
def convolutions_3d():
    return chain((6, 6, 6, 2), L.Conv3D(3, 2), L.ZeroPadding3D(1), L.Cropping3D(1), L.MaxPooling3D(2), L.UpSampling3D(2),
                 L.Conv3DTranspose(2, 2), L.AveragePooling3D(2), L.GlobalAveragePooling3D(), L.Dense(2))


@model
def grouped_convolution():
    return chain((8, 8, 4), L.Conv2D(8, 3, groups=2), L.GlobalMaxPooling2D(keepdims=True), L.Flatten(), L.Dense(2))


@model
def pooling_and_shapes():
    return chain((8, 8, 3), L.ZeroPadding2D(((1, 0), (2, 1))), L.Cropping2D(1), L.UpSampling2D(2, interpolation="bilinear"),
                 L.MaxPooling2D(2, padding="same"), L.AveragePooling2D(2), L.Permute((2, 1, 3)), L.Reshape((-1, 3)),
                 L.Flatten(), L.RepeatVector(2), L.Flatten(), L.Dense(2))


@model
def normalizations():
    return chain((6, 4), L.BatchNormalization(momentum=0.8), L.LayerNormalization(), L.GroupNormalization(2),
                 L.Dense(4), L.UnitNormalization(), L.BatchNormalization(scale=False, center=False), L.Flatten(), L.Dense(2))


@model
def frozen_layers():
    m = chain((6,), L.Dense(4, "relu", trainable=False), L.BatchNormalization(trainable=False), L.Dense(3), L.Dense(2))
    return m


@model
def regularization_layers():
    return chain((6, 4), L.Dropout(0.0), L.SpatialDropout1D(0.0), L.GaussianNoise(0.0), L.GaussianDropout(0.0),
                 L.AlphaDropout(0.0), L.ActivityRegularization(0.01, 0.02), L.Flatten(), L.Dense(2))


@model
def rescaling():
    return chain((6, 4), L.Rescaling(0.5, 1.0), L.Identity(), L.Masking(0.0), L.LSTM(2), L.Dense(2))


@model
def normalization_layer():
    n = L.Normalization(mean=[0.1, 0.2, 0.3], variance=[1.0, 2.0, 3.0])
    return chain((3,), n, L.Dense(2))


@model
def normalization_adapted():
    n = L.Normalization()
    n.adapt(np.random.RandomState(0).normal(size=(20, 3)).astype("float32"))
    return chain((3,), n, L.Dense(2))


@model
def einsum_dense():
    return chain((4, 3), L.EinsumDense("abc,cd->abd", output_shape=(4, 5), bias_axes="d", activation="relu"), L.Flatten(),
                 L.Dense(2))


@model
def lstm():
    return chain((5, 3), L.LSTM(4, return_sequences=True, kernel_regularizer="l2", recurrent_constraint="max_norm"),
                 L.LSTM(3, go_backwards=True, unit_forget_bias=False, recurrent_activation="hard_sigmoid"), L.Dense(2))


@model
def gru():
    return chain((5, 3), L.GRU(4, return_sequences=True), L.GRU(3, reset_after=False, unroll=True), L.Dense(2))


@model
def simple_rnn():
    return chain((5, 3), L.SimpleRNN(4, return_sequences=True), L.SimpleRNN(3, activation="relu"), L.Dense(2))


@model
def stateful():
    return chain((5, 3), L.LSTM(4, stateful=True), L.Dense(2), batch_size=6)


@model
def bidirectional():
    return chain((5, 3), L.Bidirectional(L.GRU(2, return_sequences=True)), L.Bidirectional(L.LSTM(2), merge_mode="sum"),
                 L.Dense(2))


@model
def bidirectional_named():
    return chain((5, 3), L.Bidirectional(L.SimpleRNN(2, name="steps"), merge_mode="ave", name="both"), L.Dense(2))


@model
def rnn_cells():
    return chain((5, 3), L.RNN([L.LSTMCell(2), L.GRUCell(3), L.GRUCell(2), L.SimpleRNNCell(2)], return_sequences=True),
                 L.RNN(L.LSTMCell(3)), L.Dense(2))


@model
def lstm_initial_state():
    x, h, c = keras.Input((5, 3)), keras.Input((4,)), keras.Input((4,))
    y = L.LSTM(4)(x, initial_state=[h, c])
    return keras.Model([x, h, c], L.Dense(2)(y))


@model
def encoder_decoder():
    a, b = keras.Input((5, 3), name="source"), keras.Input((4, 2), name="target")
    _, h, c = L.LSTM(3, return_state=True)(a)
    y = L.LSTM(3, return_sequences=True)(b, initial_state=[h, c])
    return keras.Model([a, b], L.Dense(2)(y))


@model
def gru_initial_state():
    a, b = keras.Input((5, 3)), keras.Input((4, 2))
    _, h = L.GRU(3, return_state=True)(a)
    return keras.Model([a, b], L.Dense(2)(L.GRU(3)(b, initial_state=h)))


@model
def bidirectional_initial_state():
    a, b = keras.Input((5, 3)), keras.Input((4, 2))
    _, h, k = L.Bidirectional(L.GRU(3, return_state=True))(a)
    return keras.Model([a, b], L.Dense(2)(L.Bidirectional(L.GRU(3))(b, initial_state=[h, k])))


@model
def rnn_cells_initial_state():
    a, b = keras.Input((5, 3)), keras.Input((4, 2))
    states = L.RNN([L.LSTMCell(2), L.GRUCell(3)], return_state=True)(a)[1:]
    return keras.Model([a, b], L.Dense(2)(L.RNN([L.LSTMCell(2), L.GRUCell(3)])(b, initial_state=states)))


@model
def conv_lstm():
    return chain((3, 6, 6, 2), L.ConvLSTM2D(2, 3, return_sequences=True, padding="same"), L.ConvLSTM2D(2, 2), L.Flatten(),
                 L.Dense(2))


@model
def conv_lstm_1d():
    return chain((3, 6, 2), L.ConvLSTM1D(2, 3, return_sequences=True, padding="same"), L.ConvLSTM1D(2, 2), L.Flatten(),
                 L.Dense(2))


@model
def conv_lstm_3d():
    return chain((2, 3, 4, 3, 2), L.ConvLSTM3D(2, 2, return_sequences=True), L.ConvLSTM3D(2, 2, padding="same"), L.Flatten(),
                 L.Dense(2))


@model
def time_distributed():
    return chain((5, 4), L.TimeDistributed(L.Dense(3, "relu")), L.TimeDistributed(chain((3,), L.Dense(4), L.Dense(2))),
                 L.Flatten(), L.Dense(2))


@model
def masked_embedding():
    return chain((6,), L.Embedding(11, 4, mask_zero=True), L.LSTM(3), L.Dense(2), dtype="int32")


@model
def masked_functional():
    x = keras.Input((6,), dtype="int32")
    y = L.Embedding(11, 4, mask_zero=True, embeddings_regularizer="l2")(x)
    return keras.Model(x, L.Dense(2)(L.Bidirectional(L.LSTM(2))(y)))


@model
def masked_inside_time_distributed():
    return chain((3, 4, 2), L.ReLU(), L.TimeDistributed(L.Masking(0.0)), L.TimeDistributed(L.LSTM(3)), L.LSTM(2), L.Dense(2))


@model
def masked_steps_of_embeddings():
    inner = chain((4,), L.Embedding(11, 3, mask_zero=True), L.LSTM(3), dtype="int32")
    return chain((3, 4), L.TimeDistributed(inner), L.GRU(2), L.Dense(2), dtype="int32")


@model
def masked_initial_state():
    x, h, c = keras.Input((6,), dtype="int32"), keras.Input((3,)), keras.Input((3,))
    y = L.LSTM(3)(L.Embedding(11, 4, mask_zero=True)(x), initial_state=[h, c])
    return keras.Model([x, h, c], L.Dense(2)(y))


@model
def masked_encoder_decoder():
    a, b = keras.Input((5,), dtype="int32"), keras.Input((4,), dtype="int32")
    table = L.Embedding(11, 4, mask_zero=True)
    _, h = L.GRU(3, return_state=True)(table(a))
    return keras.Model([a, b], L.TimeDistributed(L.Dense(2))(L.GRU(3, return_sequences=True)(table(b), initial_state=h)))


@model
def masked_bidirectional_sequences():
    return chain((6,), L.Embedding(11, 4, mask_zero=True), L.Bidirectional(L.GRU(2, return_sequences=True)),
                 L.TimeDistributed(L.Dense(2)), dtype="int32")


@model
def attention():
    q, v = keras.Input((4, 3)), keras.Input((5, 3))
    y = L.Attention(use_scale=True)([q, v])
    z = L.AdditiveAttention()([q, v])
    return keras.Model([q, v], L.Dense(2)(L.Flatten()(L.Concatenate()([y, z]))))


@model
def multi_head_attention():
    q, v = keras.Input((4, 3)), keras.Input((5, 3))
    y = L.MultiHeadAttention(2, 2)(q, v)
    y = L.MultiHeadAttention(2, 2, value_dim=3, output_shape=4, use_bias=False)(y, y, y, use_causal_mask=True)
    return keras.Model([q, v], L.Dense(2)(L.Flatten()(y)))


@model
def transformer_block():
    x = keras.Input((6,), dtype="int32")
    y = L.Embedding(11, 4)(x)
    y = L.LayerNormalization()(y + L.MultiHeadAttention(2, 2)(y, y))
    z = L.Dense(4)(L.Dense(8, "relu")(y))
    y = L.LayerNormalization()(L.Add()([y, z]))
    return keras.Model(x, L.Dense(2)(L.GlobalAveragePooling1D()(y)))


@model
def group_query_attention():
    q, v = keras.Input((4, 3)), keras.Input((5, 3))
    y = L.GroupQueryAttention(2, 4, 2)(q, v)
    return keras.Model([q, v], L.Dense(2)(L.Flatten()(y)))


@model
def merges():
    a, b = keras.Input((4,)), keras.Input((4,))
    m = [layer([a, b]) for layer in (L.Add(), L.Subtract(), L.Multiply(), L.Average(), L.Maximum(), L.Minimum(),
                                     L.Concatenate(), L.Dot(axes=-1, normalize=True))]
    return keras.Model([a, b], L.Dense(2)(L.Concatenate()(m)))


@model
def operations():
    a, b = keras.Input((4,)), keras.Input((4,))
    y = keras.ops.relu(a + b) * 0.5 - 1.0
    return keras.Model([a, b], L.Dense(2)(keras.activations.tanh(y)))


@model
def shared_layers():
    a, b = keras.Input((4,)), keras.Input((4,))
    d = L.Dense(3, "tanh")
    return keras.Model([a, b], L.Dense(2)(L.Concatenate()([d(a), d(b), d(a)])))


@model
def nested():
    inner = chain((4,), L.Dense(3), L.BatchNormalization(), L.Dense(3))
    x = keras.Input((3,))
    deep = keras.Model(x, L.Add()([L.Dense(3)(x), x]), name="deep")
    a, b = keras.Input((4,)), keras.Input((4,))
    y = L.Concatenate()([deep(inner(a)), inner(b)])
    return keras.Model([a, b], L.Dense(2)(y)), dict(optimizer=keras.optimizers.SGD(0.05, 0.9))


@model
def nested_many_outputs():
    x = keras.Input((3,))
    split = keras.Model(x, [L.Dense(2)(x), L.Dense(3)(x)])
    a = keras.Input((3,))
    p, q = split(a)
    return keras.Model(a, L.Dense(2)(L.Concatenate()([q, p])))


@model
def nested_frozen():
    base = chain((5,), L.Dense(4, "relu"), L.BatchNormalization())
    base.trainable = False
    return chain((5,), base, L.Dense(3), L.Dense(2))


@model
def outputs():
    a, b = keras.Input((4,), name="left"), keras.Input((3,), name="right")
    y = L.Concatenate()([L.Dense(3)(a), L.Dense(2)(b)])
    m = keras.Model([a, b], [L.Dense(3, "softmax", name="kind")(y), L.Dense(1, name="size")(y)])
    return m, dict(loss=["categorical_crossentropy", "mse"], loss_weights=[1.0, 0.5], metrics=[["accuracy"], ["mae"]])


@model
def outputs_by_name():
    a = keras.Input((4,))
    m = keras.Model(a, [L.Dense(3, "softmax", name="kind")(a), L.Dense(1, name="size")(a)])
    return m, dict(loss={"kind": keras.losses.CategoricalCrossentropy(label_smoothing=0.1), "size": "mae"},
                   loss_weights={"kind": 1.0, "size": 0.3},
                   metrics={"kind": [keras.metrics.CategoricalAccuracy(), keras.metrics.AUC()], "size": ["mse"]})


@model
def residual_network():
    x = keras.Input((8, 8, 3))
    y = L.Conv2D(4, 3, padding="same")(x)
    for _ in range(2):
        z = L.ReLU()(L.BatchNormalization()(L.Conv2D(4, 3, padding="same")(y)))
        y = L.Add()([y, L.Conv2D(4, 3, padding="same")(z)])
    return keras.Model(x, L.Dense(2)(L.GlobalAveragePooling2D()(y))), dict(optimizer=keras.optimizers.SGD(0.05, 0.9))


@model
def branches_of_one_class():
    a, b = keras.Input((4,)), keras.Input((4,))
    p = L.Dense(3, name="p")(L.Dense(3, name="first")(a))
    q = L.Dense(3, name="q")(b)
    return keras.Model([b, a], L.Dense(2, name="last")(L.Concatenate()([q, p, L.Dense(1, name="side")(q)])))


@model
def mixed_bfloat16():
    policy = keras.DTypePolicy("mixed_bfloat16")
    return chain((6,), L.Dense(8, "relu", dtype=policy), L.Dense(4, dtype=policy), L.Dense(2, dtype="float32"))


@model
def binary():
    return chain((6,), L.Dense(4, "relu"), L.Dense(1, "sigmoid")), dict(
        loss="binary_crossentropy", metrics=["accuracy", keras.metrics.Precision(), keras.metrics.Recall()])


@model
def sparse_classes():
    return chain((6,), L.Dense(4, "relu"), L.Dense(3, "softmax")), dict(
        loss=keras.losses.SparseCategoricalCrossentropy(), metrics=["sparse_categorical_accuracy"])


def _optimizer(make):
    def build():
        return chain((5,), L.Dense(4, "tanh"), L.Dense(2)), dict(optimizer=make())
    return build


O = keras.optimizers
for _name, _make in {
        "sgd": lambda: O.SGD(0.05), "sgd_momentum": lambda: O.SGD(0.05, 0.9, nesterov=True), "rmsprop": lambda: O.RMSprop(0.01),
        "adagrad": lambda: O.Adagrad(0.05), "adadelta": lambda: O.Adadelta(0.5), "adam": lambda: O.Adam(0.01),
        "amsgrad": lambda: O.Adam(0.01, amsgrad=True), "adamw": lambda: O.AdamW(0.01), "adamax": lambda: O.Adamax(0.01),
        "nadam": lambda: O.Nadam(0.01), "ftrl": lambda: O.Ftrl(0.05), "lion": lambda: O.Lion(0.01),
        "adafactor": lambda: O.Adafactor(0.01), "clipnorm": lambda: O.Adam(0.01, clipnorm=0.1),
        "clipvalue": lambda: O.SGD(0.05, clipvalue=0.05), "global_clipnorm": lambda: O.SGD(0.05, global_clipnorm=0.1),
        "weight_decay": lambda: O.SGD(0.05, weight_decay=0.01), "ema": lambda: O.Adam(0.01, use_ema=True),
        "inverse_time_decay": lambda: O.SGD(O.schedules.InverseTimeDecay(0.05, 1, 0.1))}.items():
    LAYERS["optimizer_" + _name] = _optimizer(_make)


def _loss(name):
    def build():
        return chain((5,), L.Dense(4, "tanh"), L.Dense(2, "sigmoid")), dict(loss=name, metrics=[] if name in ("huber", "log_cosh") else [name])
    return build


for _name in ("mae", "mape", "msle", "huber", "log_cosh", "hinge", "squared_hinge", "categorical_hinge", "kl_divergence",
              "poisson", "cosine_similarity"):
    LAYERS["loss_" + _name] = _loss(_name)
