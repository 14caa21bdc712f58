# SPDX-License-Identifier: Apache-2.0
"""Records the public names of the Keras that runs this script: record_names.py FILE.  FILE is JSON with one object for
each Keras, "2.3.1" and "current": the names of each module.  The module operations has the classes under which current
Keras saves functions of keras.ops, one for each name of the module ops ("" where there is none)."""
import importlib
import inspect
import json
import os
import sys
import types

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras  # noqa: E402

SHARED = ["layers", "losses", "metrics", "optimizers", "initializers", "regularizers", "constraints", "activations",
          "callbacks", "applications", "datasets", "preprocessing.image", "preprocessing.sequence", "utils", "models"]
OLDER = ["preprocessing.text"]
CURRENT = ["optimizers.schedules", "ops", "random", "saving"]
# Modules whose submodules are names: a data set, the preprocess_input of a model.
OF_MODULES = ("applications", "datasets")


def is_public(module, name, value):
    """True if a module offers the name to users."""
    if name.startswith("_"):
        return False
    if isinstance(value, types.ModuleType):
        return module in OF_MODULES and value.__name__.startswith("keras.%s." % module)
    if name == "keras_modules_injection":
        return False
    if not (inspect.isclass(value) or inspect.isfunction(value)):
        return False
    return (value.__module__ or "").startswith("keras")


def names_of(module):
    """Returns the public names of a module of Keras, in the order of the alphabet."""
    found = importlib.import_module("keras." + module)
    return sorted(n for n in dir(found) if is_public(module, n, getattr(found, n)))


def operation_of(function):
    """Returns the name of the class of a function of keras.ops; "" if it has none."""
    found = inspect.getmodule(function)
    wanted = function.__name__.replace("_", "").lower()
    for name, value in vars(found).items():
        if inspect.isclass(value) and name.lower() == wanted and issubclass(value, keras.Operation):
            return name
    return ""


def main():
    """Replaces the names of this Keras in the file."""
    path = sys.argv[1]
    older = keras.__version__.startswith("2.")
    names = {module: names_of(module) for module in SHARED + (OLDER if older else CURRENT)}
    if not older:
        names["operations"] = [operation_of(getattr(keras.ops, name)) for name in names["ops"]]
    recorded = {}
    if os.path.exists(path):
        with open(path) as file:
            recorded = json.load(file)
    recorded["2.3.1" if older else "current"] = {"version": keras.__version__, "modules": names}
    with open(path, "w") as file:
        json.dump(recorded, file, indent=1, sort_keys=True)
        file.write("\n")


main()
