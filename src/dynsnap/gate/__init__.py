"""May this retrain ship? Rules, and what holding two generations against them gives."""

from dynsnap.gate._inputs import UNKNOWN_LABELS, Side
from dynsnap.gate._json import to_json
from dynsnap.gate._judge import RuleOutcome, Status, Verdict, apart, judge
from dynsnap.gate._keys import RULE_KEYS, RuleKey, register_rule_key
from dynsnap.gate._read import inline_rule, read_rules
from dynsnap.gate._rule import EVERY, MIN_COUNT, Rule, confidences, top_k

__all__ = [
    "EVERY",
    "MIN_COUNT",
    "RULE_KEYS",
    "UNKNOWN_LABELS",
    "Rule",
    "RuleKey",
    "RuleOutcome",
    "Side",
    "Status",
    "Verdict",
    "apart",
    "confidences",
    "inline_rule",
    "judge",
    "read_rules",
    "register_rule_key",
    "to_json",
    "top_k",
]
