# SPDX-License-Identifier: Apache-2.0
"""Predictors: many small predictions, in any number of threads."""

from typing import List, Optional

from leat import _trainer
from leat.errors import ArgumentError
from leat.model import Model, _open_objects


class Predictor(_trainer.Predictor):
    """A model compiled for predictions of one batch size.

        with leat.Predictor(model) as predict:
            q = predict(observation)             # a new array (1, actions)
            predict(observation, out=buffer)     # no memory is allocated

    A predictor serves one thread at a time; several predictors of a model run at the same time, also while the model
    is being trained.  It has the weights that the model had when it was created, until sync() takes what
    model.publish() has offered since then.

    model: may be closed before its predictors.
    batch: samples of each prediction.
    threads: compute threads.
    streaming: each call reads one time step, and recurrent layers carry their states from call to call.
    weights: how the weights of Dense and recurrent layers are kept: "f32", or rounded to "bf16" or "int8", which is
        faster for one sample and differs a little from the model's predictions.
    device: where it computes: "cpu"; "cuda" or "cuda:1", a GPU, for large batches; "auto", where a measurement at the
        creation is faster.  The model's own device does not matter.
    inputs: for each input its complete shape, or (dtype, shape); needed where the model has None, besides the batch.
    release_gil: True: calls release the interpreter's lock.  False: they do not.  None: only if a call takes more
        than 20 us (measured in the first 16 calls): for less, giving the lock away costs more than it gains.

    predictor(x) and predictor.run(x) are the same.  The array that was passed last, and `out`, are kept until the next
    call or close(), so that their memory is not looked up again.
    """

    def __new__(
        cls,
        model: Model,
        batch: int = 1,
        *,
        threads: int = 1,
        streaming: bool = False,
        weights: str = "f32",
        device: str = "cpu",
        inputs=None,
        release_gil: Optional[bool] = None,
    ):
        import numpy

        if not isinstance(model, Model):
            raise ArgumentError(f"expected a leat.Model, received {type(model).__name__}")
        native = model._get()
        shapes = None if inputs is None else [_shape(item) for item in inputs]
        if shapes is not None and len(shapes) != len(native.inputs()):
            raise ArgumentError(f"inputs: the model has {len(native.inputs())} inputs, received {len(shapes)} shapes")
        release = -1 if release_gil is None else int(release_gil)
        self = super().__new__(
            cls,
            native,
            int(batch),
            int(threads),
            bool(streaming),
            str(weights),
            str(device),
            shapes,
            release,
            numpy.asarray,
            numpy.ndarray,
        )
        _open_objects.add(self)
        return self

    @property
    def inputs(self) -> List:
        """Arrays that view the predictor's own memory for inputs: fill them, and call run() without arguments."""
        return self._inputs()

    @property
    def input_shapes(self) -> List:
        """The shapes of the inputs, with the batch dimension."""
        return [shape for _, shape in self._shapes()[0]]

    @property
    def output_shapes(self) -> List:
        """The shapes of the outputs, with the batch dimension."""
        return [shape for _, shape in self._shapes()[1]]

    @property
    def version(self) -> int:
        """The number of the published weights in use; a later publication has a larger number."""
        return self._version()

    @property
    def device(self) -> str:
        """Where the predictor computes: "cpu" or "cuda:0"."""
        return self._device()

    @property
    def closed(self) -> bool:
        """True after close()."""
        return self._closed()

    def __reduce__(self):
        raise TypeError(
            "a predictor cannot be copied or pickled: pickle the model, and create a predictor from it in each process"
        )

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __repr__(self):
        return f"<leat.Predictor {self.input_shapes} -> {self.output_shapes}{', closed' if self.closed else ''}>"


def _shape(item):
    """Returns (dtype, shape) of a shape, or of (dtype, shape)."""
    import numpy

    if len(item) == 2 and not isinstance(item[0], int):
        return numpy.dtype(item[0]).name, tuple(int(size) for size in item[1])
    return "float32", tuple(int(size) for size in item)
