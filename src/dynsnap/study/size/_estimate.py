"""How many members are enough: expected metrics of any size, from the members of a run."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynsnap import seeds
from dynsnap._types import Floats, Labels
from dynsnap.comparison import Estimate
from dynsnap.ensemble import Combination, Members, Method, Round, members
from dynsnap.errors import InputError, PlanError
from dynsnap.study._ensembles import Ensemble, generations_of
from dynsnap.study._plan import StudyPlan
from dynsnap.study.size._draws import (
    Draw,
    expected,
    falls_as,
    parts_of,
    twin_disagreement,
    whole_rounds,
)
from dynsnap.study.size._laws import LAWS, LawName, fit, fits, predicted
from dynsnap.study.size._results import SizeCurve, SizePoint, Sizes, Trial, Twins

_TAIL = 0.025
_BLOCKS = 1024  # of inputs, which are resampled together where there are more


def stored_members(
    plan: StudyPlan, method: Method, rounds_of: Callable[[Ensemble], Sequence[Round]]
) -> list[list[Members]]:
    """All members that a run holds of a method, by replicate and generation.

    Also those of rounds that its ensembles do not need: other sizes, and rounds trained ahead.

    Args:
        plan: The study.
        method: One of its methods.
        rounds_of: Gives the rounds that are stored for an ensemble, in the order of their index.
    """
    if method.rolling is not None:
        raise PlanError(
            f"{method.name} carries members over, so its members are not draws from one "
            "generation. Choose a method that starts afresh."
        )
    if method.stabilized:
        raise PlanError(
            f"The labels of {method.name} depend on those of the generation before, not on its "
            "members alone. Choose the same method without `margin` and `cost_ratio`."
        )
    unlimited = replace(method.plan, size="auto", tolerance=None, most_rounds=None)
    found: list[list[Members]] = []
    for number in range(plan.replicates_of(method)):
        generations: list[Members] = []
        for generation in itertools.count(1):
            (ensemble,) = generations_of(plan, method, generation, number)[-1:]
            if not (rounds := rounds_of(ensemble)):
                break
            generations.append(members(unlimited, rounds))
        found.append(generations)
    most = max(map(len, found))
    if not most:
        raise InputError(f"There are no rounds of {method.name}: run the study first.")
    # A run that is not finished lacks generations of its last replicates.
    return [generations for generations in found if len(generations) == most]


def estimate_sizes(
    replicates: Sequence[Sequence[Members]],
    *,
    truth: Labels | None = None,
    at: Sequence[int] | None = None,
    extrapolate: bool = False,
    draw: Draw | None = None,
    combination: Combination = "average",
    law: LawName = "power",
    tolerance: float = 0.005,
    draws: int = 200,
    resamples: int = 1000,
    seed: int = 0,
) -> Sizes:
    """Expected accuracy, consistency and correct-consistency of ensembles of any size.

    Args:
        replicates: For each replicate, the members of each of its generations.
        truth: The true classes of the test inputs; without them there is the consistency only.
        at: Numbers of members; by default some up to those that are stored.
        extrapolate: Whether to extrapolate to more members than are stored, by a law.
        draw: "rounds" for what growing to a size would give; "members" for what picking some of
            the stored members gives. By default rounds, unless there is only one in a generation.
        combination: How members are combined.
        law: Which law extrapolates.
        tolerance: How near to the limit is near enough.
        draws: How many orders are drawn in each generation.
        resamples: How many resamples of the test inputs the intervals come from.
        seed: Names the draws and resamples.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> def made():
        ...     scores = rng.dirichlet([2, 1, 1], (6, 40))  # six members, forty inputs
        ...     return Members(np.full(6, 0.5), {"test": scores}, tuple((i, 0) for i in range(6)))
        >>> found = estimate_sizes([[made(), made()]], truth=np.zeros(40, int))
        >>> [point.members for point in found.curves["accuracy"].points]
        [1, 2, 5, 6]
    """
    if not 0 < tolerance < 1:
        raise PlanError(f"`tolerance` must be above 0 and below 1, got {tolerance}.")
    most = _check_members(replicates, truth)
    all_members = [found for generations in replicates for found in generations]
    if draw is None:
        one_round = min(len(parts_of(found, "rounds")) for found in all_members) < 2
        draw = "members" if one_round else "rounds"
    parts = [parts_of(found, draw) for found in all_members]
    rounds = min(map(len, parts))
    if rounds < 2:
        raise InputError(
            "The members of a generation come from one round, which leaves no rounds to choose "
            'from: draw "members".'
        )
    per_round = sum(map(len, all_members)) / sum(map(len, parts))
    whole, sizes = whole_rounds(rounds), _sizes(at, most, extrapolate)
    each = [
        expected(
            generations,
            truth=truth,
            rounds=whole.tolist(),
            sizes=[size for size in sizes if size <= most],
            draw=draw,
            draws=draws,
            combination=combination,
            seed=seeds.number(seed, "size", number),
        )
        for number, generations in enumerate(replicates)
    ]
    resample = _Resample(all_members[0].scores["test"].shape[1], resamples, seed)
    axis = [(count, count * per_round) for count in whole.tolist()]
    axis += [(size / per_round, size) for size in sizes]
    curves = {
        metric: _Measured(
            values=np.mean([found.values[metric] for found in each], axis=0),
            draws=np.concatenate([found.draws[metric] for found in each]),
            axis=axis,
            whole=len(whole),
        ).curve(metric, law=law, tolerance=tolerance, resample=resample)
        for metric in each[0].values
    }
    return Sizes(
        combination=combination,
        draw=draw,
        draws=min(len(found.draws["consistency"]) for found in each),
        generations=len(replicates[0]),
        replicates=len(replicates),
        inputs=resample.inputs,
        members=most,
        rounds=rounds,
        members_per_round=per_round,
        tolerance=tolerance,
        curves=curves,
        twins=_twins(all_members, whole[whole <= rounds // 2].tolist(), draw, draws, seed),
    )


def _twins(
    all_members: Sequence[Members], rounds: Sequence[int], draw: Draw, draws: int, seed: int
) -> Twins:
    each = [
        twin_disagreement(
            found,
            rounds,
            draw=draw,
            draws=draws,
            rng=seeds.generator(seed, "size", "twins", number),
        )
        for number, found in enumerate(all_members)
    ]
    apart = np.mean(each, axis=0)
    return Twins(
        rounds=tuple(rounds),
        disagreement=tuple(apart.tolist()),
        exponent=falls_as(np.array(rounds, float), apart),
    )


class _Resample:
    """Means over test inputs, and over inputs drawn with replacement, the same draws for all."""

    def __init__(self, inputs: int, resamples: int, seed: int) -> None:
        self.inputs = inputs
        blocks = min(inputs, _BLOCKS)
        self._block = np.arange(inputs) % blocks
        rng = seeds.generator(seed, "size", "bootstrap")
        self._drawn = rng.multinomial(blocks, np.full(blocks, 1 / blocks), resamples)

    def means(self, values: Floats) -> Floats:
        """Of values (points, inputs), the means in each resample: (points, resamples)."""
        blocks = self._drawn.shape[1]
        sums = np.stack([np.bincount(self._block, row, blocks) for row in values])
        counts = self._drawn @ np.bincount(self._block, minlength=blocks)
        return np.asarray(sums @ self._drawn.T / counts)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Measured:
    """One metric: of each input, (points, inputs); of each draw, (draws, points).

    Attributes:
        axis: Of each point, and of those beyond, the number of rounds and of members.
        whole: How many of the points are of whole rounds.
    """

    values: Floats
    draws: Floats
    axis: Sequence[tuple[float, float]]
    whole: int

    def curve(
        self, metric: str, *, law: LawName, tolerance: float, resample: "_Resample"
    ) -> SizeCurve:
        means, samples = self.values.mean(axis=1), resample.means(self.values)
        least, most = np.quantile(self.draws, [_TAIL, 1 - _TAIL], axis=0)
        points = [
            SizePoint(
                members=size,
                rounds=count,
                value=float(means[place]),
                low=low,
                high=high,
                least=float(least[place]),
                most=float(most[place]),
            )
            for place, (count, size) in enumerate(self.axis[: len(means)])
            for low, high in [_interval(samples[place])]
        ]
        rounds = np.array([count for count, _ in self.axis[: self.whole]], float)
        known = fit(law, rounds, means[: self.whole])
        fitted = fits(law, rounds, samples[: self.whole])
        for count, size in self.axis[len(means) :]:
            low, high = _interval(predicted(law, fitted, count))
            points.append(
                SizePoint(
                    members=size,
                    rounds=count,
                    value=known.at(count),
                    low=low,
                    high=high,
                    extrapolated=True,
                )
            )
        return SizeCurve(
            metric=metric,
            points=tuple(points[self.whole :]),
            by_rounds=tuple(points[: self.whole]),
            law=known,
            limit=Estimate(known.limit, *_interval(fitted[0])),
            limits={name: fit(name, rounds, means[: self.whole]).limit for name in LAWS},
            trials=tuple(_trials(rounds, means[: self.whole])),
            enough=known.enough(tolerance),
            settled=known.settled(tolerance),
            gain=known.gain(rounds[-1]),
        )


def _trials(rounds: Floats, values: Floats) -> Iterator[Trial]:
    """Every law, fitted to the first half of the rounds and tested on all of them."""
    half = rounds[-1] // 2
    if half < 2:
        return
    seen = rounds <= half
    for law in LAWS:
        expectation = fit(law, rounds[seen], values[seen]).at(rounds[-1])
        yield Trial(
            law=law,
            fitted_to=int(half),
            tested_at=int(rounds[-1]),
            error=expectation - float(values[-1]),
        )


def _interval(samples: Floats) -> tuple[float, float]:
    low, high = np.quantile(samples, [_TAIL, 1 - _TAIL])
    return float(low), float(high)


def _sizes(at: Sequence[int] | None, most: int, extrapolate: bool) -> list[int]:
    """The numbers of members to estimate, increasing."""
    if at is None:
        steps = [first * 10**power for power in range(7) for first in (1, 2, 5)]
        further = [2 * most, 4 * most] if extrapolate else []
        return [*(size for size in steps if size < most), most, *further]
    for size in at:
        if size < 1:
            raise PlanError(f"An ensemble has at least one member, got {size}.")
        if size > most and not extrapolate:
            raise PlanError(
                f"{size} members are more than the {most} that every generation has stored: ask "
                "for fewer, or allow it to extrapolate (--extrapolate)."
            )
    return sorted(set(at))


def _check_members(replicates: Sequence[Sequence[Members]], truth: Labels | None) -> int:
    """The most members that every generation has, after a check that there are enough."""
    if not replicates or any(len(generations) < 2 for generations in replicates):
        raise InputError(
            "Consistency is between generations, and there are fewer than two: train another one."
        )
    all_members = [found for generations in replicates for found in generations]
    inputs = {found.scores["test"].shape[1:] for found in all_members}
    if len(inputs) > 1 or len({len(generations) for generations in replicates}) > 1:
        raise InputError(
            "Members must have scored the same test inputs and classes, in as many generations in "
            f"every replicate, but found (inputs, classes) of {sorted(inputs)}."
        )
    count = all_members[0].scores["test"].shape[1]
    if truth is not None and len(truth) != count:
        raise InputError(f"There are {len(truth)} true classes for {count} inputs.")
    most = min(map(len, all_members))
    if most < 2:
        raise InputError(
            "There is a generation with one member only, which leaves nothing to choose from: "
            "an ensemble has at least two."
        )
    return most
