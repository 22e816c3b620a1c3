"""Which rounds a study still needs: decided from the plan and the rounds that are available.

Nothing here trains or stores. The same rounds always lead to the same decisions, in whatever order
they became available.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from dynsnap._types import Flags, MemberScores
from dynsnap.data import Stream
from dynsnap.ensemble import Round, RoundSpec, Size, cost
from dynsnap.study._ensembles import Ensemble
from dynsnap.study._members import (
    MemberSelector,
    RoundReader,
    SelectedMembers,
    Source,
    check_gates,
    check_selection_holdout,
)


@dataclass(frozen=True, slots=True)
class Price:
    """What training took: trainings from scratch (κ), and seconds."""

    kappa: float
    seconds: float


class EnsembleRounds:
    """The rounds of one ensemble: those that it has, those that it lacks, and their members.

    Args:
        ensemble: The ensemble.
        before: The ensemble of the generation before, None where it does not need one.
        available: The rounds that are available.
        selector: Selects members from them.
    """

    def __init__(
        self,
        ensemble: Ensemble,
        before: "EnsembleRounds | None",
        available: RoundReader,
        selector: MemberSelector,
    ) -> None:
        self.ensemble = ensemble
        self._before = before
        self._available = available
        self._selector = selector
        self._own: list[Round] = []
        self._finetuned: list[Round] | None = None if ensemble.finetunes else []
        self._decided: dict[int, int] = {}
        self._complete = False

    def missing(self, *, ahead: int = 0) -> list[RoundSpec]:
        """The rounds that it is certain to need and that are not available.

        Args:
            ahead: Rounds to add that it may come to need, where some are missing.
        """
        return [*self._missing_own(ahead), *self._missing_finetuned()]

    @property
    def complete(self) -> bool:
        """Whether it has all its rounds, and so has the ensemble of the generation before."""
        # Kept, as rounds only become more: each generation asks the one before more than once, so
        # that asking anew would take twice as long for every further generation.
        if not self._complete and (self._before is None or self._before.complete):
            self._complete = self._finetuned is not None and not self._wanted()
        return self._complete

    @property
    def rounds(self) -> list[Round]:
        """The rounds that were trained for it in its own generation, without their scores."""
        used = self.ensemble.rounds_used(self._own, self._new_members())
        return self._own[:used] + (self._finetuned or [])

    def price(self, epochs: int) -> Price:
        """What these rounds took, for trainings from scratch of so many epochs."""
        rounds = self.rounds
        return Price(
            sum(cost(done.spec.recipe, rounds=1, epochs=epochs) for done in rounds),
            sum(done.seconds for done in rounds),
        )

    @cached_property
    def members(self) -> SelectedMembers:
        """The members of a complete ensemble."""
        size = self.ensemble.method.plan.size
        if not self.ensemble.carries_over:
            return self._new(size)
        assert size != "auto" and self._finetuned is not None
        old = self._carried
        if self.ensemble.finetunes:
            old = replace(old, sources=tuple((done.spec, 0) for done in self._finetuned))
        return self._selector.together(self.ensemble, old, self._new(size - len(old)))

    def scores(self, name: str) -> MemberScores:
        """The members' scores on one evaluation set."""
        return self._selector.scores(self.members, name)

    @property
    def known_classes(self) -> Flags | None:
        """Which classes each member has learned; None where the method does not ask."""
        return self._selector.known_classes(self.ensemble.method.rolling, self.members)

    @cached_property
    def parents(self) -> list[Source]:
        """The members of the generation before that its rounds start from, or learn from."""
        assert self._before is not None
        if not self.ensemble.carries_over:
            return list(self._before.members.sources)
        return self._selector.parents(self.ensemble, self._before.members)

    @cached_property
    def _carried(self) -> SelectedMembers:
        """The members that it carries over; its first new members must be available."""
        assert self._before is not None
        new = self._new(self.ensemble.new_members)
        return self._selector.carried(self.ensemble, self._before.members, new)

    def _new(self, count: Size) -> SelectedMembers:
        return self._selector.new(self.ensemble, self._own, count)

    def _missing_own(self, ahead: int) -> list[RoundSpec]:
        ensemble = self.ensemble
        while more := self._wanted():
            if ensemble.starts_from_members and not (self._before and self._before.complete):
                return []  # the members that its rounds start from are not known yet
            have = len(self._own)
            specs = [self._spec(have + place) for place in range(more)]
            if missing := self._available.missing(specs):
                early = range(ahead if ensemble.open_ended else 0)
                later = [self._spec(have + more + place) for place in early]
                return missing + self._available.missing(later)
            self._own += map(self._available.head, specs)
        return []

    def _missing_finetuned(self) -> list[RoundSpec]:
        if self._finetuned is not None:
            return []
        assert self._before is not None
        if not self._before.complete or self.ensemble.wanted(self._own):
            return []  # the members to fine-tune are not known yet
        sources = self._carried.sources
        specs = [
            self.ensemble.finetuning(self._available.member_key(*source)) for source in sources
        ]
        missing = self._available.missing(specs)
        if not missing:
            self._finetuned = list(map(self._available.head, specs))
        return missing

    def _spec(self, index: int) -> RoundSpec:
        if not self.ensemble.starts_from_members:
            return self.ensemble.spec(index)
        source = self.parents[index % len(self.parents)]
        return self.ensemble.spec(index, member=self._available.member_key(*source))

    def _wanted(self) -> int:
        """How many more rounds it is certain to need."""
        if not self.ensemble.method.plan.automatic:
            return self.ensemble.wanted(self._own, self._new_members())
        have = len(self._own)
        if have not in self._decided:  # an "auto" size depends on scores, which are not held here
            loaded = [self._available.load(head.spec) for head in self._own]
            self._decided[have] = self.ensemble.wanted(loaded)
        return self._decided[have]

    def _new_members(self) -> Size:
        """How many members must come from its own rounds, as far as that is decided."""
        fewest, size = self.ensemble.new_members, self.ensemble.method.plan.size
        if self._before is None or not self.ensemble.carries_over:
            return fewest
        if not fewest or size == "auto":
            return fewest
        if self.ensemble.wanted(self._own, fewest) or not self._before.complete:
            return fewest
        # Old members that are behind the first new ones are not carried over.
        return size - len(self._carried)


