"""Many rounds in step: pure bookkeeping, whoever executes the steps.

Rounds differ in size, schedule and length. All that are live take a step at the same time; one
that ends an epoch is validated and reshuffled, one that has ended its last makes room for the
next, and none of them notices the others.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from dynsnap.ensemble import RoundSpec
from dynsnap.train._prepare import State
from dynsnap.train._round_state import RoundState


class Stepper(Protocol):
    """Executes training steps for the lanes that it has admitted.

    What it computes for a lane may depend on that lane alone: never on which others are live.

    Attributes:
        width: How many lanes it can hold at once.
        form: Names what its states hold: one goes on from states of its own form alone.
    """

    @property
    def width(self) -> int: ...

    @property
    def form(self) -> str: ...

    def admit(self, lane: RoundState, state: State | None, /) -> None:
        """Take a lane in: from a fresh start, or from what `state` gave at the end of an epoch."""
        ...

    def advance(self, lanes: Sequence[RoundState], steps: int, /) -> None:
        """So many steps for each of these lanes, from `lane.step` of `lane.epoch` on."""
        ...

    def validate(self, lanes: Sequence[RoundState], /) -> Sequence[float]:
        """Their validation accuracies in eval mode, NaN for one that has diverged."""
        ...

    def weights(self, lane: RoundState, /) -> State:
        """A copy of the module's state, on the CPU, named as the module names it."""
        ...

    def state(self, lane: RoundState, /) -> State:
        """All that `admit` needs to go on from the end of an epoch, on the CPU."""
        ...

    def release(self, lane: RoundState, /) -> None:
        """Forget a lane."""
        ...

    def remain(self, lanes: Sequence[RoundState], /) -> None:
        """These lanes are the last: no round waits. Release what is no longer needed."""
        ...


class Lockstep:
    """Which lanes are live, and how far they can go before one of them ends an epoch.

    Args:
        waiting: Rounds to be trained.
        opening: Makes the lane of a round, when there is room for it.
        width: How many may be live at once.
    """

    def __init__(
        self,
        waiting: Iterable[RoundSpec],
        opening: Callable[[RoundSpec], RoundState],
        *,
        width: int,
    ) -> None:
        self.waiting = deque(waiting)
        self.live: list[RoundState] = []
        self._opening = opening
        self._width = width
        self._stopped = False

    def admit(self) -> list[RoundState]:
        """Let waiting rounds in while there is room, and say which."""
        fresh: list[RoundState] = []
        while self.waiting and not self._stopped and len(self.live) < self._width:
            fresh.append(self._opening(self.waiting.popleft()))
            self.live.append(fresh[-1])
        return fresh

    def stop(self) -> None:
        """Admit no further rounds, and stop every lane at the end of its epoch."""
        self._stopped = True

    def stretch(self) -> tuple[list[RoundState], int]:
        """The lanes that go on, and the steps until the first of them ends its epoch."""
        going = [
            lane for lane in self.live if not lane.finished and (lane.step or not self._stopped)
        ]
        return going, min((lane.steps - lane.step for lane in going), default=0)

    def advance(self, lanes: Sequence[RoundState], steps: int) -> list[RoundState]:
        """Count steps that were taken, and say which lanes have ended an epoch with them."""
        ended = []
        for lane in lanes:
            lane.step += steps
            if lane.step == lane.steps:
                lane.step = 0
                lane.epoch += 1
                ended.append(lane)
        return ended

    def leave(self, lane: RoundState) -> None:
        """Make room."""
        self.live.remove(lane)
