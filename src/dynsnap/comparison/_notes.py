"""What a reader of a comparison should know, one sentence each."""

import math
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from dynsnap.comparison._count import Counted, task_in
from dynsnap.comparison._groups import counts_inputs
from dynsnap.comparison._label_sets import rename_option
from dynsnap.comparison._results import Estimate
from dynsnap.errors import some_of
from dynsnap.metrics import catalogue
from dynsnap.metrics._row_tally import MOST_LABELS
from dynsnap.predictions._text import shown
from dynsnap.predictions.tasks import Task

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
    task = task_in(counted.tally)
    if counted.report.partial:
        yield counted.report.sentence()
    if task is not None:
        yield from _of_task(task, counted)
    yield from _about_missing_truth(counted, task)
    if task is None:
        yield from _about_missing_scores(counted)
    if any(layout.scored) and counted.left_out:
        yield (
            f"Top-k metrics for k = {', '.join(map(str, counted.left_out))} are left out: there "
            f"are only {len(counted.classes)} classes."
        )
    yield from _about_slices(counted)
    if layout.weighted:
        holders = counted.report.weights_of
        whose = f" by {_some(holders)}" if holders else ""
        yield (
            f"Inputs are weighted{whose}. Numbers of inputs and McNemar's test count each input "
            "once; everything else goes by weight."
        )
    if layout.truth and len(counted.report.truth_of) == 1:
        what = "true classes come" if task is None else "truth comes"
        yield f"The {what} from {counted.report.truth_of[0]} alone."
    yield from _about_unknown_labels(counted)
    if layout.exact and layout.rows < 30:
        yield f"There are few inputs ({layout.rows}): intervals are wide."
    yield from _about_equal_answers(counted, measured, "label" if task is None else "answer")
    yield from _about_ranks(counted)
    yield from _about_gaps(measured)
    if any(not flows.complete for flows in counted.tally.flows):
        yield "There are too many kinds of change to keep all: counts of rare ones may be low."
    yield from counted.notes


def _about_missing_truth(counted: Counted, task: Task | None) -> Iterator[str]:
    if counted.unlabelled is not None:
        rows = counted.tally.rows + counted.unlabelled.rows
        said = f"{counted.unlabelled.rows:,} of {rows:,} inputs have no"
        if task is None:
            yield (
                f"{said} true class: they count for metrics of labels and scores, and not for "
                f"those that need the truth: {_needing('truth')}."
            )
        else:
            yield (
                f"{said} truth: they count for metrics that compare answers with each other, and "
                "not for those that need the truth."
            )
    if counted.tally.layout.truth:
        return
    if task is not None:
        yield "The truth is not known, so everything that needs it is left out."
    else:
        yield (
            "The true classes are not known, so everything that needs them is left out: "
            f"{_needing('truth')}."
        )


def _about_missing_scores(counted: Counted) -> Iterator[str]:
    scored = counted.tally.layout.scored
    bare = [name for name, has in zip(counted.report.names, scored, strict=True) if not has]
    if bare:
        who = _some(bare) + (" has" if len(bare) == 1 else " have")
        who = "No generation has" if len(bare) == len(scored) else who + " no"
        yield f"{who} scores, so everything that needs them is left out: {_needing('scores')}."


def _about_slices(counted: Counted) -> Iterator[str]:
    if constant := _constant(counted):
        yield f"Columns with one value for all inputs are no slices: {_some(constant)}."
    first = counted.report.names[0]
    for name, holders in counted.report.slices_of.items():
        if name in counted.slices and first not in holders:
            yield (
                f"The slice column {shown(name)} comes from {holders[0]}; {first} does not have it."
            )
    for name, count in counted.differing.items():
        yield (
            f"Generations have different values in the slice column {shown(name)} for {count:,} "
            f"of {counted.tally.layout.rows:,} inputs. Those of the first that has the column are "
            "used."
        )


def _about_unknown_labels(counted: Counted) -> Iterator[str]:
    for each in counted.unknown_labels:
        if each.share > 0:
            yield (
                f"A share of {each.share:.4f} of the labels of {each.name} is no true class of "
                f"these inputs: {_some(each.labels)}."
            )
    for each in counted.unknown_labels:
        for label, other in each.alike[:_PROFUSE]:
            yield (
                f"{each.name} has the label {shown(label)} where others have the class "
                f"{shown(other)}. If they are one class, rename it: "
                f"{rename_option(label, other)} (in Python: rename={{{label!r}: {other!r}}})."
            )


