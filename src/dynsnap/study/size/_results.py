"""Results about the size of ensembles: plain values, for tables, files and pages."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from dynsnap.comparison import Estimate
from dynsnap.ensemble import Combination
from dynsnap.study.size._draws import Draw
from dynsnap.study.size._laws import Law, LawName

SCHEMA = "dynsnap.size/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class SizePoint:
    """The expected value of a metric for ensembles of one size.

    Attributes:
        members: Their members; for whole rounds, the mean.
        rounds: The rounds that these take; the mean, for a number of members.
        low: Lower bound of the 95 % interval over test inputs.
        high: Its upper bound.
        least: Lower end of the middle 95 % of single draws: the range of one ensemble. None where
            nothing was drawn.
        most: Its upper end.
        extrapolated: Whether the value comes from a law, beyond the stored members.
    """

    members: float
    rounds: float
    value: float
    low: float
    high: float
    least: float | None = None
    most: float | None = None
    extrapolated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A law fitted to small ensembles, and compared with a large one that is known.

    Attributes:
        law: Its name.
        fitted_to: The most rounds that it was fitted to.
        tested_at: The rounds that it predicted.
        error: The prediction minus the measured value.
    """

    law: LawName
    fitted_to: int
    tested_at: int
    error: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Twins:
    """Two ensembles that are grown alike on the same data: the disagreement that is left.

    An ensemble of the size "auto" assumes an exponent of one half.

    Attributes:
        rounds: Rounds of each of the two, up to half of those that are stored.
        disagreement: The share of inputs that they label differently, for each of these; the mean
            over generations and replicates.
        exponent: The b with which it falls as 1 / rounds^b; None where it cannot be fitted.
    """

    rounds: tuple[int, ...]
    disagreement: tuple[float, ...]
    exponent: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeCurve:
    """One metric against the size.

    Attributes:
        metric: "accuracy", "consistency" or "correct_consistency".
        points: At the numbers of members that were asked for.
        by_rounds: At whole rounds, which the law is fitted to.
        law: The expected value for any number of rounds.
        limit: The expected value for ever more rounds, with its interval over test inputs.
        limits: The limit by each of the laws.
        trials: The laws, tested on a half that they were not fitted to; empty below four rounds.
        enough: The smallest number of rounds within the tolerance of the limit; None beyond reach.
        settled: The smallest number of rounds to which one more adds less than the tolerance.
        gain: The expected gain of one more round than are stored.
    """

    metric: str
    points: tuple[SizePoint, ...]
    by_rounds: tuple[SizePoint, ...]
    law: Law
    limit: Estimate
    limits: Mapping[LawName, float]
    trials: tuple[Trial, ...]
    enough: int | None
    settled: int | None
    gain: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Expected metrics of ensembles of any size.

    Attributes:
        draw: "rounds" where whole rounds were drawn, as training does; "members" where each member
            was drawn on its own, and counts as a round.
        generations: How many generations were compared.
        replicates: How many times, each with its own members.
        members: The most members that every generation has.
        rounds: The most rounds that every generation has.
        members_per_round: The mean number of members that a round gives.
        tolerance: How near to the limit is near enough.
        curves: By metric.
        twins: How much two ensembles of the same generation disagree.
    """

    combination: Combination
    draw: Draw
    draws: int
    generations: int
    replicates: int
    inputs: int
    members: int
    rounds: int
    members_per_round: float
    tolerance: float
    curves: Mapping[str, SizeCurve]
    twins: Twins

    def members_at(self, rounds: float | None) -> int | None:
        """About how many members so many rounds give."""
        return None if rounds is None else max(1, round(rounds * self.members_per_round))

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values that `json.dumps` takes; docs/size.md describes the shape."""
        found = asdict(self)
        for name, curve in self.curves.items():
            found["curves"][name]["enough_members"] = self.members_at(curve.enough)
            found["curves"][name]["settled_members"] = self.members_at(curve.settled)
        return {"schema": SCHEMA, **found}
