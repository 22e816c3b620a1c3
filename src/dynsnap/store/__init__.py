"""Rounds on disk: finished ones under their keys, unfinished ones as checkpoints; and ensembles."""

from dynsnap.store._container import Container, DamagedError
from dynsnap.store._container import read as read_container
from dynsnap.store._container import write as write_container
from dynsnap.store._ensembles import SavedEnsemble, load_ensemble, save_ensemble
from dynsnap.store._rounds import environment
from dynsnap.store._runfolder import RoundCheckpoints, RoundEntry, RunFolder

__all__ = [
    "Container",
    "DamagedError",
    "RoundCheckpoints",
    "RoundEntry",
    "RunFolder",
    "SavedEnsemble",
    "environment",
    "load_ensemble",
    "read_container",
    "save_ensemble",
    "write_container",
]
