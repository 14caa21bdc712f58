# SPDX-License-Identifier: Apache-2.0
"""The code of docs/python/trainer.md runs, block after block, with names that a reader would have."""

import os
import re
import tempfile
import textwrap
import unittest

import numpy

import leat
from models import ROOT, data, mlp

DOCS = os.path.join(ROOT, "docs", "python")


def read_blocks(name):
    """Returns the indented blocks of a page as (number of the first line, text)."""
    with open(os.path.join(DOCS, name)) as file:
        page = file.read()
    found = re.finditer(r"(?<=\n\n)(?: {4}.*\n|\n(?= {4}))+", page)
    return [(page.count("\n", 0, block.start()) + 1, textwrap.dedent(block.group())) for block in found]


@unittest.skipUnless(os.path.isdir(DOCS), "the pages are in the repository alone")
class Trainer(unittest.TestCase):
    def test_blocks(self):
        x, y = data(256)
        names = {"leat": leat, "x": x, "y": y, "observation": x[:1], "buffer": numpy.empty((1, 2), "float32")}
        blocks = read_blocks("trainer.md")
        self.assertGreater(len(blocks), 3)
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                mlp().save("model.keras")
                numpy.save("x.npy", x)
                numpy.save("y.npy", y)
                for number, text in blocks:
                    with self.subTest(line=number):
                        exec(compile("\n" * (number - 1) + text, "trainer.md", "exec"), names)
            finally:
                os.chdir(before)
        self.assertTrue(names["history"].history["val_loss"])


if __name__ == "__main__":
    unittest.main()
