"""Who trains what, and what becomes of it when it goes wrong: the same for every kind of worker."""

import logging
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from dynsnap.engine._events import (
    EpochDone,
    Event,
    RoundDone,
    StateSaved,
    Task,
    TaskEnded,
    TaskFailed,
    TaskLost,
)
from dynsnap.engine._under_way import UnderWay, ranked
from dynsnap.ensemble import Checkpoints, Monitor, Round, RoundSpec
from dynsnap.errors import DynSnapError, Interrupted, PlanError, TrainingError

log = logging.getLogger("dynsnap.engine")

More: TypeAlias = Callable[[], Sequence[RoundSpec]]

_TICK = 0.2  # seconds between two looks at the clock and at whoever may want to stop


class Crew(Protocol):
    """Workers, as the schedule sees them."""

    def places(self) -> int:
        """How many tasks can be under way at once, now."""
        ...

    def begin(self, task: Task, /) -> None: ...

    def news(self, seconds: float, /) -> Iterable[tuple[int, Event]]:
        """What happened, by the number of the task; waits so long when nothing did."""
        ...

    def stop(self) -> None:
        """Ask every worker to stop at the next safe place."""
        ...

    def abandon(self, number: int, /) -> None:
        """Nobody waits for this task any more."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How rounds are handed out.

    Attributes:
        attempts: How often a round is tried before its last error stops the study.
        together: Most rounds in one task, which a worker may train side by side.
        patience: Seconds without a sign of life, after which an idle worker takes a task up too;
            or three times the longest silence so far, whichever is more. So it does after as many
            seconds where a worker takes twice as long as any other for as many rounds.
        side_by_side: Whether a worker trains the rounds of a task side by side at little extra
            cost, as a GPU does. A few large tasks are then quicker and cheaper than many small
            ones, though more workers are idle in the end. None leaves it to the engine.
    """

    attempts: int = 3
    together: int = 32
    patience: float = 60.0
    side_by_side: bool | None = None

    def __post_init__(self) -> None:
        for name in ("attempts", "together"):
            if getattr(self, name) < 1:
                raise PlanError(f"`{name}` must be at least 1, got {getattr(self, name)}.")
        if not self.patience > 0:
            raise PlanError(f"`patience` must be positive, got {self.patience}.")


