"""A pair of generations by class and by slice, worst first, in the terminal."""

import math
from collections.abc import Collection, Iterator, Sequence

from dynsnap.comparison import (
    Comparison,
    Estimates,
    Flow,
    GroupResult,
    PairResult,
    worst_first,
)
from dynsnap.metrics import metric
from dynsnap.report._blocks import (
    CASES,
    Block,
    Cell,
    Column,
    Paragraph,
    Table,
    count,
    number,
    p_value,
    without_empty_columns,
)

_MARKS = 10  # of the longest bar in a breakdown
_METRICS = ("lost", "gained", "accuracy", "consistency", "correct_consistency")


def breakdowns(
    comparison: Comparison, pair: PairResult, *, by: Collection[str], limit: int, where: str
) -> Iterator[Block]:
    """Tables of classes, of each column of slices, of majority and minority, of families.

    Args:
        comparison: What was compared.
        pair: The generations that are looked at.
        by: "class" and "slice", or one of them.
        limit: The most rows of a table, and the most columns of slices; 0 for all.
        where: What titles say about the pair.
    """
    if (groups := _of(pair, "class")) and "class" in by:
        yield _worst(f"Classes{where}, worst first", groups, limit, comparison.weighted)
    slices = worst_first(_of(pair, "slice")) if "slice" in by else []
    columns = list(dict.fromkeys(group.column for group in slices))
    for column in columns[: limit or None]:
        title = f"Slices by {column}{where}, worst first"
        groups = [group for group in slices if group.column == column]
        yield _worst(title, groups, limit, comparison.weighted)
    if limit and len(columns) > limit:
        yield Paragraph(f"  and {count(len(columns) - limit)} more columns of slices", "quiet")
    if groups := _of(pair, "frequency"):
        yield _groups(f"Majority and minority classes{where}", groups, comparison.weighted)
    for name, flows in pair.lost_between.items():
        if flows and name in columns[: limit or None] and len(comparison.slices[name]) > 2:
            yield _between(name, where, flows, limit)


def _of(pair: PairResult, kind: str) -> list[GroupResult]:
    return [group for group in pair.groups if group.kind == kind]


def _worst(title: str, groups: list[GroupResult], limit: int, weighted: bool) -> Table:
    shown = worst_first(groups)[: limit or None]
    rest = len(groups) - len(shown)
    return _groups(title, shown, weighted, footer=f"and {count(rest)} more" if rest else "")


def _groups(title: str, groups: list[GroupResult], weighted: bool, footer: str = "") -> Table:
    names = [name for name in _METRICS if name in groups[0].metrics]
    columns = [Column(""), Column("inputs", numeric=True)]
    if weighted:
        columns.append(Column("weight", numeric=True))
    columns += [Column(symbol_of(name), numeric=True) for name in names]
    columns += [Column("p", numeric=True), Column("corrected", numeric=True)]
    columns.append(Column("lost, gained", plot=True))
    cases = [group.transitions for group in groups if group.transitions is not None]
    most = max([max(each.lost, each.gained) for each in cases], default=0)
    rows = []
    for group in groups:
        row = [Cell(_group_name(group)), Cell(count(group.inputs))]
        if weighted:
            row.append(Cell(count(group.weight)))
        row += [Cell(value_of(group.metrics, name)) for name in names]
        for p in (group.changed, group.corrected):
            row.append(Cell("" if p is None else p_value(p), "quiet"))
        row.append(Cell(_lost_and_gained(group, most)))
        rows.append(tuple(row))
    return without_empty_columns(
        Table(title=title, columns=tuple(columns), rows=tuple(rows), footer=footer)
    )


def _lost_and_gained(group: GroupResult, most: int) -> str:
    """A mark for each input lost and gained, or for as many as a mark stands for."""
    if group.transitions is None or not most:
        return ""
    each = max(1, math.ceil(most / _MARKS))
    lost, gained = (
        math.ceil(number_of / each)
        for number_of in (group.transitions.lost, group.transitions.gained)
    )
    return "▼" * lost + "▲" * gained


def _group_name(group: GroupResult) -> str:
    return f"{group.name} ({count(len(group.classes))})" if group.classes else group.name


def _between(name: str, where: str, flows: Sequence[Flow], limit: int) -> Table:
    """Where lost answers went, between families of classes."""
    total = sum(flow.inputs for flow in flows)
    within = sum(flow.inputs for flow in flows if flow.truth == flow.new)
    shown = flows[: limit or None]
    rest = len(flows) - len(shown)
    return Table(
        title=f"Where lost answers went, by {name}{where}",
        columns=(Column("truth in"), Column("new label in"), Column("lost", numeric=True)),
        rows=tuple(
            (Cell(flow.truth or ""), Cell(flow.new), Cell(count(flow.inputs))) for flow in shown
        ),
        footer=f"{count(within)} of {count(total)} stayed within their {name}"
        + (f"; and {count(rest)} more ways" if rest else ""),
    )


def value_of(metrics: Estimates, name: str) -> str:
    """A metric as text, where there is one."""
    return number(metrics[name].value if name in metrics else None)


def symbol_of(name: str) -> str:
    """What a metric is called in the head of a column."""
    return name if name in CASES else metric(name).symbol
