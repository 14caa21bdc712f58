#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures `tar:` and `tfrecord:` beside webdataset and tf.data: shards of JPEGs, decoded and resized, in batches.

    bench/shards.py build/release/leat PICTURES [--rounds 2] [--workers 2]

PICTURES is a folder of JPEGs, such as bench/pictures.py make writes; they are put into 8 shards.
Needs Pillow, NumPy and webdataset with PyTorch, or TensorFlow; a peer that is missing is left out.  leat, webdataset (by Pillow) resize to 224x224 by Pillow's bilinear filter; tf.data decodes
and resizes by its own, without smoothing.  All shuffle: leat over all shards, the peers by a buffer of 1000 samples.  The
programs take turns in each round; the figures are median pictures per second and the least CPU time (cpu_time.py).
"""

import argparse
import pathlib
import tarfile
import tempfile

import cpu_time
import numpy as np
from PIL import Image

SIZE, BATCH, SHARDS = (224, 224), 64, 8


def make_shards(folder, pictures):
    paths = sorted(pathlib.Path(pictures).rglob("*.jpg"), key=lambda path: path.name)
    for k in range(SHARDS):
        with tarfile.open(folder / f"t-{k}.tar", "w") as tar:
            for i, path in enumerate(paths[k::SHARDS]):
                tar.add(path, f"{i:05d}.jpg")
                label = folder / "label"
                label.write_text(str(i % 4))
                tar.add(label, f"{i:05d}.cls")
    return paths


def make_records(tf, folder, paths):
    for k in range(SHARDS):
        with tf.io.TFRecordWriter(str(folder / f"t-{k}.tfrecord")) as writer:
            for i, path in enumerate(paths[k::SHARDS]):
                feature = {"image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[path.read_bytes()])),
                           "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[i % 4]))}
                writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())


def run_leat(leat, spec, count, workers):
    return cpu_time.run_leat(leat, spec, count, workers, BATCH, 2, "auto")


def prepare(sample):
    return np.array(sample[0].convert("RGB").resize(SIZE, Image.BILINEAR)), sample[1]


def run_webdataset(folder, count, workers):
    import torch
    import webdataset
    torch.set_num_threads(1)
    data = webdataset.WebDataset(str(folder / f"t-{{0..{SHARDS - 1}}}.tar"), shardshuffle=SHARDS).shuffle(1000)
    loader = torch.utils.data.DataLoader(data.decode("pil").to_tuple("jpg", "cls").map(prepare), batch_size=BATCH,
                                         num_workers=workers, persistent_workers=workers > 0)
    return cpu_time.measure(loader, count)


def run_tf(tf, folder, count, workers):
    kinds = {"image": tf.io.FixedLenFeature((), tf.string), "label": tf.io.FixedLenFeature((), tf.int64)}

    def read(record):
        row = tf.io.parse_single_example(record, kinds)
        return tf.cast(tf.image.resize(tf.io.decode_jpeg(row["image"], 3), SIZE), tf.uint8), row["label"]

    data = tf.data.TFRecordDataset([str(folder / f"t-{k}.tfrecord") for k in range(SHARDS)])
    data = data.shuffle(1000).map(read, num_parallel_calls=workers).batch(BATCH).prefetch(2)
    return cpu_time.measure(data, count)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("leat")
    parser.add_argument("pictures")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, workers = pathlib.Path(name), arguments.workers
        paths = make_shards(folder, arguments.pictures)
        count = len(paths)
        spec = "tar:" + ",".join(str(folder / f"t-{k}.tar") for k in range(SHARDS)) + "?size=224x224"
        programs = {"leat tar:": lambda: run_leat(arguments.leat, spec, count, workers)}
        try:
            import webdataset  # noqa: F401
            programs["webdataset"] = lambda: run_webdataset(folder, count, workers)
        except ImportError as error:
            print(f"webdataset is left out: {error}")
        try:
            import tensorflow as tf
            make_records(tf, folder, paths)
            records = spec.replace("tar:", "tfrecord:").replace(".tar", ".tfrecord") + "&inputs=image&targets=label"
            programs["leat tfrecord:"] = lambda: run_leat(arguments.leat, records, count, workers)
            programs["tf.data TFRecord"] = lambda: run_tf(tf, folder, count, workers)
        except ImportError as error:
            print(f"tf.data is left out: {error}")
        results = {name: [] for name in programs}
        for _ in range(arguments.rounds):
            for name, run in programs.items():
                results[name].append(run())
                print(f"  {name}: %.0f pictures/s, %.0f us CPU each" % results[name][-1], flush=True)
        cpu_time.print_table(results, "leat tar:")


if __name__ == "__main__":
    main()
