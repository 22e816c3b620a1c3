"""The tables of docs/flights.md, from the published predictions beside this file.

python results/flights.py          # writes them into the page
python results/flights.py --check  # fails if the page is not up to date
"""

import argparse
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from dynsnap._types import AnyArray, Floats
from dynsnap.predictions import read, stored
from dynsnap.study import read_table

RESULTS = Path(__file__).parent
PAGE = RESULTS.parent / "docs" / "flights.md"
STUDIES = ("flights", "flights-xgboost", "flights-mlp")
_PLACE = re.compile(r"(<!-- flights: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

# ruff: noqa: E501  lines of the page are longer than lines of code
# In the order of the tables, with what each does in a week.
METHODS = {
    "singlebase": "fresh: trained from scratch",
    "margin": "fresh, stabilized by a margin of 0.2",
    "bayesian": "fresh, stabilized by the Bayesian rule",
    "gated": "fresh, deployed if the gate passes",
    "single-distill": "fresh, learns from the deployed scores",
    "single": "one model, the default",
    "warm": "warm start, a tenth of the trees",
    "rolling": "rolling ensemble of 8",
    "never-retrain": "never retrained",
}
SECTIONS = """
## What wins

Means over all weekly retrains, in percent, each on the week that follows it; ± over n replicates. κ: trainings from scratch.

<!-- flights: wins -->
<!-- end -->

## When a weekly retrain is not worth it

<!-- flights: worth -->
<!-- end -->

## Month by month

<!-- flights: months -->
<!-- end -->
"""
FLOOR = "noise floor: same data, other seed"


@dataclass(frozen=True, eq=False)
class Weeks:
    """What each week's retrain does to the week that follows: an array of replicates by weeks."""

    names: tuple[str, ...]
    old: Floats
    new: Floats
    agree: Floats
    lost: Floats
    gained: Floats

    @property
    def replicates(self) -> int:
        """How often it was repeated."""
        return len(self.old)

    def mean(self, values: Floats) -> str:
        """The mean over weeks in percent, with its spread over replicates where there are some."""
        each = 100 * values.mean(axis=1)
        spread = f" ± {each.std(ddof=1):.2f}" if len(each) > 1 else ""
        return f"{each.mean():.2f}{spread}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    text = PAGE.read_text(encoding="utf-8")
    fresh = filled(text)
    if parser.parse_args().check:
        raise SystemExit(0 if fresh == text else "Not up to date: run python results/flights.py.")
    PAGE.write_text(fresh, encoding="utf-8")


def filled(text: str) -> str:
    """The page with the tables of the current results."""
    if published() and "<!-- flights:" not in text:
        text += SECTIONS
    tables = {"wins": wins, "months": months, "worth": worth}
    return _PLACE.sub(lambda match: f"{match[1]}\n{tables[match[2]]()}\n\n{match[3]}", text)


def published() -> list[str]:
    """The studies whose results are here."""
    return [name for name in STUDIES if (RESULTS / name / "table.csv").is_file()]


@cache
def weeks_of(folder: Path) -> dict[str, Weeks]:
    """Every method of a study, and the noise floor, week by week."""
    answers: dict[tuple[str, int], dict[int, AnyArray]] = defaultdict(dict)
    twins: dict[int, AnyArray] = {}
    baseline = "singlebase"
    for key, place in stored(folder).items():
        found = read(place)
        period = found.slices["period"]
        truth = np.asarray(found.truth)
        if key.kind == "twin":
            if key.generation == 2:
                twins[key.replicate] = found.labels
        else:
            answers[key.method, key.replicate][key.generation] = found.labels
    made = {
        method: _weeks(
            [(one[1], one[2]) for (name, _), one in sorted(answers.items()) if name == method],
            truth,
            period,
        )
        for method in dict.fromkeys(name for name, _ in answers)
    }
    pairs = [(answers[baseline, number][2], twin) for number, twin in sorted(twins.items())]
    return {**made, FLOOR: _weeks(pairs, truth, period)}


def _weeks(pairs: Sequence[tuple[AnyArray, AnyArray]], truth: AnyArray, period: object) -> Weeks:
    codes, values = np.asarray(period.codes), tuple(map(str, period.values))  # type: ignore[attr-defined]
    order = np.argsort(values)
    rows = [codes == place for place in order]

    def shares(flags: AnyArray) -> list[float]:
        return [float(flags[week].mean()) for week in rows]

    columns = [
        [
            shares(old == truth),
            shares(new == truth),
            shares(old == new),
            shares((old == truth) & (new != truth)),
            shares((old != truth) & (new == truth)),
        ]
        for old, new in pairs
    ]
    stacked = np.array(columns).transpose(1, 0, 2)
    return Weeks(tuple(values[place] for place in order), *stacked)


def wins() -> str:
    """Every method of every study in one table: accuracy, consistency, losses, cost."""
    head = ["model", "method", "n", "ACC", "CON", "lost", "gained", "κ per week", "κ in all"]
    rows = []
    for study in published():
        weeks, costs = weeks_of(RESULTS / study), _costs(RESULTS / study)
        for method, what in {**METHODS, FLOOR: FLOOR}.items():
            if (found := weeks.get(method)) is None:
                continue
            kappa = costs.get(method, 0.0)
            floor = method == FLOOR
            rows.append(
                [
                    _model(study),
                    what,
                    str(found.replicates),
                    "" if floor else found.mean(found.new),
                    found.mean(found.agree),
                    found.mean(found.lost),
                    found.mean(found.gained),
                    "" if floor else f"{kappa:.2f}",
                    "" if floor else f"{1 + kappa * len(found.names):.1f}",
                ]
            )
    return _markdown(head, rows)


def months() -> str:
    """The fresh retrain month by month, beside what is never retrained and what is stabilized."""
    head = ["month", "retrains", "ACC old → new", "never retrained", "CON", "noise floor", "lost"]
    head += ["gained", "lost, margin", "ACC, margin"]
    weeks = weeks_of(RESULTS / "flights")
    fresh, never, margin = (weeks[name] for name in ("singlebase", "never-retrain", "margin"))
    rows = []
    for month in dict.fromkeys(name[:7] for name in fresh.names):
        of = [place for place, name in enumerate(fresh.names) if name.startswith(month)]
        cells = (
            never.new,
            fresh.agree,
            weeks[FLOOR].agree,
            fresh.lost,
            fresh.gained,
            margin.lost,
            margin.new,
        )
        old, new, *rest = (
            f"{100 * each[:, of].mean():.1f}" for each in (fresh.old, fresh.new, *cells)
        )
        rows.append([month, str(len(of)), f"{old} → {new}", *rest])
    return _markdown(head, rows)


def worth() -> str:
    """How many of the weekly retrains are worth it."""
    return "\n".join(f"* {line}" for line in _worth())


def _worth() -> Iterator[str]:
    for study in published():
        weeks = weeks_of(RESULTS / study)
        fresh, never, gated = (weeks[name] for name in ("singlebase", "never-retrain", "gated"))
        change = (fresh.new - fresh.old).mean(axis=0)
        count = len(change)
        better = int((change > 0).sum())
        total = 100 * (fresh.new.mean() - never.new.mean())
        churn = 100 * (fresh.lost + fresh.gained).mean()
        yield (
            f"{_model(study)}: of {count} weekly retrains {better} raise the accuracy of the week "
            f"that follows and {int((change < 0).sum())} lower it. On average a retrain adds "
            f"{100 * change.mean():+.2f} points and changes whether {churn:.1f} % of the answers "
            "are right."
        )
        yield (
            f"{_model(study)}: never retraining costs {total:.2f} points of accuracy over the year."
        )
        kept = float((gated.agree == 1).mean())
        lost = 100 * (gated.lost.mean() - fresh.lost.mean())
        yield (
            f"{_model(study)}: the gate keeps the deployed model in {100 * kept:.0f} % of the "
            f"weeks; accuracy {100 * (gated.new.mean() - fresh.new.mean()):+.2f} points, lost "
            f"{lost:+.2f} points against deploying every retrain."
        )


def _costs(folder: Path) -> dict[str, float]:
    """The cost (κ) of a retrain, by method."""
    rows = read_table(folder / "table.csv")
    return {row.method: row.value for row in rows if row.metric == "retrain_cost"}


def _model(study: str) -> str:
    return {"flights-xgboost": "XGBoost", "flights-mlp": "MLP"}.get(study, "LightGBM")


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


if __name__ == "__main__":
    main()
