# SPDX-License-Identifier: Apache-2.0
"""Keras's losses by their class names, for Model.compile: leat.losses.Huber(delta=0.5).

Keras itself is not needed.  Each name gives a class; compile() refuses names and arguments that leat does not know.
"""

from leat._configs import make_lookup

__getattr__ = make_lookup(__name__)
