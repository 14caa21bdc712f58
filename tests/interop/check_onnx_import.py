# SPDX-License-Identifier: Apache-2.0
"""Checks that leat reads ONNX files: check_onnx_import.py API.json libleat.so FOLDER [--exporter old|new] [WORD...].

A WORD selects nets of onnx_nets.py, or golden layer cases ("golden:" in front), whose name contains it; a WORD that is the
path of a model file of Keras adds that model; one that ends in .onnx adds that file.  Without a WORD: all nets with both
exporters of PyTorch, and all golden cases.

A net is exported by PyTorch.  A golden case or a model is exported by leat.  leat reads the file, and predicts what ONNX
Runtime predicts, for batches of 1, 2 and 5.  Prints a line for each net and a table; exits 1 if there is a difference above
1e-5 of the output's scale."""
import collections
import os
import re
import sys
import time
import warnings

import numpy as np
import onnx

import bind_leat
import check_onnx
import models

LIMIT = 1e-5
BATCHES = (1, 2, 5)


def moved(arrays, axes):
    """leat has the batch as axis 0."""
    return [np.ascontiguousarray(np.moveaxis(a, axis, 0)) for a, axis in zip(arrays, axes)]


def weight_count(api, model):
    return api.library.leat_model_weight_count(model)


def with_batch(x, axis, batch):
    """Returns `batch` different samples made of those of x."""
    parts = [np.take(x, [i % x.shape[axis]], axis) for i in range(batch)]
    if x.dtype.kind == "f":
        parts = [part * np.float32(1 + 0.1 * i) for i, part in enumerate(parts)]
    return np.concatenate(parts, axis)


def compare(api, path, xs, axes, out_axes=None, batches=BATCHES):
    """Returns the largest difference between leat and ONNX Runtime."""
    session = check_onnx.session_of(path)
    model = api.model_load(path)
    worst, out_axes = 0.0, out_axes or [axes[0]] * len(session.get_outputs())
    for batch in batches:
        some = [with_batch(x, axis, batch) for x, axis in zip(xs, axes)]
        wanted = session.run(None, {item.name: x for item, x in zip(session.get_inputs(), some)})
        wanted = moved(wanted, out_axes)
        found = check_onnx.predict(api, model, moved(some, axes), wanted)
        worst = max(worst, check_onnx.error_of(found, wanted))
    return worst


# ---- PyTorch ----

def export(module, xs, axes, path, new, fixed=False):
    import torch
    names = ["x%d" % i for i in range(len(xs))]
    torch.backends.mha.set_fastpath_enabled(False)  # no exporter knows the fused layers
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        if new:
            shapes = tuple({axis: torch.export.Dim("batch")} for axis in axes)
            dynamic = None if fixed else (shapes if not hasattr(module, "function") else (shapes,))
            torch.onnx.export(module, xs, path, dynamo=True, dynamic_shapes=dynamic, input_names=names, verbose=False,
                              external_data=False)
        else:
            dynamic = None if fixed else {name: {axis: "batch"} for name, axis in zip(names, axes)}
            torch.onnx.export(module, xs, path, dynamo=False, input_names=names, dynamic_axes=dynamic)


def draw_statistics(module):
    """Gives normalizations statistics and scales that are not those of a new net."""
    import torch
    for part in module.modules():
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm):
            part.running_mean.uniform_(-0.2, 0.2)
            part.running_var.uniform_(0.7, 1.3)
            part.weight.data.uniform_(0.8, 1.2)
            part.bias.data.uniform_(-0.1, 0.1)


def check_net(api, make, path, new):
    import torch
    torch.manual_seed(1)
    made = make()
    module, xs, axes = made if len(made) == 3 else made + ((0,) * len(made[1]),)
    module.eval()
    draw_statistics(module)
    export(module, xs, axes, path, new)
    return compare(api, path, [x.numpy() for x in xs], axes)


