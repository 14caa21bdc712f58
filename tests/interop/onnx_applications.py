# SPDX-License-Identifier: Apache-2.0
"""Writes models of keras.applications for check_onnx.py: onnx_applications.py FOLDER [NAME...].

Runs in Keras 2.3.1 and in current Keras; the weights are random, and the averages of BatchNormalization are those of no
layer's default.  The models end without their softmax, whose saturation would hide differences.  NAME: the name of a function, with "_open" at its end for the convolutional part with an open image size."""
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras  # noqa: E402
import numpy as np  # noqa: E402

OLD = """VGG16 VGG19 ResNet50 ResNet101 ResNet152 ResNet50V2 ResNet101V2 ResNet152V2 InceptionV3 Xception MobileNet MobileNetV2
DenseNet121 DenseNet169 DenseNet201 NASNetMobile NASNetLarge""".split()
NEW = OLD + """InceptionResNetV2 MobileNetV3Small MobileNetV3Large EfficientNetB0 EfficientNetB1 EfficientNetB2 EfficientNetB3
EfficientNetB4 EfficientNetB5 EfficientNetB6 EfficientNetB7 EfficientNetV2B0 EfficientNetV2B1 EfficientNetV2B2
EfficientNetV2B3 EfficientNetV2S EfficientNetV2M EfficientNetV2L ConvNeXtTiny ConvNeXtSmall ConvNeXtBase""".split()
PIXELS = {"VGG16": 32, "VGG19": 32, "InceptionV3": 107, "InceptionResNetV2": 107, "Xception": 71}


def natural(model):
    """Gives the weights random values with which activations keep their size."""
    draw = np.random.RandomState(3)
    for weight in model.weights:
        shape, name = tuple(int(d) for d in weight.shape), weight.name.split("/")[-1].split(":")[0]
        fan = np.prod(shape[:-1]) if "depthwise" not in name else np.prod(shape[:2])
        if name in ("kernel", "depthwise_kernel", "pointwise_kernel"):
            value = draw.normal(0, np.sqrt(1.5 / max(fan, 1)), shape)
        elif name in ("gamma", "moving_variance", "variance"):
            value = draw.uniform(0.7, 1.3, shape)
        elif name in ("beta", "bias", "moving_mean", "mean"):
            value = draw.normal(0, 0.1, shape)
        else:
            continue
        if hasattr(weight, "assign") and not keras.__version__.startswith("2."):
            weight.assign(value)
        else:
            keras.backend.set_value(weight, value)


def main():
    old = keras.__version__.startswith("2.")
    names = sys.argv[2:] or (OLD if old else NEW + ["MobileNetV2_open", "ResNet50_open", "EfficientNetB0_open"])
    for name in names:
        function, pixels = name.replace("_open", ""), PIXELS.get(name, 64)
        model_of = getattr(keras.applications, function)
        keras.backend.clear_session()
        if function != name:
            model = model_of(weights=None, include_top=False, input_shape=(None, None, 3))
        else:
            more = {} if old else {"classifier_activation": None}
            model = model_of(weights=None, include_top=True, input_shape=(pixels, pixels, 3), classes=10, **more)
            if old:
                model.layers[-1].activation = keras.activations.linear
        natural(model)
        path = os.path.join(sys.argv[1], "%s%s" % (name, ".h5" if old else ".keras"))
        model.save(path)
        print(path, flush=True)


if __name__ == "__main__":
    main()
