"""Many generations: lines over time, every two side by side, and the inputs that keep changing."""

import itertools
import math
from collections.abc import Iterator

from dynsnap.comparison import Comparison, Estimates, PairResult
from dynsnap.metrics import metric
from dynsnap.report.build.cells import (
    SAME_DATA,
    about_floor,
    count_cell,
    estimate_cells,
    interval_column,
)
from dynsnap.report.build.inputs import Excerpts, unstable
from dynsnap.report.document import (
    Cell,
    Column,
    Detail,
    Node,
    Order,
    Prose,
    Section,
    Side,
    Table,
    Tiles,
)
from dynsnap.report.figures import Figure, Point, Series, chart, grid
from dynsnap.report.figures._drawing import Tone
from dynsnap.report.words import clipped, number, symbol_of

# Beside accuracy; kept and never are shown by the bar and the table of cases on a page.
HEADLINE: dict[str, Detail] = {
    "lost": "all",
    "gained": "all",
    "kept": "brief",
    "never": "brief",
    "consistency": "all",
    "correct_consistency": "all",
    "mean_absolute_change": "all",
    "jaccard_consistency": "all",
}
# Without the truth.
UNKNOWN: dict[str, Detail] = {
    "consistency": "all",
    "churn": "all",
    "mean_absolute_change": "all",
    "jaccard_consistency": "all",
}
FEW = 4  # generations of which every pair has a column of its own
_MOST = 60  # generations in a matrix
_PRINTED = 12  # generations in a matrix of the terminal
_PLACES = 15  # names along a chart
_MATRICES = ("consistency", "correct_consistency")


def generations(
    comparison: Comparison, excerpts: Excerpts, together: Tiles | None, *, limit: int
) -> Section:
    """All generations: over time, every two side by side, and the inputs that keep changing."""
    names = [each.name for each in comparison.generations]
    body: list[Node] = [] if together is None else [together]
    body += [Side(tuple(_over_time(comparison))), _retrains(comparison)]
    if len(names) > FEW:
        body.append(_worst_pairs(comparison, limit))
    matrices = tuple(_matrices(comparison))
    # Two large ones side by side would be too small to read.
    body += [Side(matrices)] if len(names) <= _PRINTED else matrices
    if len(names) > _PRINTED:
        note = "Matrices of every two generations: --html draws them, --json has the numbers."
        body.append(Prose(note, "quiet", detail="brief"))
    if len(names) > _MOST:
        note = f"Matrices show the last {_MOST} of {len(names)} generations; --json has all."
        body.append(Prose(note, "quiet", detail="full"))
    if comparison.unstable:
        body.append(unstable(comparison.unstable, names, excerpts))
    else:
        body.append(Prose("No input changed its answer more than once.", "quiet"))
    return Section(
        name="generations",
        title=f"All {len(names)} generations",
        short="Generations",
        lead="Everything below this section is about the last retrain.",
        body=tuple(body),
    )


def _consecutive(comparison: Comparison) -> list[PairResult]:
    """The pairs of a generation and the next."""
    names = [each.name for each in comparison.generations]
    following = set(itertools.pairwise(names))
    return [pair for pair in comparison.pairs if (pair.old, pair.new) in following]


def _over_time(comparison: Comparison) -> Iterator[Figure]:
    """What stays high, and what stays low: on one plane each would flatten the other."""
    names = _apart([each.name for each in comparison.generations])
    series = []
    if known := _points(enumerate(each.metrics for each in comparison.generations), "accuracy"):
        series.append(Series(name="accuracy", points=known, tone="one"))
    steps = [pair.metrics for pair in _consecutive(comparison)]
    tones: dict[str, Tone] = {
        "consistency": "two",
        "correct_consistency": "four",
        "lost": "lost",
        "gained": "gained",
        "churn": "two",
    }
    for name in ("consistency", "correct_consistency"):
        if known := _points(enumerate(steps, 1), name):
            said = f"{symbol_of(name)} with the one before"
            series.append(Series(name=said, points=known, tone=tones[name]))
    moves = [
        Series(name=name, points=known, tone=tones[name])
        for name in (("lost", "gained") if comparison.has_truth else ("churn",))
        if (known := _points(enumerate(steps, 1), name))
    ]
    if comparison.ambiguity_so_far:
        points = (Point(x=float(i), y=y) for i, y in enumerate(comparison.ambiguity_so_far))
        highest = max((point.y for one in moves for point in one.points), default=1.0)
        # It only grows: where it is far above them, they would be flat lines beside it.
        fits = max(comparison.ambiguity_so_far) <= 3 * highest
        moves.append(
            Series(name="ambiguity so far", points=tuple(points), tone="three", drawn=fits)
        )
    places = [(float(i), clipped(name, 24)) for i, name in enumerate(names)]
    every = max(1, math.ceil(len(places) / _PLACES))  # names that have room below the line
    for name, title, drawn in (
        ("over-time", "Over time: accuracy and consistency", series),
        ("lost-over-time", "Over time: what changed in each retrain", moves),
    ):
        if not drawn:
            continue
        ends = ", ".join(f"{one.name} ends at {number(one.points[-1].y)}" for one in drawn)
        yield chart(
            name=name,
            title=title,
            description=f"{ends[:1].upper()}{ends[1:]}.",
            series=drawn,
            across="generation",
            up="share of inputs",
            places=places[::-1][::every][::-1],
            said="{:.2f}".format,
            letters="lines",
        )


