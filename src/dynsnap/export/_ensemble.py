"""What is exported: the members of an ensemble, how they are combined, and how they answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynsnap import trainers
from dynsnap._types import Accuracies, AnyArray, Flags, MemberScores, Positions, Scores
from dynsnap.ensemble import Combination, combine
from dynsnap.errors import PlanError
from dynsnap.store import SavedEnsemble


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ExportableEnsemble:
    """An ensemble as an exporter needs it, whether a file or an estimator holds it.

    Attributes:
        backend: The trainer that its members come from.
        model: The factory of torch members; None for others.
        learners: The stored learners, in the order of the members.
        columns: For each member the classes that its scores stand for, as positions.
        classes: Class names, in the order of the scores.
        accuracy: Validation accuracy of each member.
        combination: How members are combined.
        known: Which classes each member was trained on; None where all have seen all.
        score: Scores every member on inputs: (members, inputs, classes).
        shape: The shape of one input, where it is known.
        names: The names of the columns of a table, where they are known.
        missing: Whether inputs may be NaN.
        trust: Whether learners are opened that cannot be checked.
    """

    backend: str
    model: Any
    learners: tuple[bytes, ...]
    columns: tuple[tuple[int, ...], ...]
    classes: tuple[str, ...]
    accuracy: Accuracies
    combination: Combination
    known: Flags | None
    score: Callable[[AnyArray], MemberScores]
    shape: tuple[int, ...] | None = None
    names: tuple[str, ...] = ()
    missing: bool = False
    trust: bool = False

    def __post_init__(self) -> None:
        if self.backend not in ("torch", "boost"):
            raise PlanError(
                f"The members come from the trainer {self.backend!r}, whose models dynsnap cannot "
                "convert. Members that are torch modules, boosted trees or scikit-learn "
                "classifiers can be exported."
            )
        if len(self.learners) != len(self.accuracy):
            raise PlanError(
                f"The ensemble has {len(self.accuracy)} members of {len(self.learners)} learners: "
                "members that draw dropout anew (mcdropout) cannot be exported. Use an ensemble "
                "of another method."
            )

    def combined(self, scores: MemberScores) -> Scores:
        """The scores of the ensemble from those of its members."""
        return combine(scores, how=self.combination, weights=self.accuracy, known=self.known)


def exportable(
    saved: SavedEnsemble,
    *,
    model: Any,
    combination: Combination | None = None,
    trust: bool = False,
) -> ExportableEnsemble:
    """An ensemble that `dynsnap train` has saved.

    Args:
        saved: The ensemble, which may come from a stranger.
        model: The factory of torch members, as the trainer restores it; else None.
        combination: How members are combined, if not as stored.
        trust: Whether to open members that cannot be checked before their library reads them.
    """
    backend = trainers.named(trainers.trainer_name(saved.model))
    learners = _ordered(saved.learners, saved.positions)
    score = backend.scorer(
        learners,
        model=model,
        classes=len(saved.classes),
        members=len(saved.positions),
        settings={"device": "cpu"},
        trust=trust,
    )
    reading = saved.about.get("reading", {})
    return ExportableEnsemble(
        backend=backend.name,
        model=model,
        learners=learners,
        columns=(tuple(range(len(saved.classes))),) * len(learners),
        classes=saved.classes,
        accuracy=np.asarray(saved.accuracy, float),
        combination=combination or saved.combination,
        known=saved.known,
        score=score,
        names=tuple(reading.get("features", ())),
        missing=bool(reading.get("allow_missing", False)),
        trust=trust,
    )


def _ordered(learners: Sequence[bytes], positions: Positions) -> tuple[bytes, ...]:
    """The learner of each member, where each learner gives one; else as they are."""
    if len(learners) != len(positions):
        return tuple(learners)
    return tuple(learners[at] for at in positions)
