"""How much of a study has been trained, and how long the rest may take."""

import time
from collections.abc import Callable, Sequence

from dynsnap.ensemble import RoundSpec


class Headway:
    """How much of what is known to be needed has been done.

    Args:
        clock: What tells the time, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.rounds = self.rounds_done = self.found = 0
        self.epochs = self.epochs_done = 0
        self.accuracy = 0.0
        self._under_way: dict[RoundSpec, int] = {}
        self._clock = clock
        self._since: float | None = None  # the first epoch that was told of
        self._settled = False  # whether those that came with it have all been told of
        self._counted = 0  # epochs after them

    def want(self, specs: Sequence[RoundSpec], found: int) -> None:
        """Rounds that are to be trained, beside those that were found."""
        self.found += found
        self.rounds += len(specs)
        self.epochs += sum(spec.recipe.epochs for spec in specs)

    def epoch(self, spec: RoundSpec, epoch: int, accuracy: float) -> None:
        """An epoch of a round has ended."""
        if self._since is None:  # what came before says nothing: data, libraries, building networks
            self._since = self._clock()
        # Rounds that are side by side end their first epochs together: those do not count.
        self._settled |= spec in self._under_way
        self._counted += self._settled
        # A round that goes on from a checkpoint begins with a later epoch.
        gone = epoch + 1 - self._under_way.get(spec, 0)
        self._under_way[spec] = epoch + 1
        self.epochs_done += gone
        self.accuracy = accuracy

    def done(self, spec: RoundSpec) -> None:
        """A round has ended."""
        self._settled = True
        self.rounds_done += 1
        self.epochs_done += spec.recipe.epochs - self._under_way.pop(spec, 0)

    @property
    def finished(self) -> bool:
        """Whether nothing is left of what is known to be needed."""
        return self.rounds_done >= self.rounds

    @property
    def seconds_left(self) -> float | None:
        """Until what is known to be needed is done, at the speed so far; None while unknown."""
        if self._since is None or not self._counted:
            return None
        return (self._clock() - self._since) / self._counted * (self.epochs - self.epochs_done)
