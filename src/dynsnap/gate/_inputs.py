"""What two generations must be like before any rule is held against them."""

import math
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from dynsnap.comparison import Comparison, Estimates
from dynsnap.comparison._label_sets import plain, rename_option
from dynsnap.errors import ComparisonError, PlanError
from dynsnap.predictions._text import listed, shown
from dynsnap.predictions.tasks import CLASSIFICATION

_CHOSEN = 5.0  # standard errors: by chance in one of two million comparisons
UNKNOWN_LABELS = 0.1  # a model may know classes that these inputs lack, but seldom names them

Side: TypeAlias = Literal["old", "new"]


def refuse_other_predictions(levels: Sequence[Comparison]) -> None:
    """Raise unless the comparisons differ in nothing but the level of their intervals."""
    first = levels[0]
    for other in levels[1:]:
        if _measured(other) != _measured(first) or other.unknown_labels != first.unknown_labels:
            apart = " and ".join(f"{each.confidence:.12g}" for each in (first, other))
            raise ComparisonError(
                f"The comparisons at {apart} confidence are not of the same predictions. Compare "
                "the same two generations at each level."
            )


def _measured(comparison: Comparison) -> tuple[object, ...]:
    pair = comparison.pairs[0]
    # As text, NaN equals itself.
    values = {name: repr(estimate.value) for name, estimate in pair.metrics.items()}
    return pair.old, pair.new, comparison.alignment, comparison.classes, values


def refuse_one_source(comparison: Comparison) -> None:
    """Raise where two generations are one file, or the same arrays: they differ in nothing."""
    for same in comparison.alignment.same:
        raise PlanError(
            f"{shown(same.second)} and {shown(same.first)} are {same.what}. A model that is held "
            "against itself passes whatever it does. Compare the predictions of two models."
        )


def refuse_foreign_weights(comparison: Comparison, weights_from: Side) -> None:
    """Raise where the weights are not those of the generation that they may come from.

    Weights decide what counts: NEW could weigh what it lost with 0.
    """
    holders = comparison.alignment.weights_of
    pair = comparison.pairs[0]
    allowed = {"old": [pair.old], "new": [pair.old, pair.new]}[weights_from]
    if holders and holders[0] not in allowed:
        raise ComparisonError(
            f"Only {shown(holders[0])} has weights, and {shown(pair.old)} has none: a generation "
            "that weighs inputs itself decides which of its losses count. Write the weights to "
            f"{shown(pair.old)} too, or take those of {shown(pair.new)} with --weights-from new "
            '(weights_from="new").'
        )


def refuse_foreign_slices(
    comparison: Comparison, columns: Iterable[str], slices_from: Side
) -> None:
    """Raise where a rule is about a slice that only another generation than OLD has.

    The members of a slice decide what is judged: NEW could leave out of it what
    it lost there.
    """
    pair = comparison.pairs[0]
    allowed = {"old": [pair.old], "new": [pair.old, pair.new]}[slices_from]
    for column in columns:
        holders = comparison.alignment.slices_of.get(column, ())
        if holders and holders[0] not in allowed:
            raise ComparisonError(
                f"A rule is about the slice {shown(column)}, which only {shown(holders[0])} has: a "
                "generation that defines which inputs are in a slice decides where its losses "
                f"count. Write the column to {shown(pair.old)} too, or take that of "
                f'{shown(pair.new)} with --slices-from new (slices_from="new").'
            )


def refuse_own_truth(comparison: Comparison) -> None:
    """Raise where NEW alone states what is true, and that is its own label on every input."""
    pair = comparison.pairs[0]
    cases = pair.transitions
    if comparison.alignment.truth_of != (pair.new,) or cases is None:
        return
    if cases.lost + cases.never == 0:
        raise ComparisonError(
            f"Only {shown(pair.new)} has the truth, and it is the label of {shown(pair.new)} on "
            "every input: are its labels written to the column of the truth? Write the truth to "
            f"{shown(pair.old)} too."
        )


def refuse_strange_twin(comparison: Comparison) -> None:
    """Raise where the twin of OLD is NEW by another name: every multiple of it would be 1."""
    pair = comparison.pairs[0]
    twin = len(comparison.alignment.names) > len(comparison.generations)
    if pair.noise_floor is None or not twin:  # or two answers of OLD itself are the floor
        return  # the rule states that it needs one

    parts: list[tuple[Estimates, Estimates]] = [(pair.metrics, pair.noise_floor)]
    parts += [(group.metrics, group.noise_floor) for group in pair.groups if group.noise_floor]
    same = all(
        repr(metrics[name].value) == repr(floor[name].value)  # as text, NaN equals itself
        for metrics, floor in parts
        for name in floor.keys() & metrics.keys()
    )
    if same and pair.metrics["churn"].value > 0:
        raise ComparisonError(
            f"The noise floor has the same value as {shown(pair.new)} in every metric, class and "
            f"slice: is it a copy of {shown(pair.new)}? It must be {shown(pair.old)}, trained "
            "again on the same data."
        )


