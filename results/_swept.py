"""Accuracy on the new class at each point that a study varied: margins, and shares carried over."""

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from _measured import Measured, percent, points, with_spread
from _seeds import folders, over_runs, times_swept
from dynsnap import predictions
from dynsnap._types import AnyArray
from dynsnap.comparison import paired_difference
from dynsnap.predictions import Predictions
from dynsnap.study import FRESH, Row, read_sweeps


def new_class_of_margins(of: Measured, margins: Iterable[str]) -> dict[str, list[str]]:
    """Accuracy on the new class with each margin, of how many replicates, and minus margin 0.

    A margin that is a method of the study has published labels in every replicate, so its interval
    is over inputs and replicates. The others are taken from the scores of replicate 0, and from the
    sweeps of further seeds that have it: these tell a mean, so the interval is over runs alone.
    """
    known = {
        one.margin: one.name
        for one in of.plan.methods
        if one.name in of.methods and replace(one, name=FRESH, margin=0.0) == of.plan.method(FRESH)
    }
    found = {}
    for point in margins:
        method = known.get(float(point))
        found[point] = _of_scores(of, point) if method is None else _of_labels(of, method)
    return found


def _of_labels(of: Measured, method: str) -> list[str]:
    each = of.each(method, "late_accuracy")
    minus = of.labels.difference(method, FRESH, "late_accuracy")
    gap = "" if method == FRESH else points(minus)
    return [of.cell(method, "late_accuracy"), str(len(each)), gap]


def _of_scores(of: Measured, point: str) -> list[str]:
    every = [
        predictions.read(f"{of.folder}::late/{FRESH}/average/g{number}/r0")
        for number in range(1, of.labels.generations + 1)
    ]
    right, plain = (_right(margined(every, margin)) for margin in (float(point), 0.0))
    first = 100 * right.mean(), 100 * plain.mean()
    both = [first, *_of_further_seeds(of, point)]
    each = [mine for mine, _ in both]
    spread = statistics.stdev(each) if len(each) > 1 else None
    if spread is None:
        said = points(paired_difference(right, plain))
    else:
        gap, doubt = over_runs([mine - other for mine, other in both])
        said = f"{gap:+.1f} ({gap - doubt:+.1f} to {gap + doubt:+.1f}, runs alone)"
    return [with_spread(statistics.mean(each), spread), str(len(each)), said]


def _of_further_seeds(of: Measured, point: str) -> Iterator[tuple[float, float]]:
    """Accuracy with a margin and without, in percent, of the further seeds whose sweeps have it."""
    for seed in (one for one in folders(of.folder)[1:] if (one / "sweeps.csv").is_file()):
        new = {
            one.point: 100 * one.row.value
            for one in read_sweeps(seed / "sweeps.csv")
            if (one.over, one.row.metric) == ("margin", "late_accuracy")
        }
        if point in new:
            yield new[point], new["0"]


def margined(generations: Sequence[Predictions], margin: float) -> Predictions:
    """The last of some generations, each stabilized against the one before."""
    deployed = generations[0]
    for new in generations[1:]:
        deployed = new if margin == 0 else predictions.stabilize(deployed, new, margin=margin)
    return deployed


def _right(said: Predictions) -> AnyArray:
    return np.asarray(said.labels) == np.asarray(said.truth)


def new_class_of_carries(
    of: Measured, swept: Mapping[str, Mapping[str, Row]]
) -> dict[str, list[str]]:
    """Accuracy on the new class, where a method of the study has this share or the sweep has it."""
    known = {
        one.rolling.carry_over: of.cell(one.name, "late_accuracy")
        for one in reversed(of.plan.methods)
        if one.rolling is not None
        and one.rolling.class_aware
        and not one.stabilized
        and one.name in of.methods
    }
    found = {}
    for point, rows in swept.items():
        late = rows.get("late_accuracy")  # sweeps of older versions lack it, so of some seeds
        said = "not measured" if late is None else percent(late)
        n, of_all = (
            times_swept(of.folder, "carry", point, metric)
            for metric in ("late_accuracy", "accuracy")
        )
        if 0 < n < of_all:
            said += f" (n = {n})"
        found[point] = [known.get(float(point)) or said]
    return found
