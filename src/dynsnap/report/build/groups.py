"""Classes and slices: which lost, which gained, and where lost answers went."""

from collections.abc import Iterator, Mapping, Sequence

from dynsnap.comparison import Comparison, Estimate, Flow, GroupResult, PairResult, worst_first
from dynsnap.data import TRAINING_ROWS
from dynsnap.errors import some_of
from dynsnap.metrics import metric
from dynsnap.report.build.cells import (
    count_cell,
    estimate_cells,
    interval_column,
    value_cell,
)
from dynsnap.report.build.inputs import how_many
from dynsnap.report.document import (
    Cell,
    Column,
    Detail,
    Kind,
    Marks,
    Node,
    Prose,
    Section,
    Side,
    Table,
    Tone,
)
from dynsnap.report.figures import between_families, by_class, where_answers_went
from dynsnap.report.words import clipped, count, p_value, symbol_of

_CORRECTED = (
    "McNemar's exact test of lost against gained within the group, corrected by Holm's method for "
    "all classes and slices of this report together."
)
_CLASSES = 200  # of which a page shows all while it has room
_SEARCH = 12  # rows from which on a table has a field to search it
_BESIDE = 14  # rows of a table beside a picture, which is not much taller
_FAMILIES = 30  # rows and columns that a picture of families has room for
_LONG = 22  # characters of a name that is better wrapped
_PICTURED = 2  # kinds of families that are drawn, and told of each class

About = tuple[Column, Mapping[str, Cell]]  # of classes: a column, and the cell of each


def classes(
    comparison: Comparison,
    pair: PairResult,
    learned_from: Mapping[str, int],
    *,
    limit: int,
    detail: Detail,
) -> Section:
    """Lost and gained in every class, and how many rows it was learned from, where known."""
    ranked = worst_first(_of(pair, "class"))
    moved = [group for group in ranked if _moved(group)]
    lead = "No class lost an input." if moved else "No class lost or gained an input."
    if (cases := ranked[0].transitions) and cases.lost:
        lost = f"{count(cases.lost)} of {count(ranked[0].inputs)} inputs of class"
        lead = f'Largest share lost first: {lost} "{clipped(ranked[0].name)}".'
    order = "worst first" if comparison.has_truth else "least consistent first"
    body: list[Node] = [by_class(moved, of=len(ranked))] if moved else []
    about = _about_classes(comparison, learned_from)
    title = f"Classes, {order}{_where(comparison, pair)}"
    body.append(_table("class-table", "class", title, ranked, comparison, limit, about))
    if rare := _of(pair, "frequency"):
        title = f"Majority and minority classes{_where(comparison, pair)}"
        body.append(_table("frequency-table", "classes", title, rare, comparison, limit))
    body += _qualities(
        ranked, f"Precision, recall and the like of each class{_where(comparison, pair)}"
    )
    return Section(name="classes", title="Classes", lead=lead, body=tuple(body), detail=detail)


def _qualities(groups: Sequence[GroupResult], title: str) -> Iterator[Table]:
    """Metrics of each class among all inputs: old, new and change."""
    names = list(dict.fromkeys(name for group in groups for name in group.old_metrics))
    if not names:
        return
    columns = [Column("class"), Column("metric", key=True)]
    for head in ("old", "new", "change"):
        columns += [Column(head, "number"), interval_column("full")]
    rows = []
    for group in groups:
        for name in names:
            row = [Cell(group.name), Cell(symbol_of(name), hint=metric(name).meaning)]
            row += estimate_cells(group.old_metrics.get(name))
            row += estimate_cells(group.metrics.get(name))
            row += estimate_cells(group.metrics.get(f"{name}_change"))
            rows.append(tuple(row))
    most = _CLASSES * len(names)
    yield Table(
        name="class-quality",
        title=title,
        columns=tuple(columns),
        rows=tuple(rows),
        roomy=most,
        search=len(rows) >= _SEARCH,
        brief_rows=most,
        grouped=True,
        folded=True,
    )


