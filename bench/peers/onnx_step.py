# SPDX-License-Identifier: Apache-2.0
"""Measures ONNX Runtime: predictions of the MLP, of the LSTM, of one step of the LSTM with its state as input and output,
and of a model in a file."""
import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import serving

rng = numpy.random.default_rng(1)


def weight(name, *shape):
    return numpy_helper.from_array((rng.random(shape, dtype="float32") - 0.5) / 4, name)


def session_of(model, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def session(nodes, inputs, outputs, weights, threads):
    values = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in side]
              for side in (inputs, outputs)]
    model = helper.make_model(helper.make_graph(nodes, "work", *values, weights),
                              opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return session_of(model.SerializeToString(), threads)


def mlp(threads):
    nodes, weights, sizes = [], [], (64, 128, 128, 4)
    for i in range(3):
        name = "y" if i == 2 else "g%d" % i
        weights += [weight("w%d" % i, sizes[i], sizes[i + 1]), weight("b%d" % i, sizes[i + 1])]
        nodes.append(helper.make_node("Gemm", ["x" if i == 0 else "h%d" % (i - 1), "w%d" % i, "b%d" % i], [name]))
        if i < 2:
            nodes.append(helper.make_node("Relu", [name], ["h%d" % i]))
    return session(nodes, [("x", (1, 64))], [("y", (1, 4))], weights, threads), {"x": (1, 64)}


def lstm(steps, threads):
    weights = [weight("w", 1, 256, 8), weight("r", 1, 256, 64), weight("b", 1, 512)]
    shapes = {"x": (steps, 1, 8), "h0": (1, 1, 64), "c0": (1, 1, 64)}
    nodes = [helper.make_node("LSTM", ["x", "w", "r", "b", "", "h0", "c0"], ["", "h", "c"], hidden_size=64)]
    outputs = [("h", (1, 1, 64)), ("c", (1, 1, 64))]
    if steps > 1:
        weights += [weight("wd", 64, 4), weight("bd", 4), numpy_helper.from_array(numpy.array([1, 64], "int64"), "flat")]
        nodes += [helper.make_node("Reshape", ["h", "flat"], ["last"]), helper.make_node("Gemm", ["last", "wd", "bd"], ["y"])]
        outputs = [("y", (1, 4))]
    return session(nodes, list(shapes.items()), outputs, weights, threads), shapes


def saved(path, batch, threads):
    """A model's file, whose first dimension is the batch."""
    made = session_of(path, threads)
    return made, {x.name: (batch,) + tuple(x.shape[1:]) for x in made.get_inputs()}


def made_of(wishes):
    if wishes["model"].endswith(".onnx"):
        return saved(wishes["model"], wishes["batch"], wishes["threads"])
    return mlp(wishes["threads"]) if wishes["model"] == "mlp" else lstm(
        1 if wishes["mode"] == "stream" else 64, wishes["threads"])


def measure(wishes):
    made, shapes = made_of(wishes)
    feed = {name: numpy.zeros(shape, "float32") if name in ("h0", "c0") else rng.random(shape, dtype="float32")
            for name, shape in shapes.items()}

    def once():
        found = made.run(None, feed)
        if wishes["mode"] == "stream":
            feed["h0"], feed["c0"] = found
    return serving.median_us(once, wishes.get("seconds", 1), cpu=bool(wishes.get("cpu")))


if __name__ == "__main__":
    serving.serve(lambda wishes: {"us": measure(wishes), "version": onnxruntime.__version__})
