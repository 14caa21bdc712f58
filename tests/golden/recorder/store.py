# SPDX-License-Identifier: Apache-2.0
"""Writes a case: one .npz whose bytes depend on nothing but its members (fixed dates, fixed order)."""
import io
import json
import os
import zipfile
import zlib

import numpy as np

SIZE_LIMIT_BYTES = 20 * 1024


def random_for(name):
    """Returns a generator that depends only on the name of the case, so other cases may be added or removed."""
    return np.random.RandomState(zlib.crc32(name.encode("utf-8")) & 0xFFFFFFFF)


def _plain(value):
    """Converts objects that json does not support: numpy scalars and arrays."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError("no JSON for %r" % type(value))


def text(value):
    """Returns the UTF-8 bytes of a text, or of the JSON of another object, as a uint8 array."""
    if not isinstance(value, str):
        value = json.dumps(value, default=_plain, sort_keys=True)
    return np.frombuffer(value.encode("utf-8"), dtype=np.uint8)


def _stored(array):
    """Converts to little-endian float32 or int32 (int64 if a number needs it) in C order; uint8 stays uint8; a scalar
    becomes one element."""
    array = np.asarray(array)
    if array.dtype != np.uint8:
        wide = array.dtype == np.int64 and np.any(array != array.astype("<i4"))
        array = array.astype("<i8" if wide else "<i4" if array.dtype.kind in "iub" else "<f4")
    return np.atleast_1d(np.ascontiguousarray(array))


def save(path, members, limit_bytes=SIZE_LIMIT_BYTES):
    """Writes members (name to array) to path, in the order given."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in members.items():
            data = io.BytesIO()
            np.lib.format.write_array(data, _stored(array), version=(1, 0), allow_pickle=False)
            info = zipfile.ZipInfo(name + ".npy", date_time=(1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, data.getvalue())
    data = buffer.getvalue()
    if len(data) > limit_bytes:
        raise ValueError("%s: %d bytes, at most %d wanted" % (path, len(data), limit_bytes))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as out:
        out.write(data)
