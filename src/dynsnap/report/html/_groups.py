"""Classes and slices: who lost, who gained, and where lost answers went."""

from collections.abc import Mapping, Sequence

from dynsnap.comparison import Comparison, Estimate, GroupResult, PairResult, worst_first
from dynsnap.data import TRAINING_ROWS
from dynsnap.report._blocks import count, interval, number, p_value
from dynsnap.report._element import Markup, clipped, element
from dynsnap.report.figures import between_families, by_class, where_answers_went
from dynsnap.report.html._inputs import how_many
from dynsnap.report.html._parts import INTERVAL, Entry, Head, Listing, Section, listing, picture

_CORRECTED = (
    "p: McNemar's exact test of lost against gained within the group, corrected by Holm's method "
    "for all classes and slices of this report together."
)
_CLASSES = 200  # of which all are shown
_ROOM = 60  # unless long tables have fewer rows than these, on a page that is nearly full
_BESIDE = 14  # rows of a table beside a picture, which is not much taller
_FAMILIES = 30  # rows and columns that a picture of families has room for
_PICTURED = 2  # kinds of families that are drawn, and told of each class


def classes(
    comparison: Comparison,
    pair: PairResult,
    groups: Sequence[GroupResult],
    rows: int,
    learned_from: Mapping[str, int],
) -> Section:
    """Lost and gained in every class, and from how many rows it was learned, where known."""
    ranked = worst_first(groups)
    flipping = [group for group in groups if _moved(group)]
    drawn = (by_class(flipping, of=len(groups)),) if flipping else ()
    rare = [group for group in pair.groups if group.kind == "frequency"]
    lead = "No class lost an input." if flipping else "No class lost or gained an input."
    if (cases := ranked[0].transitions) and cases.lost:
        lost = f"{count(cases.lost)} of {count(ranked[0].inputs)} inputs of class"
        lead = f"Largest share lost first: {lost} {clipped(ranked[0].name)}."
    body = [picture(figure) for figure in drawn]
    about = _about_classes(comparison, learned_from)
    caption = "Lost and gained in each class"
    rows = max(rows, _CLASSES) if rows >= _ROOM else rows
    body.append(_table("class-table", "class", caption, ranked, comparison, rows, about))
    if rare:
        caption = "Frequent and rare classes"
        body.append(_table("frequency-table", "classes", caption, rare, comparison, rows))
    return Section(name="classes", title="Classes", lead=lead, body=body, figures=drawn)


def slices(
    comparison: Comparison, pair: PairResult, groups: Sequence[GroupResult], rows: int
) -> Section:
    """The slices of a pair, those that got worse first."""
    ranked = worst_first(groups)
    if not comparison.has_truth:
        return Section(
            name="slices",
            title="Slices",
            lead="Least consistent first. Without the truth nobody can say which got worse.",
            body=_by_column("least consistent first", ranked, comparison, rows),
        )
    level = 1 - comparison.confidence
    worse = _worse(ranked, level)
    found = (
        f"{len(worse)} of {len(ranked)} slices got worse: " + _named(worse)
        if worse
        else f"None of {len(ranked)} slices got worse beyond what chance explains."
    )
    return Section(
        name="slices",
        title="Slices that got worse",
        lead=f"{found} At the level {level:.2g}, corrected by Holm's method for all "
        f"{len(pair.groups)} classes and slices together.",
        body=_by_column("largest share lost first", ranked, comparison, rows),
    )


def worse_slices(comparison: Comparison, pair: PairResult) -> tuple[list[GroupResult], int]:
    """The slices that got worse beyond chance, and how many were tested."""
    groups = [group for group in pair.groups if group.kind == "slice"]
    return _worse(groups, 1 - comparison.confidence), len(groups)


def _worse(groups: Sequence[GroupResult], level: float) -> list[GroupResult]:
    return [
        group
        for group in groups
        if group.transitions
        and group.transitions.lost > group.transitions.gained
        and group.corrected is not None
        and group.corrected < level
    ]


def answers(comparison: Comparison, pair: PairResult, rows: int) -> Section:
    """Which labels took the place of which; where the truth is known, of right ones."""
    known = comparison.has_truth
    title = "Where lost answers went" if known else "Where labels went"
    gone = [
        flow
        for flow in pair.flows
        if flow.new != flow.old and (not known or flow.truth == flow.old)
    ]
    if not gone:
        none = "No right answer was lost." if known else "No label changed."
        return Section(name="answers", title=title, lead=none)
    inputs = how_many(comparison, pair)
    drawn = where_answers_went(gone, inputs=inputs, known=known)
    families = [
        between_families(name, flows, inputs=inputs, order=comparison.slices[name])
        for name, flows in pair.lost_between.items()
        if flows and 2 < len(comparison.slices[name]) <= _FAMILIES
    ][:_PICTURED]
    rare = inputs - sum(flow.inputs for flow in gone)
    table = listing(
        Listing(
            name="answers-table",
            caption="Right answers that turned wrong, most frequent first"
            if known
            else "Labels that changed, most frequent first",
            heads=(Head("was, rightly" if known else "was"), Head("is now"), Head("inputs", True)),
            rows=[
                [
                    flow.old,
                    Entry(flow.new, tone="text"),
                    Entry(count(flow.inputs), key=flow.inputs),
                ]
                for flow in gone[:rows]
            ],
            sorted_by=(2, "descending"),
            search=len(gone) > 12,
            most_seen=_BESIDE,
            whole=len(gone),
            note=f"{count(rare)} more went ways too rare to be listed." if rare > 0 else "",
        )
    )
    return Section(
        name="answers",
        title=title,
        lead=" ".join(figure.description for figure in families or [drawn]),
        body=[
            *(picture(figure) for figure in families),
            # Beside what it is about: it says how much of all one picture shows.
            element("p", drawn.description, class_="lead") if families else None,
            # A wide picture beside a table would be too small to read.
            element("div", picture(drawn), table, class_="side" if drawn.width < 560 else None),
        ],
        figures=(*families, drawn),
    )


