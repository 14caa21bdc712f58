# SPDX-License-Identifier: Apache-2.0
"""The stubs (.pyi) and the modules have the same public names and arguments.

test_stub_sources.py compares the stubs with the sources, mypy's stubtest more: docs/python/install.md.
"""

import ast
import glob
import importlib
import inspect
import os
import unittest

import leat

PLACES = (os.path.dirname(leat.__file__), os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "leat"))
PLACE = next(place for place in PLACES if os.path.exists(os.path.join(place, "py.typed")))
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def read_stub(path):
    with open(path) as file:
        return ast.parse(file.read())


def is_public(name):
    return not name.startswith("_")


def stub_names(body):
    """Returns the public names that the statements of a module's or a class's stub define."""
    names = {}
    for node in body:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            names.setdefault(node.name, node)  # of a property, the getter
        elif isinstance(node, ast.AnnAssign):
            names[node.target.id] = node
        elif isinstance(node, ast.ImportFrom):
            names.update((alias.asname, node) for alias in node.names if alias.asname)
    return {name: node for name, node in names.items() if is_public(name)}


def stub_arguments(node):
    """Returns the arguments of a function's stub as (name, True if it has a default)."""
    given = node.args
    ordered = given.posonlyargs + given.args
    defaults = [False] * (len(ordered) - len(given.defaults)) + [True] * len(given.defaults)
    found = [(argument.arg, default) for argument, default in zip(ordered, defaults)]
    found += [("*" + given.vararg.arg, False)] if given.vararg else []
    found += [(argument.arg, default is not None) for argument, default in zip(given.kwonlyargs, given.kw_defaults)]
    found += [("**" + given.kwarg.arg, False)] if given.kwarg else []
    return found


def real_arguments(function):
    """Returns the arguments of a function in the form of stub_arguments; None for functions in C, which do not tell."""
    if not inspect.isfunction(function):
        return None
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    parameters = inspect.signature(function).parameters.values()
    return [(stars.get(item.kind, "") + item.name, item.default is not item.empty) for item in parameters]


class Stubs(unittest.TestCase):
    def setUp(self):
        self.modules = {}
        for path in sorted(glob.glob(os.path.join(PLACE, "**", "*.pyi"), recursive=True)):
            name = os.path.relpath(path, PLACE)[: -len(".pyi")].replace(os.sep, ".")
            name = "leat" if name == "__init__" else "leat." + name.replace(".__init__", "")
            if name.startswith(("leat.keras", "leat.torch")):
                continue  # They import other packages: test_stub_sources.py compares them.
            try:
                self.modules[name] = read_stub(path), importlib.import_module(name)
            except ImportError as error:  # This leat has the feed alone.
                self.assertIn("_trainer", str(error))

    def compare_function(self, where, node, function):
        real = real_arguments(inspect.unwrap(getattr(function, "__func__", function)))
        if real is not None:
            self.assertEqual(stub_arguments(node), real, where)

    def compare_class(self, where, node, real):
        stub = stub_names(node.body)
        for name, member in stub.items():
            if isinstance(member, FUNCTIONS):
                static = inspect.getattr_static(real, name, None)
                self.assertIsNotNone(static, f"{where}.{name} is in the stub alone")
                decorated = any(isinstance(item, ast.Name) and item.id == "property" for item in member.decorator_list)
                self.assertEqual(decorated, isinstance(static, property), f"{where}.{name}: a property or not")
                if not decorated:
                    self.compare_function(f"{where}.{name}", member, static)
        missing = {name for name in vars(real) if is_public(name)} - set(stub)
        self.assertEqual(missing, set(), f"{where}: the stub lacks these")
        made = [item for item in node.body if isinstance(item, FUNCTIONS) and item.name in ("__init__", "__new__")]
        if made and made[0].name in vars(real):
            self.compare_function(f"{where}.{made[0].name}", made[0], vars(real)[made[0].name])

    def test_modules(self):
        for module, (tree, real) in self.modules.items():
            for name, node in stub_names(tree.body).items():
                where = f"{module}.{name}"
                if module.startswith("leat._trainer") and name == "Predictor":
                    continue  # The base of leat.Predictor.
                self.assertTrue(hasattr(real, name), f"{where} is in the stub alone")
                if isinstance(node, ast.ClassDef):
                    self.compare_class(where, node, getattr(real, name))
                elif isinstance(node, FUNCTIONS):
                    self.compare_function(where, node, getattr(real, name))

    def test_everything_public_has_a_stub(self):
        tree, _ = self.modules["leat"]
        names = set(stub_names(tree.body)) | {"__version__"}
        self.assertEqual({name for name in leat.__all__} - names, set(), "python/leat/__init__.pyi lacks these")
        for module, (tree, real) in self.modules.items():
            if module.startswith("leat._"):
                continue
            own = {
                name
                for name, value in vars(real).items()
                if is_public(name) and getattr(value, "__module__", None) == module and callable(value)
            }
            self.assertEqual(own - set(stub_names(tree.body)), set(), f"the stub of {module} lacks these")

    def test_docstrings(self):
        for name in leat.__all__:
            self.assertTrue(inspect.getdoc(getattr(leat, name)), f"leat.{name} has no docstring")


if __name__ == "__main__":
    unittest.main()
