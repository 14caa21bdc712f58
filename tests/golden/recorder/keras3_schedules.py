# SPDX-License-Identifier: Apache-2.0
"""Learning rate schedules of current Keras: keras-3/schedules/*.npz."""
import collections
import os

import keras
import numpy as np

from . import store

S = keras.optimizers.schedules

STEPS = [0, 1, 2, 3, 5, 9, 10, 11, 15, 19, 20, 21, 30, 37, 40, 99, 100, 101, 250, 1000]

CASES = {
    "exponential": S.ExponentialDecay(0.1, 20, 0.9),
    "exponential_staircase": S.ExponentialDecay(0.1, 20, 0.5, staircase=True),
    "inverse_time": S.InverseTimeDecay(0.1, 10, 0.5),
    "inverse_time_staircase": S.InverseTimeDecay(0.1, 10, 0.5, staircase=True),
    "polynomial": S.PolynomialDecay(0.1, 40),
    "polynomial_power": S.PolynomialDecay(0.1, 40, end_learning_rate=0.01, power=0.5),
    "polynomial_cycle": S.PolynomialDecay(0.1, 20, end_learning_rate=0.01, power=2.0, cycle=True),
    "cosine": S.CosineDecay(0.1, 100),
    "cosine_alpha": S.CosineDecay(0.1, 40, alpha=0.2),
    "cosine_warmup": S.CosineDecay(0.01, 90, alpha=0.1, warmup_target=0.2, warmup_steps=10),
    "cosine_no_warmup_steps": S.CosineDecay(0.01, 20, warmup_target=0.2),
    "cosine_restarts": S.CosineDecayRestarts(0.1, 10),
    "cosine_restarts_longer": S.CosineDecayRestarts(0.1, 20, t_mul=1.5, m_mul=0.8, alpha=0.05),
    "cosine_restarts_equal": S.CosineDecayRestarts(0.1, 20, t_mul=1.0, m_mul=0.5),
    "piecewise": S.PiecewiseConstantDecay([10, 20, 100], [0.1, 0.05, 0.01, 0.001]),
    "piecewise_one": S.PiecewiseConstantDecay([5], [1.0, 0.5]),
}


def run(root):
    """Records all cases."""
    for name, schedule in CASES.items():
        members = collections.OrderedDict()
        members["meta"] = store.text({"keras": keras.__version__, "group": "schedules", "case": name,
                                      "class_name": type(schedule).__name__})
        members["schedule"] = store.text({"class_name": type(schedule).__name__, "config": schedule.get_config()})
        members["steps"] = np.array(STEPS, dtype=np.int32)
        members["rates"] = np.array([float(schedule(step)) for step in STEPS], dtype=np.float32)
        store.save(os.path.join(root, "schedules", name + ".npz"), members)
