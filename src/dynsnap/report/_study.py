"""A study as a report: the paper's table, and pictures of what consistency costs."""

from collections.abc import Iterator, Sequence

from dynsnap.report._blocks import (
    UNDEFINED,
    Block,
    Bullets,
    Cell,
    Column,
    Document,
    Heading,
    Paragraph,
    Table,
    Tone,
    without_empty_columns,
)
from dynsnap.report._plots import bar, spark
from dynsnap.study import NEVER_RETRAIN, NOISE_FLOOR, Row, Standing, SweepRow, frontier

_METRICS = {
    "accuracy": "ACC",
    "consistency": "CON",
    "correct_consistency": "ACC-CON",
}
# The paper's Table 4, which it has of the two averages only: votes are not scores.
_FURTHER = {
    "top_2_consistency": "CCON-2",
    "top_2_accuracy": "CACC-2",
    "top_5_consistency": "CCON-5",  # with more than 20 classes
    "top_5_accuracy": "CACC-5",
    "pearson": "Pearson",
    "cosine": "cosine",
    "late_accuracy": "late ACC",
}
_TRANSITIONS = {"gained": "gained", "lost": "lost", "composite": "Com"}  # its Table 5
_SHORT = {
    "majority": "MV",
    "weighted_majority": "WMV",
    "average": "AVG",
    "weighted_average": "WAVG",
}
_PRICE = (Column("κ", numeric=True), Column("s", numeric=True))
_EACH = 5  # generations whose accuracy has a column of its own
_BAR = 24  # cells of the longest bar
_BASELINE = "singlebase"


def study_report(
    rows: Sequence[Row], *, title: str, sweeps: Sequence[SweepRow] = (), notes: Sequence[str] = ()
) -> Document:
    """The table of a study as the paper has it, in percent, with pictures.

    Args:
        rows: The study's table.
        title: What the study is called, and what it was run on.
        sweeps: The points of its sweeps.
        notes: What the reader should know, a sentence each.
    """
    return tuple(_blocks(rows, title, sweeps, notes))


def _blocks(
    rows: Sequence[Row], title: str, sweeps: Sequence[SweepRow], notes: Sequence[str]
) -> Iterator[Block]:
    found = {(row.method, row.combination, row.metric): row for row in rows}
    methods = list(dict.fromkeys(row.method for row in rows))
    combinations = list(dict.fromkeys(row.combination for row in rows))
    yield Heading(title)
    yield Paragraph(
        "Percent, with 95 % intervals over test inputs. ACC: mean over generations; CON (labelled "
        "alike) and ACC-CON (alike and right): mean over pairs of generations. κ, s: trainings "
        "from scratch per generation, and their seconds. MV, WMV: majority and weighted majority "
        "vote; AVG, WAVG: average and weighted average.",
        "quiet",
    )
    yield _main(found, methods, combinations)
    how = "average" if "average" in combinations else combinations[0]
    averages = [one for one in combinations if one.endswith("average")]
    yield from _further(found, methods, averages or [how])
    yield from _transitions(found, methods, how)
    for metric in ("consistency", "correct_consistency"):
        yield _picture(found, methods, how, metric)
    yield from _frontier(frontier(rows, combination=how), how)
    for name in dict.fromkeys(point.sweep for point in sweeps):
        yield _sweep([point for point in sweeps if point.sweep == name])
    yield Bullets("Reading it", (*_explained(found, methods, how), *notes))


def _main(
    found: dict[tuple[str, str, str], Row], methods: Sequence[str], combinations: Sequence[str]
) -> Table:
    heads = [Column("method"), Column("by"), *_PRICE]
    for symbol in _METRICS.values():
        heads += _value_heads(symbol)
    lines = []
    for method in methods:
        alike = len(combinations) > 1 and _alike(found, method, combinations)
        for position, how in enumerate(combinations[:1] if alike else combinations):
            present = [found.get((method, how, metric)) for metric in _METRICS]
            first = next((row for row in present if row is not None), None)
            if first is None:
                continue
            cells = [
                Cell(method if position == 0 else "", "strong"),
                Cell("all" if alike else _SHORT.get(how, how)),
                *(_price(first) if position == 0 else [Cell("")] * len(_PRICE)),
            ]
            for metric, row in zip(_METRICS, present, strict=True):
                base = found.get((_BASELINE, how, metric))
                cells += _value_cells(row, _tone(row, base))
            lines.append(tuple(cells))
    keys = 3 + _timed(found)
    table = Table(title="", columns=tuple(heads), rows=tuple(lines), keys=keys, unit=2)
    return without_empty_columns(table)


