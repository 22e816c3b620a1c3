"""A study on simulated GPUs: the real plan, rounds and schedule, with a crew and a clock of paper.

Nothing is trained. Rounds take the time that was measured for one GPU, and what they give is made
up, so that ensembles ask for about as many rounds as real ones do.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dynsnap.engine._simulated_crew import Gpu, Mishaps, SimulatedCrew
from dynsnap.engine._spread import More, Rules, Wave
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
    crew = SimulatedCrew(
        gpus=gpus, gpu=gpu or Gpu(), images=images, mishaps=mishaps or Mishaps(), seed=seed
    )
    store = RoundsInMemory()
    manager = RoundManager(NoTrainer(), store, trained_as=trained_as(plan))
    engine = _Engine(crew, rules or Rules())
    manager.grow(ensembles_of(plan, len(images)), engine=engine, ahead=plan.ahead)
    crew.finish()
    assert len(store) == manager.trained, "a round came twice"
    return Simulated(
        gpus=gpus,
        rounds=len(store),
        wall=crew.now,
        busy=crew.busy,
        down=crew.down,
        idle=gpus * crew.now - crew.busy - crew.down,
        lost=crew.lost,
    )


class _Engine:
    takes_more = True

    def __init__(self, crew: SimulatedCrew, rules: Rules) -> None:
        self._crew, self._rules = crew, rules
        self._states = CheckpointsInMemory()

    def __call__(
        self,
        trainer: Trainer,
        specs: Sequence[RoundSpec],
        /,
        *,
        more: More | None = None,
    ) -> Iterator[Round]:
        clock = lambda: self._crew.now  # noqa: E731
        wave = Wave(crew=self._crew, rules=self._rules, clock=clock, checkpoints=self._states)
        return wave.run(specs, more)
