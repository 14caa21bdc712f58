# SPDX-License-Identifier: Apache-2.0
"""A data set that was pickled into an anonymous file, from which workers make it again without copying its arrays."""

import hashlib
import io
import mmap
import os
import struct
import sys

from leat import _pack
from leat.errors import PickleError
from leat.feed import _find_unpicklable

_ALIGNMENT = 64


class _Shared(Exception):
    """A tensor in shared memory would be copied, and what a worker writes to it would be lost."""


class _Packer(_pack._Packer):
    def _reduce_tensor(self, value, torch):
        if value.is_shared():
            raise _Shared("a tensor is in shared memory, which only kind='fork' keeps")
        return super()._reduce_tensor(value, torch)


def _pickle(plan):
    """Returns the parts of a plan: bytes and buffers."""
    buffers = []
    file = io.BytesIO()
    try:
        _Packer(file, protocol=5, buffer_callback=buffers.append).dump(plan)
        if b"__main__" in file.getvalue() and not _main_can_be_imported():
            raise PickleError("its class was typed in, and no module has it")
        return [file.getbuffer(), *(buffer.raw() for buffer in buffers)]
    except _Shared as error:
        raise PickleError(f"the data set cannot be sent to worker processes: {error}") from error
    except Exception as error:
        try:
            import cloudpickle

            return [cloudpickle.dumps(plan)]
        except Exception:
            pass
        where = _find_unpicklable(plan, "loader", 4)
        raise PickleError(
            f"the data set cannot be sent to worker processes: {where} cannot be pickled ({error}).  Make open files,"
            " locks and connections on first use; write functions at the top level of a module"
        ) from error


def _main_can_be_imported():
    main = sys.modules.get("__main__")
    return getattr(main, "__spec__", None) is not None or os.path.exists(getattr(main, "__file__", None) or "")


class Packed:
    """The parts of a plan in an anonymous file; its pickle is the file's name."""

    def __init__(self, plan, before=None):
        """before: what was packed before; if nothing has changed since then, `version` is the same."""
        parts = _pickle(plan)
        digest = hashlib.blake2b(digest_size=16)
        for part in parts:
            digest.update(part)
        self.digest = digest.digest()
        self.descriptor = -1
        if before is not None and before.digest == self.digest:
            self.version = before.version
            return
        self.version = before.version + 1 if before is not None else 0
        self.descriptor = os.memfd_create("leat-data", os.MFD_CLOEXEC)
        self.path = f"/proc/{os.getpid()}/fd/{self.descriptor}"
        self._write(parts)

    def _write(self, parts):
        views = [memoryview(part).cast("B") for part in parts]
        head = struct.pack("<Q", len(views))
        at = len(head) + 16 * len(views)
        places = []
        for view in views:
            at = -(-at // _ALIGNMENT) * _ALIGNMENT
            places.append(at)
            head += struct.pack("<QQ", at, len(view))
            at += len(view)
        os.pwrite(self.descriptor, head, 0)
        for view, at in zip(views, places):
            while len(view):
                written = os.pwrite(self.descriptor, view, at)
                at += written
                view = view[written:]

    def __getstate__(self):
        return {"version": self.version, "path": self.path, "descriptor": -1}

    def load(self):
        """Makes the plan from the file; its arrays view the file's memory, of which each process has a private copy."""
        descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            memory = memoryview(mmap.mmap(descriptor, 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE))
        finally:
            os.close(descriptor)
        (count,) = struct.unpack_from("<Q", memory)
        places = struct.iter_unpack("<QQ", memory[8 : 8 + 16 * count])
        return _pack.unpack([memory[at : at + size] for at, size in places])

    def close(self):
        if self.descriptor >= 0:
            os.close(self.descriptor)
        self.descriptor = -1


class Forked:
    """In place of Packed for workers that are forked from this process: the plan itself."""

    version = 0

    def __init__(self, plan):
        self.plan = plan

    def load(self):
        return self.plan

    def close(self):
        pass
