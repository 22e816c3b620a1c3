"""What the trainer asks of each library."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from dynsnap import seeds
from dynsnap._types import AnyArray, Floats, Labels, Scores
from dynsnap.boost._saver import State
from dynsnap.boost._watch import EpochWatch
from dynsnap.ensemble import Recipe
from dynsnap.errors import FileError, PlanError

Cut: TypeAlias = Callable[[int], bytes]  # the learner as it was after an epoch, serialised
Predict: TypeAlias = Callable[[AnyArray], Scores]
# A stored learner that is ready to score, and how many features it takes, where that is known.
Loaded: TypeAlias = tuple[Predict, int | None]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FitTask:
    """One round to be trained.

    Attributes:
        labels: Positions among the classes that the round's training rows hold: 0 to k - 1, each
            at least once.
        classes: The names of those classes.
        validation: Inputs to score after every epoch.
        seed: Of 31 bits, which every library takes.
    """

    recipe: Recipe
    inputs: AnyArray
    labels: Labels
    classes: tuple[str, ...]
    validation: AnyArray
    seed: int

    def check_fits(self, features: int | None) -> None:
        """Raise FileError unless a stored learner takes as many features as there are here."""
        found = self.inputs.shape[1] if self.inputs.ndim > 1 else None
        if features != found:
            raise FileError(
                f"A stored learner takes {features} features, but the inputs have {found}."
            )


class Learner(Protocol):
    """One library's classifier, before training."""

    kind: str

    @property
    def version(self) -> str:
        """The library's version."""
        ...

    def check(self, recipe: Recipe, /) -> None:
        """Raise PlanError unless this learner can follow the recipe."""
        ...

    def open(self, state: State, task: FitTask, /, *, trust: bool) -> Any:
        """What `fit` goes on from, of a state that it gave to `EpochWatch.rest`.

        The state comes from a file: unless it is trusted, FileError is raised where it is not
        known to be sound, or does not fit the task.
        """
        ...

    def fit(self, task: FitTask, watch: EpochWatch, begun: Any, /) -> Cut:
        """Train from the epoch that the watch says: from `begun`, or None for a fresh start.

        What an epoch computes may depend on the state before it and on its number alone, so that
        a round that was stopped goes on to the same bits.
        """
        ...


def seed(task: FitTask, name: int | str) -> int:
    """A seed of 31 bits for a part of a round."""
    return seeds.number(task.seed, name) % 2**31


def rates(recipe: Recipe, base: float) -> Floats:
    """The learning rate in each epoch; never quite zero, which some libraries refuse."""
    factors = recipe.schedule.multipliers(recipe.epochs, window=recipe.window)
    return np.maximum(base * factors, 1e-12)


def two_columns(scores: Scores) -> Scores:
    """Scores with a column per class, also where a library gives the second of two only."""
    return np.column_stack([1 - scores, scores]) if scores.ndim == 1 else scores


def describe(model: Any) -> str:
    """A model's class and parameters as text, the same in every process."""
    params = {
        key: _describe_value(value)
        for key, value in model.get_params(deep=True).items()
        # The round's seed replaces the model's, and the number of threads changes nothing.
        if key.rpartition("__")[2] not in ("random_state", "n_jobs", "verbose", "verbosity")
    }
    return f"{_qualified(type(model))}({', '.join(f'{k}={v}' for k, v in sorted(params.items()))})"


def _describe_value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_describe_value, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {_describe_value(v)}' for key, v in value.items())}}}"
    if isinstance(value, np.ndarray):
        return f"{value.shape}{value.dtype}{hashlib.sha256(value.tobytes()).hexdigest()}"
    if hasattr(value, "get_params") and not isinstance(value, type):
        return describe(value)
    if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        return _qualified(value)
    text = repr(value)
    if " at 0x" in text:  # the address of an object is another in every process
        raise PlanError(
            f"Cannot tell one {type(value).__name__} among the model's parameters from another, so "
            "a round made with it could not be found again. Give it a `__repr__`."
        )
    return text


def _qualified(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"
