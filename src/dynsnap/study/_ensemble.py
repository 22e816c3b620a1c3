"""One ensemble of a study."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dynsnap.ensemble import EnsemblePlan, Method, Round, RoundSpec, Size, rounds_used, wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Ensemble:
    """One ensemble of a study: a method in one generation of one replicate.

    Attributes:
        twin: 1 for the learner that measures the noise floor.
        offset: The index of its first round: single learners may be rounds of the same replicate.
    """

    method: Method
    generation: int
    replicate: int = 0
    twin: int = 0
    offset: int = 0

    @property
    def number(self) -> int:
        """Which repetition of its method it belongs to."""
        return self.replicate + self.offset

    @property
    def new_members(self) -> Size:
        """The fewest members that come from rounds of its own generation."""
        return self.method.new_members(self.generation)

    @property
    def previous(self) -> "Ensemble | None":
        """The ensemble that it carries members over from, None where it starts afresh."""
        if self.method.rolling is None or self.generation == 1:
            return None
        return replace(self, generation=self.generation - 1)

    @property
    def earlier(self) -> "list[Ensemble]":
        """The same ensemble in all generations before, oldest first."""
        return [replace(self, generation=number) for number in range(1, self.generation)]

    @property
    def plan(self) -> EnsemblePlan:
        """Which members it keeps of its own rounds.

        Of a round that goes on from a good member, all: it has no poor beginning to be pruned.
        """
        return replace(self.method.plan, beta=1.0) if self.goes_on else self.method.plan

    @property
    def open_ended(self) -> bool:
        """Whether it takes the rounds themselves to know how many it needs."""
        plan = self.plan
        return plan.automatic or (plan.beta != 1 and not plan.top)

    def wanted(self, rounds: Sequence[Round], new: Size | None = None) -> int:
        """How many more rounds are certain to be needed for so many new members, or the fewest."""
        new = self.new_members if new is None else new
        return wanted(replace(self.plan, size=new), rounds) if new else 0

    def rounds_used(self, rounds: Sequence[Round], new: Size) -> int:
        """How many of these rounds, from the first on, so many new members come from."""
        return rounds_used(replace(self.plan, size=new), rounds) if new else 0

    @property
    def goes_on(self) -> bool:
        """Whether its rounds start from members of the generation before."""
        rolling = self.method.rolling
        return rolling is not None and rolling.onward and self.generation > 1

    def spec(self, index: int, *, seed: int, parent: str | None = None) -> RoundSpec:
        """The ensemble's round of this index, and the member that it starts from, if any."""
        return RoundSpec(
            recipe=self.method.recipe,
            generation=self.generation,
            replicate=self.replicate,
            index=self.offset + index,
            seed=seed,
            twin=self.twin,
            parent=parent,
        )

    def certain(self, *, seed: int) -> list[RoundSpec]:
        """The rounds that it needs whatever they turn out to be."""
        if self.goes_on:  # from members that nobody knows yet
            return []
        return [self.spec(index, seed=seed) for index in range(self.wanted([]))]

    def refreshing(self, parent: str, *, seed: int) -> RoundSpec:
        """The round that trains on a carried member, which is stored under this name."""
        assert self.method.rolling is not None
        recipe = self.method.rolling.refreshing
        assert recipe is not None
        return RoundSpec(
            recipe=recipe,
            generation=self.generation,
            replicate=self.replicate,
            seed=seed,
            parent=parent,
        )
