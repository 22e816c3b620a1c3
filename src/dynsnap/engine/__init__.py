"""Engines: rounds of training spread over the cores of a machine, or over many machines.

Whichever engine trains it, a round is the same round, bit by bit on a CPU.
"""

from dynsnap.engine._processes import ProcessesEngine
from dynsnap.engine._ray import RayEngine
from dynsnap.engine._spread import Rules

__all__ = ["ProcessesEngine", "RayEngine", "Rules"]
