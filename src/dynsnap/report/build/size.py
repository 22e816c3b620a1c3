"""How many members are enough, as a document."""

import math
from collections.abc import Iterator, Mapping, Sequence

from dynsnap.comparison import CONFIDENCE
from dynsnap.report.build.study_words import HEADLINE
from dynsnap.report.document import Bullets, Cell, Column, Document, Table
from dynsnap.report.figures import Figure, Point, Series, chart, tones
from dynsnap.report.words import counted, percent
from dynsnap.study import LawName, SizeCurve, Sizes

_BEYOND = 4  # times as many rounds as are stored, which the picture reaches
_BEND: Mapping[LawName, str] = {"power": "exponent", "shifted": "c"}
_STEPS = 64  # points of a law in the picture


def size_document(found: Sizes, *, title: str, notes: Sequence[str] = ()) -> Document:
    """What ensembles of any size give, in percent, how many are enough, and a picture.

    Args:
        found: What `dynsnap.study.estimate_sizes` returned.
        title: What was looked at.
        notes: What the reader should know, a sentence each.
    """
    curves = {name: found.curves[name] for name in HEADLINE if name in found.curves}
    return Document.of(
        title,
        _expected(found, curves),
        _picture(found, curves),
        _enough(found, curves),
        Bullets.of("Reading it", (*_explained(found), *notes)),
        about=f"{counted(found.generations, 'generation')}, "
        f"{counted(found.replicates, 'replicate')}, {counted(found.inputs, 'test input')}. Every "
        f"generation has {found.members} members or more, {_from(found)}. Percent. Inputs: "
        f"{CONFIDENCE:.0%} interval over test inputs; draws: the middle {CONFIDENCE:.0%} of single "
        "ensembles.",
    )


def bound_notes(found: Sizes) -> list[str]:
    """What a reader should know of each law whose bend lies at its bound, a sentence each."""
    return [
        f"The {_BEND[curve.law.name]} of {HEADLINE[name]} is at its bound ({curve.law.bend:g}): "
        "its limit and member counts are extrapolations that these rounds do not support."
        for name, curve in found.curves.items()
        if curve.law.at_bound
    ]


def _from(found: Sizes) -> str:
    if found.draw == "members":
        return "each drawn on its own"
    return f"from {found.rounds} rounds or more, {found.members_per_round:.1f} a round"


def _expected(found: Sizes, curves: Mapping[str, SizeCurve]) -> Table:
    columns = [Column("m", "number"), Column("rounds", "number", key=True)]
    for name in curves:
        columns += [
            Column(HEADLINE[name], "number"),
            Column("inputs", fixed=True),
            Column("draws", fixed=True),
        ]
    rounds = found.draw == "rounds"
    rows = []
    for points in zip(*(curve.points for curve in curves.values()), strict=True):
        first = points[0]
        cells = [
            Cell(f"{first.members:.0f}", first.members, "strong"),
            Cell(f"{math.ceil(first.rounds)}", first.rounds) if rounds else Cell(),
        ]
        for point in points:
            sign = "~" if first.extrapolated else ""
            cells += [
                Cell(f"{sign}{percent(point.value)}", point.value),
                Cell(_span(point.low, point.high), tone="quiet"),
                Cell(_span(point.least, point.most), tone="quiet"),
            ]
        rows.append(tuple(cells))
    last = [Cell("∞", tone="strong"), Cell("∞" if rounds else "")]
    for curve in curves.values():
        limit = curve.limit
        last += [
            Cell(f"~{percent(limit.value)}", limit.value),
            Cell(_span(limit.low, limit.high), tone="quiet"),
            Cell(),
        ]
    return Table(
        name="expected",
        title="Expected of m members",
        columns=tuple(columns),
        rows=(*rows, tuple(last)),
        footer="~: given by the law, beyond what is stored.",
    )


def _enough(found: Sizes, curves: Mapping[str, SizeCurve]) -> Table:
    near, unit = f"{100 * found.tolerance:g}", found.draw.removesuffix("s")
    other = _other(next(iter(curves.values())))
    laws = ("power", "shifted", "inverse")
    rows = []
    for name, curve in curves.items():
        errors = {trial.law: f"{100 * trial.error:+.2f}" for trial in curve.trials}
        rows.append(
            (
                Cell(HEADLINE[name], tone="strong"),
                Cell(_law(curve)),
                Cell(percent(curve.limits[_other(curve)])),
                Cell(_reach(found, curve.enough)),
                Cell(_reach(found, curve.settled)),
                Cell(f"{100 * curve.gain:+.2f}"),
                *(Cell(errors.get(law, "")) for law in laws),  # type: ignore[call-overload]
            )
        )
    heads = (f"∞, {other}", "m near ∞", "m settled", f"next {unit}", *laws)
    return Table(
        name="enough",
        title=f"How many are enough, with a tolerance of {near} points",
        columns=(
            Column(""),
            Column(f"law, r {unit}s"),
            *(Column(head, "number") for head in heads),
        ),
        rows=tuple(rows),
        footer=f"Near: within {near} of the limit. Settled: another {unit} adds less than {near}. "
        f"Next {unit}: what one more adds. {_tested(curves, unit)}",
    )


def _tested(curves: Mapping[str, SizeCurve], unit: str) -> str:
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
    limit, scale = percent(law.limit), 100 * abs(law.scale)
    sign = "+" if law.scale < 0 else "−"
    if law.name == "power":
        return f"{limit} {sign} {scale:.1f}/r^{law.bend:.2f}"
    return f"{limit} {sign} {scale:.1f}/{'r' if not law.bend else f'(r + {law.bend:.1f})'}"


def _reach(found: Sizes, rounds: int | None) -> str:
    """A number of rounds as members."""
    members = found.members_at(rounds)
    return "beyond reach" if members is None else f"{members:,}"


def _picture(found: Sizes, curves: Mapping[str, SizeCurve]) -> Figure:
    """All curves in one picture, with what the law predicts beyond what is stored."""
    last = _BEYOND * found.rounds
    steps = [last ** (step / (_STEPS - 1)) for step in range(_STEPS)]
    beyond = [rounds for rounds in steps if rounds > found.rounds]
    colours = tones(list(curves))
    series = []
    for name, curve in curves.items():
        known = (Point(x=point.rounds, y=100 * point.value) for point in curve.by_rounds)
        series.append(Series(name=HEADLINE[name], points=tuple(known), tone=colours[name]))
        law = tuple(Point(x=rounds, y=100 * curve.law.at(rounds)) for rounds in beyond)
        said = f"{HEADLINE[name]}, law"
        series.append(Series(name=said, points=law, tone=colours[name], marks=False, dashed=True))
    return chart(
        name="sizes",
        title=f"Percent by {found.draw}: {found.rounds} are stored, the law goes on",
        description=f"{', '.join(HEADLINE[name] for name in curves)} in percent, by the number of "
        f"{found.draw}: {found.rounds} are stored, and the law goes on to {last}.",
        series=series,
        across=found.draw,
        up="percent",
        logarithmic=True,
        said="{:.1f}".format,
        letters="plane",
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


def _span(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{100 * low:.1f}–{100 * high:.1f}"
