"""The paper's tables: methods and combinations, best and second best marked, intervals, cost."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dynsnap.ensemble import METHODS
from dynsnap.metrics import metric as metric_of
from dynsnap.report._blocks import UNDEFINED
from dynsnap.report._element import Markup
from dynsnap.report._study_words import (
    HEADLINE,
    MOVES,
    abbreviated,
    kappa,
    pairs_of,
    preferred,
)
from dynsnap.report.html._parts import INTERVAL, Entry, Head, Listing, listing
from dynsnap.study import NEVER_RETRAIN, NOISE_FLOOR, Row

TOP = {
    "top_2_accuracy": "CACC-2",
    "top_2_consistency": "CCON-2",
    "top_5_accuracy": "CACC-5",
    "top_5_consistency": "CCON-5",
}
SCORES = {"pearson": "Pearson", "cosine": "cosine"}
CASES = {"kept": "kept", "gained": "gained", "lost": "lost", "never": "never", "composite": "Com"}
WAYS = "MV, WMV: majority and weighted majority vote. AVG, WAVG: average and weighted average."
_PAIRS = 3  # whose columns have room beside each other
_INTERVALS = 3  # that have room
SAID = "±: standard deviation over replicates."
SPREAD = Head("standard deviation over replicates", fixed=True, unseen=True)


def is_reference(method: str) -> bool:
    """Whether it is shown for reference only: the noise floor, and what is never retrained."""
    return method == NOISE_FLOOR or method.startswith(NEVER_RETRAIN)


def is_ablation(method: str) -> bool:
    """Whether it is a method of the study's own, beside the paper's six."""
    return method not in METHODS and not is_reference(method)


def by_method(
    name: str,
    caption: str,
    rows: Sequence[Row],
    metrics: Mapping[str, str] = HEADLINE,
    *,
    short: bool = False,
    rounds: Mapping[str, str] | None = None,
) -> Markup:
    """Some metrics of every method and combination; short of intervals, where asked for.

    Where `rounds` says how methods are trained, that stands beside them.
    """
    found = {
        (row.method, row.combination, row.metric): row for row in rows if row.metric in metrics
    }
    shown = {key: word for key, word in metrics.items() if any(key == one[2] for one in found)}
    ranks = {metric: _best(found, metric) for metric in shown}
    extent = Extent.of(found.values(), short=short)
    if short and len(shown) > _INTERVALS:  # the table of all metrics has them
        extent = replace(extent, intervals=False)
    price = _Price.of(found.values())
    trained = (
        [Head("epochs", meaning="Of a round: windows and their length, or the best of how many.")]
        if rounds
        else []
    )
    heads = [Head("method"), *trained, Head("by"), *price.heads()]
    for metric, word in shown.items():
        heads += extent.heads(word, metric_of(metric).meaning)
    made = []
    for method, how, alike in _lines(found, list(shown)):
        present = [found.get((method, how, metric)) for metric in shown]
        line = [
            Entry(method, tone="quiet" if is_reference(method) else ""),
            *([Entry(rounds.get(method, ""), tone="quiet")] if rounds else []),
            Entry("all" if alike else abbreviated(how)),
            *price.cells(next(row for row in present if row is not None)),
        ]
        for metric, row in zip(shown, present, strict=True):
            place = "" if is_reference(method) else _rank(row, ranks[metric])
            line += extent.cells(row, tone=place)
        made.append(line)
    said = (WAYS, SAID if extent.spreads else "")
    return listing(
        Listing(
            name=name,
            caption=caption,
            heads=tuple(heads),
            rows=made,
            grouped=True,
            note=" ".join(part for part in said if part),
        )
    )


def by_pair(rows: Sequence[Row]) -> Markup | None:
    """What was gained and lost between each two generations; None where a table does not say."""
    how = preferred(rows)
    found = {(row.method, row.metric): row for row in rows if row.combination == how}
    every = pairs_of(metric for _, metric in found)
    if not every:
        return None
    pairs = every[-_PAIRS:]
    price = _Price.of(found.values())
    heads = [Head("method"), *price.heads()]
    for pair in pairs:
        arrow = pair.replace("_", "→")
        heads += [
            Head(f"{word} {arrow}", True, f"{metric_of(metric).meaning} Generations {arrow}.")
            for metric, word in MOVES.items()
        ]
    lines = []
    for method in sorted({method: None for method, _ in found}, key=is_reference):
        present = [found.get((method, f"{metric}_{pair}")) for pair in pairs for metric in MOVES]
        first = next((row for row in present if row is not None), None)
        if first is not None:
            values = [value_of(row) for row in present]
            line = [Entry(method, tone="quiet" if is_reference(method) else "")]
            line += price.cells(first)
            lines.append([*line, *(Entry(percent(value), key=value) for value in values)])
    return listing(
        Listing(
            name="pairs-table",
            caption=f"Gained, lost and composite of each pair ({abbreviated(how)})",
            heads=tuple(heads),
            rows=lines,
            note=f"The last {_PAIRS} of {len(every)} pairs; `table.csv` has all."
            if len(every) > _PAIRS
            else "",
        )
    )


@dataclass(frozen=True, slots=True)
class _Price:
    """What a generation costs: κ, and seconds where they were written down."""

    digits: int | None  # behind the point of seconds, so that they line up

    @staticmethod
    def of(rows: Iterable[Row]) -> "_Price":
        known = [row.seconds for row in rows if row.seconds is not None]
        longest = max(known, default=0.0)
        return _Price((3 if longest < 10 else 1 if longest < 1000 else 0) if known else None)

    def heads(self) -> list[Head]:
        heads = [Head("κ", True, "Trainings from scratch per generation.")]
        if self.digits is not None:
            heads.append(Head("s", True, "Seconds of training per generation."))
        return heads

    def cells(self, row: Row) -> list[Entry]:
        cells = [Entry(kappa(row.cost), key=row.cost)]
        if self.digits is not None:
            took = "" if row.seconds is None else f"{row.seconds:,.{self.digits}f}"
            cells.append(Entry(took, key=row.seconds, tone="quiet"))
        return cells


@dataclass(frozen=True, slots=True)
class Extent:
    """What stands beside a value: its interval, how replicates differ, or both."""

    intervals: bool
    spreads: bool

    @staticmethod
    def of(rows: Iterable[Row], *, short: bool = False) -> "Extent":
        """All that these rows know; where it has to be short, not both."""
        spreads = any(row.spread is not None for row in rows)
        return Extent(intervals=not (short and spreads), spreads=spreads)

    def heads(self, word: str, meaning: str = "") -> list[Head]:
        """The heads of a value and of what stands beside it."""
        beside = [*([INTERVAL] if self.intervals else []), *([SPREAD] if self.spreads else [])]
        return [Head(word, True, meaning), *beside]

    def cells(self, row: Row | None, *, tone: str = "") -> list[Entry]:
        """A value in percent, and what stands beside it."""
        cells = [Entry(percent(value_of(row)), key=value_of(row), tone=tone)]
        if self.intervals:
            cells.append(Entry(limits(row), tone="range"))
        if self.spreads:
            differ = "" if row is None or row.spread is None else f"±{percent(row.spread)}"
            cells.append(Entry(differ, tone="range"))
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


def _rank(row: Row | None, best: Sequence[float]) -> str:
    if row is None or round(row.value, 6) not in best:
        return ""
    return "best" if round(row.value, 6) == best[0] else "second"


def value_of(row: Row | None) -> float | None:
    """The value of a row that may be missing."""
    return None if row is None else row.value


def percent(value: float | None) -> str:
    """A fraction in percent, or a dash."""
    return UNDEFINED if value is None or value != value else f"{100 * value:.2f}"


def limits(row: Row | None) -> str:
    """The interval of a row in percent, or nothing."""
    if row is None or row.low is None or row.high is None:
        return ""
    return f"[{percent(row.low)}, {percent(row.high)}]"
