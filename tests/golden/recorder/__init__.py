# SPDX-License-Identifier: Apache-2.0
"""Records golden vectors from Keras 2.3.1 on TensorFlow 2.1.0, one module per group of cases."""
