"""A comparison as a document: the four cases first, then everything else, worst first."""

import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TypeAlias

from dynsnap import __version__
from dynsnap._registry import Registry
from dynsnap.comparison import Comparison, Estimate, Estimates, PairResult, TransitionCounts
from dynsnap.metrics import metric
from dynsnap.report.build.cells import (
    ABOUT_SAME_DATA,
    MADE,
    SAME_DATA,
    count_cell,
    estimate_cells,
    interval_cell,
    interval_column,
    metric_cell,
    value_cell,
)
from dynsnap.report.build.groups import answers, classes, slices
from dynsnap.report.build.inputs import Looks, flipped, unstable
from dynsnap.report.document import (
    Bullets,
    Cell,
    Column,
    Detail,
    Document,
    Node,
    Part,
    Prose,
    Section,
    Side,
    Stack,
    Strip,
    Table,
    Tile,
    Tiles,
)
from dynsnap.report.figures import Figure, Point, Series, chart, flow, grid
from dynsnap.report.words import (
    CASES,
    clipped,
    counted,
    number,
    said_p_value,
    symbol_of,
)

BREAKDOWNS = ("class", "slice")

_NAMED = 5  # generations that a title names, of more the first and the last two
_MOST = 20  # generations in a matrix
_MATRICES = ("consistency", "correct_consistency")
# Beside accuracy; kept and never are told by the bar and the table of cases on a page.
_HEADLINE: dict[str, Detail] = {
    "lost": "all",
    "gained": "all",
    "kept": "brief",
    "never": "brief",
    "consistency": "all",
    "correct_consistency": "all",
}
_UNKNOWN: dict[str, Detail] = {"consistency": "all", "churn": "all"}  # without the truth
_FLIPS = {"lost": "NFR", "gained": "PFR"}  # rates of negative and positive flips
_DIRECTION = {"higher": "higher is better", "lower": "lower is better", "neither": ""}

BuildSection: TypeAlias = Callable[[Comparison], Section | None]

# Sections that code has added, by name.
SECTIONS: Registry[BuildSection] = Registry("page section", {})


def register_section(name: str, build: BuildSection) -> None:
    """Add a section to the reports of comparisons and gates, in this process.

    Args:
        name: The name of the section, where links lead to.
        build: Makes it of a comparison; None leaves it out.
    """
    SECTIONS.add(name, build)


def comparison_document(
    comparison: Comparison,
    *,
    by: Collection[str] = BREAKDOWNS,
    limit: int = 10,
    looks: Looks | None = None,
    learned_from: Mapping[str, int] | None = None,
) -> Document:
    """Everything that a comparison found, most important first.

    With more than two generations, what is about two is about the last retrain.

    Args:
        comparison: What `dynsnap.compare` returned.
        by: Which breakdowns the terminal shows, "class" and "slice".
        limit: The most rows of a breakdown in the terminal, worst first; 0 for all.
        looks: What inputs look like, by id, as `dynsnap.data.read_excerpts` gives it.
        learned_from: Training rows of each class, where that is known.

    Example:
        >>> import dynsnap
        >>> said = dynsnap.Predictions(ids=[1, 2], classes=["cat", "dog"], labels=["cat", "dog"])
        >>> found = dynsnap.compare(said, said, names=["monday", "tuesday"])
        >>> comparison_document(found).title
        'monday → tuesday'
    """
    names = [clipped(each.name, 60) for each in comparison.generations]
    shown = names if len(names) <= _NAMED else [*names[:2], "…", *names[-2:]]
    alignment = comparison.alignment
    return Document(
        title=" → ".join(shown),
        about=setting(comparison),
        warnings=(alignment.sentence(),) if alignment.partial else (),
        sections=tuple(comparison_sections(comparison, by, limit, looks or {}, learned_from or {})),
        footer=signature(),
    )


def comparison_sections(
    comparison: Comparison,
    by: Collection[str],
    limit: int,
    looks: Looks,
    learned_from: Mapping[str, int],
) -> Iterator[Section]:
    """The sections of a comparison."""
    pair = comparison.pairs[-1]
    if len(comparison.generations) > 2:
        yield _generations(comparison, looks)
    if pair.transitions is not None:
        yield _transitions(comparison, pair, pair.transitions)
    yield _metrics(comparison, pair)
    if any(group.kind == "class" for group in pair.groups):
        detail: Detail = "all" if "class" in by else "full"
        yield classes(comparison, pair, learned_from, limit=limit, detail=detail)
    yield answers(comparison, pair, limit=limit, families="slice" in by)
    if any(group.kind == "slice" for group in pair.groups):
        yield slices(comparison, pair, limit=limit, detail="all" if "slice" in by else "full")
    yield flipped(comparison, pair, looks)
    yield from (made for build in SECTIONS.values() if (made := build(comparison)) is not None)
    warned = comparison.alignment.sentence() if comparison.alignment.partial else ""
    if notes := [note for note in comparison.notes if note != warned]:
        yield Section(name="notes", title="Notes", body=(Bullets.of("Notes", notes),))