class PendingRounds:
    """The rounds that the ensembles of a study still need.

    Args:
        ensembles: The ensembles. Where one needs the ensemble of the generation before, that must
            be among them.
        available: The rounds that are available. They may become more.
        stream: The study's data; needed where members are carried over.

    Attributes:
        ensembles: Each ensemble with its rounds.
    """

    def __init__(
        self, ensembles: Iterable[Ensemble], available: RoundReader, stream: Stream | None
    ) -> None:
        asked = list(dict.fromkeys(ensembles))
        if stream is not None and any(ensemble.needs_holdout for ensemble in asked):
            check_selection_holdout(stream)
            check_gates(asked, stream)
        selector = MemberSelector(available, stream)
        made: dict[Ensemble, EnsembleRounds] = {}
        for one in sorted(asked, key=lambda ensemble: ensemble.generation):
            before = None if one.previous is None else made[one.previous]
            made[one] = EnsembleRounds(one, before, available, selector)
        self.ensembles = {one: made[one] for one in asked}

    def outstanding(
        self, *, ahead: int = 0, among: Iterable[EnsembleRounds] | None = None
    ) -> list[RoundSpec]:
        """The rounds that ensembles are certain to need and that are not available, each once.

        Args:
            ahead: Rounds to add for each ensemble that it may come to need.
            among: The ensembles; all by default.
        """
        found: dict[RoundSpec, None] = {}
        for one in self.ensembles.values() if among is None else among:
            found.update(dict.fromkeys(one.missing(ahead=ahead)))
        return list(found)

    def affected_by(self, latest: Iterable[RoundSpec]) -> list[EnsembleRounds]:
        """The ensembles that may need other rounds now that these are available."""
        # Not by the whole recipe: these may be longer rounds, whose beginnings are needed.
        found = {(one.recipe.schedule, one.generation, one.replicate) for one in latest}
        return [
            rounds
            for one, rounds in self.ensembles.items()
            if one.method.uses_deployed
            or (one.method.recipe.schedule, one.generation, one.replicate) in found
        ]

    @property
    def complete(self) -> dict[Ensemble, EnsembleRounds]:
        """The ensembles that have all their rounds."""
        return {one: rounds for one, rounds in self.ensembles.items() if rounds.complete}
