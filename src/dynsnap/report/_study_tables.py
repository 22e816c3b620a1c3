"""The paper's tables of a study, and how their cells are written."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from dynsnap.report._blocks import UNDEFINED, Cell, Column, Table, Tone, without_empty_columns
from dynsnap.report._study_words import HEADLINE, MOVES, abbreviated, kappa, pairs_of
from dynsnap.study import Row

Found: TypeAlias = Mapping[tuple[str, str, str], Row]  # by method, combination and metric

BASELINE = "singlebase"
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
_PRICE = (Column("κ", numeric=True), Column("s", numeric=True))


def main_table(found: Found, methods: Sequence[str], combinations: Sequence[str]) -> Table:
    """The paper's Table 2: the main metrics by every combination, with intervals."""
    heads = [Column("method"), Column("by"), *_PRICE]
    for symbol in HEADLINE.values():
        heads += value_heads(symbol)
    lines = []
    for method in methods:
        alike = len(combinations) > 1 and _alike(found, method, combinations)
        for position, how in enumerate(combinations[:1] if alike else combinations):
            present = [found.get((method, how, metric)) for metric in HEADLINE]
            first = next((row for row in present if row is not None), None)
            if first is None:
                continue
            cells = [
                Cell(method if position == 0 else "", "strong"),
                Cell("all" if alike else abbreviated(how)),
                *(_price(first) if position == 0 else [Cell("")] * len(_PRICE)),
            ]
            for metric, row in zip(HEADLINE, present, strict=True):
                base = found.get((BASELINE, how, metric))
                cells += value_cells(row, tone_of(row, base))
            lines.append(tuple(cells))
    keys = 3 + _timed(found)
    table = Table(title="", columns=tuple(heads), rows=tuple(lines), keys=keys, unit=2)
    return without_empty_columns(table)


def further_tables(
    found: Found, methods: Sequence[str], combinations: Sequence[str]
) -> Iterator[Table]:
    """The paper's Table 4, and how well late classes are answered, by each of the averages."""
    named = [metric for metric in _FURTHER if any(key[2] == metric for key in found)]
    lines = []
    for method in methods:
        for how in combinations:
            present = [found.get((method, how, metric)) for metric in named]
            first = next((row for row in present if row is not None), None)
            if first is not None:
                cells = [Cell(method, "strong"), Cell(abbreviated(how)), *_price(first)]
                lines.append((*cells, *(Cell(percent(row)) for row in present)))
    if lines:
        heads = [Column("method"), Column("by"), *_PRICE]
        heads += [Column(_FURTHER[metric], numeric=True) for metric in named]
        title = "Top k, likeness of scores, and late classes in the last generation"
        keys = 3 + _timed(found)
        yield without_empty_columns(
            Table(title=title, columns=tuple(heads), rows=tuple(lines), keys=keys)
        )


def transition_tables(found: Found, methods: Sequence[str], how: str) -> Iterator[Table]:
    """The paper's Table 5: what each retrain gained and lost, pair by pair."""
    pairs = pairs_of(metric for _, _, metric in found)
    lines = []
    for method in methods:
        rows = [found.get((method, how, f"{metric}_{pair}")) for pair in pairs for metric in MOVES]
        first = next((row for row in rows if row is not None), None)
        if first is not None:
            lines.append((Cell(method, "strong"), *_price(first), *map(Cell, map(percent, rows))))
    if lines:
        heads = [
            Column(f"{symbol} {pair.replace('_', '→')}", numeric=True)
            for pair in pairs
            for symbol in MOVES.values()
        ]
        yield Table(
            title=f"Gained, lost and composite of each pair ({abbreviated(how)})",
            columns=(Column("method"), *_PRICE, *heads),
            rows=tuple(lines),
            keys=3,
            unit=len(MOVES),
        )


def _timed(found: Found) -> bool:
    """Whether seconds were written down, which older tables have not."""
    return any(row.seconds is not None for row in found.values())


def _price(row: Row) -> list[Cell]:
    """What a generation costs: κ, and seconds where they were written down."""
    return [Cell(kappa(row.cost)), Cell("" if row.seconds is None else f"{row.seconds:.3g}")]


def _alike(found: Found, method: str, combinations: Sequence[str]) -> bool:
    """Whether all combinations say the same, as they must where there is one member."""
    said = {
        tuple(
            (row.value, row.low, row.high)
            for metric in HEADLINE
            if (row := found.get((method, how, metric))) is not None
        )
        for how in combinations
    }
    return len(said) == 1


def value_heads(symbol: str, spread: bool = False) -> list[Column]:
    """The heads of a value and of what stands beside it."""
    more = [Column("±", numeric=True)] if spread else []
    return [Column(symbol, numeric=True), Column("interval", numeric=True), *more]


def value_cells(row: Row | None, tone: Tone, spread: bool = False) -> list[Cell]:
    """A value, its interval, and how replicates differ where that is asked for."""
    cells = [Cell(percent(row), tone), Cell(_interval(row), "quiet")]
    return [*cells, Cell(spread_of(row), "quiet")] if spread else cells


def tone_of(row: Row | None, base: Row | None) -> Tone:
    """Good and bad where the interval leaves no doubt about the baseline's value."""
    if row is None or base is None or row.low is None or row.high is None or row is base:
        return "plain"
    if row.low > base.value:
        return "good"
    return "bad" if row.high < base.value else "plain"


def percent(row: Row | None) -> str:
    """The value of a row that may be missing, in percent."""
    return UNDEFINED if row is None else _short(row.value)


def spread_of(row: Row | None) -> str:
    """How replicates differ, in percent; empty where that is not known."""
    return "" if row is None or row.spread is None else f"{100 * row.spread:.1f}"


def _interval(row: Row | None) -> str:
    if row is None or row.low is None or row.high is None:
        return ""
    return f"{_short(row.low)}–{_short(row.high)}"


def _short(value: float) -> str:
    text = f"{100 * value:.1f}"
    return "100" if text == "100.0" else text
