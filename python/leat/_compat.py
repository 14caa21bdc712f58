# SPDX-License-Identifier: Apache-2.0
"""Pickle with protocol 5, which Python's own module has from 3.8 on."""

import pickle

if not hasattr(pickle, "PickleBuffer"):
    try:
        import pickle5 as pickle  # noqa: F811
    except ImportError as error:
        raise ImportError("leat needs the package pickle5 on Python 3.7: pip install pickle5") from error

__all__ = ["pickle"]
