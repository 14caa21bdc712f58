# SPDX-License-Identifier: Apache-2.0
"""Checks files of tf.keras in leat: check_tfkeras.py API.json libleat.so FOLDER, where make_tfkeras.py filled FOLDER.

leat opens each file, must predict and evaluate as tf.keras did (2e-6 of the scale), and trains three steps; the distance of
the predictions from tf.keras's, relative to their largest change, must be at most 1e-4.  Prints what is beyond a limit."""
import ctypes
import glob
import os
import sys

import numpy as np

import bind_leat
import models
from leat_model import Leat

PREDICTS, EVALUATES, TRAINS = 2e-6, 5e-6, 1e-4


def error_of(found, wanted):
    """Returns the largest difference relative to the scale, which is at least 1."""
    return max(models.relative_error(a, b, 1.0) for a, b in zip(found, wanted))


def distance(found, wanted, before):
    """Returns the largest difference relative to the largest change."""
    change = max(float(np.abs(a - b).max()) for a, b in zip(wanted, before))
    return max(float(np.abs(np.float64(a) - b).max()) for a, b in zip(found, wanted)) / max(change, 1e-12)


def check(api, path, archive):
    """Yields (what, error, limit)."""
    xs, ts = models.numbered(archive, "x"), models.numbered(archive, "t")
    y, a, b = (models.numbered(archive, prefix) for prefix in "yab")
    factor = 1e4 if "bfloat16" in path else 1
    leat = Leat(api, path)
    yield "predicts", error_of(leat.predict(xs, y), y), PREDICTS * factor
    evaluated = leat.evaluate(xs, ts)
    if len(evaluated) != len(archive["evaluated"]):
        evaluated = list(evaluated) + [np.inf]
    pairs = list(zip(evaluated, archive["evaluated"]))
    yield "evaluates", max(abs(p - q) / max(1.0, abs(q)) for p, q in pairs), EVALUATES * factor
    leat.train(xs, ts, 1)
    yield "one step", distance(leat.predict(xs, a), a, y), TRAINS * factor
    leat.train(xs, ts, 2)
    yield "three steps", distance(leat.predict(xs, b), b, y), TRAINS * factor


def main():
    api = bind_leat.Api(sys.argv[1], sys.argv[2])
    files, wrong = 0, 0
    for made in sorted(glob.glob(os.path.join(sys.argv[3], "*.npz"))):
        archive = np.load(made)
        for path in (made[:-4] + ".h5", made[:-4] + ".keras"):
            if not os.path.exists(path):
                continue
            files += 1
            beyond = []
            try:
                for what, error, limit in check(api, path, archive):
                    if not error <= limit:
                        beyond.append("%s %.1e" % (what, error))
            except bind_leat.LeatError as e:
                beyond.append(str(e).replace(os.path.dirname(path) + "/", "")[:300])
            if beyond:
                wrong += 1
                print("%s: %s" % (os.path.basename(path), ", ".join(beyond)))
    print("%d files, %d beyond a limit" % (files, wrong))
    return 1 if wrong or not files else 0


if __name__ == "__main__":
    sys.exit(main())
