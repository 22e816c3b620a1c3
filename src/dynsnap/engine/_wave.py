"""The schedule: which worker trains which rounds, and what happens when one fails.

It is the same for every kind of worker.
"""

import logging
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from dynsnap.engine._worker import (
    EpochDone,
    Event,
    RoundDone,
    StateSaved,
    Task,
    TaskEnded,
    TaskFailed,
    TaskLost,
)
from dynsnap.ensemble import Checkpoints, Monitor, Round, RoundSpec
from dynsnap.errors import DynSnapError, Interrupted, PlanError, TrainingError

log = logging.getLogger("dynsnap.engine")

More: TypeAlias = Callable[[], Sequence[RoundSpec]]

_TICK = 0.2  # seconds between two checks of the clock and of requests to stop


class TaskPool(Protocol):
    """Workers, as the schedule sees them: start a task, wait for events, stop."""

    def places(self) -> int:
        """How many tasks can run at once, now."""
        ...

    def begin(self, task: Task, /) -> None: ...

    def events(self, seconds: float, /) -> Iterable[tuple[int, Event]]:
        """Events with the numbers of their tasks; waits up to `seconds` for the first."""
        ...

    def stop(self) -> None:
        """Ask every worker to stop at its next checkpoint."""
        ...

    def abandon(self, number: int, /) -> None:
        """Drop a task whose results are no longer needed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How rounds are distributed over workers, and how often one is retried.

    Attributes:
        attempts: Attempts per round before its error stops the study.
        together: The largest number of rounds in one task.
        patience: Seconds without an event from a worker after which an idle worker starts a copy of
            its task, or three times the longest gap so far if that is more. A worker that is twice
            as slow as any other with as many rounds is duplicated after the same time.
        side_by_side: Whether a worker trains the rounds of a task side by side at little extra
            cost, as a GPU does. A few large tasks are then faster and cheaper than many small
            ones, although more workers are idle at the end. None leaves it to the engine.
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


@dataclass(eq=False)
class RunningTask:
    """A task that a worker is busy with.

    Attributes:
        left: Its unfinished rounds.
        begun: When it started.
        heard: The time of the last event from its worker.
        rounds: The number of rounds at its start.
        first: For each round, the time and number of the first reported epoch.
        pace: Seconds per epoch so far; 0 while unknown.
        overtaken: Whether another worker runs a copy.
    """

    left: set[RoundSpec]
    begun: float
    heard: float
    rounds: int
    first: dict[RoundSpec, tuple[float, int]] = field(default_factory=dict)
    pace: float = 0.0
    overtaken: bool = False

    def tell(self, spec: RoundSpec, epoch: int, now: float) -> None:
        """Update the pace with an epoch."""
        since, before = self.first.setdefault(spec, (now, epoch))
        if epoch > before:
            self.pace = (now - since) / (epoch - before)


@dataclass(eq=False, kw_only=True)
class Wave:
    """Train a set of rounds on a pool of workers.

    Attributes:
        clock: Returns seconds.
    """

    pool: TaskPool
    rules: Rules
    monitor: Monitor | None = None
    checkpoints: Checkpoints | None = None
    clock: Callable[[], float] = time.monotonic
    _waiting: deque[RoundSpec] = field(default_factory=deque)
    _missing: set[RoundSpec] = field(default_factory=set)
    _running: dict[int, RunningTask] = field(default_factory=dict)
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
            more: Called for further rounds whenever one is done and stored.

        Raises:
            Interrupted: The monitor asked to stop, and every worker stopped.
            DynSnapError: The error of a round, after the other running tasks are done.
        """
        self._waiting.extend(ranked(specs))
        self._missing.update(specs)
        try:
            # A worker whose rounds have all arrived still has to report the end of its task.
            while self._missing or self._running:
                self._check()
                self._hand_out()
                if not self._running:
                    break
                for number, event in self.pool.events(_TICK):
                    done = self._handle(number, event)
                    if done is not None:
                        yield done
                        # The caller asks for the next round only after it has stored this one.
                        self._finish(done.spec)
                        self._admit(more() if more is not None else ())
        finally:
            for number in list(self._running):
                self._abandon(number)
        if self._error is not None:
            raise self._error
        if self._missing:
            raise Interrupted(
                "Training stopped as asked. Finished rounds are kept; run the same again to go on."
            )

    def _admit(self, specs: Sequence[RoundSpec]) -> None:
        """Add rounds to the front of the queue: ensembles that ask may ask again."""
        self._waiting.extendleft(reversed(ranked(specs)))
        self._missing.update(specs)

    def _hand_out(self) -> None:
        places = self.pool.places()
        begun = 0
        while self._waiting and len(self._running) < places and not self._ending:
            if self.rules.side_by_side:  # a few large tasks are faster than many small ones
                fair = math.ceil(len(self._waiting) / (places - begun))
            else:  # smaller and smaller, so that all workers finish at about the same time
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
        """The number of failures after which a round runs alone and cannot fail others.

        Side by side that is expensive, so only on the last attempt.
        """
        return max(1, self.rules.attempts - 1) if self.rules.side_by_side else 1

    def _begin(self, specs: Sequence[RoundSpec]) -> None:
        load = self.checkpoints.load if self.checkpoints is not None else _no_state
        found = ((spec, load(spec)) for spec in specs)
        states = {spec: state for spec, state in found if state is not None}
        self._count += 1
        self.pool.begin(Task(self._count, tuple(specs), states))
        now = self.clock()
        self._running[self._count] = RunningTask(set(specs), now, now, len(specs))

    def _handle(self, number: int, event: Event) -> Round | None:
        """Process an event; return its round if that is still missing."""
        task = self._running.get(number)
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
                del self._running[number]
                self._fail(error, text)
            case TaskLost(reason):
                self._end(number, reason)
        return None

    def _end(self, number: int, reason: str, details: str = "") -> None:
        """End a task. Retry its unfinished rounds up to `attempts` times."""
        task = self._running.pop(number)
        if not task.left:
            self._paces.append((task.rounds, task.pace))
        if self._ending:
            return
        elsewhere = {spec for other in self._running.values() for spec in other.left}
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
            if self._running:
                log.warning("%s. Rounds that are under way are waited for.", text.rstrip("."))

    def _check(self) -> None:
        """Pass on a request to stop, and duplicate the task of a stuck worker."""
        if self.monitor is not None and not self._stopping and self.monitor.stopping():
            self._stopping = True
            self.pool.stop()
        if self._waiting or self._ending or len(self._running) >= self.pool.places():
            return
        for task in list(self._running.values()):
            problem = "" if task.overtaken else self._problem(task)
            if not problem:
                continue
            task.overtaken = True
            often = self.rules.attempts - 1
            again = [one for one in task.left & self._missing if self._copies[one] < often]
            if again:
                log.warning("A worker %s: another takes up its rounds too.", problem)
                self._copies.update(again)
                self._begin(sorted(again, key=lambda spec: spec.index))
                return

    def _problem(self, task: RunningTask) -> str:
        """What is wrong with the worker of a task; empty if nothing is."""
        now = self.clock()
        if now - task.heard > max(self.rules.patience, 3 * self._silence):
            return "has been silent for long"
        # Compare with tasks of at least as many rounds only.
        known = [pace for rounds, pace in self._paces if rounds >= task.rounds and pace]
        if known and now - task.begun > self.rules.patience and task.pace > 2 * max(known):
            return "is slow"
        return ""

    def _finish(self, spec: RoundSpec) -> None:
        if self.checkpoints is not None:
            self.checkpoints.drop(spec)
        for number, task in list(self._running.items()):
            if spec in task.left and not task.left & self._missing:
                self._abandon(number)  # a straggler: all its rounds have arrived from elsewhere

    def _abandon(self, number: int) -> None:
        del self._running[number]
        self.pool.abandon(number)

    @property
    def _ending(self) -> bool:
        """Whether no further task may start."""
        return self._stopping or self._error is not None


def _no_state(spec: RoundSpec, /) -> None:
    """The checkpoint of a round where none are kept."""


def ranked(specs: Sequence[RoundSpec]) -> list[RoundSpec]:
    """The order in which rounds start.

    The longest first, because a long round that starts last runs alone at the end. Then rounds of
    which few are wanted, because ensembles may ask for more after them. Similar rounds are
    neighbours, so that they can be trained side by side.
    """
    alike = Counter((spec.recipe, spec.replicate, spec.generation) for spec in specs)

    def rank(spec: RoundSpec) -> tuple[int, int, int]:
        few = alike[spec.recipe, spec.replicate, spec.generation]
        return -spec.recipe.epochs, few, -spec.generation

    return sorted(specs, key=rank)
