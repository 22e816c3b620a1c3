"""What is left of an ensemble in a single network: teacher, student and single learner measured."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dynsnap.comparison import Estimate, compare
from dynsnap.ensemble import Combination
from dynsnap.predictions import Predictions
from dynsnap.study._table import Row, averaged

# What a student should keep of its teacher.
KEPT = ("accuracy", "consistency", "correct_consistency")
_PAIRS = ("consistency", "correct_consistency", "gained", "lost")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Said:
    """What one learner says in one replicate.

    Attributes:
        name: What to call it.
        networks: How many networks answer for one input.
        cost: Trainings from scratch (κ) that one generation takes, all that it needs included.
        test: Its predictions on the test set, generation by generation.
        seconds: What that took in time, where it is known.
        late: Those of its last generation on the classes that arrive late.
        teacher: What its teacher says on the test set, for a student.
    """

    name: str
    networks: int
    cost: float
    test: Sequence[Predictions]
    seconds: float | None = None
    late: Predictions | None = None
    teacher: Sequence[Predictions] = field(default_factory=tuple)


def rows_of(
    said: Said, how: Combination, *, generations: Sequence[int], resamples: int
) -> list[Row]:
    """A learner's rows of the table, in one replicate.

    Generation metrics are averaged over generations and pair metrics over pairs; "accuracy_1" and
    so on are of one generation, "late_accuracy" of the last, "fidelity" is the share of test
    inputs that a student labels as its teacher does.
    """
    found: dict[str, Estimate] = {}
    several = len(said.test) > 1
    names = [str(number) for number in (generations if several else [*generations, "again"])]
    compared = compare(
        *(said.test if several else [*said.test, *said.test]), names=names, resamples=resamples
    )
    found["accuracy"] = compared.averages["accuracy"]
    for generation in compared.generations[: len(said.test)]:
        found[f"accuracy_{generation.name}"] = generation.metrics["accuracy"]
    if several:
        found |= {metric: compared.averages[metric] for metric in _PAIRS}
    if said.late is not None:
        late = compare(said.late, said.late, names=["once", "again"], resamples=resamples)
        found["late_accuracy"] = late.generations[0].metrics["accuracy"]
    if said.teacher:
        alike = [
            np.mean(own.labels == other.labels)
            for own, other in zip(said.test, said.teacher, strict=True)
        ]
        found["fidelity"] = Estimate(float(np.mean(alike)))
    if said.seconds is not None:
        found["seconds"] = Estimate(said.seconds)
    return [
        Row(
            method=said.name,
            combination=how,
            metric=metric,
            value=estimate.value,
            low=estimate.low,
            high=estimate.high,
            cost=said.cost,
        )
        for metric, estimate in found.items()
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Remains:
    """How much of what an ensemble gains over a single learner is left in a student.

    Attributes:
        over: The single learner.
        metric: Of which metric.
        single: The single learner's value.
        student: The student's.
        teacher: The ensemble's.
    """

    over: str
    metric: str
    single: float
    student: float
    teacher: float

    @property
    def share(self) -> float | None:
        """The student's part of the gain; None where the ensemble gains nothing.

        Example:
            >>> found = {"single": 0.8, "student": 0.85, "teacher": 0.9}
            >>> Remains(over="singlebase", metric="accuracy", **found).share
            0.5
        """
        gain = self.teacher - self.single
        return round((self.student - self.single) / gain, 6) if gain > 0 else None


def remains(
    rows: Sequence[Row], *, over: Sequence[str], student: str, teacher: str
) -> list[Remains]:
    """What is left of the gains over some single learners, as far as all were measured."""
    value = {(row.method, row.metric): row.value for row in rows}
    return [
        Remains(
            over=single,
            metric=metric,
            single=value[single, metric],
            student=value[student, metric],
            teacher=value[teacher, metric],
        )
        for single in over
        for metric in KEPT
        if all((name, metric) in value for name in (single, student, teacher))
    ]


def table_of(
    replicates: Sequence[Sequence[Said]],
    how: Combination,
    *,
    generations: Sequence[int],
    resamples: int,
) -> list[Row]:
    """The rows of all learners, replicates averaged."""
    return averaged(
        [
            [
                row
                for said in learners
                for row in rows_of(said, how, generations=generations, resamples=resamples)
            ]
            for learners in replicates
        ]
    )
