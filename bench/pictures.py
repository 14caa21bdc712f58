#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures `images:` beside PyTorch's DataLoader with Pillow, from a folder of JPEGs to batches.

    bench/pictures.py build/release/leat [--folder FOLDER] [--rounds 5] [--workers 2]

Needs Pillow and NumPy, and PyTorch for the peer.  Without --folder, --count JPEGs of 500x375 pixels with smooth parts,
edges and noise are made.  All programs decode and resize to 224x224 RGB by Pillow's bilinear filter, in batches of 64,
and take turns in each round; the figures are medians of the rounds, in pictures per second.  `decode alone` is Pillow's
decoder on as many processes, without a resize: what libjpeg-turbo allows.  torchvision's Resize on a Pillow picture
calls Image.resize, which the peer here calls itself.
"""

import argparse
import json
import multiprocessing
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy as np
from PIL import Image

SIZE, BATCH = (224, 224), 64


def make_pictures(folder, count):
    rng = np.random.default_rng(0)
    y, x = np.mgrid[0:375, 0:500]
    for i in range(count):
        a, b = rng.uniform(0.005, 0.1, 2)
        planes = [127 + 90 * np.sin(a * x * (k + 1) + i) * np.cos(b * y) + rng.normal(0, 8, x.shape) +
                  30 * ((x // 17 + y // 23) % 2) for k in range(3)]
        path = folder / f"class{i % 4}" / f"{i:05d}.jpg"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(np.clip(np.stack(planes, -1), 0, 255).astype(np.uint8)).save(path, quality=90)


class Pictures:
    """A data set as torch.utils.data wants it."""

    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        with Image.open(self.paths[index]) as image:
            return np.array(image.convert("RGB").resize(SIZE, Image.BILINEAR)), index % 4


def run_torch(paths, workers):
    from torch.utils.data import DataLoader
    loader = DataLoader(Pictures(paths), batch_size=BATCH, num_workers=workers, persistent_workers=True)
    for _ in loader:  # starts the workers
        pass
    start = time.perf_counter()
    for _ in loader:
        pass
    return len(paths) / (time.perf_counter() - start)


def decode(path):
    with Image.open(path) as image:
        image.load()


def run_decoder(paths, workers):
    with multiprocessing.Pool(workers) as pool:
        pool.map(decode, paths[:workers], 1)
        start = time.perf_counter()
        pool.map(decode, paths, 16)
        return len(paths) / (time.perf_counter() - start)


def run_leat(leat, folder, count, workers, options=""):
    spec = f"images:{folder}?size={SIZE[0]}x{SIZE[1]}{options}"
    command = [leat, "feed", "bench", spec, "--batch-size", str(BATCH), "--workers", str(workers), "--passes", "3",
               "--shuffle", "none", "--json"]
    start = time.perf_counter()
    json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return 3 * count / (time.perf_counter() - start)  # with the start of the process and the list of files


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("leat")
    parser.add_argument("--folder")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=400, help="JPEGs to make")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(arguments.folder or made)
        if not arguments.folder:
            make_pictures(folder, arguments.count)
        paths = sorted(folder.rglob("*.jpg"))
        runs = {
            "leat": lambda: run_leat(arguments.leat, folder, len(paths), arguments.workers),
            "leat, decode=scaled": lambda: run_leat(arguments.leat, folder, len(paths), arguments.workers,
                                                    "&decode=scaled"),
            "PyTorch's DataLoader, Pillow": lambda: run_torch(paths, arguments.workers),
            "decode alone (Pillow)": lambda: run_decoder(paths, arguments.workers),
        }
        results = {name: [] for name in runs}
        for _ in range(arguments.rounds):
            for name, run in runs.items():
                results[name].append(run())
        base = statistics.median(results["PyTorch's DataLoader, Pillow"])
        for name, values in results.items():
            middle = statistics.median(values)
            print(f"{name:32} {middle:8.0f} pictures/s   {middle / base:5.2f} x")


if __name__ == "__main__":
    main()
