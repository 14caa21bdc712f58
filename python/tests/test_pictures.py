# SPDX-License-Identifier: Apache-2.0
"""Pictures of each format are decoded: a leat that lacks a library of a format, or has another one, fails."""

import base64
import os
import tempfile
import unittest

import leat

try:
    import numpy

    leat.source  # loads the trainer
except (AttributeError, ImportError) as error:
    raise unittest.SkipTest(f"this leat has the feed alone, or NumPy is missing: {error}")

# The same picture in each format, as Pillow writes it: four squares of 8 x 8 pixels.
COLOURS = [[(250, 10, 20), (30, 200, 40)], [(50, 60, 220), (128, 128, 128)]]
FILES = {
    "a.jpg": """
/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAIBAQEBAQIBAQECAgICAgQDAgICAgUEBAMEBgUGBgYFBgYGBwkIBgcJBwYGCAsICQoKCgoKBggLDA
sKDAkKCgr/2wBDAQICAgICAgUDAwUKBwYHCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgr/wAARCAAQ
ABADAREAAhEBAxEB/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhBy
JxFDKBkaEII0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKT
lJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/8QAHwEAAwEBAQEBAQEBAQAAAA
AAAAECAwQFBgcICQoL/8QAtREAAgECBAQDBAcFBAQAAQJ3AAECAxEEBSExBhJBUQdhcRMiMoEIFEKRobHBCSMzUvAVYnLRChYkNOEl8RcYGRom
JygpKjU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVmZ2hpanN0dXZ3eHl6goOEhYaHiImKkpOUlZaXmJmaoqOkpaanqKmqsrO0tba3uLm6wsPExc
bHyMnK0tPU1dbX2Nna4uPk5ebn6Onq8vP09fb3+Pn6/9oADAMBAAIRAxEAPwD5Lr+cz/dw+wK/Pz/kDPh+v+hQ/tg+1K/y3P0g/9k=
    """,
    "b.png": """
iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAKUlEQVR42mP8xSXCgA2o7MMuzsRAIhjVQAxgNLK5g1XCz2XJaCjRTwMAFLgErT
Bk6owAAAAASUVORK5CYII=
    """,
    "c.webp": """
UklGRkQAAABXRUJQVlA4TDcAAAAvD8ADAB8gJCC6XSbZZ6dQAJEIIZ78WVpiwURi/lcIAc5/sEvMAsJso0lOcpL3PoOI/gfoV9sHAA==
    """,
    "d.gif": """
R0lGODdhEAAQAIEAAB7IKICAgDI83PoKFCwAAAAAEAAQAEAIRgAHCBwoEIDBgwYFKFyoMIDDhw4JEkSIkCFDiBAlDqR4UGNBjgAsLsT4UGRDkg
E8DgAJQCVLlyBhcjQpAGUAmjZxotRJMiAAOw==
    """,
    "deflate.tif": """
SUkqAC4AAAB4nPvFJfILG5I7oYEVYVU8qp5s9UY2d7CiBhxgVD111QMAg3U8EAoAAAEDAAEAAAAQAAAAAQEDAAEAAAAQAAAAAgEDAAMAAACsAA
AAAwEDAAEAAAAIAAAABgEDAAEAAAACAAAAEQEEAAEAAAAIAAAAFQEDAAEAAAADAAAAFgEDAAEAAAAQAAAAFwEEAAEAAAAmAAAAHAEDAAEAAAAB
AAAAAAAAAAgACAAIAA==
    """,
    "jpeg.tif": """
SUkqAEYAAAD/2P/AABEIABAAEANSEQBHEQBCEQD/2gAMA1IARwBCAAA/APeq8JrxOviOvr6tStSvnOvrSvTq9EryOv/ZAAsAAAEDAAEAAAAQAA
AAAQEDAAEAAAAQAAAAAgEDAAMAAADQAAAAAwEDAAEAAAAHAAAABgEDAAEAAAACAAAAEQEEAAEAAAAIAAAAFQEDAAEAAAADAAAAFgEDAAEAAAAQ
AAAAFwEEAAEAAAA9AAAAHAEDAAEAAAABAAAAWwEHACEBAADWAAAAAAAAAAgACAAIAP/Y/9sAQwAIBgYHBgUIBwcHCQkICgwUDQwLCwwZEhMPFB
0aHx4dGhwcICQuJyAiLCMcHCg3KSwwMTQ0NB8nOT04MjwuMzQy/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIE
AwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWm
NkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP0
9fb3+Pn6/9k=
    """,
    "lzma.tif": """
SUkqAGgAAAD9N3pYWgAAAP8S2UECAQMBACEBFnkgxO7gAv8AJV0AfQP9Q9vhYl/OrQ66k5qSPjh4L/g2wiEODaylLljk78m41WmUAAAAAAAAAT
mABgAAAPZtrXSoAAr8AgAAAAAAWVoKAAABAwABAAAAEAAAAAEBAwABAAAAEAAAAAIBAwADAAAA5gAAAAMBAwABAAAAbYgAAAYBAwABAAAAAgAA
ABEBBAABAAAACAAAABUBAwABAAAAAwAAABYBAwABAAAAEAAAABcBBAABAAAAYAAAABwBAwABAAAAAQAAAAAAAAAIAAgACAA=
    """,
    "lzw.tif": """
SUkqAJ4AAACAPoFBSBQSBwWEQeFBQPMgUQ2Hw6IROJRUUQmDRmMRiKRGPR2OxuFyKMyCLSaPSSVQuUS2LSuNSOBy6PyeHTCYTSaTiZSWbTWgRC
eTGfUGfx0ZDxuUml0qmU+nVFuICqVWrVesVWoU2uVut1mwWGvVKx1yw2er2W1VK0W1AWuu2SlW60XC4XSz3a5Wa8WC9XG+X2sQEAAKAAABAwAB
AAAAEAAAAAEBAwABAAAAEAAAAAIBAwADAAAAHAEAAAMBAwABAAAABQAAAAYBAwABAAAAAgAAABEBBAABAAAACAAAABUBAwABAAAAAwAAABYBAw
ABAAAAEAAAABcBBAABAAAAlQAAABwBAwABAAAAAQAAAAAAAAAIAAgACAA=
    """,
    "zstd.tif": """
SUkqAC4AAAAotS/9AGDtAABQ+goUHsgoMjzcgAYATVOpgKuv7pumqVQAvuHnhgoAAAEDAAEAAAAQAAAAAQEDAAEAAAAQAAAAAgEDAAMAAACsAA
AAAwEDAAEAAABQwwAABgEDAAEAAAACAAAAEQEEAAEAAAAIAAAAFQEDAAEAAAADAAAAFgEDAAEAAAAQAAAAFwEEAAEAAAAmAAAAHAEDAAEAAAAB
AAAAAAAAAAgACAAIAA==
    """,
}

