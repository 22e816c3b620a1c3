"""The paper's table: methods and combinations, best and second best marked, intervals, cost."""

from collections.abc import Iterator, Mapping, Sequence

from dynsnap.ensemble import METHODS
from dynsnap.metrics import catalogue
from dynsnap.report._blocks import UNDEFINED
from dynsnap.report._element import Markup
from dynsnap.report.html._parts import Entry, Head, Listing, listing
from dynsnap.study import NEVER_RETRAIN, NOISE_FLOOR, Row

HEADLINE = {"accuracy": "ACC", "consistency": "CON", "correct_consistency": "ACC-CON"}
SHORT = {
    "majority": "MV",
    "weighted_majority": "WMV",
    "average": "AVG",
    "weighted_average": "WAVG",
}


def is_reference(method: str) -> bool:
    """Whether it is shown for reference only: the noise floor, and what is never retrained."""
    return method == NOISE_FLOOR or method.startswith(NEVER_RETRAIN)


def is_ablation(method: str) -> bool:
    """Whether it is a method of the study's own, beside the paper's six."""
    return method not in METHODS and not is_reference(method)


def headline(name: str, caption: str, rows: Sequence[Row]) -> Markup:
    """The paper's table: best and second best marked, intervals, cost."""
    found = {(row.method, row.combination, row.metric): row for row in rows}
    ranks = {
        metric: sorted(
            {
                round(row.value, 6)
                for row in rows
                if row.metric == metric and not is_reference(row.method)
            },
            reverse=True,
        )[:2]
        for metric in HEADLINE
    }
    heads = [Head("method"), Head("by"), Head("κ", True, "Trainings from scratch per generation.")]
    for metric, symbol in HEADLINE.items():
        heads += [Head(symbol, True, catalogue[metric].meaning), Head("interval", fixed=True)]
    made = []
    for method, how, alike in _lines(rows, found):
        present = [found.get((method, how, metric)) for metric in HEADLINE]
        cost = next((row.cost for row in present if row is not None), None)
        line = [
            Entry(method, tone="quiet" if is_reference(method) else ""),
            Entry("all" if alike else SHORT.get(how, how)),
            Entry("" if cost is None else f"{cost:.1f}", key=cost),
        ]
        for metric, row in zip(HEADLINE, present, strict=True):
            place = _rank(row, ranks[metric]) if not is_reference(method) else ""
            line += [
                Entry(percent(value_of(row)), key=value_of(row), tone=place),
                Entry(limits(row), tone="quiet"),
            ]
        made.append(line)
    return listing(
        Listing(
            name=name,
            caption=caption,
            heads=tuple(heads),
            rows=made,
            note="MV, WMV: majority and weighted majority vote. AVG, WAVG: average and weighted "
            "average.",
        )
    )


def _lines(
    rows: Sequence[Row], found: Mapping[tuple[str, str, str], Row]
) -> Iterator[tuple[str, str, bool]]:
    """Method, combination, and whether it stands for all combinations; references come last."""
    methods = dict.fromkeys(row.method for row in rows)
    ways = list(dict.fromkeys(row.combination for row in rows))
    for method in sorted(methods, key=is_reference):
        said = {
            tuple(value_of(found.get((method, how, metric))) for metric in HEADLINE) for how in ways
        }
        alike = len(said) == 1 and len(ways) > 1
        for how in ways[:1] if alike else ways:
            if any((method, how, metric) in found for metric in HEADLINE):
                yield method, how, alike


def _rank(row: Row | None, best: Sequence[float]) -> str:
    if row is None or round(row.value, 6) not in best:
        return ""
    return "best" if round(row.value, 6) == best[0] else "second"


def value_of(row: Row | None) -> float | None:
    """The value of a row that may be missing."""
    return None if row is None else row.value


def percent(value: float | None) -> str:
    """A fraction in percent, or a dash."""
    return UNDEFINED if value is None else f"{100 * value:.2f}"


def limits(row: Row | None) -> str:
    """The interval of a row in percent, or nothing."""
    if row is None or row.low is None or row.high is None:
        return ""
    return f"[{percent(row.low)}, {percent(row.high)}]"
