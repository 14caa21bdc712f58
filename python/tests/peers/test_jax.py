# SPDX-License-Identifier: Apache-2.0
"""leat.jax on the CPU with four devices.

From this folder, with leat's build folder and this folder's parent on PYTHONPATH:
    python -m unittest -v test_jax
"""

import gc
import os
import socket
import subprocess
import sys
import unittest

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
os.environ.setdefault("JAX_PLATFORMS", "cpu")
try:
    import jax
except ImportError as error:
    raise unittest.SkipTest(f"JAX is missing: {error}")
import numpy

import jax_data
import leat
import leat.jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec


def rows_over_devices():
    return NamedSharding(Mesh(numpy.array(jax.devices()), ("data",)), PartitionSpec("data"))


def address(array):
    return array.addressable_shards[0].data.unsafe_buffer_pointer()


class Batches(unittest.TestCase):
    def test_batches_are_those_of_the_feed(self):
        data = jax_data.Batches(9)
        for prefetch in (1, 2, 5, 100):
            with leat.Feed(data, workers=2) as feed:
                for _ in range(2):
                    received = list(leat.jax.iterate(feed, prefetch=prefetch))
                    self.assertEqual(len(received), 9)
                    for index, batch in enumerate(received):
                        self.assertIsInstance(batch["x"], jax.Array)
                        numpy.testing.assert_array_equal(batch["x"], data[index]["x"])
                        numpy.testing.assert_array_equal(batch["pair"][1], data[index]["pair"][1])
                        self.assertEqual(batch["name"], f"batch {index}")
                        self.assertEqual(batch["index"], index)

    def test_rows_are_sharded_over_the_devices(self):
        with leat.Feed(jax_data.Batches(5), workers=2) as feed:
            for index, batch in enumerate(leat.jax.iterate(feed, rows_over_devices())):
                x = batch["x"]
                self.assertEqual(len(x.sharding.device_set), 4)
                for shard in x.addressable_shards:
                    self.assertEqual(shard.data.shape, (2, 16))
                    numpy.testing.assert_array_equal(shard.data, jax_data.Batches(5)[index]["x"][shard.index])
                total = jax.jit(lambda value: value.sum())(x)
                self.assertAlmostEqual(float(total), float(jax_data.Batches(5)[index]["x"].sum()), places=2)

    def test_a_sharding_for_each_array(self):
        rows, device = rows_over_devices(), jax.devices()[2]
        with leat.Feed(jax_data.Pairs(3), workers=1) as feed:
            for x, y in leat.jax.iterate(feed, (rows, device)):
                self.assertEqual(len(x.sharding.device_set), 4)
                self.assertEqual(y.devices(), {device})
        with leat.Feed(jax_data.Pairs(3), workers=1) as feed:
            with self.assertRaisesRegex(ValueError, "nesting of shardings"):
                list(leat.jax.iterate(feed, (rows,)))

    def test_errors(self):
        with self.assertRaisesRegex(ValueError, "at least 1"):
            leat.jax.iterate([], prefetch=0)
        with leat.Feed(numpy.zeros((10, 3), "float32"), batch_size=8, workers=0) as feed:
            with self.assertRaisesRegex(ValueError, "drop_last=True"):
                list(leat.jax.iterate(feed, rows_over_devices()))


class Memory(unittest.TestCase):
    """JAX may view the slot of a batch: no other batch may be written there before JAX has let go of it."""

    def test_arrays_that_are_kept_are_not_overwritten(self):
        count = 200
        with leat.Feed(jax_data.Large(count), workers=2, keep=4, max_queue_size=2) as feed:
            kept = {}
            for index, x in enumerate(leat.jax.iterate(feed)):
                kept[index] = x
                for other in [old for old in kept if old % 7 and index - old > 3]:
                    del kept[other]
                for at, array in kept.items():
                    self.assertEqual((float(array[0, 0]), float(array[-1, -1])), (at, at))
            stats = feed.stats()
        for at, array in kept.items():  # The feed is closed.
            numpy.testing.assert_array_equal(numpy.asarray(array), numpy.full((256, 64), at, "float32"))
        self.assertGreater(stats["copied"], 0)  # More batches lived than the feed has slots to keep.

    def test_computations_that_run_late_read_their_own_batch(self):
        """JAX computes later than it returns: the array of the batch is gone from Python by then."""

        @jax.jit
        def slow(x):
            return jax.lax.fori_loop(0, 200, lambda _, total: total + 0 * jax.numpy.tanh(x).sum(), x.sum())

        results = []
        with leat.Feed(jax_data.Large(60), workers=2, keep=4, max_queue_size=2) as feed:
            for x in leat.jax.iterate(feed):
                results.append(slow(x))
                del x
        gc.collect()
        expected = [index * 256 * 64 for index in range(60)]
        numpy.testing.assert_allclose([float(result) for result in results], expected, rtol=1e-6)

    def test_a_slot_is_given_back_when_jax_lets_go_of_it(self):
        """No batch is copied as long as few live; and JAX views the slot itself, on one CPU device."""
        viewed = 0
        with leat.Feed(jax_data.Large(100), workers=2, keep=4) as feed:
            for batch in feed:
                place = batch.__array_interface__["data"][0]
                x = leat.jax.put(batch, jax.devices()[0])
                x.block_until_ready()
                viewed += address(x) == place
                del batch, x
            self.assertEqual(feed.stats()["copied"], 0)
        self.assertGreater(viewed, 90)


class Processes(unittest.TestCase):
    def test_each_process_feeds_its_shards(self):
        """Two processes with two devices each: the global batch has the rows of both feeds."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        environment = dict(os.environ, XLA_FLAGS="--xla_force_host_platform_device_count=2")
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "jax_process.py")
        processes = [
            subprocess.Popen(
                [sys.executable, program, str(port), str(rank)], env=environment, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True,
            )
            for rank in range(2)
        ]
        try:
            outputs = [process.communicate(timeout=240)[0] for process in processes]
        finally:
            for process in processes:
                process.kill()
        for process, output in zip(processes, outputs):
            self.assertEqual(process.returncode, 0, output)
            self.assertIn("sums [28.0, 92.0, 156.0, 220.0]", output)


if __name__ == "__main__":
    unittest.main()
