# SPDX-License-Identifier: Apache-2.0
"""Checks leat's files in tf.keras: check_tfkeras_back.py API.json libleat.so FOLDER [WORD...], with the Python of a virtual
environment that has tensorflow-cpu 2.11 to 2.15 and h5py, where make_tfkeras.py of the same version filled FOLDER.

leat opens each .h5 file of tf.keras, trains a step, and saves it as .h5.  tf.keras must open the file, predict equally (2e-6 of the scale), and change its predictions equally in two more steps (1e-4 of the
change).  Prints what is beyond a limit."""
import glob
import os
import sys

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

import bind_leat  # noqa: E402
import models  # noqa: E402
from check_tfkeras import PREDICTS, TRAINS, distance, error_of  # noqa: E402
from leat_model import Leat  # noqa: E402

SUFFIX = ".h5"


def one(values):
    return values[0] if len(values) == 1 else values


def predicted(model, xs):
    model.reset_states()
    y = model(one(xs), training=False)
    return [np.asarray(a, "float32") for a in (y if isinstance(y, (list, tuple)) else [y])]


def check(leat, path, xs, ts, like):
    """Yields (what, error, limit) of a file that leat just wrote."""
    model = tf.keras.models.load_model(path)
    factor = 1e4 if "bfloat16" in path else 1
    before = leat.predict(xs, like)
    yield "predicts", error_of(predicted(model, xs), before), PREDICTS * factor
    leat.train(xs, ts, 2)
    model.run_eagerly = True
    model.reset_states()
    for _ in range(2):
        model.train_on_batch(one(xs), one(ts))
    yield "two steps", distance(predicted(model, xs), leat.predict(xs, like), before), TRAINS * factor


def check_file(api, made):
    """Returns what is beyond a limit in leat's file of a model."""
    archive = np.load(made)
    xs, ts, like = (models.numbered(archive, prefix) for prefix in "xty")
    path = made[:-4] + ".leat" + SUFFIX
    tf.keras.backend.clear_session()
    try:
        leat = Leat(api, made[:-4] + ".h5")
        leat.train(xs, ts, 1)
        leat.save(path)
        return ["%s %.1e" % (what, error) for what, error, limit in check(leat, path, xs, ts, like) if not error <= limit]
    except Exception as e:  # the list tells
        return ["%s: %s" % (type(e).__name__, " ".join(str(e).split())[:600])]


def main():
    api, words = bind_leat.Api(sys.argv[1], sys.argv[2]), sys.argv[4:]
    files, wrong = 0, 0
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    for made in sorted(glob.glob(os.path.join(sys.argv[3], "*.npz"))):
        name = os.path.basename(made)[:-4]
        if words and not any(word in name for word in words):
            continue
        beyond = check_file(api, made)
        files, wrong = files + 1, wrong + bool(beyond)
        if beyond:
            print("%s%s: %s" % (name, SUFFIX, ", ".join(beyond)), flush=True)
    print("%d files, %d beyond a limit" % (files, wrong))
    return 1 if wrong or not files else 0


if __name__ == "__main__":
    sys.exit(main())
