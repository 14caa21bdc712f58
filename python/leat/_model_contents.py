# SPDX-License-Identifier: Apache-2.0
"""What a leat.Model consists of: its layers, its inputs and outputs, its weights, and which of them are trained."""

import json
from typing import Dict, List, Optional, Tuple

from leat import _arguments
from leat.errors import ArgumentError, NotFoundError
from leat.model_parts import Layer, Weight, Weights, top_layers


class ModelContents:
    """The part of leat.Model that shows its layers and weights, and changes the weights."""

    # ---- looking inside ----

    def summary(
        self, line_length=None, positions=None, print_fn=print, expand_nested=False, show_trainable=False, layer_range=None
    ) -> None:
        """Prints the table of the layers by print_fn(text).  The other arguments are Keras's and change nothing."""
        (print_fn or print)(self._get().summary())

    @property
    def name(self) -> str:
        """The model's name."""
        return json.loads(self._get().summary_json())["model"]

    @property
    def layers(self) -> List[Layer]:
        """The layers, in Keras's order; those of a nested model are in its `layers`.

        As in Keras, those of a Sequential do not contain its InputLayer.
        """
        if self._is_sequential is None:
            self._is_sequential = json.loads(self.to_json())["class_name"] == "Sequential"
        return top_layers(self, -1, self._is_sequential)

    def get_layer(self, name: Optional[str] = None, index: Optional[int] = None) -> Layer:
        """Returns a layer by its name ("outer/inner" in a nested model), or by its index in `layers`."""
        if index is not None:
            return self.layers[index]
        rows = self._get().layers()
        for number in range(len(rows)):
            if name in (rows[number][0], _arguments.find_path(rows, number)):
                return Layer(self, number, rows[number])
        known = ", ".join(row[0] for row in rows)
        raise NotFoundError(f"there is no layer {name!r}: the model has {known}")

    @property
    def input_names(self) -> List[str]:
        """The names of the input layers."""
        return [name for name, _ in self._get().inputs()]

    @property
    def output_names(self) -> List[str]:
        """The names of the output layers."""
        return [name for name, _ in self._get().outputs()]

    @property
    def inputs(self) -> Dict[str, Tuple]:
        """The shapes of the inputs by name: batch dimension first, None where any size is possible."""
        return dict(self._get().inputs())

    @property
    def outputs(self) -> Dict[str, Tuple]:
        """The shapes of the outputs by name."""
        return dict(self._get().outputs())

    @property
    def input_shape(self):
        """The shape of the input, or a list of shapes."""
        shapes = [shape for _, shape in self._get().inputs()]
        return shapes[0] if len(shapes) == 1 else shapes

    @property
    def output_shape(self):
        """The shape of the output, or a list of shapes."""
        shapes = [shape for _, shape in self._get().outputs()]
        return shapes[0] if len(shapes) == 1 else shapes

    def count_params(self) -> int:
        """Returns the number of all numbers in the weights."""
        return sum(_arguments.count_elements(shape) for _, shape, _ in self._get().weights())

    # ---- weights ----

    @property
    def weights(self) -> Weights:
        """The weights by name: model.weights["dense_1/kernel:0"] is a copy; assigning an array changes the model."""
        return Weights(self)

    @property
    def trainable_weights(self) -> List[Weight]:
        """The weights that training changes: objects with name, shape, numpy() and assign(value)."""
        return [weight for weight in self.variables if weight.trainable]

    @property
    def non_trainable_weights(self) -> List[Weight]:
        """The weights that training does not change by gradients."""
        return [weight for weight in self.variables if not weight.trainable]

    @property
    def variables(self) -> List[Weight]:
        """All weights as objects with name, shape, numpy() and assign(value)."""
        return [Weight(self, index, row) for index, row in enumerate(self._get().weights())]

    trainable_variables = trainable_weights
    non_trainable_variables = non_trainable_weights

    def get_weights(self) -> list:
        """Returns copies of all weights, in Keras's order."""
        return [self._read_weight(i, shape) for i, (_, shape, _) in enumerate(self._get().weights())]

    def set_weights(self, weights) -> None:
        """Sets all weights: a list of arrays in the order of get_weights()."""
        rows = self._get().weights()
        if len(weights) != len(rows):
            raise ArgumentError(f"the model has {len(rows)} weights, received {len(weights)}")
        arrays = [_arguments.make_weight(weight, row) for weight, row in zip(weights, rows)]
        for index, array in enumerate(arrays):
            self._get().set_weight(index, array)

    def copy_weights(self, other: "ModelContents") -> None:
        """Copies all weights of another model, for example into a target network."""
        self._get().copy_weights(other._get())

    def _read_weight(self, index, shape):
        import numpy

        array = numpy.empty(shape, numpy.float32)
        self._get().get_weight(index, array)
        return array

    def initialize(self, seed: int) -> None:
        """Draws all weights with a seed."""
        self._get().set("seed", int(seed))

    def reset_states(self) -> None:
        """Sets the states of all stateful layers to zero."""
        self._get().reset_states()

    # ---- freezing ----

    @property
    def trainable(self) -> bool:
        """True if training changes a weight; may be set for all layers, which takes effect at the next compile."""
        return any(row[3] for row in self._get().layers() if row[5])

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self._get().set_trainable("*", bool(value), True)

    def freeze(self, pattern: str = "*") -> int:
        """Freezes the layers whose names or paths match a glob pattern.  Takes effect at the next compile.

        Returns the number of layers.
        """
        return self._get().set_trainable(pattern, False, True)

    def unfreeze(self, pattern: str = "*") -> int:
        """Makes the layers trainable whose names match; the opposite of freeze."""
        return self._get().set_trainable(pattern, True, True)
