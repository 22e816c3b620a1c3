"""A cluster of GPUs that exists on paper: the real plan and schedule, with a simulated clock.

Nothing is trained. Rounds take the time that was measured on one GPU, and their accuracies are made
up, so that ensembles ask for about as many rounds as real ones do. `simulate.py` prints the tables.
"""

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from dynsnap import seeds
from dynsnap._types import Floats
from dynsnap.engine import Rules
from dynsnap.engine._wave import More, Wave
from dynsnap.engine._worker import (
    EpochDone,
    Event,
    RoundDone,
    StateSaved,
    Task,
    TaskEnded,
    TaskLost,
)
from dynsnap.ensemble import (
    CheckpointsInMemory,
    NoTrainer,
    Round,
    RoundsInMemory,
    RoundSpec,
    Trainer,
)
from dynsnap.errors import PlanError
from dynsnap.study import RoundManager, StudyPlan, ensembles_of, trained_as

_TOLD = 10  # epochs between two signs of life; real workers tell every one


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """How long one GPU takes: a step of several rounds side by side takes `base + each * rounds`.

    The defaults fit ResNet-56 at batch 32 on one H200: 12, 24 and 48 rounds as one grouped network
    took 53, 67 and 79 thousand member-images per second, and 50 in place of 53 with validation
    after every epoch. Fewer than 12 rounds were not measured: there the line is only continued.

    Attributes:
        base: Seconds of a step, whatever the number of rounds.
        each: Seconds more for each round.
        beside: What validation adds, as a share.
        build: Seconds before the first step of a task: compiling and capturing.
        save: Seconds between two checkpoints of a round.
        batch: Images of a step.

    Example:
        >>> [round(32 * rounds / Gpu(beside=0).step(rounds) / 1000) for rounds in (12, 24, 48)]
        [53, 68, 79]
    """

    base: float = 3.2e-3
    each: float = 0.338e-3
    beside: float = 0.06
    build: float = 100.0
    save: float = 900.0
    batch: int = 32

    def step(self, rounds: int) -> float:
        """Seconds of one step of so many rounds side by side."""
        return (self.base + self.each * rounds) * (1 + self.beside)

    def course(self, left: Sequence[int]) -> tuple[Floats, Floats]:
        """When rounds that are side by side have taken so many steps: steps, and seconds.

        All take their steps together. When half of the rounds are through, a smaller network is
        built for those that are left.

        Args:
            left: How many steps each round has to take.
        """
        steps, seconds = [0.0], [self.build]
        width = len(left)
        for place, end in enumerate(sorted(left)):
            live = len(left) - place
            if live <= width / 2:
                width = live
                steps.append(steps[-1])
                seconds.append(seconds[-1] + self.build)
            seconds.append(seconds[-1] + (end - steps[-1]) * self.step(width))
            steps.append(float(end))
        return np.array(steps), np.array(seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mishaps:
    """What goes wrong.

    Attributes:
        straggling: Share of tasks that run slowly.
        slowness: How many times as long these take.
        failing: Share of nodes that die in an hour, with all that their GPUs have in hand.
        repair: Seconds until a dead node is replaced.
        node: GPUs of a node.
    """

    straggling: float = 0.0
    slowness: float = 3.0
    failing: float = 0.0
    repair: float = 600.0
    node: int = 8

    def __post_init__(self) -> None:
        for name in ("straggling", "failing"):
            if not 0 <= getattr(self, name) < 1:
                raise PlanError(f"`{name}` must be a share below 1, got {getattr(self, name):g}.")


@dataclass(eq=False)
class _Job:
    """A task in the hands of a GPU.

    Attributes:
        begun: When.
        saved: Since when nothing of it is safe.
        events: What happens, and when, in this order.
    """

    task: Task
    gpu: int
    begun: float
    saved: float
    events: Iterator[tuple[float, Event]]


@dataclass(eq=False)
class SimulatedPool:
    """GPUs that take as long as a rule says.

    Attributes:
        now: Seconds since the start.
        busy: Time with a task in hand, of all GPUs.
        down: Time that GPUs were lost with their nodes.
        lost: Busy time that was lost with them.
    """

    gpus: int
    gpu: Gpu
    images: Sequence[int]
    mishaps: Mishaps
    seed: int = 0
    now: float = 0.0
    busy: float = 0.0
    down: float = 0.0
    lost: float = 0.0
    _jobs: dict[int, _Job] = field(default_factory=dict)
    _waiting: deque[Task] = field(default_factory=deque)
    _dead: dict[int, float] = field(default_factory=dict)
    _agenda: list[tuple[float, int, Callable[[], list[tuple[int, Event]]]]] = field(
        default_factory=list
    )
    _order: Iterator[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self._rng = seeds.generator(self.seed, "mishaps")
        self._free = list(range(self.gpus))
        if self.mishaps.failing:
            for node in range(0, self.gpus, self.mishaps.node):
                self._fail_some_day(node)

    def places(self) -> int:
        """GPUs that are there now, but at least one: a dead node comes back."""
        return max(1, self.gpus - len(self._dead))

    def begin(self, task: Task, /) -> None:
        """Hand a task to a GPU that is free, or as soon as one is."""
        self._waiting.append(task)
        self._hand_over()

    def events(self, seconds: float, /) -> Iterator[tuple[int, Event]]:
        """What happens next, whenever that is: the clock jumps there."""
        when, _, happen = heapq.heappop(self._agenda)
        self.now = max(self.now, when)
        yield from happen()

    def stop(self) -> None:
        """Never called: a simulated study runs to its end."""

    def abandon(self, number: int, /) -> None:
        """Take a task out of the hands of its GPU."""
        if number in self._jobs:
            self.lost += self.now - self._jobs[number].begun
            self._free.append(self._taken(number).gpu)
            self._hand_over()

    def finish(self) -> None:
        """The last round is there: see how long dead nodes have been so."""
        self.down += sum(self.now - since for since in self._dead.values())

    def _hand_over(self) -> None:
        while self._waiting and self._free:
            task = self._waiting.popleft()
            job = _Job(task, self._free.pop(0), self.now, self.now, iter(()))
            job.events = iter(sorted(self._plan(task), key=lambda event: event[0]))
            self._jobs[task.number] = job
            self._go_on(job)

    def _plan(self, task: Task) -> Iterator[tuple[float, Event]]:
        """What becomes of a task if nothing else happens."""
        slow = self._rng.random() < self.mishaps.straggling
        before = [int(task.states.get(spec, b"0")) for spec in task.specs]  # epochs
        steps = [-(-self.images[spec.generation - 1] // self.gpu.batch) for spec in task.specs]
        left = [
            each * (spec.recipe.epochs - had)
            for spec, each, had in zip(task.specs, steps, before, strict=True)
        ]
        taken, times = self.gpu.course(left)
        times *= self.mishaps.slowness if slow else 1
        last = 0.0
        for spec, each, had in zip(task.specs, steps, before, strict=True):
            epochs = range(had + 1, spec.recipe.epochs + 1)
            *early, end = np.interp([each * (done - had) for done in epochs], taken, times).tolist()
            saved = self.gpu.save
            for done, when in zip(epochs, early, strict=False):
                if done % _TOLD == 0:
                    yield self.now + when, EpochDone(spec, done - 1, 0.0)
                if when >= saved:
                    yield self.now + when, StateSaved(spec, str(done).encode())
                    saved = when + self.gpu.save
            yield self.now + end, RoundDone(_made(spec, self.seed))
            last = max(last, end)
        yield self.now + last, TaskEnded()

    def _go_on(self, job: _Job) -> None:
        when, event = next(job.events)

        def happen() -> list[tuple[int, Event]]:
            if self._jobs.get(job.task.number) is not job:
                return []  # it was lost in the meantime
            if isinstance(event, TaskEnded):
                self._free.append(self._taken(job.task.number).gpu)
                self._hand_over()
            else:
                job.saved = self.now if isinstance(event, StateSaved) else job.saved
                self._go_on(job)
            return [(job.task.number, event)]

        self._at(when, happen)

    def _taken(self, number: int) -> _Job:
        job = self._jobs.pop(number)
        self.busy += self.now - job.begun
        return job

    def _fail_some_day(self, node: int) -> None:
        rate = -np.log1p(-self.mishaps.failing) / 3600
        self._at(self.now + self._rng.exponential(1 / rate), lambda: self._fail(node))

    def _fail(self, node: int) -> list[tuple[int, Event]]:
        gone = set(range(node, min(node + self.mishaps.node, self.gpus)))
        numbers = [number for number, job in self._jobs.items() if job.gpu in gone]
        for number in numbers:
            self.lost += self.now - self._taken(number).saved
        self._free = [gpu for gpu in self._free if gpu not in gone]
        self._dead.update(dict.fromkeys(gone, self.now))
        self._at(self.now + self.mishaps.repair, lambda: self._repair(node, gone))
        return [(number, TaskLost("its node died")) for number in numbers]

    def _repair(self, node: int, gone: set[int]) -> list[tuple[int, Event]]:
        self.down += sum(self.now - self._dead.pop(gpu) for gpu in gone)
        self._free += sorted(gone)
        self._fail_some_day(node)
        self._hand_over()
        return []

    def _at(self, when: float, happen: Callable[[], list[tuple[int, Event]]]) -> None:
        heapq.heappush(self._agenda, (when, next(self._order), happen))


def _made(spec: RoundSpec, seed: int) -> Round:
    """A round whose members are about equally good, so that about half are above their mean."""
    rng = seeds.generator(seed, spec.canonical(), "made up")
    members = spec.recipe.members
    return Round(
        spec=spec,
        accuracy=np.clip(rng.normal(0.7, 0.01, members), 0, 1),
        epochs=np.zeros(members, np.intp),
        scores={},
        curve=np.zeros(spec.recipe.epochs),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """How a study went, all times in seconds.

    Attributes:
        gpus: How many there were.
        rounds: How many rounds were trained.
        wall: From the first task to the last round.
        busy: Time of all GPUs with a task in hand.
        down: Time of all GPUs whose node was dead.
        idle: Time of all GPUs that were there without a task.
        lost: Part of the busy time that came to nothing, since a node died.
    """

    gpus: int
    rounds: int
    wall: float
    busy: float
    down: float
    idle: float
    lost: float

    @property
    def busy_share(self) -> float:
        """Share of the time that GPUs had something to do."""
        return self.busy / (self.gpus * self.wall)

    @property
    def gpu_hours(self) -> float:
        """What is paid for: all GPUs, until the last round is there."""
        return self.gpus * self.wall / 3600


def simulate(
    plan: StudyPlan,
    *,
    images: Sequence[int],
    gpus: int,
    gpu: Gpu | None = None,
    mishaps: Mishaps | None = None,
    rules: Rules | None = None,
    seed: int = 0,
) -> Simulated:
    """Run a study on paper.

    Args:
        plan: The study.
        images: Training images of each generation.
        gpus: How many GPUs there are; each takes one task at a time.
        gpu: How fast they are.
        mishaps: What goes wrong; nothing unless said otherwise.
        rules: How rounds are handed out.
        seed: Of the mishaps, and of what rounds give.
    """
    if gpus < 1:
        raise PlanError(f"`gpus` must be at least 1, got {gpus}.")
    pool = SimulatedPool(
        gpus=gpus, gpu=gpu or Gpu(), images=images, mishaps=mishaps or Mishaps(), seed=seed
    )
    store = RoundsInMemory()
    manager = RoundManager(NoTrainer(), store, trained_as=trained_as(plan))
    engine = _Engine(pool, rules or Rules())
    manager.grow(ensembles_of(plan, len(images)), engine=engine, ahead=plan.ahead)
    pool.finish()
    assert len(store) == manager.trained, "a round came twice"
    return Simulated(
        gpus=gpus,
        rounds=len(store),
        wall=pool.now,
        busy=pool.busy,
        down=pool.down,
        idle=gpus * pool.now - pool.busy - pool.down,
        lost=pool.lost,
    )


class _Engine:
    takes_more = True

    def __init__(self, pool: SimulatedPool, rules: Rules) -> None:
        self._pool, self._rules = pool, rules
        self._states = CheckpointsInMemory()

    def __call__(
        self,
        trainer: Trainer,
        specs: Sequence[RoundSpec],
        /,
        *,
        more: More | None = None,
    ) -> Iterator[Round]:
        clock = lambda: self._pool.now  # noqa: E731
        wave = Wave(pool=self._pool, rules=self._rules, clock=clock, checkpoints=self._states)
        return wave.run(specs, more)
