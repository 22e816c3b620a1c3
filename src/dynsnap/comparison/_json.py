"""A comparison as JSON, in a versioned shape that docs/json.md describes."""

import math
from typing import Any

from dynsnap.comparison._results import (
    ClassChange,
    Comparison,
    Estimate,
    Estimates,
    FlippedInput,
    GenerationResult,
    GroupResult,
    PairResult,
    TransitionCounts,
    UnstableInput,
)

SCHEMA = "dynsnap.comparison/1"
_MATRICES = ("consistency", "correct_consistency")


def to_json(comparison: Comparison) -> dict[str, Any]:
    """A comparison as plain values that `json.dumps` takes; what is undefined or infinite is null.

    Example:
        >>> import dynsnap
        >>> old = dynsnap.Predictions(ids=[1, 2], classes=["a", "b"], labels=[0, 1])
        >>> new = dynsnap.Predictions(ids=[1, 2], classes=["a", "b"], labels=[0, 0])
        >>> found = to_json(dynsnap.compare(old, new, names=["v1", "v2"]))
        >>> pair = found["pairs"][0]
        >>> found["schema"], pair["old"], pair["metrics"]["churn"]["value"]
        ('dynsnap.comparison/1', 'v1', 0.5)
    """
    report = comparison.alignment
    return {
        "schema": SCHEMA,
        "task": comparison.task,
        "inputs": comparison.inputs,
        "unlabelled": comparison.unlabelled,
        "classes": list(comparison.classes),
        "slices": {column: list(values) for column, values in comparison.slices.items()},
        "new_classes": [_changed_class(each) for each in comparison.new_classes],
        "dropped_classes": [_changed_class(each) for each in comparison.dropped_classes],
        "families": {name: dict(family) for name, family in comparison.families.items()},
        "has_truth": comparison.has_truth,
        "has_scores": comparison.has_scores,
        "weighted": comparison.weighted,
        "confidence": comparison.confidence,
        "resamples": comparison.resamples,
        "generations": [_generation(each) for each in comparison.generations],
        "pairs": [_pair(each) for each in comparison.pairs],
        "matrices": {
            name: [[_finite(value) for value in row] for row in comparison.matrix(name).tolist()]
            for name in _MATRICES
            if all(name in pair.metrics for pair in comparison.pairs)
        },
        "averages": _metrics(comparison.averages),
        "agreement": _metrics(comparison.agreement),
        "ambiguity_so_far": list(comparison.ambiguity_so_far),
        "restless": [_unstable(each) for each in comparison.unstable],
        "alignment": {
            "names": list(report.names),
            "rows": list(report.rows),
            "shared": report.shared,
            "total": report.total,
            "missing": list(report.missing),
            "examples": [list(each) for each in report.examples],
            "same_order": report.same_order,
        },
        "notes": list(comparison.notes),
    }


def _changed_class(change: ClassChange) -> dict[str, str]:
    return {"name": change.name, "generation": change.generation}


def _generation(generation: GenerationResult) -> dict[str, Any]:
    return {"name": generation.name, "metrics": _metrics(generation.metrics)}


def _pair(pair: PairResult) -> dict[str, Any]:
    return {
        "old": pair.old,
        "new": pair.new,
        "metrics": _metrics(pair.metrics),
        "transitions": _transitions(pair.transitions),
        "mcnemar": pair.mcnemar,
        "flows": [
            {"truth": flow.truth, "old": flow.old, "new": flow.new, "inputs": flow.inputs}
            for flow in pair.flows
        ],
        "lost_between": {
            name: [{"truth": flow.truth, "new": flow.new, "inputs": flow.inputs} for flow in flows]
            for name, flows in pair.lost_between.items()
        },
        "groups": [_group(each) for each in pair.groups if not each.whole],
        "flipped": [_flipped(each) for each in pair.flipped],
        "noise_floor": None if pair.noise_floor is None else _metrics(pair.noise_floor),
    }


def _group(group: GroupResult) -> dict[str, Any]:
    return {
        "kind": group.kind,
        "column": group.column,
        "name": group.name,
        "classes": list(group.classes),
        "inputs": group.inputs,
        "unlabelled": 0 if group.labelled is None else group.inputs - group.labelled.inputs,
        "weight": group.weight,
        "metrics": _metrics(group.metrics),
        "old_metrics": _metrics(group.old_metrics),
        "transitions": _transitions(group.transitions),
        "mcnemar": group.changed,
        "corrected": group.corrected,
    }


def _transitions(counts: TransitionCounts | None) -> dict[str, int] | None:
    if counts is None:
        return None
    return {
        "kept": counts.kept,
        "gained": counts.gained,
        "lost": counts.lost,
        "never": counts.never,
    }


def _flipped(one: FlippedInput) -> dict[str, Any]:
    return {
        "id": one.id,
        "truth": one.truth,
        "old_label": one.old_label,
        "new_label": one.new_label,
        "old_confidence": one.old_confidence,
        "new_confidence": one.new_confidence,
        "slices": list(one.slices),
    }


def _unstable(one: UnstableInput) -> dict[str, Any]:
    return {"id": one.id, "truth": one.truth, "labels": list(one.labels), "changes": one.changes}


def _metrics(metrics: Estimates) -> dict[str, Any]:
    return {name: _estimate(estimate) for name, estimate in metrics.items()}


def _estimate(estimate: Estimate) -> dict[str, Any]:
    return {
        "value": _finite(estimate.value),
        "low": _finite(estimate.low),
        "high": _finite(estimate.high),
    }


def _finite(value: float | None) -> float | None:
    # JSON has no word for NaN or infinity.
    return value if value is not None and math.isfinite(value) else None
