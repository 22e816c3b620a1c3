"""How claims end: a verdict, the row of a table that tells it, and what is counted of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from _claims import Claim, Wanted
from _measured import BELOW, FINE, OPEN, harm, line
from dynsnap.comparison import PairedDifference

SHOWN, UNSHOWN, CONTRADICTED, DESIGNED = "shown", "not shown", "contradicted", "by design"
NO_CLAIM = "no claim"
"""The verdict on what one replicate alone speaks for; what it speaks against is told."""
Shown = Callable[[float], bool]
"""Whether a claim of a difference is shown by intervals of this confidence."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the intervals say about a claim.

    Attributes:
        said: In words.
        alone: Whether it is of one replicate.
        again: Whether a row above compares the same answers, so that it is counted there.
    """

    said: str
    alone: bool = False
    again: bool = False

    @property
    def against(self) -> bool:
        """Whether it speaks against the claim."""
        return self.said in (UNSHOWN, CONTRADICTED, BELOW)

    def __str__(self) -> str:
        said = f"**{self.said}**" if self.against else self.said
        return f"{said}{', one replicate' * self.alone}{', counted above' * self.again}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRow:
    """A row of a table.

    Attributes:
        study: The study that it is of.
        says: The claim.
        command: What trains the study.
        replicates: How many it compares.
        gaps: The differences, a cell each.
        detectable: The smallest difference that the data would have shown, in points.
        costs: What method and reference cost, a cell each.
        verdicts: One, or two of a week's losses and accuracy.
    """

    study: str
    says: str
    command: str
    replicates: int
    gaps: tuple[str, ...]
    detectable: str
    costs: tuple[str, ...]
    verdicts: tuple[Verdict, ...]

    def __str__(self) -> str:
        verdicts = "; ".join(map(str, self.verdicts))
        about = (self.says, self.command, str(self.replicates))
        return line([*about, *self.gaps, self.detectable, *self.costs, verdicts])


class Ends(NamedTuple):
    """Verdicts by what they are about, without "by design" and "no claim", each difference once.

    Attributes:
        better: That fewer right answers are lost, or that answers are more consistent.
        learnt: That later generations are more accurate than the first.
        harmed: What that costs in accuracy, or on the new class.
    """

    better: list[str]
    learnt: list[str]
    harmed: list[str]

    @classmethod
    def of(cls, claims: Iterable[tuple[Claim, Iterable[ClaimRow]]]) -> "Ends":
        """The verdicts on claims."""
        ends = cls([], [], [])
        for claim, rows in claims:
            kind = ends.learnt if claim.reference == "first" else ends.better
            kind = ends.harmed if claim.wanted == "no harm" else kind
            verdicts = [one for row in rows for one in row.verdicts]
            kind += [one.said for one in verdicts if not one.again and one.said != NO_CLAIM]
        return ends

    @classmethod
    def of_weeks(cls, rows: Sequence[ClaimRow]) -> "Ends":
        """The outcomes of weeks. What is so by design is no claim, but has its price."""
        weeks = [row.verdicts for row in rows]
        lost = [one.said for one, _ in weeks if one.said not in (DESIGNED, NO_CLAIM)]
        return cls(lost, [], [one.said for _, one in weeks if one.said != NO_CLAIM])

    def cells(self) -> Iterator[str]:
        """The cells of a section."""
        yield shown_of(self.better)
        yield shown_of(self.learnt)
        for one in (FINE, BELOW, OPEN):
            yield str(self.harmed.count(one))


def shown_of(said: Sequence[str]) -> str:
    """How many of these claims are shown."""
    return f"{said.count(SHOWN)} of {len(said)}" if said else ""


def verdict(found: Sequence[PairedDifference], wanted: Wanted, *, again: bool = False) -> Verdict:
    """What becomes of a claim: what one replicate alone speaks for is none."""
    alone = found[0].replicates == 1
    said = of_intervals(found, wanted)
    if alone and said in (SHOWN, FINE):
        return Verdict(NO_CLAIM, alone)
    return Verdict(said, alone, again)


def of_intervals(found: Sequence[PairedDifference], wanted: Wanted) -> str:
    """What the intervals say about a claim, however many replicates they are of."""
    if wanted == "no harm":
        return harm(found)
    if any(one.clearly_below if wanted == "higher" else one.clearly_above for one in found):
        return CONTRADICTED
    return SHOWN if is_shown(found, wanted) else UNSHOWN


def is_shown(found: Sequence[PairedDifference], wanted: Wanted) -> bool:
    """Whether all differences clearly are on the side that is wanted."""
    return all(one.clearly_above if wanted == "higher" else one.clearly_below for one in found)


def discoveries(claimed: dict[str, Shown], rate: float) -> set[str]:
    """The claims that stay shown if at most this share of those shown may be false.

    Benjamini and Hochberg (1995): the most claims, k of m, that are all shown by intervals of the
    confidence 1 - rate k / m. From all claims down, the first k that is its own count is it.
    """
    kept = set(claimed)
    while True:
        confidence = 1 - rate * len(kept) / len(claimed) if kept else 1.0
        again = {says for says in kept if claimed[says](confidence)}
        if again == kept:
            return kept
        kept = again
