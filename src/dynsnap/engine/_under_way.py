"""Tasks in the hands of workers, and the order in which rounds get there."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from dynsnap.ensemble import RoundSpec


@dataclass(eq=False)
class UnderWay:
    """A task that a worker has.

    Attributes:
        left: Its rounds that are not done.
        begun: When it was handed out.
        heard: When its worker was last heard of.
        rounds: How many rounds it began with.
        first: Of each round, when its first epoch was told.
        pace: Seconds from one epoch of a round to the next, so far; 0 where that is not known.
        overtaken: Whether another worker was given its rounds too.
    """

    left: set[RoundSpec]
    begun: float
    heard: float
    rounds: int
    first: dict[RoundSpec, tuple[float, int]] = field(default_factory=dict)
    pace: float = 0.0
    overtaken: bool = False

    def tell(self, spec: RoundSpec, epoch: int, now: float) -> None:
        """Take note of an epoch."""
        since, before = self.first.setdefault(spec, (now, epoch))
        if epoch > before:
            self.pace = (now - since) / (epoch - before)


def ranked(specs: Sequence[RoundSpec]) -> list[RoundSpec]:
    """The order in which rounds begin.

    The longest first: one that starts last would be alone in the end. Then those of which few are
    asked for: when they are there, more may be. Alike ones are neighbours, and so may be trained
    side by side.
    """
    alike = Counter((spec.recipe, spec.replicate, spec.generation) for spec in specs)

    def rank(spec: RoundSpec) -> tuple[int, int, int]:
        few = alike[spec.recipe, spec.replicate, spec.generation]
        return -spec.recipe.epochs, few, -spec.generation

    return sorted(specs, key=rank)
