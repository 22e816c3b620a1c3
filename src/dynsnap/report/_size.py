"""How many members, as a report."""

import math
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
    counted,
)
from dynsnap.report._study_words import HEADLINE
from dynsnap.study import LawName, SizeCurve, Sizes

_MARKS = {"accuracy": "○", "consistency": "●", "correct_consistency": "◆"}
_WIDE, _HIGH = 64, 14  # cells of the plot
_BEYOND = 4  # times as many rounds as are stored, which the plot reaches


def size_report(found: Sizes, *, title: str, notes: Sequence[str] = ()) -> Document:
    """What ensembles of any size give, in percent, how many are enough, and a small plot.

    Args:
        found: What `dynsnap.study.estimate_sizes` returned.
        title: What was looked at.
        notes: What the reader should know, a sentence each.
    """
    return tuple(_blocks(found, title, notes))


def _blocks(found: Sizes, title: str, notes: Sequence[str]) -> Iterator[Block]:
    curves = {name: found.curves[name] for name in HEADLINE if name in found.curves}
    yield Heading(title)
    yield Paragraph(
        f"{counted(found.generations, 'generation')}, {counted(found.replicates, 'replicate')}, "
        f"{counted(found.inputs, 'test input')}. Every generation has {found.members} members or "
        f"more, {_from(found)}. Percent. Inputs: 95 % interval over test inputs; draws: the middle "
        "95 % of single ensembles.",
        "quiet",
    )
    yield _expected(found, curves)
    yield _plot(found, curves)
    yield _enough(found, curves)
    yield Bullets("Reading it", (*_explained(found), *notes))


def _from(found: Sizes) -> str:
    if found.draw == "members":
        return "each drawn on its own"
    return f"from {found.rounds} rounds or more, {found.members_per_round:.1f} a round"


def _expected(found: Sizes, curves: dict[str, SizeCurve]) -> Table:
    rounds = found.draw == "rounds"
    heads = [Column("m", numeric=True), *([Column("rounds", numeric=True)] if rounds else [])]
    for name in curves:
        heads += [
            Column(HEADLINE[name], numeric=True),
            Column("inputs", numeric=True),
            Column("draws", numeric=True),
        ]
    lines = []
    for points in zip(*(curve.points for curve in curves.values()), strict=True):
        first = points[0]
        beyond = first.extrapolated
        cells = [Cell(f"{first.members:.0f}", "strong")]
        cells += [Cell(f"{math.ceil(first.rounds)}")] if rounds else []
        for point in points:
            cells += [
                Cell(f"{'~' if beyond else ''}{_percent(point.value)}"),
                Cell(_span(point.low, point.high), "quiet"),
                Cell(_span(point.least, point.most), "quiet"),
            ]
        lines.append(tuple(cells))
    last = [Cell("∞", "strong"), *([Cell("∞")] if rounds else [])]
    for curve in curves.values():
        limit = curve.limit
        last += [
            Cell(f"~{_percent(limit.value)}"),
            Cell(_span(limit.low, limit.high), "quiet"),
            Cell(""),
        ]
    return Table(
        title="Expected of m members",
        columns=tuple(heads),
        rows=(*lines, tuple(last)),
        keys=len(heads) - 3 * len(curves),
        unit=3,
        footer="~: said by the law, beyond what is stored.",
    )


def _enough(found: Sizes, curves: dict[str, SizeCurve]) -> Table:
    near, unit = _points(found.tolerance), found.draw.removesuffix("s")
    lines = []
    for name, curve in curves.items():
        errors = {trial.law: f"{100 * trial.error:+.2f}" for trial in curve.trials}
        lines.append(
            (
                Cell(HEADLINE[name], "strong"),
                Cell(_law(curve)),
                Cell(_percent(curve.limits[_other(curve)])),
                Cell(_reach(found, curve.enough)),
                Cell(_reach(found, curve.settled)),
                Cell(f"{100 * curve.gain:+.2f}"),
                Cell(errors.get("power", "")),
                Cell(errors.get("shifted", "")),
                Cell(errors.get("inverse", "")),
            )
        )
    return Table(
        title=f"How many are enough, with a tolerance of {near} points",
        columns=(
            Column(""),
            Column(f"law, r {unit}s"),
            Column(f"∞, {_other(next(iter(curves.values())))}", numeric=True),
            Column("m near ∞", numeric=True),
            Column("m settled", numeric=True),
            Column(f"next {unit}", numeric=True),
            Column("power", numeric=True),
            Column("shifted", numeric=True),
            Column("inverse", numeric=True),
        ),
        rows=tuple(lines),
        keys=1,
        footer=f"Near: within {near} of the limit. Settled: another {unit} adds less than {near}. "
        f"Next {unit}: what one more adds. {_tested(curves, unit)}",
    )


