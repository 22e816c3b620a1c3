"""Bagging at the price of DynSnap-cyc's three trainings: three fresh networks that vote.

ExtBagging's members are single networks, whose labels are published, so that fewer of them can be
held against methods that cost less. Their scores are not, so they vote instead of averaging.
"""

from collections import defaultdict
from dataclasses import replace

import numpy as np

from dynsnap._types import AnyArray
from dynsnap.predictions import PredictionKey, StudyLabels
from dynsnap.study import MethodLabels

VOTE, NETWORKS = "vote-3", 3
_MEMBER = "singlebase"
_SEED = 1000  # replicates of one seed are numbered within this many, see _seeds.py


def vote(labels: MethodLabels) -> MethodLabels:
    """The first three single networks of each seed, as one method."""
    late = None if labels.late is None else _voted(labels.late)
    return MethodLabels(_voted(labels.test), late)


def _voted(of: StudyLabels) -> StudyLabels:
    members: dict[tuple[int, int], list[PredictionKey]] = defaultdict(list)
    for key in sorted(of.labels, key=lambda one: one.replicate):
        if key.method == _MEMBER and key.kind != "twin":
            members[key.generation, key.replicate // _SEED].append(key)
    return replace(
        of,
        labels={
            replace(keys[0], method=VOTE): majority([of.labels[key] for key in keys[:NETWORKS]])
            for keys in members.values()
            if len(keys) >= NETWORKS
        },
    )


def majority(labels: list[AnyArray]) -> AnyArray:
    """What two of three networks say; where all differ, what the first says."""
    first, second, third = labels
    found: AnyArray = np.where(second == third, second, first)
    return found
