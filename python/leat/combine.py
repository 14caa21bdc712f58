# SPDX-License-Identifier: Apache-2.0
"""Sources made of other sources, windows of time series, and sequences of different lengths."""

from builtins import zip as _zip_rows
from typing import Optional, Sequence, Union

from leat.errors import ArgumentError
from leat.native_source import Source, _open_arrays


def concat(*sources: Union[Source, str], batch_size: Optional[int] = None) -> Source:
    """Returns a source with the samples of all `sources`, one source after the other."""
    return _call("concat", sources, batch_size)


def zip(*sources: Union[Source, str], batch_size: Optional[int] = None) -> Source:  # noqa: A001
    """Returns a source whose sample i has the inputs of sample i of all `sources`, then their targets.

    All of them draw the same random numbers.  See Source.as_targets for pictures whose targets are pictures.
    """
    return _call("zip", sources, batch_size)


def mix(
    *sources: Union[Source, str],
    weights: Optional[Sequence[float]] = None,
    samples: Optional[int] = None,
    batch_size: Optional[int] = None,
) -> Source:
    """Returns a source that takes samples of `sources` in the proportions `weights`; default: equal ones.

    samples: the number of samples of a pass; default: as many as there are until one would be repeated.
    """
    text = None
    if weights is not None:
        if len(weights) != len(sources):
            raise ArgumentError(f"{len(weights)} weights, expected {len(sources)}: one for each source")
        text = ",".join(f"{weight:.12f}".rstrip("0").rstrip(".") for weight in weights)
    return _call("mix", sources, batch_size, weights=text, samples=samples)


def _call(name, sources, batch_size, **options):
    if not sources:
        raise ArgumentError(f"leat.{name} needs at least one source")
    specs = [source._combinable() if isinstance(source, Source) else source for source in sources]
    if not all(isinstance(spec, str) for spec in specs):
        raise ArgumentError(f"leat.{name} takes leat.source(...) or SPECs")
    options = [f"{key}={value}" for key, value in options.items() if value is not None]
    first = sources[0].batch_size if isinstance(sources[0], Source) else 32
    return Source(f"{name}({'; '.join(specs + options)})", batch_size or first)


# ---- Time series ----


def timeseries_dataset_from_array(
    data,
    targets,
    sequence_length,
    sequence_stride=1,
    sampling_rate=1,
    batch_size=128,
    start_index=None,
    end_index=None,
) -> Source:
    """Returns a source of windows of the rows of an array: keras.utils.timeseries_dataset_from_array.

    Window i begins at row i * sequence_stride and takes sequence_length rows, sampling_rate rows apart; its target is
    targets[i * sequence_stride].  targets None: windows alone.  Only the windows of a batch are copied.
    leat.Feed and Model.fit shuffle them (shuffle=True).
    """
    options = dict(length=sequence_length, stride=sequence_stride, sampling_rate=sampling_rate)
    return _windows(data, targets, batch_size, start_index, end_index, **options)


def timeseries_generator(
    data,
    targets,
    length,
    sampling_rate=1,
    stride=1,
    start_index=0,
    end_index=None,
    reverse=False,
    batch_size=128,
) -> Source:
    """Returns a source of windows of the rows of an array: keras.preprocessing.sequence.TimeseriesGenerator.

    The target of the window of rows i to i + length - 1 is targets[i + length].  end_index is the last row of a target.
    """
    if len(data) != len(targets):
        raise ArgumentError(f"data has {len(data)} rows and targets {len(targets)}: expected the same number")
    options = dict(length=-(-length // max(sampling_rate, 1)), stride=stride, sampling_rate=sampling_rate)
    end = None if end_index is None else end_index + 1
    return _windows(data, targets, batch_size, start_index, end, target=length, reverse=reverse, **options)


def _windows(data, targets, batch_size, start, end, **options):
    import numpy

    data = numpy.asarray(data)
    options.update(start=start or 0, end=len(data) if end is None else end, squeeze=data.ndim == 1)
    if targets is not None:
        targets = numpy.asarray(targets)
        options["starts"] = len(targets)
        if len(targets) != len(data):  # All arrays of a source have the same number of samples.
            filled = numpy.zeros((len(data), *targets.shape[1:]), targets.dtype)
            filled[: len(targets)] = targets[: len(data)]
            targets = filled
    return _open_arrays(data, targets, batch_size, "windows of an array", options)


# ---- Sequences of different lengths ----


def pad_sequences(sequences, maxlen=None, dtype="int32", padding="pre", truncating="pre", value=0.0):
    """Returns an array (samples, maxlen) of sequences that vary in length: keras.utils.pad_sequences."""
    import numpy

    for name, side in (("padding", padding), ("truncating", truncating)):
        if side not in ("pre", "post"):
            raise ArgumentError(f"{name} is {side!r}, expected 'pre' or 'post'")
    sequences = list(sequences)
    if maxlen is None:
        maxlen = max((len(sequence) for sequence in sequences), default=0)
    shape = next((numpy.asarray(sequence).shape[1:] for sequence in sequences if len(sequence)), ())
    padded = numpy.full((len(sequences), maxlen, *shape), value, dtype)
    for row, sequence in _zip_rows(padded, sequences):
        kept = numpy.asarray(sequence, dtype)
        kept = kept[:maxlen] if truncating == "post" else kept[max(len(kept) - maxlen, 0) :]
        if len(kept) and kept.shape[1:] != shape:
            raise ArgumentError(f"a sequence has time steps of shape {kept.shape[1:]}, the first one of {shape}")
        if len(kept) and padding == "post":
            row[: len(kept)] = kept
        elif len(kept):
            row[-len(kept) :] = kept
    return padded


def save_ragged(path, x, y=None, sample_weight=None, dtype="int32") -> None:
    """Writes sequences that vary in length to an .npz file for leat.source("ragged:PATH?maxlen=...").

    x: lists of numbers, or of vectors, such as keras.datasets.imdb.load_data() gives.
    """
    import numpy

    parts = [numpy.asarray(sequence, dtype) for sequence in x]
    filled = [part for part in parts if len(part)]
    arrays = {"values": numpy.concatenate(filled) if filled else numpy.zeros(0, dtype)}
    arrays["offsets"] = numpy.concatenate([[0], numpy.cumsum([len(part) for part in parts])]).astype("int64")
    for name, value in (("y", y), ("sample_weight", sample_weight)):
        if value is not None:
            arrays[name] = numpy.asarray(value)
            if len(arrays[name]) != len(parts):
                raise ArgumentError(f"{name} has {len(arrays[name])} samples, x has {len(parts)}")
    numpy.savez(path, **arrays)