def _value_heads(symbol: str, spread: bool = False) -> list[Column]:
    more = [Column("±", numeric=True)] if spread else []
    return [Column(symbol, numeric=True), Column("interval", numeric=True), *more]


def _value_cells(row: Row | None, tone: Tone, spread: bool = False) -> list[Cell]:
    cells = [Cell(_percent(row), tone), Cell(_interval(row), "quiet")]
    return [*cells, Cell(_spread(row), "quiet")] if spread else cells


def _further(
    found: dict[tuple[str, str, str], Row], methods: Sequence[str], combinations: Sequence[str]
) -> Iterator[Table]:
    """The paper's Table 4, and how well late classes are answered, by each of the averages."""
    named = [metric for metric in _FURTHER if any(key[2] == metric for key in found)]
    lines = []
    for method in methods:
        for how in combinations:
            present = [found.get((method, how, metric)) for metric in named]
            first = next((row for row in present if row is not None), None)
            if first is not None:
                cells = [Cell(method, "strong"), Cell(_SHORT.get(how, how)), *_price(first)]
                lines.append((*cells, *(Cell(_percent(row)) for row in present)))
    if lines:
        heads = [Column("method"), Column("by"), *_PRICE]
        heads += [Column(_FURTHER[metric], numeric=True) for metric in named]
        title = "Top k, likeness of scores, and late classes in the last generation"
        keys = 3 + _timed(found)
        yield without_empty_columns(
            Table(title=title, columns=tuple(heads), rows=tuple(lines), keys=keys)
        )


def _transitions(
    found: dict[tuple[str, str, str], Row], methods: Sequence[str], how: str
) -> Iterator[Table]:
    """The paper's Table 5: what each retrain gained and lost, pair by pair."""
    pairs = list(dict.fromkeys(key[2][5:] for key in found if key[2].startswith("lost_")))
    lines = []
    for method in methods:
        rows = [
            found.get((method, how, f"{metric}_{pair}"))
            for pair in pairs
            for metric in _TRANSITIONS
        ]
        first = next((row for row in rows if row is not None), None)
        if first is not None:
            lines.append((Cell(method, "strong"), *_price(first), *map(Cell, map(_percent, rows))))
    if lines:
        heads = [
            Column(f"{symbol} {pair.replace('_', '→')}", numeric=True)
            for pair in pairs
            for symbol in _TRANSITIONS.values()
        ]
        yield Table(
            title=f"Gained, lost and composite of each pair ({_SHORT.get(how, how)})",
            columns=(Column("method"), *_PRICE, *heads),
            rows=tuple(lines),
            keys=3,
            unit=len(_TRANSITIONS),
        )


def _timed(found: dict[tuple[str, str, str], Row]) -> bool:
    """Whether seconds were written down, which older tables have not."""
    return any(row.seconds is not None for row in found.values())


def _price(row: Row) -> list[Cell]:
    """What a generation costs: κ, and seconds where they were written down."""
    return [Cell(f"{row.cost:.1f}"), Cell("" if row.seconds is None else f"{row.seconds:.3g}")]


def _alike(
    found: dict[tuple[str, str, str], Row], method: str, combinations: Sequence[str]
) -> bool:
    """Whether all combinations say the same, as they must where there is one member."""
    said = {
        tuple(
            (row.value, row.low, row.high)
            for metric in _METRICS
            if (row := found.get((method, how, metric))) is not None
        )
        for how in combinations
    }
    return len(said) == 1


