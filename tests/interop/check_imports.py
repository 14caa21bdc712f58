# SPDX-License-Identifier: Apache-2.0
"""Uses leat, TensorFlow, PyTorch and h5py in one process, imported in every order, and JAX and Pillow beside them.

usage: check_imports.py [--global] [MODULE...]
MODULE: modules whose every order is tried, beside leat; default: tensorflow, torch and h5py, if installed.
--global: every module makes its symbols visible to all others, as programs with MPI do.
Each order runs in a process of its own, which imports all modules, uses each of them, and uses each again.  JAX and
Pillow, if they are installed, are imported at a place that changes from one order to the next.
"""

import importlib
import importlib.util
import itertools
import os
import shutil
import subprocess
import sys
import tempfile

MODULES = ("tensorflow", "torch", "h5py")
FURTHER = ("jax", "PIL.Image")
PICTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "pictures")
FORMATS = (".gif", ".jpg", ".png", ".tif", ".webp")
MODEL = """{"class_name": "Sequential", "config": {"name": "m", "layers": [
  {"class_name": "Conv2D", "config": {"name": "c", "filters": 3, "kernel_size": [5, 5], "groups": 3,
    "batch_input_shape": [null, 16, 16, 3]}},
  {"class_name": "Flatten", "config": {"name": "f"}},
  {"class_name": "Dense", "config": {"name": "d", "units": 4}}]}}"""


def use_leat(folder):
    import leat
    import numpy

    model = leat.Model.from_json(MODEL)
    model.initialize(1)
    images = numpy.linspace(0, 1, 64 * 16 * 16 * 3, dtype="float32").reshape(64, 16, 16, 3)
    model.compile("sgd", "mse")
    model.train_on_batch(images, numpy.zeros((64, 4), "float32"))
    before = model.predict(images)
    path = os.path.join(folder, "leat.h5")
    model.save(path)
    with leat.Model.load(path) as loaded:
        after = loaded.predict(images)
    model.close()
    with leat.Feed(list(images), workers=2, kind="thread") as feed:
        assert sum(1 for _ in feed) == 64
    assert numpy.array_equal(before, after)
    return before.tobytes() + read_pictures(folder)


def read_pictures(folder):
    """Returns the pixels of pictures of all formats, which a feed of leat has decoded."""
    import leat
    import numpy

    names = pictures()
    if not os.path.isdir(os.path.join(folder, "pictures")):
        os.mkdir(os.path.join(folder, "pictures"))
        for name in names:
            shutil.copy(os.path.join(PICTURES, name), os.path.join(folder, "pictures"))
    spec = f"images:{folder}/pictures?size=32x32&labels=none"
    with leat.Feed(leat.source(spec, 2), workers=2) as feed:
        batches = [numpy.array(batch) for batch in feed]
    assert sum(len(batch) for batch in batches) == len(names)
    return b"".join(batch.tobytes() for batch in batches)


def pictures():
    """Returns the names of two pictures of each format."""
    names = sorted(os.listdir(PICTURES))
    return [name for ending in FORMATS for name in [item for item in names if item.endswith(ending)][:2]]


def use_pillow(folder):
    from PIL import Image

    contents = []
    for name in pictures():
        with Image.open(os.path.join(PICTURES, name)) as image:
            contents.append(image.convert("RGB").tobytes())
    return b"".join(contents)


def use_jax(folder):
    import jax
    import numpy

    square = jax.numpy.arange(10000, dtype="float32").reshape(100, 100) / 10000
    return numpy.asarray(square @ square).tobytes()


def use_torch(folder):
    import torch

    square = torch.arange(10000, dtype=torch.float32).reshape(100, 100) / 10000
    image = torch.ones(1, 3, 32, 32)
    filtered = torch.nn.functional.conv2d(image, torch.ones(8, 3, 3, 3))
    return (square @ square).numpy().tobytes() + filtered.numpy().tobytes()


def use_tensorflow(folder):
    import tensorflow

    square = tensorflow.reshape(tensorflow.range(10000, dtype=tensorflow.float32), (100, 100)) / 10000
    filtered = tensorflow.nn.conv2d(tensorflow.ones((1, 32, 32, 3)), tensorflow.ones((3, 3, 3, 8)), 1, "VALID")
    return tensorflow.matmul(square, square).numpy().tobytes() + filtered.numpy().tobytes()


def use_h5py(folder):
    import h5py
    import numpy

    path = os.path.join(folder, "h5py.h5")
    with h5py.File(path, "w") as file:
        file.create_dataset("numbers", data=numpy.arange(1000), compression="gzip")
        file.attrs["name"] = "value"
    with h5py.File(path, "r") as file:
        assert file.attrs["name"] == "value"
        return file["numbers"][...].tobytes()


def use_all(order):
    """Imports the modules in an order, uses each twice, and checks that the results are the same."""
    for module in order:
        importlib.import_module(module)
    import leat

    leat.Model  # loads the trainer
    users = {"leat": use_leat, "torch": use_torch, "tensorflow": use_tensorflow, "h5py": use_h5py}
    users.update({"jax": use_jax, "PIL.Image": use_pillow})
    with tempfile.TemporaryDirectory() as folder:
        first = {module: users[module](folder) for module in order}
        for module in reversed(order):
            assert users[module](folder) == first[module], f"{module} gives other results"
        leat_file = os.path.join(folder, "leat.h5")
        if "h5py" in order:
            import h5py

            with h5py.File(leat_file, "r") as file:
                assert "model_weights" in file
    print("passed", len(first["leat"]), hash(first["leat"]))


def is_installed(module):
    return importlib.util.find_spec(module.split(".")[0]) is not None


def main(arguments):
    shared = "--global" in arguments
    modules = [item for item in arguments if not item.startswith("--")] or MODULES
    installed = [module for module in modules if is_installed(module)]
    further = [module for module in FURTHER if is_installed(module) and module not in installed]
    for module in sorted(set(modules) - set(installed)):
        print(f"check_imports: {module} is not installed, and left out")
    environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", PYTHONHASHSEED="0")
    failures, seen = 0, set()
    orders = list(itertools.permutations(["leat", *installed]))
    for number, order in enumerate(orders):
        for place, module in enumerate(further):
            position = (number + 2 * place) % (len(order) + 1)
            order = (*order[:position], module, *order[position:])
        script = f"import sys; sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r}); "
        script += "import os; sys.setdlopenflags(os.RTLD_NOW | os.RTLD_GLOBAL); " if shared else ""
        script += f"import check_imports; check_imports.use_all({list(order)!r})"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
        passed = done.returncode == 0 and "passed" in done.stdout
        print(f"{'passed' if passed else 'FAILED'}: {', '.join(order)}", flush=True)
        if passed:
            seen.add(done.stdout.split("passed")[1])
        else:
            failures += 1
            print(f"exit code {done.returncode}\n{done.stdout[-1000:]}{done.stderr[-3000:]}")
    if len(seen) > 1:
        print("check_imports: leat's results depend on the order")
    print(f"check_imports: {len(orders) - failures} of {len(orders)} orders passed")
    return 1 if failures or len(seen) > 1 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
