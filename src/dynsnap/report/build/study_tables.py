"""The paper's tables: methods and combinations, best and second best marked, intervals, cost."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dynsnap.ensemble import METHOD_KINDS
from dynsnap.metrics import metric as metric_of
from dynsnap.report.build.study_words import (
    HEADLINE,
    MOVES,
    NEW,
    OF_NEW,
    abbreviated,
    pairs_of,
    preferred,
)
from dynsnap.report.document import Cell, Column, Detail, Table, Tone
from dynsnap.report.words import kappa, percent, percent_interval
from dynsnap.study import NOISE_FLOOR, ONE_NETWORK, Row, SweepRow, kept_by

TOP = {
    "top_2_accuracy": "CACC-2",
    "top_2_consistency": "CCON-2",
    "top_5_accuracy": "CACC-5",
    "top_5_consistency": "CCON-5",
}
SCORES = {"pearson": "Pearson", "cosine": "cosine"}
CASES = {"kept": "kept", "gained": "gained", "lost": "lost", "never": "never", "composite": "Com"}

_WAYS = "MV, WMV: majority and weighted majority vote. AVG, WAVG: average and weighted average."
_SAID = "±: standard deviation over replicates."
_PAIRS = 3  # whose columns have room beside each other
_INTERVALS = 3  # that have room


def is_reference(method: str) -> bool:
    """Whether it is shown for reference only: the noise floor, and what is never retrained."""
    return method == NOISE_FLOOR or kept_by(method) is not None


def is_ablation(method: str) -> bool:
    """Whether it is a variant with a name of the study's own."""
    return method not in (*METHOD_KINDS, ONE_NETWORK) and not is_reference(method)


def method_cell(method: str) -> Cell:
    """The name of a method."""
    return Cell(method, tone="quiet" if is_reference(method) else "plain")


def cost_cell(cost: float) -> Cell:
    """A cost in trainings."""
    return Cell(kappa(cost), cost)


def percent_cell(value: float | None, tone: Tone = "plain") -> Cell:
    """A fraction in percent."""
    return Cell(percent(value), value, tone)


def value_of(row: Row | None) -> float | None:
    """The value of a row that may be missing."""
    return None if row is None else row.value


def by_method(
    name: str,
    title: str,
    rows: Sequence[Row],
    metrics: Mapping[str, str] = HEADLINE,
    *,
    short: bool = False,
    rounds: Mapping[str, str] | None = None,
    detail: Detail = "all",
) -> Table:
    """Some metrics of every method and combination; short of intervals, where asked for.

    The terminal shows one combination of each method. Where `rounds` has how methods are trained,
    that stands beside them.
    """
    found = {
        (row.method, row.combination, row.metric): row for row in rows if row.metric in metrics
    }
    shown = {key: word for key, word in metrics.items() if any(key == one[2] for one in found)}
    ranks = {metric: _best(found, metric) for metric in shown}
    extent = UncertaintyColumns.of(found.values(), short=short)
    if short and len(shown) > _INTERVALS:  # the table of all metrics has them
        extent = replace(extent, intervals=False)
    price = _CostColumns.of(found.values())
    meaning = "Of a round: windows and their length, or the best of how many."
    columns = [
        Column("method"),
        Column("epochs", meaning=meaning, detail="full"),
        Column("by", key=True),
        *price.columns(),
    ]
    for metric, word in shown.items():
        columns += extent.columns(word, metric_of(metric).meaning)
    usual = preferred(rows)
    lines: list[tuple[Cell, ...]] = []
    left_out = set()
    for method, how, alike in _lines(found, list(shown)):
        present = [found.get((method, how, metric)) for metric in shown]
        line = [
            method_cell(method),
            Cell((rounds or {}).get(method, ""), tone="quiet"),
            Cell("all" if alike else abbreviated(how)),
            *price.cells(next(row for row in present if row is not None)),
        ]
        for metric, row in zip(shown, present, strict=True):
            line += extent.cells(
                row, "plain" if is_reference(method) else _rank(row, ranks[metric])
            )
        # References are in the table that they are for, and one combination stands for all.
        if is_reference(method) or (not alike and how != usual):
            left_out.add(len(lines))
        lines.append(tuple(line))
    ways = len({how for _, how, _ in found})
    more = f"The page and table.csv have all {ways} combinations." if ways > 1 else ""
    said = (_WAYS, _SAID if extent.spreads else "")
    return Table(
        name=name,
        title=title,
        columns=tuple(columns),
        rows=tuple(lines),
        full_rows=frozenset(left_out),
        grouped=True,
        footer=" ".join(part for part in said if part),
        brief_footer=more,
        detail=detail,
    )


def by_pair(rows: Sequence[Row]) -> Iterator[Table]:
    """What was gained and lost between each two generations, where a table has it."""
    how = preferred(rows)
    found = {(row.method, row.metric): row for row in rows if row.combination == how}
    every = pairs_of(metric for _, metric in found)
    if not every:
        return
    pairs = every[-_PAIRS:]
    price = _CostColumns.of(found.values())
    columns = [Column("method"), *price.columns()]
    for pair in pairs:
        arrow = pair.replace("_", "→")
        columns += [
            Column(
                f"{word} {arrow}",
                "number",
                f"{metric_of(metric).meaning} Generations {arrow}.",
                "full" if metric == "composite" else "all",
                joined=metric != next(iter(MOVES)),
            )
            for metric, word in MOVES.items()
        ]
    lines = []
    for method in sorted({method: None for method, _ in found}, key=is_reference):
        present = [found.get((method, f"{metric}_{pair}")) for pair in pairs for metric in MOVES]
        first = next((row for row in present if row is not None), None)
        if first is not None:
            values = (percent_cell(value_of(row)) for row in present)
            lines.append((method_cell(method), *price.cells(first), *values))
    cut = f"The last {_PAIRS} of {len(every)} pairs; table.csv has all."
    yield Table(
        name="method-pairs-table",
        title=f"Gained, lost and composite of each pair ({abbreviated(how)})",
        columns=tuple(columns),
        rows=tuple(lines),
        footer=cut if len(every) > _PAIRS else "",
    )


