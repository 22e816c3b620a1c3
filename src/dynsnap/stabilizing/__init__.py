"""Keep deployed labels that a retrain has no reason to change, in files and in servers."""

from dynsnap.stabilizing._choose import Choice, choose_cost_rule, choose_margin
from dynsnap.stabilizing._rules import COST_RATIO, Belief, CostRule, MarginRule, Rule
from dynsnap.stabilizing._stabilizer import Stabilizer
from dynsnap.stabilizing._update import rescore_first, update

__all__ = [
    "COST_RATIO",
    "Belief",
    "Choice",
    "CostRule",
    "MarginRule",
    "Rule",
    "Stabilizer",
    "choose_cost_rule",
    "choose_margin",
    "rescore_first",
    "update",
]
