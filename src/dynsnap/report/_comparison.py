"""A comparison as a report: the four cases first, then everything else, worst first."""

import itertools
import math
from collections.abc import Collection, Iterator, Sequence

from dynsnap.comparison import Comparison, Estimate, Estimates, Flow, PairResult
from dynsnap.metrics import metric
from dynsnap.report._blocks import (
    CASES,
    Block,
    Bullets,
    Cell,
    Column,
    Document,
    Heading,
    Paragraph,
    Table,
    Tone,
    count,
    counted,
    interval,
    number,
    said_p_value,
    without_empty_columns,
)
from dynsnap.report._breakdowns import breakdowns, symbol_of, value_of
from dynsnap.report._plots import cases_bar, spark, strip

BREAKDOWNS = ("class", "slice")

_HEADLINE = ("kept", "gained", "lost", "never", "consistency", "correct_consistency")
_SAME_DATA = "same data"
_ABOUT_SAME_DATA = (
    "Same data: what training the first generation again on the same data changes by itself."
)
_MATRICES = ("consistency", "correct_consistency")


def comparison_report(
    comparison: Comparison, *, by: Collection[str] = BREAKDOWNS, limit: int = 10
) -> Document:
    """Everything that a comparison found, most important first.

    Args:
        comparison: What `dynsnap.compare` returned.
        by: Which breakdowns to show, "class" and "slice". With more than two generations they
            are those of the last retrain.
        limit: The most rows in a breakdown, worst first; 0 for all.

    Example:
        >>> import dynsnap
        >>> said = dynsnap.Predictions(ids=[1, 2], classes=["cat", "dog"], labels=["cat", "dog"])
        >>> report = comparison_report(dynsnap.compare(said, said, names=["monday", "tuesday"]))
        >>> report[0]
        Heading(text='monday → tuesday')
    """
    return tuple(_blocks(comparison, by, limit))


def _blocks(comparison: Comparison, by: Collection[str], limit: int) -> Iterator[Block]:
    several = len(comparison.pairs) > 1
    last = comparison.pairs[-1]
    yield Heading(" → ".join(generation.name for generation in comparison.generations))
    yield Paragraph(_setting(comparison), "quiet")
    if comparison.alignment.partial:
        yield Paragraph(comparison.alignment.sentence(), "bad")
    yield from _headline(comparison)
    alone = [(generation.name, generation.metrics) for generation in comparison.generations]
    if any(metrics for _, metrics in alone):
        yield _side_by_side("Each generation", alone)
    pairs = [(_arrow(pair), pair.metrics) for pair in comparison.pairs]
    if last.noise_floor is not None:
        pairs.append((_SAME_DATA, last.noise_floor))
    yield _side_by_side("Each pair", pairs)
    if several:
        yield from (_matrix(comparison, name) for name in _MATRICES if name in last.metrics)
        yield _side_by_side(
            "Averages over generations and over pairs", [("value", comparison.averages)]
        )
    if comparison.agreement:
        yield _side_by_side("All generations at once", [("value", comparison.agreement)])
    where = f", {_arrow(last)}" if several else ""
    yield from breakdowns(comparison, last, by=by, limit=limit, where=where)
    if changes := [flow for flow in last.flows if flow.old != flow.new]:
        yield _changes(f"Most frequent changes{where}", changes, limit)
    said = comparison.alignment.sentence()  # above, and aloud, where ids are missing
    if notes := tuple(note for note in comparison.notes if note != said):
        yield Bullets("Notes", notes)


def _setting(comparison: Comparison) -> str:
    weighted = ", weighted" if comparison.weighted else ""
    return (
        f"{counted(comparison.inputs, 'input')}, {counted(len(comparison.classes), 'class')}"
        f"{weighted}; intervals at {comparison.confidence:g} confidence from "
        f"{counted(comparison.resamples, 'resample')}"
    )


def _arrow(pair: PairResult) -> str:
    return f"{pair.old} → {pair.new}"


def _headline(comparison: Comparison) -> Iterator[Block]:
    floor = comparison.pairs[0].noise_floor
    if len(comparison.pairs) > 1:
        names = [name for name in _HEADLINE if name in comparison.pairs[0].metrics]
        yield Table(
            title="Retrains at a glance",
            columns=(Column(""), *(Column(symbol_of(name), numeric=True) for name in names)),
            rows=(
                *(_glance(_arrow(pair), pair.metrics, names) for pair in comparison.pairs),
                _glance("mean", comparison.averages, names, "strong"),
                *([] if floor is None else [_glance(_SAME_DATA, floor, names, "quiet")]),
            ),
            footer="" if floor is None else _ABOUT_SAME_DATA,
        )
        yield _over_time(comparison)
        return
    pair = comparison.pairs[0]
    shown = [
        (name, metric(name).symbol, pair.metrics[name])
        for name in _HEADLINE
        if name in pair.metrics
    ]
    shown += [
        (f"accuracy of {generation.name}", "ACC", generation.metrics["accuracy"])
        for generation in comparison.generations
        if "accuracy" in generation.metrics
    ]
    scales, said = _scales([estimate for _, _, estimate in shown])
    rows = [
        _headline_row(name, symbol, estimate, pair, scale)
        for (name, symbol, estimate), scale in zip(shown, scales, strict=True)
    ]
    if pair.transitions is not None:
        yield Paragraph("")
        yield from cases_bar(pair.transitions)
    yield without_empty_columns(
        Table(
            title="",
            columns=(
                Column(""),
                Column(""),
                Column("value", numeric=True),
                Column("interval"),
                Column(said, plot=True),
                Column("inputs", numeric=True),
                Column("was → is"),
                Column(_SAME_DATA, numeric=True),
            ),
            rows=tuple(rows),
            keys=2,
            footer="" if floor is None else _ABOUT_SAME_DATA,
        )
    )
    if pair.mcnemar is not None:
        yield Paragraph(
            f"McNemar's exact test of lost against gained: {said_p_value(pair.mcnemar)}", "quiet"
        )