# ---- Files of leat ----

def check_written(api, path, xs):
    """Checks a file that leat has written: inputs behind xs are states, which begin as zeros."""
    session = check_onnx.session_of(path)
    items, xs = session.get_inputs(), list(xs)
    for i, item in enumerate(items):
        if i >= len(xs):
            xs.append(np.zeros(item.shape, "float32"))
        dtype = item.type[7:-1]
        xs[i] = xs[i].astype({"float": "float32", "double": "float64"}.get(dtype, dtype))
        if xs[i].ndim == len(item.shape) - 1:
            xs[i] = xs[i].reshape(xs[i].shape + (1,))
    wanted = session.run(None, {item.name: x for item, x in zip(items, xs)})
    model = api.model_load(path)
    return check_onnx.error_of(check_onnx.predict(api, model, xs, wanted), wanted)


def check_golden(api, archive, path):
    api.model_save(check_onnx.build(api, archive), path, True)
    return check_written(api, path, models.numbered(archive, "x"))


def check_file(api, source, path):
    if not source.endswith(".onnx"):
        api.model_save(api.model_load(source), path, True)
        source = path
    session = check_onnx.session_of(source)
    return check_written(api, source, check_onnx.random_inputs(session, 2))


# ---- The table ----

class Table:
    def __init__(self):
        self.counts, self.worst = collections.Counter(), collections.Counter()

    def add(self, group, name, check):
        begun = time.time()
        try:
            error = check()
        except bind_leat.LeatError as e:
            self.counts[group, "refused"] += 1
            print("%s %s: refused: %s" % (group, name, re.sub(r"\s+", " ", str(e))[:400]))
            sys.stdout.flush()
            return
        except Exception as e:  # the list tells
            self.counts[group, "not exported"] += 1
            print("%s %s: not exported: %s" % (group, name, " ".join(str(e).split())[:200]))
            sys.stdout.flush()
            return
        right = error <= LIMIT
        self.counts[group, "right" if right else "wrong"] += 1
        self.worst[group] = max(self.worst[group], error)
        if not right or not group.startswith("golden"):
            print("%s %s: %.1e%s (%.1f s)" % (group, name, error, "" if right else " WRONG", time.time() - begun))
            sys.stdout.flush()

    def show(self):
        print("| Files | Right | Wrong | Refused | Not exported | Largest difference |\n|---|---|---|---|---|---|")
        for group in sorted({key[0] for key in self.counts}):
            numbers = tuple(self.counts[group, word] for word in ("right", "wrong", "refused", "not exported"))
            print("| %s | %d | %d | %d | %d | %.1e |" % ((group,) + numbers + (self.worst[group],)))
        return 1 if any(key[1] == "wrong" for key in self.counts) else 0


def main():
    words, exporters = sys.argv[4:], (False, True)
    if "--exporter" in words:
        at = words.index("--exporter")
        exporters, words = (words[at + 1] == "new",), words[:at] + words[at + 2:]
    api, path, table = bind_leat.Api(sys.argv[1], sys.argv[2]), os.path.join(sys.argv[3], "case.onnx"), Table()
    files = [word for word in words if os.path.isfile(word)]
    golden = [word[7:] for word in words if word.startswith("golden:")]
    names = [word for word in words if word not in files and not word.startswith("golden:")]
    for source in files:
        table.add("files", os.path.basename(source), lambda: check_file(api, source, path))
    if names or not words:
        import onnx_nets
        for new in exporters:
            for name, make in onnx_nets.NETS.items():
                if not names or any(word in name for word in names):
                    table.add("PyTorch, new exporter" if new else "PyTorch", name, lambda: check_net(api, make, path, new))
    if golden or not words:
        for group, name, archive in check_onnx.cases([word for word in golden if word]):
            table.add("golden, " + group, name, lambda: check_golden(api, archive, path))
    return table.show()


if __name__ == "__main__":
    sys.exit(main())
