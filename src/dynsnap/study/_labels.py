"""What every method of a study says of every input, and what two methods differ by on these."""

import re
from collections.abc import Callable, Iterable
from itertools import combinations, pairwise
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from dynsnap._types import AnyArray
from dynsnap.comparison import PairedDifference, paired_difference
from dynsnap.errors import InputError
from dynsnap.predictions import PredictionKey, StudyLabels, study_labels
from dynsnap.study._plan import kept_by

# The accuracy of one generation.
OF_ONE = re.compile(r"accuracy_(\d+)")


class MethodLabels:
    """What every method of a study labels its inputs as, with the metrics of every single input.

    Args:
        test: Labels on the test inputs.
        late: Labels on inputs of classes that are new in a later generation.
        generations: How many the study has at least; it has as many as half of the methods have
            labels of.
        by_time: Whether the study's data grows by time. Its "generation 1" is then what was
            deployed before each retrain, which no method keeps.
        baseline: The single network whose first generation "never-retrain" keeps.
    """

    def __init__(
        self,
        test: StudyLabels,
        late: StudyLabels | None = None,
        *,
        generations: int | None = None,
        by_time: bool = False,
        baseline: str = "singlebase",
    ) -> None:
        self.test, self.late = test, late
        self._by_time, self._baseline = by_time, baseline
        self._known, self._late = _generations(test), _generations(late)
        self.generations = max(_most_have(self._known), generations or 0)

    @classmethod
    def read(
        cls,
        folder: str | Path,
        *,
        combination: str = "average",
        generations: int | None = None,
        by_time: bool = False,
        baseline: str = "singlebase",
    ) -> "MethodLabels | None":
        """From a run folder or published results; None where these have no labels."""
        test = study_labels(folder, combination=combination)
        if test is None:
            return None
        late = study_labels(folder, kind="late", combination=combination)
        return cls(test, late, generations=generations, by_time=by_time, baseline=baseline)

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods with all generations in at least one replicate."""
        return tuple(method for method in self._known if self.replicates(method))

    def replicates(self, method: str) -> tuple[int, ...]:
        """The replicates in which a method has all generations."""
        return self._having(self._known, method, range(1, self.generations + 1))

    def _having(
        self, known: "_Generations", method: str, generations: Iterable[int]
    ) -> tuple[int, ...]:
        """The replicates in which a method's labels in these generations are known."""
        own, kept = self._own(method)
        needed = {1} if kept else set(generations)
        return tuple(r for r, have in sorted(known.get(own, {}).items()) if needed <= have)

    def _own(self, method: str) -> tuple[str, bool]:
        """Under which name a method's labels are, and whether these are a generation kept."""
        kept = kept_by(method, self._baseline)
        if kept is None or method in self._known or self._by_time:
            return method, False
        return kept, True

    def values(self, method: str, metric: str) -> dict[int, AnyArray]:
        """The metric of every input, by replicate.

        Args:
            method: A method, or "never-retrain-" and a method, for its first generation kept.
            metric: "accuracy" (mean over generations), "accuracy_2" (of generation 2),
                "consistency", "correct_consistency" (means over all pairs of generations), "lost",
                "gained" (means over consecutive generations), or "late_accuracy" (of the last
                generation on new classes).

        Raises:
            InputError: There is no such metric.
        """
        if metric == "late_accuracy":
            found = self._having(self._late, method, [self.generations])
        elif match := OF_ONE.fullmatch(metric):
            found = self._having(self._known, method, [int(match[1])])
        else:
            found = self.replicates(method)
        return {r: self._value(method, r, metric) for r in found}

    def difference(
        self,
        method: str,
        reference: str,
        metric: str,
        *,
        elsewhere: "MethodLabels | None" = None,
        generation: int | None = None,
        confidence: float = 0.95,
    ) -> PairedDifference | None:
        """A method minus a reference, over the replicates that both have.

        None without any, and where there are too few inputs to tell anything: fewer than two.

        Args:
            method: The method.
            reference: What it is held against.
            metric: As in `values`.
            elsewhere: Where the reference was measured, if not here: on the same inputs.
            generation: A generation of the reference to hold it against instead: the metric must
                be the accuracy of a generation.
            confidence: The coverage of the interval.
        """
        other = elsewhere or self
        if metric == "late_accuracy" and (self.late is None or other.late is None):
            return None
        self._check_same_inputs(other, metric)
        measured = self.late if metric == "late_accuracy" else self.test
        if measured is None or len(measured.ids) < 2:
            return None
        mine = self.values(method, metric)
        theirs = other.values(reference, metric if generation is None else f"accuracy_{generation}")
        both = [replicate for replicate in mine if replicate in theirs]
        if not both:
            return None
        return paired_difference(
            np.stack([mine[r] for r in both]),
            np.stack([theirs[r] for r in both]),
            confidence=confidence,
        )

    def _check_same_inputs(self, other: "MethodLabels", metric: str) -> None:
        late = metric == "late_accuracy"
        mine, theirs = (one.late if late else one.test for one in (self, other))
        assert mine is not None and theirs is not None
        if mine is not theirs and not np.array_equal(mine.ids, theirs.ids):
            raise InputError("The two studies were measured on different inputs.")

    def _value(self, method: str, replicate: int, metric: str) -> AnyArray:
        if metric == "late_accuracy":
            assert self.late is not None
            return self._right(self.late, method, replicate, self.generations)
        each = range(1, self.generations + 1)
        if match := OF_ONE.fullmatch(metric):
            return self._right(self.test, method, replicate, int(match[1]))
        right = [self._right(self.test, method, replicate, g) for g in each]
        if metric == "accuracy":
            mean: AnyArray = np.mean(right, axis=0)
            return mean
        if metric not in _OF_PAIRS:
            raise InputError(f"There is no metric {metric!r} of single inputs.")
        kind, formula = _OF_PAIRS[metric]
        said = [self._labels(self.test, method, replicate, g) for g in each]
        places = range(len(right))
        pairs = pairwise(places) if kind == "next" else combinations(places, 2)
        found: AnyArray = np.mean(
            [formula(right[a], right[b], said[a] == said[b]) for a, b in pairs], axis=0
        )
        return found

    def _right(self, of: StudyLabels, method: str, replicate: int, generation: int) -> AnyArray:
        right: AnyArray = self._labels(of, method, replicate, generation) == of.truth
        return right

    def _labels(self, of: StudyLabels, method: str, replicate: int, generation: int) -> AnyArray:
        kind: Literal["test", "late"] = "test" if of is self.test else "late"
        return of.labels[self._key(kind, method, replicate, generation)]

    def _key(
        self, kind: Literal["test", "late"], method: str, replicate: int, generation: int
    ) -> PredictionKey:
        own, kept = self._own(method)
        at = 1 if kept else generation
        return PredictionKey(kind, own, self._combination, at, replicate)

    @property
    def _combination(self) -> str:
        return next(iter(self.test.labels)).combination


_Generations: TypeAlias = dict[str, dict[int, set[int]]]
"""Which generations there are labels of, by method and replicate."""


def _generations(of: StudyLabels | None) -> _Generations:
    found: _Generations = {}
    for key in () if of is None else of.labels:
        found.setdefault(key.method, {}).setdefault(key.replicate, set()).add(key.generation)
    return found


def _most_have(known: _Generations) -> int:
    """The last generation that at least half of the methods have: a stray file makes none."""
    last = sorted((max(max(of) for of in by.values()) for by in known.values()), reverse=True)
    return last[(len(last) - 1) // 2] if last else 0


_Formula: TypeAlias = Callable[[AnyArray, AnyArray, AnyArray], AnyArray]
_OF_PAIRS: dict[str, tuple[Literal["all", "next"], _Formula]] = {
    "consistency": ("all", lambda old, new, same: same),
    "correct_consistency": ("all", lambda old, new, same: old & new),
    "lost": ("next", lambda old, new, same: old & ~new),
    "gained": ("next", lambda old, new, same: ~old & new),
}