def refuse_missing_ids(comparison: Comparison, allowed: float) -> None:
    report = comparison.alignment
    if report.missing_share > allowed:
        raise ComparisonError(
            f"{report.sentence()} That is {report.missing_share:.4g} of them, and at most "
            f"{allowed:g} may be missing (--allow-missing). Predict the same inputs twice."
        )


def refuse_unlabelled(comparison: Comparison, allowed: float) -> None:
    """Raise where too many inputs have no true class: nothing is known of what they lost."""
    share = comparison.unlabelled / comparison.inputs
    if share > allowed:
        raise ComparisonError(
            f"{comparison.unlabelled:,} of {comparison.inputs:,} inputs have no true class. That "
            f"is {share:.4g} of them, and at most {allowed:g} may be so (--allow-unlabelled). Wait "
            f"for the truth, drop those rows, or give --allow-unlabelled {_above(share)}."
        )


def refuse_chosen_labels(comparison: Comparison) -> None:
    """Raise where inputs were labelled because the generations differ on them, or agree.

    Every rate of the truth is then one of the chosen inputs, not of all. How often the generations
    differ is known of both, and decides.
    """
    found, pair = comparison.labelled, comparison.pairs[0]
    if found is None or found.churn is None or comparison.weighted or "churn" not in pair.metrics:
        return
    differs, whole = found.churn, pair.metrics["churn"].value
    left = 1 - found.inputs / comparison.inputs  # of a sample that is nearly all, less is by chance
    spread = math.sqrt(max(whole * (1 - whole) * left / max(1, found.inputs), 1e-12))
    if abs(differs - whole) > _CHOSEN * spread:
        raise ComparisonError(
            f"The inputs with a true class are no random sample: {shown(pair.old)} and "
            f"{shown(pair.new)} differ on {differs:.4g} of them, and on {whole:.4g} of all inputs. "
            "Weigh labelled inputs on which they differ, and others, by how many of each there "
            "are (column `weight`, see Three verdicts in docs/gate.md), or label inputs at random."
        )


def refuse_unknown_labels(comparison: Comparison, allowed: float | None) -> None:
    """Raise where a generation has answers that cannot be right, and so has less to lose."""
    most = UNKNOWN_LABELS if allowed is None else allowed
    for found in comparison.unknown_labels:
        name = shown(found.name)
        if found.alike and allowed is None:
            label, other = found.alike[0]
            more = f" ({len(found.alike) - 1} more like that)" if len(found.alike) > 1 else ""
            raise ComparisonError(
                f"{name} has the label {shown(label)} where others have the class {shown(other)}"
                f"{more}. If they are one class, read it with "
                f"{rename_option(label, other)}; if they are not, give "
                f"--allow-unknown-labels {_above(found.share)}."
            )
        if found.share > most:
            raise ComparisonError(
                f"{found.share:.4g} of the labels of {name} are no true class of any input: "
                f"{listed(found.labels, most=3)}. Such answers are never right, and cannot be "
                f"lost; at most {most:g} may be so (--allow-unknown-labels). Are they of other "
                "classes, or answers that failed?"
            )


def refuse_sets_alike(comparison: Comparison, allowed: float | None) -> None:
    """Raise where sets have labels that only one generation has, written as the other has them.

    No set with such a label is right, so none can be lost.
    """
    if allowed is not None or comparison.task == CLASSIFICATION:
        return
    dropped = {plain(each.name): each.name for each in comparison.dropped_classes}
    for each in comparison.new_classes:
        if (other := dropped.get(plain(each.name))) is not None:
            pair = comparison.pairs[0]
            raise ComparisonError(
                f"{shown(pair.new)} has the label {shown(each.name)} where {shown(pair.old)} has "
                f"{shown(other)}. If they are one label, read it with "
                f"{rename_option(each.name, other)}; if they are not, give "
                "--allow-unknown-labels 1."
            )


def _above(share: float) -> str:
    """A share of two digits that is not below this one."""
    return f"{min(1.0, math.ceil(max(share, 0.01) * 100) / 100):g}"
