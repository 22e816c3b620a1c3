"""Keras 3: a callback that takes the snapshots of one round, and scores of them."""

import importlib.util
import math
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dynsnap._types import Scores
from dynsnap.errors import InputError, PlanError
from dynsnap.keeper._round import TrainingRound, check_epochs, metric_of, torch_part
from dynsnap.trainers import NotInstalledError, needed

try:
    _keras: Any = needed("keras", "keras")
except NotInstalledError as error:
    if importlib.util.find_spec("keras") is None:
        raise
    raise NotInstalledError(
        f"Keras cannot load its backend: {error.__cause__}. Set the environment variable "
        "KERAS_BACKEND=torch before Keras is imported."
    ) from error

_HINT = 'Pass `validation_data` to `fit`, and compile the model with `metrics=["accuracy"]`.'


class _Variables:
    """Variables of Keras as a state: by place, because layers have another name in every model."""

    def __init__(self, variables: Callable[[], list[Any]]) -> None:
        self._variables = variables

    def state_dict(self) -> dict[str, Any]:
        found = self._variables()
        return {f"{place:04}": np.asarray(_array(one)) for place, one in enumerate(found)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        found = self._variables()
        if len(found) != len(state):
            raise ValueError(f"there are {len(found)} variables, but {len(state)} were stored")
        for place, one in enumerate(found):
            value = np.asarray(state[f"{place:04}"])
            if tuple(one.shape) != value.shape:
                raise ValueError(
                    f"{one.path} has the shape {tuple(one.shape)}, but {value.shape} was stored"
                )
            one.assign(value)


def _array(variable: Any) -> Any:
    return _keras.ops.convert_to_numpy(variable)


class SnapshotCallback(_keras.callbacks.Callback):  # type: ignore[misc]  # known at import
    """Sets the learning rate of each epoch, and ends the epochs of a round with their accuracy.

    Args:
        training: The round, from `SnapshotKeeper.rounds`. Call `fit` with
            `epochs=training.epochs_left`.
        monitor: What `fit` logs: a score from 0 to 1 that is better if higher.
    """

    def __init__(self, training: TrainingRound, *, monitor: str = "val_accuracy") -> None:
        super().__init__()
        self._training = training
        self._monitor = monitor
        self._rate = 0.0

    def on_train_begin(self, logs: Any = None) -> None:
        """Take the model and its optimiser, restored to where they were stopped."""
        check_epochs(self._training, self.params["epochs"], "epochs")
        model, optimizer = self.model, self.model.optimizer
        if not optimizer.built:
            optimizer.build(model.trainable_variables)
        self._rate = float(optimizer.learning_rate)
        try:
            optimizer.learning_rate = self._rate
        except TypeError as error:
            raise PlanError(
                "The optimiser has a `LearningRateSchedule`, and the round has its own schedule. "
                "Give it a number."
            ) from error
        own = {id(one) for one in model.weights}
        self._training.begin(
            _Variables(lambda: model.weights),
            _Variables(lambda: optimizer.variables),
            # What dropout draws its random numbers from.
            _Variables(lambda: [one for one in model.variables if id(one) not in own]),
        )

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Set the rate of the epoch."""
        self.model.optimizer.learning_rate = self._expected()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """End the epoch."""
        number, rate = self._training.epochs_done, float(self.model.optimizer.learning_rate)
        if not math.isclose(rate, self._expected(), rel_tol=1e-5):  # kept in 32 bits
            raise PlanError(
                f"Another callback has set the learning rate to {rate:g}, and the round has its "
                "own schedule. Leave the other one out."
            )
        found = metric_of(logs or {}, self._monitor, epoch=number, hint=_HINT)
        self._training.end_epoch(number, found)

    def _expected(self) -> float:
        return self._rate * self._training.rate(self._training.epochs_done)


class KerasScores:
    """Scores inputs with the weights of a snapshot: what `SnapshotKeeper` asks for as `score`.

    Args:
        build: Builds the model, of which the last layer gives probabilities.
        softmax: Whether the last layer gives logits instead.
        batch_size: Inputs that are scored at once.
    """

    def __init__(
        self, build: Callable[[], Any], *, softmax: bool = False, batch_size: int = 256
    ) -> None:
        self._build = build
        self._softmax = softmax
        self._batch = batch_size
        self._lock = threading.Lock()  # one model holds the weights of one member at a time
        self._model: Any = None

    def __call__(self, weights: Mapping[str, Any], inputs: Any, classes: int, /) -> Scores:
        """Scores (inputs, classes) of one snapshot."""
        with self._lock:
            if self._model is None:
                self._model = self._build()
            if not self._model.built:  # a model without `keras.Input` is built by inputs
                first = next(torch_part().batches(inputs, 1))
                self._model.predict(first, verbose=0)
            try:
                _Variables(lambda: self._model.weights).load_state_dict(weights)
            except (KeyError, ValueError) as error:
                raise InputError(
                    f"The snapshot does not fit the model that `build` gives: {error}. Hand in "
                    "what built the models of the loop."
                ) from error
            found = self._model.predict(inputs, batch_size=self._batch, verbose=0)
        rows = _array(_keras.ops.softmax(found)) if self._softmax else found
        return np.asarray(rows, np.float32)
