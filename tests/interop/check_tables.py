#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that leat reads tables and shards as their own programs do: the same numbers, bit by bit.

    tests/interop/check_tables.py build/dev/leat

CSV files are compared with pandas, tar shards with webdataset, TFRecord files with TensorFlow, HDF5 files with h5py.  A part
whose program is missing is skipped, which is said.  The files are made anew each time, by those programs.
"""

import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np


def digest_of(leat, spec, count):
    """Returns the SHA-256 of all samples of a SPEC, in order, as one batch."""
    command = [leat, "feed", "bench", spec, "--digest", "--json", "--shuffle", "none", "--batch-size", str(count), "--passes", "1"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{spec}: {done.stderr}")
    return json.loads(done.stdout)["sha256"]


def compare(leat, name, spec, arrays):
    expected = hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()
    received = digest_of(leat, spec, len(arrays[0]))
    print(f"{name}: {'equal' if received == expected else 'DIFFERENT'}", flush=True)
    return received == expected


def check_pandas(leat, folder):
    import pandas
    rng = np.random.default_rng(1)
    count = 5000
    frame = pandas.DataFrame({
        "a": rng.normal(0, 1e6, count), "b": rng.integers(-10**9, 10**9, count), "c": 10.0 ** rng.uniform(-44, 38, count),
        "d": rng.choice(["x,y", 'say "so"', "two\nlines", "é"], count), "y": rng.choice(["no", "yes"], count)})
    frame.loc[rng.choice(count, 300, False), "a"] = np.nan
    frame.to_csv(folder / "t.csv.gz", index=False)
    back = pandas.read_csv(folder / "t.csv.gz", float_precision="round_trip")
    codes = [pandas.Categorical(back[k], sorted(set(back[k]), key=str.encode)).codes.astype(np.float32) for k in "dy"]
    filled = back["a"].astype(np.float32).fillna(-1)
    inputs = np.column_stack([filled, back["b"].astype(np.float32), back["c"].astype(np.float32), codes[0]])
    spec = f"csv:{folder}/t.csv.gz?inputs=a..d&targets=y&categories=d,y&missing=-1"
    same = compare(leat, "csv: and pandas", spec, [inputs, codes[1].astype(np.int32)])
    dummies = pandas.get_dummies(back["d"])[sorted(set(back["d"]), key=str.encode)].to_numpy(np.float32)
    return same & compare(leat, "csv: and pandas.get_dummies", f"csv:{folder}/t.csv.gz?inputs=d&onehot_categories=d", [dummies])


def check_webdataset(leat, folder):
    import io
    import webdataset
    from PIL import Image
    rng = np.random.default_rng(2)
    with webdataset.ShardWriter(str(folder / "s-%03d.tar"), maxcount=20, verbose=0) as sink:
        for i in range(50):
            buffer = io.BytesIO()
            Image.fromarray(rng.integers(0, 255, (9, 7, 3), dtype=np.uint8)).save(buffer, "png")
            sink.write({"__key__": f"sample{i:04d}" + "x" * (i * 5), "png": buffer.getvalue(), "cls": int(i % 7),
                        "x.npy": rng.normal(size=(3, 2)).astype(np.float32)})
    urls = str(folder / "s-{000..002}.tar")
    data = list(webdataset.WebDataset(urls, shardshuffle=False).decode("rgb8").to_tuple("png", "x.npy", "cls"))
    arrays = [np.stack([row[0] for row in data]), np.stack([row[1] for row in data]),
              np.array([row[2] for row in data], np.int32)]
    return compare(leat, "tar: and webdataset", f"tar:{urls}?inputs=png,x.npy&targets=cls&size=9x7", arrays)


def check_tensorflow(leat, folder):
    import tensorflow as tf
    rng = np.random.default_rng(3)
    files = [str(folder / f"r-{i}.tfrecord") for i in range(2)]
    for file in files:
        with tf.io.TFRecordWriter(file, "GZIP" if file == files[1] else "") as writer:
            for i in range(30):
                feature = {
                    "x": tf.train.Feature(float_list=tf.train.FloatList(value=rng.normal(size=6))),
                    "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[int(rng.integers(-2**62, 2**62))])),
                    "raw": tf.train.Feature(bytes_list=tf.train.BytesList(value=[rng.bytes(8)])),
                    "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[tf.io.encode_png(
                        rng.integers(0, 255, (5, 4, 3), dtype=np.uint8)).numpy()]))}
                writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    kinds = {"x": tf.io.FixedLenFeature((2, 3), tf.float32), "label": tf.io.FixedLenFeature((), tf.int64),
             "raw": tf.io.FixedLenFeature((), tf.string), "image": tf.io.FixedLenFeature((), tf.string)}
    rows = [tf.io.parse_single_example(record, kinds) for file in files
            for record in tf.data.TFRecordDataset(file, "GZIP" if file == files[1] else "")]
    arrays = [np.stack([tf.io.decode_png(row["image"]).numpy() for row in rows]), np.stack([row["x"].numpy() for row in rows]),
              np.stack([tf.io.decode_raw(row["raw"], tf.int32).numpy() for row in rows]),
              np.stack([row["label"].numpy() for row in rows])]
    spec = f"tfrecord:{','.join(files)}?inputs=image,x:2x3,raw:int32&targets=label&size=5x4"
    return compare(leat, "tfrecord: and TensorFlow", spec, arrays)


def check_h5py(leat, folder):
    import h5py
    rng = np.random.default_rng(4)
    x, y = rng.integers(0, 255, (40, 6, 5), dtype=np.uint8), rng.integers(0, 9, 40, dtype=np.int32)
    with h5py.File(folder / "t.h5", "w") as file:
        file.create_dataset("train/x", data=x, chunks=(7, 6, 2), compression="gzip", shuffle=True)
        file["y"] = y
    return compare(leat, "h5: and h5py", f"h5:{folder}/t.h5?inputs=train/x&targets=y", [x, y])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    failed = 0
    for check in (check_pandas, check_webdataset, check_tensorflow, check_h5py):
        with tempfile.TemporaryDirectory() as folder:
            try:
                failed += not check(sys.argv[1], pathlib.Path(folder))
            except ImportError as error:
                print(f"{check.__name__}: skipped: {error}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
