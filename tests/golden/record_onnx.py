# SPDX-License-Identifier: Apache-2.0
"""Records tests/golden/onnx: small ONNX files of PyTorch, with inputs and what ONNX Runtime predicts: record_onnx.py FOLDER.

Needs torch, onnx, onnxscript, onnxruntime.  NAME.onnx is the file; NAME.npz has x0.. and y0.., with the batch as axis 0.
A name that ends in _new comes from torch.onnx.export(dynamo=True), one that ends in _fixed from an export with a fixed
batch size of 1."""
import os
import sys

import numpy as np
import onnx
import onnxruntime
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "interop"))
import check_onnx_import  # noqa: E402
import onnx_nets  # noqa: E402

OLD = ("mlp", "mlp_batch_norm", "mlp_activations", "mlp_residual", "mlp_shared", "mlp_two_inputs", "cnn_batch_norm", "cnn_pools",
       "cnn_groups", "cnn_1d", "cnn_3d", "gan_generator", "unet", "squeeze_excite", "group_norm", "pixel_shuffle", "open_image",
       "conv_lstm", "lstm_steps_first", "lstm_last_state", "lstm_bidirectional", "lstm_states", "gru", "gru_bidirectional",
       "gru_without_bias", "rnn_relu", "text_classifier", "multi_head_attention", "transformer_encoder",
       "transformer_steps_first", "gpt", "attention_einsum", "mixer")
NEW = ("mlp_residual", "cnn_batch_norm", "unet", "lstm_bidirectional", "transformer_encoder")
FIXED = ("mlp_residual", "cnn_batch_norm", "lstm_bidirectional", "transformer_encoder")


def stripped(path):
    """Removes what says where the exporter ran, and shapes that nobody needs."""
    model = onnx.load(path)
    del model.graph.value_info[:]
    del model.metadata_props[:]
    for item in list(model.graph.node) + list(model.graph.input) + list(model.graph.output) + list(model.graph.initializer):
        item.doc_string = ""
        if hasattr(item, "metadata_props"):
            del item.metadata_props[:]
    del model.graph.metadata_props[:]
    onnx.save(model, path)


def record(folder, name, ending, new=False, fixed=False):
    torch.manual_seed(3)
    made = onnx_nets.NETS[name]()
    module, xs, axes = made if len(made) == 3 else made + ((0,) * len(made[1]),)
    module.eval()
    check_onnx_import.draw_statistics(module)
    if fixed:
        xs = tuple(x.narrow(axis, 0, 1) for x, axis in zip(xs, axes))
    path = os.path.join(folder, name + ending + ".onnx")
    check_onnx_import.export(module, xs, axes, path, new, fixed)
    stripped(path)
    xs = [x.numpy() for x in xs]
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    ys = session.run(None, {item.name: x for item, x in zip(session.get_inputs(), xs)})
    arrays = {"x%d" % i: x for i, x in enumerate(check_onnx_import.moved(xs, axes))}
    arrays.update(("y%d" % i, y) for i, y in enumerate(check_onnx_import.moved(ys, [axes[0]] * len(ys))))
    np.savez_compressed(os.path.join(folder, name + ending + ".npz"), **arrays)
    print(name + ending, os.path.getsize(path))


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for name in OLD:
        record(folder, name, "")
    for name in FIXED:
        record(folder, name, "_fixed", fixed=True)
    for name in NEW:
        record(folder, name, "_new", new=True)


if __name__ == "__main__":
    main()
