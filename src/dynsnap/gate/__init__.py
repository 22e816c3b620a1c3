"""May this retrain ship? Rules, and what holding two generations against them gives."""

from dynsnap.gate._check import check, judge_pair
from dynsnap.gate._evidence import (
    further_disagreements,
    further_inputs,
    holm_levels,
    inputs_needed,
)
from dynsnap.gate._inputs import UNKNOWN_LABELS, Side
from dynsnap.gate._json import to_json
from dynsnap.gate._judge import Levels, Verdict, apart, judge, leveled
from dynsnap.gate._read import inline_rule, read_columns, read_rules
from dynsnap.gate._rule import (
    EVERY,
    MIN_COUNT,
    RULE_KEYS,
    UNRESOLVED,
    Rule,
    RuleKey,
    RuleOutcome,
    Status,
    Unresolved,
    confidences,
    groups,
    register_rule_key,
    top_k,
)

__all__ = [
    "EVERY",
    "MIN_COUNT",
    "RULE_KEYS",
    "UNKNOWN_LABELS",
    "UNRESOLVED",
    "Levels",
    "Rule",
    "RuleKey",
    "RuleOutcome",
    "Side",
    "Status",
    "Unresolved",
    "Verdict",
    "apart",
    "check",
    "confidences",
    "further_disagreements",
    "further_inputs",
    "groups",
    "holm_levels",
    "inline_rule",
    "inputs_needed",
    "judge",
    "judge_pair",
    "leveled",
    "read_columns",
    "read_rules",
    "register_rule_key",
    "to_json",
    "top_k",
]
