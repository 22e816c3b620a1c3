"""What consistency is worth: accuracy and losses against it and against cost, honestly."""

from collections.abc import Callable, Sequence

from dynsnap.metrics import catalogue
from dynsnap.report._element import Markup, clipped, element
from dynsnap.report._study_words import kappa, preferred
from dynsnap.report.figures import Figure, Point, Series, chart
from dynsnap.report.figures._drawing import Tone
from dynsnap.report.figures._plane import doublings
from dynsnap.report.html._parts import Entry, Head, Listing, Section, listing, picture, term
from dynsnap.report.html._study_figures import WIDTH, colours_of
from dynsnap.report.html._study_table import (
    Extent,
    is_reference,
    percent,
    value_of,
)
from dynsnap.study import FRESH, MethodSummary, Row, frontier

_EACH = 5  # generations whose accuracy has a column of its own

_Measure = Callable[[MethodSummary], Row | None]


def honest(rows: Sequence[Row]) -> Section | None:
    """Every method with what it gives and what it takes; None where there is nothing to compare."""
    how = preferred(rows)
    found = frontier(rows, combination=how)
    if len(found) < 2:
        return None
    judged = any(one.judged for one in found)
    lacking = [
        element("li", f"{clipped(one.method, 60)} does not count: {one.shortfall}.")
        for one in found
        if one.shortfall
    ]
    drawn = [
        figure for figure in (*_pictures(found, how), _over_time(found, how)) if figure is not None
    ]
    lead = (
        "Consistency alone rewards doing nothing: what is never retrained never changes its mind. "
    )
    if judged:
        lead += (
            f"A method does not count if its accuracy on classes that arrive late is below 0.9 of "
            f"{FRESH}'s, or its accuracy in the last generation more than 0.3 points below. "
            "Those are marked × in the pictures, and grey."
        )
    return Section(
        name="frontier",
        title="Accuracy, losses, cost",
        short="Frontier",
        lead=lead,
        body=[
            _table(found, how, judged),
            element("ul", lacking, class_="plain note") if lacking else None,
            element("div", [picture(figure) for figure in drawn], class_="side"),
        ],
        figures=tuple(drawn),
    )


def _table(found: Sequence[MethodSummary], how: str, judged: bool) -> Markup:
    every = max((one.accuracies for one in found), key=len)
    numbers = [row.metric.removeprefix("accuracy_") for row in every]
    # Of a long stream, the first and the last say most.
    cut = len(numbers) > _EACH
    shown = [*numbers[:1], *numbers[-(_EACH - 1) :]] if cut else numbers
    measures: list[tuple[str, str, _Measure]] = [
        ("ACC", catalogue["accuracy"].meaning, lambda one: one.accuracy),
        ("gained", catalogue["gained"].meaning, lambda one: one.gained),
        ("lost", catalogue["lost"].meaning, lambda one: one.lost),
        ("CON", catalogue["consistency"].meaning, lambda one: one.consistency),
        ("ACC-CON", catalogue["correct_consistency"].meaning, lambda one: one.correct_consistency),
        ("late", "Accuracy of the last generation on classes that arrive late.",
         lambda one: one.late),
    ]  # fmt: skip
    used = [each for each in measures if any(each[2](one) is not None for one in found)]
    bare = Extent(intervals=False, spreads=False)  # the first table says how sure they are
    heads = [Head("method"), *([Head("counts")] if judged else [])]
    heads.append(Head("retrain κ", True, "Trainings from scratch that a retrain takes."))
    heads += [Head(f"ACC {number}", True, f"Accuracy of generation {number}.") for number in shown]
    for word, meaning, _ in used:
        heads += bare.heads(word, meaning)
    lines = []
    for one in sorted(found, key=lambda each: is_reference(each.method)):
        each = {row.metric.removeprefix("accuracy_"): row for row in one.accuracies}
        line = [
            Entry(one.method, tone="quiet" if is_reference(one.method) else ""),
            *([_verdict(one)] if judged else []),
            Entry(kappa(one.cost), key=one.cost),
        ]
        for number in shown:
            value = value_of(each.get(number))
            line.append(Entry(percent(value), key=value))
        for _, _, measure in used:
            line += bare.cells(measure(one))
        lines.append(line)
    return listing(
        Listing(
            name="frontier-table",
            caption=f"Every method, members combined by {how.replace('_', ' ')}, in percent",
            heads=tuple(heads),
            rows=lines,
            note="Gained, lost, CON and ACC-CON are means over pairs of generations."
            + (" Between the first ACC and the next, some are left out." if cut else ""),
        )
    )


