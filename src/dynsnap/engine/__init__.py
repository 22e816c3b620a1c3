"""Engines: rounds of training spread over the cores of a machine, or over many machines.

Whichever engine trains it, a round is the same round, bit by bit on a CPU. `ProcessesMap` and
`RayMap` spread comparisons of many files in the same way.
"""

from dynsnap.engine._engine import cores
from dynsnap.engine._map import ProcessesMap, RayMap
from dynsnap.engine._processes import ProcessesEngine
from dynsnap.engine._ray import RayEngine
from dynsnap.engine._wave import Rules

__all__ = ["ProcessesEngine", "ProcessesMap", "RayEngine", "RayMap", "Rules", "cores"]
