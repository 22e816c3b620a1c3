"""A study as a report: the paper's table, and pictures of what consistency costs."""

from collections.abc import Iterator, Sequence

from dynsnap.report._blocks import (
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
from dynsnap.report._study_tables import (
    BASELINE,
    Found,
    further_tables,
    main_table,
    percent,
    spread_of,
    tone_of,
    transition_tables,
    value_cells,
    value_heads,
)
from dynsnap.report._study_words import (
    HEADLINE,
    abbreviated,
    kappa,
    preferred,
    said_rounds,
    said_windows,
)
from dynsnap.study import (
    NEVER_RETRAIN,
    NOISE_FLOOR,
    MethodSummary,
    Row,
    StudyPlan,
    SweepRow,
    frontier,
)

_EACH = 5  # generations whose accuracy has a column of its own
_BAR = 24  # cells of the longest bar


def study_report(
    rows: Sequence[Row],
    *,
    title: str,
    sweeps: Sequence[SweepRow] = (),
    plan: StudyPlan | None = None,
    notes: Sequence[str] = (),
) -> Document:
    """The table of a study as the paper has it, in percent, with pictures.

    Args:
        rows: The study's table.
        title: What the study is called, and what it was run on.
        sweeps: The points of its sweeps.
        plan: The study itself, which tells how rounds are trained.
        notes: What the reader should know, a sentence each.
    """
    return tuple(_blocks(rows, title, sweeps, plan, notes))


def _blocks(
    rows: Sequence[Row],
    title: str,
    sweeps: Sequence[SweepRow],
    plan: StudyPlan | None,
    notes: Sequence[str],
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
    yield main_table(found, methods, combinations)
    how = preferred(rows)
    averages = [one for one in combinations if one.endswith("average")]
    yield from further_tables(found, methods, averages or [how])
    yield from transition_tables(found, methods, how)
    for metric in ("consistency", "correct_consistency"):
        if any((method, how, metric) in found for method in methods):
            yield _picture(found, methods, how, metric)
    yield from _frontier(frontier(rows, combination=how), how)
    windows = said_windows(plan)
    for name in dict.fromkeys(point.sweep for point in sweeps):
        some = [point for point in sweeps if point.sweep == name]
        yield _sweep(f"Sweep: {name}{windows.get(name, '')}", some)
    rounds = said_rounds(plan)
    explained = (*_explained(found, methods, how), *([rounds] if rounds else []))
    yield Bullets("Reading it", (*explained, *notes))


def _picture(found: Found, methods: Sequence[str], how: str, metric: str) -> Table:
    shown = {
        method: found[method, how, metric] for method in methods if (method, how, metric) in found
    }
    values = [row.value for row in shown.values()]
    start = max(0.0, int(min(values) * 100 - 5) // 5 * 5 / 100)
    lines = tuple(
        (
            Cell(method),
            Cell(kappa(row.cost)),
            Cell(bar((row.value - start) / (1 - start), _BAR), tone_of(row, shown.get(BASELINE))),
            Cell(percent(row)),
            Cell(spread_of(row), "quiet"),
        )
        for method, row in shown.items()
    )
    differ = any(row.spread is not None for row in shown.values())
    table = Table(
        title=f"{HEADLINE[metric]} ({abbreviated(how)}); bars run from {start:.0%} to 100%",
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


def _frontier(found: Sequence[MethodSummary], how: str) -> Iterator[Block]:
    """What each method gives and takes, and whether it counts."""
    if not any(one.judged for one in found):
        return
    each = [row.metric.removeprefix("accuracy_") for row in max(found, key=_known).accuracies]
    if len(each) > _EACH:  # of a long stream, the first and the last say most
        each = [each[0], *each[-2:]]
    heads = [Column("method"), Column("retrain κ", numeric=True)]
    heads += [Column(f"ACC {number}", numeric=True) for number in each]
    heads += [Column(word, numeric=True) for word in ("gained", "lost", "CON", "ACC-CON", "late")]
    lines = []
    for one in found:
        accuracy = {row.metric.removeprefix("accuracy_"): row for row in one.accuracies}
        rest = (one.gained, one.lost, one.consistency, one.correct_consistency, one.late)
        counts = "–" if not one.judged else "yes" if one.qualifies else "no"
        tones: dict[str, Tone] = {"yes": "good", "no": "bad", "–": "quiet"}
        lines.append(
            (
                Cell(one.method),
                Cell(kappa(one.cost)),
                *(Cell(percent(accuracy.get(number))) for number in each),
                *(Cell(percent(row)) for row in rest),
                Cell(counts, tones[counts]),
            )
        )
    yield Table(
        title=f"Accuracy of each generation, losses, cost ({abbreviated(how)})",
        columns=(*heads, Column("counts")),
        rows=tuple(lines),
        footer="Counts: late classes at least 0.9 of dynsnap-cyc's, the last generation at most "
        "0.3 points below.",
    )


def _known(one: MethodSummary) -> int:
    return len(one.accuracies)


def _sweep(title: str, points: Sequence[SweepRow]) -> Table:
    labels = list(dict.fromkeys(point.point for point in points if point.row.metric in HEADLINE))
    found = {(point.point, point.row.metric): point.row for point in points}
    shown = {
        metric: [row.value for label in labels if (row := found.get((label, metric))) is not None]
        for metric in HEADLINE
    }
    spread = any(point.row.spread is not None for point in points)
    lines = []
    for label in labels:
        rows = [found.get((label, metric)) for metric in HEADLINE]
        cost = next(row.cost for row in rows if row is not None)
        cells = [Cell(label), Cell(kappa(cost))]
        for row in rows:
            cells += value_cells(row, "plain", spread)
        lines.append(tuple(cells))
    heads = [Column(points[0].over), Column("κ", numeric=True)]
    for symbol in HEADLINE.values():
        heads += value_heads(symbol, spread)
    drawn = ", ".join(f"{HEADLINE[metric]} {spark(values)}" for metric, values in shown.items())
    return Table(
        title=f"{title}  {drawn}",
        columns=tuple(heads),
        rows=tuple(lines),
        keys=2,
        unit=3 if spread else 2,
    )


def _explained(found: Found, methods: Sequence[str], how: str) -> Iterator[str]:
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
        listed = ", ".join(f"{method} {percent(row)}" for method, row in late.items())
        yield f"Accuracy of the last generation on classes that arrived late: {listed}."
