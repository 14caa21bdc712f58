# SPDX-License-Identifier: Apache-2.0
"""Arrays of any kind as what leat reads: NumPy arrays of numbers, with the names of a model's inputs or outputs."""

from leat.errors import ArgumentError, DtypeError

_KINDS = "fiub"


def to_array(value, what):
    """Returns a NumPy array that leat reads, without a copy if possible.

    bool, integers and float16, float32, float64 stay as they are: leat converts the numbers of a batch to float32 when
    it reads them.  Other floating-point types (such as ml_dtypes.bfloat16, long double) and other byte orders are
    converted at once.
    """
    import numpy

    if hasattr(value, "detach") and hasattr(value, "cpu"):  # a tensor of torch
        value = value.detach().cpu()
    try:
        array = numpy.asarray(value)
    except (TypeError, ValueError) as error:
        raise DtypeError(f"{what}: expected an array of numbers, received {type(value).__name__}: {error}") from None
    dtype = array.dtype
    if dtype.kind in _KINDS and dtype.itemsize <= 8:
        return array if dtype.isnative else array.astype(dtype.newbyteorder("="))
    if dtype.kind == "f" or dtype.name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        return array.astype(numpy.float32)
    raise DtypeError(f"{what}: expected an array of numbers, received one of {dtype}: convert it to float32, say")


def name_arrays(value, what):
    """Returns [(name or None, array), ...] of an array, or of a list, tuple or dict of arrays."""
    if value is None:
        return []
    if isinstance(value, dict):
        return [(name, to_array(item, f"{what}[{name!r}]")) for name, item in value.items()]
    if isinstance(value, (list, tuple)) and value and all(_is_array(item) for item in value):
        return [(None, to_array(item, f"{what}[{i}]")) for i, item in enumerate(value)]
    return [(None, to_array(value, what))]


def _is_array(value):
    return hasattr(value, "shape") and hasattr(value, "dtype")


def count_samples(named):
    """Returns the number of samples that all arrays have."""
    counts = {array.shape[0] if array.ndim else 1 for _, array in named}
    if len(counts) > 1:
        text = ", ".join(f"{name or f'array {i}'}: {array.shape}" for i, (name, array) in enumerate(named))
        raise ArgumentError(f"the arrays have different numbers of samples: {text}")
    return counts.pop() if counts else 0


def sort_names(named, names, what):
    """Returns the arrays of a dict in the order of the model's names; arrays without names stay as they are."""
    if not named or named[0][0] is None:
        return named
    given = dict(named)
    unknown = [name for name in given if name not in names]
    missing = [name for name in names if name not in given]
    if unknown or (missing and what == "x"):  # An output without a loss has no target.
        raise ArgumentError(
            f"{what}: expected a dict with the keys {', '.join(names)}, received {', '.join(map(str, given))}"
        )
    return [(name, given[name]) for name in names if name in given]
