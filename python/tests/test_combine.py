# SPDX-License-Identifier: Apache-2.0
"""Sources made of others, windows of time series, and sequences of different lengths."""

import json
import os
import tempfile
import unittest

import numpy

import leat
from models import GOLDEN


def read(source, **options):
    """Returns the arrays of a pass, joined."""
    with leat.Feed(source, workers=2, **options) as feed:
        batches = [batch if isinstance(batch, tuple) else (batch,) for batch in feed]
    return [numpy.concatenate([numpy.array(array) for array in arrays]) for arrays in zip(*batches)]


def records():
    for name in ("keras-2.3.1", "keras-3"):
        with open(os.path.join(os.path.dirname(GOLDEN), "timeseries", f"{name}.json")) as file:
            yield json.load(file)


class Combinations(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for name, first, count in (("a", 0, 10), ("b", 100, 6)):
            x = numpy.arange(first, first + count, dtype="float32")
            numpy.savez(f"{self.folder}/{name}.npz", x=x, y=-x)
        self.a, self.b = (leat.source(f"npz:{self.folder}/{name}.npz", batch_size=4) for name in "ab")

    def tearDown(self):
        self.a.close()
        self.b.close()

    def samples(self, source):
        with source:
            x, y = read(source)
        numpy.testing.assert_array_equal(x, -y)
        return x[:, 0].astype(int).tolist()

    def test_help_describes_specs(self):
        text = leat.source_help()
        self.assertIn("images:FOLDER", text)
        self.assertIn("timeseries(SPEC; sequence_length=N)", text)

    def test_parts(self):
        self.assertEqual(self.samples(self.a.take(3)), [0, 1, 2])
        self.assertEqual(self.samples(self.a.skip(8)), [8, 9])
        self.assertEqual(self.samples(self.a.shard(1, 4)), [1, 5, 9])
        self.assertEqual(self.samples(self.a.take(2).repeat(2)), [0, 1, 0, 1])
        self.assertEqual(self.samples(leat.concat(self.a.skip(9), self.b.take(2))), [9, 100, 101])

    def test_mixture(self):
        mixed = self.samples(leat.mix(self.a, self.b, weights=[0.75, 0.25], samples=12))
        self.assertEqual(sum(number >= 100 for number in mixed), 3)
        self.assertEqual(len(set(mixed)), 12)
        with self.assertRaisesRegex(leat.ArgumentError, "2 weights, expected 1"):
            leat.mix(self.a, weights=[1, 2])

    def test_zip(self):
        with leat.zip(self.a.take(6), self.b.as_targets()) as source:
            self.assertEqual([part for part, _, _, _ in source.arrays], ["input", "target", "target"])
            self.assertEqual(source.samples, 6)

    def test_cache(self):
        path = f"{self.folder}/some (1).cache"
        self.assertEqual(self.samples(self.a.cache(path)), list(range(10)))
        self.assertTrue(os.path.exists(path))
        self.assertEqual(self.samples(self.a.cache(path)), list(range(10)))
        self.assertEqual(self.samples(self.a.cache(memory=5000)), list(range(10)))

    def test_windows_of_a_source(self):
        with self.a.timeseries(3, sequence_stride=2, target=3) as source:
            x, y = read(source)
        self.assertEqual(x.shape, (4, 3, 1))
        self.assertEqual(y[:, 0].tolist(), [-3, -5, -7, -9])

    def test_what_cannot_be_combined(self):
        windows = leat.timeseries_dataset_from_array(numpy.arange(9.0), None, 3)
        with self.assertRaisesRegex(leat.ArgumentError, "cannot be combined"):
            windows.take(2)
        with self.assertRaisesRegex(leat.ArgumentError, "at least one source"):
            leat.concat()
        windows.close()


class TimeSeries(unittest.TestCase):
    def test_windows_of_both_kerases(self):
        for record in records():
            series = numpy.arange(record["rows"], dtype="int32")
            for case in record["cases"]:
                function = leat.timeseries_generator
                if case["function"] == "timeseries":
                    function = leat.timeseries_dataset_from_array
                with self.subTest(**case["arguments"]):
                    with function(series, 1000 + series, batch_size=4, **case["arguments"]) as source:
                        x, y = read(source)
                    self.assertEqual(x.tolist(), case["windows"])
                    self.assertEqual(y[:, 0].tolist(), case["targets"])

    def test_targets_of_another_length(self):
        series = numpy.arange(20, dtype="float32").reshape(10, 2)
        for targets in (numpy.arange(5), numpy.arange(30)):
            with leat.timeseries_dataset_from_array(series, targets, 3) as source:
                x, y = read(source)
            count = min(8, len(targets))
            self.assertEqual(x.shape, (count, 3, 2))
            self.assertEqual(y[:, 0].tolist(), list(range(count)))

    def test_shuffling_and_errors(self):
        with leat.timeseries_dataset_from_array(numpy.arange(50.0), None, 10, batch_size=8) as source:
            (x,) = read(source, shuffle=True, seed=1)
            (again,) = read(source, shuffle=True, seed=1)
        self.assertEqual(sorted(x[:, 0]), list(range(41)))
        self.assertNotEqual(x[:, 0].tolist(), list(range(41)))
        numpy.testing.assert_array_equal(x, again)
        with self.assertRaisesRegex(leat.ShapeError, "no window fits"):
            leat.timeseries_dataset_from_array(numpy.arange(5), None, 10)


class Ragged(unittest.TestCase):
    def test_padding_of_both_kerases(self):
        for record in records():
            for padding in record["paddings"]:
                padded = leat.pad_sequences(record["sequences"], **padding["arguments"])
                self.assertEqual(padded.dtype, numpy.int32)
                self.assertEqual(padded.tolist(), padding["padded"])
        with self.assertRaisesRegex(leat.ArgumentError, "'pre' or 'post'"):
            leat.pad_sequences([[1]], padding="left")

    def test_masks_ignore_the_padding(self):
        """A model with masks computes the same for each sample, padded to its bucket or to the longest sample."""
        config = {
            "name": "m",
            "layers": [
                {
                    "class_name": "Embedding",
                    "config": {
                        "name": "e",
                        "batch_input_shape": [None, None],
                        "dtype": "float32",
                        "input_dim": 50,
                        "output_dim": 4,
                        "mask_zero": True,
                    },
                },
                {"class_name": "LSTM", "config": {"name": "l", "units": 3}},
            ],
        }
        model = leat.Model.from_json(json.dumps({"class_name": "Sequential", "config": config}))
        random = numpy.random.RandomState(0)
        x = [random.randint(1, 50, size=length) for length in random.randint(1, 30, size=40)]
        with tempfile.TemporaryDirectory() as folder:
            leat.save_ragged(f"{folder}/x.npz", x)
            expected = model.predict(leat.pad_sequences(x), verbose=0)
            with leat.source(f"ragged:{folder}/x.npz?buckets=8,16&within=ordered", batch_size=8) as source:
                found = []
                with leat.Feed(source) as feed:
                    shapes = set()
                    for batch in feed:
                        shapes.add(batch.shape[1])
                        found.append(model.predict(numpy.array(batch), verbose=0))
                        del batch  # It keeps the feed's memory.
        order = sorted(range(40), key=lambda i: sum(len(x[i]) > bound for bound in (8, 16)))
        numpy.testing.assert_allclose(numpy.concatenate(found), expected[order], rtol=1e-5, atol=1e-6)
        self.assertEqual(shapes, {8, 16, max(map(len, x))})
        model.close()


if __name__ == "__main__":
    unittest.main()