def _points(found: Iterator[tuple[int, Estimates]], name: str) -> tuple[Point, ...]:
    return tuple(
        Point(x=float(place), y=one.value, low=one.low, high=one.high)
        for place, metrics in found
        if (one := metrics.get(name)) is not None and not math.isnan(one.value)
    )


def _apart(names: list[str]) -> list[str]:
    """Names without what all begin with: where there is little room, the rest distinguishes them.

    Example:
        >>> _apart(["model-2024-01", "model-2024-02"]), _apart(["old", "new"])
        (['01', '02'], ['old', 'new'])
    """
    shared = "".join(
        marks[0]
        for marks in itertools.takewhile(
            lambda each: len(set(each)) == 1, zip(*names, strict=False)
        )
    )
    start = max(shared.rfind(mark) for mark in " -_/.:") + 1
    return [name[start:] for name in names]


def _matrices(comparison: Comparison) -> Iterator[Figure]:
    names = _apart([each.name for each in comparison.generations][-_MOST:])
    few = len(comparison.generations) <= _PRINTED
    for name in _MATRICES:
        if name not in comparison.pairs[-1].metrics:
            continue
        values = comparison.matrix(name)[-_MOST:, -_MOST:].tolist()
        known = [value for row in values for value in row if not math.isnan(value)]
        entry = metric(name)
        diagonal = "1" if name == "consistency" else "the accuracy of each generation"
        yield grid(
            name=name.replace("_", "-"),
            title=f"{entry.symbol} of every two generations",
            description=f"{entry.meaning} Between {number(min(known))} and {number(max(known))}; "
            f"the diagonal holds {diagonal}.",
            rows=names,
            columns=names,
            values=[[None if math.isnan(value) else value for value in row] for row in values],
            said=number if few else _hundredths,
            tone="one",
            floor=min(known) - 0.02,
            letters="table" if few else "none",
        )


def _hundredths(value: float) -> str:
    """A share in as few letters as a large matrix has room for.

    Example:
        >>> _hundredths(0.834), _hundredths(1.0)
        ('.83', '1')
    """
    said = f"{value:.2f}"
    return "1" if said == "1.00" else said.removeprefix("0")


def _worst_pairs(comparison: Comparison, limit: int) -> Table:
    """Every two generations, those that differ most first."""
    places = {each.name: place for place, each in enumerate(comparison.generations)}
    first = "lost" if comparison.has_truth else "churn"
    ranked = sorted(comparison.pairs, key=lambda pair: -_value(pair, first))
    wanted = HEADLINE if comparison.has_truth else UNKNOWN
    shown = [name for name, detail in wanted.items() if detail == "all"]
    shown = [name for name in shown if name in ranked[0].metrics]
    columns = [Column("old"), Column("new", key=True), Column("retrains apart", "number")]
    for name in shown:
        order: Order = "descending" if name == first else ""
        columns.append(Column(symbol_of(name), "number", metric(name).meaning, order=order))
        columns.append(interval_column("full"))
    rows = []
    for pair in ranked:
        cells = (cell for name in shown for cell in estimate_cells(pair.metrics.get(name)))
        apart = places[pair.new] - places[pair.old]
        rows.append((Cell(pair.old), Cell(pair.new), count_cell(apart), *cells))
    return Table(
        name="pairs-table",
        title=f"Every two generations, most {first} first",
        columns=tuple(columns),
        rows=tuple(rows),
        brief_rows=limit,
        search=True,
        tall=15,
    )


def _value(pair: PairResult, name: str) -> float:
    found = pair.metrics.get(name)
    return -1.0 if found is None or math.isnan(found.value) else found.value


def _retrains(comparison: Comparison) -> Table:
    """Each generation beside the one before, then the mean of all pairs, and the noise floor."""
    pairs = _consecutive(comparison)
    shown = {name: detail for name, detail in HEADLINE.items() if name in pairs[-1].metrics}
    columns = [Column("retrain")]
    for name, detail in shown.items():
        columns += [
            Column(symbol_of(name), "number", metric(name).meaning, detail),
            interval_column("full"),
        ]
        if detail == "brief":
            columns.pop()
    floor = pairs[-1].noise_floor
    lines = [(f"{clipped(pair.old, 30)} → {clipped(pair.new, 30)}", pair.metrics) for pair in pairs]
    lines.append(("mean of all pairs", comparison.averages))
    lines += [(SAME_DATA, floor)] if floor else []
    rows = []
    for title, metrics in lines:
        row = [Cell(title)]
        for name, detail in shown.items():
            both = estimate_cells(metrics.get(name))
            row += both[:1] if detail == "brief" else both
        rows.append(tuple(row))
    return Table(
        name="retrains-table",
        title="Every retrain: a generation and the one before it",
        columns=tuple(columns),
        rows=tuple(rows),
        footer=about_floor(comparison) if floor else "",
    )
