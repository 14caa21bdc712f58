# SPDX-License-Identifier: Apache-2.0
"""Starts TensorFlow on one thread and checks its version."""
import os
import warnings

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["KERAS_BACKEND"] = "tensorflow"
warnings.filterwarnings("ignore")

import tensorflow as tf  # noqa: E402

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
tf.get_logger().setLevel("ERROR")

import keras  # noqa: E402
from keras import backend as K  # noqa: E402
from keras.backend import tensorflow_backend  # noqa: E402

# Keras 2.3.1 asks for GPUs through a function that TensorFlow 2.1 has dropped, whenever the channels come
# first; if the answer is set in advance, it does not ask.
tensorflow_backend._LOCAL_DEVICES = []

VERSIONS = {"keras": keras.__version__, "tensorflow": tf.__version__}
if VERSIONS != {"keras": "2.3.1", "tensorflow": "2.1.0"}:
    raise SystemExit("expected keras 2.3.1 on tensorflow 2.1.0, found %s" % VERSIONS)

__all__ = ["K", "VERSIONS", "keras", "tf"]
