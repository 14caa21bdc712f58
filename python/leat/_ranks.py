# SPDX-License-Identifier: Apache-2.0
"""The argument comm of fit, evaluate and predict: a communicator of mpi4py."""
import os

from leat.errors import ArgumentError

TIMEOUT_MS = 10000


def _mpi_library():
    """Returns the path of the MPI library of this process, which mpi4py has loaded."""
    with open("/proc/self/maps") as lines:
        for line in lines:
            path = line.split(None, 5)[-1].strip()
            if os.path.basename(path).startswith(("libmpi.so", "libmpich.so")):
                return path
    raise ArgumentError("comm: the MPI library that mpi4py uses was not found: expected libmpi.so or libmpich.so in this process")


def describe(comm):
    """Returns (address of the MPI_Comm, path of the MPI library, timeout in ms), or None for comm=None."""
    if comm is None:
        return None
    try:
        from mpi4py import MPI
    except ImportError:
        MPI = None
    if MPI is None or not isinstance(comm, MPI.Intracomm):
        raise ArgumentError(
            "comm: expected None or an intracommunicator of mpi4py such as mpi4py.MPI.COMM_WORLD, received "
            + type(comm).__name__
        )
    if comm == MPI.COMM_NULL:
        raise ArgumentError("comm: expected a communicator of this process, received MPI.COMM_NULL")
    return MPI._addressof(comm), _mpi_library(), TIMEOUT_MS