def setting(comparison: Comparison) -> str:
    """What was compared, in a line."""
    weighted = ", weighted" if comparison.weighted else ""
    return (
        f"{counted(comparison.inputs, 'input')}, {counted(len(comparison.classes), 'class')}"
        f"{weighted}; intervals at {comparison.confidence:g} confidence from "
        f"{counted(comparison.resamples, 'resample')}."
    )


def signature() -> str:
    """What made the page."""
    return f"Made by dynsnap {__version__} from the same document as its terminal output. {MADE}"


def _arrow(pair: PairResult) -> str:
    return f"{clipped(pair.old, 40)} → {clipped(pair.new, 40)}"


def _transitions(comparison: Comparison, pair: PairResult, counts: TransitionCounts) -> Section:
    """Right and wrong before and now."""
    test = ""
    if pair.mcnemar is not None and counts.lost + counts.gained:
        level = 1 - comparison.confidence
        test = (
            f" McNemar's exact test of lost against gained: {said_p_value(pair.mcnemar)}"
            f"{_reading(pair.mcnemar, counts, level)}."
        )
    parts = (
        Part("never right" if name == "never" else name, getattr(counts, name), name)
        for name in CASES
    )
    return Section(
        name="transitions",
        title=f"What changed, {_arrow(pair)}",
        short="What changed",
        lead=(
            f"{_were(counts.lost)} right before and wrong now; "
            f"{_were(counts.gained).lower()} wrong before and right now.{test}"
        ),
        lead_detail="all",
        body=(
            Stack(tuple(parts), detail="brief"),
            _tiles(comparison, pair),
            Side((flow(pair), _cases(pair, counts))),
        ),
    )


def _were(inputs: int) -> str:
    if not inputs:
        return "No input was"
    return f"{counted(inputs, 'input')} {'was' if inputs == 1 else 'were'}"


def _reading(p: float, counts: TransitionCounts, level: float) -> str:
    if p >= level:
        return ", so the difference between the two may be chance"
    more = "lost than gained" if counts.lost > counts.gained else "gained than lost"
    return f", so more inputs were {more}"


def _tiles(comparison: Comparison, pair: PairResult) -> Tiles:
    """The numbers that are looked at first."""
    floor = pair.noise_floor or {}
    found = {each.name: each.metrics for each in comparison.generations}
    tiles = []
    if "accuracy" in found[pair.new]:
        was = found[pair.old]["accuracy"]
        note = f"was {number(was.value)}"
        tiles.append(_tile("accuracy", found[pair.new]["accuracy"], note=note))
    shown = _HEADLINE if pair.transitions is not None else _UNKNOWN
    for name, detail in shown.items():
        if name in pair.metrics:
            inputs = getattr(pair.transitions, name, None) if name in CASES else None
            note = "" if inputs is None else f"{counted(inputs, 'input')}, {CASES[name]}"
            reference = floor[name].value if name in floor else None
            estimate = pair.metrics[name]
            tiles.append(_tile(name, estimate, note=note, reference=reference, detail=detail))
    return Tiles(
        tiles=tuple(tiles),
        reference=SAME_DATA,
        footer=ABOUT_SAME_DATA if floor else "",
    )


def _tile(
    name: str,
    estimate: Estimate,
    *,
    note: str = "",
    reference: float | None = None,
    detail: Detail = "all",
) -> Tile:
    entry = metric(name)
    return Tile(
        name=name.replace("_", " "),
        symbol=_FLIPS.get(name, "") if name in CASES else entry.symbol,
        estimate=estimate,
        meaning=entry.meaning,
        note=note,
        reference=reference,
        tone="bad" if name == "lost" and estimate.value > 0 else "plain",
        detail=detail,
    )


def _cases(pair: PairResult, counts: TransitionCounts) -> Table:
    return Table(
        name="cases-of-pair",
        title="The four cases",
        columns=(
            Column("case"),
            Column("was → is"),
            Column("inputs", "number"),
            Column("share", "number"),
            interval_column(),
        ),
        rows=tuple(
            (
                metric_cell(name),
                Cell(was, tone="quiet"),
                count_cell(getattr(counts, name)),
                *estimate_cells(pair.metrics[name]),
            )
            for name, was in CASES.items()
        ),
        sortable=False,
        detail="full",  # the terminal's bar and first table have them
    )


def _metrics(comparison: Comparison, pair: PairResult) -> Section:
    """Every metric with its interval: of the pairs, of each generation, of all of them."""
    body: list[Node] = []
    if pair.transitions is None:  # nothing above has shown them
        body.append(_tiles(comparison, pair))
    body.append(_of_pairs(comparison, pair))
    shown = {pair.old, pair.new}
    alone = [(each.name, each.metrics) for each in comparison.generations]
    if any(metrics for _, metrics in alone):
        body.append(
            _side_by_side(
                "generation-metrics",
                "Each generation",
                [(name, found, "all" if name in shown else "brief") for name, found in alone],
            )
        )
    if len(comparison.pairs) > 1:
        title = "Averages over generations and over pairs"
        body.append(_side_by_side("averages", title, [("value", comparison.averages, "all")]))
    return Section(
        name="metrics",
        title="Metrics",
        lead="Hover over a metric for its definition.",
        body=tuple(body),
    )