def slices(comparison: Comparison, pair: PairResult, *, limit: int, detail: Detail) -> Section:
    """The slices of a pair, those that got worse first."""
    ranked = worst_first(_of(pair, "slice"))
    known = comparison.has_truth
    order = "worst first" if known else "least consistent first"
    tables: list[Node] = []
    for place, column in enumerate(_columns(pair)):
        name = f"slice-table-{place}" if place else "slice-table"
        own = [group for group in ranked if group.column == column]
        title = f"Slices by {clipped(column, 60)}, {order}{_where(comparison, pair)}"
        shown: Detail = "full" if limit and place >= limit else "all"
        tables.append(_table(name, column, title, own, comparison, limit, detail=shown))
    if limit and len(tables) > limit:
        more = f"and {count(len(tables) - limit)} more columns of slices"
        tables.append(Prose(more, "quiet", detail="brief"))
    lead = "Least consistent first. Without the truth it is unknown which got worse."
    if known and all(group.corrected is None for group in ranked):
        lead = "Most lost first. Intervals say how sure each share is; there is no test of counts."
    elif known:
        level = 1 - comparison.confidence
        worse = _worse(ranked, level)
        lead = (
            f"{len(worse)} of {len(ranked)} slices got worse: {_named(worse)}"
            if worse
            else f"None of {len(ranked)} slices got worse beyond what chance explains."
        )
        lead += (
            f" At the level {level:.2g}, corrected by Holm's method for all "
            f"{sum(not group.whole for group in pair.groups)} classes and slices together."
        )
    return Section(
        name="slices",
        title="Slices that got worse" if known else "Slices",
        lead=lead,
        body=tuple(tables),
        rows_together=True,
        detail=detail,
    )


def worse_slices(comparison: Comparison, pair: PairResult) -> tuple[list[GroupResult], int]:
    """The slices that got worse beyond chance, and how many were tested."""
    groups = _of(pair, "slice")
    return _worse(groups, 1 - comparison.confidence), len(groups)


def _of(pair: PairResult, kind: str) -> list[GroupResult]:
    """The groups of a kind; a constant column distinguishes no inputs."""
    return [group for group in pair.groups if group.kind == kind and not group.whole]


def _columns(pair: PairResult) -> list[str]:
    """The columns that slices come from, that of the worst slice first."""
    return list(dict.fromkeys(group.column for group in worst_first(_of(pair, "slice"))))


def _where(comparison: Comparison, pair: PairResult) -> str:
    return f", {pair.old} → {pair.new}" if len(comparison.pairs) > 1 else ""


def _worse(groups: Sequence[GroupResult], level: float) -> list[GroupResult]:
    return [
        group
        for group in groups
        if group.transitions
        and group.transitions.lost > group.transitions.gained
        and group.corrected is not None
        and group.corrected < level
    ]


def answers(comparison: Comparison, pair: PairResult, *, limit: int, families: bool) -> Section:
    """Which labels took the place of which; pictures show lost answers where they are known."""
    known = comparison.has_truth
    title = "Where lost answers went" if known else "Where labels went"
    changed = [flow for flow in pair.flows if flow.new != flow.old]
    gone = [flow for flow in changed if not known or flow.truth == flow.old]
    table = _changes(comparison, pair, changed, gone, limit)
    if not gone:
        none = "No right answer was lost." if known else "No label changed."
        return Section(name="answers", title=title, lead=none, body=(table,) if changed else ())
    inputs = how_many(comparison, pair)
    drawn = where_answers_went(gone, inputs=inputs, known=known)
    between = [
        between_families(name, flows, inputs=inputs, order=comparison.slices[name])
        for name, flows in pair.lost_between.items()
        if flows and 2 < len(comparison.slices[name]) <= _FAMILIES
    ][:_PICTURED]
    body: list[Node] = [*between]
    if between:  # beside what it is about: it states how much of all one picture shows
        body.append(Prose(drawn.description, detail="full"))
    # A wide picture beside a table would be too small to read.
    body += [Side((drawn, table))] if drawn.width < 560 else [drawn, table]
    if families:
        body += _between(comparison, pair, limit)
    return Section(
        name="answers",
        title=title,
        lead=" ".join(figure.description for figure in between or [drawn]),
        body=tuple(body),
    )