def _tested(curves: dict[str, SizeCurve], unit: str) -> str:
    trials = next(iter(curves.values())).trials
    if not trials:
        return f"The error of a law is known from four {unit}s on."
    return (
        f"Power, shifted, inverse: how far off each law is, in points, if it is fitted to at most "
        f"{trials[0].fitted_to} {unit}s and asked about {trials[0].tested_at}."
    )


def _other(curve: SizeCurve) -> LawName:
    """The law that is shown beside the one that was asked for."""
    return "shifted" if curve.law.name == "power" else "power"


def _law(curve: SizeCurve) -> str:
    law = curve.law
    limit, scale = _percent(law.limit), 100 * abs(law.scale)
    sign = "+" if law.scale < 0 else "−"
    if law.name == "power":
        return f"{limit} {sign} {scale:.1f}/r^{law.bend:.2f}"
    return f"{limit} {sign} {scale:.1f}/{'r' if not law.bend else f'(r + {law.bend:.1f})'}"


def _reach(found: Sizes, rounds: int | None) -> str:
    """A number of rounds as members."""
    members = found.members_at(rounds)
    return "beyond reach" if members is None else f"{members:,}"


def _plot(found: Sizes, curves: dict[str, SizeCurve]) -> Table:
    """All curves in one picture: rounds to the right on a logarithmic scale, metrics upwards."""
    last = _BEYOND * found.rounds
    known = [point.value for curve in curves.values() for point in curve.by_rounds]
    values = [*known, *(curve.law.at(last) for curve in curves.values())]
    low, high = min(values), max(values)
    canvas = [[" "] * _WIDE for _ in range(_HIGH)]

    def put(rounds: float, value: float, mark: str) -> None:
        across = round(math.log(rounds) / math.log(last) * (_WIDE - 1))
        up = (value - low) / (high - low) if high > low else 0.5
        canvas[_HIGH - 1 - round(up * (_HIGH - 1))][across] = mark

    for name, curve in curves.items():
        for cell in range(_WIDE):
            rounds = last ** (cell / (_WIDE - 1))
            if rounds > found.rounds:
                put(rounds, curve.law.at(rounds), "·")
        for point in curve.by_rounds:
            put(point.rounds, point.value, _MARKS[name])
    lines = []
    for number, row in enumerate(canvas):
        value = high - (high - low) * number / (_HIGH - 1)
        shown = number in (0, _HIGH // 2, _HIGH - 1)
        lines.append((Cell(_percent(value) if shown else "", "quiet"), Cell("│" + "".join(row))))
    lines.append((Cell(""), Cell(f"└{'─' * _WIDE}")))
    stored = f"{found.rounds} stored"
    at = round(math.log(found.rounds) / math.log(last) * (_WIDE - 1))
    axis = f" 1{stored:>{max(at + len(stored) // 2, len(stored) + 1)}}".ljust(_WIDE - 4)
    lines.append((Cell(""), Cell(f"{axis}{last:>5}", "quiet")))
    said = ", ".join(f"{_MARKS[name]} {HEADLINE[name]}" for name in curves)
    return Table(
        title=f"{said}, · law; to the right {found.draw}",
        columns=(Column("%", numeric=True), Column("")),
        rows=tuple(lines),
        keys=2,
    )


def _explained(found: Sizes) -> Iterator[str]:
    if found.draw == "rounds":
        yield (
            "Whole rounds are drawn, in every generation anew, and their best members first: what "
            "growing to m members gives. Members of one round are alike, so m members of many "
            "rounds would give more: see --draw members."
        )
    else:
        yield (
            "Members are drawn one by one, in every generation anew: what serving m of the stored "
            "members gives, not what training only m would."
        )
    twins = found.twins
    if twins.exponent is not None:
        some = dict(zip(twins.rounds, twins.disagreement, strict=True))
        told = ", ".join(f"{100 * some[count]:.1f} % at {count}" for count in some if _neat(count))
        yield (
            f"Two ensembles grown on the same data still disagree on {told} {found.draw}: it falls "
            f'as r^-{twins.exponent:.2f}, and "auto" counts on r^-0.5.'
        )
    yield (
        "The interval over draws is that of draws from these members: it closes as m comes near "
        "all of them, while other members would still give something else."
    )


def _neat(count: int) -> bool:
    """Whether a number is a power of two."""
    return count & (count - 1) == 0


def _percent(value: float) -> str:
    return f"{100 * value:.2f}"


def _points(value: float) -> str:
    return f"{100 * value:g}"


def _span(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{100 * low:.1f}–{100 * high:.1f}"
