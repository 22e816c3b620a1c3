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
        self.rounds = self.rounds_done = 0
        self.epochs = self.epochs_done = 0
        self.accuracy = 0.0
        self._under_way: dict[RoundSpec, int] = {}
        self._clock = clock
        self._began: float | None = None  # when something was first wanted
        self._told = 0.0  # when the last epoch was told of
        self._settled = False  # whether all rounds under way have told of one
        self._spent, self._counted = 0.0, 0  # seconds of epochs, and how many those were

    def want(self, specs: Sequence[RoundSpec]) -> None:
        """Rounds that are to be trained."""
        if self._began is None:
            self._began = self._clock()
        self.rounds += len(specs)
        self.epochs += sum(spec.recipe.epochs for spec in specs)

    def epoch(self, spec: RoundSpec, epoch: int, accuracy: float) -> None:
        """An epoch of a round has ended."""
        now = self._clock()
        if self._under_way:
            # Rounds that are side by side end their first epochs together: those do not count.
            self._settled |= spec in self._under_way
            self._spent += now - self._told
            self._counted += self._settled
        else:  # what came before says nothing of epochs: reading data, building a network
            self._settled = False
        self._told = now
        # A round that goes on from a checkpoint begins with a later epoch.
        gone = epoch + 1 - self._under_way.get(spec, 0)
        self._under_way[spec] = epoch + 1
        self.epochs_done += gone
        self.accuracy = accuracy

    def done(self, spec: RoundSpec) -> None:
        """A round has ended."""
        self.rounds_done += 1
        self.epochs_done += spec.recipe.epochs - self._under_way.pop(spec, 0)

    @property
    def finished(self) -> bool:
        """Whether nothing is left of what is known to be needed."""
        return self.rounds_done >= self.rounds

    @property
    def seconds_left(self) -> float | None:
        """Until what is known to be needed is done, at the speed so far; None while unknown."""
        left = self.epochs - self.epochs_done
        if self._counted:
            return self._spent / self._counted * left
        if self.rounds_done and self._began is not None:  # rounds that tell of one epoch alone
            return (self._clock() - self._began) / self.epochs_done * left
        return None