def _changes(
    comparison: Comparison,
    pair: PairResult,
    changed: Sequence[Flow],
    gone: Sequence[Flow],
    limit: int,
) -> Table:
    rare = how_many(comparison, pair) - sum(flow.inputs for flow in gone)
    longest = max((len(name) for flow in changed for name in (flow.old, flow.new)), default=0)
    kind: Kind = "words" if longest > _LONG else "name"
    what, first = ("lost", "lost") if comparison.has_truth else ("changed", "most frequent")
    return Table(
        name="answers-table",
        title=f"Labels that changed, {first} first{_where(comparison, pair)}",
        columns=(
            Column("was"),
            Column("is now", kind, key=True),
            Column("truth", kind, detail="brief"),  # a page shows it by the case
            Column("case"),
            Column("inputs", "number"),
        ),
        rows=tuple(
            (
                Cell(flow.old, tone=_right(flow, flow.old)),
                Cell(flow.new, tone=_right(flow, flow.new)),
                Cell(flow.truth or "", tone="quiet"),
                Cell(_case(flow)),
                count_cell(flow.inputs),
            )
            for flow in sorted(changed, key=lambda flow: _case(flow) not in ("lost", ""))
        ),
        brief_rows=limit,
        search=len(changed) > _SEARCH,
        tall=_BESIDE,
        footer=f"{count(rare)} more {what} inputs went ways too rare to be listed."
        if rare > 0
        else "",
    )


def _right(flow: Flow, label: str) -> Tone:
    return "good" if label == flow.truth else "plain"


def _case(flow: Flow) -> str:
    if flow.truth is None:
        return ""
    return "lost" if flow.truth == flow.old else "gained" if flow.truth == flow.new else "never"


def _between(comparison: Comparison, pair: PairResult, limit: int) -> Iterator[Table]:
    """Where lost answers went, between families of classes; a page has pictures of them."""
    shown = _columns(pair)[: limit or None]
    for name, flows in pair.lost_between.items():
        if not flows or name not in shown or len(comparison.slices[name]) <= 2:
            continue
        total = sum(flow.inputs for flow in flows)
        within = sum(flow.inputs for flow in flows if flow.truth == flow.new)
        yield Table(
            name=f"between-{name}",
            title=f"Where lost answers went, by {name}{_where(comparison, pair)}",
            columns=(Column("truth in"), Column("new label in"), Column("lost", "number")),
            rows=tuple(
                (Cell(flow.truth or ""), Cell(flow.new), count_cell(flow.inputs)) for flow in flows
            ),
            brief_rows=limit,
            footer=f"{count(within)} of {count(total)} stayed within their {name}",
            detail="brief",
        )


def _about_classes(comparison: Comparison, learned_from: Mapping[str, int]) -> list[About]:
    """What else is known of classes."""
    found: list[About] = []
    if learned_from:
        meaning = "Training rows of the class in the last generation."
        column = Column("learned from", "number", meaning, "full")
        found.append((column, {name: count_cell(rows) for name, rows in learned_from.items()}))
    for name, family in comparison.families.items():
        if learned_from and name == TRAINING_ROWS:
            continue  # the numbers themselves say more
        cells = {key: Cell(value) for key, value in family.items()}
        found.append((Column(name, "words", detail="full"), cells))
    return found[: 1 + _PICTURED]


