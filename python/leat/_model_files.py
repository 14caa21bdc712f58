# SPDX-License-Identifier: Apache-2.0
"""How a leat.Model is created, saved and loaded."""

import json
import os
import sys
import tempfile
from typing import Any, Dict

from leat import _arguments, _trainer
from leat.errors import ArgumentError, MissingFileError, NotFoundError

_FORMATS = {"h5": 0, "keras": 1, "onnx": 2, "safetensors": 3}


def _missing_file(error, path):
    """Returns the exception for a path that could not be opened."""
    if os.path.exists(path):
        return error
    missing = MissingFileError(str(error))
    missing.code = error.code
    return missing


def _of_keras(model):
    """Returns the module of Keras that a model comes from; None: it is no model of Keras."""
    roots = {kind.__module__.split(".")[0] for kind in type(model).__mro__}
    for root in ("keras", "tf_keras", "tensorflow"):
        if root in roots and hasattr(model, "get_config") and hasattr(model, "save"):
            module = sys.modules.get(root)
            return module.keras if root == "tensorflow" else module
    return None


def _find_keras():
    for name in ("keras", "tf_keras"):
        try:
            return __import__(name)
        except ImportError:
            pass
    raise ImportError("to_keras() needs Keras: pip install keras and one of its backends", name="keras")


def _is_current(keras):
    return int(keras.__version__.split(".")[0]) >= 3


class ModelFiles:
    """The part of leat.Model that creates, saves and loads models."""

    @classmethod
    def load(cls, source, compile: bool = True) -> "ModelFiles":
        """Loads a model: a path of a .h5 or .keras file or of an architecture as JSON, or the bytes of such a file.

        compile: False: the optimizer, loss and metrics of the file are not used.
        """
        if isinstance(source, (bytes, bytearray, memoryview)):
            return cls(_trainer.load_memory(source, compile))
        path = os.fspath(source)
        try:
            return cls(_trainer.load(path, compile))
        except NotFoundError as error:
            raise _missing_file(error, path) from None

    @classmethod
    def from_json(cls, text) -> "ModelFiles":
        """Creates a model from an architecture: JSON such as to_json() or Keras's model.to_json() returned, or its dict."""
        return cls(_trainer.from_json(text if isinstance(text, str) else json.dumps(_arguments.plain(text))))

    @classmethod
    def from_config(cls, config) -> "ModelFiles":
        """Creates a model from what get_config() returned, here or in Keras: of a Sequential or a functional model."""
        if not isinstance(config, dict) or not isinstance(config.get("layers"), list):
            raise ArgumentError("from_config: expected a dict with `layers`, such as get_config() returned")
        model = {"class_name": "Functional" if "input_layers" in config else "Sequential", "config": config}
        if any("module" in layer for layer in config["layers"]):
            model["module"] = "keras"  # a configuration of current Keras
        return cls.from_json(model)

    @classmethod
    def from_keras(cls, model, compile: bool = True) -> "ModelFiles":
        """Creates a model with the layers and weights of a model of Keras, and its optimizer if it is compiled.

        The model of Keras stays as it is; later changes of one model do not change the other.
        """
        keras = _of_keras(model)
        if keras is None:
            raise ArgumentError(f"from_keras: expected a model of Keras, received a {type(model).__name__}")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.keras" if _is_current(keras) else "model.h5")
            model.save(path)
            return cls.load(path, compile)

    @classmethod
    def sequential(cls, input_shape, layers, name: str = "sequential_1") -> "ModelFiles":
        """Creates a Sequential: Model.sequential((28, 28, 1), [("Flatten", {}), ("Dense", {"units": 10})]).

        input_shape: the shape of a sample, None for any size.  layers: (class name in Keras, arguments of its
        constructor); arguments that are left out have Keras's defaults.
        """
        made = []
        for number, (class_name, arguments) in enumerate(layers):
            config = {"name": f"{class_name.lower()}_{number + 1}", **arguments}
            if number == 0:
                config.setdefault("batch_input_shape", [None, *input_shape])
            made.append({"class_name": class_name, "config": config})
        return cls.from_json({"class_name": "Sequential", "config": {"name": name, "layers": made}})

    def to_json(self) -> str:
        """Returns the architecture in the form of the Keras that the model came from."""
        return self._get().to_json()

    def get_config(self) -> Dict[str, Any]:
        """Returns the configuration of the model, for from_config()."""
        return json.loads(self.to_json())["config"]

    def to_keras(self):
        """Returns a model of Keras with the same layers, weights and optimizer.  Needs Keras."""
        keras = sys.modules.get("keras") or _find_keras()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.keras" if _is_current(keras) else "model.h5")
            self.save(path)
            return keras.models.load_model(path)

    def save(self, path, overwrite: bool = True, include_optimizer: bool = True) -> None:
        """Saves the model as .keras (current Keras), .onnx or, for any other path, .h5; the file is replaced atomically.

        overwrite: False: a file that exists is an error.
        """
        self._get().save(_refuse_existing(path, overwrite), include_optimizer)

    def to_bytes(self, format: str = "h5", include_optimizer: bool = True) -> bytes:
        """Returns what save() would write: format is "h5", "keras" or "onnx"."""
        return self._get().save_memory(_arguments.choose("format", format, _FORMATS), include_optimizer, False)

    def save_weights(self, path, overwrite: bool = True) -> None:
        """Saves the weights: .weights.h5 (current Keras), .safetensors, or any other path: Keras 2's .h5 file."""
        self._get().save_weights(_refuse_existing(path, overwrite))

    def weights_to_bytes(self, format: str = "h5") -> bytes:
        """Returns what save_weights() would write: format is "h5", "keras" (.weights.h5) or "safetensors"."""
        return self._get().save_memory(_arguments.choose("format", format, _FORMATS), False, True)

    def load_weights(self, source, by_name: bool = False, skip_mismatch: bool = False, reshape: bool = False) -> None:
        """Loads weights from a path, or from the bytes of a file of weights."""
        if isinstance(source, (bytes, bytearray, memoryview)):
            if skip_mismatch or reshape:
                raise ArgumentError("skip_mismatch and reshape need the path of a file")
            self._get().load_weights_memory(source, by_name)
            return
        path = os.fspath(source)
        try:
            self._get().load_weights(path, by_name, skip_mismatch, reshape)
        except NotFoundError as error:
            raise _missing_file(error, path) from None

    def clone(self, copy_weights: bool = True) -> "ModelFiles":
        """Returns a new model of the same layers, which is not compiled."""
        return type(self)(self._get().clone(copy_weights))

    def __reduce__(self):
        return type(self).load, (self.to_bytes("h5"),)


def _refuse_existing(path, overwrite):
    path = os.fspath(path)
    if not overwrite and os.path.exists(path):
        raise ArgumentError(f"{path!r} exists: pass overwrite=True, or another path")
    return path
