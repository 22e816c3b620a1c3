"""What consistency is worth: accuracy and losses against it and against cost."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from dynsnap.metrics import catalogue
from dynsnap.report.build.study_charts import WIDTH, colours_of, point_of
from dynsnap.report.build.study_tables import (
    cost_cell,
    is_reference,
    method_cell,
    percent_cell,
    value_of,
)
from dynsnap.report.build.study_words import HEADLINE, NEW, OF_NEW, preferred
from dynsnap.report.document import Bullets, Cell, Column, Detail, Node, Section, Side, Table
from dynsnap.report.figures import Figure, Point, Series, Tone, chart, doublings
from dynsnap.report.words import clipped, kappa, percent
from dynsnap.study import (
    FRESH,
    LARGE_LOSS,
    HeldAgainst,
    MethodSummary,
    Role,
    Row,
    StudyPlan,
    frontier,
)

_EACH = 5  # generations whose accuracy has a column of its own on a page
_BRIEF = 3  # and in a terminal

_Measure = Callable[[MethodSummary], Row | None]
_MEASURES: dict[str, tuple[str, _Measure]] = {
    "ACC": (catalogue["accuracy"].meaning, lambda one: one.accuracy),
    "gained": (catalogue["gained"].meaning, lambda one: one.gained),
    "lost": (catalogue["lost"].meaning, lambda one: one.lost),
    "CON": (catalogue["consistency"].meaning, lambda one: one.consistency),
    "ACC-CON": (catalogue["correct_consistency"].meaning, lambda one: one.correct_consistency),
    NEW["late_accuracy"]: (OF_NEW, lambda one: one.late),
}


# What methods are shown against: the axis, and the place of a method on it.
_AGAINST: dict[str, tuple[str, Callable[[MethodSummary], float | None]]] = {
    "CON": ("CON, percent", lambda one: 100 * one.consistency.value),
    "cost": ("cost of a retrain, κ (each step doubles)", lambda one: one.cost),
    "inference": ("networks evaluated per input (each step doubles)", lambda one: one.networks),
}
_FILES = {"CON": "consistency", "cost": "cost", "inference": "inference"}


_REFERENCES: dict[Role, str] = {
    "fresh": f"a fresh {FRESH}",
    "strongest": "the strongest fresh method that costs no more in all",
    "first": "its own first generation",
}


def rule(found: Sequence[MethodSummary]) -> str:
    """When a method does not qualify, and how small a difference these data would have shown."""
    judged = [one for one in found if one.judged]
    held = [one for each in judged for one in each.held]
    roles = {one.role for one in held}
    *most, last = (words for role, words in _REFERENCES.items() if role in roles)
    said = f"{', '.join(most)}{' or ' if most else ''}{last}"
    seen = [one.detectable for one in held if one.accuracies]
    late = [one.late.detectable for one in held if one.late is not None]
    parts = [
        f"A method does not qualify if a later generation, or its accuracy on new classes, is "
        f"clearly below {said}: the 95 % interval of the paired difference over inputs and "
        f"replicates ends below 0. Where none is, the verdict is open if an interval includes a "
        f"loss of more than {100 * LARGE_LOSS:.0f} points, or if something could not be compared."
    ]
    if any(one.replicates == 1 for one in judged):
        parts.append(
            "With n = 1, one replicate, the interval covers inputs alone: another seed may change "
            "such a verdict."
        )
    if seen:
        classes = f", and of {100 * max(late):.1f} points on new classes" if late else ""
        parts.append(
            f"Differences of {100 * max(seen):.1f} points or more in a generation{classes} would "
            "have been seen four times out of five."
        )
    return " ".join(parts)


def frontier_section(
    rows: Sequence[Row],
    held: Mapping[str, Sequence[HeldAgainst]],
    plan: StudyPlan | None = None,
) -> Iterator[Section]:
    """Every method with what it gives and what it takes; nothing where one method stands alone."""
    how = preferred(rows)
    found = frontier(rows, combination=how, held=held, plan=plan)
    if len(found) < 2:
        return
    judged = any(one.judged for one in found)
    lead = "Consistency alone rewards doing nothing: what is never retrained never changes a label."
    if judged:
        lead += (
            f" {rule(found)} What does not qualify is marked × in the pictures, and grey; what is "
            "open is marked ?."
        )
    body: list[Node] = [frontier_table(found, how)]
    lacking = [
        f"{clipped(one.method, 60)} does not qualify: {one.shortfall}."
        for one in found
        if one.shortfall
    ]
    if lacking:
        body.append(Bullets.of("Methods that do not qualify", lacking, "full"))
    doubtful = [
        f"{clipped(one.method, 60)} is open: {one.unsure}."
        for one in found
        if one.verdict == "open"
    ]
    if doubtful:
        body.append(Bullets.of("Methods that these data cannot judge", doubtful, "full"))
    body.append(Side(tuple(_pictures(found, how))))
    yield Section(
        name="frontier",
        title="Accuracy, losses, cost",
        short="Frontier",
        lead=lead,
        body=tuple(body),
    )


def frontier_table(
    found: Sequence[MethodSummary], how: str = "average", *, annotated: bool = False
) -> Table:
    """Accuracy of each generation, losses, consistency and cost of every method, in percent.

    Args:
        found: What `dynsnap.study.frontier` returned.
        how: How members are combined.
        annotated: Whether each value has its standard deviation over replicates beside it, each
            method the reason why it does not qualify or why that is open, and each generation its
            column: for documents that have this table alone.
    """
    judged = any(one.judged for one in found)
    every = max((one.accuracies for one in found), key=len)
    numbers = [row.metric.removeprefix("accuracy_") for row in every]
    # Of a long stream, the first and the last tell most.
    cut = len(numbers) > _EACH and not annotated
    shown = [*numbers[:1], *numbers[-(_EACH - 1) :]] if cut else numbers
    few = shown if len(shown) <= _EACH and not cut else [*shown[:1], *shown[1 - _BRIEF :]]
    columns = [
        Column("method"),
        Column("qualifies"),
        Column("cost (κ)", "number", "Trainings from scratch that a retrain takes."),
    ]
    # What an ensemble costs shows at every input, and what stabilized labels need is kept for each.
    inference = any(one.networks is not None for one in found)
    needing = any(one.needs for one in found)
    if inference:
        columns.append(
            Column("networks", "number", "Inference cost: networks evaluated for each input.")
        )
    if needing:
        columns.append(
            Column(
                "needs",
                "words",
                "What labels depend on beside these networks: answers of the generation before, "
                "stored or given again by its networks. Inputs without them get plain labels.",
                "full",
            )
        )
    for number in shown:
        detail: Detail = "all" if number in few else "full"
        meaning = f"Accuracy of generation {number}."
        columns.append(Column(f"ACC {number}", "number", meaning, detail))
    used = {
        word: measure
        for word, (_, measure) in _MEASURES.items()
        if any(measure(one) is not None for one in found)
    }
    for word in used:  # the terminal has some of them in its first table
        detail = "full" if word in HEADLINE.values() else "all"
        columns.append(Column(word, "number", _MEASURES[word][0], detail))
    references = {held.reference for one in found for held in one.held}
    rows = []
    for one in sorted(found, key=lambda each: is_reference(each.method)):
        each = {row.metric.removeprefix("accuracy_"): row for row in one.accuracies}
        values = [each.get(number) for number in shown]
        values += [measure(one) for measure in used.values()]
        rows.append(
            (
                method_cell(one.method),
                _verdict(one, annotated, one.method in references) if judged else Cell(),
                cost_cell(one.cost),
                *((_networks(one),) if inference else ()),
                *((Cell(one.needs or "–", tone="quiet"),) if needing else ()),
                *(_value(row, annotated) for row in values),
            )
        )
    left_out = " Between the first ACC and the next, some are left out." if cut else ""
    means = f"Gained, lost, CON and ACC-CON are means over pairs of generations.{left_out}"
    return Table(
        name="frontier-table",
        title=f"Accuracy, losses, cost: members combined by {how.replace('_', ' ')}, in percent",
        columns=tuple(columns),
        rows=tuple(rows),
        footer=means,
        brief_footer=f"{means} {rule(found)}" if judged else means,
    )


def _networks(one: MethodSummary) -> Cell:
    if one.networks is None:
        return Cell("–", tone="quiet")
    return Cell(str(one.networks), float(one.networks))


def _value(row: Row | None, annotated: bool) -> Cell:
    cell = percent_cell(value_of(row))
    if annotated and row is not None and row.spread is not None:
        return Cell(f"{cell.text} ± {percent(row.spread)}", cell.value)
    return cell


def _best(shown: Sequence[tuple[MethodSummary, Row]], word: str) -> str:
    """The best method of a picture, in words: of those that may be chosen, if that was judged."""
    judged = any(one.judged for one, _ in shown)
    among = [
        (one, row)
        for one, row in shown
        if (one.verdict in ("yes", "open") if judged else not is_reference(one.method))
    ]
    if not among:
        return " None qualifies, and none is open." if judged else ""
    one, row = (min if word == "lost" else max)(among, key=lambda each: each[1].value)
    of = "those that qualify or are open" if judged else "all that are retrained"
    extreme = "Lowest" if word == "lost" else "Highest"
    return f" {extreme} of {of}: {one.method}, {percent(row.value)}."


def _verdict(one: MethodSummary, reasons: bool, reference: bool) -> Cell:
    if one.verdict is None:
        return Cell("reference" if reference else "–", tone="quiet")
    said = f"{one.verdict} (n = {one.replicates})" if one.replicates else one.verdict
    if one.qualifies:
        return Cell(said, tone="good")
    why = one.shortfall or one.unsure
    if reasons:
        return Cell(f"{said}: {why}", tone="quiet")
    return Cell(said, tone="bad" if one.shortfall else "quiet", hint=why)


def _pictures(found: Sequence[MethodSummary], how: str) -> Iterator[Figure]:
    for word in ("ACC", "lost"):
        for against in _AGAINST:
            yield from _picture(found, how, word, against)
    yield from _over_time(found, how)


def _over_time(found: Sequence[MethodSummary], how: str) -> Iterator[Figure]:
    """The accuracy of each generation, a line for each method."""
    shown = [one for one in found if len(one.accuracies) > 2]
    if len(shown) < 2:
        return
    colours = _colours(shown)
    ends = (f"{one.method} ends at {percent(one.accuracies[-1].value)}" for one in shown)
    yield chart(
        name="accuracy-generations",
        title=f"ACC of each generation, members combined by {how.replace('_', ' ')}",
        description="Accuracy in percent, generation by generation, for every method. "
        f"{'. '.join(ends)}.",
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


_MARKS = {"no": " ×", "open": " ?"}


def _named(one: MethodSummary) -> str:
    return f"{one.method}{_MARKS.get(one.verdict or '', '')}"


def _colours(shown: Sequence[MethodSummary]) -> dict[str, Tone]:
    """The colour of each method; those that do not qualify are grey."""
    colours = colours_of(one.method for one in shown)
    lacking = {one.method for one in shown if one.shortfall}
    return {method: tone for method, tone in colours.items() if method not in lacking}


def _picture(found: Sequence[MethodSummary], how: str, word: str, against: str) -> Iterator[Figure]:
    measure, (axis, place_of) = _MEASURES[word][1], _AGAINST[against]
    shown = [
        (one, row, place)
        for one in found
        if (row := measure(one)) is not None and (place := place_of(one)) is not None
    ]
    # One network for all is no frontier.
    if len(shown) < 2 or (against == "inference" and len({place for *_, place in shown}) < 2):
        return
    costly = against != "CON"
    colours = _colours([one for one, *_ in shown])
    # Costs grow by factors, and what costs nothing stands a step before the cheapest.
    priced = [place for *_, place in shown if place > 0] or [1.0]
    nothing = min(priced) / 2
    steps = [(step, f"{step:g}") for step in doublings(min(priced), max(priced))]
    free = [(nothing, "0")] if any(place <= 0 for *_, place in shown) else []
    series = []
    for one, row, place in shown:
        name = _named(one)
        beside = {
            "CON": f"CON {place:.2f}",
            "cost": f"{kappa(one.cost)}κ",
            "inference": f"networks: {place:g}",
        }[against]
        why = one.shortfall or one.unsure
        reason = f" ({why})" if why else ""
        x = (place if place > 0 else nothing) if costly else place
        label = f"{name}: {word} {percent(row.value)}, {beside}{reason}"
        tone = colours.get(one.method, "six")
        series.append(Series(name=name, points=(point_of(row, x, label),), tone=tone))
    yield chart(
        name=f"{'lost' if word == 'lost' else 'accuracy'}-{_FILES[against]}",
        title=f"{word} against {against}, members combined by {how.replace('_', ' ')}",
        description=(
            f"{word} in percent against {against}, for every method."
            f"{_best([(one, row) for one, row, _ in shown], word)}"
        ),
        series=series,
        across=axis,
        up=f"{word}, percent",
        places=[*free, *steps] if costly else (),
        logarithmic=costly,
        named_points=True,
        said="{:.1f}".format,
        width=WIDTH,
        height=340,
    )
