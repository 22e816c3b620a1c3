"""Knowledge distillation: the scores that a student learns from beside the labels."""

import hashlib
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from dynsnap import _check
from dynsnap._types import Flags, Scores
from dynsnap.ensemble._protocols import Checkpoints, Trainer
from dynsnap.errors import InputError, PlanError


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SoftTargets:
    """Scores to imitate, and their weight beside the labels.

    Attributes:
        scores: The teachers' scores for each row of the pool; NaN for rows without scores.
        weight: The weight of these scores in the loss, above 0 and at most 1; labels have the rest.
        temperature: How much the scores are softened, and the student's with them, before the two
            are compared; 1 leaves them as they are.
        name: Text that stands for the scores in a round's key, for teachers that are known by
            name: the last bits of their scores may differ between devices. Empty to hash the
            scores themselves.

    Example:
        >>> SoftTargets(scores=np.array([[0.9, 0.1]]), temperature=2).targets
        array([[0.75, 0.25]], dtype=float32)
    """

    scores: Scores
    weight: float = 1.0
    temperature: float = 1.0
    name: str = ""

    def __post_init__(self) -> None:
        if not 0 < self.weight <= 1:
            raise PlanError(f"`weight` must be above 0 and at most 1, got {self.weight}.")
        if not 0 < self.temperature < float("inf"):
            raise PlanError(f"`temperature` must be positive, got {self.temperature}.")
        if np.ndim(self.scores) != 2 or not self.taught.any():
            raise InputError(
                "Soft targets need `scores` of the shape (rows, classes), at least one of them not "
                f"NaN, got the shape {np.shape(self.scores)}."
            )
        _check.probabilities(scores=self.scores[self.taught])

    @property
    def taught(self) -> Flags:
        """The rows that have scores."""
        return np.logical_not(np.isnan(self.scores).all(axis=1))

    @property
    def targets(self) -> Scores:
        """The scores softened by the temperature, in single precision."""
        soft = np.asarray(self.scores, float) ** (1 / self.temperature)
        found: Scores = (soft / soft.sum(axis=1, keepdims=True)).astype(np.float32)
        return found

    @property
    def fingerprint(self) -> str:
        """Text that differs for other teachers, weights or temperatures."""
        scores = np.ascontiguousarray(self.scores, np.float32).tobytes()
        source = self.name or hashlib.sha256(scores).hexdigest()
        return f"{source} {self.weight!r} {self.temperature!r}"


def with_second(first: Scores, second: Scores, *, share: float, heard: Flags) -> Scores:
    """The scores of two teachers mixed; the second has a share of the rows that it can score.

    Args:
        first: Scores of the first teacher.
        second: Scores of the second on the same rows.
        share: The weight of the second, from 0 to 1.
        heard: The rows that the second can score: those of classes that it was trained on.

    Example:
        >>> first, second = np.array([[0.8, 0.2], [0.0, 1.0]]), np.array([[0.4, 0.6], [1.0, 0.0]])
        >>> with_second(first, second, share=0.5, heard=np.array([True, False]))
        array([[0.6, 0.4],
               [0. , 1. ]])
    """
    if not 0 <= share <= 1:
        raise PlanError(f"`share` must be between 0 and 1, got {share}.")
    _check.scores(first=first, second=second)
    own = np.where(heard, share, 0.0)[:, None]
    mixed: Scores = (1 - own) * first + own * second
    return mixed


@runtime_checkable
class DistillingTrainer(Trainer, Protocol):
    """A trainer whose rounds can learn from soft targets beside the labels."""

    def taught(self, targets: SoftTargets, /, *, checkpoints: Checkpoints | None = None) -> Trainer:
        """The same trainer for students; other targets give rounds other keys."""
        ...
