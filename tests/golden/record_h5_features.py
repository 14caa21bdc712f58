# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/files/h5_*.h5: small HDF5 files that use every feature that leat's reader knows, and the links
and storages that it refuses.  tests/formats/test_h5_features.c reads them.  With --small, writes smaller files for
fuzz/corpus/h5_reader.

usage: python record_h5_features.py FOLDER [--small]        (needs h5py >= 3.10)

Element i of each dataset is (i % 100) - 50, converted to the dataset's type."""
import sys

import h5py
import numpy as np


def numbers(shape, dtype):
    return (np.arange(int(np.prod(shape))) % 100 - 50).astype(dtype).reshape(shape)


def write(path, libver):
    with h5py.File(path, "w", libver=libver) as f:
        f.attrs["text"] = "\u00fcber"
        f.attrs["fixed"] = np.bytes_("fixed text")
        f.attrs["list"] = np.array([f"name_{i}".encode() for i in range(40)])
        f.attrs["variable"] = [f"variable {i}" * (i % 3) for i in range(30)]
        f.attrs["empty"] = np.array([])
        f.attrs["number"] = 3
        f["contiguous"] = numbers((5, 7), "<f4")
        f["scalar"] = numbers((), "<f4")
        f["half"] = numbers((9,), "<f2")
        f["double"] = numbers((9,), ">f8")
        f["int8"] = numbers((9,), "i1")
        f["int64"] = numbers((9,), ">i8")
        f.create_dataset("empty", (0, 4), "<f4")
        f.create_dataset("unwritten", (6,), "<f4", fillvalue=2.5)
        f.create_dataset("one_chunk", data=numbers((6, 5), "<f4"), chunks=(6, 5), compression="gzip")
        f.create_dataset("plain_chunks", data=numbers((7, 5), "<f4"), chunks=(3, 2))
        f.create_dataset("chunks", data=numbers((11, 13), "<f4"), chunks=(4, 5), compression="gzip", shuffle=True,
                         fletcher32=True)
        f.create_dataset("shuffled", data=numbers((30,), ">f8"), chunks=(7,), shuffle=True, fletcher32=True)
        f.create_dataset("many_chunks", data=numbers((1100,), "<f4"), chunks=(1,))
        sparse = f.create_dataset("sparse", (4, 6), "<f4", chunks=(2, 3), fillvalue=-1.0)
        sparse[0:2, 3:6] = 1.0
        f.create_dataset("growing", data=numbers((10,), "<f4"), maxshape=(None,), chunks=(4,))
        compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        compact.set_layout(h5py.h5d.COMPACT)
        made = h5py.h5d.create(f.id, b"compact", h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((8,)), dcpl=compact)
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, numbers((8,), "<f4"))
        group = f.create_group("group", track_order=True)
        for i in range(300):
            group[f"member_{i}"] = f["contiguous"]
        group["deep/er/data"] = numbers((3,), "<f4")
        for i in range(40):
            group.attrs[f"attribute_{i}"] = np.bytes_(f"value {i}")
        group.attrs["long"] = np.array([f"{i:060d}".encode() for i in range(100)])


def write_small(path, libver):
    with h5py.File(path, "w", libver=libver) as f:
        f.attrs["text"] = "text"
        f.attrs["list"] = np.array([b"one", b"two"])
        f.attrs["variable"] = ["a", "bc"]
        f["contiguous"] = numbers((2, 3), "<f4")
        f["double"] = numbers((3,), ">f8")
        f.create_dataset("one_chunk", data=numbers((3, 2), "<f4"), chunks=(3, 2), compression="gzip")
        f.create_dataset("chunks", data=numbers((5, 3), "<f4"), chunks=(2, 2), compression="gzip", shuffle=True,
                         fletcher32=True)
        f.create_dataset("many_chunks", data=numbers((9,), "<f4"), chunks=(1,))
        group = f.create_group("group", track_order=True)
        for i in range(12):
            group[f"member_{i}"] = f["contiguous"]
            group.attrs[f"attribute_{i}"] = np.bytes_(f"value {i}")


def write_links(path):
    """Links and storages that leave the file: all name 'pipe', which the test makes a FIFO."""
    with h5py.File(path, "w") as f:
        f["data"] = numbers((3,), "<f4")
        f["soft"] = h5py.SoftLink("/data")
        f["outside"] = h5py.ExternalLink("pipe", "/data")
        f.create_dataset("stored_outside", (3,), "<f4", external=[("pipe", 0, 12)])
        layout = h5py.VirtualLayout((3,), "<f4")
        layout[:] = h5py.VirtualSource("pipe", "data", (3,))
        f.create_virtual_dataset("virtual", layout)
        f["named_type"] = np.dtype("<f4")
        h5py.h5d.create(f.id, b"of_named_type", f["named_type"].id, h5py.h5s.create_simple((3,)))
        f.create_dataset("lzf", data=numbers((100,), "<f4"), compression="lzf")


def main():
    folder = sys.argv[1]
    if "--small" in sys.argv:
        for name, libver in (("earliest", "earliest"), ("v108", ("v108", "v108")), ("latest", "latest")):
            write_small(f"{folder}/{name}", libver)
        write_links(f"{folder}/links")
        return
    write(f"{folder}/h5_earliest.h5", "earliest")
    write(f"{folder}/h5_v108.h5", ("v108", "v108"))
    write(f"{folder}/h5_latest.h5", "latest")
    write_links(f"{folder}/h5_links.h5")


main()