def _picture(
    found: dict[tuple[str, str, str], Row], methods: Sequence[str], how: str, metric: str
) -> Table:
    shown = {
        method: found[method, how, metric] for method in methods if (method, how, metric) in found
    }
    values = [row.value for row in shown.values()]
    start = max(0.0, int(min(values) * 100 - 5) // 5 * 5 / 100)
    lines = tuple(
        (
            Cell(method),
            Cell(f"{row.cost:.1f}"),
            Cell(bar((row.value - start) / (1 - start), _BAR), _tone(row, shown.get(_BASELINE))),
            Cell(_percent(row)),
            Cell(_spread(row), "quiet"),
        )
        for method, row in shown.items()
    )
    differ = any(row.spread is not None for row in shown.values())
    table = Table(
        title=f"{_METRICS[metric]} ({_SHORT.get(how, how)}); bars run from {start:.0%} to 100%",
        columns=(
            Column("method"),
            Column("κ", numeric=True),
            Column(""),
            Column("%", numeric=True),
            Column("±", numeric=True),
        ),
        rows=lines,
        footer="±: standard deviation over replicates." if differ else "",
    )
    return without_empty_columns(table)


def _frontier(found: Sequence[Standing], how: str) -> Iterator[Block]:
    """What each method gives and takes, and whether it counts."""
    if not any(one.judged for one in found):
        return
    each = [row.metric.removeprefix("accuracy_") for row in max(found, key=_known).accuracies]
    if len(each) > _EACH:  # of a long stream, the first and the last say most
        each = [each[0], *each[-2:]]
    heads = [Column("method"), Column("κ", numeric=True)]
    heads += [Column(f"ACC {number}", numeric=True) for number in each]
    heads += [Column(word, numeric=True) for word in ("gained", "lost", "CON", "ACC-CON", "late")]
    lines = []
    for one in found:
        accuracy = {row.metric.removeprefix("accuracy_"): row for row in one.accuracies}
        rest = (one.gained, one.lost, one.consistency, one.correct_consistency, one.late)
        counts = "–" if not one.judged else "yes" if one.counts else "no"
        tones: dict[str, Tone] = {"yes": "good", "no": "bad", "–": "quiet"}
        lines.append(
            (
                Cell(one.method),
                Cell(f"{one.cost:.1f}"),
                *(Cell(_percent(accuracy.get(number))) for number in each),
                *(Cell(_percent(row)) for row in rest),
                Cell(counts, tones[counts]),
            )
        )
    yield Table(
        title=f"Accuracy of each generation, losses, cost ({_SHORT.get(how, how)})",
        columns=(*heads, Column("counts")),
        rows=tuple(lines),
        footer="Counts: late classes at least 0.9 of dynsnap-cyc's, the last generation at most "
        "0.3 points below.",
    )


def _known(one: Standing) -> int:
    return len(one.accuracies)


def _sweep(points: Sequence[SweepRow]) -> Table:
    labels = list(dict.fromkeys(point.point for point in points))
    found = {(point.point, point.row.metric): point.row for point in points}
    shown = {
        metric: [row.value for label in labels if (row := found.get((label, metric))) is not None]
        for metric in _METRICS
    }
    spread = any(point.row.spread is not None for point in points)
    lines = []
    for label in labels:
        rows = [found.get((label, metric)) for metric in _METRICS]
        cost = next(row.cost for row in rows if row is not None)
        cells = [Cell(label), Cell(f"{cost:.1f}")]
        for row in rows:
            cells += _value_cells(row, "plain", spread)
        lines.append(tuple(cells))
    heads = [Column(points[0].over), Column("κ", numeric=True)]
    for symbol in _METRICS.values():
        heads += _value_heads(symbol, spread)
    drawn = ", ".join(f"{_METRICS[metric]} {spark(values)}" for metric, values in shown.items())
    return Table(
        title=f"Sweep: {points[0].sweep}  {drawn}",
        columns=tuple(heads),
        rows=tuple(lines),
        keys=2,
        unit=3 if spread else 2,
    )


def _explained(
    found: dict[tuple[str, str, str], Row], methods: Sequence[str], how: str
) -> Iterator[str]:
    noise = found.get((NOISE_FLOOR, how, "consistency"))
    if noise is not None:
        yield (
            f"{NOISE_FLOOR}: SingleBase trained twice on the same first generation already labels "
            f"{100 * (1 - noise.value):.1f} % of the inputs differently."
        )
    kept = found.get((NEVER_RETRAIN, how, "accuracy"))
    if kept is not None:
        yield (
            f"{NEVER_RETRAIN}: the first generation kept for ever. It never changes its mind, "
            "and never learns."
        )
    late = {
        method: found[method, how, "late_accuracy"]
        for method in methods
        if (method, how, "late_accuracy") in found
    }
    if late:
        listed = ", ".join(f"{method} {_percent(row)}" for method, row in late.items())
        yield f"Accuracy of the last generation on classes that arrived late: {listed}."


def _tone(row: Row | None, base: Row | None) -> Tone:
    """Good and bad where the interval leaves no doubt about the baseline's value."""
    if row is None or base is None or row.low is None or row.high is None or row is base:
        return "plain"
    if row.low > base.value:
        return "good"
    return "bad" if row.high < base.value else "plain"


def _percent(row: Row | None) -> str:
    return UNDEFINED if row is None else _short(row.value)


def _spread(row: Row | None) -> str:
    return "" if row is None or row.spread is None else f"{100 * row.spread:.1f}"


def _interval(row: Row | None) -> str:
    if row is None or row.low is None or row.high is None:
        return ""
    return f"{_short(row.low)}–{_short(row.high)}"


def _short(value: float) -> str:
    text = f"{100 * value:.1f}"
    return "100" if text == "100.0" else text
