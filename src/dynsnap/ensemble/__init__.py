"""Algorithm 1 and what surrounds it: pruning, combination, the paper's methods. Numpy only."""

from dynsnap.ensemble._beginnings import beginning, begins, longest
from dynsnap.ensemble._combine import COMBINATIONS, Combination, combine
from dynsnap.ensemble._gain import expected_gain
from dynsnap.ensemble._grow import (
    Members,
    grow,
    grow_rounds,
    members,
    rounds_used,
    train_rounds,
    wanted,
)
from dynsnap.ensemble._lesson import Lesson, Teaching, with_second
from dynsnap.ensemble._methods import METHODS, ROLLING, Method, cost, method, methods
from dynsnap.ensemble._plan import Beta, EnsemblePlan, Size
from dynsnap.ensemble._protocols import (
    Checkpoints,
    Engine,
    Monitor,
    NamingStore,
    Round,
    RoundSpec,
    RoundStore,
    Trainer,
    round_key,
    serial,
)
from dynsnap.ensemble._prune import survivors, threshold
from dynsnap.ensemble._recipe import Recipe, Selection
from dynsnap.ensemble._rolling import Rolling, best, judged
from dynsnap.ensemble._schedule import Schedule, ScheduleKind
from dynsnap.ensemble._snapshots import snapshot_epochs
from dynsnap.ensemble._stand_ins import CheckpointsInMemory, NoTrainer, RoundsInMemory

__all__ = [
    "COMBINATIONS",
    "METHODS",
    "ROLLING",
    "Beta",
    "Checkpoints",
    "CheckpointsInMemory",
    "Combination",
    "Engine",
    "EnsemblePlan",
    "Lesson",
    "Members",
    "Method",
    "Monitor",
    "NamingStore",
    "NoTrainer",
    "Recipe",
    "Rolling",
    "Round",
    "RoundSpec",
    "RoundStore",
    "RoundsInMemory",
    "Schedule",
    "ScheduleKind",
    "Selection",
    "Size",
    "Teaching",
    "Trainer",
    "beginning",
    "begins",
    "best",
    "combine",
    "cost",
    "expected_gain",
    "grow",
    "grow_rounds",
    "judged",
    "longest",
    "members",
    "method",
    "methods",
    "round_key",
    "rounds_used",
    "serial",
    "snapshot_epochs",
    "survivors",
    "threshold",
    "train_rounds",
    "wanted",
    "with_second",
]