def _of_pairs(comparison: Comparison, last: PairResult) -> Table:
    several = len(comparison.pairs) > 1
    found: list[tuple[str, Estimates, Detail]] = [
        (_arrow(pair), pair.metrics, "all" if pair is last else "brief")
        for pair in comparison.pairs
    ]
    if not several:
        found = [(found[0][0], {**last.metrics, **comparison.agreement}, "all")]
    floor = last.noise_floor or {}
    table = _side_by_side("pair-metrics", "Each pair" if several else "Every metric", found)
    columns, rows = list(table.columns), []
    columns += [
        Column("0 to 1", "plot", detail="full"),
        Column(SAME_DATA, "number", ABOUT_SAME_DATA),
        interval_column("brief"),
        Column("better", detail="full"),
    ]
    values = {name: estimate for _, metrics, _ in found for name, estimate in metrics.items()}
    names = dict.fromkeys(name for _, metrics, _ in found for name in metrics)
    for name, row in zip(names, table.rows, strict=True):
        twin = floor.get(name)
        estimate = values[name]
        plot = Strip(estimate=estimate, reference=None if twin is None else twin.value)
        rows.append(
            (
                *row,
                Cell(plot=plot) if 0 <= estimate.value <= 1 else Cell(),
                *((value_cell(twin.value), interval_cell(twin)) if twin else (Cell(), Cell())),
                Cell(_DIRECTION[metric(name).direction], tone="quiet"),
            )
        )
    return Table(
        name=table.name,
        title=table.title,
        columns=tuple(columns),
        rows=tuple(rows),
    )


def _side_by_side(name: str, title: str, results: Sequence[tuple[str, Estimates, Detail]]) -> Table:
    """Metrics downwards, results across, each with its interval."""
    columns = [Column("metric"), Column("symbol", key=True)]
    for head, _, detail in results:
        columns += [Column(head, "number", detail=detail), interval_column(detail)]
    rows = []
    for each in dict.fromkeys(each for _, metrics, _ in results for each in metrics):
        row = [metric_cell(each), Cell(metric(each).symbol, tone="quiet")]
        for _, metrics, _ in results:
            row += estimate_cells(metrics.get(each))
        rows.append(tuple(row))
    return Table(name=name, title=title, columns=tuple(columns), rows=tuple(rows))


def _generations(comparison: Comparison, looks: Looks) -> Section:
    """All generations: over time, every two side by side, and the inputs that keep changing."""
    names = [each.name for each in comparison.generations]
    body: list[Node] = []
    if comparison.agreement:
        tiles = (_tile(name, found) for name, found in comparison.agreement.items())
        body.append(Tiles(tiles=tuple(tiles), title="All generations at once"))
    body += [_over_time(comparison), Side(tuple(_matrices(comparison))), _retrains(comparison)]
    if len(names) > _MOST:
        note = f"Matrices show the last {_MOST} of {len(names)} generations."
        body.append(Prose(note, "quiet"))
    if comparison.unstable:
        body.append(unstable(comparison.unstable, names, looks))
    else:
        body.append(Prose("No input changed its label more than once.", "quiet"))
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


def _over_time(comparison: Comparison) -> Figure:
    names = _apart([each.name for each in comparison.generations])
    series = []
    if known := _points(enumerate(each.metrics for each in comparison.generations), "accuracy"):
        series.append(Series(name="accuracy", points=known, tone="one"))
    steps = [pair.metrics for pair in _consecutive(comparison)]
    # The picture has one of them: others would flatten it.
    drawn = "correct_consistency" if comparison.has_truth else "consistency"
    for name in ("lost", "consistency", "correct_consistency"):
        if known := _points(enumerate(steps, 1), name):
            said = f"{symbol_of(name)} with the one before"
            series.append(Series(name=said, points=known, tone="two", drawn=name == drawn))
    if comparison.ambiguity_so_far:
        points = (Point(x=float(i), y=y) for i, y in enumerate(comparison.ambiguity_so_far))
        series.append(Series(name="ambiguity so far", points=tuple(points), tone="three"))
    ends = ", ".join(
        f"{one.name} ends at {number(one.points[-1].y)}" for one in series if one.drawn
    )
    return chart(
        name="over-time",
        title="Over time",
        description=f"{ends[:1].upper()}{ends[1:]}.",
        series=series,
        across="generation",
        up="share of inputs",
        places=[(float(i), clipped(name, 24)) for i, name in enumerate(names)],
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
    """Names without what all begin with: where there is little room, the rest tells them apart.

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
            said=number,
            tone="one",
            floor=min(known) - 0.02,
            letters="table",
        )


def _retrains(comparison: Comparison) -> Table:
    """Each generation beside the one before, then the mean of all pairs, and the noise floor."""
    pairs = _consecutive(comparison)
    shown = {name: detail for name, detail in _HEADLINE.items() if name in pairs[-1].metrics}
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
        footer=ABOUT_SAME_DATA if floor else "",
    )
