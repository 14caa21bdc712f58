# SPDX-License-Identifier: Apache-2.0
"""Makes an optimizer read all variables before it writes any of them.

On TensorFlow 2.1 the updates of Keras 2.3.1 race: nothing says whether `iterations` is read (for Adam's t,
for decay) before or after the same step raises it, nor Nadam's m_schedule, and it comes out differently from
one run to the next.  Keras means the value before the step; here it always is."""
from .session import K, keras, tf


def _read_then_write(get_updates):
    """Wraps get_updates(self, loss, params)."""
    @K.symbolic
    def ordered(self, loss, params):
        updates = []
        originals = K.update, K.update_add

        def update(variable, value):
            updates.append((variable, value))

        def update_add(variable, increment):
            updates.append((variable, variable + tf.cast(increment, variable.dtype.base_dtype)))
        K.update, K.update_add = update, update_add
        try:
            get_updates(self, loss, params)
        finally:
            K.update, K.update_add = originals
        updates.extend(u for u in self.updates if isinstance(u, tuple))
        with tf.control_dependencies([value for _, value in updates]):
            self.updates = [K.update(variable, value) for variable, value in updates]
        return self.updates
    return ordered


for _name in ("SGD", "RMSprop", "Adagrad", "Adadelta", "Adam", "Adamax", "Nadam"):
    _class = getattr(keras.optimizers, _name)
    _class.get_updates = _read_then_write(_class.get_updates)