def _about_equal_answers(
    counted: Counted, measured: Mapping[str, Mapping[str, Estimate]], answer: str
) -> Iterator[str]:
    for thing, name in (("score", "prediction_difference"), (answer, "churn")):
        same = [
            what
            for what, metrics in measured.items()
            if name in metrics
            and metrics[name].value == 0
            and what != _own_answers(counted)
            and (thing == "score" or "prediction_difference" not in metrics)
        ]
        if same:
            yield (
                f"Every {thing} is the same in {_some(same)}: is that one model, compared with "
                "itself?"
            )


def _about_gaps(measured: Mapping[str, Mapping[str, Estimate]]) -> Iterator[str]:
    """Which metrics have no value, and why others have no interval."""
    undefined: dict[str, list[str]] = {}
    for what, metrics in measured.items():
        for name, estimate in metrics.items():
            if math.isnan(estimate.value):
                undefined.setdefault(name, []).append(what)
    for name, where in undefined.items():
        yield f"{name} is undefined (0/0) for {_some(where)}."
    for reason in _without_interval(measured.values()):
        yield f"Metrics other than plain shares have no interval: {reason}."


def _of_task(task: Task, counted: Counted) -> Iterator[str]:
    layout = counted.tally.layout
    yield task.meaning
    if not counts_inputs(layout):
        yield "Numbers of inputs are rounded expectations, and McNemar's test is left out."
    if task.repeated and not counted.twin:
        yield (
            f"The noise floor comes from the answers of {counted.names[0]} itself: two of them to "
            "the same input, where it has several."
        )
    if task.per_label and len(counted.classes) > MOST_LABELS:
        yield (
            f"Labels are not measured one by one: there are {len(counted.classes):,}, more than "
            f"{MOST_LABELS:,}."
        )


def _own_answers(counted: Counted) -> str:
    return f"{counted.names[0]} and its own answers"


def _constant(counted: Counted) -> list[str]:
    """The slices that all inputs have one value of."""
    tally = counted.tally
    return [
        grouping.name.removeprefix("slice:")
        for grouping in tally.layout.groupings
        if grouping.name.startswith("slice:")
        and np.count_nonzero(tally.case_counts(0, grouping).sum(axis=1)) == 1
    ]


def _about_ranks(counted: Counted) -> Iterator[str]:
    """How far off AUROC and average precision are, and which classes they leave out."""
    generations = [g for g, scored in enumerate(counted.tally.layout.scored) if scored]
    found = [ranks for g in generations if (ranks := counted.ranks(g)) is not None]
    if not found:
        return
    area, precision = (max(float(ranks.error[:, side].max()) for ranks in found) for side in (0, 1))
    if area or precision:
        yield (
            "AUROC and average precision are those of histograms of the scores: of each class they "
            f"are off by at most {_up(area)} and {_up(precision)}."
        )
    missing = [
        name
        for name, value in zip(counted.classes, found[0].auroc.tolist(), strict=True)
        if math.isnan(value)
    ]
    if len(counted.classes) > 2 and missing and len(missing) < len(counted.classes):
        yield f"AUROC and average precision leave out classes without inputs: {_some(missing)}."


def _up(value: float) -> str:
    """Two digits of a bound, not below it."""
    digits = 1 - math.floor(math.log10(value)) if value > 0 else 0
    return f"{math.ceil(value * 10**digits) / 10**digits:.1e}"


def _without_interval(measured: Iterable[Mapping[str, Estimate]]) -> list[str]:
    """Why metrics that have a value have no interval, each reason once."""
    every = (estimate for metrics in measured for estimate in metrics.values())
    reasons = (each.reason for each in every if each.reason and not math.isnan(each.value))
    return list(dict.fromkeys(reasons))


def _needing(need: str) -> str:
    """The metrics that need it; those of whole groups by the name of the group."""
    needing = [entry for entry in catalogue.values() if need in entry.needs]
    plain = [entry.name for entry in needing if entry.group == "consistency"]
    groups = dict.fromkeys(entry.group for entry in needing if entry.group != "consistency")
    return ", ".join([*plain, *(f"those of {group}" for group in groups)])


def _some(names: Iterable[str]) -> str:
    return some_of(names, _PROFUSE)
