# SPDX-License-Identifier: Apache-2.0
"""The board: memory in which the loader tells its workers what the next batches are.

It is an anonymous file without pages where nothing is written, so that each part can have an address space of its own:
the first part has a number for each worker, the second the description of the current pass, and each further one
a task.  Task t stands in part 2 + t modulo the number of tasks.  The loader writes a task before the feed may issue
its ticket, so that no worker ever waits for a task.
"""

import fcntl
import os
import struct

_PART = 1 << 30  # bytes of address space
_HEAD = struct.Struct("<QQ")  # number of the task or the pass, bytes that follow
_LOCKS = 1 << 20  # offset of the bytes that workers lock
_CELLS = 64  # offset of the numbers of the workers: their process, and the task they made last
_AT_ONCE = 4096
_NONE = (1 << 64) - 1


class Board:
    def __init__(self, workers, tasks, descriptor):
        self.workers = workers
        self.tasks = tasks
        self.descriptor = descriptor
        self.path = f"/proc/{os.getpid()}/fd/{descriptor}"

    @classmethod
    def create(cls, workers, tasks):
        return cls(workers, tasks, os.memfd_create("leat-board", os.MFD_CLOEXEC))

    def reopen(self):
        """Opens the board in a program that the loader has started."""
        self.descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)

    def close(self):
        if self.descriptor >= 0:
            os.close(self.descriptor)
        self.descriptor = -1

    def __getstate__(self):
        return {**self.__dict__, "descriptor": -1}

    # ---- tasks ----

    def _write(self, part, number, data):
        # The number is written last: a reader that sees it finds the data.
        at = part * _PART
        os.pwrite(self.descriptor, data, at + _HEAD.size)
        os.pwrite(self.descriptor, _HEAD.pack(number, len(data)), at)

    def _read(self, part):
        head = os.pread(self.descriptor, _AT_ONCE, part * _PART)
        if len(head) < _HEAD.size:
            return _NONE, b""
        number, count = _HEAD.unpack_from(head)
        data = head[_HEAD.size : _HEAD.size + count]
        while len(data) < count:
            more = os.pread(self.descriptor, count - len(data), part * _PART + _HEAD.size + len(data))
            if not more:
                return _NONE, b""
            data += more
        return number, data

    def post(self, task, data):
        """Writes the description of a task."""
        if len(data) > _PART - _HEAD.size:
            raise ValueError(f"the indices of a batch need {len(data)} bytes, the most is {_PART - _HEAD.size}")
        self._write(2 + task % self.tasks, task, data)

    def void(self, task):
        """Makes the workers skip a task that they have not begun."""
        os.pwrite(self.descriptor, _HEAD.pack(_NONE, 0), (2 + task % self.tasks) * _PART)

    def task(self, task):
        """Returns the description of a task, or None for one that is void."""
        number, data = self._read(2 + task % self.tasks)
        return data if number == task else None

    # ---- passes ----

    def begin_pass(self, number, data):
        """Writes the description of a pass."""
        self._write(1, number, data)

    def pass_number(self):
        head = os.pread(self.descriptor, 8, _PART)
        return int.from_bytes(head, "little") if len(head) == 8 else 0

    def described_pass(self):
        """Returns (number, description) of the current pass."""
        return self._read(1)

    # ---- workers ----

    def claim_number(self):
        """Returns a number that no other living worker has: the operating system frees it when this process ends."""
        for number in range(self.workers):
            try:
                fcntl.lockf(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _LOCKS + number)
                return number
            except OSError:
                continue
        return os.getpid() % self.workers  # A process that is being killed may still hold its number.

    def sign(self, worker, task):
        """Says that this process is worker number `worker`, and which task it makes."""
        os.pwrite(self.descriptor, _HEAD.pack(os.getpid(), task), _CELLS + worker * _HEAD.size)

    def signature(self, worker):
        """Returns (process, task) of a worker; the process is 0 before the worker has begun."""
        cell = os.pread(self.descriptor, _HEAD.size, _CELLS + worker * _HEAD.size) if self.descriptor >= 0 else b""
        return _HEAD.unpack(cell) if len(cell) == _HEAD.size else (0, 0)
