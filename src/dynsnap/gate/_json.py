"""A verdict as JSON, in a versioned shape that docs/gate.md describes."""

import math
from typing import Any

from dynsnap.gate._judge import Verdict
from dynsnap.gate._rule import Rule, RuleOutcome

SCHEMA = "dynsnap.gate/1"


def to_json(verdict: Verdict) -> dict[str, Any]:
    """A verdict as plain values that `json.dumps` takes; what is undefined or infinite is null.

    Example:
        >>> outcome = RuleOutcome(rule=Rule(metric="lost", at_most=0.02), part="all inputs",
        ...                       inputs=50, status="passed", judged=0.0)
        >>> verdict = Verdict(old="monday", new="tuesday", inputs=50, outcomes=(outcome,))
        >>> to_json(verdict)["passed"], to_json(verdict)["outcomes"][0]["rule"]["name"]
        (True, 'lost ≤ 0.02')
    """
    return {
        "schema": SCHEMA,
        "passed": verdict.passed,
        "verdict": verdict.word,
        "old": verdict.old,
        "new": verdict.new,
        "inputs": verdict.inputs,
        "verification": [
            {"name": name, "verified": each.verified, "detail": each.detail}
            for name, each in verdict.verification.items()
        ],
        "baselines": [each.facts() for each in verdict.baselines],
        "outcomes": [_outcome(outcome) for outcome in verdict.outcomes],
        "notes": list(verdict.notes),
    }


def _outcome(outcome: RuleOutcome) -> dict[str, Any]:
    estimate = outcome.estimate
    return {
        "rule": _rule(outcome.rule),
        "part": outcome.part,
        "inputs": outcome.inputs,
        "status": outcome.status,
        "value": _finite(estimate.value) if estimate else None,
        "low": _finite(estimate.low) if estimate else None,
        "high": _finite(estimate.high) if estimate else None,
        "judged": _finite(outcome.judged),
        "noise_floor": _finite(outcome.noise_floor),
        "reason": outcome.reason,
        "threshold": _finite(outcome.threshold),
        "multiple": _finite(outcome.multiple.value) if outcome.multiple else None,
        "confidence": outcome.confidence,
        "resolved": outcome.resolved,
        "needed": outcome.needed,
        "further": outcome.further,
        "further_differing": outcome.further_differing,
    }


def _rule(rule: Rule) -> dict[str, Any]:
    slice_ = None
    if rule.slice is not None:
        slice_ = {"column": rule.slice[0], "value": rule.slice[1]}
    return {
        "name": rule.title,
        "metric": rule.metric,
        "at_least": rule.at_least,
        "at_most": rule.at_most,
        "on": rule.on,
        "confidence": rule.confidence,
        "relative_to": rule.relative_to,
        "unresolved": rule.unresolved,
        "correction": rule.correction,
        "class": rule.class_name,
        "slice": slice_,
        "min_count": rule.min_count,
        "allow_odd": rule.allow_odd,
        **({"keys": dict(rule.keys)} if rule.keys else {}),
    }


def _finite(value: float | None) -> float | None:
    # JSON has no word for NaN or infinity.
    return value if value is not None and math.isfinite(value) else None
