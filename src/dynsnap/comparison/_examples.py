"""The inputs behind the numbers: a bounded sample, gathered in the one pass over the rows."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from dynsnap._types import AnyArray, Floats
from dynsnap.comparison._results import FlippedInput, UnstableInput
from dynsnap.predictions import Predictions
from dynsnap.predictions.tasks import CHANGED, GAINED, KINDS

FLIPPED = 500  # lost inputs that a result names, of each retrain
UNSTABLE = 200  # inputs that changed again and again

_CACHED = 2**16  # rows that are looked at together, so that what is found about them stays at hand


class ExampleInputs:
    """What is remembered of single inputs while they pass by, however many there are.

    The result does not depend on how the rows are cut into blocks.
    """

    def __init__(self, generations: int) -> None:
        self._flipped: list[list[tuple[float, FlippedInput]]] = [[] for _ in range(generations - 1)]
        self._unstable: list[UnstableInput] = []
        self._ever_changed = np.zeros(generations)
        self._weight = 0.0

    def add(self, block: Sequence[Predictions]) -> None:
        """Look at the next rows of all generations."""
        for kept, (old, new) in zip(self._flipped, itertools.pairwise(block), strict=True):
            _keep_most(kept, _most_confident(old, new))
        self._count_changed(block)
        if len(block) > 2:
            self._keep_unstable(_unstable(block))

    def merge(self, later: "ExampleInputs") -> None:
        """Add what another one has seen in the rows that come next."""
        for kept, more in zip(self._flipped, later._flipped, strict=True):
            _keep_most(kept, more)
        self._keep_unstable(later._unstable)
        self._ever_changed += later._ever_changed
        self._weight += later._weight

    def flipped(self, old: int, new: int) -> tuple[FlippedInput, ...]:
        """Of a retrain, the inputs lost; without truth those that changed. Else nothing."""
        return tuple(one for _, one in self._flipped[old]) if new == old + 1 else ()

    @property
    def unstable(self) -> tuple[UnstableInput, ...]:
        """The inputs whose label changed at least twice, most often first."""
        return tuple(self._unstable)

    @property
    def ambiguity(self) -> tuple[float, ...]:
        """The share of inputs that any generation so far labelled unlike the first."""
        return tuple((self._ever_changed / self._weight).tolist()) if self._weight else ()

    def _keep_unstable(self, more: Iterable[UnstableInput]) -> None:
        self._unstable += more
        self._unstable.sort(key=lambda one: -one.changes)
        del self._unstable[UNSTABLE:]

    def _count_changed(self, block: Sequence[Predictions]) -> None:
        first = block[0]
        changed = np.zeros(len(first), dtype=bool)
        for place, each in enumerate(block):
            if each.task is None:
                changed |= each.labels != first.labels
            elif place:
                changed |= ~each.task.agree(_values(first), _values(each))
            self._ever_changed[place] = _added(self._ever_changed[place], first.weights, changed)
        self._weight = _added(self._weight, first.weights, np.ones(len(first), dtype=bool))


def _keep_most(kept: list[tuple[float, FlippedInput]], more: Iterable[Any]) -> None:
    kept += more
    kept.sort(key=lambda item: -item[0])  # stable: equals stay in their order
    del kept[FLIPPED:]


def _added(total: float, weights: Floats | None, rows: AnyArray) -> float:
    if weights is None:
        return total + float(np.count_nonzero(rows))
    # One after another, so that blocks of other sizes give the same sum to the last bit.
    return float(np.cumsum(np.concatenate([[total], weights[rows]]))[-1])


def _values(said: Predictions) -> AnyArray:
    assert said.values is not None
    return said.values


def _most_changed(old: Predictions, new: Predictions) -> Iterator[tuple[float, FlippedInput]]:
    """Of a task, the inputs lost by most; without truth, those that changed most."""
    task = new.task
    assert task is not None
    found = task.flipped(_values(old), _values(new), old.truth)
    counts = found.kinds != KINDS.index(GAINED)
    if old.truth is not None:  # inputs without a truth are not known to be lost
        counts &= found.kinds != KINDS.index(CHANGED)
    rows, size = found.rows[counts], found.size[counts]
    chosen = _highest(size, FLIPPED)
    rows, size = rows[chosen], size[chosen]
    before, now = (task.texts(_values(each)[rows], old.classes) for each in (old, new))
    true = None if old.truth is None else task.texts(old.truth[rows], old.classes)
    for place, row in enumerate(rows.tolist()):
        yield (
            float(size[place]),
            FlippedInput(
                id=str(old.id_column[row].as_py()),
                truth=None if true is None else true[place],
                old_label=before[place],
                new_label=now[place],
                slices=_slices(old, row),
            ),
        )


def _slices(said: Predictions, row: int) -> tuple[str, ...]:
    return tuple(
        column.values[column.codes[row]] if column.codes[row] >= 0 else ""
        for column in said.slices.values()
    )


def _most_confident(old: Predictions, new: Predictions) -> Iterator[tuple[float, FlippedInput]]:
    if new.task is not None:
        yield from _most_changed(old, new)
        return
    rows = np.concatenate(
        [_changed(old, new, slice(at, at + _CACHED)) + at for at in range(0, len(old), _CACHED)]
    )
    if new.scores is not None:  # a mistake made with confidence is the one to look at first
        rows = rows[_highest(new.scores[rows, new.labels[rows]], FLIPPED)]
    for row in rows[:FLIPPED].tolist():
        sure = _confidence(new, row)
        yield (
            sure or 0.0,
            FlippedInput(
                id=str(old.id_column[row].as_py()),
                truth=_truth(old, row),
                old_label=old.classes[old.labels[row]],
                new_label=old.classes[new.labels[row]],
                old_confidence=_confidence(old, row),
                new_confidence=sure,
                slices=_slices(old, row),
            ),
        )


def _changed(old: Predictions, new: Predictions, rows: slice) -> AnyArray:
    """Which of these rows are lost; without truth, which have changed."""
    before, now = old.labels[rows], new.labels[rows]
    if old.truth is None:
        return np.flatnonzero(before != now)
    truth = old.truth[rows]
    return np.flatnonzero((before == truth) & (now != truth))


def _highest(values: AnyArray, count: int) -> AnyArray:
    """Where the highest values are, highest first, the earlier first among equals."""
    chosen = np.arange(len(values))
    if len(values) > count:  # sorting them all would take as long as all metrics together
        least = np.partition(values, len(values) - count)[len(values) - count]
        above = np.flatnonzero(values > least)
        equal = np.flatnonzero(values == least)[: count - len(above)]
        chosen = np.sort(np.concatenate([above, equal]))
    return chosen[np.argsort(-values[chosen], kind="stable")]


def _confidence(said: Predictions, row: int) -> float | None:
    return None if said.scores is None else float(said.scores[row, said.labels[row]])


def _truth(said: Predictions, row: int) -> str | None:
    if said.task is not None:
        if said.truth is None:
            return None
        return said.task.truth_texts(said.truth[row : row + 1], said.classes)[0]
    place = -1 if said.truth is None else int(said.truth[row])
    return said.classes[place] if place >= 0 else None


def _unstable(block: Sequence[Predictions]) -> Iterator[UnstableInput]:
    changes = np.zeros(len(block[0]), dtype=np.intp)
    task = block[0].task
    for old, new in itertools.pairwise(block):
        if task is None:
            changes += old.labels != new.labels
        else:
            changes += ~task.agree(_values(old), _values(new))
    rows = np.flatnonzero(changes > 1)
    rows = rows[np.argsort(-changes[rows], kind="stable")][:UNSTABLE]
    first = block[0]
    for row in rows.tolist():
        yield UnstableInput(
            id=str(first.id_column[row].as_py()),
            truth=_truth(first, row),
            labels=tuple(
                _text(each, each.labels if each.values is None else each.values, row)
                for each in block
            ),
            changes=int(changes[row]),
        )


def _text(said: Predictions, values: AnyArray, row: int) -> str:
    """An answer, or the truth, in words."""
    if said.task is None:
        return str(said.classes[values[row]])
    return said.task.texts(values[row : row + 1], said.classes)[0]
