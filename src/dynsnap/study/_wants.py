"""What each ensemble of a study still wants, by what is known of the rounds so far."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

from dynsnap.data import Stream
from dynsnap.ensemble import Round, RoundSpec, Size, beginning
from dynsnap.study._cast import Casting, check_judges
from dynsnap.study._ensemble import Ensemble


class Wants:
    """Which rounds each ensemble has by now, and which it is certain to need. Trains nothing.

    Args:
        heads: What is known of the rounds that are there; whoever has them trained adds to it.
        load: Gives a round with its scores.
        name: What a stored member is called, from its round and its place there.
        trained_as: Says of a round which one is trained and stored for it.
        stream: The study's data, where ensembles ask for it.

    Attributes:
        grown: Of each ensemble, the rounds of its own generation that it has by now.
    """

    def __init__(
        self,
        heads: Mapping[RoundSpec, Round],
        load: Callable[[RoundSpec], Round],
        name: Callable[[RoundSpec, int], str],
        trained_as: Callable[[RoundSpec], RoundSpec],
        stream: Stream | None,
    ) -> None:
        self._heads = heads
        self._load = load
        self._name = name
        self._trained_as = trained_as
        self._stream = stream
        self.grown: dict[Ensemble, list[Round]] = {}
        self._refreshed: dict[Ensemble, list[Round]] = {}
        self._decided: dict[tuple[Ensemble, int], int] = {}

    @cached_property
    def casting(self) -> Casting:
        """Who plays in which ensemble: for ensembles that are grown."""
        assert self._stream is not None, "hand in the data"
        return Casting(
            self._load, self.grown.__getitem__, self._refreshed.__getitem__, self._stream
        )

    def begin(self, ensembles: Sequence[Ensemble]) -> None:
        """From now on, these are the ensembles that want something."""
        if self._stream is not None and any(ensemble.previous for ensemble in ensembles):
            check_judges(self._stream)
        self.grown.clear()
        self.grown.update((ensemble, []) for ensemble in ensembles)

    def outstanding(
        self, *, seed: int, ahead: int = 0, ensembles: Iterable[Ensemble] | None = None
    ) -> list[RoundSpec]:
        """What all ensembles, or these, want and nobody has trained yet, each round once.

        Args:
            seed: The study's.
            ahead: Rounds to ask for before it is certain that an ensemble needs them.
            ensembles: Those that may want something else by now; all unless said otherwise.
        """
        missing: dict[RoundSpec, None] = {}
        for ensemble in self.grown if ensembles is None else ensembles:
            rounds = self.grown[ensemble]
            while more := self._wanted(ensemble):
                have = len(rounds)
                if ensemble.goes_on and not self.complete(ensemble.earlier[-1]):
                    break  # it is not known from whom
                specs = [self._spec(ensemble, have + i, seed) for i in range(more)]
                lacking = self._lacking(specs)
                if lacking:
                    early = [
                        self._spec(ensemble, have + more + i, seed)
                        for i in range(ahead if ensemble.open_ended else 0)
                    ]
                    missing.update(dict.fromkeys(lacking + self._lacking(early)))
                    break
                rounds.extend(beginning(self._heads[self._trained_as(one)], one) for one in specs)
            missing.update(dict.fromkeys(self._to_refresh(ensemble, seed)))
        return list(missing)

    def concerned(self, latest: Iterable[RoundSpec]) -> list[Ensemble]:
        """The ensembles that may want something else since these rounds are there."""
        # Not by the whole recipe: the latest may be longer rounds, whose beginnings were wanted.
        found = {(one.recipe.schedule, one.generation, one.replicate) for one in latest}
        return [
            one
            for one in self.grown
            if one.method.rolling
            or (one.method.recipe.schedule, one.generation, one.replicate) in found
        ]

    def complete(self, ensemble: Ensemble) -> bool:
        """Whether all rounds of an ensemble are there, and of those that it carries over from."""
        before = ensemble.previous
        if before is not None and not self.complete(before):
            return False
        if _refreshes(ensemble) and ensemble not in self._refreshed:
            return False
        return not self._wanted(ensemble)

    def rounds(self, ensemble: Ensemble) -> list[Round]:
        """The heads of the rounds that were trained for an ensemble in its own generation."""
        grown = self.grown[ensemble]
        used = ensemble.rounds_used(grown, self._new_members(ensemble))
        return grown[:used] + self._refreshed.get(ensemble, [])

    def _lacking(self, specs: Iterable[RoundSpec]) -> list[RoundSpec]:
        """What is to be trained so that all of these rounds are there."""
        return [whole for whole in map(self._trained_as, specs) if whole not in self._heads]

    def _spec(self, ensemble: Ensemble, index: int, seed: int) -> RoundSpec:
        if not ensemble.goes_on:
            return ensemble.spec(index, seed=seed)
        parents = self.casting.parents(ensemble)
        return ensemble.spec(index, seed=seed, parent=self._name(*parents[index % len(parents)]))

    def _to_refresh(self, ensemble: Ensemble, seed: int) -> list[RoundSpec]:
        """The carried members of an ensemble that are yet to be trained on, if known by now."""
        if not _refreshes(ensemble) or ensemble in self._refreshed:
            return []
        before = ensemble.previous
        assert before is not None
        if not self.complete(before):
            return []
        if ensemble.wanted(self.grown[ensemble], ensemble.new_members):
            return []
        specs = [
            ensemble.refreshing(self._name(*member), seed=seed)
            for member in self.casting.carried(ensemble).who
        ]
        lacking = [spec for spec in specs if spec not in self._heads]
        if not lacking:
            self._refreshed[ensemble] = [self._heads[spec] for spec in specs]
        return lacking

    def _wanted(self, ensemble: Ensemble) -> int:
        """How many more rounds an ensemble is certain to need."""
        rounds = self.grown[ensemble]
        if not ensemble.method.plan.automatic:
            return ensemble.wanted(rounds, self._new_members(ensemble))
        known = (ensemble, len(rounds))
        if known not in self._decided:  # by what the rounds say, which is in the store
            loaded = [self._load(head.spec) for head in rounds]
            self._decided[known] = ensemble.wanted(loaded, ensemble.new_members)
        return self._decided[known]

    def _new_members(self, ensemble: Ensemble) -> Size:
        """How many members must come from an ensemble's own rounds, as far as is known by now."""
        least, before = ensemble.new_members, ensemble.previous
        if before is None or not least or ensemble.method.plan.size == "auto":
            return least
        if ensemble.wanted(self.grown[ensemble], least) or not self.complete(before):
            return least
        # The first new members are there, so that those to be carried over can be held to them.
        return ensemble.method.plan.size - len(self.casting.carried(ensemble))


def _refreshes(ensemble: Ensemble) -> bool:
    """Whether an ensemble trains on the members that it carries over."""
    rolling = ensemble.method.rolling
    return ensemble.previous is not None and rolling is not None and bool(rolling.refresh)
