# SPDX-License-Identifier: Apache-2.0
"""Cases: the distribution that each initializer draws from for a shape, or its exact values."""
import collections

import numpy as np

from . import store
from .session import K, VERSIONS, keras

GROUP = "initializers"
SHAPES = [(7,), (5, 3), (3, 5), (4, 4), (3, 2, 5), (3, 2, 4, 6), (1, 1, 3, 2), (2, 2, 3, 2, 4)]
SCALINGS = ["lecun_uniform", "lecun_normal", "glorot_uniform", "glorot_normal", "he_uniform", "he_normal"]
DRAWS = {"random_uniform": "uniform", "random_normal": "normal", "truncated_normal": "truncated_normal"}


def observed(initializer, shape):
    """Calls the initializer and returns its only draw: (distribution, two parameters)."""
    seen = []
    originals = {name: getattr(K, name) for name in DRAWS}

    def catcher(name):
        def draw(shape, first, second, dtype=None, seed=None):
            seen.append((DRAWS[name], float(first), float(second)))
            return originals[name](shape, first, second, dtype=dtype, seed=seed)
        return draw
    for name in DRAWS:
        setattr(K, name, catcher(name))
    try:
        value = initializer(shape)
    finally:
        for name, original in originals.items():
            setattr(K, name, original)
    return (seen[0] if seen else None), value


def case(root, name, make, shapes, exact=False, distribution=None):
    """One file per initializer, with a row of `params` or a `value<i>` for each shape."""
    K.clear_session()
    initializer = make()
    meta = dict(VERSIONS)
    meta.update({
        "group": GROUP, "case": name, "class_name": initializer.__class__.__name__,
        "initializer": keras.initializers.serialize(initializer), "shapes": [list(s) for s in shapes],
        "distribution": "exact" if exact else distribution, "notes": "",
    })
    values, params = collections.OrderedDict(), []
    for i, shape in enumerate(shapes):
        draw, value = observed(initializer, shape)
        if draw:
            meta["distribution"] = draw[0]
            params.append(draw[1:])
        elif exact:
            values["value%d" % i] = np.asarray(K.get_value(value) if K.is_tensor(value) else value)
    if params:
        meta["params"] = params
    members = collections.OrderedDict([("meta", store.text(meta))])
    if params:
        members["params"] = params
    members.update(values)
    store.save("%s/%s/%s.npz" % (root, GROUP, name), members)


def run(root):
    """Records all cases of this module."""
    init = keras.initializers
    for name in SCALINGS:
        case(root, name, getattr(init, name), SHAPES)
    for mode in ("fan_in", "fan_out", "fan_avg"):
        for distribution in ("normal", "uniform"):
            case(root, "variance_scaling_%s_%s" % (mode, distribution),
                 lambda m=mode, d=distribution: init.VarianceScaling(2.5, mode=m, distribution=d), SHAPES)
    case(root, "variance_scaling", lambda: init.VarianceScaling(), SHAPES)
    case(root, "random_normal", lambda: init.RandomNormal(), SHAPES[:2])
    case(root, "random_normal_options", lambda: init.RandomNormal(0.5, 0.2, seed=3), SHAPES[:2])
    case(root, "random_uniform", lambda: init.RandomUniform(), SHAPES[:2])
    case(root, "random_uniform_options", lambda: init.RandomUniform(-1.0, 3.0, seed=3), SHAPES[:2])
    case(root, "truncated_normal", lambda: init.TruncatedNormal(), SHAPES[:2])
    case(root, "truncated_normal_options", lambda: init.TruncatedNormal(0.5, 0.2, seed=3), SHAPES[:2])
    case(root, "orthogonal", lambda: init.Orthogonal(), SHAPES[1:], distribution="orthogonal")
    case(root, "orthogonal_gain", lambda: init.Orthogonal(gain=1.7, seed=3), SHAPES[1:],
         distribution="orthogonal")
    case(root, "identity", lambda: init.Identity(), [(3, 3), (2, 4), (4, 2)], exact=True)
    case(root, "identity_gain", lambda: init.Identity(gain=0.5), [(3, 3), (2, 4), (4, 2)], exact=True)
    for name, make in {"zeros": lambda: init.Zeros(), "ones": lambda: init.Ones(),
                       "constant": lambda: init.Constant(), "constant_value": lambda: init.Constant(0.3),
                       }.items():
        case(root, name, make, [(3,), (2, 3), (2, 1, 2, 2)], exact=True)
