# SPDX-License-Identifier: Apache-2.0
"""Arguments of leat.Model's methods in the form that the native part takes."""

import json
import os

from leat import _arrays
from leat.errors import ArgumentError


def outputs(memories):
    """Returns arrays that view the memory of predictions: a list, or the array of the only output."""
    import numpy

    arrays = [numpy.asarray(memory) for memory in memories]
    return arrays[0] if len(arrays) == 1 else arrays


def choose(name, value, known):
    """Returns the number of a word of the argument `name`; known: {word: number}."""
    if value not in known:
        raise ArgumentError(f"{name} is {value!r}, expected one of {', '.join(repr(word) for word in known)}")
    return known[value]


def verbose(value):
    """Returns the number of `verbose`, which Keras also lets be "auto"."""
    return 1 if value == "auto" else int(value)


def plain(value):
    """Returns a part of a configuration as JSON has it."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "get_config"):
        return {"class_name": type(value).__name__, "config": plain(value.get_config())}
    if hasattr(value, "item"):
        return value.item()
    if callable(value) and hasattr(value, "__name__"):
        if (getattr(value, "__module__", None) or "").split(".")[0] in ("keras", "tf_keras", "tensorflow", "leat"):
            return value.__name__
        raise ArgumentError(
            f"{value.__name__}: a function in Python cannot be a loss or a metric: pass the name of one of leat's"
            " (docs/layers.md), or train by the gradients of another library"
        )
    raise ArgumentError(f"expected a name or a configuration, received {value!r}")


def text(value, joins=False):
    """Returns a configuration as JSON, and a name as it is; joins: a list of names becomes "a, b"."""
    value = plain(value)
    if value is None or isinstance(value, str):
        return value
    if joins and isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value) or None
    return json.dumps(value)


def class_weights(value, outputs):
    """Returns [(output, [(class, weight), ...]), ...] of Keras's class_weight."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise ArgumentError("class_weight: expected a dict {class: weight}, or {output: {class: weight}}")
    by_output = value if all(isinstance(item, dict) for item in value.values()) and value else None
    if by_output is None:
        if len(outputs) != 1:
            raise ArgumentError(f"class_weight: the model has the outputs {', '.join(outputs)}: pass a dict for each")
        by_output = {outputs[0]: value}
    return [(name, [(int(key), float(item)) for key, item in pairs.items()]) for name, pairs in by_output.items()]


def checkpoint_tuple(options):
    """Returns the options of checkpoints in the order of the native part; times in milliseconds."""
    if options is None:
        return None
    known = {"folder", "every_steps", "every_seconds", "every_epochs", "resume", "keep"}
    if not isinstance(options, dict) or "folder" not in options or not set(options) <= known:
        names = ", ".join(sorted(known))
        raise ArgumentError(f"checkpoints: expected a folder, or a dict with folder and some of {names}")
    return (
        os.fspath(options["folder"]),
        int(options.get("every_steps", 0)),
        int(options.get("every_seconds", 0) * 1000),
        int(options.get("every_epochs", 1)),
        bool(options.get("resume", False)),
        int(options.get("keep", 2)),
    )


def find_path(rows, number):
    """Returns the path of a layer, such as "outer/inner"."""
    name, parent = rows[number][0], rows[number][2]
    return name if parent < 0 else f"{find_path(rows, parent)}/{name}"


def count_elements(shape):
    """Returns the product of the sizes."""
    count = 1
    for size in shape:
        count *= size
    return count


def make_weight(value, row):
    """Returns a contiguous array for a weight, whose row is (name, shape, ...)."""
    import numpy

    array = numpy.ascontiguousarray(_arrays.to_array(value, row[0]))
    if array.shape != row[1]:
        if value is not None and numpy.shape(value) == row[1]:
            return array.reshape(row[1])  # ascontiguousarray has made an array of a scalar
        raise ArgumentError(f"weight {row[0]!r}: expected the shape {row[1]}, received {array.shape}")
    return array
