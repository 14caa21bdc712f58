# SPDX-License-Identifier: Apache-2.0
"""Cases: ConvLSTM2D; CuDNNLSTM and CuDNNGRU, from LSTM and GRU with Keras's conversion of their weights."""
import collections
import json
import sys
import types

from keras.engine.saving import preprocess_weights_for_loading

from . import store
from .layers_core import GROUP, stack
from .model_case import compile_model, describe, listed, make_inputs, put, record, set_initial_weights, DEFAULTS
from .session import K, keras

L = keras.layers


def conv_lstm(root):
    """Every argument of its configuration; `unroll` is refused by Keras."""
    def case(name, *more, **kwargs):
        options = kwargs.pop("case", {})
        shape = options.pop("shape", (3, 4, 5, 2))
        record(root, GROUP, "convlstm2d_" + name, "ConvLSTM2D",
               stack(shape, lambda: L.ConvLSTM2D(2, kwargs.pop("kernel_size", 2), **kwargs), *more,
                     batch=options.pop("fixed", None)), **options)

    case("default")
    case("same", padding="same", return_sequences=True, go_backwards=True)
    case("strides", kernel_size=(3, 2), strides=(1, 2), padding="same")
    case("dilation", dilation_rate=(2, 1))
    case("channels_first", data_format="channels_first", return_sequences=True, case={"shape": (3, 2, 4, 5)})
    case("no_bias", use_bias=False, recurrent_activation="sigmoid", activation="relu")
    case("no_forget_bias", unit_forget_bias=False, kernel_initializer="he_normal", recurrent_initializer="zeros",
         bias_initializer="ones")
    case("regularized", kernel_regularizer="l2", recurrent_regularizer="l1", bias_regularizer="l2",
         activity_regularizer="l2", kernel_constraint="max_norm", recurrent_constraint="non_neg",
         bias_constraint="unit_norm")
    case("dropout", dropout=0.3, recurrent_dropout=0.2, case={"train": False})
    case("stack", lambda: L.ConvLSTM2D(1, 2), lambda: L.Flatten(), lambda: L.Dense(1), return_sequences=True)
    case("stateful", stateful=True, case={"fixed": 3})

    def states():
        x = L.Input((3, 4, 4, 2))
        return keras.Model(x, L.ConvLSTM2D(2, 2, return_state=True)(x))
    record(root, GROUP, "convlstm2d_states", "ConvLSTM2D", states)


class _NoCudnn:
    """Replaces operations of TensorFlow 1 that 2.1 does not have.  Only the shape of the result is used."""

    def __init__(self, num_units, **_others):
        self.units = num_units

    def __call__(self, inputs, input_h, params, is_training, input_c=None):
        steps = K.int_shape(inputs)[0]
        outputs = K.tile(input_h, [steps, 1, 1])
        return (outputs, input_h) if input_c is None else (outputs, input_h, input_c)


def lend_cudnn():
    """Makes the layers buildable, for their configurations and weights; without a bias of 1, which TensorFlow 2
    refuses."""
    name = "tensorflow.contrib.cudnn_rnn.python.ops"
    parts = name.split(".")
    for count in range(2, len(parts) + 1):
        sys.modules.setdefault(".".join(parts[:count]), types.ModuleType(parts[count - 1]))
    sys.modules[name].cudnn_rnn_ops = types.SimpleNamespace(CudnnLSTM=_NoCudnn, CudnnGRU=_NoCudnn)


def converted(root, case, class_name, cudnn, plain):
    """Records outputs without a GPU: those of the plain layer, with the weights that Keras converts for it."""
    random = store.random_for("%s/%s" % (GROUP, case))
    K.clear_session()
    shape = (5, 3)
    model = stack(shape, cudnn)()
    set_initial_weights(random, model, 1.0)
    x = make_inputs(random, model, 3, None, 1.0)
    spec = dict(DEFAULTS, class_name=class_name, steps=0,
                notes="no GPU: outputs of the plain layer with the weights that Keras converts for it")
    optimizer = compile_model(model, spec)
    members = collections.OrderedDict()
    members["meta"] = store.text(describe(spec, model, optimizer, GROUP, case))
    members["config"] = store.text(json.dumps(json.loads(model.to_json())))
    weights = model.get_weights()
    other = stack(shape, plain)()
    other.set_weights(preprocess_weights_for_loading(other.layers[0], weights))
    put(members, "x", x)
    put(members, "w", weights)
    put(members, "y", listed(other.predict_on_batch(x)))
    store.save("%s/%s/%s.npz" % (root, GROUP, case), members)


def cudnn(root):
    """Both layers with their arguments, also inside Bidirectional."""
    lend_cudnn()
    converted(root, "cudnnlstm_default", "CuDNNLSTM", lambda: L.CuDNNLSTM(4, unit_forget_bias=False),
              lambda: L.LSTM(4, recurrent_activation="sigmoid"))
    converted(root, "cudnnlstm_backwards", "CuDNNLSTM",
              lambda: L.CuDNNLSTM(2, return_sequences=True, go_backwards=True, unit_forget_bias=False),
              lambda: L.LSTM(2, recurrent_activation="sigmoid", return_sequences=True, go_backwards=True))
    converted(root, "cudnngru_default", "CuDNNGRU", lambda: L.CuDNNGRU(4),
              lambda: L.GRU(4, recurrent_activation="sigmoid", reset_after=True))
    converted(root, "cudnngru_sequences", "CuDNNGRU",
              lambda: L.CuDNNGRU(2, return_sequences=True, kernel_regularizer="l2"),
              lambda: L.GRU(2, recurrent_activation="sigmoid", reset_after=True, return_sequences=True))
    converted(root, "cudnnlstm_bidirectional", "Bidirectional", lambda: L.Bidirectional(L.CuDNNLSTM(3, unit_forget_bias=False)),
              lambda: L.Bidirectional(L.LSTM(3, recurrent_activation="sigmoid")))


def run(root):
    """Records all cases of this module."""
    conv_lstm(root)
    cudnn(root)
