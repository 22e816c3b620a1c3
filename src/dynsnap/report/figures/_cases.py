"""Pictures of generations: the four cases, the classes, matrices, and where lost answers went."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from dynsnap.comparison import Flow, GroupResult, PairResult, TransitionCounts
from dynsnap.report.figures._drawing import (
    Box,
    Figure,
    Letters,
    Ribbon,
    Shape,
    Stroke,
    Text,
    Tone,
    fitted,
    slug,
    width_of,
)
from dynsnap.report.words import CASES, count, number

_ROWS = 20  # classes in one picture
_TALL = 220.0  # height that all inputs share
_LEAST = 2.0  # a single input must be seen


def flow(pair: PairResult) -> Figure:
    """Right and wrong before, right and wrong now, and what went from which to which."""
    counts = pair.transitions
    assert counts is not None
    total = sum(getattr(counts, name) for name in CASES)
    tall = {name: _height(getattr(counts, name), total) for name in CASES}
    gap, top, left, right = 26.0, 46.0, 116.0, 326.0
    low = top + tall["kept"] + max(tall["lost"], tall["gained"]) + gap
    starts = {
        "kept": (top, top),
        "lost": (top + tall["kept"], low),
        "gained": (low, top + tall["kept"]),
        "never": (low + tall["gained"], low + tall["lost"]),
    }
    shapes: list[Shape] = [
        Text(x=left, y=20, text=fitted(pair.old, 200, 13), anchor="middle", bold=True, size=13),
        Text(x=right, y=20, text=fitted(pair.new, 200, 13), anchor="middle", bold=True, size=13),
    ]
    words = {
        "kept": "kept: right, and still right",
        "gained": "gained: wrong, now right",
        "lost": "lost: right, now wrong",
        "never": "never right: wrong, and still wrong",
    }
    for name in ("kept", "never", "gained", "lost"):  # what matters is drawn last, on top
        tone: Tone = name
        shapes.append(
            Ribbon(
                left=left,
                right=right,
                top_left=starts[name][0],
                top_right=starts[name][1],
                height=tall[name],
                tone=tone,
                opacity=0.85 if name in ("gained", "lost") else 0.45,
                label=f"{words[name]}: {_share(getattr(counts, name), total)}",
            )
        )
    for name, word in (("kept", "kept"), ("never", "never right")):
        text = f"{count(getattr(counts, name))} {word}"
        y = sum(starts[name]) / 2 + tall[name] / 2 + 4
        # Beside a thin band there is no room but below it.
        y = y if tall[name] > 18 else max(starts[name]) + tall[name] + 16
        shapes.append(Text(x=(left + right) / 2, y=y, text=text, anchor="middle"))
    shapes += _ends(counts, total, tall, (top, low), left, -1)
    shapes += _ends(counts, total, tall, (top, low), right, 1)
    bottom = max(low + tall["gained"] + tall["never"], low + tall["lost"] + tall["never"])
    return Figure(
        name="transitions",
        title=f"From {pair.old} to {pair.new}",
        description=(
            f"Of {count(total)} inputs, {count(counts.kept)} stayed right, {count(counts.gained)} "
            f"became right, {count(counts.lost)} became wrong and {count(counts.never)} stayed "
            "wrong."
        ),
        width=450,
        height=max(bottom, low + 40) + 20,
        shapes=tuple(shapes),
        head=("case", "was → is", "inputs", "share"),
        rows=tuple(
            (name, was, count(getattr(counts, name)), number(getattr(counts, name) / total))
            for name, was in CASES.items()
        ),
    )


def _ends(
    counts: TransitionCounts,
    total: int,
    tall: dict[str, float],
    tops: tuple[float, float],
    x: float,
    side: int,
) -> list[Shape]:
    """The bars at one end, and the words beside them."""
    moved = ("lost", "gained") if side < 0 else ("gained", "lost")
    when = "before" if side < 0 else "now"
    anchor = "end" if side < 0 else "start"
    away = x + side * 14
    shapes: list[Shape] = []
    groups = (
        ("right", "kept", moved[0], tops[0], ("kept", moved[0])),
        ("wrong", moved[1], "never", tops[1], (moved[1], "never")),
    )
    for word, first, second, y, parts in groups:
        height = tall[first] + tall[second]
        inputs = sum(getattr(counts, part) for part in parts)
        shapes.append(Box(x=x - 5, y=y, width=10, height=height, tone="ink"))
        middle = y + height / 2
        shapes.append(
            Text(x=away, y=middle - 2, text=f"{word} {when}", anchor=anchor, bold=True, size=13)  # type: ignore[arg-type]
        )
        shapes.append(
            Text(x=away, y=middle + 14, text=_share(inputs, total), anchor=anchor, tone="muted")  # type: ignore[arg-type]
        )
        if side > 0:
            part = moved[0] if word == "right" else moved[1]
            sign = f"{count(getattr(counts, part))} {part}"
            tone: Tone = part  # type: ignore[assignment]
            shapes.append(Text(x=away, y=middle + 30, text=sign, tone=tone, bold=True))
    return shapes


def _height(inputs: int, total: int) -> float:
    return max(inputs / total * _TALL, _LEAST) if inputs else 0.0


def _share(inputs: int, total: int) -> str:
    return f"{count(inputs)} ({number(inputs / total)})"


def by_class(groups: Sequence[GroupResult], *, of: int) -> Figure:
    """How many inputs of each class were lost (to the left) and gained (to the right).

    Args:
        groups: Classes that lost or gained something, in the order of the table below.
        of: How many classes there are.
    """
    known = [(group, group.transitions) for group in groups if group.transitions]
    wide = _classes_drawn(known[:_ROWS], of, 880.0)
    return replace(wide, narrow=_classes_drawn(known[:_ROWS], of, 400.0))


def _classes_drawn(
    shown: Sequence[tuple[GroupResult, TransitionCounts]], of: int, width: float
) -> Figure:
    most = [max(cases.lost for _, cases in shown), max(cases.gained for _, cases in shown)]
    step, top = 24.0, 30.0
    names = min(0.3 * width, max(width_of(group.name) for group, _ in shown)) + 12
    room = width - names - 92  # and numbers on both sides
    scale = room / (sum(most) or 1)  # one for both sides: bars of one length are of one number
    axis = names + 44 + most[0] * scale
    shapes: list[Shape] = [
        Text(x=axis - 8, y=16, text="lost", anchor="end", tone="lost", bold=True),
        Text(x=axis + 8, y=16, text="gained", tone="gained", bold=True),
    ]
    for place, (group, cases) in enumerate(shown):
        y = top + place * step
        wide = cases.lost * scale, cases.gained * scale
        label = f"{group.name}: {count(cases.lost)} lost, {count(cases.gained)} gained"
        shapes += [
            Text(x=2, y=y + 13, text=fitted(group.name, names - 12)),
            Box(x=axis - wide[0], y=y, width=wide[0], height=16, tone="lost", label=label),
            Box(x=axis, y=y, width=wide[1], height=16, tone="gained", label=label),
            Text(
                x=axis - wide[0] - 6,
                y=y + 13,
                text=count(cases.lost),
                anchor="end",
                tone="muted",
                size=11,
            ),
            Text(x=axis + wide[1] + 6, y=y + 13, text=count(cases.gained), tone="muted", size=11),
        ]
    bottom = top + len(shown) * step
    worst, cases = max(shown, key=lambda one: one[1].lost)
    rest = of - len(shown)
    if rest:
        more = f"and {count(rest)} more, in the table"
        shapes.append(Text(x=2, y=bottom + 16, text=more, tone="muted", size=11))
    shapes.append(Stroke(points=((axis, top - 6), (axis, bottom)), tone="ink"))
    return Figure(
        name="classes",
        title="Inputs lost and gained in each class",
        description=(
            f"{len(shown)} classes in the order of the table. Of these the class that lost most "
            f"inputs is {worst.name}: {count(cases.lost)} lost, {count(cases.gained)} gained."
        ),
        width=width,
        height=bottom + (24 if rest else 8),
        shapes=tuple(shapes),
        head=("class", "lost", "gained"),
        rows=tuple((group.name, count(cases.lost), count(cases.gained)) for group, cases in shown),
    )


def between_families(
    name: str, flows: Sequence[Flow], *, inputs: int, order: Sequence[str]
) -> Figure:
    """Families of true classes against those of the labels given now, of inputs that were lost.

    Args:
        name: What the families are called.
        flows: Inputs lost, by family.
        inputs: How many were lost in all, also to classes whose family is not known.
        order: All families; the picture has those that lost or took inputs, in this order.
    """
    cells = {(flow.truth, flow.new): flow.inputs for flow in flows}
    met = {family for pair in cells for family in pair}
    shown = [family for family in order if family in met]
    total = sum(cells.values())
    within = sum(lost for (true, new), lost in cells.items() if true == new)
    other = (
        f" Of {count(inputs - total)} more the new {name} is not known." if inputs > total else ""
    )
    return grid(
        name=f"lost-between-{slug(name)}",
        title=f"Lost inputs by {name}: of the true class, and of the label given now",
        description=(
            f"Of {count(total)} inputs lost, {count(within)} got a label of "
            f"the same {name}, on the diagonal.{other}"
        ),
        rows=shown,
        columns=shown,
        values=[[float(cells.get((row, column), 0)) or None for column in shown] for row in shown],
        said=count,
        tone="lost",
        down=f"true {name}",
        across=f"{name} now",
    )


def where_answers_went(
    flows: Sequence[Flow], *, inputs: int, known: bool, most: int = 12
) -> Figure:
    """Old labels against the new ones that took their place, where it happened most.

    Args:
        flows: Labels that changed; where the truth is known, right ones that were lost.
        inputs: How many inputs changed so in all, listed or not.
        known: Whether the truth is known.
        most: Rows and columns of the picture.
    """
    cells: Counter[tuple[str, str]] = Counter()
    for each in flows:
        cells[each.old, each.new] += each.inputs
    # The most frequent ways first, as long as there is room for them: so no row is empty.
    old: Counter[str] = Counter()
    new: Counter[str] = Counter()
    for (was, now), often in cells.most_common():
        if (was in old or len(old) < most) and (now in new or len(new) < most):
            old[was] += often
            new[now] += often
    rows = [name for name, _ in old.most_common()]
    columns = [name for name, _ in new.most_common()]
    shown = old.total()
    ((first, second), most_often) = cells.most_common(1)[0]
    down = "true class" if known else "label before"
    what = "lost" if known else "changed"
    return grid(
        name="lost-to",
        title="True classes, and the labels given now" if known else "Labels before, and now",
        description=(
            f"Rows are {'true classes' if known else 'labels before'}, columns the labels given "
            f"now. Most often {first} became {second}: {count(most_often)} inputs. "
            f"The picture shows {count(shown)} of {count(inputs)} {what} inputs."
        ),
        rows=rows,
        columns=columns,
        values=[[float(cells[row, column]) or None for column in columns] for row in rows],
        said=count,
        tone="lost" if known else "one",
        down=down,
        across="label now",
    )


def grid(
    *,
    name: str,
    title: str,
    description: str,
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float | None]],
    said: Callable[[float], str],
    tone: Tone,
    down: str = "",
    across: str = "",
    floor: float = 0.0,
    letters: Letters = "none",
) -> Figure:
    """Numbers with rows and columns that have names; None leaves a cell empty.

    Args:
        name: What the figure's file is called.
        title: What it shows.
        description: The same for those who do not see it.
        rows: Names of the rows.
        columns: Names of the columns.
        values: The numbers.
        said: How a number is written.
        tone: The colour of the largest number.
        down: What the rows are.
        across: What the columns are.
        floor: The number that has no colour.
        letters: How a terminal shows it.
    """
    known = [value for row in values for value in row if value is not None]
    most = max([*known, floor])
    wide = max(34.0, *(width_of(said(value), 11) + 12 for value in known), 0.0)
    tall = 28.0
    left = min(240.0, max([width_of(each) for each in (*rows, down)]) + 22)
    above = 34.0 + 0.72 * min(130.0, max(width_of(each) for each in columns))
    shapes: list[Shape] = []
    if across:
        shapes.append(Text(x=left, y=14, text=f"{across} →", tone="muted", size=11))
    if down:
        shapes.append(
            Text(x=left - 8, y=above - 8, text=f"{down} ↓", anchor="end", tone="muted", size=11)
        )
    for place, each in enumerate(columns):
        x = left + (place + 0.5) * wide
        shapes.append(Text(x=x, y=above - 8, text=fitted(each, 130), turned=-45))
    for i, row in enumerate(rows):
        y = above + i * tall
        shapes.append(Text(x=left - 8, y=y + 18, text=fitted(row, left - 18), anchor="end"))
        for j, value in enumerate(values[i]):
            x = left + j * wide
            strength = 0.0 if value is None or most <= floor else (value - floor) / (most - floor)
            words = "" if value is None else f"{row}, {columns[j]}: {said(value)}"
            if value is None:
                empty = Box(x=x + 1, y=y + 1, width=wide - 2, height=tall - 2, tone="panel")
                shapes.append(empty)
            else:
                shapes += [
                    Box(
                        x=x + 1,
                        y=y + 1,
                        width=wide - 2,
                        height=tall - 2,
                        tone=tone,
                        # Never so strong that the ink on it cannot be read, light or dark.
                        opacity=0.08 + 0.42 * max(0.0, min(1.0, strength)),
                        label=words,
                    ),
                    Text(x=x + wide / 2, y=y + 18, text=said(value), anchor="middle", size=11),
                ]
    return Figure(
        name=name,
        title=title,
        description=description,
        width=left + len(columns) * wide + 96,
        height=above + len(rows) * tall + 6,
        shapes=tuple(shapes),
        head=(down or "", *columns),
        rows=tuple(
            (row, *("" if value is None else said(value) for value in values[i]))
            for i, row in enumerate(rows)
        ),
        letters=letters,
    )
