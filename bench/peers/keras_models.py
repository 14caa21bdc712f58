# SPDX-License-Identifier: Apache-2.0
"""Writes a model of keras.applications at its own size, or one of common_models.py: keras_models.py NAME OUT.json [OUT.keras]"""
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
import keras  # noqa: E402

import common_models  # noqa: E402

SIZES = {"Xception": 299, "InceptionV3": 299, "InceptionResNetV2": 299, "NASNetLarge": 331}


def build(name):
    if name in common_models.MODELS:
        return common_models.build(name)
    # EfficientNets have sizes of their own; some other models have none, and predict at any size.
    sized = {} if name.startswith("EfficientNet") else {"input_shape": (SIZES.get(name, 224),) * 2 + (3,)}
    return getattr(keras.applications, name)(weights=None, **sized)


def main():
    model = build(sys.argv[1])
    with open(sys.argv[2], "w") as file:
        file.write(model.to_json())
    if len(sys.argv) > 3:
        model.save(sys.argv[3])


if __name__ == "__main__":
    main()
