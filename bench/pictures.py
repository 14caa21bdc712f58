#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures `images:` beside its peers, from a folder of files to batches of 224x224 RGB.

    bench/pictures.py BUILD make FOLDER PHOTOGRAPHS [--count 1200]
    bench/pictures.py BUILD jpeg FOLDER [--rounds 2] [--workers 2]
    bench/pictures.py BUILD png FOLDER --pixels IDX.gz

BUILD is a folder with `leat` and `bench_decode`, such as build/release.  `make` cuts --count pieces of 500x375 pixels out
of the photographs below PHOTOGRAPHS (packages of wallpapers, scikit-learn's china.jpg ...), at several scales, and writes
them as JPEG with the qualities 75, 85 and 95 in turn.  `png` writes the 28x28 pictures of an idx file as PNG files
first, if FOLDER does not exist, and reads them at their size.

Run this with a Python that has the peers; those that are missing are named and left out (SPDL needs FFmpeg's libraries,
Debian's libavfilter8 and libavdevice59).  All programs take turns in each
round; the figures are medians of the rounds, in pictures per second, from the first to the last batch of a pass, with
warm workers and with the files in the page cache.  leat's figure includes the start of the process.  `same` says which
pixels a program makes: Pillow's, its own antialiased ones, or TensorFlow's, which do not smooth.

`bare` is bench_decode: libjpeg-turbo called directly and leat's resize on as many threads, without a feed.

CPU time is that of all threads and processes, without their start: the least of the rounds.  On a machine that others use too,
it is the figure to compare.
"""

import argparse
import os
import pathlib
import random
import subprocess
import sys

import cpu_time

SIZE, BATCH = 224, 64


# ---- Files ----


def make_pictures(folder, photographs, count):
    from PIL import Image

    chance = random.Random(0)
    paths = sorted(p for p in pathlib.Path(photographs).rglob("*") if p.suffix.lower() in (".jpg", ".jpeg", ".png"))
    photos = []
    for path in paths:
        with Image.open(path) as image:
            if image.width >= 1000 and image.height >= 750:
                photos.append(path)
    for start, path in enumerate(photos):
        with Image.open(path) as image:
            image = image.convert("RGB")
            for i in range(start, count, len(photos)):
                scale = chance.uniform(1, min(image.width / 500, image.height / 375))
                width, height = int(500 * scale), int(375 * scale)
                left, top = chance.randint(0, image.width - width), chance.randint(0, image.height - height)
                piece = image.resize((500, 375), Image.LANCZOS, (left, top, left + width, top + height))
                out = folder / f"class{i % 4}" / f"{i:05d}.jpg"
                out.parent.mkdir(parents=True, exist_ok=True)
                piece.save(out, quality=(75, 85, 95)[i % 3])
    print(f"{count} pictures of {len(photos)} photographs")


def make_pngs(folder, pixels):
    import gzip

    import numpy as np
    from PIL import Image

    with gzip.open(pixels) as file:
        data = np.frombuffer(file.read()[16:], np.uint8).reshape(-1, 28, 28)
    for i, picture in enumerate(data):
        out = folder / f"class{i % 10}" / f"{i:05d}.png"
        out.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(out)


# ---- Peers: functions that return an iterable of batches ----


class Pictures:
    """A data set as torch.utils.data wants it."""

    def __init__(self, paths, decode):
        self.paths, self.decode = paths, decode

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return self.decode(self.paths[index], index)


def decode_pillow(path, index, size=(SIZE, SIZE), mode="RGB"):
    import numpy as np
    from PIL import Image

    with Image.open(path) as image:
        return np.array(image.convert(mode).resize(size, Image.BILINEAR)), index % 4


def decode_small(path, index):
    return decode_pillow(path, index, (28, 28), "L")


def decode_torchvision(path, index):
    from torchvision.io import ImageReadMode, decode_image
    from torchvision.transforms.v2 import functional

    image = decode_image(path, ImageReadMode.RGB)
    return functional.resize(image, [SIZE, SIZE], antialias=True), index % 4


def decode_torchvision_small(path, index):
    from torchvision.io import ImageReadMode, decode_image

    return decode_image(path, ImageReadMode.GRAY), index % 4


def load_with_torch(decode, paths, workers):
    import torch
    from torch.utils.data import DataLoader

    torch.set_num_threads(1)
    return DataLoader(
        Pictures(paths, decode), batch_size=BATCH, num_workers=workers, persistent_workers=True, prefetch_factor=4
    )


def run_pillow(paths, folder, workers, small):
    return load_with_torch(decode_small if small else decode_pillow, paths, workers)


def run_torchvision(paths, folder, workers, small):
    import torchvision  # noqa: F401

    return load_with_torch(decode_torchvision_small if small else decode_torchvision, paths, workers)


def run_tf(paths, folder, workers, small):
    import tensorflow as tf

    def read(path):
        data = tf.io.read_file(path)
        if small:
            return tf.io.decode_png(data, channels=1)
        image = tf.image.resize(tf.io.decode_jpeg(data, channels=3), (SIZE, SIZE))
        return tf.cast(image, tf.uint8)

    return tf.data.Dataset.from_tensor_slices(paths).map(read, workers, True).batch(BATCH).prefetch(4)


def run_keras(paths, folder, workers, small):
    import keras

    return keras.utils.image_dataset_from_directory(
        folder,
        image_size=(28, 28) if small else (SIZE, SIZE),
        color_mode="grayscale" if small else "rgb",
        batch_size=BATCH,
        shuffle=False,
        verbose=False,
    )


def run_spdl(paths, folder, workers, small):
    import spdl.io
    from spdl.pipeline import PipelineBuilder

    side, pixels = (28, "gray") if small else (SIZE, "rgb24")
    batches = [paths[i : i + BATCH] for i in range(0, len(paths), BATCH)]
    # Without a mode it would pad to keep the aspect ratio; more threads of a decoder cost more than they bring.
    graph = spdl.io.get_video_filter_desc(
        scale_width=side, scale_height=side, scale_algo="bilinear", scale_mode=None, pix_fmt=pixels
    )
    alone = spdl.io.decode_config(decoder_options={"threads": "1"})

    def decode(path):
        packets = spdl.io.demux_image(path)
        return spdl.io.decode_packets(packets, filter_desc=graph, decode_config=alone)

    class Pass:
        def __iter__(self):
            pipeline = (
                PipelineBuilder()
                .add_source(path for batch in batches for path in batch)
                .pipe(decode, concurrency=workers, output_order="input")
                .aggregate(BATCH)
                .pipe(lambda frames: spdl.io.to_numpy(spdl.io.convert_frames(frames)))
                .add_sink(4)
                .build(num_threads=workers)
            )
            with pipeline.auto_stop():
                yield from pipeline

    return Pass()


def run_ffcv(paths, folder, workers, small):
    import ffcv  # noqa: F401

    raise NotImplementedError("FFCV reads a file of its own, which has to be written first")


PEERS = {
    "torchvision v2, its decoder": (run_torchvision, "its own"),
    "PyTorch's DataLoader, Pillow": (run_pillow, "Pillow's"),
    "tf.data": (run_tf, "TensorFlow's"),
    "Keras 3, image_dataset_from_directory": (run_keras, "TensorFlow's"),
    "SPDL": (run_spdl, "FFmpeg's"),
    "FFCV": (run_ffcv, "its own"),
}


def run_peer(name, folder, workers, small):
    """Runs two passes, of which the second counts; prints pictures per second and CPU time."""
    paths = [str(path) for path in sorted(folder.rglob("*.png" if small else "*.jpg"))]
    print(*cpu_time.measure(PEERS[name][0](paths, str(folder), workers, small), len(paths)))


# ---- Rounds ----


def start_peer(name, arguments):
    command = [sys.executable, __file__, arguments.build, "peer", arguments.folder, "--name", name]
    command += ["--workers", str(arguments.workers)] + ["--small"] * (arguments.what == "png")
    environment = dict(os.environ, KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    lines = result.stdout.strip().splitlines()
    if result.returncode != 0 or not lines:
        raise RuntimeError((result.stderr.strip().splitlines() or ["no output"])[-1])
    return tuple(float(word) for word in lines[-1].split())


def run_leat(arguments, count, options, passes):
    size = "28x28&color=grayscale" if arguments.what == "png" else f"{SIZE}x{SIZE}"
    spec = f"images:{arguments.folder}?size={size}{options}"
    return cpu_time.run_leat(f"{arguments.build}/leat", spec, count, arguments.workers, BATCH, passes)


def run_bare(arguments, paths, passes):
    program = f"{arguments.build}/bench_decode"
    _, cpu, rate = cpu_time.run([program, arguments.workers, passes, *paths])
    return float(rate), 1e6 * cpu / (passes * len(paths))


def compare(arguments):
    small = arguments.what == "png"
    paths = sorted(pathlib.Path(arguments.folder).rglob("*.png" if small else "*.jpg"))
    passes = 1 if small else 2
    if arguments.only:
        for name in [name for name in PEERS if not any(word in name for word in arguments.only.split(","))]:
            del PEERS[name]
    runs = {"leat": (lambda: run_leat(arguments, len(paths), "", passes), "Pillow's")}
    if not small:
        runs["leat, decode=scaled"] = (lambda: run_leat(arguments, len(paths), "&decode=scaled", passes), "its own")
        runs["bare libjpeg-turbo + leat's resize"] = (lambda: run_bare(arguments, paths, passes), "Pillow's")
    for name, (_, pixels) in PEERS.items():
        runs[name] = (lambda name=name: start_peer(name, arguments), pixels)
    results = {}
    for number in range(arguments.rounds):
        print(f"round {number + 1}, load {os.getloadavg()[0]:.1f}", flush=True)
        for name, (run, _) in list(runs.items()):
            try:
                results.setdefault(name, []).append(run())
                print(f"  {name}: %.0f pictures/s, %.0f us CPU each" % results[name][-1], flush=True)
            except (RuntimeError, OSError, subprocess.CalledProcessError) as error:
                print(f"  {name}: left out: {error}"[:200], flush=True)
                del runs[name]
                results.pop(name, None)
    cpu_time.print_table(results, "leat", {name: pixels for name, (_, pixels) in runs.items()})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("what", choices=("make", "jpeg", "png", "peer"))
    parser.add_argument("folder")
    parser.add_argument("photographs", nargs="?")
    parser.add_argument("--count", type=int, default=1200)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--pixels", help="an idx file with pictures, .gz")
    parser.add_argument("--only", help="parts of the names of the peers to run, such as tf,Keras")
    parser.add_argument("--name", help=argparse.SUPPRESS)
    parser.add_argument("--small", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    folder = pathlib.Path(arguments.folder)
    if arguments.what == "make":
        make_pictures(folder, arguments.photographs, arguments.count)
    elif arguments.what == "peer":
        run_peer(arguments.name, folder, arguments.workers, arguments.small)
    else:
        if arguments.what == "png" and not folder.exists():
            make_pngs(folder, arguments.pixels)
        compare(arguments)


if __name__ == "__main__":
    main()
