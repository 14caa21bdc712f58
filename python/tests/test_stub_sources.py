# SPDX-License-Identifier: Apache-2.0
"""The stubs (.pyi) have the functions, arguments, defaults, classes and attributes of the sources.

The files are compared as text, so that modules for packages that are not installed (torch, keras) are compared, too.
test_stubs.py compares the stubs with the modules as they are imported.
"""

import ast
import builtins
import glob
import os
import unittest

import test_stubs
from test_stubs import FUNCTIONS, PLACE, is_public, stub_arguments

# Classes that a function of the source makes: the name in the stub, and the name in the source.
MADE = {"keras.pyi": {"PyDataset": "Dataset", "Sequence": "Dataset"}}
SPECIAL = ("__init__", "__len__", "__iter__", "__next__", "__getitem__", "__call__", "__enter__", "__exit__")


def definitions(body):
    """Returns the functions and classes that statements define, by name; of a property, the getter."""
    found = {}
    for node in body:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            found.setdefault(node.name, node)
        elif isinstance(node, (ast.If, ast.Try)):
            for name, inner in definitions(node.body).items():
                found.setdefault(name, inner)
    return found


def imported(tree):
    """Returns the names that a stub defines by `import NAME as NAME`."""
    nodes = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    return {alias.asname for node in nodes for alias in node.names if alias.asname == alias.name.split(".")[-1]}


def attributes(node):
    """Returns the public names that a class has beside its functions, as a stub or the source tells them."""
    found = set()
    for item in node.body:
        if isinstance(item, ast.AnnAssign):
            found.add(item.target.id)
        elif isinstance(item, ast.Assign):
            found.update(target.id for target in item.targets if isinstance(target, ast.Name))
        elif isinstance(item, FUNCTIONS) and item.name in ("__init__", "__new__"):
            for inner in ast.walk(item):
                if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store):
                    if isinstance(inner.value, ast.Name) and inner.value.id == "self":
                        found.add(inner.attr)
    return {name for name in found if is_public(name)}


def decorators(node):
    names = {item.id for item in node.decorator_list if isinstance(item, ast.Name)}
    return names & {"property", "staticmethod", "classmethod"}


def constant_defaults(node):
    """Returns the defaults of arguments that are constants in the source or the stub, by name."""
    given = node.args
    ordered = given.posonlyargs + given.args if hasattr(given, "posonlyargs") else given.args
    pairs = list(zip(ordered[len(ordered) - len(given.defaults) :], given.defaults))
    pairs += [pair for pair in zip(given.kwonlyargs, given.kw_defaults) if pair[1] is not None]
    found = {}
    for argument, default in pairs:
        try:
            found[argument.arg] = ast.literal_eval(default)
        except ValueError:
            pass  # A name of the module, or `...`.
    return {name: value for name, value in found.items() if value is not ...}


def compare_functions(where, stub, source):
    problems = []
    if decorators(stub) != decorators(source):
        problems.append(f"{where}: decorators {decorators(stub)} in the stub, {decorators(source)} in the source")
    if stub_arguments(stub) != stub_arguments(source):
        pair = stub_arguments(stub), stub_arguments(source)
        problems.append(f"{where}: arguments {pair[0]} in the stub, {pair[1]} in the source")
    if [item.arg for item in stub.args.kwonlyargs] != [item.arg for item in source.args.kwonlyargs]:
        problems.append(f"{where}: other keyword-only arguments than in the source")
    of_source = constant_defaults(source)
    for name, value in constant_defaults(stub).items():
        if name in of_source and of_source[name] != value:
            problems.append(f"{where}: {name}={value!r} in the stub, {of_source[name]!r} in the source")
    return problems


def compare_classes(where, stub, source, bases=()):
    """bases: stubs of classes of the same module, whose attributes the class has, too."""
    problems = []
    in_stub, in_source = definitions(stub.body), definitions(source.body)
    for name, node in in_source.items():
        if not is_public(name) and name not in SPECIAL:
            continue
        if name not in in_stub:
            problems.append(f"{where}.{name} is not in the stub")
        elif isinstance(node, FUNCTIONS) and isinstance(in_stub[name], FUNCTIONS):
            problems += compare_functions(f"{where}.{name}", in_stub[name], node)
    known = set(in_stub).union(attributes(stub), *map(attributes, bases))
    problems += [f"{where}.{name} is not in the stub" for name in sorted(attributes(source) - known)]
    return problems


