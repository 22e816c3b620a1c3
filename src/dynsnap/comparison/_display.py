"""Results in a console and as data frames; pages and pictures come from `dynsnap.report`."""

import importlib
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dynsnap.errors import PlanError, did_you_mean, some_of

if TYPE_CHECKING:
    from dynsnap.comparison._results import (
        ClassChange,
        Comparison,
        Estimate,
        Estimates,
        GenerationResult,
        GroupResult,
        PairResult,
    )

LINES = 20  # that a result takes in a console, at most
_WIDE = 96  # characters of a line
_HEADLINE = ("lost", "gained", "consistency", "correct_consistency", "churn",
             "mean_absolute_change", "jaccard_consistency")  # fmt: skip
_WORST = 3  # classes, and slices
_FRAMES = ("pandas", "polars")


def value_text(estimate: "Estimate | None") -> str:
    """A value with its interval, as short as it can be read."""
    if estimate is None:
        return "–"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.4f}"
    return f"{estimate.value:.4f} [{estimate.low:.4f}, {estimate.high:.4f}]"


def worst_first(groups: "Iterable[GroupResult]") -> "list[GroupResult]":
    """Groups by the share that they lost, the largest first; without truth, least consistent first.

    Those that fare alike keep the order in which they come, which in a `PairResult` is that of the
    classes, or of a slice's values. One whose share is undefined, for it has no weight, comes last.

    Examples:
        >>> from dynsnap.comparison import Estimate, GroupResult
        >>> def group(name, lost):
        ...     metrics = {"lost": Estimate(lost)}
        ...     return GroupResult(
        ...         kind="class", column="truth", name=name, inputs=50, weight=50, metrics=metrics
        ...     )
        >>> found = worst_first([group("cat", 0.02), group("dog", 0.1), group("ant", 0.02)])
        >>> [each.name for each in found]
        ['dog', 'cat', 'ant']
    """
    return sorted(groups, key=_severity)


def _severity(group: "GroupResult") -> float:
    metrics = group.metrics
    value = -metrics["lost"].value if "lost" in metrics else metrics["consistency"].value
    return math.inf if math.isnan(value) else value


def comparison_text(found: "Comparison") -> str:
    """A comparison in at most twenty lines."""
    names = [each.name for each in found.generations]
    title = f"{names[0]} → {names[-1]}"
    if len(names) > 2:
        title = f"{len(names)} generations, {title}"
    what = f"{len(found.classes):,} classes"
    if found.task != "classification":
        what = f"task {found.task}"
    lines = [f"<Comparison: {title}, {found.inputs:,} inputs, {what}>"]
    pair = found.pairs[-1]
    if len(names) > 2:
        worst = _worst_pair(found)
        lines.append(f"  worst pair: {worst.old} → {worst.new}, {_short(worst)}")
        lines.append(f"  last retrain, {pair.old} → {pair.new}:")
    alone = {each.name: each.metrics.get("accuracy") for each in found.generations}
    was, now = alone[pair.old], alone[pair.new]
    if was is not None and now is not None:
        lines.append(f"  {'accuracy':20} {was.value:.4f} → {value_text(now)}")
    lines += _headline(pair.metrics)
    lines += _groups(pair)
    for words, changes in (("new", found.new_classes), ("dropped", found.dropped_classes)):
        if changes:
            lines.append(f"  {words} classes: {_named(changes)}")
    if found.alignment.partial:
        lines.append(f"  {found.alignment.shared:,} of {found.alignment.total:,} ids are shared")
    if found.notes:
        lines.append(f"  {len(found.notes)} notes in .notes")
    lines.append("  .to_html(path)  .to_frame()  .plot()  .pairs  .generations")
    return fitted(lines)


def pair_text(pair: "PairResult") -> str:
    """A pair in a few lines."""
    lines = [f"<PairResult: {pair.old} → {pair.new}>", *_headline(pair.metrics), *_groups(pair)]
    lines.append(f"  {len(pair.metrics)} .metrics, {len(pair.groups):,} .groups, "
                 f"{len(pair.flows):,} .flows, {len(pair.flipped):,} .flipped")  # fmt: skip
    return fitted(lines)


def group_text(group: "GroupResult") -> str:
    """A group on a line."""
    where = (
        f"{group.column} = {group.name}" if group.kind == "slice" else f"{group.kind} {group.name}"
    )
    said = _short(group)
    return fitted([f"<GroupResult: {where}, {group.inputs:,} inputs, {said}>"])


def generation_text(generation: "GenerationResult") -> str:
    """A generation on a few lines."""
    every = [f"  {name:28} {value_text(each)}" for name, each in generation.metrics.items()]
    return fitted([f"<GenerationResult: {generation.name}>", *every])


def fitted(lines: Sequence[str]) -> str:
    """Lines that fit a console; what is left out is counted."""
    short = [line if len(line) <= _WIDE else f"{line[: _WIDE - 1]}…" for line in lines]
    if len(short) > LINES:
        short = [*short[: LINES - 1], f"  … {len(short) - LINES + 1} more"]
    return "\n".join(short)


