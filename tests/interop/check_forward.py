# SPDX-License-Identifier: Apache-2.0
"""Checks that models of Keras 2.3.1 go to current Keras: check_forward.py API.json libleat.so FOLDER [WORD...].

Each golden layer case of 2.3.1 is built by leat, gets the recorded weights and is saved as .keras; current Keras loads the
file and must predict what 2.3.1 predicted.  Prints the cases that differ, and how often leat refused and why."""
import collections
import ctypes
import os
import re
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras  # noqa: E402
import numpy as np  # noqa: E402

import bind_leat  # noqa: E402
import models  # noqa: E402

LIMIT = 1e-5


def build(api, archive):
    """Returns a model of leat with the recorded weights."""
    model = api.model_from_json(bytes(archive["config"]).decode())
    for i, weight in enumerate(models.numbered(archive, "w")):
        weight, tensor = np.ascontiguousarray(weight, "float32"), api.model_weight_into(model, i)
        if weight.nbytes:
            ctypes.memmove(tensor.data, weight.ctypes.data, weight.nbytes)
    return model


def check(api, archive, path):
    api.model_save(build(api, archive), path, True)
    model = keras.models.load_model(path, compile=False)
    inputs, wanted = models.numbered(archive, "x"), models.numbered(archive, "y")
    inputs = [x.astype(i.dtype) for x, i in zip(inputs, model.inputs)]
    found = model.predict_on_batch(inputs[0] if len(inputs) == 1 else inputs)
    found = found if isinstance(found, (list, tuple)) else [found]
    return max(models.relative_error(np.asarray(a), b, 1e-3) for a, b in zip(found, wanted))


def main():
    api = bind_leat.Api(sys.argv[1], sys.argv[2])
    refused, right, wrong = collections.Counter(), 0, 0
    for name, archive, _ in models.layer_cases(""):
        if sys.argv[4:] and not any(word in name for word in sys.argv[4:]):
            continue
        keras.utils.clear_session()
        try:
            error = check(api, archive, os.path.join(sys.argv[3], "forward.keras"))
        except bind_leat.LeatError as e:
            refused[re.sub(r"'[^']*' ", "", str(e))[:110]] += 1
            continue
        except Exception as e:  # the list tells
            error = " ".join(str(e).split())[:200]
        if isinstance(error, float) and error <= LIMIT:
            right += 1
        else:
            wrong += 1
            print("%s: %s" % (name, error))
            sys.stdout.flush()
    for message, count in refused.most_common():
        print("refused %d times: %s" % (count, message))
    print("%d right, %d wrong, %d refused" % (right, wrong, sum(refused.values())))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
