"""Rounds on disk: finished ones under their keys, unfinished ones as checkpoints; and ensembles."""

from dynsnap.store._container import DamagedError
from dynsnap.store._ensembles import SavedEnsemble, load_ensemble, save_ensemble
from dynsnap.store._rounds import environment
from dynsnap.store._runfolder import FolderLock, RoundCheckpoints, RoundEntry, RunFolder

__all__ = [
    "DamagedError",
    "FolderLock",
    "RoundCheckpoints",
    "RoundEntry",
    "RunFolder",
    "SavedEnsemble",
    "environment",
    "load_ensemble",
    "save_ensemble",
]
