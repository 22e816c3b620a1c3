"""Knowledge distillation: the scores that a student learns from beside the labels."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from dynsnap import _check
from dynsnap._types import AnyArray, Flags, Labels, Positions, Scores
from dynsnap.ensemble._protocols import Checkpoints, Trainer
from dynsnap.errors import FileError, InputError, PlanError
from dynsnap.predictions import Predictions


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


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TeacherScores:
    """Scores of a teacher that is no stored network: of an ensemble, or from a prediction file.

    A round's spec names them by a digest (`Distillation.teacher`); a trainer finds their bytes
    through `parents`, as it finds stored learners.

    Attributes:
        name: What messages call the teacher, such as the file.
        scores: For each row of the pool and each of its classes; NaN for rows without scores.
        known: Which classes the teacher knows: those that it ever gives as a label. Rows of the
            others are learned from labels alone.

    Example:
        >>> said = Predictions(ids=[7, 5], classes=["a", "b"], scores=[[0.9, 0.1], [0.2, 0.8]])
        >>> made = TeacherScores.of(said, name="file", ids=np.array([5, 6, 7]), classes=("a", "b"))
        >>> made.scores.round(1)[:, 1]
        array([0.8, nan, 0.1], dtype=float32)
        >>> TeacherScores.from_bytes(made.to_bytes()).known
        array([ True,  True])
    """

    name: str
    scores: Scores
    known: Flags

    @classmethod
    def of(
        cls,
        said: Predictions,
        *,
        name: str,
        ids: AnyArray,
        classes: Sequence[str],
        labels: Labels | None = None,
    ) -> "TeacherScores":
        """Predictions with scores, in the order of the rows of a pool.

        Args:
            said: The teacher's predictions; those of other inputs are ignored.
            name: What messages call them.
            ids: The ids of the rows.
            classes: All classes by now.
            labels: The class of each row, as a place among them. A truth that the predictions hold
                must be the same: ids that number other rows would teach the scores of those.
        """
        if said.scores is None:
            raise InputError(f"{name} has labels alone, and a teacher needs scores.")
        place = {label: position for position, label in enumerate(classes)}
        row_of = {str(one): row for row, one in enumerate(said.ids.tolist())}
        found = np.array([row_of.get(str(one), -1) for one in ids.tolist()], dtype=np.intp)
        there = np.flatnonzero(found >= 0)
        # Models may have columns for classes that come later; a label tells what is known.
        named = np.unique(said.scores[found[there]].argmax(axis=1)).tolist() if len(there) else []
        strange = [said.classes[at] for at in named if said.classes[at] not in place]
        if strange:
            raise InputError(
                f"{name} has {len(strange)} classes of which there are no rows, such as "
                f"{strange[0]!r}; the data has {', '.join(map(repr, classes[:5]))}. Predictions "
                "of a model for these can teach."
            )
        if labels is not None and said.truth is not None:
            told = said.truth[found[there]]
            true = np.array(classes, object)[labels[there]]
            wrong = np.flatnonzero((told >= 0) & (said.names_of(told) != true))
            if len(wrong):
                first = wrong[0]
                raise InputError(
                    f"{name} has another truth for {len(wrong):,} of {len(there):,} rows, such as "
                    f"{said.classes[told[first]]!r} for the id {ids[there[first]]!s}, which is "
                    f"{true[first]!r}. Are its ids those of other rows? Where labels were "
                    "corrected, leave its truth out."
                )
        columns = [at for at, one in enumerate(said.classes) if one in place]
        targets = [place[said.classes[at]] for at in columns]
        scores = np.full((len(ids), len(classes)), np.nan, np.float32)
        wide = np.zeros((len(there), len(classes)), np.float32)
        wide[:, targets] = said.scores[found[there]][:, columns]
        scores[there] = wide
        known = np.zeros(len(classes), bool)
        known[[place[said.classes[at]] for at in named]] = True
        return cls(name=name, scores=scores, known=known)

    def check(self, rows: Positions, labels: Labels) -> None:
        """Raise InputError unless all rows that it should teach have scores.

        Args:
            rows: Rows of the pool that are trained on.
            labels: The classes of all rows of the pool.
        """
        taught = rows[self.known[labels[rows]]]
        if np.isnan(self.scores[rows]).all():
            taught = rows
        missing = taught[np.isnan(self.scores[taught]).any(axis=1)]
        if len(missing):
            raise InputError(
                f"{self.name} has no scores for {len(missing):,} of {len(taught):,} training rows, "
                f"the first of them row {int(missing[0])} of the data. Score all rows that are "
                "trained on, and use that file."
            )
        if not len(taught):
            raise InputError(f"{self.name} knows none of the classes that are trained on.")

    @property
    def key(self) -> str:
        """What a round's spec calls it: a digest of everything that rounds learn from it."""
        return f"sha256:{hashlib.sha256(self.to_bytes()).hexdigest()}"

    def to_bytes(self) -> bytes:
        """The scores as trainers find them; a name of another file gives the same bytes."""
        shape = {"rows": len(self.scores), "known": np.flatnonzero(self.known).tolist()}
        head = json.dumps({**shape, "classes": len(self.known)}).encode()
        return _TEACHER + head + b"\n" + np.ascontiguousarray(self.scores, "<f4").tobytes()

    @classmethod
    def from_bytes(cls, content: bytes, *, name: str = "The teacher") -> "TeacherScores":
        """The scores that `to_bytes` wrote."""
        start, _, rest = content.partition(_TEACHER)
        head, _, numbers = rest.partition(b"\n")
        try:
            shape = json.loads(head)
            size = (int(shape["rows"]), int(shape["classes"]))
            known = np.zeros(size[1], bool)
            known[shape["known"]] = True
            scores = np.frombuffer(numbers, "<f4").reshape(size)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise FileError("The stored scores of a teacher are damaged.") from error
        if start:
            raise FileError("The stored scores of a teacher are damaged.")
        return cls(name=name, scores=scores, known=known)


_TEACHER = b"dynsnap-teacher-scores\n"


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