def sweep_table(name: str, table_name: str, points: Sequence[SweepRow], more: str) -> Table:
    """The points of one sweep, with cost."""
    labels = list(dict.fromkeys(point.point for point in points))
    found = {(point.point, point.row.metric): point.row for point in points}
    costs = {point.point: point.row.cost for point in points}
    # Beside a picture there is no room for intervals, which are drawn in it.
    spreads = any(point.row.spread is not None for point in points)
    extent = UncertaintyColumns(intervals=False, spreads=spreads)
    measured = {point.row.metric for point in points}
    shown = HEADLINE | (NEW if measured.issuperset(NEW) else {})
    columns = [Column(points[0].over), Column("κ", "number", key=True)]
    for metric, symbol in shown.items():
        meaning = OF_NEW if metric in NEW else ""
        columns += extent.columns(symbol, meaning)
    lines = []
    for label in labels:
        line = [Cell(label), cost_cell(costs[label])]
        for metric in shown:
            line += extent.cells(found.get((label, metric)))
        lines.append(tuple(line))
    return Table(
        name=table_name,
        title=f"Sweep: {name}{more}",
        columns=tuple(columns),
        rows=tuple(lines),
    )


@dataclass(frozen=True, slots=True)
class _CostColumns:
    """What a generation costs: κ, and seconds where they were written down."""

    digits: int | None  # behind the point of seconds, so that they line up

    @staticmethod
    def of(rows: Iterable[Row]) -> "_CostColumns":
        known = [row.seconds for row in rows if row.seconds is not None]
        longest = max(known, default=0.0)
        return _CostColumns((3 if longest < 10 else 1 if longest < 1000 else 0) if known else None)

    def columns(self) -> list[Column]:
        return [
            Column("κ", "number", "Trainings from scratch per generation.", key=True),
            Column("s", "number", "Seconds of training per generation.", "full"),
        ]

    def cells(self, row: Row) -> list[Cell]:
        cells = [cost_cell(row.cost), Cell()]
        if self.digits is not None and row.seconds is not None:
            cells[1] = Cell(f"{row.seconds:,.{self.digits}f}", row.seconds, "quiet")
        return cells


@dataclass(frozen=True, slots=True)
class UncertaintyColumns:
    """What stands beside a value: its interval, how replicates differ, or both."""

    intervals: bool
    spreads: bool

    @staticmethod
    def of(rows: Iterable[Row], *, short: bool = False) -> "UncertaintyColumns":
        """All that these rows know; where it has to be short, not both."""
        spreads = any(row.spread is not None for row in rows)
        return UncertaintyColumns(intervals=not (short and spreads), spreads=spreads)

    def columns(self, word: str, meaning: str = "") -> list[Column]:
        """The heads of a value and of what stands beside it."""
        columns = [Column(word, "number", meaning)]
        if self.intervals:
            columns.append(Column("interval", "interval"))
        if self.spreads:  # intervals over inputs come first in a terminal
            detail: Detail = "full" if self.intervals else "all"
            meaning = "standard deviation over replicates"
            columns.append(Column("±", "interval", meaning, detail))
        return columns

    def cells(self, row: Row | None, tone: Tone = "plain") -> list[Cell]:
        """A value in percent, and what stands beside it."""
        cells = [percent_cell(value_of(row), tone)]
        if self.intervals:
            limits = "" if row is None else percent_interval(row.low, row.high)
            cells.append(Cell(limits, tone="quiet"))
        if self.spreads:
            differ = "" if row is None or row.spread is None else f"±{percent(row.spread)}"
            cells.append(Cell(differ, tone="quiet"))
        return cells


def _lines(
    found: Mapping[tuple[str, str, str], Row], metrics: Sequence[str]
) -> Iterator[tuple[str, str, bool]]:
    """Method, combination, and whether it stands for all combinations; references come last."""
    methods = dict.fromkeys(method for method, _, _ in found)
    ways = list(dict.fromkeys(how for _, how, _ in found))
    for method in sorted(methods, key=is_reference):
        said = {
            tuple(value_of(found.get((method, how, metric))) for metric in metrics) for how in ways
        }
        alike = len(said) == 1 and len(ways) > 1
        for how in ways[:1] if alike else ways:
            if any((method, how, metric) in found for metric in metrics):
                yield method, how, alike


def _best(found: Mapping[tuple[str, str, str], Row], metric: str) -> list[float]:
    """The best value and the second best of those that are retrained."""
    lower = metric_of(metric).direction == "lower"
    values = {
        round(row.value, 6)
        for (method, _, name), row in found.items()
        if name == metric and not is_reference(method) and row.value == row.value
    }
    return sorted(values, reverse=not lower)[:2]


def _rank(row: Row | None, best: Sequence[float]) -> Tone:
    if row is None or round(row.value, 6) not in best:
        return "plain"
    return "best" if round(row.value, 6) == best[0] else "second"
