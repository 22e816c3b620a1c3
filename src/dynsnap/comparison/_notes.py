"""What a reader of a comparison should know, one sentence each."""

import math
from collections.abc import Iterable, Iterator, Mapping

from dynsnap.comparison._count import Counted
from dynsnap.comparison._results import Estimate
from dynsnap.metrics import catalogue
from dynsnap.predictions._text import shown

_PROFUSE = 6  # names listed in one sentence


def notes(counted: Counted, measured: Mapping[str, Mapping[str, Estimate]]) -> tuple[str, ...]:
    """The sentences of a comparison.

    Args:
        counted: What was counted.
        measured: Metrics by what they are about, such as "old → new".
    """
    return tuple(_sentences(counted, measured))


def _sentences(counted: Counted, measured: Mapping[str, Mapping[str, Estimate]]) -> Iterator[str]:
    layout = counted.tally.layout
    if counted.report.partial:
        yield counted.report.sentence()
    if not layout.truth:
        yield (
            "The true classes are not known, so everything that needs them is left out: "
            f"{_needing('truth')}."
        )
    bare = [name for name, has in zip(counted.report.names, layout.scored, strict=True) if not has]
    if bare:
        who = _some(bare) + (" has" if len(bare) == 1 else " have")
        who = "No generation has" if len(bare) == len(layout.scored) else who + " no"
        yield f"{who} scores, so everything that needs them is left out: {_needing('scores')}."
    if any(layout.scored) and counted.left_out:
        yield (
            f"Top-k metrics for k = {', '.join(map(str, counted.left_out))} are left out: there "
            f"are only {len(counted.classes)} classes."
        )
    for name, holders in counted.report.slices_of.items():
        if name in counted.slices and counted.report.names[0] not in holders:
            yield (
                f"The slice column {shown(name)} comes from {holders[0]}; "
                f"{counted.report.names[0]} does not have it."
            )
    for name, count in counted.differing.items():
        yield (
            f"Generations have different values in the slice column {shown(name)} for {count:,} "
            f"of {layout.rows:,} inputs. Those of the first that has the column are used."
        )
    if layout.weighted:
        holders = counted.report.weights_of
        whose = f" by {_some(holders)}" if holders else ""
        yield (
            f"Inputs are weighted{whose}. Numbers of inputs and McNemar's test count each input "
            "once; everything else goes by weight."
        )
    if layout.truth and len(counted.report.truth_of) == 1:
        yield f"The true classes come from {counted.report.truth_of[0]} alone."
    for each in counted.unknown_labels:
        if each.share > 0:
            yield (
                f"{each.share:.2%} of the labels of {each.name} are no true class of these inputs: "
                f"{_some(each.labels)}."
            )
    if layout.exact and layout.rows < 30:
        yield f"There are few inputs ({layout.rows}): intervals are wide."
    for thing, name in (("score", "prediction_difference"), ("label", "churn")):
        same = [
            what
            for what, metrics in measured.items()
            if name in metrics
            and metrics[name].value == 0
            and (thing == "score" or "prediction_difference" not in metrics)
        ]
        if same:
            yield (
                f"Every {thing} is the same in {_some(same)}: is that one model, compared with "
                "itself?"
            )
    undefined: dict[str, list[str]] = {}
    for what, metrics in measured.items():
        for name, estimate in metrics.items():
            if math.isnan(estimate.value):
                undefined.setdefault(name, []).append(what)
    for name, where in undefined.items():
        yield f"{name} is undefined (0/0) for {_some(where)}."
    for reason in _without_interval(measured.values()):
        yield f"Metrics other than plain shares have no interval: {reason}."
    if any(not flows.complete for flows in counted.tally.flows):
        yield "There are too many kinds of change to keep all: counts of rare ones may be low."
    yield from counted.notes


def _without_interval(measured: Iterable[Mapping[str, Estimate]]) -> list[str]:
    """Why metrics that have a value have no interval, each reason once."""
    every = (estimate for metrics in measured for estimate in metrics.values())
    reasons = (each.reason for each in every if each.reason and not math.isnan(each.value))
    return list(dict.fromkeys(reasons))


def _needing(need: str) -> str:
    return ", ".join(name for name, entry in catalogue.items() if need in entry.needs)


def _some(names: Iterable[str]) -> str:
    every = list(names)
    listed = ", ".join(every[:_PROFUSE])
    return listed if len(every) <= _PROFUSE else f"{listed} and {len(every) - _PROFUSE} more"
