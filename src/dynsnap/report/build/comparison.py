"""A comparison as a document: the four cases first, then everything else, worst first."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TypeAlias

from dynsnap._registry import Registry
from dynsnap.comparison import Comparison, Estimate, Estimates, PairResult, TransitionCounts
from dynsnap.errors import InputError
from dynsnap.metrics import metric
from dynsnap.report.build.cells import (
    SAME_DATA,
    about_floor,
    count_cell,
    estimate_cells,
    interval_cell,
    interval_column,
    metric_cell,
    value_cell,
)
from dynsnap.report.build.generations import FEW, HEADLINE, UNKNOWN, generations
from dynsnap.report.build.groups import answers, classes, slices
from dynsnap.report.build.inputs import Excerpts, flipped
from dynsnap.report.document import (
    Bullets,
    Cell,
    Column,
    Detail,
    Document,
    Fold,
    Node,
    Part,
    Section,
    Side,
    Stack,
    Strip,
    Table,
    Tile,
    Tiles,
)
from dynsnap.report.figures import flow
from dynsnap.report.words import (
    CASES,
    clipped,
    clipped_path,
    counted,
    number,
    said_p_value,
)

BREAKDOWNS = ("class", "slice")

_NAMED = 5  # generations that a title names, of more the first and the last two
_CHANGED = 20  # new or dropped classes that are named
_FILES = 6  # that the end of a page names
# The glossary's other words for them.
_ALSO = {
    "lost": ("NFR", "negative flips"),
    "gained": ("PFR", "positive flips"),
    "consistency": ("CON", "agreement"),
    "churn": ("", "disagreement"),
}
# Of the metrics that scikit-learn has as well, those that are looked at first.
_QUALITY = ("accuracy", "balanced_accuracy", "f1_macro", "log_loss", "mean_absolute_error")
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
    excerpts: Excerpts | None = None,
    learned_from: Mapping[str, int] | None = None,
) -> Document:
    """Everything that a comparison found, most important first.

    With more than two generations, what is about two is about the last retrain.

    Args:
        comparison: What `dynsnap.compare` returned.
        by: Which breakdowns the terminal shows, "class" and "slice".
        limit: The most rows of a breakdown in the terminal, worst first; 0 for all.
        excerpts: What inputs look like, by id, as `dynsnap.data.read_excerpts` gives it.
        learned_from: Training rows of each class, where that is known.

    Example:
        >>> import dynsnap
        >>> said = dynsnap.Predictions(ids=[1, 2], classes=["cat", "dog"], labels=["cat", "dog"])
        >>> found = dynsnap.compare(said, said, names=["monday", "tuesday"])
        >>> comparison_document(found).title
        'monday → tuesday'
    """
    if not isinstance(comparison, Comparison):
        kind = type(comparison).__name__
        raise InputError(
            f"`comparison_document` takes what `dynsnap.compare` returns, got a {kind}."
        )
    names = [clipped(each.name, 60) for each in comparison.generations]
    shown = names if len(names) <= _NAMED else [*names[:2], "…", *names[-2:]]
    return Document(
        title=" → ".join(shown),
        about=setting(comparison),
        warnings=tuple(warnings(comparison)),
        sections=tuple(
            comparison_sections(comparison, by, limit, excerpts or {}, learned_from or {})
        ),
        made_from=files_of(comparison),
    )


def comparison_sections(
    comparison: Comparison,
    by: Collection[str],
    limit: int,
    excerpts: Excerpts,
    learned_from: Mapping[str, int],
) -> Iterator[Section]:
    """The sections of a comparison."""
    pair = comparison.pairs[-1]
    if len(comparison.generations) > 2:
        yield generations(comparison, excerpts, _together(comparison), limit=limit)
    if pair.transitions is not None:
        yield _transitions(comparison, pair, pair.transitions)
    yield _metrics(comparison, pair)
    if any(group.kind == "class" for group in pair.groups):
        detail: Detail = "all" if "class" in by else "full"
        yield classes(comparison, pair, learned_from, limit=limit, detail=detail)
    if comparison.task == "classification":  # other answers are no labels that inputs move between
        yield answers(comparison, pair, limit=limit, families="slice" in by)
    if any(group.kind == "slice" and not group.whole for group in pair.groups):
        yield slices(comparison, pair, limit=limit, detail="all" if "slice" in by else "full")
    yield flipped(comparison, pair, excerpts)
    yield from (made for build in SECTIONS.values() if (made := build(comparison)) is not None)
    warned = comparison.alignment.sentence() if comparison.alignment.partial else ""
    if notes := [note for note in comparison.notes if note != warned]:
        yield Section(name="notes", title="Notes", body=(Bullets.of("Notes", notes),))


def warnings(comparison: Comparison) -> Iterator[str]:
    """What a reader must not miss: inputs that are not compared, classes that come and go."""
    if comparison.alignment.partial:
        yield comparison.alignment.sentence()
    last = comparison.generations[-1].name
    for changes, words, named in (
        (comparison.new_classes, "New", "from"),
        (comparison.dropped_classes, "Dropped", "after"),
    ):
        if not changes:
            continue
        several = len(comparison.generations) > 2
        sets = comparison.task == "multilabel"
        one, many = ("label", "labels") if sets else ("class", "classes")
        listed = ", ".join(
            f"{clipped(each.name, 40)} ({named} {clipped(each.generation, 40)})"
            if several
            else clipped(each.name, 40)
            for each in changes[:_CHANGED]
        )
        rest = len(changes) - _CHANGED
        more = f", and {counted(rest, f'more {one}')} (--json lists all)" if rest > 0 else ""
        whose = "" if several else f" ({clipped(last, 40)})"
        yield f"{words} {one if len(changes) == 1 else many}{whose}: {listed}{more}."


def setting(comparison: Comparison) -> str:
    """What was compared, in a line."""
    weighted = ", weighted" if comparison.weighted else ""
    several = comparison.task in ("multilabel", "ranking")
    what = counted(len(comparison.classes), "label" if several else "class")
    if comparison.task != "classification":
        what = f"task {comparison.task}" + (f", {what}" if several else "")
    unlabelled = f" ({comparison.unlabelled:,} without truth)" if comparison.unlabelled else ""
    return (
        f"{counted(comparison.inputs, 'input')}{unlabelled}, {what}{weighted}; intervals at "
        f"{comparison.confidence:g} confidence from {counted(comparison.resamples, 'resample')}."
    )


def files_of(comparison: Comparison | None) -> str:
    """The files that were compared, and their rows; empty where there are none."""
    if comparison is None or not comparison.alignment.files:
        return ""
    report = comparison.alignment
    files = [
        f"{clipped_path(file, 120)} ({counted(rows, 'row')})"
        for file, rows in zip(report.files, report.rows, strict=True)
    ]
    some = files if len(files) <= _FILES else [*files[: _FILES - 1], "…", files[-1]]
    return f"{counted(len(files), 'file')}: {', '.join(some)}."


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
    shown = HEADLINE if pair.transitions is not None else UNKNOWN
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
        footer=about_floor(comparison) if floor else "",
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
    symbol, also = _ALSO.get(name, ("" if name in CASES else entry.symbol, ""))
    return Tile(
        name=name.replace("_", " "),
        symbol=symbol,
        also=also,
        estimate=estimate,
        meaning=entry.meaning,
        note=note,
        reference=reference,
        tone="bad" if name == "lost" and estimate.value > 0 else "plain",
        detail=detail,
    )


def _together(comparison: Comparison) -> Tiles | None:
    if not comparison.agreement:
        return None
    tiles = (_tile(name, found) for name, found in comparison.agreement.items())
    return Tiles(tiles=tuple(tiles), title="All generations at once")


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
    tables = quality_tables(comparison, pair)
    body += tables[:1]
    rest: list[Node] = [_of_pairs(comparison, pair)]
    shown = {pair.old, pair.new}
    alone = [(each.name, _few(each.metrics)) for each in comparison.generations]
    if any(metrics for _, metrics in alone):
        rest.append(
            _side_by_side(
                "generation-metrics",
                "Each generation",
                [(name, found, "all" if name in shown else "brief") for name, found in alone],
            )
            if len(alone) <= FEW
            else _below_each_other("generation-metrics", "Each generation", "generation", alone)
        )
    if len(comparison.pairs) > 1:
        title = "Averages over generations and over pairs"
        few = _few(comparison.averages)
        rest.append(_side_by_side("averages", title, [("value", few, "all")]))
    of = len(_few(pair.metrics)) + len(comparison.agreement) + len(alone[-1][1])
    return Section(
        name="metrics",
        title="Metrics",
        lead="Hover over a metric for its definition.",
        body=(
            *body,
            Fold(f"All {of} metrics of consistency, with intervals", tuple(rest)),
            *tables[1:],
        ),
    )


def _few(metrics: Estimates) -> Estimates:
    """The metrics that `quality_tables` does not have."""
    return {
        name: each
        for name, each in metrics.items()
        if metric(name).group == "consistency" and metric(name).change_of is None
    }


def quality_tables(comparison: Comparison, pair: PairResult) -> list[Table]:
    """How good the older and the newer generation are, and how that changed: the metrics that are
    looked at first, and, folded, all of them."""
    alone = {each.name: each.metrics for each in comparison.generations}
    old, new = alone[pair.old], alone[pair.new]
    names = [name for name in new if f"{name}_change" in pair.metrics and name in old]
    columns = (
        Column("metric"),
        Column("symbol", key=True, detail="full"),
        Column("old", "number", clipped(pair.old, 40)),
        interval_column("full"),
        Column("new", "number", clipped(pair.new, 40)),
        interval_column("full"),
        Column("change", "number", "New minus old, with a paired interval."),
        interval_column(),
        Column("better", detail="full"),
    )

    def row(name: str) -> tuple[Cell, ...]:
        entry = metric(name)
        return (
            metric_cell(name),
            Cell(entry.symbol, tone="quiet"),
            *estimate_cells(old[name]),
            *estimate_cells(new[name]),
            *estimate_cells(pair.metrics[f"{name}_change"]),
            Cell(_DIRECTION[entry.direction], tone="quiet"),
        )

    first = [name for name in names if name in _QUALITY]
    where = f", {_arrow(pair)}" if len(comparison.pairs) > 1 else ""
    found = []
    if first:
        title = f"Old, new and change{where}"
        rows = tuple(row(name) for name in first)
        found.append(Table(name="quality", title=title, columns=columns, rows=rows))
    if len(names) > len(first):
        title = f"All metrics of old and new, and their change{where}"
        rows = tuple(row(name) for name in names)
        found.append(
            Table(name="all-quality", title=title, columns=columns, rows=rows, folded=True)
        )
    return found


def _of_pairs(comparison: Comparison, last: PairResult) -> Table:
    several = len(comparison.pairs) > 1
    many = len(comparison.generations) > FEW
    found: list[tuple[str, Estimates, Detail]] = [
        (_arrow(pair), _few(pair.metrics), "all" if pair is last else "brief")
        for pair in ([last] if many else comparison.pairs)
    ]
    if not several:
        found = [(found[0][0], {**_few(last.metrics), **comparison.agreement}, "all")]
    floor = last.noise_floor or {}
    title = "The last retrain" if many else "Each pair" if several else "Every metric"
    table = _side_by_side("pair-metrics", title, found)
    columns, rows = list(table.columns), []
    columns += [
        Column("0 to 1", "plot", detail="full"),
        Column(SAME_DATA, "number", about_floor(comparison)),
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
        footer=f"All {len(comparison.pairs):,} pairs with every metric: --json." if many else "",
    )


def _below_each_other(
    name: str, title: str, first: str, results: Sequence[tuple[str, Estimates]]
) -> Table:
    """Results downwards, metrics across: for many results with few metrics."""
    names = dict.fromkeys(each for _, metrics in results for each in metrics)
    columns = [Column(first)]
    for each in names:
        entry = metric(each)
        columns += [Column(entry.symbol, "number", entry.meaning), interval_column("full")]
    rows = []
    for title_of, metrics in results:
        cells = (cell for each in names for cell in estimate_cells(metrics.get(each)))
        rows.append((Cell(title_of), *cells))
    return Table(name=name, title=title, columns=tuple(columns), rows=tuple(rows))


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
