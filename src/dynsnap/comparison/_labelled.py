"""A comparison in which some inputs have no true class (yet).

Metrics that need the truth are measured on the inputs that have one, all others on every input.
Both come from the same pass and the same draws, so that they stay paired.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

from dynsnap.comparison._groups import corrected
from dynsnap.comparison._readings import ordered
from dynsnap.comparison._results import (
    Comparison,
    Estimate,
    Estimates,
    GroupResult,
    LabelledInputs,
    PairResult,
    TransitionCounts,
)
from dynsnap.metrics import metric

_NOWHERE = "no input there has a true class"


def with_unlabelled(labelled: Comparison, whole: Comparison, *, weight: float) -> Comparison:
    """One comparison from those of the labelled inputs and of all inputs without the truth.

    Args:
        labelled: That of the labelled inputs.
        whole: That of all inputs.
        weight: The weight of the labelled inputs.
    """
    pairs = tuple(_pair(one, every) for one, every in zip(labelled.pairs, whole.pairs, strict=True))
    return replace(
        labelled,
        inputs=whole.inputs,
        pairs=pairs,
        averages=_metrics(labelled.averages, whole.averages),
        agreement=_metrics(labelled.agreement, whole.agreement),
        counting=whole.counting,
        effective=whole.effective,
        labelled=LabelledInputs(
            inputs=labelled.inputs,
            weight=weight,
            churn=labelled.pairs[0].metrics["churn"].value,
            counting=labelled.counting,
            effective=labelled.effective,
        ),
    )


def _pair(labelled: PairResult, whole: PairResult) -> PairResult:
    flows = sorted((*labelled.flows, *whole.flows), key=lambda flow: -flow.inputs)
    floor = _both(labelled.noise_floor, whole.noise_floor)
    known = {group.key: group for group in labelled.groups}
    groups = [group for group in labelled.groups if group.kind != "slice"]
    # Of groups that no labelled input is in, every metric of the truth is there and undefined.
    named = next((each.metrics for each in labelled.groups), {})
    nothing = {name: Estimate(math.nan, reason=_NOWHERE) for name in named if _needs_truth(name)}
    slices = (group for group in whole.groups if group.kind == "slice")
    groups += [_group(known.get(group.key), group, nothing) for group in slices]
    return replace(
        labelled,
        metrics=_metrics(labelled.metrics, whole.metrics),
        flows=tuple(flows),
        groups=corrected(groups),
        noise_floor=floor,
        multiples=_both(labelled.multiples, whole.multiples),
    )


def _group(
    labelled: GroupResult | None, whole: GroupResult, nothing: Mapping[str, Estimate]
) -> GroupResult:
    if labelled is None:
        return replace(
            whole,
            metrics=ordered({**whole.metrics, **nothing}),
            transitions=TransitionCounts(kept=0, gained=0, lost=0, never=0),
            labelled=LabelledInputs(
                inputs=0,
                weight=0.0,
                counting=None if whole.counting is None else 0,
                effective=None if whole.effective is None else 0.0,
            ),
        )
    return replace(
        labelled,
        inputs=whole.inputs,
        weight=whole.weight,
        counting=whole.counting,
        effective=whole.effective,
        metrics=_metrics(labelled.metrics, whole.metrics),
        noise_floor=_both(labelled.noise_floor, whole.noise_floor),
        multiples=_both(labelled.multiples, whole.multiples),
        labelled=LabelledInputs(
            inputs=labelled.inputs,
            weight=labelled.weight,
            counting=labelled.counting,
            effective=labelled.effective,
        ),
    )


def _metrics(labelled: Estimates, whole: Estimates) -> Estimates:
    """Those of the labelled inputs that need the truth, and all others of all inputs."""
    kept = {name: found for name, found in labelled.items() if _needs_truth(name)}
    return ordered({**kept, **whole})


def _both(labelled: Estimates | None, whole: Estimates | None) -> Estimates | None:
    return labelled if labelled is None or whole is None else _metrics(labelled, whole)


def _needs_truth(name: str) -> bool:
    return "truth" in metric(name).needs
