"""Both sides of every theorem on real members: what is claimed, what holds, with how much room.

Members' scores have the shape (members, inputs, classes). The functions take any real vectors
(rows need not sum to one; a regression has one column) and any Minkowski order from 1 to infinity;
below 1 the theorems are false. `audit` computes everything for two generations at once.

What the theorems do not say is tested beside them: consistency and correct-consistency of an
ensemble may lie below the mean of its members', and an ensemble need not beat its best member.
"""

from typing import TYPE_CHECKING

from dynsnap._renamed import renamed_functions
from dynsnap.theory._audit import HONEST, Audit, EnsembleVsMembers, audit
from dynsnap.theory._bound import Bound, Range, correct_consistency_bounds, epsilon, upsilon
from dynsnap.theory._distance_bounds import (
    centroid_correctness_bound,
    centroid_distance_bound,
    ensemble_correct_distance_bound,
    ensemble_distance_bound,
    leave_out_bound,
    leave_out_correct_bound,
    reweighted_distance_bound,
)
from dynsnap.theory._leave_one_out import Effect, MemberEffects, leave_one_out
from dynsnap.theory._members import MemberPredictions, line_up, read_members

if not TYPE_CHECKING:  # to type checkers the old name is unknown
    __getattr__ = renamed_functions(__name__, {"Members": "MemberPredictions"})

__all__ = [
    "HONEST",
    "Audit",
    "Bound",
    "Effect",
    "EnsembleVsMembers",
    "MemberEffects",
    "MemberPredictions",
    "Range",
    "audit",
    "centroid_correctness_bound",
    "centroid_distance_bound",
    "correct_consistency_bounds",
    "ensemble_correct_distance_bound",
    "ensemble_distance_bound",
    "epsilon",
    "leave_one_out",
    "leave_out_bound",
    "leave_out_correct_bound",
    "line_up",
    "read_members",
    "reweighted_distance_bound",
    "upsilon",
]