def _headline(metrics: "Estimates") -> Iterator[str]:
    for name in _HEADLINE:
        if name in metrics and (name != "churn" or "lost" not in metrics):
            yield f"  {name.replace('_', ' '):20} {value_text(metrics[name])}"


def _short(found: "PairResult | GroupResult") -> str:
    name = "lost" if "lost" in found.metrics else "consistency"
    return f"{name} {value_text(found.metrics.get(name))}"


def _worst_pair(found: "Comparison") -> "PairResult":
    name, sign = ("lost", 1) if found.has_truth else ("consistency", -1)
    return max(found.pairs, key=lambda pair: sign * pair.metrics[name].value)


def _groups(pair: "PairResult") -> Iterator[str]:
    ranked = worst_first(group for group in pair.groups if not group.whole)
    for kind, words in (("class", "worst classes"), ("slice", "worst slices")):
        some = [group for group in ranked if group.kind == kind]
        if some:
            name = "lost" if "lost" in some[0].metrics else "consistency"
            said = ", ".join(
                f"{group.name if kind == 'class' else f'{group.column} = {group.name}'} "
                f"{group.metrics[name].value:.4f}"
                for group in some[:_WORST]
            )
            yield f"  {words} ({name}, of {len(some):,}): {said}"


def _named(changes: "Sequence[ClassChange]") -> str:
    return some_of((each.name for each in changes), _WORST)


# --- data frames ----------------------------------------------------------------------------


def frame(rows: Iterable[Mapping[str, Any]], library: str | None = None) -> Any:
    """Rows as a data frame of pandas or polars: the one that is loaded, else the one installed.

    Args:
        rows: All with the same columns.
        library: "pandas" or "polars"; by default whichever is there, pandas first.
    """
    if library is not None and library not in _FRAMES:
        raise PlanError(f"`library` must be one of {', '.join(_FRAMES)}, got {library!r}.")
    wanted = _FRAMES if library is None else (library,)
    every = list(rows)
    columns = {name: [row[name] for row in every] for name in (every[0] if every else ())}
    for name in sorted(wanted, key=lambda each: each not in sys.modules):
        try:
            return importlib.import_module(name).DataFrame(columns)
        except ModuleNotFoundError:
            continue
    raise PlanError(
        f"A data frame needs {' or '.join(wanted)}, which is not installed. Install it with: "
        f"pip install {wanted[0]}"
    )


def comparison_frame(found: "Comparison", of: str, library: str | None) -> Any:
    """What a comparison found as a data frame; see `Comparison.to_frame`."""
    if of not in _ROWS:
        raise PlanError(f"There is no frame of {of!r}. {did_you_mean(of, _ROWS)}")
    return frame(_ROWS[of](found), library)


def _metric_rows(found: "Comparison") -> Iterator[dict[str, Any]]:
    for generation in found.generations:
        yield from _estimates(generation.metrics, old=None, new=generation.name)
    for pair in found.pairs:
        yield from _estimates(pair.metrics, old=pair.old, new=pair.new)
    names = [each.name for each in found.generations]
    yield from _estimates(found.agreement, old=names[0], new=f"all {len(names)}")


def _estimates(metrics: "Estimates", **where: Any) -> Iterator[dict[str, Any]]:
    for name, each in metrics.items():
        yield {**where, "metric": name, "value": each.value, "low": each.low, "high": each.high}


def _group_rows(found: "Comparison") -> Iterator[dict[str, Any]]:
    for pair in found.pairs:
        for group in pair.groups:
            if group.whole:
                continue
            cases = group.transitions
            yield {
                "old": pair.old,
                "new": pair.new,
                "kind": group.kind,
                "column": group.column,
                "group": group.name,
                "inputs": group.inputs,
                "lost": None if cases is None else cases.lost,
                "gained": None if cases is None else cases.gained,
                **_values(group.metrics, ("lost", "gained", "consistency", "correct_consistency")),
                "p": group.changed,
                "p_corrected": group.corrected,
            }


def _values(metrics: "Estimates", names: Sequence[str]) -> dict[str, float | None]:
    return {
        f"{name}_share" if name in ("lost", "gained") else name: metrics[name].value
        if name in metrics
        else None
        for name in names
    }


def _flow_rows(found: "Comparison") -> Iterator[dict[str, Any]]:
    for pair in found.pairs:
        for flow in pair.flows:
            yield {
                "old": pair.old,
                "new": pair.new,
                "truth": flow.truth,
                "was": flow.old,
                "is": flow.new,
                "inputs": flow.inputs,
            }


_ROWS: dict[str, Callable[["Comparison"], Iterator[dict[str, Any]]]] = {
    "metrics": _metric_rows,
    "groups": _group_rows,
    "flows": _flow_rows,
}
