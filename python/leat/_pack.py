# SPDX-License-Identifier: Apache-2.0
"""Batches as parts: part 0 is a pickle of the structure, the others are the memory of its arrays, without a copy."""

import io
import sys

from leat import _native
from leat._compat import pickle

BATCH, EXCEPTION, STRUCTURE = 0, 1, 2


def _array(shape, dtype, order, memory):
    import numpy

    return numpy.ndarray(shape, dtype, memory, order=order)


def _tensor(shape, dtype, memory):
    import torch

    count = 1
    for size in shape:
        count *= size
    if count == 0:
        return torch.empty(shape, dtype=getattr(torch, dtype))
    return torch.frombuffer(memory, dtype=getattr(torch, dtype), count=count).reshape(shape)


class _Packer(pickle.Pickler):
    """Pickles arrays of NumPy and tensors of torch on the CPU as a view of memory that is sent apart."""

    def reducer_override(self, value):
        kind = type(value)
        if kind.__module__ == "numpy" and kind.__name__ == "ndarray":
            return self._reduce_array(value)
        torch = sys.modules.get("torch")
        if torch is not None and kind is torch.Tensor:
            return self._reduce_tensor(value, torch)
        return NotImplemented

    def _reduce_array(self, value):
        if value.dtype.hasobject or value.dtype.names:
            return NotImplemented
        order = "C"
        if not value.flags.c_contiguous:
            if value.flags.f_contiguous:
                order = "F"
            else:
                value = value.copy()
        dtype = value.dtype.str if value.dtype.isbuiltin == 1 else value.dtype
        raw = value.view("i8") if value.dtype.kind in "mM" else value
        return _array, (value.shape, dtype, order, pickle.PickleBuffer(raw))

    def _reduce_tensor(self, value, torch):
        if value.device.type != "cpu" or value.layout != torch.strided or value.is_quantized or value.requires_grad:
            return NotImplemented
        if value.is_conj() or value.is_neg() or value.dtype.is_complex:
            return NotImplemented
        value = value.detach().contiguous()
        memory = value.reshape(-1).view(torch.uint8).numpy() if value.numel() else b""
        return _tensor, (tuple(value.shape), str(value.dtype)[len("torch.") :], pickle.PickleBuffer(memory))


_known = [False, False]  # if the native part knows the types of NumPy and torch


def learn_types():
    """Tells the native part the types of NumPy, and of torch as soon as it is loaded."""
    import numpy

    torch = sys.modules.get("torch")
    if not _known[0]:
        types = {format: numpy.dtype(format) for format in "?bBhHiIlLqQefd"}
        types.update(Zf=numpy.dtype("F"), Zd=numpy.dtype("D"))
        _native.set_array_types(numpy.ndarray, types, None, None)
        _known[0] = True
    if hasattr(torch, "from_numpy") and not _known[1]:
        _native.set_array_types(None, None, torch.Tensor, torch.from_numpy)
        _known[1] = True


def pack(batch):
    """Returns the kind of the parts of a batch, and the parts: bytes and buffers."""
    if not all(_known):
        learn_types()
    parts = _native.encode_structure(batch)
    if parts is not None:
        return STRUCTURE, parts
    return BATCH, pack_by_pickle(batch)


def make_template(example):
    """Returns the parts of batches like an example, for _native.begin_in_place; None if they need a pickle.

    The example has arrays, or other objects that have a shape and a dtype, such as jax.ShapeDtypeStruct.
    """
    import numpy

    if not all(_known):
        learn_types()

    def fill(value):
        if isinstance(value, dict):
            return {key: fill(part) for key, part in value.items()}
        if type(value) in (list, tuple):
            return type(value)(fill(part) for part in value)
        if hasattr(value, "shape") and hasattr(value, "dtype"):
            return numpy.empty(tuple(value.shape), numpy.dtype(value.dtype))
        return value

    return _native.encode_structure(fill(example))


def begin_in_place(template):
    """Returns a batch in the slot of the batch that this thread is making; its arrays have any content."""
    if not _known[0]:
        learn_types()
    return _native.begin_in_place(template)


def pack_by_pickle(batch):
    """Returns the parts of a batch: bytes and buffers."""
    buffers = []
    file = io.BytesIO()
    _Packer(file, protocol=5, buffer_callback=buffers.append).dump(batch)
    return [file.getbuffer(), *(buffer.raw() for buffer in buffers)]


def pack_exception(error):
    """Returns the parts of an exception and its traceback; of a description if the exception cannot be pickled."""
    import traceback

    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    description = (type(error).__name__, str(error))
    try:
        sent = pickle.dumps((error, description, text))
        pickle.loads(sent)
    except Exception:
        sent = pickle.dumps((None, description, text))
    return [sent]


def unpack(parts):
    """Returns the batch; its arrays view the parts."""
    return pickle.loads(parts[0], buffers=parts[1:])
