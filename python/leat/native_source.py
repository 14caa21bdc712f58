# SPDX-License-Identifier: Apache-2.0
"""Sources: data that leat itself reads from files.  Their workers never touch the interpreter."""

import os
from typing import List, Optional, Tuple

from leat import _sources, _trainer
from leat.errors import ArgumentError, Error
from leat.errors import _make as _make_error

_trainer.set_error_maker(_make_error)

_PARTS = ("input", "target", "sample_weight")


class Source:
    """The data that a SPEC names: leat.source("idx:images.gz,labels.gz?scale=1/255").

    It is data of Model.fit, evaluate and predict, and of leat.Feed, whose batches are then (x, y) or
    (x, y, sample_weight), with a list of arrays where there are several.

    read_statistics: statistics that augmentations of pictures need, as featurewise_center does, are only read from the
    file that the SPEC names by statistics=FILE, for validation, evaluation and prediction.  By default they are computed
    of this data if there is no such file.

    len(source) is the number of batches of a pass.  Use it as a context manager, or call close().
    """

    def __init__(self, spec: str, batch_size: int = 32, read_statistics: bool = False, *, _data=None):
        from leat.model import _open_objects

        if batch_size < 1:
            raise ArgumentError(f"batch_size is {batch_size}, expected at least 1")
        self.spec = spec
        self.batch_size = batch_size
        self.read_statistics = read_statistics
        self._closed = False
        self._is_part = _data is not None
        self._data = self._open() if _data is None else _data
        _open_objects.add(self)

    def _open(self, validation_split=0.0):
        return _trainer.source_data(self.spec, self.batch_size, self.read_statistics, validation_split)

    def __len__(self):
        length = self._get().length()
        if length is None:
            raise TypeError("this source has no length")
        return length

    @property
    def samples(self) -> Optional[int]:
        """The number of samples; None if it is not known."""
        return self._get().samples()

    @property
    def arrays(self) -> List[Tuple[str, str, str, Tuple[int, ...]]]:
        """The arrays of a batch: (part, name, dtype, shape of a sample); part: "input", "target" or "sample_weight"."""
        return [(_PARTS[part], name, dtype, shape) for part, name, dtype, shape in self._get().spec()[1]]

    def split(self, share: float) -> Tuple["Source", "Source"]:
        """Returns two sources: the first samples, and the last `share` of them.  This source stays open."""
        return self._parts(share)

    # ---- combinations ----

    def take(self, count: int) -> "Source":
        """Returns a source with the first `count` samples.  This source stays open, here and below."""
        return self._call("take", count=count)

    def skip(self, count: int) -> "Source":
        """Returns a source without the first `count` samples."""
        return self._call("skip", count=count)

    def shard(self, rank: int, world: int) -> "Source":
        """Returns a source with every world-th sample, from sample `rank` on."""
        return self._call("shard", rank=rank, world=world)

    def repeat(self, times: int) -> "Source":
        """Returns a source that has all samples `times` times in a pass."""
        return self._call("repeat", times=times)

    def as_targets(self) -> "Source":
        """Returns a source whose targets are the inputs of this one, for leat.zip."""
        return self._call("targets")

    def cache(self, file: Optional[str] = None, memory: Optional[int] = None) -> "Source":
        """Returns a source whose samples are kept after they were made once: in memory, or in a file.

        memory: bytes that the samples may take; default: half of the machine's memory.
        """
        path = None if file is None else "".join(f"%{ord(c):02X}" if c in "%;()" else c for c in os.fspath(file))
        return self._call("cache", file=path, memory=None if memory is None else f"{max(memory >> 10, 1)}K")

    def timeseries(
        self,
        sequence_length: int,
        sequence_stride: int = 1,
        sampling_rate: int = 1,
        start_index: int = 0,
        end_index: Optional[int] = None,
        target: int = 0,
        reverse: bool = False,
    ) -> "Source":
        """Returns a source of windows of this one's samples, with the targets of the window's row number `target`."""
        options = dict(sequence_stride=sequence_stride, sampling_rate=sampling_rate, start_index=start_index)
        options.update(end_index=end_index, target=target, reverse=str(bool(reverse)).lower())
        return self._call("timeseries", sequence_length=sequence_length, **options)

    def _call(self, name, **options):
        options = [f"{key}={value}" for key, value in options.items() if value is not None]
        return Source(f"{name}({'; '.join([self._combinable()] + options)})", self.batch_size)

    def _combinable(self):
        if self._is_part:
            raise ArgumentError(f"a source of {self.spec} cannot be combined: open leat.source with a SPEC of files")
        return self.spec

    def _parts(self, share):
        if self._is_part:
            raise ArgumentError("this source was made of another one, or of arrays, and cannot be split")
        whole = self._open(share)
        first, last = whole.split(share)
        return tuple(Source(self.spec, self.batch_size, _data=part) for part in (first, last))

    def _feed_source(self, batch_size, collate, drop_last):
        if collate is not None or drop_last:
            raise ArgumentError("a leat.source has no collate and no drop_last")
        self._check_batch_size(batch_size)
        return _Batches(self._get())

    def _check_batch_size(self, batch_size):
        if batch_size is not None and batch_size != self.batch_size:
            raise ArgumentError(
                f"batch_size is {batch_size}, but that of the source is {self.batch_size}: pass it to leat.source"
            )

    def close(self) -> None:
        """Closes the files.  A feed or an array that reads from them has to be closed first."""
        if not self._closed:
            self._data.close()
            self._closed = True

    def _get(self):
        if self._closed:
            raise Error("the source is closed")
        return self._data

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __repr__(self):
        return f"<leat.Source {self.spec!r}, batch_size={self.batch_size}{', closed' if self._closed else ''}>"


class _Batches(_sources._Source):
    """What a leat.Feed knows of a source."""

    feed_type = _trainer.Feed
    make = length = samples = None

    def __init__(self, native):
        super().__init__(None)
        self.native = native
        self.by_samples = native.samples() is not None
        self._parts = [part for part, _, _, _ in native.spec()[1]]

    def unpack(self, memories):
        """Returns x, (x, y) or (x, y, sample_weight) of a batch."""
        import numpy

        parts = ([], [], [])
        for part, memory in zip(self._parts, memories):
            parts[part].append(numpy.asarray(memory))
        found = [arrays[0] if len(arrays) == 1 else arrays for arrays in parts if arrays]
        return found[0] if len(found) == 1 else tuple(found)


def _open_arrays(data, targets, batch_size, description, windows):
    """Returns a source of windows of arrays, with the options of leat_window_options."""
    targets = [] if targets is None else [(None, targets)]
    native = _trainer.arrays_data([(None, data)], targets, [], batch_size)
    names = ("length", "stride", "sampling_rate", "start", "end", "target", "starts", "reverse", "squeeze")
    values = {"target": 0, "starts": 2**63 - 1, "reverse": False, **windows}
    return Source(description, batch_size, _data=native.windows(*(values[name] for name in names)))


def source(spec: str, batch_size: int = 32, read_statistics: bool = False) -> Source:
    """Opens the data that a SPEC names, "KIND:PATH[,PATH...][?KEY=VALUE&...]": see source_help()."""
    return Source(spec, batch_size, read_statistics)


def source_help() -> str:
    """Returns a description of SPECs: kinds, options, examples."""
    return _trainer.source_help()
