# SPDX-License-Identifier: Apache-2.0
"""Batches of a feed as arrays of JAX, on one device or sharded over several.  See docs/python/jax.md.

    sharding = NamedSharding(mesh, PartitionSpec("data"))
    for x, y in leat.jax.iterate(feed, sharding):
        state = step(state, x, y)
"""

import collections

from leat.errors import ArgumentError

__all__ = ["iterate", "put"]


def iterate(feed, sharding=None, prefetch=2):
    """Yields the batches of one pass of a feed, with each array as a jax.Array.

    feed: a leat.Feed, or another iterable of batches.
    sharding: a jax.sharding.Sharding, or a jax.Device, of all arrays; or the same nesting of dict, list and tuple as a
        batch, with a sharding for each array.  None: JAX's default device.
    prefetch: batches whose transfer to the devices begins before the previous ones are used; 1: none.

    In a program of several processes, the batches of the feed are this process's part of the global batch, and the
    sharding is the global one: open the feed with rank=jax.process_index(), world=jax.process_count() and
    remainder="drop", and with batch_size = global batch size / world.

    Values other than arrays and numbers, such as strings, stay as they are.
    """
    if prefetch < 1:
        raise ArgumentError(f"prefetch is {prefetch}, expected at least 1")
    return _iterate(feed, sharding, prefetch)


def _iterate(feed, sharding, prefetch):
    waiting = collections.deque()
    for batch in feed:
        waiting.append(put(batch, sharding))
        if len(waiting) >= prefetch:
            yield waiting.popleft()
    while waiting:
        yield waiting.popleft()


def put(batch, sharding=None):
    """Returns a batch with each array as a jax.Array, on the devices of the sharding.  Arguments: see iterate().

    On the CPU, a jax.Array may view the memory of the batch: JAX keeps the batch alive as long as it may read it, and
    the feed does not use that memory for another batch before.
    """
    import jax

    several = jax.process_count() > 1
    return _map(batch, sharding, lambda array, where: _put_array(jax, array, where, several))


def _put_array(jax, array, sharding, several):
    if several and isinstance(sharding, jax.sharding.Sharding):
        return jax.make_array_from_process_local_data(sharding, array)
    try:
        return jax.device_put(array, sharding)
    except ValueError as error:
        if not isinstance(sharding, jax.sharding.Sharding):
            raise
        raise ArgumentError(
            f"an array with shape {array.shape} cannot be sharded as {sharding}: expected dimensions that the mesh"
            " divides.  Open the feed with drop_last=True if its last batch is smaller than the others"
        ) from error


def _is_array(value):
    """Returns True for arrays and numbers that JAX can hold: of NumPy, torch on the CPU, or JAX itself."""
    import numpy

    if isinstance(value, (numpy.ndarray, numpy.generic)):
        return value.dtype.kind in "biufcV" and value.dtype.names is None
    return hasattr(value, "__dlpack__")


def _map(value, sharding, function):
    if _is_array(value):
        return function(_as_numpy(value), sharding)
    if isinstance(value, (bool, int, float, complex)):
        return value
    if isinstance(value, dict):
        return type(value)((key, _map(item, _get_part(sharding, key), function)) for key, item in value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_map(item, _get_part(sharding, at), function) for at, item in enumerate(value)))
    if isinstance(value, (list, tuple)):
        return type(value)(_map(item, _get_part(sharding, at), function) for at, item in enumerate(value))
    return value


def _get_part(sharding, key):
    if not isinstance(sharding, (dict, list, tuple)):
        return sharding
    try:
        return sharding[key]
    except (KeyError, IndexError):
        raise ArgumentError(f"the batch has an item {key!r}, and the nesting of shardings has none") from None


def _as_numpy(value):
    """Returns a tensor of another library as an array of NumPy, without a copy; arrays of NumPy and JAX as they are."""
    import jax
    import numpy

    if isinstance(value, (numpy.ndarray, numpy.generic, jax.Array)):
        return value
    return numpy.from_dlpack(value)
