"""The results on docs/flights.md, from the published labels beside this file.

python results/flights.py          # writes tables, figures and weeks.csv
python results/flights.py --check  # fails if one of them is not up to date
"""

# ruff: noqa: E501  lines of the page are longer than lines of code

import argparse
import csv
import io
import re
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

RESULTS = Path(__file__).parent
sys.path.insert(0, str(RESULTS))

import _measured  # noqa: E402  it lies beside this file
from _claims import BY_DESIGN  # noqa: E402
from _weeks import (  # noqa: E402
    FLOOR,
    FRESH,
    NEVER,
    WeeklyStudy,
    markdown,
    spread,
    weekly_study,
)

PAGE = RESULTS.parent / "docs" / "flights.md"
IMAGES = "images"
MODELS = {"flights": "LightGBM", "flights-xgboost": "XGBoost", "flights-mlp": "MLP"}
METHODS = {
    FRESH: "fresh every week",
    "every-4": "fresh every 4 weeks",
    "every-13": "fresh every 13 weeks",
    NEVER: "never retrained",
    "gated": "fresh, deployed if the gate passes",
    "margin": "fresh, stabilized, margin 0.2",
    "chosen-margin": "fresh, stabilized, chosen margin",
    "bayesian": "fresh, stabilized, Bayesian rule",
    "warm": "warm start",
    "single-distill": "fresh, distilled from the deployed model",
    "single": "one network, the default",
    "rolling": "rolling ensemble of 8",
}
CADENCES = (FRESH, "every-4", "every-13", NEVER, "gated")
DRAWN = {FRESH: "one", "chosen-margin": "three", NEVER: "six"}
points = partial(_measured.points, places=2)  # weeks differ little
_PLACE = re.compile(r"(<!-- flights: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    for path, text in outputs().items():
        known = path.read_text(encoding="utf-8") if path.is_file() else ""
        if text != known and check:
            raise SystemExit(f"{path.name} is not up to date: run python results/flights.py.")
        if text != known:
            path.write_text(text, encoding="utf-8")


def outputs() -> dict[Path, str]:
    """Every file that is made from the results, with its content."""
    found = {PAGE: filled(PAGE.read_text(encoding="utf-8"))}
    for of in studies():
        found[RESULTS / of.name / "weeks.csv"] = week_by_week(of)
    if main_study := next(iter(studies()), None):
        for name, svg in figures(main_study).items():
            found[PAGE.parent / IMAGES / f"{name}.svg"] = svg
    return found


def filled(text: str) -> str:
    """The page with what the current results say."""
    parts = {"answer": answer, "wins": wins, "fair": fair, "cadence": cadence, "months": months}
    return _PLACE.sub(lambda match: f"{match[1]}\n{parts[match[2]]()}\n\n{match[3]}", text)


def studies() -> list[WeeklyStudy]:
    """The studies whose results are here."""
    return [
        weekly_study(RESULTS / name)
        for name in MODELS
        if (RESULTS / name / "labels.parquet").is_file()
    ]


def model(of: WeeklyStudy) -> str:
    """The model of a study."""
    return MODELS[of.name]


def shown(of: WeeklyStudy) -> list[str]:
    """The methods of a study in the order of the tables."""
    return [name for name in METHODS if name in of.methods]


def answer() -> str:
    """What to do, for each model."""
    if not studies():
        return ""
    lines = [
        *_in_all(studies()),
        *(line for of in studies() for line in _answers(of)),
        *_constant(),
    ]
    return "\n".join(f"* {line}" for line in lines)


def _in_all(found: Sequence[WeeklyStudy]) -> Iterator[str]:
    """What qualifies and loses clearly fewer with every model."""
    names = [
        name
        for name in METHODS
        if name != FRESH
        and all(
            name in of.methods
            and not of.below(name)
            and of.minus(name, FRESH, "lost").clearly_below
            for of in found
        )
    ]
    if names:
        said = "; ".join(METHODS[name] for name in names)
        seldom = "; ".join(METHODS[name] for name in names if name in BY_DESIGN)
        yield (
            f"**With every model: {said}.** Clearly fewer right answers are lost than with {METHODS[FRESH]}, and accuracy is not clearly below any "
            f"reference.{f' {seldom.capitalize()}: by design, since without a retrain no answer changes.' if seldom else ''}"
        )


def _constant() -> Iterator[str]:
    """What a constant answer has, what is below it, and whether a retrain every week beats it."""
    name, right = studies()[0].constant
    below = [
        f"{model(of)} {METHODS[method]} ({100 * of.weeks(method).new.mean():.1f})"
        for of in studies()
        for method in shown(of)
        if of.weeks(method).new.mean() < right - 1e-9
    ]
    worse = f" Less accurate than that: {', '.join(below)}." if below else ""
    yield f"Always answering `{name}` is right for {100 * right:.2f} % of the flights in a week.{worse}"
    gaps = [(model(of), of.minus_constant(FRESH)) for of in studies()]
    told = "; ".join(
        f"{each} {points(gap)}, {'' if gap.clearly_above else 'not '}clearly above"
        for each, gap in gaps
    )
    yield f"{METHODS[FRESH].capitalize()} against always answering `{name}`, in points of accuracy: {told}."


def _answers(of: WeeklyStudy) -> Iterator[str]:
    fresh = of.weeks(FRESH)
    lost = 100 * fresh.lost.mean()
    found = _fewest(of)
    if not found:
        yield (
            f"**{model(of)}: nothing wins.** No method loses clearly fewer right answers than {METHODS[FRESH]} ({lost:.2f} % a week) "
            "without being clearly less accurate than a reference."
        )
        return
    shares = [100 * of.weeks(name).lost.mean() for name in found]
    each = "; ".join(
        f"{METHODS[name]} ({share:.2f} %, accuracy {points(of.minus(name, FRESH, 'new'))} points)"
        for name, share in zip(found, shares, strict=True)
    )
    few, many = f"{shares[0]:.2f}", f"{shares[-1]:.2f}"
    one = (
        "The first of these methods loses the fewest of all that are retrained every week and not clearly less accurate than any reference; these weeks do not tell the others from it"
        if len(found) > 1
        else "This method loses the fewest of all that are retrained every week and not clearly less accurate than any reference"
    )
    yield (
        f"**{model(of)}: {few if few == many else f'{few} to {many}'} % of the flights of a week lose their right answer, instead of {lost:.2f} %.** "
        f"{one}: {each}."
    )


def _fewest(of: WeeklyStudy) -> list[str]:
    """What qualifies and loses the fewest, with what these weeks do not tell from it.

    The one that loses the fewest is found on the reported weeks, so alone it may be luck. What is
    retrained in few weeks loses fewer by design, and is none of them.
    """
    fewer = [
        name
        for name in shown(of)
        if name not in (FRESH, *BY_DESIGN)
        and not of.below(name)
        and of.minus(name, FRESH, "lost").clearly_below
    ]
    fewer.sort(key=lambda name: float(of.weeks(name).lost.mean()))
    return [name for name in fewer if not of.minus(name, fewer[0], "lost").clearly_above]


def wins() -> str:
    """Every method of every study in one table."""
    head = [
        "model",
        "method",
        "n",
        "ACC",
        "minus fresh",
        "CON",
        "lost",
        "minus fresh",
        "gained",
        "κ in all",
        "qualifies",
    ]
    rows = []
    for of in studies():
        for name in shown(of):
            own = of.weeks(name)
            reference = name == FRESH
            rows.append(
                [
                    model(of),
                    METHODS[name],
                    str(own.replicates),
                    spread(own.new),
                    "" if reference else points(of.minus(name, FRESH, "new")),
                    spread(own.agree),
                    spread(own.lost),
                    "" if reference else points(of.minus(name, FRESH, "lost")),
                    spread(own.gained),
                    f"{of.cost(name):.1f}",
                    _verdict(of, name),
                ]
            )
        floor = of.weeks(FLOOR)
        cells = [spread(floor.agree), spread(floor.lost), "", spread(floor.gained), "", ""]
        rows.append(
            [model(of), "noise floor: same data, other seed", str(floor.replicates), "", "", *cells]
        )
    return markdown(head, rows)


def _verdict(of: WeeklyStudy, name: str) -> str:
    if name == FRESH:
        return "(reference)"
    below = of.below(name)
    return "no: below " + "; ".join(METHODS[one] for one in below) if below else "yes"


def fair() -> str:
    """Every method minus the other two references."""
    head = [
        "model",
        "method",
        "ACC minus the strongest fresh, no dearer",
        "ACC minus never retrained",
        "detectable",
    ]
    rows = []
    for of in studies():
        for name in shown(of):
            if name == NEVER:
                continue
            strongest = of.strongest(name)
            both = [of.minus(name, one, "new") for one in (strongest, NEVER)]
            rows.append(
                [
                    model(of),
                    METHODS[name],
                    f"{METHODS[strongest]}: {points(both[0])}",
                    points(both[1]),
                    f"{100 * max(one.detectable for one in both):.1f}",
                ]
            )
    return markdown(head, rows)


def cadence() -> str:
    """What fewer retrains cost, and how many of the weekly ones are worth it."""
    head = [
        "model",
        "retrained",
        "trainings",
        "ACC",
        "ACC minus every week",
        "lost in the year, in points",
    ]
    rows, lines = [], []
    for of in studies():
        for name in CADENCES:
            if name not in of.methods:
                continue
            own = of.weeks(name)
            rows.append(
                [
                    model(of),
                    METHODS[name],
                    f"{of.cost(name):.0f}",
                    spread(own.new),
                    "" if name == FRESH else points(of.minus(name, FRESH, "new")),
                    f"{100 * own.lost.sum(axis=1).mean():.0f}",
                ]
            )
        lines += [f"* {line}" for line in _weekly(of)]
    return "\n".join([*_every_fourth(), *lines, "", markdown(head, rows)])


def _every_fourth() -> Iterator[str]:
    found = [of for of in studies() if "every-4" in of.methods]
    if not found:
        return
    gaps = "; ".join(f"{model(of)} {points(of.minus('every-4', FRESH, 'new'))}" for of in found)
    few, many = (f"{found[0].cost(name):.0f}" for name in ("every-4", FRESH))
    yield f"* **Every 4 weeks instead of every week** takes {few} trainings instead of {many}. Accuracy in points: {gaps}."


def _weekly(of: WeeklyStudy) -> Iterator[str]:
    fresh, floor = of.weeks(FRESH), of.weeks(FLOOR)
    better, worse = of.clear_weeks(FRESH)
    count = len(of.names)
    change = of.minus_old(FRESH)
    yield (
        f"{model(of)}: one weekly retrain changes the accuracy of the week that follows by {points(change)} points. It is clearly better "
        f"in {better} of {count} weeks and clearly worse in {worse}. Meanwhile {100 * (1 - fresh.agree.mean()):.1f} % of the labels change; "
        f"the same data with another seed already changes {100 * (1 - floor.agree.mean()):.1f} %."
    )
    gated = of.weeks("gated")
    kept = 100 * float((gated.agree == 1).mean())
    yield f"{model(of)}: the gate keeps the deployed model in {kept:.0f} % of the weeks."


def months() -> str:
    """The first study month by month."""
    if not studies():
        return ""
    of = studies()[0]
    head = [
        "month",
        "retrains",
        "ACC before → after",
        "never retrained",
        "CON",
        "noise floor",
        "lost",
        "gained",
        "lost, chosen margin",
        "ACC, chosen margin",
    ]
    fresh, never, margin, floor = (
        of.weeks(name) for name in (FRESH, NEVER, "chosen-margin", FLOOR)
    )
    columns = (
        fresh.old,
        fresh.new,
        never.new,
        fresh.agree,
        floor.agree,
        fresh.lost,
        fresh.gained,
        margin.lost,
        margin.new,
    )
    rows = []
    for month in dict.fromkeys(name[:7] for name in of.names):
        at = [place for place, name in enumerate(of.names) if name.startswith(month)]
        old, new, *rest = (spread(each[:, at], places=1) for each in columns)
        rows.append([month, str(len(at)), f"{old} → {new}", *rest])
    return markdown(head, rows)


def week_by_week(of: WeeklyStudy) -> str:
    """Every method in every week as CSV: means over replicates, as fractions."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    metrics = ("old", "new", "agree", "lost", "gained")
    table.writerow(
        ["week", "method", "accuracy_before", "accuracy_after", "consistency", "lost", "gained"]
    )
    for place, week in enumerate(of.names):
        for name in [*shown(of), FLOOR]:
            own = of.weeks(name)
            means = [getattr(own, metric)[:, place].mean() for metric in metrics]
            table.writerow([week, name, *(f"{mean:.4f}" for mean in means)])
    return out.getvalue()


def figures(of: WeeklyStudy) -> dict[str, str]:
    """Accuracy and losses week by week, as SVG."""
    from dynsnap.report import to_svg
    from dynsnap.report.figures import Point, Series, chart

    made = {}
    for name, title, metric, up in (
        ("flights-accuracy", "Accuracy on the week after each retrain", "new", "share of flights"),
        ("flights-lost", "Right answers that each retrain loses", "lost", "share of flights"),
    ):
        series = [
            Series(
                name=METHODS[method],
                points=tuple(
                    Point(x=float(place), y=float(value))
                    for place, value in enumerate(getattr(of.weeks(method), metric).mean(axis=0))
                ),
                tone=tone,  # type: ignore[arg-type]  # a name of a colour, checked when drawn
                marks=False,
            )
            for method, tone in DRAWN.items()
            if not (metric == "lost" and method == NEVER)
        ]
        ends = ", ".join(
            f"{one.name} {100 * sum(p.y for p in one.points) / len(one.points):.1f} %"
            for one in series
        )
        figure = chart(
            name=name,
            title=f"{title} ({model(of)})",
            description=f"Means over the year: {ends}.",
            series=series,
            across="week of the retrain",
            up=up,
            places=_places(of.names),
        )
        made[name] = to_svg(figure)
    return made


def _places(names: Sequence[str]) -> list[tuple[float, str]]:
    return [(float(at), name[5:]) for at, name in enumerate(names) if at % 5 == 0]


if __name__ == "__main__":
    main()