def _about_classes(
    comparison: Comparison, learned_from: Mapping[str, int]
) -> list[tuple[Head, Mapping[str, Entry]]]:
    """What else is known of classes: a head, and an entry for each."""
    found: list[tuple[Head, Mapping[str, Entry]]] = []
    if learned_from:
        head = Head("learned from", True, "Training rows of the class in the last generation.")
        found.append((head, {name: Entry(count(n), key=n) for name, n in learned_from.items()}))
    for column, family in comparison.families.items():
        if learned_from and column == TRAINING_ROWS:
            continue  # the numbers themselves say more
        entries = {name: Entry(value, tone="text") for name, value in family.items()}
        found.append((Head(clipped(column, 40)), entries))
    return found[: 1 + _PICTURED]


def _by_column(
    order: str, groups: Sequence[GroupResult], comparison: Comparison, rows: int
) -> list[Markup]:
    """A table for each column that slices come from, of so many rows together."""
    tables: list[Markup] = []
    for place, column in enumerate(dict.fromkeys(group.column for group in groups)):
        if rows <= 0:
            said = "Further columns are left out: the page has no room for them."
            return [*tables, element("p", said, class_="note")]
        name = f"slice-table-{place}" if place else "slice-table"
        own = [group for group in groups if group.column == column]
        caption = f"By {clipped(column, 60)}, {order}"
        tables.append(_table(name, column, caption, own, comparison, rows))
        rows -= len(own)
    return tables


def _table(
    name: str,
    first: str,
    caption: str,
    groups: Sequence[GroupResult],
    comparison: Comparison,
    rows: int,
    about: Sequence[tuple[Head, Mapping[str, Entry]]] = (),
) -> Markup:
    heads = [Head(clipped(first, 40)), Head("inputs", True)]
    if comparison.has_truth:
        heads += [
            Head("lost", True),
            Head("share", True, "Share of the group's inputs that were right before and are not."),
            INTERVAL,
            Head(
                "gained",
                True,
                "Inputs that are right now and were not before; of their share the interval.",
            ),
            INTERVAL,
            Head("net", True, "Gained less lost."),
            Head("p", True, _CORRECTED),
            Head("ACC was", True, "Accuracy of the older of the two generations."),
            Head("is", True, "Accuracy of the newer one."),
        ]
    heads.append(Head("CON", True, "Share of inputs labelled alike."))
    heads += [head for head, _ in about]
    lines = [
        [*_line(group, comparison), *(known.get(group.name, Entry("")) for _, known in about)]
        for group in groups
    ]
    return listing(
        Listing(
            name=name,
            caption=caption,
            heads=tuple(heads),
            rows=lines[:rows],
            sorted_by=(3, "descending") if comparison.has_truth else None,
            search=len(lines) > 12,
            whole=len(lines),
            note=_CORRECTED if comparison.has_truth else "",
        )
    )


def _line(group: GroupResult, comparison: Comparison) -> list[Entry]:
    cells = [Entry(_name(group)), Entry(count(group.inputs), key=group.inputs)]
    cases = group.transitions
    if comparison.has_truth and cases is not None:
        clear = group.corrected is not None and group.corrected < 1 - comparison.confidence
        tone = ("bad" if cases.lost > cases.gained else "good") if clear else ""
        net = cases.gained - cases.lost
        cells += [
            Entry(count(cases.lost), key=cases.lost),
            *_share(group.metrics.get("lost")),
            Entry(count(cases.gained), key=cases.gained),
            Entry(interval(group.metrics.get("gained")), tone="range"),
            Entry(f"{net:+,}".replace("-", "−") if net else "0", key=net, tone=tone),
            Entry(p_value(group.corrected), key=group.corrected, tone=tone or "quiet"),
            *(_share(_accuracy(group, which))[0] for which in ("lost", "gained")),
        ]
    found = group.metrics.get("consistency")
    value = None if found is None else found.value
    return [*cells, Entry(number(value), key=value)]


def _share(estimate: Estimate | None) -> list[Entry]:
    value = None if estimate is None else estimate.value
    return [Entry(number(value), key=value), Entry(interval(estimate), tone="range")]


def _accuracy(group: GroupResult, which: str) -> Estimate | None:
    """What was kept and lost was right before; what was kept and gained is right now."""
    kept, other = group.metrics.get("kept"), group.metrics.get(which)
    return None if kept is None or other is None else Estimate(kept.value + other.value)


def _moved(group: GroupResult) -> bool:
    cases = group.transitions
    return cases is not None and cases.lost + cases.gained > 0


def _name(group: GroupResult) -> str:
    return f"{group.name} ({count(len(group.classes))})" if group.classes else group.name


def _named(groups: Sequence[GroupResult], most: int = 4) -> str:
    shown = ", ".join(f"{group.column} = {group.name}" for group in groups[:most])
    return f"{shown} and {len(groups) - most} more." if len(groups) > most else f"{shown}."
