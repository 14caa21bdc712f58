# SPDX-License-Identifier: Apache-2.0
"""Training by the ranks of mpi4py's communicators.

From this folder, with leat's build folder on PYTHONPATH, mpi4py and NumPy in this Python, and Open MPI or MPICH:
    python -m unittest -v test_mpi4py
"""

import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy

import leat

try:
    import mpi4py
except ImportError:
    mpi4py = None

HERE = os.path.dirname(os.path.abspath(__file__))
RUN_RANKS = os.path.join(HERE, "..", "..", "..", "tests", "dist", "run-ranks")
MODEL = """{"class_name": "Sequential", "config": {"name": "m", "layers": [
{"class_name": "Dense", "config": {"name": "a", "units": 8, "activation": "tanh", "batch_input_shape": [null, 4]}},
{"class_name": "Dense", "config": {"name": "b", "units": 1}}]}}"""


def train(comm, shards=False):
    """Trains, with `shards` by an optimizer whose state is spread over the ranks, evaluates and predicts; returns what all
    ranks must agree on, and the epochs that a callback has seen."""
    seen = []
    x = numpy.random.RandomState(1).rand(50, 4).astype("f4")
    y = x.sum(1, keepdims=True)
    model = leat.Model.from_json(MODEL)
    model.initialize(seed=3)
    model.compile("adam", "mse")
    callback = leat.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append(epoch))
    options = dict(batch_size=16, epochs=3, verbose=0, threads=1, callbacks=[callback])
    history = model.fit(x, y, comm=comm, shard_optimizer=shards, **options)
    loss = model.evaluate(x, y, batch_size=16, threads=1, verbose=0, comm=comm)
    predictions = model.predict(x, batch_size=16, threads=1, comm=comm)
    return [numpy.array(history.history["loss"]), numpy.array(loss), predictions, *model.get_weights()], seen


def rank():
    """What each rank runs: all ranks together must train as one does, also ranks 1 and up without rank 0."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    alone, _ = train(None)
    part = world.Split(0 if world.rank == 0 else 1)
    for comm, shards in ((world, False), (part, True), (world, True)):
        together, seen = train(comm, shards)
        for a, b in zip(together, alone):
            numpy.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
        assert seen == ([0, 1, 2] if comm.rank == 0 else []), seen
    assert world.allreduce(1) == world.size
    if world.rank == 0:
        print("the ranks train as one does")


@unittest.skipIf(mpi4py is None, "mpi4py is missing: pip install mpi4py")
class Ranks(unittest.TestCase):
    def run_ranks(self, mpi, **more):
        if not shutil.which("mpirun." + mpi):
            self.skipTest("mpirun.%s is not installed (Debian: openmpi-bin, mpich)" % mpi)
        done = subprocess.run(
            [RUN_RANKS, mpi, "3", sys.executable, os.path.abspath(__file__), "rank"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            env=dict(os.environ, MPI4PY_MPIABI=mpi, **more),
        )
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("the ranks train as one does", done.stdout)

    def test_open_mpi(self):
        self.run_ranks("openmpi")

    def test_mpich(self):
        """mpi4py's wheel looks for MPICH under the name libmpi.so.12, which Debian's package does not have."""
        libraries = glob.glob("/usr/lib/*/libmpich.so.12")
        with tempfile.TemporaryDirectory() as folder:
            if libraries:
                os.symlink(libraries[0], os.path.join(folder, "libmpi.so.12"))
            self.run_ranks("mpich", LD_LIBRARY_PATH=folder)

    def test_what_is_no_communicator_is_refused(self):
        for wrong in ("world", 3):
            with self.assertRaisesRegex(leat.errors.ArgumentError, "comm: expected None or an intracommunicator"):
                train(wrong)


if __name__ == "__main__":
    if sys.argv[1:] == ["rank"]:
        rank()
    else:
        unittest.main()
