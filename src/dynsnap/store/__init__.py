"""Rounds on disk: finished ones under their keys, unfinished ones as checkpoints."""

from dynsnap.store._container import DamagedError
from dynsnap.store._runfolder import RoundCheckpoints, RoundEntry, RunFolder

__all__ = ["DamagedError", "RoundCheckpoints", "RoundEntry", "RunFolder"]
