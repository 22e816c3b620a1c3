"""Snapshots of a training loop of your own: rounds, run folders and ensembles around any trainer.

`SnapshotKeeper` goes around a loop that is written by hand. Beside it are adapters for libraries
with a loop: `dynsnap.keeper.lightning`, `dynsnap.keeper.transformers`, `dynsnap.keeper.skorch` and
`dynsnap.keeper.keras`.
"""

from typing import TYPE_CHECKING, Any

from dynsnap.keeper._ensemble import ScoreSnapshot, SnapshotEnsemble, load_ensemble
from dynsnap.keeper._folder import EvaluationSet
from dynsnap.keeper._keeper import SnapshotKeeper
from dynsnap.keeper._round import TrainingRound, torch_part

if TYPE_CHECKING:
    from dynsnap.train import ModuleScores as ModuleScores

__all__ = [
    "EvaluationSet",
    "ModuleScores",
    "ScoreSnapshot",
    "SnapshotEnsemble",
    "SnapshotKeeper",
    "TrainingRound",
    "load_ensemble",
]


def __getattr__(name: str) -> Any:
    if name == "ModuleScores":  # torch is imported when it is asked for
        return torch_part().ModuleScores
    raise AttributeError(f"module 'dynsnap.keeper' has no attribute {name!r}")