def _scales(shown: Sequence[Estimate]) -> tuple[list[tuple[float, float]], str]:
    """The scale that each value is drawn on, and how the two are told.

    Shares of most inputs end at 1, shares of few begin at 0: on one line from 0 to 1 all of them
    would be points at its ends.
    """
    ends = [(each.value if each.low is None else each.low,
             each.value if each.high is None else each.high) for each in shown]  # fmt: skip
    start = min([low for low, high in ends if high > 0.5], default=0.0)
    end = max([high for _, high in ends if high <= 0.5], default=1.0)
    start, end = math.floor(10 * start) / 10, math.ceil(10 * end) / 10
    scales = [(start, 1.0) if high > 0.5 else (0.0, end) for _, high in ends]
    return scales, ", ".join(f"{low:g}–{high:g}" for low, high in dict.fromkeys(scales))


def _over_time(comparison: Comparison) -> Table:
    """How it went, generation by generation, as small lines."""
    names = [generation.name for generation in comparison.generations]
    following = set(itertools.pairwise(names))
    steps = [pair for pair in comparison.pairs if (pair.old, pair.new) in following]
    alone = [each.metrics["accuracy"].value for each in comparison.generations if each.metrics]
    lines = [("accuracy", alone)] if comparison.has_truth else []
    lines += [
        (f"{symbol_of(name)} of each retrain", [step.metrics[name].value for step in steps])
        for name in ("lost", "consistency", "correct_consistency")
        if name in steps[0].metrics
    ]
    lines.append(("ambiguity so far", list(comparison.ambiguity_so_far)))
    return Table(
        title="Over time",
        columns=(
            Column(""),
            Column("first", numeric=True),
            Column("", plot=True),
            Column("last", numeric=True),
            Column("least", numeric=True),
            Column("most", numeric=True),
        ),
        rows=tuple(
            (
                Cell(name),
                Cell(number(values[0])),
                Cell(spark(values)),
                Cell(number(values[-1]), "strong"),
                Cell(number(min(values)), "quiet"),
                Cell(number(max(values)), "quiet"),
            )
            for name, values in lines
            if values
        ),
    )


def _headline_row(
    name: str, symbol: str, estimate: Estimate, pair: PairResult, scale: tuple[float, float]
) -> tuple[Cell, ...]:
    floor = pair.noise_floor or {}
    case = name if name in CASES and pair.transitions is not None else None
    return (
        Cell(name),
        Cell(symbol, "quiet"),
        Cell(number(estimate.value), "bad" if name == "lost" and estimate.value > 0 else "strong"),
        Cell(interval(estimate), "quiet"),
        Cell(strip(estimate, start=scale[0], end=scale[1], cells=16)),
        Cell(count(getattr(pair.transitions, case)) if case else ""),
        Cell(CASES[case] if case else "", "quiet"),
        Cell(number(floor[name].value) if name in floor else ""),
    )


def _glance(
    title: str, metrics: Estimates, names: Sequence[str], tone: Tone = "plain"
) -> tuple[Cell, ...]:
    return (Cell(title, tone), *(Cell(value_of(metrics, name), tone) for name in names))


def _side_by_side(title: str, results: Sequence[tuple[str, Estimates]]) -> Table:
    names = list(dict.fromkeys(name for _, metrics in results for name in metrics))
    heads = [Column(""), Column("")]
    for head, _ in results:
        heads += [Column(head, numeric=True), Column("interval")]
    rows = []
    for name in names:
        row = [Cell(name), Cell(metric(name).symbol, "quiet")]
        for _, metrics in results:
            row += [Cell(value_of(metrics, name)), Cell(interval(metrics.get(name)), "quiet")]
        rows.append(tuple(row))
    return Table(title=title, columns=tuple(heads), rows=tuple(rows), keys=2, unit=2)


def _matrix(comparison: Comparison, name: str) -> Table:
    names = [generation.name for generation in comparison.generations]
    entry = metric(name)
    values = comparison.matrix(name)
    return Table(
        title=f"{entry.name} ({entry.symbol}) of every two generations",
        columns=(Column(""), *(Column(head, numeric=True) for head in names)),
        rows=tuple(
            (Cell(names[i]), *(Cell(number(value)) for value in row))
            for i, row in enumerate(values.tolist())
        ),
    )


def _changes(title: str, flows: Sequence[Flow], limit: int) -> Table:
    shown = flows[: limit or None]
    with_truth = any(flow.truth is not None for flow in shown)
    columns = [Column("old label"), Column("new label"), Column("inputs", numeric=True)]
    if with_truth:
        columns.insert(2, Column("truth"))
    rows = []
    for flow in shown:
        row = [Cell(flow.old, _right(flow, flow.old)), Cell(flow.new, _right(flow, flow.new))]
        if with_truth:
            row.append(Cell(flow.truth or "", "quiet"))
        rows.append((*row, Cell(count(flow.inputs))))
    return Table(
        title=title,
        columns=tuple(columns),
        rows=tuple(rows),
        keys=2,
        footer="and others" if len(shown) < len(flows) else "",
    )


def _right(flow: Flow, label: str) -> Tone:
    return "good" if label == flow.truth else "plain"