class Pictures(unittest.TestCase):
    def read(self, name, content):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content)
            with leat.Feed(leat.source(f"images:{folder}?size=16x16&labels=none", 1), workers=1) as feed:
                (batch,) = [numpy.array(batch) for batch in feed]
        return batch

    def test_each_format(self):
        squares = numpy.array(COLOURS, "uint8").repeat(8, 0).repeat(8, 1)
        for name, text in FILES.items():
            with self.subTest(name):
                pixels = self.read(name, base64.b64decode(text))
                self.assertEqual((pixels.shape, pixels.dtype), ((1, 16, 16, 3), numpy.uint8))
                largest = 4 if name in ("a.jpg", "jpeg.tif") else 0  # JPEG rounds.
                self.assertLessEqual(numpy.abs(pixels[0].astype(int) - squares).max(), largest)

    def test_a_damaged_file_is_named(self):
        with self.assertRaisesRegex(leat.Error, "b.png"):
            self.read("b.png", base64.b64decode(FILES["b.png"])[:-40])

    def test_statistics_that_are_only_read(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "b.png"), "wb") as file:
                file.write(base64.b64decode(FILES["b.png"]))
            path = os.path.join(folder, "statistics.npz")
            spec = f"images:{folder}?size=16x16&labels=none&augment=featurewise_center&statistics={path}"
            with self.assertRaisesRegex(leat.Error, "no statistics"):
                leat.source(spec, 1, read_statistics=True)
            leat.source(spec, 1).close()  # writes them
            with leat.source(spec, 1, read_statistics=True) as source:
                self.assertEqual(len(source), 1)


if __name__ == "__main__":
    unittest.main()
