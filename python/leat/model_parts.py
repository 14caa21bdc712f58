# SPDX-License-Identifier: Apache-2.0
"""What a leat.Model shows of itself: its layers, its weights and its optimizer."""

import collections.abc
import json
from typing import Any, Dict, List

from leat import _arguments
from leat.errors import ArgumentError


class Rate(float):
    """A learning rate with the methods that Keras's programs call: numpy(), assign(value)."""

    _model = None

    def assign(self, value) -> None:
        """Sets the learning rate of the next step."""
        self._model.learning_rate = float(value)

    def numpy(self):
        """Returns the learning rate as a NumPy float32."""
        import numpy

        return numpy.float32(self)


class Optimizer:
    """What Keras's callbacks use of a model's optimizer."""

    def __init__(self, model):
        self._model = model

    @property
    def learning_rate(self) -> float:
        """The learning rate of the next step; may be set."""
        rate = Rate(self._model.learning_rate)
        rate._model = self._model
        return rate

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        self._model.learning_rate = rate

    lr = learning_rate

    @property
    def iterations(self) -> int:
        """The number of steps that the optimizer has made."""
        return self._model._get().optimizer_iterations()

    def get_config(self) -> Dict[str, Any]:
        """Returns the optimizer's arguments."""
        found = self._model.optimizer_config
        return {"name": found["class_name"].lower(), **found["config"]}

    def __repr__(self):
        return f"<leat.Optimizer {self._model.optimizer_config}>"


class Weight:
    """A weight of a model, or of a layer: numpy() copies it, assign(value) sets it, numpy.asarray accepts it."""

    dtype = "float32"

    def __init__(self, model, index, row):
        self._model, self._index, self._row = model, index, row
        self.name: str = row[0]
        self.path: str = row[0].split(":")[0]
        self.shape = row[1]
        self.trainable: bool = row[2]

    def numpy(self):
        """Returns a copy of the weight."""
        return self._model._read_weight(self._index, self.shape)

    def assign(self, value) -> None:
        """Sets the weight."""
        self._model._get().set_weight(self._index, _arguments.make_weight(value, self._row))

    def __array__(self, dtype=None, copy=None):
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def __repr__(self):
        return f"<leat.Weight {self.name!r}, shape={self.shape}>"


def top_layers(model, parent, is_sequential):
    """Returns the layers inside a model (parent -1) or a nested model; those of a Sequential without its InputLayer."""
    rows = [(number, row) for number, row in enumerate(model._get().layers()) if row[2] == parent]
    return [Layer(model, number, row) for number, row in rows if not (is_sequential and row[1] == "InputLayer")]


class Layer:
    """A layer of a model.

    The arguments of its configuration (layer.units) and its weights (layer.kernel) are attributes, too.
    """

    def __init__(self, model, number, row):
        self.model = model
        self.name: str = row[0]
        self.class_name: str = row[1]
        self._number = number
        self._weights = row[5]
        self._inputs, self._outputs = row[6], row[7]

    @property
    def trainable(self) -> bool:
        """True if training changes the layer's weights; may be set, which takes effect at the next compile."""
        return self.model._get().layers()[self._number][3]

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self.model._get().set_trainable(_arguments.find_path(self.model._get().layers(), self._number), bool(value), False)

    @property
    def layers(self) -> "List[Layer]":
        """The layers of a nested model."""
        return top_layers(self.model, self._number, self.class_name == "Sequential")

    def get_config(self) -> Dict[str, Any]:
        """Returns the configuration, as Keras's get_config()."""
        return json.loads(self.model._get().layer_config(self._number))

    @property
    def input_shape(self):
        """The shape of the input of the layer's first call, or a list of shapes."""
        return self._inputs[0] if len(self._inputs) == 1 else self._inputs

    @property
    def output_shape(self):
        """The shape of the output of the layer's first call, or a list of shapes."""
        return self._outputs[0] if len(self._outputs) == 1 else self._outputs

    def _rows(self):
        rows = self.model._get().weights()
        indices = self.model._get().layers()[self._number][5]
        return [(index, rows[index]) for index in indices]

    @property
    def weights(self) -> List[Weight]:
        """The weights as objects with name, shape, numpy() and assign(value)."""
        return [Weight(self.model, index, row) for index, row in self._rows()]

    def __getattr__(self, name):
        if name.startswith("_") or name in ("model", "name", "class_name"):
            raise AttributeError(name)
        weights = {weight.path.split("/")[-1]: weight for weight in self.weights}
        if name in weights:
            return weights[name]
        config = self.get_config()
        if name in config:
            return config[name]
        known = ", ".join([*weights, *config])
        raise AttributeError(f"layer {self.name!r}, a {self.class_name}, has no {name!r}: it has {known}")

    @property
    def weight_names(self) -> List[str]:
        """The names of the weights, for model.weights."""
        return [row[0] for _, row in self._rows()]

    def get_weights(self) -> list:
        """Returns copies of the layer's weights."""
        return [self.model._read_weight(index, row[1]) for index, row in self._rows()]

    def set_weights(self, weights) -> None:
        """Sets the layer's weights: arrays in the order of get_weights()."""
        rows = self._rows()
        if len(weights) != len(rows):
            raise ArgumentError(f"layer {self.name!r} has {len(rows)} weights, received {len(weights)}")
        arrays = [_arguments.make_weight(weight, row) for weight, (_, row) in zip(weights, rows)]
        for (index, _), array in zip(rows, arrays):
            self.model._get().set_weight(index, array)

    def count_params(self) -> int:
        """Returns the number of all numbers in the weights."""
        return sum(_arguments.count_elements(row[1]) for _, row in self._rows())

    def __repr__(self):
        return f"<leat.Layer {self.name!r}: {self.class_name}, {self.input_shape} -> {self.output_shape}>"


class Weights(collections.abc.Mapping):
    """The weights of a model by name, in Keras's order."""

    def __init__(self, model):
        self._model = model

    def _find(self, name):
        for index, row in enumerate(self._model._get().weights()):
            if row[0] == name or row[0].split(":")[0] == name:
                return index, row
        raise KeyError(name)

    def __getitem__(self, name):
        if isinstance(name, int):
            return self._model.variables[name]
        index, row = self._find(name)
        return self._model._read_weight(index, row[1])

    def __setitem__(self, name, value):
        index, row = self._find(name)
        self._model._get().set_weight(index, _arguments.make_weight(value, row))

    def __iter__(self):
        return iter([row[0] for row in self._model._get().weights()])

    def __len__(self):
        return len(self._model._get().weights())

    def trainable(self, name) -> bool:
        """Returns True if training changes the weight."""
        return self._find(name)[1][2]

    def __repr__(self):
        rows = self._model._get().weights()
        return "<leat.Weights: " + ", ".join(f"{name} {shape}" for name, shape, _ in rows) + ">"