def compare(stub, source, whole=True, made=()):
    """Returns what a stub lacks, or says wrongly.  whole: all public names of the source must be in the stub."""
    stub, source = ast.parse(stub), ast.parse(source)
    in_stub, in_source = definitions(stub.body), definitions(source.body)
    for name, real in dict(made).items():
        (in_source[name],) = [item for item in ast.walk(source) if getattr(item, "name", None) == real]
    problems = []
    for name, node in in_source.items():
        if name in in_stub and isinstance(node, ast.ClassDef) and isinstance(in_stub[name], ast.ClassDef):
            names = {inner.id for base in node.bases for inner in ast.walk(base) if isinstance(inner, ast.Name)}
            bases = [in_stub[base] for base in names & set(in_stub) if isinstance(in_stub[base], ast.ClassDef)]
            problems += compare_classes(name, in_stub[name], node, bases)
        elif name in in_stub and isinstance(node, FUNCTIONS) and isinstance(in_stub[name], FUNCTIONS):
            problems += compare_functions(name, in_stub[name], node)
        elif name in in_stub:
            problems.append(f"{name} is a class in one file, and a function in the other")
        elif whole and is_public(name):
            problems.append(f"{name} is not in the stub")
    names = set(in_stub) | imported(stub) | set(test_stubs.stub_names(stub.body))
    for node in source.body:
        if isinstance(node, ast.Assign) and [getattr(item, "id", None) for item in node.targets] == ["__all__"]:
            missing = set(ast.literal_eval(node.value)) - names - {"__version__"}
            problems += [f"{name} of __all__ is not in the stub" for name in sorted(missing)]
    return problems


def undefined(text):
    """Returns the names that a stub uses and nobody defines."""
    tree = ast.parse(text)
    known = set(dir(builtins))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            known.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
        elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            known.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            known.add(node.id)
    return sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - known)


def read(path):
    with open(path) as file:
        return file.read()


class StubSources(unittest.TestCase):
    def test_stubs_have_what_the_sources_have(self):
        stubs = sorted(glob.glob(os.path.join(PLACE, "**", "*.pyi"), recursive=True))
        self.assertTrue(stubs)
        for path in stubs:
            name = os.path.relpath(path, PLACE)
            self.assertEqual(undefined(read(path)), [], f"{name} uses names that nobody defines")
            source = path[:-1]
            if not os.path.exists(source):
                continue  # An extension: test_stubs.py compares it.
            with self.subTest(name):
                whole = not os.path.basename(path).startswith("_")
                self.assertEqual(compare(read(path), read(source), whole, MADE.get(name, {})), [])

    def test_modules_have_stubs_or_annotations(self):
        for path in glob.glob(os.path.join(PLACE, "**", "*.py"), recursive=True):
            name = os.path.relpath(path, PLACE)
            if os.path.exists(path + "i") or (os.path.basename(path).startswith("_") and "__init__" not in name):
                continue
            for function in definitions(ast.parse(read(path)).body).values():
                if isinstance(function, FUNCTIONS) and is_public(function.name):
                    self.assertIsNotNone(function.returns, f"{name}: {function.name} has no stub and no annotations")

    def test_the_comparison_notices(self):
        source = "__all__ = ['f', 'C']\ndef f(a, b=1, *, c=2): pass\nclass C:\n"
        source += "    def __init__(self): self.size = 1\n"
        source += "    @property\n    def p(self): pass\n    def m(self, x): pass\n"
        good = "def f(a: int, b: int = 1, *, c: int = 2) -> None: ...\nclass C:\n    size: int\n"
        good += "    def __init__(self) -> None: ...\n    @property\n    def p(self) -> int: ...\n"
        good += "    def m(self, x: int) -> None: ...\n"
        self.assertEqual(compare(good, source), [])
        for wrong in (
            good.partition("class")[0],  # a class
            good.replace("def f(", "def g("),
            good.replace("b: int = 1, ", ""),
            good.replace("b: int = 1", "b: int"),
            good.replace("b: int = 1", "b: int = 3"),
            good.replace("*, ", ""),
            good.replace("    @property\n", ""),
            good.replace("    size: int\n", ""),
            good.replace("    def m(self, x: int) -> None: ...\n", ""),
            good.replace("x: int", "y: int"),
            good.replace("    def __init__(self) -> None: ...\n", ""),
        ):
            self.assertNotEqual(compare(wrong, source), [], wrong)
        self.assertEqual(undefined("import os\nfrom a import B\nC = int\ndef f(a: B, b: C) -> os.x: ...\n"), [])
        self.assertEqual(undefined("def f(a: B) -> None: ...\n"), ["B"])


if __name__ == "__main__":
    unittest.main()
