"""The tables of docs/stabilize.md, from the published predictions beside this file.

python results/stabilizing.py          # writes them into the page
python results/stabilizing.py --check  # fails if the page is not up to date

Rules are chosen on one half of the test inputs and reported on the other half.
"""

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from _measured import Measured, values_table
from dynsnap._types import AnyArray, Floats
from dynsnap.predictions import Predictions, read
from dynsnap.stabilizing import Choice, choose_cost_rule, choose_margin, update

RESULTS = Path(__file__).parent
PAGE = RESULTS.parent / "docs" / "stabilize.md"
STUDIES = ("cifar10-paper", "cifar100-paper", "20news", "digits")
METHOD = "singlebase/average"
_SET = "set"
_PLACE = re.compile(r"(<!-- (rules|replicates) -->\n).*?(<!-- end -->)", re.DOTALL)

Choose = Callable[[Predictions, Predictions], Choice]
RULES: dict[str, Choose | None] = {
    "none": None,
    "margin, cost ratio 2": partial(choose_margin, ratio=2),
    "Bayesian, cost ratio 1": partial(choose_cost_rule, ratio=1),
    "Bayesian, cost ratio 2": partial(choose_cost_rule, ratio=2),
    "Bayesian, cost ratio 4": partial(choose_cost_rule, ratio=4),
    "Bayesian, labels alone, cost ratio 2": partial(choose_cost_rule, ratio=2, evidence="labels"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    text = PAGE.read_text(encoding="utf-8")
    tables = {"rules": table, "replicates": replicates}
    fresh = _PLACE.sub(lambda match: f"{match[1]}\n{tables[match[2]]()}\n\n{match[3]}", text)
    if parser.parse_args().check:
        raise SystemExit(
            0 if fresh == text else "Not up to date: run python results/stabilizing.py."
        )
    PAGE.write_text(fresh, encoding="utf-8")


def table() -> str:
    """Every study and rule in Markdown."""
    head = ["study", "rule", "lost", "change of lost", "gained", "ACC 2, 3", "CON", "new class"]
    found = [head, ["---"] * len(head), *(row for study in STUDIES for row in rows(study))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in found)


def replicates() -> str:
    """Rules on three replicates."""
    of = Measured(RESULTS / "cifar10-stabilized")
    return "\n".join(values_table(of, of.methods))


def rows(study: str) -> Iterator[list[str]]:
    """The rules of one study: retrains 1→2 and 2→3 of one network, on the reported half."""
    plain = flips(of_test(series(study, None)))[0]
    for name, choose in RULES.items():
        deployed = series(study, choose)
        test = of_test(deployed)
        lost, gained = flips(test)
        change = lost - plain
        interval = f"{100 * change.mean():+.2f} ± {100 * _half_width(change):.2f}"
        agree = [np.mean(old.labels == late.labels) for old, late in pairwise(test)]
        new = deployed[-1].take(is_new(deployed[-1]))
        yield [
            f"{study} (n = {len(lost):,})",
            name,
            f"{100 * lost.mean():.2f}",
            "" if choose is None else interval,
            f"{100 * gained.mean():.2f}",
            ", ".join(f"{100 * np.mean(one.labels == one.truth):.1f}" for one in test[1:]),
            f"{100 * np.mean(agree):.1f}",
            f"{100 * np.mean(new.labels == new.truth):.0f} % of {len(new):,}",
        ]


def series(study: str, choose: Choose | None) -> list[Predictions]:
    """Three generations of the reported half, after rules that are chosen on the other half.

    Both halves go from week to week. Rows of a new class are in both from its generation on: until
    then no label of theirs exists to choose with.
    """
    every = [_generation(study, at) for at in (1, 2, 3)]
    held = np.random.default_rng(0).random(len(every[0])) < 0.5
    chosen_on, deployed = every[0].take(held), [every[0].take(~held)]
    for place, new in enumerate(every[1:], start=2):
        if choose is None:
            deployed.append(new.take(~held))
            continue
        known = np.full(held.sum(), True) if place == 3 else ~is_new(chosen_on)
        held_new = new.take(held)
        choice = choose(chosen_on.take(known), held_new.take(known))
        chosen_on = update(chosen_on, held_new, choice.rule, confusion=choice.old_confusion)
        deployed.append(
            update(deployed[-1], new.take(~held), choice.rule, confusion=choice.old_confusion)
        )
    return deployed


def of_test(generations: Sequence[Predictions]) -> list[Predictions]:
    """The inputs of classes that every generation knows, as in the tables of studies."""
    return [one.take(~is_new(one)) for one in generations]


def is_new(predictions: Predictions) -> AnyArray:
    """Whether each input is of a class that is new in the last generation."""
    sets = predictions.slices[_SET]
    found: AnyArray = sets.codes == list(sets.values).index("new")
    return found


def flips(generations: Sequence[Predictions]) -> tuple[Floats, Floats]:
    """For each input, the mean over retrains of being lost and of being gained."""
    right = [one.labels == one.truth for one in generations]
    lost = np.mean([old & ~new for old, new in pairwise(right)], axis=0)
    return lost, np.mean([~old & new for old, new in pairwise(right)], axis=0)


def _generation(study: str, number: int) -> Predictions:
    sets = {name: read(f"{RESULTS / study}::{name}{METHOD}/g{number}/r0") for name in ("", "late/")}
    parts = {
        name: np.concatenate([getattr(one, name) for one in sets.values()])
        for name in ("ids", "scores", "truth")
    }
    of_set = np.repeat(["test", "new"], [len(one) for one in sets.values()])
    return Predictions(classes=sets[""].classes, slices={_SET: of_set}, positions=True, **parts)


def _half_width(values: Floats) -> float:
    return float(1.96 * values.std(ddof=1) / np.sqrt(len(values)))


if __name__ == "__main__":
    main()
