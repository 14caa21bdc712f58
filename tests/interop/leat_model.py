# SPDX-License-Identifier: Apache-2.0
"""A model of leat for the checks against Keras, through bind_leat.py."""
import ctypes

import numpy as np


class Leat:
    """A model of leat."""

    def __init__(self, api, path=None, text=None):
        self.api = api
        self.model = api.model_load(path) if path else api.model_from_json(text)

    def compile(self, **options):
        """Compiles with strings of leat_compile_options."""
        struct = self.api.defaults("compile_options")
        for name, value in options.items():
            setattr(struct, name, value.encode() if isinstance(value, str) else value)
        self.api.model_compile(self.model, ctypes.byref(struct))

    def arrays(self, xs, ts=()):
        make, arrays = self.api.types["leat_array"], self.api.types["leat_arrays"]()
        self.held = [np.ascontiguousarray(a) for a in list(xs) + list(ts)]

        def pack(some):
            return (make * len(some))(*[make(None, self.view(a)) for a in some])
        arrays.inputs, arrays.input_count = pack(self.held[:len(xs)]), len(xs)
        if len(ts):
            arrays.targets, arrays.target_count = pack(self.held[len(xs):]), len(ts)
        return arrays

    def view(self, a):
        code = {"float32": "LEAT_F32", "int32": "LEAT_I32"}[str(a.dtype)]
        return self.api.tensor_view_into(self.api.values[code], a.ndim, (ctypes.c_int64 * a.ndim)(*a.shape), a.ctypes.data)

    def predict(self, xs, like):
        outs = [np.zeros(y.shape, "float32") for y in like]
        tensors = (self.api.types["leat_tensor"] * len(outs))(*[self.view(o) for o in outs])
        self.api.library.leat_model_reset_states(self.model)
        self.api.model_predict_on_batch_into(self.model, ctypes.byref(self.arrays(xs)), tensors)
        return outs

    def train(self, xs, ts, steps):
        self.api.library.leat_model_reset_states(self.model)
        for _ in range(steps):
            self.api.model_train_on_batch(self.model, ctypes.byref(self.arrays(xs, ts)))

    def evaluate(self, xs, ts):
        """Returns the loss and the metrics in Keras's order."""
        self.api.library.leat_model_reset_states(self.model)
        logs = self.api.model_test_on_batch(self.model, ctypes.byref(self.arrays(xs, ts)))
        return [logs.items[i].value for i in range(logs.count)]

    def weights(self):
        """Returns copies of the weights, in the order of Keras 2.3.1's get_weights()."""
        found = []
        for i in range(self.api.library.leat_model_weight_count(self.model)):
            tensor = self.api.model_weight_into(self.model, i)
            shape = tuple(tensor.shape[:tensor.rank])
            memory = (ctypes.c_float * int(np.prod(shape))).from_address(tensor.data)
            found.append(np.array(memory, "float32").reshape(shape))
        return found

    def save(self, path):
        self.api.model_save(self.model, path, True)
