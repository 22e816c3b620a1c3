"""Ensembles of every size, drawn from the members that are stored.

Members are put in random orders, and every beginning of an order is an ensemble: one pass over an
order gives the labels at all sizes. Orders of two generations are crossed, not only paired.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np

from dynsnap import seeds
from dynsnap._types import AnyArray, Floats, Labels, Positions
from dynsnap.ensemble import Combination, Members, combine

Draw: TypeAlias = Literal["rounds", "members"]

METRICS = ("accuracy", "consistency", "correct_consistency")

_AT_ONCE = 1 << 17  # numbers that are summed together, so that they stay in the cache
_ALL = 12  # rounds up to which every number of them is measured
_POINTS = 20  # numbers of rounds, at about the most


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Expected:
    """Expected metrics of ensembles: of whole rounds first, then of some sizes.

    Attributes:
        values: Of each metric for each input, over all draws: (points, inputs).
        draws: Of each metric over all inputs, for each draw: (draws, points).
    """

    values: Mapping[str, Floats]
    draws: Mapping[str, Floats]


def expected(
    generations: Sequence[Members],
    *,
    truth: Labels | None,
    rounds: Sequence[int],
    sizes: Sequence[int],
    draw: Draw = "rounds",
    draws: int = 200,
    combination: Combination = "average",
    seed: int = 0,
) -> Expected:
    """Expected accuracy, consistency and correct-consistency of ensembles of these sizes.

    Every generation draws its own members. Accuracy is the mean over generations, the other two
    over pairs of generations. Of all members there is one ensemble only, made by `combine`.

    Args:
        generations: The members of each generation.
        truth: The true classes of the inputs, None where they are unknown.
        rounds: Numbers of whole rounds, none more than every generation has.
        sizes: Numbers of members, none more than every generation has.
        draw: "rounds" draws whole rounds and takes the best of each first, as Algorithm 1 does;
            "members" draws members one by one, as if each were a round.
        draws: How many orders are drawn, at the least.
        combination: How members are combined.
        seed: Names the draws.
    """
    parts = [parts_of(found, draw) for found in generations]
    whole, asked = np.asarray(rounds, np.intp), np.asarray(sizes, np.intp)
    orders = [
        list(_orders(part, whole, asked, draws, seeds.generator(seed, "size", draw, number)))
        for number, part in enumerate(parts)
    ]
    drawn_from = [
        _DrawnEnsembles(found, part, order, combination)
        for found, part, order in zip(generations, parts, orders, strict=True)
    ]
    inputs, classes = generations[0].scores["test"].shape[1:]
    metrics = ("consistency",) if truth is None else METRICS
    points, paired = len(whole) + len(asked), min(map(len, orders))
    values = {metric: np.empty((points, inputs)) for metric in metrics}
    drawn = {metric: np.zeros((paired, points)) for metric in metrics}
    step = max(1, _AT_ONCE // (max(map(len, generations)) * classes))
    for start in range(0, inputs, step):
        rows = slice(start, start + step)
        labels = [one.labels(rows) for one in drawn_from]
        true = None if truth is None else truth[rows]
        for metric, value in _crossed([_shares(each, classes) for each in labels], true).items():
            values[metric][:, rows] = value
        for metric, sums in _paired([each[:paired] for each in labels], true).items():
            drawn[metric] += sums
    return Expected(
        values=values,
        draws={metric: sums / inputs for metric, sums in drawn.items()},
    )


def parts_of(found: Members, draw: Draw) -> list[Positions]:
    """The members that are drawn together: those of each round, or each on its own."""
    if draw == "members":
        return [np.array([member]) for member in range(len(found))]
    origin = np.array([position for position, _ in found.origin])
    return [np.flatnonzero(origin == one) for one in np.unique(origin)]


def whole_rounds(most: int) -> Positions:
    """The numbers of rounds that are measured: all small ones, fewer large ones, half and all.

    Example:
        >>> whole_rounds(5)
        array([1, 2, 3, 4, 5])
    """
    first = min(_ALL, most)
    later = np.geomspace(first, most, _POINTS - _ALL).round().astype(np.intp)
    return np.unique([*range(1, first + 1), max(most // 2, 1), *later])


@dataclass(frozen=True, slots=True, eq=False)
class _Order:
    """An order of the parts, and where it is cut.

    Attributes:
        parts: The parts in this order.
        before: Of each cut, how many whole parts come before the one that is cut.
        last: Of each cut, the last member that is taken.
        sizes: Of each cut, how many members are taken in all.
    """

    parts: Positions
    before: Positions
    last: Positions
    sizes: Positions


def _orders(
    parts: Sequence[Positions],
    rounds: Positions,
    asked: Positions,
    draws: int,
    rng: np.random.Generator,
) -> Iterator[_Order]:
    """Random orders of the parts, cut after whole parts and at the sizes that are asked for.

    An order and all its rotations are taken together: each alone is as random as any, and
    together every part comes first equally often.
    """
    for _ in range(-(-draws // len(parts))):
        shuffled = rng.permutation(len(parts))
        for turn in range(len(parts)):
            order = np.roll(shuffled, -turn)
            ends = np.cumsum([len(parts[part]) for part in order])
            sizes = np.concatenate([ends[rounds - 1], asked])
            members = np.concatenate([parts[part] for part in order])
            yield _Order(order, np.searchsorted(ends, sizes), members[sizes - 1], sizes)


class _DrawnEnsembles:
    """The members of one generation, and the orders that ensembles are drawn in."""

    def __init__(
        self,
        found: Members,
        parts: Sequence[Positions],
        orders: Sequence[_Order],
        combination: Combination,
    ) -> None:
        self._found = found
        self._parts = parts
        self._orders = orders
        self._combination = combination
        rows = combine(found.scores["test"], how=combination, weights=found.accuracy)
        self._whole = rows.argmax(axis=1)

    def labels(self, rows: slice) -> Labels:
        """The labels of some inputs in each order at each cut, as (orders, cuts, inputs)."""
        added = self._added(rows)
        within = np.empty_like(added)  # sums over a part, up to each member of it
        for part in self._parts:
            within[part] = np.cumsum(added[part], axis=0)
        totals = within[[part[-1] for part in self._parts]]
        sums = np.zeros((len(totals) + 1, *totals.shape[1:]))
        labels = np.empty((len(self._orders), len(self._orders[0].sizes), added.shape[1]), np.intp)
        for position, order in enumerate(self._orders):
            for place, part in enumerate(order.parts.tolist()):  # `cumsum` is slow on columns
                np.add(sums[place], totals[part], out=sums[place + 1])
            # Whatever the size, the largest sum is the largest mean.
            labels[position] = (sums[order.before] + within[order.last]).argmax(axis=2)
            # A sum in another order may round differently, and there is one ensemble of all.
            labels[position, order.sizes == len(added)] = self._whole[rows]
        return labels

    def _added(self, rows: slice) -> Floats:
        """The scores or votes that each member adds, as (members, inputs, classes)."""
        added = np.asarray(self._found.scores["test"][:, rows], float)
        if self._combination.endswith("majority"):
            added = (added.argmax(axis=2)[..., None] == np.arange(added.shape[2])).astype(float)
        if self._combination.startswith("weighted"):
            added = added * self._found.accuracy[:, None, None]
        return added


def twin_disagreement(
    found: Members, rounds: Sequence[int], *, draw: Draw, draws: int, rng: np.random.Generator
) -> Floats:
    """The share of inputs that two averages of so many rounds each label differently.

    Args:
        found: The members of one generation.
        rounds: Numbers of rounds, none more than half of those that there are.
        draw: What is drawn: "rounds", or "members" as if each were a round.
        draws: How many orders are drawn, at the least.
        rng: Draws them.
    """
    parts = parts_of(found, draw)
    orders = []
    for _ in range(-(-draws // len(parts))):
        shuffled = rng.permutation(len(parts))
        orders += [np.roll(shuffled, -turn) for turn in range(len(parts))]
    scores = found.scores["test"]
    inputs, classes = scores.shape[1:]
    counts = np.asarray(rounds, np.intp)
    apart = np.zeros(len(counts))
    step = max(1, _AT_ONCE // (len(parts) * classes))
    for start in range(0, inputs, step):
        rows = slice(start, start + step)
        totals = np.stack([scores[part, rows].sum(axis=0, dtype=float) for part in parts])
        sums = np.zeros((len(parts) + 1, *totals.shape[1:]))
        for order in orders:
            for place, part in enumerate(order.tolist()):
                np.add(sums[place], totals[part], out=sums[place + 1])
            one, both = sums[counts], sums[2 * counts]
            apart += (one.argmax(axis=2) != (both - one).argmax(axis=2)).sum(axis=1)
    return np.asarray(apart / (inputs * len(orders)))


def falls_as(rounds: Floats, disagreement: Floats) -> float | None:
    """The exponent b of a disagreement that falls as 1 / rounds^b; None where it cannot be told.

    Example:
        >>> rounds = np.array([1.0, 2, 4])
        >>> round(falls_as(rounds, 0.1 / np.sqrt(rounds)), 6)
        0.5
    """
    if len(rounds) < 2 or not (disagreement > 0).all():
        return None
    return float(-np.polyfit(np.log(rounds), np.log(disagreement), 1)[0])


def _shares(labels: Labels, classes: int) -> Floats:
    """The share of orders that predict each class, as (cuts, inputs, classes)."""
    orders, cuts, inputs = labels.shape
    cells = np.arange(cuts * inputs).reshape(cuts, inputs) * classes + labels
    counts = np.bincount(cells.ravel(), minlength=cuts * inputs * classes)
    return np.asarray(counts.reshape(cuts, inputs, classes) / orders)


def _crossed(shares: Sequence[Floats], truth: Labels | None) -> dict[str, AnyArray]:
    """The metrics of each input, with every draw of a generation against every one of another."""
    found = {"consistency": _mean([(a * b).sum(axis=2) for a, b in combinations(shares, 2)])}
    if truth is not None:
        right = [each[:, np.arange(len(truth)), truth] for each in shares]
        found["accuracy"] = _mean(right)
        found["correct_consistency"] = _mean([a * b for a, b in combinations(right, 2)])
    return found


def _paired(labels: Sequence[Labels], truth: Labels | None) -> dict[str, AnyArray]:
    """The metrics of each draw on its own, summed over these inputs: (draws, cuts)."""
    found = {"consistency": _mean([(a == b).sum(axis=2) for a, b in combinations(labels, 2)])}
    if truth is not None:
        right = [each == truth for each in labels]
        found["accuracy"] = _mean([each.sum(axis=2) for each in right])
        found["correct_consistency"] = _mean(
            [(a & b).sum(axis=2) for a, b in combinations(right, 2)]
        )
    return found


def _mean(values: Sequence[AnyArray]) -> AnyArray:
    return np.asarray(sum(values) / len(values))