@dataclass(eq=False, kw_only=True)
class Wave:
    """Rounds on their way through a crew.

    Attributes:
        clock: Gives seconds.
    """

    crew: Crew
    rules: Rules
    monitor: Monitor | None = None
    checkpoints: Checkpoints | None = None
    clock: Callable[[], float] = time.monotonic
    _waiting: deque[RoundSpec] = field(default_factory=deque)
    _missing: set[RoundSpec] = field(default_factory=set)
    _under_way: dict[int, UnderWay] = field(default_factory=dict)
    _failures: Counter[RoundSpec] = field(default_factory=Counter)
    _copies: Counter[RoundSpec] = field(default_factory=Counter)
    _paces: list[tuple[int, float]] = field(default_factory=list)
    _silence: float = 0.0
    _count: int = 0
    _error: DynSnapError | None = None
    _stopping: bool = False

    def run(self, specs: Sequence[RoundSpec], more: More | None = None) -> Iterator[Round]:
        """The rounds as they finish, each once.

        Args:
            specs: The rounds.
            more: Asked for further rounds whenever one is done, and stored.

        Raises:
            Interrupted: The monitor asked to stop, and every worker has.
            DynSnapError: What a round raised, after all that were under way beside it are done.
        """
        self._waiting.extend(ranked(specs))
        self._missing.update(specs)
        try:
            # A worker whose rounds are all there has yet to say that it is free.
            while self._missing or self._under_way:
                self._look_up()
                self._hand_out()
                if not self._under_way:
                    break
                for number, event in self.crew.news(_TICK):
                    done = self._heed(number, event)
                    if done is not None:
                        yield done
                        # The caller has come back for more, and so has the round in safety.
                        self._put_away(done.spec)
                        self._take(more() if more is not None else ())
        finally:
            for number in list(self._under_way):
                self._abandon(number)
        if self._error is not None:
            raise self._error
        if self._missing:
            raise Interrupted(
                "Training stopped as asked. Finished rounds are kept; run the same again to go on."
            )

    def _take(self, specs: Sequence[RoundSpec]) -> None:
        """Take further rounds in. They go first: who has asked for more may do so again."""
        self._waiting.extendleft(reversed(ranked(specs)))
        self._missing.update(specs)

    def _hand_out(self) -> None:
        places = self.crew.places()
        begun = 0
        while self._waiting and len(self._under_way) < places and not self._ending:
            if self.rules.side_by_side:  # few large tasks are quicker than many small ones
                fair = math.ceil(len(self._waiting) / (places - begun))
            else:  # fewer and fewer, so that all workers finish at about the same time
                fair = math.ceil(len(self._waiting) / (2 * places))
            begun += 1
            task = [self._waiting.popleft()]
            failures = self._failures[task[0]]
            most = min(fair, self.rules.together) if failures < self._alone_from else 1
            while (
                self._waiting and len(task) < most and self._failures[self._waiting[0]] == failures
            ):
                task.append(self._waiting.popleft())
            self._begin(task)

    @property
    def _alone_from(self) -> int:
        """After how many failures a round goes alone, so that it takes no other one down.

        Where that is dear, only on its last attempt: the worker may have been lost by itself.
        """
        return max(1, self.rules.attempts - 1) if self.rules.side_by_side else 1

    def _begin(self, specs: Sequence[RoundSpec]) -> None:
        load = self.checkpoints.load if self.checkpoints is not None else _no_state
        found = ((spec, load(spec)) for spec in specs)
        states = {spec: state for spec, state in found if state is not None}
        self._count += 1
        self.crew.begin(Task(self._count, tuple(specs), states))
        now = self.clock()
        self._under_way[self._count] = UnderWay(set(specs), now, now, len(specs))

    def _heed(self, number: int, event: Event) -> Round | None:
        """Take note of what happened; the round, if it is one that is still wanted."""
        task = self._under_way.get(number)
        if task is None:  # abandoned
            return None
        self._silence = max(self._silence, self.clock() - task.heard)
        task.heard = self.clock()
        match event:
            case EpochDone(spec, epoch, accuracy) if spec in self._missing:
                task.tell(spec, epoch, self.clock())
                if self.monitor is not None:
                    self.monitor.epoch_done(spec, epoch, accuracy)
            case StateSaved(spec, state) if spec in self._missing:
                if self.checkpoints is not None:
                    self.checkpoints.save(spec, state)
            case RoundDone(done):
                task.left.discard(done.spec)
                if done.spec in self._missing:
                    self._missing.remove(done.spec)
                    return done
            case TaskEnded():
                self._end(number, "the trainer did not give it")
            case TaskFailed(None, text, details):
                self._end(number, text, details)
            case TaskFailed(DynSnapError() as error, text, _):
                del self._under_way[number]
                self._fail(error, text)
            case TaskLost(reason):
                self._end(number, reason)
        return None

    def _end(self, number: int, reason: str, details: str = "") -> None:
        """A task is over. What it leaves is tried again, unless that was tried often enough."""
        task = self._under_way.pop(number)
        if not task.left:
            self._paces.append((task.rounds, task.pace))
        if self._ending:
            return
        elsewhere = {spec for other in self._under_way.values() for spec in other.left}
        for spec in sorted(task.left & self._missing - elsewhere, key=lambda spec: spec.index):
            self._failures[spec] += 1
            if self._failures[spec] >= self.rules.attempts:
                error = TrainingError(
                    f"{spec} failed {self._failures[spec]} times, the last time because {reason}."
                )
                if details:
                    error.add_note(details)
                self._fail(error, reason)
                return
            log.warning("%s is tried again, because %s.", spec, reason)
            self._waiting.append(spec)

    def _fail(self, error: DynSnapError, text: str) -> None:
        if self._error is None:
            self._error = error
            if self._under_way:
                log.warning("%s. Rounds that are under way are waited for.", text.rstrip("."))

    def _look_up(self) -> None:
        """See whether anybody wants to stop, and whether a worker is stuck."""
        if self.monitor is not None and not self._stopping and self.monitor.stopping():
            self._stopping = True
            self.crew.stop()
        if self._waiting or self._ending or len(self._under_way) >= self.crew.places():
            return
        for task in list(self._under_way.values()):
            trouble = "" if task.overtaken else self._trouble(task)
            if not trouble:
                continue
            task.overtaken = True
            often = self.rules.attempts - 1
            again = [one for one in task.left & self._missing if self._copies[one] < often]
            if again:
                log.warning("A worker %s: another takes up its rounds too.", trouble)
                self._copies.update(again)
                self._begin(sorted(again, key=lambda spec: spec.index))
                return

    def _trouble(self, task: UnderWay) -> str:
        """What is wrong with the worker of a task; empty for nothing that is known."""
        now = self.clock()
        if now - task.heard > max(self.rules.patience, 3 * self._silence):
            return "has been silent for long"
        # Only what no task of as many rounds has ever taken is slow.
        known = [pace for rounds, pace in self._paces if rounds >= task.rounds and pace]
        if known and now - task.begun > self.rules.patience and task.pace > 2 * max(known):
            return "is slow"
        return ""

    def _put_away(self, spec: RoundSpec) -> None:
        if self.checkpoints is not None:
            self.checkpoints.drop(spec)
        for number, task in list(self._under_way.items()):
            if spec in task.left and not task.left & self._missing:
                self._abandon(number)  # it was a straggler, and all its rounds are there

    def _abandon(self, number: int) -> None:
        del self._under_way[number]
        self.crew.abandon(number)

    @property
    def _ending(self) -> bool:
        """Whether nothing new is begun any more."""
        return self._stopping or self._error is not None


def _no_state(spec: RoundSpec, /) -> None:
    """What is known of a round where nobody keeps checkpoints."""
