# SPDX-License-Identifier: Apache-2.0
"""Keras's metrics by their class names, for Model.compile: leat.metrics.AUC(curve="PR").

Keras itself is not needed.  Each name gives a class; compile() refuses names and arguments that leat does not know.
"""

from leat._configs import make_lookup

__getattr__ = make_lookup(__name__)