def _table(
    name: str,
    first: str,
    title: str,
    groups: Sequence[GroupResult],
    comparison: Comparison,
    limit: int,
    about: Sequence[About] = (),
    detail: Detail = "all",
) -> Table:
    cases = [group.transitions for group in groups if group.transitions]
    most = max([max(each.lost, each.gained) for each in cases], default=0)
    known = comparison.has_truth
    tested = any(group.corrected is not None for group in groups)
    columns = [Column(first), Column("inputs", "number")]
    if comparison.weighted:
        columns.append(Column("weight", "number", detail="brief"))
    if known:
        share = "Share of the group's inputs that were right before and are not."
        gained = "Share of the group's inputs that are right now and were not before."
        columns += [
            Column("lost", "number", "Inputs that were right before and are not."),
            Column("gained", "number", "Inputs that are right now and were not before."),
            Column("net", "number", "Gained less lost.", "full"),
            Column("share lost", "number", share, order="descending"),
            interval_column("full"),
            Column("share gained", "number", gained),
            interval_column("full"),
            Column("p", "number", detail="brief"),
            Column("p, corrected", "number", _CORRECTED),
            Column("ACC was", "number", "Accuracy of the older of the two generations."),
            Column("is", "number", "Accuracy of the newer one."),
        ]
    columns.append(Column("CON", "number", "Share of inputs with the same label."))
    columns.append(Column("ACC-CON", "number", detail="brief"))
    columns.append(Column("lost, gained", "plot", detail="brief"))
    columns += [column for column, _ in about]
    rows = []
    for group in groups:
        row = [Cell(_name(group)), count_cell(group.inputs)]
        row += [count_cell(group.weight)] if comparison.weighted else []
        row += _cases(group, comparison) if known else []
        row += [_metric(group, "consistency"), _metric(group, "correct_consistency")]
        moved = group.transitions
        row.append(Cell(plot=Marks(moved.lost, moved.gained, most)) if moved and most else Cell())
        rows.append((*row, *(cells.get(group.name, Cell()) for _, cells in about)))
    return Table(
        name=name,
        title=title,
        columns=tuple(columns),
        rows=tuple(rows),
        brief_rows=limit,
        search=len(rows) > _SEARCH,
        roomy=_CLASSES if name == "class-table" else 0,
        footer=f"p, corrected: {_CORRECTED}" if tested else "",
        brief_footer="",
        detail=detail,
    )


def _cases(group: GroupResult, comparison: Comparison) -> list[Cell]:
    cases = group.transitions
    clear = group.corrected is not None and group.corrected < 1 - comparison.confidence
    lost = gained = net = Cell()
    tone: Tone = "plain"
    if cases is not None:
        change = cases.gained - cases.lost
        tone = ("bad" if change < 0 else "good") if clear else "plain"
        lost, gained = count_cell(cases.lost), count_cell(cases.gained)
        net = Cell(f"{change:+,}".replace("-", "−") if change else "0", change, tone)
    was, now = (_accuracy(group, which) for which in ("lost", "gained"))
    return [
        lost,
        gained,
        net,
        *estimate_cells(group.metrics.get("lost")),
        *estimate_cells(group.metrics.get("gained")),
        _p(group.changed, "quiet"),
        _p(group.corrected, tone if clear else "quiet"),
        Cell() if was is None else value_cell(was),
        Cell() if now is None else value_cell(now),
    ]


def _p(value: float | None, tone: Tone) -> Cell:
    return Cell("" if value is None else p_value(value), value, tone)


def _metric(group: GroupResult, name: str) -> Cell:
    found: Estimate | None = group.metrics.get(name)
    return Cell() if found is None else value_cell(found.value)


def _accuracy(group: GroupResult, which: str) -> float | None:
    """What was kept and lost was right before; what was kept and gained is right now."""
    kept, other = group.metrics.get("kept"), group.metrics.get(which)
    return None if kept is None or other is None else kept.value + other.value


def _moved(group: GroupResult) -> bool:
    cases = group.transitions
    return cases is not None and cases.lost + cases.gained > 0


def _name(group: GroupResult) -> str:
    return f"{group.name} ({count(len(group.classes))})" if group.classes else group.name


def _named(groups: Sequence[GroupResult], most: int = 4) -> str:
    return some_of([f"{group.column} = {group.name}" for group in groups], most) + "."