def _verdict(one: MethodSummary) -> Entry:
    if not one.judged:
        return Entry("reference", tone="quiet")
    if one.qualifies:
        return Entry("yes", tone="good")
    return Entry(term("no", one.shortfall), tone="bad")


def _pictures(found: Sequence[MethodSummary], how: str) -> list[Figure | None]:
    accuracy: _Measure = lambda one: one.accuracy  # noqa: E731
    lost: _Measure = lambda one: one.lost  # noqa: E731
    return [
        _picture(found, how, up, word, costly=costly)
        for word, up in (("ACC", accuracy), ("lost", lost))
        for costly in (False, True)
    ]


def _over_time(found: Sequence[MethodSummary], how: str) -> Figure | None:
    """The accuracy of each generation, a line for each method."""
    shown = [one for one in found if len(one.accuracies) > 2]
    if len(shown) < 2:
        return None
    colours = _colours(shown)
    return chart(
        name="accuracy-generations",
        title=f"ACC of each generation, members combined by {how.replace('_', ' ')}",
        description="Accuracy in percent, generation by generation, for every method. "
        + ". ".join(f"{one.method} ends at {percent(one.accuracies[-1].value)}" for one in shown)
        + ".",
        series=[
            Series(
                name=_named(one),
                tone=colours.get(one.method, "six"),
                points=tuple(
                    Point(x=float(_number(row)), y=100 * row.value) for row in one.accuracies
                ),
            )
            for one in shown
        ],
        across="generation",
        up="ACC, percent",
        places=[(float(_number(row)), str(_number(row))) for row in shown[0].accuracies],
        named_points=True,
        said="{:.1f}".format,
        width=WIDTH,
        height=340,
    )


def _number(row: Row) -> int:
    return int(row.metric.removeprefix("accuracy_"))


def _named(one: MethodSummary) -> str:
    return one.method if one.qualifies else f"{one.method} ×"


def _colours(shown: Sequence[MethodSummary]) -> dict[str, Tone]:
    """The colour of each method; those that do not count are grey."""
    colours = colours_of(one.method for one in shown)
    counted = {one.method for one in shown if one.qualifies}
    return {method: tone for method, tone in colours.items() if method in counted}


def _picture(
    found: Sequence[MethodSummary],
    how: str,
    measure: _Measure,
    word: str,
    *,
    costly: bool,
) -> Figure | None:
    shown = [(one, row) for one in found if (row := measure(one)) is not None]
    if len(shown) < 2:
        return None
    colours = _colours([one for one, _ in shown])
    # Costs grow by factors, and what costs nothing stands a step before the cheapest.
    priced = [one.cost for one, _ in shown if one.cost > 0] or [1.0]
    nothing = min(priced) / 2
    steps = [(step, f"{step:g}") for step in doublings(min(priced), max(priced))]
    free = [(nothing, "0")] if any(one.cost <= 0 for one, _ in shown) else []
    series = []
    for one, row in shown:
        name = _named(one)
        consistency = 100 * one.consistency.value
        beside = f"{kappa(one.cost)}κ" if costly else f"CON {consistency:.2f}"
        said = f"{name}: {word} {percent(row.value)}, {beside}"
        if one.shortfall:
            said += f" ({one.shortfall})"
        at = Point(
            x=(one.cost if one.cost > 0 else nothing) if costly else consistency,
            y=100 * row.value,
            low=None if row.low is None else 100 * row.low,
            high=None if row.high is None else 100 * row.high,
            label=said,
        )
        tone = colours.get(one.method, "six")
        series.append(Series(name=name, points=(at,), tone=tone))
    against = "cost" if costly else "CON"
    best = (min if word == "lost" else max)(
        (each for each in shown if each[0].qualifies and not is_reference(each[0].method)),
        key=lambda each: each[1].value,
        default=shown[0],
    )
    return chart(
        name=f"{'lost' if word == 'lost' else 'accuracy'}-{'cost' if costly else 'consistency'}",
        title=f"{word} against {against}, members combined by {how.replace('_', ' ')}",
        description=(
            f"{word} in percent against {against}, for every method. "
            f"{'Lowest' if word == 'lost' else 'Highest'} of those that count: {best[0].method}, "
            f"{percent(best[1].value)}."
        ),
        series=series,
        across="cost of a retrain, κ (each step doubles)" if costly else "CON, percent",
        up=f"{word}, percent",
        places=[*free, *steps] if costly else (),
        logarithmic=costly,
        named_points=True,
        said="{:.1f}".format,
        width=WIDTH,
        height=340,
    )
