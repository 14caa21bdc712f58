# SPDX-License-Identifier: Apache-2.0
"""Opens the files that leat wrote, in whichever Keras runs this (2.3.1 or current).

check_keras.py WORKDIR; 2.3.1 also trains on from each file and compares with leat's own continuation."""
import json
import os
import sys

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden")
sys.path.insert(0, GOLDEN)

import numpy as np  # noqa: E402

import models  # noqa: E402

if sys.version_info < (3, 8):
    import recorder.ordered  # noqa: F401,E402  (one thread, and no race in the optimizers)
    from recorder.session import K, keras  # noqa: E402
    OLD = True
else:
    import keras  # noqa: E402
    from keras import backend as K  # noqa: E402
    OLD = False

TOLERANCE = 1e-5
# Cases that current Keras cannot open or computes differently, independently of the file; see README.md.
BEYOND_KERAS3 = ("channels_first", "hard_sigmoid", "lstm_initial_state", "lstm_encoder_decoder",
                 "nested_functional", "nested_regularized", "shared_nested")
CHANNELS_FIRST_RUNS = ("flatten_channels_first", "zeropadding2d_channels_first")


def listed(value):
    """Returns a list of arrays; Keras gives one array or a list."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def worst(found, wanted, floor):
    """Returns the largest relative error over a list of arrays."""
    if len(found) != len(wanted):
        return float("inf")
    return max([models.relative_error(a, b, floor) for a, b in zip(found, wanted)] or [0.0])


def saved_again(model, record, x, wanted):
    """Keras 2.3.1 loses the shape of some models; the file that it saves must give the same predictions."""
    path = record["file"] + ".again"
    model.save(path)
    K.clear_session()
    model = keras.models.load_model(path, compile=False)
    error = worst(listed(model.predict_on_batch(x)), wanted, 1.0)
    return None if error <= TOLERANCE else "saved again, predict differs by %.3g" % error


def check(record):
    """Returns a message about the first difference, or None."""
    data = np.load(record["data"])
    x, t = models.numbered(data, "x"), models.numbered(data, "t")
    predicted = np.load(record["predicted"])
    wanted = [predicted[name] for name in predicted.files]
    K.clear_session()
    model = keras.models.load_model(record["file"])
    found = [np.asarray(y) for y in listed(model.predict_on_batch(x if len(x) > 1 else x[0]))]
    error = worst(found, wanted, 1.0)
    if not error <= TOLERANCE:
        return "predict differs by %.3g" % error
    if not OLD:
        return None
    if not record["further"]:
        return saved_again(model, record, x, wanted)
    iterations = int(K.get_value(model.optimizer.iterations))
    if iterations != record["iterations"]:
        return "iterations %d, expected %d" % (iterations, record["iterations"])
    for _ in range(record["steps"]):
        model.train_on_batch(x, t)
    kept = model.get_weights()
    wrong = saved_again(model, record, x, listed(model.predict_on_batch(x)))
    if wrong:
        return wrong
    error = worst(models.stored_weights(record["further"]), kept, 0.1)
    return None if error <= TOLERANCE else "trained on, weights differ by %.3g of their scale" % error


def main():
    """Checks all files of the manifest."""
    with open(os.path.join(sys.argv[1], "manifest.json")) as manifest:
        records = json.load(manifest)
    failures = checked = 0
    for record in records:
        case = record["case"]
        if not OLD and case not in CHANNELS_FIRST_RUNS and any(word in case for word in BEYOND_KERAS3):
            continue
        checked += 1
        try:
            wrong = check(record)
        except Exception as error:  # any exception of Keras is a failure of this case
            wrong = "%s: %s" % (type(error).__name__, str(error).replace("\n", " ")[:300])
        if wrong:
            failures += 1
            print("FAIL %s: %s" % (case, wrong), flush=True)
    print("Keras %s: %d of %d files as expected, %d beyond it" % (
        keras.__version__, checked - failures, checked, len(records) - checked))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
