# SPDX-License-Identifier: Apache-2.0
"""Descriptions of optimizers, losses and metrics: a class name of Keras and arguments, which Model.compile reads."""


class Described:
    """An object of Keras's kind that leat makes in compile(), described by its class name and its arguments."""

    _positional = ()

    def __init__(self, *values, **arguments):
        if len(values) > len(self._positional):
            raise TypeError(f"{type(self).__name__}: pass the arguments by their names, as Keras has them")
        self._arguments = {**dict(zip(self._positional, values)), **arguments}

    def get_config(self):
        """Returns the arguments."""
        return dict(self._arguments)

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._arguments.items())})"


def make_lookup(module, positional=()):
    """Returns the __getattr__ of a module that has a class for each name in Keras's spelling."""

    def find(name):
        if not name[:1].isupper():
            raise AttributeError(f"module {module!r} has no attribute {name!r}: class names begin with a capital letter")
        return type(name, (Described,), {"_positional": positional, "__module__": module})

    return find
