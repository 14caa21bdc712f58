# SPDX-License-Identifier: Apache-2.0
"""Keras's optimizers by their class names, for Model.compile: leat.optimizers.Adam(learning_rate=0.01).

Keras itself is not needed.  Each name gives a class; compile() refuses names and arguments that leat does not know.
`schedules` has those of learning rates.
"""

import types

from leat._configs import make_lookup

schedules = types.ModuleType("leat.optimizers.schedules", "Keras's schedules of learning rates by their class names.")
schedules.__getattr__ = make_lookup(schedules.__name__, ("initial_learning_rate", "decay_steps", "decay_rate"))
__getattr__ = make_lookup(__name__, ("learning_rate",))
