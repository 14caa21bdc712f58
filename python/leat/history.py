# SPDX-License-Identifier: Apache-2.0
"""What a fit returns."""

import json
import weakref


class _Values(dict):
    """The series by name; the learning rate also has the name of current Keras."""

    def __missing__(self, name):
        if name == "learning_rate" and "lr" in self:
            return self["lr"]
        raise KeyError(name)


class History:
    """The losses and metrics of a fit, as keras.callbacks.History has them.

    history: a dict of lists: "loss", the metrics, the same with "val_" in front, and "lr" if a callback has changed it.
    epoch: the numbers of the epochs, from 0.
    params: epochs, steps, batch_size and so on, as callbacks receive them.
    model: the leat.Model, which the history does not keep alive: None once the model is gone.
    stop_reason: why the fit ended before its last epoch; None if it did not.
    verdict: sentences that say how long training waited for data.
    """

    def __init__(self, model=None):
        self._model = None if model is None else weakref.ref(model)
        self.params = {}
        self.epoch = []
        self.history = _Values()
        self.stop_reason = None
        self.verdict = ""
        self._json = None

    @property
    def model(self):
        """The leat.Model; None once it is gone."""
        return None if self._model is None else self._model()

    def _fill(self, series, verdict, text, reason):
        for name, values, epochs in series:
            self.history[name] = values
            if len(epochs) > len(self.epoch):
                self.epoch = epochs
        self.verdict = verdict
        self._json = text
        self.stop_reason = reason

    def __getstate__(self):
        return {**self.__dict__, "_model": None}

    def to_dict(self):
        """Returns all that leat records of a fit: docs/formats/history.md describes it."""
        return json.loads(self._json) if self._json else {}

    def __repr__(self):
        last = ", ".join(f"{name} {values[-1]:.4g}" for name, values in self.history.items() if values)
        return f"<leat.History of {len(self.epoch)} epochs: {last}>"
